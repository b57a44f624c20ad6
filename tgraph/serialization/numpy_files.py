"""NumPy's `.npy` and `.npz` files: one tensor, and tensors by names."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..ops.creation import from_numpy
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
    head = io.BytesIO(bytes(content[: 1 << 16]))
    try:
        version = np.lib.format.read_magic(head)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(head)
        else:
            raise LoadError(
                f"{name!r:.100} has version {version} of NumPy's format; 1 and 2 are known"
            )
        if dtype.hasobject:
            raise LoadError(f"{name!r:.100} holds Python objects, which are not loaded")
        if any(type(size) is not int or size < 0 for size in shape):
            raise LoadError(f"{name!r:.100} has a shape that makes no sense: it is damaged")
        count = 1
        for size in shape:
            count *= size
        start = head.tell()
        if count * dtype.itemsize != len(content) - start:
            raise LoadError(
                f"{name!r:.100} has {len(content) - start} bytes of elements and should have "
                f"{count * dtype.itemsize}: it is damaged"
            )
        array = content[start:]
        if array.ctypes.data % max(dtype.alignment, 1):
            array = array.copy()
        array = array.view(dtype).reshape(shape, order="F" if fortran else "C")
        return from_numpy(array.astype(dtype.newbyteorder("="), copy=False))
    except (ValueError, TypeError, SyntaxError, EOFError, OverflowError, RecursionError) as error:
        raise LoadError(
            f"{name!r:.100} is no array of NumPy, or is damaged: {error!s:.200}"
        ) from error
