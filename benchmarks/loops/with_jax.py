"""Programs with loops in JAX, jitted, by its own loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case
from ..contenders.with_jax import Data, case
from ..networks.with_jax import lstm
from .formulas import END, begin, step
from .workloads import BEAMS, LIKELY, STEPS, TOLERANCE, WORD_OF_END


def lstm_scan(data: Data) -> Case:
    return lstm(data)


def newton(data: Data) -> Case:
    def function(a: jax.Array) -> jax.Array:
        return jax.lax.while_loop(
            lambda x: jnp.abs(x * x * x - a).max() > TOLERANCE,
            lambda x: x - (x * x * x - a) / (3 * x * x),
            a,
        )

    return case(function, data, "a")


def decode(data: Data) -> Case:
    weights = {name: jnp.asarray(value) for name, value in data.items()}

    def linear(name: str, x: jax.Array) -> jax.Array:
        return weights[f"{name}_w"] @ x + weights[f"{name}_b"]

    def function(table: jax.Array, output: jax.Array) -> tuple[jax.Array, ...]:
        width, places = table.shape[1], jnp.arange(STEPS)

        def step(state: Any, at: jax.Array) -> Any:
            token, _, keys, values = state
            x = table[token]
            keys, values = keys.at[at].set(linear("key", x)), values.at[at].set(linear("value", x))
            scores = keys @ linear("query", x) * width**-0.5
            x = x + jax.nn.softmax(jnp.where(places > at, -jnp.inf, scores)) @ values
            token = (output @ x).argmax()
            return (token, x, keys, values), token

        empty = jnp.zeros((STEPS, width))
        (_, x, _, _), tokens = jax.lax.scan(
            step, (jnp.zeros((), places.dtype), table[0], empty, empty), places
        )
        return tokens, x

    return case(function, data, "table", "output")


def ode_adjoint(data: Data) -> Case:
    names = "inner_w", "inner_b", "outer_w", "outer_b"
    weights = [jnp.asarray(data[name]) for name in names]

    def network(y: jax.Array, w1: Any, b1: Any, w2: Any, b2: Any) -> jax.Array:
        return jnp.tanh(y @ w1.T + b1) @ w2.T + b2

    def slope(state: Any) -> Any:
        return (network(state[0], *weights),)

    def backwards(state: Any) -> Any:
        found, pull = jax.vjp(network, state[0], *weights)
        return (-found, *pull(state[1]))

    def solved(slope: Any, y: Any, counted: int) -> Any:
        def turn(state: Any) -> Any:
            return step(jnp, slope, counted, state)

        first = begin(slope, y, lambda number: jnp.asarray(number, y[0].dtype))
        return jax.lax.while_loop(lambda state: state[0] < END, turn, first)[3]

    def function(y: jax.Array, target: jax.Array) -> tuple[jax.Array, ...]:
        (y,) = solved(slope, [y], 1)
        first = [y, 2 / y.size * (y - target), *map(jnp.zeros_like, weights)]
        return ((y - target) ** 2).mean(), *solved(backwards, first, 2)[1:]

    return case(function, data, "y", "target")


def _following(data: Data) -> Any:
    """Scores of the word behind one at a place in each of several sentences, and the cache."""
    weights = {name: jnp.asarray(value) for name, value in data.items()}
    places = jnp.arange(STEPS)

    def function(word: Any, at: Any, keys: Any, values: Any) -> Any:
        x = weights["table"][word]
        q, k, v = (x @ weights[f"{n}_w"].T + weights[f"{n}_b"] for n in ("query", "key", "value"))
        keys, values = keys.at[:, at].set(k), values.at[:, at].set(v)
        scores = (keys @ q[:, :, None])[:, :, 0] * x.shape[1] ** -0.5
        chances = jax.nn.softmax(jnp.where(places > at, -jnp.inf, scores), 1)
        return (x + (chances[:, None] @ values)[:, 0]) @ weights["output"].T, keys, values

    return function


def beam_search(data: Data) -> Case:
    following, ends = _following(data), jnp.asarray(data["ends"])
    words, width = data["table"].shape
    only_end = jnp.where(jnp.arange(words) == WORD_OF_END, 0.0, -jnp.inf)

    def turn(state: Any) -> Any:
        at, word, ended, total, sentences, keys, values = state
        scores, keys, values = following(word, at, keys, values)
        chances = jax.nn.log_softmax(scores + ends[at], 1)
        chances = jnp.where(ended[:, None], only_end, chances)
        total, best = jax.lax.top_k((total[:, None] + chances).ravel(), BEAMS)
        parent, word = best // words, best % words
        sentences = sentences[parent].at[:, at].set(word)
        ended = ended[parent] | (word == WORD_OF_END)
        return at + 1, word, ended, total, sentences, keys[parent], values[parent]

    def function() -> tuple[jax.Array, ...]:
        total = jnp.where(jnp.arange(BEAMS) == 0, 0.0, -jnp.inf)
        sentences = jnp.full((BEAMS, STEPS), WORD_OF_END)
        keys, values = jnp.zeros((2, BEAMS, STEPS, width))
        word, ended = jnp.ones(BEAMS, sentences.dtype), jnp.zeros(BEAMS, bool)
        found = jax.lax.while_loop(
            lambda state: (state[0] < STEPS) & ~state[2].all(),
            turn,
            (0, word, ended, total, sentences, keys, values),
        )
        return found[4], found[3]

    return case(function, data)


def sampling(data: Data) -> Case:
    following, width = _following(data), data["table"].shape[1]

    def function(first: jax.Array, temperature: jax.Array, seed: jax.Array) -> jax.Array:
        def turn(state: Any, row: Any) -> Any:
            (word, keys, values), (at, key) = state, row
            scores, keys, values = following(word, at, keys, values)
            scores, likely = jax.lax.top_k(scores, LIKELY)
            drawn = jax.random.categorical(key, scores / temperature)
            word = jnp.take_along_axis(likely, drawn[:, None], 1)[:, 0]
            return (word, keys, values), word

        keys, values = jnp.zeros((2, len(first), STEPS, width))
        rows = jnp.arange(STEPS), jax.random.split(jax.random.key(seed), STEPS)
        return jax.lax.scan(turn, (first.astype(jnp.int32), keys, values), rows)[1].T

    return case(function, {**data, "seed": np.array(0)}, "first", "temperature", "seed")
