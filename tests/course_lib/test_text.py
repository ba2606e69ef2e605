"""The corpora are what they say; tokenizers restore their text and account for every byte."""

import re
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from course_lib.text import (
    BOS,
    CAPITALS,
    EOS,
    MASK,
    PAD,
    SPECIALS,
    UNK,
    byte_lengths,
    fact_sentences,
    sample_windows,
    stdlib_prose,
    train_bpe,
    train_characters,
    train_words,
)

texts = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [*SPECIALS, "<extra_id_0>", " ", "\n", "low", "é", "日本", "🐌", "e\u0301", "."]
    )
).map("".join)
few = settings(max_examples=60, deadline=None)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@cache
def prose() -> str:
    return stdlib_prose()


@cache
def bpe() -> Tokenizer:
    return train_bpe([prose()[:20_000], "日本語 日本語 naïve 🐌"], 400, sentinels=3)


def trained(kind: str, text: str) -> Tokenizer:
    """A tokenizer that knows `text`."""
    if kind == "bpe":
        return bpe()
    return {"words": train_words, "characters": train_characters}[kind]([text], sentinels=3)


kinds = pytest.mark.parametrize("kind", ["characters", "words", "bpe"])

# --- tokenizers -----------------------------------------------------------------------------------


@kinds
@few
@given(text=texts)
def test_decoding_restores_every_text_and_its_bytes_are_all_counted(kind: str, text: str) -> None:
    tokenizer = trained(kind, text)
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert not set(ids) & {PAD, MASK, BOS, EOS, UNK}  # not even where the text says "[MASK]"
    assert byte_lengths(tokenizer)[ids].sum() == len(text.encode())


@kinds
def test_specials_come_first_and_sentinels_last_in_descending_order(kind: str) -> None:
    tokenizer = trained(kind, "one two three")
    V = tokenizer.get_vocab_size()
    assert [tokenizer.token_to_id(token) for token in SPECIALS] == [PAD, MASK, BOS, EOS, UNK]
    assert [PAD, MASK, BOS, EOS, UNK] == [0, 1, 2, 3, 4]
    assert [tokenizer.token_to_id(f"<extra_id_{i}>") for i in range(3)] == [V - 1, V - 2, V - 3]
    assert tokenizer.token_to_id("<extra_id_3>") is None
    assert None not in [tokenizer.id_to_token(id) for id in range(V)]


@kinds
def test_special_tokens_stand_for_no_bytes(kind: str) -> None:
    tokenizer = trained(kind, "one two three")
    lengths = byte_lengths(tokenizer)
    assert lengths.shape == (tokenizer.get_vocab_size(),)
    assert lengths.dtype == torch.int64
    assert lengths[:5].eq(0).all()
    assert lengths[-3:].eq(0).all()
    assert lengths[5:-3].gt(0).all()


@kinds
def test_a_batch_is_padded_to_a_rectangle(kind: str) -> None:
    long, short = trained(kind, "one two").encode_batch(["one two", "one"])
    assert len(long.ids) == len(short.ids)
    assert PAD not in long.ids
    assert short.ids[-1] == PAD
    assert short.attention_mask == [int(id != PAD) for id in short.ids]


@pytest.mark.parametrize(
    "train", [train_characters, train_words, lambda texts: train_bpe(texts, 500)]
)
def test_training_a_tokenizer_is_deterministic_and_silent(
    train: object, capfd: pytest.CaptureFixture[str]
) -> None:
    assert callable(train)
    first, second = (train([prose()[:20_000]]) for _ in range(2))
    assert first.to_str() == second.to_str()
    assert capfd.readouterr() == ("", "")


def test_bpe_has_the_size_asked_for_and_shortens_text() -> None:
    tokenizer = train_bpe([prose()], 600, sentinels=5)
    assert tokenizer.get_vocab_size() == 600
    assert len(tokenizer.encode(prose()).ids) < 0.6 * len(prose())


def test_bpe_without_room_for_its_alphabet_is_refused() -> None:
    assert train_bpe(["a"], 5 + 256 + 2, sentinels=2).get_vocab_size() == 263
    with pytest.raises(ValueError, match=r"vocab_size=262.*need 263"):
        train_bpe(["a"], 262, sentinels=2)


def test_what_a_tokenizer_has_not_seen_is_unknown() -> None:
    words, characters = train_words(["the cat"]), train_characters(["abc"])
    assert words.encode("the dog").tokens == ["the", "[UNK]"]
    assert characters.encode("aπc").tokens == ["a", "[UNK]", "c"]


def test_a_character_cut_into_tokens_still_has_all_its_bytes() -> None:
    tokenizer = train_bpe(["plain"], 261)  # bytes only
    ids = tokenizer.encode("🐌").ids
    assert len(ids) == 4
    assert byte_lengths(tokenizer)[ids].tolist() == [1, 1, 1, 1]


# --- corpora --------------------------------------------------------------------------------------


def test_prose_is_the_same_every_time_and_whatever_its_length() -> None:
    assert stdlib_prose() == prose()
    assert stdlib_prose(1_000) == prose()[:1_000]
    assert len(prose()) == 50_000


def test_prose_is_plain_sentences_each_once() -> None:
    lines = prose().split("\n")[:-1]
    assert len(set(lines)) == len(lines)
    assert all(re.fullmatch(r"[A-Z][ -~]+[.!?]", line) for line in lines)
    assert not set("_{}[]<>=\\|`*") & set(prose())
    letters = sum(c.isalpha() and c.islower() for c in prose())
    assert letters > 0.75 * len(prose())
    assert not re.search(r"  |>>>", prose())


def test_both_halves_of_the_prose_are_alike() -> None:
    halves = [Counter(half) for half in (prose()[:25_000], prose()[25_000:])]
    frequent = [c for c, n in Counter(prose()).items() if n > 1_000]
    assert all(0.8 < halves[0][c] / halves[1][c] < 1.25 for c in frequent)


def test_more_prose_than_there_is_is_refused() -> None:
    with pytest.raises(ValueError, match="n_chars=10000000"):
        stdlib_prose(10_000_000)


def test_facts_are_distinct_single_words() -> None:
    assert len(CAPITALS) == len(set(CAPITALS.values())) == 32
    assert all(re.fullmatch("[A-Z][a-z]+", word) for fact in CAPITALS.items() for word in fact)


def pairs(sentences: list[str]) -> list[tuple[str, str]]:
    found = [re.fullmatch(r"The capital of (\w+) is (\w+)\.", sentence) for sentence in sentences]
    return [(match[1], match[2]) for match in found if match]


def test_every_pass_tells_every_fact_once_in_a_new_order() -> None:
    told = pairs(fact_sentences(3, generator=rng()))
    passes = [told[i : i + 32] for i in (0, 32, 64)]
    assert all(dict(facts) == CAPITALS for facts in passes)
    assert passes[0] != passes[1] != passes[2]


def test_shuffled_facts_have_the_same_words_as_often_but_no_facts() -> None:
    n = 1_000
    told = pairs(fact_sentences(n, shuffled=True, generator=rng()))
    assert Counter(c for c, _ in told) == dict.fromkeys(CAPITALS, n)
    assert Counter(c for _, c in told) == dict.fromkeys(CAPITALS.values(), n)
    # the fixed points of a random permutation: 1 expected a pass, variance 1
    true = sum(CAPITALS[country] == capital for country, capital in told)
    assert abs(true - n) / n**0.5 < 5
    one_country = Counter(capital for country, capital in told if country == "France")
    chi_square = sum((count - n / 32) ** 2 / (n / 32) for count in one_country.values())
    assert len(one_country) == 32
    assert abs(chi_square - 31) / 62**0.5 < 5


@pytest.mark.parametrize("shuffled", [False, True])
def test_facts_follow_the_generator_and_leave_the_global_one_alone(shuffled: bool) -> None:
    before = torch.get_rng_state()
    one, same, other = (
        fact_sentences(2, shuffled=shuffled, generator=rng(seed)) for seed in (1, 1, 2)
    )
    assert torch.get_rng_state().equal(before)
    assert one == same != other


def test_all_fact_sentences_have_equally_many_words() -> None:
    sentences = fact_sentences(1, generator=rng())
    lengths = {len(encoding.ids) for encoding in train_words(sentences).encode_batch(sentences)}
    single = {len(train_words(sentences).encode(sentence).ids) for sentence in sentences}
    assert lengths == single == {7}


def test_windows_are_cut_whole_and_uniformly() -> None:
    n = 20_000
    windows = sample_windows(torch.arange(10) * 3, n, 4, generator=rng())
    assert windows.shape == (n, 4)
    assert windows.diff(dim=1).eq(3).all()
    count = (windows[:, 0] // 3).bincount(minlength=7)
    assert len(count) == 7  # also the last window
    z = (count - n / 7) / (n * 1 / 7 * 6 / 7) ** 0.5
    assert z.abs().max() < 5


def test_windows_follow_the_generator_and_leave_the_global_one_alone() -> None:
    before, ids = torch.get_rng_state(), torch.arange(1_000)
    one, same, other = (sample_windows(ids, 8, 4, generator=rng(seed)) for seed in (1, 1, 2))
    assert torch.get_rng_state().equal(before)
    assert one.equal(same)
    assert not one.equal(other)


def test_a_window_longer_than_the_text_is_refused() -> None:
    assert sample_windows(torch.arange(4), 2, 4).tolist() == [[0, 1, 2, 3]] * 2
    with pytest.raises(ValueError, match=r"length=5.*only 4 tokens"):
        sample_windows(torch.arange(4), 2, 5)


def test_importing_the_library_imports_nothing_heavy_beside_torch() -> None:
    script = """
import sys
import course_lib.model, course_lib.teaching.strip, course_lib.text
course_lib.text.stdlib_prose(100)
print({"tokenizers", "matplotlib", "ipywidgets", "IPython", "turtle", "smtplib"} & set(sys.modules))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
