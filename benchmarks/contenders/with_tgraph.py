"""tgraph: PyTorch's code, with the whole function or training step compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np

import tgraph as tg
from tgraph.nn import functional as F

from ..case import Array, Case
from ..hyperparameters import ADAMW, SGD, SOFTENING, heads
from ..workload import parameters

Data = dict[str, Array]
Function = Callable[..., Any]


def start(threads: int) -> None:
    tg.set_num_threads(threads)


def versions() -> dict[str, str]:
    try:
        return {"tgraph": metadata.version("tgraph")}
    except metadata.PackageNotFoundError:
        return {"tgraph": "not installed, but run where it is"}


class Workloads:
    """The workloads, with `compiled` applied to each whole function or training step."""

    def __init__(self, compiled: Function, device: str = "cpu") -> None:
        self.compiled, self.device = compiled, device

    def tensors(self, data: Data, *names: str) -> list[tg.Tensor]:
        """Copies of arrays on the device."""
        return [tg.from_numpy(data[name].copy()).to(self.device) for name in names]

    def parameters(self, data: Data) -> list[tg.Tensor]:
        """What is trained, in order."""
        return [each.requires_grad_() for each in self.tensors(data, *parameters(data))]

    def case(self, function: Function, *inputs: tg.Tensor) -> Case:
        """A case of `function(*inputs)`."""
        compiled = self.compiled(function)
        return Case(lambda: compiled(*inputs), arrays)

    def training(
        self, loss_of: Callable[[], tg.Tensor], optimizer: Any, values: list[tg.Tensor]
    ) -> Case:
        """The whole step as one plan."""

        def step() -> tg.Tensor:
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            return loss

        return Case(self.compiled(step), lambda loss: arrays((loss, *values)))

    def gelu_chain(self, data: Data) -> Case:
        def function(x: tg.Tensor) -> tg.Tensor:
            t = x * 1.1 + 0.3
            inner = 0.7978845608 * (t + 0.044715 * (t * t * t))
            return 0.5 * t * (1 + tg.tanh(inner)) * x - t

        return self.case(function, *self.tensors(data, "x"))

    def softmax(self, data: Data) -> Case:
        return self.case(lambda x: tg.softmax(x, -1), *self.tensors(data, "x"))

    def column_stats(self, data: Data) -> Case:
        def function(x: tg.Tensor) -> tuple[tg.Tensor, ...]:
            variance, mean = tg.var_mean(x, 0, correction=0)
            return mean, variance, tg.logsumexp(x, 1)

        return self.case(function, *self.tensors(data, "x"))

    def transposed(self, data: Data) -> Case:
        def function(a: tg.Tensor, b: tg.Tensor) -> tg.Tensor:
            t = a.T
            return tg.exp(-t.abs()) * b + t * 0.5 - b * b

        return self.case(function, *self.tensors(data, "a", "b"))

    def pairwise(self, data: Data) -> Case:
        def function(x: tg.Tensor, mass: tg.Tensor) -> tg.Tensor:
            diff = x[:, None] - x[None]
            r2 = (diff**2).sum(-1) + SOFTENING
            return (diff * (mass / (r2 * tg.sqrt(r2)))[..., None]).sum(1)

        return self.case(function, *self.tensors(data, "x", "mass"))

    def call(self, data: Data) -> Case:
        def function(*given: tg.Tensor) -> tg.Tensor:
            return sum(given[1:], given[0] + 1)

        return self.case(function, *self.tensors(data, *data))

    def tiny_mlp(self, data: Data) -> Case:
        w1, b1, w2, b2 = self.tensors(data, "first_w", "first_b", "second_w", "second_b")

        def function(x: tg.Tensor) -> tg.Tensor:
            return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)

        return self.case(function, *self.tensors(data, "x"))

    def layer_norm(self, data: Data) -> Case:
        def function(
            x: tg.Tensor, weight: tg.Tensor, bias: tg.Tensor, upstream: tg.Tensor
        ) -> tuple[tg.Tensor, ...]:
            def normalized(*inputs: tg.Tensor) -> tg.Tensor:
                return F.layer_norm(inputs[0], (x.shape[-1],), *inputs[1:])

            value, pullback = tg.vjp(normalized, x, weight, bias)
            return value, *pullback(upstream)

        return self.case(function, *self.tensors(data, "x", "weight", "bias", "upstream"))

    def cross_entropy(self, data: Data) -> Case:
        def function(logits: tg.Tensor, labels: tg.Tensor) -> tuple[tg.Tensor, ...]:
            loss, gradient = tg.value_and_grad(F.cross_entropy)(logits, labels)
            return loss, gradient

        return self.case(function, *self.tensors(data, "logits", "labels"))

    def embedding(self, data: Data) -> Case:
        def function(
            table: tg.Tensor, tokens: tg.Tensor, upstream: tg.Tensor
        ) -> tuple[tg.Tensor, ...]:
            value, pullback = tg.vjp(lambda table: F.embedding(tokens, table), table)
            return value, *pullback(upstream)

        return self.case(function, *self.tensors(data, "table", "tokens", "upstream"))

    def mlp_train(self, data: Data) -> Case:
        x, labels = self.tensors(data, "x", "labels")
        w1, b1, w2, b2, w3, b3 = values = self.parameters(data)

        def loss_of() -> tg.Tensor:
            hidden = F.relu(F.linear(x, w1, b1))
            hidden = F.relu(F.linear(hidden, w2, b2))
            return F.cross_entropy(F.linear(hidden, w3, b3), labels)

        return self.training(loss_of, adamw(values), values)

    def transformer_train(self, data: Data) -> Case:
        x, target = self.tensors(data, "x", "target")
        values = self.parameters(data)
        return self.training(lambda: F.mse_loss(block(x, values), target), adamw(values), values)

    def cnn_train(self, data: Data) -> Case:
        x, labels = self.tensors(data, "x", "labels")
        c1w, c1b, c2w, c2b, hw, hb = values = self.parameters(data)

        def loss_of() -> tg.Tensor:
            h = F.max_pool2d(F.relu(F.conv2d(x, c1w, c1b, padding=1)), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, c2w, c2b, padding=1)), 2)
            return F.cross_entropy(F.linear(h.flatten(1), hw, hb), labels)

        sgd = tg.optim.SGD(values, SGD.rate, momentum=SGD.momentum)
        return self.training(loss_of, sgd, values)

    def step(self, data: Data, optimizer_of: Callable[[list[tg.Tensor]], Any]) -> Case:
        """A step of an optimizer of the parameters in `data`, whose gradients are given."""
        values = self.parameters(data)
        names = [f"g{number}" for number in range(len(values))]
        for value, gradient in zip(values, self.tensors(data, *names), strict=True):
            value.grad = gradient
        optimizer = optimizer_of(values)
        step = self.compiled(lambda: optimizer.step())
        return Case(step, lambda result: [np.ones(()), *arrays(tuple(values))])


def block(
    x: tg.Tensor, values: Sequence[tg.Tensor], causal: bool = False, linear: Function = F.linear
) -> tg.Tensor:
    """A transformer block of (batch, length, width), with its norms in front."""
    n1w, n1b, qkvw, qkvb, outw, outb, n2w, n2b, upw, upb, downw, downb = values
    batch, length, width = x.shape
    h = F.layer_norm(x, (width,), n1w, n1b)
    qkv = linear(h, qkvw, qkvb).view(batch, length, 3, heads(width), -1)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    mixed = mixed.transpose(1, 2).reshape(batch, length, width)
    r = x + linear(mixed, outw, outb)
    h = F.layer_norm(r, (width,), n2w, n2b)
    hidden = F.gelu(linear(h, upw, upb), approximate="tanh")
    return r + linear(hidden, downw, downb)


def arrays(result: Any) -> list[Array]:
    every = result if isinstance(result, tuple) else (result,)
    return [each.detach().cpu().numpy() for each in every]


def adamw(values: list[tg.Tensor]) -> Any:
    betas = (ADAMW.beta1, ADAMW.beta2)
    return tg.optim.AdamW(values, ADAMW.rate, betas, ADAMW.epsilon, ADAMW.decay)


_workloads = Workloads(tg.compile)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
