"""Programs with loops in NumPy; in float64 the reference."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case, Data
from ..contenders.with_numpy import case
from ..networks.with_numpy import lstm
from .workloads import STEPS, TOLERANCE


def lstm_scan(data: Data) -> Case:
    return lstm(data)


def newton(data: Data) -> Case:
    def function(a: Array) -> Array:
        x = a
        while np.abs(x * x * x - a).max() > TOLERANCE:
            x = x - (x * x * x - a) / (3 * x * x)
        return x

    return case(function, data["a"])


def decode(data: Data) -> Case:
    def function(table: Array, output: Array) -> tuple[Array, Array]:
        width = table.shape[1]
        keys, values = np.zeros((2, STEPS, width), table.dtype)
        token, tokens = 0, []
        for at in range(STEPS):
            x = table[token]
            q, k, v = (x @ data[f"{n}_w"].T + data[f"{n}_b"] for n in ("query", "key", "value"))
            keys[at], values[at] = k, v
            scores = keys[: at + 1] @ q / width**0.5
            weights = np.exp(scores - scores.max())
            x = x + weights @ values[: at + 1] / weights.sum()
            token = int((output @ x).argmax())
            tokens.append(token)
        return np.array(tokens), x

    return case(function, data["table"], data["output"])
