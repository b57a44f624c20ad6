"""Networks as users write them: their traced training steps, optimised."""

from unittest import mock

import numpy as np
import pytest
from pass_testing import assert_same
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.pipeline import optimize

import tgraph as tg
from tgraph import nn
from tgraph.compiled import graph_function
from tgraph.core.context import use_context
from tgraph.core.eager_context import EAGER
from tgraph.tracing import trace


def traced_step(net, *inputs):
    """The graph of loss and gradients, and arrays to feed it."""

    def step(*inputs):
        loss = (net(*inputs) ** 2).mean()
        loss.backward()
        return loss, *(each.grad for each in net.parameters())

    graph = trace(step, *inputs)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=node.shape).astype(node.type.dtype.numpy) for node in graph.inputs]
    return graph, arrays


def test_a_convolutional_network():
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(24, 5),
    )  # fmt: skip
    graph, arrays = traced_step(net, tg.randn(3, 1, 8, 8))
    after = optimize(graph, lambda name, between: between.verify())
    assert_same(interpret(after, arrays), interpret(graph, arrays), rtol=2e-4)
    products = [node for node in after.nodes if node.primitive is p.matmul]
    # Two convolutions: products forward, for both kernels, and for the second layer's input.
    assert len(products) == 5 + 3
    windows = {node.inputs[0] for node in products if node.inputs[0].primitive is p.reshape}
    assert len(windows) < len(products)
    # Windows of: the first layer, the pooling, the second layer; none is made twice.
    assert sum(node.primitive is p.unfold for node in after.nodes) == 3


def test_a_linear_network_has_no_permutes():
    net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
    graph, arrays = traced_step(net, tg.randn(4, 5, 6))
    after = optimize(graph, lambda name, between: between.verify())
    assert_same(interpret(after, arrays), interpret(graph, arrays), rtol=2e-4)
    assert not [node for node in after.nodes if node.primitive is p.permute]


def products_of_turns(graph):
    """How many products the turns of each loop compute."""
    loops = [node for node in graph.nodes if node.primitive is p.loop]
    return [sum(node.primitive is p.matmul for node in loop.attrs["body"].nodes) for loop in loops]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = getattr(nn, kind)(5, 12, bidirectional=True)

    def forward(self, x):
        return self.layer(x)[0]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_turns_of_a_recurrent_network_compute_one_product(kind):
    """Forwards that of the state, backwards that of its gradient; all others are of all turns."""
    graph, arrays = traced_step(Recurrent(kind), tg.randn(6, 3, 5))
    after = optimize(graph, lambda name, between: between.verify())
    assert_same(interpret(after, arrays), interpret(graph, arrays), rtol=2e-4)
    assert products_of_turns(graph) != [1] * 4
    assert products_of_turns(after) == [1] * 4


def test_a_forward_plan_keeps_products_for_the_backward_plan():
    net, x, parts = nn.LSTM(5, 12), tg.randn(6, 3, 5), []
    divide = graph_function.partition

    def watched(*args):
        parts.append(divide(*args))
        return parts[-1]

    def gradients(function):
        values = [*net.parameters()]
        first = tg.autograd.grad((function(x)[0] ** 2).sum(), values, create_graph=True)
        return *first, *tg.autograd.grad(sum((each**2).sum() for each in first), values)

    with mock.patch.object(graph_function, "partition", watched):
        found = gradients(tg.compile(net))
    assert products_of_turns(optimize(parts[0].backward)) == [1]
    with use_context(EAGER):
        expected = gradients(net)
    for one, other in zip(found, expected, strict=True):
        tg.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
