"""A row that is written at one place: no scatter, the same values, the same error."""

import numpy as np
import pytest
from pass_testing import Maker, assert_same
from tgraph.compiler.compile_graph import compile_graph
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.simplify import simplify
from tgraph.runtime.dtypes import bfloat16, bool_, float16, float32, float64, int8, int32, int64

import tgraph as tg


def scatter(axis, base, positions, dtype=float32, index=int64):
    make = Maker()
    inputs = (
        make.input(*base, dtype=dtype),
        make.input(*positions, dtype=index),
        make.input(*positions, dtype=dtype),
    )
    return make, make.scatter_add(*inputs, axis=axis)


def arrays(graph, size):
    rng = np.random.default_rng(0)
    base, index, source = (node.type for node in graph.inputs)
    return [
        rng.integers(-3, 4, base.shape).astype(base.dtype.numpy),
        rng.integers(0, size, index.shape).astype(index.dtype.numpy),
        rng.integers(-3, 4, source.shape).astype(source.dtype.numpy),
    ]


@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16, int8, int64])
@pytest.mark.parametrize(
    ("axis", "base", "positions"),
    [(0, (5,), (1,)), (1, (4, 7), (4, 1)), (0, (4, 7), (1, 7)), (1, (2, 3, 4), (2, 1, 4)),
     (1, (4, 1), (4, 1)), (1, (0, 7), (0, 1))],
)  # fmt: skip
@pytest.mark.parametrize("index", [int32, int64])
def test_scatter_of_one_is_a_choice(axis, base, positions, dtype, index):
    make, out = scatter(axis, base, positions, dtype, index)
    graph = make.graph(out)
    after = simplify(graph)
    after.verify()
    assert p.scatter_add not in {node.primitive for node in after.nodes}
    inputs = arrays(graph, base[axis])
    assert_same(interpret(after, inputs), interpret(graph, inputs))
    assert_same(compile_graph(graph).run(inputs), interpret(graph, inputs))


@pytest.mark.parametrize(
    ("axis", "base", "positions", "dtype"),
    [
        (1, (4, 7), (4, 2), float32),  # two places
        (1, (4, 7), (3, 1), float32),  # rows that are not written
        (1, (4, 7), (4, 1), bool_),
    ],
)
def test_other_scatters_stay(axis, base, positions, dtype):
    make, out = scatter(axis, base, positions, dtype)
    assert simplify(make.graph(out)).outputs[0].primitive is p.scatter_add


@pytest.mark.parametrize("position", [-1, 7, 2**40])
def test_a_position_outside_is_an_error(position):
    make, out = scatter(1, (4, 7), (4, 1))
    graph = make.graph(out)
    base, index, source = arrays(graph, 7)
    index[2] = position
    for run in (lambda x: interpret(simplify(graph), x), compile_graph(graph).run):
        with pytest.raises(IndexError, match=str(position)):
            run([base, index, source])


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(1,), (0, 1)])
def test_sum_of_one(axes, keepdims):
    make = Maker()
    index, source = make.input(4, 1, dtype=int64), make.input(4, 1)
    zeros = make.full(shape=(4, 7), value=0.0, dtype=float32)
    graph = make.graph(
        make.sum(make.scatter_add(zeros, index, source, axis=1), axes=axes, keepdims=keepdims)
    )
    after = simplify(graph)
    assert p.where not in {node.primitive for node in after.nodes}
    inputs = [np.array([[3], [0], [6], [3]]), np.float32([[1.5], [-0.0], [np.inf], [np.nan]])]
    assert_same(interpret(after, inputs), interpret(graph, inputs))


def test_sum_over_another_axis_stays():
    make = Maker()
    index, source = make.input(4, 1, dtype=int64), make.input(4, 1)
    zeros = make.full(shape=(4, 7), value=0.0, dtype=float32)
    graph = make.graph(
        make.sum(make.scatter_add(zeros, index, source, axis=1), axes=(0,), keepdims=False)
    )
    inputs = [np.array([[3], [0], [6], [3]]), np.float32([[1], [2], [3], [4]])]
    assert_same(interpret(simplify(graph), inputs), interpret(graph, inputs))


def test_cross_entropy_and_its_gradient_scatter_nothing():
    """The number of targets, then all that needs the rows of logits, then the loss: no scatter."""
    loss = tg.compile(tg.value_and_grad(tg.nn.functional.cross_entropy))
    loss(tg.randn(600, 1000), tg.randint(0, 1000, (600,)))
    kinds = [line.kind for line in loss.explain(
        tg.randn(600, 1000), tg.randint(0, 1000, (600,))
    ).kernels]  # fmt: skip
    assert kinds == ["kernel"] * 3
