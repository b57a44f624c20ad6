"""Pieces of networks in NumPy, which has no bfloat16; in float64 the reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from ..case import Array, Case, Data
from ..contenders import with_numpy as base
from ..contenders.with_numpy import case
from ..hyperparameters import DECAYED, DROPPED
from ..workload import parameters
from . import resnet


def small_mlp_train(data: Data) -> Case:
    x, labels = data["x"], data["labels"]

    def gradients_of(p: Data) -> tuple[Array, Data]:
        h1 = np.maximum(x @ p["layer0_w"].T + p["layer0_b"], 0)
        h2 = np.maximum(h1 @ p["layer1_w"].T + p["layer1_b"], 0)
        loss, d3 = base.mean_cross_entropy(h2 @ p["layer2_w"].T + p["layer2_b"], labels)
        d2 = (d3 @ p["layer2_w"]) * (h2 > 0)
        d1 = (d2 @ p["layer1_w"]) * (h1 > 0)
        gradients: dict[str, Array] = {}
        for at, (upstream, inputs) in enumerate([(d1, x), (d2, h1), (d3, h2)]):
            found = base.weights_gradient(upstream, inputs)
            gradients[f"layer{at}_w"], gradients[f"layer{at}_b"] = found
        return loss, gradients

    return base.training(dict(data), gradients_of, base._AdamW)


def _attention_weights(q: Array, k: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]))
    causal = np.tri(q.shape[-2], dtype=bool)
    return base._softmax(np.where(causal, scores, scores.dtype.type(-np.inf)))


def attention(data: Data) -> Case:
    def function(q: Array, k: Array, v: Array) -> Array:
        return _attention_weights(q, k) @ v

    return case(function, data["q"], data["k"], data["v"])


def attention_train(data: Data) -> Case:
    def function(q: Array, k: Array, v: Array, upstream: Array) -> tuple[Array, ...]:
        weights = _attention_weights(q, k)
        change = upstream @ v.swapaxes(-1, -2)
        change -= (weights * change).sum(-1, keepdims=True)
        change *= weights * (1 / math.sqrt(q.shape[-1]))
        transposed = weights.swapaxes(-1, -2)
        return weights @ v, change @ k, change.swapaxes(-1, -2) @ q, transposed @ upstream

    return case(function, data["q"], data["k"], data["v"], data["upstream"])


Pullback = Callable[[Array], tuple[Array, Array, Array]]


def _batch_norm(x: Array, weight: Array, bias: Array) -> tuple[Array, Pullback]:
    """Normalised by channel, and what takes an upstream gradient to those of the arguments."""
    axes, wide = (0, 2, 3), (slice(None), None, None)
    centered = x - x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt((centered * centered).mean(axes, keepdims=True) + 1e-5)
    unit = centered * inverse

    def pullback(upstream: Array) -> tuple[Array, Array, Array]:
        scaled = upstream * weight[wide]
        mean = scaled.mean(axes, keepdims=True)
        along = (scaled * unit).mean(axes, keepdims=True)
        dx = inverse * (scaled - mean - unit * along)
        return dx, (upstream * unit).sum(axes), upstream.sum(axes)

    return unit * weight[wide] + bias[wide], pullback


def residual_train(data: Data) -> Case:
    x, target = data["x"], data["target"]

    def gradients_of(p: Data) -> tuple[Array, Data]:
        none = np.zeros(x.shape[1], x.dtype)
        columns1 = base._columns(x)
        n1, back1 = _batch_norm(
            base._convolution(columns1, p["conv1_w"], none), p["norm1_w"], p["norm1_b"]
        )
        h = np.maximum(n1, 0)
        columns2 = base._columns(h)
        n2, back2 = _batch_norm(
            base._convolution(columns2, p["conv2_w"], none), p["norm2_w"], p["norm2_b"]
        )
        y = np.maximum(n2 + x, 0)
        error = y - target

        d: dict[str, Array] = {}
        dy = error * (2 / error.size) * (y > 0)
        d2, d["norm2_w"], d["norm2_b"] = back2(dy)
        dh = base._input_gradient(d2, p["conv2_w"]) * (h > 0)
        d1, d["norm1_w"], d["norm1_b"] = back1(dh)
        for name, upstream, columns in (("conv2", d2, columns2), ("conv1", d1, columns1)):
            weight, _ = base.weights_gradient(upstream.transpose(0, 2, 3, 1), columns)
            d[f"{name}_w"] = weight.reshape(p[f"{name}_w"].shape)
        return np.mean(error * error), d

    return base.training(dict(data), gradients_of, base._Momentum)


class _Layers:
    """Layers that keep, of each result, what takes its gradient to those of its arguments."""

    def __init__(self) -> None:
        self.kept: list[tuple[Array, tuple[Array, ...], Callable[[Array], Iterable[Array]]]] = []

    def _result(
        self, value: Array, inputs: tuple[Array, ...], pullback: Callable[[Array], Iterable[Array]]
    ) -> Array:
        self.kept.append((value, inputs, pullback))
        return value

    def gradients(self, value: Array, upstream: Array) -> dict[int, Array]:
        """By the identities of all that `value` was computed from."""
        found = {id(value): upstream}
        for result, inputs, pullback in reversed(self.kept):
            for each, gradient in zip(inputs, pullback(found.pop(id(result))), strict=True):
                found[id(each)] = found.get(id(each), 0) + gradient
        return found

    def convolve(self, x: Array, weight: Array, stride: int) -> Array:
        strided = (slice(None), slice(None, None, stride), slice(None, None, stride))
        if weight.shape[-1] == 1:
            columns = x.transpose(0, 2, 3, 1)[strided]
        else:
            columns = base._columns(x)[strided]

        def pullback(upstream: Array) -> tuple[Array, Array]:
            change, _ = base.weights_gradient(upstream.transpose(0, 2, 3, 1), columns)
            dilated = np.zeros((*upstream.shape[:2], *x.shape[2:]), x.dtype)
            dilated[:, :, ::stride, ::stride] = upstream
            if weight.shape[-1] == 1:
                dx = np.einsum("nohw,oi->nihw", dilated, weight[:, :, 0, 0], optimize=True)
            else:
                dx = base._input_gradient(dilated, weight)
            return dx, change.reshape(weight.shape)

        none = np.zeros(len(weight), x.dtype)
        return self._result(base._convolution(columns, weight, none), (x, weight), pullback)

    def norm(self, x: Array, name: str, weight: Array, bias: Array) -> Array:
        value, pullback = _batch_norm(x, weight, bias)
        return self._result(value, (x, weight, bias), pullback)

    def relu(self, x: Array) -> Array:
        return self._result(np.maximum(x, 0), (x,), lambda upstream: (upstream * (x > 0),))

    def add(self, x: Array, y: Array) -> Array:
        return self._result(x + y, (x, y), lambda upstream: (upstream, upstream))

    def pool(self, x: Array) -> Array:
        def pullback(upstream: Array) -> tuple[Array]:
            shares = upstream[:, :, None, None] / math.prod(x.shape[2:])
            return (np.broadcast_to(shares, x.shape),)

        return self._result(x.mean((2, 3)), (x,), pullback)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        def pullback(upstream: Array) -> tuple[Array, Array, Array]:
            return upstream @ weight, *base.weights_gradient(upstream, x)

        return self._result(x @ weight.T + bias, (x, weight, bias), pullback)


def resnet_train(data: Data) -> Case:
    x, labels = data["x"], data["labels"]

    def gradients_of(p: Data) -> tuple[Array, Data]:
        layers = _Layers()
        scores = resnet.forward(layers, p, x)
        loss, upstream = base.mean_cross_entropy(scores, labels)
        found = layers.gradients(scores, upstream)
        return loss, {name: found[id(value)] for name, value in p.items()}

    return base.training(dict(data), gradients_of, partial(base._Momentum, settings=DECAYED))


def depthwise(data: Data) -> Case:
    def function(x: Array, depth: Array, point: Array) -> Array:
        height, width = x.shape[2:]
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        mixed = np.zeros_like(x)
        for row in range(3):
            for column in range(3):
                window = padded[:, :, row : row + height, column : column + width]
                mixed += window * depth[:, 0, row, column, None, None]
        flat = point[:, :, 0, 0] @ mixed.reshape(*mixed.shape[:2], -1)
        return flat.reshape(len(x), -1, height, width)

    return case(function, data["x"], data["depthwise_w"], data["pointwise_w"])


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm(data: Data) -> Case:
    def function(x: Array) -> tuple[Array, Array, Array]:
        weight, bias = data["hidden_w"].T, data["input_b"] + data["hidden_b"]
        projected = x @ data["input_w"].T + bias
        h = c = np.zeros((x.shape[1], len(weight)), x.dtype)
        seen = []
        for step in projected:
            i, f, g, o = np.split(step + h @ weight, 4, -1)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
            seen.append(h)
        return np.stack(seen), h, c

    return case(function, data["x"])


def embedding_gradient(data: Data) -> Case:
    def function(table: Array, tokens: Array, upstream: Array) -> Array:
        gradient = np.zeros_like(table)
        np.add.at(gradient, tokens, upstream)
        return gradient

    return case(function, data["table"], data["tokens"], data["upstream"])


def dropout(data: Data) -> Case:
    random = np.random.default_rng(0)

    def function(x: Array, upstream: Array) -> tuple[Array, Array]:
        mask = (random.random(x.shape, np.float32) >= DROPPED) * x.dtype.type(1 / (1 - DROPPED))
        return x * mask, upstream * mask

    return case(function, data["x"], data["upstream"])


def adam_many(data: Data) -> Case:
    values = {name: data[name].copy() for name in parameters(data)}
    gradients = {name: data["g" + name[1:-2]] for name in values}
    rule = base._AdamW(values)
    return Case(lambda: rule.step(gradients), lambda result: [np.ones(()), *values.values()])


def bfloat16_mlp(data: Data) -> Case:
    def function(x: Array) -> Array:
        h = np.maximum(x @ data["layer0_w"].T + data["layer0_b"], 0)
        h = np.maximum(h @ data["layer1_w"].T + data["layer1_b"], 0)
        return h @ data["layer2_w"].T + data["layer2_b"]

    return case(function, data["x"])
