"""Pieces of networks in PyTorch; `with_torch_compile` compiles the same functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from ..case import Case
from ..contenders import with_torch as base
from ..hyperparameters import DECAYED, DROPPED, SGD
from ..workload import parameters
from . import resnet

Data = base.Data


class Workloads(base.Workloads):
    """The workloads, with `compiled` applied to each function that computes something."""

    def small_mlp_train(self, data: Data) -> Case:
        x, labels = self.tensors(data, "x", "labels")
        values = self.parameters(data)
        return self.training(
            lambda: F.cross_entropy(perceptron(x, values), labels), base.adamw(values), values
        )

    def attention(self, data: Data) -> Case:
        def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        return self.forward(function, *self.tensors(data, "q", "k", "v"))

    def attention_train(self, data: Data) -> Case:
        *inputs, upstream = self.tensors(data, "q", "k", "v", "upstream")
        inputs = [each.requires_grad_() for each in inputs]
        attend = self.compiled(partial(F.scaled_dot_product_attention, is_causal=True))

        def call() -> tuple[torch.Tensor, ...]:
            value = attend(*inputs)
            return value, *torch.autograd.grad(value, inputs, upstream)

        return Case(call, base.arrays)

    def residual_train(self, data: Data) -> Case:
        x, target = self.tensors(data, "x", "target")
        c1w, n1w, n1b, c2w, n2w, n2b = values = self.parameters(data)
        running = [(torch.zeros_like(n1w), torch.ones_like(n1w)) for _ in range(2)]

        def loss_of() -> torch.Tensor:
            h = F.conv2d(x, c1w, padding=1)
            h = F.relu(F.batch_norm(h, *running[0], n1w, n1b, training=True))
            h = F.conv2d(h, c2w, padding=1)
            h = F.batch_norm(h, *running[1], n2w, n2b, training=True)
            return F.mse_loss(F.relu(h + x), target)

        sgd = torch.optim.SGD(values, SGD.rate, momentum=SGD.momentum, fused=True)
        return self.training(loss_of, sgd, values)

    def resnet_train(self, data: Data) -> Case:
        x, labels = self.tensors(data, "x", "labels")
        values = self.parameters(data)
        p = dict(zip(parameters(data), values, strict=True))
        layers = resnet.TorchLayers(torch, p)
        rule = DECAYED
        sgd = torch.optim.SGD(
            values, rule.rate, momentum=rule.momentum, weight_decay=rule.decay, fused=True
        )
        return self.training(
            lambda: F.cross_entropy(resnet.forward(layers, p, x), labels), sgd, values
        )

    def depthwise(self, data: Data) -> Case:
        def function(x: torch.Tensor, depth: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
            return F.conv2d(F.conv2d(x, depth, padding=1, groups=len(depth)), point)

        return self.forward(function, *self.tensors(data, "x", "depthwise_w", "pointwise_w"))

    def lstm(self, data: Data) -> Case:
        names = ("input_w", "hidden_w", "input_b", "hidden_b")
        weights = self.tensors(data, *names)
        module = torch.nn.LSTM(data["input_w"].shape[1], data["hidden_w"].shape[1])
        with torch.no_grad():
            for own, given in zip(module.parameters(), weights, strict=True):
                own.copy_(given)

        def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            seen, (h, c) = module(x)
            return seen, h[0], c[0]

        return self.forward(function, *self.tensors(data, "x"))

    def embedding_gradient(self, data: Data) -> Case:
        table, tokens, upstream = self.tensors(data, "table", "tokens", "upstream")
        table.requires_grad_()
        function = self.compiled(lambda table, tokens: F.embedding(tokens, table))

        def call() -> tuple[torch.Tensor, ...]:
            return torch.autograd.grad(function(table, tokens), table, upstream)

        return Case(call, base.arrays)

    def dropout(self, data: Data) -> Case:
        x, upstream = self.tensors(data, "x", "upstream")
        x.requires_grad_()
        function = self.compiled(lambda x: F.dropout(x, DROPPED))

        def call() -> tuple[torch.Tensor, ...]:
            value = function(x)
            return value, *torch.autograd.grad(value, x, upstream)

        return Case(call, base.arrays)

    def adam_many(self, data: Data) -> Case:
        """The fused optimizer, which is one call; `torch.compile` finds nothing to add to it."""
        return self.step(data, base.adamw)

    def bfloat16_mlp(self, data: Data) -> Case:
        x, *values = (each.bfloat16() for each in self.tensors(data, *data))
        case = self.forward(lambda x: perceptron(x, values), x)
        return Case(case.call, lambda result: base.arrays(result.float()))


def perceptron(x: torch.Tensor, values: list[torch.Tensor]) -> torch.Tensor:
    """Linear layers with ReLU between them."""
    for at in range(0, len(values), 2):
        x = F.linear(x if at == 0 else F.relu(x), values[at], values[at + 1])
    return x


_workloads = Workloads(lambda function: function)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
