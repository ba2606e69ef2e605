"""A tiny transformer whose attention mask is injected, with a short loop to train it.

Shapes: B batch, L positions read (S inputs, or S + T with decoder inputs), T positions predicted,
D width of the model, H heads, K width of a head, V vocabulary.
"""

import sys
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from tqdm import tqdm

from course_lib.losses import cross_entropy
from course_lib.objectives import Batch

__all__ = ["TinyTransformer", "generate", "train"]


class Block(nn.Module):
    """Attention, then an MLP; each reads a normalised copy and adds to the residual stream.

    Pre-norm: Xiong et al. 2020, arXiv:2002.04745.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm_attention = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm_mlp = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, 4 * d_model)
        self.down = nn.Linear(4 * d_model, d_model)

    def forward(self, x_BLD: Tensor, mask_BHLL: Tensor | None) -> Tensor:
        """One layer of the residual stream: (B, L, D) -> (B, L, D)."""
        qkv = self.qkv(self.norm_attention(x_BLD)).unflatten(-1, (3, self.n_heads, -1))
        q_BHLK, k_BHLK, v_BHLK = qkv.permute(2, 0, 3, 1, 4)
        heads_BHLK = nn.functional.scaled_dot_product_attention(
            q_BHLK, k_BHLK, v_BHLK, attn_mask=mask_BHLL
        )
        x_BLD = x_BLD + self.out(heads_BHLK.transpose(1, 2).flatten(2))
        hidden = nn.functional.gelu(self.up(self.norm_mlp(x_BLD)))
        stream_BLD: Tensor = x_BLD + self.down(hidden)
        return stream_BLD


class TinyTransformer(nn.Module):
    """A transformer that reads exactly what its attention mask allows, nothing being built in.

    The mask alone makes it causal, bidirectional or an encoder–decoder. In the last case one stack
    of layers reads [inputs, decoder_inputs]: positions restart and a learned segment embedding
    tells the parts apart (shared parameters: Raffel et al. 2020, arXiv:1910.10683, section 3.2).

    There is no dropout: equal inputs give equal logits, in training too. Weights are drawn from
    `generator`, on its device. The untrained loss is within a few percent of ln V. For that, the
    output layer has weights of its own: tied to the embedding, it would predict its own input.

    >>> model = TinyTransformer(11, generator=torch.Generator().manual_seed(0))
    >>> ids_BT = torch.arange(8).view(2, 4)
    >>> model(ids_BT, attention=torch.ones(4, 4, dtype=torch.bool).tril()).shape
    torch.Size([2, 4, 11])
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        d_model: int = 64,
        n_layers: int = 2,
        n_heads: int = 4,
        max_length: int = 256,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model} can't be shared equally by n_heads={n_heads}")
        self.vocab_size, self.max_length = vocab_size, max_length
        with torch.device("meta"):  # torch's own initialisation would move the global RNG
            self.tokens = nn.Embedding(vocab_size, d_model)
            self.positions = nn.Embedding(max_length, d_model)
            self.segments = nn.Embedding(2, d_model)
            self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
            self.norm = nn.LayerNorm(d_model)
            self.head = nn.Linear(d_model, vocab_size)
        self.to_empty(device="cpu" if generator is None else generator.device)
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator | None) -> None:
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
            elif isinstance(module, nn.Linear):
                module.weight.normal_(0, module.in_features**-0.5, generator=generator)
                module.bias.zero_()
            elif isinstance(module, nn.Embedding):
                module.weight.normal_(0, 0.5, generator=generator)
        for name, weight in self.named_parameters():
            if name.endswith(("out.weight", "down.weight")):
                weight.mul_((2 * len(self.blocks)) ** -0.5)  # same scale at any depth
        self.head.weight.mul_(0.1)  # logits near 0, so a loss near ln V

    def forward(
        self, inputs: Tensor, attention: Tensor | None = None, decoder_inputs: Tensor | None = None
    ) -> Tensor:
        """Logits (B, T, V): one row for each decoder input if there are any, else for each input.

        inputs: ids (B, S). attention: bool, broadcastable to (B, L, L), True where a query (row)
        may read a key (column); None lets everything be read. decoder_inputs: ids (B, T). A query
        that may read nothing gets zeros from the attention, not NaN.

        Raises TypeError for a mask that isn't bool (an additive mask can be outvoted by large
        scores), ValueError for too many positions, IndexError for an id outside 0..V-1 (on the
        CPU; a GPU reports that in its own way).
        """
        parts = [inputs] if decoder_inputs is None else [inputs, decoder_inputs]
        x_BLD = torch.cat([self._embed(ids, segment) for segment, ids in enumerate(parts)], dim=1)
        mask_BHLL = None
        if attention is not None:
            if attention.dtype != torch.bool:
                raise TypeError(
                    f"attention must be bool, True where a query may read a key; "
                    f"got {attention.dtype}"
                )
            B, L, _ = x_BLD.shape
            mask_BHLL = attention.expand(B, L, L).unsqueeze(1)
        for block in self.blocks:
            x_BLD = block(x_BLD, mask_BHLL)
        first = x_BLD.shape[1] - parts[-1].shape[1]
        logits_BTV: Tensor = self.head(self.norm(x_BLD[:, first:]))
        return logits_BTV

    def _embed(self, ids_BL: Tensor, segment: int) -> Tensor:
        length = ids_BL.shape[1]
        if length > self.max_length:
            raise ValueError(
                f"{length} positions, but the model was built for max_length={self.max_length}"
            )
        if ids_BL.device.type == "cpu":  # elsewhere, looking at the ids would make the host wait
            outside = ids_BL[(ids_BL < 0) | (ids_BL >= self.vocab_size)]
            if outside.numel():
                raise IndexError(
                    f"id {outside[0]} is outside the vocabulary 0..{self.vocab_size - 1} "
                    "(the ignore index -100 belongs in labels only)"
                )
        embedded: Tensor = self.tokens(ids_BL)
        return embedded + self.positions.weight[:length] + self.segments.weight[segment]


def train(
    model: TinyTransformer,
    batches: Iterable[Batch],
    *,
    steps: int,
    lr: float = 3e-3,
    progress: bool = True,
) -> list[float]:
    """Train `model` in place for `steps` batches; return the loss of each before its step, in nats.

    AdamW with a warm-up over the first tenth of the steps and gradients clipped to norm 1. Draws
    nothing at random: equal weights and equal batches give equal losses. The bar goes to stdout,
    for nbgrader gives no points to a cell that writes to stderr. Batches move to the model's
    device; the host waits for it once, at the end.

    Raises ValueError if `steps` < 1 or the batches run out.

    >>> ids_BT = torch.arange(8).view(2, 4)
    >>> copying = Batch(inputs=ids_BT, labels=ids_BT, attention=torch.ones(4, 4, dtype=torch.bool))
    >>> model = TinyTransformer(8, generator=torch.Generator().manual_seed(0))
    >>> losses = train(model, [copying] * 5, steps=5, progress=False)
    >>> len(losses), losses[-1] < losses[0]
    (5, True)
    """
    if steps < 1:
        raise ValueError(f"steps={steps}: at least one is needed")
    device = model.head.weight.device
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
    losses: list[Tensor] = []
    bar = tqdm(range(steps), desc="training", file=sys.stdout, disable=not progress)
    for step, (inputs, labels, attention, decoder_inputs) in zip(bar, batches, strict=False):
        logits = model(
            *(x if x is None else x.to(device) for x in (inputs, attention, decoder_inputs))
        )
        loss = cross_entropy(logits, labels.to(device))
        optimizer.param_groups[0]["lr"] = lr * min(1.0, (step + 1) / (steps / 10))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    if len(losses) < steps:
        raise ValueError(
            f"the batches ended after {len(losses)} of {steps} steps; "
            "itertools.cycle(batches) never ends"
        )
    return torch.stack(losses).tolist()


@torch.no_grad()
def generate(
    model: TinyTransformer,
    prompt_BT: Tensor,
    n: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Sample `n` tokens after each prompt, left to right: ids (B, T) -> (B, T + n).

    Every token is drawn from softmax(logits / temperature) under a causal mask; a temperature
    below 1 sharpens the distribution. The model reads at most the last `max_length` tokens.
    Raises ValueError for an empty prompt or a temperature that isn't positive.

    >>> model = TinyTransformer(8, generator=torch.Generator().manual_seed(0))
    >>> generate(model, torch.tensor([[1, 2]]), 3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([1, 5])
    """
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} must be positive; 0.01 is almost greedy")
    if prompt_BT.shape[1] == 0:
        raise ValueError("the prompt is empty: give it one token at least, such as [BOS]")
    ids_BT = prompt_BT
    for _ in range(n):  # each token is read before the next one is drawn
        window_BL = ids_BT[:, -model.max_length :]
        L = window_BL.shape[1]
        causal_LL = torch.ones(L, L, dtype=torch.bool, device=window_BL.device).tril()
        logits_BV = model(window_BL, causal_LL)[:, -1].float()
        next_B1 = (logits_BV / temperature).softmax(-1).multinomial(1, generator=generator)
        ids_BT = torch.cat([ids_BT, next_B1], dim=1)
    return ids_BT
