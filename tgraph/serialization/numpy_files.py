"""NumPy's `.npy` and `.npz` files: one tensor, and tensors by names."""

from __future__ import annotations

import ast
import io
import math
import os
import warnings
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..ops.from_data import from_numpy
from ..runtime.dtypes import bfloat16
from .archive import Archive, ArchiveWriter
from .errors import LoadError
from .safetensors import named_arrays
from .sources import FileSource


def _is_npz(path: str) -> bool:
    return os.path.splitext(path)[1].lower() == ".npz"


def write(given: Any, file: Any, path: str) -> None:
    """Write a tensor to an `.npy` file, or a dict of tensors to an `.npz` file."""
    kind = os.path.splitext(path)[1].lower()
    if not _is_npz(path):
        if not isinstance(given, Tensor | np.ndarray):
            raise TypeError(f"{kind} files hold one tensor, got {type(given).__name__}; use .npz")
        _write_array(file, _array_of(kind, "", *named_arrays({"": given}, kind)[""]))
        return
    archive = ArchiveWriter(file, folder="")
    for name, found in named_arrays(given, kind).items():
        content = io.BytesIO()
        _write_array(content, _array_of(kind, name, *found))
        archive.record(f"{name}.npy", content.getbuffer())
    archive.close()


def _array_of(kind: str, name: str, array: Any, dtype: Any) -> Any:
    if dtype is bfloat16:
        raise TypeError(
            f"{kind} files cannot hold bfloat16 {name!r}: save tensor.float(), or as .safetensors"
        )
    return array


def _write_array(file: Any, array: Any) -> None:
    np.lib.format.write_array(file, array, allow_pickle=False)


def read(path: str, mapped: bool) -> Any:
    """The tensor of an `.npy` file, or those of an `.npz` file by their names."""
    with open(path, "rb") as file:
        source = FileSource(file)
        if not _is_npz(path):
            content = np.empty(source.size, np.uint8) if not mapped else None
            if content is None:
                content = source.mapped(0, source.size)
            else:
                source.read_into(0, memoryview(content))
            return _tensor(content, path)
        archive = Archive(source)
        return {
            name.removesuffix(".npy"): _tensor(archive.inflated(name), name)
            for name in archive.entries
        }


def _tensor(content: Any, name: str) -> Tensor:
    """The tensor that the bytes of an `.npy` file tell of, over their memory."""
    try:
        dtype, fortran, shape, start = _header(bytes(content[:_LONGEST_HEADER]))
    except _TRIPPED as error:
        raise LoadError(
            f"{name!r:.100} is no array of NumPy, or is damaged: {error!s:.200}"
        ) from error
    if dtype.hasobject or dtype.kind not in "biufc":
        raise LoadError(f"{name!r:.100} holds Python objects, or no numbers: it is not loaded")
    size = math.prod(shape) * dtype.itemsize
    if size != len(content) - start:
        raise LoadError(
            f"{name!r:.100} has {len(content) - start} bytes of elements and should have {size}: "
            "it is damaged"
        )
    elements = content[start:]
    if elements.ctypes.data % max(dtype.alignment, 1):
        elements = elements.copy()
    try:
        array = elements.view(dtype).reshape(shape, order="F" if fortran else "C")
        return from_numpy(array.astype(dtype.newbyteorder("="), copy=False))
    except (TypeError, ValueError, OverflowError) as error:  # sizes beyond all, beside one of 0
        raise LoadError(f"{name!r:.100}: {error}") from error


_LONGEST_HEADER = 10_000
_TRIPPED = (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError)
"""What Python raises for a header that makes no sense."""


def _header(head: bytes) -> tuple[Any, bool, tuple[int, ...], int]:
    """Dtype, order, shape and the place of the first element. See `numpy.lib.format`."""
    version = head[6:8]
    if head[:6] != b"\x93NUMPY" or version not in (b"\1\0", b"\2\0", b"\3\0"):
        raise ValueError("it does not begin as versions 1 to 3 of that format do")
    start = 10 if version == b"\1\0" else 12
    end = start + int.from_bytes(head[8:start], "little")
    if end > len(head):
        raise ValueError("its header is cut off, or too long")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the parser finds odd in a damaged header
        told = ast.literal_eval(head[start:end].decode("latin1").strip())
    if type(told) is not dict or told.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header is another one")
    dtype, fortran, shape = told["descr"], told["fortran_order"], told["shape"]
    fits = type(dtype) is str and type(fortran) is bool and type(shape) is tuple
    if not fits or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("its header tells no numbers, or a shape that makes no sense")
    return np.dtype(dtype), fortran, shape, end
