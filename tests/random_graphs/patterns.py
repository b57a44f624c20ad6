"""Makers of what programs are really made of: several primitives in their usual combinations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from tgraph.compiler.ir import Node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir.host_calls import EFFECTS
from tgraph.runtime.dtypes import int64, uint8

from .elementwise import at_least_one, is_float, is_number, tame
from .movement import positions, some_axes
from .program import Program, Unfit, Value


def _row_axes(program: Program, value: Value) -> tuple[int, ...]:
    if value.ndim == 0 or 0 in value.shape:
        raise Unfit
    return (value.ndim - 1,) if program.choose(2) else some_axes(program, value.ndim)


def _softmax(program: Program, value: Value, axes: tuple[int, ...]) -> Value:
    keep = {"axes": axes, "keepdims": True}
    top = program.op(p.max_, value, **keep)
    shifted = program.op(p.sub, value, top)
    # Up to twice the bound of `value` below zero: the exponential is at most 1.
    node = program.build.apply(p.exp, [shifted.node])
    powers = program.known(node, 1.0, shifted.error, 60)
    count = prod(value.shape[axis] for axis in axes)
    total = program.op(p.sum_, powers, **keep)
    result = program.build.apply(p.div, [powers.node, total.node])
    return program.known(result, 1.0, powers.error + total.error + 1e-7 * count**0.5, 60)


def softmax(program: Program) -> None:
    value = program.draw(is_float)
    program.keep(_softmax(program, value, _row_axes(program, value)))


def log_softmax(program: Program) -> None:
    value = tame(program, program.draw(is_float), 20)
    axes = _row_axes(program, value)
    program.keep(_log_softmax(program, value, axes))


def _log_softmax(program: Program, value: Value, axes: tuple[int, ...]) -> Value:
    keep = {"axes": axes, "keepdims": True}
    shifted = program.op(p.sub, value, program.op(p.max_, value, **keep))
    powers = program.known(
        program.build.apply(p.exp, [shifted.node]), 1.0, shifted.error, 60
    )  # fmt: skip
    total = program.op(p.sum_, powers, **keep)  # at least 1
    return program.op(p.sub, shifted, program.op(p.log, total))


def cross_entropy(program: Program) -> None:
    """Log-softmax, gathered at the labels, averaged."""
    value = tame(program, program.draw(lambda v: v.is_float and v.ndim == 2), 20)
    rows, classes = value.shape
    scores = _log_softmax(program, value, (1,)) if 0 not in value.shape else value
    labels = positions(program, classes, (rows,))
    column = program.op(p.reshape, labels, shape=(rows, 1))
    picked = program.op(p.gather, scores, column, axis=1)
    total = program.op(p.sum_, picked, axes=(0, 1), keepdims=False)
    scale = program.const(-1 / max(rows, 1), value.dtype)
    program.keep(program.op(p.mul, total, scale, bound=scores.bound))
    program.keep(picked)


def _mean(program: Program, value: Value, axes: tuple[int, ...], keepdims: bool = True) -> Value:
    count = prod(value.shape[axis] for axis in axes)
    total = program.op(p.sum_, value, axes=axes, keepdims=keepdims)
    scale = program.const(1 / max(count, 1), value.dtype)
    error = value.error + total.bound * 2e-7 / max(count, 1)
    return program.op(p.mul, total, scale, bound=value.bound, error=error)


def layer_norm(program: Program) -> None:
    """Centered and scaled over some axes, at times with weight and bias."""
    value = tame(program, program.draw(is_float), 20)
    axes = _row_axes(program, value)
    centered = program.op(p.sub, value, _mean(program, value, axes))
    variance = _mean(program, program.op(p.mul, centered, centered), axes)
    one = program.const(1.0, value.dtype)
    scale = program.op(p.rsqrt, program.op(p.add, variance, one))
    result = program.op(p.mul, centered, scale)
    if program.choose(2):
        other = tame(program, program.partner(value), 4)
        result = program.op(p.add, program.op(p.mul, result, other), other)
    program.keep(result)


def variance(program: Program) -> None:
    value = tame(program, program.draw(is_float), 10)
    axes = _row_axes(program, value)
    keepdims = bool(program.choose(2))
    centered = program.op(p.sub, value, _mean(program, value, axes))
    square = program.op(p.mul, centered, centered)
    program.keep(_mean(program, square, axes, keepdims))
    if program.choose(2):
        program.keep(_mean(program, value, axes, keepdims))


def gelu(program: Program) -> None:
    x = tame(program, program.draw(is_float), 6)
    half, one = program.const(0.5, x.dtype), program.const(1.0, x.dtype)
    inner = program.op(p.mul, x, program.const(0.7071067811865476, x.dtype))
    erf = program.op(p.erf, inner)
    result = program.op(p.mul, program.op(p.mul, x, half), program.op(p.add, erf, one))
    program.keep(result)


def relu_backward(program: Program) -> None:
    """A mask made of one value, applied to another."""
    value = program.draw(lambda v: v.is_float and v.exact)
    other = program.partner(value)
    zero = program.const(0.0, value.dtype)
    mask = program.op(p.gt, value, zero)
    program.keep(program.op(p.where, mask, other, zero))


def matmul(program: Program) -> None:
    value = program.draw(lambda v: not v.is_bool and v.ndim >= 2)
    other = program.draw(lambda v: v.dtype is value.dtype and v.ndim >= 2)
    flags = {"transpose_a": bool(program.choose(2)), "transpose_b": bool(program.choose(2))}
    program.keep(program.op(p.matmul, value, other, **flags))


def linear(program: Program) -> None:
    """x @ w.T + b, then a nonlinearity."""
    x = tame(program, program.draw(lambda v: v.is_float and v.ndim >= 2), 4)
    features = program.pick((1, 3, 8, 16))
    weight = _weights(program, (features, x.shape[-1]), x)
    bias = _weights(program, (features,), x)
    y = program.op(p.matmul, x, weight, transpose_a=False, transpose_b=True)
    y = program.op(p.add, y, bias)
    program.keep(y)
    if program.choose(2):
        program.keep(program.op(p.maximum, y, program.const(0.0, y.dtype)))


def _weights(program: Program, shape: tuple[int, ...], like: Value) -> Value:
    rng = np.random.default_rng(program.choose(100))
    array = (rng.integers(-4, 5, shape) / 4).astype(like.dtype.numpy)
    node = program.build.apply(p.constant, [], {"value": array})
    return program.known(node, 1.0, 0.0, 2)


def attention(program: Program) -> None:
    """Heads split off by reshape and permute, scores, softmax, and back."""
    x = tame(program, program.draw(lambda v: v.is_float and v.ndim == 3), 2)
    batch, length, width = x.shape
    heads = program.pick([h for h in (1, 2, 3, 4) if width % h == 0])
    if 0 in x.shape:
        raise Unfit

    def split(value: Value) -> Value:
        four = program.op(p.reshape, value, shape=(batch, length, heads, width // heads))
        return program.op(p.permute, four, axes=(0, 2, 1, 3))

    query, key = split(x), split(program.op(p.neg, x) if program.choose(2) else x)
    scores = program.op(p.matmul, query, key, transpose_a=False, transpose_b=True)
    scale = program.const(0.5, x.dtype)
    scores = _masked(program, program.op(p.mul, scores, scale))
    weights = _softmax(program, scores, (3,))
    value = split(x)
    mixed = program.op(p.matmul, weights, value, transpose_a=False, transpose_b=False)
    if program.choose(2):
        given = mixed if program.choose(2) else _weights(program, mixed.shape, x)
        _attention_gradients(program, (query, key, value), weights, scores, given)
    joined = program.op(p.permute, mixed, axes=(0, 2, 1, 3))
    program.keep(program.op(p.reshape, joined, shape=x.shape, bound=max(x.bound, 1.0)))


def _attention_gradients(
    program: Program, operands: tuple[Value, ...], weights: Value, scores: Value, given: Value
) -> None:
    """Some of the gradients of query, key and value, where `given` is that of the result."""
    query, key, value = operands
    wanted = 1 + program.choose(7)
    plain = {"transpose_a": False, "transpose_b": False}
    if wanted & 1:
        program.keep(program.op(p.matmul, weights, given, **{**plain, "transpose_a": True}))
    if not wanted & 6:
        return
    change = program.op(p.matmul, given, value, **{**plain, "transpose_b": True})
    terms = program.op(p.mul, weights, change)
    total = program.op(p.sum_, terms, axes=(3,), keepdims=True, bound=change.bound)
    change = program.op(p.mul, weights, program.op(p.sub, change, total))
    node, zero = scores.node, program.const(0.0, weights.dtype)
    while node.primitive is p.where:
        condition, node, _ = node.inputs
        hidden = program.build.apply(p.where, [condition, change.node, zero.node])
        change = program.known(hidden, change.bound, change.error, 60)
    change = program.op(p.mul, change, program.const(0.5, weights.dtype))
    if wanted & 2:
        program.keep(program.op(p.matmul, change, key, **plain))
    if wanted & 4:
        program.keep(program.op(p.matmul, change, query, **{**plain, "transpose_a": True}))


def _masked(program: Program, scores: Value) -> Value:
    """Some scores hidden, but none of the first key: by positions, by a mask, or as both say."""
    which = program.choose(4)
    if which & 1:
        scores = _hidden(program, scores, _is_seen(program, scores.shape[-2:], program.choose(3)))
    if which & 2:
        shape = program.pick((scores.shape, scores.shape[-2:], scores.shape[-1:]))
        flags = np.random.default_rng(program.choose(100)).random(shape) < 0.6
        flags[..., 0] = True
        scores = _hidden(program, scores, program.build.apply(p.constant, [], {"value": flags}))
    return scores


def _is_seen(program: Program, shape: tuple[int, ...], diagonal: int) -> Node:
    queries, keys = (_places(program, size) for size in shape)
    queries = program.build.apply(p.reshape, [queries], {"shape": (shape[0], 1)})
    shifted = program.build.apply(p.add, [queries, program.build.full((), diagonal, int64)])
    return program.build.apply(p.le, [keys, shifted])


def _places(program: Program, size: int) -> Node:
    """0, 1, ..., or that twice, as in two texts in a row."""
    texts = 2 if size % 2 == 0 and program.choose(3) == 2 else 1
    node = program.build.apply(p.iota, [], {"size": size // texts, "dtype": int64})
    node = program.build.apply(p.broadcast, [node], {"shape": (texts, size // texts)})
    return program.build.apply(p.reshape, [node], {"shape": (size,)})


def _hidden(program: Program, scores: Value, seen: Node) -> Value:
    nothing = program.build.full((), -np.inf, scores.dtype)
    node = program.build.apply(p.where, [seen, scores.node, nothing])
    return program.known(node, scores.bound, scores.error, scores.grain)


def convolution(program: Program) -> None:
    x = tame(program, program.draw(lambda v: v.is_float and v.ndim in (3, 4)), 4)
    spatial = x.ndim - 2
    channels = x.shape[1]
    groups = program.pick([g for g in (1, 1, 2, 3) if channels % g == 0])
    filters = groups * (1 + program.choose(3))
    window = tuple(1 + program.choose(3) for _ in range(spatial))
    weight = _weights(program, (filters, channels // groups, *window), x)
    attrs = {
        "strides": tuple(1 + program.choose(2) for _ in range(spatial)),
        "padding": tuple((program.choose(3), program.choose(3)) for _ in range(spatial)),
        "dilation": tuple(1 + program.choose(2) for _ in range(spatial)),
        "input_dilation": tuple(1 + program.choose(4) // 3 for _ in range(spatial)),
        "groups": groups,
    }
    program.keep(program.op(p.convolution, x, weight, **attrs))


def stencil(program: Program) -> None:
    """Shifted slices of one value added up."""
    value = program.draw(lambda v: not v.is_bool and max(v.shape, default=0) >= 3)
    axis = program.pick([at for at, size in enumerate(value.shape) if size >= 3])
    total = None
    for offset in range(3):
        starts, stops = [0] * value.ndim, list(value.shape)
        starts[axis], stops[axis] = offset, value.shape[axis] - 2 + offset
        attrs = {"starts": tuple(starts), "stops": tuple(stops), "steps": (1,) * value.ndim}
        part = program.op(p.slice_, value, **attrs)
        if offset == 1:
            weight = program.const(2 if value.is_integer else -2.0, value.dtype)
            part = program.op(p.mul, part, weight)
        total = part if total is None else program.op(p.add, total, part)
    assert total is not None
    program.keep(total)
    if program.choose(2):  # back to the full size
        low, high = [0] * value.ndim, [0] * value.ndim
        low[axis] = high[axis] = 1
        zero = (0,) * value.ndim
        attrs = {"low": tuple(low), "high": tuple(high), "interior": zero, "value": 0}
        program.keep(program.op(p.pad, total, **attrs))


def scan(program: Program) -> None:
    """A running value over the slices of an axis, put together again."""
    value = tame(program, program.draw(lambda v: v.is_float and v.ndim in (1, 2)), 4)
    length = value.shape[0]
    if not 2 <= length <= 8:
        raise Unfit
    rest, state, states = value.shape[1:], None, []
    half = program.const(0.5, value.dtype)
    for step in range(length):
        attrs = {
            "starts": (step,) + (0,) * len(rest),
            "stops": (step + 1, *rest),
            "steps": (1,) * value.ndim,
        }
        part = program.op(p.slice_, value, **attrs)
        part = program.op(p.reshape, part, shape=rest)
        state = part if state is None else program.op(p.add, program.op(p.mul, state, half), part)
        states.append(program.op(p.reshape, state, shape=(1, *rest)))
    program.keep(program.op(p.concatenate, *states, axis=0))


def optimizer(program: Program) -> None:
    """Adam on values of one type: several outputs of one shape."""
    weight = tame(program, program.draw(lambda v: v.is_float and v.node in program.inputs), 4)
    gradient = tame(program, program.partner(weight), 4)
    if np.broadcast_shapes(weight.shape, gradient.shape) != weight.shape:
        raise Unfit
    moment = program.draw(lambda v: v.dtype is weight.dtype and v.shape == weight.shape)
    moment = tame(program, moment, 4)

    def mix(old: Value, new: Value, keep: float) -> Value:
        kept = program.op(p.mul, old, program.const(keep, weight.dtype))
        return program.op(p.add, kept, program.op(p.mul, new, program.const(1 - keep, old.dtype)))

    first = mix(moment, gradient, 0.75)
    second = mix(program.op(p.mul, moment, moment), program.op(p.mul, gradient, gradient), 0.875)
    root = program.op(p.sqrt, program.op(p.add, second, program.const(1.0, weight.dtype)))
    ratio = program.build.apply(p.div, [first.node, root.node])
    step = program.known(ratio, first.bound, first.error + first.bound * root.error, 60)
    rate = program.const(-0.125, weight.dtype)
    updated = program.op(p.add, weight, program.op(p.mul, step, rate))
    for value in (updated, first, second):
        program.preferred.append(program.keep(value))


def gradient_of_norm(program: Program) -> None:
    """What differentiating a row's norm gives: two reductions, one of the other's result."""
    value = tame(program, program.draw(is_float), 4)
    axes = _row_axes(program, value)
    keep = {"axes": axes, "keepdims": True}
    square = program.op(p.sum_, program.op(p.mul, value, value), **keep)
    scale = program.op(p.rsqrt, program.op(p.add, square, program.const(1.0, value.dtype)))
    unit = program.op(p.mul, value, scale)
    other = program.partner(value)
    product = program.op(p.mul, unit, other)
    if product.shape != value.shape:
        raise Unfit
    program.keep(program.op(p.sub, other, program.op(p.mul, unit, _mean(program, product, axes))))


def pairwise(program: Program) -> None:
    """Forces between points: differences, distances over a short axis, a weighted sum."""
    x = tame(program, program.draw(lambda v: v.is_float and v.ndim == 2 and v.shape[1] <= 4), 2)
    count, dims = x.shape
    left = program.op(p.reshape, x, shape=(count, 1, dims))
    right = program.op(p.reshape, x, shape=(1, count, dims))
    apart = program.op(p.sub, left, right)
    square = program.op(p.sum_, program.op(p.mul, apart, apart), axes=(2,), keepdims=True)
    near = program.op(p.rsqrt, program.op(p.add, square, program.const(1.0, x.dtype)))
    program.keep(program.op(p.sum_, program.op(p.mul, apart, near), axes=(1,), keepdims=False))


def embedding(program: Program) -> None:
    """Rows of a table, and the gradient that adds them up again."""
    table = program.draw(lambda v: v.is_float and v.ndim == 2)
    at = positions(program, table.shape[0], (program.pick((1, 4, 7)),))
    rows = program.op(p.index, table, at, axis=0)
    program.keep(rows)
    if program.choose(2) and not program.hazard:
        zeros = program.build.full(table.shape, 0.0, table.dtype)
        base = program.known(zeros, 0.0, 0.0, 0)
        program.keep(program.op(p.index_put, base, at, rows, axis=0, accumulate=True))


def framed_rows(program: Program) -> None:
    """Rows at positions in a frame of padding, which asks for none of them."""
    table = program.draw(lambda v: is_number(v) and v.ndim > 0)
    at = positions(program, table.shape[0], (program.pick((1, 4, 7)),))
    rows = program.op(p.index, table, at, axis=0)
    low, high = (tuple(program.choose(3) for _ in range(rows.ndim)) for _ in "ab")
    frame = {"low": low, "high": high, "interior": (0,) * rows.ndim}
    program.keep(program.op(p.pad, rows, value=0.0 if rows.is_float else 0, **frame))


def reuse(program: Program) -> None:
    """A value and something made of it, together: shared sub-expressions."""
    value = program.draw(is_number)
    if value.is_float:
        other = program.op(p.sqrt, at_least_one(program, value))
    else:
        other = program.op(p.mul, value, value)
    program.keep(program.op(p.add, other, value))
    program.keep(program.op(p.mul, other, value))


def _sorted(array: Any) -> tuple[Any, Any]:
    order = np.argsort(array.astype(np.float64), -1, kind="stable")
    return np.take_along_axis(array, order, -1), order.astype(np.int64)


def host_call(program: Program) -> None:
    """A Python function of some effect with two results, of which one may not be used."""
    value = program.draw(lambda v: v.exact and v.ndim > 0)
    types = (value.node.type, value.node.type.with_dtype(int64))
    effect, count = EFFECTS[len(program.values) % len(EFFECTS)], len(program.values)
    attrs = {"function": _sorted, "results": types, "name": "sort", "effect": effect}
    operands = [value.node] + [program.const(0, uint8).node] * (effect == "ordered")
    numbered = attrs | {"serial": count} if effect == "random" else attrs
    call = program.build.apply(p.host_call, operands, numbered)
    results = [program.build.apply(p.get, [call], {"index": at}) for at in (0, 1)]
    size = float(value.shape[-1])
    known = [program.known(results[0], value.bound, 0.0, value.grain),
             program.known(results[1], size, 0.0, 0)]  # fmt: skip
    for at in (0, 1):
        if program.choose(3):
            program.keep(known[at])


def order(program: Program) -> None:
    """The first elements along an axis, or where they are, or both."""
    value = program.draw(lambda v: v.exact and v.ndim > 0)
    last = value.ndim - 1
    axes = list(range(value.ndim))
    axis = program.choose(value.ndim)
    axes[axis], axes[last] = axes[last], axes[axis]
    rows = value if axis == last else program.op(p.permute, value, axes=tuple(axes))
    count = rows.shape[-1] if program.choose(3) else program.choose(rows.shape[-1] + 1)
    attrs = {"count": count, "descending": bool(program.choose(2))}
    if rows.shape[-1] and not program.choose(3):
        at = program.op(p.select_nth, rows, rank=program.choose(rows.shape[-1]))
    else:
        at = program.op(p.argsort, rows, **attrs)
    at = at if axis == last else program.op(p.permute, at, axes=tuple(axes))
    which = program.choose(4)
    if which:
        program.keep(program.op(p.gather, value, at, axis=axis))
    if which in (0, 3):
        program.keep(at)


def count_matches(program: Program) -> None:
    """Equal positions counted, as accuracy is."""
    value = program.draw(lambda v: v.exact and v.ndim > 0)
    other = program.partner(value, lambda v: v.exact)
    same = program.op(p.eq, value, other)
    ones = program.op(p.cast, same, dtype=int64)
    axes = some_axes(program, ones.ndim)
    program.keep(program.op(p.sum_, ones, axes=axes, keepdims=False))


def own_extreme(program: Program) -> None:
    """A value beside its own extreme, which is among it however it was rounded."""
    value = program.draw(lambda v: v.is_float and v.ndim > 0 and 0 not in v.shape)
    axis = program.choose(value.ndim)
    keep = {"axes": (axis,), "keepdims": True}
    largest, place = program.pick(((p.max_, p.argmax), (p.min_, p.argmin)))
    extreme = program.op(largest, value, **keep)
    if program.choose(2):
        found = program.op(p.any_, program.op(p.eq, value, extreme), **keep)
        program.preferred.append(program.keep(found))
        return
    picked = program.op(p.gather, value, program.op(place, value, **keep), axis=axis)
    if value.dtype.is_half and value.shape[axis] == 1:
        # There is nothing to decide on, for which a value would be rounded at once.
        program.preferred.append(program.keep(program.op(p.sub, extreme, picked)))
        return
    rest = program.op(p.sub, extreme, picked, bound=0.0, error=0.0)
    program.preferred.append(program.keep(program.known(rest.node, 0.0, 0.0, 0)))


MAKERS = (
    softmax, log_softmax, cross_entropy, layer_norm, layer_norm, variance, gelu, relu_backward,
    matmul, matmul, linear, attention, attention, convolution, stencil, scan, optimizer, optimizer,
    gradient_of_norm, pairwise, embedding, framed_rows, reuse, reuse, count_matches, own_extreme,
    host_call, order,
)  # fmt: skip
