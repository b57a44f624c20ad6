"""State that a loop knows by parts: what is carried behind the pass, and that numbers stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import Graph, Node, map_whole
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.simplify import simplify
from tgraph.compiler.passes.simplify_control import simplify_control
from tgraph.compiler.passes.split_state import split_state

import tgraph as tg

X = tg.arange(24.0).view(2, 3, 4)


def caches(x: tg.Tensor) -> Any:
    """Two views of one tensor; of the third part nothing is written."""
    cache = tg.cat([x, x[:1]])
    keys, values, _ = cache.unbind(0)

    def turn(row: tg.Tensor, at: tg.Tensor) -> Any:
        keys[at], values[:, at] = row, row[:3]
        return row + keys.sum(0) - values[0], row

    row, _ = tg.scan(turn, x[0, 0], tg.arange(3))
    return cache, row


def exchanged(x: tg.Tensor) -> Any:
    """Parts that are ranges, and take each other's elements."""

    def turn(at: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        left = x[:, :1].clone()
        x[:, :1] = x[:, 2:] + at
        x[:, 2:] = left * 2
        return x

    return tg.fori_loop(0, 5, turn, x)


def layers(x: tg.Tensor) -> Any:
    """A loop inside of a loop, which knows one part only."""

    def inner(at: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        x[1, at] = x[1, at] * 2 - x[1, 2]
        return x

    def outer(at: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        x[0] = x[0] + at
        return tg.fori_loop(0, 3, inner, x)

    return tg.fori_loop(0, 2, outer, x)


def in_parts(x: tg.Tensor) -> Any:
    """Of which the condition asks for something else."""

    def turn(x: tg.Tensor, total: tg.Tensor) -> Any:
        x[0, 0] = x[1, 0] + 1
        return x, total + x[1, 0].sum()

    return tg.while_loop(lambda x, total: total < 90, turn, (x, 0.0))


SPLIT = (caches, exchanged, layers, in_parts)
"""Of which outermost loops carry one value as two."""


def is_read_whole(x: tg.Tensor) -> Any:
    def turn(at: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        x[0] = x[0] + x.sum()
        return x

    return tg.fori_loop(0, 3, turn, x)


def parts_meet(x: tg.Tensor) -> Any:
    def turn(at: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        x[0] = x[0] * 2
        x[:, 0] = x[:, 0] + at
        return x

    return tg.fori_loop(0, 3, turn, x)


def the_condition_reads_it(x: tg.Tensor) -> Any:
    def turn(x: tg.Tensor) -> tg.Tensor:
        x[0] = x[0] + 1
        return x

    return tg.while_loop(lambda x: x[1].sum() + x[0].sum() < 1000, turn, x)


def two_take_it(x: tg.Tensor) -> Any:
    def turn(at: tg.Tensor, state: Any) -> Any:
        x = state[0]
        x[0] = x[0] + at
        return x, x

    return tg.fori_loop(0, 3, turn, (x, x * 2))


WHOLE = (is_read_whole, parts_meet, the_condition_reads_it, two_take_it)


def before(function: Callable[..., Any]) -> Graph:
    graph: Graph = tg.trace(lambda x: function(x.clone()), X)
    for step in (simplify, simplify_control):
        graph = map_whole(graph, step)
    return graph


def outermost(graph: Graph) -> Node:
    (loop,) = [node for node in graph.nodes if node.primitive is p.loop]
    return loop


@pytest.mark.parametrize("function", SPLIT)
def test_what_is_known_by_parts_is_carried_in_parts(function):
    graph = before(function)
    after = map_whole(map_whole(graph, split_state), simplify)
    after.verify()
    one, two = (outermost(each).attrs["carried"] for each in (graph, after))
    assert two == one + 1
    assert p.slice_update not in outermost(after).attrs["body"].primitives
    for one, other in zip(
        interpret(graph, [X.numpy()]), interpret(after, [X.numpy()]), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", WHOLE)
def test_what_is_not_known_by_parts_stays_whole(function):
    graph = before(function)
    assert split_state(graph) is graph


@pytest.mark.parametrize("function", [*SPLIT, *WHOLE])
def test_compiled_loops_have_the_numbers_of_eager_code(function):
    wanted = tg.pytree.leaves(function(X.clone()))
    for _ in range(2):
        found = tg.pytree.leaves(tg.compile(lambda x: function(x.clone()))(X))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
