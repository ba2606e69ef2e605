"""Plain per-row references in NumPy, written from the papers' rules: oracles for tests and bench.

One row at a time and nothing clever, as the papers' own code does it.
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

    def composition(tokens: int) -> np.ndarray:
        first_in_run = rng.permutation(np.arange(tokens - 1) < spans - 1)
        return np.bincount(np.append(0, first_in_run.cumsum()), minlength=spans)

    runs = np.stack([composition(length - noise), composition(noise)], axis=1).ravel()
    return np.repeat(np.arange(2 * spans) % 2 == 1, runs)


def t5_spans(
    ids: np.ndarray,
    mask: np.ndarray,
    first_sentinel: int,
    eos_id: int,
    final_sentinel: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets for any mask: a sentinel before each run of noise, EOS at the end."""
    starts = mask & ~np.append(False, mask[:-1])
    sentinels = first_sentinel - np.arange(starts.sum() + 1)
    inputs = np.where(starts, first_sentinel + 1 - starts.cumsum(), ids)[starts | ~mask]
    targets = np.insert(ids[mask], np.flatnonzero(starts[mask]), sentinels[:-1])
    if final_sentinel or not mask[-1:].any():
        targets = np.append(targets, sentinels[-1])
    return np.append(inputs, eos_id), np.append(targets, eos_id)


def bart_infill(
    ids: np.ndarray, mask_id: int, rate: float, mean_span: float, rng: Generator
) -> np.ndarray:
    """fairseq's law: random starts, spans may overlap and merge, empty spans are insertions."""
    last, words = len(ids) - 1, max(len(ids) - 2, 0)
    budget = math.ceil(np.float32(words) * np.float32(rate))
    lengths = np.zeros(0, dtype=int)
    while lengths.sum() < budget:
        lengths = np.append(lengths, rng.poisson(mean_span, size=budget))
    if budget:  # up to the first that reaches it, cut to meet it
        ends = lengths.cumsum()
        lengths = lengths[: np.searchsorted(ends, budget) + 1]
        lengths[-1] -= ends[len(lengths) - 1] - budget
    spans = lengths[lengths > 0]
    starts = rng.permutation(words)[: len(spans)] + 1
    change = np.zeros(len(ids) + 1, dtype=int)
    np.add.at(change, starts + 1, 1)
    np.add.at(change, np.maximum(np.minimum(starts + spans, last), starts + 1), -1)
    noisy = ids.copy()
    noisy[starts] = mask_id
    kept = noisy[change.cumsum()[:-1] == 0]
    inserts = len(lengths) - len(spans)
    insert = np.zeros(len(kept) + inserts, dtype=bool)
    insert[rng.permutation(len(insert) - 2)[:inserts] + 1] = True
    out = np.full(len(insert), mask_id)
    out[~insert] = kept
    return out
