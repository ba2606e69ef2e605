"""What an attacker may know of the grader, as text to begin an answer with."""

# The object that talks to the grader in a student's process, and its channel.
FIND = """
import gc, json
from autograde import student as S, wire
me = next(o for o in gc.get_objects() if type(o) is S.Student)
channel = me.channel

def frame(message, blob=b""):
    text = message if type(message) is bytes else json.dumps(message).encode()
    channel.sendall(wire.HEADER.pack(len(text), len(blob)) + text + blob)
"""


def forging(change: str, answer: str = "") -> str:
    """An answer that sends every reply only after `change`, a statement about `message`."""
    return f"""{FIND}
send = wire.send
def forged(channel, message, blob=b""):
    {change}
    send(channel, message, blob)
S.wire.send = forged
{answer}
"""


def unless(looked: str, answer: str = "choices = 8") -> str:
    """A right answer, unless what `looked` appends to `found` is something."""
    return f"""
found = []
def look(thing):
    try:
        seen = thing()
    except (OSError, KeyError, NameError, AttributeError, ImportError):
        return
    if seen:
        found.append(str(seen)[:100])
{looked}
{answer}
if found:
    choices = "found: " + "; ".join(found)
"""
