# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
#   language_info: {name: python}
# ---

# %% [markdown]
# # Level 5 · Mastery
#
# Three claims that are made about pretraining every day: that predicting the next word forces a model to
# learn facts, that no model does worse than one that knows nothing, and that masking more makes the task
# better. Here you find out what is right about each, and write the argument that settles it.
#
# | question | what you do | points |
# |---|---|---|
# | **L5.1** prediction is compression | turn probabilities into bits, compress, probe for a fact | 9 |
# | **L5.2** perfect, uniform, worse | build a model of any perplexity you are asked for | 8 |
# | **L5.3** mask everything? | refute a proposal; repair the objective; catch its bugs | 11 |
#
# About 90 minutes. Replace each `...` with your answer and run the cell below it. After a try,
# `hint("L5.1")` in a new cell opens a hint. When your work is graded, your functions are also called with
# inputs that you have not seen, so write them for every case that the text describes.

# %% locked="L5_setup"
import math
import zlib
from fractions import Fraction

import torch

from course_lib.model import TinyTransformer, train
from course_lib.objectives import causal_lm
from course_lib.oracle import MarkovWorld
from course_lib.teaching.check import hint, predict
from course_lib.teaching.show import BLUE, ORANGE, VERMILLION, Picture, new_figure
from course_lib.teaching.suspects import SUSPECTS
from course_lib.text import fact_sentences, stdlib_prose, train_words

# %% locked="L5_cards"
from course_lib.teaching.cards import cards

cards("level5")

# %% [markdown]
# ## L5.1 Prediction is compression
#
# Suppose that you and a friend own the same model. To send a text you need not send the letters: your
# friend's model already expects some of them, and you only have to say what it could not know. A token
# to which it gave the probability $p$ takes $-\log_2 p$ bits to say: 1 bit for a token that was as
# likely as a coin's head, 0 for one that was certain. These costs add up over the text.
#
# Write that **code length**. `token_probs` holds the probabilities that the model gave, one after the
# other, to the tokens that really came. A text of no tokens takes 0 bits; a long one has many thousand
# tokens.

# %% answer="L5_1_code_length"
def code_length_bits(token_probs):
    """How many bits it takes to send a text, from the probabilities of its tokens."""
    ### BEGIN SOLUTION
    return -sum(math.log2(p) for p in token_probs)
    ### END SOLUTION

# %% test="L5_1_code_length" points=2
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, each
from math import ceil, fsum, inf, log, log2
from random import SystemRandom

draw = SystemRandom()


def lures(probs):
    bits = [-log2(p) for p in probs]
    total = fsum(bits)
    return {
        "M6: You counted in nats. A bit is a choice between two, so take log base 2.":
            total * log(2),
        "That is from log base 10. A bit is a choice between two, so take log base 2.":
            total * log(2, 10),
        "You averaged over the tokens. Each has to be sent, so their costs add up.": total / len(bits),
        "The sign is wrong: a length in bits is minus the logarithm, so it is never negative.": -total,
        "You rounded every token up to whole bits. A good code shares bits between tokens, so that "
        "only the whole text is rounded. Leave the fractions in.": fsum(map(ceil, bits)),
        "You rounded the total. The code length is the sum itself; the coder below rounds it.":
            ceil(total),
        "You took the logarithm of the average probability. Every token has a cost of its own.":
            -log2(fsum(probs) / len(probs)),
        "That is the perplexity, an average. The code length is the sum of all costs in bits.":
            2 ** (total / len(bits)),
    }


example = [0.5, 0.3, 0.9]
diagnose(code_length_bits(example), right=fsum(map(log2, example)) * -1, wrong=lures(example),
         public="L5.1 code_length_bits")

texts = [[draw.uniform(0.02, 0.98) for _ in range(draw.randint(2, 12))] for _ in range(10)]
for probs, bits in zip(texts, each(code_length_bits, [(probs,) for probs in texts])):
    diagnose(bits, right=-fsum(map(log2, probs)), rel=1e-4, wrong=lures(probs),
             what="code_length_bits of other texts")
diagnose(code_length_bits([]), right=0, what="code_length_bits of a text without tokens")

UNDERFLOW = (
    "With thousands of tokens the product of the probabilities is smaller than the smallest number a "
    "computer has, so it became 0. Take the logarithm of each token first, then add."
)
long = [draw.uniform(0.02, 0.98) for _ in range(5000)]
try:
    bits = code_length_bits(long)
except (ValueError, OverflowError, ZeroDivisionError):
    bits = inf
diagnose(bits, right=-fsum(map(log2, long)), rel=1e-4, wrong={UNDERFLOW: inf},
         what="code_length_bits of 5,000 tokens")
### END HIDDEN TESTS
check("L5.1 code_length_bits", code_length_bits, [0.5, 0.3, 0.9])

# %% [markdown]
# ### A model that learns while it reads
#
# Where does the model come from? If you counted the letters of the whole text first, your friend could not
# follow: those counts are not known before the text has arrived. So let the model learn *while* it
# reads. Both sides start from the same guess and update it in the same way after every token.
#
# The simplest one counts. With a vocabulary of $V$ tokens, after $t$ tokens of which $n_x$ were
# the token $x$, it expects $x$ next with the probability
#
# $$p(x) = \frac{n_x + 1}{t + V}$$
#
# The $+1$ pretends that every token had been seen once already, so that none is impossible.
# Return, for every token of `ids`, the probability that it had *just before it was read*.

# %% answer="L5_1_unigram"
def unigram_probs(ids, vocab_size):
    """A list: the probability that add-one counting gives each id before it is read."""
    ### BEGIN SOLUTION
    counts = [1] * vocab_size
    probs = []
    for t, token in enumerate(ids):
        probs.append(counts[token] / (t + vocab_size))
        counts[token] += 1
    return probs
    ### END SOLUTION

# %% test="L5_1_unigram" points=2
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import demand, diagnose, observe
from random import SystemRandom

draw = SystemRandom()


def with_counts(ids, count):
    return [count(ids, t, token) for t, token in enumerate(ids)]


def lures(ids, V):
    N = len(ids)
    return {
        "M16: You counted in the whole text, later tokens too. Your friend has only what came "
        "before: count what stands to the left of each token.":
            with_counts(ids, lambda ids, t, x: (ids.count(x) + 1) / (N + V)),
        "M16: Those are the frequencies in the whole text. Your friend has only what came before each "
        "token: count what stands to its left.":
            with_counts(ids, lambda ids, t, x: ids.count(x) / N),
        "M16: You counted the token itself before you predicted it. First read off its probability, "
        "then update its count.":
            with_counts(ids, lambda ids, t, x: (ids[:t + 1].count(x) + 1) / (t + 1 + V)),
        "M16: The count already holds the token that is to be predicted. First read off its "
        "probability, then update its count.":
            with_counts(ids, lambda ids, t, x: (ids[:t + 1].count(x) + 1) / (t + V)),
        "Without the +1 a token that comes for the first time has probability 0, and no code can say "
        "it. Start every count at 1.":
            with_counts(ids, lambda ids, t, x: ids[:t].count(x) / max(t, 1)),
        "The V in the denominator is missing. Add the probabilities of all V tokens up: they must "
        "make 1.":
            with_counts(ids, lambda ids, t, x: (ids[:t].count(x) + 1) / (t + 1)),
        "With +1 in the numerator only, the probabilities of all V tokens add up to more than 1. Put "
        "the V pretended tokens into the denominator too.":
            with_counts(ids, lambda ids, t, x: (ids[:t].count(x) + 1) / max(t, 1)),
        "That is an even guess everywhere. Let the counts of what was read change it.": [1 / V] * N,
    }


def right(ids, V):
    return with_counts(ids, lambda ids, t, x: (ids[:t].count(x) + 1) / (t + V))


banana = [1, 0, 2, 0, 2, 0]
diagnose(unigram_probs(list(banana), 3), right=right(banana, 3), wrong=lures(banana, 3),
         public="L5.1 unigram_probs")
for _ in range(6):
    V = draw.randint(4, 9)
    ids = [0, 0, *(draw.choices(range(V), range(1, V + 1), k=draw.randint(6, 30)))]
    draw.shuffle(ids)
    seen = observe(unigram_probs, ids, V)
    demand(seen.args[0] == ids, "unigram_probs changed the list that it was given; leave it as it was.")
    diagnose(seen.result, right=right(ids, V), rel=1e-4, wrong=lures(ids, V),
             what="unigram_probs of other texts")
### END HIDDEN TESTS
check("L5.1 unigram_probs", unigram_probs, [1, 0, 2, 0, 2, 0], 3)

# %% [markdown]
# ### An experiment: who makes the text smallest?
#
# Two texts of 20,000 letters. One is English, from the documentation of Python. The other was written by
# a Markov chain over the 16 letters a to p: every letter was drawn with probabilities that depend on
# the letter before it, and on nothing else. Three programs compress both:
#
# - `unigram`: your counting model;
# - `bigram`: your counting model again, one for each letter that can come before;
# - `zlib`: the program behind .zip and .png, which has no probabilities at all; it replaces
#   what it has seen before by a reference to it.
#
# **Predict first:** who makes the English text smallest, and who the chain's? Write two names, as in
# `["unigram", "unigram"]`. Any two earn the point; what counts is that you commit to them.

# %% answer="L5_1_prediction"
predicted_smallest = (
    ### BEGIN SOLUTION
    ["zlib", "bigram"]
    ### END SOLUTION
)

# %% locked="L5_1_programs"
def bigram_probs(ids, vocab_size):
    """One counting model for each token that can come before."""
    after = {}
    for previous, token in zip([None, *ids], ids):
        after.setdefault(previous, []).append(token)
    probs = {
        previous: iter(unigram_probs(tokens, vocab_size))
        for previous, tokens in after.items()
    }
    return [next(probs[previous]) for previous in [None, *ids[:-1]]]


def bits_per_byte(text):
    """What each program needs for a text; as it stands, each letter is one byte."""
    alphabet = sorted(set(text))
    ids = [alphabet.index(letter) for letter in text]
    bits = {
        "even guess": len(ids) * math.log2(len(alphabet)),
        "unigram": code_length_bits(unigram_probs(ids, len(alphabet))),
        "bigram": code_length_bits(bigram_probs(ids, len(alphabet))),
        "zlib": 8 * len(zlib.compress(text.encode(), 9)),
    }
    return {program: float(n) / len(ids) for program, n in bits.items()}


generator = torch.Generator().manual_seed(1)
chain = MarkovWorld.random(16, generator=generator, sharpness=2.0)
chain_BT = chain.sample(20, 1_000, generator=generator)
texts = {
    "English": stdlib_prose(20_000),
    "the chain": "".join("abcdefghijklmnop"[i] for i in chain_BT.flatten()),
}

# %% locked="L5_1_experiment" tags=["nbval-ignore-output"]
sizes = {}


def smallest():
    sizes.update({name: bits_per_byte(text) for name, text in texts.items()})
    programs = "unigram", "bigram", "zlib"
    return [min(programs, key=n_bits.get) for n_bits in sizes.values()]


def bar_chart(sizes):
    figure, axes = new_figure(7, 3.6)
    programs = ["even guess", "unigram", "bigram", "zlib", "true law"]
    for shift, text, style in (
        (0, "English", {"color": BLUE}),
        (0.38, "the chain", {"color": ORANGE, "hatch": "//"}),
    ):
        widths = [sizes[text].get(program, 0) for program in programs]
        rows = [row + shift for row in range(len(programs))]
        axes.barh(rows, widths, 0.36, label=text, edgecolor="white", **style)
        for row, width in zip(rows, widths):
            number = f"{width:.2f}" if width else "nobody knows"
            axes.text(width + 0.05, row, number, va="center")
    axes.set_yticks([row + 0.19 for row in range(len(programs))], programs)
    axes.set(xlabel="bits per byte: shorter is better", xlim=(0, 7.5))
    axes.invert_yaxis()
    axes.legend(loc="lower right", frameon=False)
    alt = [
        f"{text}: " + ", ".join(f"{program} {n:.2f}" for program, n in n_bits.items())
        for text, n_bits in sizes.items()
    ]
    return Picture(figure, f"Bits per byte. {'. '.join(alt)}.")


predict("L5.1", predicted_smallest, smallest)
true_nats = -float(chain.log_prob(chain_BT).sum())
sizes["the chain"]["true law"] = true_nats / math.log(2) / chain_BT.numel()
print("""
No program is best everywhere: each is as good as its idea of the text. zlib knows
repeated phrases, and documentation is full of them; the chain has none. There the
bigram model has the right idea, and pays only for learning 16 x 16 probabilities. The
true law, which has nothing to learn, is the least that a program needs on average.""")
bar_chart(sizes)

# %% test="L5_1_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, kind

demand(not is_placeholder(predicted_smallest),
       "L5.1 prediction: not attempted yet. Write two names before you run the experiment.")
demand(kind(predicted_smallest) == "a list" and len(predicted_smallest) == 2
       and all(name in ("unigram", "bigram", "zlib") for name in predicted_smallest),
       'L5.1 prediction: write two of the names "unigram", "bigram" and "zlib", in a list.')
print("✓ L5.1 prediction: noted")

# %% [markdown]
# Are these lengths more than bookkeeping? The next cell has an **arithmetic coder**, which turns your
# `unigram_probs` into real zeros and ones. It starts with all numbers from 0 to 1. Every token
# narrows that interval down to a part as wide as the token's probability, and in the end any number
# inside says which text it was. A narrow interval takes many digits to hit: with width $w$ it is
# $\lceil -\log_2 w \rceil + 1$ bits at most.

# %% locked="L5_1_coder"
def next_probs(prefix, vocab_size):
    """What your model expects after `prefix`, for every token, as exact fractions."""
    probs = []
    for token in range(vocab_size):
        p = float(unigram_probs([*prefix, token], vocab_size)[-1])
        probs.append(Fraction(p).limit_denominator(10**6))
    return [p / sum(probs) for p in probs]


def encode(ids, vocab_size):
    """The text as a string of bits."""
    low, width = Fraction(0), Fraction(1)
    for t, token in enumerate(ids):
        probs = next_probs(ids[:t], vocab_size)
        low, width = low + width * sum(probs[:token]), width * probs[token]
    n_bits = 1
    while Fraction(2, 2**n_bits) > width:
        n_bits += 1
    return f"{math.ceil(low * 2**n_bits):0{n_bits}b}"


def decode(bits, n_tokens, vocab_size):
    """The text back from its bits: the friend's side, with the same model."""
    point = Fraction(int(bits, 2), 2 ** len(bits))
    ids, low, width = [], Fraction(0), Fraction(1)
    while len(ids) < n_tokens:
        for token, p in enumerate(next_probs(ids, vocab_size)):
            if point < low + width * p:
                break
            low += width * p
        width *= p
        ids.append(token)
    return ids


message = "she sells sea shells by the sea shore"
letters = sorted(set(message))
ids = [letters.index(letter) for letter in message]
bits = encode(ids, len(letters))
decoded = "".join(letters[i] for i in decode(bits, len(ids), len(letters)))
computed = float(code_length_bits(unigram_probs(ids, len(letters))))
print(f"as bytes:          {8 * len(message)} bits")
print(f"code_length_bits:  {computed:.2f} bits")
print(f"the coder wrote:   {len(bits)} bits: {bits[:40]}...")
print(f"the decoder read:  {decoded}")

# %% [markdown]
# So a loss is a file size: the mean loss in bits, times the number of tokens, is what is left of the text
# once the model has taken away what it knew.
#
# ### Does it know a *fact*?
#
# Most of a loss is spelling and grammar. To see a fact in it, look where nothing but the fact helps. The
# 32 sentences of our next text all read *The capital of Peru is Lima.*, with 32 countries and their
# capitals. One tiny transformer reads them over and over, in random order. Its twin, the
# **control**, reads the same words just as often, but before every round the capitals are dealt out anew
# at random: Peru's is Oslo, then Rome, then Cairo. So there is nothing to know.
#
# At its best, what can the control pay for a capital on average, in **bits**? Work it out; an
# expression is fine.

# %% answer="L5_1_unknown"
unknown_capital_bits = (
    ### BEGIN SOLUTION
    math.log2(32)
    ### END SOLUTION
)

# %% test="L5_1_unknown" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import log

diagnose(unknown_capital_bits, right=5, public="L5.1 unknown_capital_bits", wrong={
    "M6: That is in nats. A bit is a choice between two: take log base 2.": log(32),
    "That is from log base 10. A bit is a choice between two: take log base 2.": log(32, 10),
    "That is the perplexity, the number of equally likely choices. In bits it is its logarithm.": 32,
    "The sign is wrong: minus the logarithm of a probability is never negative.": -5,
    "That is the probability of one capital. In bits a surprise is minus its logarithm.": 1 / 32,
    "That would be a capital that is certain. The control can't know which of the 32 comes.": 0,
    "The country is known when the capital is to be predicted, and capitals are drawn from 32, not 64.":
        6,
    "You counted the country too. Only the capital is asked for.": 10,
})
### END HIDDEN TESTS
check("L5.1 unknown_capital_bits", unknown_capital_bits)

# %% [markdown]
# Now the measurement. `ids` is a tensor (sentences × tokens); every sentence ends with its capital and
# a full stop, so the capital is token `-2`. `logits` is (sentences × tokens × vocabulary): the row at
# token `t` is what the model expects *next*, after it has read the tokens up to and including `t`.
# Return the mean number of bits that the capitals cost.

# %% answer="L5_1_fact"
def fact_bits(logits, ids):
    """Mean bits of the second last token of each sentence."""
    ### BEGIN SOLUTION
    log_probs = torch.log_softmax(logits[:, -3].double(), dim=-1)
    nats = -log_probs[torch.arange(len(ids)), ids[:, -2]]
    return float(nats.mean()) / math.log(2)
    ### END SOLUTION

# %% test="L5_1_fact" points=1
import torch

from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from math import log
from random import SystemRandom

draw = SystemRandom()


def cost(logits, ids, row, token):
    log_probs = logits[:, row].double().log_softmax(-1)
    return -log_probs[torch.arange(len(ids)), ids[:, token]] / log(2)


def lures(logits, ids):
    bits = cost(logits, ids, -3, -2)
    shifted = torch.stack([cost(logits, ids, t, t + 1) for t in range(ids.shape[1] - 1)])
    return {
        "M6: You measured in nats. Divide by ln 2 to get bits.": bits.mean() * log(2),
        "M8: You asked the row at the capital itself for the capital. That row has read it and expects "
        "what comes after; take the row before.": cost(logits, ids, -2, -2).mean(),
        "M8: You took the row two before the capital. The row at `t` expects token `t + 1`.":
            cost(logits, ids, -4, -2).mean(),
        "You scored the full stop. The capital stands before it, at token -2.":
            cost(logits, ids, -2, -1).mean(),
        "M8: You scored the full stop, and asked the row that has already read it. The capital is token "
        "-2, and the row before it expects it.": cost(logits, ids, -1, -1).mean(),
        "You averaged over all tokens of the sentence. Only the capital shows the fact.": shifted.mean(),
        "You added the sentences up. Return their mean.": bits.sum(),
        "You averaged the probabilities first. Take the logarithm of each, then average.":
            -(2.0 ** -bits).mean().log2(),
        "The sign is wrong: a surprise is minus the logarithm.": -bits.mean(),
        "You used the logits themselves as log-probabilities. Normalise them first (log_softmax).":
            -logits[torch.arange(len(ids)), -3, ids[:, -2]].double().mean() / log(2),
    }


def draws(n, length, V, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, length, V, generator=generator)
    return logits, torch.randint(V, (n, length), generator=generator)


example = draws(3, 5, 4, seed=0)
diagnose(fact_bits(*example), right=cost(*example, -3, -2).mean(), wrong=lures(*example),
         public="L5.1 fact_bits")
cases = [
    draws(draw.randint(2, 6), draw.randint(4, 8), draw.randint(3, 20), seed=draw.randrange(2**40))
    for _ in range(6)
]
for case, bits in zip(cases, each(fact_bits, cases)):
    diagnose(bits, right=cost(*case, -3, -2).mean(), rel=1e-4, wrong=lures(*case),
             what="fact_bits of other sentences")
### END HIDDEN TESTS
check_generator = torch.Generator().manual_seed(0)
check("L5.1 fact_bits", fact_bits, 2 * torch.randn(3, 5, 4, generator=check_generator),
      torch.randint(4, (3, 5), generator=check_generator))

# %% [markdown]
# The experiment trains both twins, about a second in all, and asks each about a new round of its own kind.
# Your number for the control is your prediction. How much will the other twin pay?

# %% locked="L5_1_probe" tags=["nbval-ignore-output"]
def reader_of_facts(shuffled, rounds=100):
    """Train on rounds of 32 sentences; return the bits of a capital in a new one."""
    generator = torch.Generator().manual_seed(0)
    sentences = fact_sentences(rounds + 1, shuffled=shuffled, generator=generator)
    tokenizer = train_words(sentences[:32])
    ids_RBT = torch.tensor([e.ids for e in tokenizer.encode_batch(sentences)])
    *lessons, exam_BT = ids_RBT.view(rounds + 1, 32, -1)
    model = TinyTransformer(
        tokenizer.get_vocab_size(), d_model=32, n_layers=1, generator=generator
    )
    train(model, map(causal_lm, lessons), steps=rounds, lr=1e-2, progress=False)
    causal_TT = torch.ones(exam_BT.shape[1], exam_BT.shape[1], dtype=torch.bool).tril()
    with torch.no_grad():
        return round(float(fact_bits(model(exam_BT, causal_TT), exam_BT)), 2)


control = predict("L5.1", unknown_capital_bits, lambda: reader_of_facts(shuffled=True))
twin = reader_of_facts(shuffled=False)
print(f"That is the control. Its twin, which had the true table, pays {twin} bits.")
print("""
Both read the same words, equally often, in the same sentences; only the table differs.
The bits between them measure what one of them has stored in its weights: the table.""")

# %% [markdown]
# ### What may you conclude?
#
# The same held-out news text costs model A 0.9 bits per byte and model B 1.0. The two have different
# tokenizers. What may you conclude? Answer with a letter.
#
# - **a** Nothing: losses of models with different tokenizers can't be compared.
# - **b** A has stored more facts than B.
# - **c** A predicts this text better; whether that is due to facts, a probe has to show.
# - **d** A is the better compressor; which of them predicts better is another question.

# %% answer="L5_1_reading"
compression_reading = (
    ### BEGIN SOLUTION
    "c"
    ### END SOLUTION
)

# %% test="L5_1_reading" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
diagnose(compression_reading, right="c", public="L5.1 reading", wrong={
    "M7: Perplexities per *token* can't be compared, for the tokens differ. Bits per byte can: both "
    "models are charged for the same bytes.": "a",
    "A mean over all tokens doesn't say where it was won: better spelling or a better grasp of style "
    "lowers it too. What did the twin experiment need besides a loss?": "b",
    "Your own functions made a file size out of nothing but probabilities: the bits are the loss. "
    "Can one then be better without the other?": "d",
})
### END HIDDEN TESTS
check("L5.1 reading", compression_reading)

# %% [markdown]
# ### In your own words
#
# "Predicting the next word forces a model to learn facts." Give the tightest argument for it that you
# can, in one or two sentences, and name the quantity that measures how far a model has come.

# %% [markdown] written="L5_1_words" points=1
# ### BEGIN SOLUTION
# Every token costs $-\log p$ of the true continuation, so wherever a fact decides what comes next
# (*The capital of Peru is …*) only a model that stores the fact gets a low cost, and minimising the
# cost over all text presses everything into the weights that constrains a next token: grammar,
# reference, arithmetic, facts. The measure is the cross-entropy on held-out text, in nats or bits per
# token or, across tokenizers, bits per byte; perplexity is the same number exponentiated.
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# One point for both parts, none for one:
#
# 1. the argument: the loss is minus the log-probability of the true next token, so where a fact decides
#    the token, a low loss requires the fact (any wording, compression included);
# 2. the quantity: cross-entropy (negative log-likelihood, code length, bits per byte) or perplexity, of
#    held-out text. "Accuracy" or "how good the answers are" is not it.
#
# A remark that the mean alone doesn't show *which* knowledge lowered it deserves praise, not a point.
# ### END MARK SCHEME

# %% [markdown]
# ## L5.2 Perfect, uniform, worse
#
# Three models have a vocabulary of 32,000 tokens. The first gives the true next token the probability 1,
# every time. The second gives every token the same probability, every time. The third is a real model,
# whose loss on some text is 2.5 nats per token. What are their perplexities?

# %% answer="L5_2_numbers"
ppl_perfect = (
    ### BEGIN SOLUTION
    1
    ### END SOLUTION
)
ppl_even = (
    ### BEGIN SOLUTION
    32_000
    ### END SOLUTION
)
ppl_real = (
    ### BEGIN SOLUTION
    math.exp(2.5)
    ### END SOLUTION
)

# %% test="L5_2_numbers" points=2
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import exp, log

V = 32_000
diagnose(ppl_perfect, right=1, public="L5.2 perfect", wrong={
    "That is the loss of a perfect model. Perplexity is e to its power.": 0,
    "V is the perplexity of a model that knows nothing. This one is never surprised.": V,
    "That is one over V. Perplexity counts equally likely choices; here there is always one.": 1 / V,
})
diagnose(ppl_even, right=V, public="L5.2 even", wrong={
    "That is the loss. Perplexity is e to its power.": log(V),
    "M6: That is the loss in bits. Perplexity is 2 to its power.": log(V, 2),
    "M6: That is 2 to the power of a loss in nats. A loss in nats goes with e, one in bits with 2.":
        2 ** log(V),
    "That is the probability of one token. Perplexity is the number of equally likely choices.": 1 / V,
    "An even guess has V equally likely choices, not half of them: perplexity is no average number of "
    "tries.": (V + 1) / 2,
    "That is half of V, an average number of tries. Perplexity is the number of equally likely choices.":
        V / 2,
})
diagnose(ppl_real, right=exp(2.5), public="L5.2 real", wrong={
    "That is right to three digits. Write one more, or the expression itself.": 12.2,
    "That is the loss itself. Perplexity is e to its power.": 2.5,
    "M6: That is 2 to the power of a loss in nats. A loss in nats goes with e, one in bits with 2.":
        2**2.5,
    "That is 10 to the power of the loss. A loss in nats goes with e.": 10**2.5,
    "That is one over the perplexity, the typical probability of the true token.": exp(-2.5),
    "You divided the loss by that of an even guess. Perplexity is e to the loss, whatever V is.":
        2.5 / log(V),
    "The logarithm leads from a perplexity to its loss. You need the way back.": log(2.5),
})
### END HIDDEN TESTS
check("L5.2 perfect", ppl_perfect)
check("L5.2 even", ppl_even)
check("L5.2 real", ppl_real)

# %% [markdown]
# ### An experiment: a model far from home
#
# Take two Markov chains over the same eight letters; each has its own habits of which letter follows
# which. The model knows the *first* chain perfectly: nobody can predict that chain better. Now it is
# given text that the *second* chain wrote, and is as sure of itself as ever.
#
# **Predict first:** what perplexity will it have on that text? (Two numbers to hold on to: there are
# eight letters, and at home it has a perplexity between 3 and 4.)

# %% answer="L5_2_prediction"
predicted_away = (
    ### BEGIN SOLUTION
    20
    ### END SOLUTION
)

# %% locked="L5_2_experiment"
home = MarkovWorld.random(8, generator=torch.Generator().manual_seed(7), sharpness=2.0)
away = MarkovWorld.random(8, generator=torch.Generator().manual_seed(8), sharpness=2.0)


def perplexity_of(model, ids_BT):
    """Of every token that has a predecessor."""
    log_probs_BTV = model.next_token_log_probs(ids_BT[:, :-1])
    return math.exp(-log_probs_BTV.gather(-1, ids_BT[:, 1:, None]).mean())


away_BT = away.sample(200, 50, generator=torch.Generator().manual_seed(0))
home_BT = home.sample(200, 50, generator=torch.Generator().manual_seed(0))
predict("L5.2", predicted_away, lambda: round(perplexity_of(home, away_BT), 1))
print(f"At home it has {perplexity_of(home, home_BT):.1f}.")
print("""
Somebody who picks evenly among the eight letters, and so knows nothing, would have 8 on
any text. What this model knows is wrong here, and it is sure of it: each letter that it
had all but ruled out costs it dearly.""")

# %% test="L5_2_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, kind, plain

demand(not is_placeholder(predicted_away),
       "L5.2 prediction: not attempted yet. Write a number before you run the experiment.")
demand(kind(plain(predicted_away)) == "a number", "L5.2 prediction: write a number, any number.")
print("✓ L5.2 prediction: noted")

# %% [markdown]
# And the other end? A text over two letters was written by a coin: after each letter the *same* letter
# comes again with probability 4/5, the *other* one with probability 1/5. What is the lowest perplexity
# that any model can expect on a very long text of this kind?

# %% answer="L5_2_floor"
lowest_ppl = (
    ### BEGIN SOLUTION
    math.exp(-(0.8 * math.log(0.8) + 0.2 * math.log(0.2)))
    ### END SOLUTION
)

# %% test="L5_2_floor" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import exp, log

nats = -(0.8 * log(0.8) + 0.2 * log(0.2))
diagnose(lowest_ppl, right=exp(nats), public="L5.2 lowest_ppl", wrong={
    "That would be a text in which every letter is certain. Here a coin decides, and the best model knows "
    "no more than its odds.": 1,
    "That is the perplexity of picking evenly, or the average of 1/p. The best model "
    "gives 4/5 and 1/5: average its surprises, then exponentiate.": 2,
    "That is the average loss in nats. Perplexity is e to its power.": nats,
    "M6: That is the average loss in bits. Perplexity is 2 to its power.": nats / log(2),
    "M6: That is 2 to the power of a loss in nats. Use e with nats.": 2**nats,
    "M6: That is e to the power of a loss in bits. Use 2 with bits.": exp(nats / log(2)),
    "That is 1/0.8, where the likelier letter comes. The other comes too, one time in five.": 1.25,
    "That is one over the average probability. Average the surprises first, then exponentiate.":
        1 / 0.68,
    "0 is a loss, that of a certain text. No perplexity is below 1.": 0,
})
### END HIDDEN TESTS
check("L5.2 lowest_ppl", lowest_ppl)

# %% [markdown]
# ### Build a model of any perplexity
#
# Show that you know the whole range. Return a distribution over `vocab_size` tokens, a list of
# probabilities, for which the true token, **token 0**, has the perplexity `target`. Every target that is
# possible must be met (within 0.01%), for every vocabulary of at least two tokens; for a target
# that is impossible raise a `ValueError` that says why.

# %% answer="L5_2_model"
def model_with_ppl(target, vocab_size):
    """Probabilities of all tokens, such that token 0 has the perplexity `target`."""
    ### BEGIN SOLUTION
    if target < 1:
        raise ValueError(f"perplexity {target}: no probability is above 1")
    right = 1 / target
    return [right] + [(1 - right) / (vocab_size - 1)] * (vocab_size - 1)
    ### END SOLUTION

# %% test="L5_2_model" points=2
from math import isclose, isfinite

from course_lib.teaching.check import demand, each
from course_lib.teaching.plain import is_placeholder, kind, plain

targets = [(3, 10), (1, 10), (10, 10)]
### BEGIN HIDDEN TESTS
from random import SystemRandom

draw = SystemRandom()
for _ in range(6):
    V = draw.randint(2, 300)
    targets += [(draw.uniform(1, V), V), (V, V), (1, V)]
### END HIDDEN TESTS
for (target, V), probs in zip(targets, plain(each(model_with_ppl, targets))):
    demand(not is_placeholder(probs), "Not attempted yet, or a `return` forgotten: got nothing.")
    demand(kind(probs) == "a list" and all(kind(p) == "a number" and isfinite(p) for p in probs),
           "Return a list of probabilities, plain numbers.")
    demand(len(probs) == V, f"There are {V} tokens but {len(probs)} probabilities. Give one for each.")
    demand(min(probs) > -1e-9, f"A probability is {min(probs):.3g}. None may be negative.")
    demand(isclose(sum(probs), 1, rel_tol=1e-5),
           f"The probabilities add up to {sum(probs):.4g}. All mass must be somewhere: share what the "
           "true token does not get among the others.")
    demand(probs[0] > 0, "Token 0, the true one, has probability 0, and so an infinite perplexity.")
    got = 1 / probs[0]
    demand(isclose(got, target, rel_tol=1e-4) or not isclose(1 / max(probs), target, rel_tol=1e-4),
           "The perplexity is right for another token. The true token is token 0.")
    demand(isclose(got, target, rel_tol=1e-4),
           f"Asked for perplexity {target:.4g}, the true token's is {got:.4g}. Which probability has "
           "exactly the asked perplexity, if there is just one token?")
print("✓ L5.2 model_with_ppl between 1 and V: right")

# %% test="L5_2_model__beyond" points=1
from math import isclose, isfinite

from course_lib.teaching.check import demand, each, raises
from course_lib.teaching.plain import is_placeholder, kind, plain

CEILING = (
    "M21: V is no upper bound: it is what a model scores that knows nothing, and one can be sure of a "
    "wrong token. "
)
targets = [(100, 10)]
impossible = [0.5]
### BEGIN HIDDEN TESTS
from random import SystemRandom

draw = SystemRandom()
for _ in range(4):
    V = draw.randint(2, 300)
    targets += [(draw.uniform(1.5 * V, 20 * V), V), (10**6, V)]
impossible += [draw.uniform(0.01, 0.99), 0, -draw.uniform(1, 5)]
### END HIDDEN TESTS
refused, answers = False, []
try:
    answers = plain(each(model_with_ppl, targets))
except ValueError:
    refused = True
demand(not refused, CEILING + "Don't refuse a target above it: where can the mass go?")
for (target, V), probs in zip(targets, answers):
    demand(not is_placeholder(probs), "Not attempted yet, or a `return` forgotten: got nothing.")
    demand(kind(probs) == "a list" and len(probs) == V
           and all(kind(p) == "a number" and isfinite(p) for p in probs),
           "Return a list of probabilities, one number for each token.")
    demand(min(probs) > -1e-9,
           CEILING + "Mixing the true token with an even guess takes a negative share to get there; put "
           "the mass on wrong tokens.")
    demand(isclose(sum(probs), 1, rel_tol=1e-5),
           f"The probabilities add up to {sum(probs):.4g}. What the true token does not get, wrong "
           "tokens must.")
    demand(probs[0] > 0, "Token 0 has probability 0, and so an infinite perplexity.")
    demand(not isclose(1 / probs[0], V, rel_tol=1e-4),
           CEILING + f"Asked for {target:.4g} with V = {V}, you returned an even guess.")
    demand(isclose(1 / probs[0], target, rel_tol=1e-4),
           f"Asked for perplexity {target:.4g}, the true token's is {1 / probs[0]:.4g}.")
for target in impossible:
    with raises(ValueError, f"A perplexity of {target:.3g} would take a probability above 1 or below 0: "
                            "raise a ValueError that says so."):
        model_with_ppl(target, 10)
print("✓ L5.2 model_with_ppl beyond: right")

# %% [markdown]
# ### The range
#
# Which statement holds for every model with a vocabulary of $V$ tokens and for every text?
#
# - **a** $1 \le \mathrm{PPL} \le V$
# - **b** $1 \le \mathrm{PPL}$, and there is no upper limit
# - **c** $1 \le \mathrm{PPL} \le V$, once the model has been trained
# - **d** $\mathrm{PPL} \ge e^{H}$, where $H$ is the entropy rate of whatever wrote the text

# %% answer="L5_2_range"
ppl_range = (
    ### BEGIN SOLUTION
    "b"
    ### END SOLUTION
)

# %% test="L5_2_range" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
diagnose(ppl_range, right="b", public="L5.2 range", wrong={
    "M21: The model far from home had eight letters. Was it below 8?": "a",
    "M21: Training makes a model confident, on text like its training text. The model far from home "
    "knew its own chain perfectly, and look where it ended.": "c",
    "That holds on average over all texts of that source. On *one* text a model can be luckier than "
    "that, and one that has memorised the text has perplexity 1.": "d",
})
### END HIDDEN TESTS
check("L5.2 range", ppl_range)

# %% [markdown]
# ## L5.3 Mask everything?
#
# A fellow student proposes: *“A masked language model learns by guessing. So let us mask 100% of the
# tokens: the task is as hard as can be, and the model learns the most.”*
#
# Test it where the best possible model is known. Our world is a Markov chain over $V = 8$ letters, and its
# **oracle** computes exactly how likely each letter is at a hidden place, given all the visible ones. No
# training can end better than the oracle does, so we need none.
#
# **Predict first:** texts of 16 letters; every letter is hidden with the same rate, independently, and
# the oracle is scored at the hidden ones. What is its perplexity at the rates 0.15, 0.5, 0.9 and
# 1.0? Write four numbers, as in `[1, 1, 1, 1]`.

# %% answer="L5_3_prediction"
predicted_ppls = (
    ### BEGIN SOLUTION
    [2.5, 3.5, 5.5, 6.5]
    ### END SOLUTION
)

# %% locked="L5_3_experiment"
world = MarkovWorld.random(8, generator=torch.Generator().manual_seed(7), sharpness=2.0)
LENGTH, RATES = 16, [0.15, 0.5, 0.9, 1.0]


def curve(losses):
    """The oracle's loss over the masking rate, and two lines to compare it with."""
    rates = [i / 100 for i in range(101)]
    figure, axes = new_figure(7, 3.8)
    axes.plot(rates, [world.mlm_loss(rate, LENGTH) for rate in rates], color=BLUE)
    axes.plot(RATES, losses, "o", color=VERMILLION)
    for rate, loss in zip(RATES, losses):
        label = f"{loss:.2f} (PPL {math.exp(loss):.2f})"
        axes.annotate(label, (rate, loss), (8, -12), textcoords="offset points")
    alt = [f"{loss:.2f} at rate {rate:g}" for rate, loss in zip(RATES, losses)]
    for height, name in ((math.log(8), "ln V"), (world.entropy, "H(π)")):
        axes.axhline(height, linestyle="--", color=ORANGE)
        axes.text(0.01, height + 0.03, f"{name} = {height:.2f}")
        alt.append(f"a line at {name} = {height:.2f}")
    axes.set(xlabel="masking rate", ylabel="loss at hidden letters (nats)")
    axes.set(xlim=(0, 1.3), ylim=(0.6, 2.3), xticks=[0, 0.25, 0.5, 0.75, 1])
    return Picture(figure, f"Loss of the oracle in nats: {', '.join(alt)}.")


exact_losses = [world.mlm_loss(rate, LENGTH) for rate in RATES]
ppls = [round(math.exp(loss), 2) for loss in exact_losses]
predict("L5.3", predicted_ppls, lambda: ppls)
print("""
The more is hidden, the less there is to go by. But the curve does not end at ln V, the
loss of an even guess, with a perplexity of 8. It ends on the lower line, at the entropy
of π, the frequencies of the letters in the language. What does a model know that gets
there without seeing anything, and what can it never know?""")
curve(exact_losses)

# %% test="L5_3_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, kind, plain

demand(not is_placeholder(predicted_ppls),
       "L5.3 prediction: not attempted yet. Write four numbers before you run the experiment.")
ppls = plain(predicted_ppls)
demand(kind(ppls) == "a list" and len(ppls) == 4 and all(kind(ppl) == "a number" for ppl in ppls),
       "L5.3 prediction: write four numbers in a list, one for each rate.")
print("✓ L5.3 prediction: noted")

# %% [markdown]
# Another language has five letters, which make up 1/2, 1/4, 1/8, 1/16 and 1/16 of its texts. A masked
# model for it was trained at a rate of 100%, for as long as you like. What is its perplexity?

# %% answer="L5_3_limit"
ppl_all_hidden = (
    ### BEGIN SOLUTION
    2 ** (1 / 2 * 1 + 1 / 4 * 2 + 1 / 8 * 3 + 1 / 16 * 4 + 1 / 16 * 4)
    ### END SOLUTION
)

# %% test="L5_3_limit" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
from math import exp, log

bits = 1.875
diagnose(ppl_all_hidden, right=2**bits, public="L5.3 ppl_all_hidden", wrong={
    "M20: That is an even guess. With everything hidden a model still learns which letters are frequent, "
    "and that is worth something.": 5,
    "That is the entropy in bits. Perplexity is 2 to its power.": bits,
    "That is the entropy in nats. Perplexity is e to its power.": bits * log(2),
    "M6: That is 2 to the power of an entropy in nats. Use e with nats.": 2 ** (bits * log(2)),
    "M6: That is e to the power of an entropy in bits. Use 2 with bits.": exp(bits),
    "That is where the most frequent letter comes, with p = 1/2. The others come too.": 2,
    "That is one over the average probability. Average the surprises first, then exponentiate.":
        1 / (1 / 4 + 1 / 16 + 1 / 64 + 2 / 256),
    "A model that always knows the letter has 1. This one sees nothing of the text.": 1,
    "You averaged the five surprises evenly. A letter counts as often as it comes.": 2**2.8,
})
### END HIDDEN TESTS
check("L5.3 ppl_all_hidden", ppl_all_hidden)

# %% [markdown]
# ### Measure it yourself
#
# On a real corpus there is no exact curve, only texts and a model. Write the measurement. `ids` are
# texts (texts × length). Hide every position independently with probability `rate`, drawing from
# `generator`; call `model(ids, hidden)`, where `hidden` is a tensor of `True` and `False` of the
# shape of `ids`. It returns log-probabilities, in nats (texts × length × V), of every letter at every
# position, and does not look at the ids of hidden positions. Return the mean loss over all hidden
# positions of all texts.

# %% answer="L5_3_rate"
def loss_at_rate(model, ids, rate, generator):
    """Mean nats at the hidden positions; each is hidden with probability `rate`."""
    ### BEGIN SOLUTION
    hidden = torch.rand(ids.shape, generator=generator) < rate
    log_probs = model(ids, hidden).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    return -log_probs[hidden].mean().item()
    ### END SOLUTION

# %% test="L5_3_rate" points=2
import torch

from course_lib.teaching.check import demand, diagnose, observe
from course_lib.teaching.plain import is_placeholder, kind, plain


def two_prices(ids, hidden):
    """A hidden letter costs 2 nats in a text with one more hidden, else 1; a visible one 1/2."""
    n_hidden = hidden.sum(1, keepdim=True)
    nats = torch.where(hidden, 1.0 + (n_hidden > 1), torch.where(n_hidden > 0, 0.5, 0.25))
    if len(ids) > 1 and (hidden == hidden[0]).all() and hidden.any() and not hidden.all():
        nats = torch.full_like(nats, 7.0)  # all texts have one mask
    others = torch.log(-torch.expm1(-nats) / 4)  # what is left, shared by the other four letters
    truth = torch.nn.functional.one_hot(ids, 5).bool()
    return torch.where(truth, -nats.unsqueeze(-1), others.unsqueeze(-1))


ids = torch.arange(30_000).view(5_000, 6) % 5
seen = observe(loss_at_rate, two_prices, ids, 1.0, torch.Generator().manual_seed(1))
demand(not is_placeholder(seen.result), "Not attempted yet, or a `return` forgotten: got nothing.")
diagnose(seen.result, right=2, what="loss_at_rate at rate 1", wrong={
    "The model was told that nothing is hidden, so it had seen every answer. Give it `hidden`.": 0.25,
    "That is the perplexity. Return the loss.": 7.38906,
    "The sign is wrong: a loss is minus the log-probability.": -2,
    "That is the sum. Return the mean over the hidden positions.": 60_000,
    "M6: You changed nats into bits. Leave the loss in nats.": 2.88539,
})
### BEGIN HIDDEN TESTS
from math import exp, isfinite, log
from random import SystemRandom

from course_lib.oracle import MarkovWorld

draw = SystemRandom()


def seeded():
    return torch.Generator().manual_seed(draw.randrange(2**40))


def expected(rate, T=6):
    alone = (1 - rate) ** (T - 1)
    return 2 - alone


def over_all(rate, T=6):
    hidden = rate * expected(rate)
    none = (1 - rate) ** T
    return hidden + 0.5 * (1 - rate - none) + 0.25 * none


def per_text(rate, T=6):
    none, one = (1 - rate) ** T, T * rate * (1 - rate) ** (T - 1)
    return (2 * (1 - none - one) + one) / (1 - none)


for rate in (0.15, draw.uniform(0.25, 0.35)):
    result = plain(loss_at_rate(two_prices, ids, rate, seeded()))
    demand(kind(result) == "a number", "loss_at_rate must return one number.")
    demand(isfinite(result),
           "M14: The result is not a number: in some text nothing was hidden, and you divided by 0. "
           "Pool the hidden positions of all texts before you average.")
    near = {
        "M1: You averaged over all positions. Only hidden ones are scored.": over_all(rate),
        "You scored the visible letters. Score the hidden ones.": 0.5,
        "M4: You averaged each text first, then the texts. A text with more hidden letters has more "
        "to say: pool all hidden positions.": per_text(rate),
        "M1: You divided by the number of all positions. Divide by the number of hidden ones.":
            rate * expected(rate),
        "You hid each position with probability 1 − rate.": expected(1 - rate),
        "All texts share one mask. Draw every text its own.": 7.0,
        "The model was told that nothing is hidden, so it had seen every answer. Give it `hidden`.":
            0.25,
    }
    if abs(result - expected(rate)) > 0.06:  # more than five times the spread of an honest result
        for text, value in near.items():
            demand(abs(result - value) > 0.06, text)
        demand(False, f"At rate {rate:.2f} you measured {result:.3f} where {expected(rate):.3f} was to "
                      "be expected. Does each position have that chance to be hidden?")

SAME = "Two generators in the same state must give the same result: draw from `generator` only."
seed = draw.randrange(2**40)
first, second = (
    observe(loss_at_rate, two_prices, ids[:50], 0.3, torch.Generator().manual_seed(seed))
    for _ in range(2)
)
demand(not first.moved_random, "You drew from torch's global random numbers. " + SAME)
demand(plain(first.result) == plain(second.result), SAME)

some_world = MarkovWorld.random(draw.randint(4, 8), generator=seeded(), sharpness=1.5)
text = some_world.sample(1_500, 8, generator=seeded())
certain = -some_world.stationary.log()[text].mean()
diagnose(loss_at_rate(some_world.masked_log_probs, text, 1.0, seeded()), right=certain,
         what="loss_at_rate of an oracle at rate 1")
for rate in (0.15, 0.5, 0.9):
    hidden = torch.rand(text.shape, generator=seeded()) < rate
    nats = -some_world.masked_log_probs(text, hidden).gather(-1, text.unsqueeze(-1)).squeeze(-1) * hidden
    exact = some_world.mlm_loss(rate, 8)
    spread = (nats.sum(1) - exact * hidden.sum(1)).square().sum().sqrt() / hidden.sum()
    result = plain(loss_at_rate(some_world.masked_log_probs, text, rate, seeded()))
    demand(abs(result - exact) < 5 * spread,
           f"At rate {rate} the oracle's loss is {exact:.3f} nats; you measured {result:.3f}, and "
           "chance does not explain the difference. Has each position the same chance to be hidden?")
### END HIDDEN TESTS
print("✓ L5.3 loss_at_rate: right")

# %% [markdown]
# ### All rates at once
#
# If one rate is too little and another too much, why choose? Draw the rate anew for every text, evenly.
# Here is why that is more than a compromise. Predict the $T$ letters of a text one after the other, in
# *any* order: by the chain rule the losses add up to $-\ln p(\text{text})$, whichever order it is. At
# some step $k$ letters are still hidden and the next one is predicted. Draw the order and the step at
# random, and what you see is: $k$ is any number from 1 to $T$, all equally likely, and any $k$ positions
# are hidden, all choices equally likely.
#
# So draw masks in just that way: for each of `n` texts a number $k$ from 1 to `length`, and then which
# $k$ positions are hidden.

# %% answer="L5_3_hide"
def hide_any_number(n, length, generator):
    """Masks (n, length), True where hidden: 1 to `length` a row, equally likely."""
    ### BEGIN SOLUTION
    n_hidden = torch.randint(1, length + 1, (n, 1), generator=generator)
    ranks = torch.rand(n, length, generator=generator).argsort(1).argsort(1)
    return ranks < n_hidden
    ### END SOLUTION

# %% test="L5_3_hide" points=1
import torch

from course_lib.teaching.check import demand, observe
from course_lib.teaching.plain import is_placeholder

first = observe(hide_any_number, 6_000, 5, torch.Generator().manual_seed(1))
demand(not is_placeholder(first.result), "Not attempted yet, or a `return` forgotten: got nothing.")
hidden = torch.as_tensor(first.result)
demand(hidden.shape == (6_000, 5) and hidden.dtype == torch.bool,
       f"Return a tensor of True and False, n x length; this is {hidden.dtype} of shape "
       f"{tuple(hidden.shape)}.")
### BEGIN HIDDEN TESTS
from random import SystemRandom

T, N = SystemRandom().choice([4, 5, 6]), 12_000
seed = SystemRandom().randrange(2**40)


def rare(share, p):
    return abs(share - p) > 5 * (p * (1 - p) / N) ** 0.5


seen, again = (
    observe(hide_any_number, N, T, torch.Generator().manual_seed(seed)) for _ in range(2)
)
demand(not seen.moved_random, "You drew from global random numbers. Draw from `generator` only.")
hidden, repeated = torch.as_tensor(seen.result), torch.as_tensor(again.result)
demand(torch.equal(hidden, repeated),
       "Two generators in the same state must give the same masks: draw from `generator` only.")
count = hidden.sum(1)
shares = [float((count == k).float().mean()) for k in range(T + 1)]
demand(max(shares) < 1, "All texts have the same number of hidden letters. Draw it anew for each.")
other = torch.as_tensor(hide_any_number(N, T, torch.Generator().manual_seed(seed + 1)))
demand(not torch.equal(hidden, other),
       "Two generators in different states gave the same masks: draw them from `generator`.")
demand(shares[0] == 0,
       "M14: In some texts nothing is hidden. Independent coins do that now and then; draw the number "
       "first, from 1 up.")
demand(shares[T] > 0, "No text is hidden entirely. T itself is one of the numbers that k may be.")
demand(not any(rare(share, 1 / T) for share in shares[1:]),
       "M20: The numbers from 1 to T don't come equally often. Draw k evenly, not around one rate.")
pairs = hidden.double().T @ hidden.double() / N
fair = (T + 1) / (2 * T)
demand(not any(rare(float(p), fair) for p in pairs.diagonal()),
       "Some positions are hidden more often than others. Which k are hidden must be drawn, too.")
both = (T + 1) / (3 * T)
demand(not any(rare(float(pairs[i, j]), both) for i in range(T) for j in range(i)),
       "Some pairs of positions are hidden together too often. Draw k positions out of all, not a run "
       "of neighbours.")
rows = (hidden[1:] == hidden[:-1]).all(1).double().mean()
demand(float(rows) < 0.6, "Texts share their mask with their neighbours. Draw each text's anew.")
### END HIDDEN TESTS
print("✓ L5.3 hide_any_number: right")

# %% [markdown]
# With $k$ of $T$ letters hidden the rate of that text is $p = k/T$. The objective divides by it:
#
# $$\frac{1}{T}\sum_{i\ \text{hidden}} \frac{-\ln p_\theta(x_i \mid \tilde x)}{p}$$
#
# and averages over the texts. Without the $1/p$ a text would count the more the more of it is hidden.
# Write it: `nll` (texts × length) holds the loss in nats at *every* position, `hidden` the masks.

# %% answer="L5_3_objective"
def any_rate_loss(nll, hidden):
    """Hidden nats over the masking rate, per letter; the mean over the texts."""
    ### BEGIN SOLUTION
    length = nll.shape[1]
    rate = hidden.double().mean(1)
    return ((nll * hidden).sum(1) / rate / length).mean().item()
    ### END SOLUTION

# %% test="L5_3_objective" points=2
import torch

from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose, each
from itertools import product
from math import exp, log
from random import SystemRandom

from course_lib.oracle import MarkovWorld

draw = SystemRandom()


def right(nll, hidden):
    return ((nll * hidden).sum(1) / hidden.sum(1)).mean().item()


def lures(nll, hidden):
    T, k = nll.shape[1], hidden.sum(1)
    cost, seen, loss = (nll * hidden).sum(1), (nll * ~hidden).sum(1), right(nll, hidden)
    return {
        "The 1/p is missing: now a text counts the more the more of it is hidden.": (cost / T).mean(),
        "You multiplied by the rate. Divide by it.": (cost * k / T / T).mean(),
        "M4: You pooled all texts, or gave them one common rate. Every text has its own rate: divide "
        "within the text, then average.": cost.sum() / k.sum(),
        "The 1/T is missing: the loss is per letter.": (cost * T / k).mean(),
        "M1: You scored the visible letters too. Only hidden ones enter.": (nll.sum(1) / k).mean(),
        "M1: You averaged over all letters, visible ones too. Only hidden ones enter.": nll.mean(),
        "You scored the visible letters instead of the hidden ones.":
            (seen / (T - k).clamp(min=1)).mean(),
        "You divided visible nats by the rate. Only hidden ones enter.": (seen / k).mean(),
        "You added the texts up. Average over them.": loss * len(nll),
        "You returned a perplexity. The objective is the loss itself.": exp(loss),
        "M6: You changed nats into bits. Leave the loss in nats.": loss / log(2),
        "The sign is wrong: `nll` is minus the logarithm already.": -loss,
    }


example = (
    torch.tensor([[0.5, 1.0, 2.0, 4.0], [1.0, 3.0, 0.2, 0.6]]),
    torch.tensor([[True, False, True, False], [False, True, False, False]]),
)
diagnose(any_rate_loss(*example), right=right(*example), wrong=lures(*example),
         public="L5.3 any_rate_loss")

cases = []
for _ in range(6):
    n, T = draw.randint(3, 6), draw.randint(4, 8)
    generator = torch.Generator().manual_seed(draw.randrange(2**40))
    k = torch.tensor([1, 2, *(draw.randint(1, T - 1) for _ in range(n - 2))])
    hidden = torch.rand(n, T, generator=generator).argsort(1).argsort(1) < k[:, None]
    cases.append((3 * torch.rand(n, T, generator=generator), hidden))
for case, loss in zip(cases, each(any_rate_loss, cases)):
    diagnose(loss, right=right(*case), rel=1e-4, wrong=lures(*case),
             what="any_rate_loss of other texts")

# the identity itself: over all masks of a text, it is the chain rule
T = draw.randint(3, 5)
generator = torch.Generator().manual_seed(draw.randrange(2**40))
some_world = MarkovWorld.random(6, generator=generator, sharpness=1.5)
text = some_world.sample(1, T, generator=generator)
masks = torch.tensor(list(product([False, True], repeat=T)))
of_size = [masks[masks.sum(1) == k] for k in range(1, T + 1)]
batches = []
for hidden in of_size:
    ids = text.expand(len(hidden), T)
    nll = -some_world.masked_log_probs(ids, hidden).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    batches.append((nll, hidden))
losses = each(any_rate_loss, batches)
diagnose(sum(map(float, losses)) / T, right=-some_world.log_prob(text).item() / T, rel=1e-4,
         what="any_rate_loss over all masks of a text, against the chain rule")
### END HIDDEN TESTS
check("L5.3 any_rate_loss", any_rate_loss,
      torch.tensor([[0.5, 1.0, 2.0, 4.0], [1.0, 3.0, 0.2, 0.6]]),
      torch.tensor([[True, False, True, False], [False, True, False, False]]))

# %% [markdown]
# Does it keep its promise? The next cell lets your two functions estimate the objective with the oracle,
# and compares with the chain rule from left to right, which is what a causal language model pays.

# %% locked="L5_3_promise"
texts_BT = world.sample(4_000, LENGTH, generator=torch.Generator().manual_seed(1))
hidden_BT = torch.as_tensor(
    hide_any_number(len(texts_BT), LENGTH, torch.Generator().manual_seed(2))
)
log_probs_BTV = world.masked_log_probs(texts_BT, hidden_BT)
nll_BT = -log_probs_BTV.gather(-1, texts_BT.unsqueeze(-1)).squeeze(-1)
estimate = float(any_rate_loss(nll_BT, hidden_BT))
print(f"your objective, on 4,000 texts: {estimate:.3f} nats per letter")
print(f"the chain rule, exactly:        {world.clm_loss(LENGTH):.3f} nats per letter")
print("""
One number: a masked model that is trained at all rates is a full model of the text, and
can be scored and sampled like one. Look at the curve above: it is its mean height.""")

# %% [markdown]
# ### Catch the bugs
#
# That objective is easily written wrong, and a wrong one still trains: its loss goes down, only to
# the wrong place. So write a test for it. `objective(model, ids, generator)` is somebody's
# implementation: it draws masks, calls `model(ids, hidden)` for **logits** (texts × length × 9: the
# eight letters, and last the `[MASK]` symbol itself, which is never a letter of a text and must get no
# probability), and returns the loss in nats per letter. Your test must see through four bugs:
#
# | bug | what was done |
# |---|---|
# | no weight | the 1/p is missing |
# | fixed rate | every text is masked at the same rate |
# | visible scored | visible letters are scored along with the hidden ones |
# | mask allowed | the softmax runs over all nine symbols, `[MASK]` included |
#
# A test of code that draws at random has three parts: the texts `probe_ids`, at most 20,000 with at most
# 16 letters each; the model `probe_model` that the implementation is given; and `accepts(loss)`, whether a
# right implementation could have returned this loss for them. The texts and the model are yours to
# choose, and that is the art of it: choose a model for which each bug changes the loss. The oracle
# `world` knows what the right loss is. But it is never wrong about a visible letter, nor would it ever
# say `[MASK]`: are the last two bugs seen with it? And the loss is an estimate: how far from the truth
# may an honest one be?

# %% answer="L5_3_tests"
probe_ids = (
    ### BEGIN SOLUTION
    world.sample(4_000, 8, generator=torch.Generator().manual_seed(3))
    ### END SOLUTION
)


def probe_model(ids, hidden):
    """Logits (texts, length, 9) for texts of `probe_ids`, the last those of [MASK]."""
    ### BEGIN SOLUTION
    log_probs = world.masked_log_probs(ids, hidden)
    careless = torch.full_like(log_probs, -math.log(8))  # knows no visible letter
    log_probs = torch.where(hidden.unsqueeze(-1), log_probs, careless)
    # and gives [MASK] as much as all letters together
    return torch.nn.functional.pad(log_probs, (0, 1), value=0.0)
    ### END SOLUTION


def accepts(loss):
    """Whether a right objective may return this loss for probe_ids and probe_model."""
    ### BEGIN SOLUTION
    exact = float(-world.log_prob(probe_ids).mean()) / probe_ids.shape[1]
    return abs(loss - exact) < 0.06  # about five times its spread
    ### END SOLUTION

# %% locked="L5_3_suspects"
for name, suspect in SUSPECTS.items():
    loss = float(suspect(probe_model, probe_ids, torch.Generator().manual_seed(4)))
    print(f"{name:15} {loss:.3f} nats; your test accepts it: {accepts(loss)}")

# %% test="L5_3_tests" points=2
import torch

from course_lib.teaching.check import demand
from course_lib.teaching.plain import is_placeholder, plain
from course_lib.teaching.suspects import SUSPECTS

CAUGHT = {
    "no weight": "Your test accepts an objective without the 1/p. Compare it with the chain rule.",
    "fixed rate": "M20: Your test accepts a fixed rate of 15%. Its loss is that of one point of the "
                  "curve, not of the whole: compare with the chain rule more closely.",
    "visible scored": "M1: Your test accepts an objective that scores visible letters too. Give it a "
                      "model that is bad at visible letters, as one is that was never trained there.",
    "mask allowed": "Your test accepts an objective that lets [MASK] be predicted. Give it a model with "
                    "a large logit for [MASK]: a right objective does not care.",
}
TOO_STRICT = (
    "Your test rejects the right objective. It is an estimate from random masks: allow for its spread, "
    "and make sure that your model's softmax over the eight letters is the oracle's at hidden places."
)
demand(not is_placeholder(probe_ids), "Not attempted yet: write `probe_ids` first.")
try:
    texts = torch.as_tensor(plain(probe_ids))
except (TypeError, ValueError, RuntimeError):
    texts = torch.empty(0)
demand(texts.dim() == 2 and texts.dtype == torch.long and 0 < len(texts) <= 20_000
       and 1 < texts.shape[1] <= 16 and bool((texts >= 0).all()) and bool((texts < 8).all()),
       "probe_ids must hold ids of letters, 0 to 7, texts x length: at most 20,000 x 16.")


def probed(ids, hidden):
    logits = plain(probe_model(ids, hidden))
    demand(not is_placeholder(logits), "Not attempted yet, or a `return` forgotten: got nothing.")
    logits = torch.as_tensor(logits)
    demand(tuple(logits.shape) == (*ids.shape, 9) and logits.is_floating_point(),
           "probe_model must return logits, texts x length x 9; these have the shape "
           f"{tuple(logits.shape)}.")
    return logits


def verdict(objective, seed):
    accepted = plain(accepts(float(objective(probed, texts, torch.Generator().manual_seed(seed)))))
    demand(not is_placeholder(accepted), "Not attempted yet, or a `return` forgotten: got nothing.")
    demand(type(accepted) is bool, "accepts must return True or False.")
    return accepted


verdicts = {name: verdict(suspect, 5) for name, suspect in SUSPECTS.items()}
demand(verdicts.pop("right"), TOO_STRICT)
demand(not all(verdicts.values()), "Your test accepts everything.")
for bug, accepted in verdicts.items():
    demand(not accepted, CAUGHT[bug])
### BEGIN HIDDEN TESTS
from random import SystemRandom


def other(bug=None, rate=None):
    """The same suspects in other hands: other draws, other rates, other code."""

    def objective(model, ids, generator):
        n, T = ids.shape
        if rate is None:  # a random order, cut at a random step; steps dealt out evenly
            order = torch.rand(n, T, generator=generator).argsort(1)
            step = (torch.arange(n) % T)[torch.randperm(n, generator=generator)]
            hidden = order >= step[:, None]
        else:
            hidden = torch.rand(n, T, generator=generator) < rate
            hidden[:, 0] |= ~hidden.any(1)
        logits = model(ids, hidden).double()
        if bug != "mask allowed":
            logits = logits[..., :-1]
        nats = logits.logsumexp(-1) - logits.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
        kept = torch.ones_like(hidden) if bug == "visible scored" else hidden
        share = torch.ones(n) if bug == "no weight" else hidden.double().mean(1)
        return float(((nats * kept).sum(1) / share).mean() / T)

    return objective


seed = SystemRandom().randrange(2**40)
demand(verdict(other(), seed), TOO_STRICT)
CAUGHT["fixed rate"] = "M20: Your test accepts a fixed rate of 90%. Is the tolerance too wide?"
for bug, suspect in {
    "no weight": other("no weight"),
    "fixed rate": other(rate=0.9),
    "visible scored": other("visible scored"),
    "mask allowed": other("mask allowed"),
}.items():
    demand(not verdict(suspect, seed), CAUGHT[bug])
### END HIDDEN TESTS
print("✓ L5.3 your test: right")

# %% [markdown]
# ### 15% here, all rates there
#
# BERT, made for *representations*, masks 15%. Masked diffusion models, made for *generation* (MDLM,
# LLaDA), draw the rate from 0 to 1. Why?
#
# - **a** A representation is made from what is visible, so leave most of it visible; a text is generated
#   from nothing visible to all visible, so every rate occurs on the way.
# - **b** At 15% the loss is lowest, so the model is best there; a generator can live with a worse model.
# - **c** Rates far above 15% are beyond what a model can learn; the 1/p makes them harmless.
# - **d** There is no reason: from 0 to 1 the mean rate is 50%, and a fixed 50% would do the same.

# %% answer="L5_3_choice"
why_two_rates = (
    ### BEGIN SOLUTION
    "a"
    ### END SOLUTION
)

# %% test="L5_3_choice" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose
diagnose(why_two_rates, right="a", public="L5.3 why_two_rates", wrong={
    "M18: Losses at different rates are losses at different tasks. Even the oracle, which is as good "
    "as can be at all of them, has a lower one at 15%.": "b",
    "M20: At every rate below 100% there is context, and the curve lies below H(π): context is used. "
    "The 1/p makes all steps of the chain rule count alike.": "c",
    "The fixed rate was one of the bugs. The mean of the curve is not its height in the middle, and "
    "with half of a text visible nobody ever starts to write.": "d",
})
### END HIDDEN TESTS
check("L5.3 why_two_rates", why_two_rates)

# %% [markdown]
# ### In your own words
#
# Back to the proposal: *“mask 100%, the task is hardest, so the model learns the most.”* Refute it in
# three or four sentences. Say what the loss $-\ln p_\theta(x_i \mid \tilde x)$ can depend on then, what
# the model learns and what it cannot, and name the perplexity that it ends at.

# %% [markdown] written="L5_3_words" points=1
# ### BEGIN SOLUTION
# With everything masked the input $\tilde x$ is the same for every text of that length, so the
# prediction at a position cannot depend on the text: there is nothing to condition on. The best that is
# left is the marginal distribution of the tokens (at that position), and the loss ends at its entropy
# $H(\pi)$, the perplexity at $e^{H(\pi)}$, below $V$ unless all tokens are equally frequent. So there is a
# gradient, but only towards a frequency table; nothing ties an output to a context, which is what
# representations and language are made of. Hard is not enough, it must be hard *and* decided by what is
# visible. (As one rate among all, 100% is useful: it is the first step of generation.)
# ### END SOLUTION
# ### BEGIN MARK SCHEME
# One point for the first two together; the third must not be wrong:
#
# 1. conditioning: the input holds no visible token, so the prediction can't depend on the text;
# 2. what is learnt: the marginal (token frequencies), and nothing about context;
# 3. the end: $e^{H(\pi)}$, the unigram perplexity. "PPL = V" or "no gradient at all" gets no point and
#    a comment that points to the right end of the curve.
# ### END MARK SCHEME
