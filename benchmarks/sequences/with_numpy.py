"""Models of sequences in NumPy; in float64 the reference. Gradients are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..case import Array, Case
from ..contenders import with_numpy as base
from .workloads import BLOCKS, LARGEST_NORM, LAYERS

Data = base.Data


def clipped(gradients: Data) -> Data:
    norm = np.sqrt(sum(np.sum(each * each) for each in gradients.values()))
    factor = min(LARGEST_NORM / (norm + 1e-6), 1.0)
    return {name: each * each.dtype.type(factor) for name, each in gradients.items()}


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm_layer(
    x: Array, input_w: Array, hidden_w: Array, bias: Array
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array, Array]]]:
    """Results of (length, batch, width), and what takes their gradient to those of the inputs."""
    projected = x @ input_w.T + bias
    h = c = np.zeros(x.shape[1:], x.dtype)
    states, gates, seen = [], [], []
    for row in projected:
        i, f, g, o = np.split(row + h @ hidden_w.T, 4, -1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        states.append((h, c))
        c = f * c + i * g
        gates.append((i, f, g, o, np.tanh(c)))
        h = o * gates[-1][-1]
        seen.append(h)

    def pullback(upstream: Array) -> tuple[Array, Array, Array, Array]:
        dprojected = np.empty_like(projected)
        dh = dc = np.zeros_like(h)
        for at in reversed(range(len(x))):
            i, f, g, o, unit = gates[at]
            dh = dh + upstream[at]
            dc = dc + dh * o * (1 - unit * unit)
            parts = [dc * g * i * (1 - i), dc * states[at][1] * f * (1 - f), dc * i * (1 - g * g)]
            dprojected[at] = np.concatenate([*parts, dh * unit * o * (1 - o)], -1)
            dh, dc = dprojected[at] @ hidden_w, dc * f
        before = np.stack([state for state, _ in states])
        weight, total = base.weights_gradient(dprojected, x)
        return dprojected @ input_w, weight, base.weights_gradient(dprojected, before)[0], total

    return np.stack(seen), pullback


def lstm_train(data: Data) -> Case:
    tokens, labels = data["tokens"].T, data["labels"].T.ravel()

    def gradients_of(p: Data) -> tuple[Array, Data]:
        x, pullbacks = p["words_w"][tokens], []
        for at in range(LAYERS):
            bias = p[f"input{at}_b"] + p[f"hidden{at}_b"]
            x, pullback = lstm_layer(x, p[f"input{at}_w"], p[f"hidden{at}_w"], bias)
            pullbacks.append(pullback)
        flat = x.reshape(len(labels), -1)
        loss, dscores = base.mean_cross_entropy(flat @ p["head_w"].T + p["head_b"], labels)

        d: Data = {"head_w": dscores.T @ flat, "head_b": dscores.sum(0)}
        dx = (dscores @ p["head_w"]).reshape(x.shape)
        for at in reversed(range(LAYERS)):
            dx, d[f"input{at}_w"], d[f"hidden{at}_w"], bias = pullbacks[at](dx)
            d[f"input{at}_b"] = d[f"hidden{at}_b"] = bias
        d["words_w"] = np.zeros_like(p["words_w"])
        np.add.at(d["words_w"], tokens, dx)
        return loss, clipped(d)

    return base.training(data, gradients_of, partial(base._AdamW, decays=lambda value: False))


def gpt_train(data: Data) -> Case:
    tokens, labels = data["tokens"], data["labels"].ravel()

    def gradients_of(p: Data) -> tuple[Array, Data]:
        x, pullbacks = p["words_w"][tokens] + p["places_w"], []
        for number in range(BLOCKS):
            x, pullback = base.block(_own(p, number), x, causal=True)
            pullbacks.append(pullback)
        unit, inverse = base.normalized(x)
        h = (unit * p["final_w"] + p["final_b"]).reshape(len(labels), -1)
        loss, dscores = base.mean_cross_entropy(h @ p["words_w"].T, labels)

        d: Data = {"words_w": dscores.T @ h}
        dh = (dscores @ p["words_w"]).reshape(x.shape)
        dx, d["final_w"], d["final_b"] = base.normalized_gradients(unit, inverse, p["final_w"], dh)
        for number in reversed(range(BLOCKS)):
            dx, inner = pullbacks[number](dx)
            d |= {f"block{number}_{name}": value for name, value in inner.items()}
        np.add.at(d["words_w"], tokens, dx)
        d["places_w"] = dx.sum(0)
        return loss, clipped(d)

    return base.training(data, gradients_of, partial(base._AdamW, decays=_is_matrix))


def _own(p: Data, number: int) -> Data:
    """The parameters of one block."""
    start = f"block{number}_"
    return {name.removeprefix(start): p[name] for name in p if name.startswith(start)}


def _is_matrix(value: Any) -> bool:
    return bool(value.ndim > 1)
