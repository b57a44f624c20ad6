"""Tensors over memory of others: buffers of Python, files."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..runtime.device import Device
from ..runtime.dtypes import DType
from . import creation_options, from_data


def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector over the bytes of a buffer, from `offset`: of `count` elements, or of all.

    >>> import tgraph as tg
    >>> tg.frombuffer(bytearray(b"abc"), dtype=tg.uint8)
    tensor([97, 98, 99], dtype=tgraph.uint8)
    """
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    array = np.frombuffer(buffer, dtype.numpy, count, offset)
    if not array.flags.writeable:
        warnings.warn("The given buffer is not writable, and tensors can be written: the elements "
                      "are copied.", stacklevel=2)  # fmt: skip
        array = array.copy()
    return from_data.from_numpy(array).requires_grad_(requires_grad)


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A vector over a file; what is written reaches the file if it is `shared`."""
    wanted = creation_options.get_default_dtype() if dtype is None else dtype
    if shared:
        with open(filename, "ab") as file:  # made as long as the tensor, as PyTorch does
            missing = (size or 0) * wanted.itemsize - file.tell()
            file.write(b"\0" * max(missing, 0))
    array = np.memmap(filename, wanted.numpy, "r+" if shared else "c", shape=(size or 0,))
    made = from_data.from_numpy(np.asarray(array))
    return (made if device is None else made.to(device)).requires_grad_(requires_grad)
