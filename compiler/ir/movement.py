"""Primitives that move elements by an affine index map.

- `reshape(shape)`, `permute(axes)`: result axis i is input axis axes[i];
- `broadcast(shape)`: NumPy's broadcast_to;
- `slice(starts, stops, steps)`: one entry per axis, steps positive, bounds inside the axis;
- `diagonal(offset)`: of the last two axes, in the place of both; `offset` columns to the right;
- `flip(axes)`;
- `pad(low, high, interior, value)`: per axis, `value` (a Python scalar) before, after, and
  `interior` times between neighbours; never negative;
- `concatenate(axis)`: any number of inputs;
- `slice_update(base, update; starts, stops, steps)`: `base` with the slice replaced;
- `barrier(x, after)`: `x` itself, which is read from memory, once `after` has been computed. It is
  another value to whatever looks for equal ones, so that what is made of it is computed again;
- `unfold(axes, sizes, strides, dilations)`: windows along `axes`; each axis becomes the number
  of its windows, and one axis per window is appended, in the order of `axes`;
- `fold(axes, strides, dilations, shape)`: the transpose of unfold: adds overlapping windows up
  into a result of `shape` (family WINDOW, since elements meet).
"""

from __future__ import annotations

from collections.abc import Sequence

from .primitive import Attrs, Family, Primitive, register
from .shapes import Shape, broadcastable_to, diagonal_place, numel, slice_size, window_count
from .types import IRTypeError, TensorType


def _infer_reshape(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    if numel(attrs["shape"]) != operand.numel:
        raise IRTypeError(f"cannot reshape {operand} into {attrs['shape']}")
    return operand.with_shape(attrs["shape"])


def _infer_permute(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    axes = attrs["axes"]
    if sorted(axes) != list(range(operand.ndim)):
        raise IRTypeError(f"{axes} is no permutation of the axes of {operand}")
    return operand.with_shape(tuple(operand.shape[axis] for axis in axes))


def _infer_broadcast(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    if not broadcastable_to(operand.shape, attrs["shape"]):
        raise IRTypeError(f"cannot broadcast {operand} to {attrs['shape']}")
    return operand.with_shape(attrs["shape"])


def sliced_shape(shape: Shape, attrs: Attrs) -> Shape:
    """The shape of the slice of an operand of `shape`; IRTypeError if it does not fit."""
    starts, stops, steps = attrs["starts"], attrs["stops"], attrs["steps"]
    if not len(starts) == len(stops) == len(steps) == len(shape):
        raise IRTypeError(f"slice needs one start, stop and step per axis of {shape}")
    for size, start, stop, step in zip(shape, starts, stops, steps, strict=True):
        if not (0 <= start <= size and 0 <= stop <= size and step > 0):
            raise IRTypeError(f"slice {start}:{stop}:{step} does not fit an axis of size {size}")
    return tuple(map(slice_size, starts, stops, steps))


def _infer_slice(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    return types[0].with_shape(sliced_shape(types[0].shape, attrs))


def _infer_slice_update(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    base, update = types
    if update != base.with_shape(sliced_shape(base.shape, attrs)):
        raise IRTypeError(f"update {update} does not fit the slice of {base}")
    return base


def _infer_diagonal(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    if operand.ndim < 2:
        raise IRTypeError(f"{operand} has no diagonal")
    *_, count = diagonal_place(operand.shape, attrs["offset"])
    return operand.with_shape((*operand.shape[:-2], count))


def _infer_flip(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    if any(not 0 <= axis < types[0].ndim for axis in attrs["axes"]):
        raise IRTypeError(f"axes {attrs['axes']} do not fit {types[0]}")
    return types[0]


def _infer_pad(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    low, high, interior = attrs["low"], attrs["high"], attrs["interior"]
    if not len(low) == len(high) == len(interior) == operand.ndim:
        raise IRTypeError(f"pad needs one amount per axis of {operand}")
    if any(each < 0 for each in (*low, *high, *interior)):
        raise IRTypeError(f"pad amounts must not be negative, got {low}, {high}, {interior}")
    return operand.with_shape(
        tuple(
            before + after + size + (between and between * max(size - 1, 0))
            for size, before, after, between in zip(operand.shape, low, high, interior, strict=True)
        )
    )


def _infer_concatenate(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    axis, first = attrs["axis"], types[0]
    if not 0 <= axis < first.ndim:
        raise IRTypeError(f"axis {axis} does not fit {first}")
    for other in types[1:]:
        same = other.shape[:axis] == first.shape[:axis]
        same = same and other.shape[axis + 1 :] == first.shape[axis + 1 :]
        if not same or other.ndim != first.ndim or other.dtype is not first.dtype:
            raise IRTypeError(f"cannot concatenate {first} and {other} along axis {axis}")
    total = sum(each.shape[axis] for each in types)
    return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _infer_unfold(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    shape = list(operand.shape)
    for axis, size, stride, dilation in zip(
        attrs["axes"], attrs["sizes"], attrs["strides"], attrs["dilations"], strict=True
    ):
        if not 0 <= axis < operand.ndim or min(size, stride, dilation) < 1:
            raise IRTypeError(f"windows {dict(attrs)} do not fit {operand}")
        shape[axis] = window_count(operand.shape[axis], size, stride, dilation)
    return operand.with_shape((*shape, *attrs["sizes"]))


def _infer_fold(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    shape, axes = attrs["shape"], attrs["axes"]
    expected = list(shape)
    sizes = operand.shape[len(shape) :]
    for axis, size, stride, dilation in zip(
        axes, sizes, attrs["strides"], attrs["dilations"], strict=True
    ):
        expected[axis] = window_count(shape[axis], size, stride, dilation)
    if operand.shape != (*expected, *sizes):
        raise IRTypeError(f"{operand} are not the windows of a tensor of shape {shape}")
    return operand.with_shape(shape)


def _infer_barrier(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    return types[0]


def _view(name: str, infer: object, arity: int | None = 1) -> Primitive:
    facts = Primitive(name, Family.VIEW, infer, arity=arity, exact=True)  # type: ignore[arg-type]
    return register(facts)


reshape = _view("reshape", _infer_reshape)
permute = _view("permute", _infer_permute)
broadcast = _view("broadcast", _infer_broadcast)
slice_ = _view("slice", _infer_slice)
diagonal = _view("diagonal", _infer_diagonal)
flip = _view("flip", _infer_flip)
pad = _view("pad", _infer_pad)
concatenate = _view("concatenate", _infer_concatenate, arity=None)
assemble = register(Primitive("assemble", Family.ASSEMBLY, _infer_concatenate, exact=True))
barrier = _view("barrier", _infer_barrier, arity=2)
slice_update = _view("slice_update", _infer_slice_update, arity=2)
unfold = _view("unfold", _infer_unfold)
fold = register(Primitive("fold", Family.WINDOW, _infer_fold, arity=1))
