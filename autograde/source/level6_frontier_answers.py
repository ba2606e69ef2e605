# %% [markdown]
# Answers to the frontier as students write them. Those with a `style` are right and must get full points;
# each `mutant` is wrong in a way that has a name and must be told the `message`.

# %% answer="L6_1_prediction" style="a guess"
predicted_millions = 1.5

# %% answer="L6_1_prediction" mutant="words" message="write one number"
predicted_millions = "many"

# %% answer="L6_1_length" style="from above"
def raw_length(budget):
    for raw in range(2 * budget, 0, -1):
        noise = round(0.15 * raw)
        spans = round(noise / 3)
        if raw - noise + spans + 1 <= budget:
            return raw, noise + spans + 1

# %% answer="L6_1_length" style="tensor, list"
def raw_length(budget):
    raw = torch.arange(budget, 2 * budget)
    noise = torch.tensor([round(L * 0.15) for L in raw.tolist()])
    spans = torch.tensor([round(n / 3) for n in noise.tolist()])
    last = int((raw - noise + spans + 1 <= budget).nonzero().max())
    return [int(raw[last]), int((noise + spans + 1)[last])]

# %% answer="L6_1_length" mutant="no sentinels" message="You left the sentinels out"
def raw_length(budget):
    raw = budget
    while raw + 1 - round((raw + 1) * 0.15) + 1 <= budget:
        raw += 1
    return raw, round(raw * 0.15) + 1

# %% answer="L6_1_length" mutant="no EOS" message="You left the EOS out"
def raw_length(budget):
    def lengths(raw):
        noise = round(raw * 0.15)
        return raw - noise + round(noise / 3), noise + round(noise / 3)
    raw = budget
    while lengths(raw + 1)[0] <= budget:
        raw += 1
    return raw, lengths(raw)[1]

# %% answer="L6_1_length" mutant="budget is the text" message="The raw text may be longer"
def raw_length(budget):
    noise = round(budget * 0.15)
    return budget, noise + round(noise / 3) + 1

# %% answer="L6_1_length" mutant="one too long" message="too long by one"
def raw_length(budget):
    def lengths(raw):
        noise = round(raw * 0.15)
        return raw - noise + round(noise / 3) + 1, noise + round(noise / 3) + 1
    raw = budget
    while lengths(raw)[0] <= budget:
        raw += 1
    return raw, lengths(raw)[1]

# %% answer="L6_1_length" mutant="input length" message="The second number is the length of the target"
def raw_length(budget):
    def length(raw):
        noise = round(raw * 0.15)
        return raw - noise + round(noise / 3) + 1
    raw = max(L for L in range(budget, 2 * budget) if length(L) <= budget)
    return raw, length(raw)

# %% answer="L6_2_prediction" style="a third"
predicted_empty = 1 / 3

# %% answer="L6_2_prediction" mutant="percent" message="from 0 to 1"
predicted_empty = 30

# %% answer="L6_2_infill" style="from the end"
def infill(ids, spans, mask_id):
    corrupted = list(ids)
    for start, length in reversed(spans):
        corrupted[start:start + length] = [mask_id]
    return corrupted

# %% answer="L6_2_infill" style="token by token"
def infill(ids, spans, mask_id):
    begins = {start: length for start, length in spans}
    corrupted, t = [], 0
    while t <= len(ids):
        if t in begins:
            corrupted.append(mask_id)
            if begins[t]:
                t += begins[t]
                continue
        if t < len(ids):
            corrupted.append(ids[t])
        t += 1
    return corrupted

# %% answer="L6_2_infill" style="numpy"
import numpy as np

def infill(ids, spans, mask_id):
    ids = np.array(ids)
    pieces, done = [], 0
    for start, length in spans:
        pieces += [ids[done:start], [mask_id]]
        done = start + length
    return np.concatenate([*pieces, ids[done:]]).astype(int)

# %% answer="L6_2_infill" mutant="empty spans dropped" message="A span of length 0 inserts a mask too"
def infill(ids, spans, mask_id):
    corrupted = list(ids)
    for start, length in reversed(spans):
        if length:
            corrupted[start:start + length] = [mask_id]
    return corrupted

# %% answer="L6_2_infill" mutant="a mask a token" message="One mask for each token, as BERT has it"
def infill(ids, spans, mask_id):
    corrupted = list(ids)
    for start, length in spans:
        for t in range(start, start + length):
            corrupted[t] = mask_id
    return corrupted

# %% answer="L6_2_infill" mutant="sentinels" message="You numbered the masks"
def infill(ids, spans, mask_id):
    corrupted = list(ids)
    for number, (start, length) in reversed(list(enumerate(spans))):
        corrupted[start:start + length] = [mask_id + number]
    return corrupted

# %% answer="L6_2_infill" mutant="without masks" message="The spans are gone without a mask"
def infill(ids, spans, mask_id):
    gone = {t for start, length in spans for t in range(start, start + length)}
    return [id for t, id in enumerate(ids) if t not in gone]

# %% answer="L6_2_infill" mutant="places moved" message="counts in the original"
def infill(ids, spans, mask_id):
    corrupted = list(ids)
    for start, length in spans:
        corrupted[start:start + length] = [mask_id]
    return corrupted

# %% answer="L6_2_infill" mutant="in place" message="infill changed the lists"
def infill(ids, spans, mask_id):
    for start, length in reversed(spans):
        ids[start:start + length] = [mask_id]
    return ids

# %% answer="L6_3_nelbo" style="loop"
def diffusion_estimate(nll, hidden, t):
    total = 0
    for row, mask, rate in zip(nll.tolist(), hidden.tolist(), t.tolist()):
        total += sum(nats for nats, is_hidden in zip(row, mask) if is_hidden) / rate / len(row)
    return total / len(nll)

# %% answer="L6_3_nelbo" style="masked fill"
def diffusion_estimate(nll, hidden, t):
    return (nll.masked_fill(~hidden, 0) / t.unsqueeze(1)).mean()

# %% answer="L6_3_nelbo" style="numpy"
import numpy as np

def diffusion_estimate(nll, hidden, t):
    return np.mean(np.where(hidden.numpy(), nll.numpy(), 0) / t.numpy()[:, None])

# %% answer="L6_3_nelbo" mutant="over the number hidden" message="You divided by the number that was hidden"
def diffusion_estimate(nll, hidden, t):
    return ((nll * hidden).sum(1) / hidden.sum(1).clamp(min=1)).mean().item()

# %% answer="L6_3_nelbo" mutant="pooled" message="Each text has a rate of its own"
def diffusion_estimate(nll, hidden, t):
    return nll[hidden].mean().item()

# %% answer="L6_3_nelbo" mutant="no weight" message="The 1/t is missing"
def diffusion_estimate(nll, hidden, t):
    return (nll * hidden).mean().item()

# %% answer="L6_3_nelbo" mutant="mean rate" message="You divided by the mean rate"
def diffusion_estimate(nll, hidden, t):
    return ((nll * hidden).mean() / t.mean()).item()

# %% answer="L6_3_nelbo" mutant="per text" message="The loss is per letter"
def diffusion_estimate(nll, hidden, t):
    return ((nll * hidden).sum(1) / t).mean().item()

# %% answer="L6_3_nelbo" mutant="empty texts dropped" message="it counts with 0"
def diffusion_estimate(nll, hidden, t):
    keep = hidden.any(1)
    return ((nll * hidden)[keep].mean(1) / t[keep]).mean().item()

# %% answer="L6_3_nelbo" mutant="all letters" message="You scored the visible letters too"
def diffusion_estimate(nll, hidden, t):
    return (nll.mean(1) / t).mean().item()

# %% answer="L6_3_prediction" style="all alike"
predicted_costs = [2, 2, 2, 2]

# %% answer="L6_3_prediction" mutant="one" message="write four numbers"
predicted_costs = 2

# %% answer="L6_4_accumulated" style="chained"
from itertools import chain

def accumulated(micro_batches):
    nats = list(chain(*micro_batches))
    return sum(nats) / len(nats) if nats else 0

# %% answer="L6_4_accumulated" style="weighted means"
def accumulated(micro_batches):
    n = sum(map(len, micro_batches))
    return sum(sum(b) / len(b) * len(b) / n for b in micro_batches if b)

# %% answer="L6_4_accumulated" style="torch"
def accumulated(micro_batches):
    nats = torch.cat([torch.tensor(b, dtype=torch.float64) for b in micro_batches])
    return nats.sum() / max(len(nats), 1)

# %% answer="L6_4_accumulated" mutant="mean of means" message="You averaged the means. A token"
def accumulated(micro_batches):
    means = [sum(b) / len(b) for b in micro_batches if b]
    return sum(means) / max(len(means), 1)

# %% answer="L6_4_accumulated" mutant="empty ones counted" message="counted the empty micro-batch"
def accumulated(micro_batches):
    return sum(sum(b) / max(len(b), 1) for b in micro_batches) / len(micro_batches)

# %% answer="L6_4_accumulated" mutant="not a number" message="you divide 0 by 0"
import numpy as np

def accumulated(micro_batches):
    return float(np.mean([torch.tensor(b).mean() for b in micro_batches]))

# %% answer="L6_4_accumulated" mutant="nothing at all" message="you divide 0 by 0"
def accumulated(micro_batches):
    return sum(map(sum, micro_batches)) / sum(map(len, micro_batches))

# %% answer="L6_4_accumulated" mutant="mean of perplexities" message="You averaged the perplexities"
def accumulated(micro_batches):
    ppls = [math.exp(sum(b) / len(b)) for b in micro_batches if b]
    return math.log(sum(ppls) / len(ppls)) if ppls else 0

# %% answer="L6_4_accumulated" mutant="sum" message="That is the sum"
def accumulated(micro_batches):
    return sum(map(sum, micro_batches))

# %% answer="L6_4_padded" style="index"
def loss_without_padding(nll, real):
    return nll[real].mean()

# %% answer="L6_4_padded" style="loop"
def loss_without_padding(nll, real):
    kept = [n for row, mask in zip(nll.tolist(), real.tolist()) for n, m in zip(row, mask) if m]
    return sum(kept) / len(kept)

# %% answer="L6_4_padded" style="numpy"
import numpy as np

def loss_without_padding(nll, real):
    return np.average(nll.numpy(), weights=real.numpy())

# %% answer="L6_4_padded" mutant="average, then weights" message="You averaged first and multiplied"
def loss_without_padding(nll, real):
    return (nll.mean() * real).mean()

# %% answer="L6_4_padded" mutant="weights cancel" message="You averaged first and weighted the average"
def loss_without_padding(nll, real):
    return (nll.mean() * real).sum() / real.sum()

# %% answer="L6_4_padded" mutant="texts averaged first" message="Each text was averaged, padding included"
def loss_without_padding(nll, real):
    return (nll.mean(1, keepdim=True) * real).sum() / real.sum()

# %% answer="L6_4_padded" mutant="all positions" message="You divided by all positions"
def loss_without_padding(nll, real):
    return (nll * real).mean()

# %% answer="L6_4_padded" mutant="mean of texts" message="You averaged each text, then the texts"
def loss_without_padding(nll, real):
    return ((nll * real).sum(1) / real.sum(1)).mean()

# %% answer="L6_4_labels" style="loop"
def labels_of(ids, eos_id):
    labels, ended = [], False
    for id in ids:
        labels.append(-100 if ended else id)
        ended = ended or id == eos_id
    return labels

# %% answer="L6_4_labels" style="torch"
def labels_of(ids, eos_id):
    ids = torch.tensor(ids)
    is_eos = ids == eos_id
    return ids.masked_fill(is_eos.cumsum(0) - is_eos.long() > 0, -100)

# %% answer="L6_4_labels" style="from the right"
def labels_of(ids, eos_id):
    labels = list(ids)
    t = len(ids) - 1
    while t > 0 and ids[t] == eos_id and ids[t - 1] == eos_id:
        labels[t] = -100
        t -= 1
    return labels

# %% answer="L6_4_labels" mutant="every EOS ignored" message="never asked when to stop"
def labels_of(ids, eos_id):
    return [-100 if id == eos_id else id for id in ids]

# %% answer="L6_4_labels" mutant="padding scored" message="Padding is scored"
def labels_of(ids, eos_id):
    return list(ids)

# %% answer="L6_4_labels" mutant="minus one" message="Padding is marked with -1"
def labels_of(ids, eos_id):
    end = ids.index(eos_id) + 1 if eos_id in ids else len(ids)
    return ids[:end] + [-1] * (len(ids) - end)

# %% answer="L6_4_labels" mutant="shifted" message="You shifted the labels"
def labels_of(ids, eos_id):
    end = ids.index(eos_id) + 1 if eos_id in ids else len(ids)
    return ids[1:end] + [-100] * (len(ids) - end + 1)

# %% answer="L6_4_labels" mutant="cut off" message="You cut the padding off"
def labels_of(ids, eos_id):
    return ids[: ids.index(eos_id) + 1] if eos_id in ids else list(ids)

# %% answer="L6_4_labels" mutant="in place" message="labels_of changed the ids"
def labels_of(ids, eos_id):
    if eos_id in ids:
        for t in range(ids.index(eos_id) + 1, len(ids)):
            ids[t] = -100
    return ids

# %% answer="L6_5_windows" style="by ends"
def windows(n_tokens, window, stride):
    ends = [min(window, n_tokens)]
    while ends[-1] < n_tokens:
        ends.append(min(ends[-1] + stride, n_tokens))
    return [(k * stride, end, ends[k - 1] if k else 0) for k, end in enumerate(ends)]

# %% answer="L6_5_windows" style="lists"
def windows(n_tokens, window, stride):
    found = [[0, min(window, n_tokens), 0]]
    while found[-1][1] < n_tokens:
        start, stop, _ = found[-1]
        found.append([start + stride, min(start + stride + window, n_tokens), stop])
    return found

# %% answer="L6_5_windows" mutant="overlap twice" message="you scored the overlap twice"
def windows(n_tokens, window, stride):
    found, start, done = [], 0, 0
    while done < n_tokens:
        done = min(start + window, n_tokens)
        found.append((start, done, start))
        start += stride
    return found

# %% answer="L6_5_windows" mutant="side by side" message="The windows stand side by side"
def windows(n_tokens, window, stride):
    return [(s, min(s + window, n_tokens), s) for s in range(0, n_tokens, window)]

# %% answer="L6_5_windows" mutant="end lost" message="The end of the text is not scored"
def windows(n_tokens, window, stride):
    return [
        (s, s + window, s and s + window - stride)
        for s in range(0, n_tokens - window + 1, stride)
    ]

# %% answer="L6_5_windows" mutant="first one left out" message="you left out one token"
def windows(n_tokens, window, stride):
    found, start, done = [], 0, 0
    while done < n_tokens:
        stop = min(start + window, n_tokens)
        found.append((start, stop, done + 1))
        start, done = start + stride, stop
    return found

# %% answer="L6_5_windows" mutant="idle windows" message="A window at the end scores nothing"
def windows(n_tokens, window, stride):
    found = []
    for start in range(0, n_tokens, stride):
        stop = min(start + window, n_tokens)
        found.append((start, stop, min(stop, start and start + window - stride)))
    return found

# %% answer="L6_5_prediction" style="BPE twice"
predicted_lower = ["BPE", "BPE"]

# %% answer="L6_5_prediction" mutant="other names" message="write two of the names"
predicted_lower = ["bpe", "chars"]

# %% answer="L6_5_better" style="powers compared by logarithm"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    return "AB"[math.log(perplexity_A) * n_tokens_A > math.log(perplexity_B) * n_tokens_B]

# %% answer="L6_5_better" style="numpy"
import numpy as np

def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    nats = np.log([perplexity_A, perplexity_B]) * [n_tokens_A, n_tokens_B]
    return ["A", "B"][int(nats.argmin())]

# %% answer="L6_5_better" style="length ratio"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    return "A" if perplexity_A ** (n_tokens_A / n_tokens_B) < perplexity_B else "B"

# %% answer="L6_5_better" mutant="lower perplexity" message="You compared perplexities"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    return "A" if perplexity_A < perplexity_B else "B"

# %% answer="L6_5_better" mutant="fewer tokens" message="You chose the model with fewer tokens"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    return "A" if n_tokens_A < n_tokens_B else "B"

# %% answer="L6_5_better" mutant="times perplexity" message="What adds up over tokens is its logarithm"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    return "A" if perplexity_A * n_tokens_A < perplexity_B * n_tokens_B else "B"

# %% answer="L6_5_better" mutant="more bits" message="You chose the one that needs more bits"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    return "B" if perplexity_A ** (n_tokens_A / n_tokens_B) < perplexity_B else "A"

# %% answer="L6_5_better" mutant="always A" message="That is not always the model"
def better(perplexity_A, n_tokens_A, perplexity_B, n_tokens_B):
    return "A"
