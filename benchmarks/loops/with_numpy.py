"""Programs with loops in NumPy; in float64 the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import Array, Case, Data
from ..contenders.with_numpy import case
from ..networks.with_numpy import lstm
from .formulas import END, begin, step
from .workloads import BEAMS, LIKELY, STEPS, TOLERANCE, WORD_OF_END, following


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


def ode_adjoint(data: Data) -> Case:
    """The gradients of a layer are written by hand."""
    w1, b1, w2, b2 = weights = [data[each] for each in ("inner_w", "inner_b", "outer_w", "outer_b")]

    def slope(state: Any) -> Any:
        return [np.tanh(state[0] @ w1.T + b1) @ w2.T + b2]

    def backwards(state: Any) -> Any:
        y, a = state[:2]
        hidden = np.tanh(y @ w1.T + b1)
        inner = a @ w2 * (1 - hidden * hidden)
        return [
            -(hidden @ w2.T + b2), inner @ w1,
            inner.T @ y, inner.sum(0), a.T @ hidden, a.sum(0),
        ]  # fmt: skip

    def solved(slope: Any, y: Any, counted: int) -> Any:
        state = begin(slope, y, y[0].dtype.type)
        while state[0] < END:
            state = step(np, slope, counted, state)
        return state[3]

    def function(y: Array, target: Array) -> tuple[Array, ...]:
        (y,) = solved(slope, [y], 1)
        loss = ((y - target) ** 2).mean()
        first = [y, 2 / y.size * (y - target), *map(np.zeros_like, weights)]
        return loss, *solved(backwards, first, 2)[1:]

    return case(function, data["y"], data["target"])


def beam_search(data: Data) -> Case:
    def function(table: Array, output: Array) -> tuple[Array, Array]:
        width, words = table.shape[1], len(table)
        keys, values = np.zeros((2, BEAMS, STEPS, width), table.dtype)
        sentences = np.full((BEAMS, STEPS), WORD_OF_END)
        total = np.where(np.arange(BEAMS) == 0, 0, -np.inf).astype(table.dtype)
        word, ended, at = np.ones(BEAMS, int), np.zeros(BEAMS, bool), 0
        while at < STEPS and not ended.all():
            scores, k, v = following(data, word, keys[:, :at], values[:, :at])
            keys[:, at], values[:, at] = k, v
            scores = scores + data["ends"][at]
            chances = scores - scores.max(1, keepdims=True)
            chances = chances - np.log(np.exp(chances).sum(1, keepdims=True))
            chances[ended] = np.where(np.arange(words) == WORD_OF_END, 0, -np.inf)
            every = (total[:, None] + chances).ravel()
            best = np.argsort(-every, kind="stable")[:BEAMS]
            total, (parent, word) = every[best], np.divmod(best, words)
            keys, values, sentences = keys[parent], values[parent], sentences[parent]
            sentences[:, at] = word
            ended = ended[parent] | (word == WORD_OF_END)
            at += 1
        return sentences, total

    return case(function, data["table"], data["output"])


def sampling(data: Data) -> Case:
    random = np.random.default_rng(0)

    def function(table: Array, first: Array, temperature: Array) -> Array:
        keys, values = np.zeros((2, len(first), STEPS, table.shape[1]), table.dtype)
        word, sentences = first, np.zeros((len(first), STEPS), int)
        for at in range(STEPS):
            scores, k, v = following(data, word, keys[:, :at], values[:, :at])
            keys[:, at], values[:, at] = k, v
            likely = np.argpartition(-scores, LIKELY, 1)[:, :LIKELY]
            noise = random.gumbel(size=likely.shape).astype(table.dtype)
            drawn = (np.take_along_axis(scores, likely, 1) / temperature + noise).argmax(1)
            word = np.take_along_axis(likely, drawn[:, None], 1)[:, 0]
            sentences[:, at] = word
        return sentences

    return case(function, data["table"], data["first"], data["temperature"])
