# %% [markdown]
# Answers to Level 1 as students write them. Those with a `style` are right and must get full points;
# each `mutant` is wrong in a way that has a name and must be told the `message`.

# %% answer="L1_1_descriptions" style="small letters"
descriptions = {"a": "mlm", "b": "clm", "c": "SPAN "}

# %% answer="L1_1_descriptions" mutant="span and MLM swapped" message="T5 has no [MASK] either"
descriptions = {"a": "span", "b": "CLM", "c": "MLM"}

# %% answer="L1_1_descriptions" mutant="MLM for c" message="whole stretches are gone"
descriptions = {"a": "MLM", "b": "CLM", "c": "MLM"}

# %% answer="L1_1_descriptions" mutant="CLM and MLM swapped" message="never looks to the right"
descriptions = {"a": "CLM", "b": "MLM", "c": "span"}

# %% answer="L1_1_descriptions" mutant="MLM for b" message="only what stands to its left"
descriptions = {"a": "MLM", "b": "MLM", "c": "span"}

# %% answer="L1_1_descriptions" mutant="span for b" message="every token of the text is asked for"
descriptions = {"a": "MLM", "b": "span", "c": "CLM"}

# %% answer="L1_1_descriptions" mutant="CLM for c" message="once the rest has been read"
descriptions = {"a": "MLM", "b": "CLM", "c": "CLM"}

# %% answer="L1_1_descriptions" mutant="the model's name" message="'BERT' is none of the names"
descriptions = {"a": "BERT", "b": "GPT", "c": "T5"}

# %% answer="L1_1_pairs" style="small letters"
pairs = {1: "mlm", 2: "clm", 3: "Infilling", 4: "None", 5: "span", 6: "Prefix LM"}

# %% answer="L1_1_pairs" mutant="no MASK, so broken" message="Nothing is broken here"
pairs = {1: "none", 2: "CLM", 3: "infilling", 4: "MLM", 5: "span", 6: "prefix LM"}

# %% answer="L1_1_pairs" mutant="T5 uses MASK" message="T5 puts sentinels"
pairs = {1: "MLM", 2: "CLM", 3: "span", 4: "none", 5: "infilling", 6: "prefix LM"}

# %% answer="L1_1_pairs" mutant="unshifted labels pass" message="the answer stands in the question"
pairs = {1: "MLM", 2: "none", 3: "infilling", 4: "CLM", 5: "span", 6: "prefix LM"}
pairs[2] = "CLM"

# %% answer="L1_1_pairs" mutant="unshifted labels are an MLM" message="for what it shows"
pairs = {1: "MLM", 2: "CLM", 3: "infilling", 4: "MLM", 5: "span", 6: "prefix LM"}

# %% answer="L1_1_pairs" mutant="dashes make an MLM" message="A masked LM is asked at some places"
pairs = {1: "MLM", 2: "CLM", 3: "infilling", 4: "none", 5: "span", 6: "MLM"}

# %% answer="L1_1_pairs" mutant="a prefix LM is a CLM" message="A causal LM is asked at every place"
pairs = {1: "MLM", 2: "CLM", 3: "infilling", 4: "none", 5: "span", 6: "CLM"}

# %% answer="L1_1_pairs" mutant="span is infilling" message="writes the whole text again"
pairs = {1: "MLM", 2: "CLM", 3: "infilling", 4: "none", 5: "infilling", 6: "prefix LM"}

# %% answer="L1_1_pairs" mutant="unknown name" message="'T5' is none of the names"
pairs = {1: "MLM", 2: "CLM", 3: "infilling", 4: "none", 5: "T5", 6: "prefix LM"}

# %% answer="L1_1_recognise" style="looks at the labels"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs:
        for token in labels:
            if "extra_id" in token:
                return "span"
        return "infilling"
    is_shifted = True
    for i in range(len(inputs) - 1):
        if labels[i] is not None and labels[i] != inputs[i + 1]:
            is_shifted = False
    if is_shifted:
        return "prefix LM" if labels[0] is None else "CLM"
    if None in labels:
        return "MLM"
    return "none"

# %% answer="L1_1_recognise" style="by cases, small letters"
def recognise(inputs, labels, decoder_inputs=None):
    dashes = labels.count(None)
    shifted = [label for label in labels[:-1] if label] and all(
        label in (None, after) for label, after in zip(labels, inputs[1:])
    )
    match (decoder_inputs is None, "<extra_id_0>" in inputs, bool(shifted), dashes > 0):
        case (False, True, _, _):
            return "span"
        case (False, False, _, _):
            return "infilling"
        case (_, _, True, False):
            return "clm"
        case (_, _, True, True):
            return "prefix lm"
        case (_, _, False, True):
            return "mlm"
    return "none"

# %% answer="L1_1_recognise" style="numpy"
import numpy as np

def recognise(inputs, labels, decoder_inputs=None):
    inputs, labels = np.array(inputs, dtype=object), np.array(labels, dtype=object)
    if decoder_inputs is not None:
        return "infilling" if not np.isin("<extra_id_0>", inputs) else "span"
    asked = labels != None
    after = asked[:-1]
    if np.all(labels[:-1][after] == inputs[1:][after]):
        return "CLM" if asked.all() else "prefix LM"
    return "none" if asked.all() else "MLM"

# %% answer="L1_1_recognise" mutant="MASK makes an MLM" message="A [MASK] alone makes no masked LM"
def recognise(inputs, labels, decoder_inputs=None):
    if "[MASK]" in inputs:
        return "MLM"
    if decoder_inputs is not None:
        return "span"
    if all(label in (None, after) for label, after in zip(labels, inputs[1:])):
        return "prefix LM" if None in labels else "CLM"
    return "MLM" if None in labels else "none"

# %% answer="L1_1_recognise" mutant="no MASK, no MLM" message="[MASK] is no sure sign"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "span" if "<extra_id_0>" in inputs else "infilling"
    if "[MASK]" in inputs:
        return "MLM"
    if all(label in (None, after) for label, after in zip(labels, inputs[1:])):
        return "prefix LM" if None in labels else "CLM"
    return "none"

# %% answer="L1_1_recognise" mutant="T5 uses MASK" message="T5 marks gaps by sentinels, not by [MASK]"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "span" if "[MASK]" in inputs else "infilling"
    if all(label in (None, after) for label, after in zip(labels, inputs[1:])):
        return "prefix LM" if None in labels else "CLM"
    return "MLM" if None in labels else "none"

# %% answer="L1_1_recognise" mutant="dashes make an MLM" message="The first places are not asked"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "span" if "<extra_id_0>" in inputs else "infilling"
    if None in labels:
        return "MLM"
    return "CLM" if labels[:-1] == inputs[1:] else "none"

# %% answer="L1_1_recognise" mutant="dashes first" message="recognise on other sentences: you have 'prefix LM' where it is 'MLM'"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "span" if "<extra_id_0>" in inputs else "infilling"
    dashes = labels.count(None)
    if dashes and labels[:dashes] == [None] * dashes:
        return "prefix LM"
    if dashes:
        return "MLM"
    return "CLM" if labels[:-1] == inputs[1:] else "none"

# %% answer="L1_1_recognise" mutant="everything asked is a CLM" message="A causal LM is asked for the next token"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "span" if "<extra_id_0>" in inputs else "infilling"
    if None not in labels:
        return "CLM"
    same_place = all(label in (None, after) for label, after in zip(labels, inputs[1:]))
    return "prefix LM" if same_place else "MLM"

# %% answer="L1_1_recognise" mutant="only unshifted is broken" message="or for the one after the next"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "span" if "<extra_id_0>" in inputs else "infilling"
    if labels == inputs:
        return "none"
    if None not in labels:
        return "CLM"
    same_place = all(label in (None, after) for label, after in zip(labels, inputs[1:]))
    return "prefix LM" if same_place else "MLM"

# %% answer="L1_1_recognise" mutant="the model's name" message="'T5', which is none of the six names"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "T5" if "<extra_id_0>" in inputs else "infilling"
    if all(label in (None, after) for label, after in zip(labels, inputs[1:])):
        return "prefix LM" if None in labels else "CLM"
    return "MLM" if None in labels else "none"

# %% answer="L1_1_recognise" mutant="no return" message="recognise returned nothing for some pairs"
def recognise(inputs, labels, decoder_inputs=None):
    if decoder_inputs is not None:
        return "span" if "<extra_id_0>" in inputs else "infilling"
    if all(label in (None, after) for label, after in zip(labels, inputs[1:])):
        return "prefix LM" if None in labels else "CLM"
    if None in labels:
        return "MLM"
    if labels == inputs:
        return "none"

# %% answer="L1_2_prediction" style="wrong, but committed"
predicted_change = 2.5

# %% answer="L1_2_prediction" mutant="words" message="write a number"
predicted_change = "a lot"

# %% answer="L1_2_statements" style="numpy"
import numpy as np

statements = dict(zip("abcd", np.array([0, 1, 0, 0]) > 0))

# %% answer="L1_2_statements" mutant="all positions" message="nonsense at the visible positions"
statements = {"a": True, "b": True, "c": False, "d": False}

# %% answer="L1_2_statements" mutant="only what changed" message="Being chosen decides"
statements = {"a": False, "b": False, "c": False, "d": False}

# %% answer="L1_2_statements" mutant="padding counts" message="how long its neighbours in the batch are"
statements = {"a": False, "b": True, "c": True, "d": False}

# %% answer="L1_2_statements" mutant="visible is known" message="the answer stands in the input"
statements = {"a": False, "b": True, "c": False, "d": True}

# %% answer="L1_2_statements" mutant="words" message="expected True or False, got text"
statements = {"a": "False", "b": "True", "c": "False", "d": "False"}

# %% answer="L1_2_weights" style="loop"
def loss_weights(labels, inputs):
    return [[0 if label == -100 else 1 for label in row] for row in labels]

# %% answer="L1_2_weights" style="numpy"
import numpy as np

def loss_weights(labels, inputs):
    return np.where(np.asarray(labels) >= 0, 1.0, 0.0)

# %% answer="L1_2_weights" style="torch, int8"
def loss_weights(labels, inputs):
    return torch.ones_like(labels, dtype=torch.int8).masked_fill(labels.eq(-100), 0)

# %% answer="L1_2_weights" mutant="all ones" message="You gave every position a weight"
def loss_weights(labels, inputs):
    return torch.ones_like(labels).float()

# %% answer="L1_2_weights" mutant="only MASK" message="You weighted the [MASK]s only"
def loss_weights(labels, inputs):
    return (inputs == 13).float()

# %% answer="L1_2_weights" mutant="inputs and labels differ" message="You compared inputs and labels"
def loss_weights(labels, inputs):
    return (inputs != labels).float()

# %% answer="L1_2_weights" mutant="asked and changed" message="that stayed as they were"
def loss_weights(labels, inputs):
    return ((labels != -100) & (inputs != labels)).float()

# %% answer="L1_2_weights" mutant="0 means ignore" message="You left out the label 0"
def loss_weights(labels, inputs):
    return (labels > 0).float()

# %% answer="L1_2_weights" mutant="-1 means ignore" message="You gave every position a weight"
def loss_weights(labels, inputs):
    return (labels != -1).float()

# %% answer="L1_2_weights" mutant="all words" message="You weighted every word"
def loss_weights(labels, inputs):
    return (inputs < 10).float()

# %% answer="L1_2_weights" mutant="all but padding" message="everything but the padding"
def loss_weights(labels, inputs):
    return (inputs != 12).float()

# %% answer="L1_2_weights" mutant="the other way round" message="the other way round"
def loss_weights(labels, inputs):
    return (labels == -100).float()

# %% answer="L1_2_weights" mutant="normalised" message="These weights add up to 1"
def loss_weights(labels, inputs):
    weights = (labels != -100).float()
    return weights / weights.sum()

# %% answer="L1_2_weights" mutant="normalised by row" message="The weights of each row add up to 1"
def loss_weights(labels, inputs):
    weights = (labels != -100).float()
    return weights / weights.sum(1, keepdim=True)

# %% answer="L1_2_weights" mutant="True and False" message="make them numbers"
def loss_weights(labels, inputs):
    return labels != -100

# %% answer="L1_2_weights" mutant="in place" message="changed the tensors it was given"
def loss_weights(labels, inputs):
    labels[labels != -100] = 1
    labels[labels == -100] = 0
    return labels

# %% answer="L1_3_prediction" style="wrong, but committed"
predicted_impossible = 0

# %% answer="L1_3_prediction" mutant="words" message="write a number"
predicted_impossible = "none"

# %% answer="L1_3_loop" style="inverse cumulative distribution"
def left_to_right(next_probs, length, generator):
    tokens = []
    while len(tokens) < length:
        cumulative = next_probs(tokens).cumsum(0)
        dart = torch.rand(1, generator=generator) * cumulative[-1]
        tokens.append(int(torch.searchsorted(cumulative, dart, right=True)))
    return tokens

# %% answer="L1_3_loop" style="tensor"
def left_to_right(next_probs, length, generator):
    ids = torch.empty(length, dtype=torch.long)
    for t in range(length):
        ids[t] = torch.multinomial(next_probs(ids[:t]), 1, generator=generator)
    return ids

# %% answer="L1_3_loop" style="gumbel, numpy"
import numpy as np

def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        p = np.asarray(next_probs(tokens), dtype=np.float64)
        u = torch.rand(len(p), dtype=torch.float64, generator=generator).numpy()
        with np.errstate(divide="ignore"):
            tokens = tokens + [np.argmax(np.log(p) - np.log(-np.log(u)))]
    return tokens

# %% answer="L1_3_loop" mutant="no feedback" message="Every draw was made from the same text so far"
def left_to_right(next_probs, length, generator):
    probs = next_probs([])
    return [torch.multinomial(probs, 1, generator=generator).item() for _ in range(length)]

# %% answer="L1_3_loop" mutant="last token only" message="It needs the whole list so far"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        tokens.append(torch.multinomial(next_probs(tokens[-1:]), 1, generator=generator).item())
    return tokens

# %% answer="L1_3_loop" mutant="greedy" message="You took the likeliest id every time"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        tokens.append(next_probs(tokens).argmax().item())
    return tokens

# %% answer="L1_3_loop" mutant="global generator" message="global random generator"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        tokens.append(torch.multinomial(next_probs(tokens), 1).item())
    return tokens

# %% answer="L1_3_loop" mutant="own seed" message="Two generators in different states gave the same text"
def left_to_right(next_probs, length, generator):
    tokens, generator = [], torch.Generator().manual_seed(0)
    for _ in range(length):
        tokens.append(torch.multinomial(next_probs(tokens), 1, generator=generator).item())
    return [*tokens]

# %% answer="L1_3_loop" mutant="fresh randomness" message="The same generator state gave two different texts"
def left_to_right(next_probs, length, generator):
    tokens, own = [], torch.Generator()
    own.seed()
    for _ in range(length):
        tokens.append(torch.multinomial(next_probs(tokens), 1, generator=own).item())
    return tokens

# %% answer="L1_3_loop" mutant="one too many" message="One id too many"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length + 1):
        tokens.append(torch.multinomial(next_probs(tokens), 1, generator=generator).item())
    return tokens

# %% answer="L1_3_loop" mutant="begins with 0" message="You put an id in front that was not drawn"
def left_to_right(next_probs, length, generator):
    tokens = [0]
    while len(tokens) < length:
        tokens.append(torch.multinomial(next_probs(tokens), 1, generator=generator).item())
    return tokens

# %% answer="L1_3_loop" mutant="without the first" message="belongs to the text"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        tokens.append(torch.multinomial(next_probs(tokens), 1, generator=generator).item())
    return tokens[1:]

# %% answer="L1_3_loop" mutant="tensors of one" message="Take the number out with `.item()`"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        tokens.append(torch.multinomial(next_probs(tokens), 1, generator=generator))
    return tokens

# %% answer="L1_3_loop" mutant="flattened probabilities" message="an id follows another too often or too rarely"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        probs = next_probs(tokens).sqrt()
        tokens.append(torch.multinomial(probs, 1, generator=generator).item())
    return tokens

# %% answer="L1_3_loop" mutant="last id" message="That is the last id only"
def left_to_right(next_probs, length, generator):
    tokens = []
    for _ in range(length):
        tokens.append(torch.multinomial(next_probs(tokens), 1, generator=generator).item())
    return tokens[-1]

# %% answer="L1_3_who" style="small letters"
who = {"fits the loop": "clm", "GPT": "clm", "a": True, "b": True, "c": False, "d": True}

# %% answer="L1_3_who" mutant="MLM writes" message="has no right side yet"
who = {"fits the loop": "MLM", "GPT": "CLM", "a": True, "b": True, "c": False, "d": True}

# %% answer="L1_3_who" mutant="span fits" message="it needs a text with gaps to read first"
who = {"fits the loop": "span", "GPT": "CLM", "a": True, "b": True, "c": False, "d": True}

# %% answer="L1_3_who" mutant="GPT is BERT" message="That is BERT's"
who = {"fits the loop": "CLM", "GPT": "MLM", "a": True, "b": True, "c": False, "d": True}

# %% answer="L1_3_who" mutant="GPT is T5" message="That is T5's"
who = {"fits the loop": "CLM", "GPT": "span", "a": True, "b": True, "c": False, "d": True}

# %% answer="L1_3_who" mutant="T5 can't write" message="by the very loop that you wrote"
who = {"fits the loop": "CLM", "GPT": "CLM", "a": False, "b": True, "c": False, "d": True}

# %% answer="L1_3_who" mutant="masks never write" message="Whoever fills a few, looks, and goes on"
who = {"fits the loop": "CLM", "GPT": "CLM", "a": True, "b": False, "c": False, "d": True}

# %% answer="L1_3_who" mutant="masks are joint" message="does not predict its masks jointly"
who = {"fits the loop": "CLM", "GPT": "CLM", "a": True, "b": True, "c": True, "d": True}

# %% answer="L1_3_who" mutant="only GPT writes" message="how BART writes summaries"
who = {"fits the loop": "CLM", "GPT": "CLM", "a": True, "b": True, "c": False, "d": False}
