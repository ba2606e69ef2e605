"""course_lib against its peers: each ratio from one interleaved run, the fastest of its rounds.

Also draws the picture of the ratios. `gpu.py` has the same on a GPU.
"""

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from classes import ROOT
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

sys.path.append(str(ROOT / "tests" / "course_lib"))
import reference

from course_lib.corruption import bert_corrupt, span_corrupt, text_infill
from course_lib.losses import linear_cross_entropy
from course_lib.perplexity import Perplexity

PICTURE = ROOT / "docs" / "images" / "library.png"
VOCAB, MASK, CLS, SEP = 30_522, 103, 101, 102
T5 = {"first_sentinel": 32_099, "eos_id": 1, "pad_id": 0}
ROUNDS, LEAST_S = 7, 0.02
ROWS, WIDTH = 2_048, 768  # of the hidden states before the vocabulary
LARGE = (50_257, 128_256)


@dataclass(frozen=True)
class Row:
    """One comparison: how many times a peer's time (or memory) ours takes less, and the goal."""

    work: str
    peer: str
    ratio: float
    goal: float
    ours: str


def fastest(rounds: int = ROUNDS, **works: Callable[[], object]) -> dict[str, float]:
    """Seconds of one call of each, the least of so many rounds in which they take turns."""
    calls = {}
    for name, work in works.items():
        work()
        began = time.perf_counter()
        work()
        calls[name] = max(1, math.ceil(LEAST_S / (time.perf_counter() - began)))
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.perf_counter()
            for _ in range(calls[name]):
                work()
            times[name].append((time.perf_counter() - began) / calls[name])
    return {name: min(times[name]) for name in works}


def million(tokens: int, seconds: float) -> str:
    return f"{tokens / seconds / 1e6:.1f} Mtok/s"


def masking() -> list[Row]:
    """BERT's masking against transformers' collator."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    names = {f"w{id}": id for id in range(VOCAB)}
    for name, id in (("[PAD]", 0), ("[CLS]", CLS), ("[SEP]", SEP), ("[MASK]", MASK)):
        del names[f"w{id}"]
        names[name] = id
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(names, unk_token="w1")),
        pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    rows = []
    for batch in (64, 256):
        ids = torch.randint(1_000, VOCAB, (batch, 512))
        ids[:, 0], ids[:, -1] = CLS, SEP
        special = (ids == CLS) | (ids == SEP)

        about = {"vocab_size": VOCAB, "mask_id": MASK, "special_mask": special}
        seconds = fastest(
            bernoulli=partial(bert_corrupt, ids, **about),
            exact=partial(bert_corrupt, ids, select="exact", **about),
            tensors=partial(_on_a_copy, collator.torch_mask_tokens, ids, special),
            lists=partial(collator, ids.tolist()),
        )
        for mode, peer, goal in (
            ("bernoulli", "tensors", 3), ("bernoulli", "lists", 20), ("exact", "tensors", 2.5),
        ):  # fmt: skip
            how = "" if mode == "bernoulli" else ", exact count"
            path = "tensor path" if peer == "tensors" else "called on lists"
            rows.append(
                Row(
                    f"MLM {batch}×512{how}",
                    f"transformers' collator, {path}",
                    seconds[peer] / seconds[mode],
                    goal,
                    million(ids.numel(), seconds[mode]),
                )
            )
    return rows


def _on_a_copy(mask: Callable[..., object], ids: torch.Tensor, special: torch.Tensor) -> object:
    """For a peer that writes into what it is given."""
    return mask(ids.clone(), special)


def denoising() -> list[Row]:
    """T5's and BART's corruption against their algorithms in numpy, a row at a time."""
    rng, rows = np.random.default_rng(0), []
    for name, lengths, goal in (
        ("64×568", [568] * 64, 8),
        ("256×568", [568] * 256, 8),
        ("256 ragged rows, 200 to 568", rng.integers(200, 569, 256).tolist(), 4),
    ):
        ids = torch.randint(2, 32_000, (len(lengths), 568))
        texts = [row[:length].numpy() for row, length in zip(ids, lengths, strict=True)]
        each = None if len(set(lengths)) == 1 else torch.tensor(lengths)

        seconds = fastest(
            ours=partial(span_corrupt, ids, lengths=each, **T5), per_row=partial(_spans, texts, rng)
        )
        rate = million(sum(lengths), seconds["ours"])
        ratio = seconds["per_row"] / seconds["ours"]
        rows.append(Row(f"T5 spans {name}", "numpy, a row at a time", ratio, goal, rate))
    ids = torch.randint(2, 50_000, (64, 512))
    texts = list(ids.numpy())
    seconds = fastest(
        ours=lambda: text_infill(ids, mask_id=50_264, pad_id=1),
        per_row=lambda: [reference.bart_infill(text, 50_264, 0.3, 3.0, rng) for text in texts],
    )
    ratio = seconds["per_row"] / seconds["ours"]
    rate = million(ids.numel(), seconds["ours"])
    return [*rows, Row("BART infilling 64×512", "numpy, a row at a time", ratio, 10, rate)]


def _spans(texts: list[np.ndarray], rng: np.random.Generator) -> None:
    for text in texts:
        mask = reference.t5_mask(len(text), 0.15, 3.0, rng)
        reference.t5_spans(text, mask, T5["first_sentinel"], T5["eos_id"])


# --- losses: time in turns, memory each in a process of its own -----------------------------------


def layer(vocab: int, dtype: str, rows: int = ROWS) -> tuple[torch.Tensor, ...]:
    """Hidden states, the weights before the vocabulary, and labels, all scored."""
    made = torch.Generator().manual_seed(0)
    hidden = torch.randn(rows, WIDTH, generator=made).to(getattr(torch, dtype))
    weight = (torch.randn(vocab, WIDTH, generator=made) * 0.02).to(hidden.dtype)
    return hidden, weight, torch.randint(0, vocab, (rows,), generator=made)


def naive(hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(F.linear(hidden, weight).float(), labels)


WAYS = {
    "ours": linear_cross_entropy,
    "naive": naive,
    "torch": partial(F.linear_cross_entropy, options=LinearCrossEntropyOptions()),
}


def step(way: str, tensors: tuple[torch.Tensor, ...], train: bool) -> None:
    """A loss and, in training, both gradients."""
    hidden, weight, labels = tensors
    if not train:
        with torch.no_grad():
            WAYS[way](hidden, weight, labels)
        return
    hidden, weight = hidden.detach().requires_grad_(), weight.detach().requires_grad_()
    WAYS[way](hidden, weight, labels).backward()


def peak(way: str, vocab: int, dtype: str, train: bool) -> int:
    """Bytes that a step needs at most beside its inputs, in a fresh process."""
    words = [sys.executable, __file__, way, str(vocab), dtype, str(int(train))]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return int(done.stdout)


def _measure_peak(way: str, vocab: str, dtype: str, train: str) -> int:
    def status(field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"{field}:"))
        return int(line.split()[1]) * 1024

    torch.set_num_threads(os.cpu_count() or 1)
    tensors = layer(int(vocab), dtype)
    step(way, layer(100, dtype, rows=8), bool(int(train)))  # what is loaded on first use
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    step(way, tensors, bool(int(train)))
    return status("VmHWM") - before


def losses() -> list[Row]:
    """The chunked linear cross-entropy against the whole logits and against torch's own chunks."""
    rows = []
    for dtype, train in (("float32", True), ("float32", False), ("bfloat16", True)):
        what = f"{'train' if train else 'evaluate'}, {'fp32' if dtype == 'float32' else 'bf16'}"
        for vocab in LARGE:
            tensors = layer(vocab, dtype)
            works = {way: partial(step, way, tensors, train) for way in ("ours", "naive")}
            seconds = fastest(rounds=5, **works)
            work = f"linear + CE, V = {vocab:,}, {what}"
            goal = 1 / 1.1 if dtype == "bfloat16" else 1
            shown = f"{seconds['ours']:.2f} s"
            rows.append(
                Row(work, "whole logits, time", seconds["naive"] / seconds["ours"], goal, shown)
            )
            need = {way: peak(way, vocab, dtype, train) for way in works}
            goal = 2 if dtype == "bfloat16" else 1 / 0.3 if train else 8
            shown = f"{need['ours'] / 2**20:.0f} MiB"
            ratio = need["naive"] / need["ours"]
            rows.append(Row(work, "whole logits, peak memory", ratio, goal, shown))
            if train and dtype == "float32":
                works = {way: partial(step, way, tensors, train) for way in ("ours", "torch")}
                seconds = fastest(rounds=2, **works)
                ratio = seconds["torch"] / seconds["ours"]
                shown = f"{seconds['ours']:.2f} s"
                rows.append(Row(work, "torch's own chunks, time", ratio, 5, shown))
    return rows


def masked_loss() -> list[Row]:
    """An MLM's loss from its labelled rows alone against projecting every position."""
    made = torch.Generator().manual_seed(0)
    hidden = torch.randn(4_096, 256, generator=made)
    weight = torch.randn(VOCAB, 256, generator=made) * 0.02
    labels = torch.randint(0, VOCAB, (4_096,), generator=made)
    labels[torch.rand(4_096, generator=made) >= 0.15] = -100
    tensors = (hidden, weight, labels)
    seconds = fastest(
        ours=lambda: step("ours", tensors, True), naive=lambda: step("naive", tensors, True)
    )
    ratio = seconds["naive"] / seconds["ours"]
    shown = f"{seconds['ours'] * 1e3:.0f} ms"
    return [Row("MLM loss, 15% labelled", "projecting every position", ratio, 6, shown)]


def perplexity() -> list[Row]:
    """Perplexity from logits against torchmetrics."""
    from torchmetrics.text import Perplexity as Theirs

    logits = torch.randn(1, 1_024, 50_257)
    labels = torch.randint(0, 50_257, (1, 1_024))
    theirs, ours = Theirs(), Perplexity()
    seconds = fastest(
        ours=lambda: ours.update(logits, labels), theirs=lambda: theirs.update(logits, labels)
    )
    ratio = seconds["theirs"] / seconds["ours"]
    shown = f"{seconds['ours'] * 1e3:.0f} ms"
    return [Row("perplexity, 1,024×50,257", "torchmetrics", ratio, 2.3, shown)]


IMPORT = """
import time, pkgutil, torch, numpy
began = time.perf_counter()
import course_lib
for module in pkgutil.walk_packages(course_lib.__path__, "course_lib."):
    __import__(module.name)
print(time.perf_counter() - began)
"""


def imports() -> str:
    """What importing every module of course_lib adds to torch's own, in words."""
    run = [sys.executable, "-c", IMPORT]
    times = [float(subprocess.run(run, capture_output=True, check=True).stdout) for _ in range(7)]
    return (
        f"Importing every module of course_lib takes {statistics.median(times) * 1e3:.0f} ms "
        "beyond torch's and numpy's own (median of 7; the goal is 50)."
    )


def report() -> str:
    """The table as Markdown."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = [*masking(), *denoising(), *perplexity()]
    torch.set_num_threads(os.cpu_count() or 1)
    rows += [*masked_loss(), *losses()]
    draw(rows)
    lines = ["| work | against | ours | times better | goal |", "|---|---|---|---|---|"]
    for row in rows:
        mark = "" if row.ratio >= row.goal else " (missed)"
        lines.append(
            f"| {row.work} | {row.peer} | {row.ours} | {row.ratio:.2f}{mark} | {row.goal:.2g} |"
        )
    bounds = Path(__file__).with_name("bounds.md").read_text("utf-8").rstrip()  # from profiles
    picture = (
        f"![Times better than each peer, with the goals]({PICTURE.relative_to(ROOT / 'docs')})"
    )
    return "\n".join([*lines, "", imports(), "", picture, "", bounds])


def draw(rows: list[Row]) -> None:
    """Ratios as bars, goals as marks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.36 * len(rows) + 1), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    met = ["#0072B2" if row.ratio >= row.goal else "#D55E00" for row in rows]
    axes.barh(places, [row.ratio for row in rows], color=met)
    goals = [row.goal for row in rows]
    axes.scatter(goals, places, marker="|", s=160, color="black", zorder=3, label="goal")
    axes.set_yticks(places, [f"{row.work}: {row.peer}" for row in rows], fontsize=8)
    axes.set(xscale="log", xlabel="times better than the peer", ylim=(len(rows) - 0.5, -0.5))
    for place, row in zip(places, rows, strict=True):
        axes.text(row.ratio * 1.03, place, f"{row.ratio:.1f}", va="center", fontsize=8)
    axes.legend(loc="lower right")
    figure.savefig(PICTURE, dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    print(_measure_peak(*sys.argv[1:]))
