"""Complex tensors and their real and imaginary parts, by primitives."""

from __future__ import annotations

from ..compiler.ir import primitives as p
from .dispatch import apply
from .tensor import Tensor


def part(x: Tensor, at: int) -> Tensor:
    """A view of the real parts of complex numbers (0), or of the imaginary ones (1)."""
    return one_of_pairs(apply(p.view_as_real, x), at)


def one_of_pairs(pairs: Tensor, at: int) -> Tensor:
    """A view of the first (0) or the second (1) elements along the last axis, which has two."""
    *lead, _ = shape = pairs._type.shape
    starts, stops = (*(0 for _ in lead), at), (*lead, at + 1)
    chosen = apply(p.slice_, pairs, starts=starts, stops=stops, steps=(1,) * len(shape))
    return apply(p.reshape, chosen, shape=tuple(lead))


def of_pairs(pairs: Tensor) -> Tensor:
    """Complex numbers whose parts are pairs along the last axis, in memory of their own."""
    return apply(p.complex_, one_of_pairs(pairs, 0), one_of_pairs(pairs, 1))


def conjugate(x: Tensor) -> Tensor:
    """The conjugates of complex numbers; real ones as they are."""
    return apply(p.conj, x) if x._type.dtype.is_complex else x
