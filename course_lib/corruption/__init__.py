"""Corrupt token ids for denoising: BERT's 80/10/10, T5's random spans, BART's text infilling.

A corruption is a noise mask × an input function × a target function. The pieces compose
(`iid_mask` or `random_spans_mask`, then `apply_spans`); `span_corrupt` is the direct way to the
same result for T5's own mask.

| module       | what is in it                                                              |
|--------------|----------------------------------------------------------------------------|
| `bert`       | masks of single tokens, independent or exact in number; 80/10/10           |
| `spans`      | T5's spans: counts, lengths that fit, the mask                             |
| `t5`         | inputs and targets with sentinels, for T5's spans or any mask; the way back |
| `bart`       | text infilling                                                             |
| `randomness` | `ExampleKeys`: random numbers that belong to an example                    |
| `rows`       | checks, lengths and moves that the others share                            |

Shapes: B rows, T positions, S and T' the longest encoder input and target, K chosen positions or
spans of a row; `_B1` is a column, one number for each row. Padding stands on the right and is
known by `lengths` or a mask, never by its id: a pad id inside the text is a token.

Randomness: `generator` is a `torch.Generator` on the device of the ids (None: torch's own) or
`ExampleKeys`. The CPU and CUDA streams of a `torch.Generator` differ; `ExampleKeys` gives the
same numbers everywhere.

Widths: nothing here waits for an accelerator. Where the length of a row is random or ragged, a
CPU result is as wide as its longest row, a GPU result as wide as the longest row possible.
"""

from course_lib.corruption.bart import text_infill
from course_lib.corruption.bert import bert_corrupt, exact_mask, iid_mask
from course_lib.corruption.randomness import ExampleKeys, Randomness
from course_lib.corruption.spans import random_spans_mask, span_counts, span_lengths
from course_lib.corruption.t5 import Denoising, apply_spans, restore, span_corrupt

__all__ = [
    "Denoising",
    "ExampleKeys",
    "Randomness",
    "apply_spans",
    "bert_corrupt",
    "exact_mask",
    "iid_mask",
    "random_spans_mask",
    "restore",
    "span_corrupt",
    "span_counts",
    "span_lengths",
    "text_infill",
]
