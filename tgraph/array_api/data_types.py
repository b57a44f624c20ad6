"""The standard's data types: what they are, and how they go together."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import promotion
from ..core import dtype_info
from ..core.devices import DeviceLike
from ..core.operands import is_scalar, plain_scalar, require_tensor
from ..core.tensor import Tensor
from ..ops import conversion
from ..runtime import dtypes
from ..runtime.dtypes import (
    DType,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..runtime.records import record

bool = dtypes.bool_  # here, as for users, the dtype

KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


@record()
class finfo_object:
    """`bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype` of a float type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@record()
class iinfo_object:
    """`bits`, `max`, `min` and `dtype` of an integer type."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(given: DType | Tensor) -> DType:
    return given._type.dtype if isinstance(given, Tensor) else given


def astype(x: Tensor, dtype: DType, /, *, copy: Any = True, device: DeviceLike = None) -> Tensor:
    """The elements as `dtype`, on `device`; without `copy` the tensor itself where it is so.

    TypeError for complex numbers as real ones; take `real(x)` or `abs(x)`.

    >>> import tgraph as tg
    >>> tg.array_api.astype(tg.tensor([0.0, 2.0]), tg.array_api.bool)
    tensor([False,  True])
    """
    own = require_tensor(x, "astype", "x")._type.dtype
    if own.is_complex and not dtype.is_complex:
        raise TypeError(
            f"astype(): {own} has no values of {dtype}; take real(x), imag(x) or abs(x)"
        )
    return conversion.to(x, dtype=dtype, device=device, copy=copy)


def can_cast(from_: DType | Tensor, to: DType, /) -> Any:
    """Whether values of one dtype (or of a tensor) become those of another by promotion alone.

    >>> from tgraph import array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.int16, xp.int8)
    (True, False)
    """
    source = _dtype_of(from_)
    if source.kind != to.kind and uint64 in (source, to):  # of which there may be no common type
        return promotion.CATEGORY[source.kind] < promotion.CATEGORY[to.kind]
    return promotion.promote_types(source, to) is to


def finfo(type: DType | Tensor, /) -> finfo_object:
    """The range and resolution of a float type, or of the parts of a complex one.

    >>> from tgraph import array_api as xp
    >>> xp.finfo(xp.complex64).dtype, xp.finfo(xp.float32).bits
    (tgraph.float32, 32)
    """
    dtype = _dtype_of(type)
    found = dtype_info.finfo(dtype)
    return finfo_object(
        found.bits, found.eps, found.max, found.min, found.smallest_normal, dtype.to_real()
    )


def iinfo(type: DType | Tensor, /) -> iinfo_object:
    """The range of an integer type.

    >>> from tgraph import array_api as xp
    >>> xp.iinfo(xp.uint64).max
    18446744073709551615
    """
    dtype = _dtype_of(type)
    found = dtype_info.iinfo(dtype)
    return iinfo_object(found.bits, found.max, found.min, dtype)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> Any:
    """Whether `dtype` is of a kind: a dtype, one of the standard's words, or one of several.

    The words are "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" and "numeric".

    >>> from tgraph import array_api as xp
    >>> xp.isdtype(xp.uint8, ("bool", "integral"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if not isinstance(kind, str):
        raise TypeError(f"isdtype(): expected a dtype, a word or a tuple as kind, got {kind!r}")
    if kind not in KINDS:
        raise ValueError(f"isdtype(): unknown kind {kind!r}; known: {', '.join(KINDS)}")
    return dtype in KINDS[kind] or (kind in ("real floating", "numeric") and dtype.is_half)


def result_type(*arrays_and_dtypes: Tensor | DType | complex) -> DType:
    """The dtype to which tensors, dtypes and numbers promote together.

    Numbers count where their kind is above that of all dtypes. ValueError for numbers alone.

    >>> from tgraph import array_api as xp
    >>> xp.result_type(xp.int32, xp.ones(2, dtype=xp.int8), 3)
    tgraph.int32
    """
    numbers = [each for each in arrays_and_dtypes if is_scalar(each)]
    others = [_dtype_of(each) for each in arrays_and_dtypes if not is_scalar(each)]
    if not all(isinstance(each, DType) for each in others):
        raise TypeError(f"result_type(): expected tensors, dtypes and numbers, got {others}")
    if not others:
        raise ValueError("result_type(): expected at least one tensor or dtype")
    kinds = [promotion.scalar_dtype(plain_scalar(each)) for each in numbers]
    return promotion.result_type(others, (), kinds)


__all__ = [
    "astype", "bool", "can_cast", "complex64", "complex128", "finfo", "float32", "float64", "iinfo",
    "int8", "int16", "int32", "int64", "isdtype", "result_type", "uint8", "uint16", "uint32",
    "uint64",
]  # fmt: skip
