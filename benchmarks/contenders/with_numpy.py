"""NumPy, written out by hand; in float64 the reference that every contender is held to.

The GPU benchmark loads this module again with CuPy under the name `np`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..case import Array, Case
from ..hyperparameters import ADAMW, SGD, SOFTENING, Adam, Momentum, heads
from ..workload import parameters

Data = dict[str, Array]


def start(threads: int) -> None:
    """The number of threads is OpenBLAS's, set in the environment."""


def versions() -> dict[str, str]:
    """NumPy's version."""
    return {"numpy": np.__version__}


def case(function: Callable[..., Any], *arguments: Any) -> Case:
    return Case(lambda: function(*arguments), arrays)


def arrays(result: Any) -> list[Array]:
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of an elementwise function; over CuPy, `cupy.fuse` may take the place of this."""
    return function


def gelu_chain(data: Data) -> Case:
    def function(x: Array) -> Array:
        t = x * 1.1 + 0.3
        inner = 0.7978845608 * (t + 0.044715 * (t * t * t))
        return 0.5 * t * (1 + np.tanh(inner)) * x - t

    return case(fused(function), data["x"])


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    return e


def softmax(data: Data) -> Case:
    return case(_softmax, data["x"])


def normalized(x: Array) -> tuple[Array, Array]:
    centered = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
    centered *= inverse
    return centered, inverse


def normalized_gradients(
    normalized: Array, inverse: Array, weight: Array, upstream: Array
) -> tuple[Array, Array, Array]:
    lead = tuple(range(upstream.ndim - 1))
    scaled = upstream * weight
    mean = scaled.mean(-1, keepdims=True)
    along = (scaled * normalized).mean(-1, keepdims=True)
    dx = inverse * (scaled - mean - normalized * along)
    return dx, (upstream * normalized).sum(lead), upstream.sum(lead)


def layer_norm(data: Data) -> Case:
    def function(x: Array, weight: Array, bias: Array, upstream: Array) -> tuple[Array, ...]:
        unit, inverse = normalized(x)
        value = unit * weight + bias
        return value, *normalized_gradients(unit, inverse, weight, upstream)

    return case(function, data["x"], data["weight"], data["bias"], data["upstream"])


def mean_cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    """The mean loss and its gradient."""
    rows = np.arange(len(labels))
    shifted = logits - logits.max(-1, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(-1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) - shifted[rows, labels])
    e /= total
    e[rows, labels] -= 1
    e /= len(labels)
    return loss, e


def cross_entropy(data: Data) -> Case:
    return case(mean_cross_entropy, data["logits"], data["labels"])


def column_stats(data: Data) -> Case:
    def function(x: Array) -> tuple[Array, ...]:
        top = x.max(1, keepdims=True)
        rows = top[:, 0] + np.log(np.exp(x - top).sum(1))
        return x.mean(0), x.var(0), rows

    return case(function, data["x"])


def transposed(data: Data) -> Case:
    def function(t: Array, b: Array) -> Array:
        return np.exp(-np.abs(t)) * b + t * 0.5 - b * b

    return case(fused(function), data["a"].T, data["b"])


def pairwise(data: Data) -> Case:
    def function(x: Array, mass: Array) -> Array:
        diff = x[:, None] - x[None]
        r2 = (diff**2).sum(-1) + SOFTENING
        return (diff * (mass / (r2 * np.sqrt(r2)))[..., None]).sum(1)

    return case(function, data["x"], data["mass"])


def embedding(data: Data) -> Case:
    def function(table: Array, tokens: Array, upstream: Array) -> tuple[Array, ...]:
        gradient = np.zeros_like(table)
        np.add.at(gradient, tokens, upstream)
        return table[tokens], gradient

    return case(function, data["table"], data["tokens"], data["upstream"])


def call(data: Data) -> Case:
    return case(lambda *given: sum(given[1:], given[0] + 1), *data.values())


def tiny_mlp(data: Data) -> Case:
    def function(x: Array) -> Array:
        hidden = np.maximum(x @ data["first_w"].T + data["first_b"], 0)
        return hidden @ data["second_w"].T + data["second_b"]

    return case(function, data["x"])


def all_decay(value: Array) -> bool:
    return True


class _AdamW:
    def __init__(
        self, values: Data, settings: Adam = ADAMW, decays: Callable[[Array], bool] = all_decay
    ) -> None:
        self.values, self.settings, self.count = values, settings, 0
        self.decays = decays
        self.first = {name: np.zeros_like(value) for name, value in values.items()}
        self.second = {name: np.zeros_like(value) for name, value in values.items()}

    def step(self, gradients: Mapping[str, Array]) -> None:
        use = self.settings
        self.count += 1
        size = use.rate / (1 - use.beta1**self.count)
        correction = math.sqrt(1 - use.beta2**self.count)
        for name, value in self.values.items():
            first, second, gradient = self.first[name], self.second[name], gradients[name]
            first += (1 - use.beta1) * (gradient - first)
            second += (1 - use.beta2) * (gradient * gradient - second)
            if self.decays(value):
                value *= 1 - use.rate * use.decay
            value -= size * first / (np.sqrt(second) / correction + use.epsilon)


class _Momentum:
    def __init__(self, values: Data, settings: Momentum = SGD) -> None:
        self.values, self.settings = values, settings
        self.velocity = {name: np.zeros_like(value) for name, value in values.items()}

    def step(self, gradients: Mapping[str, Array]) -> None:
        for name, value in self.values.items():
            velocity = self.velocity[name]
            velocity *= self.settings.momentum
            velocity += gradients[name] + self.settings.decay * value
            value -= self.settings.rate * velocity


def training(
    data: Data, gradients_of: Callable[[Data], tuple[Array, Data]], optimizer: Any
) -> Case:
    """A case of `gradients_of(parameters) -> loss, gradients` and an optimizer class."""
    values = {name: data[name].copy() for name in parameters(data)}
    rule = optimizer(values)

    def call() -> Array:
        loss, gradients = gradients_of(values)
        rule.step(gradients)
        return loss

    return Case(call, lambda loss: [np.asarray(loss), *values.values()])


def mlp_train(data: Data) -> Case:
    x, labels = data["x"], data["labels"]

    def gradients_of(p: Data) -> tuple[Array, Data]:
        h1 = np.maximum(x @ p["first_w"].T + p["first_b"], 0)
        h2 = np.maximum(h1 @ p["second_w"].T + p["second_b"], 0)
        loss, d3 = mean_cross_entropy(h2 @ p["third_w"].T + p["third_b"], labels)
        d2 = (d3 @ p["third_w"]) * (h2 > 0)
        d1 = (d2 @ p["second_w"]) * (h1 > 0)
        return loss, {
            "first_w": d1.T @ x,
            "first_b": d1.sum(0),
            "second_w": d2.T @ h1,
            "second_b": d2.sum(0),
            "third_w": d3.T @ h2,
            "third_b": d3.sum(0),
        }

    return training(data, gradients_of, _AdamW)


def _gelu(t: Array) -> tuple[Array, Array]:
    """The tanh form and its derivative."""
    tanh = np.tanh(0.7978845608 * (t + 0.044715 * t**3))
    slope = 0.7978845608 * (1 + 3 * 0.044715 * t * t)
    return 0.5 * t * (1 + tanh), 0.5 * (1 + tanh) + 0.5 * t * (1 - tanh * tanh) * slope


def weights_gradient(upstream: Array, inputs: Array) -> tuple[Array, Array]:
    flat = upstream.reshape(-1, upstream.shape[-1])
    return flat.T @ inputs.reshape(-1, inputs.shape[-1]), flat.sum(0)


Pullback = Callable[[Array], tuple[Array, Data]]


def block(p: Data, x: Array, causal: bool = False) -> tuple[Array, Pullback]:
    """A transformer block of (batch, length, width), with its norms in front.

    The second result takes an upstream gradient to those of `x` and of the parameters.
    """
    batch, length, width = x.shape
    count = heads(width)
    scale = 1 / math.sqrt(width // count)
    n1, i1 = normalized(x)
    h1 = n1 * p["norm1_w"] + p["norm1_b"]
    qkv = (h1 @ p["qkv_w"].T + p["qkv_b"]).reshape(batch, length, 3, count, -1)
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, scores.dtype.type(-np.inf))
    weights = _softmax(scores)
    mixed = (weights @ v).swapaxes(1, 2).reshape(batch, length, width)
    r = x + mixed @ p["out_w"].T + p["out_b"]
    n2, i2 = normalized(r)
    h2 = n2 * p["norm2_w"] + p["norm2_b"]
    g, slope = _gelu(h2 @ p["up_w"].T + p["up_b"])
    y = r + g @ p["down_w"].T + p["down_b"]

    def pullback(dy: Array) -> tuple[Array, Data]:
        d: Data = {}
        d["down_w"], d["down_b"] = weights_gradient(dy, g)
        du = (dy @ p["down_w"]) * slope
        d["up_w"], d["up_b"] = weights_gradient(du, h2)
        dr, d["norm2_w"], d["norm2_b"] = normalized_gradients(n2, i2, p["norm2_w"], du @ p["up_w"])
        dr = dr + dy
        d["out_w"], d["out_b"] = weights_gradient(dr, mixed)
        dmixed = (dr @ p["out_w"]).reshape(batch, length, count, -1).swapaxes(1, 2)
        dv = weights.swapaxes(-1, -2) @ dmixed
        dweights = dmixed @ v.swapaxes(-1, -2)
        dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True)) * scale
        dq, dk = dscores @ k, dscores.swapaxes(-1, -2) @ q
        dqkv = np.stack([dq, dk, dv]).transpose(1, 3, 0, 2, 4).reshape(batch, length, 3 * width)
        d["qkv_w"], d["qkv_b"] = weights_gradient(dqkv, h1)
        dx, d["norm1_w"], d["norm1_b"] = normalized_gradients(
            n1, i1, p["norm1_w"], dqkv @ p["qkv_w"]
        )
        return dx + dr, d

    return y, pullback


def transformer_train(data: Data) -> Case:
    x, target = data["x"], data["target"]

    def gradients_of(p: Data) -> tuple[Array, Data]:
        y, pullback = block(p, x)
        error = y - target
        return np.mean(error * error), pullback(error * (2 / error.size))[1]

    return training(data, gradients_of, _AdamW)


def _columns(x: Array) -> Array:
    """Patches (n, height, width, channels · 9) of images padded by one."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    n, channels, height, width = x.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, height, width, channels * 9)


def _convolution(columns: Array, weight: Array, bias: Array) -> Array:
    out = columns @ weight.reshape(len(weight), -1).T + bias
    return out.transpose(0, 3, 1, 2)


def _input_gradient(upstream: Array, weight: Array) -> Array:
    flipped = weight[:, :, ::-1, ::-1].swapaxes(0, 1)
    return _convolution(_columns(upstream), flipped, np.zeros(len(flipped), upstream.dtype))


def _pooled(x: Array) -> tuple[Array, Array]:
    """The greatest of each 2×2 window, and a mask of the first place that holds it."""
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    flat = windows.reshape(n, c, h // 2, w // 2, 4)
    mask = np.arange(4) == flat.argmax(-1)[..., None]
    return flat.max(-1), mask


def _unpooled(upstream: Array, mask: Array) -> Array:
    n, c, h, w = upstream.shape
    flat = (upstream[..., None] * mask).reshape(n, c, h, w, 2, 2)
    return flat.transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def cnn_train(data: Data) -> Case:
    x, labels = data["x"], data["labels"]

    def gradients_of(p: Data) -> tuple[Array, Data]:
        columns1 = _columns(x)
        c1 = np.maximum(_convolution(columns1, p["conv1_w"], p["conv1_b"]), 0)
        h1, mask1 = _pooled(c1)
        columns2 = _columns(h1)
        c2 = np.maximum(_convolution(columns2, p["conv2_w"], p["conv2_b"]), 0)
        h2, mask2 = _pooled(c2)
        flat = h2.reshape(len(x), -1)
        loss, dlogits = mean_cross_entropy(flat @ p["head_w"].T + p["head_b"], labels)

        d: Data = {"head_w": dlogits.T @ flat, "head_b": dlogits.sum(0)}
        d2 = _unpooled((dlogits @ p["head_w"]).reshape(h2.shape), mask2) * (c2 > 0)
        d1 = _unpooled(_input_gradient(d2, p["conv2_w"]), mask1) * (c1 > 0)
        for name, upstream, columns in (("conv2", d2, columns2), ("conv1", d1, columns1)):
            weight, bias = weights_gradient(upstream.transpose(0, 2, 3, 1), columns)
            d[f"{name}_w"], d[f"{name}_b"] = weight.reshape(p[f"{name}_w"].shape), bias
        return loss, d

    return training(data, gradients_of, _Momentum)
