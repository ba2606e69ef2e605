# %% [markdown]
# Answers to Level 3 as students write them. Those with a `style` are right and must get full points;
# each `mutant` is wrong in a way that has a name and must be told the `message`.

# %% answer="L3_1_convert" style="numpy"
import numpy as np

def ppl_from_nats(nats):
    with np.errstate(over="ignore"):
        return np.exp(np.float64(nats))

def ppl_from_bits(bits):
    with np.errstate(over="ignore"):
        return np.exp2(np.float64(bits))

def nats_from_ppl(ppl):
    if ppl < 1:
        raise ValueError("perplexity is at least 1")
    return np.log(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" style="torch float64"
def ppl_from_nats(nats):
    return torch.tensor(nats, dtype=torch.float64).exp()

def ppl_from_bits(bits):
    return torch.tensor(bits, dtype=torch.float64).exp2()

def nats_from_ppl(ppl):
    if not ppl >= 1:
        raise ValueError(f"no model has perplexity {ppl}")
    return torch.tensor(ppl, dtype=torch.float64).log()

ppl_of_report = ppl_from_nats(1.6094)

# %% answer="L3_1_convert" style="guards"
def ppl_from_nats(nats):
    return math.e**nats if nats < 700 else math.inf

def ppl_from_bits(bits):
    return 2.0**bits if bits < 1000 else math.inf

def nats_from_ppl(ppl):
    if ppl < 1:
        raise ValueError("a perplexity below 1 is impossible")
    return math.log2(ppl) * math.log(2)

ppl_of_report = 5.0

# %% answer="L3_1_convert" mutant="two to the nats" message="M6"
def ppl_from_nats(nats):
    return 2**nats

def ppl_from_bits(bits):
    return 2**bits

def nats_from_ppl(ppl):
    if ppl < 1:
        raise ValueError("below 1")
    return math.log2(ppl)

ppl_of_report = ppl_from_nats(1.6094)

# %% answer="L3_1_convert" mutant="two to the nats in the function" message="2 to the power of a loss in nats"
def ppl_from_nats(nats):
    return 2**nats

def ppl_from_bits(bits):
    return 2**bits

def nats_from_ppl(ppl):
    return math.log(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" mutant="e to the bits" message="e to the power of a loss in bits"
def ppl_from_nats(nats):
    return math.exp(min(nats, 700))

def ppl_from_bits(bits):
    return ppl_from_nats(bits)

def nats_from_ppl(ppl):
    return math.log(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" mutant="converted the wrong way" message="one bit is *less* than one nat"
def ppl_from_nats(nats):
    return math.exp(nats)

def ppl_from_bits(bits):
    return ppl_from_nats(bits / math.log(2))

def nats_from_ppl(ppl):
    return math.log(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" mutant="minus" message="e to *minus* the loss"
def ppl_from_nats(nats):
    return math.exp(-nats)

def ppl_from_bits(bits):
    return 2**-bits

def nats_from_ppl(ppl):
    return -math.log(ppl)

ppl_of_report = ppl_from_nats(1.6094)

# %% answer="L3_1_convert" mutant="bits back" message="the loss in bits, from log base 2"
def ppl_from_nats(nats):
    return math.exp(nats)

def ppl_from_bits(bits):
    return 2**bits

def nats_from_ppl(ppl):
    return math.log2(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" mutant="overflow" message="catch the OverflowError"
def ppl_from_nats(nats):
    return math.exp(nats)

def ppl_from_bits(bits):
    return 2.0**bits

def nats_from_ppl(ppl):
    if ppl < 1:
        raise ValueError("below 1")
    return math.log(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" mutant="capped" message="its perplexity fits no float"
def ppl_from_nats(nats):
    return math.exp(min(nats, 700))

def ppl_from_bits(bits):
    return ppl_from_nats(bits * math.log(2))

def nats_from_ppl(ppl):
    if ppl < 1:
        raise ValueError("below 1")
    return math.log(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" mutant="below 1" message="so 0.5 must be a mistake"
def ppl_from_nats(nats):
    return math.exp(nats) if nats < 700 else math.inf

def ppl_from_bits(bits):
    return ppl_from_nats(bits * math.log(2))

def nats_from_ppl(ppl):
    return math.log(ppl)

ppl_of_report = 5

# %% answer="L3_1_convert" mutant="hard-coded" message="ppl_from_nats"
def ppl_from_nats(nats):
    return 2.0138

def ppl_from_bits(bits):
    return 8.0

def nats_from_ppl(ppl):
    return 2.4849

ppl_of_report = 5

# %% answer="L3_1_prediction" style="wrong, but committed"
predicted_factor = 1

# %% answer="L3_1_prediction" mutant="words" message="write a number"
predicted_factor = "more than double"

# %% answer="L3_1_reading" style="typed in"
nats_to_double, reading = 0.693, "C"

# %% answer="L3_1_reading" style="numpy"
import numpy as np

nats_to_double, reading = np.log(2), " c "

# %% answer="L3_1_reading" mutant="one bit" message="One *bit* doubles it"
nats_to_double, reading = 1, "c"

# %% answer="L3_1_reading" mutant="two nats" message="multiply the perplexity by e²"
nats_to_double, reading = 2, "c"

# %% answer="L3_1_reading" mutant="base 10" message="from log base 10"
nats_to_double, reading = math.log10(2), "c"

# %% answer="L3_1_reading" mutant="number of tries" message="counts choices, not tries"
nats_to_double, reading = math.log(2), "a"

# %% answer="L3_1_reading" mutant="bits" message="would be 32 choices"
nats_to_double, reading = math.log(2), "b"

# %% answer="L3_1_reading" mutant="accuracy" message="its top choice is never right"
nats_to_double, reading = math.log(2), "d"

# %% answer="L3_2_gap" style="typed in"
gap_nats, gap_bits = 1.386, 2

# %% answer="L3_2_gap" style="torch"
gap_nats = torch.tensor(40.0).log() - torch.tensor(10.0).log()
gap_bits = torch.tensor(4.0).log2()

# %% answer="L3_2_gap" mutant="difference of perplexities" message="the difference of the perplexities"
gap_nats, gap_bits = 40 - 10, 2

# %% answer="L3_2_gap" mutant="ratio" message="the ratio of the perplexities"
gap_nats, gap_bits = 40 / 10, 2

# %% answer="L3_2_gap" mutant="log10" message="from log base 10"
gap_nats, gap_bits = math.log10(40) - math.log10(10), 2

# %% answer="L3_2_gap" mutant="bits as nats" message="in bits, from log base 2"
gap_nats, gap_bits = 2, 2

# %% answer="L3_2_gap" mutant="sign" message="A *beats* B"
gap_nats, gap_bits = math.log(10) - math.log(40), 2

# %% answer="L3_2_gap" mutant="log of the difference" message="the difference of the logarithms"
gap_nats, gap_bits = math.log(30), 2

# %% answer="L3_2_gap" mutant="nats as bits" message="How many times does ln 2 go into it"
gap_nats = gap_bits = math.log(4)

# %% answer="L3_2_gap" mutant="wrong way to bits" message="A bit is less than a nat"
gap_nats, gap_bits = math.log(4), math.log(4) * math.log(2)

# %% answer="L3_2_prediction" style="wrong, but committed"
predicted_ppl_pairs = 1.5

# %% answer="L3_2_prediction" mutant="words" message="write a number"
predicted_ppl_pairs = "the same"

# %% answer="L3_2_bpb" style="loop"
def bits_per_byte(token_nats, text):
    bits = 0.0
    for nats in token_nats:
        bits += nats / math.log(2)
    n_bytes = 0
    for character in text:
        n_bytes += len(character.encode("utf-8"))
    return bits / n_bytes

# %% answer="L3_2_bpb" style="torch float32"
def bits_per_byte(token_nats, text):
    return torch.tensor(token_nats).sum() / math.log(2) / len(text.encode("utf-8"))

# %% answer="L3_2_bpb" style="numpy"
import numpy as np

def bits_per_byte(token_nats, text):
    return np.sum(np.array(token_nats) / np.log(2)) / len(bytes(text, "utf8"))

# %% answer="L3_2_bpb" style="course_lib"
def bits_per_byte(token_nats, text):
    total = Perplexity()
    total.add(sum(token_nats), tokens=len(token_nats), n_bytes=len(text.encode()))
    return total.bits_per_byte

# %% answer="L3_2_bpb" mutant="characters" message="the number of characters"
def bits_per_byte(token_nats, text):
    return sum(token_nats) / math.log(2) / len(text)

# %% answer="L3_2_bpb" mutant="nats" message="Divide by ln 2 to get bits"
def bits_per_byte(token_nats, text):
    return sum(token_nats) / len(text.encode())

# %% answer="L3_2_bpb" mutant="per token" message="That number is the tokenizer's choice"
def bits_per_byte(token_nats, text):
    return sum(token_nats) / math.log(2) / len(token_nats)

# %% answer="L3_2_bpb" mutant="mean first" message="divided by the bytes as well"
def bits_per_byte(token_nats, text):
    mean = sum(token_nats) / len(token_nats)
    return mean / math.log(2) / len(text.encode())

# %% answer="L3_2_bpb" mutant="times ln 2" message="You multiplied by ln 2"
def bits_per_byte(token_nats, text):
    return sum(token_nats) * math.log(2) / len(text.encode())

# %% answer="L3_2_bpb" mutant="all bits" message="all the bits of the text"
def bits_per_byte(token_nats, text):
    return sum(nats / math.log(2) for nats in token_nats)

# %% answer="L3_2_verdicts" style="small letters"
verdict_1, verdict_2, verdict_3, verdict_4, verdict_5 = "a", "?", "?", "?", "b"

# %% answer="L3_2_verdicts" mutant="higher is better" message="the *lower* number is the better one"
verdict_1, verdict_2, verdict_3, verdict_4, verdict_5 = "B", "?", "?", "?", "A"

# %% answer="L3_2_verdicts" mutant="never sure" message="so the two losses do compare"
verdict_1 = verdict_2 = verdict_3 = verdict_4 = verdict_5 = "?"

# %% answer="L3_2_verdicts" mutant="across tokenizers" message="M7"
verdict_1, verdict_2, verdict_3, verdict_4, verdict_5 = "A", "A", "?", "?", "B"

# %% answer="L3_2_verdicts" mutant="across texts" message="The texts differ"
verdict_1, verdict_2, verdict_3, verdict_4, verdict_5 = "A", "?", "A", "?", "B"

# %% answer="L3_2_verdicts" mutant="across contexts" message="More context makes"
verdict_1, verdict_2, verdict_3, verdict_4, verdict_5 = "A", "?", "?", "A", "B"

# %% answer="L3_2_verdicts" mutant="perplexity of tokens" message="the lower perplexity of a *token*"
verdict_1, verdict_2, verdict_3, verdict_4, verdict_5 = "A", "?", "?", "?", "A"

# %% answer="L3_2_verdicts" mutant="bytes not used" message="Work out bits per byte"
verdict_1, verdict_2, verdict_3, verdict_4, verdict_5 = "A", "?", "?", "?", "?"

# %% answer="L3_3_prediction" style="right as it happens"
predicted_loss, predicted_text, predicted_loss_put_back = 0.15, "C", 6.5

# %% answer="L3_3_prediction" mutant="words" message="write a number"
predicted_loss, predicted_text, predicted_loss_put_back = "low", "c", 3

# %% answer="L3_3_prediction" mutant="no letter" message="write a letter"
predicted_loss, predicted_text, predicted_loss_put_back = 1, "gibberish", 3

# %% answer="L3_3_positions" style="cross_entropy"
def position_losses(logits, labels):
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return losses.mean(0)

# %% answer="L3_3_positions" style="numpy"
import numpy as np

def position_losses(logits, labels):
    z = np.asarray(logits, dtype=np.float64)
    log_probs = z - np.log(np.exp(z).sum(-1, keepdims=True))
    return -np.take_along_axis(log_probs, np.asarray(labels)[:, :, None], -1)[:, :, 0].mean(0)

# %% answer="L3_3_positions" style="loop"
def position_losses(logits, labels):
    B, T, V = logits.shape
    losses = []
    for t in range(T):
        total = 0.0
        for b in range(B):
            row = logits[b, t].tolist()
            total += math.log(sum(math.exp(x) for x in row)) - row[labels[b, t]]
        losses.append(total / B)
    return losses

# %% answer="L3_3_positions" mutant="one number" message="Return one for each of the T positions"
def position_losses(logits, labels):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

# %% answer="L3_3_positions" mutant="per row" message="one loss for each *row*"
def position_losses(logits, labels):
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return losses.mean(1)

# %% answer="L3_3_positions" mutant="sum over rows" message="the loss grows with the batch"
def position_losses(logits, labels):
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return losses.sum(0)

# %% answer="L3_3_positions" mutant="all rows" message="the surprises of all rows"
def position_losses(logits, labels):
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")

# %% answer="L3_3_positions" mutant="bits" message="You used bits"
def position_losses(logits, labels):
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return losses.mean(0) / math.log(2)

# %% answer="L3_3_positions" mutant="mean of probabilities" message="You averaged the probabilities first"
def position_losses(logits, labels):
    p = logits.softmax(-1).gather(-1, labels[:, :, None])[:, :, 0]
    return -p.mean(0).log()

# %% answer="L3_3_positions" mutant="no softmax" message="Normalise them first"
def position_losses(logits, labels):
    return -logits.gather(-1, labels[:, :, None])[:, :, 0].mean(0)

# %% answer="L3_3_mask" style="comparison"
def causal_mask(T):
    position = torch.arange(T)
    return position[None, :] <= position[:, None]

# %% answer="L3_3_mask" style="loop"
def causal_mask(T):
    mask = torch.zeros(T, T, dtype=torch.bool)
    for row in range(T):
        mask[row, : row + 1] = True
    return mask

# %% answer="L3_3_mask" style="numpy"
import numpy as np

def causal_mask(T):
    return np.tri(T, dtype=bool)

# %% answer="L3_3_mask" mutant="blocks the diagonal" message="a softmax over nothing is NaN"
def causal_mask(T):
    return torch.ones(T, T, dtype=torch.bool).tril(-1)

# %% answer="L3_3_mask" mutant="transposed" message="It is transposed"
def causal_mask(T):
    return torch.ones(T, T, dtype=torch.bool).triu()

# %% answer="L3_3_mask" mutant="one off" message="may read position t + 1"
def causal_mask(T):
    return torch.ones(T, T, dtype=torch.bool).tril(1)

# %% answer="L3_3_mask" mutant="inverted" message="It is inverted"
def causal_mask(T):
    return torch.ones(T, T, dtype=torch.bool).triu(1)

# %% answer="L3_3_mask" mutant="no mask" message="Everything may read everything"
def causal_mask(T):
    return torch.ones(T, T, dtype=torch.bool)

# %% answer="L3_3_mask" mutant="numbers" message="Return True and False (dtype=torch.bool)"
def causal_mask(T):
    return torch.tril(torch.ones(T, T))

# %% answer="L3_3_mask" mutant="additive" message="an additive mask of numbers"
def causal_mask(T):
    return torch.full((T, T), -math.inf).triu(1)

# %% answer="L3_3_mask" mutant="batch dimension" message="one dimension too many"
def causal_mask(T):
    return torch.ones(1, T, T, dtype=torch.bool).tril()

# %% answer="L3_3_mask" mutant="one size" message="causal_mask(1)"
def causal_mask(T):
    return torch.ones(4, 4, dtype=torch.bool).tril()

# %% answer="L3_3_report" style="typed in"
mean_with_mask, mean_no_mask, last_over_others, ppl_put_back = 2.28, 0.15, 93, 680

# %% answer="L3_3_report" style="plain Python"
def mean(values):
    return sum(values) / len(values)

with_mask, no_mask, put_back = (curves[name].tolist() for name in curves)
mean_with_mask, mean_no_mask = mean(with_mask), mean(no_mask)
last_over_others = no_mask[-1] / mean(no_mask[:-1])
ppl_put_back = math.exp(mean(put_back))

# %% answer="L3_3_report" style="numpy"
import numpy as np

mean_with_mask = np.mean(curves["with mask"].numpy())
mean_no_mask = np.mean(curves["no mask"].numpy())
last_over_others = curves["no mask"][-1].numpy() / np.mean(curves["no mask"][:-1].numpy())
ppl_put_back = np.exp(np.mean(curves["mask put back"].numpy()))

# %% answer="L3_3_report" mutant="swapped" message="too low for a model that sees the past only"
mean_with_mask, mean_no_mask = curves["no mask"].mean(), curves["with mask"].mean()
last_over_others, ppl_put_back = 93, 680

# %% answer="L3_3_report" mutant="curve with the mask" message="a model that sees its answers does far better"
mean_with_mask = mean_no_mask = curves["with mask"].mean()
last_over_others, ppl_put_back = 93, 680

# %% answer="L3_3_report" mutant="share" message="do not take the share"
mean_with_mask, mean_no_mask = curves["with mask"].mean(), curves["no mask"].mean()
last_over_others = curves["no mask"][-1] / curves["no mask"].sum()
ppl_put_back = 680

# %% answer="L3_3_report" mutant="wrong curve" message="the last position stands out far more"
mean_with_mask, mean_no_mask = curves["with mask"].mean(), curves["no mask"].mean()
last_over_others = curves["with mask"][-1] / curves["with mask"][:-1].mean() + 0.2
ppl_put_back = 680

# %% answer="L3_3_report" mutant="loss" message="that looks like a loss in nats"
mean_with_mask, mean_no_mask = curves["with mask"].mean(), curves["no mask"].mean()
last_over_others = curves["no mask"][-1] / curves["no mask"][:-1].mean()
ppl_put_back = curves["mask put back"].mean()

# %% answer="L3_3_report" mutant="the vocabulary" message="M21"
mean_with_mask, mean_no_mask = curves["with mask"].mean(), curves["no mask"].mean()
last_over_others = curves["no mask"][-1] / curves["no mask"][:-1].mean()
ppl_put_back = vocab_size

# %% answer="L3_3_report" mutant="whole curve" message="is one number"
mean_with_mask, mean_no_mask = curves["with mask"], curves["no mask"]
last_over_others, ppl_put_back = 93, 680

# %% answer="L3_3_residue" style="capital"
residue = "D"

# %% answer="L3_3_residue" mutant="harder character" message="the last character is like any other"
residue = "a"

# %% answer="L3_3_residue" mutant="fewer gradients" message="Every position has the same weight"
residue = "b"

# %% answer="L3_3_residue" mutant="longest softmax" message="What does the last one miss"
residue = "c"

# %% answer="L3_3_weights" style="where"
def attention_weights(scores, mask):
    return torch.softmax(torch.where(mask, scores, float("-inf")), dim=1)

# %% answer="L3_3_weights" style="loop"
def attention_weights(scores, mask):
    weights = torch.zeros_like(scores)
    for i in range(len(scores)):
        allowed = mask[i].nonzero()[:, 0]
        weights[i, allowed] = torch.softmax(scores[i, allowed], dim=0)
    return weights

# %% answer="L3_3_weights" style="numpy"
import numpy as np

def attention_weights(scores, mask):
    z = np.where(np.asarray(mask), np.asarray(scores, dtype=np.float64), -np.inf)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

# %% answer="L3_3_weights" style="additive, -inf"
def attention_weights(scores, mask):
    bias = torch.zeros_like(scores).masked_fill(mask.logical_not(), -torch.inf)
    return (scores + bias).softmax(1)

# %% answer="L3_3_weights" mutant="mask after softmax" message="You masked after the softmax"
def attention_weights(scores, mask):
    return scores.softmax(-1) * mask

# %% answer="L3_3_weights" mutant="no mask" message="The mask changed nothing"
def attention_weights(scores, mask):
    return scores.softmax(-1)

# %% answer="L3_3_weights" mutant="zero scores" message="they are still read"
def attention_weights(scores, mask):
    return (scores * mask).softmax(-1)

# %% answer="L3_3_weights" mutant="columns" message="down the columns"
def attention_weights(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(0)

# %% answer="L3_3_weights" mutant="inverted" message="The mask is inverted"
def attention_weights(scores, mask):
    return scores.masked_fill(mask, -math.inf).softmax(-1)

# %% answer="L3_3_weights" mutant="transposed" message="The mask is transposed"
def attention_weights(scores, mask):
    return scores.masked_fill(~mask.T, -math.inf).softmax(-1)

# %% answer="L3_3_weights" mutant="minus ten thousand" message="outvoted your mask"
def attention_weights(scores, mask):
    return (scores - 1e4 * (~mask)).softmax(-1)

# %% answer="L3_3_weights" mutant="renormalised" message="There is a NaN"
def attention_weights(scores, mask):
    weights = scores.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)

# %% answer="L3_3_weights" mutant="no softmax" message="Take their softmax"
def attention_weights(scores, mask):
    return scores.masked_fill(~mask, -math.inf)

# %% answer="L3_3_leak" style="truncate"
def leak_test(model, ids, vocab_size):
    whole = model(ids)
    for n in range(1, ids.shape[1]):
        part = model(ids[:, :n])
        if (part - whole[:, :n]).abs().max() > 1e-4:
            return True
    return False

# %% answer="L3_3_leak" style="change the whole future"
def leak_test(model, ids, vocab_size):
    generator = torch.Generator().manual_seed(0)
    leak = False
    for t in range(ids.shape[1] - 1):
        other = torch.randint(1, vocab_size, ids.shape, generator=generator)
        changed = torch.where(torch.arange(ids.shape[1]) > t, (ids + other) % vocab_size, ids)
        difference = (model(changed) - model(ids))[:, : t + 1].abs()
        leak = leak or bool(difference.max() > 1e-4)
    return leak

# %% answer="L3_3_leak" style="numpy, one row"
import numpy as np

def leak_test(model, ids, vocab_size):
    row = ids[:1]
    before = model(row).detach().numpy()
    for t in range(row.shape[1]):
        changed = row.clone()
        changed[0, t] = vocab_size - 1 - changed[0, t] if 2 * changed[0, t] != vocab_size - 1 else 0
        after = model(changed).detach().numpy()
        if not np.allclose(after[0, :t], before[0, :t], atol=1e-4):
            return np.True_
    return np.False_

# %% answer="L3_3_leak" mutant="compares after the change" message="that reads only the past"
def leak_test(model, ids, vocab_size):
    changed = ids.clone()
    changed[:, 0] = (changed[:, 0] + 1) % vocab_size
    return not torch.allclose(model(changed), model(ids), atol=1e-4)

# %% answer="L3_3_leak" mutant="includes the changed position" message="The logits *at* a changed token"
def leak_test(model, ids, vocab_size):
    for t in range(ids.shape[1]):
        changed = ids.clone()
        changed[:, t] = (changed[:, t] + 1) % vocab_size
        if not torch.allclose(model(changed)[:, : t + 1], model(ids)[:, : t + 1], atol=1e-4):
            return True
    return False

# %% answer="L3_3_leak" mutant="changes the past" message="that reads only the past"
def leak_test(model, ids, vocab_size):
    changed = ids.clone()
    changed[:, 0] = (changed[:, 0] + 1) % vocab_size
    return not torch.allclose(model(changed)[:, 1:], model(ids)[:, 1:], atol=1e-4)

# %% answer="L3_3_leak" mutant="in place" message="Work on a copy"
def leak_test(model, ids, vocab_size):
    before = model(ids)
    for t in range(1, ids.shape[1]):
        ids[:, t] = (ids[:, t] + 1) % vocab_size
        if not torch.allclose(model(ids)[:, :t], before[:, :t], atol=1e-4):
            return True
    return False

# %% answer="L3_3_leak" mutant="exact equality" message="over the last digits"
def leak_test(model, ids, vocab_size):
    before = model(ids)
    for t in range(1, ids.shape[1]):
        changed = ids.clone()
        changed[:, t] = (changed[:, t] + 1) % vocab_size
        if not torch.equal(model(changed)[:, :t], before[:, :t]):
            return True
    return False

# %% answer="L3_3_leak" mutant="two steps back" message="one off"
def leak_test(model, ids, vocab_size):
    before = model(ids)
    for t in range(1, ids.shape[1]):
        changed = ids.clone()
        changed[:, t] = (changed[:, t] + 1) % vocab_size
        if not torch.allclose(model(changed)[:, : t - 1], before[:, : t - 1], atol=1e-4):
            return True
    return False

# %% answer="L3_3_leak" mutant="last token only" message="the first half of the row"
def leak_test(model, ids, vocab_size):
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % vocab_size
    return not torch.allclose(model(changed)[:, :-1], model(ids)[:, :-1], atol=1e-4)

# %% answer="L3_3_leak" mutant="likeliest token" message="a hundredth of the next token"
def leak_test(model, ids, vocab_size):
    before = model(ids).argmax(-1)
    for t in range(1, ids.shape[1]):
        for step in range(1, vocab_size):
            changed = ids.clone()
            changed[:, t] = (changed[:, t] + step) % vocab_size
            if (model(changed).argmax(-1)[:, :t] != before[:, :t]).any():
                return True
    return False

# %% answer="L3_3_leak" mutant="always" message="that reads only the past"
def leak_test(model, ids, vocab_size):
    return True

# %% answer="L3_3_leak" mutant="never" message="reads the whole row at every position"
def leak_test(model, ids, vocab_size):
    return False

# %% answer="L3_3_leak" mutant="low loss" message="reads the whole row at every position"
def leak_test(model, ids, vocab_size):
    logits = model(ids)[:, :-1].flatten(0, 1)
    return bool(torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten()) < 0.5)
