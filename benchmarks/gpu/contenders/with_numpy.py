"""NumPy, written out by hand; in float64 the reference that every contender is held to.

The names `np` and `base` stand for other arrays when `with_arrays` loads this module over CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from ...case import Array, Case
from ...contenders import with_numpy as base
from ...workload import parameters
from .. import formulas, resnet

Data = dict[str, Array]
erf: Callable[[Any], Any] = scipy.special.erf


def black_scholes(data: Data) -> Case:
    def function(spot: Array, strike: Array, years: Array) -> tuple[Array, Array]:
        return formulas.black_scholes(np, erf, spot, strike, years)

    return base.case(base.fused(function), data["spot"], data["strike"], data["years"])


def stencil(data: Data) -> Case:
    return base.case(lambda u: formulas.diffused(lambda u: np.pad(u, 1), u), data["u"])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm(data: Data) -> Case:
    def function(x: Array) -> tuple[Array, Array, Array]:
        weight, bias = data["hidden_w"].T, data["input_b"] + data["hidden_b"]
        projected = x @ data["input_w"].T + bias
        h = c = np.zeros((x.shape[1], len(weight)), x.dtype)
        seen = []
        for step in projected:
            i, f, g, o = np.split(step + h @ weight, 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            seen.append(h)
        return np.stack(seen), h, c

    return base.case(function, data["x"])


def decode(data: Data) -> Case:
    def write(cache: Array, at: int, row: Array) -> Array:
        cache[at] = row
        return cache

    def function(x: Array, *weights: Array) -> tuple[Array, Array]:
        keys, values = data["cache"].copy(), data["cache"].copy()
        positions = np.arange(len(keys))[:, None]
        for at in range(len(keys)):
            x, keys, values = formulas.decoded(np, write, at, x, keys, values, positions, weights)
        return x, keys

    names = ("x", "query_w", "key_w", "value_w", "out_w")
    return base.case(function, *(data[name] for name in names))


def newton(data: Data) -> Case:
    def function(a: Array) -> Array:
        x = a
        while formulas.is_far(a, x):
            x = formulas.nearer(a, x)
        return x

    return base.case(function, data["a"])


def adamw(data: Data) -> Case:
    values = {name: data[name].copy() for name in parameters(data)}
    gradients = {name: data["g" + name[1:-2]] for name in values}
    rule = base._AdamW(values)
    return Case(
        lambda: rule.step(gradients),
        lambda result: [np.ones(()), *map(np.asarray, values.values())],
    )


def layer(p: Data, number: int) -> Data:
    """The parameters of one block of a language model."""
    prefix = f"h{number}_"
    return {name.removeprefix(prefix): p[name] for name in p if name.startswith(prefix)}


def layers(data: Data) -> int:
    """The number of blocks of a language model."""
    return sum(name.endswith("_qkv_w") for name in data)


def gpt2_train(data: Data) -> Case:
    tokens, labels = data["tokens"], data["labels"].ravel()
    count = layers(data)

    def gradients_of(p: Data) -> tuple[Array, Data]:
        x = p["words_w"][tokens] + p["places_w"]
        pullbacks = []
        for number in range(count):
            x, pullback = base.block(layer(p, number), x, causal=True)
            pullbacks.append(pullback)
        unit, inverse = base.normalized(x)
        h = (unit * p["final_w"] + p["final_b"]).reshape(len(labels), -1)
        loss, dlogits = base.mean_cross_entropy(h @ p["words_w"].T, labels)

        d: Data = {"words_w": dlogits.T @ h}
        dh = (dlogits @ p["words_w"]).reshape(x.shape)
        dx, d["final_w"], d["final_b"] = base.normalized_gradients(unit, inverse, p["final_w"], dh)
        for number in reversed(range(count)):
            dx, inner = pullbacks[number](dx)
            d.update({f"h{number}_{name}": value for name, value in inner.items()})
        np.add.at(d["words_w"], tokens, dx)
        d["places_w"] = dx.sum(0)
        return loss, d

    return base.training(data, gradients_of, base._AdamW)


class Layers:
    """The layers of a network for images, channels first."""

    def convolve(self, x: Array, weight: Array, stride: int) -> Array:
        size = weight.shape[-1]
        columns = _windows(x, size, stride, 0).transpose(0, 2, 3, 1, 4, 5)
        n, height, width = columns.shape[:3]
        out = columns.reshape(n * height * width, -1) @ weight.reshape(len(weight), -1).T
        return out.reshape(n, height, width, -1).transpose(0, 3, 1, 2)

    def norm(self, x: Array, *statistics: Array) -> Array:
        scale, shift, mean, var = (each[:, None, None] for each in statistics)
        return (x - mean) / np.sqrt(var + resnet.EPSILON) * scale + shift

    def relu(self, x: Array) -> Array:
        return np.maximum(x, 0)

    def pool(self, x: Array) -> Array:
        return _windows(x, 3, 2, -np.inf).max((4, 5))

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        return x @ weight.T + bias


def _windows(x: Array, size: int, stride: int, border: float) -> Array:
    """Windows (n, channels, height, width, size, size), as many as with padding size // 2."""
    around = (size // 2, size // 2)
    padded = np.pad(x, ((0, 0), (0, 0), around, around), constant_values=border)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))
    return windows[:, :, ::stride, ::stride]


def resnet18(data: Data) -> Case:
    return base.case(lambda: resnet.forward(Layers(), data))
