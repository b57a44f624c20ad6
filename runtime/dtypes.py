"""Element types with PyTorch's names, over NumPy's dtypes and ml_dtypes' bfloat16."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .records import record


@record(eq=False)
class DType:
    """An element type. One object per type, so comparison is identity.

    `kind` is one of "bool", "uint", "int", "float"; `itemsize` is in bytes; `numpy` is the
    NumPy dtype that holds it.

    >>> from tgraph.runtime.dtypes import float32
    >>> float32, float32.itemsize, float32.is_floating_point
    (tgraph.float32, 4, True)
    """

    name: str
    kind: str
    itemsize: int
    numpy: np.dtype[Any]

    @property
    def is_floating_point(self) -> bool:
        return self.kind == "float"

    @property
    def is_integral(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float")

    @property
    def is_half(self) -> bool:
        """True for the 16-bit floats, which are computed in float32 and rounded once stored."""
        return self.kind == "float" and self.itemsize == 2

    def __repr__(self) -> str:
        return f"tgraph.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype_named, (self.name,))


def _make(name: str, kind: str, numpy_type: Any) -> DType:
    numpy_dtype = np.dtype(numpy_type)
    return DType(name, kind, numpy_dtype.itemsize, numpy_dtype)


bool_ = _make("bool", "bool", np.bool_)
uint8 = _make("uint8", "uint", np.uint8)
int8 = _make("int8", "int", np.int8)
int16 = _make("int16", "int", np.int16)
int32 = _make("int32", "int", np.int32)
int64 = _make("int64", "int", np.int64)
uint32 = _make("uint32", "uint", np.uint32)
float16 = _make("float16", "float", np.float16)
bfloat16 = _make("bfloat16", "float", ml_dtypes.bfloat16)
float32 = _make("float32", "float", np.float32)
float64 = _make("float64", "float", np.float64)

ALL_DTYPES = (
    bool_, uint8, int8, int16, int32, int64, uint32, float16, bfloat16, float32, float64,
)  # fmt: skip

_BY_NAME = {dtype.name: dtype for dtype in ALL_DTYPES}
_BY_NUMPY = {dtype.numpy: dtype for dtype in ALL_DTYPES}


def dtype_named(name: str) -> DType:
    """The DType called `name`, such as "float32"; ValueError if there is none."""
    if name not in _BY_NAME:
        raise ValueError(f"unknown dtype {name!r}; known: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def from_numpy_dtype(numpy_dtype: Any) -> DType:
    """The DType of a NumPy dtype; TypeError for types that tensors cannot hold."""
    found = _BY_NUMPY.get(numpy_dtype)
    if found is not None:
        return found
    native = np.dtype(numpy_dtype).newbyteorder("=")
    if native in _BY_NUMPY:
        return _BY_NUMPY[native]
    raise TypeError(
        f"can't convert np.ndarray of type {np.dtype(numpy_dtype)}. The supported types are: "
        + ", ".join(_BY_NAME)
    )
