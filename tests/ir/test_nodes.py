"""Nodes are made once per distinct value, and nothing distinct is taken for equal."""

import pickle

import numpy as np
import pytest
from tgraph.compiler.ir import (
    PRIMITIVES,
    Builder,
    Graph,
    IRTypeError,
    Node,
    Provenance,
    TensorType,
    format_graph,
    input_node,
    toposort,
    transform,
)
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir.node import attr_key
from tgraph.runtime.arrays import evaluate
from tgraph.runtime.dtypes import bool_, float32, from_numpy_dtype, int64

X = TensorType((2,), float32)


def constant(build, value):
    return build.apply(p.constant, (), {"value": np.asarray(value)})


def test_equal_applications_are_one_node():
    build, x = Builder(), input_node("x", X)
    assert build.apply(p.exp, [x]) is build.apply(p.exp, [x])
    attrs = {"axes": (0,), "keepdims": False}
    assert build.apply(p.sum_, [x], attrs) is build.apply(
        p.sum_, [x], dict(reversed(attrs.items()))
    )
    assert build.apply(p.exp, [x]) is not Builder().apply(p.exp, [x])


@pytest.mark.parametrize("one, other", [
    (0.0, -0.0), (1, True), (1, 1.0), (True, 1.0), (0, False), (np.nan, 1.0), (1.0, 2.0),
    ((0.0,), (-0.0,)), ((1, 2), (1, True)), ("1", 1), (np.float32(1), np.float32(2)),
    (np.float32(0.0), np.float32(-0.0)), (np.int64(1), np.bool_(True)), (np.int64(1), 1.0),
    (np.zeros(2), np.zeros(2, np.float32)), (np.zeros(2), np.zeros((2, 1))),
    (np.array(0.0), np.array(-0.0)),
])  # fmt: skip
def test_distinct_attributes(one, other):
    assert attr_key(one) != attr_key(other)


@pytest.mark.parametrize("value", [np.nan, -0.0, True, (1, (2.0, np.nan)), np.array([np.nan])])
def test_equal_attributes(value):
    again = pickle.loads(pickle.dumps(value))
    assert attr_key(value) == attr_key(again) and hash(attr_key(value)) == hash(attr_key(again))


def test_numbers_are_told_apart_by_bits():
    build = Builder()
    made = [build.full((), value, float32) for value in (0.0, -0.0, 0, False, np.nan, 1, 1.0, True)]
    assert len(set(made)) == len(made)
    assert build.full((), np.nan, float32) is made[4]


def test_large_constants_are_compared_by_identity():
    build, values = Builder(), np.arange(5000.0)
    assert constant(build, values) is constant(build, values)
    assert constant(build, values) is not constant(build, values.copy())
    assert constant(build, values[:100]) is constant(build, values[:100].copy())


def test_inputs_of_one_name_are_distinct():
    assert input_node("x", X) is not input_node("x", X)


def test_nodes_hold_still():
    node = Builder().full((), 1.0, float32)
    with pytest.raises(TypeError):
        node.attrs["value"] = 2.0


def test_rebuild_keeps_the_line_and_finds_equal_nodes():
    build, x, y = Builder(), input_node("x", X), input_node("y", X)
    line = Provenance("user.py", 7, "step", "net.layer")
    node = build.apply(p.exp, [x], where=line)
    assert build.rebuild(node, [x]) is node
    assert build.rebuild(node, [y]).where == line
    other = Builder()
    assert other.rebuild(node, [x]) is node  # adopted
    assert other.apply(p.exp, [x]) is node
    assert str(line) == "user.py:7 (net.layer)" and str(Provenance()) == "unknown"


def test_type_errors_name_the_primitive_and_what_came():
    build, x = Builder(), input_node("x", X)
    y = input_node("y", TensorType((3,), float32))
    with pytest.raises(IRTypeError, match=r"add\(float32\[2\], float32\[3\]\): The size of"):
        build.apply(p.add, [x, y])
    with pytest.raises(IRTypeError, match="exp takes 1 inputs, got 2"):
        build.apply(p.exp, [x, x])
    with pytest.raises(IRTypeError, match="where expected condition to be a boolean"):
        build.apply(p.where, [x, x, x])


def test_primitives_pickle_to_themselves():
    for primitive in PRIMITIVES.values():
        assert pickle.loads(pickle.dumps(primitive)) is primitive


def test_facts_hold_on_small_integers():
    values = np.array([-3, -1, 0, 1, 2, 7])
    x, y = (each.ravel() for each in np.meshgrid(values, values))
    for name, primitive in PRIMITIVES.items():
        if primitive.family.value != "elementwise" or name in (
            *("where", "cast", "bitcast", "require"),
        ):
            continue
        kinds = [np.int64, np.bool_] if primitive.arity == 2 else [np.int64, np.float64, np.bool_]
        for kind in kinds:
            a, b = x.astype(kind), y.astype(kind)
            if _accepts(primitive, a):
                _check_facts(lambda *arrays, n=name: evaluate(n, arrays, {}), primitive, a, b)


def _accepts(primitive, array):
    type_ = TensorType(array.shape, from_numpy_dtype(array.dtype))
    try:
        return primitive.infer([type_] * primitive.arity, {}).dtype is type_.dtype
    except IRTypeError:
        return False


def _check_facts(f, primitive, a, b):
    equal = np.testing.assert_array_equal
    if primitive.commutative:
        equal(f(a, b), f(b, a))
    if primitive.associative:
        c = b[::-1].copy()
        equal(f(f(a, b), c), f(a, f(b, c)))
    if primitive.identity is not None:
        equal(f(a, np.full_like(a, primitive.identity)), a)
    if primitive.absorbing is not None:
        filled = np.full_like(a, primitive.absorbing)
        equal(f(a, filled), filled)
    if primitive.involution:
        equal(f(f(a)), a)
    if primitive.idempotent:
        equal(f(a, a) if primitive.arity == 2 else f(f(a)), a if primitive.arity == 2 else f(a))


# --- graphs ---


def chain(length):
    build, x = Builder(), input_node("x", X)
    node = x
    for _ in range(length):
        node = build.apply(p.neg, [node])
    return Graph([x], [node])


def test_a_chain_of_100_000_nodes():
    graph = chain(100_000)
    order = graph.nodes
    assert len(order) == 100_001 and order[0] is graph.inputs[0] and order[-1] is graph.outputs[0]
    assert graph.consumers[order[5]] == (order[6],)
    graph.verify()
    again = transform(graph, lambda build, node, inputs: build.rebuild(node, inputs))
    assert len(again.nodes) == len(order)
    assert format_graph(graph).count("\n") == 100_001


def test_operands_come_first_and_once():
    build, x, y = Builder(), input_node("x", X), input_node("y", X)
    both = build.apply(p.add, [x, y])
    square = build.apply(p.mul, [both, both])
    out = build.apply(p.sub, [square, x])
    assert toposort([out, both], first=[y]) == [y, x, both, square, out]
    graph = Graph([x, y], [out])
    assert graph.consumers[both] == (square,) and graph.consumers[x] == (both, out)


def test_unused_inputs_stay():
    x, y = input_node("x", X), input_node("y", X)
    graph = Graph([x, y], [x])
    assert graph.nodes == (x, y)
    assert repr(graph) == "<Graph of 2 nodes>"


def test_verify_prints_the_neighbours_of_a_fault():
    build, x = Builder(), input_node("x", X)
    first = build.apply(p.exp, [x], where=Provenance("user.py", 3))
    wrong = Node(p.neg, (first,), {}, TensorType((2,), int64), Provenance("user.py", 4))
    last = Node(p.neg, (wrong,), {}, TensorType((2,), int64), Provenance("user.py", 5))
    with pytest.raises(IRTypeError) as caught:
        Graph([x], [last]).verify()
    assert str(caught.value).splitlines() == [
        "neg has type int64[2], its rule says float32[2]",
        "  reads <exp float32[2]> from user.py:3",
        "  read by <neg int64[2]>",
        "  made at user.py:4",
    ]


def test_verify_misses_no_foreign_input():
    x, y = input_node("x", X), input_node("y", X)
    with pytest.raises(IRTypeError, match="is read but is no input of the graph"):
        Graph([x], [Builder().apply(p.add, [x, y])]).verify()


def test_text():
    build = Builder()
    x, flag = (
        input_node("x", TensorType((2, 3), float32)),
        input_node("flag", TensorType((), bool_)),
    )
    result = TensorType((2,), float32)
    total = build.apply(p.sum_, [x], {"axes": (1,), "keepdims": False})
    call = build.apply(
        p.host_call, [total], {"function": sorted, "results": (result,), "name": "sort"}
    )
    chosen = build.apply(p.where, [flag, build.apply(p.get, [call], {"index": 0}), total])
    table = constant(build, np.float32([1, 2, 3, 4, 5]))
    assert (
        str(Graph([x, flag], [chosen, table]))
        == """\
graph(%x: float32[2, 3], %flag: bool[])
  %0: float32[2] = sum(%x; axes=(1,), keepdims=False)
  %1: (float32[2]) = host_call(%0; function=sorted, name='sort', results=(float32[2],))
  %2: float32[2] = get(%1; index=0)
  %3: float32[2] = where(%flag, %2, %0)
  %4: float32[5] = constant(value=[1.0, 2.0, 3.0, 4.0, ...])
  return %3, %4"""
    )
