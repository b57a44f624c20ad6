"""The standard's functions that make tensors."""

from __future__ import annotations

from typing import Any

from ..core.devices import DeviceLike, as_device
from ..core.operands import cast
from ..core.tensor import Tensor
from ..interop import dlpack
from ..ops import creation, creation_options, diagonals, from_data
from ..runtime.dtypes import DType

Shape = int | tuple[int, ...]


def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """A tensor of numbers, nested sequences, an array or a tensor.

    `copy` makes one always (True) or never (False, for which a ValueError tells that it takes one);
    by default memory is shared where it can be.

    >>> from tgraph import array_api as xp
    >>> xp.asarray([1, 2, 3], dtype=xp.float64)
    tensor([1., 2., 3.], dtype=tgraph.float64)
    """
    if isinstance(obj, Tensor):
        return _as_tensor(obj, dtype, device, copy)
    if copy is False:
        return _shared(obj, dtype, device)
    try:
        if copy is None:
            return from_data.as_tensor(obj, dtype=dtype, device=device)
        return from_data.tensor(obj, dtype=dtype, device=device)
    except RuntimeError as error:
        if "overflow" not in str(error).lower():
            raise
        raise OverflowError(f"asarray(): {error}") from None


def _as_tensor(x: Tensor, dtype: DType | None, device: DeviceLike, copy: bool | None) -> Tensor:
    there = x._type.device if device is None else as_device(device)
    if copy is False and (there != x._type.device or dtype not in (None, x._type.dtype)):
        raise ValueError(f"asarray(): {x._type} as {dtype} on '{there}' takes a copy")
    return x.to(dtype=dtype, device=there, copy=bool(copy))


def _shared(obj: Any, dtype: DType | None, device: DeviceLike) -> Tensor:
    if not hasattr(obj, "__dlpack__"):
        raise ValueError(f"asarray(): a {type(obj).__name__} takes a copy")
    try:
        return _as_tensor(dlpack.from_dlpack(obj, copy=False), dtype, device, False)
    except BufferError as error:
        raise ValueError(f"asarray(): {error}") from None


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """Numbers from `start` (0, where it is given alone) up to `stop`, without it.

    None, where `step` leads away from `stop`.

    >>> from tgraph import array_api as xp
    >>> xp.arange(2, 8, 3), xp.arange(3, 0)
    (tensor([2, 5]), tensor([], dtype=tgraph.int64))
    """
    start, stop = (0, start) if stop is None else (start, stop)
    if step != 0 and (stop - start) * (1 if step > 0 else -1) < 0:
        stop = start if isinstance(stop, int) else float(start)  # floats decide the dtype
    return creation.arange(start, stop, step, dtype=dtype, device=device)


def _sizes(shape: Shape) -> Any:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty(shape: Shape, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """A tensor of any elements."""
    return creation.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """A tensor of zeros."""
    return creation.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """A tensor of ones."""
    return creation.ones(_sizes(shape), dtype=dtype, device=device)


def full(
    shape: Shape,
    fill_value: complex,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """A tensor of one number, by which its dtype goes."""
    return creation.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """A tensor of any elements, of the shape of another."""
    return creation.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """Zeros, of the shape of another."""
    return creation.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """Ones, of the shape of another."""
    return creation.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: Tensor,
    /,
    fill_value: complex,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """One number, of the shape of another tensor."""
    return creation.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """A matrix of ones on the diagonal that lies `k` above the main one, and zeros.

    >>> from tgraph import array_api as xp
    >>> xp.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    rows = creation.arange(n_rows, device=device)
    columns = creation.arange(n_rows if n_cols is None else n_cols, device=device)
    k = max(-n_rows, min(k, len(columns)))  # further off there is no diagonal
    return cast(rows.unsqueeze(1) + k == columns, dtype or creation_options.get_default_dtype())


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances, up to `stop`, or to where the next one would be `stop`.

    >>> from tgraph import array_api as xp
    >>> xp.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if isinstance(start, complex) or isinstance(stop, complex) or (dtype and dtype.is_complex):
        part = None if dtype is None else dtype.to_real()
        ends = [
            (complex(start).real, complex(stop).real),
            (complex(start).imag, complex(stop).imag),
        ]
        parts = [
            linspace(*each, num, dtype=part, device=device, endpoint=endpoint) for each in ends
        ]
        return parts[0] + 1j * parts[1]
    if endpoint:
        return creation.linspace(start, stop, num, dtype=dtype, device=device)
    return creation.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, whose axes are given: rows are those of the second ("xy").

    >>> from tgraph import array_api as xp
    >>> xp.meshgrid(xp.arange(3), xp.arange(2))[0]
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing must be 'xy' or 'ij', got {indexing!r}")
    return list(creation.meshgrid(*arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices with zeros above the diagonal that lies `k` above the main one."""
    return diagonals.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices with zeros below the diagonal that lies `k` above the main one."""
    return diagonals.triu(x, k)


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an array of another library, by its `__dlpack__`.

    >>> import numpy as np
    >>> from tgraph import array_api as xp
    >>> xp.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    return dlpack.from_dlpack(x, device=device, copy=copy)


__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip
