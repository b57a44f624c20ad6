"""tgraph: PyTorch's code, with the whole function or training step compiled."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

import tgraph as tg
from tgraph.nn import functional as F

from ..case import Array, Case
from ..hyperparameters import ADAMW, SGD, SOFTENING
from ..workloads import parameters

Data = dict[str, Array]


def start(threads: int) -> None:
    tg.set_num_threads(threads)


def versions() -> dict[str, str]:
    return {"tgraph": metadata.version("tgraph")}


def _case(function: Callable[..., Any], *inputs: tg.Tensor) -> Case:
    compiled = tg.compile(function)
    return Case(lambda: compiled(*inputs), _arrays)


def _arrays(result: Any) -> list[Array]:
    every = result if isinstance(result, tuple) else (result,)
    return [each.detach().numpy() for each in every]


def _tensors(data: Data, *names: str) -> list[tg.Tensor]:
    return [tg.from_numpy(data[name].copy()) for name in names]


def gelu_chain(data: Data) -> Case:
    def function(x: tg.Tensor) -> tg.Tensor:
        t = x * 1.1 + 0.3
        inner = 0.7978845608 * (t + 0.044715 * (t * t * t))
        return 0.5 * t * (1 + tg.tanh(inner)) * x - t

    return _case(function, *_tensors(data, "x"))


def softmax(data: Data) -> Case:
    return _case(lambda x: tg.softmax(x, -1), *_tensors(data, "x"))


def column_stats(data: Data) -> Case:
    def function(x: tg.Tensor) -> tuple[tg.Tensor, ...]:
        variance, mean = tg.var_mean(x, 0, correction=0)
        return mean, variance, tg.logsumexp(x, 1)

    return _case(function, *_tensors(data, "x"))


def transposed(data: Data) -> Case:
    def function(a: tg.Tensor, b: tg.Tensor) -> tg.Tensor:
        t = a.T
        return tg.exp(-t.abs()) * b + t * 0.5 - b * b

    return _case(function, *_tensors(data, "a", "b"))


def pairwise(data: Data) -> Case:
    def function(x: tg.Tensor, mass: tg.Tensor) -> tg.Tensor:
        diff = x[:, None] - x[None]
        r2 = (diff**2).sum(-1) + SOFTENING
        return (diff * (mass / (r2 * tg.sqrt(r2)))[..., None]).sum(1)

    return _case(function, *_tensors(data, "x", "mass"))


def tiny_mlp(data: Data) -> Case:
    w1, b1, w2, b2 = _tensors(data, "first_w", "first_b", "second_w", "second_b")

    def function(x: tg.Tensor) -> tg.Tensor:
        return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)

    return _case(function, *_tensors(data, "x"))


def layer_norm(data: Data) -> Case:
    def function(
        x: tg.Tensor, weight: tg.Tensor, bias: tg.Tensor, upstream: tg.Tensor
    ) -> tuple[tg.Tensor, ...]:
        def normalized(*inputs: tg.Tensor) -> tg.Tensor:
            return F.layer_norm(inputs[0], (x.shape[-1],), *inputs[1:])

        value, pullback = tg.vjp(normalized, x, weight, bias)
        return value, *pullback(upstream)

    return _case(function, *_tensors(data, "x", "weight", "bias", "upstream"))


def cross_entropy(data: Data) -> Case:
    def function(logits: tg.Tensor, labels: tg.Tensor) -> tuple[tg.Tensor, ...]:
        loss, gradient = tg.value_and_grad(F.cross_entropy)(logits, labels)
        return loss, gradient

    return _case(function, *_tensors(data, "logits", "labels"))


def embedding(data: Data) -> Case:
    def function(table: tg.Tensor, tokens: tg.Tensor, upstream: tg.Tensor) -> tuple[tg.Tensor, ...]:
        value, pullback = tg.vjp(lambda table: F.embedding(tokens, table), table)
        return value, *pullback(upstream)

    return _case(function, *_tensors(data, "table", "tokens", "upstream"))


def _training(loss_of: Callable[[], tg.Tensor], optimizer: Any, values: list[tg.Tensor]) -> Case:
    """The whole step as one plan."""

    @tg.compile
    def step() -> tg.Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, lambda loss: _arrays((loss, *values)))


def _parameters(data: Data) -> list[tg.Tensor]:
    return [each.requires_grad_() for each in _tensors(data, *parameters(data))]


def _adamw(values: list[tg.Tensor]) -> Any:
    betas = (ADAMW.beta1, ADAMW.beta2)
    return tg.optim.AdamW(values, ADAMW.rate, betas, ADAMW.epsilon, ADAMW.decay)


def mlp_train(data: Data) -> Case:
    x, labels = _tensors(data, "x", "labels")
    w1, b1, w2, b2, w3, b3 = values = _parameters(data)

    def loss_of() -> tg.Tensor:
        hidden = F.relu(F.linear(x, w1, b1))
        hidden = F.relu(F.linear(hidden, w2, b2))
        return F.cross_entropy(F.linear(hidden, w3, b3), labels)

    return _training(loss_of, _adamw(values), values)


def transformer_train(data: Data) -> Case:
    x, target = _tensors(data, "x", "target")
    values = _parameters(data)
    n1w, n1b, qkvw, qkvb, outw, outb, n2w, n2b, upw, upb, downw, downb = values
    batch, length, width = x.shape

    def loss_of() -> tg.Tensor:
        h = F.layer_norm(x, (width,), n1w, n1b)
        qkv = F.linear(h, qkvw, qkvb).view(batch, length, 3, 4, width // 4)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()
        mixed = F.scaled_dot_product_attention(q, k, v)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        r = x + F.linear(mixed, outw, outb)
        h = F.layer_norm(r, (width,), n2w, n2b)
        hidden = F.gelu(F.linear(h, upw, upb), approximate="tanh")
        return F.mse_loss(r + F.linear(hidden, downw, downb), target)

    return _training(loss_of, _adamw(values), values)


def cnn_train(data: Data) -> Case:
    x, labels = _tensors(data, "x", "labels")
    c1w, c1b, c2w, c2b, hw, hb = values = _parameters(data)

    def loss_of() -> tg.Tensor:
        h = F.max_pool2d(F.relu(F.conv2d(x, c1w, c1b, padding=1)), 2)
        h = F.max_pool2d(F.relu(F.conv2d(h, c2w, c2b, padding=1)), 2)
        return F.cross_entropy(F.linear(h.flatten(1), hw, hb), labels)

    sgd = tg.optim.SGD(values, SGD.rate, momentum=SGD.momentum)
    return _training(loss_of, sgd, values)
