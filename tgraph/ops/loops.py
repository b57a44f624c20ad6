"""Loops on tensors that a condition or numbers end: `while_loop`, `fori_loop`.

In eager code they call Python functions. While a function is traced they become loops of its graph,
whose bodies are traced once, so that a compiled loop runs no Python.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..compiler.ir.dim import SymInt
from ..core.eager_context import current_context
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from . import from_data
from .control_trees import (
    Function,
    TracedBody,
    Tree,
    check_alike,
    check_checkpoints,
    copies,
    decision_of,
    given,
    own,
    tree_of,
)
from .elementwise import where


def _call(function: Function, init: Any, value: Any) -> Any:
    """A tuple or list of state comes as arguments, anything else as one."""
    return function(*value) if type(init) in (tuple, list) else function(value)


@public()
def while_loop(
    cond_fn: Function, body_fn: Function, carried_inputs: Any, max_iterations: int | None = None,
    checkpoints: int | None = None,
) -> Any:  # fmt: skip
    """The first state, from `carried_inputs` on, for which `cond_fn` is false.

    A tuple or list is given to `cond_fn` and `body_fn` as arguments, any other state as one;
    `body_fn` gives the next state, built alike and of the same types (numbers become tensors).
    Each turn is given copies of the state; other tensors may be written in place, but not by
    `cond_fn`. `max_iterations` bounds the number of turns.

    For its gradients a compiled loop keeps the states of so many turns; without a bound 32 of them,
    or with `checkpoints` that many. The others are computed again, each once, or more often where
    there are more turns than the square of `checkpoints`. Eager code keeps everything.

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
    init = tree_of(carried_inputs, "while_loop", "the first state")
    check_checkpoints("while_loop", checkpoints)

    def decide(*tensors: Tensor) -> Tensor:
        with current_context().pure("the condition of while_loop"):
            found = _call(cond_fn, carried_inputs, init.filled(tensors))
        return decision_of(found, "while_loop")

    traced = TracedBody("while_loop", body_fn)

    def advance(*tensors: Tensor) -> Any:
        found = _call(body_fn, carried_inputs, init.filled(tensors))
        return _like(found, carried_inputs)

    context = current_context()
    if not context.takes_bodies:
        return _while(init, decide, advance, traced, max_iterations, checkpoints)
    if max_iterations is not None:
        return _bounded(init, cond_fn, decide, advance, traced, max_iterations, checkpoints)
    body = traced.body(init.types, advance)
    check_alike("while_loop", traced.tree, init, traced.name, "the state before it")
    condition = context.body(lambda *state: [decide(*state)], init.types, [cond_fn])
    return init.filled(context.loop(condition, body, init.tensors, None, checkpoints))


def _like(found: Any, init: Any) -> Any:
    """A list stands for a tuple, and a tuple for a list."""
    both = type(found) in (tuple, list) and type(init) in (tuple, list)
    return type(init)(found) if both else found


def _while(
    init: Tree, decide: Function, advance: Function, traced: TracedBody, bound: int | None,
    checkpoints: int | None,
) -> Any:  # fmt: skip
    def following(*tensors: Tensor) -> list[Tensor]:
        found = tree_of(advance(*tensors), traced.operation, traced.name)
        check_alike(traced.operation, found, init, traced.name, "the state before it")
        return found.tensors

    found = repeated(decide, following, init.tensors, bound, [traced.watched], checkpoints)
    return init.filled(found)


def repeated(
    decide: Function, following: Function, tensors: Sequence[Tensor], bound: int | None,
    watched: Sequence[Function] = (), checkpoints: int | None = None,
) -> list[Tensor]:  # fmt: skip
    """Turn by turn, until no example goes on; those that are done keep the state that they have."""
    context, now, turns = current_context(), copies(tensors), 0

    def selected(*tensors: Tensor) -> list[Tensor]:
        with context.selecting():
            return following(*copies(tensors))

    while bound is None or turns < bound:
        decision = decide(*now)
        goes_on = context.is_any(decision)
        if goes_on is None and bound is None:
            return context.loop_below(decide, following, now, watched, checkpoints)
        if goes_on is False:
            break
        if context.has_value(decision):
            after = following(*now)
        else:
            after = [where(decision, *pair) for pair in zip(selected(*now), now, strict=True)]
        now, turns = copies(after), turns + 1
    return now


def _bounded(
    init: Tree, cond_fn: Function, decide: Function, advance: Function, traced: TracedBody,
    bound: int, checkpoints: int | None,
) -> Any:  # fmt: skip
    """A loop that counts its turns; on a GPU a scan over all of them.

    There to wait for a decision takes longer than a small turn, whose result is selected or not.
    """
    context = current_context()
    is_here = all(each._type.device.is_host for each in init.tensors)
    if not is_here and checkpoints is None:
        return _bounded_scan(init, cond_fn, decide, advance, traced, bound)
    first = context.constant(0, int64)
    types = [first._type, *init.types]

    def goes_on(turn: Tensor, *tensors: Tensor) -> list[Tensor]:
        return [(turn < bound) & decide(*tensors)]

    turn = _counted(init, traced, lambda turn, *tensors: advance(*tensors))
    body = context.body(turn, types, [traced.watched])
    condition = context.body(goes_on, types, [cond_fn])
    begin = [first, *init.tensors]
    return init.filled(context.loop(condition, body, begin, bound, checkpoints)[1:])


def _bounded_scan(
    init: Tree, cond_fn: Function, decide: Function, advance: Function, traced: TracedBody,
    bound: int,
) -> Any:  # fmt: skip
    """Turns behind the last leave the state as it is."""
    context = current_context()

    def turn(*tensors: Tensor) -> list[Tensor]:
        body = traced.body((), lambda: advance(*tensors))
        check_alike("while_loop", traced.tree, init, traced.name, "the state before it")
        stays = context.body(lambda: list(tensors), (), ())
        return context.branch(decide(*tensors), [stays, body])

    step = context.body(turn, init.types, [cond_fn])
    return init.filled(context.scan(step, init.tensors, [], bound, False))


def _counted(init: Tree, traced: TracedBody, advance: Function) -> Function:
    """A turn, and the number of the next one."""

    def step(turn: Tensor, *tensors: Tensor) -> list[Tensor]:
        made = tree_of(advance(turn, *tensors), traced.operation, traced.name)
        check_alike(traced.operation, made, init, traced.name, "the state before it")
        return [turn + 1, *made.tensors]

    return step


@public()
def fori_loop(
    lower: Any, upper: Any, body_fun: Function, init_val: Any, checkpoints: int | None = None
) -> Any:
    """The last of the states that `body_fun(i, state)` gives for `i` from `lower` below `upper`.

    `i` is a tensor of int64. The state may be any container of tensors and numbers, which become
    tensors; it keeps its structure and types. For gradients a compiled loop keeps the states of all
    turns, or as many as `checkpoints`; with bounds that are tensors some of them, as `while_loop`.

    >>> import tgraph as tg
    >>> tg.fori_loop(1, 5, lambda i, total: total * i, 1)
    tensor(24)
    """
    init = tree_of(init_val, "fori_loop", "the first state")
    check_checkpoints("fori_loop", checkpoints)
    traced = TracedBody("fori_loop", body_fun)
    context = current_context()

    def advance(turn: Tensor, *tensors: Tensor) -> Any:
        return body_fun(turn, init.filled(tensors))

    if isinstance(lower, Tensor) or isinstance(upper, Tensor):
        return _between(lower, upper, init, traced, advance, checkpoints)
    lower, upper = _whole(lower), _whole(upper)
    if not context.takes_bodies:
        now = given(init)
        for at in range(lower, upper):
            made = advance(from_data.tensor(at), *now.tensors)
            now = given(tree_of(made, "fori_loop", traced.name))
            check_alike("fori_loop", now, init, traced.name, "the state before it")
        return now.filled(now.tensors)
    if upper <= lower:
        return own(init)

    first = context.constant(lower, int64)
    body = context.body(_counted(init, traced, advance), [first._type, *init.types], [body_fun])
    last = context.scan(body, [first, *init.tensors], [], upper - lower, False, checkpoints)
    return init.filled(last[1:])


def _whole(bound: Any) -> Any:
    return bound if isinstance(bound, SymInt) else operator.index(bound)


def _between(
    lower: Any, upper: Any, init: Tree, traced: TracedBody, advance: Function,
    checkpoints: int | None,
) -> Any:  # fmt: skip
    first, end = (
        each.reshape(()).to(int64) if isinstance(each, Tensor) else from_data.tensor(_whole(each))
        for each in (lower, upper)
    )
    context = current_context()
    if not context.takes_bodies and context.has_value(first) and context.has_value(end):
        return fori_loop(first.item(), end.item(), traced.function, init.filled(init.tensors))

    step = _counted(init, traced, advance)
    if not context.takes_bodies:
        last = repeated(
            lambda turn, *state: turn < end, step, [first, *init.tensors], None,
            [traced.watched], checkpoints,
        )  # fmt: skip
        return own(init._replace(tensors=last[1:]))
    types = [first._type, *init.types]
    body = context.body(step, types, [traced.function])
    condition = context.body(lambda turn, *state: [turn < end], types, ())
    begin = [first, *init.tensors]
    return init.filled(context.loop(condition, body, begin, None, checkpoints)[1:])
