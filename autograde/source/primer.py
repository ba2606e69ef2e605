# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
#   language_info: {name: python}
# ---

# %% [markdown]
# # Primer · Self-supervised pretraining objectives
#
# How does a model come to know a language, and a good deal of the world, from text alone? By a game of
# guessing, of which there are three classic versions. This notebook says what they are, where their
# losses come from, and where everybody trips.
#
# Nothing here is graded. It is a text to work with: run the cells as you read, change them, and run them
# again. Where a cell asks for a **forecast**, replace the `...` first; a wrong one costs nothing, and
# you will remember the result better for it. Levels 1 to 5 ask for all of this; their checks name the
# section to come back to. About 60 minutes.
#
# [Why self-supervision](#Why-self-supervision) ·
# [Three objectives on one sentence](#Three-objectives-on-one-sentence) ·
# [From likelihood to loss](#From-likelihood-to-loss) ·
# [Causal language modelling](#Causal-language-modelling) ·
# [Masked language modelling](#Masked-language-modelling) ·
# [Span corruption](#Span-corruption) ·
# [What is scored](#What-is-scored) ·
# [Perplexity](#Perplexity) ·
# [Common mistakes](#Common-mistakes) ·
# [To remember](#To-remember) ·
# [Concept map](#Concept-map) ·
# [Where this leads](#Where-this-leads) ·
# [Question bank](#Question-bank) ·
# [The misconceptions by number](#The-misconceptions-by-number)

# %% locked="P_setup"
import math

import torch

from course_lib.oracle import MarkovWorld
from course_lib.teaching.check import predict
from course_lib.teaching.strip import TokenStrip, token_strip

# %% [markdown]
# ## Why self-supervision
#
# Say we want a model that *understands* text. Supervised learning wants examples with answers: this
# review is positive, that sentence is German for this one. Somebody has to write each answer, so there
# are thousands of them, or with much money millions. Text without answers is there by the trillion words.
#
# The way out: **hide a part of the text and ask for it.** The text itself is the answer key. That is all
# that *self-supervised* means: labels, as in supervised learning, but made from the input.

# %%
text = "When the rain stopped, the children ran out to see whether the river had risen."
words = text.split()
for t in (1, 6, 12):
    print(" ".join(words[:t]), "→", words[t], "?")
print(f"{len(words)} words, {len(words) - 1} questions, and nobody has written an answer.")

# %% [markdown]
# And why should that teach more than spelling? Because nothing less than understanding answers every
# question. Cover the word in bold:
#
# | the line | who guesses it must know |
# |---|---|
# | The keys to the cabinet **are** | grammar: the keys are many, the cabinet is one |
# | Mary thanked Tom, for **he** had helped | who thanked whom |
# | Three boxes of four make **twelve** | arithmetic |
# | The river through Cairo is the **Nile** | a fact |
# | He dropped the glass, and it **broke** | how the world goes |
#
# One dull question, *which word is it?*, and grammar, reference, arithmetic, facts and common sense all
# lower its loss. A model with a few billion numbers can't store the trillions of words that it is asked
# about; what it can store is what makes them predictable.
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Socho, internet par text ka samundar hai, par "yeh review achha hai ya bura" jaise label kisi insaan ko
# baith kar likhne padte hain. Mehenga kaam! To hum ek jugaad karte hain: text ka thoda sa hissa
# chhupa do aur model se poochho, "bata, yahan kya tha?" Jawab pehle se text mein hi hai, kisi ko kuch
# likhna nahi pada. Isiliye naam hai *self*-supervised. Aur sirf shabd guess karne ke chakkar mein model
# ko grammar, hisaab aur duniya ki baatein, sab seekhni padti hain. Warna guess galat hi nikalega.
#
# </details>

# %% [markdown]
# ## Three objectives on one sentence
#
# The three games differ in **what is hidden, what is asked for, and who may look at what**. Here they are
# on one sentence. Orange tokens are special; blue ones are asked for, and they alone are scored.
#
# | | causal LM | masked LM | span corruption |
# |---|---|---|---|
# | known from | GPT | BERT | T5 |
# | reads | what came before | the whole text, with holes | the whole text, with holes |
# | is asked for | the next token, everywhere | the chosen tokens | the missing spans, in order |
# | attention | to the left only | both sides | both sides; the decoder also to its left |
#
# Put in a sentence of your own, move the rate and the draw, and watch the rows *labels* and *scored*.
# Which objective gets the most labels out of one sentence? And what does it pay for that, in context?

# %%
from course_lib.teaching.playground import playground

playground("The cat that lives next door sat on our warm roof all day.", rate=0.3, seed=3)

# %% [markdown]
# (If you see no controls, change the sentence, `rate` and `seed` in the cell, and run it again. Real
# models hide 15%, of much longer texts.)
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Ek hi sentence, teen khel. *Causal*: parda dheere dheere hatta hai, har baar agla shabd batao, aage
# jhaankna mana hai. *Masked*: poora sentence saamne hai, bas kuch shabdon par sticker laga hai; dono
# taraf dekh kar bharo. *Span*: lagataar kuch shabd kaat kar nikaal diye, wahan ek parchi chipka di
# (parchi number 0, parchi number 1), aur ab alag kaagaz par likho ki kis parchi ke peeche kya tha. Neele
# khaane hi woh jagah hain jahan number kate jaate hain, baaki sab sirf padhne ke liye hai.
#
# </details>

# %% [markdown]
# ## From likelihood to loss
#
# A language model gives every text a probability. A good one gives real text a high one. Turning that
# into a loss takes three steps, and none of them is a trick.
#
# **1. The chain rule.** Take the probability apart, one token after the other:
#
# $$p(x_1, \dots, x_T) = \prod_{t=1}^{T} p(x_t \mid x_1, \dots, x_{t-1})$$
#
# This assumes nothing at all. It is how conditional probability is defined, so it holds for every
# distribution over texts. And every factor is a question that a network can answer: *given this
# beginning, what comes next?*
#
# Try it on weather with three states, where each day depends on the day before.

# %%
SUN, RAIN, SNOW = range(3)
weather = MarkovWorld(torch.tensor([[0.8, 0.2, 0.0], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]]))
days = torch.tensor([[SUN, RAIN, RAIN, SNOW]])

factors = [weather.stationary[SUN], *weather.transition[days[0, :-1], days[0, 1:]]]
print("factor by factor:", " × ".join(f"{p:.3f}" for p in factors), f"= {math.prod(factors):.5f}")
print(f"the four days at once: {weather.log_prob(days).exp().item():.5f}")

# %% [markdown]
# **2. The logarithm.** We want parameters that make the real text as probable as possible: *maximum
# likelihood*. Products of many small numbers are a bad thing to compute with, as you are about to see.
#
# **Forecast.** A model gives each of 1,000 tokens the probability 0.3. Their product is the probability
# of the text. What number will Python print for it?

# %% answer="P_product"
forecast_product = (
    ### BEGIN SOLUTION
    0.0
    ### END SOLUTION
)

# %% locked="P_product_run"
product = predict("Product", forecast_product, lambda: math.prod([0.3] * 1_000))
print(f"The sum of the logarithms: {sum(math.log(p) for p in [0.3] * 1_000):.1f}")
print("The product is too small for any float. Its logarithm is an ordinary number.")

# %% [markdown]
# The logarithm turns the product into a sum and changes no ranking: the more probable text has the larger
# logarithm.
#
# $$\ln p(x_1, \dots, x_T) = \sum_{t=1}^{T} \ln p(x_t \mid x_{<t})$$
#
# **3. Sign and average.** Optimisers minimise, so turn the sign; texts differ in length, so divide by the
# number of tokens. What remains is a mean of $-\ln p$, the **surprise** of the token that really came:
#
# $$L = -\frac{1}{T}\sum_{t=1}^{T} \ln p(x_t \mid x_{<t})$$
#
# A token that was certain has surprise 0; one with probability 1/2 costs 0.693 **nats** (that is what
# natural logarithms count in); a token that the model thought impossible would cost infinitely much. The
# same $L$ is called *negative log-likelihood per token* by those who come from statistics, and
# **cross-entropy** by those who come from information theory: it compares the model's distribution with
# the one that puts everything on the true token. So minimising surprise *is* maximising likelihood.

# %%
for p in (1.0, 0.5, 0.1, 0.01):
    print(f"probability {p:<5g} surprise {-math.log(p) + 0.0:.3f} nats = {-math.log2(p) + 0.0:.3f} bits")

# %% [markdown]
# (Does $t = 1$ count, with nothing in front of it? It does if a beginning-of-sequence token stands there;
# otherwise the sum begins at $t = 2$ and there are $T-1$ terms. Say which, and both are right.)
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Poore sentence ki probability ek saath nikaalna mushkil hai, to use tukdon mein todo: pehla shabd, phir
# pehle ko dekh kar doosra, phir dono ko dekh kar teesra. Yahi chain rule hai, aur isme koi jhol nahi,
# hamesha sahi hai. Ab itni chhoti chhoti probabilities ko guna karoge to computer haath khade kar
# dega aur 0 chhaap dega. Log lo, guna jod ban gaya! Minus lagao to "kitna chaunke" ka hisaab mil gaya:
# jo pakka pata tha uspe zero, jo socha bhi nahi tha uspe bahut zyada. Is chaunkne ka average hi loss hai.
#
# </details>

# %% [markdown]
# ## Causal language modelling
#
# *Predict the next token from those before it.* The loss is the one just derived, with nothing added:
# the chain rule was the objective all along. GPT and nearly all of today's chat models are trained so.
#
# A transformer reads all positions at once, and that is a temptation: at position $t$ it could simply
# look at position $t+1$, where the answer stands. The **causal mask** forbids it. Books index this in
# two ways, so here is the one picture that settles it: the column at position $t$ has *read* tokens
# 1 to $t$ and *predicts* token $t+1$.

# %%
words = "the cat sat on the mat".split()
TokenStrip({
    "position t": [(str(t), "kept") for t in range(1, 6)],
    "has read": [(" ".join(words[:t]), "kept") for t in range(1, 6)],
    "predicts": [(word, "scored") for word in words[1:]],
})

# %%
from course_lib.objectives import causal_lm
from course_lib.teaching.show import attention_mask

batch = causal_lm(torch.arange(6)[None])  # a text of six tokens: five inputs, five labels
attention_mask(batch.attention[0], words[:5], words[:5])

# %% [markdown]
# "May attend to positions up to $t$" (said of the column that has *read* $x_t$) and "must not see
# positions from $t$ on" (said of the *prediction* of $x_t$) are one and the same rule. What would happen
# without it, and how one proves that a model does not cheat, are questions for Level 3.
#
# **Why it writes so well.** To generate, the model does what it was trained for: it predicts a token, the
# token is drawn and appended, and the question is asked again. No other model has so little to learn
# between training and writing. (It is not the only one that can: decoders of span models write too, and so
# do masked diffusion models, by filling in a text step by step.)
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Causal LM matlab antakshari ka woh khel jisme sirf ab tak gaaya hua sunai deta hai, aage ka nahi.
# Training ke waqt poora sentence saamne pada hota hai, isliye aankhon par patti zaroori hai: wahi
# causal mask hai. Patti nahi baandhi to model seekhega nahi, bas nakal karega. Aur likhte waqt? Ek
# shabd bolo, use jod do, phir agla bolo. Jo training mein kiya, wahi kaam, isliye GPT itna fatafat
# likhta hai.
#
# </details>

# %% [markdown]
# ## Masked language modelling
#
# *Hide some tokens, look at both sides, restore them.* A set $M$ of positions is **chosen**, in BERT 15%
# of the ordinary tokens. The input $\tilde x$ is the text with the chosen tokens corrupted, and
#
# $$L = -\frac{1}{|M|}\sum_{i \in M} \ln p(x_i \mid \tilde x)$$
#
# **Why only over $M$?** What is visible would only have to be copied. Scoring it would reward copying, and
# dilute the questions that teach something.
#
# **What becomes of a chosen token?** On average 80% turn into `[MASK]`, 10% into a random token, and 10%
# stay as they are; all of them are scored. When the model is put to use, on reviews or on contracts,
# there is no `[MASK]` anywhere. If that symbol marked every question, a model could save itself the work
# on all other tokens. With the recipe any token may turn out to be asked for, and any token may be wrong.
# (How much that matters is an experiment in Level 4.)

# %%
from course_lib.corruption import bert_corrupt
from course_lib.losses import IGNORE_INDEX

MASK = 1_000
ids = torch.arange(200).repeat(2_000, 1)  # 2,000 texts of 200 tokens
inputs, labels = bert_corrupt(
    ids, vocab_size=1_001, mask_id=MASK, special_ids=[MASK], generator=torch.Generator().manual_seed(0)
)
chosen = labels != IGNORE_INDEX
print(f"chosen: {chosen.float().mean():.1%} of all tokens, and of the chosen ones")
print(f"  [MASK] {(inputs[chosen] == MASK).float().mean():.1%}")
print(f"  as it was {(inputs[chosen] == ids[chosen]).float().mean():.1%}")
print(f"  another token {((inputs != ids) & (inputs != MASK))[chosen].float().mean():.1%}")
print(f"changed though not chosen: {(inputs != ids)[~chosen].sum().item()}")

# %% [markdown]
# Two limits are worth knowing. First, the factors of a masked loss are no chain rule: each token is
# predicted from the others, and their product is the probability of nothing. Second, every chosen token
# takes away context from its neighbours. Hide little, and few questions are asked; hide much, and there is
# little to answer them from; hide *everything*, always, and there is nothing to condition on: what a model
# can still learn then is worth a forecast of your own, in Level 5.
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Yeh bachpan ka "rikt sthaan bharo" hai. Aage bhi dekho, peeche bhi dekho, khaali jagah bharo. Number
# sirf un jagahon ke milte hain jo poochhi gayi thi; jo likha hua dikh raha hai use dohraane ke kya
# number! Ab ek chaal: agar har sawaal par [MASK] ka board laga ho to model baaki shabdon par dhyaan hi
# na de. Isliye kuch jagah galat shabd rakh dete hain aur kuch jagah sahi shabd hi chhod dete hain. Model
# ko pata nahi kaunsa shabd imtihaan mein aayega, to woh har shabd ko dhang se samajhta hai.
#
# </details>

# %% [markdown]
# ## Span corruption
#
# *Take out whole runs of tokens, and have a decoder write them.* Each run leaves a **sentinel** in its
# place, and the target lists the sentinels again, each followed by the words that it stands for:

# %%
from course_lib.corruption import apply_spans, restore
from course_lib.text import EOS, PAD, train_words

sentence = "The old lighthouse keeper counted the ships that passed at night."
tokenizer = train_words([sentence], sentinels=4)
first_sentinel = tokenizer.token_to_id("<extra_id_0>")
ids = torch.tensor([tokenizer.encode(sentence).ids])
noise = torch.zeros_like(ids, dtype=torch.bool)
noise[0, [1, 2, 6, 7, 8]] = True  # which tokens to take out: change it
pair = apply_spans(
    ids, noise, first_sentinel=first_sentinel, eos_id=EOS, pad_id=PAD, num_sentinels=4
)


def name(id):
    return tokenizer.id_to_token(id).strip()


TokenStrip({
    "encoder reads": token_strip(pair.inputs[0], [], name=name).rows["inputs"],
    "decoder writes": token_strip([], pair.targets[0], name=name).rows["labels"],
})

# %%
back, _ = restore(pair, first_sentinel=first_sentinel, num_sentinels=4, pad_id=PAD)
print("put together again:", tokenizer.decode(back[0].tolist()))

# %% [markdown]
# Nothing is lost: the two sequences together hold the text, and the sentinels say which words go where.
# The loss is the causal one, over the tokens that the decoder writes, given what the encoder read:
#
# $$L = -\frac{1}{|y|}\sum_{t} \ln p(y_t \mid y_{<t}, \tilde x)$$
#
# So span corruption has both: an encoder that sees either side of every gap, and a decoder that writes.
#
# **Why spans?** A single missing word is often settled by its two neighbours: *New ▢ City*. If a whole
# phrase is gone, the neighbours are gone too; the model has to decide what the passage is about, how many
# words it takes, and write words that fit each other. Targets are short, so it is cheap as well.
#
# BART's **infilling** is the sibling: one `[MASK]` stands for a span of any length, even of none, and the
# decoder writes the *whole* text, so the model must find out where something is missing and how much.
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Ek shabd gayab ho to aas-paas se andaaza lag jaata hai: "Taj ▢ Agra" mein kya aayega, sabko pata hai.
# Par poora tukda hi gayab ho to? Tab sochna padta hai ki baat kya chal rahi thi, kitne shabd
# lagenge, aur woh shabd aapas mein bhi jamne chahiye. T5 har gayab tukde ki jagah ek numbered parchi
# chhodta hai, aur decoder parchi ka number bol kar uske peeche ka tukda likh deta hai. Padhna dono taraf
# se, likhna baayein se daayein: dono ka mazaa ek saath.
#
# </details>

# %% [markdown]
# ## What is scored
#
# All three losses are one formula: **the surprises of the scored tokens, added up, over their number.**
# The objectives differ in which tokens are scored; code goes wrong over the very same thing.
#
# - **Not scored** is said by a label of −100, the *ignore index*. It is no position and no token id.
# - **Padding** is never scored and never read. It is known by its place, not by its id: where EOS doubles
#   as the padding token, the one EOS that ends the text *is* scored, or no model learns to stop.
# - **Add up first, divide once.** Batches have different numbers of scored tokens, so a mean of means is
#   another number:

# %%
from course_lib.losses import SummedNLL

short = SummedNLL(nats=torch.tensor(12.0), tokens=torch.tensor(2))  # 6 nats a token
long = SummedNLL(nats=torch.tensor(98.0), tokens=torch.tensor(98))  # 1 nat a token
print(f"mean of the two means: {(short.mean + long.mean) / 2:.2f}")
print(f"mean over all tokens:  {(short.nats + long.nats) / (short.tokens + long.tokens):.2f}")

# %% [markdown]
# - **Nothing scored** happens: a short text from which no token was chosen, a chat in which every turn is
#   the user's. The mean over nothing is 0/0, and through the gradient that NaN reaches every weight:

# %%
no_labels = torch.full((3,), IGNORE_INDEX)
print("PyTorch:", torch.nn.functional.cross_entropy(torch.zeros(3, 5), no_labels).item())

from course_lib.losses import cross_entropy

print("course_lib, which divides by at least 1:", cross_entropy(torch.zeros(3, 5), no_labels).item())

# %% [markdown]
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Loss ka hisaab dukaandaar wala hai: pehle poora jod, phir ek hi baar bhaag. Do shabd wale aur sau
# shabd wale sentence ka alag alag average nikaal kar phir unka average liya, to chhote sentence ka vazan
# bekaar mein badh gaya. Padding to sirf khaali dibbe hain jo line barabar karne ko rakhe hain; unke
# number mat jodo. Aur agar kuch poochha hi nahi gaya, to zero ko zero se bhaag dene par NaN milega, aur
# woh poore model ko kha jaayega.
#
# </details>

# %% [markdown]
# ## Perplexity
#
# A loss in nats is exact and says little to anybody. Undo the logarithm, and it becomes a count:
#
# $$\mathrm{PPL} = e^{L}$$
#
# **Perplexity is the number of equally likely choices that would be as surprising.** Three things with
# evenly likely outcomes lie on the curve where they should:

# %% locked="P_curve"
from course_lib.teaching.show import Picture, new_figure


def curve(things):
    figure, axes = new_figure(6, 3.6)
    nats = torch.linspace(0, 3.4, 200)
    axes.plot(nats.tolist(), nats.exp().tolist(), color="#0072B2")
    for thing, outcomes in things.items():
        loss = math.log(outcomes)
        axes.plot(loss, outcomes, "o", color="#D55E00")
        label = f"{thing}: {loss:.2f} nats, {outcomes}"
        side = "right" if loss > 1 else "center"
        axes.annotate(label, (loss, outcomes), (-8, 9), textcoords="offset points", ha=side)
    axes.set(xlabel="loss L (nats per token)", ylabel="perplexity", xlim=(0, 3.4), ylim=(0, 30))
    axes.twiny().set(xlabel="loss (bits per token)", xlim=(0, 3.4 / math.log(2)))
    dots = "; ".join(f"{thing} at {math.log(n):.2f} nats and {n}" for thing, n in things.items())
    return Picture(figure, f"Perplexity is e to the loss, ever steeper. Dots: {dots}.")


curve({"a coin": 2, "a die": 6, "a letter": 26})

# %% [markdown]
# The curve bends upward: the same step in loss is a small step in perplexity on the left and a large one
# on the right. It *multiplies*.
#
# **Forecast.** On every other token a model is certain, and right. On the others it hesitates
# evenly between two tokens, one of which comes. What is its perplexity?

# %% answer="P_half"
forecast_half = (
    ### BEGIN SOLUTION
    1.5
    ### END SOLUTION
)

# %% locked="P_half_run"
from course_lib.perplexity import nats_to_bits, nats_to_perplexity

loss_half = (math.log(1) + math.log(2)) / 2
ppl_half = predict("Half certain", forecast_half, lambda: round(nats_to_perplexity(loss_half), 3))
print(f"The loss is {loss_half:.3f} nats, {nats_to_bits(loss_half):.2f} bits: half a coin per token.")
print("The mean of 1 and 2 would be 1.5. Choices multiply, so it is the root of 1 × 2 instead.")

# %% [markdown]
# **Bits.** With logarithms to base 2 a loss counts in bits: nats divided by 0.693. A loss in bits goes
# with $2^L$, one in nats with $e^L$, and the perplexity is the same. To mix them up is the commonest slip.
#
# **What may be compared.** A perplexity belongs to a text, a tokenizer, a length of context and a way of
# scoring. If any of these differs, two perplexities may not be compared:
#
# - *Tokenizer:* cut the same text into more tokens, and each is easier. Compare **bits per byte** instead.
# - *Context:* a token that starts a window has little to be predicted from. Score every token of a long
#   text once, and say how long the windows were.
# - *Objective:* a masked loss sees both sides and obeys no chain rule; $e$ to its power is not the
#   perplexity of a text. Nor is $e$ to a loss with label smoothing.
#
# Between which bounds can a perplexity lie? Levels 2 and 5 will have you find out by building models.
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Loss aur perplexity ek hi cheez ke do naam hain, jaise Celsius aur Fahrenheit: PPL = e^loss. Par
# perplexity sunne mein seedhi hai: "model itne barabar vikalpon ke beech uljha hua hai." Sikka uchhaalo
# to do, paasa phenko to chhah. Dhyaan rahe, vikalp guna hote hain, isliye inka seedha average mat lo:
# pehle loss ka average, phir ek hi baar e ki power. Aur do model ki perplexity tabhi milao jab text bhi
# wahi ho, tokenizer bhi wahi, aur context bhi utna hi.
#
# </details>

# %% [markdown]
# ## Common mistakes
#
# Each of these has something to be said for it. Read its case as if you had to defend it; then run the
# cell.
#
# ### "A masked LM should be scored on all tokens"
#
# **The case for it.** Of a hundred tokens read, eighty-five earn nothing: what a waste! A causal LM
# learns from every token. More labels mean more signal per step, and a model that can't even say what
# stands before its eyes surely has something to learn.
#
# **The cell.** Two models, twenty tokens, three of them hidden. Both give the hidden words the same
# probability, 0.1. The second has only become better at copying the visible ones.

# %%
def losses(visible_p, hidden_p=0.1, visible=17, hidden=3):
    seen, guessed = -math.log(visible_p) * visible, -math.log(hidden_p) * hidden
    return guessed / hidden, (seen + guessed) / (visible + hidden)


for model, visible_p in (("copies badly", 0.5), ("copies well", 0.99)):
    masked, everywhere = losses(visible_p)
    print(f"{model}: over the hidden tokens {masked:.2f} nats, over all tokens {everywhere:.2f}")

# %% [markdown]
# Over all tokens the loss has more than halved, and not one hidden word is guessed better. The eighty-five
# are no wasted labels; they are the context without which the fifteen could not be asked.
#
# ### "Left to right is an assumption, and a wrong one"
#
# **The case for it.** Words depend on what follows them too. In *the bank of the river* the end tells what
# the beginning meant. A model that factorises from left to right assumes that the past alone matters,
# and gives away half of the information.
#
# **Forecast.** In our weather each day was drawn from the day before. Factorise the four days from *right
# to left* instead, each from the day after. By what factor does their probability change?

# %% answer="P_order"
forecast_order = (
    ### BEGIN SOLUTION
    1.0
    ### END SOLUTION
)

# %% locked="P_order_run"
def order_ratio():
    pi, forward = weather.stationary, weather.transition
    backwards = MarkovWorld((pi[:, None] * forward / pi[None, :]).T)  # Bayes: p(day | day after)
    return round((backwards.log_prob(days.flip(1)) - weather.log_prob(days)).exp().item(), 6)


predict("Order", forecast_order, order_ratio)
print("The chain rule holds in every order. Each factor looks at one side only, and yet their")
print("product is the probability of the whole: what the past can't tell about a word, the words")
print("after it pay less for.")

# %% [markdown]
# What a causal model does give up is something else: its *representation* of a word has not seen what
# follows. For understanding a finished text that counts, and it is why BERT reads both sides.
#
# ### "A causal LM must be run once for every token, so training it is slow"
#
# **The case for it.** When it writes, it runs once per token. In training it predicts every token from
# those before, and those are a different input each time.
#
# **The cell.** One pass over the whole sequence, against one pass for each beginning.

# %%
from course_lib.model import TinyTransformer

model = TinyTransformer(20, generator=torch.Generator().manual_seed(0)).eval()
ids_1T = torch.randint(20, (1, 12), generator=torch.Generator().manual_seed(1))
causal = causal_lm(torch.arange(13)[None]).attention[0]

with torch.no_grad():
    at_once = model(ids_1T, causal)[0]
    one_by_one = torch.stack(
        [model(ids_1T[:, :t], causal[:t, :t])[0, -1] for t in range(1, 13)]
    )
agree = torch.allclose(at_once, one_by_one, atol=1e-5)
print(f"12 predictions from 1 pass, the same as from 12 passes: {agree}")

# %% [markdown]
# That is the causal mask's other gift. Since no position can see what follows, all beginnings of a text
# are in the one pass, and every token is a label. (Masked LMs get their few labels for the same price.)
#
# ### "The model with the lower loss knows the language better"
#
# **The case for it.** Loss is surprise, and whoever is less surprised has understood more. That is what
# losses are for.
#
# **The cell.** A language of eight words whose laws we know exactly. Both models below are the *best
# possible*, with the true probabilities: nobody can know the language better than either.

# %%
language = MarkovWorld.random(8, generator=torch.Generator().manual_seed(3))
print(f"best causal LM:             {language.clm_loss(1_000):.3f} nats per token")
print(f"best masked LM, 15% hidden: {language.mlm_loss(0.15, 1_000):.3f} nats per hidden token")

# %% [markdown]
# The same knowledge, two losses: the second was asked easier questions, with both neighbours in view. A
# loss measures a model *on a task*. Compare on the same task, text, tokenizer and context, or not at all.
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Galti wahi karta hai jo sochta hai, isliye har galti ki taraf se pehle poori vakaalat karo, phir
# experiment se poochho. "Sab tokens par number do": suno to theek lagta hai, par model nakal karke number
# le jaata hai. "Baayein se daayein padhna adhoora hai": par chain rule kisi bhi disha mein poora hisaab
# deta hai. "Kam loss wala model zyada jaanta hai": par ek ko aasaan paper mila tha, doosre ko mushkil.
# Pehle dekho paper ek hi tha ya nahi, phir topper ghoshit karo.
#
# </details>

# %% [markdown]
# ## To remember
#
# **The three in three words.** *Causal* **c**ontinues. *Masked* **m**ends. *Span* **s**upplies. And the
# loss, whichever: *add the surprises, divide once, exponentiate last.*
#
# **For somebody who is twelve.** Somebody has put stickers over some words of a story, and you guess what
# is under them. At first you guess words that are common. Then you notice who is speaking, and that it
# is night, and that the dog was called Bruno two pages ago; and your guesses get good. To check them you
# need no teacher: you lift the sticker. A computer plays this with more books than anyone could read in
# a thousand lives. Nobody tells it about dogs or nights. It has to find out, or it keeps guessing wrong.
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Teen shabdon mein: *causal* kahani aage badhata hai, *masked* phati hui jagah par paiband lagata hai,
# *span* gayab hissa likh kar deta hai. Chhote bhai ko samjhana ho to bolo: kahani ki kitaab mein kuch
# shabdon par sticker chipke hain, andaaza lagao aur sticker hata kar dekh lo. Teacher ki zaroorat hi
# nahi! Computer yahi khel lakhon kitaabon ke saath khelta hai, aur khelte khelte bahut kuch seekh jaata
# hai.
#
# </details>

# %% [markdown]
# **Five flashcards.** Answer in your head, then turn the card over. Every level opens with five from what
# came before; those that you knew come back later and later.

# %%
from course_lib.teaching.cards import cards

cards("primer")

# %% [markdown]
# ## Concept map
#
# Follow the arrows and say each as a sentence. A box leads to its section.

# %%
from course_lib.teaching.concepts import concept_map

concept_map()

# %% [markdown]
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Is naqshe ko raaste ki tarah padho: raw text se shuru karo, beech mein teen gaadiyan milengi (causal,
# masked, span), teeno ek hi station par pahunchti hain, cross-entropy, aur wahan se ek kadam par
# perplexity. Har teer ko zubaani ek vaakya bana kar bolo; jo atak jaaye, us dibbe par click karke wahi
# section phir se padho.
#
# </details>

# %% [markdown]
# ## Where this leads
#
# - **Transformers.** One architecture, three attention masks: to the left, to both sides, or both sides
#   for the encoder and left for the decoder. The mask is the objective's, not the architecture's.
# - **Cross-entropy.** The same loss as in any classifier; there are as many classes as tokens.
# - **Perplexity.** How the loss is reported, and what must be held fixed; Levels 2, 3 and 5.
# - **Fine-tuning.** Pretrained weights are where it starts. What pretraining never showed, such as a text
#   without `[MASK]`, is a risk there; Level 4.
# - **Tokenization.** BPE decides what a token is, hence what "per token" means, and what a vocabulary of
#   size $V$ is that softmax runs over.
# - **GPT or BERT?** To write, continue; to read, mend. Since everything can be put as "continue this",
#   large models of today are mostly causal; where a finished text is to be searched or sorted, models
#   that read both sides are still smaller and better for their size.
# - **Compression.** A text can be stored in as many bits as its surprises add up to; Level 5.
# - **Masked diffusion.** Mask at all rates instead of one, and mending becomes a way of writing; Level 5.
#
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Yeh primer ek chauraha hai. Ek raasta transformer ki taraf jaata hai (wahan sirf mask badalta hai,
# gaadi wahi), ek fine-tuning ki taraf (pehle se padha likha model, ab naya kaam seekhega), ek
# tokenization ki taraf (shabd kahan se kaatna hai), aur ek compression ki taraf: jise agla shabd pata
# ho, uske liye chitthi chhoti ho jaati hai.
#
# </details>

# %% [markdown]
# ## Question bank
#
# Twenty traps. Decide first, aloud if you can; then open your option, and the others too: each says why
# somebody might think so.

# %%
from course_lib.teaching.traps import question_bank

question_bank()

# %% [markdown]
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Bees jaal bichhe hain. Pehle khud faisla karo, phir apna option kholo. Galat nikle to khush ho jao:
# wahi galti ab exam mein nahi hogi. Aur baaki option bhi kholna, kyunki sahi jawab se zyada sikhaata hai
# yeh samajhna ki galat jawab kyun galat hai.
#
# </details>

# %% [markdown]
# ## The misconceptions by number
#
# When a check answers "misconception M6", this is the list that it means. Open one to see a case that
# refutes it. They are no inventions: nearly all of them have been shipped, as bugs, by well-known
# projects, and found by somebody who did the sum.

# %%
from course_lib.teaching.misconceptions import listed

listed()

# %% [markdown]
# <details><summary>🇮🇳 Hinglish mein</summary>
#
# Check ne bola "misconception M6"? Sharmaane ki baat nahi, yeh galtiyan bade bade projects ke code mein
# bhi mili hain. Number dhoondho, kholo, ek chhota sa ulta udaharan padho, aur jis section ka naam likha
# hai wahan ek baar laut aao. Bas, ho gaya.
#
# </details>
#
# That is all. In [Level 1](../level1/level1.ipynb) you tell the three apart when you meet them.
