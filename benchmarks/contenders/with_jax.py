"""JAX: jitted functions over explicit parameters, donated where a step replaces them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Array, Case
from ..hyperparameters import ADAMW, SGD, SOFTENING, Momentum, heads
from ..workload import parameters

Data = dict[str, Array]
Values = dict[str, jax.Array]


def start(threads: int) -> None:
    """XLA uses as many threads as the process may use processors, which the driver limits."""
    jax.devices()


# A call ends when its results are there. On a GPU, where several calls are timed as one, this is
# replaced by a function that does not wait.
finished = jax.block_until_ready


def versions() -> dict[str, str]:
    return {"jax": jax.__version__}


def case(function: Callable[..., Any], data: Data, *names: str) -> Case:
    inputs = [jnp.asarray(data[name]) for name in names]
    compiled = jax.jit(function)
    return Case(lambda: finished(compiled(*inputs)), arrays)


def arrays(result: Any) -> list[Array]:
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def gelu_chain(data: Data) -> Case:
    def function(x: jax.Array) -> jax.Array:
        t = x * 1.1 + 0.3
        inner = 0.7978845608 * (t + 0.044715 * (t * t * t))
        return 0.5 * t * (1 + jnp.tanh(inner)) * x - t

    return case(function, data, "x")


def softmax(data: Data) -> Case:
    return case(lambda x: jax.nn.softmax(x, -1), data, "x")


def column_stats(data: Data) -> Case:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return x.mean(0), x.var(0), jax.nn.logsumexp(x, 1)

    return case(function, data, "x")


def transposed(data: Data) -> Case:
    def function(a: jax.Array, b: jax.Array) -> jax.Array:
        t = a.T
        return jnp.exp(-jnp.abs(t)) * b + t * 0.5 - b * b

    return case(function, data, "a", "b")


def pairwise(data: Data) -> Case:
    def function(x: jax.Array, mass: jax.Array) -> jax.Array:
        diff = x[:, None] - x[None]
        r2 = (diff**2).sum(-1) + SOFTENING
        return (diff * (mass / (r2 * jnp.sqrt(r2)))[..., None]).sum(1)

    return case(function, data, "x", "mass")


def call(data: Data) -> Case:
    return case(lambda *given: sum(given[1:], given[0] + 1), data, *data)


def tiny_mlp(data: Data) -> Case:
    p = {name: jnp.asarray(data[name]) for name in parameters(data)}
    x = jnp.asarray(data["x"])

    @jax.jit
    def function(p: Values, x: jax.Array) -> jax.Array:
        hidden = jax.nn.relu(x @ p["first_w"].T + p["first_b"])
        return hidden @ p["second_w"].T + p["second_b"]

    return Case(lambda: finished(function(p, x)), arrays)


def normalized(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weight + bias


def layer_norm(data: Data) -> Case:
    def function(
        x: jax.Array, weight: jax.Array, bias: jax.Array, upstream: jax.Array
    ) -> tuple[jax.Array, ...]:
        value, pullback = jax.vjp(normalized, x, weight, bias)
        return value, *pullback(upstream)

    return case(function, data, "x", "weight", "bias", "upstream")


def mean_cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -chosen.mean()


def cross_entropy(data: Data) -> Case:
    return case(jax.value_and_grad(mean_cross_entropy), data, "logits", "labels")


def embedding(data: Data) -> Case:
    def function(table: jax.Array, tokens: jax.Array, upstream: jax.Array) -> tuple[jax.Array, ...]:
        value, pullback = jax.vjp(lambda table: table[tokens], table)
        return value, *pullback(upstream)

    return case(function, data, "table", "tokens", "upstream")


def adamw(
    p: Values, gradients: Values, state: Any, decays: Mapping[str, bool] | None = None
) -> tuple[Values, Any]:
    """`decays` tells of each parameter whether it does; without, all do."""
    use = ADAMW
    kept = {name: 1 - use.rate * use.decay * (not decays or decays[name]) for name in p}
    first, second, count = state
    count = count + 1
    size = use.rate / (1 - use.beta1**count)
    correction = jnp.sqrt(1 - use.beta2**count)
    first = jax.tree.map(lambda m, g: use.beta1 * m + (1 - use.beta1) * g, first, gradients)
    second = jax.tree.map(lambda v, g: use.beta2 * v + (1 - use.beta2) * g * g, second, gradients)

    def moved(p: jax.Array, kept: float, m: jax.Array, v: jax.Array) -> jax.Array:
        return p * kept - size * m / (jnp.sqrt(v) / correction + use.epsilon)

    return jax.tree.map(moved, p, kept, first, second), (first, second, count)


def adamw_state(p: Values) -> Any:
    zeros = jax.tree.map(jnp.zeros_like, p)
    return zeros, jax.tree.map(jnp.zeros_like, p), jnp.zeros((), jnp.float32)


def _momentum(p: Values, gradients: Values, state: Any, rule: Momentum = SGD) -> tuple[Values, Any]:
    def moved(v: jax.Array, g: jax.Array, p: jax.Array) -> jax.Array:
        return rule.momentum * v + g + rule.decay * p

    velocity = jax.tree.map(moved, state, gradients, p)
    return jax.tree.map(lambda p, v: p - rule.rate * v, p, velocity), velocity


def training(
    data: Data, loss_of: Callable[..., jax.Array], optimizer: Any, state_of: Any, *names: str
) -> Case:
    """A training step of `loss_of(parameters, *inputs)`; the first names are the inputs."""
    inputs = [jnp.asarray(data[name]) for name in names]
    order = parameters(data)
    p = {name: jnp.array(data[name]) for name in order}
    held = [(p, state_of(p))]

    def step(p: Values, state: Any, *inputs: jax.Array) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(p, *inputs)
        return loss, *optimizer(p, gradients, state)

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def call() -> jax.Array:
        p, state = held[0]
        loss, p, state = finished(compiled(p, state, *inputs))
        held[0] = p, state
        return loss

    return Case(call, lambda loss: arrays((loss, *(held[0][0][name] for name in order))))


def mlp_train(data: Data) -> Case:
    def loss_of(p: Values, x: jax.Array, labels: jax.Array) -> jax.Array:
        hidden = jax.nn.relu(x @ p["first_w"].T + p["first_b"])
        hidden = jax.nn.relu(hidden @ p["second_w"].T + p["second_b"])
        return mean_cross_entropy(hidden @ p["third_w"].T + p["third_b"], labels)

    return training(data, loss_of, adamw, adamw_state, "x", "labels")


Linear = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def linear(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    return x @ weight.T + bias


def block(p: Values, x: jax.Array, causal: bool = False, linear: Linear = linear) -> jax.Array:
    """A transformer block of (batch, length, width), with its norms in front."""
    batch, length, width = x.shape
    h = normalized(x, p["norm1_w"], p["norm1_b"])
    qkv = linear(h, p["qkv_w"], p["qkv_b"]).reshape(batch, length, 3, heads(width), -1)
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]))
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    weights = jax.nn.softmax(scores.astype(jnp.float32)).astype(v.dtype)
    mixed = (weights @ v).swapaxes(1, 2).reshape(x.shape)
    r = x + linear(mixed, p["out_w"], p["out_b"])
    h = normalized(r, p["norm2_w"], p["norm2_b"])
    hidden = jax.nn.gelu(linear(h, p["up_w"], p["up_b"]), approximate=True)
    return r + linear(hidden, p["down_w"], p["down_b"])


def transformer_train(data: Data) -> Case:
    def loss_of(p: Values, x: jax.Array, target: jax.Array) -> jax.Array:
        return jnp.mean((block(p, x) - target) ** 2)

    return training(data, loss_of, adamw, adamw_state, "x", "target")


def _convolved(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    """Channels last, which XLA's convolutions on a CPU prefer; weights as PyTorch's."""
    order = ("NHWC", "OIHW", "NHWC")
    return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=order) + bias


def _pooled(x: jax.Array) -> jax.Array:
    window = (1, 2, 2, 1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")


def cnn_train(data: Data) -> Case:
    def loss_of(p: Values, x: jax.Array, labels: jax.Array) -> jax.Array:
        h = x.transpose(0, 2, 3, 1)
        h = _pooled(jax.nn.relu(_convolved(h, p["conv1_w"], p["conv1_b"])))
        h = _pooled(jax.nn.relu(_convolved(h, p["conv2_w"], p["conv2_b"])))
        flat = h.transpose(0, 3, 1, 2).reshape(len(x), -1)
        return mean_cross_entropy(flat @ p["head_w"].T + p["head_b"], labels)

    zeros = lambda p: jax.tree.map(jnp.zeros_like, p)  # noqa: E731
    return training(data, loss_of, _momentum, zeros, "x", "labels")
