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

from autograde.kernel import Died, Failure, Kernel
from autograde.lint import free_names
from autograde.verdict import Outcome
from course_lib.check import Observation, Remote, Wrong
from course_lib.plain import Opaque


class StudentError(Exception):
    """Marks an exception that the student's code raised; mixed into the built-in one."""

    failure: Failure


@dataclass(frozen=True)
class Ruling:
    """How one test cell came out."""

    outcome: Outcome
    message: str = ""


class RemoteFunction(Remote):
    """A function of the student's: a call runs over there, plain data comes back."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self._kernel, self._name = kernel, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._results([(args, kwargs)])[0]

    def each(self, inputs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`course_lib.check.each`, in one round trip."""
        return self._results([(args, {}) for args in inputs])

    def observe(self, *args: Any) -> Observation:
        """`course_lib.check.observe`, over there."""
        seen = self._results([(args, {})], observe=True)[0]
        if type(seen) is not tuple or len(seen) != 4 or type(seen[1]) is not tuple:
            raise Died("crashed", "the process sent no observation")
        return Observation(seen[0], seen[1], str(seen[2]), seen[3] is not False)

    def _results(self, calls: Sequence[tuple[Any, Any]], observe: bool = False) -> list[Any]:
        results = self._kernel.call(self._name, calls, observe)
        for result in results:
            if isinstance(result, Failure):
                raise rebuilt(result)
        if len(results) != len(calls):
            raise Died("crashed", "the process did not answer every call")
        return results


def judge(source: str, kernel: Kernel) -> Ruling:
    """Run a test cell against a student's process. Raises `Died` if that process ends over it."""
    names = sorted(free_names(source) - set(dir(builtins)))
    namespace: dict[str, Any] = {"__name__": "test"}
    for name, value in kernel.look_up(names).items():
        if isinstance(value, Opaque) and value.callable:
            value = RemoteFunction(kernel, name)
        namespace[name] = value
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(source, "<test>", "exec"), namespace)
    except Died:
        raise
    except StudentError as error:
        return _of_failure(error.failure)
    except Wrong as error:
        return Ruling(Outcome.WRONG, str(error))
    except AssertionError as error:
        return Ruling(Outcome.WRONG, str(error) or "This is not right.")
    except NameError as error:
        if error.name in names:
            return Ruling(Outcome.ERROR, f"`{error.name}` is not defined.")
        raise
    except Exception as error:  # the test could not use the answer
        return Ruling(Outcome.ERROR, f"Your answer could not be used: {error}.")
    return Ruling(Outcome.CORRECT)


def rebuilt(failure: Failure) -> Exception:
    """The built-in exception that a student's function raised, so that `raises(ValueError)` works.

    >>> isinstance(rebuilt(Failure("ValueError", "ValueError", "no tokens")), ValueError)
    True
    """
    base = getattr(builtins, failure.type, None)
    if not (isinstance(base, type) and issubclass(base, Exception)):
        base = RuntimeError  # SystemExit and its kind must not end the judge
    try:
        mixed = type(failure.name, (StudentError, base), {"failure": failure})
        error = mixed(failure.message)
    except TypeError:  # UnicodeDecodeError and others want more than a message
        error = type(failure.name, (StudentError, RuntimeError), {"failure": failure})(
            failure.message
        )
    assert isinstance(error, Exception)
    return error


def _of_failure(failure: Failure) -> Ruling:
    if failure.type == "TimeoutError" or failure.type == "KeyboardInterrupt":
        return Ruling(Outcome.TIMED_OUT, "The time limit was reached while your function ran.")
    if failure.type == "MemoryError":
        return Ruling(Outcome.OUT_OF_MEMORY, "Your function asked for more memory than there is.")
    if failure.type in ("SystemExit", "GeneratorExit"):
        return Ruling(Outcome.ERROR, "Your function called exit(); it must return instead.")
    return Ruling(Outcome.ERROR, failure.sentence)
