"""Rows of reductions, softmax and its family, sorting, running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from opcase import (
    ANY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SAME,
    SUMMED,
    TRUTH,
    Array,
    below,
    case,
    few_values,
    normal,
    positive,
    truth,
)
from scipy import special

import tgraph as tg
from tgraph.nn import functional as F

MATRIX = (3, 5)
CUBE = (2, 3, 4)
# dim, keepdim and the axes that NumPy takes.
AXES: list[tuple[str, Any, bool]] = [
    ("", None, False), ("rows", 1, False), ("columns", 0, True), ("last", -1, True),
    ("two", (0, 2), False), ("inner", (1, -1), True),
]  # fmt: skip
EMPTY = (((2, 0, 4),), ((0, 3, 4),))


def reduction(
    name: str,
    function: Callable[..., Any],
    reference: Callable[..., Any],
    domain: Any = normal,
    several: bool = True,
    empty: bool = True,
    **options: Any,
) -> None:
    """Rows for the usual choices of dimensions."""
    for label, dim, keepdim in AXES:
        if isinstance(dim, tuple) and not several:
            continue

        def run(x: Any, dim: Any = dim, keepdim: bool = keepdim) -> Any:
            return function(x) if dim is None else function(x, dim, keepdim=keepdim)

        def expected(x: Array, dim: Any = dim, keepdim: bool = keepdim) -> Any:
            return reference(x, axis=dim, keepdims=keepdim)

        more: list[Any] = [((17, 2, 33),), ((1, 1, 1),)]
        if dim is None:
            more += [((),), ((129,),)]
        if empty:
            more += EMPTY
        case(f"{name} {label}".strip(), run, expected, (CUBE, domain), more=tuple(more), **options)


reduction("sum", tg.sum, np.sum, dtypes=NUMBERS, result=SUMMED, tolerance=60)
reduction("sum of bools", tg.sum, np.sum, truth, dtypes=(tg.bool,), result=tg.int64, gradient=False)
case(
    "sum dtype",
    lambda x: tg.sum(x, 1, dtype=tg.float64),
    lambda x: x.astype(np.float64).sum(1),
    CUBE,
    dtypes=(tg.float32, tg.int32),
    result=tg.float64,
    gradient=False,
)
case(
    "prod",
    tg.prod,
    np.prod,
    ((2, 3), positive),
    result=SUMMED,
    dtypes=FLOATS,
    tolerance=40,
    more=(((),), ((0, 2),)),
)
case(
    "prod integers",
    tg.prod,
    lambda x: np.prod(x, dtype=np.int64),
    ((2, 3), few_values),
    result=tg.int64,
    dtypes=(*INTEGERS, tg.bool),
    gradient=False,
)
case("prod rows", lambda x: tg.prod(x, 1), lambda x: x.prod(1), ((3, 4), positive), tolerance=40)
case(
    "prod with zeros",
    lambda x: tg.prod(x, 1),
    lambda x: x.prod(1),
    ((4, 3), few_values),
    tolerance=40,
)
reduction("mean", tg.mean, np.mean, tolerance=40, empty=False)
reduction("amax", tg.amax, np.amax, dtypes=NUMBERS, empty=False)
reduction("amin", tg.amin, np.amin, dtypes=NUMBERS, empty=False)
reduction("any", tg.any, np.any, few_values, dtypes=ANY, result=TRUTH, gradient=False)
reduction("all", tg.all, np.all, few_values, dtypes=ANY, result=TRUTH, gradient=False)
reduction(
    "count_nonzero",
    lambda x, dim=None, keepdim=False: tg.count_nonzero(x, dim),
    lambda x, axis, keepdims: np.count_nonzero(x, axis),
    few_values,
    dtypes=ANY,
    result=tg.int64,
    gradient=False,
)
case(
    "hash_tensor",
    lambda x: tg.hash_tensor(x, (0, 2)),
    lambda x: np.bitwise_xor.reduce(x.view(np.uint64), (0, 2)),
    (CUBE, few_values),
    dtypes=(tg.float64, tg.int64),
    result=tg.uint64,
    gradient=False,
    more=(((5, 1, 3),),),
)
reduction(
    "var",
    tg.var,
    lambda x, axis, keepdims: np.var(x, axis, ddof=1, keepdims=keepdims),
    tolerance=80,
    empty=False,
)
reduction(
    "std",
    tg.std,
    lambda x, axis, keepdims: np.std(x, axis, ddof=1, keepdims=keepdims),
    tolerance=80,
    empty=False,
)
case(
    "var correction", lambda x: tg.var(x, 1, correction=0), lambda x: x.var(1), MATRIX, tolerance=80
)
case(
    "std unbiased", lambda x: tg.std(x, 1, unbiased=False), lambda x: x.std(1), MATRIX, tolerance=80
)
case(
    "var_mean",
    lambda x: tg.var_mean(x, 1),
    lambda x: (x.var(1, ddof=1), x.mean(1)),
    MATRIX,
    tolerance=80,
)
case(
    "std_mean",
    lambda x: tg.std_mean(x, 0, keepdim=True),
    lambda x: (x.std(0, ddof=1, keepdims=True), x.mean(0, keepdims=True)),
    MATRIX,
    tolerance=80,
)
for _name, _numpy in (("max", np.max), ("min", np.min)):
    _place = getattr(np, f"arg{_name}")
    _function, _position = getattr(tg, _name), getattr(tg, f"arg{_name}")
    case(_name, _function, _numpy, CUBE, dtypes=ANY, more=(((),), ((1, 40),)))
    case(
        f"{_name} dim",
        lambda x, f=_function: tuple(f(x, 1)),
        lambda x, f=_numpy, at=_place: (f(x, 1), at(x, 1)),
        CUBE,
        dtypes=NUMBERS,
        result=(SAME, tg.int64),
        more=(((3, 1),), ((0, 2),)),
    )
    case(
        f"{_name} keepdim",
        lambda x, f=_function: tuple(f(x, -1, keepdim=True)),
        lambda x, f=_numpy, at=_place: (f(x, -1, keepdims=True), at(x, -1, keepdims=True)),
        CUBE,
        dtypes=NUMBERS,
        result=(SAME, tg.int64),
    )
    case(
        f"arg{_name}",
        _position,
        lambda x, at=_place: np.asarray(at(x)),
        CUBE,
        dtypes=NUMBERS,
        result=tg.int64,
        gradient=False,
        more=(((),), ((300,),)),
    )
    case(
        f"arg{_name} dim",
        lambda x, f=_position: f(x, 1),
        lambda x, at=_place: at(x, 1),
        (CUBE, few_values),
        dtypes=NUMBERS,
        result=tg.int64,
        gradient=False,
        more=(((2, 40, 9),), ((0, 2, 4),)),
    )
    case(
        f"arg{_name} keepdim",
        lambda x, f=_position: f(x, -1, keepdim=True),
        lambda x, at=_place: at(x, -1, keepdims=True),
        (CUBE, few_values),
        dtypes=NUMBERS,
        result=tg.int64,
        gradient=False,
    )
case(
    "aminmax",
    lambda x: tuple(tg.aminmax(x, dim=1)),
    lambda x: (x.min(1), x.max(1)),
    MATRIX,
    dtypes=NUMBERS,
)
case("norm", tg.norm, np.linalg.norm, MATRIX, tolerance=40)
case(
    "norm rows",
    lambda x: tg.norm(x, dim=1),
    lambda x: np.linalg.norm(x, axis=1),
    MATRIX,
    tolerance=40,
)
for _order in (1, 3, np.inf, -np.inf):
    case(
        f"norm order {_order}",
        lambda x, p=_order: tg.norm(x, p, 1, keepdim=True),
        lambda x, p=_order: np.linalg.norm(x, p, axis=1, keepdims=True),
        MATRIX,
        tolerance=60,
    )
case(
    "norm order 0",
    lambda x: tg.norm(x, 0, 1),
    lambda x: np.count_nonzero(x, 1).astype(float),
    (MATRIX, few_values),
    gradient=False,
)
case(
    "logsumexp", lambda x: tg.logsumexp(x, 1), lambda x: special.logsumexp(x, 1), CUBE, tolerance=24
)
case(
    "logsumexp dims",
    lambda x: tg.logsumexp(x, (0, 2), keepdim=True),
    lambda x: special.logsumexp(x, (0, 2), keepdims=True),
    CUBE,
    tolerance=24,
)
for _axis in (0, 1, -1):
    _empty = (0, 3, 4) if _axis == -1 else (2, 3, 0)
    case(
        f"softmax {_axis}",
        lambda x, d=_axis: tg.softmax(x, d),
        lambda x, d=_axis: special.softmax(x, d),
        CUBE,
        tolerance=24,
        more=(((2, 3, 70),), (_empty,), ((40, 17, 3),)),
    )
    case(
        f"log_softmax {_axis}",
        lambda x, d=_axis: tg.log_softmax(x, d),
        lambda x, d=_axis: special.log_softmax(x, d),
        CUBE,
        tolerance=24,
        more=(((2, 3, 70),), (_empty,), ((40, 17, 3),)),
    )
case("softmin", lambda x: F.softmin(x, 1), lambda x: special.softmax(-x, 1), CUBE, tolerance=24)
case("glu", F.glu, lambda x: x[..., :2] * special.expit(x[..., 2:]), CUBE, tolerance=24)
case(
    "allclose",
    lambda x: tg.tensor(tg.allclose(x, x)),
    lambda x: np.array(True),
    MATRIX,
    dtypes=(tg.float32,),
    result=tg.bool,
    gradient=False,
    compiles=False,
)
case(
    "equal",
    lambda x: tg.tensor(tg.equal(x, x + 1)),
    lambda x: np.array(False),
    MATRIX,
    dtypes=NUMBERS,
    result=tg.bool,
    gradient=False,
    compiles=False,
)

# -- order -----------------------------------------------------------------------------------


def rank(x: Array, descending: bool = False, axis: int = -1) -> Array:
    keys = -1.0 * x if descending else x
    return np.argsort(keys, axis, kind="stable")


def with_nan(x: Any) -> Any:
    """A third of the elements is NaN: one in each column of a matrix with three rows."""
    size, shape = int(np.prod(x.shape)), tuple(x.shape)
    if isinstance(x, np.ndarray):
        return np.where(np.arange(size).reshape(shape) % 3 == 1, np.nan, x)
    return tg.where(tg.arange(size, device=x.device).reshape(shape) % 3 == 1, float("nan"), x)


case(
    "sort",
    lambda x: tuple(tg.sort(x, 1)),
    lambda x: (np.sort(x, 1), rank(x, axis=1)),
    CUBE,
    dtypes=(tg.float32, tg.float64, tg.int64, tg.int32),
    result=(SAME, tg.int64),
)
case(
    "sort descending",
    lambda x: tuple(tg.sort(x, descending=True)),
    lambda x: (-np.sort(-x), rank(x, True)),
    CUBE,
    dtypes=(tg.float32, tg.float64),
    result=(SAME, tg.int64),
)
case(
    "argsort",
    lambda x: tg.argsort(x, stable=True),
    rank,
    (CUBE, few_values),
    dtypes=NUMBERS,
    result=tg.int64,
    gradient=False,
)
case(
    "topk",
    lambda x: tuple(tg.topk(x, 2)),
    lambda x: (-np.sort(-x)[..., :2], rank(x, True)[..., :2]),
    CUBE,
    dtypes=(tg.float32, tg.float64),
    result=(SAME, tg.int64),
)
case(
    "kthvalue",
    lambda x: tuple(tg.kthvalue(x, 2)),
    lambda x: (np.sort(x)[..., 1], rank(x)[..., 1]),
    CUBE,
    dtypes=(tg.float32, tg.float64),
    result=(SAME, tg.int64),
)
case(
    "median",
    tg.median,
    lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2],
    MATRIX,
    dtypes=(tg.float32, tg.float64),
)
case(
    "nanmedian",
    lambda x: tg.nanmedian(with_nan(x)),
    lambda x: np.sort(with_nan(x).reshape(-1))[(np.isfinite(with_nan(x)).sum() - 1) // 2],
    MATRIX,
    dtypes=(tg.float32, tg.float64),
)
case(
    "nanmedian dim",
    lambda x: tuple(tg.nanmedian(with_nan(x), 0)),
    lambda x: (np.sort(with_nan(x), 0)[0], rank(with_nan(x).T).T[0]),
    MATRIX,
    dtypes=(tg.float32, tg.float64),
    result=(SAME, tg.int64),
)
case(
    "median dim",
    lambda x: tuple(tg.median(x, 1)),
    lambda x: (np.sort(x, 1)[:, 2], rank(x)[:, 2]),
    MATRIX,
    dtypes=(tg.float32, tg.float64),
    result=(SAME, tg.int64),
)
case(
    "searchsorted",
    lambda s, x: tg.searchsorted(tg.sort(s).values, x),
    lambda s, x: np.searchsorted(np.sort(s), x),
    ((7,), few_values),
    ((3, 4), few_values),
    dtypes=(tg.float32, tg.float64, tg.int64),
    result=tg.int64,
    gradient=False,
)
case(
    "searchsorted batch",
    lambda s, x: tg.searchsorted(s, x, sorter=tg.argsort(s), right=True),
    lambda s, x: np.stack([np.searchsorted(np.sort(a), b, "right") for a, b in zip(s, x)]),
    ((2, 5), few_values),
    ((2, 4), few_values),
    dtypes=(tg.float32, tg.int64),
    result=tg.int64,
    gradient=False,
)
case(
    "bincount",
    tg.bincount,
    np.bincount,
    ((20,), below(6), tg.int64),
    dtypes=(tg.int64,),
    result=tg.int64,
    gradient=False,
    compiles=False,
)
case(
    "unique",
    tg.unique,
    np.unique,
    ((20,), few_values),
    dtypes=NUMBERS,
    gradient=False,
    compiles=False,
)
case(
    "unique rows",
    lambda x: tg.unique(x, dim=0),
    lambda x: np.unique(x, axis=0),
    ((20, 2), few_values),
    dtypes=NUMBERS,
    gradient=False,
    compiles=False,
)
case(
    "unique_consecutive",
    tg.unique_consecutive,
    lambda x: x[np.append(True, x[1:] != x[:-1])],
    ((20,), few_values),
    dtypes=NUMBERS,
    gradient=False,
    compiles=False,
)
case(
    "cumsum",
    lambda x: tg.cumsum(x, 1),
    lambda x: np.cumsum(x, 1),
    CUBE,
    dtypes=FLOATS,
    tolerance=40,
    more=(((2, 33),), ((2, 0),)),
)
case(
    "cumprod",
    lambda x: tg.cumprod(x, 1),
    lambda x: np.cumprod(x, 1),
    CUBE,
    dtypes=FLOATS,
    tolerance=40,
    more=(((2, 33),), ((2, 0),)),
)
case(
    "cumprod integers",
    lambda x: tg.cumprod(x, 0),
    lambda x: np.cumprod(x, 0, dtype=np.int64),
    CUBE,
    dtypes=INTEGERS,
    result=tg.int64,
    gradient=False,
)
case(
    "cummax",
    lambda x: tg.cummax(x, 1).values,
    lambda x: np.maximum.accumulate(x, 1),
    CUBE,
    dtypes=NUMBERS,
    more=(((2, 33),), ((2, 0),)),
)
case(
    "cummin",
    lambda x: tg.cummin(x, 1).values,
    lambda x: np.minimum.accumulate(x, 1),
    CUBE,
    dtypes=NUMBERS,
    more=(((2, 33),), ((2, 0),)),
)
case(
    "logcumsumexp",
    lambda x: tg.logcumsumexp(x, 1),
    lambda x: np.logaddexp.accumulate(x, 1),
    CUBE,
    dtypes=FLOATS,
    tolerance=40,
    more=(((2, 33),), ((2, 0),)),
)
case(
    "cumsum integers",
    lambda x: tg.cumsum(x, 0),
    lambda x: np.cumsum(x, 0, dtype=np.int64),
    CUBE,
    dtypes=INTEGERS,
    result=tg.int64,
    gradient=False,
)
