"""The standard's functions of shapes and places: manipulation and indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.operands import cast, require_tensor
from ..core.tensor import Tensor
from ..ops import concatenation, gather_scatter, movement
from ..ops.indexing import getitem
from ..runtime.dtypes import int64
from .arguments import axes_of, axis_of, only_axis, together

Axes = int | tuple[int, ...]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors as views of one shape."""
    return list(movement.broadcast_tensors(*arrays)) if arrays else []


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of `x` with a shape to which it broadcasts."""
    return movement.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors behind each other along an axis, or (None) all their elements, as one dtype.

    >>> from tgraph import array_api as xp
    >>> xp.concat([xp.ones(2, dtype=xp.int8), xp.zeros((1, 1), dtype=xp.int16)], axis=None)
    tensor([1, 1, 0], dtype=tgraph.int16)
    """
    tensors = together("concat", *arrays)
    if axis is None:
        return concatenation.cat([movement.reshape(each, -1) for each in tensors])
    if any(not each._type.shape for each in tensors):
        raise ValueError("concat(): a tensor without dimensions has no axis; use axis=None")
    return concatenation.cat(tensors, axis_of(tensors[0], axis) if tensors else axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A view with a new axis of size 1. IndexError for a place that is not there.

    >>> from tgraph import array_api as xp
    >>> xp.expand_dims(xp.ones(3), 1).shape
    tgraph.Size([3, 1])
    """
    return movement.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Elements in the other order along axes, by default along all."""
    return concatenation.flip(x, axes_of(x, axis))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A view whose axes `source` stand at `destination`."""
    return movement.movedim(x, axes_of(x, source), axes_of(x, destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view whose axes have another order."""
    return movement.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, or each place of an axis, several times.

    >>> from tgraph import array_api as xp
    >>> xp.repeat(xp.arange(3), xp.asarray([2, 0, 1]))
    tensor([0, 0, 2])
    """
    if isinstance(repeats, Tensor):
        repeats = cast(repeats, int64)
        repeats = int(repeats) if repeats.numel() == 1 else repeats
    return gather_scatter.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements, row by row, in another shape; `copy` makes a copy always or never.

    ValueError for a needed copy that `copy=False` forbids.
    """
    if copy:
        return movement.reshape(movement.clone(x), shape)
    if copy is None:
        return movement.reshape(x, shape)
    try:
        return movement.view(x, *shape) if shape else movement.view(x, ())
    except RuntimeError as error:
        raise ValueError(f"reshape(): {error}") from None


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """Elements moved along axes, in a circle; by default all of them, row by row."""
    if axis is not None and not isinstance(axis, int) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return concatenation.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without axes, which have to be of size 1 (ValueError)."""
    axes = axes_of(x, axis)
    if any(x._type.shape[each] != 1 for each in axes):
        raise ValueError(
            f"squeeze(): axes {axes} of a shape {tuple(x.shape)} are not all of size 1"
        )
    return movement.squeeze(x, axes)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis, as one dtype."""
    return concatenation.stack(together("stack", *arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole tensor, several times along each axis."""
    return concatenation.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The places of an axis, as views."""
    return movement.unbind(x, axis)


def _from_the_front(indices: Tensor, size: int) -> Tensor:
    """Indices as int64; negative ones count from the end."""
    at = cast(require_tensor(indices, "take", "indices"), int64)
    return (at < 0) * size + at


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The places of an axis that `indices` tell; negative ones count from the end.

    >>> from tgraph import array_api as xp
    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([0, -1], dtype=xp.int8))
    tensor([5, 7])
    """
    along = only_axis(x, axis, "take")
    at = _from_the_front(indices, x._type.shape[along])
    key: Any = (*(slice(None),) * along, at)
    return getitem(x, key)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements of rows along an axis, each at its own index; other axes broadcast.

    >>> from tgraph import array_api as xp
    >>> x = xp.asarray([[3, 1], [2, 4]])
    >>> xp.take_along_axis(x, xp.argsort(x))
    tensor([[1, 3],
            [2, 4]])
    """
    along = axis_of(x, axis)
    at = _from_the_front(indices, x._type.shape[along])
    return gather_scatter.take_along_dim(x, at, along)


__all__ = [
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims",
    "repeat", "reshape", "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack",
]  # fmt: skip
