"""Rows for functions that `torch` itself has, and that are made of others: few of each kind.

Their values beside PyTorch's are in `tensor/test_top_level_forms.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from opcase import Array, case, normal, positive, share
from opcases_families import FEW, family

import tgraph as tg

family(
    {
        "alias_copy": (tg.alias_copy, lambda x: x),
        "as_strided_copy": (lambda x: tg.as_strided_copy(x, [2, 2], [1, 4]), lambda x: x[:2, :2].T),
        "diagonal_copy": (lambda x: tg.diagonal_copy(x, 1), lambda x: np.diagonal(x, 1)),
        "expand_copy": (
            lambda x: tg.expand_copy(x, [2, 3, 4]), lambda x: np.broadcast_to(x, (2, 3, 4))
        ),
        "narrow_copy": (lambda x: tg.narrow_copy(x, 1, 1, 2), lambda x: x[:, 1:3]),
        "permute_copy": (lambda x: tg.permute_copy(x, [1, 0]), np.transpose),
        "select_copy": (lambda x: tg.select_copy(x, 0, -1), lambda x: x[-1]),
        "slice_copy": (lambda x: tg.slice_copy(x, 1, 0, 4, 2), lambda x: x[:, ::2]),
        "slice_inverse": (lambda x: tg.slice_inverse(x, x, 1, 0, 4), lambda x: x),
        "split_copy": (lambda x: tg.split_copy(x, 2, 1), lambda x: np.split(x, 2, 1)),
        "split_with_sizes_copy": (
            lambda x: tg.split_with_sizes_copy(x, [1, 2]), lambda x: np.split(x, [1])
        ),
        "squeeze_copy": (lambda x: tg.squeeze_copy(x[:1]), lambda x: x[0]),
        "t_copy": (tg.t_copy, np.transpose),
        "transpose_copy": (lambda x: tg.transpose_copy(x, 0, 1), np.transpose),
        "unbind_copy": (tg.unbind_copy, list),
        "unfold_copy": (
            lambda x: tg.unfold_copy(x, 1, 2, 1), lambda x: np.stack([x[:, :3], x[:, 1:]], 2)
        ),
        "unsafe_split_with_sizes": (
            lambda x: tg.unsafe_split_with_sizes(x, [1, 2]), lambda x: np.split(x, [1])
        ),
        "fill": (lambda x: tg.fill(x, x[0, 1] * 2), lambda x: np.full_like(x, 2 * x[0, 1])),
        "unsqueeze_copy": (lambda x: tg.unsqueeze_copy(x, 0), lambda x: x[None]),
        "view_copy": (lambda x: tg.view_copy(x, [4, 3]), lambda x: x.reshape(4, 3)),
        "constant_pad_nd": (
            lambda x: tg.constant_pad_nd(x, (1, -1), 3.0),
            lambda x: np.pad(x, ((0, 0), (1, 0)), constant_values=3)[:, :-1],
        ),
        "frobenius_norm": (lambda x: tg.frobenius_norm(x, 1), lambda x: np.linalg.norm(x, axis=1)),
        "norm_except_dim": (
            lambda x: tg.norm_except_dim(x, 2, 1), lambda x: np.linalg.norm(x, axis=0)[None]
        ),
    },
    (3, 4),
    layouts=False,
)  # fmt: skip

family(
    {
        "detach_copy": (tg.detach_copy, lambda x: x),
    },
    (3, 4),
    gradient=False,
    layouts=False,
)

case(
    "view_as_complex_copy,view_as_real_copy",
    lambda x: tg.view_as_real_copy(tg.view_as_complex_copy(tg.view_copy(x, [6, 2]))),
    lambda x: x.reshape(6, 2),
    (3, 4),
    dtypes=FEW,
    layouts=False,
)

case(
    "nuclear_norm",
    tg.nuclear_norm,
    lambda x: np.linalg.norm(x, "nuc"),
    (3, 2),
    dtypes=FEW,
    tolerance=64,
    second=False,
)


# --- norms, of which the means and 1 / deviation are results --------------------------------------


def _normed(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axes, keepdims=True) + 1e-3)
    return (x - mean) * inverse, mean, inverse


def _groups(x: Array) -> list[Array]:
    out, mean, inverse = _normed(x.reshape(2, 2, 6), (2,))
    return [out.reshape(x.shape), mean[..., 0], inverse[..., 0]]


family(
    {
        "native_batch_norm": (
            lambda x: tg.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-3)[0],
            lambda x: _normed(x, (0, 2))[0],
        ),
        "native_group_norm": (
            lambda x: tg.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-3), _groups
        ),
        "native_layer_norm": (
            lambda x: tg.native_layer_norm(x, [3], None, None, 1e-3)[0],
            lambda x: _normed(x, (2,))[0],
        ),
        "native_dropout": (
            lambda x: tg.native_dropout(x, 0.0, False)[0], lambda x: x
        ),
        "feature_dropout": (lambda x: tg.feature_dropout(x, 0.0, True), lambda x: x),
    },
    ((2, 4, 3), positive),
    tolerance=64,
    second=False,
    layouts=False,
)  # fmt: skip


# --- convolutions and grids -----------------------------------------------------------------------


def _over_time(x: Array, weight: Array) -> Array:
    return x[:-1] @ weight[0] + x[1:] @ weight[1]


family(
    {
        "conv_tbc": (lambda x, w: tg.conv_tbc(x, w, x.new_zeros(2)), _over_time),
        "convolution": (
            lambda x, w: tg.convolution(
                x.permute(1, 2, 0), w.permute(2, 1, 0), None, [1], [0], [1], False, [0], 1
            ).permute(2, 0, 1),
            _over_time,
        ),
    },
    (4, 2, 3), (2, 3, 2),
    tolerance=64,
    layouts=False,
)  # fmt: skip

family(
    {
        "affine_grid_generator": (
            lambda x: tg.affine_grid_generator(x[0, :1, :2], [1, 1, 1, 1], False)[0, 0],
            lambda x: x[0, :1, :2, 2],
        ),
        "grid_sampler,grid_sampler_2d": (
            lambda x: [
                f(x, x.new_zeros(1, 1, 1, 2), 0, 0, True)
                for f in (tg.grid_sampler, tg.grid_sampler_2d)
            ],
            lambda x: [x[:, :, 1:2, 1:2]] * 2,
        ),
        "grid_sampler_3d": (
            lambda x: tg.grid_sampler_3d(
                x[:, :, None], x.new_zeros(1, 1, 1, 1, 3), 0, 0, True
            )[:, :, 0],
            lambda x: x[:, :, 1:2, 1:2],
        ),
    },
    (1, 2, 3, 3),
    layouts=False,
    second=False,
)  # fmt: skip


# --- recurrent layers -----------------------------------------------------------------------------


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _steps(step: Any, count: int = 1) -> Any:
    """Outputs and last states after all rows of `x`, from a state of zeros."""

    def run(x: Array, w: Array, u: Array) -> list[Array]:
        states, outputs = [np.zeros((2, 2))] * count, []
        for row in x:
            states = step(row, w, u, *states)
            outputs.append(states[0])
        return [np.stack(outputs), *(each[None] for each in states)]

    return run


def _lstm(x: Array, w: Array, u: Array, h: Array, c: Array) -> list[Array]:
    i, f, g, o = np.split(x @ w.T + h @ u.T, 4, 1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return [_sigmoid(o) * np.tanh(c), c]


def _gru(x: Array, w: Array, u: Array, h: Array) -> list[Array]:
    a, b = np.split(x @ w.T, 3, 1), np.split(h @ u.T, 3, 1)
    reset, update = _sigmoid(a[0] + b[0]), _sigmoid(a[1] + b[1])
    new = np.tanh(a[2] + reset * b[2])
    return [new + update * (h - new)]


def _elman(activation: Any) -> Any:
    return lambda x, w, u, h: [activation(x @ w.T + h @ u.T)]


_RELU = _elman(lambda x: np.maximum(x, 0))


def _ours(function: Any, count: int = 1) -> Any:
    def run(x: Any, w: Any, u: Any) -> Any:
        zero = x.new_zeros(1, 2, 2)
        hx = zero if count == 1 else (zero, zero)
        return function(x, hx, (w, u), False, 1, 0.0, False, False, False)

    return run


def _cell(function: Any, count: int = 1) -> Any:
    def run(x: Any, w: Any, u: Any) -> Any:
        zero = x.new_zeros(2, 2)
        return function(x[0], zero if count == 1 else (zero, zero), w, u)

    return run


def _first(step: Any, count: int = 1) -> Any:
    return lambda x, w, u: step(x[0], w, u, *[np.zeros((2, 2))] * count)


for _layer, _step, _count, _rows in (
    ("lstm", _lstm, 2, 8), ("gru", _gru, 1, 6), ("rnn_tanh", _elman(np.tanh), 1, 2),
    ("rnn_relu", _RELU, 1, 2),
):  # fmt: skip
    family(
        {
            _layer: (_ours(getattr(tg, _layer), _count), _steps(_step, _count)),
            f"{_layer}_cell": (
                _cell(getattr(tg, f"{_layer}_cell"), _count), _first(_step, _count)
            ),
        },
        ((3, 2, 3), share), ((_rows, 3), share), ((_rows, 2), share),
        dtypes=(tg.float64,),
        tolerance=64,
        second=False,
        layouts=False,
    )  # fmt: skip


# --- counts and segments --------------------------------------------------------------------------


def _segments(x: Array) -> list[Array]:
    one, two = x[:1], x[1:]
    return [
        np.stack([one.sum(0), 0 * x[0], two.sum(0)]),
        np.stack([one.max(0), two.max(0)]),
        np.stack([one.mean(0), two.mean(0)]),
    ]


def _at(T: Any, name: str, *lengths: int) -> Any:
    return lambda x: T.segment_reduce(x, name, lengths=T.tensor(lengths).to(x.device))


case(
    "segment_reduce",
    lambda x: tuple(
        _at(tg, *each)(x) for each in (("sum", 1, 0, 2), ("max", 1, 2), ("mean", 1, 2))
    ),
    lambda x: tuple(_segments(x)),
    (3, 4),
    dtypes=FEW,
    layouts=False,
)

family(
    {
        "histogram": (
            lambda x: tg.histogram(x, 4, range=(-2.0, 2.0)),
            lambda x: list(np.histogram(x, 4, (-2, 2))),
        ),
        "histogramdd": (
            lambda x: tg.histogramdd(x[:, :2], [2, 3], [-2.0, 2.0, -1.0, 1.0], density=True)[0],
            lambda x: np.histogramdd(x[:, :2], [2, 3], [(-2, 2), (-1, 1)], density=True)[0],
        ),
    },
    ((8, 3), normal),
    gradient=False,
    layouts=False,
)

case(
    "nonzero_static",
    lambda x: tg.nonzero_static(x > 0, size=4),
    lambda x: np.vstack([np.argwhere(x > 0), np.full((4, x.ndim), -1)])[:4],
    ((3, 4), normal),
    result=tg.int64,
    gradient=False,
    dtypes=FEW,
)
