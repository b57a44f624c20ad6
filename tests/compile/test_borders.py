"""Programs with borders: pads, windows, concatenations, written slices, of all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from sampling import rotating

import tgraph as tg
import tgraph.nn.functional as F


def stencil(x):
    for _ in range(3):
        inner = x[1:-1, 1:-1] + 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:])
        middle = tg.cat([x[1:-1, :1], inner, x[1:-1, -1:]], 1)
        x = tg.cat([x[:1], middle, x[-1:]], 0)
    return x


def padded(x):
    wide = F.pad(x, (2, 3, 1, 0), value=1.5)
    return wide.exp().sum(0), wide.amax(1), tg.softmax(wide, 1), wide[:-1, 1:] - wide[1:, :-1]


def joined(x):
    both = tg.cat([x, x[:, 3:20] * 2, x.flip(1)], 1)
    return tg.logsumexp(both, 1), (both == 0).sum(0), both.cumsum(1), tg.cat([both, -both]).tanh()


def written(x):
    y = x * 2
    y[3:-2, 1::3] = 7.0
    y[::2, 5:9] += 1.0
    return y.sum(1), tg.roll(y, (3, -5), (0, 1)), y.amin(0)


def pooled(x):
    x = x[None, None].clone().requires_grad_()
    total = F.max_pool2d(x, 3, 2, 1).sum() + F.avg_pool2d(x, 3, 2, 1).square().sum()
    total = total + F.max_pool2d(x, 2, 4).square().sum()
    total.backward()
    return total.detach(), x.grad


SHAPES = [(7, 24), (16, 16), (33, 64), (50, 131), (130, 40), (65, 257)]


@pytest.mark.parametrize("shape", rotating(SHAPES, 4))
@pytest.mark.parametrize("function", [stencil, padded, joined, written, pooled])
def test_borders(function, shape):
    x = tg.tensor(np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32) / 2)
    results = [function(x), tg.compile(function)(x)]
    for eager, compiled in zip(
        *(r if isinstance(r, tuple) else (r,) for r in results), strict=True
    ):
        np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=2e-5, atol=1e-5)


def everything(x):
    return *padded(x), *joined(x), *pooled(x)


def test_borders_do_not_depend_on_threads():
    x = tg.randn(300, 257)
    results = []
    before = tg.get_num_threads()
    try:
        for threads in (1, 2, 5):
            tg.set_num_threads(threads)
            results.append([each.numpy() for each in tg.compile(everything)(x)])
    finally:
        tg.set_num_threads(before)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("size", [5, 15, 16, 31, 40, 64, 100])
@pytest.mark.parametrize("window", [(1, 2), (2, 2), (3, 3), (3, 4), (1, 9), (4, 4), (5, 5)])
def test_small_windows_are_one_step(window, size):
    """The steps of a small window stand in one loop, those of a larger one in several."""
    x, kernel = tg.randn(3, 8, 11, size), tg.randn(8, 1, *window)
    padding = tuple(each // 2 for each in window)

    def largest(x):
        return F.max_pool2d(x, window, 1, padding)

    def filtered(x, kernel):
        return F.conv2d(x, kernel, padding=padding, groups=8)

    assert tg.compile(largest)(x).numpy().tobytes() == largest(x).numpy().tobytes()
    found, expected = tg.compile(filtered)(x, kernel), filtered(x.double(), kernel.double())
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
