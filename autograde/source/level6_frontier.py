# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
#   language_info: {name: python}
# ---

# %% [markdown]
# # Frontier · What a real run adds
#
# Levels 1 to 5 are complete in themselves. This one is a bonus: its checks and points are there for
# you and enter no grade. It goes where papers and training code go, in five steps:
#
# | | what you do |
# |---|---|
# | **L6.1** spans by the million | corrupt faster than a GPU can train, and find T5's odd number 568 |
# | **L6.2** infilling | BART's noise, in which one mask may hide nothing at all |
# | **L6.3** masked diffusion | write texts with a masked model, and see what speed costs |
# | **L6.4** an honest mean | four ways in which a training loop reports a wrong loss |
# | **L6.5** an honest comparison | windows over a long text; two tokenizers, one text |
#
# About 75 minutes. As before, replace each `...`, run the cell below it, and ask `hint("L6.1")` in a new
# cell after a try.

# %% locked="L6_setup"
import math
import time

import torch

from course_lib.corruption import span_corrupt, text_infill
from course_lib.oracle import MarkovWorld
from course_lib.perplexity import Perplexity
from course_lib.teaching.check import hint, predict
from course_lib.teaching.show import BLUE, ORANGE, Picture, new_figure
from course_lib.text import byte_lengths, stdlib_prose, train_bpe, train_characters

device = "cuda" if torch.cuda.is_available() else "cpu"

# %% locked="L6_cards"
from course_lib.teaching.cards import cards

cards("level6_frontier")

# %% [markdown]
# ## L6.1 Spans by the million
#
# Who trains on text draws new spans for every batch, so corrupting must be quicker than training. A loop
# over texts and tokens, as you wrote it in Level 4, is not. `span_corrupt` of `course_lib` has no
# loop: it draws the span lengths of a whole batch at once, and moves all tokens in a few tensor
# operations, on whatever device they live.
#
# **Predict first:** how many million tokens of text can it corrupt in a second here? Write one number.

# %% answer="L6_1_prediction"
predicted_millions = (
    ### BEGIN SOLUTION
    20
    ### END SOLUTION
)

# %% locked="L6_1_experiment" tags=["nbval-ignore-output", "timing"]
T5_IDS = {"first_sentinel": 32_099, "eos_id": 1, "pad_id": 0}


def millions_per_second(rows, length=512):
    ids = torch.randint(100, 32_000, (rows, length), device=device)
    generator = torch.Generator(device).manual_seed(0)
    best = math.inf
    for _ in range(4):
        start = time.perf_counter()
        span_corrupt(ids, generator=generator, **T5_IDS)
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return round(ids.numel() / best / 1e6, 1)


sizes = [1, 8, 64, 256] + ([2_048, 8_192] if device == "cuda" else [])
speeds = {}
predict("L6.1", predicted_millions, lambda: speeds.update(
    {rows: millions_per_second(rows) for rows in sizes}) or max(speeds.values()))
print(f"on {device}, texts of 512 tokens:")
for rows, speed in speeds.items():
    print(f"{rows:6,} texts at once  {speed:8.1f} million tokens/s")
print(f"""
One text at a time pays the fixed price of every operation for 512 tokens only. Training
takes about 6 operations for each parameter and token: a model of 100 million parameters
on a device that does 10^14 a second sees {1e14 / (6 * 1e8) / 1e6:.2f} million tokens. It is not the
corruption that it waits for.""")

# %% test="L6_1_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, kind

demand(not is_placeholder(predicted_millions),
       "L6.1 prediction: not attempted yet. Write a number before you run the experiment.")
demand(kind(predicted_millions) == "a number",
       "L6.1 prediction: write one number, in million tokens a second.")
print("✓ L6.1 prediction: noted")

# %% [markdown]
# T5's encoder reads 512 tokens. But spans make a text *shorter*: of a raw text of $L$ tokens, $n$ are
# taken out and $s$ sentinels put in, one for each span, and an EOS comes last. So raw texts longer than
# 512 should be cut, and T5's code computes how long: the answer is 568, with targets of 114 tokens.
#
# Do the same for any length. With T5's settings, $n$ is 15% of $L$, rounded, and $s$ is $n/3$, rounded.
# `raw_length(budget)` returns the largest $L$ whose **encoder input**, EOS included, has at most `budget`
# tokens, and the length of its **target**: the tokens taken out, their sentinels, and an EOS. Budgets
# have 16 to 4,000 tokens; Python's `round` will do.

# %% answer="L6_1_length"
def raw_length(budget):
    """(L, target length) of the longest raw text whose input fits into `budget` tokens."""
    ### BEGIN SOLUTION
    def lengths(raw):
        noise = round(raw * 0.15)
        spans = round(noise / 3)
        return raw - noise + spans + 1, noise + spans + 1

    raw = budget
    while lengths(raw + 1)[0] <= budget:
        raw += 1
    return raw, lengths(raw)[1]
    ### END SOLUTION

# %% test="L6_1_length" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from random import SystemRandom


def lengths(raw, eos=1, sentinels=True):
    noise = round(raw * 0.15)
    spans = round(noise / 3) if sentinels else 0
    return raw - noise + spans + eos, noise + spans + eos


def longest(budget, **how):
    raw = max(L for L in range(budget // 2, 2 * budget) if lengths(L, **how)[0] <= budget)
    return raw, lengths(raw, **how)[1]


def lures(budget):
    raw, target = longest(budget)
    return {
        "You left the sentinels out. One stands in the input for each span, and one in the target.":
            longest(budget, sentinels=False),
        "You left the EOS out. Both the input and the target end with one.": longest(budget, eos=0),
        "The raw text may be longer than the budget: taking spans out makes it shorter.":
            (budget, lengths(budget)[1]),
        "One more raw token would still fit. Some lengths give the same input length: go on to the last.":
            (min(L for L in range(raw - 9, raw + 1) if lengths(L)[0] == lengths(raw)[0]), target),
        "That raw text is too long by one: its input has more tokens than the budget.":
            (raw + 1, lengths(raw + 1)[1]),
        "The second number is the length of the target: tokens taken out, sentinels and EOS.":
            (raw, lengths(raw)[0]),
    }


diagnose(raw_length(512), right=(568, 114), public="L6.1 raw_length", wrong=lures(512))
budgets = SystemRandom().sample(range(16, 4_000), 12)
for budget, answer in zip(budgets, each(raw_length, [(budget,) for budget in budgets])):
    diagnose(answer, right=longest(budget), wrong=lures(budget), what="raw_length of other budgets")
### END HIDDEN TESTS
check("L6.1 raw_length", raw_length, 512)

# %% [markdown]
# ## L6.2 Infilling
#
# BART corrupts text otherwise. A span of tokens is replaced by **one** `[MASK]`, the same symbol for every
# span, and the decoder writes the *whole text* again, not just what is missing. The lengths of spans are
# drawn from a Poisson distribution with mean 3, and that has a strange corner: the length may be **0**.
# Then a `[MASK]` is put in between two tokens, and nothing is missing.
#
# **Predict first:** what share of all spans has length 0? Write a number from 0 to 1.

# %% answer="L6_2_prediction"
predicted_empty = (
    ### BEGIN SOLUTION
    0.05
    ### END SOLUTION
)

# %% locked="L6_2_experiment"
predict("L6.2", predicted_empty, lambda: round(math.exp(-3), 3))
words = "the old clock in the hall strikes twelve just before the guests arrive".split()
ids = torch.arange(len(words) + 2).unsqueeze(0)  # BOS, the words, EOS
for seed in (1, 76, 82):
    noisy, length = text_infill(
        ids, mask_id=99, pad_id=98, rate=0.4, generator=torch.Generator().manual_seed(seed)
    )
    shown = ["[MASK]" if id == 99 else words[id - 1] for id in noisy[0, 1 : length[0] - 1]]
    print(" ".join(shown))
print("""
e^-3, one span in twenty; in the last two lines there is one, in front of "hall" and of
"the guests". Such a mask is a trap, set on purpose: a model that reads
[MASK] may not conclude that something is missing. It has to find out how much, and the
answer may be: nothing. T5's sentinels never ask that.""")

# %% test="L6_2_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, kind

demand(not is_placeholder(predicted_empty),
       "L6.2 prediction: not attempted yet. Write a number before you run the experiment.")
demand(kind(predicted_empty) == "a number" and 0 <= predicted_empty <= 1,
       "L6.2 prediction: write a number from 0 to 1.")
print("✓ L6.2 prediction: noted")

# %% [markdown]
# Write the replacement itself. `spans` is a list of pairs `(start, length)`, in order and without overlap:
# the span covers `ids[start : start + length]`; with length 0 its mask stands in front of
# `ids[start]`. `start` may be `len(ids)` for a span of length 0 at the end. Return the corrupted list.

# %% answer="L6_2_infill"
def infill(ids, spans, mask_id):
    """`ids` with one `mask_id` in the place of each span."""
    ### BEGIN SOLUTION
    corrupted, done = [], 0
    for start, length in spans:
        corrupted += [*ids[done:start], mask_id]
        done = start + length
    return corrupted + list(ids[done:])
    ### END SOLUTION

# %% test="L6_2_infill" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, observe
from random import SystemRandom

draw = SystemRandom()


def build(ids, spans, put, drop_empty=False):
    """The ids with what `put(number, length)` gives in the place of each span."""
    result, done = [], 0
    for number, (start, length) in enumerate(spans):
        if not (drop_empty and length == 0):
            result += [*ids[done:start], *put(number, length)]
            done = start + length
    return [*result, *ids[done:]]


def right(ids, spans, mask):
    return build(ids, spans, lambda number, length: [mask])


def lures(ids, spans, mask):
    shifted = list(ids)
    for start, length in spans:  # places in the original, used in what has been changed already
        shifted[start : start + length] = [mask]
    return {
        "A span of length 0 inserts a mask too. Yours are missing.":
            build(ids, spans, lambda number, length: [mask], drop_empty=True),
        "One mask for each token, as BERT has it, tells how much is missing. BART puts one for the span.":
            build(ids, spans, lambda number, length: [mask] * length),
        "M15: You numbered the masks, as T5 does its sentinels. BART has one symbol for all.":
            build(ids, spans, lambda number, length: [mask + number]),
        "M15: You numbered the masks downwards, as T5 does its sentinels. BART has one symbol for all.":
            build(ids, spans, lambda number, length: [mask - number]),
        "The spans are gone without a mask in their place.": build(ids, spans, lambda *_: []),
        "The first span moved everything behind it, but `start` counts in the original `ids`. Build a new "
        "list, or go from the last span to the first.": shifted,
        "You masked the tokens that should stay. The spans are what is replaced.":
            [mask if any(s <= i < s + n for s, n in spans) is False else id for i, id in enumerate(ids)],
    }


example = [10, 11, 12, 13, 14, 15, 16, 17], [(1, 2), (4, 0), (5, 2)], 99
diagnose(infill(list(example[0]), list(example[1]), 99), right=right(*example),
         wrong=lures(*example), public="L6.2 infill")
for _ in range(8):
    ids = draw.sample(range(100, 900), draw.randint(12, 25))
    spans, at = [], draw.randint(0, 2)
    for length in draw.sample([0, 0, 1, 2, 3, 4], 5):
        if at + length <= len(ids):
            spans.append((at, length))
        at += length + draw.randint(1, 3)
    if not any(length == 0 for _, length in spans):
        spans.append((len(ids), 0))
    seen = observe(infill, list(ids), list(spans), 5)
    demand(seen.args[0] == ids and seen.args[1] == spans,
           "infill changed the lists that it was given. Build a new one.")
    diagnose(seen.result, right=right(ids, spans, 5), wrong=lures(ids, spans, 5),
             what="infill of other texts")
diagnose(infill([1, 2], [], 9), right=[1, 2], what="infill without spans")
diagnose(infill([1, 2], [(0, 2)], 9), right=[9], what="infill of all in one span")
diagnose(infill([1, 2], [(2, 0)], 9), right=[1, 2, 9], what="infill with an empty span at the end")
### END HIDDEN TESTS
check("L6.2 infill", infill, [10, 11, 12, 13, 14, 15, 16, 17], [(1, 2), (4, 0), (5, 2)], 99)

# %% [markdown]
# ## L6.3 Masked diffusion
#
# Level 5 ended at an objective with all masking rates in it. Models trained so (MDLM, LLaDA) *write*:
# start with every letter hidden, let the model guess, keep a part of the guesses, hide the rest
# again, and so on until nothing is hidden. First the two exact statements behind it, on our Markov world
# with its oracle:

# %% locked="L6_3_exact"
world = MarkovWorld.random(8, generator=torch.Generator().manual_seed(7), sharpness=2.0)
LENGTH = 16
print(f"ln V, an even guess:                        {math.log(8):.4f} nats")
print(f"everything hidden, the best there is:       {world.mlm_loss(1.0, LENGTH):.4f}")
print(f"H(π), the entropy of the letters:           {world.entropy:.4f}")
print()
print(f"rate drawn evenly, loss over rate, exactly: {world.diffusion_loss(LENGTH):.4f}")
print(f"left to right, the chain rule, exactly:     {world.clm_loss(LENGTH):.4f}")
print(f"mean over all orders of the letters:        {world.any_order_loss(LENGTH):.4f}")

# %% [markdown]
# With everything hidden nothing is left to condition on, and what remains is to know how frequent letters
# are: $H(\pi)$, not $\ln V$. And over all rates, evenly, the mean is the chain rule, to the last digit: a
# letter that is revealed at a random moment sees a random set of others, and so do the letters of a
# random order.
#
# Write the estimate that training uses. For each text a rate $t$ was drawn evenly from 0 to 1, and each
# letter hidden with that rate, independently. `nll` (texts × length) is the loss at every position, `hidden`
# the masks, `t` the rates, one for each text. Return the estimate in nats **per letter**: hidden nats over the
# rate, per letter of the text, averaged over the texts. A text in which nothing happens to be hidden
# counts with 0: it is part of the mean.

# %% answer="L6_3_nelbo"
def diffusion_estimate(nll, hidden, t):
    """Nats per letter, estimated from texts masked at the rates `t`."""
    ### BEGIN SOLUTION
    return ((nll * hidden).sum(1) / t).mean().item() / nll.shape[1]
    ### END SOLUTION

# %% test="L6_3_nelbo" points=1
import torch

from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from random import SystemRandom

draw = SystemRandom()


def right(nll, hidden, t):
    return float(((nll * hidden).sum(1) / t).mean()) / nll.shape[1]


def lures(nll, hidden, t):
    cost, k, T = (nll * hidden).sum(1), hidden.sum(1), nll.shape[1]
    found = k > 0
    return {
        "You divided by the number that was hidden. It is random around t times the length: here divide by "
        "the rate t.": (cost[found] / k[found]).sum() / len(nll),
        "M4: You divided by what was hidden in all texts together. Each text has a rate of its own.":
            cost.sum() / k.sum(),
        "The 1/t is missing: now texts count the more the more of them is hidden.": cost.mean() / T,
        "You divided by the mean rate. Each text has its own.": cost.mean() / t.mean() / T,
        "The loss is per letter: divide by the length too.": (cost / t).mean(),
        "You multiplied by the rate. Divide by it.": (cost * t).mean() / T,
        "A text in which nothing is hidden is part of the mean: it counts with 0.":
            (cost[found] / t[found]).mean() / T,
        "M1: You scored the visible letters too.": (nll.sum(1) / t).mean() / T,
        "Add nothing up over the texts: average.": (cost / t).sum() / T,
    }


example = (
    torch.tensor([[1.0, 2.0, 0.5, 1.5], [3.0, 1.0, 2.0, 0.5], [2.0, 0.3, 1.0, 1.2]]),
    torch.tensor([[True, False, True, False], [False] * 4, [True, True, True, False]]),
    torch.tensor([0.4, 0.1, 0.8]),
)
diagnose(diffusion_estimate(*example), right=right(*example), wrong=lures(*example),
         public="L6.3 diffusion_estimate")
cases = []
for _ in range(6):
    n, T = draw.randint(4, 8), draw.randint(5, 9)
    generator = torch.Generator().manual_seed(draw.randrange(2**40))
    t = 0.1 + 0.8 * torch.rand(n, generator=generator)
    hidden = torch.rand(n, T, generator=generator) < t[:, None]
    hidden[0], hidden[1, :2] = False, True
    cases.append((3 * torch.rand(n, T, generator=generator) + 0.1, hidden, t))
for case, estimate in zip(cases, each(diffusion_estimate, cases)):
    diagnose(estimate, right=right(*case), rel=1e-4, wrong=lures(*case),
             what="diffusion_estimate of other texts")
### END HIDDEN TESTS
check("L6.3 diffusion_estimate", diffusion_estimate,
      torch.tensor([[1.0, 2.0, 0.5, 1.5], [3.0, 1.0, 2.0, 0.5], [2.0, 0.3, 1.0, 1.2]]),
      torch.tensor([[True, False, True, False], [False] * 4, [True, True, True, False]]),
      torch.tensor([0.4, 0.1, 0.8]))

# %% [markdown]
# ### Writing in few steps
#
# A causal model needs one step a letter. A masked one may reveal many letters in one step; each is drawn
# from its own distribution, given what was visible *before* the step. With the oracle as the model, nothing
# is wrong but that. How good are the texts? Score them by the truth: the mean $-\ln p$ per letter under
# the world. Texts of the world itself have about its chain-rule loss.
#
# **Predict first:** texts of 16 letters are written in 1, 2, 4 and 16 steps. What does a letter of them
# cost under the truth, in nats? Write four numbers.

# %% answer="L6_3_prediction"
predicted_costs = (
    ### BEGIN SOLUTION
    [3, 2.5, 2, 1.5]
    ### END SOLUTION
)

# %% locked="L6_3_experiment"
def write(n_texts, n_steps, generator):
    """Texts from the oracle, 16 / n_steps letters at a time, places in random order."""
    ids = torch.zeros(n_texts, LENGTH, dtype=torch.long)
    rank = torch.rand(ids.shape, generator=generator).argsort(1).argsort(1)
    for step in range(n_steps):
        hidden = rank >= LENGTH * step // n_steps
        probs = world.masked_log_probs(ids, hidden).exp()
        drawn = torch.multinomial(probs.flatten(0, 1), 1, generator=generator).view(ids.shape)
        now = hidden & (rank < LENGTH * (step + 1) // n_steps)
        ids = torch.where(now, drawn, ids)
    return ids


STEPS = [1, 2, 4, 8, 16]


def costs():
    generator = torch.Generator().manual_seed(11)
    return [-world.log_prob(write(2_000, n, generator)).mean().item() / LENGTH for n in STEPS]


written = []


def four_costs():
    written.extend(costs())
    return [round(written[STEPS.index(n)], 2) for n in (1, 2, 4, 16)]


predict("L6.3", predicted_costs, four_costs)
figure, axes = new_figure(7, 3.6)
axes.plot(STEPS, written, "o-", color=BLUE)
for n, cost in zip(STEPS, written):
    axes.annotate(f"{cost:.2f}", (n, cost), (4, 8), textcoords="offset points")
axes.axhline(world.clm_loss(LENGTH), linestyle="--", color=ORANGE)
axes.text(1.02, world.clm_loss(LENGTH) + 0.04, f"texts of the world: {world.clm_loss(LENGTH):.2f}")
axes.set_xscale("log", base=2)
axes.set_xticks(STEPS, STEPS)
axes.set(xlabel="steps for 16 letters", ylabel="cost under the truth (nats per letter)")
axes.set(xlim=(0.9, 20), ylim=(1.0, max(written) + 0.4))
print("""
In one step every letter is drawn without knowing the others: the frequencies are right,
the neighbours are not. With 16 steps each letter has seen all before it, and the texts
are the world's own. In between, letters that are revealed together ignore each other,
which hurts where they are neighbours, and with fewer a step they seldom are. That is
the price of speed, and no training can remove it: this model is already perfect.""")
alt = ", ".join(f"{cost:.2f} with {n}" for n, cost in zip(STEPS, written))
Picture(figure, f"Cost of written texts in nats per letter by number of steps: {alt}. The world's "
        f"own texts cost {world.clm_loss(LENGTH):.2f}.")

# %% test="L6_3_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, kind, plain

demand(not is_placeholder(predicted_costs),
       "L6.3 prediction: not attempted yet. Write four numbers before you run the experiment.")
numbers = plain(predicted_costs)
demand(kind(numbers) == "a list" and len(numbers) == 4 and all(kind(n) == "a number" for n in numbers),
       "L6.3 prediction: write four numbers in a list, for 1, 2, 4 and 16 steps.")
print("✓ L6.3 prediction: noted")

# %% [markdown]
# ## L6.4 An honest mean
#
# A batch that doesn't fit into memory is cut into micro-batches, whose gradients are accumulated. It should
# be as if the batch had been there in one piece, and in widely used training code it was not: each
# micro-batch's *mean* loss was averaged, whatever number of tokens it held.
#
# `micro_batches` is a list of lists: the nats of the scored tokens of each. One may be empty, when all its
# labels are ignored. Return the loss of the whole batch. When nothing is scored at all, return 0.

# %% answer="L6_4_accumulated"
def accumulated(micro_batches):
    """The mean nats per scored token of a batch that comes in pieces."""
    ### BEGIN SOLUTION
    n_tokens = sum(len(nats) for nats in micro_batches)
    return sum(sum(nats) for nats in micro_batches) / max(n_tokens, 1)
    ### END SOLUTION

# %% test="L6_4_accumulated" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each, demand
from math import exp, fsum, isnan, log, nan
from random import SystemRandom

draw = SystemRandom()
EMPTY = (
    "M10: Where nothing is scored you divide 0 by 0, and the result is not a number. In training it would "
    "go into every weight. Add all nats up first, then divide once."
)


def right(batches):
    n = sum(map(len, batches))
    return fsum(map(fsum, batches)) / n if n else 0.0


def lures(batches):
    means = [fsum(nats) / len(nats) for nats in batches if nats]
    total = fsum(map(fsum, batches))
    return {
        "M4: You averaged the means. A token in a small micro-batch then counts more than one in a large "
        "one: weight each mean by its number of tokens.": fsum(means) / len(means),
        "M4: You averaged the means, and counted the empty micro-batch as one of them.":
            fsum(means) / len(batches),
        "M5: You averaged the perplexities. Average the nats of all tokens; exponentiate at the end.":
            log(fsum(map(exp, means)) / len(means)),
        "You divided by the number of micro-batches. Divide by the number of tokens.":
            total / len(batches),
        "That is the sum. Divide by the number of tokens.": total,
        "You added the means up. Weight each by its share of the tokens.": fsum(means),
    }


example = [[0.2, 0.4, 0.6], [3.0], []]
result = accumulated([list(nats) for nats in example])
demand(type(result) is not float or not isnan(result), EMPTY)
diagnose(result, right=right(example), wrong=lures(example), public="L6.4 accumulated")
cases = []
for _ in range(8):
    sizes = draw.sample([0, 1, 2, 5, 9, 14], 4)
    cases.append([[draw.uniform(0.1, 5) for _ in range(n)] for n in sizes])
for case, loss in zip(cases, each(accumulated, [(case,) for case in cases])):
    demand(type(loss) is not float or not isnan(loss), EMPTY)
    diagnose(loss, right=right(case), rel=1e-5, wrong=lures(case), what="accumulated of other batches")
try:
    nothing = accumulated([[], []])
except ZeroDivisionError:
    nothing = nan
demand(type(nothing) is not float or not isnan(nothing), EMPTY)
diagnose(nothing, right=0, what="accumulated of empty micro-batches")
### END HIDDEN TESTS
check("L6.4 accumulated", accumulated, [[0.2, 0.4, 0.6], [3.0], []])

# %% [markdown]
# Padding is the next trap. `nll` (texts × length) is the loss at every position, `real` is `True` where a
# token is and `False` where there is padding. A popular notebook of a popular book averaged first,
# multiplied by the weights, and averaged again. Write it right: the mean loss of the real tokens.

# %% answer="L6_4_padded"
def loss_without_padding(nll, real):
    """The mean nats of the real tokens."""
    ### BEGIN SOLUTION
    return (nll * real).sum().item() / real.sum().item()
    ### END SOLUTION

# %% test="L6_4_padded" points=1
import torch

from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from random import SystemRandom

draw = SystemRandom()


def lures(nll, real):
    weights = real.to(nll.dtype)
    rows = (nll * weights).sum(1) / weights.sum(1)
    return {
        "M2: You averaged first and weighted the average. Padding is in it, and no weight takes it out: "
        "weight each token's loss, then divide by the sum of the weights.": nll.mean(),
        "M2: You averaged first and multiplied by the weights afterwards. Weight each token's loss before "
        "anything is averaged.": (nll.mean() * weights).mean(),
        "M2: Each text was averaged, padding included, before the weights came.":
            (nll.mean(1, keepdim=True) * weights).sum() / weights.sum(),
        "M3: You divided by all positions, padding too. Divide by the number of real tokens.":
            (nll * weights).mean(),
        "M4: You averaged each text, then the texts. A token of a short text then counts more.":
            rows.mean(),
        "That is the loss of the padding. `real` is True where a token is.":
            (nll * (1 - weights)).sum() / (1 - weights).sum(),
        "That is the sum. Divide by the number of real tokens.": (nll * weights).sum(),
    }


example = (
    torch.tensor([[0.5, 1.0, 7.0, 7.5], [2.0, 0.7, 1.1, 9.0]]),
    torch.tensor([[True, True, False, False], [True, True, True, False]]),
)
diagnose(loss_without_padding(*example), right=5.3 / 5, wrong=lures(*example),
         public="L6.4 loss_without_padding")
cases = []
for _ in range(6):
    n, T = draw.randint(2, 5), draw.randint(6, 9)
    generator = torch.Generator().manual_seed(draw.randrange(2**40))
    lengths = torch.tensor([1, *draw.choices(range(2, T), k=n - 1)])
    cases.append((4 * torch.rand(n, T, generator=generator), torch.arange(T) < lengths[:, None]))
for (nll, real), loss in zip(cases, each(loss_without_padding, cases)):
    diagnose(loss, right=nll[real].mean().item(), rel=1e-4, wrong=lures(nll, real),
             what="loss_without_padding of other batches")
### END HIDDEN TESTS
check("L6.4 loss_without_padding", loss_without_padding,
      torch.tensor([[0.5, 1.0, 7.0, 7.5], [2.0, 0.7, 1.1, 9.0]]),
      torch.tensor([[True, True, False, False], [True, True, True, False]]))

# %% [markdown]
# Many tokenizers have no padding token, so people take the EOS. And then they ignore every label that is
# the padding id. `ids` is one text (a list), padded on the right with `eos_id`. Return its labels: the ids
# themselves, with -100 at the padding. The text ends in one EOS of its own, unless it was cut off at the
# full length: then there is none.

# %% answer="L6_4_labels"
def labels_of(ids, eos_id):
    """The labels of a text that is padded with its EOS; -100 is ignored."""
    ### BEGIN SOLUTION
    end = ids.index(eos_id) + 1 if eos_id in ids else len(ids)
    return ids[:end] + [-100] * (len(ids) - end)
    ### END SOLUTION

# %% test="L6_4_labels" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, observe
from random import SystemRandom

draw = SystemRandom()


def right(ids, eos):
    end = ids.index(eos) + 1 if eos in ids else len(ids)
    return [*ids[:end], *[-100] * (len(ids) - end)]


def lures(ids, eos):
    n, end = len(ids), right(ids, eos)
    return {
        "M17: You ignored the EOS that ends the text along with the padding. The model is then never asked "
        "when to stop. Keep the first one.": [-100 if id == eos else id for id in ids],
        "M3: Padding is scored. Only the first EOS belongs to the text; all after it are padding.": list(ids),
        "The last EOS was kept, and padding in front of it was ignored or scored. Keep the first.":
            [-100 if id == eos else id for id in ids[:-1]] + [ids[-1]],
        "M9: Padding is marked with -1. The label that is ignored is -100.":
            [-1 if label == -100 else label for label in end],
        "M9: Padding is marked with 0, which is a token. The label that is ignored is -100.":
            [0 if label == -100 else label for label in end],
        "You cut the padding off. Labels are as long as the ids: mark it with -100.":
            [label for label in end if label != -100],
        "M8: You shifted the labels. The loss of the training code does that.": [*end[1:], -100],
        "M9: You returned positions, not ids.": [i if end[i] != -100 else -100 for i in range(n)],
    }


example = [5, 8, 6, 2, 2, 2], 2
diagnose(labels_of(*example), right=[5, 8, 6, 2, -100, -100], wrong=lures(*example),
         public="L6.4 labels_of")
for _ in range(8):
    eos, T = draw.randint(0, 9), draw.randint(3, 9)
    ids = draw.choices([id for id in range(30) if id != eos], k=T) + [eos] * draw.randint(2, 5)
    seen = observe(labels_of, list(ids), eos)
    demand(seen.args[0] == ids, "labels_of changed the ids. Build a new list: the model still reads them.")
    diagnose(seen.result, right=right(ids, eos), wrong=lures(ids, eos), what="labels_of other texts")
diagnose(labels_of([4, 7, 9], 2), right=[4, 7, 9], what="labels_of a text that was cut off")
diagnose(labels_of([4, 7, 2], 2), right=[4, 7, 2], what="labels_of a text that just fits",
         wrong={"M17: The EOS of a text without padding is its own. Keep it.": [4, 7, -100]})
### END HIDDEN TESTS
check("L6.4 labels_of", labels_of, [5, 8, 6, 2, 2, 2], 2)

# %% [markdown]
# ## L6.5 An honest comparison
#
# A model sees at most `window` tokens at once. To score a longer text, move the window on by `stride`
# tokens; what overlaps is context only. The rule is: **every token is scored once**, the first
# one too (a BOS stands in front of the text).
#
# Return the windows as a list of triples `(start, stop, first)`: the window covers the tokens
# `start` to `stop - 1`, and scores those from `first` on. The first window starts at 0 and scores all
# of its tokens; each later one starts `stride` tokens further; the last ends with the text, and may be
# shorter. No window scores nothing. `stride` is 1 to `window`.

# %% answer="L6_5_windows"
def windows(n_tokens, window, stride):
    """[(start, stop, first scored)] of windows that score each token once."""
    ### BEGIN SOLUTION
    found, start, done = [], 0, 0
    while done < n_tokens:
        stop = min(start + window, n_tokens)
        found.append((start, stop, done))
        start, done = start + stride, stop
    return found
    ### END SOLUTION

# %% test="L6_5_windows" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each
from course_lib.teaching.plain import is_placeholder, kind, plain
from random import SystemRandom

draw = SystemRandom()


def right(n, window, stride):
    found, start, done = [], 0, 0
    while done < n:
        stop = min(start + window, n)
        found.append((start, stop, done))
        start, done = start + stride, stop
    return found


def lures(n, window, stride):
    starts = range(0, n, stride)
    spans = [(s, min(s + window, n)) for s in starts]
    full = [(s, s + window) for s in starts if s + window <= n]
    exact = right(n, window, stride)
    return {
        "M19: Windows overlap, and you scored the overlap twice. From the second window on score only what "
        "no earlier one has.": [(s, e, s) for s, e, _ in exact],
        "M19: Windows overlap, and you scored the overlap twice. And the last windows have nothing new to "
        "score.": [(s, e, s) for s, e in spans],
        "M19: The windows stand side by side, so most tokens near a start have hardly any context. Move on "
        "by `stride`.": [(s, min(s + window, n), s) for s in range(0, n, window)],
        "M19: The end of the text is not scored. The last window may be shorter.":
            [(s, e, s and s + window - stride) for s, e in full],
        "M19: In each window you left out one token, as if it had only context to give. With a BOS in front "
        "even the first token of the text is scored.": [(s, e, f + 1) for s, e, f in exact],
        "A window at the end scores nothing. Stop when all tokens are scored.":
            [(s, e, min(e, s and s + window - stride)) for s, e in spans],
    }


example = 10, 4, 2
diagnose(windows(*example), right=right(*example), wrong=lures(*example), public="L6.5 windows")
cases = [(7, 20, 5), (12, 5, 5), (9, 3, 1), (1, 4, 2)]
for _ in range(8):
    window = draw.randint(3, 12)
    cases.append((draw.randint(window + 3, 60), window, draw.randint(2, window - 1)))
for case, answer in zip(cases, each(windows, cases)):
    demand(not is_placeholder(answer), "Not attempted yet, or a `return` forgotten: got nothing.")
    answer = [tuple(w) for w in plain(answer)] if kind(answer) == "a list" else answer
    diagnose(answer, right=right(*case), wrong=lures(*case), what=f"windows{case}")
### END HIDDEN TESTS
check("L6.5 windows", windows, 10, 4, 2)

# %% [markdown]
# ### Two tokenizers, one text
#
# Last, the comparison that perplexity can't make. One English text, cut in two ways: into characters, and
# by byte-pair encoding into pieces of words. The same kind of model reads both, a table of which token follows
# which, counted on the first half of the text and scored on the second.
#
# **Predict first:** which of the two has the lower perplexity, and which needs fewer bits for a byte of the
# text? Write two of the names `"characters"` and `"BPE"`, as in `["BPE", "BPE"]`.

# %% answer="L6_5_prediction"
predicted_lower = (
    ### BEGIN SOLUTION
    ["characters", "BPE"]
    ### END SOLUTION
)

# %% locked="L6_5_experiment" tags=["nbval-ignore-output"]
text = stdlib_prose(60_000)
known, new = text[:30_000], text[30_000:]


def measured(tokenizer):
    """The bigram table of the known half, scored on the new half."""
    V = tokenizer.get_vocab_size()
    ids, new_ids = (torch.tensor(tokenizer.encode(part).ids) for part in (known, new))
    even = torch.bincount(ids, minlength=V).double() + 0.1
    counts = torch.zeros(V, V, dtype=torch.double)
    counts.index_put_((ids[:-1], ids[1:]), torch.ones(len(ids) - 1).double(), accumulate=True)
    probs = counts + 2 * even / even.sum()  # where a pair is new, fall back on single tokens
    probs = probs / probs.sum(1, keepdim=True)
    score = Perplexity()
    n_bytes = int(byte_lengths(tokenizer)[new_ids[1:]].sum())
    score.update(probs.log()[new_ids[:-1]], new_ids[1:], n_bytes)
    return score


scores = {}


def lower():
    scores["characters"] = measured(train_characters([text]))
    scores["BPE"] = measured(train_bpe([known], 800))
    return [
        min(scores, key=lambda name: scores[name].perplexity),
        min(scores, key=lambda name: scores[name].bits_per_byte),
    ]


predict("L6.5", predicted_lower, lower)
print(f"{'':12}{'tokens':>8}{'perplexity':>12}{'bits per byte':>15}")
for name, score in scores.items():
    print(f"{name:12}{score.tokens:8,}{score.perplexity:12.1f}{score.bits_per_byte:15.3f}")
print("""
A character is one of a few dozen, a piece of a word one of hundreds: the perplexities
are about different questions. Per byte both pay for the same text, and there the order
is the other way round, since a piece remembers more of what came before.""")

# %% test="L6_5_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, kind

demand(not is_placeholder(predicted_lower),
       "L6.5 prediction: not attempted yet. Write two names before you run the experiment.")
demand(kind(predicted_lower) == "a list" and len(predicted_lower) == 2
       and all(name in ("characters", "BPE") for name in predicted_lower),
       'L6.5 prediction: write two of the names "characters" and "BPE", in a list.')
print("✓ L6.5 prediction: noted")

# %% [markdown]
# Two reports about models of the same text. Which model predicts it better? `perplexity` is per token,
# `n_tokens` how many tokens it cut the text into. Return `"A"` or `"B"`; they are never equal.

# %% answer="L6_5_better"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    """Which model needs fewer bits for the text, "A" or "B"."""
    ### BEGIN SOLUTION
    bits_A = n_tokens_A * math.log2(perplexity_A)
    bits_B = n_tokens_B * math.log2(perplexity_B)
    return "A" if bits_A < bits_B else "B"
    ### END SOLUTION

# %% test="L6_5_better" points=1
from course_lib.teaching.check import demand, each
from course_lib.teaching.plain import is_placeholder, plain

demand(not is_placeholder(better(10, 3_000, 20, 1_000)),
       "Not attempted yet, or a `return` forgotten: got nothing.")
### BEGIN HIDDEN TESTS
from math import log
from random import SystemRandom

draw = SystemRandom()
cases, expected = [], []
while len(cases) < 60:
    pa, pb = draw.uniform(2, 60), draw.uniform(2, 60)
    na, nb = draw.randint(1_000, 9_000), draw.randint(1_000, 9_000)
    nats_a, nats_b = na * log(pa), nb * log(pb)
    if abs(nats_a - nats_b) > 0.05 * nats_a:
        cases.append((pa, na, pb, nb))
        expected.append("A" if nats_a < nats_b else "B")
answers = [plain(answer) for answer in each(better, cases)]
demand(all(answer in ("A", "B") for answer in answers), 'Return "A" or "B".')
lures = {
    "M7: You compared perplexities. They are per token, and the tokens differ: compare what the whole text "
    "costs.": ["A" if a < b else "B" for a, _, b, _ in cases],
    "You chose the model with fewer tokens. Each may cost more.":
        ["A" if a < b else "B" for _, a, _, b in cases],
    "You multiplied the perplexity by the tokens. What adds up over tokens is its logarithm.":
        ["A" if a * n < b * m else "B" for a, n, b, m in cases],
    "You divided by the number of tokens. The loss is per token already: multiply.":
        ["A" if log(a) / n < log(b) / m else "B" for a, n, b, m in cases],
    "You chose the one that needs more bits.": ["B" if right == "A" else "A" for right in expected],
}
for sentence, lure in lures.items():
    demand(answers == expected or answers != lure, sentence)
demand(answers == expected, "That is not always the model that needs fewer bits for the text.")
### END HIDDEN TESTS
print("✓ L6.5 better: right")

# %% [markdown]
# ## Where this leads
#
# Read on, now that you know what the numbers mean: *T5* (Raffel et al. 2020) and *BART* (Lewis et al. 2020)
# for the corruptions; *MDLM* (Sahoo et al. 2024) and *LLaDA* (Nie et al. 2025) for masked diffusion; and in
# any training code the three lines that compute its loss. You can now say what they count.
