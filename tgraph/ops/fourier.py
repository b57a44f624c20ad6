"""Discrete Fourier transforms: products with small matrices of roots of unity.

A length that has factors is cut into two (Cooley and Tukey, "An Algorithm for the Machine
Calculation of Complex Fourier Series", 1965), again and again, until the factors are small; a long
prime becomes a convolution of a power of 2 (Bluestein, "A linear filtering approach to the
computation of discrete Fourier transform", 1970). So all of it is what plans compute well, on every
device, and differentiated as ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core.complex_parts import conjugate, part
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.operands import as_float, cast, require_tensor
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.device import Device
from ..runtime.dtypes import DType, complex64, complex128, float32, float64, int64
from . import creation
from . import elementwise as e
from . import movement as m
from .concatenation import cat, flip
from .linalg import matmul

_SMALL = 32
_LONG_PRIME = 1024
NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}
_OTHER_WAY = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


# --- the transform -------------------------------------------------------------------------------


@composite("dft")
@planned
def _dft(x: Tensor, inverse: bool) -> Tensor:
    """Along the last axis, without a factor."""
    return _transformed(x, inverse)


@input_vjp(_dft)
def _dft_vjp(g: Tensor, out: TensorType, x: TensorType, inverse: bool) -> Tensor:
    return _dft(g, inverse=not inverse)


def _transformed(x: Tensor, inverse: bool) -> Tensor:
    size = x._type.shape[-1]
    first = _factor(size)
    if first == size:
        if size > _LONG_PRIME:
            return _by_convolution(x, inverse)
        row = _count(size, x.device)
        return matmul(x, _roots(e.mul(m.unsqueeze(row, -1), row), size, inverse, x._type.dtype))
    rest = size // first
    lead = x._type.shape[:-1]
    rows, columns = _count(first, x.device), _count(rest, x.device)
    matrix = _roots(e.mul(m.unsqueeze(rows, -1), rows), first, inverse, x._type.dtype)
    inner = matmul(matrix, m.reshape(x, (*lead, first, rest)))
    twist = _roots(e.mul(m.unsqueeze(rows, -1), columns), size, inverse, x._type.dtype)
    outer = _transformed(e.mul(inner, twist), inverse)
    return m.reshape(m.transpose(outer, -2, -1), (*lead, size))


def _factor(size: int) -> int:
    """A divisor that is small, else the least; `size` itself where it is small, or prime."""
    if size <= _SMALL:
        return size
    for each in range(_SMALL, 1, -1):
        if size % each == 0:
            return each
    for each in range(_SMALL + 1, math.isqrt(size) + 1):
        if size % each == 0:
            return each
    return size


def _count(size: int, device: Device) -> Tensor:
    return creation.arange(size, dtype=int64, device=device)


def _roots(powers: Tensor, size: int, inverse: bool, dtype: DType) -> Tensor:
    """exp(-2 * pi * i * powers / size), or its conjugate; angles are exact before they are cut."""
    turn = (2 if inverse else -2) * math.pi / size
    angle = e.mul(cast(e.remainder(powers, size), float64), turn)
    parts = (e.where(e.lt(e.abs(each), 1e-12), 0.0, each) for each in (e.cos(angle), e.sin(angle)))
    return apply(p.complex_, *(cast(each, dtype.to_real()) for each in parts))


def _by_convolution(x: Tensor, inverse: bool) -> Tensor:
    """2 * j * k = j**2 + k**2 - (k - j)**2: a product, a convolution, a product."""
    size, dtype = x._type.shape[-1], x._type.dtype
    wide = 1 << (2 * size - 2).bit_length()
    row = _count(size, x.device)
    chirp = _roots(e.mul(row, row), 2 * size, inverse, dtype)
    back = conjugate(chirp)
    middle = creation.zeros(wide - 2 * size + 1, dtype=dtype, device=x.device)
    kernel = cat([back, middle, flip(m.narrow(back, 0, 1, size - 1), 0)])
    given = _fit(e.mul(x, chirp), x.ndim - 1, wide)
    product = e.mul(_transformed(given, False), _transformed(kernel, False))
    found = e.div(m.narrow(_transformed(product, True), -1, 0, size), wide)
    return e.mul(found, chirp)


def _fit(x: Tensor, axis: int, size: int) -> Tensor:
    """Cut, or with zeros behind."""
    own = x._type.shape[axis]
    if own == size:
        return x
    if own > size:
        return m.narrow(x, axis, 0, size)
    shape = (*x._type.shape[:axis], size - own, *x._type.shape[axis + 1 :])
    return cat([x, creation.zeros(shape, dtype=x._type.dtype, device=x.device)], axis)


# --- what all forms share ------------------------------------------------------------------------


def norm_of(norm: str | None) -> str:
    """The name of a way to scale; RuntimeError for an unknown one."""
    if norm not in NORMS:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return NORMS[norm]


def other_way(norm: str | None) -> str:
    """How a transform scales that is computed as its inverse."""
    return _OTHER_WAY[norm_of(norm)]


def as_complex(name: str, x: Tensor) -> Tensor:
    """Floats and whole numbers as complex ones."""
    x = as_float(require_tensor(x, name), name)
    kinds = {float32: complex64, float64: complex128}
    if x._type.dtype.is_complex:
        return x
    if x._type.dtype not in kinds:
        raise RuntimeError(f"Unsupported dtype {x._type.dtype.name}: {name} takes float32, float64")
    return cast(x, kinds[x._type.dtype])


def as_real(name: str, x: Tensor) -> Tensor:
    """Floats, whole numbers as floats; RuntimeError for complex numbers."""
    if require_tensor(x, name)._type.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x._type.dtype.name}")
    return as_float(x, name)


def check_size(size: int) -> int:
    """A number of data points."""
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _axis(x: Tensor, dim: int) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return normalize_axis(dim, x.ndim)


def along(x: Tensor, size: int | None, dim: int, norm: str, inverse: bool) -> Tensor:
    """The transform of complex numbers along one dimension, of `size` points."""
    axis = _axis(x, dim)
    size = check_size(x._type.shape[axis] if size is None else size)
    moved = m.movedim(_fit(x, axis, size), axis, -1)
    found = m.movedim(_dft(moved, inverse=inverse), -1, axis)
    if norm == "ortho":
        return e.mul(found, 1 / math.sqrt(size))
    return e.mul(found, 1 / size) if (norm == "backward") is inverse else found


def half(x: Tensor, dim: int) -> Tensor:
    """The first half of a spectrum, which says all of that of real numbers."""
    axis = _axis(x, dim)
    return m.clone(m.narrow(x, axis, 0, x._type.shape[axis] // 2 + 1))


def to_real(x: Tensor, size: int | None, dim: int, norm: str) -> Tensor:
    """The real numbers, `size` of them, of half a spectrum."""
    axis = _axis(x, dim)
    size = check_size(2 * (x._type.shape[axis] - 1) if size is None else size)
    first = _fit(x, axis, size // 2 + 1)
    rest = conjugate(flip(m.narrow(first, axis, 1, (size - 1) // 2), axis))
    return m.clone(part(along(cat([first, rest], axis), None, axis, norm, True), 0))


def sizes_and_dims(
    x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None
) -> list[tuple[int | None, int]]:
    """Of each dimension that is transformed how many points, and which it is."""
    if isinstance(s, int):
        s = [s]
    if isinstance(dim, int):
        dim = [dim]
    if dim is None:
        count = x.ndim if s is None else len(s)
        if count > x.ndim:
            raise RuntimeError(
                f"Got shape with {count} values but input tensor only has {x.ndim} dimensions."
            )
        dims = list(range(x.ndim - count, x.ndim))
    else:
        dims = [_axis(x, each) for each in dim]
    if len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is None:
        return [(None, each) for each in dims]
    if len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    return [(None if size == -1 else size, each) for size, each in zip(s, dims, strict=True)]


def some_sizes_and_dims(
    name: str, x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None
) -> list[tuple[int | None, int]]:
    """`sizes_and_dims`, at least one; RuntimeError where there is none."""
    found = sizes_and_dims(x, s, dim)
    if not found:
        raise RuntimeError(f"{name} must transform at least one axis")
    return found
