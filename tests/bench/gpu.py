"""course_lib on a GPU: tokens a second, and the chunked loss against its peers, time and memory.

Liger-Kernel and Apple's cut-cross-entropy are compared with where they are installed.
"""

import importlib
import sys
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812

from course_lib.corruption import bert_corrupt, span_corrupt, text_infill
from course_lib.losses import linear_cross_entropy

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
DEVICE = "cuda"
CALLS, ROUNDS = 20, 7
BATCH = 4_096  # rows of 512 or 568 tokens
ROWS, WIDTH, VOCAB = 8_192, 4_096, 128_256
MASKING = {"vocab_size": 30_522, "mask_id": 103, "at_least_one": False}
T5 = {"first_sentinel": 32_099, "eos_id": 1, "pad_id": 0}


def seconds(work: Callable[[], object]) -> float:
    """The least of some rounds of calls, measured by the device's clock."""
    work()
    times = []
    for _ in range(ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(CALLS):
            work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / CALLS)
    return min(times)


def corruption() -> list[str]:
    """Rows of the table: a billion tokens a second."""
    lines = ["| work | Gtok/s | goal |", "|---|---|---|"]
    ids = torch.randint(1_000, 30_000, (BATCH, 512), device=DEVICE)
    text = torch.randint(2, 32_000, (BATCH, 568), device=DEVICE)
    for name, goal, batch, work in (
        ("MLM masking", "20", ids, partial(bert_corrupt, ids, **MASKING)),
        (
            "MLM masking, exact count",
            "–",
            ids,
            partial(bert_corrupt, ids, select="exact", **MASKING),
        ),
        ("T5 span corruption", "5", text, partial(span_corrupt, text, **T5)),
        ("BART infilling", "–", ids, partial(text_infill, ids, mask_id=50_264, pad_id=1)),
    ):
        lines.append(f"| {name} | {batch.numel() / seconds(work) / 1e9:.2f} | {goal} |")
    return lines


def peers() -> dict[str, Loss]:
    """The losses to compare, by name."""
    found: dict[str, Loss] = {"whole logits": lambda h, w, y: F.cross_entropy((h @ w.T).float(), y)}
    for name, module, attribute in (
        ("Liger", "liger_kernel.transformers.functional", "liger_fused_linear_cross_entropy"),
        ("cut cross-entropy", "cut_cross_entropy", "linear_cross_entropy"),
    ):
        try:
            loss = getattr(importlib.import_module(module), attribute)
        except ImportError:
            continue
        found[name] = loss
    return found


def step(loss: Loss, hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> None:
    """A loss and both gradients."""
    hidden, weight = hidden.detach().requires_grad_(), weight.detach().requires_grad_()
    loss(hidden, weight, labels).backward()


def losses() -> list[str]:
    """Rows of the table: time and peak memory beside the inputs."""
    hidden = torch.randn(ROWS, WIDTH, device=DEVICE, dtype=torch.bfloat16)
    weight = torch.randn(VOCAB, WIDTH, device=DEVICE, dtype=torch.bfloat16) * 0.02
    labels = torch.randint(0, VOCAB, (ROWS,), device=DEVICE)
    lines = ["| loss | ms | peak memory, MiB |", "|---|---|---|"]
    ways: dict[str, Loss] = {}
    for rows in (256, 1_024, 4_096):
        ways[f"ours, {rows:,} rows a chunk"] = partial(linear_cross_entropy, chunk_rows=rows)
    for name, loss in (ways | peers()).items():
        work = partial(step, loss, hidden, weight, labels)
        took = seconds(work)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        need = torch.cuda.max_memory_allocated() - before
        lines.append(f"| {name} | {took * 1e3:.2f} | {need / 2**20:,.0f} |")
    return lines


def report() -> str:
    """The tables as Markdown."""
    if not torch.cuda.is_available():
        sys.exit("The benchmark on a GPU needs a CUDA device, and there is none here.")
    size = f"{ROWS:,} rows of {WIDTH:,}, V = {VOCAB:,}, bfloat16"
    return "\n".join(
        [f"On {torch.cuda.get_device_name()}.", "", *corruption(), "", f"{size}:", "", *losses()]
    )
