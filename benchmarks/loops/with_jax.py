"""Programs with loops in JAX, jitted, by its own loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..case import Case
from ..contenders.with_jax import Data, case
from ..networks.with_jax import lstm
from .workloads import STEPS, TOLERANCE


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
