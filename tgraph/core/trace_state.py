"""What a trace keeps note of: its inputs, and the state of the tensors outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Node, TensorType
from ..runtime.dtypes import float64
from ..runtime.records import record
from .provenance import user_site
from .record import Record
from .tensor import Storage, Tensor, View, intern_type, wrap


class TraceError(RuntimeError):
    """Something that a traced function cannot do. Names the user's line and the way out."""


class Rewrite(BaseException):
    """Raised inside a trace that has to begin anew, with functions of the user's rewritten.

    `rewritings` knows which. No `Exception`, so that a user's `except Exception` does not swallow
    it.
    """

    def __init__(self, rewritings: Any) -> None:
        super().__init__(rewritings)
        self.rewritings = rewritings


class TraceAgain(BaseException):
    """Raised inside a trace that has to begin anew: state that it read is no longer in use.

    No `Exception`, as Rewrite is none. `check` is for those who trace again: where the trace put
    that state back, as the function reads it, too, it would come again and again.
    """

    LIMIT = 50

    def check(self, number: int) -> None:
        """Raise TraceError if this is one too many."""
        if number >= self.LIMIT:
            raise TraceError(
                "the function reads the state of an optimizer of which it steps some parameters "
                "together, and then without others, for the first time: call it once uncompiled"
            ) from None


class RecompileWarning(UserWarning):
    """A function is compiled again and again."""


# --- where the values of inputs come from --------------------------------------------------------


@record()
class Source:
    """Where an input of a traced graph is read at each call.

    `kind` is one of: "argument" (leaf number `key` of the arguments), "captured" (the tensor
    `key`), "grad" (the gradient of the source `key`), "number" (the Python number that leaf
    number `key` is, or that the expression `key` gives), "size" (the open size `key`, until it is
    known), "selected" (the positions along an axis of what a node of the trace selects, `key` is
    both), "host" (the number that calling `key` gives), "random" (seed and counter of the
    generator `key`).
    """

    kind: str
    key: Any


class HostRead:
    """A function that gives a number or tensor at each call. The plan's first call gets what it
    gave to the trace, so that it is called as often as in eager code."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.first = function()
        self._waiting = [self.first]
        held = self.first
        self.expected = held._type if isinstance(held, Tensor) else type(held)

    def __call__(self) -> Any:
        value = self._waiting.pop() if self._waiting else self.function()
        kind = value._type if isinstance(value, Tensor) else type(value)
        if kind != self.expected:
            raise TypeError(
                f"tg.host(): the function gave {_named(kind)}, and {_named(self.expected)} when "
                "the compiled function was traced; make it give the same type each time"
            )
        return value._value if isinstance(value, Tensor) else value


def _named(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else f"a tensor of type {kind}"


@record(eq=False, frozen=False)
class TraceInput:
    """An input of the graph: its node, and the handle that stands for it in the trace."""

    source: Source
    node: Node
    handle: Tensor | None = None
    # What gradients with respect to this input are asked of; None where it needs none.
    differentiable: Tensor | None = None
    # History of the handle as the trace began with it.
    record: Any = None
    requires_grad: bool = False
    # A view: the value comes from its base, only gradients belong to the input.
    shown: bool = False


_OUTSIDE = wrap(np.zeros(()), intern_type((), float64))


class Boundary(Record):
    """The history of a tensor that was computed before the traced function was called.

    In the body of a branch or loop it is that of any tensor of the outside, leaves too.
    """

    __slots__ = ("is_leaf", "name_of_input")

    def __init__(self, type_: TensorType, name: str, is_leaf: bool = False) -> None:
        super().__init__(((_OUTSIDE, 0),), (type_,), user_site())
        self.name_of_input = name
        self.is_leaf = is_leaf

    def name(self) -> str:
        return "OutsideOfTheCompiledFunction"

    def cotangents(self, incoming: Any, wanted: Sequence[bool]) -> list[Tensor | None]:
        raise TraceError(
            f"backward() in a compiled function, at {user_site()}, reached '{self.name_of_input}', "
            "which was computed outside of it. Compute it inside the compiled function, detach() "
            "it, or call backward() outside."
        )


def is_leaf(tensor: Tensor) -> bool:
    """Whether gradients of a tensor end at itself, also where it is one of a body's outside."""
    history = tensor._record
    return history is None or (isinstance(history, Boundary) and history.is_leaf)


# --- the state of tensors of the outside ---------------------------------------------------------


@record(eq=False, frozen=False)
class HandleState:
    """What a trace may change about a tensor of the outside."""

    tensor: Tensor
    record: Any
    index: int
    requires_grad: bool
    grad: Tensor | None
    hooks: Any  # the dictionary itself
    hooks_held: Any  # and what it held
    storage: Storage | None
    version: int
    changes: int
    written: Any
    view: View | None
    seen: int  # the changes that a view has seen

    @staticmethod
    def of(tensor: Tensor) -> HandleState:
        storage, view, hooks = tensor._storage, tensor._view, tensor._hooks
        return HandleState(
            tensor,
            tensor._record,
            tensor._index,
            tensor._requires_grad,
            tensor._grad,
            hooks,
            None if hooks is None else dict(hooks),
            storage,
            0 if storage is None else storage.version,
            0 if storage is None else storage.changes,
            None if storage is None else storage.written,
            view,
            0 if view is None else view.changes,
        )

    @property
    def is_written(self) -> bool:
        """Whether the memory was written, or the flag changed, since."""
        storage = self.tensor._storage
        changes = 0 if storage is None else storage.changes
        return changes != self.changes or self.tensor._requires_grad is not self.requires_grad

    @property
    def is_current(self) -> bool:
        """Whether the tensor is in this very state."""
        tensor, storage, view = self.tensor, self.tensor._storage, self.tensor._view
        return (
            tensor._record is self.record
            and tensor._index == self.index
            and tensor._requires_grad is self.requires_grad
            and tensor._grad is self.grad
            and tensor._hooks is self.hooks
            and (self.hooks is None or self.hooks == self.hooks_held)
            and storage is self.storage
            and (
                storage is None
                or (storage.version, storage.changes) == (self.version, self.changes)
            )
            and view is self.view
            and (view is None or view.changes == self.seen)
        )

    def restore(self, grad: bool = True) -> None:
        tensor, storage = self.tensor, self.storage
        tensor._record, tensor._index = self.record, self.index
        tensor._requires_grad = self.requires_grad
        tensor._storage = storage
        tensor._hooks = self.hooks
        if self.hooks is not None and self.hooks != self.hooks_held:
            self.hooks.clear()
            self.hooks.update(self.hooks_held)
        if grad:
            tensor._grad = self.grad
        if storage is not None:
            storage.version, storage.changes = self.version, self.changes
            storage.written = self.written
        tensor._view = self.view
        if self.view is not None:
            self.view.changes = self.seen


@record(eq=False, frozen=False)
class GeneratorUse:
    """A random generator that a trace draws from.

    `key` and `counter` are values of the graph, the counter that of the next draw. `calls` is how
    many there were: by so many the generator itself goes on behind each call.
    """

    generator: Any
    key: Tensor
    counter: Tensor
    calls: int = 0
    seed: int | None = None  # where it was seeded in the trace
    counts: bool = False  # only the counter tells how many: there were some in branches or loops


@record(eq=False, frozen=False)
class GradAccess:
    """How the gradient of one tensor of the outside was used: read as it came, or replaced."""

    read: bool = False
    was_none: bool = False
    written: bool = False
