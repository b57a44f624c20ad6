"""Branches and loops in graphs: equality, text, types, evaluation and passes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import (
    Builder,
    Graph,
    IRTypeError,
    Node,
    Provenance,
    TensorType,
    input_node,
    map_whole,
    nested_graphs,
)
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir.graph_key import graph_key
from tgraph.compiler.ir.node import attr_key
from tgraph.compiler.pipeline import optimize
from tgraph.runtime.dtypes import DType, bool_, float32, int64

X = TensorType((3,), float32)
COUNT = TensorType((), int64)


def halves(step: float = 0.5, name: str = "x", where: Provenance | None = None) -> Graph:
    """x * step, while a count is below n."""
    build = Builder()
    i, x, n = input_node("i", COUNT), input_node(name, X), input_node("n", COUNT)
    factor = build.full((), step, float32)
    one = build.full((), 1, int64)
    product = build.apply(p.mul, [x, factor], where=where or Provenance())
    return Graph([i, x, n], [build.apply(p.add, [i, one]), product])


def below() -> Graph:
    i, x, n = input_node("i", COUNT), input_node("x", X), input_node("n", COUNT)
    return Graph([i, x, n], [Builder().apply(p.lt, [i, n])])


def loop_of(body: Graph, condition: Graph | None = None) -> Graph:
    build = Builder()
    x, n = input_node("x", X), input_node("n", COUNT)
    attrs = {"condition": condition or below(), "body": body, "carried": 2}
    loop = build.apply(p.loop, [build.full((), 0, int64), x, n], attrs)
    return Graph([x, n], [build.apply(p.get, [loop], {"index": 1})])


def loop_in(graph: Graph) -> Node:
    return next(node for node in graph.nodes if node.primitive is p.loop)


def test_graphs_are_equal_attributes_by_what_they_compute() -> None:
    assert attr_key(halves()) == attr_key(halves(name="y", where=Provenance("a.py", 3)))
    assert hash(attr_key(halves())) == hash(attr_key(halves()))
    assert attr_key(halves()) != attr_key(halves(0.25))
    assert attr_key(halves()) != attr_key(halves().with_outputs(halves().outputs[::-1]))
    assert attr_key(halves()) == pickle.loads(pickle.dumps(attr_key(halves())))
    graph, build = loop_of(halves()), Builder()
    loop = loop_in(graph)
    again = build.apply(p.loop, loop.inputs, {**loop.attrs, "body": halves(name="z")})
    assert build.rebuild(loop, loop.inputs) is again
    assert again.what != loop_in(loop_of(halves(0.25))).what


def test_graphs_are_compared_by_their_inputs() -> None:
    i, j = input_node("i", COUNT), input_node("j", COUNT)
    assert attr_key(Graph([i, j], [i])) != attr_key(Graph([i, j], [j]))
    assert attr_key(Graph([i], [i])) != attr_key(Graph([i, j], [i]))


def test_text_of_graphs_in_graphs() -> None:
    assert str(loop_of(halves())) == (
        "graph(%x: float32[3], %n: int64[])\n"
        "  %0: int64[] = full(dtype=int64, shape=(), value=0)\n"
        "  %1: (int64[], float32[3]) = loop(%0, %x, %n; "
        "body=graph of 7, carried=2, condition=graph of 4)\n"
        "    body(%i: int64[], %x: float32[3], %n: int64[])\n"
        "      %0: int64[] = full(dtype=int64, shape=(), value=1)\n"
        "      %1: int64[] = add(%i, %0)\n"
        "      %2: float32[] = full(dtype=float32, shape=(), value=0.5)\n"
        "      %3: float32[3] = mul(%x, %2)\n"
        "      return %1, %3\n"
        "    condition(%i: int64[], %x: float32[3], %n: int64[])\n"
        "      %0: bool[] = lt(%i, %n)\n"
        "      return %0\n"
        "  %2: float32[3] = get(%1; index=1)\n"
        "  return %2"
    )


def test_keys_of_plans_tell_graphs_inside_apart() -> None:
    key = graph_key(loop_of(halves()))
    assert key is not None
    assert key == graph_key(loop_of(halves(name="other")))
    others = [loop_of(halves(0.25)), loop_of(halves(), condition=never())]
    others.append(loop_of(halves(where=Provenance("a.py", 1))))  # a check would tell another line
    assert len({key, *map(graph_key, others)}) == 4


def never() -> Graph:
    inputs = [input_node("i", COUNT), input_node("x", X), input_node("n", COUNT)]
    return Graph(inputs, [Builder().full((), False, bool_)])


def test_python_functions_inside_have_no_key() -> None:
    build, x = Builder(), input_node("x", X)
    attrs = {"function": lambda x: (x,), "results": (X,), "name": "f"}
    called = build.apply(p.get, [build.apply(p.host_call, [x], attrs)], {"index": 0})
    outer, b = input_node("x", X), input_node("b", TensorType((), bool_))
    inner = Graph([x], [called])
    branch = build.apply(p.branch, [b, outer], {"branches": (inner,)})
    assert graph_key(Graph([b, outer], [build.apply(p.get, [branch], {"index": 0})])) is None


def test_verify_looks_inside() -> None:
    loop_of(halves()).verify()
    body = halves()
    body.outputs[1].inputs[1].type = TensorType((4,), float32)
    with pytest.raises(IRTypeError, match="full has type"):
        loop_of(body).verify()


def test_a_graph_inside_reads_only_its_inputs() -> None:
    body, stranger = halves(), input_node("stranger", X)
    body = Graph(body.inputs, [body.outputs[0], Builder().apply(p.neg, [stranger])])
    with pytest.raises(IRTypeError, match="no input of the graph"):
        loop_of(body).verify()


@pytest.mark.parametrize("dtype", [bool_, int64], ids=str)
def test_types_of_a_branch(dtype: DType) -> None:
    build, x = Builder(), input_node("x", X)
    index = input_node("i", TensorType((), dtype))
    y, z = input_node("y", X), input_node("z", COUNT)
    same, other = Graph([y], [y]), Graph([z], [z])
    node = build.apply(p.branch, [index, x], {"branches": (same, same)})
    assert node.type == (X,)
    with pytest.raises(IRTypeError, match=r"branch 1 takes .*int64.* given .*float32"):
        build.apply(p.branch, [index, x], {"branches": (same, other)})
    with pytest.raises(IRTypeError, match="a single integer or bool"):
        build.apply(p.branch, [x, x], {"branches": (same,)})
    with pytest.raises(IRTypeError, match="at least one"):
        build.apply(p.branch, [index, x], {"branches": ()})


def test_types_of_a_loop() -> None:
    with pytest.raises(IRTypeError, match=r"condition of loop gives \(int64"):
        loop_of(halves(), Graph(halves().inputs, halves().outputs[:1]))
    with pytest.raises(IRTypeError, match=r"body of loop gives .*expected \(int64\[\], float32"):
        loop_of(halves().with_outputs(halves().outputs[:1]))


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_the_interpreter_runs_loops(turns: int) -> None:
    x = np.array([1, 2, 4], np.float32)
    (found,) = interpret(loop_of(halves()), [x, np.array(turns)])
    np.testing.assert_array_equal(found, x / 2**turns)


def test_passes_run_on_graphs_inside() -> None:
    body = halves(1.0)  # a product with 1
    text = str(optimize(loop_of(body)))
    assert "mul" not in text and "lt" in text
    names: list[str] = []
    optimize(loop_of(body), lambda name, graph: names.append(f"{name} {'mul' in str(graph)}"))
    assert names[0].endswith("True") and names[-1].endswith("False")


def test_map_whole_changes_all_graphs_once() -> None:
    """Also one that stands in two places, and those of what the change made."""
    inner, build = loop_of(halves()), Builder()
    b, x, n = input_node("b", TensorType((), bool_)), input_node("x", X), input_node("n", COUNT)
    branch = build.apply(p.branch, [b, x, n], {"branches": (inner, inner)})
    graph = Graph([b, x, n], [build.apply(p.get, [branch], {"index": 0})])
    seen: list[Graph] = []

    def change(each: Graph) -> Graph:
        seen.append(each)
        return Graph(each.inputs, each.outputs)

    changed = map_whole(graph, change)
    assert len(seen) == len(set(seen)) == 4 == len(graph.whole) == len(changed.whole)
    assert not set(changed.whole) & set(graph.whole)
    assert str(changed) == str(graph)
    one, other = nested_graphs(next(n for n in changed.nodes if n.primitive is p.branch))
    assert one is other
    assert map_whole(graph, lambda each: each) is graph


def test_nesting_may_be_deep() -> None:
    b, x = input_node("b", TensorType((), bool_)), input_node("x", X)
    graph = Graph([b, x], [Builder().apply(p.neg, [x])])
    for _ in range(300):
        build, b, x = Builder(), input_node("b", TensorType((), bool_)), input_node("x", X)
        branch = build.apply(p.branch, [b, b, x], {"branches": (graph,)})
        graph = Graph([b, x], [build.apply(p.get, [branch], {"index": 0})])
    graph.verify()
    assert len(graph.whole) == 301
    assert map_whole(graph, lambda each: each) is graph
    assert str(graph).count("branch 0") == 300
