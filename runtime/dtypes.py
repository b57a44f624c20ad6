"""Element types with PyTorch's names, over NumPy's dtypes and ml_dtypes' bfloat16."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .records import record


@record(eq=False)
class DType:
    """An element type. One object per type, so comparison is identity.

    `kind` is one of "bool", "uint", "int", "float"; `itemsize` is in bytes.

    >>> from tgraph.runtime.dtypes import float32
    >>> float32, float32.itemsize, float32.is_floating_point
    (tgraph.float32, 4, True)
    """

    name: str
    kind: str
    itemsize: int

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that holds it; that of bfloat16 is of ml_dtypes."""
        if self.name != "bfloat16":
            return np.dtype(self.name)
        import ml_dtypes  # 5 ms, for a type that many programs do without

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found

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


bool_ = DType("bool", "bool", 1)
uint8 = DType("uint8", "uint", 1)
int8 = DType("int8", "int", 1)
int16 = DType("int16", "int", 2)
int32 = DType("int32", "int", 4)
int64 = DType("int64", "int", 8)
uint32 = DType("uint32", "uint", 4)
float16 = DType("float16", "float", 2)
bfloat16 = DType("bfloat16", "float", 2)
float32 = DType("float32", "float", 4)
float64 = DType("float64", "float", 8)

ALL_DTYPES = (
    bool_, uint8, int8, int16, int32, int64, uint32, float16, bfloat16, float32, float64,
)  # fmt: skip

_BY_NAME = {dtype.name: dtype for dtype in ALL_DTYPES}
_BY_NUMPY = {dtype.numpy: dtype for dtype in ALL_DTYPES if dtype is not bfloat16}


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
    if native.name == "bfloat16" and native == bfloat16.numpy:
        _BY_NUMPY[native] = bfloat16
    if native in _BY_NUMPY:
        return _BY_NUMPY[native]
    raise TypeError(
        f"can't convert np.ndarray of type {np.dtype(numpy_dtype)}. The supported types are: "
        + ", ".join(_BY_NAME)
    )
