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
| `teaching`       | what the notebooks are made of: help, figures, cards, widgets                 |

Import from the modules; importing one loads nothing heavy beyond torch.
"""
