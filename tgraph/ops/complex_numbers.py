"""Complex numbers: made of their parts or of polar coordinates, and taken apart."""

from __future__ import annotations

import math

from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate, part
from ..core.dispatch import apply
from ..core.eager_context import constant
from ..core.inplace import copy_
from ..core.operands import Scalar, as_float, on_device, require_tensor, together
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor, strides_of
from ..runtime.dtypes import float32, float64
from . import elementwise as e


@public(name="complex", out="exact")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """`real + 1j * imag` of two tensors of float32 or float64, which broadcast.

    >>> import tgraph as tg
    >>> tg.complex(tg.tensor([1.0, 2.0]), tg.tensor([0.5, -1.0]))
    tensor([1.+0.5000j, 2.-1.0000j])
    """
    return apply(p.complex_, *_two_floats(real, imag, "complex", "imag"))


def _two_floats(a: Tensor, b: Tensor, operation: str, name: str) -> list[Tensor]:
    x, y = require_tensor(a, operation), require_tensor(b, operation, name)
    if x._type.dtype not in (float32, float64):
        raise RuntimeError(
            f"{operation}(): expected both inputs to be float32 or float64 tensors, but got "
            f"{x._type.dtype} and {y._type.dtype}"
        )
    if x._type.dtype is not y._type.dtype:
        raise RuntimeError(
            f"{operation}(): expected object of scalar type {x._type.dtype} but got scalar type "
            f"{y._type.dtype} for second argument"
        )
    return together(x, y)


@public(out="exact")
@planned
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of given absolute values and angles in radians.

    >>> import tgraph as tg
    >>> tg.polar(tg.tensor([1.0, 2.0]), tg.tensor([0.0, 3.141592653589793])).real
    tensor([ 1., -2.])
    """
    size, turn = _two_floats(abs, angle, "polar", "angle")
    return apply(p.complex_, e.mul(size, e.cos(turn)), e.mul(size, e.sin(turn)))


@public()
def real(input: Tensor) -> Tensor:
    """The real parts, in the same memory; a real tensor itself.

    >>> import tgraph as tg
    >>> tg.real(tg.tensor([1 + 2j, 3 - 1j]))
    tensor([1., 3.])
    """
    return part(input, 0) if require_tensor(input, "real")._type.dtype.is_complex else input


@public()
def imag(input: Tensor) -> Tensor:
    """The imaginary parts of a complex tensor, in the same memory."""
    if not require_tensor(input, "imag")._type.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return part(input, 1)


def set_real(self: Tensor, value: Tensor | Scalar) -> None:
    """Assignment to `.real`."""
    copy_(real(self), value)


def set_imag(self: Tensor, value: Tensor | Scalar) -> None:
    """Assignment to `.imag`."""
    copy_(imag(self), value)


@public(method=True)
def conj(input: Tensor) -> Tensor:
    """The conjugates, in memory of their own; a real tensor itself.

    >>> import tgraph as tg
    >>> tg.tensor([1 + 2j]).conj()
    tensor([1.-2.j])
    """
    return conjugate(require_tensor(input, "conj"))


@public()
def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor of shape [...] as a real one of shape [..., 2], in the same memory.

    >>> import tgraph as tg
    >>> tg.view_as_real(tg.tensor([1 + 2j, 3 - 1j]))
    tensor([[ 1.,  2.],
            [ 3., -1.]])
    """
    if not require_tensor(input, "view_as_real")._type.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return apply(p.view_as_real, input)


@public()
def view_as_complex(input: Tensor) -> Tensor:
    """A tensor of float32 or float64 of shape [..., 2] as a complex one, in the same memory.

    RuntimeError where pairs do not lie side by side, or apart by no multiple of a pair.

    >>> import tgraph as tg
    >>> tg.view_as_complex(tg.tensor([[1.0, 2.0], [3.0, -1.0]]))
    tensor([1.+2.j, 3.-1.j])
    """
    shape, dtype, _ = require_tensor(input, "view_as_complex")._type
    if dtype not in (float32, float64):
        raise RuntimeError(
            f"view_as_complex is only supported for float32 and float64 tensors, but got a tensor "
            f"of {dtype}"
        )
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    *strides, last = strides_of(input)
    if last != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % 2 for stride in strides):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return apply(p.view_as_complex, input)


@public(method=True, out=True)
def angle(input: Tensor) -> Tensor:
    """The angle in radians, between -pi and pi; of a real number 0, or pi where it is negative.

    >>> import tgraph as tg
    >>> tg.angle(tg.tensor([1j, -1j]))
    tensor([ 1.5708, -1.5708])
    """
    x = as_float(input, "angle")
    if x._type.dtype.is_complex:
        return e.atan2(part(x, 1), part(x, 0))
    side = e.where(e.lt(x, 0), constant(math.pi, x._type.dtype, x._type.device), 0.0)
    return e.where(e.isnan(x), x, side)


@public(method=True, out="exact")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors, of which the first is conjugated."""
    return conj(input).dot(on_device(other, input._type.device))


@public()
def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex numbers."""
    return input._type.dtype.is_complex
