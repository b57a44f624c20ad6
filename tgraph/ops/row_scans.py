"""Loops over the rows of tensors: `scan`, `map`; compiled, they are loops of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir.shapes import are_same
from ..core.eager_context import current_context
from ..core.provenance import user_site
from ..core.public import public
from ..core.tensor import Tensor
from . import concatenation, creation
from .control_trees import (
    Function,
    TracedBody,
    Tree,
    check_alike,
    check_checkpoints,
    given,
    name_of,
    own,
    tree_of,
)


@public()
def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
    checkpoints: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`(state, ys)`: the last state and the stacked results of `f(state, x)` over the rows of `xs`.

    `f` gives the next state, built like `init` and of the same types, and a result. `xs` and
    results are any containers of tensors; rows are taken along the first dimension, from the last
    on with `reverse` (row `i` of `ys` always belongs to row `i` of `xs`). Without `xs` there are
    `length` turns, for which `x` is None. For gradients a compiled scan keeps the state that each
    turn begins with and its matrix products, or, with `checkpoints`, so many states: what lies
    between two is computed again, and kept as long as the gradient goes through it. Eager code
    keeps everything.

    Raises TypeError where the state changes its structure or types, ValueError where lengths
    differ. Where there are none, `f` is traced, and must be a function that can be.

    >>> import tgraph as tg
    >>> tg.scan(lambda total, x: (total + x, total * x), 0.0, tg.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    return _scanned("scan", f, init, xs, length, reverse, checkpoints)


def _scanned(
    operation: str, f: Function, init: Any, xs: Any, length: int | None, reverse: bool,
    checkpoints: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    start = tree_of(init, operation, "the first state")
    check_checkpoints(operation, checkpoints)
    over = tree_of(xs, operation, "xs")
    length = _length(operation, over, length)
    traced = TracedBody(operation, f)
    context, count = current_context(), len(start.tensors)

    def turn(tensors: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[Tree, Tree]:
        found = f(start.filled(tensors), over.filled(rows))
        if type(found) is not tuple or len(found) != 2:
            raise TypeError(
                f"{operation}: {traced.name} must give a pair of the next state and a result, "
                f"got {type(found).__name__}, at {user_site()}"
            )
        after = tree_of(found[0], operation, f"{traced.name}[0]")
        check_alike(operation, after, start, f"{traced.name}[0]", "the state before it")
        return after, tree_of(found[1], operation, f"{traced.name}[1]")

    if not context.takes_bodies and length > 0:
        return _turns(operation, turn, start, over, length, reverse)
    ys: list[Tree] = []

    def step(*tensors: Tensor) -> list[Tensor]:
        after, result = turn(tensors[:count], tensors[count:])
        ys.append(result)
        return [*after.tensors, *result.tensors]

    types = [*start.types, *(_row_type(each) for each in over.types)]
    if length < 1:
        _rehearse(step, types, traced.watched)
        return own(start), _no_rows(ys[-1])
    body = context.body(step, types, [traced.watched])
    found = context.scan(body, start.tensors, over.tensors, length, reverse, checkpoints)
    return start.filled(found[:count]), ys[0].filled(found[count:])


def _rehearse(step: Function, types: Sequence[TensorType], watched: Function) -> None:
    """Let a body tell what it would give."""
    context = current_context()
    if context.takes_bodies:
        context.body(step, types, [watched])
        return
    # Nothing else in eager mode traces: imported where it is used, as it takes long.
    from ..tracing.rehearsal import rehearse

    rehearse(step, types, [watched])


def _no_rows(row: Tree) -> Any:
    """The stacked results of no turns, each of which would give `row`."""
    return row.filled(
        [
            creation.zeros((0, *each.shape), dtype=each.dtype, device=each.device)
            for each in row.types
        ]
    )


def _row_type(type_: TensorType) -> TensorType:
    return type_.with_shape(type_.shape[1:])


def _length(operation: str, over: Tree, length: Any) -> Any:
    """How many turns there are: the rows of all tensors, or the number that is given."""
    for path, each in zip(over.paths("xs"), over.types, strict=True):
        if not each.shape:
            raise ValueError(f"{operation}: {path} has no dimensions to go over, at {user_site()}")
        if length is not None and not are_same((length,), each.shape[:1]):
            raise ValueError(
                f"{operation}: {path} has {each.shape[0]} rows, expected {length}, at {user_site()}"
            )
        length = each.shape[0]
    if length is None:
        raise ValueError(f"{operation}: expected xs with tensors, or length, at {user_site()}")
    if length < 0:
        raise ValueError(f"{operation}: expected no negative length, got {length}")
    return length


def _turns(
    operation: str, turn: Function, start: Tree, over: Tree, length: int, reverse: bool
) -> tuple[Any, Any]:
    now, over, results = given(start), given(over), []
    for at in reversed(range(length)) if reverse else range(length):
        made, result = turn(now.tensors, [each[at] for each in over.tensors])
        now = given(made)
        results.append(given(result))
    for each in results[1:]:
        check_alike(operation, each, results[0], "a result", "the first turn")
    if reverse:
        results.reverse()
    columns = zip(*(each.tensors for each in results), strict=True)
    return now.filled(now.tensors), results[0].filled(
        [concatenation.stack(each) for each in columns]
    )


@public(name="map")
def map_(f: Function, xs: Any) -> Any:
    """The stacked results of `f(x)` for the rows `x` of `xs`, one after the other.

    `xs` and results are any containers of tensors; there may be no rows. `scan` tells more.

    >>> import tgraph as tg
    >>> tg.map(lambda row: row.sum(), tg.ones(3, 2))
    tensor([2., 2., 2.])
    """
    return _scanned("map", _Mapped(f), (), xs, None, False)[1]


class _Mapped:
    """A function of a row as one of a state, of which there is none, and a row."""

    def __init__(self, function: Function) -> None:
        self.function_of_rows = function
        self.__name__ = name_of(function)

    def __call__(self, state: Any, row: Any) -> Any:
        return state, self.function_of_rows(row)
