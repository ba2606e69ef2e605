"""Text to train on without a download, and tokenizers trained on it.

Every tokenizer has one layout: [PAD] [MASK] [BOS] [EOS] [UNK] are ids 0 to 4, then come the
ordinary tokens, and T5's sentinels, if any, end the vocabulary in descending order: <extra_id_i>
is id V - 1 - i (Raffel et al. 2020, arXiv:1910.10683). Text never turns into a special token:
"[MASK]" in a text is six characters. Tokens keep their spaces, so decoding restores the text
(unknown tokens excepted), and `encode_batch` pads with [PAD].

Shapes: B rows, T tokens a row, N tokens of a whole text, V vocabulary.
"""

from __future__ import annotations

import ast
import functools
import random
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:  # the library is imported by the functions that train with it
    from tokenizers import Tokenizer

__all__ = [
    "BOS",
    "CAPITALS",
    "EOS",
    "MASK",
    "PAD",
    "SPECIALS",
    "UNK",
    "byte_lengths",
    "fact_sentences",
    "sample_windows",
    "stdlib_prose",
    "train_bpe",
    "train_characters",
    "train_words",
]

SPECIALS = ("[PAD]", "[MASK]", "[BOS]", "[EOS]", "[UNK]")
PAD, MASK, BOS, EOS, UNK = range(len(SPECIALS))

# 32 facts, so that a capital nobody knows costs ln 32 nats = 5 bits
_FACTS = """
    Austria Vienna, Belgium Brussels, Bulgaria Sofia, Canada Ottawa, Chile Santiago, Croatia Zagreb,
    Cuba Havana, Denmark Copenhagen, Egypt Cairo, Finland Helsinki, France Paris, Germany Berlin,
    Ghana Accra, Greece Athens, Hungary Budapest, Iraq Baghdad, Ireland Dublin, Italy Rome,
    Japan Tokyo, Jordan Amman, Kenya Nairobi, Nepal Kathmandu, Norway Oslo, Peru Lima,
    Poland Warsaw, Portugal Lisbon, Senegal Dakar, Spain Madrid, Sweden Stockholm, Thailand Bangkok,
    Uruguay Montevideo, Vietnam Hanoi
"""
CAPITALS: dict[str, str] = dict(fact.split() for fact in _FACTS.split(","))

# modules of the standard library that are documented in sentences
_MODULES = (
    "_pyio bdb bz2 calendar cmd code codecs configparser difflib fileinput ftplib gzip inspect "
    "locale lzma os pydoc queue sched smtplib socketserver statistics tarfile tempfile textwrap "
    "threading timeit traceback turtle weakref"
)
_SENTENCES = re.compile(r"[A-Z][A-Za-z0-9 ,.;:'\"()!?-]{50,}[.!?]")


def stdlib_prose(n_chars: int = 50_000) -> str:
    """English prose: paragraphs from the documentation strings of Python's standard library.

    One paragraph a line, each once, in a fixed random order; examples, tables and whatever has code
    in it are left out. One version of Python gives one text. Nothing is imported, only read.
    Raises ValueError if this Python has fewer than `n_chars` characters of it.

    >>> len(stdlib_prose(2_000))
    2000
    """
    text = _prose()
    if len(text) < n_chars:
        raise ValueError(f"n_chars={n_chars}: this Python documents itself in {len(text)}")
    return text[:n_chars]


@functools.cache
def _prose() -> str:
    paragraphs = list(dict.fromkeys(_paragraphs()))
    random.Random(0).shuffle(paragraphs)  # any part of the text is then a fair sample of it all
    return "\n".join(paragraphs)


def _paragraphs() -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    for path in (library / f"{module}.py" for module in _MODULES.split()):
        if not path.is_file():  # newer Pythons have split some modules up
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                    line = paragraph.replace("\n", " ")
                    if "  " not in line and _SENTENCES.fullmatch(line):  # indented: not prose
                        yield line


def fact_sentences(
    passes: int, *, shuffled: bool = False, generator: torch.Generator | None = None
) -> list[str]:
    """The table `CAPITALS` as sentences, in `passes` random orders: 32 sentences a pass.

    Only the last word says something about the country, so it is cheap to predict only for a model
    that has stored the table. The control: `shuffled` deals the capitals out anew in every pass.
    All words are exactly as frequent, but nothing is left to store: read sentence by sentence, a
    capital costs ln 32 nats (5 bits) or more on average, whatever the model.

    >>> min(fact_sentences(1, generator=torch.Generator()))
    'The capital of Austria is Vienna.'
    """
    countries, capitals = list(CAPITALS), list(CAPITALS.values())
    sentences = []
    for _ in range(passes):
        order = torch.randperm(len(countries), generator=generator).tolist()
        deal = torch.randperm(len(capitals), generator=generator).tolist() if shuffled else order
        sentences += [
            f"The capital of {countries[i]} is {capitals[j]}."
            for i, j in zip(order, deal, strict=True)
        ]
    return sentences


def sample_windows(
    ids_N: Tensor, batch: int, length: int, *, generator: torch.Generator | None = None
) -> Tensor:
    """Cut `batch` windows of `length` tokens out of a long text, uniformly: (N,) -> (B, T).

    Raises ValueError if the text is shorter than one window.

    >>> sample_windows(torch.arange(100), 32, 8, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([32, 8])
    """
    if len(ids_N) < length:
        raise ValueError(f"length={length}, but the text has only {len(ids_N)} tokens")
    windows_WT = ids_N.unfold(0, length, 1)
    starts_B = torch.randint(len(windows_WT), (batch,), generator=generator, device=ids_N.device)
    return windows_WT[starts_B]


def train_characters(texts: Iterable[str], *, sentinels: int = 0) -> Tokenizer:
    """A tokenizer with one token for each character of `texts`; all others are [UNK].

    >>> tokenizer = train_characters(["naïve"])
    >>> ids = tokenizer.encode("vain").ids
    >>> tokenizer.decode(ids), tokenizer.get_vocab_size()
    ('van', 10)
    """
    return _train_lookup(texts, r".|\n", sentinels)


def train_words(texts: Iterable[str], *, sentinels: int = 0) -> Tokenizer:
    """A tokenizer whose tokens are the words of `texts`, each with the space before it.

    Punctuation has tokens of its own. A word that isn't in `texts` is [UNK].

    >>> train_words(["The capital of Peru is Lima."]).encode("The capital is Lima.").tokens
    ['The', ' capital', ' is', ' Lima', '.']
    """
    return _train_lookup(texts, r" ?\w+| ?[^\w\s]+|\s", sentinels)


def train_bpe(texts: Iterable[str], vocab_size: int, *, sentinels: int = 0) -> Tokenizer:
    """A byte-level BPE tokenizer (Sennrich et al. 2016, arXiv:1508.07909; GPT-2's byte alphabet).

    Its alphabet is all 256 bytes, so it never needs [UNK]. `vocab_size` includes specials and
    sentinels, and is reached unless the texts run out of pairs to merge. Raises ValueError if it
    has no room for the alphabet.

    >>> tokenizer = train_bpe(["low lower lowest"] * 9, 300)
    >>> tokenizer.decode(tokenizer.encode("slow 🐌").ids)
    'slow 🐌'
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    least = len(SPECIALS) + len(alphabet) + sentinels
    if vocab_size < least:
        raise ValueError(f"vocab_size={vocab_size}: bytes and special tokens alone need {least}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - sentinels,
        special_tokens=list(SPECIALS),
        initial_alphabet=alphabet,
        show_progress=False,  # it would go to stderr
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _finish(tokenizer, sentinels)


def _train_lookup(texts: Iterable[str], pattern: str, sentinels: int) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.decoder = decoders.Fuse()  # tokens hold their spaces: just join them
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31,  # no limit
        special_tokens=list(SPECIALS),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _finish(tokenizer, sentinels)


def _finish(tokenizer: Tokenizer, sentinels: int) -> Tokenizer:
    tokenizer.add_special_tokens([f"<extra_id_{i}>" for i in reversed(range(sentinels))])
    tokenizer.encode_special_tokens = True  # "[MASK]" in a text stays text
    tokenizer.enable_padding(pad_id=PAD, pad_token=SPECIALS[PAD])
    return tokenizer


def byte_lengths(tokenizer: Tokenizer) -> Tensor:
    """How many bytes of UTF-8 each id stands for: (V,) int64, for losses in bits per byte.

    Special tokens, sentinels included, stand for 0. Over the ids of a text without [UNK] the
    lengths add up to len(text.encode()), however a character is cut into tokens.

    >>> tokenizer = train_characters(["é!"])
    >>> byte_lengths(tokenizer)[tokenizer.encode("é!").ids]
    tensor([2, 1])
    """
    from tokenizers import decoders

    byte_level = isinstance(tokenizer.decoder, decoders.ByteLevel)  # one character a byte
    special = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    lengths_V = torch.zeros(tokenizer.get_vocab_size(), dtype=torch.int64)
    for token, id in tokenizer.get_vocab().items():
        if id not in special:
            lengths_V[id] = len(token) if byte_level else len(token.encode())
    return lengths_V
