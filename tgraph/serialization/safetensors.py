"""The format of safetensors: a table of names, types and places in JSON, and then the elements.

https://huggingface.co/docs/safetensors: 8 bytes of the table's size, the table, and the elements of
all tensors, row-major, behind each other without gaps. It has no checksums.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..compiler.ir.shapes import contiguous_strides
from ..core.eager_context import array_type
from ..core.tensor import Tensor, wrap
from ..ops.storage import storage_over
from ..ops.storage_views import tensor_over
from ..runtime import dtypes
from ..runtime.arrays import to_host
from ..runtime.device import CPU
from ..runtime.dtypes import DType
from .errors import LoadError
from .sources import FileSource

_NAMES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16,
    "I32": dtypes.int32, "I64": dtypes.int64, "U16": dtypes.uint16, "U32": dtypes.uint32,
    "U64": dtypes.uint64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32,
    "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip
_DTYPES = {dtype: name for name, dtype in _NAMES.items()}
_LONGEST_TABLE = 100_000_000
_METADATA = "__metadata__"


def named_arrays(given: Any, kind: str) -> dict[str, tuple[Any, DType]]:
    """The elements of a dict of tensors, row-major, with their dtypes; TypeError for all else."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{kind} files hold tensors by names: expected a dict of tensors, got "
            f"{type(given).__name__}. Save other objects as .pt"
        )
    found = {}
    for name, each in given.items():
        if isinstance(each, np.ndarray):
            each = wrap(each, array_type(each))
        if not isinstance(name, str) or not isinstance(each, Tensor):
            raise TypeError(
                f"{kind} files hold tensors by names: expected a dict of tensors, got "
                f"{type(each).__name__} under {name!r:.100}. Save other objects as .pt"
            )
        array = to_host(each.detach()._value)
        found[name] = (np.asarray(array, order="C"), each._type.dtype)
    return found


def write(given: Any, file: Any, path: str) -> None:
    """Write a dict of tensors."""
    arrays = named_arrays(given, "safetensors")
    if _METADATA in arrays:
        raise TypeError(f"safetensors files cannot hold a tensor that is called {_METADATA}")
    for name, (_, dtype) in arrays.items():
        if dtype not in _DTYPES:
            raise TypeError(f"safetensors files cannot hold {dtype} ({name!r}); save it as .pt")
    # Those with the largest elements first, so that all are aligned.
    order = sorted(arrays, key=lambda name: (-arrays[name][1].itemsize, name))
    table, at = {}, 0
    for name in order:
        array, dtype = arrays[name]
        places = [at, at + array.nbytes]
        table[name] = {"dtype": _DTYPES[dtype], "shape": array.shape, "data_offsets": places}
        at += array.nbytes
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        array = arrays[name][0]
        if sys.byteorder == "big":
            array = array.byteswap()
        file.write(memoryview(array.reshape(-1).view(np.uint8)))


def read(path: str, mapped: bool) -> dict[str, Tensor]:
    """The tensors of a file by their names."""
    with open(path, "rb") as file:
        source = FileSource(file)
        table, start = _table(source)
        places = {name: _checked(name, each) for name, each in table.items()}
        _check_places(sorted(place for _, _, place in places.values()), source.size - start)
        found = {}
        for name, (dtype, shape, (first, last)) in places.items():
            if mapped:
                content = source.mapped(start + first, last - first)
                content = content if content.ctypes.data % dtype.itemsize == 0 else content.copy()
            else:
                content = np.empty(last - first, np.uint8)
                source.read_into(start + first, memoryview(content))
            if sys.byteorder == "big":
                content = content.view(dtype.numpy).byteswap().view(np.uint8)
            storage = storage_over(content, CPU)
            found[name] = tensor_over(storage, dtype, 0, shape, contiguous_strides(shape))
        return found


def _table(source: FileSource) -> tuple[dict[str, Any], int]:
    size = int.from_bytes(source.bytes_at(0, 8), "little")
    if source.size < 8 or size > min(source.size - 8, _LONGEST_TABLE):
        raise LoadError("the file is no safetensors file, or it was cut off")
    try:
        table = json.loads(source.bytes_at(8, size).decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"the table of the safetensors file is damaged: {error!s:.200}") from error
    if type(table) is not dict:
        raise LoadError("the table of the safetensors file is damaged: it is no object")
    table.pop(_METADATA, None)
    return table, 8 + size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def _checked(name: str, given: Any) -> tuple[DType, tuple[int, ...], tuple[int, int]]:
    """The dtype, shape and place of a tensor."""
    if type(given) is not dict or given.keys() != {"dtype", "shape", "data_offsets"}:
        raise LoadError(f"the table of the safetensors file is damaged at {name!r:.100}")
    shape, places = given["shape"], given["data_offsets"]
    for numbers in (shape, places):
        if type(numbers) is not list or not all(type(each) is int for each in numbers):
            raise LoadError(f"the table of the safetensors file is damaged at {name!r:.100}")
    if type(given["dtype"]) is not str or given["dtype"] not in _NAMES:
        raise LoadError(
            f"tensor {name!r:.100} has the dtype {given['dtype']!s:.20}, which tgraph does not have"
        )
    dtype = _NAMES[given["dtype"]]
    fits = len(places) == 2 and len(shape) <= 64 and min([0, *shape, *places]) == 0
    fits = fits and max([0, *shape]) < 1 << 62
    if not fits or places[1] - places[0] != math.prod(shape) * dtype.itemsize:
        raise LoadError(f"the shape and the place of tensor {name!r:.100} do not fit each other")
    return dtype, tuple(shape), (places[0], places[1])


def _check_places(places: list[tuple[int, int]], size: int) -> None:
    """Tensors must fill the file, each with a part of its own."""
    at = 0
    for first, last in places:
        if first != at:
            raise LoadError("tensors of the safetensors file overlap, or leave gaps: it is damaged")
        at = last
    if at != size:
        raise LoadError(f"the safetensors file has {size} bytes of elements and should have {at}")
