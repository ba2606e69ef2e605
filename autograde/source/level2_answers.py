# %% [markdown]
# Answers to Level 2 as students write them. Those with a `style` are right and must get full points;
# each `mutant` is wrong in a way that has a name and must be told the `message`.

# %% answer="L2_1_numbers" style="typed in"
loss_cat_sat = 1.04
ppl_cat_sat = 2.83

# %% answer="L2_1_numbers" style="numpy"
import numpy as np

loss_cat_sat = -np.log([0.5, 0.25]).mean()
ppl_cat_sat = np.exp(loss_cat_sat)

# %% answer="L2_1_numbers" style="torch"
probs = torch.tensor([0.5, 0.25])
loss_cat_sat = -probs.log().mean()
ppl_cat_sat = loss_cat_sat.exp()

# %% answer="L2_1_numbers" mutant="sum" message="the sum of the two surprises"
loss_cat_sat = -math.log(0.5) - math.log(0.25)
ppl_cat_sat = math.exp(loss_cat_sat)

# %% answer="L2_1_numbers" mutant="three tokens" message="divided by three tokens"
loss_cat_sat = 0.693
ppl_cat_sat = 2.0

# %% answer="L2_1_numbers" mutant="bits" message="in bits, from log base 2"
loss_cat_sat = 1.5
ppl_cat_sat = 2.83

# %% answer="L2_1_numbers" mutant="negative" message="a surprise is minus the logarithm"
loss_cat_sat = (math.log(0.5) + math.log(0.25)) / 2
ppl_cat_sat = math.exp(loss_cat_sat)

# %% answer="L2_1_numbers" mutant="two to the nats" message="2 to the power of a loss in nats"
loss_cat_sat = 1.0397
ppl_cat_sat = 2**loss_cat_sat

# %% answer="L2_1_numbers" mutant="mean of 1/p" message="an average of perplexities"
loss_cat_sat = 1.0397
ppl_cat_sat = (1 / 0.5 + 1 / 0.25) / 2

# %% answer="L2_1_numbers" mutant="one over mean p" message="one over the average probability"
loss_cat_sat = 1.0397
ppl_cat_sat = 1 / ((0.5 + 0.25) / 2)

# %% answer="L2_1_clm" style="loop"
def clm_loss(token_probs, bos=False):
    start = 0 if bos else 1
    total = 0.0
    count = 0
    for t in range(start, len(token_probs)):
        total += math.log(1 / token_probs[t])
        count += 1
    if count == 0:
        raise ValueError("nothing to score")
    return total / count

# %% answer="L2_1_clm" style="numpy"
import numpy as np

def clm_loss(token_probs, bos=False):
    p = np.asarray(token_probs, dtype=np.float64)[0 if bos else 1 :]
    if p.size == 0:
        raise ValueError("no scored token")
    return np.mean(-np.log(p))

# %% answer="L2_1_clm" style="torch float32"
def clm_loss(token_probs, bos=False):
    p = torch.tensor(token_probs)
    if not bos:
        p = p[1:]
    if p.numel() == 0:
        raise ValueError("no scored token")
    return -p.log().mean()

# %% answer="L2_1_clm" mutant="sum" message="added the surprises up"
def clm_loss(token_probs, bos=False):
    return -sum(math.log(p) for p in token_probs[0 if bos else 1 :])

# %% answer="L2_1_clm" mutant="scores the first token" message="Without BOS nothing stands before it"
def clm_loss(token_probs, bos=False):
    return -sum(math.log(p) for p in token_probs) / len(token_probs)

# %% answer="L2_1_clm" mutant="divides by T" message="Divide by the number of scored ones"
def clm_loss(token_probs, bos=False):
    return -sum(math.log(p) for p in token_probs[0 if bos else 1 :]) / len(token_probs)

# %% answer="L2_1_clm" mutant="bits" message="used bits (log base 2)"
def clm_loss(token_probs, bos=False):
    scored = token_probs[0 if bos else 1 :]
    return -sum(math.log2(p) for p in scored) / len(scored)

# %% answer="L2_1_clm" mutant="log of the mean" message="Take the logarithm of each, then average"
def clm_loss(token_probs, bos=False):
    scored = token_probs[0 if bos else 1 :]
    return -math.log(sum(scored) / len(scored))

# %% answer="L2_1_clm" mutant="no minus" message="The sign is wrong"
def clm_loss(token_probs, bos=False):
    scored = token_probs[0 if bos else 1 :]
    return sum(math.log(p) for p in scored) / len(scored)

# %% answer="L2_1_clm" mutant="ignores bos" message="the first token is scored too"
def clm_loss(token_probs, bos=False):
    if len(token_probs) < 2:
        raise ValueError("nothing to score")
    return -sum(math.log(p) for p in token_probs[1:]) / (len(token_probs) - 1)

# %% answer="L2_1_clm" mutant="no error" message="leaves nothing to score: raise a ValueError"
def clm_loss(token_probs, bos=False):
    scored = token_probs[0 if bos else 1 :]
    return -sum(math.log(p) for p in scored) / max(len(scored), 1)

# %% answer="L2_1_clm" mutant="hard-coded" message="clm_loss on other sentences"
def clm_loss(token_probs, bos=False):
    return 1.0397

# %% answer="L2_2_number" style="typed in"
loss_one_mask = 1.609

# %% answer="L2_2_number" style="torch"
loss_one_mask = torch.tensor([0.2]).log().neg().mean()

# %% answer="L2_2_number" mutant="bits" message="in bits, from log base 2"
loss_one_mask = -math.log2(0.2)

# %% answer="L2_2_number" mutant="perplexity" message="That is the perplexity, 1/0.2"
loss_one_mask = 5

# %% answer="L2_2_number" mutant="probability of being wrong" message="the probability of being wrong"
loss_one_mask = 1 - 0.2

# %% answer="L2_2_number" mutant="text" message="expected a number, got text"
loss_one_mask = "1.61"

# %% answer="L2_2_mlm" style="loop"
def mlm_loss(token_probs, chosen):
    total, count = 0, 0
    for i in range(len(chosen)):
        if chosen[i]:
            total -= math.log(token_probs[i])
            count += 1
    return total / count

# %% answer="L2_2_mlm" style="numpy"
import numpy as np

def mlm_loss(token_probs, chosen):
    return float(-np.log(np.array(token_probs)[np.array(chosen)]).mean())

# %% answer="L2_2_mlm" style="torch"
def mlm_loss(token_probs, chosen):
    return -torch.tensor(token_probs, dtype=torch.float64)[torch.tensor(chosen)].log().mean()

# %% answer="L2_2_mlm" mutant="all positions" message="averaged over all positions"
def mlm_loss(token_probs, chosen):
    return -sum(math.log(p) for p in token_probs) / len(token_probs)

# %% answer="L2_2_mlm" mutant="divides by the length" message="divided by the length of the sentence"
def mlm_loss(token_probs, chosen):
    return -sum(math.log(p) for p, c in zip(token_probs, chosen) if c) / len(token_probs)

# %% answer="L2_2_mlm" mutant="visible tokens" message="scored the visible tokens"
def mlm_loss(token_probs, chosen):
    seen = [-math.log(p) for p, c in zip(token_probs, chosen) if not c]
    return sum(seen) / len(seen)

# %% answer="L2_2_mlm" mutant="sum" message="added the surprises up"
def mlm_loss(token_probs, chosen):
    return -sum(math.log(p) for p, c in zip(token_probs, chosen) if c)

# %% answer="L2_2_mlm" mutant="bits" message="used bits (log base 2)"
def mlm_loss(token_probs, chosen):
    hidden = [-math.log2(p) for p, c in zip(token_probs, chosen) if c]
    return sum(hidden) / len(hidden)

# %% answer="L2_3_numbers" style="typed in"
loss_uniform, ppl_uniform = 10.82, 50000

# %% answer="L2_3_numbers" mutant="bits" message="in bits, from log base 2"
loss_uniform, ppl_uniform = math.log2(50_000), 50_000

# %% answer="L2_3_numbers" mutant="swapped" message="That is the perplexity. The loss is its logarithm"
ppl_uniform, loss_uniform = math.log(50_000), 50_000

# %% answer="L2_3_numbers" mutant="one token's probability" message="the probability of one token"
loss_uniform, ppl_uniform = math.log(50_000), 1 / 50_000

# %% answer="L2_3_numbers" mutant="two to the nats" message="2 to the power of a loss in nats"
loss_uniform, ppl_uniform = math.log(50_000), 2 ** math.log(50_000)

# %% answer="L2_3_ppl" style="cross_entropy"
def perplexity_from_logits(logits, targets):
    return torch.nn.functional.cross_entropy(logits, targets).exp().item()

# %% answer="L2_3_ppl" style="loop"
def perplexity_from_logits(logits, targets):
    total = 0.0
    for row, target in zip(logits.tolist(), targets.tolist()):
        top = max(row)
        total += top + math.log(sum(math.exp(x - top) for x in row)) - row[target]
    return math.exp(total / len(targets))

# %% answer="L2_3_ppl" style="numpy"
import numpy as np

def perplexity_from_logits(logits, targets):
    z = np.asarray(logits, dtype=np.float64)
    z = z - z.max(axis=1, keepdims=True)
    nll = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), np.asarray(targets)]
    return np.exp(nll.mean())

# %% answer="L2_3_ppl" mutant="mean of perplexities" message="averaged the perplexities"
def perplexity_from_logits(logits, targets):
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    return losses.exp().mean().item()

# %% answer="L2_3_ppl" mutant="exponentiated sum" message="exponentiated the sum"
def perplexity_from_logits(logits, targets):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum").exp().item()

# %% answer="L2_3_ppl" mutant="loss" message="You returned the loss"
def perplexity_from_logits(logits, targets):
    return torch.nn.functional.cross_entropy(logits, targets).item()

# %% answer="L2_3_ppl" mutant="two to the nats" message="raised 2 to a loss in nats"
def perplexity_from_logits(logits, targets):
    return 2 ** torch.nn.functional.cross_entropy(logits, targets).item()

# %% answer="L2_3_ppl" mutant="vocabulary size" message="the size of the vocabulary"
def perplexity_from_logits(logits, targets):
    return logits.shape[-1]

# %% answer="L2_3_ppl" mutant="log of softmax" message="You took the softmax first"
def perplexity_from_logits(logits, targets):
    p = torch.softmax(logits, dim=-1)[torch.arange(len(targets)), targets]
    return torch.exp(-torch.log(p).mean()).item()

# %% answer="L2_3_ppl" mutant="unshifted exponentials" message="exponentiated large logits directly"
def perplexity_from_logits(logits, targets):
    nll = logits.exp().sum(-1).log() - logits[torch.arange(len(targets)), targets]
    return nll.mean().exp().item()

# %% answer="L2_3_ppl" mutant="unnormalised" message="Normalise them first"
def perplexity_from_logits(logits, targets):
    return (-logits[torch.arange(len(targets)), targets]).mean().exp().item()

# %% answer="L2_3_prediction" style="wrong, but committed"
predicted_ppl = 3

# %% answer="L2_3_prediction" mutant="words" message="write a number"
predicted_ppl = "a big number"

# %% answer="L2_3_worse" style="tensor"
def worse_than_uniform(vocab_size):
    logits = torch.zeros(vocab_size)
    logits[-1] = 60.0
    return logits, torch.tensor(0)

# %% answer="L2_3_worse" style="numpy"
import numpy as np

def worse_than_uniform(vocab_size):
    return -10.0 * np.arange(vocab_size), vocab_size - 1

# %% answer="L2_3_worse" mutant="uniform" message="Equal logits give exactly V"
def worse_than_uniform(vocab_size):
    return [0.0] * vocab_size, 0

# %% answer="L2_3_worse" mutant="sure of the true token" message="prefers the true token"
def worse_than_uniform(vocab_size):
    return [10.0] + [0.0] * (vocab_size - 1), 0

# %% answer="L2_3_worse" mutant="hardly sure" message="not yet twice V"
def worse_than_uniform(vocab_size):
    return [0.1] + [0.0] * (vocab_size - 1), 1

# %% answer="L2_3_worse" mutant="no target" message="Return two things"
def worse_than_uniform(vocab_size):
    return [0.0] * (vocab_size - 1) + [100.0]

# %% answer="L2_3_reading" style="capital"
reading = "B"

# %% answer="L2_3_reading" mutant="count of tries" message="no count of tries"
reading = "a"

# %% answer="L2_3_reading" mutant="accuracy" message="Accuracy asks whether the top token was right"
reading = "c"

# %% answer="L2_3_reading" mutant="upper bound" message="a confidently wrong model"
reading = "d"
