# %% [markdown]
# Answers to Level 5 as students write them. Those with a `style` are right and must get full points;
# each `mutant` is wrong in a way that has a name and must be told the `message`.

# %% answer="L5_1_code_length" style="loop"
def code_length_bits(token_probs):
    total = 0
    for p in token_probs:
        total += math.log(1 / p) / math.log(2)
    return total

# %% answer="L5_1_code_length" style="numpy"
import numpy as np

def code_length_bits(token_probs):
    return -np.log2(np.array(token_probs)).sum()

# %% answer="L5_1_code_length" style="torch float32"
def code_length_bits(token_probs):
    return torch.tensor(token_probs).log2().sum().neg()

# %% answer="L5_1_code_length" mutant="nats" message="You counted in nats"
def code_length_bits(token_probs):
    return -sum(math.log(p) for p in token_probs)

# %% answer="L5_1_code_length" mutant="mean" message="their costs add up"
def code_length_bits(token_probs):
    return -sum(math.log2(p) for p in token_probs) / max(len(token_probs), 1)

# %% answer="L5_1_code_length" mutant="whole bits a token" message="rounded every token up"
def code_length_bits(token_probs):
    return sum(math.ceil(-math.log2(p)) for p in token_probs)

# %% answer="L5_1_code_length" mutant="whole bits" message="You rounded the total"
def code_length_bits(token_probs):
    return math.ceil(-sum(math.log2(p) for p in token_probs))

# %% answer="L5_1_code_length" mutant="no minus" message="The sign is wrong"
def code_length_bits(token_probs):
    return sum(math.log2(p) for p in token_probs)

# %% answer="L5_1_code_length" mutant="product" message="smaller than the smallest number"
def code_length_bits(token_probs):
    return -math.log2(math.prod(token_probs))

# %% answer="L5_1_code_length" mutant="product, numpy" message="smaller than the smallest number"
import numpy as np

def code_length_bits(token_probs):
    with np.errstate(divide="ignore"):
        return -np.log2(np.prod(token_probs))

# %% answer="L5_1_code_length" mutant="perplexity" message="That is the perplexity"
def code_length_bits(token_probs):
    return 2 ** (-sum(math.log2(p) for p in token_probs) / max(len(token_probs), 1))

# %% answer="L5_1_unigram" style="counts so far"
def unigram_probs(ids, vocab_size):
    return [(ids[:t].count(x) + 1) / (t + vocab_size) for t, x in enumerate(ids)]

# %% answer="L5_1_unigram" style="dictionary"
from collections import Counter

def unigram_probs(ids, vocab_size):
    seen, out = Counter(), []
    for x in ids:
        out.append((seen[x] + 1) / (seen.total() + vocab_size))
        seen[x] += 1
    return out

# %% answer="L5_1_unigram" style="torch"
def unigram_probs(ids, vocab_size):
    one_hot = torch.nn.functional.one_hot(torch.tensor(ids), vocab_size)
    before = one_hot.cumsum(0) - one_hot
    return ((before * one_hot).sum(1) + 1) / (torch.arange(len(ids)) + vocab_size)

# %% answer="L5_1_unigram" style="numpy"
import numpy as np

def unigram_probs(ids, vocab_size):
    counts, out = np.ones(vocab_size), np.empty(len(ids))
    for t, x in enumerate(ids):
        out[t] = counts[x] / counts.sum()
        counts[x] += 1
    return out

# %% answer="L5_1_unigram" mutant="whole text" message="later tokens too"
def unigram_probs(ids, vocab_size):
    return [(ids.count(x) + 1) / (len(ids) + vocab_size) for x in ids]

# %% answer="L5_1_unigram" mutant="frequencies" message="frequencies in the whole text"
def unigram_probs(ids, vocab_size):
    return [ids.count(x) / len(ids) for x in ids]

# %% answer="L5_1_unigram" mutant="counts first" message="counted the token itself before"
def unigram_probs(ids, vocab_size):
    counts, out = [1] * vocab_size, []
    for x in ids:
        counts[x] += 1
        out.append(counts[x] / sum(counts))
    return out

# %% answer="L5_1_unigram" mutant="counts first, t stays" message="already holds the token"
def unigram_probs(ids, vocab_size):
    counts, out = [1] * vocab_size, []
    for t, x in enumerate(ids):
        counts[x] += 1
        out.append(counts[x] / (t + vocab_size))
    return out

# %% answer="L5_1_unigram" mutant="no plus one" message="Without the +1"
def unigram_probs(ids, vocab_size):
    return [ids[:t].count(x) / max(t, 1) for t, x in enumerate(ids)]

# %% answer="L5_1_unigram" mutant="no V" message="The V in the denominator is missing"
def unigram_probs(ids, vocab_size):
    return [(ids[:t].count(x) + 1) / (t + 1) for t, x in enumerate(ids)]

# %% answer="L5_1_unigram" mutant="uniform" message="an even guess everywhere"
def unigram_probs(ids, vocab_size):
    return [1 / vocab_size] * len(ids)

# %% answer="L5_1_unigram" mutant="eats its input" message="changed the list"
def unigram_probs(ids, vocab_size):
    counts, out, t = [1] * vocab_size, [], 0
    while ids:
        x = ids.pop(0)
        out.append(counts[x] / (t + vocab_size))
        counts[x] += 1
        t += 1
    return out

# %% answer="L5_1_prediction" style="wrong, but committed"
predicted_smallest = ("unigram", "zlib")

# %% answer="L5_1_prediction" mutant="one name" message="write two of the names"
predicted_smallest = "zlib"

# %% answer="L5_1_prediction" mutant="another program" message="write two of the names"
predicted_smallest = ["gzip", "bigram"]

# %% answer="L5_1_unknown" style="typed in"
unknown_capital_bits = 5

# %% answer="L5_1_unknown" style="torch"
unknown_capital_bits = torch.tensor(1 / 32).log2().neg()

# %% answer="L5_1_unknown" mutant="nats" message="That is in nats"
unknown_capital_bits = math.log(32)

# %% answer="L5_1_unknown" mutant="perplexity" message="That is the perplexity"
unknown_capital_bits = 32

# %% answer="L5_1_unknown" mutant="certain" message="That would be a capital"
unknown_capital_bits = 0

# %% answer="L5_1_unknown" mutant="64 words" message="drawn from 32, not 64"
unknown_capital_bits = math.log2(64)

# %% answer="L5_1_fact" style="cross entropy"
def fact_bits(logits, ids):
    return torch.nn.functional.cross_entropy(logits[:, -3], ids[:, -2]) / math.log(2)

# %% answer="L5_1_fact" style="loop"
def fact_bits(logits, ids):
    total = 0.0
    for sentence, tokens in zip(logits.tolist(), ids.tolist()):
        row = sentence[len(tokens) - 3]
        top = max(row)
        total += top + math.log(sum(math.exp(x - top) for x in row)) - row[tokens[-2]]
    return total / len(ids) / math.log(2)

# %% answer="L5_1_fact" style="numpy"
import numpy as np

def fact_bits(logits, ids):
    z = logits.double().numpy()[:, -3]
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -np.mean(log_p[np.arange(len(z)), ids[:, -2].numpy()]) / np.log(2)

# %% answer="L5_1_fact" mutant="nats" message="You measured in nats"
def fact_bits(logits, ids):
    return torch.nn.functional.cross_entropy(logits[:, -3], ids[:, -2])

# %% answer="L5_1_fact" mutant="no shift" message="the row at the capital itself"
def fact_bits(logits, ids):
    return torch.nn.functional.cross_entropy(logits[:, -2], ids[:, -2]) / math.log(2)

# %% answer="L5_1_fact" mutant="double shift" message="the row two before"
def fact_bits(logits, ids):
    return torch.nn.functional.cross_entropy(logits[:, -4], ids[:, -2]) / math.log(2)

# %% answer="L5_1_fact" mutant="full stop" message="You scored the full stop"
def fact_bits(logits, ids):
    return torch.nn.functional.cross_entropy(logits[:, -2], ids[:, -1]) / math.log(2)

# %% answer="L5_1_fact" mutant="whole sentence" message="Only the capital shows the fact"
def fact_bits(logits, ids):
    rows, targets = logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    return torch.nn.functional.cross_entropy(rows, targets) / math.log(2)

# %% answer="L5_1_fact" mutant="sum" message="added the sentences up"
def fact_bits(logits, ids):
    losses = torch.nn.functional.cross_entropy(logits[:, -3], ids[:, -2], reduction="sum")
    return losses / math.log(2)

# %% answer="L5_1_reading" style="capital"
compression_reading = "C"

# %% answer="L5_1_reading" mutant="incomparable" message="both models are charged for the same bytes"
compression_reading = "a"

# %% answer="L5_1_reading" mutant="facts" message="doesn't say where it was won"
compression_reading = "b"

# %% answer="L5_1_reading" mutant="two skills" message="the bits are the loss"
compression_reading = "d"

# %% answer="L5_2_numbers" style="typed in"
ppl_perfect, ppl_even, ppl_real = 1, 32000, 12.18

# %% answer="L5_2_numbers" style="torch"
ppl_perfect = torch.tensor([1.0, 1.0]).log().neg().mean().exp()
ppl_even = torch.full((9,), 1 / 32_000, dtype=torch.float64).log().neg().mean().exp()
ppl_real = torch.tensor(2.5).exp()

# %% answer="L5_2_numbers" mutant="zero" message="the loss of a perfect model"
ppl_perfect, ppl_even, ppl_real = 0, 32_000, math.exp(2.5)

# %% answer="L5_2_numbers" mutant="losses" message="That is the loss. Perplexity"
ppl_perfect, ppl_even, ppl_real = 1, math.log(32_000), math.exp(2.5)

# %% answer="L5_2_numbers" mutant="two to the nats" message="2 to the power of a loss in nats"
ppl_perfect, ppl_even, ppl_real = 1, 32_000, 2**2.5

# %% answer="L5_2_numbers" mutant="three digits" message="right to three digits"
ppl_perfect, ppl_even, ppl_real = 1, 32_000, 12.2

# %% answer="L5_2_numbers" mutant="tries" message="no average number of tries"
ppl_perfect, ppl_even, ppl_real = 1, 16_000.5, math.exp(2.5)

# %% answer="L5_2_prediction" style="wrong, but committed"
predicted_away = 8

# %% answer="L5_2_prediction" mutant="words" message="write a number"
predicted_away = "worse"

# %% answer="L5_2_floor" style="typed in"
lowest_ppl = 1.65

# %% answer="L5_2_floor" style="bits"
lowest_ppl = 2 ** (0.8 * math.log2(5 / 4) + 0.2 * math.log2(5))

# %% answer="L5_2_floor" mutant="certain" message="a text in which every letter is certain"
lowest_ppl = 1

# %% answer="L5_2_floor" mutant="even" message="the perplexity of picking evenly"
lowest_ppl = 2

# %% answer="L5_2_floor" mutant="likelier letter" message="where the likelier letter comes"
lowest_ppl = 1 / 0.8

# %% answer="L5_2_floor" mutant="mean p" message="one over the average probability"
lowest_ppl = 1 / (0.8 * 0.8 + 0.2 * 0.2)

# %% answer="L5_2_floor" mutant="two to the nats" message="2 to the power of a loss in nats"
lowest_ppl = 2 ** -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))

# %% answer="L5_2_model" style="loop"
def model_with_ppl(target, vocab_size):
    if target < 1:
        raise ValueError("no distribution has a perplexity below 1")
    probs = []
    for token in range(vocab_size):
        probs.append(1 / target if token == 0 else (1 - 1 / target) / (vocab_size - 1))
    return probs

# %% answer="L5_2_model" style="all on one wrong token, numpy"
import numpy as np

def model_with_ppl(target, vocab_size):
    if not target >= 1:
        raise ValueError(f"{target} is below 1")
    probs = np.zeros(vocab_size)
    probs[0] = 1 / target
    probs[-1] = 1 - 1 / target
    return probs

# %% answer="L5_2_model" style="torch logits"
def model_with_ppl(target, vocab_size):
    if target < 1:
        raise ValueError("impossible")
    if target == 1:
        return torch.nn.functional.one_hot(torch.tensor(0), vocab_size).double()
    logits = torch.zeros(vocab_size, dtype=torch.float64)
    logits[0] = math.log(vocab_size - 1) - math.log(target - 1)
    return logits.softmax(0)

# %% answer="L5_2_model" mutant="V is the ceiling" message="V is no upper bound"
def model_with_ppl(target, vocab_size):
    if not 1 <= target <= vocab_size:
        raise ValueError("a perplexity is between 1 and V")
    right = 1 / target
    return [right] + [(1 - right) / (vocab_size - 1)] * (vocab_size - 1)

# %% answer="L5_2_model" mutant="clamped" message="you returned an even guess"
def model_with_ppl(target, vocab_size):
    if target < 1:
        raise ValueError("impossible")
    right = max(1 / target, 1 / vocab_size)
    return [right] + [(1 - right) / (vocab_size - 1)] * (vocab_size - 1)

# %% answer="L5_2_model" mutant="wrong mass as a bonus" message="The probabilities add up to"
def model_with_ppl(target, vocab_size):
    if target < 1:
        raise ValueError("impossible")
    return [1 / target] + [1 / vocab_size] * (vocab_size - 1)

# %% answer="L5_2_model" mutant="nothing is impossible" message="raise a ValueError that says so"
def model_with_ppl(target, vocab_size):
    right = min(1 / target if target else 1, 1)
    return [right] + [(1 - right) / (vocab_size - 1)] * (vocab_size - 1)

# %% answer="L5_2_model" mutant="another token" message="The true token is token 0"
def model_with_ppl(target, vocab_size):
    if target < 1:
        raise ValueError("impossible")
    return [(1 - 1 / target) / (vocab_size - 1) for _ in range(vocab_size - 1)] + [1 / target]

# %% answer="L5_2_model" mutant="even over target tokens" message="Asked for perplexity"
def model_with_ppl(target, vocab_size):
    if target < 1:
        raise ValueError("impossible")
    n = min(max(1, round(target)), vocab_size)
    return [1 / n] * n + [0.0] * (vocab_size - n)

# %% answer="L5_2_model" mutant="mixture with a negative share" message="takes a negative share"
def model_with_ppl(target, vocab_size):
    if target < 1:
        raise ValueError("impossible")
    share = (1 / target - 1 / vocab_size) / (1 - 1 / vocab_size)
    even = (1 - share) / vocab_size
    probs = [even] * vocab_size
    probs[0] += share
    probs[1] += min(share, 0) * 10
    return probs

# %% answer="L5_2_range" style="blanks"
ppl_range = " b "

# %% answer="L5_2_range" mutant="V" message="The model far from home had eight letters"
ppl_range = "a"

# %% answer="L5_2_range" mutant="V after training" message="Training makes a model confident"
ppl_range = "c"

# %% answer="L5_2_range" mutant="entropy on every text" message="That holds on average"
ppl_range = "d"

# %% answer="L5_3_prediction" style="wrong, but committed"
predicted_ppls = torch.tensor([1, 2, 4, 8])

# %% answer="L5_3_prediction" mutant="one number" message="write four numbers"
predicted_ppls = 8

# %% answer="L5_3_limit" style="typed in"
ppl_all_hidden = 3.67

# %% answer="L5_3_limit" style="nats"
ppl_all_hidden = math.exp(-sum(p * math.log(p) for p in (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16)))

# %% answer="L5_3_limit" mutant="V" message="That is an even guess"
ppl_all_hidden = 5

# %% answer="L5_3_limit" mutant="bits" message="the entropy in bits"
ppl_all_hidden = 1.875

# %% answer="L5_3_limit" mutant="e to the bits" message="e to the power of an entropy in bits"
ppl_all_hidden = math.exp(1.875)

# %% answer="L5_3_limit" mutant="most frequent" message="the most frequent letter comes"
ppl_all_hidden = 2

# %% answer="L5_3_limit" mutant="unweighted" message="A letter counts as often as it comes"
ppl_all_hidden = 2 ** ((1 + 2 + 3 + 4 + 4) / 5)

# %% answer="L5_3_rate" style="cross entropy with ignored labels"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.bernoulli(torch.full(ids.shape, rate), generator=generator).bool()
    labels = ids.masked_fill(~hidden, -100)
    return torch.nn.functional.cross_entropy(model(ids, hidden).transpose(1, 2).double(), labels)

# %% answer="L5_3_rate" style="loop over texts"
def loss_at_rate(model, ids, rate, generator):
    total, count = 0.0, 0
    for start in range(0, len(ids), 100):
        part = ids[start : start + 100]
        hidden = torch.rand(part.shape, generator=generator) < rate
        log_probs = model(part, hidden)
        for text, log_p, row in zip(part.tolist(), log_probs.tolist(), hidden.tolist()):
            for i in range(len(text)):
                if row[i]:
                    total -= log_p[i][text[i]]
                    count += 1
    return total / count

# %% answer="L5_3_rate" style="numpy draws"
import numpy as np

def loss_at_rate(model, ids, rate, generator):
    rng = np.random.default_rng(int(torch.randint(2**31, (1,), generator=generator)))
    hidden = torch.from_numpy(rng.random(tuple(ids.shape)) < rate)
    nats = -model(ids, hidden).double().numpy()
    rows, columns = np.nonzero(hidden.numpy())
    return nats[rows, columns, ids.numpy()[rows, columns]].mean()

# %% answer="L5_3_rate" mutant="all positions" message="averaged over all positions"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.rand(ids.shape, generator=generator) < rate
    return -model(ids, hidden).gather(-1, ids[..., None]).mean().item()

# %% answer="L5_3_rate" mutant="shows the answers" message="had seen every answer"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.rand(ids.shape, generator=generator) < rate
    log_probs = model(ids, torch.zeros_like(hidden)).gather(-1, ids[..., None])[..., 0]
    return -log_probs[hidden].mean().item()

# %% answer="L5_3_rate" mutant="mean of means" message="pool all hidden positions"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.rand(ids.shape, generator=generator) < rate
    nats = -model(ids, hidden).gather(-1, ids[..., None])[..., 0]
    means = [row[h].mean() for row, h in zip(nats, hidden) if h.any()]
    return torch.stack(means).mean().item()

# %% answer="L5_3_rate" mutant="empty texts" message="in some text nothing was hidden"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.rand(ids.shape, generator=generator) < rate
    nats = -model(ids, hidden).gather(-1, ids[..., None])[..., 0]
    return ((nats * hidden).sum(1) / hidden.sum(1)).mean().item()

# %% answer="L5_3_rate" mutant="divides by all" message="divided by the number of all positions"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.rand(ids.shape, generator=generator) < rate
    nats = -model(ids, hidden).gather(-1, ids[..., None])[..., 0]
    return (nats * hidden).mean().item()

# %% answer="L5_3_rate" mutant="global randomness" message="draw from `generator` only"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.rand(ids.shape) < rate
    return -model(ids, hidden).gather(-1, ids[..., None])[..., 0][hidden].mean().item()

# %% answer="L5_3_rate" mutant="perplexity" message="That is the perplexity. Return the loss"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.rand(ids.shape, generator=generator) < rate
    return (-model(ids, hidden).gather(-1, ids[..., None])[..., 0][hidden].mean()).exp().item()

# %% answer="L5_3_rate" mutant="one mask" message="All texts share one mask"
def loss_at_rate(model, ids, rate, generator):
    hidden = torch.zeros(ids.shape[1], dtype=torch.bool)
    while not hidden.any():
        hidden = torch.rand(ids.shape[1], generator=generator) < rate
    hidden = hidden.expand(ids.shape)
    return -model(ids, hidden).gather(-1, ids[..., None])[..., 0][hidden].mean().item()

# %% answer="L5_3_hide" style="loop"
def hide_any_number(n, length, generator):
    hidden = torch.zeros(n, length, dtype=torch.bool)
    for row in hidden:
        k = int(torch.randint(1, length + 1, (1,), generator=generator))
        row[torch.randperm(length, generator=generator)[:k]] = True
    return hidden

# %% answer="L5_3_hide" style="numpy"
import numpy as np

def hide_any_number(n, length, generator):
    rng = np.random.default_rng(int(torch.randint(2**31, (1,), generator=generator)))
    k = rng.integers(1, length, size=(n, 1), endpoint=True)
    return rng.permuted(np.tile(np.arange(length), (n, 1)), axis=1) < k

# %% answer="L5_3_hide" style="sorted thresholds"
def hide_any_number(n, length, generator):
    scores = torch.rand(n, length, generator=generator)
    k = torch.randint(length, (n, 1), generator=generator)
    return scores <= scores.sort(1).values.gather(1, k)

# %% answer="L5_3_hide" mutant="a table" message="different states gave the same masks"
def hide_any_number(n, length, generator):
    own = torch.Generator().manual_seed(0)
    n_hidden = torch.randint(1, length + 1, (n, 1), generator=own)
    return torch.rand(n, length, generator=own).argsort(1).argsort(1) < n_hidden

# %% answer="L5_3_hide" mutant="fixed rate" message="In some texts nothing is hidden"
def hide_any_number(n, length, generator):
    return torch.rand(n, length, generator=generator) < 0.15

# %% answer="L5_3_hide" mutant="a rate for every text" message="In some texts nothing is hidden"
def hide_any_number(n, length, generator):
    rate = torch.rand(n, 1, generator=generator)
    return torch.rand(n, length, generator=generator) < rate

# %% answer="L5_3_hide" mutant="never all" message="No text is hidden entirely"
def hide_any_number(n, length, generator):
    k = torch.randint(1, length, (n, 1), generator=generator)
    return torch.rand(n, length, generator=generator).argsort(1).argsort(1) < k

# %% answer="L5_3_hide" mutant="same number" message="All texts have the same number"
def hide_any_number(n, length, generator):
    k = torch.randint(1, length + 1, (1,), generator=generator)
    return torch.rand(n, length, generator=generator).argsort(1).argsort(1) < k

# %% answer="L5_3_hide" mutant="the first k" message="hidden more often than others"
def hide_any_number(n, length, generator):
    k = torch.randint(1, length + 1, (n, 1), generator=generator)
    return torch.arange(length) < k

# %% answer="L5_3_hide" mutant="a run" message="not a run of neighbours"
def hide_any_number(n, length, generator):
    k = torch.randint(1, length + 1, (n, 1), generator=generator)
    start = torch.randint(length, (n, 1), generator=generator)
    return (torch.arange(length) - start) % length < k

# %% answer="L5_3_hide" mutant="at least one" message="don't come equally often"
def hide_any_number(n, length, generator):
    hidden = torch.rand(n, length, generator=generator) < 0.5
    first = torch.randint(length, (n, 1), generator=generator)
    return hidden | (torch.arange(length) == first)

# %% answer="L5_3_hide" mutant="global randomness" message="Draw from `generator` only"
def hide_any_number(n, length, generator):
    k = torch.randint(1, length + 1, (n, 1))
    return torch.rand(n, length).argsort(1).argsort(1) < k

# %% answer="L5_3_objective" style="loop"
def any_rate_loss(nll, hidden):
    total = 0.0
    for row, mask in zip(nll.tolist(), hidden.tolist()):
        k = sum(mask)
        total += sum(x for x, h in zip(row, mask) if h) / (k / len(row)) / len(row)
    return total / len(nll)

# %% answer="L5_3_objective" style="mean of the hidden ones"
def any_rate_loss(nll, hidden):
    return torch.stack([row[h].mean() for row, h in zip(nll, hidden)]).mean()

# %% answer="L5_3_objective" style="numpy"
import numpy as np

def any_rate_loss(nll, hidden):
    nll, hidden = np.asarray(nll, dtype=np.float64), np.asarray(hidden)
    return np.mean((nll * hidden).sum(1) / hidden.mean(1)) / nll.shape[1]

# %% answer="L5_3_objective" mutant="no weight" message="The 1/p is missing"
def any_rate_loss(nll, hidden):
    return (nll * hidden).mean().item()

# %% answer="L5_3_objective" mutant="pooled" message="divide within the text, then average"
def any_rate_loss(nll, hidden):
    return nll[hidden].mean().item()

# %% answer="L5_3_objective" mutant="common rate" message="divide within the text, then average"
def any_rate_loss(nll, hidden):
    return ((nll * hidden).mean() / hidden.double().mean()).item()

# %% answer="L5_3_objective" mutant="visible too" message="scored the visible letters too"
def any_rate_loss(nll, hidden):
    return (nll.mean(1) / hidden.double().mean(1)).mean().item()

# %% answer="L5_3_objective" mutant="times the rate" message="You multiplied by the rate"
def any_rate_loss(nll, hidden):
    return ((nll * hidden).mean(1) * hidden.double().mean(1)).mean().item()

# %% answer="L5_3_objective" mutant="per text" message="The 1/T is missing"
def any_rate_loss(nll, hidden):
    return ((nll * hidden).sum(1) / hidden.double().mean(1)).mean().item()

# %% answer="L5_3_objective" mutant="visible instead" message="instead of the hidden ones"
def any_rate_loss(nll, hidden):
    seen = ~hidden
    return ((nll * seen).sum(1) / seen.sum(1).clamp(min=1)).mean().item()

# %% answer="L5_3_tests" style="exact loss of the world"
probe_ids = world.sample(20_000, 6, generator=torch.Generator().manual_seed(5))

def probe_model(ids, hidden):
    logits = torch.zeros(*ids.shape, 9)
    logits[..., :8] = world.masked_log_probs(ids, hidden)
    logits[..., :8][~hidden] = 0
    logits[..., 8] = 3
    return logits

def accepts(loss):
    return bool(abs(loss - world.clm_loss(6)) < 0.03)

# %% answer="L5_3_tests" style="spread measured, numpy"
import numpy as np

probe_ids = world.sample(6_000, 8, generator=torch.Generator().manual_seed(7))

def probe_model(ids, hidden):
    logits = world.masked_log_probs(ids, hidden) + 5
    logits = torch.where(hidden[..., None], logits, -logits.clamp(min=-9))
    return torch.cat([logits, torch.full_like(logits[..., :1], 9.0)], dim=-1)

def accepts(loss):
    exact, runs = -world.log_prob(probe_ids).mean().item() / 8, []
    for _ in range(12):
        generator = torch.Generator().manual_seed(len(runs))
        hidden = torch.as_tensor(hide_any_number(*probe_ids.shape, generator))
        nll = -world.masked_log_probs(probe_ids, hidden)
        runs.append(any_rate_loss(nll.gather(-1, probe_ids[..., None])[..., 0], hidden))
    return bool(abs(loss - exact) < 6 * np.std(runs))

# %% answer="L5_3_tests" mutant="accepts everything" message="Your test accepts everything"
probe_ids = world.sample(1_000, 8, generator=torch.Generator().manual_seed(3))
probe_model = lambda ids, hidden: torch.zeros(*ids.shape, 9)
accepts = lambda loss: True

# %% answer="L5_3_tests" mutant="rejects everything" message="rejects the right objective"
probe_ids = world.sample(1_000, 8, generator=torch.Generator().manual_seed(3))
probe_model = lambda ids, hidden: torch.zeros(*ids.shape, 9)
accepts = lambda loss: False

# %% answer="L5_3_tests" mutant="to the last digit" message="It is an estimate from random masks"
probe_ids = world.sample(1_000, 8, generator=torch.Generator().manual_seed(3))

def probe_model(ids, hidden):
    return torch.nn.functional.pad(world.masked_log_probs(ids, hidden), (0, 1))

def accepts(loss):
    return math.isclose(loss, world.clm_loss(8), rel_tol=1e-6)

# %% answer="L5_3_tests" mutant="too generous" message="accepts a fixed rate"
probe_ids = world.sample(4_000, 8, generator=torch.Generator().manual_seed(3))

def probe_model(ids, hidden):
    log_probs = world.masked_log_probs(ids, hidden)
    log_probs = torch.where(hidden[..., None], log_probs, torch.zeros(()).double())
    return torch.nn.functional.pad(log_probs, (0, 1), value=9.0)

def accepts(loss):
    return bool(abs(loss - world.clm_loss(8)) < 0.42)

# %% answer="L5_3_tests" mutant="only the oracle" message="bad at visible letters"
probe_ids = world.sample(4_000, 8, generator=torch.Generator().manual_seed(3))

def probe_model(ids, hidden):
    return torch.nn.functional.pad(
        world.masked_log_probs(ids, hidden), (0, 1), value=-math.inf
    )

def accepts(loss):
    return bool(abs(loss - world.clm_loss(8)) < 0.05)

# %% answer="L5_3_tests" mutant="never says mask" message="large logit for [MASK]"
probe_ids = world.sample(4_000, 8, generator=torch.Generator().manual_seed(3))

def probe_model(ids, hidden):
    log_probs = world.masked_log_probs(ids, hidden)
    log_probs = torch.where(hidden[..., None], log_probs, torch.zeros(()).double())
    return torch.nn.functional.pad(log_probs, (0, 1), value=-100.0)

def accepts(loss):
    return bool(abs(loss - world.clm_loss(8)) < 0.05)

# %% answer="L5_3_tests" mutant="tells the loss" message="must return True or False"
probe_ids = world.sample(1_000, 8, generator=torch.Generator().manual_seed(3))

def probe_model(ids, hidden):
    return torch.nn.functional.pad(world.masked_log_probs(ids, hidden), (0, 1))

accepts = float

# %% answer="L5_3_tests" mutant="words instead of ids" message="at most 20,000 x 16"
probe_ids = ["abba", "acab"]

def probe_model(ids, hidden):
    return torch.zeros(2, 4, 9)

accepts = lambda loss: loss < 2

# %% answer="L5_3_tests" mutant="eight logits" message="texts x length x 9"
probe_ids = world.sample(1_000, 8, generator=torch.Generator().manual_seed(3))

def probe_model(ids, hidden):
    return world.masked_log_probs(ids, hidden)

def accepts(loss):
    return bool(abs(loss - world.clm_loss(8)) < 0.05)

# %% answer="L5_3_choice" style="capital"
why_two_rates = "A"

# %% answer="L5_3_choice" mutant="lowest loss" message="Losses at different rates"
why_two_rates = "b"

# %% answer="L5_3_choice" mutant="unlearnable" message="At every rate below 100% there is context"
why_two_rates = "c"

# %% answer="L5_3_choice" mutant="mean rate" message="not its height in the middle"
why_two_rates = "d"
