"""What branches and loops carry and read: the text behind the pass, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import Builder, Graph, Node, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.simplify_control import simplify_control
from tgraph.runtime.dtypes import float32, int64

X, COUNT = TensorType((3,), float32), TensorType((), int64)


def graph(types: Sequence[TensorType], make: Callable[..., Sequence[Node]]) -> Graph:
    inputs = [input_node(f"x{number}", type_) for number, type_ in enumerate(types)]
    return Graph(inputs, list(make(Builder(), *inputs)))


def results(build: Builder, node: Node, *numbers: int) -> list[Node]:
    return [build.apply(p.get, [node], {"index": number}) for number in numbers]


def same_numbers(before: Graph, after: Graph, *arrays: np.ndarray) -> None:
    after.verify()
    for one, other in zip(interpret(before, arrays), interpret(after, arrays), strict=True):
        np.testing.assert_array_equal(one, other)


def loop(read: Sequence[int]) -> Graph:
    """State: a count, one that stays, one that grows by it, one that nobody needs."""
    types = [COUNT, X, X, X, X, COUNT]

    def body(build: Builder, i: Node, stays: Node, grows: Node, unread: Node, *rest: Node):
        one = build.full((), 1, int64)
        return [
            build.apply(p.add, [i, one]), stays, build.apply(p.add, [grows, stays]),
            build.apply(p.mul, [unread, rest[0]]),
        ]  # fmt: skip

    def make(build: Builder, x: Node, y: Node, n: Node) -> list[Node]:
        condition = graph(types, lambda build, *x: [build.apply(p.lt, [x[0], x[-1]])])
        attrs = {"condition": condition, "body": graph(types, body), "carried": 4}
        start = [build.full((), 0, int64), x, y, x, y, n]
        return results(build, build.apply(p.loop, start, attrs), *read)

    return graph([X, X, COUNT], make)


ARRAYS = np.arange(3, dtype=np.float32), np.ones(3, np.float32), np.array(4)


def test_state_that_stays_is_captured_and_what_nobody_needs_is_dropped() -> None:
    before = loop([1, 2])
    after = simplify_control(before)
    assert str(after) == (
        "graph(%x0: float32[3], %x1: float32[3], %x2: int64[])\n"
        "  %0: int64[] = full(dtype=int64, shape=(), value=0)\n"
        "  %1: (int64[], float32[3]) = loop(%0, %x1, %x0, %x2; "
        "body=graph of 7, carried=2, condition=graph of 5)\n"
        "    body(%x0: int64[], %x2: float32[3], %x1: float32[3], %x5: int64[])\n"
        "      %0: int64[] = full(dtype=int64, shape=(), value=1)\n"
        "      %1: int64[] = add(%x0, %0)\n"
        "      %2: float32[3] = add(%x2, %x1)\n"
        "      return %1, %2\n"
        "    condition(%x0: int64[], %x2: float32[3], %x1: float32[3], %x5: int64[])\n"
        "      %0: bool[] = lt(%x0, %x5)\n"
        "      return %0\n"
        "  %2: float32[3] = get(%1; index=1)\n"
        "  return %x0, %2"
    )
    same_numbers(before, after, *ARRAYS)


def test_what_is_needed_stays() -> None:
    before = loop([0, 2, 3])
    after = simplify_control(before)
    same_numbers(before, after, *ARRAYS)
    assert simplify_control(after) is after


def test_a_loop_of_which_nothing_changes_is_left_alone() -> None:
    def make(build: Builder, n: Node) -> list[Node]:
        attrs = {
            "condition": graph([COUNT], lambda build, n: [build.apply(p.lt, [n, n])]),
            "body": graph([COUNT], lambda build, n: [n]),
            "carried": 1,
        }
        return results(build, build.apply(p.loop, [n], attrs), 0)

    before = graph([COUNT], make)
    assert simplify_control(before) is before


def branch(index: int | None) -> Graph:
    def make(build: Builder, i: Node, x: Node, y: Node, z: Node) -> list[Node]:
        branches = (
            graph([X, X, X], lambda build, x, y, z: [x, build.apply(p.neg, [z])]),
            graph([X, X, X], lambda build, x, y, z: [y, build.apply(p.exp, [x])]),
        )
        i = i if index is None else build.full((), index, int64)
        return results(build, build.apply(p.branch, [i, x, y, z], {"branches": branches}), 1)

    return graph([COUNT, X, X, X], make)


def test_branches_read_what_their_results_need() -> None:
    before = branch(None)
    after = simplify_control(before)
    (node,) = [each for each in after.nodes if each.primitive is p.branch]
    assert node.inputs == (after.inputs[0], after.inputs[1], after.inputs[3])
    assert node.type == (X,)
    for index in (0, 1):
        same_numbers(before, after, np.array(index), *ARRAYS[:2], ARRAYS[0] + 1)


def test_a_branch_that_is_known_is_what_it_computes() -> None:
    for index, name in ((-3, "neg"), (0, "neg"), (1, "exp"), (7, "exp")):
        after = simplify_control(branch(index))
        assert [each.primitive.name for each in after.nodes if each.inputs] == [name]
        same_numbers(branch(index), after, np.array(0), *ARRAYS[:2], ARRAYS[0] + 1)
