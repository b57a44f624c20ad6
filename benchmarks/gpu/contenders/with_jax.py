"""JAX: jitted functions over explicit parameters, donated where a step replaces them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...case import Case
from ...contenders import with_jax as base
from ...workload import parameters
from .. import formulas, resnet

Data = base.Data
Values = base.Values


class Contender:
    """Has one variant."""

    def __init__(self, variant: str, device: str, threads: int) -> None:
        # Products of float32 are products of float32 for all contenders.
        jax.config.update("jax_default_matmul_precision", "float32")
        base.start(threads)
        platform = jax.default_backend()
        if (platform == "cpu") is not (device == "cpu"):
            raise RuntimeError(f"JAX runs on {platform}")
        base.finished = lambda results: results

    def versions(self) -> dict[str, str]:
        return base.versions()

    def synchronize(self, result: Any) -> None:
        jax.block_until_ready(result)

    def release(self) -> None:
        jax.clear_caches()

    def __getattr__(self, name: str) -> Any:
        return getattr(base, name)

    def black_scholes(self, data: Data) -> Case:
        def function(*inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
            return formulas.black_scholes(jnp, jax.lax.erf, *inputs)

        return base.case(function, data, "spot", "strike", "years")

    def stencil(self, data: Data) -> Case:
        return base.case(lambda u: formulas.diffused(lambda u: jnp.pad(u, 1), u), data, "u")

    def lstm(self, data: Data) -> Case:
        def function(
            x: jax.Array, input_w: jax.Array, hidden_w: jax.Array, bias: jax.Array
        ) -> tuple[jax.Array, ...]:
            def turn(state: Any, projected: jax.Array) -> Any:
                h, c = state
                i, f, g, o = jnp.split(projected + h @ hidden_w.T, 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zeros = jnp.zeros((x.shape[1], hidden_w.shape[1]))
            (h, c), seen = jax.lax.scan(turn, (zeros, zeros), x @ input_w.T + bias)
            return seen, h, c

        both = {**data, "bias": data["input_b"] + data["hidden_b"]}
        return base.case(function, both, "x", "input_w", "hidden_w", "bias")

    def decode(self, data: Data) -> Case:
        def write(cache: jax.Array, at: jax.Array, row: jax.Array) -> jax.Array:
            return cache.at[at].set(row)

        def function(x: jax.Array, cache: jax.Array, *weights: jax.Array) -> tuple[jax.Array, ...]:
            positions = jnp.arange(len(cache))[:, None]

            def turn(at: jax.Array, state: Any) -> Any:
                return formulas.decoded(jnp, write, at, *state, positions, weights)

            x, keys, _ = jax.lax.fori_loop(0, len(cache), turn, (x, cache, cache))
            return x, keys

        return base.case(function, data, "x", "cache", "query_w", "key_w", "value_w", "out_w")

    def newton(self, data: Data) -> Case:
        def function(a: jax.Array) -> jax.Array:
            far, nearer = partial(formulas.is_far, a), partial(formulas.nearer, a)
            return jax.lax.while_loop(far, nearer, a)

        return base.case(function, data, "a")

    def adamw(self, data: Data) -> Case:
        order = parameters(data)
        p = {name: jnp.array(data[name]) for name in order}
        gradients = {name: jnp.asarray(data["g" + name[1:-2]]) for name in order}
        held = [(p, base.adamw_state(p))]
        step = jax.jit(
            lambda p, gradients, state: base.adamw(p, gradients, state), donate_argnums=(0, 2)
        )

        def call() -> Values:
            held[0] = step(held[0][0], gradients, held[0][1])
            return held[0][0]

        return Case(call, lambda p: [np.ones(()), *base.arrays(tuple(p[n] for n in order))])

    def gpt2_train(self, data: Data) -> Case:
        count = sum(name.endswith("_qkv_w") for name in data)

        def loss_of(p: Values, tokens: jax.Array, labels: jax.Array) -> jax.Array:
            x = p["words_w"][tokens] + p["places_w"]
            for number in range(count):
                prefix = f"h{number}_"
                inner = {n.removeprefix(prefix): p[n] for n in p if n.startswith(prefix)}
                x = base.block(inner, x, causal=True, linear=half_linear)
            h = base.normalized(x, p["final_w"], p["final_b"])
            logits = half_linear(h, p["words_w"], jnp.zeros((), jnp.float32))
            flat = logits.reshape(labels.size, -1).astype(jnp.float32)
            return base.mean_cross_entropy(flat, labels.ravel())

        # All products are of bfloat16, and are to stay that.
        loss_of = jax.default_matmul_precision("default")(loss_of)
        return base.training(data, loss_of, base.adamw, base.adamw_state, "tokens", "labels")

    def resnet18(self, data: Data) -> Case:
        p = {name: jnp.asarray(value) for name, value in data.items()}
        compiled = jax.jit(lambda p: resnet.forward(Layers(), p))
        return Case(lambda: compiled(p), base.arrays)


def half_linear(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    """A product of bfloat16 with weights kept in float32."""
    x, weight, bias = (each.astype(jnp.bfloat16) for each in (x, weight, bias))
    return base.linear(x, weight, bias)


class Layers:
    """The layers of a network for images, channels first."""

    relu = staticmethod(jax.nn.relu)
    linear = staticmethod(base.linear)

    def convolve(self, x: jax.Array, weight: jax.Array, stride: int) -> jax.Array:
        around = weight.shape[-1] // 2
        padding = ((around, around),) * 2
        return jax.lax.conv_general_dilated(x, weight, (stride, stride), padding)

    def norm(self, x: jax.Array, *statistics: jax.Array) -> jax.Array:
        scale, shift, mean, var = (each[:, None, None] for each in statistics)
        return (x - mean) * jax.lax.rsqrt(var + resnet.EPSILON) * scale + shift

    def pool(self, x: jax.Array) -> jax.Array:
        padding = ((0, 0), (0, 0), (1, 1), (1, 1))
        window, strides = (1, 1, 3, 3), (1, 1, 2, 2)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, padding)
