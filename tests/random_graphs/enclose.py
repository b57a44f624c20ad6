"""A part of a graph as a graph of its own, inside a branch or a loop that computes the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from tgraph.compiler.ir import Builder, Family, Graph, Node, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import bool_, int64

COUNT = TensorType((), int64)
TURNS = 3
"""What `enclosed` is to be given for its last input."""


def enclosed(graph: Graph) -> Graph:
    """`graph` with its last nodes inside a branch or a loop, and one more input.

    The loop computes them again in each turn, and keeps what the turn before made.
    """
    rng = random.Random(len(graph.nodes))
    cut = rng.randrange(len(graph.inputs), len(graph.nodes) + 1)
    inside = _inside(graph, cut)
    results = list(dict.fromkeys(node for node in graph.outputs if node in inside))
    turns = input_node("turns", COUNT)
    if not results:
        return Graph([*graph.inputs, turns], graph.outputs)
    captured = _captured(inside, copy_sources=rng.random() < 0.5)
    enclose = _in_loop if rng.random() < 0.7 else _in_branch
    new = enclose(captured, inside, results, turns)
    return Graph([*graph.inputs, turns], [new.get(node, node) for node in graph.outputs])


def _inside(graph: Graph, cut: int) -> dict[Node, None]:
    """The nodes behind a position; selected results stay with their call."""
    inside: dict[Node, None] = {}
    for node in graph.nodes[cut:]:
        if node.primitive.family is not Family.GET or node.inputs[0] in inside:
            inside[node] = None
    return inside


def _captured(inside: dict[Node, None], copy_sources: bool) -> list[Node]:
    """What the nodes inside read; numbers and constants may be written once more instead."""
    read = dict.fromkeys(each for node in inside for each in node.inputs if each not in inside)
    if not copy_sources:
        return list(read)
    return [x for x in read if x.primitive is p.input_ or x.primitive.family is not Family.SOURCE]


def _copied(
    build: Builder, inside: dict[Node, None], given: dict[Node, Node], results: Sequence[Node]
) -> list[Node]:
    """The nodes inside over other operands."""
    new = dict(given)
    for node in inside:
        for operand in node.inputs:
            if operand not in new:
                new[operand] = build.rebuild(operand, ())
        new[node] = build.rebuild(node, [new[each] for each in node.inputs])
    return [new[node] for node in results]


def _inputs(nodes: Sequence[Node]) -> list[Node]:
    return [input_node(f"x{number}", node.type) for number, node in enumerate(nodes)]


def _zeros(build: Builder, node: Node) -> Node:
    shape, dtype, _ = node.type
    return build.full(shape, False if dtype is bool_ else 0, dtype)


def _in_branch(
    captured: list[Node], inside: dict[Node, None], results: list[Node], turns: Node
) -> dict[Node, Node]:
    """The last of two branches, for a number that is too large; the first one gives zeros."""
    build, taken, others = Builder(), _inputs(captured), _inputs(captured)
    made = _copied(Builder(), inside, dict(zip(captured, taken)), results)
    zeros = [_zeros(Builder(), node) for node in results]
    branches = Graph(others, zeros), Graph(taken, made)
    branch = build.apply(p.branch, [turns, *captured], {"branches": branches})
    return {node: build.apply(p.get, [branch], {"index": at}) for at, node in enumerate(results)}


def _in_loop(
    captured: list[Node], inside: dict[Node, None], results: list[Node], turns: Node
) -> dict[Node, Node]:
    build = Builder()
    zeros = [_zeros(build, node) for node in results]
    state = [build.full((), 0, int64), *zeros, *zeros]
    operands = [*state, *captured, turns]
    count, *inputs = _inputs(operands)
    condition = Graph([count, *inputs], [Builder().apply(p.lt, [count, inputs[-1]])])

    count, *inputs = _inputs(operands)
    body, current = Builder(), inputs[: len(results)]
    given = dict(zip(captured, inputs[2 * len(results) : -1], strict=True))
    made = _copied(body, inside, given, results)
    next_count = body.apply(p.add, [count, body.full((), 1, int64)])
    attrs = {
        "condition": condition,
        "body": Graph([count, *inputs], [next_count, *made, *current]),
        "carried": len(state),
    }
    loop = build.apply(p.loop, operands, attrs)
    return {
        node: build.apply(p.get, [loop], {"index": 1 + at + at % 2 * len(results)})
        for at, node in enumerate(results)
    }


def turns() -> np.ndarray:
    return np.array(TURNS)
