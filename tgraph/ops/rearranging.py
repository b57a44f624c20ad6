"""Forms of stacking, splitting and turning that name their dimensions; parts exchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir.shapes import normalize_axis
from ..core.operands import cast, require_tensor
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_, int64
from . import elementwise as e
from . import movement as m
from .concatenation import all_given, cat, flip, some
from .movement import Sizes

# --- at least so many dimensions -----------------------------------------------------------------


def _each(function: Callable[[Tensor], Tensor], tensors: Sequence[Any], name: str) -> Any:
    found = tuple(map(function, all_given(tensors, name)))
    return found[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else found


@public()
def atleast_1d(*tensors: Any) -> Any:
    """A tensor without dimensions as one of one element; others as they are.

    >>> import tgraph as tg
    >>> tg.atleast_1d(tg.tensor(3))
    tensor([3])
    """
    return _each(lambda x: x if x.ndim else m.reshape(x, 1), tensors, "atleast_1d")


@public()
def atleast_2d(*tensors: Any) -> Any:
    """A vector as a matrix of one row; more dimensions as they are.

    >>> import tgraph as tg
    >>> tg.atleast_2d(tg.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return _each(_as_matrix, tensors, "atleast_2d")


def _as_matrix(x: Tensor) -> Tensor:
    return x if x.ndim > 1 else m.reshape(x, 1, x._type.numel)


@public()
def atleast_3d(*tensors: Any) -> Any:
    """A vector as [1, n, 1], a matrix as [rows, columns, 1]; more dimensions as they are.

    >>> import tgraph as tg
    >>> tg.atleast_3d(tg.zeros(2, 3)).shape
    tgraph.Size([2, 3, 1])
    """
    return _each(_as_block, tensors, "atleast_3d")


def _as_block(x: Tensor) -> Tensor:
    return x if x.ndim > 2 else m.unsqueeze(_as_matrix(x), -1)


# --- stacking ------------------------------------------------------------------------------------


@public(out=True, overlap="none")
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Columns side by side; vectors are columns.

    >>> import tgraph as tg
    >>> tg.column_stack((tg.tensor([1, 2]), tg.tensor([3, 4]))).tolist()
    [[1, 3], [2, 4]]
    """
    columns = some(tensors, "column_stack")
    return cat([x if x.ndim > 1 else m.reshape(x, x._type.numel, 1) for x in columns], 1)


@public(out=True, overlap="none")
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors, of 3 dimensions at least, one behind the other along the third.

    >>> import tgraph as tg
    >>> tg.dstack((tg.tensor([1, 2]), tg.tensor([3, 4]))).tolist()
    [[[1, 3], [2, 4]]]
    """
    return cat([_as_block(each) for each in some(tensors, "dstack")], 2)


# --- splitting -----------------------------------------------------------------------------------


def _split(name: str, input: Tensor, parts: Sizes, axis: int, least: int) -> tuple[Tensor, ...]:
    if require_tensor(input, name).ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension"
            f"{'s' if least > 1 else ''}, but got a tensor with {input.ndim} dimensions!"
        )
    if isinstance(parts, int):
        size = input._type.shape[axis]
        if parts < 1 or size % parts:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {axis}, but the size of the "
                f"dimension {size} is not divisible by the split_size {parts}!"
            )
    return m.tensor_split(input, parts, axis)


@public(method=True)
def hsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Views along the second dimension, of a vector along its own: see `tensor_split`.

    >>> import tgraph as tg
    >>> tg.hsplit(tg.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    return _split("hsplit", input, indices_or_sections, int(input.ndim > 1), 1)


@public(method=True)
def vsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Views along the first of two dimensions or more: see `tensor_split`."""
    return _split("vsplit", input, indices_or_sections, 0, 2)


@public(method=True)
def dsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Views along the third dimension: see `tensor_split`."""
    return _split("dsplit", input, indices_or_sections, 2, 3)


@public(method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """Views of consecutive parts of the given sizes: see `split`."""
    return m.split(input, list(split_sizes), dim)


@public(method=True)
def unsafe_split(input: Tensor, split_size: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of `split`, each in memory of its own."""
    return tuple(map(m.clone, m.split(input, split_size, dim)))


@public(method=True)
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """The parts of `split_with_sizes`, each in memory of its own."""
    return unsafe_split(input, split_sizes, dim)


@public(method=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of `chunk`, each in memory of its own."""
    return tuple(map(m.clone, m.chunk(input, chunks, dim)))


# --- turning -------------------------------------------------------------------------------------


@public(method=True)
def fliplr(input: Tensor) -> Tensor:
    """The second dimension in reverse order."""
    if require_tensor(input, "fliplr").ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public(method=True)
def flipud(input: Tensor) -> Tensor:
    """The first dimension in reverse order."""
    if not require_tensor(input, "flipud").ndim:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public(method=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The plane of two dimensions turned by `k` right angles, from the first to the second.

    >>> import tgraph as tg
    >>> tg.rot90(tg.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    require_tensor(input, "rot90")
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = (normalize_axis(each, input.ndim) for each in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    k %= 4
    if k == 0:
        return m.clone(input)
    if k == 2:
        return flip(input, first, second)
    return m.transpose(flip(input, second if k == 1 else first), first, second)


# --- parts exchanged -----------------------------------------------------------------------------


def _replaced(name: str, input: Tensor, src: Tensor, show: Callable[[Tensor], Tensor]) -> Tensor:
    found = m.clone(require_tensor(input, name))
    part = show(found)
    if require_tensor(src, name, "src")._type.shape != part._type.shape:
        raise RuntimeError(
            f"{name}: expected src to have a size equal to the slice of self. src size = "
            f"{list(src._type.shape)}, slice size = {list(part._type.shape)}"
        )
    part.copy_(src)  # type: ignore[attr-defined]
    return found


@public(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` in the place of `select(input, dim, index)`.

    >>> import tgraph as tg
    >>> tg.select_scatter(tg.zeros(2, 2), tg.ones(2), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return _replaced("select_scatter", input, src, lambda x: m.select(x, dim, index))


@public(method=True, out="exact", overlap="any")
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy of `input` with `src` in the place of the slice start:end:step of `dim`."""
    axis = normalize_axis(dim, require_tensor(input, "slice_scatter").ndim)
    first, last, _ = slice(start, end, step).indices(input._type.shape[axis])
    return _replaced(
        "slice_scatter", input, src, lambda x: m.slice_axis(x, axis, first, max(first, last), step)
    )


@public(method=True)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy of `input` with `src` in the place of `diagonal(input, offset, dim1, dim2)`."""
    return _replaced("diagonal_scatter", input, src, lambda x: m.diagonal(x, offset, dim1, dim2))


@public(method=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` in the place of `as_strided(input, size, stride, ...)`."""
    start = 0
    if storage_offset is not None:
        start = storage_offset - require_tensor(input, "as_strided_scatter").storage_offset()
    return _replaced(
        "as_strided_scatter",
        input,
        src,
        lambda x: x.as_strided(size, stride, start),  # type: ignore[attr-defined]
    )


# --- positions -----------------------------------------------------------------------------------


@public()
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Positions in a flattened tensor of `shape`, as one position for each dimension.

    >>> import tgraph as tg
    >>> tg.unravel_index(tg.tensor([5]), (2, 3))
    (tensor([1]), tensor([2]))
    """
    kind = require_tensor(indices, "unravel_index", "indices")._type.dtype
    if kind.is_differentiable or kind is bool_:
        raise TypeError(f"unravel_index(): expected 'indices' of integers, got {kind.name}")
    sizes = m.as_sizes((shape,))
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index(): sizes must be at least 0, got {list(sizes)}")
    found, left = [], cast(indices, int64)
    for size in reversed(sizes):
        found.append(e.remainder(left, size))
        left = e.floor_divide(left, size)
    return tuple(reversed(found))


@public(method=True, name="sum_to_size", function=False)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over what would have to be broadcast to get from `size` to the shape of `input`."""
    sizes = m.as_sizes(size)
    shape = input._type.shape
    extra = len(shape) - len(sizes)
    if extra < 0 or any(
        want not in (1, have) for want, have in zip(sizes, shape[extra:], strict=True)
    ):
        raise RuntimeError(f"size {{{list(sizes)}}} is not expandable to size {{{list(shape)}}}.")
    axes = [
        at for at, have in enumerate(shape) if at < extra or (sizes[at - extra] == 1 and have != 1)
    ]
    if not shape:  # whole numbers are summed to int64 over no dimension, too
        found = input.sum()  # type: ignore[attr-defined]
    else:
        found = input.sum(axes) if axes else m.view_as(input, input)  # type: ignore[attr-defined]
    return m.reshape(found, sizes)
