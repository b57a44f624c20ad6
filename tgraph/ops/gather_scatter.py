"""Reading and writing at positions that tensors give: nonzero, masks, gather, scatter, index_*."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core.composite import composite
from ..core.dispatch import apply, make_source
from ..core.eager_context import constant, current_context
from ..core.layouts import sparse_coo
from ..core.operands import Scalar, cast, is_scalar, plain_scalar, require_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.sparse_tensor import make_sparse
from ..core.state import state
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.arrays import current
from ..runtime.device import META
from ..runtime.dtypes import DType, bool_, int32, int64
from . import elementwise as e
from . import movement as m
from .concatenation import atleast_1d
from .indexing import as_value, getitem, nonzero_tuple, setitem, wrap_negative
from .scans import cumsum
from .sorting import searchsorted
from .zero_dim import with_one_element


@public(method=True, aliases=("argwhere",), out="exact")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of nonzero elements: one row for each, or a tuple of one vector for each
    dimension."""
    if as_tuple:
        return nonzero_tuple(input if input.ndim else m.reshape(input, 1))
    if not input.ndim:
        count = nonzero_tuple(m.reshape(input, 1))[0]._type.shape[0]
        place = input._type.device
        return make_source(p.full, place, shape=(count, 0), value=0, dtype=int64)
    found = current_context().positions(input, "nonzero()")
    return apply(p.concatenate, *(m.unsqueeze(each, 1) for each in found), axis=1)


@public(method=True, out="exact")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, in one dimension."""
    require_tensor(input, "masked_select"), require_tensor(mask, "masked_select", "mask")
    if mask._type.dtype is not bool_:
        raise RuntimeError(
            f"masked_select: expected BoolTensor for mask, got one of {mask._type.dtype}"
        )
    x, where = m.broadcast_tensors(input, mask)
    if not x._type.shape:
        x, where = m.reshape(x, 1), m.reshape(where, 1)
    return getitem(x, m.contiguous(where))


@public()
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor as `input`, of one number or of the element of a tensor."""
    return m.clone(require_tensor(input, "fill")).fill_(value)


@public(method=True, inplace=True, overlap="any")
def masked_fill(input: Tensor, mask: Tensor, value: Scalar | Tensor) -> Tensor:
    """`value` where `mask` holds, else `input`."""
    if require_tensor(mask, "masked_fill", "mask")._type.dtype is not bool_:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask._type.dtype}"
        )
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    if input._type.dtype.is_integral:
        if not isinstance(value, Tensor):
            _check_fits(value, input._type.dtype)
        elif value.is_complex() and current_context().has_value(value):
            _check_fits(value.item(), input._type.dtype)
    return apply(p.where, mask, as_value(value, input), input)


def _check_fits(value: Scalar, dtype: DType) -> None:
    """RuntimeError for a number that no integer of a type is near."""
    limits = np.iinfo(dtype.numpy)
    real = value.real if isinstance(value, complex) else value
    least = -limits.max - 1  # of unsigned types, too: negative numbers wrap around
    if not least <= real <= limits.max or (isinstance(value, complex) and value.imag):
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name}_t without overflow: {value}"
        )


@public(method=True, inplace=True, overlap="any")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of `source`, in order, put where `mask` holds."""
    for name, each in (("mask", mask), ("source", source)):
        require_tensor(each, "masked_scatter", name)
    if mask._type.dtype is not bool_:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{mask._type.dtype}"
        )
    x, where = m.broadcast_tensors(input, mask)
    result, chosen = m.clone(x), m.contiguous(where)
    if chosen.ndim:
        at = nonzero_tuple(chosen)
        count = at[0]._type.shape[0]
    else:
        at = chosen
        count = int(current_context().host_array(chosen, "masked_scatter()"))
    setitem(result, at, m.slice_axis(m.reshape(source, -1), 0, 0, count))
    return result


# --- along an axis -----------------------------------------------------------------------------


def check_index(index: Tensor, operation: str) -> Tensor:
    if require_tensor(index, operation, "index")._type.dtype not in (int64, int32):
        raise RuntimeError(f"{operation}(): Expected dtype int64 for index")
    return index


@public(method=True, out="exact", overlap="none")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """result[.., i, ..] = input[.., index[.., i, ..], ..] along `dim`; see PyTorch's gather.

    With `sparse_grad` the gradient is a sparse tensor; it is dense where a compiled function calls
    backward() itself.
    """
    if sparse_grad and input.ndim and index.ndim == input.ndim and index._type.numel:
        return _gather_with_places(input, index, dim=normalize_axis(dim, input.ndim))
    return _gather(input, dim, index)


@composite("gather")
def _gather_with_places(input: Tensor, index: Tensor, dim: int) -> Tensor:
    return m.clone(_gather(input, dim, index))


@input_vjp(_gather_with_places, saves=(1,))
def _gather_with_places_vjp(
    g: Tensor, out: TensorType, input: TensorType, index: Tensor, dim: int
) -> Tensor:
    if not current_context().gives_sparse:
        zeros = apply(p.broadcast, constant(0, g.dtype, g.device), shape=input.shape)
        return apply(p.scatter_add, zeros, index, g, axis=dim)
    rows = []
    for axis, size in enumerate(index.shape):
        line = make_source(p.iota, index._type.device, size=size, dtype=int64)
        line = m.reshape(line, (1,) * axis + (size,) + (1,) * (index.ndim - axis - 1))
        row = cast(index, int64) if axis == dim else line
        rows.append(apply(p.broadcast, row, shape=index._type.shape))
    at = apply(p.concatenate, *(m.reshape(each, 1, -1) for each in rows), axis=0)
    return make_sparse(sparse_coo, (at,), m.reshape(g, -1), input.shape, False)


@planned
def _gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    shape = require_tensor(index, "gather", "index")._type.shape
    if not index._type.numel:  # of any type and number of dimensions
        normalize_axis(dim, max(input.ndim, 1))
        return m.clone(m.reshape(m.slice_axis(m.reshape(input, -1), 0, 0, 0), shape))
    if input.ndim == 0 or index.ndim == 0:
        return m.reshape(_gather(atleast_1d(input), dim, atleast_1d(index)), shape)
    check_index(index, "gather")
    if index.ndim != input.ndim and index._type.numel:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    axis = normalize_axis(dim, input.ndim)
    _check_extent(index, input, axis, "gather")
    return apply(p.gather, input, index, axis=axis)


def _check_extent(index: Tensor, x: Tensor, axis: int, operation: str) -> None:
    sizes = zip(index._type.shape, x._type.shape)
    if any(at != axis and wide > size for at, (wide, size) in enumerate(sizes)):
        raise RuntimeError(
            f"{operation}(): Size does not match at dimension other than {axis}: expected index "
            f"{list(index._type.shape)} to be no larger than self {list(x._type.shape)} apart from "
            f"dimension {axis}"
        )


@public(method=True, out="exact")
@with_one_element
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As `gather`, with negative positions allowed and the other dimensions broadcast."""
    if dim is None:
        return take_along_dim(m.reshape(input, -1), m.reshape(indices, -1), 0)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {input.ndim} and {indices.ndim}"
        )
    axis = normalize_axis(dim, input.ndim)
    outer = list(m.broadcast_shapes(
        *((*shape[:axis], 1, *shape[axis + 1 :]) for shape in (input.shape, indices.shape))
    ))  # fmt: skip
    outer[axis] = -1
    x, at = m.expand(input, outer), m.expand(indices, outer)
    return apply(p.gather, x, wrap_negative(at, axis, x._type.shape[axis]), axis=axis)


@public(method=True, out="exact", overlap="none")
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in the shape of `index`."""
    line = m.reshape(input, -1)
    check_index(index, "take")
    if index.ndim:
        return getitem(line, index)
    return m.reshape(getitem(line, m.reshape(index, -1)), ())  # a copy, where `x[index]` is a view


@public(method=True, inplace=True, overlap="none")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `source` written (or added) at places of the flattened tensor.

    >>> import tgraph as tg
    >>> tg.put(tg.zeros(2, 2), tg.tensor([1, -1]), tg.tensor([5.0, 6.0]))
    tensor([[0., 5.],
            [0., 6.]])
    """
    check_index(index, "put_")
    if index._type.numel != source._type.numel:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source "
            f"with {source._type.numel} elements and index with {index._type.numel}"
        )
    if source._type.dtype is not input._type.dtype:
        raise RuntimeError(
            f"put_(): self ({input._type.dtype}) and source ({source._type.dtype}) must have the "
            "same dtype"
        )
    line, places = m.reshape(input, -1), m.reshape(index, -1)
    places = wrap_negative(places, 0, line._type.shape[0])
    written = apply(
        p.index_put, line, places, m.reshape(source, -1), axis=0, accumulate=bool(accumulate)
    )
    return m.reshape(written, input._type.shape)


@public(method=True, out="exact", overlap="none")
@with_one_element
@planned
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The places `index` (a vector) of dimension `dim`."""
    check_index(index, "index_select")
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    axis = normalize_axis(dim, input.ndim)
    return apply(p.index, input, m.reshape(index, -1), axis=axis)


@public(method=True, inplace=True, overlap="none", out="exact")
@with_one_element
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with `src` added at `index` along `dim`: the transpose of gather."""
    require_tensor(src, "scatter_add", "src")
    axis, index, source = scatter_operands(input, dim, index, src, "scatter_add")
    return apply(p.scatter_add, input, index, source, axis=axis)


def scatter_operands(
    x: Tensor, dim: int, index: Tensor, src: Any, operation: str
) -> tuple[int, Tensor, Tensor]:
    check_index(index, operation)
    axis = normalize_axis(dim, x.ndim)
    if x.ndim == 1 and not index.ndim:  # one position, which may come without a dimension
        index = m.reshape(index, 1)
        src = m.reshape(src, 1) if isinstance(src, Tensor) and not src.ndim else src
    if index.ndim != x.ndim:
        raise RuntimeError(
            f"{operation}(): Index tensor must have the same number of dimensions as self tensor, "
            f"but got {index.ndim} and {x.ndim}"
        )
    _check_extent(index, x, axis, operation)
    if is_scalar(src):
        filled = constant(plain_scalar(src), x._type.dtype, x._type.device)
        return axis, index, apply(p.broadcast, filled, shape=index._type.shape)
    if require_tensor(src, operation, "src")._type.dtype is not x._type.dtype:
        raise RuntimeError(
            f"{operation}(): Expected self.dtype to be equal to src.dtype, got {x._type.dtype} and "
            f"{src._type.dtype}"
        )
    if src.ndim != index.ndim:
        raise RuntimeError(
            f"{operation}(): Index tensor must have the same number of dimensions as src tensor, "
            f"but got {index.ndim} and {src.ndim}"
        )
    if any(
        type(size) is type(own) is int and size > own
        for size, own in zip(index._type.shape, src._type.shape)
    ):
        raise RuntimeError(
            f"{operation}(): Expected index {list(index._type.shape)} to be no larger than src "
            f"{list(src._type.shape)} in all dimensions"
        )
    if src._type.shape != index._type.shape:
        starts = (0,) * index.ndim
        src = apply(p.slice_, src, starts=starts, stops=index._type.shape, steps=(1,) * index.ndim)
    return axis, index, src


@public(method=True, inplace=True, overlap="none", out="exact")
@with_one_element
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1
) -> Tensor:
    """`input` with `alpha * source` added at the places `index` of dimension `dim`."""
    check_index(index, "index_add")
    axis = normalize_axis(dim, input.ndim)
    index, source = check_source(input, axis, index, source, "index_add")
    if input._type.dtype.is_integral:
        alpha = int(alpha)  # as PyTorch, which computes in the dtype of the tensor
    added = source if alpha == 1 else e.mul(source, alpha)
    return apply(p.index_put, input, index, added, axis=axis, accumulate=True)


def check_source(
    input: Tensor, axis: int, index: Tensor, source: Tensor, operation: str
) -> tuple[Tensor, Tensor]:
    """The index as a vector, and the source with an element or a slice for each position."""
    dtype, shape = input._type.dtype, input._type.shape
    if index.ndim > 1:
        raise IndexError(
            f"{operation}(): Index is supposed to be a vector, got {index.ndim} dimensions"
        )
    if require_tensor(source, operation, "source")._type.dtype is not dtype:
        raise RuntimeError(
            f"{operation}(): self ({dtype}) and source ({source._type.dtype}) must have the same "
            "dtype"
        )
    if not source.ndim and len(shape) == 1:
        source = m.reshape(source, 1)
    index = m.reshape(index, -1)
    wanted = (*shape[:axis], *index._type.shape, *shape[axis + 1 :])
    if source._type.shape != wanted:
        kind = IndexError if operation == "index_copy" else RuntimeError
        raise kind(
            f"{operation}(): expected a source of shape {list(wanted)}, for {index._type.numel} "
            f"indices into dimension {axis} of a tensor of shape {list(shape)}, got "
            f"{list(source._type.shape)}"
        )
    return index, source


@public(method=True, inplace=True, overlap="none", out="exact")
@with_one_element
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with `source` written to the places `index` of dimension `dim`."""
    check_index(index, "index_copy")
    axis = normalize_axis(dim, input.ndim)
    index, source = check_source(input, axis, index, source, "index_copy")
    return apply(p.index_put, input, index, source, axis=axis, accumulate=False)


@public(method=True, inplace=True, overlap="any")
@with_one_element
def index_fill(input: Tensor, dim: int, index: Tensor, value: Scalar | Tensor) -> Tensor:
    """`input` with `value` written to the places `index` of dimension `dim`."""
    check_index(index, "index_fill")
    axis = normalize_axis(dim, input.ndim)
    if isinstance(value, Tensor) and value._type.numel != 1:
        raise RuntimeError(
            "index_fill(): only a value of one element is supported, got a tensor of shape "
            f"{list(value._type.shape)}"
        )
    # Which places are filled, as a mask: a place that `index` has twice counts once in gradients.
    size, device = input._type.shape[axis], input._type.device
    index = e.where(e.lt(index, 0), e.add(index, size), index)
    none, there = (constant(each, bool_, device) for each in (False, True))
    chosen = apply(
        p.index_put, apply(p.broadcast, none, shape=(size,)), index,
        apply(p.broadcast, there, shape=index._type.shape), axis=0, accumulate=False,
    )  # fmt: skip
    chosen = m.reshape(chosen, (size, *(1,) * (input.ndim - axis - 1)))
    return apply(p.where, chosen, as_value(value, input), input)


@public()
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class indices as int64 rows with a one at the class; -1 takes the largest index + 1.

    >>> import tgraph as tg
    >>> tg.one_hot(tg.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    if tensor._type.dtype is not int64:
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor, got "
            f"{tensor._type.dtype}"
        )
    if num_classes < -1:
        raise RuntimeError(
            f"one_hot: Class values must be smaller than num_classes, got {num_classes=}; "
            "-1 takes the largest index + 1"
        )
    if not state.context:
        num_classes = _checked_classes(tensor, num_classes)
    elif num_classes == 0:
        raise RuntimeError("Class values must be smaller than num_classes, got num_classes=0")
    elif num_classes < 0:
        highest = current_context().host_array(tensor, "one_hot() without num_classes")
        num_classes = int(highest.max()) + 1
    classes = make_source(p.iota, tensor._type.device, size=num_classes, dtype=int64)
    if not state.context:
        return cast(e.eq(m.unsqueeze(m.contiguous(tensor), -1), classes), int64)
    # Rows of a unit matrix, which is never there in memory: reading one checks its position.
    unit = e.eq(m.unsqueeze(classes, -1), classes)
    return cast(apply(p.index, unit, tensor, axis=0), int64)


def _checked_classes(tensor: Tensor, num_classes: int) -> int:
    if tensor._type.numel == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return num_classes
    if tensor._type.device is META and num_classes > 0:
        return num_classes
    with current(tensor._type.device):
        lowest, highest = int(tensor._value.min()), int(tensor._value.max())
    if lowest < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes >= 0 and highest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return highest + 1 if num_classes < 0 else num_classes


@public(method=True)
def repeat_interleave(
    input: Tensor | None = None,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Every element along `dim` repeated in its place: `repeats` times, or as often as it says.

    With `input` alone, the position of each of its elements as often as the element says. In
    traced code repeats of a tensor need `output_size`, their sum.

    >>> import tgraph as tg
    >>> tg.repeat_interleave(tg.tensor([1, 2, 3]), tg.tensor([2, 0, 1]))
    tensor([1, 1, 3])
    >>> tg.repeat_interleave(tg.tensor([2, 0, 1]))
    tensor([0, 0, 2])
    """
    if input is None or repeats is None:
        counts = require_tensor(repeats if input is None else input, "repeat_interleave")
        return _interleaved(counts, output_size)
    if dim is None:
        return repeat_interleave(m.reshape(input, -1), repeats, 0, output_size=output_size)
    axis = normalize_axis(dim, input.ndim)
    if not isinstance(repeats, Tensor):
        return _repeated_evenly(input, repeats, axis)
    size = input._type.shape[axis]
    if repeats.ndim > 1 or (repeats._type.numel != size and repeats._type.numel != 1):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats of shape "
            f"{list(repeats._type.shape)} and a dimension of size {size}"
        )
    spread = m.expand(m.reshape(repeats, -1), (size,))
    return apply(p.index, input, _interleaved(spread, output_size), axis=axis)


def _repeated_evenly(input: Tensor, repeats: int, axis: int) -> Tensor:
    if repeats < 0:
        raise RuntimeError("repeats has to be non-negative")
    shape = input._type.shape
    wide = apply(p.reshape, input, shape=(*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = apply(p.broadcast, wide, shape=(*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    merged = (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])
    repeated = apply(p.reshape, wide, shape=merged)
    return repeated if repeated._view is None else m.clone(repeated)


def _interleaved(repeats: Tensor, output_size: int | None) -> Tensor:
    """Every position as often as `repeats` says."""
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats._type.dtype not in (int64, int32):
        raise NotImplementedError(
            f"repeats has to be Long or Int tensor, got {repeats._type.dtype.name}"
        )
    if output_size is None or not state.context:
        counts = current_context().host_array(repeats, "repeat_interleave()")
        if (counts < 0).any():
            raise RuntimeError("repeats can not be negative")
        total = int(counts.sum())
        if output_size not in (None, total):
            raise RuntimeError(f"repeat_interleave: output_size is {output_size}, expected {total}")
        output_size = total
    ends = cumsum(cast(repeats, int64), 0)
    places = make_source(p.iota, repeats._type.device, size=output_size, dtype=int64)
    return searchsorted(ends, places, right=True)
