"""Three objectives side by side on a sentence of one's own: what is read, what is scored.

Shapes: T tokens of the sentence, Q queries and K keys of an attention mask.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from course_lib.objectives import Batch, causal_lm, masked_lm, span_corruption
from course_lib.teaching.live import Live, Page
from course_lib.teaching.show import attention_mask
from course_lib.teaching.strip import token_strip
from course_lib.text import BOS, EOS, MASK, PAD, SPECIALS, train_words

if TYPE_CHECKING:
    from ipywidgets import Widget

__all__ = ["playground", "side_by_side"]

SENTINELS = 32
TOKENS = range(3, 41)  # how many of them make a strip that can be read
MEAN_SPAN = 2.0  # T5 takes 3; a sentence has room for shorter ones
TITLES = (
    "Causal LM: predict the next token",
    "Masked LM: restore the chosen tokens",
    "Span corruption: write the missing spans",
)


def side_by_side(sentence: str, rate: float = 0.3, seed: int = 0) -> Page:
    """Token strips of the three objectives and, folded, their attention masks.

    `rate` is the share of tokens that the masked LM chooses and span corruption takes out.
    Raises ValueError for a sentence of fewer than 3 or more than 40 tokens, or a rate outside 0..1.

    >>> side_by_side("a b c d", rate=0.5).text.splitlines()[0]
    'Causal LM: predict the next token. inputs: [BOS] a b c; labels: a b c d; scored: ✓ ✓ ✓ ✓'
    """
    sentence = " ".join(sentence.split())
    tokenizer = train_words([sentence], sentinels=SENTINELS)
    ids = tokenizer.encode(sentence).ids
    if len(ids) not in TOKENS:
        raise ValueError(f"Give a sentence of 3 to 40 tokens: this one has {len(ids)}.")
    if not 0 < rate < 1:
        raise ValueError(f"rate is {rate}: give a share between 0 and 1.")

    def name(id: int) -> str:
        return str(tokenizer.id_to_token(id)).strip()

    html, text = [], []
    batches = _batches(torch.tensor([ids]), tokenizer.get_vocab_size(), rate, seed)
    for title, batch, tokens in zip(TITLES, batches, ([], ids, []), strict=True):
        decoder = [] if batch.decoder_inputs is None else batch.decoder_inputs[0].tolist()
        read = batch.inputs[0].tolist()
        strip = token_strip(read, batch.labels[0], name=name, tokens=tokens, decoder_inputs=decoder)
        names = [name(id) for id in (*read, *decoder)]
        mask_QK = batch.attention[0].expand(len(names), len(names))
        mask = attention_mask(mask_QK, names, names)
        html.append(
            f"<p><b>{title}</b></p>{strip._repr_html_()}"
            f"<details><summary>Who may read whom</summary>{mask._repr_html_()}</details>"
        )
        text.append(f"{title}. {strip.alt}")
    return Page("".join(html), "\n".join(text))


def playground(sentence: str, rate: float = 0.3, seed: int = 0) -> Live:
    """`side_by_side` with controls for the sentence, the rate and the random draw.

    >>> playground("a b c d").page.text == side_by_side("a b c d").text
    True
    """
    return Live(lambda: _controls(sentence, rate, seed), side_by_side(sentence, rate, seed))


def _batches(ids_BT: Tensor, vocab_size: int, rate: float, seed: int) -> tuple[Batch, Batch, Batch]:
    first_sentinel = vocab_size - 1
    special = [*range(len(SPECIALS)), *range(vocab_size - SENTINELS, vocab_size)]
    masked = masked_lm(
        ids_BT,
        vocab_size=vocab_size,
        mask_id=MASK,
        special_ids=special,
        rate=rate,
        select="exact",
        generator=torch.Generator().manual_seed(seed),
    )
    spans = span_corruption(
        ids_BT,
        first_sentinel=first_sentinel,
        eos_id=EOS,
        pad_id=PAD,
        density=rate,
        mean_span=MEAN_SPAN,
        num_sentinels=SENTINELS,
        generator=torch.Generator().manual_seed(seed),
    )
    return causal_lm(ids_BT, bos_id=BOS), masked, spans


def _controls(sentence: str, rate: float, seed: int) -> "Widget":
    from ipywidgets import HTML, FloatSlider, IntSlider, Text, VBox

    text = Text(value=sentence, description="sentence", continuous_update=False)
    text.layout.width = "90%"
    share = FloatSlider(value=rate, min=0.05, max=0.9, step=0.05, description="rate")
    number = IntSlider(value=seed, max=20, description="draw")
    strips = HTML()

    def draw(_: object = None) -> None:
        try:
            strips.value = side_by_side(text.value, share.value, number.value).html
        except ValueError as error:
            strips.value = f"<p>{error}</p>"

    for control in (text, share, number):
        control.observe(draw, "value")
    draw()
    return VBox([text, share, number, strips])
