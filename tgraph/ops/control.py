"""Control flow on tensors: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`.

In eager code these call Python functions. While a function is traced they become branches and loops
of its graph, whose bodies are traced once, so that a compiled loop runs no Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import SymInt
from ..compiler.ir.shapes import are_same
from ..core import pytree
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import is_scalar
from ..core.provenance import user_site
from ..core.public import public
from ..core.tensor import Tensor
from ..core.traced_number import TracedNumber
from ..runtime.device import CPU
from ..runtime.dtypes import bool_, int64
from ..runtime.records import NamedTuple
from . import concatenation, creation
from .elementwise import where

Function = Callable[..., Any]


class _Tree(NamedTuple):
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


def _tree(value: Any, operation: str, what: str) -> _Tree:
    """The tensors of `value`; numbers become tensors, as `tensor` makes them."""
    leaves, spec = pytree.flatten(value)
    tensors = []
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            tensors.append(leaf)
        elif is_scalar(leaf) or isinstance(leaf, TracedNumber):
            tensors.append(creation.tensor(leaf))
        elif leaf is not None:
            raise TypeError(
                f"{operation}: expected tensors, numbers and None in {what}, got "
                f"{type(leaf).__name__} at {spec.paths(what)[at]}, at {user_site()}"
            )
    return _Tree(tensors, spec, tuple(leaf is None for leaf in leaves))


def _check(operation: str, found: _Tree, expected: _Tree, name: str, like: str) -> None:
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


def _shown(tree: _Tree) -> str:
    return str(tree.filled([_Text(str(each)) for each in tree.types]))  # type: ignore[misc]


class _Text(str):
    """A type, as it stands in a container that is shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _own(tree: _Tree) -> Any:
    """A result whose memory is nobody else's, as that of a compiled branch or loop is."""
    return tree.filled(_given(tree).tensors)


def _given(tree: _Tree) -> _Tree:
    """What a turn is given, as in a compiled loop: later writes to other tensors do not show."""
    return tree._replace(tensors=_copies(tree.tensors))


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [apply(p.copy, each) for each in tensors]


def _name(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__)


class _Traced:
    """A user's function as the body of a branch or loop, and the tree that it gave."""

    def __init__(self, operation: str, function: Function, name: str = "") -> None:
        self.operation, self.function = operation, function
        self.watched = function.function if isinstance(function, _Mapped) else function
        self.name = f"{name or _name(function)}(...)"
        self.tree: Any = None

    def body(self, types: Sequence[TensorType], call: Function) -> Any:
        def run(*tensors: Tensor) -> list[Tensor]:
            self.tree = _tree(call(*tensors), self.operation, self.name)
            return self.tree.tensors

        return current_context().body(run, types, [self.watched])


# --- branches ------------------------------------------------------------------------------------


@public()
def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """What `true_fn(*operands)` gives where `pred` is true, else what `false_fn` gives.

    `pred` is a bool, or a tensor with one element. Operands may be given one by one, or as one
    tuple or list of them, as PyTorch has it. Both functions may read other tensors and modules;
    what they give must be built alike, of tensors of equal types (numbers become tensors). In a
    compiled function only one of them runs, and both are traced: they must leave nothing in Python
    objects. What they write in place is written by the one that runs.

    Raises TypeError where results differ in structure or type.

    >>> import tgraph as tg
    >>> halve = tg.compile(lambda x: tg.cond(x.sum() > 3, lambda x: x / 2, lambda x: x, (x,)))
    >>> halve(tg.tensor([1.0, 4.0])), halve(tg.tensor([1.0, 1.0]))
    (tensor([0.5000, 2.0000]), tensor([1., 1.]))
    """
    operands = _unpacked(operands)
    if not isinstance(pred, Tensor):
        return _own(_tree((true_fn if pred else false_fn)(*operands), "cond", "the result"))
    return _chosen("cond", _decision(pred, "cond"), (false_fn, true_fn), operands)


@public()
def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """What `branches[index](*operands)` gives.

    `index` is an int, or an integer tensor with one element; one below 0 is the first branch, one
    too large the last. All else is as with `cond`.

    >>> import tgraph as tg
    >>> tg.switch(tg.tensor(1), [tg.sin, tg.exp, tg.neg], tg.zeros(2))
    tensor([1., 1.])
    """
    if not branches:
        raise ValueError("switch: expected at least one branch")
    operands = _unpacked(operands)
    if not isinstance(index, Tensor):
        return _own(_tree(branches[_clamped(index, branches)](*operands), "switch", "the result"))
    if index._type.dtype.kind not in ("int", "uint") or index.numel() != 1:
        raise TypeError(
            f"switch: expected an integer tensor with one element as index, got {index._type}"
        )
    return _chosen("switch", index, tuple(branches), operands)


def _unpacked(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(operands) == 1 and type(operands[0]) in (tuple, list):
        return tuple(operands[0])
    return operands


def _clamped(index: Any, branches: Sequence[Function]) -> int:
    return min(max(int(index), 0), len(branches) - 1)


def _decision(value: Any, operation: str) -> Tensor:
    """A tensor with one element, as a single bool."""
    if not isinstance(value, Tensor):
        return creation.tensor(bool(value))
    if value.numel() != 1:
        raise TypeError(f"{operation}: expected a condition with one element, got {value._type}")
    single: Tensor = value.reshape(())
    return single if single._type.dtype is bool_ else single != 0  # type: ignore[return-value]


def _chosen(
    operation: str, index: Tensor, branches: tuple[Function, ...], operands: tuple[Any, ...]
) -> Any:
    context = current_context()
    if not context.takes_bodies:
        if not context.has_value(index):
            return _selected(operation, index, branches, operands)
        chosen = branches[_clamped(index.item(), branches)]
        return _own(_tree(chosen(*operands), operation, f"{_name(chosen)}(...)"))
    traced = [_Traced(operation, each) for each in branches]
    bodies = [each.body((), lambda each=each: each.function(*operands)) for each in traced]
    first = traced[-1]
    for each in traced[:-1]:
        _check(operation, each.tree, first.tree, each.name, first.name)
    return first.tree.filled(context.branch(index.reshape(()), bodies))


def _selected(
    operation: str, index: Tensor, branches: tuple[Function, ...], operands: tuple[Any, ...]
) -> Any:
    """What all branches give, and by `where` that of one: for examples that choose differently."""
    with current_context().selecting():
        trees = [_tree(each(*operands), operation, f"{_name(each)}(...)") for each in branches]
    for tree, branch in zip(trees[:-1], branches):
        names = (f"{_name(each)}(...)" for each in (branch, branches[-1]))
        _check(operation, tree, trees[-1], *names)
    number, found = index.to(int64), trees[0].tensors
    for at, tree in enumerate(trees[1:], 1):
        found = [where(number >= at, own, other) for own, other in zip(tree.tensors, found)]
    return trees[-1].filled(found)


# --- loops ---------------------------------------------------------------------------------------


def _call(function: Function, init: Any, value: Any) -> Any:
    """A tuple or list of state comes as arguments, anything else as one."""
    return function(*value) if type(init) in (tuple, list) else function(value)


@public()
def while_loop(
    cond_fn: Function, body_fn: Function, carried_inputs: Any, max_iterations: int | None = None
) -> Any:
    """The first state, from `carried_inputs` on, for which `cond_fn` is false.

    A tuple or list is given to `cond_fn` and `body_fn` as arguments, any other state as one;
    `body_fn` gives the next state, built alike and of the same types (numbers become tensors).
    Each turn is given copies of the state; other tensors may be written in place, but not by
    `cond_fn`. `max_iterations` bounds the number of turns. For its gradients a compiled loop keeps
    the states of so many turns, or, without a bound, some of them, and computes the others again.

    Raises TypeError where the state changes its structure or types.

    >>> import tgraph as tg
    >>> @tg.compile
    ... def root(a):  # by Newton
    ...     return tg.while_loop(
    ...         lambda x: (x * x - a).abs() > 1e-5, lambda x: (x + a / x) / 2, a
    ...     )
    >>> root(tg.tensor(2.0))
    tensor(1.4142)
    """
    init = _tree(carried_inputs, "while_loop", "the first state")

    def decide(*tensors: Tensor) -> Tensor:
        with current_context().pure("the condition of while_loop"):
            found = _call(cond_fn, carried_inputs, init.filled(tensors))
        return _decision(found, "while_loop")

    traced = _Traced("while_loop", body_fn)

    def advance(*tensors: Tensor) -> Any:
        found = _call(body_fn, carried_inputs, init.filled(tensors))
        return _like(found, carried_inputs)

    context = current_context()
    if not context.takes_bodies:
        return _while(init, decide, advance, traced, max_iterations)
    if max_iterations is not None:
        return _bounded(init, cond_fn, decide, advance, traced, max_iterations)
    body = traced.body(init.types, advance)
    _check("while_loop", traced.tree, init, traced.name, "the state before it")
    condition = context.body(lambda *state: [decide(*state)], init.types, [cond_fn])
    return init.filled(context.loop(condition, body, init.tensors))


def _like(found: Any, init: Any) -> Any:
    """A list stands for a tuple, and a tuple for a list."""
    both = type(found) in (tuple, list) and type(init) in (tuple, list)
    return type(init)(found) if both else found


def _while(
    init: _Tree, decide: Function, advance: Function, traced: _Traced, bound: int | None
) -> Any:
    def following(*tensors: Tensor) -> list[Tensor]:
        found = _tree(advance(*tensors), traced.operation, traced.name)
        _check(traced.operation, found, init, traced.name, "the state before it")
        return found.tensors

    return init.filled(repeated(decide, following, init.tensors, bound))


def repeated(
    decide: Function, following: Function, tensors: Sequence[Tensor], bound: int | None
) -> list[Tensor]:
    """Turn by turn, until no example goes on; those that are done keep the state that they have."""
    context, now, turns = current_context(), _copies(tensors), 0

    def selected(*tensors: Tensor) -> list[Tensor]:
        with context.selecting():
            return following(*_copies(tensors))

    while bound is None or turns < bound:
        decision = decide(*now)
        goes_on = context.is_any(decision)
        if goes_on is None and bound is None:
            return context.loop_below(decide, selected, now)
        if goes_on is False:
            break
        if context.has_value(decision):
            after = following(*now)
        else:
            after = [where(decision, *pair) for pair in zip(selected(*now), now, strict=True)]
        now, turns = _copies(after), turns + 1
    return now


def _bounded(
    init: _Tree, cond_fn: Function, decide: Function, advance: Function, traced: _Traced, bound: int
) -> Any:
    """A loop that counts its turns; on a GPU a scan over all of them.

    There to wait for a decision takes longer than a small turn, whose result is selected or not.
    """
    context = current_context()
    if any(each._type.device is not CPU for each in init.tensors):
        return _bounded_scan(init, cond_fn, decide, advance, traced, bound)
    first = context.constant(0, int64)
    types = [first._type, *init.types]

    def goes_on(turn: Tensor, *tensors: Tensor) -> list[Tensor]:
        return [(turn < bound) & decide(*tensors)]

    turn = _counted(init, traced, lambda turn, *tensors: advance(*tensors))
    body = context.body(turn, types, [traced.watched])
    condition = context.body(goes_on, types, [cond_fn])
    return init.filled(context.loop(condition, body, [first, *init.tensors], bound)[1:])


def _bounded_scan(
    init: _Tree, cond_fn: Function, decide: Function, advance: Function, traced: _Traced, bound: int
) -> Any:
    """Turns behind the last leave the state as it is."""
    context = current_context()

    def turn(*tensors: Tensor) -> list[Tensor]:
        body = traced.body((), lambda: advance(*tensors))
        _check("while_loop", traced.tree, init, traced.name, "the state before it")
        stays = context.body(lambda: list(tensors), (), ())
        return context.branch(decide(*tensors), [stays, body])

    step = context.body(turn, init.types, [cond_fn])
    return init.filled(context.scan(step, init.tensors, [], bound, False))


def _counted(init: _Tree, traced: _Traced, advance: Function) -> Function:
    """A turn, and the number of the next one."""

    def step(turn: Tensor, *tensors: Tensor) -> list[Tensor]:
        made = _tree(advance(turn, *tensors), traced.operation, traced.name)
        _check(traced.operation, made, init, traced.name, "the state before it")
        return [turn + 1, *made.tensors]

    return step


@public()
def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """The last of the states that `body_fun(i, state)` gives for `i` from `lower` below `upper`.

    `i` is a tensor of int64. The state may be any container of tensors and numbers, which become
    tensors; it keeps its structure and types. For gradients a compiled loop keeps the states of all
    turns; with bounds that are tensors some of them, as `while_loop` does.

    >>> import tgraph as tg
    >>> tg.fori_loop(1, 5, lambda i, total: total * i, 1)
    tensor(24)
    """
    init = _tree(init_val, "fori_loop", "the first state")
    traced = _Traced("fori_loop", body_fun)
    context = current_context()

    def advance(turn: Tensor, *tensors: Tensor) -> Any:
        return body_fun(turn, init.filled(tensors))

    if isinstance(lower, Tensor) or isinstance(upper, Tensor):
        return _between(lower, upper, init, traced, advance)
    lower, upper = _whole(lower), _whole(upper)
    if not context.takes_bodies:
        now = _given(init)
        for at in range(lower, upper):
            made = advance(creation.tensor(at), *now.tensors)
            now = _given(_tree(made, "fori_loop", traced.name))
            _check("fori_loop", now, init, traced.name, "the state before it")
        return now.filled(now.tensors)
    if upper <= lower:
        return _own(init)

    first = context.constant(lower, int64)
    body = context.body(_counted(init, traced, advance), [first._type, *init.types], [body_fun])
    last = context.scan(body, [first, *init.tensors], [], upper - lower, False)
    return init.filled(last[1:])


def _whole(bound: Any) -> Any:
    return bound if isinstance(bound, SymInt) else operator.index(bound)


def _between(lower: Any, upper: Any, init: _Tree, traced: _Traced, advance: Function) -> Any:
    first, end = (
        each.reshape(()).to(int64) if isinstance(each, Tensor) else creation.tensor(_whole(each))
        for each in (lower, upper)
    )
    context = current_context()
    if not context.takes_bodies and context.has_value(first) and context.has_value(end):
        return fori_loop(first.item(), end.item(), traced.function, init.filled(init.tensors))

    step = _counted(init, traced, advance)
    if not context.takes_bodies:
        last = repeated(lambda turn, *state: turn < end, step, [first, *init.tensors], None)
        return _own(init._replace(tensors=last[1:]))
    types = [first._type, *init.types]
    body = context.body(step, types, [traced.function])
    condition = context.body(lambda turn, *state: [turn < end], types, ())
    return init.filled(context.loop(condition, body, [first, *init.tensors])[1:])


# --- scans ---------------------------------------------------------------------------------------


@public()
def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """`(state, ys)`: the last state and the stacked results of `f(state, x)` over the rows of `xs`.

    `f` gives the next state, built like `init` and of the same types, and a result. `xs` and
    results are any containers of tensors; rows are taken along the first dimension, from the last
    on with `reverse` (row `i` of `ys` always belongs to row `i` of `xs`). Without `xs` there are
    `length` turns, for which `x` is None. Gradients keep the states that turns begin with.

    Raises TypeError where the state changes its structure or types, ValueError where lengths
    differ. Where there are none, `f` is traced, and must be a function that can be.

    >>> import tgraph as tg
    >>> tg.scan(lambda total, x: (total + x, total * x), 0.0, tg.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    return _scanned("scan", f, init, xs, length, reverse)


def _scanned(
    operation: str, f: Function, init: Any, xs: Any, length: int | None, reverse: bool
) -> tuple[Any, Any]:
    start = _tree(init, operation, "the first state")
    over = _tree(xs, operation, "xs")
    length = _length(operation, over, length)
    traced = _Traced(operation, f)
    context, count = current_context(), len(start.tensors)

    def turn(tensors: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[_Tree, _Tree]:
        found = f(start.filled(tensors), over.filled(rows))
        if type(found) is not tuple or len(found) != 2:
            raise TypeError(
                f"{operation}: {traced.name} must give a pair of the next state and a result, "
                f"got {type(found).__name__}, at {user_site()}"
            )
        after = _tree(found[0], operation, f"{traced.name}[0]")
        _check(operation, after, start, f"{traced.name}[0]", "the state before it")
        return after, _tree(found[1], operation, f"{traced.name}[1]")

    if not context.takes_bodies and length > 0:
        return _turns(operation, turn, start, over, length, reverse)
    ys: list[_Tree] = []

    def step(*tensors: Tensor) -> list[Tensor]:
        after, result = turn(tensors[:count], tensors[count:])
        ys.append(result)
        return [*after.tensors, *result.tensors]

    types = [*start.types, *(_row_type(each) for each in over.types)]
    if length < 1:
        _rehearse(step, types, traced.watched)
        return _own(start), _no_rows(ys[-1])
    body = context.body(step, types, [traced.watched])
    found = context.scan(body, start.tensors, over.tensors, length, reverse)
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


def _no_rows(row: _Tree) -> Any:
    """The stacked results of no turns, each of which would give `row`."""
    return row.filled(
        [
            creation.zeros((0, *each.shape), dtype=each.dtype, device=each.device)
            for each in row.types
        ]
    )


def _row_type(type_: TensorType) -> TensorType:
    return type_.with_shape(type_.shape[1:])


def _length(operation: str, over: _Tree, length: Any) -> Any:
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
    operation: str, turn: Function, start: _Tree, over: _Tree, length: int, reverse: bool
) -> tuple[Any, Any]:
    now, over, results = _given(start), _given(over), []
    for at in reversed(range(length)) if reverse else range(length):
        made, result = turn(now.tensors, [each[at] for each in over.tensors])
        now = _given(made)
        results.append(_given(result))
    for each in results[1:]:
        _check(operation, each, results[0], "a result", "the first turn")
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
        self.function = function
        self.__name__ = _name(function)

    def __call__(self, state: Any, row: Any) -> Any:
        return state, self.function(row)
