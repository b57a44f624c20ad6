"""Programs over arrays in JAX, jitted."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..case import Case
from ..contenders.with_jax import Data, arrays, case, finished
from . import formulas


def stencil(data: Data) -> Case:
    return case(lambda u: formulas.stencil(jnp.concatenate, u), data, "u")


def stencil_3d(data: Data) -> Case:
    return case(lambda u: formulas.stencil_3d(lambda u: jnp.pad(u, 1), u), data, "u")


def image_filter(data: Data) -> Case:
    return case(lambda u: formulas.image_filter(u, formulas.TAPS), data, "u")


def argmax(data: Data) -> Case:
    return case(lambda x: x.argmax(1), data, "x")


def topk(data: Data) -> Case:
    return case(lambda x: tuple(jax.lax.top_k(x, 10)), data, "x")


def sort(data: Data) -> Case:
    return case(jnp.sort, data, "x")


def cumsum(data: Data) -> Case:
    return case(lambda x: x.cumsum(1), data, "x")


def cumsum_columns(data: Data) -> Case:
    return case(lambda x: x.cumsum(0), data, "x")


def column_softmax(data: Data) -> Case:
    return case(lambda x: jax.nn.softmax(x, 0), data, "x")


def recurrence(data: Data) -> Case:
    return case(lambda x: formulas.recurrence(jnp, jnp.stack, x), data, "x")


def columns(data: Data) -> Case:
    return case(lambda u: formulas.columns(jnp, jnp.stack, u), data, "u")


def box_overlaps(data: Data) -> Case:
    return case(lambda a, b: formulas.box_overlaps(jnp, jnp.max, a, b), data, "a", "b")


def float64_sums(data: Data) -> Case:
    jax.config.update("jax_enable_x64", True)
    return case(lambda x: formulas.float64_sums(jnp, x), data, "x")


def gather_sum(data: Data) -> Case:
    return case(lambda table, index: table[index].sum(1), data, "table", "index")


def masked_softmax(data: Data) -> Case:
    return case(lambda x, mask: jax.nn.softmax(x, -1, where=mask), data, "x", "mask")


def logsumexp_chain(data: Data) -> Case:
    """By `scan`, as JAX's users write loops over time."""

    def function(start: jax.Array, transitions: jax.Array, evidence: jax.Array) -> jax.Array:
        def step(start: jax.Array, seen: jax.Array) -> tuple[jax.Array, None]:
            return jax.nn.logsumexp(start[:, :, None] + transitions, 1) + seen, None

        return jax.lax.scan(step, start, evidence)[0]

    return case(function, data, "start", "transitions", "evidence")


def solves(data: Data) -> Case:
    return case(lambda *given: formulas.solved(jnp.stack, *given), data, "matrices", "right")


def vmap_solves(data: Data) -> Case:
    return case(jax.vmap(jnp.linalg.solve), data, "matrices", "right")


def hashing(data: Data) -> Case:
    return case(formulas.hashed, data, "x")


def histogram(data: Data) -> Case:
    return case(formulas.histogram, data, "x", "edges")


def nearest(data: Data) -> Case:
    def function(queries: jax.Array, points: jax.Array) -> tuple[jax.Array, jax.Array]:
        squares = formulas.distances(queries, points)
        return squares.min(1), squares.argmin(1)

    return case(function, data, "queries", "points")


def monte_carlo(data: Data) -> Case:
    size = tuple(data["size"].tolist())
    held = [jax.random.key(0)]

    @jax.jit
    def function(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        key, used = jax.random.split(key)
        return formulas.option_price(jnp.exp, jax.random.normal(used, size)), key

    def call() -> jax.Array:
        price, held[0] = finished(function(held[0]))
        return price

    return Case(call, arrays)


def spectral(data: Data) -> Case:
    names = ("u", "cosines", "sines", "numbers")
    return case(lambda *given: formulas.spectral_step(jnp.exp, *given), data, *names)
