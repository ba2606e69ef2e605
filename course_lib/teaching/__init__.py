"""What the notebooks are made of, beside the objectives themselves.

| module           | what is in it                                                                 |
|------------------|-------------------------------------------------------------------------------|
| `check`          | the help in the notebooks: check, predict, hint; what test cells compare with |
| `plain`          | plain data, and what counts as the same answer                                |
| `suspects`       | wrong implementations that students examine                                   |
| `misconceptions` | what wrong answers show, by number; `traps` asks twenty questions about it    |
| `strip`          | token strips: what a model reads and what it is scored on                     |
| `show`           | figures: attention masks, losses by position, perplexities                    |
| `cards`          | five flashcards from earlier levels, on a schedule                            |
| `playground`     | the objectives side by side on a sentence of one's own                        |
| `concepts`       | the concept map                                                               |
| `live`           | pages that unfold, and widgets with such a page to fall back on               |
"""
