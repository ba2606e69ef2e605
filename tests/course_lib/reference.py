"""Plain per-row references in NumPy, written from the papers' rules: oracles for tests and bench.

Slow and obvious on purpose: one row, one loop, Python ints.
"""

import math

import numpy as np
from numpy.random import Generator


def t5_counts(length: int, density: float, mean_span: float) -> tuple[int, int]:
    """Noise tokens and spans of a text: T5's float32 rule, with spans no more than kept tokens."""
    if length < 2 or density == 0:
        return 0, 0
    noise = int(np.round(np.float32(length) * np.float32(density)))
    noise = min(max(noise, 1), length - 1)
    spans = max(int(np.round(np.float32(noise) / np.float32(mean_span))), 1)
    return noise, min(spans, length - noise)


def t5_mask(length: int, density: float, mean_span: float, rng: Generator) -> np.ndarray:
    """Kept and noise runs by turns, the lengths of each a random composition."""
    noise, spans = t5_counts(length, density, mean_span)
    if spans == 0:
        return np.zeros(length, dtype=bool)

    def composition(tokens: int) -> list[int]:
        first_in_run = rng.permutation([1] * (spans - 1) + [0] * (tokens - spans))
        runs = np.concatenate([[0], np.cumsum(first_in_run)]).astype(int)
        return np.bincount(runs, minlength=spans).tolist()

    pieces = []
    for kept_run, noise_run in zip(composition(length - noise), composition(noise), strict=True):
        pieces += [False] * kept_run + [True] * noise_run
    return np.array(pieces)


def t5_spans(
    ids: list[int], mask: list[bool], first_sentinel: int, eos_id: int, final_sentinel: bool = False
) -> tuple[list[int], list[int]]:
    """Inputs and targets for any mask: a sentinel before each run of noise, EOS at the end."""
    inputs: list[int] = []
    targets: list[int] = []
    sentinel = first_sentinel
    inside = False
    for token, noise in zip(ids, mask, strict=True):
        if noise and not inside:
            inputs.append(sentinel)
            targets.append(sentinel)
            sentinel -= 1
        (targets if noise else inputs).append(token)
        inside = noise
    if final_sentinel or not inside:
        targets.append(sentinel)
    return [*inputs, eos_id], [*targets, eos_id]


def bart_infill(
    ids: list[int], mask_id: int, rate: float, mean_span: float, rng: Generator
) -> list[int]:
    """fairseq's law: random starts, spans may overlap and merge, empty spans are insertions."""
    last = len(ids) - 1
    words = max(len(ids) - 2, 0)
    budget = math.ceil(np.float32(words) * np.float32(rate))
    lengths: list[int] = []
    while sum(lengths) < budget:
        lengths.append(min(int(rng.poisson(mean_span)), budget - sum(lengths)))
    spans = [length for length in lengths if length]
    starts = (rng.permutation(words)[: len(spans)] + 1).tolist()
    gone = set()
    for start, length in zip(starts, spans, strict=True):
        gone |= set(range(start + 1, min(start + length, last)))
    out = [mask_id if i in starts else ids[i] for i in range(len(ids)) if i not in gone]
    inserts = len(lengths) - len(spans)
    total = len(out) + inserts
    places = set((rng.permutation(total - 2)[:inserts] + 1).tolist()) if inserts else set()
    kept = iter(out)
    return [mask_id if i in places else next(kept) for i in range(total)]
