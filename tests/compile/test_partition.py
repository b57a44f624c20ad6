import random
from math import inf

import networkx
import pytest
from tgraph.compiler.ir import Builder, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import float16, float32, int64

from tgraph.compiled.minimum_cut import Network
from tgraph.compiled.partition import partition

MATRIX = TensorType((64, 64), float32)


def matrix(name):
    return input_node(name, MATRIX)


def names(nodes):
    return [node.attrs.get("name", node.primitive.name) for node in nodes]


def check(parts, primals, cotangents, outputs, gradients):
    parts.forward.verify()
    parts.backward.verify()
    assert parts.forward.inputs == tuple(primals)
    assert parts.forward.outputs[: len(outputs)] == tuple(outputs)
    assert parts.backward.inputs[len(parts.saved) :] == tuple(cotangents)
    assert len(parts.backward.outputs) == len(gradients)
    for (kind, index), node in zip(parts.sources, parts.saved, strict=True):
        assert {"primal": primals, "output": parts.forward.outputs}[kind][index] is node


def test_a_product_saves_its_inputs():
    build, x, y, g = Builder(), matrix("x"), matrix("y"), matrix("g")
    out = build.apply(p.mul, [x, y])
    gradients = [build.apply(p.mul, [g, y]), build.apply(p.mul, [g, x])]
    parts = partition([x, y], [g], [out], gradients)
    check(parts, [x, y], [g], [out], gradients)
    assert sorted(names(parts.saved)) == ["x", "y"]
    assert parts.forward.outputs == (out,)


def test_cheap_elementwise_is_computed_again_from_the_input():
    build, x, g = Builder(), matrix("x"), matrix("g")
    half = build.apply(p.mul, [x, build.full((), 0.5, float32)])
    inner = build.apply(p.add, [half, build.full((), 1.0, float32)])
    out = build.apply(p.mul, [inner, inner])
    gradients = [build.apply(p.mul, [g, inner])]
    parts = partition([x], [g], [out], gradients)
    check(parts, [x], [g], [out], gradients)
    assert names(parts.saved) == ["x"]
    assert "add" in names(parts.backward.nodes)


def test_a_long_chain_is_saved_in_the_end():
    build, x, g = Builder(), matrix("x"), matrix("g")
    value = x
    for _ in range(10):
        value = build.apply(p.exp, [value])
    gradients = [build.apply(p.mul, [g, value])]
    parts = partition([x], [g], [value], gradients)
    check(parts, [x], [g], [value], gradients)
    assert parts.sources == (("output", 0),)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda build, x: build.apply(p.matmul, [x, x], dict.fromkeys(TRANSPOSE, False)), "matmul"),
        (lambda build, x: build.apply(p.max_, [x], {"axes": (1,), "keepdims": True}), "max"),
    ],
)
def test_products_and_reductions_are_saved(make, name):
    build, x, g = Builder(), matrix("x"), matrix("g")
    dear = make(build, x)
    out = build.apply(p.mul, [x, dear])
    gradients = [build.apply(p.mul, [g, dear])]
    parts = partition([x], [g], [out], gradients)
    check(parts, [x], [g], [out], gradients)
    assert names(parts.saved) == [name]


TRANSPOSE = ("transpose_a", "transpose_b")


def test_of_dropout_the_mask_is_saved_and_not_the_bits():
    build, x, g = Builder(), matrix("x"), matrix("g")
    key, counter = (input_node(name, TensorType((), int64)) for name in ("key", "counter"))
    bits = build.apply(p.random_bits, [key, counter], {"shape": (64, 64)})
    uniform = build.apply(p.cast, [bits], {"dtype": float32})
    kept = build.apply(p.lt, [uniform, build.full((), 0.5, float32)])
    zero = build.full((), 0.0, float32)
    out = build.apply(p.where, [kept, x, zero])
    gradients = [build.apply(p.where, [kept, g, zero])]
    parts = partition([x, key, counter], [g], [out], gradients)
    check(parts, [x, key, counter], [g], [out], gradients)
    assert names(parts.saved) == ["lt"]
    assert "random_bits" not in names(parts.backward.nodes)


def shifted(build, x):
    """A cheap value that is rounded."""
    return build.apply(p.add, [x, build.full((), 0.1, float32)])


def test_a_decision_on_rounded_values_is_saved_and_not_made_again():
    build, x, g = Builder(), matrix("x"), matrix("g")
    inner = build.apply(p.exp, [x])
    above = build.apply(p.gt, [inner, build.full((), 0.0, float32)])
    zero = build.full((), 0.0, float32)
    out = build.apply(p.where, [above, inner, x])
    slope = build.apply(p.mul, [build.apply(p.mul, [g, inner]), x])
    gradients = [build.apply(p.where, [above, slope, zero])]
    parts = partition([x], [g], [out], gradients)
    check(parts, [x], [g], [out], gradients)
    # The value itself may be computed again, where nothing jumps.
    assert sorted(names(parts.saved)) == ["gt", "x"]
    assert "exp" in names(parts.backward.nodes)


def test_a_decision_on_arithmetic_is_made_again():
    """Sums and products have the same bits in both plans, but not those of 16-bit floats."""
    for dtype, wanted in ((float32, ["x"]), (float16, ["gt", "x"])):
        build, g = Builder(), input_node("g", TensorType((64, 64), dtype))
        x = input_node("x", TensorType((64, 64), dtype))
        inner = build.apply(p.add, [x, build.full((), 0.1, dtype)])
        zero = build.full((), 0.0, dtype)
        above = build.apply(p.gt, [inner, zero])
        out = build.apply(p.where, [above, inner, zero])
        gradients = [build.apply(p.where, [above, build.apply(p.mul, [g, inner]), zero])]
        parts = partition([x], [g], [out], gradients)
        check(parts, [x], [g], [out], gradients)
        assert sorted(names(parts.saved)) == wanted


def test_a_decision_is_made_again_from_what_is_saved_anyway():
    """As behind a relu whose result a product needs: no mask is kept."""
    build, x, w, g = Builder(), matrix("x"), matrix("w"), matrix("g")
    zero = build.full((), 0.0, float32)
    times = dict.fromkeys(TRANSPOSE, False)
    out = build.apply(p.maximum, [shifted(build, build.apply(p.matmul, [x, w], times)), zero])
    product = build.apply(p.matmul, [out, w], times)
    above = build.apply(p.gt, [build.apply(p.neg, [out]), zero])
    gradients = [build.apply(p.where, [above, g, zero]), build.apply(p.matmul, [out, g], times)]
    parts = partition([x, w], [g], [product], gradients)
    check(parts, [x, w], [g], [product], gradients)
    assert names(parts.saved) == ["maximum"]
    assert "gt" in names(parts.backward.nodes)


def test_a_decision_on_an_input_is_made_again():
    build, x, g = Builder(), matrix("x"), matrix("g")
    above = build.apply(p.gt, [build.apply(p.abs_, [x]), build.full((), 0.5, float32)])
    out = build.apply(p.where, [above, x, build.full((), 0.0, float32)])
    slope = build.apply(p.mul, [g, x])
    gradients = [build.apply(p.where, [above, slope, build.full((), 0.0, float32)])]
    parts = partition([x], [g], [out], gradients)
    assert names(parts.saved) == ["x"]


def test_what_is_kept_is_never_computed_again():
    build, x, g = Builder(), matrix("x"), matrix("g")
    inner = build.apply(p.neg, [x])
    gradients = [build.apply(p.mul, [g, inner])]
    assert names(partition([x], [g], [x], gradients).saved) == ["x"]
    assert names(partition([x], [g], [x], gradients, keep={inner}).saved) == ["neg"]


def test_results_of_a_tuple_are_saved_and_not_the_tuple():
    build, x, g = Builder(), matrix("x"), matrix("g")
    both = build.apply(
        p.host_call, [x], {"function": divmod, "results": (MATRIX, MATRIX), "name": "pair"}
    )
    first, second = (build.apply(p.get, [both], {"index": i}) for i in (0, 1))
    gradients = [build.apply(p.mul, [g, second])]
    parts = partition([x], [g], [first], gradients)
    check(parts, [x], [g], [first], gradients)
    assert [(node.primitive.name, node.attrs["index"]) for node in parts.saved] == [("get", 1)]


def test_gradients_without_cotangents_or_values():
    build, x, g = Builder(), matrix("x"), matrix("g")
    zero = build.full((64, 64), 0.0, float32)
    parts = partition([x], [g], [x], [g, zero])
    check(parts, [x], [g], [x], [g, zero])
    assert parts.saved == ()
    assert names(parts.backward.outputs) == ["g", "full"]


@pytest.mark.parametrize("count", [1500, 20_000])
def test_large_graphs(count):
    build, x, g = Builder(), matrix("x"), matrix("g")
    values = [x]
    for _ in range(count):
        values.append(build.apply(p.sin, [values[-1]]))
    gradient = g
    for value in reversed(values[:-1]):
        gradient = build.apply(p.mul, [gradient, build.apply(p.cos, [value])])
    parts = partition([x], [g], [values[-1]], [gradient])
    check(parts, [x], [g], [values[-1]], [gradient])
    # Every cosine reads a sine of which at most a few are computed again.
    assert len(parts.saved) > count // 4


def test_minimum_cuts_are_those_of_networkx():
    """The one nearest to the sink, so that equal cuts are told apart by the network alone."""
    rng = random.Random(0)
    finite = 0
    for _ in range(300):
        count = rng.randint(2, 14)
        pairs = [tuple(rng.sample(range(count), 2)) for _ in range(rng.randint(1, 40))]
        edges = {pair: rng.choice([0, 1, 2, 3, 5, 8, inf]) for pair in pairs}
        theirs, ours = networkx.DiGraph(), Network(count)
        theirs.add_nodes_from(range(count))
        for (start, end), capacity in edges.items():
            ours.connect(start, end, capacity)
            theirs.add_edge(start, end, capacity=capacity)
        try:
            _, (_, behind) = networkx.minimum_cut(theirs, 0, count - 1)
        except networkx.NetworkXUnbounded:
            with pytest.raises(ValueError, match="infinite"):
                ours.cut_off(0, count - 1)
        else:
            finite += 1
            assert ours.cut_off(0, count - 1) == [each in behind for each in range(count)]
    assert 100 < finite < 300
