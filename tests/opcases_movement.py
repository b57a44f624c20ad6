"""Rows of views, movement and access at positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from opcase import (
    ANY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Array,
    below,
    case,
    distinct,
    few_values,
    truth,
)

import tgraph as tg
from tgraph.nn import functional as F
from tgraph.ops.concatenation import atleast_1d

CUBE = (2, 3, 4)


def moves(name: str, function: Any, reference: Any, *arguments: Any, **options: Any) -> None:
    """A row of an operation that only moves elements: any dtype, exact."""
    case(name, function, reference, *arguments, **{"dtypes": ANY, "tolerance": 0, **options})


def _as32(x: Array) -> Array:
    """A row's floats come as float64, and are made float32 for it."""
    return x.astype(np.float32) if x.dtype == np.float64 else x


moves("reshape", lambda x: tg.reshape(x, (4, -1)), lambda x: x.reshape(4, -1), CUBE)
moves("reshape to scalar", lambda x: x.reshape(()), lambda x: x.reshape(()), (1, 1))
moves("reshape_as", lambda x, y: x.reshape_as(y), lambda x, y: x.reshape(y.shape), CUBE, (6, 4))
moves("view", lambda x: x.view(6, 4), lambda x: x.reshape(6, 4), CUBE, layouts=False)
for _name, _dtypes in [("floats", (tg.float32,)), ("integers", INTEGERS)]:
    case(
        f"view dtype of {_name}",
        lambda x: (
            x.view(tg.uint8),
            x.view(tg.int64),
            x.abs().view(tg.int64)[0].view(tg.complex64),
        ),
        lambda x: (_as32(x).view(np.uint8), _as32(x).view(np.int64), _as32(abs(x))[0].view("c8")),
        (2, 16),
        dtypes=_dtypes,
        result=(tg.uint8, tg.int64, tg.complex64),
        gradient=False,
        layouts=False,
        tolerance=0,
    )
moves(
    "view_as",
    lambda x, y: x.view_as(y),
    lambda x, y: x.reshape(y.shape),
    CUBE,
    (24,),
    layouts=False,
)
moves("flatten", lambda x: tg.flatten(x, 1), lambda x: x.reshape(2, 12), CUBE)
moves("flatten all", tg.flatten, np.ravel, CUBE, more=(((),), ((0, 2),)))
moves("ravel", tg.ravel, np.ravel, CUBE)
moves("unflatten", lambda x: tg.unflatten(x, 1, (3, -1)), lambda x: x.reshape(2, 3, 4), (2, 12))
moves("squeeze", tg.squeeze, np.squeeze, (1, 3, 1), more=(((1,),), ((1, 0),), ((),)))
moves("squeeze dim", lambda x: tg.squeeze(x, -1), lambda x: x.squeeze(-1), (1, 3, 1))
moves("unsqueeze", lambda x: tg.unsqueeze(x, 1), lambda x: x[:, None], CUBE)
moves("unsqueeze last", lambda x: tg.unsqueeze(x, -1), lambda x: x[..., None], CUBE, more=(((),),))
moves("permute", lambda x: tg.permute(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), CUBE)
moves(
    "transpose",
    lambda x: tg.transpose(x, 0, -1),
    lambda x: x.swapaxes(0, -1),
    CUBE,
    more=(((40, 33),), ((0, 3),)),
)
moves("t", tg.t, np.transpose, (3, 4), more=(((5,),), ((),)))
moves("matrix_transpose", lambda x: x.mT, lambda x: x.swapaxes(-1, -2), CUBE)
moves("reversed_dims", lambda x: x.T, np.transpose, (3, 4))
moves(
    "movedim",
    lambda x: tg.movedim(x, (0, 1), (-1, 0)),
    lambda x: np.moveaxis(x, (0, 1), (-1, 0)),
    CUBE,
)
moves("expand", lambda x: x.expand(5, -1, 4), lambda x: np.broadcast_to(x, (5, 3, 4)), (3, 1))
moves(
    "expand_as", lambda x, y: x.expand_as(y), lambda x, y: np.broadcast_to(x, y.shape), (3, 1), CUBE
)
moves(
    "broadcast_to",
    lambda x: tg.broadcast_to(x, (2, 3, 4)),
    lambda x: np.broadcast_to(x, (2, 3, 4)),
    (1, 4),
    more=(((),), ((4,),)),
)
moves(
    "broadcast_tensors",
    tg.broadcast_tensors,
    lambda x, y: tuple(np.broadcast_arrays(x, y)),
    (3, 1),
    (4,),
)
moves("narrow", lambda x: tg.narrow(x, 1, 1, 2), lambda x: x[:, 1:3], CUBE)
moves("select", lambda x: tg.select(x, 1, -1), lambda x: x[:, -1], CUBE)
moves("slice_axis", lambda x: x[:, 0:3:2], lambda x: x[:, 0:3:2], CUBE)
moves("split", lambda x: tg.split(x, 2, 1), lambda x: (x[:, :2], x[:, 2:]), CUBE)
moves(
    "split sizes",
    lambda x: x.split([1, 0, 3], -1),
    lambda x: (x[..., :1], x[..., 1:1], x[..., 1:]),
    CUBE,
)
moves("chunk", lambda x: tg.chunk(x, 3, -1), lambda x: (x[..., :2], x[..., 2:]), CUBE)
moves(
    "tensor_split",
    lambda x: tg.tensor_split(x, 3, -1),
    lambda x: tuple(np.array_split(x, 3, -1)),
    CUBE,
)
moves("unbind", lambda x: tg.unbind(x, 1), lambda x: (x[:, 0], x[:, 1], x[:, 2]), CUBE)
moves(
    "unfold",
    lambda x: x.unfold(1, 3, 2),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1)[:, ::2],
    (2, 7),
)
moves(
    "as_strided",
    lambda x: tg.as_strided(x, x.shape[::-1], np.cumprod((1, *x.shape[:0:-1]))[: x.ndim].tolist()),
    np.transpose,
    (3, 4),
    layouts=False,
    more=(((),), ((0, 3),)),
)
moves(
    "as_strided windows",
    lambda x: tg.as_strided(x, (2, 3, 2), (4, 1, 2), 1),
    lambda x: np.lib.stride_tricks.as_strided(
        x.ravel()[1:], (2, 3, 2), [x.itemsize * s for s in (4, 1, 2)]
    ),
    (3, 4),
    layouts=False,
)
moves("diagonal", tg.diagonal, np.diagonal, (3, 4), more=(((4, 3),), ((2, 0),)))
moves(
    "diagonal below",
    lambda x: tg.diagonal(x, -1, -2, -1),
    lambda x: np.diagonal(x, -1, -2, -1),
    CUBE,
    more=(((2, 1, 3),), ((0, 3, 3),)),
)
moves("diagonal offset", lambda x: tg.diagonal(x, 1, 2, 0), lambda x: np.diagonal(x, 1, 2, 0), CUBE)
moves(
    "cat",
    lambda x, y: tg.cat([x, y, x], 1),
    lambda x, y: np.concatenate([x, y, x], 1),
    (2, 3),
    (2, 1),
    more=(((2, 0), (2, 3)),),
)
moves(
    "cat negative",
    lambda x, y: tg.cat((x, y), -2),
    lambda x, y: np.concatenate((x, y), -2),
    CUBE,
    (2, 1, 4),
)
case(
    "cat promotes",
    lambda x, y: tg.cat([x, y]),
    lambda x, y: np.concatenate([x, y]),
    (3,),
    ((2,), few_values, tg.int32),
    dtypes=FLOATS,
)
moves(
    "stack",
    lambda x, y: tg.stack([x, y], 1),
    lambda x, y: np.stack([x, y], 1),
    (2, 3),
    (2, 3),
    more=(((), ()),)[:0],
)
moves(
    "stack last",
    lambda x, y: tg.stack([x, y], -1),
    lambda x, y: np.stack([x, y], -1),
    (2, 3),
    (2, 3),
    more=(((), ()),),
)
moves(
    "hstack",
    lambda x, y: tg.hstack([x, y]),
    lambda x, y: np.hstack([x, y]),
    (2, 3),
    (2, 1),
    more=(((3,), (2,)),),
)
moves(
    "vstack",
    lambda x, y: tg.vstack([x, y]),
    lambda x, y: np.vstack([x, y]),
    (2, 3),
    (1, 3),
    more=(((3,), (3,)),),
)
moves("flip", lambda x: tg.flip(x, (0, 2)), lambda x: np.flip(x, (0, 2)), CUBE)
moves("roll", lambda x: tg.roll(x, 5, 1), lambda x: np.roll(x, 5, 1), CUBE)
moves("roll all", lambda x: tg.roll(x, -3), lambda x: np.roll(x, -3), CUBE)
moves(
    "roll two", lambda x: tg.roll(x, (1, -2), (0, 2)), lambda x: np.roll(x, (1, -2), (0, 2)), CUBE
)
moves("repeat", lambda x: x.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3)), (3, 2))
moves("tile", lambda x: tg.tile(x, (2, 2)), lambda x: np.tile(x, (2, 2)), CUBE)
moves(
    "repeat_interleave", lambda x: tg.repeat_interleave(x, 3, 1), lambda x: np.repeat(x, 3, 1), CUBE
)
moves(
    "repeat_interleave all", lambda x: tg.repeat_interleave(x, 2), lambda x: np.repeat(x, 2), (2, 3)
)
moves("clone", tg.clone, np.array, CUBE, more=(((),), ((0, 2),)))
moves("contiguous", lambda x: x.transpose(0, 1).contiguous(), lambda x: x.swapaxes(0, 1), CUBE)
moves("atleast_1d", atleast_1d, np.atleast_1d, (), more=(((0,),),))
moves("tril", lambda x: tg.tril(x, 1), lambda x: np.tril(x, 1), (4, 5), more=(((2, 3, 3),),))
moves("triu", lambda x: tg.triu(x, -1), lambda x: np.triu(x, -1), (4, 5), more=(((2, 3, 3),),))
moves("diag", tg.diag, np.diag, (4,), more=(((3, 4),),))
moves("diag offset", lambda x: tg.diag(x, -2), lambda x: np.diag(x, -2), (4,))
moves(
    "meshgrid",
    lambda x, y: tuple(tg.meshgrid(x, y, indexing="xy")),
    lambda x, y: tuple(np.meshgrid(x, y)),
    (3,),
    (4,),
)
moves("pad", lambda x: F.pad(x, (1, 2, 0, 1)), lambda x: np.pad(x, ((0, 0), (0, 1), (1, 2))), CUBE)
moves(
    "pad value",
    lambda x: F.pad(x, (2, 0), value=3),
    lambda x: np.pad(x, ((0, 0), (0, 0), (2, 0)), constant_values=3),
    CUBE,
    dtypes=NUMBERS,
)
moves(
    "pad negative",
    lambda x: F.pad(x, (-1, 2, 1, -1)),
    lambda x: np.pad(x[:, :2, 1:], ((0, 0), (1, 0), (0, 2))),
    CUBE,
)
for _mode, _theirs in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
    moves(
        f"pad {_mode}",
        lambda x, m=_mode: F.pad(x, (2, 1), m),
        lambda x, m=_theirs: np.pad(x, ((0, 0), (0, 0), (2, 1)), m),
        CUBE,
    )

# -- indexing --------------------------------------------------------------------------------

ROWS = np.array([2, 0, 1, 2])
for _label, _index in [
    ("integer", 1), ("negative", -1), ("slice", slice(0, 2)), ("ellipsis", (..., 1)),
    ("steps", (slice(None), slice(0, 3, 2))), ("new axis", (slice(None), None, 0)),
    ("list", (slice(None), [2, 0, -1])),
    ("integers", (1, 2, 3)), ("pairs", ([1, 0, 1], [2, -1, 0])),
    ("apart", ([1, 0, 1], slice(None), [2, -1, 0])), ("empty slice", (slice(1, 1),)),
    ("table", (slice(None), np.array([[0, 1], [2, 2]]))),
]:  # fmt: skip
    moves(
        f"getitem {_label}", lambda x, i=_index: x[_as_tensors(i)], lambda x, i=_index: x[i], CUBE
    )


def _as_tensors(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_as_tensors, index))
    return tg.from_numpy(index) if isinstance(index, np.ndarray) else index


def assigned(index: Any, accumulate: bool = False) -> tuple[Any, Any]:
    """Functions that assign at `index` in a copy."""

    def run(x: Any, value: Any) -> Any:
        result = x.clone()
        result[index] = value
        return result

    def expected(x: Array, value: Array) -> Array:
        result = x.copy()
        result[index] = value
        return result

    return run, expected


for _label, _index, _shape in [
    ("integer", 1, (3, 4)), ("slice", (slice(None), slice(0, 3, 2)), (2, 2, 4)),
    ("broadcast", (slice(None), 1), (4,)), ("list", (slice(None), [2, 0]), (2, 2, 4)),
    ("pairs", ([1, 0], [2, 1]), (2, 4)), ("all", slice(None), ()),
]:  # fmt: skip
    moves(f"setitem {_label}", *assigned(_index), CUBE, _shape)
case(
    "setitem mask",
    lambda x, m, v: _masked_assignment(x, m, v),
    lambda x, m, v: np.where(m, v, x),
    (3, 4),
    ((3, 4), truth, tg.bool),
    (),
    dtypes=ANY,
    tolerance=0,
)


def _masked_assignment(x: Any, mask: Any, value: Any) -> Any:
    result = x.clone()
    result[mask] = value
    return result


INDEX = ((2, 3, 6), below(4), tg.int64)
moves(
    "gather", lambda x, i: tg.gather(x, 2, i), lambda x, i: np.take_along_axis(x, i, 2), CUBE, INDEX
)
moves(
    "gather rows",
    lambda x, i: tg.gather(x, 0, i),
    lambda x, i: np.take_along_axis(x, i, 0),
    (5, 3),
    ((2, 3), below(5), tg.int64),
)
moves(
    "take_along_dim",
    lambda x, i: tg.take_along_dim(x, i, 2),
    lambda x, i: np.take_along_axis(x, i, 2),
    CUBE,
    INDEX,
)
moves("take", tg.take, lambda x, i: x.reshape(-1)[i], CUBE, ((2, 2), below(24), tg.int64))
moves(
    "index_select",
    lambda x, i: tg.index_select(x, 1, i),
    lambda x, i: x[:, i],
    CUBE,
    ((5,), below(3), tg.int64),
)
moves(
    "index_select int32",
    lambda x, i: tg.index_select(x, 1, i),
    lambda x, i: x[:, i],
    CUBE,
    ((5,), below(3), tg.int32),
)
moves(
    "index_put",
    lambda x, i, v: tg.index_put(x, [i], v),
    lambda x, i, v: _put(x, i, v),
    (5, 3),
    ((4,), distinct(5), tg.int64),
    (4, 3),
)
case(
    "index_put accumulate",
    lambda x, i, v: tg.index_put(x, [i], v, accumulate=True),
    lambda x, i, v: _put_added(x, i, v),
    (5, 3),
    ((7,), below(5), tg.int64),
    (7, 3),
    dtypes=NUMBERS,
)
case(
    "index_put_",
    lambda x, i, v: x.clone().index_put_([i], v),
    lambda x, i, v: _put(x, i, v),
    (5, 3),
    ((4,), distinct(5), tg.int64),
    (4, 3),
    dtypes=NUMBERS,
)
case(
    "index_add",
    lambda x, i, v: tg.index_add(x, 0, i, v, alpha=2),
    lambda x, i, v: _put_added(x, i, 2 * v),
    (5, 3),
    ((7,), below(5), tg.int64),
    (7, 3),
    dtypes=NUMBERS,
)
moves(
    "index_copy",
    lambda x, i, v: tg.index_copy(x, 0, i, v),
    lambda x, i, v: _put(x, i, v),
    (5, 3),
    ((4,), distinct(5), tg.int64),
    (4, 3),
)
moves(
    "index_fill",
    lambda x, i: tg.index_fill(x, 0, i, 1),
    lambda x, i: _put(x, i, 1),
    (5, 3),
    ((2,), distinct(5), tg.int64),
)
case(
    "scatter_add",
    lambda x, i, v: tg.scatter_add(x, 1, i, v),
    lambda x, i, v: _scatter(x, i, v),
    (3, 4),
    ((3, 6), below(4), tg.int64),
    (3, 6),
    dtypes=NUMBERS,
)
moves(
    "scatter",
    lambda x, i, v: tg.scatter(x, 1, i, v),
    lambda x, i, v: _scatter(x, i, v, add=False),
    (3, 4),
    ((3, 3), distinct(4), tg.int64),
    (3, 3),
)
moves(
    "scatter scalar",
    lambda x, i: tg.scatter(x, 1, i, 1),
    lambda x, i: _scatter(x, i, np.broadcast_to(1, i.shape), add=False),
    (3, 4),
    ((3, 3), distinct(4), tg.int64),
)
case(
    "scatter reduce add",
    lambda x, i, v: tg.scatter(x, 1, i, v, reduce="add"),
    lambda x, i, v: _scatter(x, i, v),
    (3, 4),
    ((3, 6), below(4), tg.int64),
    (3, 6),
    gradient=False,
)
_REDUCED = {
    "sum": np.add.at, "prod": np.multiply.at, "amax": np.maximum.at, "amin": np.minimum.at,
}  # fmt: skip
for _kind in (*_REDUCED, "mean"):
    for _own in (True, False):
        case(
            f"scatter_reduce {_kind} {'with' if _own else 'without'} self",
            lambda x, i, v, k=_kind, o=_own: tg.scatter_reduce(x, 1, i, v, k, include_self=o),
            lambda x, i, v, k=_kind, o=_own: _scatter_reduced(x, i, v, k, o),
            (2, 3),
            ((2, 5), below(3), tg.int64),
            (2, 5),
            dtypes=NUMBERS if _own else FLOATS,
            second=_kind in ("sum", "mean"),
        )
case(
    "index_reduce",
    lambda x, i, v: tg.index_reduce(x, 1, i, v, "amax"),
    lambda x, i, v: _scatter_reduced(x, np.stack([i] * 2), v, "amax", True),
    (2, 3),
    ((4,), below(3), tg.int64),
    (2, 4),
    dtypes=NUMBERS,
)
case(
    "put",
    lambda x, i, v: (tg.put(x, i, v), x.put(i - 12, v, accumulate=True)),
    lambda x, i, v: (
        _put(x.reshape(-1), i, v).reshape(3, 4),
        _put_added(x.reshape(-1), i, v).reshape(3, 4),
    ),
    (3, 4),
    ((4,), distinct(12), tg.int64),
    (4,),
    dtypes=NUMBERS,
)
for _name, _call, _wanted in (
    ("scatter_reduce", lambda x, i, v: tg.scatter_reduce(x, 0, i, v, "sum"), np.add),
    ("index_reduce", lambda x, i, v: tg.index_reduce(x, 0, i, v, "amax"), np.maximum),
    ("put", lambda x, i, v: tg.put(x, i, v, accumulate=True), np.add),
):
    case(
        f"{_name} without dimensions",
        _call,
        lambda x, i, v, wanted=_wanted: wanted(x, v),
        (),
        ((), below(1), tg.int64),
        (),
        dtypes=FLOATS,
    )


def _scatter_reduced(x: Array, index: Array, source: Array, kind: str, include_self: bool) -> Array:
    """Row by row, one element after the other; means of integers round down."""
    result = x.copy()
    for row, (line, at, new) in enumerate(zip(x, index, source, strict=True)):
        counts = np.bincount(at, minlength=line.size)
        start = {"prod": 1, "amax": -np.inf, "amin": np.inf}.get(kind, 0)
        total = line.copy() if include_self else np.where(counts > 0, start, line)
        _REDUCED.get(kind, np.add.at)(total, at, new)
        if kind == "mean":
            counts = counts + 1 if include_self else np.maximum(counts, 1)
            total = total // counts if x.dtype.kind in "iu" else total / counts
        result[row] = total
    return result


def _put(x: Array, index: Array, value: Any) -> Array:
    result = x.copy()
    result[index] = value
    return result


def _put_added(x: Array, index: Array, value: Any) -> Array:
    result = x.copy()
    np.add.at(result, index, value)
    return result


def _scatter(x: Array, index: Array, source: Array, add: bool = True) -> Array:
    result = x.copy()
    for row in range(index.shape[0]):
        for column in range(index.shape[1]):
            at = row, index[row, column]
            result[at] = result[at] + source[row, column] if add else source[row, column]
    return result


moves(
    "masked_fill",
    lambda x, m: tg.masked_fill(x, m, 1),
    lambda x, m: np.where(m, x.dtype.type(1), x),
    CUBE,
    ((3, 1), truth, tg.bool),
)
moves(
    "masked_select",
    tg.masked_select,
    lambda x, m: x[m],
    CUBE,
    (CUBE, truth, tg.bool),
    compiles=False,
)
moves(
    "masked_scatter",
    tg.masked_scatter,
    lambda x, m, s: _masked_scatter(x, m, s),
    (3, 4),
    ((3, 4), truth, tg.bool),
    (3, 4),
    compiles=False,
)


def _masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    result = x.copy()
    result[mask] = source.reshape(-1)[: mask.sum()]
    return result


case(
    "nonzero",
    tg.nonzero,
    lambda x: np.argwhere(x),
    ((3, 4), few_values),
    dtypes=ANY,
    result=tg.int64,
    gradient=False,
    compiles=False,
)
case(
    "argwhere",
    tg.argwhere,
    lambda x: np.argwhere(x),
    ((3, 4), few_values),
    dtypes=ANY,
    result=tg.int64,
    gradient=False,
    compiles=False,
)
case(
    "nonzero_tuple",
    lambda x: tg.nonzero(x, as_tuple=True),
    np.nonzero,
    ((3, 4), few_values),
    dtypes=ANY,
    result=tg.int64,
    gradient=False,
    compiles=False,
)
case(
    "one_hot",
    lambda i: tg.one_hot(i, 5),
    lambda i: np.eye(5, dtype=np.int64)[i],
    ((2, 3), below(5), tg.int64),
    dtypes=(tg.int64,),
    result=tg.int64,
    gradient=False,
)
case(
    "embedding",
    lambda i, w: F.embedding(i, w),
    lambda i, w: w[i],
    ((2, 3), below(5), tg.int64),
    (5, 4),
)
