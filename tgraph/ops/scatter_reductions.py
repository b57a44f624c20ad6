"""Writes along one dimension, and reductions of them: scatter, scatter_reduce and index_reduce.

Elements are put in the order of the places that they go to, and each run of equal places is reduced
by doubling what an element has seen of its run. The last of a run has seen all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core.composite import composite
from ..core.dispatch import apply, make_source
from ..core.operands import cast
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import Attrs, Cotangents, Wanted, vjp
from ..runtime.dtypes import bool_, int64, uint8
from . import comparison as c
from . import elementwise as e
from . import movement as m
from .gather_scatter import check_index, check_source, scatter_operands
from .sorting import argsort
from .zero_dim import with_one_element

_COMBINE: dict[str, Callable[[Any, Any], Tensor]] = {
    "prod": e.mul, "amax": e.maximum, "amin": e.minimum
}  # fmt: skip


@public(method=True, inplace=True, overlap="none", out="exact")
@with_one_element
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """`input` reduced with what `src` has for each place: "sum", "prod", "mean", "amax", "amin".

    Elements of `src` go to the places `index` along `dim`, as those of `scatter` do. Without
    `include_self` what `input` has there does not count.

    >>> import tgraph as tg
    >>> x, at = tg.zeros(2), tg.tensor([0, 1, 0])
    >>> x.scatter_reduce(0, at, tg.tensor([1.0, -2, 3]), "amax")
    tensor([3., 0.])
    >>> x.scatter_reduce(0, at, tg.tensor([1.0, -2, 3]), "mean", include_self=False)
    tensor([ 2., -2.])
    """
    axis, index, source = scatter_operands(input, dim, index, src, "scatter_reduce")
    return _reduced(input, axis, cast(index, int64), source, reduce, include_self)


@public(method=True, inplace=True, overlap="none", out="exact")
@with_one_element
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """`input` reduced with slices of `source` for the places `index` of dimension `dim`.

    By "prod", "mean", "amax" or "amin"; "sum" is `index_add`. Without `include_self` what `input`
    has at these places does not count.

    >>> import tgraph as tg
    >>> x, at = tg.ones(2, 2), tg.tensor([0, 0])
    >>> x.index_reduce(0, at, tg.tensor([[2.0, 3], [4, 5]]), "prod")
    tensor([[ 8., 15.],
            [ 1.,  1.]])
    """
    if reduce == "sum":
        raise RuntimeError("index_reduce(): reduce 'sum' is not supported; use index_add")
    check_index(index, "index_reduce")
    axis = normalize_axis(dim, input.ndim)
    index, source = check_source(input, axis, index, source, "index_reduce")
    line = m.reshape(cast(index, int64), *(1,) * axis, -1, *(1,) * (input.ndim - axis - 1))
    return _reduced(input, axis, m.expand(line, source.shape), source, reduce, include_self)


def _reduced(
    input: Tensor, axis: int, index: Tensor, source: Tensor, reduce: str, include_self: bool
) -> Tensor:
    if reduce not in ("sum", "mean", *_COMBINE):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}."
        )
    if not index._type.numel:  # nothing is added, but `source` has a gradient
        is_differentiable = input._type.dtype.is_differentiable
        return (
            apply(p.scatter_add, input, index, source, axis=axis)
            if is_differentiable
            else m.clone(input)
        )
    if reduce in ("sum", "mean"):
        return _sum_or_mean(input, index, source, axis, reduce == "mean", bool(include_self))
    function = _prod if reduce == "prod" else _extreme
    return function(input, index, source, axis=axis, reduce=reduce, include_self=bool(include_self))


@planned
def _sum_or_mean(
    input: Tensor, index: Tensor, source: Tensor, axis: int, mean: bool, include_self: bool
) -> Tensor:
    count = _counts(input, index, axis)
    base = input if include_self else e.where(c.gt(count, 0), _zeros(input), input)
    total = apply(p.scatter_add, base, index, source, axis=axis)
    if not mean:
        return total
    count = e.add(count, 1) if include_self else e.maximum(count, 1)
    dtype = input._type.dtype
    if dtype.is_floating_point or dtype.is_complex:
        return e.div(total, cast(count, dtype))
    return cast(e.div(total, count, rounding_mode="floor"), dtype)


@planned
def _prod(
    input: Tensor, index: Tensor, source: Tensor, axis: int, reduce: str, include_self: bool
) -> Tensor:
    return _of_runs(input, index, source, axis, reduce, include_self)


@composite("scatter_reduce")
@planned
def _extreme(
    input: Tensor, index: Tensor, source: Tensor, axis: int, reduce: str, include_self: bool
) -> Tensor:
    return _of_runs(input, index, source, axis, reduce, include_self)


@vjp(_extreme, saves=(0, 1, 2), saves_outputs=(0,))
def _extreme_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """Shared evenly among all that are the extreme one, the first of `input` too, as PyTorch's."""
    (g,), (out,), (x, index, source), axis = cotangents, outputs, inputs, attrs["axis"]
    found = _shares(g, out, x, index, source, axis, attrs["include_self"])
    return [found[0] if wanted[0] else None, None, found[1] if wanted[2] else None]


@planned
def _shares(
    g: Tensor, out: Tensor, x: Tensor, index: Tensor, source: Tensor, axis: int, include_self: bool
) -> tuple[Tensor, Tensor]:
    own = cast(c.eq(x, out), g._type.dtype)
    theirs = cast(c.eq(source, apply(p.gather, out, index, axis=axis)), g._type.dtype)
    share = e.div(g, apply(p.scatter_add, own, index, theirs, axis=axis))
    of_input = e.mul(own, share)
    if not include_self:
        of_input = e.where(c.gt(_counts(x, index, axis), 0), 0.0, of_input)
    return of_input, e.mul(theirs, apply(p.gather, share, index, axis=axis))


def _of_runs(
    x: Tensor, index: Tensor, source: Tensor, axis: int, reduce: str, include_self: bool
) -> Tensor:
    dtype, combine = x._type.dtype, _COMBINE[reduce]
    if dtype is bool_:  # which cannot be added
        x, source = cast(x, uint8), cast(source, uint8)
    order = argsort(index, axis)
    places = apply(p.gather, index, order, axis=axis)
    seen = apply(p.gather, source, order, axis=axis)
    size, step = index._type.shape[axis], 1
    while step < size:
        behind = m.narrow(seen, axis, step, size - step)
        before = m.narrow(seen, axis, 0, size - step)
        joined = e.where(_is_same(places, axis, step), combine(before, behind), behind)
        seen = apply(p.concatenate, m.narrow(seen, axis, 0, step), joined, axis=axis)
        step *= 2
    # A run of places is known by its last element.
    goes_on = _is_same(places, axis, 1)
    ended = m.narrow(seen, axis, 0, size - 1)
    ended = e.where(goes_on, _zeros(ended), ended)
    ended = apply(p.concatenate, ended, m.narrow(seen, axis, size - 1, 1), axis=axis)
    found = apply(p.scatter_add, _zeros(x), places, ended, axis=axis)
    written = c.gt(_counts(x, index, axis), 0)
    return cast(e.where(written, combine(x, found) if include_self else found, x), dtype)


def _is_same(places: Tensor, axis: int, step: int) -> Tensor:
    """Whether each place is that of so many elements before it."""
    size = places._type.shape[axis] - step
    return c.eq(m.narrow(places, axis, 0, size), m.narrow(places, axis, step, size))


def _counts(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """How many elements go to each place of `x`."""
    one, zero = (
        make_source(p.full, x._type.device, shape=shape, value=value, dtype=int64)
        for shape, value in ((index._type.shape, 1), (x._type.shape, 0))
    )
    return apply(p.scatter_add, zero, index, one, axis=axis)


def _zeros(x: Tensor) -> Tensor:
    kind = x._type
    return make_source(p.full, kind.device, shape=kind.shape, value=0, dtype=kind.dtype)


@public(method=True, inplace=True, overlap="none", out="exact")
@with_one_element
def scatter(input: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Any:
    """`input` with `src` (a tensor or a number) written at `index` along `dim`."""
    axis, index, source = scatter_operands(input, dim, index, src, "scatter")
    if reduce == "add":
        return apply(p.scatter_add, input, index, source, axis=axis)
    if reduce == "multiply":
        return scatter_reduce(input, axis, index, source, "prod")
    if reduce is not None:
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce!r}")
    grid = []
    for at, size in enumerate(index._type.shape):
        if at == axis:
            grid.append(cast(index, int64))
            continue
        line = make_source(p.iota, index._type.device, size=size, dtype=int64)
        line = m.reshape(line, (1,) * at + (size,) + (1,) * (index.ndim - at - 1))
        grid.append(apply(p.broadcast, line, shape=index._type.shape))
    return apply(p.index_put, input, *grid, source, axis=0, accumulate=False)
