# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
#   language_info: {name: python}
# ---

# %% [markdown]
# # Level 4 · Synthesis
#
# A model learns from what was done to its text. Here you build the two best-known corruptions
# yourself, BERT's and T5's, and find out what each of their odd details is good for.
#
# | question | what you do | points |
# |---|---|---|
# | **L4.1** eighty, ten, ten | account for BERT's corruption, then write it | 10 |
# | **L4.2** why the two tens | measure what three recipes teach, and explain it | 6 |
# | **L4.3** a span or single tokens | write T5's corruption, then compare the tasks exactly | 9 |
#
# About two hours. Replace each `...` with your answer and run the cell below it: it says at once
# whether you are right and, often, which misunderstanding a wrong answer shows. You may try as often as
# you like. After a try, `hint("L4.1")` in a new cell opens a hint. When your work is graded, your
# functions are also called with inputs that you have not seen, so write them for every case that the
# text describes.

# %% locked="L4_setup"
import math
from collections import Counter

import torch

from course_lib.corruption import span_lengths
from course_lib.model import TinyTransformer, train
from course_lib.objectives import masked_lm
from course_lib.oracle import MarkovWorld
from course_lib.teaching.cards import cards
from course_lib.teaching.check import hint, predict
from course_lib.teaching.show import Picture, new_figure
from course_lib.teaching.strip import TokenStrip, token_strip

# the vocabulary of this level: five special tokens, then sixteen ordinary words
TOKENS = (
    "[PAD] [MASK] [BOS] [EOS] [UNK] "
    "the a old red cat dog house mat sat ran on to my his and ."
).split()
MASK_ID = 1
EOS_ID = 3
FIRST_WORD = 5  # the words are the ids FIRST_WORD ... VOCAB_SIZE - 1
VOCAB_SIZE = len(TOKENS)  # 21
FIRST_SENTINEL = 99  # <extra_id_0>; the next ones are 98, 97, ...

# %% [markdown]
# First, five cards from earlier levels. Answer each in your head before you open it.

# %% locked="L4_cards"
cards("level4")

# %% [markdown]
# ## L4.1 Eighty, ten, ten
#
# BERT corrupts a text in three steps:
#
# 1. **Choose positions.** Every ordinary token is chosen with probability 15%, independently of the
#    others. Special tokens and padding never are.
# 2. **Corrupt the input.** A chosen token becomes `[MASK]` with probability 80% and a random word with
#    probability 10%. In the remaining 10% it stays as it is. Tokens that were not chosen stay.
# 3. **Build the labels.** At a chosen position the label is the original token. Everywhere else it is
#    −100, which means: not scored here.
#
# In this example three tokens were chosen, and each met another fate:

# %% locked="L4_1_picture"
def ids_of(text):
    return [TOKENS.index(token) for token in text.split()]


token_strip(
    ids_of("[BOS] the old [MASK] house on my red mat . [EOS]"),
    [-100, -100, -100, 9, 13, -100, -100, -100, 12, -100, -100],
    name=TOKENS.__getitem__,
    tokens=ids_of("[BOS] the old cat sat on my red mat . [EOS]"),
)

# %% [markdown]
# A text has 200 ordinary tokens. How many of them can you expect to be chosen, and how many of the
# 200 to become `[MASK]`, to become a random word, and to stay although they were chosen?
#
# These are averages over many draws. How far does the number of *chosen* tokens typically lie from
# its average? Give its standard deviation: for the rule above, and for the rule of BERT's own
# script, which computes 0.15 · 200 and chooses exactly that many tokens.

# %% answer="L4_1_numbers"
chosen = (
    ### BEGIN SOLUTION
    0.15 * 200
    ### END SOLUTION
)
masked = (
    ### BEGIN SOLUTION
    0.80 * chosen
    ### END SOLUTION
)
randomised = (
    ### BEGIN SOLUTION
    0.10 * chosen
    ### END SOLUTION
)
kept = (
    ### BEGIN SOLUTION
    chosen - masked - randomised
    ### END SOLUTION
)
sd_independent = (
    ### BEGIN SOLUTION
    math.sqrt(200 * 0.15 * 0.85)
    ### END SOLUTION
)
sd_script = (
    ### BEGIN SOLUTION
    0
    ### END SOLUTION
)

# %% test="L4_1_numbers" points=2
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import sqrt

OF_THE_TEXT = "That is a share of the whole text. The 80/10/10 splits only the tokens that were chosen."
COIN = ("M11: You took a tenth of what the 80% left over. Both tens are shares of all the chosen tokens, "
        "so that the three shares add up to 1.")
diagnose(chosen, right=30, public="L4.1 chosen", wrong={
    "That is how many become [MASK]. First count all that are chosen, whatever becomes of them.": 24,
    "That is how many are not chosen.": 170,
    "That is the share. The question is how many of 200 tokens.": 0.15,
})
diagnose(masked, right=24, public="L4.1 masked", wrong={
    OF_THE_TEXT: 160,
    "That is all that are chosen. Only a part of them becomes [MASK].": 30,
    "You left the random ones and the kept ones out, but they add up to 6, not to this.": 27,
})
diagnose(randomised, right=3, public="L4.1 randomised", wrong={
    OF_THE_TEXT: 20,
    COIN: 0.6,
    "M11: You took a tenth of what is not masked in the whole text. It is a tenth of the chosen ones.":
        17.6,
    "That is random and kept together. They are two halves of it.": 6,
})
diagnose(kept, right=3, public="L4.1 kept", wrong={
    OF_THE_TEXT: 20,
    COIN: 5.4,
    "That counts the tokens that were never chosen too. Here: chosen, and yet left as they are.": 173,
    "That is how many are not chosen. Here: chosen, and yet left as they are.": 170,
    "That is random and kept together. They are two halves of it.": 6,
})
diagnose(sd_independent, right=sqrt(25.5), public="L4.1 sd, independent", wrong={
    "That is the variance. The standard deviation is its square root.": 25.5,
    "That is √30, as for rare events. Here the factor 1 − 0.15 matters too: √(n·p·(1−p)).": sqrt(30),
    "That is the standard deviation of one token, √(p·(1−p)). Variances of 200 independent ones add up.":
        sqrt(0.1275),
    "That is the standard deviation of the share chosen. The question is about the number.":
        sqrt(0.1275 / 200),
    "A number that is drawn anew for every text varies. How far is it from 30, typically?": 0,
})
diagnose(sd_script, right=0, public="L4.1 sd, script", wrong={
    "That is for independent choices. The script chooses the same number each time.": sqrt(25.5),
    "That is a variance, and the one for independent choices. How much does a fixed number vary?": 25.5,
})
### END HIDDEN TESTS
check("L4.1 chosen", chosen)
check("L4.1 masked", masked)
check("L4.1 randomised", randomised)
check("L4.1 kept", kept)
check("L4.1 sd, independent", sd_independent)
check("L4.1 sd, script", sd_script)

# %% [markdown]
# ### An experiment: how typical is the average?
#
# The next cell chooses tokens independently in 1,000 texts of 200 tokens. **Predict first:** in how
# many of the 1,000 is the number of chosen tokens *exactly* the average? Any number earns the
# point; what counts is that you commit to one.

# %% answer="L4_1_prediction"
predicted_texts = (
    ### BEGIN SOLUTION
    100
    ### END SOLUTION
)

# %% locked="L4_1_experiment"
def binomial(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


generator = torch.Generator().manual_seed(0)
counts = (torch.rand(1_000, 200, generator=generator) < 0.15).sum(1)
exactly_30 = predict("L4.1", predicted_texts, lambda: int((counts == 30).sum()))
ways = math.factorial(30) // (math.factorial(24) * math.factorial(3) ** 2)
print(f"\nExactly 30 of 200 are chosen with probability {binomial(200, 30, 0.15):.1%},")
print(f"and 30 split into 24, 3 and 3 with probability {ways * 0.8**24 * 0.1**6:.1%}.")
print("Your accounting is right on average, and for hardly any single text.")

figure, axes = new_figure(6, 2.6)
shown = range(13, 50)
heights = torch.bincount(counts, minlength=50)[13:50].tolist()
axes.bar(shown, heights, color="#56B4E9", label="these texts")
expected = [1_000 * binomial(200, k, 0.15) for k in shown]
axes.plot(shown, expected, "o", color="#D55E00", markersize=3, label="theory")
axes.set(xlabel="tokens chosen of 200", ylabel="texts of 1,000")
axes.legend(frameon=False)
Picture(
    figure,
    "How many tokens are chosen in 1,000 texts: "
    f"from {int(counts.min())} to {int(counts.max())}, most often about 30. "
    f"Exactly 30 in {exactly_30} texts. Dots show the binomial distribution.",
)

# %% test="L4_1_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

demand(
    kind(predicted_texts) == "a number",
    "L4.1 prediction: write a number, any number, first.",
)
print("✓ L4.1 prediction: noted")

# %% [markdown]
# ### What the model gets to see
#
# The vocabulary of this notebook has 16 ordinary words, and the random word is drawn evenly from all 16.
# A token was chosen. With what probability does the model see the *original* token at its place? (An
# expression is best; else give four decimals.)

# %% answer="L4_1_original"
p_sees_original = (
    ### BEGIN SOLUTION
    0.10 + 0.10 / 16
    ### END SOLUTION
)

# %% test="L4_1_original" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(p_sees_original, right=0.1 + 0.1 / 16, public="L4.1 sees the original", wrong={
    "M12: You counted the tokens that are kept. But a word drawn evenly from all 16 can be any of the 16.":
        0.1,
    "M12: That is the chance to draw one particular word. Which shares of the chosen tokens end up "
    "showing the original?": 1 / 16,
    "M12: That is the chance of a random word that happens to be the original. Some are also kept.":
        0.1 / 16,
    "That takes every random word for a new one and every kept one too. Which of the two can show the "
    "original?": 0.2,
    "You took the random word from all 21 ids. The special tokens are never drawn.": 0.1 + 0.1 / 21,
    "That includes tokens that were not chosen. Here the token *was* chosen.":
        0.85 + 0.15 * (0.1 + 0.1 / 16),
    "That is the chance to be chosen and shown. Here the token *was* chosen.":
        0.15 * (0.1 + 0.1 / 16),
})
### END HIDDEN TESTS
check("L4.1 sees the original", p_sees_original)

# %% [markdown]
# ### Write it
#
# Now write the corruption for a whole batch.
#
# - `ids` is a `(B, T)` tensor of token ids. `special_mask` has the same shape and is `True` where a token
#   must never be chosen: it alone says so, whatever the id. The other tokens are ordinary words.
# - Return two new tensors of the same shape, `(inputs, labels)`. The arguments stay as they are.
# - Each token has draws of its own, independent of all others. The random word is drawn evenly from
#   the ordinary words, `FIRST_WORD` to `VOCAB_SIZE - 1`.
# - In a short row it can happen that the draws choose nothing, and then there is no loss. In such a row
#   exactly one ordinary token is chosen, each with equal chance. (A row of special tokens only stays
#   without.)
# - All chance comes from `generator`, a `torch.Generator`: give it to every function that draws, as
#   in `torch.rand(3, generator=generator)`. The same generator state then gives the same corruption.
#
# It will be called with more than a million tokens, so let torch work on whole tensors.

# %% answer="L4_1_corrupt"
def bert_corrupt(ids, special_mask, generator):
    """BERT's inputs and labels for a batch of token ids (B, T)."""
    ### BEGIN SOLUTION
    # choose positions: all below 0.15, and in each row at least the lowest
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    lowest = draw.min(dim=1, keepdim=True).values
    chosen = (draw <= lowest.clamp(min=0.15)) & ~special_mask
    # corrupt the input
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), MASK_ID, ids)
    inputs = torch.where(chosen & (fate >= 0.9), words, inputs)
    # build the labels
    return inputs, torch.where(chosen, ids, -100)
    ### END SOLUTION

# %% [markdown]
# Four checks. The first: are inputs and labels consistent?

# %% test="L4_1_corrupt" points=2
from random import SystemRandom

import torch

from course_lib.teaching.check import NotAttempted, demand, observe
from course_lib.teaching.plain import is_placeholder

generator = torch.Generator().manual_seed(SystemRandom().getrandbits(40))
ids = torch.randint(5, 21, (40, 25), generator=generator)
special_mask = torch.rand(40, 25, generator=generator) < 0.2  # words among them
ids[:, 0], special_mask[:, 0] = 2, True
seen = observe(bert_corrupt, ids, special_mask, generator)
pair = seen.result
if is_placeholder(pair):
    raise NotAttempted("bert_corrupt gave nothing. Not written yet, or no `return`?")
demand(
    isinstance(pair, tuple | list) and len(pair) == 2,
    "Return two tensors: the inputs and the labels.",
)
inputs, labels = (torch.as_tensor(part) for part in pair)
demand(
    inputs.shape == ids.shape == labels.shape,
    "Inputs and labels must have the shape of the ids.",
)
demand(
    torch.equal(seen.args[0], ids) and torch.equal(seen.args[1], special_mask),
    "You changed an argument, and whoever called you still needs it. Work on a copy, "
    "or use torch.where.",
)
scored = labels != -100
demand(
    scored.any(),
    "No position has a label. At the chosen ones the label is the original token.",
)
demand(
    not torch.equal(labels, ids),
    "M1: Every position has a label. Only the chosen ones are scored; elsewhere the "
    "label is -100.",
)
demand(
    not scored.all(),
    "M9: Where nothing is asked the label must be -100. Any other number is taken for "
    "a token id, or is an error.",
)
demand(
    not (scored & special_mask).any(),
    "M13: You chose a token where special_mask is True. The mask says so, not the id.",
)
demand(
    torch.equal(labels[scored].long(), ids[scored]),
    "At some chosen positions the label is not the original token. Is it what stands in "
    "the inputs?",
)
demand(
    torch.equal(inputs[~scored].long(), ids[~scored]),
    "You changed tokens that were not chosen. Everything that is corrupted must also be "
    "scored.",
)
print("✓ L4.1 bert_corrupt: inputs and labels are consistent")

# %% [markdown]
# The second: are the shares right, and is every draw its own?

# %% test="L4_1_corrupt__law" points=2
import torch

from course_lib.teaching.check import NotAttempted, demand
from course_lib.teaching.plain import is_placeholder

### BEGIN HIDDEN TESTS
from math import sqrt
from random import SystemRandom

generator = torch.Generator().manual_seed(SystemRandom().getrandbits(40))

B, T, W = 22_000, 64, 16
ids = torch.randint(5, 5 + W, (B, T), generator=generator)
column, length = torch.arange(T), torch.randint(62, T + 1, (B, 1), generator=generator)
special_mask = (column == 0) | (column >= length)
ids[special_mask] = 0
ids[:, 0] = 2
pair = bert_corrupt(ids, special_mask, generator)
if is_placeholder(pair):
    raise NotAttempted("bert_corrupt gave nothing. Not written yet, or no `return`?")
demand(
    isinstance(pair, tuple | list) and len(pair) == 2,
    "Return two tensors: the inputs and the labels.",
)
inputs, labels = (torch.as_tensor(part) for part in pair)
scored, ordinary = labels != -100, ~special_mask
demand(((inputs >= 0) & (inputs < 5 + W)).all(), "Some inputs are no ids of the vocabulary.")

# how many are chosen: in each column, in each row, in all
share = (scored.sum() / ordinary.sum()).item()
demand(0 < share < 1, f"You chose {share:.0%} of the ordinary tokens. It should be 15%.")


def deviations(along):
    """Of the numbers chosen, in standard deviations of independent choices, squared."""
    count, n = scored.sum(along), ordinary.sum(along)
    return (count - share * n).square() / (share * (1 - share) * n.clamp(min=1))


demand(deviations(0).max() < 64, "The same columns are chosen in all rows. Give every row draws of its "
       "own: a tensor of the shape of ids.")
spread = deviations(1).mean().item()
demand(spread < 2, "Tokens of one row are chosen together, as if one draw decided for the row. Give "
       "every token a draw of its own: a tensor of the shape of ids.")
near = 5 * sqrt(0.1275 / ordinary.sum().item())
demand(abs(share - 0.15 * (0.9 - 0.1 / W)) > near and abs(share - 0.135) > near,
       "Only tokens that look different have a label. Those that were chosen and kept are scored too: "
       "how else would the model learn to doubt what it sees?")
demand(abs(share - 0.12) > near,
       "Only tokens that became [MASK] have a label. All that were chosen are scored.")
demand(spread > 0.9 or abs(share - 0.15) > 0.01,
       "Every row has (nearly) the same number of chosen tokens. Here each is chosen independently, so "
       "the number must vary as you computed above.")
demand(abs(share - 0.15) < near, f"You chose {share:.1%} of the ordinary tokens. It should be 15%.")
demand(abs(spread - 1) < 5 * sqrt(2 / B), "The number of chosen tokens varies too much or too little "
       "from row to row for independent choices.")

# what becomes of them
n = scored.sum().item()
became_mask = scored & (inputs == 1)
became_other = scored & (inputs != 1) & (inputs != ids)
shares = became_mask.sum().item() / n, became_other.sum().item() / n


def row_shares_draws(part, whole):
    """Whether how many of a row's `whole` become `part` varies more than with a draw for each."""
    share = part.sum().item() / max(whole.sum().item(), 1)
    excess = part.sum(1) - share * whole.sum(1)
    return excess.square().sum().item() > 2 * share * (1 - share) * whole.sum().item()


# before the shares, which say little where a row shares draws
demand(not row_shares_draws(became_mask, scored)
       and not row_shares_draws(became_other, scored & ~became_mask),
       "The chosen tokens of one row share one fate. Draw for each token whether it becomes [MASK], a "
       "random word or stays.")


def near_to(to_mask, to_word, kept):
    other = to_word * (1 - 1 / W)
    return all(abs(s - p) <= 5 * sqrt(p * (1 - p) / n) for s, p in zip(shares, (to_mask, other)))


demand(inputs[became_other].min() >= 5 if became_other.any() else True,
       "M12: A special token was drawn as the random word. Draw from FIRST_WORD to VOCAB_SIZE - 1.")
for sentence, law in {
    "M11: 2% became random and 18% were kept: you took a tenth of what the 80% left over. It must be half "
    "of it.": (0.80, 0.02, 0.18),
    "M11: 81% became [MASK], 9% random: you split a second time what the first split had left. Let one "
    "draw for each token decide among all three.": (0.81, 0.09, 0.10),
    "M11: 72% became [MASK]: you took 80% of what the first split had left. Let one draw for each token "
    "decide among all three.": (0.72, 0.10, 0.18),
    "Every chosen token became [MASK]. 10% become a random word and 10% stay.": (1, 0, 0),
    "No chosen token stays as it is: 20% become random.": (0.8, 0.2, 0),
    "No chosen token becomes a random word: 20% stay.": (0.8, 0, 0.2),
    "Random and [MASK] are swapped.": (0.1, 0.8, 0.1),
    "M12: Your random word is never the original. It is drawn evenly from all words, and the original is "
    "one of them.": (0.8, 0.1 / (1 - 1 / W), 0.1),
}.items():
    demand(not near_to(*law), sentence)
demand(near_to(0.8, 0.1, 0.1), f"Of the chosen tokens {shares[0]:.1%} became [MASK] and {shares[1]:.1%} "
       "another word. It should be 80%, and a little less than 10%.")

# which random words
words = torch.bincount(inputs[became_other] - 5, minlength=W).double()
where_row, where_column = became_other.nonzero(as_tuple=True)
drawn = inputs[became_other]
neighbours = where_row[1:] == where_row[:-1]
equal = (drawn[1:] == drawn[:-1])[neighbours].double()
demand(abs(equal.mean() - 1 / W) < 6 * sqrt(1 / W / len(equal)),
       "The random words of a row are copies of one draw. Draw a word for each token.")
demand(((words - words.mean()).square() / words.mean()).sum() < 70,
       "The random words are not drawn evenly from the ordinary ones.")
### END HIDDEN TESTS
generator = torch.Generator().manual_seed(0)
ids = torch.randint(5, 21, (2_000, 50), generator=generator)
pair = bert_corrupt(ids, torch.zeros(ids.shape, dtype=torch.bool), generator)
if is_placeholder(pair):
    raise NotAttempted("bert_corrupt gave nothing. Not written yet, or no `return`?")
demand(
    isinstance(pair, tuple | list) and len(pair) == 2,
    "Return two tensors: the inputs and the labels.",
)
inputs, labels = (torch.as_tensor(part) for part in pair)
scored = labels != -100
share = scored.float().mean().item()
to_mask = (inputs == 1)[scored].float().mean().item()
to_word = ((inputs != 1) & (inputs != ids))[scored].float().mean().item()
print(f"You chose {share:.1%} of 100,000 tokens. Of these {to_mask:.1%} became [MASK],")
print(f"{to_word:.1%} another word, and {1 - to_mask - to_word:.1%} look the same.")
demand(abs(share - 0.15) < 0.01, "15% of the tokens should be chosen.")
demand(abs(to_mask - 0.8) < 0.02, "80% of the chosen tokens should become [MASK].")
demand(
    0.08 < to_word < 0.11,
    "M11: 10% of the chosen tokens should become a random word. That is half of what the "
    "80% leave over, not a tenth of it.",
)
print("✓ L4.1 bert_corrupt: the shares are right, as far as this sample can tell")

# %% [markdown]
# The third: does all chance come from the generator?

# %% test="L4_1_corrupt__generator" points=1
from random import SystemRandom

import torch

from course_lib.teaching.check import NotAttempted, demand, each, observe
from course_lib.teaching.plain import is_placeholder

seed = SystemRandom().getrandbits(40)
first, again, other, spare = (
    torch.Generator().manual_seed(s) for s in (seed, seed, seed + 1, seed)
)
ids = torch.randint(5, 21, (30, 20), generator=spare)
no_special = torch.zeros(30, 20, dtype=torch.bool)
seen = observe(bert_corrupt, ids, no_special, spare)
pair = seen.result
if is_placeholder(pair):
    raise NotAttempted("bert_corrupt gave nothing. Not written yet, or no `return`?")
demand(
    isinstance(pair, tuple | list) and len(pair) == 2,
    "Return two tensors: the inputs and the labels.",
)
demand(
    not seen.moved_random,
    "You drew from (or seeded) the global random state, so any draw elsewhere would change "
    "the corruption. Give `generator=generator` to each function that draws.",
)
calls = [(ids, no_special, g) for g in (first, again, other, first)]
one, two, three, four = (torch.as_tensor(pair[0]) for pair in each(bert_corrupt, calls))
demand(
    torch.equal(one, two),
    "Two generators in the same state gave two corruptions. Is there a source of chance "
    "that is not the generator?",
)
demand(
    not torch.equal(one, three),
    "Two generators with different seeds gave the same corruption. Draw from the generator "
    "that you are given, and do not seed it.",
)
demand(
    not torch.equal(one, four),
    "Called twice with the same generator, you gave the same corruption twice: every epoch "
    "would look alike. Draw from the generator itself, not from a fresh copy.",
)
print("✓ L4.1 bert_corrupt: all chance comes from the generator")

# %% [markdown]
# The fourth: rows so short that the draws often choose nothing.

# %% test="L4_1_corrupt__short" points=1
from random import SystemRandom

import torch

from course_lib.teaching.check import NotAttempted, demand
from course_lib.teaching.plain import is_placeholder

generator = torch.Generator().manual_seed(SystemRandom().getrandbits(40))
ids = torch.randint(5, 21, (20_000, 6), generator=generator)
special_mask = torch.ones(ids.shape, dtype=torch.bool)
special_mask[1:, [1, 4]] = False  # two ordinary tokens a row, none in the first
ids[special_mask] = 0
pair = bert_corrupt(ids, special_mask, generator)
if is_placeholder(pair):
    raise NotAttempted("bert_corrupt gave nothing. Not written yet, or no `return`?")
demand(
    isinstance(pair, tuple | list) and len(pair) == 2,
    "Return two tensors: the inputs and the labels.",
)
scored = torch.as_tensor(pair[1]) != -100
demand(
    not scored[special_mask].any(),
    "M13: You chose a special token in a short row. A row that has only those stays "
    "without a choice.",
)
demand(
    scored[1:].any(1).all(),
    "M14: In some short rows nothing was chosen, so they have no loss. Where the draws "
    "choose nothing, one ordinary token must be chosen all the same.",
)
left, right = scored[1:, 1].double().mean(), scored[1:, 4].double().mean()
demand(
    abs(left - right) < 0.04,
    "In short rows one place is chosen more often than the other. Where the draws choose "
    "nothing, every ordinary token must have an equal chance.",
)
demand(
    (scored.sum(1) == 2).double().mean() < 0.11,
    "Both tokens of a row are chosen too often. The extra choice is only for rows in which "
    "the draws chose nothing.",
)
print("✓ L4.1 bert_corrupt: at least one token in every row, and evenly")

# %% [markdown]
# ## L4.2 Why the two tens?
#
# Masking all that is chosen would be simpler. To see what the other 20% are for, train with and without
# them and look *where* the models differ.
#
# A model puts out a distribution at every position, asked or not. Write a function that sorts its
# surprise at the **original** token by what the model saw at that position:
#
# 1. `[MASK]`;
# 2. the original token, in plain sight;
# 3. another token in its place: it was swapped.
#
# `log_probs` is $(B, T, V)$ and natural-logarithmic, `ids` $(B, T)$ are the original tokens, `inputs`
# $(B, T)$ what the model read. Return three averages in nats, in this order. Every kind occurs.

# %% answer="L4_2_sight"
def loss_by_sight(log_probs, ids, inputs):
    """Mean surprise at the original where the model saw [MASK], it, or another."""
    ### BEGIN SOLUTION
    surprise = -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    hidden = inputs == MASK_ID
    in_sight = inputs == ids
    swapped = ~hidden & ~in_sight
    return [surprise[kind].mean().item() for kind in (hidden, in_sight, swapped)]
    ### END SOLUTION

# %% test="L4_2_sight" points=1
import torch

from course_lib.teaching.check import check

probs = torch.full((1, 5, 21), 0.01)
probs[0, range(5), [5, 6, 7, 8, 9]] = torch.tensor([0.5, 0.25, 0.8, 0.4, 0.1])
example = probs.log(), torch.tensor([[5, 6, 7, 8, 9]]), torch.tensor([[1, 6, 7, 12, 1]])
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import log
from random import SystemRandom

draw = SystemRandom()


def groups(log_probs, ids, inputs, scored):
    nats = -log_probs.double().gather(-1, scored[..., None])[..., 0]
    hidden, same = inputs == 1, inputs == ids
    return nats, [hidden, same, ~hidden & ~same]


def right(log_probs, ids, inputs):
    nats, kinds = groups(log_probs, ids, inputs, ids)
    return [nats[kind].mean().item() for kind in kinds]


def lures(log_probs, ids, inputs):
    nats, kinds = groups(log_probs, ids, inputs, ids)
    hidden, same, swapped = means = right(log_probs, ids, inputs)
    shown, _ = groups(log_probs, ids, inputs, inputs)
    probs = nats.neg().exp()
    return {
        "You scored the token that the model saw. Score the original one.":
            [shown[kind].mean().item() for kind in kinds],
        "You scored the token that the model saw in the third group. Score the original one.":
            [hidden, same, shown[kinds[2]].mean().item()],
        "Those are sums. Average over the positions of each kind.":
            [nats[kind].sum().item() for kind in kinds],
        "You divided by all positions. Divide by how many there are of each kind.":
            [(nats * kind).mean().item() for kind in kinds],
        "Two kinds are in the wrong order: [MASK], in plain sight, swapped.": [hidden, swapped, same],
        "The kinds are in the wrong order: [MASK], in plain sight, swapped.": [same, hidden, swapped],
        "The third kind includes the masked positions. A [MASK] is no swapped word.":
            [hidden, same, nats[~kinds[1]].mean().item()],
        "The second kind includes the swapped positions. There the model saw another word.":
            [hidden, nats[~kinds[0]].mean().item(), swapped],
        "M6: That is in bits. The log-probabilities are natural: do not divide by ln 2.":
            [mean / log(2) for mean in means],
        "The sign is wrong: a surprise is minus the logarithm.": [-mean for mean in means],
        "Those are average probabilities. Average the surprises, −log_probs.":
            [probs[kind].mean().item() for kind in kinds],
    }


diagnose(loss_by_sight(*example), right=right(*example), wrong=lures(*example), public="L4.2 loss_by_sight")
cases = []
for _ in range(4):
    b, t = draw.randint(3, 6), draw.randint(8, 15)
    ids = torch.tensor([[draw.randint(5, 20) for _ in range(t)] for _ in range(b)])
    log_probs = torch.tensor([draw.gauss(0, 2) for _ in range(b * t * 21)]).view(b, t, 21).log_softmax(-1)
    seen = torch.tensor([draw.choice("mssx") == "m" for _ in range(b * t)]).view(b, t)
    swap = torch.tensor([draw.random() < 0.3 for _ in range(b * t)]).view(b, t)
    inputs = torch.where(seen, 1, torch.where(swap, 5 + (ids - 4) % 16, ids))
    inputs[0, :3] = torch.stack([torch.tensor(1), ids[0, 1], 5 + (ids[0, 2] - 4) % 16])
    cases.append((log_probs, ids, inputs))
for case, losses in zip(cases, each(loss_by_sight, cases)):
    diagnose(losses, right=right(*case), wrong=lures(*case), what="loss_by_sight on other inputs")
### END HIDDEN TESTS
check("L4.2 loss_by_sight", loss_by_sight, *example)

# %% [markdown]
# ### An experiment: three recipes
#
# Three small transformers, equal at the start, are trained on the same texts. Only the recipe differs:
# what becomes of a chosen token, in percent `[MASK]` / random / kept, is 100/0/0, 80/0/20 or
# 80/10/10. Then all read the same new text, in which 1 token in 20 is masked and 1 in 20 is swapped.
#
# **Predict first:** the model trained with 100/0/0 was only ever scored at `[MASK]`s. For the tokens
# that stand there *in plain sight*, how many nats does it pay, on average? For comparison: knowing
# only how frequent each word is costs 2.6 nats. Any number earns the point.

# %% answer="L4_2_prediction"
predicted_nats = (
    ### BEGIN SOLUTION
    0.1
    ### END SOLUTION
)

# %% locked="L4_2_experiment" tags=["nbval-ignore-output"]
RECIPES = {
    "100/0/0": (1.0, 0.0, 0.0),
    "80/0/20": (0.8, 0.0, 0.2),
    "80/10/10": (0.8, 0.1, 0.1),
}
# a small language: each word depends strongly on the one before it
GRAMMAR = torch.Generator().manual_seed(7)
WORLD = MarkovWorld.random(16, generator=GRAMMAR, sharpness=3.0)


def trained(split, steps=80):
    generator = torch.Generator().manual_seed(2)
    model = TinyTransformer(
        VOCAB_SIZE, d_model=32, n_layers=1, n_heads=2, max_length=8, generator=generator
    )
    texts = WORLD.sample(128 * steps, 8, generator=generator) + FIRST_WORD
    batches = (
        masked_lm(
            ids,
            vocab_size=VOCAB_SIZE,
            mask_id=MASK_ID,
            special_ids=range(FIRST_WORD),
            split=split,
            generator=generator,
        )
        for ids in texts.split(128)
    )
    train(model, batches, steps=steps, lr=1e-2, progress=False)
    return model.eval()


def new_text():
    generator = torch.Generator().manual_seed(5)
    ids = WORLD.sample(2_000, 8, generator=generator) + FIRST_WORD
    fate = torch.rand(ids.shape, generator=generator)
    step = torch.randint(1, 16, ids.shape, generator=generator)
    swapped = FIRST_WORD + (ids - FIRST_WORD + step) % 16  # always another word
    inputs = torch.where(fate < 0.10, swapped, ids)
    return ids, inputs.masked_fill(fate < 0.05, MASK_ID)


def measure_recipes():
    ids, inputs = new_text()
    for recipe, split in RECIPES.items():
        model = trained(split)
        with torch.no_grad():
            log_probs = model(inputs).log_softmax(-1)
        measured[recipe] = list(map(float, loss_by_sight(log_probs, ids, inputs)))
    return round(measured["100/0/0"][1], 2)


measured = {}
nats_in_sight = predict("L4.2", predicted_nats, measure_recipes)

figure, axes = new_figure(6, 2.8)
looks = {
    "[MASK]": ("#56B4E9", ""),
    "in plain sight": ("#009E73", "//"),
    "swapped": ("#D55E00", ".."),
}
for k, (sight, (colour, hatch)) in enumerate(looks.items()):
    heights = [losses[k] for losses in measured.values()]
    places = [recipe + 0.27 * (k - 1) for recipe in range(len(RECIPES))]
    bars = axes.bar(places, heights, 0.25, color=colour, hatch=hatch, label=sight)
    axes.bar_label(bars, fmt="%.2f")
axes.set(xlabel="recipe: [MASK] / random / kept", ylabel="nats for the original")
axes.set_xticks(range(len(RECIPES)), RECIPES)
axes.margins(y=0.12)
axes.legend(title="the input shows", frameon=False, bbox_to_anchor=(1, 1))
alt = "Nats for the original token."
for recipe, losses in measured.items():
    alt += f" {recipe}: "
    alt += ", ".join(f"{sight} {nats:.2f}" for sight, nats in zip(looks, losses)) + "."
Picture(figure, alt)

# %% test="L4_2_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

demand(
    kind(predicted_nats) == "a number",
    "L4.2 prediction: write a number, any number, first.",
)
print("✓ L4.2 prediction: noted")

# %% [markdown]
# Read the figure. Which recipe pays the least for tokens in plain sight, which the most for them, and
# which the most for tokens that were swapped? Answer with the names of the recipes.

# %% answer="L4_2_readings"
least_in_sight = (
    ### BEGIN SOLUTION
    "80/0/20"
    ### END SOLUTION
)
most_in_sight = (
    ### BEGIN SOLUTION
    "100/0/0"
    ### END SOLUTION
)
most_swapped = (
    ### BEGIN SOLUTION
    "80/0/20"
    ### END SOLUTION
)

# %% test="L4_2_readings" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(least_in_sight, right="80/0/20", public="L4.2 least in plain sight", wrong={
    "This recipe never scores a token that can be seen. Look at the middle bars once more.": "100/0/0",
    "About half of the words that this model is asked about and can see are wrong, so it may trust them "
    "only by half. There is a recipe with more reason for trust.": "80/10/10",
})
diagnose(most_in_sight, right="100/0/0", public="L4.2 most in plain sight", wrong={
    "This recipe scores words in plain sight, and what is asked then is always what stands there. Another "
    "recipe never asks.": "80/0/20",
    "This recipe pays for its doubts, but it has learnt to use the token it sees. Another recipe has "
    "not.": "80/10/10",
})
diagnose(most_swapped, right="80/0/20", public="L4.2 most for swapped tokens", wrong={
    "This model makes little use of the word it sees, so a wrong one does not mislead it most.": "100/0/0",
    "This model was asked about swapped words in training and knows that what it sees may be wrong.":
        "80/10/10",
})
### END HIDDEN TESTS
check("L4.2 least in plain sight", least_in_sight)
check("L4.2 most in plain sight", most_in_sight)
check("L4.2 most for swapped tokens", most_swapped)

# %% [markdown]
# A colleague pretrains with 100/0/0. Then she puts a small classifier on the model's output vectors to
# tag each word of ordinary sentences as a person, a place or neither. Which worry fits what you have
# measured? Answer with a letter.
#
# - **a** None: each word is in the input, so the output vector at its place must represent it.
# - **b** In pretraining nothing was ever asked at a place that shows a word, so the vectors that come
#   out there need not represent that word.
# - **c** Without the two tens the model learns less from context, so it is worse at filling in masks.
# - **d** The model has learnt to copy the word it sees and ignores the words around it.

# %% answer="L4_2_choice"
worry = (
    ### BEGIN SOLUTION
    "b"
    ### END SOLUTION
)

# %% test="L4_2_choice" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(worry, right="b", public="L4.2 worry", wrong={
    "The word does go in, but nothing in training rewards the model for carrying it to the output of "
    "its place. Compare what 100/0/0 pays in plain sight with what it pays at [MASK].": "a",
    "Compare the bars for [MASK]: they are much the same for all three recipes. The trouble is "
    "elsewhere.": "c",
    "That describes 80/0/20: its bar for tokens in plain sight is low, its bar for swapped ones high. What "
    "do these two say about 100/0/0?": "d",
})
### END HIDDEN TESTS
check("L4.2 worry", worry)

# %% [markdown]
# ### In your own words
#
# Write one paragraph for a colleague who wants to drop the two tens. What is different between
# pretraining and later use? What goes wrong with the model's output, at which positions? What do the
# *kept* tokens mend, and what do the *random* ones mend that the kept ones alone would not? Use
# numbers that you have measured. And be fair: how far does the argument reach?

# %% [markdown] written="L4_2_words" points=2
# ### BEGIN SOLUTION
# Text in later use has no `[MASK]`, but a model trained with 100/0/0 was only ever scored where it saw
# one. So nothing makes its output at an ordinary word represent that word: in my run it paid 1.7 nats
# for words in plain sight, more than for hidden ones (1.3). Tokens that are chosen but kept
# put a question at visible words too, and with 80/0/20 their loss falls to 0.2. But then the best
# answer is always the word that is seen, so the model copies blindly and pays 2.6 nats where the word
# was swapped. With the random words it cannot tell whether what it sees is right, has to weigh it against
# the context at every position, and pays less than 1.4 in both cases. The argument has limits: these
# are output losses of tiny models; fine-tuning moves all weights and can repair much of the
# mismatch, and BERT's own ablation found small differences, mostly where the features stayed frozen.
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# Five things to find; four or five give 2 points, two or three give 1 point.
#
# 1. the mismatch: no `[MASK]` in the text of later use, and with 100/0/0 only `[MASK]` positions were
#    ever scored;
# 2. which representation: the output at positions that show an ordinary word (not that at masks);
# 3. what each ten does: kept tokens put a question at visible words; random ones forbid plain copying,
#    so that the word must be weighed against its context;
# 4. at least one measured number, used rightly (for instance, in plain sight about 1.7 nats with
#    100/0/0 against about 0.2 with 80/0/20, or what 80/0/20 pays for swapped words);
# 5. a limit: tiny models, or fine-tuning adapts the weights, or an effect that is small in practice
#    (Devlin et al. 2019, appendix C.2: small after fine-tuning, larger with frozen features).
#
# "It makes the task harder" or "it is regularisation" alone gives no point.
# ### END MARK SCHEME

# %% [markdown]
# ## L4.3 A span, or single tokens?
#
# T5 takes whole runs of tokens out of a text. For each run, a **sentinel** stands in the inputs, a token
# that means "here something is missing". The targets name each sentinel and say what was there:

# %% locked="L4_3_picture"
def cells(text, noise="old cat mat"):
    def look(token):
        special = token.startswith(("<", "["))
        return "special" if special else "changed" if token in noise.split() else "kept"

    return [(token, look(token)) for token in text.split()]


TokenStrip({
    "text": cells("the old cat sat on my red mat ."),
    "inputs": cells("the <extra_id_0> sat on my red <extra_id_1> . [EOS]"),
    "targets": cells("<extra_id_0> old cat <extra_id_1> mat [EOS]"),
})

# %% [markdown]
# ### Put it in order
#
# These steps build inputs and targets in one walk through the text. Three of the six make it go wrong or
# are not needed; put the other **three**, and only these, in the right order. Answer with their letters,
# such as `"ABC"`.
#
# - **A** After the last token: append `[EOS]` to the inputs and to the targets.
# - **B** For each token that is noise: append the next sentinel to the inputs and to the targets.
# - **C** For each token that is noise and is the *first* of its run: append the next sentinel to the
#   inputs and to the targets.
# - **D** For each token that is noise and is the *last* of its run: append the next sentinel to the
#   inputs and to the targets.
# - **E** For the same token: append it to the targets if it is noise, to the inputs otherwise.
# - **F** For the same token: append it to the targets, and to the inputs if it isn't noise.

# %% answer="L4_3_steps"
steps = (
    ### BEGIN SOLUTION
    "CEA"
    ### END SOLUTION
)

# %% test="L4_3_steps" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

AFTER = ("M15: Then the sentinel follows its run in the targets. Compare the picture: a decoder reads the "
         "sentinel first, to know which gap to fill.")
EACH = "M15: Then every missing token has its own sentinel. A run has one, however long it is."
WHOLE = "Then the targets hold the whole text. T5's hold only what is missing; compare the picture."
diagnose(steps, right="CEA", public="L4.3 steps", wrong={
    AFTER: "EDA",
    "M15: With the sentinel at the last token of a run, the others of the run are in the targets before "
    "it.": "DEA",
    EACH: "BEA",
    "M15: Then the first token of a run is in the targets before its sentinel. Which comes first?": "ECA",
    WHOLE: "CFA",
    "The end comes last: [EOS] stands after everything else.": "ACE",
    "Nothing ends the two sequences. Three steps are needed.": "CE",
})
### END HIDDEN TESTS
check("L4.3 steps", steps)

# %% [markdown]
# ### Write it
#
# `ids` is a list of token ids and `noise` a list of `True`/`False`, one for each token. Return
# `(inputs, targets)`, two lists of ids.
#
# - A span is a run of noise that is as long as possible, so two spans never touch. Span number $i$, from
#   0 on, has the sentinel `FIRST_SENTINEL - i`: T5's sentinels count down.
# - Inputs and targets both end in `EOS_ID`. That also holds where all tokens are noise, or none.
# - **A convention:** some end the targets in one more sentinel, before EOS. The figure of the T5 paper
#   shows it; T5's code writes it only where a text ends in tokens that were kept. Here there is none:
#   EOS says enough.
#
# Whatever the noise, nothing may get lost: from the pair one can restore the text.

# %% answer="L4_3_corrupt"
def span_corrupt(ids, noise):
    """T5's inputs and targets for one text and its noise mask."""
    ### BEGIN SOLUTION
    inputs, targets, spans = [], [], 0
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL - spans)
            targets.append(FIRST_SENTINEL - spans)
            spans += 1
        (targets if noise[i] else inputs).append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]
    ### END SOLUTION

# %% test="L4_3_corrupt" points=2
from course_lib.teaching.check import check

ids, hidden = [5, 7, 9, 13, 15, 17, 8, 12, 20], [0, 1, 1, 0, 0, 1, 0, 0, 1]
example = ids, [bool(noise) for noise in hidden]
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import NotAttempted, demand, diagnose, each
from course_lib.teaching.plain import is_placeholder, kind, plain
from itertools import product
from random import SystemRandom

draw = SystemRandom()


def pair_of(ids, noise, sentinel=lambda span, i: 99 - span, each_token=False, after=False, flush=True,
            bare_inputs=False, whole=False, ends=([3], [3]), closing=""):
    """Inputs and targets; the arguments are the ways in which they can go wrong."""
    inputs, targets, span, last = [], [], -1, len(ids) - 1
    for i, (token, hidden) in enumerate(zip(ids, noise)):
        starts = hidden and (each_token or i == 0 or not noise[i - 1])
        stops = hidden and (each_token or i == last or not noise[i + 1])
        span += starts
        if starts:
            inputs.append(sentinel(span, i))
            targets += [] if after else [sentinel(span, i)]
        if hidden or whole:
            targets.append(token)
        if not hidden:
            inputs.append(token)
        if stops and after:
            targets.append(sentinel(span, i))
    if not flush and noise[last]:  # the last span never left its buffer
        run = next((k for k in range(len(ids)) if not noise[last - k]), len(ids))
        targets = targets[: len(targets) - run - 1]
    if closing == "always" or (closing == "T5's code" and not noise[last]):
        targets.append(99 - span - 1)
    return [inputs + ends[0], targets + ends[1]]


WAYS = {
    "M15: Every noise token has a sentinel of its own. A run has one, however long it is.":
        dict(each_token=True),
    "M15: All spans have the same sentinel, so nobody can tell which words belong into which gap. "
    "Span i has FIRST_SENTINEL - i.": dict(sentinel=lambda span, i: 99),
    "M15: You put [MASK] where T5 has sentinels. Span i has FIRST_SENTINEL - i.":
        dict(sentinel=lambda span, i: 1),
    "M15: Your sentinels count up. T5's count down: span i has FIRST_SENTINEL - i.":
        dict(sentinel=lambda span, i: 99 + span),
    "M15: Your sentinels are numbered from 1. The first span has FIRST_SENTINEL itself.":
        dict(sentinel=lambda span, i: 98 - span),
    "M15: Your sentinels are numbered by position. Number the spans: 0, 1, 2, ...":
        dict(sentinel=lambda span, i: 99 - i),
    "M15: The sentinel follows its span in the targets. It must come first, to say which gap is filled.":
        dict(after=True),
    "The last span is lost where the text ends in noise. What happens in your loop when no kept token "
    "follows to end the span?": dict(flush=False),
    "The targets hold the whole text. They name only what is missing.": dict(whole=True),
    "EOS is missing, in inputs and targets.": dict(ends=([], [])),
    "EOS is missing in the inputs.": dict(ends=([], [3])),
    "EOS is missing in the targets.": dict(ends=([3], [])),
    "Your targets end in one more sentinel. In this notebook they do not: EOS says enough.":
        dict(closing="always"),
    "Your targets end in one more sentinel where the text ends in kept tokens, as in T5's code. In this "
    "notebook they do not.": dict(closing="T5's code"),
}


def fault(ids, noise, inputs, targets):
    """What is wrong with this pair, in a way of its own."""
    if inputs[-1:] != [3] or targets[-1:] != [3]:
        return "Inputs and targets must both end in one EOS_ID."
    marks = [[id for id in side if id > 60] for side in (inputs, targets)]
    if marks[0] != marks[1]:
        return "M15: Inputs and targets must have the same sentinels, in the same order."
    if marks[0] != [99 - k for k in range(len(marks[0]))]:
        return "M15: The sentinels must be FIRST_SENTINEL, FIRST_SENTINEL - 1, ... from left to right."
    spans, text = {}, []
    for id in targets[:-1]:
        if id > 60:
            spans[id] = []
        elif not spans:
            return "M15: The targets must begin with the first sentinel: it says where the words belong."
        else:
            spans[list(spans)[-1]].append(id)
    for id in inputs[:-1]:
        text += spans.get(id, [id])
    if text != ids:
        return "With each span put back at its sentinel, the text is not restored."
    return "Is every kept token in the inputs and every noise token in the targets, each run as one span?"


cases = []
for n in range(2, 9):  # every mask that begins with a kept token and has noise
    for noise in product([False, True], repeat=n - 1):
        if any(noise):
            cases.append((draw.sample(range(5, 60), n), [False, *noise]))
pairs = plain(each(span_corrupt, cases))
if is_placeholder(pairs[0]):
    raise NotAttempted("span_corrupt gave nothing. Not written yet, or no `return`?")
demand(all(kind(pair) == "a list" and list(map(kind, pair)) == ["a list"] * 2 for pair in pairs),
       "Return two lists of ids: the inputs and the targets.")
pairs = [[list(side) for side in pair] for pair in pairs]
for sentence, way in {"": {}, **WAYS}.items():
    if pairs == [pair_of(*case, **way) for case in cases]:
        demand(not sentence, sentence)
        break
else:
    for case, pair in zip(cases, pairs):
        mask = "".join("01"[hidden] for hidden in case[1])
        demand(pair == pair_of(*case), f"{fault(*case, *pair)} (Try the noise mask {mask}.)")
diagnose(span_corrupt(*example), right=pair_of(*example), public="L4.3 span_corrupt",
         wrong={sentence: pair_of(*example, **way) for sentence, way in WAYS.items()})
### END HIDDEN TESTS
check("L4.3 span_corrupt", span_corrupt, *example)

# %% [markdown]
# And the edges: texts that begin with noise, texts of noise alone or without any, texts of one token.

# %% test="L4_3_corrupt__edges" points=1
from course_lib.teaching.check import NotAttempted, demand, each
from course_lib.teaching.plain import is_placeholder, kind, plain

cases = [
    ([5, 6, 7, 8], [True, True, False, True]),
    ([5, 6, 7], [True, True, True]),
    ([5, 6, 7], [False, False, False]),
    ([5], [True]),
    ([5], [False]),
]
### BEGIN HIDDEN TESTS
from itertools import product
from random import SystemRandom

for n in range(1, 9):  # every mask that begins with noise
    for noise in product([False, True], repeat=n - 1):
        cases.append((SystemRandom().sample(range(5, 60), n), [True, *noise]))
### END HIDDEN TESTS
pairs = plain(each(span_corrupt, cases))
if is_placeholder(pairs[0]):
    raise NotAttempted("span_corrupt gave nothing. Not written yet, or no `return`?")
for (ids, noise), pair in zip(cases, pairs):
    demand(
        kind(pair) == "a list" and list(map(kind, pair)) == ["a list", "a list"],
        "Return two lists of ids: the inputs and the targets.",
    )
    inputs, targets = map(list, pair)
    n, mask = len(ids), "".join("01"[hidden] for hidden in noise)
    spans = mask.replace("0", " ").split()
    where = f"(Try the noise mask {mask}.)"
    demand(
        inputs[-1:] == [3] and targets[-1:] == [3],
        f"Inputs and targets must end in EOS_ID. {where}",
    )
    demand(
        not spans or targets[0] == 99,
        "M15: The targets must begin with the first sentinel, also where the text begins "
        f"with noise. {where}",
    )
    demand(
        len(inputs) + len(targets) == n + 2 * len(spans) + 2,
        f"The lengths must add up to {n} + 2 · {len(spans)} + 2: each token once, each "
        f"sentinel and EOS twice. {where}",
    )
    demand(
        [id for id in inputs if id > 60] == [id for id in targets if id > 60],
        f"M15: Inputs and targets must have the same sentinels. {where}",
    )
    stays = [id for id, hidden in zip(ids, noise) if not hidden]
    demand(
        [id for id in inputs if id < 60] == [*stays, 3],
        f"The inputs must hold the kept tokens in order. {where}",
    )
    gone = [id for id, hidden in zip(ids, noise) if hidden]
    demand(
        [id for id in targets if id < 60] == [*gone, 3],
        f"The targets must hold the noise in order. {where}",
    )
print("✓ L4.3 span_corrupt: right at the edges")

# %% [markdown]
# ### How long?
#
# T5 turns 15% of a text into noise, in spans of 3 tokens on average. Of 512 tokens that makes 77, since
# 0.15 · 512 = 76.8 is rounded, in 26 spans, since 77 / 3 = 25.7 is rounded too. How long are the inputs
# and the targets, EOS included?

# %% answer="L4_3_lengths"
input_length = (
    ### BEGIN SOLUTION
    512 - 77 + 26 + 1
    ### END SOLUTION
)
target_length = (
    ### BEGIN SOLUTION
    77 + 26 + 1
    ### END SOLUTION
)

# %% test="L4_3_lengths" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(input_length, right=462, public="L4.3 input length", wrong={
    "You forgot EOS.": 461,
    "You forgot the sentinels: one for each span.": 436,
    "You forgot the sentinels, one for each span, and EOS.": 435,
    "M15: You counted a sentinel for each noise token. It is one for each span.": 513,
    "You subtracted the noise, but where do the sentinels come in? They are added, not taken away.": 410,
    "You counted the noise as well. It moves to the targets.": 539,
})
diagnose(target_length, right=104, public="L4.3 target length", wrong={
    "You forgot EOS.": 103,
    "You forgot the sentinels: one for each span.": 78,
    "You forgot the sentinels, one for each span, and EOS.": 77,
    "M15: You counted a sentinel for each noise token. It is one for each span.": 155,
    "You counted one more sentinel at the end. In this notebook there is none.": 105,
    "The targets hold only what is missing, not the whole text.": 539,
})
### END HIDDEN TESTS
check("L4.3 input length", input_length)
check("L4.3 target length", target_length)

# %% locked="L4_3_backwards"
longest, target = span_lengths(512)
print("T5 plans backwards. For inputs that fill exactly 512 places it cuts its texts into")
print(f"pieces of {longest} tokens, whose targets then have {target}. The decoder writes {target}")
print(f"tokens, not {longest}: that makes span corruption cheap to train.")

# %% [markdown]
# ### An experiment: two cities
#
# Take a world in which only two names exist, `New York` and `Los Angeles`, equally often. The text says
# `We flew to ___ ___ .` and both words are hidden. Two models know this world perfectly:
#
# - a masked LM, which sees `[MASK] [MASK]` and puts out one distribution for each mask. We
#   draw a word from each;
# - a span decoder, which writes the first word and reads it before it writes the second.
#
# Each fills the gap 1,000 times. **Predict first:** what percentage of the masked LM's fillings are names
# that exist? Any number earns the point.

# %% answer="L4_3_prediction"
predicted_percent = (
    ### BEGIN SOLUTION
    50
    ### END SOLUTION
)

# %% locked="L4_3_experiment"
FIRST, SECOND = ("New", "Los"), ("York", "Angeles")


def fill(n, one_after_the_other):
    generator = torch.Generator().manual_seed(3)
    first, second = torch.randint(2, (2, n), generator=generator)
    if one_after_the_other:
        second = first  # whoever has read "New" knows the rest
    names = (f"{FIRST[i]} {SECOND[j]}" for i, j in zip(first.tolist(), second.tolist()))
    return dict(sorted(Counter(names).items()))


fillings = {}


def compare_fillings():
    fillings["masked LM"] = fill(1_000, one_after_the_other=False)
    fillings["span decoder"] = fill(1_000, one_after_the_other=True)
    names = fillings["masked LM"]
    return (names["New York"] + names["Los Angeles"]) / 10


percent_real = predict("L4.3", predicted_percent, compare_fillings)
for model, names in fillings.items():
    listed = ", ".join(f"{name} {count}" for name, count in names.items())
    print(f"{model:>12}: {listed}")
print("Each of the masked LM's two distributions is right, and yet")
print(f"{100 - percent_real:.1f}% of the names that it says do not exist.")

# %% test="L4_3_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

demand(
    kind(predicted_percent) == "a number",
    "L4.3 prediction: write a number, any number, first.",
)
print("✓ L4.3 prediction: noted")

# %% [markdown]
# ### What it costs, exactly
#
# Now for any world of two words. `joint` is a $V \times V$ tensor: `joint[i, j]` is the probability that
# the first word is `i` and the second `j`. Return the expected loss of a perfect model, in nats **for the
# whole gap**, in three tasks:
#
# 1. *one mask*: only the second word is hidden, the first can be read;
# 2. *two masks*: both are hidden, and each is predicted from the rest of the text alone;
# 3. *a span*: both are hidden, and a decoder writes the first and then the second.
#
# Some names do not exist, so some entries are 0. What never happens costs nothing: 0 · ln 0 counts as 0.

# %% answer="L4_3_losses"
def gap_losses(joint):
    """Expected nats for one mask, two masks, and a span of two words."""
    ### BEGIN SOLUTION
    def entropy(p):
        return torch.special.entr(p.double()).sum().item()

    first, second = entropy(joint.sum(1)), entropy(joint.sum(0))
    span = entropy(joint)  # by the chain rule: H(first) + H(second | first)
    return span - first, first + second, span
    ### END SOLUTION

# %% test="L4_3_losses" points=1
import torch

from course_lib.teaching.check import check

two_cities = torch.tensor([[0.5, 0.0], [0.0, 0.5]])
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import NotAttempted, demand, diagnose, each
from course_lib.teaching.plain import is_placeholder, kind, plain
from math import isnan, log
from random import SystemRandom

draw = SystemRandom()


def h(p):
    return torch.special.entr(p.double()).sum().item()


def lures(joint):
    first, second, span = h(joint.sum(1)), h(joint.sum(0)), h(joint)
    right = span - first, first + second, span
    return right, {
        "M22: You gave two masks the cost of the pair. Each mask is filled without knowing the other, so "
        "their costs are those of the single words.": (span - first, span, span),
        "M22: You gave the span the cost of two separate masks. The decoder reads the first word before it "
        "writes the second.": (span - first, first + second, first + second),
        "You gave one mask the cost of a word without any context. The first word can be read.":
            (second, first + second, span),
        "In the first task the *second* word is hidden and the first can be read.":
            (span - second, first + second, span),
        "Those are costs per word. Give them for the whole gap.":
            (span - first, (first + second) / 2, span / 2),
        "M6: You used bits (log base 2); the course measures in nats.": tuple(x / log(2) for x in right),
        "The sign is wrong: an expected surprise is never negative.": tuple(-x for x in right),
        "The tasks are in another order: one mask, two masks, a span.": (span - first, span, first + second),
    }


def refuse_nan(losses):
    if is_placeholder(losses):
        raise NotAttempted("gap_losses gave nothing. Not written yet, or no `return`?")
    values = plain(losses)
    numbers = values if kind(values) == "a list" else [values]
    demand(not any(kind(x) == "a number" and isnan(x) for x in numbers),
           "Some of your losses are not a number: 0 · ln 0 came out as NaN. Count what never happens as 0.")


def random_joint():
    rows, columns = draw.randint(3, 6), draw.randint(3, 6)
    weights = torch.tensor([[draw.expovariate(1) for _ in range(columns)] for _ in range(rows)])
    weights[0, 0] = weights[1, 2] = 0
    return weights / weights.sum()


losses = gap_losses(two_cities)
refuse_nan(losses)
# two cities alone cannot tell which word is read: that is what the random worlds are for
right, wrong = lures(two_cities)
diagnose(losses, right=right, wrong=wrong, public="L4.3 gap_losses")
joints = [random_joint() for _ in range(6)]
for joint, losses in zip(joints, each(gap_losses, [(joint,) for joint in joints])):
    refuse_nan(losses)
    right, wrong = lures(joint)
    diagnose(losses, right=right, wrong=wrong, what="gap_losses in other worlds")
### END HIDDEN TESTS
check("L4.3 gap_losses", gap_losses, two_cities)

# %% [markdown]
# Three masks stand for the three words `New York City`, and a masked LM fills all of them at once. What
# does it model? Answer with a letter.
#
# - **a** The probability of the three words together.
# - **b** For each mask, how probable each word is given the visible text, whatever the other two
#   masks become.
# - **c** For each mask, how probable each word is given the visible text and the words to its left, those
#   just filled in among them.
# - **d** Nothing: for a gap of several words a masked LM can do no better than an even guess.

# %% answer="L4_3_choice"
three_masks = (
    ### BEGIN SOLUTION
    "b"
    ### END SOLUTION
)

# %% test="L4_3_choice" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(three_masks, right="b", public="L4.3 three masks", wrong={
    "M22: Then it would never have said New Angeles. A product of separate distributions is not the "
    "distribution of the whole.": "a",
    "M22: That is the span decoder, which reads what it has written. All masks are filled from the same "
    "input, in which all of them still are masks.": "c",
    "Even with both words hidden, the masked LM knew that New and Los are the only first words. The visible "
    "text around a gap still tells something.": "d",
})
### END HIDDEN TESTS
check("L4.3 three masks", three_masks)

# %% [markdown]
# ### In your own words
#
# `We saw New York City .` Compare two tasks: `We saw New [MASK] City .`, and one sentinel for all three
# words. What does each force a model to do, which demands more, and why? Use what `gap_losses` says about
# the two cities. (Four or five sentences.)

# %% [markdown] written="L4_3_words" points=1
# ### BEGIN SOLUTION
# `New [MASK] City` can be solved from the two neighbours alone: in the world of two cities the single mask
# costs 0 nats once the first word can be read. A sentinel for the whole phrase takes that crutch away. The
# model has to find from the wider context which phrase fits, even how long it is, and to write its
# words so that they agree with each other, each given the ones before. That is more to predict: ln 2 =
# 0.69 nats for the gap instead of 0, and never less, since the span contains the single word and shows
# less. Separate masks for all words would not ask for that agreement: they cost 2 ln 2, and half of
# the names they say do not exist.
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# One point for two of these three, none for one:
#
# 1. the single mask leaves a local crutch: the neighbours nearly decide the word (0 nats in the two-city
#    world);
# 2. the span takes it away: more must be found from the wider context, and the words must fit together,
#    written one after the other (ln 2 for the gap);
# 3. the comparison with separate masks: they ignore each other (2 ln 2, New Angeles), a decoder does not.
#
# "Spans are harder because they are longer" alone gives no point. That a decoder guesses a *length* too is
# a good addition, not required.
# ### END MARK SCHEME
