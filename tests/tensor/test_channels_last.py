"""What operations give of images that lie channels last in memory lies so, too, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rows import check_rows

import tgraph as tg

SHAPE = (2, 4, 8, 6)
KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "conv2d": lambda T, x: T.nn.functional.conv2d(x, T.ones(6, 4, 3, 3)),
    "conv2d of such weights": lambda T, x: T.nn.functional.conv2d(
        x.contiguous(), T.ones(6, 4, 3, 3).to(memory_format=T.channels_last)
    ),
    "conv2d of places": lambda T, x: T.nn.functional.conv2d(x, T.ones(6, 4, 1, 1)),
    "conv2d of channels": lambda T, x: T.nn.functional.conv2d(x, T.ones(4, 1, 3, 3), groups=4),
    "conv_transpose2d": lambda T, x: T.nn.functional.conv_transpose2d(x, T.ones(4, 6, 3, 3)),
    "max_pool2d": lambda T, x: T.nn.functional.max_pool2d(x, 2),
    "indices": lambda T, x: T.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
    "max_unpool2d": lambda T, x: T.nn.functional.max_unpool2d(
        *T.nn.functional.max_pool2d(x, 2, return_indices=True), 2
    ),
    "avg_pool2d": lambda T, x: T.nn.functional.avg_pool2d(x, 2),
    "lp_pool2d": lambda T, x: T.nn.functional.lp_pool2d(x, 2, 2),
    "adaptive_avg_pool2d": lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda T, x: T.nn.functional.adaptive_max_pool2d(x, 3),
    "nearest": lambda T, x: T.nn.functional.interpolate(x, scale_factor=2),
    "bilinear": lambda T, x: T.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda T, x: T.nn.functional.interpolate(x, scale_factor=2, mode="bicubic"),
    "area": lambda T, x: T.nn.functional.interpolate(x, size=(3, 3), mode="area"),
    "pixel_unshuffle": lambda T, x: T.nn.functional.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda T, x: T.nn.functional.channel_shuffle(x, 2),
    "pad": lambda T, x: T.nn.functional.pad(x, (1, 1, 1, 1)),
    "pad by mirroring": lambda T, x: T.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pad by edges": lambda T, x: T.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate"),
    "group_norm": lambda T, x: T.nn.functional.group_norm(x, 2),
    "batch_norm": lambda T, x: T.nn.functional.batch_norm(x, T.zeros(4), T.ones(4)),
    "dropout": lambda T, x: T.nn.functional.dropout(x, 0.5, True),
    "relu": lambda T, x: x.relu(),
    "roll": lambda T, x: T.roll(x, (1, 1), (0, 3)),
    "sort": lambda T, x: x.sort(3)[0],
    "positions": lambda T, x: x.sort(1)[1],
    "channels behind channels": lambda T, x: T.cat([x, x], 1),
    "images behind images": lambda T, x: T.cat([x, x], 0),
    "glu": lambda T, x: T.nn.functional.glu(x, 1),
    "sum": lambda T, x: x + x.sum(0),
    "zeros_like": lambda T, x: T.zeros_like(x),
    "double": lambda T, x: x.double(),
}
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "stack": lambda T, x: T.stack([x, x]),
    "stack of channels": lambda T, x: T.stack([x, x], 1),
    "stack of rows": lambda T, x: T.stack([x, x], 2),
    "stack at the end": lambda T, x: T.stack([x, x], 4),
    "mixed": lambda T, x: T.cat([x, x.contiguous()], 1),
    "pad in circles": lambda T, x: T.nn.functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "topk": lambda T, x: x.topk(2, 1)[0],
    "cumsum": lambda T, x: x.cumsum(1),
}


def images(T: Any) -> Any:
    values = np.random.default_rng(0).random(SHAPE).astype(np.float32)
    return T.tensor(values.tolist()).to(memory_format=T.channels_last)


@pytest.mark.parametrize("form", ["eager", "compiled"])
def test_results_lie_channels_last(form: str) -> None:
    def each(x: Any) -> list[Any]:
        return [function(tg, x) for function in KEPT.values()]

    results = (tg.compile(each) if form == "compiled" else each)(images(tg))
    for name, found in zip(KEPT, results, strict=True):
        assert found.is_contiguous(memory_format=tg.channels_last), (name, found.stride())
        assert not found.is_contiguous(), name


def test_volumes_lie_so_too() -> None:
    x = tg.rand(2, 4, 6, 5, 3).to(memory_format=tg.channels_last_3d)
    F = tg.nn.functional
    for found in (
        F.conv3d(x, tg.ones(2, 4, 2, 2, 2)), F.max_pool3d(x, 2), F.avg_pool3d(x, 2), x * 2,
        F.interpolate(x, scale_factor=2), F.pad(x, (1,) * 6), tg.cat([x, x], 1),
    ):  # fmt: skip
        assert found.is_contiguous(memory_format=tg.channels_last_3d), found.stride()


def test_strides_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    every = KEPT | OTHERS

    def check(name: str) -> None:
        found, expected = every[name](tg, images(tg)), every[name](torch, images(torch))
        assert found.stride() == expected.stride()
        if name != "dropout":
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)

    check_rows(every, check)


def test_gradients_go_through() -> None:
    x = images(tg)
    weight = tg.rand(6, 4, 3, 3)

    def loss(x: Any) -> Any:
        h = tg.nn.functional.conv2d(x, weight).relu()
        h = tg.nn.functional.pad(tg.nn.functional.max_pool2d(h, 2), (1, 1, 1, 1))
        return (tg.cat([h, tg.roll(h, 1, 3)], 1) ** 2).sum()

    expected = tg.func.grad(loss)(x.contiguous())
    tg.testing.assert_close(tg.func.grad(loss)(x), expected)
    tg.testing.assert_close(tg.compile(tg.func.grad(loss))(x), expected, rtol=1e-4, atol=1e-4)
