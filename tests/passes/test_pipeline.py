"""The whole pipeline: random graphs, long chains, and what each pass may be relied on for."""

import numpy as np
import pytest
from pass_testing import Maker, assert_same, body, ordinary_inputs
from random_views import RandomGraph
from tgraph.compiler import pipeline
from tgraph.compiler.compile_graph import compile_graph
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import Graph, IRTypeError, Node, TensorType
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.pipeline import PASSES, optimize
from tgraph.runtime.dtypes import bool_, float64


def test_passes_have_names_and_reasons():
    names = [each.name for each in PASSES]
    assert len(set(names)) == len(names)
    assert all(each.reason for each in PASSES)


def test_the_callback_sees_every_pass():
    make, seen = Maker(), []
    graph = make.graph(make.neg(make.neg(make.input(3))))
    after = optimize(graph, lambda name, between: seen.append((name, between)))
    assert [name for name, _ in seen] == [each.name for each in PASSES]
    assert seen[-1][1] is after


def test_what_tests_compile_is_verified_behind_each_pass(monkeypatch):
    def wrong(graph):
        return Graph(graph.inputs, [Node(p.neg, graph.outputs, {}, TensorType((7,), float64))])

    steps = (*PASSES[:2], pipeline.Pass("wrong", wrong, "planted"), *PASSES[2:])
    monkeypatch.setattr(pipeline, "PASSES", steps)
    make = Maker()
    graph = make.graph(make.exp(make.input(3)))
    with pytest.raises(IRTypeError, match="neg has type"):
        compile_graph(graph)


@pytest.mark.parametrize("seed", range(300))
def test_random_graphs_keep_their_values(seed):
    graph = RandomGraph(seed).graph()
    inputs = ordinary_inputs(graph, seed)
    wanted = interpret(graph, inputs)

    def check(name, between):
        between.verify()
        assert_same(interpret(between, inputs), wanted, rtol=1e-9)

    optimize(graph, check)


@pytest.mark.parametrize("seed", range(300, 360))
def test_each_pass_alone(seed):
    graph = RandomGraph(seed).graph()
    inputs = ordinary_inputs(graph, seed)
    wanted = interpret(graph, inputs)
    for step in PASSES:
        after = step.run(graph)
        after.verify()
        assert_same(interpret(after, inputs), wanted, rtol=1e-9)


@pytest.mark.parametrize("seed", range(360, 400))
def test_a_second_run_changes_nothing_more(seed):
    once = optimize(RandomGraph(seed).graph())
    assert str(optimize(once)) == str(once)


def long_chain(length):
    make = Maker()
    x, y = make.input(4, dtype=float64), make.input(4, dtype=float64)
    for at in range(length // 4):
        x = make.tanh(make.add(make.neg(make.mul(x, y)), make.number(at % 5 + 0.5, float64)))
    return make.graph(x)


def test_a_long_chain():
    graph = long_chain(100_000)
    after = optimize(graph)
    inputs = ordinary_inputs(graph)
    assert_same(interpret(after, inputs), interpret(graph, inputs), rtol=1e-9)


def test_a_wide_graph():
    make = Maker()
    x = make.input(3, dtype=float64)
    values = [make.mul(x, make.number(float(at), float64)) for at in range(10_000)]
    while len(values) > 1:
        values = [make.add(*values[at : at + 2]) for at in range(0, len(values) - 1, 2)] + (
            values[-1:] if len(values) % 2 else []
        )
    graph = make.graph(values[0])
    inputs = ordinary_inputs(graph)
    assert_same(interpret(optimize(graph), inputs), interpret(graph, inputs), rtol=1e-9)


def test_a_training_step_of_a_linear_layer():
    """No permute is left: the products' flags do it all, in the layout of each gradient."""
    make = Maker()
    x, w, b = make.input(8, 5, 4), make.input(6, 4), make.input(6)
    wt = make.permute(w, axes=(1, 0))
    plain = {"transpose_a": False, "transpose_b": False}
    y = make.add(make.matmul(x, wt, **plain), b)
    loss = make.sum(make.mul(y, y), axes=(0, 1, 2), keepdims=False)
    g = make.mul(y, make.number(2.0))
    product = make.matmul(make.permute(x, axes=(0, 2, 1)), g, **plain)
    grad_w = make.permute(make.sum(product, axes=(0,), keepdims=False), axes=(1, 0))
    grad_b = make.sum(g, axes=(0, 1), keepdims=False)
    graph = make.graph(loss, make.sub(w, make.mul(grad_w, make.number(0.1))), grad_b)
    after = optimize(graph)
    inputs = ordinary_inputs(graph)
    assert_same(interpret(after, inputs), interpret(graph, inputs), rtol=1e-4)
    primitives = [node.primitive for node in after.nodes]
    assert p.permute not in primitives
    assert [node.type.ndim for node in after.nodes if node.primitive is p.matmul] == [2, 2]


def test_attention_reads_heads_in_place():
    make = Maker()
    batch, length, heads, width = 2, 5, 3, 4
    split = (batch, length, heads, width)
    q, k, v = (make.input(batch, length, heads * width) for _ in range(3))
    mask = make.input(length, length, dtype=bool_)
    q, k, v = (
        make.permute(make.reshape(each, shape=split), axes=(0, 2, 1, 3)) for each in (q, k, v)
    )
    kt = make.permute(k, axes=(0, 1, 3, 2))
    plain = {"transpose_a": False, "transpose_b": False}
    scores = make.div(make.matmul(q, kt, **plain), make.number(2.0))
    scores = make.where(mask, scores, make.number(-1e9))
    e = make.exp(make.sub(scores, make.max(scores, axes=(3,), keepdims=True)))
    weights = make.div(e, make.sum(e, axes=(3,), keepdims=True))
    out = make.permute(make.matmul(weights, v, **plain), axes=(0, 2, 1, 3))
    graph = make.graph(make.reshape(out, shape=(batch, length, heads * width)))
    after = optimize(graph)
    inputs = ordinary_inputs(graph)
    assert_same(interpret(after, inputs), interpret(graph, inputs), rtol=1e-4)
    # The permutes of heads stay, those of keys became a flag.
    permutes = [node for node in after.nodes if node.primitive is p.permute]
    assert [node.attrs["axes"] for node in permutes] == [(0, 2, 1, 3)] * 4


def test_executables_own_their_results():
    make = Maker()
    x = make.input(3)
    run = compile_graph(make.graph(x, make.reshape(x, shape=(3, 1)), make.number(1.0))).run
    array = np.float32([1, 2, 3])
    results = run([array])
    assert not any(np.shares_memory(each, array) for each in results)
    assert not np.shares_memory(results[2], run([array])[2])
    results[0][:] = 7
    assert array.tolist() == [1, 2, 3] and results[1].ravel().tolist() == [1, 2, 3]


def test_donated_outputs_are_written_into_their_inputs():
    make = Maker()
    x, y = make.input(2), make.input(2)
    run = compile_graph(make.graph(y, make.add(x, y), x), donate={0: 0, 2: 1}).run
    a, b = np.float32([1, 2]), np.float32([10, 20])
    results = run([a, b])
    assert results[0] is a and results[2] is b
    assert a.tolist() == [10, 20] and b.tolist() == [1, 2] and results[1].tolist() == [11, 22]


def test_the_text_after_the_pipeline():
    make = Maker()
    x, y = make.input(4, 3), make.input(3, 4)
    z = make.sub(make.number(2), make.copy(make.permute(y, axes=(1, 0))))
    out = make.mul(make.add(make.number(0.5), make.number(0.5)), make.add(z, x))
    assert body(optimize(make.graph(out))) == (
        "%0 = full(dtype=float32, shape=(), value=2.0) | %1 = sub(%0, %y) | "
        "%2 = permute(%1; axes=(1, 0)) | %3 = add(%x, %2) | return %3"
    )
