# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
#   language_info: {name: python}
# ---

# %% [markdown]
# # Level 1 · Recognition
#
# A pretraining objective turns plain text into questions with known answers. Learn to tell the
# objectives apart by looking at what goes into the model and what is asked of it.
#
# | question | what you do | points |
# |---|---|---|
# | **L1.1** which objective is it? | name objectives from words, from pictures, and in code | 4 |
# | **L1.2** which positions count? | predict, measure, and write the weights of a masked LM loss | 3 |
# | **L1.3** who can write? | predict, measure, and write the loop that generates text | 3 |
#
# About 40 minutes. Replace each `...` with your answer and run the cell below it: it says at once
# whether you are right and, often, which misunderstanding a wrong answer shows. You may try as often as
# you like. After a try, `hint("L1.1")` in a new cell opens a hint. When your work is graded, your
# functions are also called with inputs that you have not seen, so write them for every case that the
# text describes.

# %% locked="L1_setup"
import torch
from IPython.display import display

from course_lib.objectives import causal_lm, masked_lm, prefix_lm
from course_lib.objectives import span_corruption, text_infilling
from course_lib.oracle import MarkovWorld
from course_lib.teaching.cards import cards
from course_lib.teaching.check import hint, predict
from course_lib.teaching.live import Live, Page, folded
from course_lib.teaching.strip import TokenStrip, token_strip

# a vocabulary of ten words, and the tokens that are no words
WORDS = ["the", "a", "small", "cat", "dog", "sleeps", "runs", "home", "and", "."]
TOKENS = [*WORDS, "[BOS]", "[EOS]", "[PAD]", "[MASK]", "<extra_id_1>", "<extra_id_0>"]
ID = {token: id for id, token in enumerate(TOKENS)}

# %% [markdown]
# First, five cards to warm up. Answer each in your head before you open it.

# %% locked="L1_cards"
cards("level1")

# %% [markdown]
# ## L1.1 Which objective is it?
#
# Three objectives, and the short names that you write for them:
#
# - `"CLM"`: causal language modelling
# - `"MLM"`: masked language modelling
# - `"span"`: span corruption
#
# Three descriptions:
#
# - **a** About 15% of the tokens are hidden behind `[MASK]`. The model names the hidden ones, each at
#   its place, and may look at what stands to the left and to the right of it.
# - **b** The model goes through the text from left to right. Wherever it stands, it names the token
#   that comes next.
# - **c** Whole stretches are cut out of the text. Having read the rest, the model writes the missing
#   stretches one after the other: a short text of their own.
#
# Which is which?

# %% answer="L1_1_descriptions"
descriptions = {
    "a": (
        ### BEGIN SOLUTION
        "MLM"
        ### END SOLUTION
    ),
    "b": (
        ### BEGIN SOLUTION
        "CLM"
        ### END SOLUTION
    ),
    "c": (
        ### BEGIN SOLUTION
        "span"
        ### END SOLUTION
    ),
}

# %% test="L1_1_descriptions" points=1
from course_lib.teaching.check import check, demand
from course_lib.teaching.plain import is_placeholder, same

names = ["CLM", "MLM", "span"]
for letter in "abc":
    said = descriptions[letter]
    demand(is_placeholder(said) or any(same(said, name) for name in names),
           f"L1.1 {letter}: {said!r} is none of the names {names}. Write one, in quotes.")
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(descriptions["a"], right="MLM", public="L1.1 a", wrong={
    "Read how a causal LM gets by: it hides nothing, and never looks to the right.": "CLM",
    "Both hide something, but the answers differ: a token at each hidden place here, a text that is "
    "written from start to end there. T5 has no [MASK] either: each gap gets a sentinel.": "span",
})
diagnose(descriptions["b"], right="CLM", public="L1.1 b", wrong={
    "A masked LM may look to both sides. This model has seen only what stands to its left.": "MLM",
    "Span corruption does write from left to right, but only what was cut out. Here nothing is "
    "cut out, and every token of the text is asked for.": "span",
})
diagnose(descriptions["c"], right="span", public="L1.1 c", wrong={
    "A masked LM names a token at each hidden place. Here whole stretches are gone, and the answer "
    "is a text of its own.": "MLM",
    "A causal LM cuts nothing out: it names each token of the whole text in turn. Here only the "
    "missing stretches are written, once the rest has been read.": "CLM",
})
### END HIDDEN TESTS
for letter in "abc":
    check(f"L1.1 {letter}", descriptions[letter])

# %% [markdown]
# ### From pictures
#
# Two relatives are easily mistaken for one of the three, and data pipelines have bugs. So there are
# three more names:
#
# - `"prefix LM"`: the model is given the beginning of a text, which it may read in both directions, and
#   goes on from there, token by token, from left to right.
# - `"infilling"`: BART's objective. Stretches of the text are replaced by one `[MASK]` each, and the
#   model writes the *whole* text again.
# - `"none"`: broken. None of the five objectives asks this.
#
# And one thing about masked LMs that description **a** left out: BERT chooses 15% of the tokens to be
# asked for. Of those, 80% become `[MASK]`, 10% a random word, and 10% stay as they are.
#
# This is how to read the pictures below. `inputs` is what the model reads. Under each input stands
# its **label**: what the model should say *at that place*; a dash means that nothing is asked there.
# (All shifting is done already.) Some models also have a **decoder**: it writes the labels from left to
# right, once the inputs have been read, and it always gets the labels so far as `decoder inputs`.
#
# Practise on a few sentences before you answer. Which objective made this?

# %% locked="L1_1_practice"
def batches(words, generator, split=(0.8, 0.1, 0.1)):
    """One sentence, made into a question by each objective: name -> Batch."""
    ids = torch.tensor([[ID[word] for word in words]])
    framed = torch.tensor([[ID["[BOS]"], *ids[0].tolist(), ID["[EOS]"]]])
    special = dict(pad_id=ID["[PAD]"], generator=generator)
    return {
        "CLM": causal_lm(ids),
        "prefix LM": prefix_lm(ids, 4),
        "MLM": masked_lm(ids, vocab_size=len(WORDS), mask_id=ID["[MASK]"], rate=0.25,
                         split=split, select="exact_split", generator=generator),
        "span": span_corruption(ids, first_sentinel=ID["<extra_id_0>"], eos_id=ID["[EOS]"],
                                density=0.4, num_sentinels=2, mean_span=2.0, **special),
        "infilling": text_infilling(framed, mask_id=ID["[MASK]"], rate=0.3,
                                    decoder_start_id=ID["[EOS]"], **special),
        "none": causal_lm(ids)._replace(inputs=ids, labels=ids),
    }


def strip_of(batch):
    """What the model reads, and what it is asked for."""
    decoder = () if batch.decoder_inputs is None else batch.decoder_inputs[0]
    rows = token_strip(batch.inputs[0], batch.labels[0], name=TOKENS.__getitem__,
                       decoder_inputs=decoder).rows
    return TokenStrip({title: cells for title, cells in rows.items() if title != "scored"})


PRACTICE = [
    (name, strip_of(batches(words.split(), torch.Generator().manual_seed(5))[name]))
    for name, words in [
        ("span", "a dog runs home and the small cat sleeps ."),
        ("CLM", "the small dog sleeps and a cat runs home ."),
        ("infilling", "the small cat runs and a dog sleeps ."),
        ("MLM", "a small cat sleeps and the dog runs home ."),
        ("prefix LM", "the cat sleeps and a small dog runs home ."),
    ]
]


def practice():
    """The practice pictures one by one, with a button for each name."""
    from ipywidgets import HTML, Button, HBox, VBox

    left, picture, verdict = list(PRACTICE), HTML(), HTML()
    names = HBox([Button(description=name) for name in batches(WORDS, None)])

    def show():
        picture.value = left[0][1]._repr_html_()

    def judge(button):
        if button.description != left[0][0]:
            verdict.value = f"Not “{button.description}”. Read its description again."
        else:
            verdict.value = f"Yes, “{left.pop(0)[0]}”."
            left.extend(PRACTICE if not left else [])
            show()

    for button in names.children:
        button.on_click(judge)
    show()
    return VBox([picture, names, verdict])


Live(practice, Page(
    "".join(strip._repr_html_() + folded("Which is it?", name) for name, strip in PRACTICE),
    "\n".join(f"{strip.alt} – {name}" for name, strip in PRACTICE),
))

# %% [markdown]
# Now six pairs that count. Each name is used once.

# %% locked="L1_1_pictures"
six = [*batches(WORDS[1:3] + ["dog", "runs", "home", "and", "the", "cat", "sleeps", "."],
                torch.Generator().manual_seed(8), split=(0, 0.5, 0.5)).values()]
for number, chosen in enumerate([2, 0, 4, 5, 3, 1], start=1):
    print(f"Pair {number}")
    display(strip_of(six[chosen]))

# %% answer="L1_1_pairs"
pairs = {
    1: (
        ### BEGIN SOLUTION
        "MLM"
        ### END SOLUTION
    ),
    2: (
        ### BEGIN SOLUTION
        "CLM"
        ### END SOLUTION
    ),
    3: (
        ### BEGIN SOLUTION
        "infilling"
        ### END SOLUTION
    ),
    4: (
        ### BEGIN SOLUTION
        "none"
        ### END SOLUTION
    ),
    5: (
        ### BEGIN SOLUTION
        "span"
        ### END SOLUTION
    ),
    6: (
        ### BEGIN SOLUTION
        "prefix LM"
        ### END SOLUTION
    ),
}

# %% test="L1_1_pairs" points=1
from course_lib.teaching.check import check, demand
from course_lib.teaching.plain import is_placeholder, same

names = ["CLM", "MLM", "span", "prefix LM", "infilling", "none"]
for number in range(1, 7):
    said = pairs[number]
    demand(is_placeholder(said) or any(same(said, name) for name in names),
           f"L1.1 pair {number}: {said!r} is none of the names {names}. Write one, in quotes.")
### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

right = ["MLM", "CLM", "infilling", "none", "span", "prefix LM"]
why_not = {
    "CLM": "A causal LM is asked at every place, each time for the token that stands one place further "
           "right in the inputs. Compare the two rows.",
    "MLM": "A masked LM is asked at some places, each time for the token that stood at that very "
           "place, and it has no decoder. Compare each label with the rest of the sentence.",
    "span": "T5 puts sentinels such as <extra_id_0> where stretches were, never [MASK], and asks a "
            "decoder for those stretches only. Look for the sentinels.",
    "prefix LM": "A prefix LM is asked for next tokens, at every place from the end of its prefix on, "
                 "and it has no decoder. Compare each label with the input one place further right.",
    "infilling": "BART's decoder writes the whole text again, also what stands plainly in the inputs. "
                 "Read the labels from start to end: are they the whole text?",
    "none": "This one is in order. Ask where the labels come from: the same place, the next place, or "
            "stretches that are missing from the inputs.",
}
special = {
    ("MLM", "none"): "Nothing is broken here, although there is no [MASK]: a chosen token may also "
                     "become another word or stay as it is. Two places are asked; look at both.",
    ("none", "CLM"): "M8: Each place is asked for the token that the model reads at this place, so the "
                     "answer stands in the question. A causal LM is asked for the token after it.",
    ("none", "MLM"): "A masked LM leaves most places unasked and hides something at the others. Here "
                     "every place is asked for what it shows.",
}
for number, true in enumerate(right, start=1):
    wrong = {special.get((true, said), text): said for said, text in why_not.items() if said != true}
    diagnose(pairs[number], right=true, public=f"L1.1 pair {number}", wrong=wrong)
### END HIDDEN TESTS
for number in range(1, 7):
    check(f"L1.1 pair {number}", pairs[number])

# %% [markdown]
# ### In code
#
# Write down what your eye did. `recognise` gets one pair as lists of tokens, in text, and returns
# one of the six names:
#
# - `inputs`, for example `["the", "[MASK]", "sleeps"]`
# - `labels`, for example `[None, "cat", None]`: `None` where nothing is asked
# - `decoder_inputs`: also a list, or `None` if the model has no decoder
#
# A sentence may be any, of at least five words, and no word stands in it twice. A pair is broken
# (`"none"`) only in one of two ways, both seen in real training code: every place is asked for the
# token it shows, or every place is asked for the token *two* places further on.

# %% answer="L1_1_recognise"
def recognise(inputs, labels, decoder_inputs=None):
    """The name of the objective that made this pair, or "none"."""
    ### BEGIN SOLUTION
    if decoder_inputs is not None:
        gaps_have_names = any(token.startswith("<extra_id_") for token in inputs)
        return "span" if gaps_have_names else "infilling"
    asked = [i for i, label in enumerate(labels) if label is not None]
    if all(labels[i] == inputs[i + 1] for i in asked if i + 1 < len(inputs)):
        return "CLM" if len(asked) == len(labels) else "prefix LM"
    return "none" if len(asked) == len(labels) else "MLM"
    ### END SOLUTION

# %% test="L1_1_recognise" points=2
from course_lib.teaching.check import check

EOS, PAD = "[EOS]", "[PAD]"
examples = [
    (["a", "dog", "runs", "home"], ["dog", "runs", "home", "."]),
    (["a", "cat", "runs", "home", "."], [None, "dog", None, None, "."]),
    (["a", "<extra_id_0>", ".", EOS], ["<extra_id_0>", "dog", "runs", EOS],
     [PAD, "<extra_id_0>", "dog", "runs"]),
    (["a", "[MASK]", ".", EOS], ["a", "dog", "runs", ".", EOS], [EOS, "a", "dog", "runs", "."]),
    (["a", "dog", "runs", "home"], [None, "runs", "home", "."]),
    (["a", "dog", "runs", "home", "."], ["a", "dog", "runs", "home", "."]),
]
### BEGIN HIDDEN TESTS
from random import SystemRandom

import torch

from course_lib.objectives import Batch, causal_lm, masked_lm, prefix_lm
from course_lib.objectives import span_corruption, text_infilling
from course_lib.teaching.check import demand, diagnose, each
from course_lib.teaching.plain import is_placeholder, same, short

signs = {
    "CLM": "Every place is asked for the token that comes next in the inputs.",
    "MLM": "Some places are asked for the token that stood there. [MASK] is no sure sign: a chosen "
           "token may also have become another word, or have stayed.",
    "span": "T5 marks gaps by sentinels, not by [MASK], and its decoder writes what is missing, no more.",
    "infilling": "The decoder writes the whole text again. A [MASK] alone makes no masked LM, and "
                 "T5 has none.",
    "prefix LM": "The first places are not asked, all later ones for the token that comes next.",
    "none": "A causal LM is asked for the next token. Here every place is asked for the token that "
            "it shows, or for the one after the next.",
}
slip = {"none": "M8: "}
for number, (true, pair) in enumerate(zip(signs, examples), start=1):
    wrong = {f"{slip.get(true, '')}{signs[true]} So it is not {name!r}.": name for name in signs}
    said = recognise(*pair)
    demand(is_placeholder(said) or any(same(said, name) for name in signs),
           f"recognise returned {short(said)}, which is none of the six names.")
    diagnose(said, right=true, wrong=wrong, public=f"L1.1 recognise, example {number}")

draw = SystemRandom()
dice = torch.Generator().manual_seed(draw.getrandbits(60))
WORDS = "river stone bread lamp green seven walks under slowly old boat wind leaf door sings".split()
TOKENS = [*WORDS, "[BOS]", EOS, PAD, "[MASK]", *(f"<extra_id_{i}>" for i in (3, 2, 1, 0))]
BOS_ID, EOS_ID, PAD_ID, MASK_ID = range(len(WORDS), len(WORDS) + 4)


def sentence(least=6):
    return torch.tensor([draw.sample(range(len(WORDS)), draw.randint(least, 11))])


def masked(split):
    """A masked LM's batch in which no asked token happens to come next as well."""
    while True:
        batch = masked_lm(sentence(), vocab_size=len(WORDS), mask_id=MASK_ID, rate=0.3, split=split,
                          generator=dice)
        asked = batch.labels >= 0
        if asked[:, :-1].any() and not asked.all() \
                and not (batch.labels[:, :-1] == batch.inputs[:, 1:]).any():
            return batch


def masked_end():
    """The last two tokens are masked, so that the dashes lie as in a prefix LM."""
    ids = sentence()
    end = torch.arange(ids.shape[1])[None] >= ids.shape[1] - 2
    return Batch(ids.masked_fill(end, MASK_ID), ids.masked_fill(~end, -100), end)


def shifted(by):
    ids = sentence(7)
    return Batch(ids[:, : ids.shape[1] - by], ids[:, by:], ids)


def spans(density):
    return span_corruption(sentence(), first_sentinel=len(TOKENS) - 1, eos_id=EOS_ID, pad_id=PAD_ID,
                           density=density, num_sentinels=4, generator=dice)


def infilled():
    while True:
        ids = torch.cat([torch.tensor([[BOS_ID]]), sentence(), torch.tensor([[EOS_ID]])], 1)
        batch = text_infilling(ids, mask_id=MASK_ID, pad_id=PAD_ID, decoder_start_id=EOS_ID,
                               generator=dice)
        if (batch.inputs == MASK_ID).any():
            return batch


def in_text(ids):
    return None if ids is None else [None if id < 0 else TOKENS[id] for id in ids[0].tolist()]


cases = [("MLM", masked_end()), ("none", shifted(0)), ("none", shifted(2))]
for _ in range(5):
    cases += [
        ("CLM", causal_lm(sentence())),
        ("prefix LM", prefix_lm(sentence(), draw.randint(2, 4))),
        ("MLM", masked((0.8, 0.1, 0.1))),
        ("MLM", masked((0, 0.5, 0.5))),
        ("span", spans(draw.choice([0.2, 0.6]))),
        ("infilling", infilled()),
        ("none", shifted(draw.choice([0, 2]))),
    ]
texts = [(in_text(b.inputs), in_text(b.labels), in_text(b.decoder_inputs)) for _, b in cases]
for (true, _), said in zip(cases, each(recognise, texts)):
    demand(not is_placeholder(said), "recognise returned nothing for some pairs. Is a `return` missing?")
    demand(any(same(said, name) for name in signs),
           f"recognise returned {short(said)}, which is none of the six names.")
    demand(same(said, true),
           f"{slip.get(true, '')}recognise on other sentences: you have {said!r} where it is {true!r}. "
           f"{signs[true]}")
### END HIDDEN TESTS
for number, pair in enumerate(examples, start=1):
    check(f"L1.1 recognise, example {number}", recognise, *pair)

# %% [markdown]
# ## L1.2 Which positions count?
#
# A masked language model puts out a distribution at every position, asked or not. Look at one
# sentence, corrupted as BERT does it and padded to the length of its batch. `tokens` is the text as it
# was; what the corruption turned into another word is in italics.

# %% locked="L1_2_picture"
tokens = torch.tensor([[ID[token] for token in (
    "[BOS] a small dog runs home and the cat sleeps . [EOS] [PAD] [PAD]".split()
)]])
is_word = tokens < len(WORDS)
batch = masked_lm(tokens, vocab_size=len(WORDS), mask_id=ID["[MASK]"], special_mask=~is_word,
                  rate=0.4, split=(0.5, 0.25, 0.25), select="exact_split",
                  generator=torch.Generator().manual_seed(25))
inputs, labels = batch.inputs[0], batch.labels[0]
TokenStrip({title: cells for title, cells in
            token_strip(inputs, labels, tokens=tokens[0], name=TOKENS.__getitem__).rows.items()
            if title != "scored"})

# %% [markdown]
# ### An experiment: nonsense where nobody asks
#
# The cell below takes the output of some model for these inputs, and PyTorch's own cross-entropy with
# these labels (-100 stands for the dash). Then it replaces the output **at every position without a
# label** by large random numbers: confident nonsense. By how many nats does the loss change?
# **Predict first.** Any number earns the point; what counts is that you commit to one.

# %% answer="L1_2_prediction"
predicted_change = (
    ### BEGIN SOLUTION
    0
    ### END SOLUTION
)

# %% locked="L1_2_experiment"
cross_entropy = torch.nn.functional.cross_entropy
generator = torch.Generator().manual_seed(0)
output = torch.randn(len(labels), len(TOKENS), generator=generator, requires_grad=True)
noise = 30 * torch.randn(output.shape, generator=generator)
nonsense = torch.where(labels[:, None] == -100, noise, output)


def change_of_loss():
    return round((cross_entropy(nonsense, labels) - cross_entropy(output, labels)).item(), 3)


predict("L1.2", predicted_change, change_of_loss)
everywhere = [cross_entropy(logits, tokens[0]).item() for logits in (output, nonsense)]
print("For comparison, the surprise at the true tokens averaged over every position, dash or not:")
print(f"{everywhere[0]:.2f} nats before, {everywhere[1]:.2f} nats after. Below, how strongly training")
print("pulls at the output of each position: the size of the loss's gradient there.")
(gradient,) = torch.autograd.grad(cross_entropy(output, labels), output)
TokenStrip({
    "inputs": [(TOKENS[id], "kept") for id in inputs],
    "labels": [
        (TOKENS[id], "scored") if id >= 0 else ("–", "not scored") for id in labels
    ],
    "pull": [
        (f"{size:.2f}", "scored" if size > 0 else "not scored") for size in gradient.norm(dim=-1)
    ],
})

# %% test="L1_2_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

demand(kind(predicted_change) == "a number", "L1.2 prediction: write a number, any number, first.")
print("✓ L1.2 prediction: noted")

# %% [markdown]
# ### True or false?
#
# - **a** The loss of a masked language model is averaged over all positions of the sentence.
# - **b** A token that was chosen, but left as it was, counts in the loss.
# - **c** `[BOS]`, `[EOS]` and padding count in the loss.
# - **d** Visible tokens may be left out because the model, once trained, names them rightly anyway.
#
# Write `True` or `False` for each.

# %% answer="L1_2_statements"
statements = {
    "a": (
        ### BEGIN SOLUTION
        False
        ### END SOLUTION
    ),
    "b": (
        ### BEGIN SOLUTION
        True
        ### END SOLUTION
    ),
    "c": (
        ### BEGIN SOLUTION
        False
        ### END SOLUTION
    ),
    "d": (
        ### BEGIN SOLUTION
        False
        ### END SOLUTION
    ),
}

# %% test="L1_2_statements" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(statements["a"], right=False, public="L1.2 a", wrong={
    "M1: Then nonsense at the visible positions would have moved the loss. Look at the experiment "
    "again: which positions does training pull at?": True,
})
diagnose(statements["b"], right=True, public="L1.2 b", wrong={
    "Being chosen decides, not how the input looks. Find a label in the picture that equals its own "
    "input, and its pull in the experiment.": False,
})
diagnose(statements["c"], right=False, public="L1.2 c", wrong={
    "M3: They have no label in the picture. If padding counted, the loss of a text would depend on how "
    "long its neighbours in the batch are.": True,
})
diagnose(statements["d"], right=False, public="L1.2 d", wrong={
    "Training does not pull at those positions, so nothing makes the model name them rightly, and it "
    "often does not. They are left out for another reason: the answer stands in the input.": True,
})
### END HIDDEN TESTS
for letter in "abcd":
    check(f"L1.2 {letter}", statements[letter])

# %% [markdown]
# ### In code
#
# Many training loops multiply the loss of each position by a weight, 1 where it counts and 0 where it
# does not. Write these weights for a batch of a masked language model. Both `labels` and `inputs` are
# tensors of ids, one row for each sentence; a label of -100 is the dash. Return the weights, numbers in
# the same shape. Leave both tensors as they are.
#
# The ids are those of this notebook: 0 to 9 are the words (0 is `the`), 10 `[BOS]`, 11 `[EOS]`,
# 12 `[PAD]` and 13 `[MASK]`. You may not need all that you are given.

# %% answer="L1_2_weights"
def loss_weights(labels, inputs):
    """1.0 where a position counts in the loss of a masked LM, 0.0 elsewhere."""
    ### BEGIN SOLUTION
    return (labels != -100).float()
    ### END SOLUTION

# %% test="L1_2_weights" points=1
import torch

from course_lib.teaching.check import check

example = (
    torch.tensor([[-100, 0, 4, -100, -100, -100], [-100, -100, 2, 7, 9, -100]]),
    torch.tensor([[10, 0, 13, 6, 11, 12], [10, 0, 13, 5, 9, 11]]),
)
### BEGIN HIDDEN TESTS
from random import SystemRandom

from course_lib.teaching.check import demand, diagnose, each, observe

draw = SystemRandom()


def lures(labels, inputs):
    asked = labels != -100
    return {
        "M1: You gave every position a weight. Only what is asked counts: see the dashes.":
            torch.ones(labels.shape),
        "You weighted the [MASK]s only. Chosen tokens that became another word, or stayed, count too.":
            (inputs == 13).float(),
        "You compared inputs and labels. They differ wherever the label is -100, and agree where a "
        "chosen token stayed.": (inputs != labels).float(),
        "You left out the chosen tokens that stayed as they were. Chosen is what has a label.":
            (asked & (inputs != labels)).float(),
        "You weighted every word. Most words were not chosen, so nothing is asked there.":
            (inputs < 10).float(),
        "M1: You weighted everything but the padding. Visible words are not asked either.":
            (inputs != 12).float(),
        "M9: You left out the label 0. It is a token like any other, here `the`; -100 alone means that "
        "nothing is asked.": (labels > 0).float(),
        "It is the other way round: 1 where a label is, 0 where it is -100.": (~asked).float(),
        "These weights add up to 1. Give each position that counts the weight 1; whoever averages "
        "divides by their sum.": asked / asked.sum(),
        "The weights of each row add up to 1. Give each position that counts the weight 1; whoever "
        "averages divides by their sum.": asked / asked.sum(1, keepdim=True),
        "That is True and False. Weights are multiplied with losses: make them numbers.": asked,
    }


def batch():
    """Rows [BOS] words [EOS] padding, with all fates of a chosen token, one of them the id 0."""
    rows, T = [], draw.randint(9, 12)
    for _ in range(draw.randint(2, 4)):
        n = draw.randint(6, T - 3)
        words = [0, *(draw.randrange(1, 10) for _ in range(n - 1))]
        fates = [draw.choice(["mask", "stay"]), "mask", "stay", "random", "visible", "visible"]
        fates += [draw.choice(["mask", "visible"]) for _ in range(n - 6)]
        row = list(zip(words, fates))
        draw.shuffle(row)
        fill = [(12, "visible")] * (T - 2 - n)
        rows.append([(10, "visible"), *row, (11, "visible"), *fill])
    become = {"mask": lambda word: 13, "random": lambda word: (word + 3) % 10}
    inputs = [[become.get(fate, lambda word: word)(word) for word, fate in row] for row in rows]
    labels = [[word if fate != "visible" else -100 for word, fate in row] for row in rows]
    return torch.tensor(labels), torch.tensor(inputs)


case = batch()
after = observe(loss_weights, *case).args
demand(all(torch.equal(x, y) for x, y in zip(after, case)),
       "loss_weights changed the tensors it was given. Make new ones: others still need the labels.")
diagnose(loss_weights(*example), right=(example[0] != -100).float(), wrong=lures(*example),
         public="L1.2 loss_weights")
cases = [batch() for _ in range(6)]
for case, weights in zip(cases, each(loss_weights, cases)):
    diagnose(weights, right=(case[0] != -100).float(), wrong=lures(*case),
             what="loss_weights on other batches")
### END HIDDEN TESTS
check("L1.2 loss_weights", loss_weights, *example)

# %% [markdown]
# ## L1.3 Who can write?
#
# Here is a little language of ten words. It has one rule: how likely each word is to come next depends on
# the word before, and on nothing else. The table below is the whole language; a pair of words that
# is not in it, such as `the .`, never occurs.

# %% locked="L1_3_language"
NEXT = {
    "the": {"cat": 0.4, "dog": 0.4, "small": 0.2},
    "a": {"cat": 0.3, "dog": 0.5, "small": 0.2},
    "small": {"cat": 0.5, "dog": 0.5},
    "cat": {"sleeps": 0.6, "runs": 0.4},
    "dog": {"sleeps": 0.3, "runs": 0.7},
    "sleeps": {".": 0.7, "and": 0.3},
    "runs": {"home": 0.6, ".": 0.2, "and": 0.2},
    "home": {".": 0.8, "and": 0.2},
    "and": {"the": 0.3, "a": 0.2, "sleeps": 0.2, "runs": 0.3},
    ".": {"the": 0.6, "a": 0.4},
}
world = MarkovWorld(torch.tensor([[NEXT[w].get(v, 0.0) for v in WORDS] for w in WORDS]))

# %% [markdown]
# ### An experiment: two ways to fill a page
#
# We know this language perfectly, so we can ask the **best possible** model of each kind to write.
# Both write 12 words at a time, many times over.
#
# - *One by one*: the causal model draws the first word, then the second given the first, and so on.
# - *All at once*: the masked model gets twelve `[MASK]`s. It knows exactly how likely each word is
#   at each place, given what it sees, and every place draws its word from its own distribution.
#
# **Predict first:** of 100 neighbouring pairs of words that the masked model wrote, how many never
# occur in the language? Any number earns the point.

# %% answer="L1_3_prediction"
predicted_impossible = (
    ### BEGIN SOLUTION
    33.3
    ### END SOLUTION
)

# %% locked="L1_3_experiment"
def one_by_one(n, length, generator):
    return world.sample(n, length, generator=generator)


def all_at_once(n, length, generator):
    hidden = torch.ones(n, length, dtype=torch.bool)
    probs = world.masked_log_probs(torch.full((n, length), ID["[MASK]"]), hidden).exp()
    return torch.multinomial(probs.flatten(0, 1), 1, generator=generator).view(n, length)


def pair_shares(ids):
    """How often each pair of neighbours occurs: (V, V), summing to 1."""
    codes = ids[:, :-1] * len(WORDS) + ids[:, 1:]
    counts = codes.flatten().bincount(minlength=len(WORDS) ** 2)
    return counts.view(len(WORDS), -1) / codes.numel()


def impossible(ids):
    """Of 100 neighbouring pairs, how many the language does not have."""
    return round(100 * pair_shares(ids)[world.transition == 0].sum().item(), 1)


def divergence(ids):
    """How far the pairs in `ids` are from the language's: KL(language | ids), in nats."""
    true = world.stationary[:, None] * world.transition
    return torch.xlogy(true, true / pair_shares(ids))[true > 0].sum().item()


def in_words(ids):
    """A row of ids as cells: in italics where a word can't follow the one before it."""
    wrong = world.transition[ids[:-1], ids[1:]] == 0
    return [(WORDS[id], "changed" if bad else "kept") for id, bad in zip(ids, [False, *wrong])]


dice = torch.Generator().manual_seed(2)
written = {way.__name__.replace("_", " "): way(3_000, 12, dice) for way in (one_by_one, all_at_once)}
predict("L1.3", predicted_impossible, lambda: impossible(written["all at once"]))
for way, ids in written.items():
    print(f"{way}: {impossible(ids)} impossible pairs in 100; "
          f"divergence from the language's pairs {divergence(ids):.2f} nats")
tells = world.entropy - world.entropy_rate
print(f"Theory says {tells:.2f} nats for words drawn without regard to each other: what a word tells")
print("about the next one. By itself every place was right: each word comes as often as it should.")
print("But no place knew what its neighbour had drawn. Below, in italics: what cannot follow.")
TokenStrip({f"{way} {n + 1}": in_words(ids[n]) for way, ids in written.items() for n in range(2)})

# %% test="L1_3_prediction" points=1
from course_lib.teaching.check import demand
from course_lib.teaching.plain import kind

demand(kind(predicted_impossible) == "a number", "L1.3 prediction: write a number, any number, first.")
print("✓ L1.3 prediction: noted")

# %% [markdown]
# ### In code
#
# Write the loop that generates text from a causal language model, any causal language model.
# `next_probs(tokens)` *is* the model: you call it with the list of the ids so far, at first an empty
# list, and it returns a tensor with the probability of each id to come next. Draw that id at random
# with these probabilities, and go on. Return the list of the `length` ids that you have drawn.
#
# Draw with `torch.multinomial(probs, 1, generator=generator)`, or by other means, but take your random
# numbers from `generator`, so that the same generator state gives the same text.

# %% answer="L1_3_loop"
def left_to_right(next_probs, length, generator):
    """`length` token ids, each drawn from what the model expects after those before it."""
    ### BEGIN SOLUTION
    tokens = []
    for _ in range(length):
        probs = next_probs(tokens)
        tokens.append(torch.multinomial(probs, 1, generator=generator).item())
    return tokens
    ### END SOLUTION

# %% test="L1_3_loop" points=1
import torch

from course_lib.teaching.check import check


def counting_model(tokens):
    """Certain of one id: 2, then 3, then 4, ... by how many there are so far."""
    probs = torch.zeros(9)
    probs[len(tokens) + 2] = 1.0
    return probs


### BEGIN HIDDEN TESTS
from math import sqrt
from random import SystemRandom

from course_lib.teaching.check import demand, diagnose, each, observe
from course_lib.teaching.plain import kind, plain

draw = SystemRandom()
diagnose(left_to_right(counting_model, 5, torch.Generator()), right=[2, 3, 4, 5, 6],
         public="L1.3 left_to_right", wrong={
    "M22: Every draw was made from the same text so far, as if all places were filled at once. Put each "
    "drawn id into the list before you ask for the next.": [2] * 5,
    "The model was asked about one token only. It needs the whole list so far.": [2, 3, 3, 3, 3],
    "One id too many: `length` counts all of them, the first drawn one too.": [2, 3, 4, 5, 6, 7],
    "One id is missing: the first one, drawn after the empty list, belongs to the text.": [3, 4, 5, 6],
    "You put an id in front that was not drawn. Begin with an empty list.": [0, 3, 4, 5, 6],
    "You put an id in front that was not drawn. Begin with an empty list, and return what was drawn.":
        [0, 3, 4, 5, 6, 7],
    "You put an id in front that was not drawn. Begin with an empty list; the model needs no more.":
        [3, 4, 5, 6, 7],
    "The text is in reverse. Each new id goes to the end.": [6, 5, 4, 3, 2],
    "That is the last id only. Return all of them.": 6,
    "Each id is still a tensor with one entry. Take the number out with `.item()`.":
        [[2], [3], [4], [5], [6]],
})

V = draw.randint(5, 9)


def remembering_model(tokens):
    """Certain of one id, which depends on every token so far and on their order."""
    probs = torch.zeros(V)
    probs[sum((place + 1) * int(id) for place, id in enumerate(tokens, start=1)) % V - 1] = 1.0
    return probs


expected = []
for _ in range(12):
    expected.append(int(remembering_model(expected).argmax()))
diagnose(left_to_right(remembering_model, 12, torch.Generator()), right=expected,
         what="left_to_right with a model that looks at every token so far")

weights = [draw.uniform(0.09, 0.11), draw.uniform(0.18, 0.22), draw.uniform(0.65, 0.75)]
turn = draw.randrange(3)
rows = torch.tensor([[weights[(i + row + turn) % 3] for i in range(3)] for row in (0, 1, 2, 0)])
rows = rows / rows.sum(1, keepdim=True)  # what follows 0, 1, 2 and nothing


def chain(tokens):
    return rows[int(tokens[-1]) if len(tokens) else 3]


def dice(seed):
    return torch.Generator().manual_seed(seed)


seed, n = draw.getrandbits(60), 1500
text = plain(left_to_right(chain, n, dice(seed)))
demand(kind(text) == "a list" and len(text) == n and all(id in (0, 1, 2) for id in text),
       f"left_to_right must return a list of {n} ids of the model when asked for {n}.")
likeliest = rows.argmax(1).tolist()
demand(any(new != likeliest[old] for old, new in zip(text, text[1:])),
       "You took the likeliest id every time. Draw it: each id as often as its probability says.")
for old in range(3):
    followers = [new for before, new in zip(text, text[1:]) if before == old]
    for new in range(3):
        p = rows[old, new].item()
        z = (followers.count(new) - len(followers) * p) / sqrt(len(followers) * p * (1 - p) + 1e-9)
        demand(abs(z) < 6, "Over a long text, an id follows another too often or too rarely. Draw each id "
                           "with the probability that the model gives after the whole text so far.")
demand(not observe(left_to_right, chain, 9, dice(seed)).moved_random,
       "left_to_right drew from a global random generator. Pass `generator` on.")
text, again, other = plain(each(left_to_right, [(chain, 50, dice(s)) for s in (seed, seed, seed + 1)]))
demand(text == again,
       "The same generator state gave two different texts. Take all random numbers from `generator`.")
demand(text != other,
       "Two generators in different states gave the same text. Pass `generator` on, as it is.")
starts = plain(each(left_to_right, [(chain, 1, dice(draw.getrandbits(60))) for _ in range(60)]))
demand(len({start[0] for start in starts}) > 1,
       "The first id is always the same. It too is drawn, from what the model expects after nothing.")
### END HIDDEN TESTS
check("L1.3 left_to_right", left_to_right, counting_model, 5, torch.Generator())

# %% [markdown]
# Now let it write, with the little language as its model:

# %% locked="L1_3_text"
def little_language(tokens):
    """The best causal model of the little language."""
    return world.transition[tokens[-1] if len(tokens) else ID["."]]


written_ids = left_to_right(little_language, 40, torch.Generator().manual_seed(3))
if written_ids is None:
    print("Write left_to_right first.")
else:
    print(" ".join(WORDS[id] for id in written_ids))

# %% [markdown]
# ### Who can, and how
#
# Which objective gives you a model that fits this loop exactly as it is, and which one is GPT
# trained with? Write `"CLM"`, `"MLM"` or `"span"` for each.
#
# Then `True` or `False`. This model can also be made to write text that hangs together:
#
# - **a** T5, trained with span corruption: its decoder writes the text of the gaps.
# - **b** a masked model trained at *all* rates, from one mask to nothing but masks. It starts from
#   masks only, fills in a few, reads the page again, and goes on until none is left (masked diffusion).
# - **c** BERT: it gets as many `[MASK]`s as words are wanted, and fills them in one step.
# - **d** BART, trained with infilling: its decoder writes the whole text again.

# %% answer="L1_3_who"
who = {
    "fits the loop": (
        ### BEGIN SOLUTION
        "CLM"
        ### END SOLUTION
    ),
    "GPT": (
        ### BEGIN SOLUTION
        "CLM"
        ### END SOLUTION
    ),
    "a": (
        ### BEGIN SOLUTION
        True
        ### END SOLUTION
    ),
    "b": (
        ### BEGIN SOLUTION
        True
        ### END SOLUTION
    ),
    "c": (
        ### BEGIN SOLUTION
        False
        ### END SOLUTION
    ),
    "d": (
        ### BEGIN SOLUTION
        True
        ### END SOLUTION
    ),
}

# %% test="L1_3_who" points=1
from course_lib.teaching.check import check

### BEGIN HIDDEN TESTS
from course_lib.teaching.check import diagnose

diagnose(who["fits the loop"], right="CLM", public="L1.3 fits the loop", wrong={
    "The loop asks what comes after a text that has no right side yet. A masked LM was trained with "
    "both sides in view.": "MLM",
    "Its decoder works like the loop, but it needs a text with gaps to read first, and writes only what "
    "belongs into them. The loop starts from nothing.": "span",
})
diagnose(who["GPT"], right="CLM", public="L1.3 GPT", wrong={
    "That is BERT's. GPT writes one token after the other: which objective trains exactly that?": "MLM",
    "That is T5's. GPT has no encoder and no gaps: it goes on with the text that it has.": "span",
})
diagnose(who["a"], right=True, public="L1.3 a", wrong={
    "A decoder writes token by token, each given those before it, by the very loop that you wrote. Give "
    "it one gap and let it go on.": False,
})
diagnose(who["b"], right=True, public="L1.3 b", wrong={
    "M20: What went wrong in the experiment was to fill all places at once. Whoever fills a few, looks, "
    "and goes on draws each word with the others in view.": False,
})
diagnose(who["c"], right=False, public="L1.3 c", wrong={
    "M22: That is the experiment: every place is likely by itself, and the neighbours do not match. A "
    "masked LM does not predict its masks jointly.": True,
})
diagnose(who["d"], right=True, public="L1.3 d", wrong={
    "Its decoder writes the text token by token, each given those before it. That is how BART writes "
    "summaries.": False,
})
### END HIDDEN TESTS
for question in ("fits the loop", "GPT", *"abcd"):
    check(f"L1.3 {question}", who[question])

# %% [markdown]
# You can now tell the objectives apart by sight. Level 2 puts numbers on them.
