"""Models of sequences in JAX: the whole step jitted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..case import Case
from ..contenders import with_jax as base
from .workloads import BLOCKS, LARGEST_NORM, LAYERS

Data, Values = base.Data, base.Values


def clipped(gradients: Values) -> Values:
    norm = jnp.sqrt(sum(jnp.sum(each * each) for each in gradients.values()))
    factor = jnp.minimum(LARGEST_NORM / (norm + 1e-6), 1.0)
    return jax.tree.map(lambda each: factor * each, gradients)


def _adam(p: Values, gradients: Values, state: Any) -> tuple[Values, Any]:
    return base.adamw(p, clipped(gradients), state, dict.fromkeys(p, False))


def _adamw(p: Values, gradients: Values, state: Any) -> tuple[Values, Any]:
    decays = {name: value.ndim > 1 for name, value in p.items()}
    return base.adamw(p, clipped(gradients), state, decays)


def lstm_train(data: Data) -> Case:
    def layer(p: Values, number: int, x: jax.Array) -> jax.Array:
        """Of (length, batch, width)."""
        weight = p[f"hidden{number}_w"].T
        bias = p[f"input{number}_b"] + p[f"hidden{number}_b"]

        def step(state: Any, projected: jax.Array) -> Any:
            h, c = state
            i, f, g, o = jnp.split(projected + h @ weight, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros(x.shape[1:])
        return jax.lax.scan(step, (zeros, zeros), x @ p[f"input{number}_w"].T + bias)[1]

    def loss_of(p: Values, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = p["words_w"][tokens.T]
        for number in range(LAYERS):
            x = layer(p, number, x)
        scores = x.swapaxes(0, 1) @ p["head_w"].T + p["head_b"]
        return base.mean_cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.ravel())

    return base.training(data, loss_of, _adam, base.adamw_state, "tokens", "labels")


def gpt_train(data: Data) -> Case:
    def loss_of(p: Values, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = p["words_w"][tokens] + p["places_w"]
        for number in range(BLOCKS):
            start = f"block{number}_"
            own = {name.removeprefix(start): p[name] for name in p if name.startswith(start)}
            x = base.block(own, x, causal=True)
        scores = base.normalized(x, p["final_w"], p["final_b"]) @ p["words_w"].T
        return base.mean_cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.ravel())

    return base.training(data, loss_of, _adamw, base.adamw_state, "tokens", "labels")
