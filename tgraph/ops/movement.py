"""Functions that rearrange: other shapes, orders and parts of the same elements.

Views share the memory of their input, as in PyTorch: writing to one in place shows in the other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import (
    SIZE_TYPES,
    agree,
    are_plain,
    are_same,
    broadcast,
    contiguous_strides,
    infer_reshape,
    is_one,
    normalize_axes,
    normalize_axis,
)
from ..core.classes import like
from ..core.complex_parts import conjugate
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.memory_format import MemoryFormat, contiguous_format, preserve_format
from ..core.operands import require_tensor
from ..core.overlap import Span, span_of
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Size, Tensor, strides_of
from ..core.views import base_to_view, would_alias
from ..runtime.dtypes import int64
from .bits import bits_as

Sizes = int | Sequence[int]


def as_sizes(given: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given as separate arguments or as one sequence."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    if are_plain(given):
        return tuple(given)
    return tuple(size if type(size) in SIZE_TYPES else as_size(size) for size in given)


def as_size(size: Any) -> int:
    """A size that is no plain int, as one."""
    try:
        if not isinstance(size, bool):
            return operator.index(size)
    except TypeError:
        pass
    raise TypeError(f"sizes must be ints, not {type(size).__name__}")


# --- shapes ------------------------------------------------------------------------------------


@public(method=True)
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in row-major order under another shape, of which one size may be -1.

    A view where the memory allows it, else a copy.

    >>> import tgraph as tg
    >>> tg.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    wanted = infer_reshape(input._type.shape, as_sizes(shape))
    return apply(p.reshape, input, shape=wanted)


def view(input: Tensor, *shape: Any) -> Tensor:
    """`reshape` that never copies: RuntimeError where the memory does not allow a view."""
    wanted = infer_reshape(input._type.shape, as_sizes(shape))
    if not would_alias(input, wanted):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead. The "
            f"input has shape {list(input._type.shape)} and strides {list(strides_of(input))}, "
            f"the view {list(wanted)}."
        )
    return apply(p.reshape, input, shape=wanted)


@public(function=False, method=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`input` in the shape of `other`."""
    return reshape(input, require_tensor(other, "reshape_as", "other")._type.shape)


@public(function=False, method=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`input` viewed in the shape of `other`."""
    return view(input, require_tensor(other, "view_as", "other")._type.shape)


@public(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions from `start_dim` to `end_dim` merged into one."""
    shape = input._type.shape
    start, end = normalize_axis(start_dim, len(shape)), normalize_axis(end_dim, len(shape))
    if not shape:
        return reshape(input, 1)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return input
    merged = math.prod(shape[start : end + 1])
    return apply(p.reshape, input, shape=(*shape[:start], merged, *shape[end + 1 :]))


@public(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
    return reshape(input, -1)


@public(method=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Dimension `dim` split into `sizes`, of which one may be -1."""
    shape = input._type.shape
    at = normalize_axis(dim, len(shape))
    if not shape:
        raise RuntimeError("unflatten() expects a tensor with dimensions, got one without")
    split_into = infer_reshape((shape[at],), tuple(sizes))
    return apply(p.reshape, input, shape=(*shape[:at], *split_into, *shape[at + 1 :]))


@public(method=True)
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Dimensions of size 1 removed: all of them, or those in `dim`."""
    shape = input._type.shape
    axes = normalize_axes(dim, len(shape))
    kept = tuple(size for at, size in enumerate(shape) if at not in axes or size != 1)
    return apply(p.reshape, input, shape=kept)


@public(method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A dimension of size 1 put in at `dim`."""
    shape = input._type.shape
    at = normalize_axis(dim, len(shape) + 1)
    return apply(p.reshape, input, shape=(*shape[:at], 1, *shape[at:]))


# --- order of dimensions -----------------------------------------------------------------------


@public(method=True)
def permute(input: Tensor, *dims: Any) -> Tensor:
    """Dimensions in another order.

    >>> import tgraph as tg
    >>> tg.zeros(2, 3, 4).permute(2, 0, 1).shape
    tgraph.Size([4, 2, 3])
    """
    order = as_sizes(dims)
    ndim = len(input._type.shape)
    if len(order) != ndim:
        raise RuntimeError(
            "permute(): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal "
            f"to len(dims) = {len(order)}"
        )
    axes = tuple(normalize_axis(axis, ndim) for axis in order)
    if len(set(axes)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return apply(p.permute, input, axes=axes)


@public(
    method=True,
    aliases=(
        "swapaxes",
        "swapdims",
    ),
)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    ndim = len(input._type.shape)
    a, b = normalize_axis(dim0, ndim), normalize_axis(dim1, ndim)
    axes = list(range(ndim))
    if ndim:
        axes[a], axes[b] = b, a
    return apply(p.permute, input, axes=tuple(axes))


@public(method=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and scalars as they are."""
    ndim = len(input._type.shape)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return transpose(input, 0, 1) if ndim == 2 else apply(p.reshape, input, shape=input._type.shape)


def reversed_dims(input: Tensor) -> Tensor:
    """All dimensions in reverse order: the `T` of a matrix."""
    return apply(p.permute, input, axes=tuple(reversed(range(len(input._type.shape)))))


def matrix_transpose(input: Tensor) -> Tensor:
    """The last two dimensions exchanged: `mT`; a number as it is."""
    if len(input._type.shape) == 1:
        raise RuntimeError(
            "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return transpose(input, -2, -1) if input._type.shape else t(input)


def conjugate_transpose(input: Tensor) -> Tensor:
    """A matrix transposed and conjugated: `H`."""
    if len(input._type.shape) not in (0, 2):
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{len(input._type.shape)}-D tensor."
        )
    return conjugate(t(input))


def conjugate_matrix_transpose(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, and conjugates: `mH`."""
    return conjugate(matrix_transpose(input))


@public(method=True)
def adjoint(input: Tensor) -> Tensor:
    """The conjugates of transposed matrices, in the last two dimensions: `mH`.

    >>> import tgraph as tg
    >>> tg.adjoint(tg.tensor([[1j, 2 + 0j]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    return conjugate_matrix_transpose(input)


@public(method=True, aliases=("moveaxis",))
def movedim(input: Tensor, source: Sizes, destination: Sizes) -> Tensor:
    """Dimensions `source` moved to the places `destination`; the others keep their order."""
    ndim = len(input._type.shape)
    origin = [source] if isinstance(source, int) else list(source)
    target = [destination] if isinstance(destination, int) else list(destination)
    if len(origin) != len(target):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({origin} dims) should contain "
            f"the same number of dims as destination ({target} dims)"
        )
    origin = [normalize_axis(axis, ndim) for axis in origin]
    target = [normalize_axis(axis, ndim) for axis in target]
    for name, axes in (("source", origin), ("destination", target)):
        if len(set(axes)) != len(axes):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({axes})")
    if not ndim:
        return view_as(input, input)
    order = [axis for axis in range(ndim) if axis not in origin]
    for at, axis in sorted(zip(target, origin)):
        order.insert(at, axis)
    return apply(p.permute, input, axes=tuple(order))


# --- broadcasting ------------------------------------------------------------------------------


@public(function=False, method=True)
def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Dimensions of size 1 repeated to larger sizes, without a copy; -1 keeps a size.

    The result shows elements several times, so it cannot be written in place.
    """
    wanted, shape = list(as_sizes(sizes)), input._type.shape
    lead = len(wanted) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(tensor of shape {list(shape)}, size={wanted}): the number of sizes provided "
            f"({len(wanted)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape)})"
        )
    for at, target in enumerate(wanted):
        size = shape[at - lead] if at >= lead else None
        if target == -1:
            if size is None:
                raise RuntimeError(
                    f"expand(tensor of shape {list(shape)}, size={wanted}): the expanded size of "
                    f"the tensor (-1) isn't allowed in a leading, non-existing dimension {at}"
                )
            wanted[at] = size
        elif type(target) is int and target < 0:
            raise RuntimeError(
                f"expand(tensor of shape {list(shape)}, size={wanted}): a size must be at least 0, "
                "or -1, which keeps it"
            )
        elif not (size is None or is_one(size) or agree(size, target)):
            raise RuntimeError(
                f"The expanded size of the tensor ({target}) must match the existing size ({size}) "
                f"at non-singleton dimension {at}.  Target sizes: {wanted}.  Tensor sizes: "
                f"{list(shape)}"
            )
    return apply(p.broadcast, input, shape=tuple(wanted))


@public(function=False, method=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`input` expanded to the shape of `other`."""
    return expand(input, require_tensor(other, "expand_as", "other")._type.shape)


@public(method=True)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """`input` expanded to `size`."""
    return expand(input, size)


@public()
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The common shape of broadcast operands; an integer stands for one dimension."""
    each_shape = [_shape_of(shape) for shape in shapes]
    try:
        return Size(broadcast(*each_shape))
    except ValueError as error:
        raise RuntimeError(
            f"Shape mismatch: objects cannot be broadcast to a single shape: {error}"
        ) from None


def _shape_of(given: Any) -> tuple[int, ...]:
    """A shape or a single size; RuntimeError for what is neither, ValueError for sizes below 0."""
    if not isinstance(given, (int, Sequence, Size)) and not hasattr(given, "__index__"):
        raise RuntimeError(
            "broadcast_shapes(): Input shapes should be of type ints, a tuple of ints, or a list "
            f"of ints, got {given}"
        )
    shape = as_sizes((given,))
    if any(type(size) is int and size < 0 for size in shape):
        raise ValueError(f"broadcast_shapes(): sizes must be at least 0, got {list(shape)}")
    return shape


@public()
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    for each in tensors:
        require_tensor(each, "broadcast_tensors", "tensors")
    shape = broadcast_shapes(*(each._type.shape for each in tensors))
    return tuple(expand(each, shape) for each in tensors)


# --- parts -------------------------------------------------------------------------------------


def slice_axis(input: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """The view start:stop:step of one axis; all of them counted from the front."""
    shape = input._type.shape
    ndim = len(shape)
    starts, stops, steps = [0] * ndim, list(shape), [1] * ndim
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return apply(p.slice_, input, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps))


@public(method=True)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """The view of `length` places of `dim`, from `start`."""
    shape = input._type.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis, start = normalize_axis(dim, len(shape)), _start(start)
    size = shape[axis]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-size}, {size}], but got "
            f"{start})"
        )
    start += size if start < 0 else 0
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_axis(input, axis, start, start + length)


def _start(given: Any) -> int:
    """A number, or a tensor of one without dimensions."""
    if isinstance(given, Tensor):
        if given.ndim or not given._type.dtype.is_integral:
            raise RuntimeError("narrow(): start must be an 0-dim integral Tensor.")
        return int(given.item())
    return as_size(given)


@public(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The view of one place of `dim`, which is removed."""
    shape = input._type.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis, at = normalize_axis(dim, len(shape)), operator.index(index)
    if not -shape[axis] <= at < shape[axis]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at dimension "
            f"{axis}"
        )
    at %= shape[axis]
    part = slice_axis(input, axis, at, at + 1)
    return apply(p.reshape, part, shape=(*shape[:axis], *shape[axis + 1 :]))


@public(method=True)
def split(input: Tensor, split_size_or_sections: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts along `dim`: of one size (the last may be smaller), or of sizes
    that add up to the whole."""
    if not input._type.shape:
        raise RuntimeError("split() expects a tensor with at least one dimension, got one without")
    axis = normalize_axis(dim, len(input._type.shape))
    size = input._type.shape[axis]
    if isinstance(split_size_or_sections, int):
        by = split_size_or_sections
        if by < 0 or (by == 0 and size):
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={by}"
                if by < 0
                else "split_size can only be 0 if dimension size is 0, but got dimension size of "
                f"{size}"
            )
        sections = [min(by, size - at) for at in range(0, size, by)] if size else [0]
    else:
        sections = list(split_size_or_sections)
        if sum(sections) != size or min(sections, default=0) < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's "
                f"size at dimension {axis}), but got split_sizes={sections}"
            )
    parts, at = [], 0
    for section in sections:
        parts.append(slice_axis(input, axis, at, at + section))
        at += section
    return tuple(parts)


@public(method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size along `dim`; the last may be smaller."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not input._type.shape:
        raise RuntimeError("chunk() expects a tensor with at least one dimension, got one without")
    size = input._type.shape[normalize_axis(dim, len(input._type.shape))]
    if size == 0:
        return split(input, [0] * chunks, dim)
    return split(input, -(-size // chunks), dim)


@public(method=True)
def tensor_split(
    input: Tensor, indices_or_sections: Sizes | Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """Views along `dim`: that many nearly equal ones, or cut at the given indices.

    A tensor of int64 on the CPU stands for a number, or for indices.
    """
    if not input._type.shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = _places_to_split(indices_or_sections)
    size = input._type.shape[normalize_axis(dim, len(input._type.shape))]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise RuntimeError(
                f"number of sections must be larger than 0, got {indices_or_sections}"
            )
        least, larger = divmod(size, indices_or_sections)
        sizes = [least + (at < larger) for at in range(indices_or_sections)]
        return split(input, sizes, dim)
    axis = normalize_axis(dim, len(input._type.shape))
    cuts = [slice(at).indices(size)[1] for at in indices_or_sections]
    ends = zip([0, *cuts], [*cuts, size])
    return tuple(slice_axis(input, axis, start, max(start, stop)) for start, stop in ends)


def _places_to_split(given: Tensor) -> int | list[int]:
    if given._type.dtype is not int64 or given.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
            "one-dimensional tensor of int64, but got one with "
            f"{given.ndim} dims and dtype {given._type.dtype}"
        )
    found: int | list[int] = given.tolist()
    return found


@public(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """One view for each place of `dim`, which is removed."""
    axis = normalize_axis(dim, len(input._type.shape))
    if not input._type.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return tuple(select(input, axis, at) for at in range(input._type.shape[axis]))


@public(function=False, method=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """The view of all windows of `size` along a dimension, `step` apart; they come last."""
    axis = normalize_axis(dimension, len(input._type.shape))
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not input._type.shape and 0 <= size <= 1:  # one element, which is a window of one
        return slice_axis(reshape(input, (1,)), 0, 0, size)
    largest = (input._type.shape or (1,))[axis]
    if size > largest:
        raise RuntimeError(
            f"maximum size for tensor at dimension {axis} is {largest} but size is {size}"
        )
    return apply(p.unfold, input, axes=(axis,), sizes=(size,), strides=(step,), dilations=(1,))


@public(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of dimensions `dim1` and `dim2`, as the last dimension of the result."""
    ndim = len(input._type.shape)
    a, b = normalize_axis(dim1, ndim), normalize_axis(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    moved = input if (a, b) == (ndim - 2, ndim - 1) else movedim(input, (a, b), (-2, -1))
    return apply(p.diagonal, moved, offset=offset)


def seen_from_base(view: Tensor, span: Span) -> Tensor | None:
    """The elements at `span` of the memory of `view`, as a view; None where that has gaps."""
    base = base_to_view(view)
    flat = None if base is None else in_order_of_memory(base)
    if base is None or flat is None:
        return None
    if view._type.dtype is not base._type.dtype:
        if base._type.nbytes % view._type.dtype.itemsize:
            return None
        flat = bits_as(flat, view._type.dtype)
    return like(view, strided(slice_axis(flat, 0, span.start, flat._type.shape[0]), span))


def in_order_of_memory(input: Tensor) -> Tensor | None:
    """The elements of `input` as a vector that shows them as they lie; None for one with gaps."""
    span = span_of(input)
    if not span.is_dense:
        return None
    order = sorted(range(input.ndim), key=lambda axis: -span.strides[axis])
    return reshape(apply(p.permute, input, axes=tuple(order)), -1)


def strided(line: Tensor, span: Span) -> Tensor:
    """Elements of a vector at `span.strides`: windows of windows, from the largest stride on."""
    if are_same(span.strides, contiguous_strides(span.shape)):
        return apply(p.reshape, slice_axis(line, 0, 0, math.prod(span.shape)), shape=span.shape)
    axes = [axis for axis, size in enumerate(span.shape) if size > 1 and span.strides[axis]]
    axes.sort(key=lambda axis: -span.strides[axis])
    extent = 1 + sum((span.shape[axis] - 1) * span.strides[axis] for axis in axes)
    for done, axis in enumerate(axes):
        count, by = span.shape[axis], span.strides[axis]
        extent -= (count - 1) * by
        line = slice_axis(line, done, 0, (count - 1) * by + extent)
        line = unfold(line, done, extent, by)
    line = slice_axis(line, len(axes), 0, 1)
    kept = apply(p.reshape, line, shape=line._type.shape[:-1])
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    shape = tuple(size if axis in axes else 1 for axis, size in enumerate(span.shape))
    laid = apply(p.reshape, apply(p.permute, kept, axes=back), shape=shape)
    return laid if shape == span.shape else apply(p.broadcast, laid, shape=span.shape)


# --- memory ------------------------------------------------------------------------------------


@public(method=True)
def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """A copy with memory of its own, in the order of the input's; gradients pass through."""
    if memory_format is None or memory_format is preserve_format:
        return apply(p.copy, input)
    if memory_format is contiguous_format:
        return row_major_copy(input)
    return _copy_in_order(input, memory_format)


def _copy_in_order(x: Tensor, order: MemoryFormat) -> Tensor:
    """A copy whose elements lie in memory as `order` says."""
    axes = order.axes(x._type.shape)
    made = row_major_copy(apply(p.permute, x, axes=axes))
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return apply(p.permute, made, axes=back)


@public(function=False, method=True)
def contiguous(input: Tensor, *, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """`input` itself if its memory is in row-major order, else a copy that is.

    So with another order as the `memory_format`, such as `tgraph.channels_last`.
    """
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if memory_format is contiguous_format:
        return input if is_contiguous(input) else row_major_copy(input)
    memory_format.axes(input._type.shape)
    if is_contiguous(input, memory_format=memory_format):
        return input
    return _copy_in_order(input, memory_format)


@planned
def row_major_copy(input: Tensor) -> Tensor:
    """A copy with memory of its own, in row-major order."""
    return apply(p.copy, input, strides=contiguous_strides(input._type.shape))


@public(function=False, method=True)
def is_contiguous(input: Tensor, *, memory_format: MemoryFormat = contiguous_format) -> bool:
    """Whether the elements lie in memory in row-major order, or another one, without gaps."""
    value, shape = input._value, input._type.shape
    if memory_format is contiguous_format:
        if type(value) is np.ndarray:
            return value.flags.c_contiguous  # axes of one element may have any stride there, too
    elif not memory_format.fits(len(shape)):
        return False
    wanted = memory_format.strides(shape)
    strides = strides_of(input)
    if are_same(strides, wanted) or 0 in shape:
        return True
    return all(size == 1 or a == b for size, a, b in zip(shape, strides, wanted))


@public(function=False, method=True)
def stride(input: Tensor, dim: int | None = None) -> Any:
    """The step in memory, in elements, along every dimension or along `dim`."""
    shape = input._type.shape
    strides = contiguous_strides(shape) if 0 in shape else strides_of(input)
    return strides if dim is None else strides[normalize_axis(dim, len(strides))]


@public(function=False, method=True)
def data_ptr(input: Tensor) -> int:
    """The address of the first element; 0 without elements, and on `meta`."""
    context = current_context()
    if input.is_meta or (not input._type.numel and not context.tracing):
        return 0
    if input.is_cuda and not context.tracing:
        return int(context.value_of(input).data.ptr)
    address: int = context.host_array(input, "data_ptr()").ctypes.data
    return address
