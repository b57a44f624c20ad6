"""Pieces of networks in tgraph, compiled."""

from __future__ import annotations

from typing import Any

import tgraph as tg
from tgraph.nn import functional as F

from ..case import Case
from ..contenders import with_tgraph as base
from ..hyperparameters import DECAYED, DROPPED, SGD
from ..workload import parameters
from . import resnet

Data = base.Data


class Workloads(base.Workloads):
    """The workloads, with `compiled` applied to each whole function or training step."""

    def small_mlp_train(self, data: Data) -> Case:
        x, labels = self.tensors(data, "x", "labels")
        values = self.parameters(data)
        return self.training(
            lambda: F.cross_entropy(perceptron(x, values), labels), base.adamw(values), values
        )

    def attention(self, data: Data) -> Case:
        def function(q: tg.Tensor, k: tg.Tensor, v: tg.Tensor) -> tg.Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        return self.case(function, *self.tensors(data, "q", "k", "v"))

    def attention_train(self, data: Data) -> Case:
        def function(
            q: tg.Tensor, k: tg.Tensor, v: tg.Tensor, upstream: tg.Tensor
        ) -> tuple[tg.Tensor, ...]:
            def attend(*inputs: tg.Tensor) -> tg.Tensor:
                return F.scaled_dot_product_attention(*inputs, is_causal=True)

            value, pullback = tg.vjp(attend, q, k, v)
            return value, *pullback(upstream)

        return self.case(function, *self.tensors(data, "q", "k", "v", "upstream"))

    def residual_train(self, data: Data) -> Case:
        x, target = self.tensors(data, "x", "target")
        c1w, n1w, n1b, c2w, n2w, n2b = values = self.parameters(data)
        running = [(tg.zeros_like(n1w), tg.ones_like(n1w)) for _ in range(2)]

        def loss_of() -> tg.Tensor:
            h = F.conv2d(x, c1w, padding=1)
            h = F.relu(F.batch_norm(h, *running[0], n1w, n1b, training=True))
            h = F.conv2d(h, c2w, padding=1)
            h = F.batch_norm(h, *running[1], n2w, n2b, training=True)
            return F.mse_loss(F.relu(h + x), target)

        sgd = tg.optim.SGD(values, SGD.rate, momentum=SGD.momentum)
        return self.training(loss_of, sgd, values)

    def resnet_train(self, data: Data) -> Case:
        x, labels = self.tensors(data, "x", "labels")
        values = self.parameters(data)
        p = dict(zip(parameters(data), values, strict=True))
        layers = resnet.TorchLayers(tg, p)
        rule = DECAYED
        sgd = tg.optim.SGD(values, rule.rate, momentum=rule.momentum, weight_decay=rule.decay)
        return self.training(
            lambda: F.cross_entropy(resnet.forward(layers, p, x), labels), sgd, values
        )

    def depthwise(self, data: Data) -> Case:
        def function(x: tg.Tensor, depth: tg.Tensor, point: tg.Tensor) -> tg.Tensor:
            return F.conv2d(F.conv2d(x, depth, padding=1, groups=len(depth)), point)

        return self.case(function, *self.tensors(data, "x", "depthwise_w", "pointwise_w"))

    def lstm(self, data: Data) -> Case:
        """There is no module for it: a loop over time, the inputs' product in front of it."""
        input_w, hidden_w, input_b, hidden_b = self.tensors(
            data, "input_w", "hidden_w", "input_b", "hidden_b"
        )

        def function(x: tg.Tensor) -> tuple[tg.Tensor, ...]:
            projected = F.linear(x, input_w, input_b + hidden_b)
            h = c = tg.zeros(x.shape[1], hidden_w.shape[1])
            seen = []
            for step in projected.unbind():
                i, f, g, o = (step + F.linear(h, hidden_w)).chunk(4, -1)
                c = tg.sigmoid(f) * c + tg.sigmoid(i) * tg.tanh(g)
                h = tg.sigmoid(o) * tg.tanh(c)
                seen.append(h)
            return tg.stack(seen), h, c

        return self.case(function, *self.tensors(data, "x"))

    def embedding_gradient(self, data: Data) -> Case:
        def function(table: tg.Tensor, tokens: tg.Tensor, upstream: tg.Tensor) -> Any:
            return tg.vjp(lambda table: F.embedding(tokens, table), table)[1](upstream)

        return self.case(function, *self.tensors(data, "table", "tokens", "upstream"))

    def dropout(self, data: Data) -> Case:
        def function(x: tg.Tensor, upstream: tg.Tensor) -> tuple[tg.Tensor, ...]:
            value, pullback = tg.vjp(lambda x: F.dropout(x, DROPPED), x)
            return value, *pullback(upstream)

        return self.case(function, *self.tensors(data, "x", "upstream"))

    def adam_many(self, data: Data) -> Case:
        return self.step(data, base.adamw)

    def bfloat16_mlp(self, data: Data) -> Case:
        x, *values = (each.bfloat16() for each in self.tensors(data, *data))
        case = self.case(lambda x: perceptron(x, values), x)
        return Case(case.call, lambda result: base.arrays(result.float()))


def perceptron(x: tg.Tensor, values: list[tg.Tensor]) -> tg.Tensor:
    """Linear layers with ReLU between them."""
    for at in range(0, len(values), 2):
        x = F.linear(x if at == 0 else F.relu(x), values[at], values[at + 1])
    return x


_workloads = Workloads(tg.compile)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
