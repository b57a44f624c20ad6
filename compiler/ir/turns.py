"""How often a loop runs, where that follows from its graph."""

from __future__ import annotations

from . import primitives as p
from .graph import Graph
from .node import Node
from .size_number import is_expression


def known_turns(loop: Node) -> int | None:
    """The number of turns of a loop that counts evenly between numbers; None of any other."""
    counting = _counting(loop)
    return None if counting is None else counting[1]


def turn_number(loop: Node) -> tuple[int, int] | None:
    """What of the state is 0 in the first turn, 1 in the second, and the known number of turns."""
    counting = _counting(loop)
    if counting is None:
        return None
    at, turns = counting
    counts_by_one = number_of(loop.inputs[at]) == 0 and _step(loop.attrs["body"], at) == 1
    return (at, turns) if counts_by_one else None


def _counting(loop: Node) -> tuple[int, int] | None:
    """What of the state counts, and the number of turns."""
    condition, body = loop.attrs["condition"], loop.attrs["body"]
    (decision,) = condition.outputs
    if decision.primitive not in (p.lt, p.gt, p.le, p.ge):
        return None
    counter, limit = decision.inputs
    if decision.primitive in (p.gt, p.ge):
        counter, limit = limit, counter
    end = number_of(limit)
    if end is None or counter not in condition.inputs:
        return None
    end += decision.primitive in (p.le, p.ge)
    at = condition.inputs.index(counter)
    if at >= loop.attrs["carried"]:
        return None
    first, step = number_of(loop.inputs[at]), _step(body, at)
    if first is None or step is None:
        return None
    turns = max(-(-(end - first) // step), 0)
    largest = first + turns * step  # one that wraps around goes on for longer
    return (at, turns) if largest < 1 << (8 * counter.type.dtype.itemsize - 1) else None


def _step(body: Graph, at: int) -> int | None:
    """What a turn adds to the value `at` of the state, if that is a number above 0."""
    counter, following = body.inputs[at], body.outputs[at]
    if following.primitive is not p.add or counter not in following.inputs:
        return None
    one, other = following.inputs
    step = number_of(other if one is counter else one)
    return step if step is not None and step > 0 else None


def number_of(node: Node) -> int | None:
    """The value of a node that is a whole number and known, whatever sizes are."""
    if node.primitive is p.constant and node.type.numel == 1 and node.type.dtype.kind == "int":
        return int(node.attrs["value"].reshape(-1)[0])
    if node.primitive is p.full and node.type.dtype.kind == "int":
        value = node.attrs["value"]
        return None if is_expression(value) else int(value)
    return None
