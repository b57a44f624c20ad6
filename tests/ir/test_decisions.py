"""What is said of primitives about rounding and jumps is true of them."""

import numpy as np
import pytest
from random_graphs.engines import run_eagerly
from tgraph.compiler.ir import (
    PRIMITIVES,
    Builder,
    Family,
    Graph,
    IRTypeError,
    TensorType,
    input_node,
    is_decision,
    is_exact,
)
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.pipeline import optimize
from tgraph.runtime.arrays import evaluate
from tgraph.runtime.dtypes import bool_, float16, float32, float64, int64

ATTRS = {
    Family.REDUCE: {"axes": (1,), "keepdims": False},
    Family.ELEMENTWISE: {},
}


def applied(primitive):
    """The primitive on floats, or None where it has none."""
    if primitive.family not in ATTRS or primitive in (p.cast, p.bitcast):
        return None
    types = [TensorType((40, 30), float32)] * primitive.arity
    if primitive is p.where:
        types[0] = TensorType((40, 30), bool_)
    operands = [input_node(f"x{n}", type_) for n, type_ in enumerate(types)]
    try:
        return Builder().apply(primitive, operands, ATTRS[primitive.family])
    except IRTypeError:
        return None


ON_FLOATS = {name: node for name, each in PRIMITIVES.items() if (node := applied(each))}


@pytest.mark.parametrize("name", ON_FLOATS)
def test_what_makes_no_floats_of_floats_decides(name):
    node = ON_FLOATS[name]
    if not node.type.dtype.is_floating_point:
        assert is_decision(node)
        assert is_exact(node)


@pytest.mark.parametrize(
    "name",
    [n for n, node in ON_FLOATS.items() if node.primitive.exact and not is_decision(node)],
)
def test_exact_operations_pass_a_rounding_on(name):
    """Of rounded operands they give the rounded result, which is how 16-bit floats are handled."""
    node, random = ON_FLOATS[name], np.random.default_rng(0)
    operands = [random.normal(size=x.shape).astype(x.type.dtype.numpy) for x in node.inputs]
    rounded = [x if x.dtype == bool else x.astype(np.float16) for x in operands]
    late = evaluate(name, operands, node.attrs).astype(np.float16)
    np.testing.assert_array_equal(evaluate(name, rounded, node.attrs), late)


def test_a_cast_decides_where_it_gives_no_floats():
    build, x = Builder(), input_node("x", TensorType((3,), float64))
    for dtype, decides in ((float16, False), (float32, False), (int64, True), (bool_, True)):
        assert is_decision(build.apply(p.cast, [x], {"dtype": dtype})) is decides


def test_integers_are_exact_and_nothing_to_decide_on():
    build, x = Builder(), input_node("x", TensorType((3,), int64))
    total = build.apply(p.add, [x, x])
    assert is_exact(total)
    assert not is_decision(build.apply(p.eq, [x, total]))


ARITHMETIC = [node.primitive for node in ON_FLOATS.values() if node.primitive.reproducible]
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.25, 0.1, -3.0, np.inf)


@pytest.mark.parametrize("seed", range(60))
def test_rewrites_of_arithmetic_keep_every_bit(seed):
    """Two plans that see different parts of an expression compute the same values."""
    pick, build = np.random.default_rng(seed), Builder()
    x, y = (input_node(name, TensorType((64,), float32)) for name in "xy")
    values = [x, y, *(build.full((), number, float32) for number in NUMBERS)]
    exact = [p.neg, p.abs_, p.maximum, p.minimum, p.copy]
    for _ in range(40):
        primitive = (ARITHMETIC + exact)[pick.integers(len(ARITHMETIC) + len(exact))]
        operands = [values[-1 - int(pick.exponential(6)) % len(values)] for _ in range(2)]
        values.append(build.apply(primitive, operands[: primitive.arity]))
    graph = Graph([x, y], values[2 + len(NUMBERS) :])
    arrays = [pick.normal(size=64).astype(np.float32) for _ in range(2)]
    with np.errstate(all="ignore"):
        wanted = [run_eagerly(graph, arrays)[node] for node in graph.outputs]
        after = optimize(graph)
        found = [run_eagerly(after, arrays)[node] for node in after.outputs]
    for node, a, b in zip(graph.outputs, found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=str(node))
