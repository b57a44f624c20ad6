"""What operations on plain tensors do with sparse ones, and reductions along their dimensions.

Each entry of `SPARSE_RULES` is a function of the operands of one primitive or composite, at least
one of them sparse, that are already of one dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.keywords import with_keywords
from ..core.layouts import Layout, sparse_coo
from ..core.operands import cast
from ..core.sparse_tensor import (
    SPARSE_RULES,
    NotOnSparseError,
    SparseTensor,
    make_sparse,
    with_elements,
)
from ..core.tensor import Tensor
from ..runtime.device import Device
from ..runtime.dtypes import DType, int64
from . import activations, creation, from_data, mathematics
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import cat
from .gather_scatter import index_add, index_select
from .scatter_reductions import index_reduce
from .sorting import searchsorted
from .sparse_creation import empty_sparse
from .sparse_parts import (
    as_summable,
    coalesce,
    coo_indices,
    flat_places,
    in_layout,
    require_sparse,
    sparse_dim,
    sparse_sizes,
    taken_at,
)

# --- one operand ---------------------------------------------------------------------------------

# Functions that are 0 at 0; a place with several values is one of their sum.
_UNARY = (
    p.abs_, p.asin, p.atan, p.ceil, p.erf, p.expm1, p.floor, p.isinf, p.isnan, p.log1p, p.round_,
    p.sign, p.sin, p.sinh, p.sqrt, p.tan, p.tanh, p.trunc, activations._relu, mathematics._asinh,
    mathematics._atanh, e.direction,
)  # fmt: skip
_LINEAR = (p.copy, p.neg)


def _called(operation: Any, x: Tensor, attrs: dict[str, Any]) -> Tensor:
    if operation in _COMPOSITES:
        return operation(x, **attrs)  # type: ignore[no-any-return]
    return apply(operation, x, **attrs)


_COMPOSITES = frozenset((activations._relu, mathematics._asinh, mathematics._atanh))


def _unary(operation: Any) -> Callable[..., Tensor]:
    def rule(x: SparseTensor, **attrs: Any) -> Tensor:
        summed = coalesce(x)
        return with_elements(summed, _called(operation, summed._elements, attrs))

    return rule


def _linear(operation: Any) -> Callable[..., Tensor]:
    def rule(x: SparseTensor, **attrs: Any) -> Tensor:
        return with_elements(x, apply(operation, x._elements, **attrs))

    return rule


SPARSE_RULES.update({each: _unary(each) for each in _UNARY})
SPARSE_RULES.update({each: _linear(each) for each in _LINEAR})


def _cast(x: SparseTensor, dtype: DType) -> SparseTensor:
    x = coalesce(x) if not dtype.is_differentiable else x
    return with_elements(x, cast(x._elements, dtype))


def _transfer(x: SparseTensor, device: Device, **attrs: Any) -> SparseTensor:
    positions = tuple(apply(p.transfer, each, device=device, **attrs) for each in x._positions)
    moved = apply(p.transfer, x._elements, device=device, **attrs)
    return make_sparse(x._layout, positions, moved, x._type.shape, x._coalesced)


SPARSE_RULES.update({p.cast: _cast, p.transfer: _transfer})


def _zeros_like(x: SparseTensor, dtype: Any = None, device: Any = None) -> SparseTensor:
    return empty_sparse(x._layout, x.shape, dtype or x.dtype, device or x.device)


SPARSE_RULES["zeros_like"] = _zeros_like


def _made(
    function: Callable[..., Tensor], layout: Layout, args: Any, kwargs: dict[str, Any]
) -> SparseTensor:
    """What a factory makes in another layout: zeros alone, which need not be there first."""
    name = function.__name__
    if name not in ("zeros", "empty", "zeros_like", "empty_like", "new_zeros", "new_empty"):
        raise NotImplementedError(
            f"{name}(layout={layout!r}): make it strided, and call to_sparse() on it"
        )
    device, asks = kwargs.pop("device", None), kwargs.pop("requires_grad", False)
    shown = with_keywords(function)(*args, **kwargs, device="meta")
    made = empty_sparse(layout, shown.shape, shown.dtype, device)
    return made.requires_grad_() if asks else made  # type: ignore[no-any-return]


SPARSE_RULES["made"] = _made


# --- two operands --------------------------------------------------------------------------------


def _pattern_is_shared(a: SparseTensor, b: SparseTensor) -> bool:
    return a._layout is b._layout and all(x is y for x, y in zip(a._positions, b._positions))


def _like(found: SparseTensor, x: SparseTensor) -> SparseTensor:
    """In the layout of `x`."""
    return in_layout(coalesce(found), x._layout) if x.is_compressed else found


def _check_shapes(operation: str, a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        raise RuntimeError(
            f"{operation}: expected sparse tensors of one shape, got {list(a.shape)} and "
            f"{list(b.shape)}"
        )


def _both(operation: Any) -> Callable[..., Tensor]:
    """Sums and differences."""

    def rule(a: Tensor, b: Tensor) -> Tensor:
        if not isinstance(b, SparseTensor):
            assert isinstance(a, SparseTensor)
            if a.is_compressed:
                return _added_to_dense(b if operation is p.add else e.neg(b), a)
            raise NotOnSparseError(
                f"{operation.name}(sparse, dense)", a._layout, "use add(dense, sparse) instead"
            )
        if not isinstance(a, SparseTensor):
            return _added_to_dense(a, b if operation is p.add else e.neg(b))
        _check_shapes(operation.name, a, b)
        if _pattern_is_shared(a, b):
            return with_elements(a, apply(operation, a._elements, b._elements))
        if sparse_dim(a) != sparse_dim(b):
            raise RuntimeError(
                f"{operation.name}: expected equal numbers of sparse dimensions, got "
                f"{sparse_dim(a)} and {sparse_dim(b)}"
            )
        other = b._elements if operation is p.add else e.neg(b._elements)
        at = cat([coo_indices(a), coo_indices(b)], 1)
        found = make_sparse(sparse_coo, (at,), cat([a._elements, other]), a._type.shape, False)
        return _like(coalesce(found) if a._coalesced and b._coalesced else found, a)

    return rule


def _added_to_dense(dense: Tensor, x: SparseTensor) -> Tensor:
    if dense.shape != x.shape:
        raise RuntimeError(
            f"add: expected a dense tensor of shape {list(x.shape)}, got {list(dense.shape)}"
        )
    sizes = sparse_sizes(x)
    rest = tuple(x._type.shape[len(sizes) :])
    rows = m.reshape(dense, math.prod(sizes), *rest)
    filled = index_add(rows, 0, flat_places(coo_indices(x), sizes), x._elements)
    return m.reshape(filled, x._type.shape)


def _mul(a: Tensor, b: Tensor) -> Tensor:
    if not isinstance(a, SparseTensor):
        a, b = b, a
    assert isinstance(a, SparseTensor)
    if not isinstance(b, SparseTensor):
        return with_elements(a, e.mul(a._elements, taken_at(b, a) if b.ndim else b))
    _check_shapes("mul", a, b)
    if a._coalesced and b._coalesced and _pattern_is_shared(a, b):
        return with_elements(a, e.mul(a._elements, b._elements))
    return _like(_intersection(coalesce(a), coalesce(b)), a)


def _intersection(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Products at the places that both have; which these are is read."""
    sizes, at = sparse_sizes(a), coo_indices(a)
    here, there = flat_places(at, sizes), flat_places(coo_indices(b), sizes)
    order = there.argsort()  # columns of CSR may be in any order
    there = index_select(there, 0, order)
    if not there.shape[0]:
        here, at, to = here[:0], at[:, :0], order
    else:
        to = e.clamp(searchsorted(there, here), max=there.shape[0] - 1)
    kept = m.reshape(e.eq(index_select(there, 0, to), here).nonzero(), -1)
    other = index_select(b._elements, 0, index_select(order, 0, index_select(to, 0, kept)))
    elements = e.mul(index_select(a._elements, 0, kept), other)
    return make_sparse(sparse_coo, (index_select(at, 1, kept),), elements, a._type.shape)


def _div(a: Tensor, b: Tensor) -> Tensor:
    if not isinstance(a, SparseTensor) or isinstance(b, SparseTensor) or b.ndim:
        layout = next(each._layout for each in (a, b) if isinstance(each, SparseTensor))
        raise NotOnSparseError("div by anything but a number", layout)
    return with_elements(a, e.div(a._elements, b))


def _floor_divide(a: Tensor, b: Tensor) -> Tensor:
    if not isinstance(a, SparseTensor) or isinstance(b, SparseTensor) or b.ndim:
        layout = next(each._layout for each in (a, b) if isinstance(each, SparseTensor))
        raise NotOnSparseError("division by anything but a number", layout)
    summed = coalesce(a)
    return with_elements(summed, e.floor_divide(summed._elements, b))


def _pow(a: Tensor, b: Tensor) -> Tensor:
    if not isinstance(a, SparseTensor) or isinstance(b, SparseTensor) or b.ndim or not b.item() > 0:
        layout = next(each._layout for each in (a, b) if isinstance(each, SparseTensor))
        raise NotOnSparseError("pow with anything but a positive number", layout)
    summed = coalesce(a)
    return with_elements(summed, e.pow(summed._elements, b))


SPARSE_RULES.update(
    {
        p.add: _both(p.add),
        p.sub: _both(p.sub),
        p.mul: _mul,
        p.div: _div,
        p.floor_divide: _floor_divide,
        p.pow_: _pow,
    }
)


# --- along dimensions ----------------------------------------------------------------------------


def sparse_sum(input: Tensor, dim: Any = None, dtype: DType | None = None) -> Tensor:
    """The sum of all elements, or along `dim`: sparse, unless no sparse dimension is left.

    >>> import tgraph as tg
    >>> x = tg.sparse_coo_tensor([[0, 1], [1, 1]], [2.0, 3.0], (2, 2))
    >>> tg.sparse.sum(x), tg.sparse.sum(x, 0).to_dense()
    (tensor(5.), tensor([0., 5.]))
    """
    x = require_sparse(input, "sparse.sum")
    if dtype is not None:
        x = _cast(x, dtype)
    axes = tuple(range(x.ndim)) if dim is None else r._axes(x, dim, "sparse.sum")
    return _sum(x, axes)


def _sum(x: SparseTensor, axes: Sequence[int], keepdims: bool = False) -> Tensor:
    if len(axes) == x.ndim and not keepdims:
        return r.sum(x._elements)
    if keepdims:
        kept_shape = tuple(1 if at in axes else size for at, size in enumerate(x._type.shape))
        return _like(in_layout(m.reshape(_sum(x, axes), kept_shape), sparse_coo), x)
    count = sparse_dim(x)
    inner = [1 + axis - count for axis in axes if axis >= count]
    elements = r.sum(as_summable(x._elements), inner) if inner else x._elements
    kept = [axis for axis in range(count) if axis not in axes]
    if not kept:
        return r.sum(elements, 0)
    shape = tuple(size for axis, size in enumerate(x._type.shape) if axis not in axes)
    if len(kept) == count:
        return make_sparse(x._layout, x._positions, elements, shape, x._coalesced)
    at = index_select(coo_indices(x), 0, from_data.tensor(kept, device=x.device))
    return coalesce(make_sparse(sparse_coo, (at,), elements, shape, False))


SPARSE_RULES[p.sum_] = _sum


def sparse_softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """The softmax along `dim` of the values that are there: others count as minus infinity.

    >>> import tgraph as tg
    >>> x = tg.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
    >>> tg.sparse.softmax(x, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000]])
    """
    return _softmax("sparse.softmax", activations.softmax, input, dim, dtype)


def sparse_log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """The logarithm of `sparse.softmax`, at the places of the values.

    >>> import tgraph as tg
    >>> tg.sparse.log_softmax(tg.eye(2).to_sparse(), 1).values()
    tensor([0., 0.])
    """
    return _softmax("sparse.log_softmax", activations.log_softmax, input, dim, dtype)


def _softmax(
    name: str, along: Callable[..., Tensor], input: Tensor, dim: int, dtype: DType | None
) -> SparseTensor:
    x = require_sparse(input, name, sparse_coo)
    x = coalesce(x if dtype is None else _cast(x, dtype))
    (axis,) = r._axes(x, dim, "sparse.sum")
    count = sparse_dim(x)
    if axis >= count:
        return with_elements(x, along(x._elements, 1 + axis - count))
    others = [each for each in range(count) if each != axis]
    sizes = [x._type.shape[each] for each in others]
    rows = index_select(coo_indices(x), 0, from_data.tensor(others, dtype=int64, device=x.device))
    group, values = flat_places(rows, sizes), x._elements
    shape = (math.prod(sizes), *values.shape[1:])
    lowest = creation.full(shape, -math.inf, dtype=values.dtype, device=x.device)
    largest = index_reduce(lowest, 0, group, values.detach(), "amax")
    shifted = e.sub(values, index_select(largest, 0, group))
    exponentials = e.exp(shifted)
    zeros = creation.zeros(shape, dtype=values.dtype, device=x.device)
    sums = index_select(index_add(zeros, 0, group, exponentials), 0, group)
    found = (
        e.div(exponentials, sums) if along is activations.softmax else e.sub(shifted, e.log(sums))
    )
    return with_elements(x, found)
