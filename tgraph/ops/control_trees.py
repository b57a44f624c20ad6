"""What the operations of control flow have in common: containers of tensors that a body takes and
gives, and bodies of users' functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same
from ..core import pytree
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import is_scalar
from ..core.provenance import user_site
from ..core.tensor import Tensor
from ..core.traced_number import TracedNumber
from ..runtime.dtypes import bool_
from ..runtime.records import NamedTuple
from . import from_data

Function = Callable[..., Any]


class Tree(NamedTuple):
    """A container of tensors: its leaves but None, and how to put it together."""

    tensors: list[Tensor]
    spec: pytree.TreeSpec
    holes: tuple[bool, ...]

    def filled(self, tensors: Sequence[Tensor]) -> Any:
        left = iter(tensors)
        return self.spec.unflatten(None if hole else next(left) for hole in self.holes)

    def paths(self, root: str) -> list[str]:
        found = self.spec.paths(root)
        return [each for each, hole in zip(found, self.holes, strict=True) if not hole]

    @property
    def structure(self) -> Any:
        return self.spec, self.holes

    @property
    def types(self) -> list[TensorType]:
        return [each._type for each in self.tensors]


def tree_of(value: Any, operation: str, what: str) -> Tree:
    """The tensors of `value`; numbers become tensors, as `tensor` makes them."""
    leaves, spec = pytree.flatten(value)
    tensors = []
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            tensors.append(leaf)
        elif is_scalar(leaf) or isinstance(leaf, TracedNumber):
            tensors.append(from_data.tensor(leaf))
        elif leaf is not None:
            raise TypeError(
                f"{operation}: expected tensors, numbers and None in {what}, got "
                f"{type(leaf).__name__} at {spec.paths(what)[at]}, at {user_site()}"
            )
    return Tree(tensors, spec, tuple(leaf is None for leaf in leaves))


def check_alike(operation: str, found: Tree, expected: Tree, name: str, like: str) -> None:
    """TypeError where structures or types differ, which names the leaf."""
    if found.structure != expected.structure:
        raise TypeError(
            f"{operation}: {name} gives {_shown(found)}, but {like} is {_shown(expected)}, at "
            f"{user_site()}; both must be built alike"
        )
    for path, one, other in zip(found.paths(name), found.types, expected.types, strict=True):
        same = one.dtype is other.dtype and one.device is other.device
        if not (same and are_same(one.shape, other.shape)):
            raise TypeError(
                f"{operation}: {path} is of type {one}, but {other} in {like}, at {user_site()}; "
                "types must not change: convert one of them, such as with .to() or expand()"
            )


def _shown(tree: Tree) -> str:
    return str(tree.filled([_Text(str(each)) for each in tree.types]))  # type: ignore[misc]


class _Text(str):
    """A type, as it stands in a container that is shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def own(tree: Tree) -> Any:
    """A result whose memory is nobody else's, as that of a compiled branch or loop is."""
    return tree.filled(given(tree).tensors)


def given(tree: Tree) -> Tree:
    """What a turn is given, as in a compiled loop: later writes to other tensors do not show."""
    return tree._replace(tensors=copies(tree.tensors))


def copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [apply(p.copy, each) for each in tensors]


def name_of(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__)


class TracedBody:
    """A user's function as the body of a branch or loop, and the tree that it gave."""

    def __init__(self, operation: str, function: Function, name: str = "") -> None:
        self.operation, self.function = operation, function
        self.watched = getattr(function, "function_of_rows", function)
        self.name = f"{name or name_of(function)}(...)"
        self.tree: Any = None

    def body(self, types: Sequence[TensorType], call: Function) -> Any:
        def run(*tensors: Tensor) -> list[Tensor]:
            self.tree = tree_of(call(*tensors), self.operation, self.name)
            return self.tree.tensors

        return current_context().body(run, types, [self.watched])


def decision_of(value: Any, operation: str) -> Tensor:
    """A tensor with one element, as a single bool."""
    if not isinstance(value, Tensor):
        return from_data.tensor(bool(value))
    if value.numel() != 1:
        raise TypeError(f"{operation}: expected a condition with one element, got {value._type}")
    single: Tensor = value.reshape(())
    return single if single._type.dtype is bool_ else single != 0  # type: ignore[return-value]


def check_checkpoints(operation: str, checkpoints: int | None) -> None:
    """ValueError where gradients could keep no state."""
    if checkpoints is not None and operator.index(checkpoints) < 1:
        raise ValueError(
            f"{operation}: expected at least one checkpoint, got {checkpoints}, at {user_site()}"
        )
