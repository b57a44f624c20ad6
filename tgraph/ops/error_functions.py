"""The error function's complement and relatives; the normal distribution's functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.operands import Operand, as_float, cast, promote_float, with_a_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from .special_functions import erfinv

# (1 + 2 * x) * exp(x**2) * erfc(x) for x >= 0, by Chebyshev's polynomials of
# (x - 3.75) / (x + 3.75): Shepherd and Laframboise, "Chebyshev approximation of
# (1 + 2x) exp(x**2) erfc x in 0 <= x < inf" (1981).
_SCALED = (
    1.177578934567402,
    -0.00459005458064645,
    -0.0842491333665177,
    0.05920993999819182,
    -0.026658668435305642,
    0.009074997670705097,
    -0.002413163540417689,
    0.0004907758365258584,
    -6.916973302555101e-05,
    4.1390279860266885e-06,
    7.740383054603557e-07,
    -2.188640105013796e-07,
    1.0764998412667975e-08,
    4.521959709359601e-09,
    -7.754408007533903e-10,
    -6.31809907580544e-11,
    2.868650349246014e-11,
    1.9453257725152727e-13,
    -9.665553098059357e-13,
    3.244094252507084e-14,
    3.3013421550627057e-14,
    -1.970680138706405e-15,
    -2.1473660226847046e-15,
    -3.1106400983053336e-17,
    -1.2871948435672166e-15,
    -7.827503956065359e-17,
    -1.112896018033203e-15,
    -1.34679203422892e-16,
    -1.3387756398178369e-15,
    -7.52803058149909e-17,
    -1.2997590818862426e-15,
    -7.619490967477702e-17,
    -1.2807241701376324e-15,
    -2.7256583549870968e-17,
    -1.2686001115453134e-15,
    -3.870225884148726e-17,
    -1.4663164216018345e-15,
    -8.222719083794526e-17,
    -1.6011268428206316e-15,
    -1.3029457898272398e-16,
    -2.303194314017198e-16,
)


def chebyshev(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """A sum of Chebyshev's polynomials of the first kind, by Clenshaw's recurrence."""
    ahead: Any = 0.0
    behind: Any = 0.0
    twice = e.mul(x, 2)
    for each in reversed(coefficients[1:]):
        ahead, behind = e.add(e.sub(e.mul(twice, ahead), behind), each), ahead
    return e.add(e.sub(e.mul(x, ahead), behind), coefficients[0])


def _scaled_of_positive(x: Tensor) -> Tensor:
    """exp(x**2) * erfc(x) for float64 from 0 on."""
    far = e.isinf(x)
    x = e.where(far, 1.0, x)
    place = e.div(e.sub(x, 3.75), e.add(x, 3.75))
    return e.where(far, 0.0, e.div(chebyshev(place, _SCALED), e.add(e.mul(x, 2), 1)))


@public(method=True, inplace=True, out=True)
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), without cancellation.

    >>> import tgraph as tg
    >>> tg.erfc(tg.tensor([0.0, 3.0]))
    tensor([1.0000e+00, 2.2090e-05])
    """
    return _erfc(as_float(input, "erfc"))


@composite("erfc")
@planned
def _erfc(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    tail = e.mul(_scaled_of_positive(size), e.exp(e.neg(e.mul(size, size))))
    far = e.where(e.lt(wide, 0), e.sub(2, tail), tail)
    return cast(e.where(e.lt(size, 0.5), e.sub(1, e.erf(wide)), far), x._type.dtype)


@input_vjp(_erfc, saves=(0,))
@planned
def _erfc_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, e.mul(e.exp(e.neg(e.mul(x, x))), -2 / math.sqrt(math.pi)))


def erfcx(input: Tensor) -> Tensor:
    """exp(x**2) * erfc(x), which neither overflows nor vanishes for large x.

    >>> import tgraph as tg
    >>> tg.special.erfcx(tg.tensor([0.0, 30.0]))
    tensor([1.0000, 0.0188])
    """
    return _erfcx(as_float(input, "erfcx"))


@composite("erfcx")
@planned
def _erfcx(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    found = _scaled_of_positive(e.abs(wide))
    below = e.sub(e.mul(e.exp(e.mul(wide, wide)), 2), found)
    return cast(e.where(e.lt(wide, 0), below, found), x._type.dtype)


@input_vjp(_erfcx, saves=(0, OUTPUT))
@planned
def _erfcx_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(e.mul(e.mul(x, out), 2), 2 / math.sqrt(math.pi)))


# --- the normal distribution ---------------------------------------------------------------------


def ndtr(input: Tensor) -> Tensor:
    """The share of a standard normal distribution below x.

    >>> import tgraph as tg
    >>> tg.special.ndtr(tg.tensor([0.0, -1.0]))
    tensor([0.5000, 0.1587])
    """
    return e.mul(erfc(e.mul(as_float(input, "ndtr"), -math.sqrt(0.5))), 0.5)


def log_ndtr(input: Tensor) -> Tensor:
    """The logarithm of `ndtr`, which does not vanish far below.

    >>> import tgraph as tg
    >>> tg.special.log_ndtr(tg.tensor([0.0, -30.0]))
    tensor([  -0.6931, -454.3213])
    """
    return _log_ndtr(as_float(input, "log_ndtr"))


@composite("log_ndtr")
@planned
def _log_ndtr(x: Tensor) -> Tensor:
    wide = e.mul(cast(x, float64), math.sqrt(0.5))
    size = e.abs(wide)
    scaled = _scaled_of_positive(size)
    square = e.mul(size, size)
    low = e.sub(e.log(e.mul(scaled, 0.5)), square)
    high = e.log1p(e.mul(e.mul(scaled, e.exp(e.neg(square))), -0.5))
    return cast(e.where(e.lt(wide, 0), low, high), x._type.dtype)


@input_vjp(_log_ndtr, saves=(0,))
@planned
def _log_ndtr_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    """sqrt(2 / pi) / erfcx(-x / sqrt(2))."""
    slope = e.div(math.sqrt(2 / math.pi), _erfcx(e.mul(x, -math.sqrt(0.5))))
    return e.mul(g, slope)


def ndtri(input: Tensor) -> Tensor:
    """The inverse of `ndtr`: infinite at 0 and 1, NaN beyond.

    >>> import tgraph as tg
    >>> tg.special.ndtri(tg.tensor([0.5, 0.1587]))
    tensor([ 0.0000, -0.9998])
    """
    return _ndtri(as_float(input, "ndtri"))


@composite("ndtri")
@planned
def _ndtri(x: Tensor) -> Tensor:
    """Newton's steps for the logarithm of the smaller share, from its leading terms."""
    wide = cast(x, float64)
    share = e.minimum(wide, e.sub(1, wide))
    inside = e.gt(share, 0)
    share = e.where(inside, share, 0.25)
    aim = e.log(share)
    root = e.sqrt(e.mul(aim, -2))
    top = e.add(e.mul(e.add(e.mul(root, 0.010328), 0.802853), root), 2.515517)
    low = e.add(e.mul(e.add(e.mul(root, 0.001308), 0.189269), root), 1.432788)
    low = e.add(e.mul(low, root), 1)
    value = e.sub(root, e.div(top, low))  # Abramowitz and Stegun, 26.2.23
    for _ in range(3):
        part = e.maximum(e.mul(value, math.sqrt(0.5)), 0.0)
        scaled = _scaled_of_positive(part)
        off = e.sub(e.sub(e.log(e.mul(scaled, 0.5)), e.mul(part, part)), aim)
        value = e.add(e.mul(part, math.sqrt(2)), e.mul(off, e.mul(scaled, math.sqrt(math.pi / 2))))
    value = e.where(e.lt(wide, 0.5), e.neg(value), value)
    middle = e.mul(erfinv(e.sub(e.mul(wide, 2), 1)), math.sqrt(2))
    value = e.where(e.gt(share, 0.1), middle, value)
    edge = e.where(e.eq(wide, 0), -math.inf, e.where(e.eq(wide, 1), math.inf, math.nan))
    return cast(e.where(inside, value, edge), x._type.dtype)


@input_vjp(_ndtri, saves=(OUTPUT,))
@planned
def _ndtri_vjp(g: Tensor, out: Tensor, x: TensorType) -> Tensor:
    return e.mul(g, e.mul(e.exp(e.mul(e.mul(out, out), 0.5)), math.sqrt(2 * math.pi)))


# --- entropy -------------------------------------------------------------------------------------


def entr(input: Tensor) -> Tensor:
    """-x * log(x): 0 at 0, -inf below.

    >>> import tgraph as tg
    >>> tg.special.entr(tg.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.3466, -0.0000])
    """
    return _entr(as_float(input, "entr"))


@composite("entr")
@planned
def _entr(x: Tensor) -> Tensor:
    inside = e.neg(e.mul(x, e.log(x)))
    return e.where(e.gt(x, 0), inside, e.where(e.eq(x, 0), 0.0, e.where(e.isnan(x), x, -math.inf)))


@input_vjp(_entr, saves=(0,))
@planned
def _entr_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(e.neg(e.log(x)), 1))


def xlog1py(input: Operand, other: Operand) -> Tensor:
    """`input * log1p(other)`; 0 where `input` is 0, unless `other` is NaN.

    >>> import tgraph as tg
    >>> tg.special.xlog1py(tg.tensor([0.0, 2.0]), tg.tensor([-1.0, 0.0]))
    tensor([0., 0.])
    """
    return _xlog1py(*promote_float("xlog1py", *with_a_tensor("xlog1py", input, other)))


@composite("xlog1py")
@planned
def _xlog1py(x: Tensor, y: Tensor) -> Tensor:
    nothing = e.logical_and(e.eq(x, 0), e.logical_not(e.isnan(y)))
    return e.where(nothing, 0, e.mul(x, e.log1p(y)))


@input_vjp(_xlog1py, 0, saves=(0, 1))
@planned
def _xlog1py_x(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.where(e.logical_and(e.eq(x, 0), e.le(y, -1)), 0, e.mul(g, e.log1p(y)))


@input_vjp(_xlog1py, 1, saves=(0, 1))
@planned
def _xlog1py_y(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.div(e.mul(g, x), e.add(y, 1))
