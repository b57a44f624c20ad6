"""Tensors put together from others or from their own parts: cat, stack, flip, roll, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axes, normalize_axis
from ..core.argument_types import is_listed
from ..core.dispatch import apply
from ..core.operands import cast, require_tensor, result_type
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from .channels_last import format_of, keeps_channels_last, laid
from .movement import Sizes, as_sizes, clone, reshape, slice_axis, unsqueeze


@public(
    out=True,
    overlap="none",
    aliases=(
        "concat",
        "concatenate",
    ),
)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one behind the other along `dim`; their dtypes promote.

    >>> import tgraph as tg
    >>> tg.cat([tg.zeros(2), tg.ones(1)])
    tensor([0., 0., 1.])
    """
    return _cat(dim, *tensors)


@planned
def _cat(dim: int, *tensors: Tensor) -> Tensor:
    parts = _tensors(tensors, "cat")
    if not parts:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    dtype = result_type(*parts)
    first = parts[0]._type.shape
    if any(each.ndim > 1 for each in parts):  # as in PyTorch, an empty vector fits everything
        first = next(each._type.shape for each in parts if not _is_empty_vector(each))
    if not first:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    axis = normalize_axis(dim, len(first))
    if len(first) > 1:
        none = (*first[:axis], 0, *first[axis + 1 :])
        parts = [reshape(each, none) if _is_empty_vector(each) else each for each in parts]
    for at, each in enumerate(parts):
        _check_fits(first, each._type.shape, axis, at)
    found = apply(p.concatenate, *(cast(each, dtype) for each in parts), axis=axis)
    form = format_of(parts[0])
    if form is None or any(format_of(each) is not form for each in parts):
        return found
    return laid(found, form)


def _is_empty_vector(tensor: Tensor) -> bool:
    """Whether the shape is `(0,)`, without a question about the sizes of others."""
    return tensor.ndim == 1 and tensor._type.shape[0] == 0


def all_given(tensors: Sequence[Any], operation: str) -> Sequence[Tensor]:
    """The arguments of a function that takes tensors one by one, or a list of them."""
    given = tensors[0] if len(tensors) == 1 and is_listed(tensors[0]) else tensors
    return [require_tensor(each, operation, "tensors") for each in given]


def some(tensors: Sequence[Tensor], operation: str) -> Sequence[Tensor]:
    """`tensors`, of which there has to be one."""
    if not len(tensors):
        raise RuntimeError(f"{operation} expects a non-empty TensorList")
    return tensors


def _tensors(tensors: Sequence[Tensor], operation: str) -> list[Tensor]:
    parts = [require_tensor(each, operation, f"tensors[{at}]") for at, each in enumerate(tensors)]
    return parts


def _check_fits(first: tuple[int, ...], shape: tuple[int, ...], axis: int, at: int) -> None:
    if len(shape) != len(first):
        raise RuntimeError(
            f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
        )
    for place, (size, wanted) in enumerate(zip(shape, first)):
        if place != axis and size != wanted:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {axis}. Expected size {wanted} "
                f"but got size {size} for tensor number {at} in the list."
            )


@public(out=True, overlap="none")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new dimension `dim`."""
    return _stack(dim, *tensors)


@planned
def _stack(dim: int, *tensors: Tensor) -> Tensor:
    parts = _tensors(some(tensors, "stack"), "stack")
    shape = parts[0]._type.shape
    for at, each in enumerate(parts):
        if each._type.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(each._type.shape)} at entry {at}"
            )
    axis = normalize_axis(dim, len(shape) + 1)
    dtype = result_type(*parts)
    rows = (unsqueeze(cast(each, dtype), axis) for each in parts)
    found = apply(p.concatenate, *rows, axis=axis)
    form = format_of(parts[0])
    if form is None or axis == len(shape) or any(format_of(each) is not form for each in parts):
        return found
    joined = (*shape[:axis], len(parts) * shape[axis], *shape[axis + 1 :])
    strides = list(form.strides(joined))  # as if they were one behind the other
    strides.insert(axis, strides[axis] * shape[axis])
    return apply(p.copy, found, strides=tuple(strides))


@public(out=True, overlap="none")
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one behind the other along the second dimension (the first, for vectors)."""
    parts = [atleast_1d(each) for each in some(tensors, "hstack")]
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


@public(aliases=("row_stack",), out=True, overlap="none")
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors below one another, vectors as rows."""
    rows = some(tensors, "vstack")
    return cat([reshape(each, 1, -1) if each.ndim < 2 else each for each in rows], 0)


def atleast_1d(input: Tensor) -> Tensor:
    """`input` with at least one dimension."""
    return input if input._type.shape else reshape(input, 1)


@public(method=True)
def flip(input: Tensor, *dims: Any) -> Tensor:
    """A copy with the order along `dims` reversed."""
    ndim = len(input._type.shape)
    axes = normalize_axes(as_sizes(dims), ndim)
    return apply(p.flip, input, axes=axes)


@public(method=True)
@keeps_channels_last
def roll(input: Tensor, shifts: Sizes, dims: Sizes | None = None) -> Tensor:
    """Elements moved by `shifts` along `dims`, those pushed out coming in at the other end."""
    if dims is None:
        return reshape(roll(reshape(input, -1), shifts, 0), input._type.shape)
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    if not moves:
        raise RuntimeError("roll(): `shifts` required")
    axes = [dims] if isinstance(dims, int) else list(dims)
    if len(moves) != len(axes):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(axes)}"
        )
    result = input
    for move, dim in zip(moves, axes):
        axis = normalize_axis(dim, len(input._type.shape))
        size = input._type.shape[axis]
        cut = -move % size if size else 0
        if cut:
            front = slice_axis(result, axis, 0, cut)
            result = apply(p.concatenate, slice_axis(result, axis, cut, size), front, axis=axis)
    return result if result is not input else clone(input)


@public(function=False, method=True)
def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """The whole tensor repeated along every dimension (new ones in front)."""
    counts, shape = as_sizes(repeats), input._type.shape
    lead = len(counts) - len(shape)
    if lead < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    if any(type(count) is int and count < 0 for count in counts):
        raise RuntimeError(f"repeat(): expected counts of at least 0, got {list(counts)}")
    sizes = (1,) * lead + shape
    spread = apply(p.reshape, input, shape=tuple(part for size in sizes for part in (1, size)))
    wide = tuple(part for pair in zip(counts, sizes) for part in pair)
    result = tuple(count * size for count, size in zip(counts, sizes))
    repeated = apply(p.reshape, apply(p.broadcast, spread, shape=wide), shape=result)
    return repeated if repeated._view is None else clone(repeated)


@public(method=True)
def tile(input: Tensor, *dims: Any) -> Tensor:
    """As `repeat`, with missing counts taken as 1."""
    counts = as_sizes(dims)
    missing = len(input._type.shape) - len(counts)
    return repeat(input, (1,) * max(missing, 0) + counts)
