# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
#   language_info: {name: python}
# ---

# %% [markdown]
# # Level 2 · Application
#
# You know which objective is which. Now put numbers on them: the loss of a causal language model, the
# loss of a masked one, and the perplexity that both are usually reported as.
#
# | question | what you do | points |
# |---|---|---|
# | **L2.1** the cat sat | compute a causal LM loss by hand, then write it | 6 |
# | **L2.2** one mask | compute a masked LM loss by hand, then write it | 3 |
# | **L2.3** a model that knows nothing | predict, measure and explain a perplexity | 6 |
#
# About 45 minutes. Replace each `...` with your answer and run the cell below it: it says at once
# whether you are right and, often, which misunderstanding a wrong answer shows. You may try as often as
# you like. After a try, `hint("L2.1")` in a new cell opens a hint. When your work is graded, your
# functions are also called with inputs that you have not seen, so write them for every case that the
# text describes.

# %% locked="L2_setup"
import math

import torch

from course_lib.model import TinyTransformer
from course_lib.teaching.check import hint, predict
from course_lib.teaching.strip import TokenStrip

# %% [markdown]
# First five cards from what came before: answer each in your head, then turn it over. The primer has it
# all in [Causal language modelling](../primer/primer.ipynb#Causal-language-modelling),
# [Masked language modelling](../primer/primer.ipynb#Masked-language-modelling) and
# [Perplexity](../primer/primer.ipynb#Perplexity).

# %% locked="L2_cards"
from course_lib.teaching.cards import cards

cards("level2")

# %% [markdown]
# ## L2.1 The loss of a causal language model
#
# A causal language model reads from left to right and gives a probability to every possible next
# token. The **surprise** of the token that really comes next is $-\ln p$: 0 when the model was certain
# of it, large when the model thought it unlikely. The loss is the *average* surprise over the tokens
# that are **scored**:
#
# $$L = -\frac{1}{N}\sum_{k=1}^{N} \ln p_k \qquad\text{(in nats, because the logarithm is natural)}$$
#
# Which tokens are scored? Only those that the model had something to predict *from*. Our model reads
# `the cat sat`, with nothing in front. It gives `cat` the probability 0.5 after `the`, and `sat`
# the probability 0.25 after `the cat`.

# %% locked="L2_1_picture"
TokenStrip({
    "token": [("the", "kept"), ("cat", "kept"), ("sat", "kept")],
    "its probability": [("–", "not scored"), ("0.5", "scored"), ("0.25", "scored")],
})

# %% [markdown]
# Work out the loss, in nats, and the perplexity $\mathrm{PPL} = e^{L}$. Three significant digits are
# enough; an expression is as good as a number.

# %% answer="L2_1_numbers"
loss_cat_sat = (
    ### BEGIN SOLUTION
    -(math.log(0.5) + math.log(0.25)) / 2
    ### END SOLUTION
)
ppl_cat_sat = (
    ### BEGIN SOLUTION
    math.exp(loss_cat_sat)
    ### END SOLUTION
)

# %% test="L2_1_numbers" points=2
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import exp, log

both = -log(0.5) - log(0.25)
diagnose(loss_cat_sat, right=both / 2, public="L2.1 loss", wrong={
    "That is the sum of the two surprises. The loss is their average.": both,
    "You divided by three tokens. Only two are scored: nothing stands before `the`.": both / 3,
    "M6: That is in bits, from log base 2. The loss is in nats: use the natural logarithm.": both / 2 / log(2),
    "That is from log base 10. The loss is in nats: use the natural logarithm.": both / 2 / log(10),
    "The sign is wrong: a surprise is minus the logarithm, so it is never negative.": -both / 2,
    "You took the logarithm of the average probability. Take the logarithm of each, then average.":
        -log(0.375),
    "That is the average probability. A loss averages surprises, minus the logarithm of each.": 0.375,
    "That is the perplexity. The loss is its logarithm.": exp(both / 2),
})
diagnose(ppl_cat_sat, right=exp(both / 2), public="L2.1 perplexity", wrong={
    "You exponentiated the sum. Perplexity is e to the average surprise.": exp(both),
    "You divided by three tokens. Only two are scored: nothing stands before `the`.": exp(both / 3),
    "M6: That is 2 to the power of a loss in nats. A loss in nats goes with e, one in bits with 2.":
        2 ** (both / 2),
    "M6: You mixed the units: that is e to the power of a loss in bits.": exp(both / 2 / log(2)),
    "That is one over the average probability. Average the surprises first, then exponentiate.":
        1 / 0.375,
    "M5: That is the average of 1/p, an average of perplexities. Average the surprises first, then exponentiate.":
        3,
    "That is the loss. Perplexity is e to its power.": both / 2,
})
### END HIDDEN TESTS
check("L2.1 loss", loss_cat_sat)
check("L2.1 perplexity", ppl_cat_sat)

# %% [markdown]
# Perplexity counts choices: the model is as unsure as somebody who picks evenly among that many tokens.
#
# Now for any sentence. `token_probs[t]` is the probability that the model gave to token `t`, the one
# that really stood there. Whether the first token is scored is a **convention**, and both are in use:
#
# - `bos=False`: the text starts bare. The first token has no context, so its entry is ignored,
#   whatever it holds, and $T$ tokens give $T-1$ scored ones.
# - `bos=True`: a beginning-of-sequence token was put in front. Every token has context: $T$ scored ones.
#
# If no token is left to score there is no average: raise a `ValueError` that says so.

# %% answer="L2_1_clm"
def clm_loss(token_probs, bos=False):
    """Average surprise, in nats, of the scored tokens of one sentence."""
    ### BEGIN SOLUTION
    scored = token_probs if bos else token_probs[1:]
    if len(scored) == 0:
        raise ValueError("no token is scored: a single token without BOS has no context")
    return -sum(math.log(p) for p in scored) / len(scored)
    ### END SOLUTION

# %% test="L2_1_clm" points=3
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import exp, fsum, log
from random import SystemRandom

draw = SystemRandom()


def lures(probs):
    surprises = [-log(p) for p in probs]
    total, n = fsum(surprises[1:]), len(surprises) - 1
    return {
        "You added the surprises up; the loss is their average.": total,
        "You scored the first token. Without BOS nothing stands before it.": fsum(surprises) / (n + 1),
        "You divided by the number of tokens. Divide by the number of scored ones.": total / (n + 1),
        "M6: You used bits (log base 2); the course measures in nats.": total / n / log(2),
        "The sign is wrong: a surprise is minus the logarithm.": -total / n,
        "You took the logarithm of the average probability. Take the logarithm of each, then average.":
            -log(fsum(probs[1:]) / n),
        "You averaged the probabilities. A loss averages surprises, minus the logarithm of each.":
            fsum(probs[1:]) / n,
        "You returned the perplexity. The loss is its logarithm.": exp(total / n),
    }


example = [0.1, 0.5, 0.25]
diagnose(clm_loss(example), right=1.5 * log(2), wrong=lures(example), public="L2.1 clm_loss")

sentences = [[draw.uniform(0.02, 0.98) for _ in range(draw.randint(3, 12))] for _ in range(12)]
for probs, loss in zip(sentences, each(clm_loss, [(probs,) for probs in sentences])):
    right = -fsum(map(log, probs[1:])) / (len(probs) - 1)
    diagnose(loss, right=right, rel=1e-5, wrong=lures(probs), what="clm_loss on other sentences")
### END HIDDEN TESTS
check("L2.1 clm_loss", clm_loss, [0.1, 0.5, 0.25])

# %% test="L2_1_clm__bos" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each, raises
from math import fsum, log
from random import SystemRandom

draw = SystemRandom()
NOT_SCORED = "With bos=True the first token is scored too: it has the BOS token before it."
diagnose(clm_loss([0.5, 0.25], True), right=1.5 * log(2), public="L2.1 clm_loss with BOS", wrong={
    NOT_SCORED: 2 * log(2),
    "You divided by one more than the number of tokens. BOS itself is never predicted.": log(2),
    "You added the surprises up; the loss is their average.": 3 * log(2),
    "The sign is wrong: a surprise is minus the logarithm.": -1.5 * log(2),
})
sentences = [[draw.uniform(0.02, 0.98) for _ in range(draw.randint(1, 9))] for _ in range(8)]
for probs, loss in zip(sentences, each(clm_loss, [(probs, True) for probs in sentences])):
    diagnose(loss, right=-fsum(map(log, probs)) / len(probs), rel=1e-5, what="clm_loss with BOS",
             wrong={NOT_SCORED: -fsum(map(log, probs[1:])) / max(len(probs) - 1, 1)})
with raises(ValueError, "One token without BOS leaves nothing to score: raise a ValueError that says so."):
    clm_loss([0.5])
### END HIDDEN TESTS
check("L2.1 clm_loss with BOS", clm_loss, [0.5, 0.25], True)

# %% [markdown]
# ## L2.2 The loss of a masked language model
#
# A masked language model sees the whole sentence, except that some positions $M$ were chosen and
# corrupted. It is asked for the original token at each of *those* positions, and only those enter the
# loss:
#
# $$L = -\frac{1}{|M|}\sum_{i\in M} \ln p_i$$
#
# One token of a sentence is masked. The model gives the true token there the probability 0.2.
# What is the loss, in nats?

# %% answer="L2_2_number"
loss_one_mask = (
    ### BEGIN SOLUTION
    -math.log(0.2)
    ### END SOLUTION
)

# %% test="L2_2_number" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import log

diagnose(loss_one_mask, right=log(5), public="L2.2 loss", wrong={
    "M6: That is in bits, from log base 2. The loss is in nats: use the natural logarithm.": log(5, 2),
    "That is from log base 10. The loss is in nats: use the natural logarithm.": log(5, 10),
    "The sign is wrong: a surprise is minus the logarithm, so it is never negative.": -log(5),
    "That is the perplexity, 1/0.2. The loss is its logarithm.": 5,
    "That is 1 − p, the probability of being wrong. The loss is the surprise, −ln p.": 0.8,
    "That is −ln(1 − p), the surprise of a wrong token. Take the true token's p.": -log(0.8),
})
### END HIDDEN TESTS
check("L2.2 loss", loss_one_mask)

# %% [markdown]
# Now in general. `token_probs[i]` is the probability of the true token at position `i`, for *every*
# position of the sentence: a model puts out a distribution everywhere, asked or not. `chosen[i]` is
# `True` where position `i` is in $M$. At least one is.

# %% answer="L2_2_mlm"
def mlm_loss(token_probs, chosen):
    """Average surprise, in nats, of the tokens at the chosen positions."""
    ### BEGIN SOLUTION
    surprises = [-math.log(p) for p, is_chosen in zip(token_probs, chosen) if is_chosen]
    return sum(surprises) / len(surprises)
    ### END SOLUTION

# %% test="L2_2_mlm" points=2
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import exp, fsum, log
from random import SystemRandom

draw = SystemRandom()


def lures(probs, chosen):
    hidden = [-log(p) for p, c in zip(probs, chosen) if c]
    seen = [-log(p) for p, c in zip(probs, chosen) if not c]
    loss = fsum(hidden) / len(hidden)
    return {
        "M1: You averaged over all positions. Only the chosen ones enter a masked LM loss.":
            fsum(hidden + seen) / len(probs),
        "You divided by the length of the sentence. Divide by the number of chosen positions.":
            fsum(hidden) / len(probs),
        "You added the surprises up; the loss is their average over the chosen positions.": fsum(hidden),
        "You scored the visible tokens instead of the chosen ones.": fsum(seen) / max(len(seen), 1),
        "M6: You used bits (log base 2); the course measures in nats.": loss / log(2),
        "The sign is wrong: a surprise is minus the logarithm.": -loss,
        "You returned the perplexity. The loss is its logarithm.": exp(loss),
    }


example = [0.9, 0.2, 0.6, 0.05], [False, True, False, True]
diagnose(mlm_loss(*example), right=-log(0.01) / 2, wrong=lures(*example), public="L2.2 mlm_loss")

cases = []
for _ in range(12):
    n = draw.randint(4, 12)
    chosen = [True, True] + [draw.random() < 0.3 for _ in range(n - 3)] + [False]
    draw.shuffle(chosen)
    cases.append(([draw.uniform(0.02, 0.98) for _ in range(n)], chosen))
for (probs, chosen), loss in zip(cases, each(mlm_loss, cases)):
    hidden = [-log(p) for p, c in zip(probs, chosen) if c]
    diagnose(loss, right=fsum(hidden) / len(hidden), rel=1e-5, wrong=lures(probs, chosen),
             what="mlm_loss on other sentences")
### END HIDDEN TESTS
check("L2.2 mlm_loss", mlm_loss, [0.9, 0.2, 0.6, 0.05], [False, True, False, True])

# %% [markdown]
# Your losses of L2.1 and L2.2 differ. That does not say which model is better: the one predicted from the
# left only, the other from both sides, and they were asked about different tokens. Compare losses of
# the *same* task on the *same* text.

# %% [markdown]
# ## L2.3 The perplexity of a model that knows nothing
#
# A causal language model with a vocabulary of 50,000 tokens gives each of them the same probability,
# 1/50,000, at every step. What is its loss, in nats, and its perplexity?

# %% answer="L2_3_numbers"
loss_uniform = (
    ### BEGIN SOLUTION
    math.log(50_000)
    ### END SOLUTION
)
ppl_uniform = (
    ### BEGIN SOLUTION
    math.exp(loss_uniform)
    ### END SOLUTION
)

# %% test="L2_3_numbers" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import log

V = 50_000
diagnose(loss_uniform, right=log(V), public="L2.3 loss", wrong={
    "M6: That is in bits, from log base 2. The loss is in nats: use the natural logarithm.": log(V, 2),
    "That is from log base 10. The loss is in nats: use the natural logarithm.": log(V, 10),
    "The sign is wrong: a surprise is minus the logarithm, so it is never negative.": -log(V),
    "That is the perplexity. The loss is its logarithm.": V,
})
diagnose(ppl_uniform, right=V, public="L2.3 perplexity", wrong={
    "That is the loss. Perplexity is e to its power.": log(V),
    "That is the probability of one token. Perplexity is the number of equally likely choices.": 1 / V,
    "M6: That is 2 to the power of a loss in nats. A loss in nats goes with e, one in bits with 2.":
        2 ** log(V),
    "Perplexity counts choices; it is 1, not 0, at best, and large for a model that knows nothing.": 0,
    "1 is the perplexity of a model that is always certain and right. This one knows nothing.": 1,
})
### END HIDDEN TESTS
check("L2.3 loss", loss_uniform)
check("L2.3 perplexity", ppl_uniform)

# %% [markdown]
# Models do not put out probabilities but **logits**, one score for each token of the vocabulary;
# softmax turns them into probabilities. Write the perplexity of a sentence from its logits:
# `logits` is an $N \times V$ tensor, one row for each scored token, and `targets` holds the $N$ ids of
# the true tokens. Return a number.
#
# Mind two things. Perplexity is $e$ to the *average* loss, not an average of perplexities. And a model
# may be very sure of the wrong token: with logits 200 apart, a probability computed first
# is exactly 0 in single precision and its logarithm infinite, though the loss, 200 nats, is an ordinary
# number. (`torch.logsumexp` or `torch.log_softmax` never form that probability.)

# %% answer="L2_3_ppl"
def perplexity_from_logits(logits, targets):
    """Perplexity of the target tokens, from an (N, V) tensor of logits and N token ids."""
    ### BEGIN SOLUTION
    log_probs = torch.log_softmax(torch.as_tensor(logits).double(), dim=-1)
    surprises = -log_probs[torch.arange(len(log_probs)), torch.as_tensor(targets)]
    return math.exp(surprises.mean())
    ### END SOLUTION

# %% test="L2_3_ppl" points=1
import torch

from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each
from course_lib.teaching.plain import plain
from math import exp, inf
from random import SystemRandom

draw = SystemRandom()


def surprises(logits, targets):
    rows = logits.double()
    return rows.logsumexp(-1) - rows.gather(-1, targets[:, None])[:, 0]


def lures(logits, targets):
    nats = surprises(logits, targets)
    return {
        "M5: You averaged the perplexities of the tokens. Average the losses, then exponentiate once.":
            nats.exp().mean().item(),
        "You exponentiated the sum. Perplexity is e to the average loss.": nats.sum().exp().item(),
        "You returned the loss. Perplexity is e to its power.": nats.mean().item(),
        "You raised 2 to a loss in nats. A loss in nats goes with e.": 2 ** nats.mean().item(),
        "That is one over the perplexity: the sign of the loss is wrong.": exp(-nats.mean().item()),
        "That is the size of the vocabulary, the perplexity of uniform logits only.": logits.shape[-1],
        "You used the logits themselves as log-probabilities. Normalise them first (log_softmax).":
            (-logits.double().gather(-1, targets[:, None])).mean().exp().item(),
    }


example = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, -1.0]]), torch.tensor([0, 2])
diagnose(perplexity_from_logits(*example), right=surprises(*example).mean().exp(),
         wrong=lures(*example), public="L2.3 perplexity_from_logits")

cases = []
for _ in range(8):
    n, v = draw.randint(2, 6), draw.randint(3, 40)
    logits = torch.tensor([[draw.gauss(0, 2) for _ in range(v)] for _ in range(n)])
    cases.append((logits, torch.tensor([draw.randrange(v) for _ in range(n)])))
for case, ppl in zip(cases, each(perplexity_from_logits, cases)):
    diagnose(ppl, right=surprises(*case).mean().exp(), wrong=lures(*case),
             what="perplexity_from_logits on other logits")

OVERFLOW = (
    "You exponentiated large logits directly, and they overflowed. Adding one constant to all "
    "logits must change nothing: use logsumexp or log_softmax."
)
V = draw.randint(100, 1000)
shifts = [(torch.full((3, V), c), torch.zeros(3, dtype=torch.long)) for c in (0.0, -200.0, 200.0)]
for ppl in each(perplexity_from_logits, shifts):
    demand(0 < plain(ppl) < inf, OVERFLOW)
    diagnose(ppl, right=V, what="perplexity_from_logits where all logits are equal")
gap = torch.tensor([[200.0, 0.0]] * 5), torch.tensor([0, 0, 1, 0, 0])
diagnose(perplexity_from_logits(*gap), right=exp(40), wrong={
    "You took the softmax first and its logarithm after; with logits 200 apart the probability "
    "became 0. Use logsumexp or log_softmax, which stay exact.": inf,
}, what="perplexity_from_logits with logits 200 apart")
### END HIDDEN TESTS
check("L2.3 perplexity_from_logits", perplexity_from_logits,
      torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, -1.0]]), torch.tensor([0, 2]))

# %% [markdown]
# ### An experiment: before any training
#
# The cell below makes a small transformer with a vocabulary of 1,000 tokens and random weights, and
# measures its perplexity on random tokens with *your* function. It has seen no text at all.
# **Predict first:** about what number will it show? Any number earns the point; what counts is that
# you commit to one.

# %% answer="L2_3_prediction"
predicted_ppl = (
    ### BEGIN SOLUTION
    1000
    ### END SOLUTION
)

# %% locked="L2_3_experiment"
def untrained_perplexity():
    generator = torch.Generator().manual_seed(0)
    model = TinyTransformer(1_000, generator=generator).eval()
    ids = torch.randint(1_000, (64, 33), generator=generator)
    causal = torch.ones(1, 32, 32, dtype=torch.bool).tril()
    with torch.no_grad():
        logits = model(ids[:, :-1], causal)
    return round(perplexity_from_logits(logits.flatten(0, 1), ids[:, 1:].flatten()), 1)


untrained_ppl = predict("L2.3", predicted_ppl, untrained_perplexity)
print(f"1,000 tokens, and a perplexity {abs(untrained_ppl / 1_000 - 1):.1%} away from that. Random")
print("weights are not quite indifferent, and a preference that the text does not share costs.")

# %% test="L2_3_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind, plain

demand(kind(plain(predicted_ppl)) == "a number", "L2.3 prediction: write a number, any number, first.")
print("✓ L2.3 prediction: noted")

# %% [markdown]
# ### Worse than knowing nothing
#
# The perplexity of a model without preferences is the size $V$ of its vocabulary. Is that the worst there
# is? A model can also be *confidently wrong*.
#
# Build one. Return logits (a list of `vocab_size` numbers) and the id of a true token for which
# the perplexity of this one prediction is at least **twice** the size of the vocabulary.

# %% answer="L2_3_worse"
def worse_than_uniform(vocab_size):
    """A pair (logits, target) whose perplexity is at least 2 · vocab_size."""
    ### BEGIN SOLUTION
    logits = [0.0] * vocab_size
    logits[0] = math.log(2 * vocab_size) + 1  # sure of token 0 ...
    return logits, 1  # ... and token 1 came
    ### END SOLUTION

# %% test="L2_3_worse" points=1
from math import exp, fsum, log

from course_lib.teaching.check import demand, each
from course_lib.teaching.plain import is_placeholder, kind, plain

sizes = [2, 10, 1000]
### BEGIN HIDDEN TESTS
from random import SystemRandom

sizes += [SystemRandom().randint(3, 500) for _ in range(3)]
### END HIDDEN TESTS
for size, pair in zip(sizes, plain(each(worse_than_uniform, [(size,) for size in sizes]))):
    demand(not is_placeholder(pair), "Not attempted yet, or a `return` forgotten: got nothing.")
    demand(kind(pair) == "a list" and len(pair) == 2 and kind(pair[0]) == "a list",
           "Return two things: the logits, and the id of the true token.")
    logits, target = pair
    demand(len(logits) == size and all(kind(x) == "a number" for x in logits),
           "The logits must be numbers, one for each token of the vocabulary.")
    demand(target in range(size), "The target must be a token id, from 0 to vocab_size - 1.")
    top = max(logits)
    loss = top - logits[target] + log(fsum(exp(x - top) for x in logits))
    demand(abs(loss - log(size)) > 1e-6,
           "Equal logits give exactly V. Let the model prefer one wrong token.")
    demand(loss > log(size),
           "This model prefers the true token, so it is below V. Let it prefer a wrong one.")
    demand(loss >= log(2 * size),
           "Above V, but not yet twice V: make the model surer of its wrong token.")
print("✓ L2.3 worse_than_uniform: right")

# %% [markdown]
# ### What the number means
#
# A friend reads “perplexity 50,000” off this model. Which reading is right? Answer with a letter.
#
# - **a** The model needs about 50,000 guesses until it hits the next token.
# - **b** The model is as unsure as if it picked evenly among 50,000 tokens.
# - **c** The model gets one token in 50,000 right, so its accuracy is 1/50,000.
# - **d** No model can have a higher perplexity on this vocabulary.

# %% answer="L2_3_reading"
reading = (
    ### BEGIN SOLUTION
    "b"
    ### END SOLUTION
)

# %% test="L2_3_reading" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
diagnose(reading, right="b", public="L2.3 reading", wrong={
    "Guessing evenly without repeats takes 25,000.5 tries on average, not 50,000. Perplexity is no "
    "count of tries: it is the number of equally likely choices that would be as surprising.": "a",
    "Accuracy asks whether the top token was right; perplexity asks how probable the true one was. Two "
    "models with the same accuracy can have any perplexities.": "c",
    "M21: You have just built a counter-example: a confidently wrong model has a higher perplexity than V.":
        "d",
})
### END HIDDEN TESTS
check("L2.3 reading", reading)

# %% [markdown]
# ### In your own words
#
# In two or three sentences: what does a perplexity of 50,000 say about this model, and why must a useful
# model score below it *on text like its training data* although nothing forces it to?

# %% [markdown] written="L2_3_words" points=1
# ### BEGIN SOLUTION
# The model is as unsure as somebody who picks evenly among 50,000 tokens: it has learnt nothing about
# which tokens are likely. Giving every token the same probability is always open to a model, and any
# regularity it picks up, were it only that some tokens are frequent, lowers the average surprise on
# text of the same kind; so a trained model that is not below V has learnt nothing useful. Nothing
# caps it there, though: on other text, or when it is sure of wrong tokens, it can be far above V.
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# One point for both parts, none for one:
#
# 1. the reading: as unsure as an even choice among 50,000 tokens, so nothing was learnt;
# 2. the reason: an even distribution is always available, and anything learnt, even token frequencies,
#    lowers the average surprise. V is the mark of indifference, not an upper bound.
#
# An answer that calls V the worst possible perplexity gets no point and a comment that points to
# `worse_than_uniform`.
# ### END MARK SCHEME
