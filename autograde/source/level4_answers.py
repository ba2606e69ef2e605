# %% [markdown]
# Answers to Level 4 as students write them. Those with a `style` are right and must get full points;
# each `mutant` is wrong in a way that has a name and must be told the `message`.

# %% answer="L4_1_numbers" style="typed in"
chosen, masked, randomised, kept = 30, 24, 3, 3
sd_independent, sd_script = 5.05, 0

# %% answer="L4_1_numbers" style="torch"
chosen = torch.tensor(200) * 0.15
masked, randomised, kept = chosen * torch.tensor([0.8, 0.1, 0.1])
sd_independent = torch.tensor(200 * 0.15 * 0.85).sqrt()
sd_script = 0.0

# %% answer="L4_1_numbers" mutant="shares of the text" message="splits only the tokens that were chosen"
chosen, masked, randomised, kept = 30, 160, 20, 20
sd_independent, sd_script = 5.05, 0

# %% answer="L4_1_numbers" mutant="coin of 0.1" message="You took a tenth of what the 80% left over"
chosen, masked, randomised, kept = 30, 24, 0.6, 5.4
sd_independent, sd_script = 5.05, 0

# %% answer="L4_1_numbers" mutant="kept are those not chosen" message="Here: chosen, and yet left"
chosen, masked, randomised, kept = 30, 24, 3, 170
sd_independent, sd_script = 5.05, 0

# %% answer="L4_1_numbers" mutant="variance" message="That is the variance"
chosen, masked, randomised, kept = 30, 24, 3, 3
sd_independent, sd_script = 25.5, 0

# %% answer="L4_1_numbers" mutant="Poisson" message="as for rare events"
chosen, masked, randomised, kept = 30, 24, 3, 3
sd_independent, sd_script = math.sqrt(30), 0

# %% answer="L4_1_numbers" mutant="script varies" message="The script chooses the same number each time"
chosen, masked, randomised, kept = 30, 24, 3, 3
sd_independent = sd_script = math.sqrt(200 * 0.15 * 0.85)

# %% answer="L4_1_prediction" style="wrong, but committed"
predicted_texts = 1000

# %% answer="L4_1_prediction" mutant="words" message="write a number"
predicted_texts = "most of them"

# %% answer="L4_1_original" style="typed in"
p_sees_original = 0.1063

# %% answer="L4_1_original" mutant="kept only" message="can be any of the 16"
p_sees_original = 0.1

# %% answer="L4_1_original" mutant="whole vocabulary" message="random word from all 21 ids"
p_sees_original = 0.1 + 0.1 / 21

# %% answer="L4_1_original" mutant="both tens" message="every random word for a new one"
p_sees_original = 0.2

# %% answer="L4_1_original" mutant="any token" message="Here the token *was* chosen"
p_sees_original = 0.85 + 0.15 * (0.1 + 0.1 / 16)

# %% answer="L4_1_corrupt" style="clone and assign"
def bert_corrupt(ids, special_mask, generator):
    inputs, labels = ids.clone(), ids.clone()
    p = torch.full(ids.shape, 0.15).masked_fill(special_mask, 0.0)
    chosen = torch.bernoulli(p, generator=generator).bool()
    for row in ((~chosen.any(1)) & (~special_mask).any(1)).nonzero().flatten().tolist():
        words = (~special_mask[row]).nonzero().flatten()
        chosen[row, words[torch.randint(len(words), (1,), generator=generator)]] = True
    labels[~chosen] = -100
    replaced = torch.bernoulli(torch.full(ids.shape, 0.8), generator=generator).bool() & chosen
    inputs[replaced] = MASK_ID
    half = torch.bernoulli(torch.full(ids.shape, 0.5), generator=generator).bool()
    swapped = half & chosen & ~replaced
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs[swapped] = words[swapped]
    return inputs, labels

# %% answer="L4_1_corrupt" style="numpy"
import numpy as np

def bert_corrupt(ids, special_mask, generator):
    x, special = np.asarray(ids), np.asarray(special_mask)
    draw, fate, word = (torch.rand(x.shape, generator=generator).numpy() for _ in range(3))
    draw = np.where(special, np.inf, draw)
    chosen = (draw < 0.15) | ((draw == draw.min(1, keepdims=True)) & ~special
                              & ~(draw < 0.15).any(1, keepdims=True))
    words = FIRST_WORD + (word * (VOCAB_SIZE - FIRST_WORD)).astype(x.dtype)
    inputs = np.select([chosen & (fate < 0.8), chosen & (fate < 0.9)], [MASK_ID, words], x)
    return inputs, np.where(chosen, x, -100)

# %% answer="L4_1_corrupt" style="loop"
def bert_corrupt(ids, special_mask, generator):
    B, T = ids.shape
    draw = torch.rand(3, B, T, generator=generator).tolist()
    inputs, labels = [], []
    for b, (row, special) in enumerate(zip(ids.tolist(), special_mask.tolist())):
        ordinary = [t for t in range(T) if not special[t]]
        chosen = [t for t in ordinary if draw[0][b][t] < 0.15]
        if ordinary and not chosen:
            chosen = [min(ordinary, key=lambda t: draw[0][b][t])]
        label = [-100] * T
        for t in chosen:
            label[t] = row[t]
            if draw[1][b][t] < 0.8:
                row[t] = MASK_ID
            elif draw[1][b][t] < 0.9:
                row[t] = FIRST_WORD + int(draw[2][b][t] * (VOCAB_SIZE - FIRST_WORD))
        inputs.append(row)
        labels.append(label)
    return torch.tensor(inputs), torch.tensor(labels)

# %% answer="L4_1_corrupt" style="draws again until something is chosen"
def bert_corrupt(ids, special_mask, generator):
    chosen = (torch.rand(ids.shape, generator=generator) < 0.15) & ~special_mask
    empty = ~chosen.any(1) & (~special_mask).any(1)
    while empty.any():
        again = (torch.rand(ids.shape, generator=generator) < 0.15) & ~special_mask
        chosen[empty] = again[empty]
        empty = ~chosen.any(1) & (~special_mask).any(1)
    fate = torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), ids.numel(), True, generator=generator)
    fate = fate.view(ids.shape)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = ids.masked_fill(chosen & (fate == 0), MASK_ID)
    inputs = torch.where(chosen & (fate == 1), words, inputs)
    return inputs.int(), ids.masked_fill(~chosen, -100).int()

# %% answer="L4_1_corrupt" mutant="80/2/18" message="you took a tenth of what the 80% left over. It must be half"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    masked = chosen & (torch.rand(ids.shape, generator=generator) < 0.8)
    swapped = chosen & ~masked & (torch.rand(ids.shape, generator=generator) < 0.1)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(swapped, words, ids.masked_fill(masked, MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="81/9/10" message="81% became [MASK], 9% random"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    kept = torch.rand(ids.shape, generator=generator) < 0.1
    swapped = chosen & ~kept & (torch.rand(ids.shape, generator=generator) < 0.1)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(swapped, words, ids.masked_fill(chosen & ~kept, MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="72/10/18" message="72% became [MASK]"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    swapped = chosen & (torch.rand(ids.shape, generator=generator) < 0.1)
    masked = chosen & ~swapped & (torch.rand(ids.shape, generator=generator) < 0.8)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(swapped, words, ids.masked_fill(masked, MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="masks only" message="Every chosen token became [MASK]"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    return ids.masked_fill(chosen, MASK_ID), torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="random never the original" message="Your random word is never the original"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    n = VOCAB_SIZE - FIRST_WORD
    words = FIRST_WORD + (ids - FIRST_WORD + torch.randint(1, n, ids.shape, generator=generator)) % n
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="random may be special" message="A special token was drawn as the random word"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="random on unselected positions" message="You changed tokens that were not chosen"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(fate >= 0.9, words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="one draw per row" message="as if one draw decided for the row"
def bert_corrupt(ids, special_mask, generator):
    chosen = (torch.rand(len(ids), 1, generator=generator) < 0.15) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="one draw per column" message="The same columns are chosen in all rows"
def bert_corrupt(ids, special_mask, generator):
    chosen = (torch.rand(ids.shape[1], generator=generator) < 0.15) & ~special_mask
    chosen[:, ids.shape[1] // 2] = ~special_mask[:, ids.shape[1] // 2]
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="one fate per row" message="The chosen tokens of one row share one fate"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(len(ids), 1, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="word or stay per row" message="The chosen tokens of one row share one fate"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    masked = torch.rand(ids.shape, generator=generator) < 0.8
    swapped = torch.rand(len(ids), 1, generator=generator) < 0.5
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & ~masked & swapped, words, ids.masked_fill(chosen & masked, MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="one random word per row" message="copies of one draw"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, (len(ids), 1), generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="fixed number" message="(nearly) the same number of chosen tokens"
def bert_corrupt(ids, special_mask, generator):
    rank = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0).argsort(1).argsort(1)
    n = (~special_mask).sum(1, keepdim=True)
    chosen = (rank < (0.15 * n).round().clamp(min=1)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="labels everywhere" message="Every position has a label"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, ids.clone()

# %% answer="L4_1_corrupt" mutant="ignore with 0" message="Where nothing is asked the label must be -100"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, 0)

# %% answer="L4_1_corrupt" mutant="labels from the inputs" message="the label is not the original token"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, inputs, -100)

# %% answer="L4_1_corrupt" mutant="kept tokens not scored" message="chosen and kept are scored too"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(inputs != ids, ids, -100)

# %% answer="L4_1_corrupt" mutant="chooses specials" message="You chose a token where special_mask is True"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator)
    chosen = draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="specials by their id" message="The mask says so, not the id"
def bert_corrupt(ids, special_mask, generator):
    special = ids < FIRST_WORD
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="in place" message="You changed an argument"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    labels = torch.where(chosen, ids, -100)
    ids[chosen & (fate < 0.8)] = MASK_ID
    swapped = chosen & (fate >= 0.9)
    ids[swapped] = words[swapped]
    return ids, labels

# %% answer="L4_1_corrupt" mutant="global random state" message="drew from (or seeded) the global random state"
def bert_corrupt(ids, special_mask, generator):
    draw = torch.rand(ids.shape).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="reseeds the generator" message="do not seed it"
def bert_corrupt(ids, special_mask, generator):
    generator.manual_seed(0)
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="a copy of the generator" message="every epoch would look alike"
def bert_corrupt(ids, special_mask, generator):
    generator = torch.Generator().manual_seed(generator.initial_seed())
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (draw <= draw.min(1, keepdim=True).values.clamp(min=0.15)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="nothing in short rows" message="In some short rows nothing was chosen"
def bert_corrupt(ids, special_mask, generator):
    chosen = (torch.rand(ids.shape, generator=generator) < 0.15) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="always the first" message="In short rows one place is chosen more often"
def bert_corrupt(ids, special_mask, generator):
    chosen = (torch.rand(ids.shape, generator=generator) < 0.15) & ~special_mask
    first = (~special_mask).cumsum(1) == 1
    chosen |= ~chosen.any(1, keepdim=True) & first & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="one extra in each row" message="The extra choice is only for rows"
def bert_corrupt(ids, special_mask, generator):
    chosen = torch.rand(ids.shape, generator=generator) < 0.15
    draw = torch.rand(ids.shape, generator=generator).masked_fill(special_mask, 2.0)
    chosen = (chosen | (draw == draw.min(1, keepdim=True).values)) & ~special_mask
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, VOCAB_SIZE, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate >= 0.9), words, ids.masked_fill(chosen & (fate < 0.8), MASK_ID))
    return inputs, torch.where(chosen, ids, -100)

# %% answer="L4_1_corrupt" mutant="inputs only" message="Return two tensors"
def bert_corrupt(ids, special_mask, generator):
    chosen = (torch.rand(ids.shape, generator=generator) < 0.15) & ~special_mask
    return [ids.masked_fill(chosen, MASK_ID)]

# %% answer="L4_2_sight" style="loop"
def loss_by_sight(log_probs, ids, inputs):
    totals, numbers = [0.0, 0.0, 0.0], [0, 0, 0]
    for b in range(len(ids)):
        for t in range(ids.shape[1]):
            seen, original = inputs[b, t].item(), ids[b, t].item()
            k = 0 if seen == MASK_ID else 1 if seen == original else 2
            totals[k] -= log_probs[b, t, original].item()
            numbers[k] += 1
    return tuple(total / n for total, n in zip(totals, numbers))

# %% answer="L4_2_sight" style="numpy"
import numpy as np

def loss_by_sight(log_probs, ids, inputs):
    ids, inputs = np.asarray(ids), np.asarray(inputs)
    nll = -np.take_along_axis(np.asarray(log_probs), ids[:, :, None], axis=2)[:, :, 0]
    kind = np.select([inputs == MASK_ID, inputs == ids], [0, 1], 2)
    return np.array([nll[kind == k].mean() for k in range(3)])

# %% answer="L4_2_sight" style="nll_loss, a tensor"
def loss_by_sight(log_probs, ids, inputs):
    masked, same = inputs == MASK_ID, inputs == ids
    return torch.stack([
        torch.nn.functional.nll_loss(log_probs[where], ids[where])
        for where in (masked, same, ~(masked | same))
    ])

# %% answer="L4_2_sight" mutant="scores what is seen" message="Score the original one"
def loss_by_sight(log_probs, ids, inputs):
    surprise = -log_probs.gather(-1, inputs.unsqueeze(-1)).squeeze(-1)
    masked, same = inputs == MASK_ID, inputs == ids
    return [surprise[kind].mean().item() for kind in (masked, same, ~masked & ~same)]

# %% answer="L4_2_sight" mutant="sums" message="Those are sums"
def loss_by_sight(log_probs, ids, inputs):
    surprise = -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    masked, same = inputs == MASK_ID, inputs == ids
    return [surprise[kind].sum().item() for kind in (masked, same, ~masked & ~same)]

# %% answer="L4_2_sight" mutant="divides by all" message="You divided by all positions"
def loss_by_sight(log_probs, ids, inputs):
    surprise = -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    masked, same = inputs == MASK_ID, inputs == ids
    return [(surprise * kind).mean().item() for kind in (masked, same, ~masked & ~same)]

# %% answer="L4_2_sight" mutant="masks among the swapped" message="A [MASK] is no swapped word"
def loss_by_sight(log_probs, ids, inputs):
    surprise = -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    return [surprise[kind].mean().item() for kind in (inputs == MASK_ID, inputs == ids, inputs != ids)]

# %% answer="L4_2_sight" mutant="all that is visible in sight" message="The second kind includes the swapped"
def loss_by_sight(log_probs, ids, inputs):
    surprise = -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    masked, same = inputs == MASK_ID, inputs == ids
    return [surprise[kind].mean().item() for kind in (masked, ~masked, ~masked & ~same)]

# %% answer="L4_2_sight" mutant="order" message="Two kinds are in the wrong order"
def loss_by_sight(log_probs, ids, inputs):
    surprise = -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    masked, same = inputs == MASK_ID, inputs == ids
    return [surprise[kind].mean().item() for kind in (masked, ~masked & ~same, same)]

# %% answer="L4_2_sight" mutant="bits" message="That is in bits"
def loss_by_sight(log_probs, ids, inputs):
    surprise = -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1) / math.log(2)
    masked, same = inputs == MASK_ID, inputs == ids
    return [surprise[kind].mean().item() for kind in (masked, same, ~masked & ~same)]

# %% answer="L4_2_sight" mutant="no minus" message="The sign is wrong"
def loss_by_sight(log_probs, ids, inputs):
    surprise = log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    masked, same = inputs == MASK_ID, inputs == ids
    return [surprise[kind].mean().item() for kind in (masked, same, ~masked & ~same)]

# %% answer="L4_2_prediction" style="far off, but committed"
predicted_nats = 10

# %% answer="L4_2_prediction" mutant="words" message="write a number"
predicted_nats = "almost nothing"

# %% answer="L4_2_readings" style="blanks"
least_in_sight, most_in_sight, most_swapped = " 80/0/20", "100/0/0", "80/0/20 "

# %% answer="L4_2_readings" mutant="BERT's is best" message="There is a recipe with more reason for trust"
least_in_sight, most_in_sight, most_swapped = "80/10/10", "100/0/0", "80/0/20"

# %% answer="L4_2_readings" mutant="visible is trivial" message="never scores a token that can be seen"
least_in_sight, most_in_sight, most_swapped = "100/0/0", "80/10/10", "80/0/20"

# %% answer="L4_2_readings" mutant="masks only, misled" message="a wrong one does not mislead it most"
least_in_sight, most_in_sight, most_swapped = "80/0/20", "100/0/0", "100/0/0"

# %% answer="L4_2_choice" style="capital"
worry = "B"

# %% answer="L4_2_choice" mutant="none" message="nothing in training rewards the model"
worry = "a"

# %% answer="L4_2_choice" mutant="less context" message="they are much the same for all three recipes"
worry = "c"

# %% answer="L4_2_choice" mutant="copies" message="That describes 80/0/20"
worry = "d"

# %% answer="L4_3_steps" style="small letters"
steps = "cea"

# %% answer="L4_3_steps" mutant="sentinel after the span" message="the sentinel follows its run in the targets"
steps = "EDA"

# %% answer="L4_3_steps" mutant="sentinel per token" message="every missing token has its own sentinel"
steps = "BEA"

# %% answer="L4_3_steps" mutant="token before sentinel" message="Which comes first?"
steps = "ECA"

# %% answer="L4_3_steps" mutant="whole text" message="the targets hold the whole text"
steps = "CFA"

# %% answer="L4_3_steps" mutant="no end" message="Nothing ends the two sequences"
steps = "CE"

# %% answer="L4_3_corrupt" style="groupby"
from itertools import groupby

def span_corrupt(ids, noise):
    inputs, targets, sentinel = [], [], FIRST_SENTINEL
    for hidden, run in groupby(zip(ids, noise), key=lambda pair: pair[1]):
        run = [token for token, _ in run]
        if hidden:
            inputs.append(sentinel)
            targets += [sentinel, *run]
            sentinel -= 1
        else:
            inputs += run
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" style="torch"
def span_corrupt(ids, noise):
    ids, noise = torch.tensor(ids), torch.tensor(noise)
    start = noise & ~torch.cat([torch.tensor([False]), noise[:-1]])
    sentinel = FIRST_SENTINEL + 1 - start.long().cumsum(0)
    both = torch.stack([sentinel, ids], 1)  # each token with the sentinel that may stand before it
    eos = torch.tensor([EOS_ID])
    inputs = both[torch.stack([start, ~noise], 1)]
    targets = both[torch.stack([start, noise], 1)]
    return torch.cat([inputs, eos]), torch.cat([targets, eos])

# %% answer="L4_3_corrupt" style="numpy"
import numpy as np

def span_corrupt(ids, noise):
    ids, noise = np.array(ids), np.array(noise)
    start = noise & ~np.concatenate([[False], noise[:-1]])
    inputs = np.where(start, FIRST_SENTINEL + 1 - start.cumsum(), ids)[~noise | start]
    targets = np.insert(ids[noise], np.flatnonzero(start[noise]), FIRST_SENTINEL - np.arange(start.sum()))
    return np.append(inputs, EOS_ID), np.append(targets, EOS_ID)

# %% answer="L4_3_corrupt" mutant="sentinel per token" message="Every noise token has a sentinel of its own"
def span_corrupt(ids, noise):
    inputs, targets, sentinel = [], [], FIRST_SENTINEL
    for token, hidden in zip(ids, noise):
        if hidden:
            inputs.append(sentinel)
            targets += [sentinel, token]
            sentinel -= 1
        else:
            inputs.append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="reused sentinel" message="All spans have the same sentinel"
def span_corrupt(ids, noise):
    inputs, targets = [], []
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL)
            targets.append(FIRST_SENTINEL)
        (targets if noise[i] else inputs).append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="[MASK]" message="You put [MASK] where T5 has sentinels"
def span_corrupt(ids, noise):
    inputs, targets = [], []
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(MASK_ID)
            targets.append(MASK_ID)
        (targets if noise[i] else inputs).append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="ascending sentinels" message="Your sentinels count up"
def span_corrupt(ids, noise):
    inputs, targets, spans = [], [], 0
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL + spans)
            targets.append(FIRST_SENTINEL + spans)
            spans += 1
        (targets if noise[i] else inputs).append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="restarted numbering" message="must have the same sentinels, in the same order"
def span_corrupt(ids, noise):
    inputs, spans = [], 0
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL - spans)
            spans += 1
        if not noise[i]:
            inputs.append(token)
    targets = []
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            targets.append(FIRST_SENTINEL - spans)
            spans += 1
        if noise[i]:
            targets.append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="numbered by position" message="Your sentinels are numbered by position"
def span_corrupt(ids, noise):
    inputs, targets = [], []
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL - i)
            targets.append(FIRST_SENTINEL - i)
        (targets if noise[i] else inputs).append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="sentinel after the span" message="The sentinel follows its span"
def span_corrupt(ids, noise):
    inputs, targets, spans = [], [], 0
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL - spans)
        (targets if noise[i] else inputs).append(token)
        if noise[i] and (i == len(ids) - 1 or not noise[i + 1]):
            targets.append(FIRST_SENTINEL - spans)
            spans += 1
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="dropped last span" message="The last span is lost where the text ends in noise"
def span_corrupt(ids, noise):
    inputs, targets, buffer, spans = [], [], [], 0
    for token, hidden in zip(ids, noise):
        if hidden:
            if not buffer:
                inputs.append(FIRST_SENTINEL - spans)
            buffer.append(token)
        else:
            if buffer:
                targets += [FIRST_SENTINEL - spans, *buffer]
                buffer, spans = [], spans + 1
            inputs.append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="misses noise at the start" message="also where the text begins with noise"
def span_corrupt(ids, noise):
    inputs, targets, spans = [], [], 0
    for i, token in enumerate(ids):
        if noise[i] and not noise[i - 1]:
            inputs.append(FIRST_SENTINEL - spans)
            targets.append(FIRST_SENTINEL - spans)
            spans += 1
        (targets if noise[i] else inputs).append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="sides out of step at the start" message="also where the text begins with noise"
def span_corrupt(ids, noise):
    def side(hide):  # T5's own way: right only where a text begins with kept tokens
        out, spans = [], 0
        for i, token in enumerate(ids):
            if not hide[i]:
                out.append(token)
            elif i == 0 or not hide[i - 1]:
                out.append(FIRST_SENTINEL - spans)
                spans += 1
        return out
    targets = side([not hidden for hidden in noise])
    if not noise[-1]:
        targets = targets[:-1]
    return side(noise) + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="no EOS" message="EOS is missing, in inputs and targets"
def span_corrupt(ids, noise):
    inputs, targets, spans = [], [], 0
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL - spans)
            targets.append(FIRST_SENTINEL - spans)
            spans += 1
        (targets if noise[i] else inputs).append(token)
    return inputs, targets

# %% answer="L4_3_corrupt" mutant="closing sentinel" message="Your targets end in one more sentinel."
def span_corrupt(ids, noise):
    inputs, targets, spans = [], [], 0
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL - spans)
            targets.append(FIRST_SENTINEL - spans)
            spans += 1
        (targets if noise[i] else inputs).append(token)
    return inputs + [EOS_ID], targets + [FIRST_SENTINEL - spans, EOS_ID]

# %% answer="L4_3_corrupt" mutant="whole text as target" message="The targets hold the whole text"
def span_corrupt(ids, noise):
    inputs, targets, spans = [], [], 0
    for i, token in enumerate(ids):
        if noise[i] and (i == 0 or not noise[i - 1]):
            inputs.append(FIRST_SENTINEL - spans)
            targets.append(FIRST_SENTINEL - spans)
            spans += 1
        if not noise[i]:
            inputs.append(token)
        targets.append(token)
    return inputs + [EOS_ID], targets + [EOS_ID]

# %% answer="L4_3_corrupt" mutant="hard-coded" message="the text is not restored"
def span_corrupt(ids, noise):
    return [5, 99, 13, 15, 98, 8, 12, 97, 3], [99, 7, 9, 98, 17, 97, 20, 3]

# %% answer="L4_3_lengths" style="typed in"
input_length, target_length = 462, 104

# %% answer="L4_3_lengths" mutant="no EOS" message="You forgot EOS"
input_length, target_length = 461, 103

# %% answer="L4_3_lengths" mutant="no sentinels" message="You forgot the sentinels: one for each span"
input_length, target_length = 436, 78

# %% answer="L4_3_lengths" mutant="sentinel per token" message="You counted a sentinel for each noise token"
input_length, target_length = 513, 155

# %% answer="L4_3_lengths" mutant="closing sentinel" message="You counted one more sentinel at the end"
input_length, target_length = 462, 105

# %% answer="L4_3_prediction" style="wrong, but committed"
predicted_percent = 100

# %% answer="L4_3_prediction" mutant="words" message="write a number"
predicted_percent = "all"

# %% answer="L4_3_losses" style="loop"
def gap_losses(joint):
    V, W = joint.shape
    first = [sum(joint[i, j].item() for j in range(W)) for i in range(V)]
    second = [sum(joint[i, j].item() for i in range(V)) for j in range(W)]
    one = two = span = 0.0
    for i in range(V):
        for j in range(W):
            p = joint[i, j].item()
            if p > 0:
                one -= p * math.log(p / first[i])
                two -= p * (math.log(first[i]) + math.log(second[j]))
                span -= p * math.log(p)
    return one, two, span

# %% answer="L4_3_losses" style="numpy"
import numpy as np

def gap_losses(joint):
    p = np.asarray(joint, dtype=np.float64)

    def h(q):
        q = q[q > 0]
        return -(q * np.log(q)).sum()

    return np.array([h(p) - h(p.sum(1)), h(p.sum(1)) + h(p.sum(0)), h(p)])

# %% answer="L4_3_losses" style="torch float32, nan_to_num"
def gap_losses(joint):
    h = lambda p: -(p * p.log()).nan_to_num(0.0).sum()
    rows = joint.sum(1)
    one = h(joint) - h(rows)
    return torch.stack([one, h(rows) + h(joint.sum(0)), h(rows) + one])

# %% answer="L4_3_losses" mutant="masks know each other" message="Each mask is filled without knowing the other"
def gap_losses(joint):
    h = lambda p: torch.special.entr(p).sum().item()
    return h(joint) - h(joint.sum(1)), h(joint), h(joint)

# %% answer="L4_3_losses" mutant="span as two masks" message="The decoder reads the first word"
def gap_losses(joint):
    h = lambda p: torch.special.entr(p).sum().item()
    two = h(joint.sum(1)) + h(joint.sum(0))
    return h(joint) - h(joint.sum(1)), two, two

# %% answer="L4_3_losses" mutant="one mask without context" message="The first word can be read."
def gap_losses(joint):
    h = lambda p: torch.special.entr(p).sum().item()
    return h(joint.sum(0)), h(joint.sum(1)) + h(joint.sum(0)), h(joint)

# %% answer="L4_3_losses" mutant="the wrong word hidden" message="the *second* word is hidden"
def gap_losses(joint):
    h = lambda p: torch.special.entr(p).sum().item()
    return h(joint) - h(joint.sum(0)), h(joint.sum(1)) + h(joint.sum(0)), h(joint)

# %% answer="L4_3_losses" mutant="per word" message="Give them for the whole gap"
def gap_losses(joint):
    h = lambda p: torch.special.entr(p).sum().item()
    return h(joint) - h(joint.sum(1)), (h(joint.sum(1)) + h(joint.sum(0))) / 2, h(joint) / 2

# %% answer="L4_3_losses" mutant="bits" message="You used bits"
def gap_losses(joint):
    h = lambda p: torch.special.entr(p).sum().item() / math.log(2)
    return h(joint) - h(joint.sum(1)), h(joint.sum(1)) + h(joint.sum(0)), h(joint)

# %% answer="L4_3_losses" mutant="NaN" message="Count what never happens as 0"
def gap_losses(joint):
    h = lambda p: -(p * p.log()).sum().item()
    return h(joint) - h(joint.sum(1)), h(joint.sum(1)) + h(joint.sum(0)), h(joint)

# %% answer="L4_3_losses" mutant="hard-coded" message="gap_losses in other worlds"
def gap_losses(joint):
    return 0, 2 * math.log(2), math.log(2)

# %% answer="L4_3_choice" style="capital"
three_masks = "B"

# %% answer="L4_3_choice" mutant="joint" message="it would never have said New Angeles"
three_masks = "a"

# %% answer="L4_3_choice" mutant="left to right" message="That is the span decoder"
three_masks = "c"

# %% answer="L4_3_choice" mutant="nothing" message="still tells something"
three_masks = "d"
