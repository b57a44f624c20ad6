"""Element types with PyTorch's names, over NumPy's dtypes and ml_dtypes' bfloat16."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .records import record


@record(eq=False)
class DType:
    """An element type. One object per type, so comparison is identity.

    `kind` is one of "bool", "uint", "int", "float", "complex". An element takes `bits` of memory.
    `wider` is the type that it is computed in where that is not its own: `compute` gives either.

    >>> from tgraph.runtime.dtypes import float16, float32
    >>> float32, float32.itemsize, float32.is_floating_point, float16.compute
    (tgraph.float32, 4, True, tgraph.float32)
    """

    name: str
    kind: str
    bits: int
    wider: DType | None = None

    @cached_property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.bits // 8

    @cached_property
    def compute(self) -> DType:
        """What elements are computed in, and rounded once stored: float32 for 16-bit floats."""
        return self.wider or self

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that holds it; that of bfloat16 is of ml_dtypes."""
        if self.name != "bfloat16":
            return np.dtype(self.name)
        import ml_dtypes  # 5 ms, for a type that many programs do without

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found

    @cached_property
    def is_floating_point(self) -> bool:
        return self.kind == "float"

    @cached_property
    def is_half(self) -> bool:
        """True for floats that take 16 bits of memory."""
        return self.kind == "float" and self.bits == 16

    @cached_property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @cached_property
    def is_differentiable(self) -> bool:
        """Whether values can have gradients: those of floats and complex numbers do."""
        return self.kind in ("float", "complex")

    @cached_property
    def is_integral(self) -> bool:
        return self.kind in ("int", "uint")

    @cached_property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float", "complex")

    def to_real(self) -> DType:
        """The dtype of the real parts of complex numbers; a real type itself."""
        return _REAL.get(self, self)

    def to_complex(self) -> DType:
        """The complex dtype whose real parts have this one; TypeError where there is none."""
        if self.is_complex:
            return self
        if self not in _COMPLEX:
            raise TypeError(f"there is no complex dtype with parts of {self}")
        return _COMPLEX[self]

    def __repr__(self) -> str:
        return f"tgraph.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype_named, (self.name,))


bool_ = DType("bool", "bool", 8)
uint8 = DType("uint8", "uint", 8)
int8 = DType("int8", "int", 8)
int16 = DType("int16", "int", 16)
int32 = DType("int32", "int", 32)
int64 = DType("int64", "int", 64)
uint16 = DType("uint16", "uint", 16)
uint32 = DType("uint32", "uint", 32)
uint64 = DType("uint64", "uint", 64)
float32 = DType("float32", "float", 32)
float64 = DType("float64", "float", 64)
float16 = DType("float16", "float", 16, wider=float32)
bfloat16 = DType("bfloat16", "float", 16, wider=float32)
complex64 = DType("complex64", "complex", 64)
complex128 = DType("complex128", "complex", 128)

REAL_DTYPES = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, bfloat16, float32,
    float64,
)  # fmt: skip
"""What generated code computes: complex values are pairs of real ones there."""
ALL_DTYPES = (*REAL_DTYPES, complex64, complex128)

_COMPLEX = {float32: complex64, float64: complex128}
_REAL = {pair: part for part, pair in _COMPLEX.items()}

_BY_NAME = {dtype.name: dtype for dtype in ALL_DTYPES}
_BY_NUMPY = {dtype.numpy: dtype for dtype in ALL_DTYPES if dtype is not bfloat16}


def dtype_named(name: str) -> DType:
    """The DType called `name`, such as "float32"; ValueError if there is none."""
    if name not in _BY_NAME:
        raise ValueError(f"unknown dtype {name!r}; known: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def from_numpy_dtype(numpy_dtype: Any) -> DType:
    """The DType of a NumPy dtype or its name; TypeError for types that tensors cannot hold."""
    found = _BY_NUMPY.get(numpy_dtype) or _BY_NAME.get(numpy_dtype)
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
