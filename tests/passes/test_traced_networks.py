"""Networks as users write them: their traced training steps, optimised."""

import numpy as np
from pass_testing import assert_same
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.pipeline import optimize

import tgraph as tg
from tgraph import nn
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
