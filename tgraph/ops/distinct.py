"""Distinct elements and slices: an order, comparisons of neighbours, running counts, positions.

All of it runs where the input lies. How many are distinct is read once, since shapes depend on it.
"""

from __future__ import annotations

from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir.dim import is_open
from ..compiler.ir.shapes import normalize_axis
from ..core.dispatch import apply, make_source
from ..core.eager_context import current_context
from ..core.operands import cast, refuse_complex
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_, int64
from . import comparison as c
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .creation import arange
from .scans import cumsum


@public(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, with positions and counts on request.

    Of the slices along `dim`, where one is given, in lexicographic order; positions then are those
    of slices. NaN comes last, each one by itself, as none equals another.

    >>> import tgraph as tg
    >>> tg.unique(tg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    >>> tg.unique(tg.tensor([[2, 1], [0, 5], [2, 1]]), dim=0)
    tensor([[0, 5],
            [2, 1]])
    """
    refuse_complex("unique", input)
    wanted = return_inverse, return_counts
    if dim is None:
        flat = m.reshape(input.detach(), -1)
        if not return_inverse:  # values are put in order faster than positions
            return _distinct(
                "unique", input, 0, apply(p.sort, flat, descending=False), None, wanted
            )
        return _distinct("unique", input, 0, flat, _order(flat), wanted)
    axis, rows = _slices("unique", input.detach(), dim)
    order = _order_of_rows(rows) if rows._type.numel else None
    return _distinct("unique", input, axis, rows, order, wanted)


@public(method=True)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements without those that equal the one before, with positions and counts on request.

    Of the slices along `dim`, where one is given; else of all elements in their order.

    >>> import tgraph as tg
    >>> tg.unique_consecutive(tg.tensor([2, 2, 1, 2]), return_counts=True)
    (tensor([2, 1, 2]), tensor([2, 1, 1]))
    """
    refuse_complex("unique_consecutive", input)
    wanted = return_inverse, return_counts
    if dim is None:
        flat = m.reshape(input.detach(), -1)
        return _distinct("unique_consecutive", input, 0, flat, None, wanted)
    axis, rows = _slices("unique_consecutive", input.detach(), dim)
    return _distinct("unique_consecutive", input, axis, rows, None, wanted)


def _slices(name: str, x: Tensor, dim: int) -> tuple[int, Tensor]:
    """The axis, and the slices along it as rows."""
    axis, shape = normalize_axis(dim, x.ndim), x._type.shape
    if any(size == 0 for at, size in enumerate(shape) if at != axis):
        raise RuntimeError(
            f"{name}: there are 0 sized dimensions other than dim={dim} in {tuple(shape)}, so that "
            "slices along it have no elements"
        )
    count, size = shape[axis], 1
    for at, each in enumerate(shape):
        size *= each if at != axis else 1
    return axis, m.reshape(m.movedim(x, axis, 0), count, size)


# -- order -----------------------------------------------------------------------------------


def _order(x: Tensor) -> Tensor:
    """The positions that put the last axis in order."""
    return apply(p.argsort, x, count=x._type.shape[-1], descending=False)


@planned
def _order_of_rows(rows: Tensor) -> Tensor:
    """The positions that put rows in lexicographic order.

    Of columns the ranks, of neighbouring ranks the ranks of pairs, and so on: each round sorts all
    that is left at once.
    """
    count, width = rows._type.shape
    if width == 1:
        return _order(m.reshape(rows, -1))
    ranks = _ranks(m.contiguous(m.t(rows)))
    while width > 1:
        first, last = (ranks[at : width // 2 * 2 : 2] for at in (0, 1))
        pairs = _ranks(e.add(e.mul(first, count), last))
        ranks = pairs if width % 2 == 0 else _joined(pairs, ranks[width - 1 :])
        width = -(-width // 2)
    return _order(ranks[0])


def _ranks(x: Tensor) -> Tensor:
    """For each element of the last axis how many different ones precede it; NaN are equal here."""
    order = _order(x)
    lined, axis = apply(p.gather, x, order, axis=1), 1
    size = x._type.shape[axis]
    one, other = (m.narrow(lined, axis, at, size - 1) for at in (1, 0))
    is_new = c.ne(one, other)
    if x._type.dtype.is_floating_point:
        is_new = e.logical_and(is_new, e.logical_not(e.isnan(other)))
    zeros = _full(x, (x._type.shape[0], 1), 0)
    ranks = _joined(zeros, cumsum(cast(is_new, int64), axis), axis)
    return apply(p.scatter_add, _full(x, x._type.shape, 0), order, ranks, axis=axis)


# -- what differs ----------------------------------------------------------------------------


def _distinct(
    name: str,
    input: Tensor,
    axis: int,
    rows: Tensor,
    order: Tensor | None,
    wanted: tuple[bool, bool],
) -> Any:
    """What differs from its predecessor among rows, or elements, in an order or as they are.

    `rows` are slices of `input` along the axis, or elements of any shape. With the number of the
    run that each is in, and how many are in each, where they are wanted.
    """
    size = rows._type.shape[0]
    lined = rows if order is None else apply(p.index, rows, order, axis=0)
    is_new = _is_new(lined)
    (starts,) = current_context().positions(is_new, f"{name}()")
    if rows.ndim > 1:
        at = starts if order is None else apply(p.index, order, starts, axis=0)
        values = apply(p.index, input.detach(), at, axis=axis)
    else:
        values = apply(p.index, lined, starts, axis=0)
    found = [values]
    if wanted[0]:
        inverse = _inverse(is_new, order)
        found.append(inverse if rows.ndim > 1 else m.reshape(inverse, *input._type.shape))
    if wanted[1]:
        found.append(_lengths(starts, size))
    return tuple(found) if len(found) > 1 else values


def _lengths(starts: Tensor, size: int) -> Tensor:
    """How long runs are that begin there and end with the next, the last one at `size`."""
    bounds = _joined(starts, _full(starts, (1,), size))
    return e.sub(m.narrow(bounds, 0, 1, starts._type.shape[0]), starts)


@planned
def _is_new(lined: Tensor) -> Tensor:
    """Whether each row differs from the one before."""
    size = lined._type.shape[0]
    if is_open(size):  # which may be 0
        at = arange(size, device=lined._type.device)
        before = apply(p.index, lined, e.clamp(e.sub(at, 1), 0), axis=0)
        differs = c.ne(lined, before)
        differs = differs if lined.ndim == 1 else r.any(differs, 1)
        return e.logical_or(c.eq(at, 0), differs)
    if not size:
        return _full(lined, (0,), False, bool_)
    differs = c.ne(m.narrow(lined, 0, 1, size - 1), m.narrow(lined, 0, 0, size - 1))
    differs = differs if lined.ndim == 1 else r.any(differs, 1)
    return _joined(_full(lined, (1,), True, bool_), differs)


@planned
def _inverse(is_new: Tensor, order: Tensor | None) -> Tensor:
    """The number of the run that each row is in."""
    run = e.sub(cumsum(cast(is_new, int64), 0), 1)
    if order is None:
        return run
    return apply(p.scatter_add, _full(run, run._type.shape, 0), order, run, axis=0)


def _joined(x: Tensor, y: Tensor, axis: int = 0) -> Tensor:
    return apply(p.concatenate, x, y, axis=axis)


def _full(like: Tensor, shape: tuple[int, ...], value: int | bool, dtype: Any = int64) -> Tensor:
    return make_source(p.full, like._type.device, shape=shape, value=value, dtype=dtype)
