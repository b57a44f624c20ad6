"""Attention, convolutions and products of views in random forms: compiled is eager."""

from __future__ import annotations

import math
from contextlib import ExitStack

import numpy as np
import pytest
from random_graphs.engines import as_if_large, small_pieces
from sampling import rotating

import tgraph as tg
import tgraph.nn.functional as F

SEEDS = rotating(range(4), 4)
PROGRAMS = 20
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def check(function, arguments, dtype, text, mode=3):
    """Compiled beside eager; `mode` says whether small loops are cut as large ones are."""
    wanted = function(*arguments)
    with ExitStack() as changed:
        if mode & 1:
            changed.enter_context(as_if_large())
        if mode & 2:
            changed.enter_context(small_pieces())
        found = tg.compile(function)(*arguments)
    for have, want in zip(found, wanted, strict=True):
        have, want = have.detach().numpy(), want.detach().numpy()
        assert have.shape == want.shape, text
        allowed = TOLERANCE[dtype] * max(1.0, np.abs(want).max(initial=0, where=np.isfinite(want)))
        np.testing.assert_allclose(
            have, want, rtol=TOLERANCE[dtype], atol=allowed, err_msg=str(text)
        )


def laid_out(rng, shape, dtype):
    """Random numbers as some operations leave them: turned, with steps, cut out of others."""
    kind = rng.integers(4)
    if kind == 1:
        return tg.tensor(rng.standard_normal(shape[::-1]).astype(dtype)).permute(
            *reversed(range(len(shape)))
        )
    if kind > 1:
        step = int(kind) - 1
        large = tg.tensor(rng.standard_normal([step * n + 2 for n in shape]).astype(dtype))
        return large[tuple(slice(1, 1 + step * n, step) for n in shape)]
    return tg.tensor(rng.standard_normal(shape).astype(dtype))


def some_of(rng, shape):
    """A shape that broadcasts to this one."""
    sizes = [1 if rng.random() < 0.25 else n for n in shape]
    return sizes[rng.integers(len(sizes)) :] if rng.random() < 0.3 else sizes


# --- attention -----------------------------------------------------------------------------------


def positions(rng, length):
    """How far each query or key is in its text, of which there may be several."""
    texts = rng.choice([n for n in (1, 2, 3, 5) if length % n == 0])
    start = int(rng.integers(-3, 4))
    return lambda: tg.arange(length // texts).expand(int(texts), -1).reshape(length) + start


def one_mask(rng, scores, dtype):
    """What is done to scores, and a tensor that it needs, if any."""
    kind = rng.choice(["seen", "hidden", "bias", "scale", "lower", "upper", "texts"])
    fill, at = float(rng.choice([-math.inf, -1e9])), int(rng.integers(-4, scores[-1] + 3))
    if kind in ("seen", "hidden"):
        mask = tg.tensor(rng.random(some_of(rng, scores)) < rng.choice([0.2, 0.5, 0.9]))
        if kind == "seen":
            return lambda s, m: tg.where(m, s, fill), mask
        return lambda s, m: s.masked_fill(m, fill), mask
    if kind == "bias":
        return lambda s, b: s + b, laid_out(rng, some_of(rng, scores), dtype)
    if kind == "scale":
        factor = float(rng.choice([0.5, -0.7, 2.0]))
        return lambda s, _: s * factor, None
    if kind == "texts":
        rows, columns = (positions(rng, length) for length in scores[-2:])
        return lambda s, _: s.masked_fill(rows()[:, None] < columns(), fill), None
    ones = tg.ones(*scores[-2:], dtype=tg.bool)
    cut = ones.tril(at) if kind == "lower" else ones.triu(at)
    return lambda s, m: tg.where(m, s, fill), cut


def attention_of(rng, dtype):
    """The function, its operands, and what its masks need."""
    lead = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
    queries, width, value_width = (int(n) for n in rng.choice([1, 2, 3, 7, 16, 30, 33], 3))
    keys = int(rng.choice([1, 2, 6, 15, 64, 127, 130]))
    masks = [one_mask(rng, [*lead, queries, keys], dtype) for _ in range(rng.integers(4))]
    sizes = ((queries, width), (keys, width), (keys, value_width))
    operands = [laid_out(rng, [*lead, *each], dtype) for each in sizes]

    def function(q, k, v, *given):
        scores = q @ k.mT
        for (change, _), tensor in zip(masks, given, strict=True):
            scores = change(scores, tensor)
        return (tg.softmax(scores, -1) @ v,)

    given = [tg.tensor(0.0) if tensor is None else tensor for _, tensor in masks]
    return function, operands, given


@pytest.mark.parametrize("seed", SEEDS)
def test_attention(seed):
    for number in range(PROGRAMS):
        rng = np.random.default_rng((seed, number))
        dtype = str(rng.choice(["float32", "float64"]))
        function, operands, given = attention_of(rng, dtype)
        with np.errstate(all="ignore"):
            check(function, (*operands, *given), dtype, (seed, number), int(rng.integers(4)))


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_of_attention(seed):
    """Of some of the operands, in one plan with the result."""
    for number in range(PROGRAMS):
        rng = np.random.default_rng((seed, number))
        dtype = str(rng.choice(["float32", "float64"]))
        attend, operands, given = attention_of(rng, dtype)
        wanted = [at for at in range(3) if rng.random() < 0.7] or [0]
        shape = (*operands[0].shape[:-1], operands[2].shape[-1])
        upstream = laid_out(rng, shape, dtype)

        def function(q, k, v, upstream, *given, attend=attend, wanted=wanted):
            (result,) = attend(q, k, v, *given)
            inputs = [(q, k, v)[at] for at in wanted]
            return result, *tg.autograd.grad((result * upstream).sum(), inputs)

        leaves = [each.detach().requires_grad_() for each in operands]
        with np.errstate(all="ignore"):
            arguments = (*leaves, upstream, *given)
            check(function, arguments, dtype, (seed, number), int(rng.integers(4)))


# --- convolutions --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_convolutions_and_their_gradients(seed):
    """Strides, padding, dilation and groups, all at once, in one to three dimensions."""
    for number in range(PROGRAMS):
        rng = np.random.default_rng((seed, number))
        dtype, groups = str(rng.choice(["float32", "float64"])), int(rng.choice([1, 1, 2, 3]))
        axes = int(rng.choice([1, 2, 2, 3]))
        taps, stride, dilation = (rng.integers(1, 4, axes).tolist() for _ in range(3))
        padding = rng.integers(0, 4, axes).tolist()
        reach = [d * (n - 1) + 1 - 2 * p for n, d, p in zip(taps, dilation, padding)]
        sizes = [max(least, 1) + int(rng.integers(8)) for least in reach]
        channels, filters = (groups * int(rng.choice([1, 2, 5])) for _ in range(2))
        x = laid_out(rng, (int(rng.integers(1, 4)), channels, *sizes), dtype)
        w = laid_out(rng, (filters, channels // groups, *taps), dtype)
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        convolved = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes]

        def forward(x, w, convolved=convolved, options=options):
            return convolved(x, w, **options)

        def function(x, w, g, forward=forward):
            y, back = tg.vjp(forward, x, w)
            return y, *back(g)

        g = laid_out(rng, forward(x, w).shape, dtype)
        text = (seed, number, x.shape, w.shape, options)
        check(function, (x, w, g), dtype, text, int(rng.integers(4)))


# --- views ---------------------------------------------------------------------------------------


def one_view(rng, shape):
    """A view of a tensor of this shape, as a function."""
    axis, kind = int(rng.integers(len(shape))), int(rng.integers(7))
    size = shape[axis]
    if kind == 0:
        order = rng.permutation(len(shape)).tolist()
        return lambda x: x.permute(*order)
    if kind == 1:
        first, step = int(rng.integers(size)), int(rng.integers(1, 4))
        return lambda x: x[(slice(None),) * axis + (slice(first, None, step),)]
    if kind == 2:
        return lambda x: tg.flip(x, [axis])
    if kind == 3 and len(shape) < 4:
        return lambda x: x.expand(2, *x.shape)
    if kind == 4 and axis:
        return lambda x: x.reshape(*shape[: axis - 1], -1, *shape[axis + 1 :])
    if kind == 5 and len(shape) < 4:
        window, step = int(rng.integers(1, size + 1)), int(rng.integers(1, 4))
        return lambda x: x.unfold(axis, window, step)
    if kind == 6 and size % 2 == 0 and len(shape) < 4:
        return lambda x: x.reshape(*shape[:axis], 2, size // 2, *shape[axis + 1 :])
    return lambda x: x


@pytest.mark.parametrize("seed", SEEDS)
def test_products_of_views(seed):
    for number in range(PROGRAMS):
        rng = np.random.default_rng((seed, number))
        dtype = str(rng.choice(["float32", "float64"]))
        x = laid_out(rng, rng.integers(1, 8, rng.integers(2, 4)).tolist(), dtype)
        views, seen = [], x
        for _ in range(rng.integers(5)):
            views.append(one_view(rng, list(seen.shape)))
            seen = views[-1](seen)
        if seen.ndim < 2 or seen.numel() > 3000:
            continue

        def function(x, w, views=views):
            for view in views:
                x = view(x)
            attended = tg.softmax(x @ x.mT * 0.3, -1) @ x
            return x @ x.mT, x.mT @ x, x @ w.mT, attended, tg.softmax(w @ x.mT, -1) @ x

        w = laid_out(rng, (3, seen.shape[-1]), dtype)
        check(function, (x, w), dtype, (seed, number), int(rng.integers(4)))
