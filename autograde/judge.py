"""The judge: runs a test cell here, with the student's names standing for the student's process.

Student code never runs in this process. What a test cell imports or defines is its own; every other
name is looked up on the other side: a function becomes a callable that ships its arguments over
there, anything else arrives as plain data. A test passes only by running to its end in here.
"""

import builtins
import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autograde.kernel import DISTURBED, INTERRUPTED, Died, Failure, Kernel
from autograde.lint import free_names
from autograde.verdict import Outcome
from course_lib.teaching.check import NotAttempted, Observation, Remote, Wrong
from course_lib.teaching.plain import Opaque


class StudentError(BaseException):
    """Marks an exception that the student's code raised; mixed into the built-in one."""

    failure: Failure
    function = ""  # the name of the function that was called


@dataclass(frozen=True)
class Ruling:
    """How one test cell came out."""

    outcome: Outcome
    message: str = ""
    misconception: str = ""


class RemoteFunction(Remote):
    """A function of the student's: a call runs over there, plain data comes back."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self._kernel, self._name = kernel, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._results([(args, kwargs)])[0]

    def each(self, inputs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`course_lib.teaching.check.each`, in one round trip."""
        return self._results([(args, {}) for args in inputs])

    def observe(self, *args: Any) -> Observation:
        """`course_lib.teaching.check.observe`, over there."""
        seen = self._results([(args, {})], observe=True)[0]
        if type(seen) is not tuple or len(seen) != 4 or type(seen[1]) is not tuple:
            raise Died("crashed", f"{DISTURBED}: no observation came")
        return Observation(seen[0], seen[1], str(seen[2]), seen[3] is not False)

    def _results(self, calls: Sequence[tuple[Any, Any]], observe: bool = False) -> list[Any]:
        results = self._kernel.call(self._name, calls, observe)
        for result in results:
            if isinstance(result, Failure):
                error = rebuilt(result)
                error.function = self._name
                raise error
        if len(results) != len(calls):
            raise Died("crashed", f"{DISTURBED}: results are missing")
        return results


def judge(source: str, kernel: Kernel) -> Ruling:
    """Run a test cell against a student's process. Raises `Died` if that process ends over it."""
    names = sorted(free_names(source) - set(dir(builtins)))
    namespace: dict[str, Any] = {"__name__": "test"}
    for name, value in kernel.look_up(names).items():
        if isinstance(value, Failure):
            return Ruling(Outcome.ERROR, f"`{name}` can't be read: {value.message}.")
        if isinstance(value, Opaque) and value.callable:
            value = RemoteFunction(kernel, name)
        namespace[name] = value
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(source, "<test>", "exec"), namespace)
        if kernel.dead:  # whatever the test made of it
            raise kernel.dead
    except Died:
        raise
    except StudentError as error:
        return _of_failure(error)
    except NotAttempted as error:
        return Ruling(Outcome.NOT_ATTEMPTED, str(error))
    except Wrong as error:
        return Ruling(Outcome.WRONG, str(error), error.misconception)
    except AssertionError as error:
        return Ruling(Outcome.WRONG, str(error) or "This is not right.")
    except NameError as error:
        if error.name in names:
            advice = "Is it spelled as the text asks, and does its cell run without an error?"
            return Ruling(Outcome.ERROR, f"`{error.name}` is not defined. {advice}")
        raise
    except Exception as error:
        advice = "Is it of the type that the text asks for?"
        text = f"The test could not use your answer. {advice} {type(error).__name__}: {error}"
        return Ruling(Outcome.ERROR, text)
    return Ruling(Outcome.CORRECT)


def rebuilt(failure: Failure) -> StudentError:
    """The built-in exception that a student's function raised, so that `raises(ValueError)` works.

    What is no `Exception`, such as the end of a call by `exit()` or by the time limit, is none here
    either: no `raises(Exception)` of a test takes it for what it asked for.

    >>> isinstance(rebuilt(Failure("ValueError", "ValueError", "no tokens")), ValueError)
    True
    >>> isinstance(rebuilt(Failure("SystemExit", "SystemExit", "0")), Exception)
    False
    """
    raised = getattr(builtins, failure.type, None)
    kinds = raised.__mro__ if isinstance(raised, type) else ()
    for kind in kinds:
        # some want more than a message, as UnicodeDecodeError does: then what it derives from
        with contextlib.suppress(TypeError):
            if issubclass(kind, Exception):
                mixed = type(failure.name, (StudentError, kind), {"failure": failure})
                error: StudentError = mixed(failure.message)
                return error
    error = StudentError(failure.message)
    error.failure = failure
    return error


def _of_failure(error: StudentError) -> Ruling:
    failure, function = error.failure, f"`{error.function}`"
    if failure is INTERRUPTED:
        return Ruling(Outcome.TIMED_OUT, f"{function} was still running when its time was up.")
    if failure.type == "MemoryError":
        return Ruling(Outcome.OUT_OF_MEMORY, f"{function} asked for more memory than there is.")
    if failure.type == "SystemExit":
        return Ruling(Outcome.ERROR, f"{function} called exit(); it must return instead.")
    return Ruling(Outcome.ERROR, f"{function} raised {failure.sentence}.")
