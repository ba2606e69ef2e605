# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
#   language_info: {name: python}
# ---

# %% [markdown]
# # Level 3 · Analysis
#
# You can compute a loss and a perplexity. Now ask what they say, when two of them may be compared,
# and what becomes of a language model whose attention mask is missing.
#
# | question | what you do | points |
# |---|---|---|
# | **L3.1** what e to the loss means | convert, predict, read a curve | 5 |
# | **L3.2** is A better than B? | measure a gap; find out when there is none to measure | 5 |
# | **L3.3** without the causal mask | predict, train twice, find the cause, write the test that finds it | 12 |
#
# About 75 minutes. Replace each `...` with your answer and run the cell below it. You may try as often
# as you like; after a try, `hint("L3.1")` in a new cell opens a hint. When your work is graded, your
# functions are also called with inputs that you have not seen.

# %% locked="L3_setup"
import math
import textwrap

import torch

from course_lib.model import TinyTransformer, generate, train
from course_lib.objectives import causal_lm
from course_lib.perplexity import Perplexity
from course_lib.teaching.check import hint, predict
from course_lib.teaching.live import Live, Page
from course_lib.teaching.show import loss_per_position, perplexity_curve, perplexity_slider
from course_lib.teaching.strip import TokenStrip
from course_lib.text import sample_windows, stdlib_prose, train_characters

torch.set_num_threads(1)  # models this small are slower on several

# %% [markdown]
# First five cards from what came before: answer each in your head, then turn it over. The primer has it
# all in [Causal language modelling](../primer/primer.ipynb#Causal-language-modelling) and
# [Perplexity](../primer/primer.ipynb#Perplexity).

# %% locked="L3_cards"
from course_lib.teaching.cards import cards

cards("level3")

# %% [markdown]
# ## L3.1 What e to the loss means
#
# One report says: loss 1.6094 nats. Another says: 2.5 bits. A third gives a perplexity. Write the
# conversions, so that you can read them all.
#
# - `ppl_from_nats(nats)` and `ppl_from_bits(bits)` return the perplexity of an average loss in that unit;
# - `nats_from_ppl(ppl)` goes back, to nats;
# - `ppl_of_report` is the perplexity of the first report, a number.
#
# Two corners. A loss can be so large that its perplexity fits no float, though the loss itself is an
# ordinary number: return `math.inf` then, for a report must not stop half-way. And nothing has a
# perplexity below 1: for such a `ppl` raise a `ValueError` that says so.

# %% answer="L3_1_convert"
def ppl_from_nats(nats):
    """Perplexity of an average loss in nats."""
    ### BEGIN SOLUTION
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
    ### END SOLUTION


def ppl_from_bits(bits):
    """Perplexity of an average loss in bits."""
    ### BEGIN SOLUTION
    return ppl_from_nats(bits * math.log(2))
    ### END SOLUTION


def nats_from_ppl(ppl):
    """Average loss in nats of a perplexity."""
    ### BEGIN SOLUTION
    if ppl < 1:
        raise ValueError(f"perplexity {ppl} is below 1, and 1 is already perfect")
    return math.log(ppl)
    ### END SOLUTION


ppl_of_report = (  # of the loss 1.6094, in nats
    ### BEGIN SOLUTION
    ppl_from_nats(1.6094)
    ### END SOLUTION
)

# %% test="L3_1_convert" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import exp, log, log10
from random import SystemRandom

draw = SystemRandom()


def nats_lures(nats):
    return {
        "M6: That is 2 to the power of a loss in nats. A loss in nats goes with e, one in bits with 2.":
            2**nats,
        "That is 10 to the power of the loss. A loss in nats goes with e.": 10**nats,
        "That is the loss. Perplexity is e to its power.": nats,
        "That is below 1: e to *minus* the loss, a probability. Leave the minus out.": exp(-nats),
        "That is the loss in bits. Perplexity has no unit; raise the base to the loss.": nats / log(2),
        "That is a logarithm of the loss. The loss already is one; undo it.": log(nats),
    }


def bits_lures(bits):
    return {
        "M6: That is e to the power of a loss in bits. One bit is ln 2 nats, so bits go with 2.":
            exp(bits),
        "M6: You converted the wrong way round: one bit is *less* than one nat, ln 2 of it.":
            exp(bits / log(2)),
        "That is the loss. Perplexity is 2 to its power.": bits,
        "That is the loss in nats. Now raise e to it.": bits * log(2),
        "That is below 1: 2 to *minus* the loss, a probability. Leave the minus out.": 2**-bits,
    }


diagnose(ppl_of_report, right=exp(1.6094), public="L3.1 perplexity", wrong=nats_lures(1.6094))
diagnose(ppl_from_nats(0.7), right=exp(0.7), public="L3.1 ppl_from_nats", wrong=nats_lures(0.7))
diagnose(ppl_from_bits(3.0), right=8, public="L3.1 ppl_from_bits", wrong=bits_lures(3.0))
losses = [draw.uniform(0.05, 12) for _ in range(12)]
inputs = [(loss,) for loss in losses]
for loss, ppl in zip(losses, each(ppl_from_nats, inputs)):
    diagnose(ppl, right=exp(loss), rel=1e-5, wrong=nats_lures(loss), what="ppl_from_nats")
for loss, ppl in zip(losses, each(ppl_from_bits, inputs)):
    diagnose(ppl, right=2**loss, rel=1e-5, wrong=bits_lures(loss), what="ppl_from_bits")
### END HIDDEN TESTS
check("L3.1 perplexity", ppl_of_report)
check("L3.1 ppl_from_nats", ppl_from_nats, 0.7)
check("L3.1 ppl_from_bits", ppl_from_bits, 3.0)

# %% test="L3_1_convert__back" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each, raises
from course_lib.teaching.plain import plain
from math import exp, inf, log, log10
from random import SystemRandom

draw = SystemRandom()


def lures(ppl):
    return {
        "M6: That is the loss in bits, from log base 2. `nats_from_ppl` returns nats.": log(ppl, 2),
        "That is from log base 10. Nats come from the natural logarithm.": log10(ppl),
        "The sign is wrong: a loss is never negative.": -log(ppl),
        "That goes the other way, from a loss to a perplexity. Take the logarithm.": exp(ppl),
        "That is the perplexity itself. Take its logarithm.": ppl,
    }


diagnose(nats_from_ppl(12.0), right=log(12), public="L3.1 nats_from_ppl", wrong=lures(12.0))
ppls = [draw.uniform(1.5, 600) for _ in range(12)]
for ppl, nats in zip(ppls, each(nats_from_ppl, [(ppl,) for ppl in ppls])):
    diagnose(nats, right=log(ppl), rel=1e-5, wrong=lures(ppl), what="nats_from_ppl")
diagnose(nats_from_ppl(1.0), right=0.0, what="nats_from_ppl of 1, the perplexity of a perfect model")

OVERFLOW = (
    "A loss of a thousand nats or more is an ordinary number, but its perplexity fits no float: "
    "catch the OverflowError and return math.inf."
)
try:
    huge = plain([ppl_from_nats(1000.0), ppl_from_bits(2000.0)])
except OverflowError:
    huge = []
demand(huge == [inf, inf], OVERFLOW)
BELOW_ONE = "Perplexity 1 is perfect, so 0.5 must be a mistake: raise a ValueError that says so."
with raises(ValueError, BELOW_ONE):
    nats_from_ppl(0.5)
### END HIDDEN TESTS
check("L3.1 nats_from_ppl", nats_from_ppl, 12.0)

# %% [markdown]
# ### An experiment: along the curve
#
# The loss rises from 1.04 nats to 2.5 nats, to somewhat less than two and a half times as much.
# **Predict**, without computing: by which factor does the perplexity rise? Any number earns the point;
# what counts is that you commit to one.

# %% answer="L3_1_prediction"
predicted_factor = (
    ### BEGIN SOLUTION
    2.4
    ### END SOLUTION
)

# %% locked="L3_1_experiment"
def factor():
    return round(ppl_from_nats(2.5) / ppl_from_nats(1.04), 2)


predict("L3.1", predicted_factor, factor)
print("The curve bends upward: the further right, the more perplexity a step in loss")
print("adds. As a factor, it is the same step everywhere. The dots are losses of the")
print("course.")
curve = perplexity_curve()
Live(perplexity_slider, Page(curve._repr_html_(), curve.alt))  # a slider, if it can

# %% test="L3_1_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

demand(kind(predicted_factor) == "a number",
       "L3.1 prediction: write a number, any number, first.")
print("✓ L3.1 prediction: noted")

# %% [markdown]
# Drag the slider, or read the figure: start somewhere, note the perplexity, move right until it has
# doubled. Do it again from another place. How many **nats** does it take to double a perplexity? (The
# slider gives you a first guess. Then find the exact number.)
#
# And what is it that doubles? A colleague says “this model has perplexity 5” and explains it to you.
# Which explanation is right? Answer with a letter.
#
# - **a** On average it needs five guesses until it hits the next token.
# - **b** It spends five bits on a token.
# - **c** It is as surprised, on average, as somebody who picks evenly among five tokens.
# - **d** It gets one token in five right.

# %% answer="L3_1_reading"
nats_to_double = (
    ### BEGIN SOLUTION
    math.log(2)
    ### END SOLUTION
)
reading = (
    ### BEGIN SOLUTION
    "c"
    ### END SOLUTION
)

# %% test="L3_1_reading" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import exp, log, log10

diagnose(nats_to_double, right=log(2), public="L3.1 doubling", wrong={
    "M6: One *bit* doubles it. How many nats is that?": 1,
    "That many nats multiply the perplexity by e², more than 7. Try a smaller step.": 2,
    "That is from log base 10. A loss in nats goes with the natural logarithm.": log10(2),
    "That is how many bits there are in a nat. The question asks the other way round.": 1 / log(2),
    "That halves it: the loss must rise.": -log(2),
})
diagnose(reading, right="c", public="L3.1 reading", wrong={
    "Trying five equally likely tokens one after the other takes 3 tries on average, not 5. Perplexity "
    "counts choices, not tries.": "a",
    "M6: Five *bits* would be 32 choices. Compute ppl_from_bits(5).": "b",
    "Let a model give the true token 0.2 every time, and a wrong one 0.3: its perplexity is 5, and "
    "its top choice is never right. Accuracy is another question.": "d",
})
### END HIDDEN TESTS
check("L3.1 doubling", nats_to_double)
check("L3.1 reading", reading)

# %% [markdown]
# ### In your own words
#
# In one sentence: why is $e^{L}$ the right way to make a loss of $L$ nats readable?

# %% [markdown] written="L3_1_words" points=1
# ### BEGIN SOLUTION
# The loss is an average of logarithms, so e to its power undoes the logarithm and gives back a plain
# count: the number of equally likely tokens whose choice would be exactly as surprising, since an even
# choice among k tokens costs ln k nats.
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# One point for a sentence with both parts:
#
# 1. it undoes the logarithm: the loss averages natural logarithms, hence base e;
# 2. what comes out is a number of equally likely choices (an effective branching factor): an even
#    choice among k tokens has loss ln k and perplexity k.
#
# “It makes the number larger” or “it is in tokens” alone earns nothing. An answer that calls it a number
# of tries or an accuracy gets no point and a comment that points to the question above.
# ### END MARK SCHEME

# %% [markdown]
# ## L3.2 Is A better than B?
#
# Two language models were evaluated on the same text, with the same tokenizer and the same context
# length. A has perplexity 10, B has perplexity 40. By how much does A beat B: how many nats of loss
# a token, and how many bits?

# %% answer="L3_2_gap"
gap_nats = (
    ### BEGIN SOLUTION
    nats_from_ppl(40) - nats_from_ppl(10)
    ### END SOLUTION
)
gap_bits = (
    ### BEGIN SOLUTION
    gap_nats / math.log(2)
    ### END SOLUTION
)

# %% test="L3_2_gap" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import log, log10

diagnose(gap_nats, right=log(4), public="L3.2 gap in nats", wrong={
    "That is the difference of the perplexities. Nats are differences of losses: turn each into a loss "
    "first.": 30,
    "That is the ratio of the perplexities, which has no unit. Its logarithm is a difference of losses.":
        4,
    "M6: That is in bits, from log base 2. Nats come from the natural logarithm.": 2,
    "That is from log base 10. Nats come from the natural logarithm.": log10(4),
    "The size is right, the sign is not: A *beats* B, by a positive amount.": -log(4),
    "You took the logarithm of the difference. Take the difference of the logarithms.": log(30),
    "That is the ratio of the two losses. The question asks for their difference.": log(40) / log(10),
})
diagnose(gap_bits, right=2, public="L3.2 gap in bits", wrong={
    "M6: That is in nats. How many times does ln 2 go into it?": log(4),
    "M6: You multiplied by ln 2. A bit is less than a nat, so there are more of them.": log(4) * log(2),
    "That is the ratio of the perplexities. How often must you double to get there?": 4,
    "The size is right, the sign is not: A *beats* B, by a positive amount.": -2,
    "That is the difference of the perplexities. Bits are differences of losses.": 30,
})
### END HIDDEN TESTS
check("L3.2 gap in nats", gap_nats)
check("L3.2 gap in bits", gap_bits)

# %% [markdown]
# ### An experiment: one model, two tokenizers
#
# How much of a perplexity belongs to the model, and how much to its tokens? The next cell cuts English
# prose into characters and counts, in a first part of it, which character follows which. Those counts
# are model C. On a second part that it has not counted, C gets this perplexity.

# %% locked="L3_2_characters" tags=["nbval-ignore-output"]
text = stdlib_prose(40_000)
tokenizer = train_characters([text])
vocab_size = tokenizer.get_vocab_size()
train_ids, test_ids = torch.tensor(tokenizer.encode(text).ids).split([36_000, 4_000])

counts = torch.ones(vocab_size, vocab_size, dtype=torch.float64)  # one extra: no ln 0
counts.index_put_((train_ids[:-1], train_ids[1:]), counts.new_ones(()), accumulate=True)
probs = counts / counts.sum(1, keepdim=True)
surprises = -probs[test_ids[:-2], test_ids[1:-1]].log()  # an even number of characters

by_character = Perplexity()
by_character.add(surprises.sum(), tokens=len(surprises), n_bytes=len(surprises))
print(f"C, asked character by character: perplexity {by_character.perplexity:.1f}")

# %% [markdown]
# D is the same model, asked differently: its tokens are *pairs* of characters. To the pair `th` after
# an `e` it gives exactly the probability that C gives to `t` after `e`, times that of `h` after `t`.
# So both give the whole text the same probability, and neither can write a better text than the other.
# **Predict:** what perplexity does D get on the same text?

# %% answer="L3_2_prediction"
predicted_ppl_pairs = (
    ### BEGIN SOLUTION
    14
    ### END SOLUTION
)

# %% locked="L3_2_experiment" tags=["nbval-ignore-output"]
def pair_by_pair():
    by_pair.add(surprises.sum(), tokens=len(surprises) // 2, n_bytes=len(surprises))
    return round(by_pair.perplexity, 1)


by_pair = Perplexity()
predict("L3.2", predicted_ppl_pairs, pair_by_pair)
print("                 tokens   nats a token   perplexity   bits per byte")
for name, result in (("C, characters", by_character), ("D, pairs", by_pair)):
    print(f"{name:15} {result.tokens:7,} {result.nats:14.2f}",
          f"{result.perplexity:12.1f} {result.bits_per_byte:15.3f}")
print("The whole text costs the same nats; D spreads them over half as many tokens.")
print("Twice the nats a token is the perplexity squared, though both are one model.")

# %% test="L3_2_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

demand(kind(predicted_ppl_pairs) == "a number",
       "L3.2 prediction: write a number, any number, first.")
print("✓ L3.2 prediction: noted")

# %% [markdown]
# The last column is the same for both. Write it: `bits_per_byte(token_nats, text)` returns the bits that a
# model spends on a text, for each byte of that text. `token_nats` holds the surprise of every token, in
# nats; `text` is what the tokens stand for. Bytes are those of UTF-8, `text.encode()`: an `é` has two
# and a `🐌` four, however a tokenizer cuts.

# %% answer="L3_2_bpb"
def bits_per_byte(token_nats, text):
    """Bits that a model spends on a text, per byte of its UTF-8."""
    ### BEGIN SOLUTION
    return sum(token_nats) / math.log(2) / len(text.encode())
    ### END SOLUTION

# %% test="L3_2_bpb" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import exp, fsum, log
from random import SystemRandom

draw = SystemRandom()


def lures(nats, sentence):
    total, n_bytes = fsum(nats), len(sentence.encode())
    return {
        "You divided by the number of characters. An é is one character and two bytes: use "
        "text.encode().": total / log(2) / len(sentence),
        "M6: You left the nats as they are. Divide by ln 2 to get bits.": total / n_bytes,
        "M6: You multiplied by ln 2. A bit is less than a nat, so there are more of them.":
            total * log(2) / n_bytes,
        "M7: You divided by the number of tokens. That number is the tokenizer's choice; the bytes are "
        "the text's.": total / log(2) / len(nats),
        "You averaged over the tokens and divided by the bytes as well. Add the tokens' surprises up.":
            total / len(nats) / log(2) / n_bytes,
        "Those are all the bits of the text. Divide by its bytes.": total / log(2),
        "That is a perplexity. Stay with the bits: no exponent is needed.": exp(total / n_bytes),
    }


example = [3.0, 0.5, 4.0], "naïve 🐌"
diagnose(bits_per_byte(*example), right=7.5 / log(2) / 11, wrong=lures(*example),
         public="L3.2 bits_per_byte")
cases = []
for _ in range(12):
    words = draw.choices(["é", "naïve", "🐌", "snail", "日本", "Straße"], k=draw.randint(2, 8))
    nats = [draw.uniform(0.1, 6) for _ in range(draw.randint(2, 9))]
    cases.append((nats, " ".join([*words, "ü"])))
for (nats, sentence), bpb in zip(cases, each(bits_per_byte, cases)):
    right = fsum(nats) / log(2) / len(sentence.encode())
    diagnose(bpb, right=right, rel=1e-5, wrong=lures(nats, sentence),
             what="bits_per_byte on other texts")
### END HIDDEN TESTS
check("L3.2 bits_per_byte", bits_per_byte, [3.0, 0.5, 4.0], "naïve 🐌")

# %% [markdown]
# ### May they be compared?
#
# Five reports say that A has perplexity 10 and B has perplexity 40. Which model predicts text better?
# Answer each with `"A"`, `"B"`, or `"?"` for *cannot be said yet*. Whatever a report does not mention
# is the same for both.
#
# 1. Same text, same tokenizer, same context length.
# 2. B's tokenizer has a vocabulary ten times as large as A's.
# 3. A was measured on nursery rhymes, B on contracts.
# 4. A always had 2,000 tokens before the one it predicts, B had 100.
# 5. The text has 1,000,000 bytes. A cuts it into 1,000,000 tokens, B into 200,000; both predict each
#    token from the whole text before it.

# %% answer="L3_2_verdicts"
verdict_1 = (
    ### BEGIN SOLUTION
    "A"
    ### END SOLUTION
)
verdict_2 = (
    ### BEGIN SOLUTION
    "?"
    ### END SOLUTION
)
verdict_3 = (
    ### BEGIN SOLUTION
    "?"
    ### END SOLUTION
)
verdict_4 = (
    ### BEGIN SOLUTION
    "?"
    ### END SOLUTION
)
verdict_5 = (
    ### BEGIN SOLUTION
    "B"
    ### END SOLUTION
)

# %% test="L3_2_verdicts" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

LOWER = "A lower perplexity is a lower average surprise: the *lower* number is the better one."
OTHER_TOKENS = (
    "M7: Perplexity counts choices for each token, and the tokens differ. C and D above were one model "
    "with two perplexities. What else would you need to know?"
)
OTHER_TEXT = (
    "The texts differ. Some text is easier than other text for every model; the numbers mix the "
    "models with their texts. Measure both on one text."
)
OTHER_CONTEXT = (
    "More context makes every model's task easier, so the numbers mix the models with their context. "
    "Measure both with the same."
)
diagnose(verdict_1, right="A", public="L3.2 verdict 1", wrong={
    LOWER: "B",
    "Everything that matters is the same here, so the two losses do compare.": "?",
})
diagnose(verdict_2, right="?", public="L3.2 verdict 2", wrong={
    OTHER_TOKENS: "A",
    "Large tokens may well excuse a large perplexity, but by how much? Nothing here says it.": "B",
})
diagnose(verdict_3, right="?", public="L3.2 verdict 3", wrong={
    OTHER_TEXT: "A",
    "Contracts may well be harder, but by how much? Nothing here says it.": "B",
})
diagnose(verdict_4, right="?", public="L3.2 verdict 4", wrong={
    OTHER_CONTEXT: "A",
    "Little context may well excuse a large perplexity, but by how much? Nothing here says it.": "B",
})
diagnose(verdict_5, right="B", public="L3.2 verdict 5", wrong={
    "M7: That is the lower perplexity of a *token*, and the tokens differ. Work out the bits that each "
    "spends on a byte of the text.": "A",
    "Here you know how many tokens each perplexity stands for, and the bytes. Work out bits per byte.":
        "?",
})
### END HIDDEN TESTS
check("L3.2 verdict 1", verdict_1)
check("L3.2 verdict 2", verdict_2)
check("L3.2 verdict 3", verdict_3)
check("L3.2 verdict 4", verdict_4)
check("L3.2 verdict 5", verdict_5)

# %% [markdown]
# ### In your own words
#
# Back to A with perplexity 10 and B with 40. In two or three sentences: which one would you deploy, why
# does the number say so, and what would you ask before you believe it?

# %% [markdown] written="L3_2_words" points=1
# ### BEGIN SOLUTION
# A: its average surprise on the held-out text is ln 4 = 1.39 nats a token lower, so it gives the true
# tokens four times the probability in the geometric mean. Before I believe it I ask whether both
# were measured on the same held-out text, with the same tokenizer and the same context length; if the
# tokenizers differ I ask for bits per byte instead.
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# One point for both parts, none for one:
#
# 1. A, because lower perplexity is lower average surprise on text it was not trained on;
# 2. at least two of the conditions: same text, same tokenizer (or bits per byte), same context length.
#    “Neither was trained on it” counts as one of the two.
# ### END MARK SCHEME

# %% [markdown]
# ## L3.3 Without the causal mask
#
# A transformer works on all positions of a sequence at once. Position $t$ reads the token $x_t$,
# gathers from other positions what its attention mask allows, and is scored on the token that comes
# next:

# %% locked="L3_3_picture"
TokenStrip({
    "position": [(str(t), "kept") for t in range(1, 6)],
    "reads": [("x" + "₀₁₂₃₄₅₆"[t], "kept") for t in range(1, 6)],
    "is scored on": [("x" + "₀₁₂₃₄₅₆"[t + 1], "scored") for t in range(1, 6)],
})

# %% [markdown]
# The **causal mask** lets position $t$ gather from positions $\le t$ only. Books say the same in other
# words, “the prediction of $x_t$ may not use positions $\ge t$”, because they count by the token that is
# *predicted*: it is predicted one position earlier.
#
# Now take the mask away. The next cell trains one tiny transformer twice on the prose of L3.2, character
# by character, from the same first weights and on the same windows of 24 characters: once with the
# causal mask, once with no mask at all, so that every position gathers from the whole window. Nothing
# else differs. Both start at about $\ln V$, and after 300 steps the one with the mask has come down
# to about two and a half nats.
#
# **Predict** three things. They earn one point together, whatever they are.
#
# - `predicted_loss`: the loss of the model without a mask after the same 300 steps, in nats, on text that
#   it was not trained on, still without a mask.
# - `predicted_text`: let both write, one character after the other. What the model without a mask
#   writes has **a** more real words than the other's, **b** about as many, **c** fewer.
# - `predicted_loss_put_back`: now put the causal mask back on the model that was trained without one,
#   without more training. Its loss, in nats?

# %% answer="L3_3_prediction"
predicted_loss = (
    ### BEGIN SOLUTION
    1.5
    ### END SOLUTION
)
predicted_text = (
    ### BEGIN SOLUTION
    "b"
    ### END SOLUTION
)
predicted_loss_put_back = (
    ### BEGIN SOLUTION
    2.5
    ### END SOLUTION
)

# %% locked="L3_3_experiment" tags=["nbval-ignore-output"]
WINDOW, STEPS = 24, 300


def trained(masked):
    seed = torch.Generator().manual_seed(0)  # the same weights and windows both times
    model = TinyTransformer(vocab_size, d_model=48, max_length=WINDOW, generator=seed)

    def batches():
        while True:
            batch = causal_lm(sample_windows(train_ids, 16, WINDOW + 1, generator=seed))
            yield batch if masked else batch._replace(attention=None)

    train(model, batches(), steps=STEPS, progress=False)
    return model


def mean_loss(model, attention):
    total = Perplexity()
    with torch.no_grad():
        total.update(model(held_out.inputs, attention), held_out.labels)
    return round(total.nats, 3)


def loss_without_mask():
    models["with mask"], models["no mask"] = trained(masked=True), trained(masked=False)
    print(f"with mask: {mean_loss(models['with mask'], held_out.attention)} nats")
    return mean_loss(models["no mask"], None)


def more_or_fewer_words():
    words = {word for word in text.split() if len(word) > 1}
    line_end = torch.tensor([tokenizer.encode("\n").ids])
    share = {}
    for name, model in models.items():
        seed = torch.Generator().manual_seed(2)
        ids = generate(model, line_end, 210, temperature=0.7, generator=seed)
        written = tokenizer.decode(ids[0].tolist())
        real = sum(len(word) for word in written.split() if word in words)
        share[name] = real / len(written)
        print(f"\n{name} writes ({share[name]:.0%} of it in real words):")
        print(textwrap.indent(textwrap.fill(written, 75), "    "))
    more = share["no mask"] - share["with mask"]
    print()
    return "a" if more > 0.05 else "c" if more < -0.05 else "b"


held_out = causal_lm(test_ids.unfold(0, WINDOW + 1, WINDOW))
models = {}
predict("L3.3 loss", predicted_loss, loss_without_mask)
words_outcome = predict("L3.3 text", predicted_text, more_or_fewer_words)

# %% test="L3_3_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

for guess in (predicted_loss, predicted_loss_put_back):
    demand(kind(guess) == "a number",
           "L3.3 prediction: write a number, any number, for both losses.")
demand(str(predicted_text).strip().casefold() in ("a", "b", "c"),
       "L3.3 prediction: write a letter, \"a\", \"b\" or \"c\", for the text.")
print("✓ L3.3 prediction: noted")

# %% [markdown]
# ### Where does the loss sit?
#
# One number hides a lot. Write the loss of each *position*: `logits` is a $B \times T \times V$ tensor and
# `labels` holds the $B \times T$ ids of the tokens that should come next. Return $T$ numbers: for each
# position, the average over the $B$ rows of the surprise $-\ln p$ of its label.

# %% answer="L3_3_positions"
def position_losses(logits, labels):
    """Average loss in nats at each of T positions, from (B, T, V) and (B, T)."""
    ### BEGIN SOLUTION
    log_probs = torch.log_softmax(logits, dim=-1)
    surprises = -log_probs.gather(-1, labels[:, :, None])[:, :, 0]
    return surprises.mean(dim=0)
    ### END SOLUTION

# %% test="L3_3_positions" points=1
import torch

from course_lib.teaching.check import check

logits = torch.tensor([
    [[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]],
    [[0.0, 1.0], [3.0, 0.0], [0.0, 0.0]],
])
labels = torch.tensor([[0, 0, 1], [1, 1, 0]])
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each
from course_lib.teaching.plain import is_placeholder, kind, plain
from math import log
from random import SystemRandom

draw = SystemRandom()


def nats_of(logits, labels):
    rows = logits.double()
    return rows.logsumexp(-1) - rows.gather(-1, labels[..., None])[..., 0]


def lures(logits, labels):
    nats = nats_of(logits, labels)
    return {
        "That is one loss for each *row*. Average over the rows, dimension 0, and keep the positions.":
            nats.mean(1),
        "You added the rows up. Average them, or the loss grows with the batch.": nats.sum(0),
        "M6: You used bits (log base 2); the course measures in nats.": nats.mean(0) / log(2),
        "Those are perplexities. Leave the average surprise as it is.": nats.mean(0).exp(),
        "The sign is wrong: a surprise is minus the logarithm.": -nats.mean(0),
        "You averaged the probabilities first. Take the logarithm of each, then average.":
            -(-nats).exp().mean(0).log(),
        "You used the logits themselves as log-probabilities. Normalise them first (log_softmax).":
            -logits.double().gather(-1, labels[..., None])[..., 0].mean(0),
        "Those are the surprises of all rows. Average over the rows, dimension 0.": nats,
    }


cases = []
for _ in range(6):
    B, T, V = draw.randint(2, 4), draw.randint(5, 9), draw.randint(3, 12)
    generator = torch.Generator().manual_seed(draw.getrandbits(60))
    cases.append((2 * torch.randn(B, T, V, generator=generator),
                  torch.randint(V, (B, T), generator=generator)))
demand(kind(plain(position_losses(logits, labels))) != "a number",
       "position_losses: that is one number. Return one for each of the T positions.")
diagnose(position_losses(logits, labels), right=nats_of(logits, labels).mean(0),
         wrong=lures(logits, labels), public="L3.3 position_losses")
for case, losses in zip(cases, each(position_losses, cases)):
    diagnose(losses, right=nats_of(*case).mean(0), wrong=lures(*case),
             what="position_losses on other logits")
### END HIDDEN TESTS
check("L3.3 position_losses", position_losses, logits, labels)

# %% [markdown]
# And the causal mask itself, as the course's models want it: a $T \times T$ tensor of `True` and
# `False`, `True` where the position of the *row* may gather from the position of the *column*. It must
# work from $T=1$ on.

# %% answer="L3_3_mask"
def causal_mask(T):
    """A bool tensor (T, T): True where the row's position may read the column's."""
    ### BEGIN SOLUTION
    return torch.ones(T, T, dtype=torch.bool).tril()
    ### END SOLUTION

# %% test="L3_3_mask" points=2
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import inf
from random import SystemRandom


def table(T, entry):
    return [[entry(row, column) for column in range(T)] for row in range(T)]


def lures(T):
    return {
        "M16: Everything may read everything. Position t must not read what comes after it.":
            table(T, lambda row, column: True),
        "It is transposed: rows read, columns are read. Your first row reads the whole future.":
            table(T, lambda row, column: column >= row),
        "It blocks the diagonal, so the first position may read nothing, and a softmax over nothing is "
        "NaN. Position t reads x_t; that is not the token it predicts.":
            table(T, lambda row, column: column < row),
        "It is inverted: True means *may read* here. (PyTorch has functions of both kinds.)":
            table(T, lambda row, column: column > row),
        "M16: It is one off: position t may read position t + 1, which holds the token it predicts.":
            table(T, lambda row, column: column <= row + 1),
        "Those are numbers. Return True and False (dtype=torch.bool).":
            table(T, lambda row, column: int(column <= row)),
        "That is an additive mask of numbers. Return True and False, where reading is allowed or not.":
            table(T, lambda row, column: 0.0 if column <= row else -inf),
        "It has one dimension too many. The shape is (T, T).":
            [table(T, lambda row, column: column <= row)],
    }


def right(T):
    return table(T, lambda row, column: column <= row)


diagnose(causal_mask(4), right=right(4), wrong=lures(4), public="L3.3 causal_mask")
sizes = [1, 2, 3, SystemRandom().randint(5, 30)]
for T, mask in zip(sizes, each(causal_mask, [(T,) for T in sizes])):
    diagnose(mask, right=right(T), wrong=lures(T), what=f"causal_mask({T})")
### END HIDDEN TESTS
check("L3.3 causal_mask", causal_mask, 4)

# %% [markdown]
# Now for the figure, and with it the third prediction. The last of its lines is the model that was
# trained without a mask, under the causal mask.

# %% locked="L3_3_figure" tags=["nbval-ignore-output"]
def curve_of(name, attention):
    with torch.no_grad():
        logits = models[name](held_out.inputs, attention)
    nats = []
    for at_t, labels_t in zip(logits.unbind(1), held_out.labels.unbind(1)):
        position = Perplexity()
        position.update(at_t, labels_t)
        nats.append(position.nats)
    return torch.tensor(nats)


def mask_put_back():
    curves["with mask"] = curve_of("with mask", held_out.attention)
    curves["no mask"] = curve_of("no mask", None)
    curves["mask put back"] = curve_of("no mask", held_out.attention)
    return round(curves["mask put back"].mean().item(), 2)


curves = {}
predict("L3.3 mask put back", predicted_loss_put_back, mask_put_back)
loss_per_position(curves, uniform=math.log(vocab_size))

# %% [markdown]
# You can draw the same lines with what you wrote: for the last one,
# `position_losses(models["no mask"](held_out.inputs, causal_mask(24)), held_out.labels)` in a new cell.
#
# `curves` holds the three lines, 24 numbers each: `curves["with mask"]`, `curves["no mask"]`,
# `curves["mask put back"]`. Read four things off them, as numbers or as expressions. Then compare the
# last one with `vocab_size`.

# %% answer="L3_3_report"
mean_with_mask = (  # nats
    ### BEGIN SOLUTION
    curves["with mask"].mean()
    ### END SOLUTION
)
mean_no_mask = (  # nats
    ### BEGIN SOLUTION
    curves["no mask"].mean()
    ### END SOLUTION
)
last_over_others = (  # no mask: loss of the last position over the mean of all others
    ### BEGIN SOLUTION
    curves["no mask"][-1] / curves["no mask"][:-1].mean()
    ### END SOLUTION
)
ppl_put_back = (  # mask put back: the perplexity over all positions
    ### BEGIN SOLUTION
    ppl_from_nats(curves["mask put back"].mean())
    ### END SOLUTION
)

# %% test="L3_3_report" points=1
from course_lib.teaching.check import NotAttempted, demand
from course_lib.teaching.plain import is_placeholder, kind, plain

report = plain([mean_with_mask, mean_no_mask, last_over_others, ppl_put_back])
if any(map(is_placeholder, report)):
    raise NotAttempted("L3.3 report: not attempted yet. Four numbers are asked for.")
demand(all(kind(value) == "a number" for value in report),
       "L3.3 report: each of the four is one number. `.mean()` makes one of a curve.")
### BEGIN HIDDEN TESTS
with_mask, no_mask, ratio, ppl = report
demand(with_mask < 4, "mean_with_mask: no better than a uniform guess? Give the loss, in nats, of the "
       "model that was trained and measured with the mask.")
demand(with_mask > 1, "mean_with_mask: too low for a model that sees the past only. Is that the curve "
       "without a mask?")
demand(no_mask > 0, "mean_no_mask: a loss is never negative, and the last position costs something.")
demand(no_mask < 0.2 * with_mask, "M16: mean_no_mask: a model that sees its answers does far better. "
       "Average the curve without a mask over all positions.")
demand(ratio > 1, "last_over_others: below 1. Divide the last position by the others, not the others by "
       "the last, and do not take the share.")
demand(ratio >= 10, "last_over_others: the last position stands out far more than that. Leave it out of "
       "the mean that you divide by, and average the others.")
demand(ppl > 10, "ppl_put_back: that looks like a loss in nats. Its perplexity is asked for.")
demand(ppl > 100, "M21: ppl_put_back: higher than that, higher even than the vocabulary is large. A sure "
       "and wrong model is worse than a uniform guess. Is your causal mask right?")
demand(ppl < 20_000, "ppl_put_back: too high. Average the losses first, then exponentiate once.")
### END HIDDEN TESTS
print("✓ L3.3 report: right")

# %% [markdown]
# ### What is left at the last position
#
# Without a mask, all positions but one cost almost nothing. Train longer, and they cost less still; the
# last one does not follow. Why? Answer with a letter.
#
# - **a** The last character of a window is harder to guess than the others, whatever the model.
# - **b** Fewer gradients reach the last position, so it learns more slowly and would catch up in time.
# - **c** The softmax of the last position has the most terms, so its attention is spread too thin.
# - **d** The label of the last position is the only one that the input does not hold: there the model
#   must predict, and the mean loss stays above that position's loss divided by $T$.

# %% answer="L3_3_residue"
residue = (
    ### BEGIN SOLUTION
    "d"
    ### END SOLUTION
)

# %% test="L3_3_residue" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(residue, right="d", public="L3.3 residue", wrong={
    "Windows are cut anywhere, so the last character is like any other. Look at the model with the mask: "
    "its last position costs about what its others cost.": "a",
    "Every position has the same weight in the loss, so the last one gets as many gradients as any. With "
    "more steps it stays where it is.": "b",
    "Without a mask the softmax of *every* position has T terms. What does the last one miss that the "
    "others find?": "c",
})
### END HIDDEN TESTS
check("L3.3 residue", residue)

# %% [markdown]
# ### Where the mask goes
#
# Attention turns scores into weights: `scores` is a $T \times T$ tensor, a row for each position that
# reads, and the weights of a row are the softmax of its scores **over the positions it may read**. They
# add up to 1 and are exactly 0 elsewhere. `mask` is `True` where reading is allowed, at least once a
# row. Scores may be of any size.

# %% answer="L3_3_weights"
def attention_weights(scores, mask):
    """Weights (T, T) from scores (T, T) and a mask (T, T), True where one may read."""
    ### BEGIN SOLUTION
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    ### END SOLUTION

# %% test="L3_3_weights" points=1
import torch

from course_lib.teaching.check import check

scores = torch.tensor([[1.0, 2.0, 0.0], [0.5, 0.0, 1.0], [-1.0, 0.0, 2.0]])
mask = torch.tensor([[True, False, False], [True, True, False], [False, True, True]])
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each
from course_lib.teaching.plain import plain
from math import inf
from random import SystemRandom

draw = SystemRandom()


def softmax(scores, dim=-1):
    return torch.softmax(scores.double(), dim)


def lures(scores, mask):
    blocked = scores.double().masked_fill(~mask, -inf)
    return {
        "You masked after the softmax, so the rows do not add up to 1: the blocked positions took their "
        "part of the sum. Block the scores, then take the softmax.": softmax(scores) * mask,
        "M16: The mask changed nothing: every position still reads everything.": softmax(scores),
        "You set blocked scores to 0, and e to the 0 is 1: they are still read. The score that gives "
        "weight 0 is -inf.": softmax(scores * mask),
        "You took the softmax down the columns. Each *row* adds up to 1 (dim=-1).":
            torch.softmax(blocked, 0),
        "The mask is transposed: a row of it belongs to the position that reads.":
            softmax(scores.double().masked_fill(~mask.T, -inf)),
        "The mask is inverted: it is True where reading is allowed.":
            softmax(scores.double().masked_fill(mask, -inf)),
        "Those are the blocked scores. Take their softmax.": blocked,
    }


def right(scores, mask):
    return softmax(scores.double().masked_fill(~mask, -inf))


diagnose(attention_weights(scores, mask), right=right(scores, mask), wrong=lures(scores, mask),
         public="L3.3 attention_weights")
cases = []
for _ in range(8):
    T = draw.randint(3, 8)
    generator = torch.Generator().manual_seed(draw.getrandbits(60))
    allowed = torch.rand(T, T, generator=generator) < 0.4
    order = torch.randperm(T, generator=generator)
    allowed[range(T), order] = True  # no row and no column is empty ...
    allowed[range(T), order.roll(1)] = False  # ... or full
    cases.append((2 * torch.randn(T, T, generator=generator), allowed))
for case, weights in zip(cases, each(attention_weights, cases)):
    diagnose(weights, right=right(*case), wrong=lures(*case), what="attention_weights on other scores")
### END HIDDEN TESTS
check("L3.3 attention_weights", attention_weights, scores, mask)

# %% test="L3_3_weights__large" points=1
import torch

from course_lib.teaching.check import check

large = torch.tensor([[0.0, 30_000.0], [0.0, 1.0]])
causal = torch.tensor([[True, False], [True, True]])
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each
from course_lib.teaching.plain import plain
from math import inf, isnan
from random import SystemRandom

draw = SystemRandom()
OUTVOTED = (
    "M16: A large score of a blocked position outvoted your mask, so the future is read after all. A "
    "finite number such as -1e4 only asks; -inf forbids."
)
UNDERFLOW = (
    "There is a NaN. Either a row was left with nothing to read, or, with scores as large as these, a "
    "softmax over all positions left 0 for the allowed ones, and dividing by their sum is 0/0. Block "
    "the scores first, then take the softmax."
)
T = draw.randint(4, 7)
generator = torch.Generator().manual_seed(draw.getrandbits(60))
past = torch.ones(T, T, dtype=torch.bool).tril()
wide = torch.randn(T, T, generator=generator) + 40_000.0 * ~past
deep = torch.randn(T, T, generator=generator) - 40_000.0 * past
cases = [(large, causal), (wide, past), (deep, past)]
results = each(attention_weights, cases)
for (scores_TT, mask_TT), weights in zip(cases, results):
    rows = plain(weights)
    if isinstance(rows, list):
        flat = [x for row in rows if isinstance(row, list) for x in row]
        demand(not any(isinstance(x, float) and isnan(x) for x in flat), UNDERFLOW)
    blocked = scores_TT.double().masked_fill(~mask_TT, -inf)
    diagnose(weights, right=blocked.softmax(-1), what="attention_weights with large scores", wrong={
        OUTVOTED: (scores_TT.double() - 1e4 * ~mask_TT).softmax(-1),
        "M16: The mask changed nothing: every position still reads everything.":
            scores_TT.double().softmax(-1),
        "You masked after the softmax: with large scores nothing is left for the allowed positions.":
            scores_TT.double().softmax(-1) * mask_TT,
    })
diagnose(results[0], right=[[1.0, 0.0], [1 / (1 + 2.718281828459045), 1 / (1 + 1 / 2.718281828459045)]],
         public="L3.3 attention_weights with large scores", wrong={
    OUTVOTED: [[0.0, 1.0], [1 / (1 + 2.718281828459045), 1 / (1 + 1 / 2.718281828459045)]],
})
### END HIDDEN TESTS
check("L3.3 attention_weights with large scores", attention_weights, large, causal)

# %% [markdown]
# ### A test that needs no training
#
# A loss that is too good may raise a suspicion, and it takes a training run. There is an exact test. If
# a model is causal, a token of the *future* can't matter: change it, and the logits before it stay as
# they are.
#
# Write it. A **model** here is anything you can call: `model(ids)` takes token ids, a $B \times T$ tensor
# of any length $T$, and returns $B \times T \times V$ logits. You are given a batch `ids` to try it on
# ($T \ge 2$), and $V$, the `vocab_size`, so that you can change a token into another one. Return `True`
# if the logits of some position depend on a token after it, `False` if none do. Leave `ids` as it
# is, and forgive rounding: differences below 0.0001 mean nothing.

# %% answer="L3_3_leak"
def leak_test(model, ids, vocab_size):
    """Whether the logits of some position depend on a token that comes after it."""
    ### BEGIN SOLUTION
    before = model(ids)
    for t in range(1, ids.shape[1]):
        changed = ids.clone()
        changed[:, t] = (changed[:, t] + 1) % vocab_size
        if not torch.allclose(model(changed)[:, :t], before[:, :t], atol=1e-4):
            return True
    return False
    ### END SOLUTION

# %% test="L3_3_leak" points=2
import torch

from course_lib.teaching.check import check

ids = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])


def one_hot(ids):
    return torch.nn.functional.one_hot(ids, 10).float()


def knows_all(ids):  # logits: which tokens are anywhere in the row
    return one_hot(ids).sum(1, keepdim=True).expand(-1, ids.shape[1], -1)


def knows_the_past(ids):  # logits: which tokens came so far
    return one_hot(ids).cumsum(1)


### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each, observe
from course_lib.teaching.plain import same, plain
from math import inf
from random import SystemRandom

draw = SystemRandom()


def random(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def attention(mask, generator, V):
    embedding, head = random(generator, V, 8), random(generator, 8, V)

    def model(ids):
        x, T = embedding[ids], ids.shape[1]
        scores = (x @ x.transpose(1, 2) / 8).masked_fill(~mask[:T, :T], -inf)
        return (scores.softmax(-1) @ x) @ head

    return model


def pooled(generator, V):
    now, mean = random(generator, 2, V, V)
    return lambda ids: now[ids] + mean[ids].mean(1, keepdim=True)


def so_far(generator, V):  # a sum up to here, but taken as the whole less what is later
    table = random(generator, V, V).float()

    def model(ids):
        x = table[ids]
        return x.sum(1, keepdim=True) - x.flip(1).cumsum(1).flip(1) + x

    return model


def current(generator, V):
    table = random(generator, V, V)
    return lambda ids: table[ids]


seen = observe(leak_test, knows_the_past, ids, 10)
demand(same(plain(seen.args[1]), plain(ids)),
       "leak_test changed `ids` in place. Work on a copy, ids.clone().")
diagnose(seen.result, right=False, public="L3.3 leak_test of knows_the_past", wrong={
    "You flagged a model that reads only the past. The logits *at* a changed token and after it may "
    "change: compare the positions before it.": True,
})
diagnose(leak_test(knows_all, ids, 10), right=True, public="L3.3 leak_test of knows_all", wrong={
    "M16: You passed a model that reads the whole row at every position. Change a later token and "
    "compare the logits of the positions before it.": False,
})
models_and_verdicts = []
for _ in range(3):
    T, V = draw.randint(6, 10), draw.randint(10, 20)
    generator = torch.Generator().manual_seed(draw.getrandbits(60))
    batch = torch.randint(V, (draw.randint(2, 3), T), generator=generator)
    square = torch.ones(T, T, dtype=torch.bool)
    FLAGGED = (
        "You flagged a model that does not look ahead, {}. Only the logits *before* a changed token "
        "must stay, and only up to rounding."
    )
    for model, leaks, sentence in (
        (attention(square, generator, V), True,
         "M16: You passed attention without any mask. Change a later token and compare the logits before "
         "it."),
        (attention(square.tril(1), generator, V), True,
         "M16: You passed attention whose mask is one off: each position reads one token too many. "
         "Look at the logits *right* before the changed token."),
        (pooled(generator, V), True,
         "M16: You passed a model that adds an average over all positions, later ones too. Compare the "
         "logits themselves, at every position before the changed token."),
        (attention(square.tril(), generator, V), False, FLAGGED.format("causal attention")),
        (so_far(generator, V), False,
         "You flagged a model over the last digits of its logits. The same sum in another order differs "
         "by rounding: compare with a tolerance, such as torch.allclose(..., atol=1e-4)."),
        (current(generator, V), False, FLAGGED.format("one that reads the current token alone")),
    ):
        models_and_verdicts.append(((model, batch, V), leaks, sentence))
calls = [call for call, _, _ in models_and_verdicts]
for (_, leaks, sentence), verdict in zip(models_and_verdicts, each(leak_test, calls)):
    diagnose(verdict, right=leaks, wrong={sentence: not leaks}, what="leak_test")
### END HIDDEN TESTS
check("L3.3 leak_test of knows_the_past", leak_test, knows_the_past, ids, 10)
check("L3.3 leak_test of knows_all", leak_test, knows_all, ids, 10)

# %% test="L3_3_leak__subtle" points=1
import torch

from course_lib.teaching.check import check

ids = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])


def faint(ids):  # a hundredth of the token that comes next
    logits = torch.nn.functional.one_hot(ids, 10).float()
    return logits + 0.01 * logits.roll(-1, dims=1)


### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import inf
from random import SystemRandom

draw = SystemRandom()
FAINT = (
    "M16: You passed a model that adds a hundredth of the next token to its logits. A leak need not "
    "change the likeliest token, nor change it by much: compare the logits themselves."
)
OUTVOTED = (
    "M16: You passed a model whose mask adds -1e4 to the scores, and whose scores are larger than that. "
    "Not every token that you change has such a score: change each position in turn."
)
PREFIX = (
    "M16: You passed a model that reads ahead in the first half of the row only. Changing the last "
    "token can't show that: change each position in turn."
)


def random(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def next_hint(generator, V):
    table = random(generator, V, V) + 20 * torch.eye(V)  # sure of the current token, come what may
    return lambda ids: table[ids] + 0.01 * torch.eye(V)[ids].roll(-1, dims=1)


def attention(blocks, generator, V):
    embedding, head = random(generator, V, 8), random(generator, 8, V)

    def model(ids):
        x, T = embedding[ids], ids.shape[1]
        return ((x @ x.transpose(1, 2) / 8 + blocks[:T, :T]).softmax(-1) @ x) @ head

    return model


def loudest_wins(blocks, generator, V):  # everybody listens to the highest id, if not forbidden to
    table = random(generator, V, V)

    def model(ids):
        T = ids.shape[1]
        scores = 1e5 * ids[:, None, :].expand(-1, T, -1) + blocks[:T, :T]
        return scores.double().softmax(-1) @ table[ids]

    return model


calls, sentences = [], []
for _ in range(3):
    T, V = draw.randint(6, 10), draw.randint(10, 20)
    generator = torch.Generator().manual_seed(draw.getrandbits(60))
    batch = torch.randint(V - 1, (2, T), generator=generator)
    batch[:, draw.randrange(T // 2, T)] = V - 1  # so that nearly all listen to the future
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    later_half = future & (torch.arange(T) >= T // 2)
    calls += [
        (next_hint(generator, V), batch, V),
        (attention(torch.zeros(T, T).masked_fill(later_half, -inf), generator, V), batch, V),
        (loudest_wins(-1e4 * future, generator, V), batch, V),
    ]
    sentences += [FAINT, PREFIX, OUTVOTED]
forbidden = loudest_wins(torch.zeros(T, T).masked_fill(future, -inf), generator, V)
for sentence, verdict in zip(sentences, each(leak_test, calls)):
    diagnose(verdict, right=True, wrong={sentence: False}, what="leak_test")
diagnose(leak_test(faint, ids, 10), right=True, public="L3.3 leak_test of faint", wrong={FAINT: False})
diagnose(leak_test(forbidden, batch, V), right=False,
         what="leak_test", wrong={
    "You flagged attention with huge scores and a mask of -inf, which nothing outvotes. Compare only the "
    "logits *before* the changed token.": True,
})
### END HIDDEN TESTS
check("L3.3 leak_test of faint", leak_test, faint, ids, 10)

# %% [markdown]
# Try it on what you trained: `leak_test(models["no mask"], held_out.inputs[:4], vocab_size)`. Such a test
# knows nothing of losses, takes a moment, and belongs beside every language model that one writes.

# %% [markdown]
# ### In your own words
#
# The chain rule writes the probability of a text as a product, one factor for each token given the tokens
# before it:
#
# $$p(x_1,\dots,x_T)=\prod_{t=1}^{T} p(x_t \mid x_1,\dots,x_{t-1})$$
#
# In three or four sentences: use it to explain what a language model trained without a causal mask
# learns instead of language, and name two results of the experiments above that show it.

# %% [markdown] written="L3_3_words" points=1
# ### BEGIN SOLUTION
# Each factor conditions on the past only, and the causal mask is what makes the logits of a position such
# a conditional probability. Without it the position that should predict a token finds that very token in
# its input, one place to the right, so the lowest loss is had by copying it: the loss no longer is
# the surprise of any factor of the product, and the model learns to photocopy. It shows in the loss,
# which falls to almost nothing everywhere but at the last position, the only one whose target is not in
# the input; in the text it writes, where no future is there to be copied; and in the perplexity above
# V when the mask is put back.
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# One point for all three parts, none for fewer:
#
# 1. the factors condition on earlier tokens only, and the mask enforces that;
# 2. without it the target itself is in what the position reads, so copying it is enough and nothing about
#    language is learnt;
# 3. two results: loss near 0 except at the last position; samples without words; loss above ln V under
#    the causal mask; `leak_test` is True.
#
# “It overfits” or “it sees too much context” without the copying of the target earns nothing: the loss is
# just as low on text it was not trained on.
# ### END MARK SCHEME
