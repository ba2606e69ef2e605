"""Functions of a test cell in a student's hands: what they do can be asked, what they are cannot.

A test passes functions of its own to a student's function, as a model to be examined. Sent there as
code, they could be read: by their names and closures a wrong one is told from a right one without
calling either. So only a number is sent. A call comes back here as plain data and is run in a
further process, confined as the student's is, which no student code ever enters.
"""

import io
from collections.abc import Sequence
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

import cloudpickle
import torch

from autograde import wire
from autograde.limits import Limits

if TYPE_CHECKING:
    from autograde.kernel import Kernel, Nursery

TEST = "test"  # the `__module__` of what a test cell defines


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it comes without types
    """Pickles of a tensor what it shows: a view would bring along all that it is a part of."""

    def reducer_override(self, obj: Any) -> Any:
        plain = type(obj) is torch.Tensor and obj.layout == torch.strided
        if plain and obj.untyped_storage().nbytes() > obj.nbytes:
            own = obj.detach().clone().requires_grad_(obj.requires_grad)
            return own.__reduce_ex__(2)
        return super().reducer_override(obj)


def pickled(value: Any) -> bytes:
    """A value as bytes, code included."""
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


class _LendingPickler(_Pickler):
    """Leaves a number where a function of the test stands."""

    def __init__(self, file: io.BytesIO, lent: list[FunctionType]) -> None:
        super().__init__(file)
        self.lent = lent

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is not FunctionType or obj.__module__ != TEST:
            return None
        for number, function in enumerate(self.lent):
            if function is obj:
                return number
        self.lent.append(obj)
        return len(self.lent) - 1


class Lending:
    """What one call lends; a context manager, which ends the process that the functions run in."""

    def __init__(self, nursery: "Nursery", limits: Limits) -> None:
        self.nursery, self.limits = nursery, limits
        self.functions: list[FunctionType] = []
        self.kernel: Kernel | None = None

    def pickled(self, calls: Sequence[Any]) -> bytes:
        """The arguments of calls as bytes for the student's process."""
        file = io.BytesIO()
        _LendingPickler(file, self.functions).dump(list(calls))
        return file.getvalue()

    def answer(self, message: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        """The reply to `{"ask": number, "with": tree}`: a value or an error.

        Raises `wire.Malformed` for what no honest student's process asks.
        """
        number, reply = message.get("ask"), bytearray()
        if type(number) is not int or not 0 <= number < len(self.functions):
            raise wire.Malformed("a question about a function that was not lent")
        match wire.decode(message.get("with"), blob):
            case [tuple(args), dict(kwargs)] if all(type(key) is str for key in kwargs):
                pass
            case _:
                raise wire.Malformed("no arguments came")
        try:
            result = self._run(number, args, kwargs)
            return {"value": wire.encode(result, reply)}, bytes(reply)
        except (RuntimeError, ValueError) as error:
            return {"error": str(error)}, b""

    def _run(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from autograde.kernel import Died, Failure

        try:
            if self.kernel is None:
                self.kernel = self.nursery.fork(self.limits)
                self.kernel.define({f"lent_{n}": f for n, f in enumerate(self.functions)})
            (result,) = self.kernel.call(f"lent_{number}", [(args, kwargs)], observe=False)
        except Died as death:
            raise RuntimeError(f"it did not return: {death}") from None
        if isinstance(result, Failure):
            raise RuntimeError(result.sentence)
        return result

    def __enter__(self) -> "Lending":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.kernel is not None:
            self.kernel.close()
