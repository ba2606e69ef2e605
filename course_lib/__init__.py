"""Self-supervised pretraining objectives, small enough to read and correct enough to use.

| module           | what is in it                                                                 |
|------------------|-------------------------------------------------------------------------------|
| `corruption`     | noise masks and what they do to ids: BERT 80/10/10, T5 spans, BART infilling  |
| `objectives`     | ids → inputs, labels, attention: causal, masked, prefix LM, spans, infilling  |
| `losses`         | summed negative log-likelihood and its mean, also straight from hidden states |
| `perplexity`     | nats, bits, perplexity; a streaming, mergeable sum; sliding windows           |
| `oracle`         | a Markov world in which the best possible loss of every objective is known    |
| `model`          | a tiny transformer whose attention mask is injected, and a loop to train it   |
| `text`           | corpora that need no download, and tokenizers                                 |
| `strip`          | token strips: what a model reads and what it is scored on                     |
| `show`           | figures: attention masks, losses by position, perplexities                    |
| `check`          | the help in the notebooks; `plain` says what counts as the same answer        |
| `misconceptions` | what wrong answers show, by number; `traps` asks twenty questions about it    |
| `cards`          | five flashcards from earlier levels, on a schedule                            |
| `playground`     | the objectives side by side on a sentence of one's own                        |
| `concepts`       | the concept map                                                               |
| `live`           | pages that unfold, and widgets with such a page to fall back on               |

Import from the modules; importing one loads nothing heavy beyond torch.
"""
