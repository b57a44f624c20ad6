"""Pieces of networks in JAX, jitted."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case
from ..contenders import with_jax as base
from ..contenders.with_jax import Data, Values, arrays, case, finished
from ..hyperparameters import DECAYED, DROPPED
from ..workload import parameters
from . import resnet


def _perceptron(p: Values, x: jax.Array) -> jax.Array:
    for at in range(len(p) // 2):
        x = (x if at == 0 else jax.nn.relu(x)) @ p[f"layer{at}_w"].T + p[f"layer{at}_b"]
    return x


def small_mlp_train(data: Data) -> Case:
    def loss_of(p: Values, x: jax.Array, labels: jax.Array) -> jax.Array:
        return base.mean_cross_entropy(_perceptron(p, x), labels)

    return base.training(data, loss_of, base.adamw, base.adamw_state, "x", "labels")


def _attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = q @ k.swapaxes(-1, -2) * (1 / q.shape[-1] ** 0.5)
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(causal, scores, -jnp.inf)) @ v


def attention(data: Data) -> Case:
    return case(_attend, data, "q", "k", "v")


def attention_train(data: Data) -> Case:
    def function(
        q: jax.Array, k: jax.Array, v: jax.Array, upstream: jax.Array
    ) -> tuple[jax.Array, ...]:
        value, pullback = jax.vjp(_attend, q, k, v)
        return value, *pullback(upstream)

    return case(function, data, "q", "k", "v", "upstream")


def _convolved(x: jax.Array, weight: jax.Array, groups: int = 1, stride: int = 1) -> jax.Array:
    """Channels last, which XLA's convolutions on a CPU prefer; weights as PyTorch's."""
    order = ("NHWC", "OIHW", "NHWC")
    side = weight.shape[-1] // 2
    return jax.lax.conv_general_dilated(
        x,
        weight,
        (stride, stride),
        [(side, side)] * 2,
        dimension_numbers=order,
        feature_group_count=groups,
    )


def _batch_norm(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weight + bias


def residual_train(data: Data) -> Case:
    def loss_of(p: Values, x: jax.Array, target: jax.Array) -> jax.Array:
        h = _batch_norm(_convolved(x, p["conv1_w"]), p["norm1_w"], p["norm1_b"])
        h = _convolved(jax.nn.relu(h), p["conv2_w"])
        h = jax.nn.relu(_batch_norm(h, p["norm2_w"], p["norm2_b"]) + x)
        return jnp.mean((h - target) ** 2)

    last = {name: data[name].transpose(0, 2, 3, 1) for name in ("x", "target")}
    zeros = lambda p: jax.tree.map(jnp.zeros_like, p)  # noqa: E731
    return base.training({**data, **last}, loss_of, base._momentum, zeros, "x", "target")


class _Layers:
    """Channels last."""

    def convolve(self, x: jax.Array, weight: jax.Array, stride: int) -> jax.Array:
        return _convolved(x, weight, stride=stride)

    def norm(self, x: jax.Array, name: str, weight: jax.Array, bias: jax.Array) -> jax.Array:
        return _batch_norm(x, weight, bias)

    def relu(self, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x)

    def add(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return x + y

    def pool(self, x: jax.Array) -> jax.Array:
        return x.mean((1, 2))

    def linear(self, x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        return x @ weight.T + bias


def resnet_train(data: Data) -> Case:
    def loss_of(p: Values, x: jax.Array, labels: jax.Array) -> jax.Array:
        return base.mean_cross_entropy(resnet.forward(_Layers(), p, x), labels)

    last = {**data, "x": data["x"].transpose(0, 2, 3, 1)}
    zeros = lambda p: jax.tree.map(jnp.zeros_like, p)  # noqa: E731
    rule = partial(base._momentum, rule=DECAYED)
    return base.training(last, loss_of, rule, zeros, "x", "labels")


def depthwise(data: Data) -> Case:
    def function(x: jax.Array, depth: jax.Array, point: jax.Array) -> jax.Array:
        return _convolved(_convolved(x, depth, len(depth)), point)

    last = {**data, "x": data["x"].transpose(0, 2, 3, 1)}
    run = case(function, last, "x", "depthwise_w", "pointwise_w")
    return Case(run.call, lambda result: [np.asarray(result).transpose(0, 3, 1, 2)])


def lstm(data: Data) -> Case:
    def function(
        x: jax.Array, input_w: jax.Array, hidden_w: jax.Array, bias: jax.Array
    ) -> tuple[jax.Array, ...]:
        def step(
            state: tuple[jax.Array, jax.Array], projected: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            h, c = state
            i, f, g, o = jnp.split(projected + h @ hidden_w.T, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[1], hidden_w.shape[1]))
        (h, c), seen = jax.lax.scan(step, (zeros, zeros), x @ input_w.T + bias)
        return seen, h, c

    both = {**data, "bias": data["input_b"] + data["hidden_b"]}
    return case(function, both, "x", "input_w", "hidden_w", "bias")


def embedding_gradient(data: Data) -> Case:
    def function(table: jax.Array, tokens: jax.Array, upstream: jax.Array) -> jax.Array:
        return jax.vjp(lambda table: table[tokens], table)[1](upstream)[0]

    return case(function, data, "table", "tokens", "upstream")


def dropout(data: Data) -> Case:
    x, upstream = jnp.asarray(data["x"]), jnp.asarray(data["upstream"])
    held = [jax.random.key(0)]

    @jax.jit
    def function(key: jax.Array, x: jax.Array, upstream: jax.Array) -> tuple[jax.Array, ...]:
        key, used = jax.random.split(key)

        def dropped(x: jax.Array) -> jax.Array:
            kept = jax.random.bernoulli(used, 1 - DROPPED, x.shape)
            return jnp.where(kept, x * (1 / (1 - DROPPED)), 0)

        value, pullback = jax.vjp(dropped, x)
        return key, value, *pullback(upstream)

    def call() -> tuple[jax.Array, ...]:
        held[0], *results = finished(function(held[0], x, upstream))
        return tuple(results)

    return Case(call, arrays)


def adam_many(data: Data) -> Case:
    order = parameters(data)
    p = {name: jnp.array(data[name]) for name in order}
    gradients = {name: jnp.array(data["g" + name[1:-2]]) for name in order}
    held = [(p, base.adamw_state(p))]
    compiled = jax.jit(base.adamw, donate_argnums=(0, 2))

    def call() -> None:
        held[0] = finished(compiled(held[0][0], gradients, held[0][1]))

    return Case(call, lambda result: [np.ones(()), *arrays(tuple(held[0][0][n] for n in order))])


def bfloat16_mlp(data: Data) -> Case:
    given = {name: jnp.asarray(value, jnp.bfloat16) for name, value in data.items()}
    x = given.pop("x")
    function = jax.jit(_perceptron)
    return Case(
        lambda: finished(function(given, x)),
        lambda result: arrays(result.astype(jnp.float32)),
    )
