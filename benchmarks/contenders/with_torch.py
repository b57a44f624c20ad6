"""PyTorch as its users write it; `with_torch_compile` compiles the same functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from ..case import Array, Case
from ..hyperparameters import ADAMW, SGD, SOFTENING, heads
from ..workload import parameters

Data = dict[str, Array]
Function = Callable[..., Any]


def start(threads: int) -> None:
    torch.set_num_threads(threads)


def versions() -> dict[str, str]:
    return {"torch": torch.__version__}


class Workloads:
    """The workloads, with `compiled` applied to each function that computes something."""

    def __init__(self, compiled: Function, device: str = "cpu") -> None:
        self.compiled, self.device = compiled, device

    def tensors(self, data: Data, *names: str) -> list[torch.Tensor]:
        """Copies of arrays on the device."""
        return [torch.from_numpy(data[name].copy()).to(self.device) for name in names]

    def parameters(self, data: Data) -> list[torch.Tensor]:
        """What is trained, in order."""
        return [each.requires_grad_() for each in self.tensors(data, *parameters(data))]

    def forward(self, function: Function, *inputs: torch.Tensor) -> Case:
        """A case without gradients."""
        compiled = self.compiled(function)

        def call() -> Any:
            with torch.inference_mode():
                return compiled(*inputs)

        return Case(call, arrays)

    def gelu_chain(self, data: Data) -> Case:
        def function(x: torch.Tensor) -> torch.Tensor:
            t = x * 1.1 + 0.3
            inner = 0.7978845608 * (t + 0.044715 * (t * t * t))
            return 0.5 * t * (1 + torch.tanh(inner)) * x - t

        return self.forward(function, *self.tensors(data, "x"))

    def softmax(self, data: Data) -> Case:
        return self.forward(lambda x: torch.softmax(x, -1), *self.tensors(data, "x"))

    def column_stats(self, data: Data) -> Case:
        def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            variance, mean = torch.var_mean(x, 0, correction=0)
            return mean, variance, torch.logsumexp(x, 1)

        return self.forward(function, *self.tensors(data, "x"))

    def transposed(self, data: Data) -> Case:
        def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            t = a.T
            return torch.exp(-t.abs()) * b + t * 0.5 - b * b

        return self.forward(function, *self.tensors(data, "a", "b"))

    def pairwise(self, data: Data) -> Case:
        def function(x: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
            diff = x[:, None] - x[None]
            r2 = (diff**2).sum(-1) + SOFTENING
            return (diff * (mass / (r2 * torch.sqrt(r2)))[..., None]).sum(1)

        return self.forward(function, *self.tensors(data, "x", "mass"))

    def call(self, data: Data) -> Case:
        def function(*given: torch.Tensor) -> torch.Tensor:
            return sum(given[1:], given[0] + 1)

        return self.forward(function, *self.tensors(data, *data))

    def tiny_mlp(self, data: Data) -> Case:
        names = ("first_w", "first_b", "second_w", "second_b")
        w1, b1, w2, b2 = self.tensors(data, *names)

        def function(x: torch.Tensor) -> torch.Tensor:
            return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)

        return self.forward(function, *self.tensors(data, "x"))

    def layer_norm(self, data: Data) -> Case:
        x, weight, bias, upstream = self.tensors(data, "x", "weight", "bias", "upstream")
        inputs = [each.requires_grad_() for each in (x, weight, bias)]
        function = self.compiled(lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b))

        def call() -> tuple[torch.Tensor, ...]:
            value = function(*inputs)
            return value, *torch.autograd.grad(value, inputs, upstream)

        return Case(call, arrays)

    def cross_entropy(self, data: Data) -> Case:
        logits, labels = self.tensors(data, "logits", "labels")
        logits.requires_grad_()
        function = self.compiled(F.cross_entropy)

        def call() -> tuple[torch.Tensor, ...]:
            loss = function(logits, labels)
            return loss, *torch.autograd.grad(loss, logits)

        return Case(call, arrays)

    def embedding(self, data: Data) -> Case:
        table, tokens, upstream = self.tensors(data, "table", "tokens", "upstream")
        table.requires_grad_()
        function = self.compiled(lambda table, tokens: F.embedding(tokens, table))

        def call() -> tuple[torch.Tensor, ...]:
            value = function(table, tokens)
            return value, *torch.autograd.grad(value, table, upstream)

        return Case(call, arrays)

    def training(self, loss_of: Function, optimizer: Any, values: Iterable[torch.Tensor]) -> Case:
        """A training step: compiled forward and backward, the optimizer's fused kernel."""
        values = list(values)
        loss_of = self.compiled(loss_of)

        def call() -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            return loss

        return Case(call, lambda loss: arrays((loss, *values)))

    def mlp_train(self, data: Data) -> Case:
        x, labels = self.tensors(data, "x", "labels")
        w1, b1, w2, b2, w3, b3 = values = self.parameters(data)

        def loss_of() -> torch.Tensor:
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

        def loss_of() -> torch.Tensor:
            h = F.max_pool2d(F.relu(F.conv2d(x, c1w, c1b, padding=1)), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, c2w, c2b, padding=1)), 2)
            return F.cross_entropy(F.linear(h.flatten(1), hw, hb), labels)

        sgd = torch.optim.SGD(values, SGD.rate, momentum=SGD.momentum, fused=True)
        return self.training(loss_of, sgd, values)

    def step(self, data: Data, optimizer_of: Callable[[list[torch.Tensor]], Any]) -> Case:
        """A step of an optimizer of the parameters in `data`, whose gradients are given."""
        values = self.parameters(data)
        names = [f"g{number}" for number in range(len(values))]
        for value, gradient in zip(values, self.tensors(data, *names), strict=True):
            value.grad = gradient
        optimizer = optimizer_of(values)
        step = self.compiled(lambda: optimizer.step())
        return Case(step, lambda result: [np.ones(()), *arrays(tuple(values))])


def arrays(result: Any) -> list[Array]:
    every = result if isinstance(result, tuple) else (result,)
    return [each.detach().cpu().numpy() for each in every]


def block(x: torch.Tensor, values: Sequence[torch.Tensor], causal: bool = False) -> torch.Tensor:
    """A transformer block of (batch, length, width), with its norms in front."""
    n1w, n1b, qkvw, qkvb, outw, outb, n2w, n2b, upw, upb, downw, downb = values
    batch, length, width = x.shape
    h = F.layer_norm(x, (width,), n1w, n1b)
    qkv = F.linear(h, qkvw, qkvb).view(batch, length, 3, heads(width), -1)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    mixed = mixed.transpose(1, 2).reshape(batch, length, width)
    r = x + F.linear(mixed, outw, outb)
    h = F.layer_norm(r, (width,), n2w, n2b)
    hidden = F.gelu(F.linear(h, upw, upb), approximate="tanh")
    return r + F.linear(hidden, downw, downb)


def adamw(values: list[torch.Tensor]) -> torch.optim.Optimizer:
    betas = (ADAMW.beta1, ADAMW.beta2)
    return torch.optim.AdamW(values, ADAMW.rate, betas, ADAMW.epsilon, ADAMW.decay, fused=True)


_workloads = Workloads(lambda function: function)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
