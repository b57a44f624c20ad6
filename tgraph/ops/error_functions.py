"""The error function's complement and relatives; the normal distribution's functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.operands import Operand, as_float, as_real_float, cast, promote_float, with_a_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from .special_functions import polynomial

# (1 + 2 * x) * exp(x**2) * erfc(x) for x >= 0, by Chebyshev's polynomials of
# (x - 3.75) / (x + 3.75): Shepherd and Laframboise, "Chebyshev approximation of
# (1 + 2x) exp(x**2) erfc x in 0 <= x < inf" (1981).
_SCALED = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189,
    -0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10,
    -6.318088340886684e-11, 2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13,
    3.25254814814874e-14, 3.3478119482868056e-14, -1.864562880419313e-15,
    -1.2507950530688648e-15, 7.418235256624044e-17, 5.068148904796111e-17,
    -2.2370566594359995e-18, -2.187342944303018e-18,
)  # fmt: skip


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


def _bell(size: Tensor, factor: float, exactly: bool) -> Tensor:
    """exp(factor * size**2); exactly in two parts, the first of whose squares is not rounded."""
    if not exactly:
        return e.exp(e.mul(e.mul(size, size), factor))
    size = e.minimum(size, 64.0)
    coarse = e.mul(e.floor(e.mul(size, 65536.0)), 1 / 65536)
    rest = e.mul(e.sub(size, coarse), e.add(size, coarse))
    return e.mul(e.exp(e.mul(e.mul(coarse, coarse), factor)), e.exp(e.mul(rest, factor)))


@public(method=True, inplace=True, out=True)
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), without cancellation.

    >>> import tgraph as tg
    >>> tg.erfc(tg.tensor([0.0, 3.0]))
    tensor([1.0000e+00, 2.2090e-05])
    """
    return _erfc(as_real_float(input, "erfc"))


@composite("erfc")
@planned
def _erfc(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    tail = e.mul(_scaled_of_positive(size), _bell(size, -1, x._type.dtype is float64))
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
    return _erfcx(as_real_float(input, "erfcx"))


@composite("erfcx")
@planned
def _erfcx(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    found = _scaled_of_positive(size)
    below = e.sub(e.mul(_bell(size, 1, x._type.dtype is float64), 2), found)
    return cast(e.where(e.lt(wide, 0), below, found), x._type.dtype)


@input_vjp(_erfcx, saves=(0, OUTPUT))
@planned
def _erfcx_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(e.mul(e.mul(x, out), 2), 2 / math.sqrt(math.pi)))


# The first guess of erfinv, quotients of polynomials: in x**2 for |x| <= 0.7, else in
# sqrt(-log((1 - |x|) / 2)). Steps of Newton make it exact, those beyond 0.7 of erfc * exp(v**2),
# as erf is nearly 1 there.
_CENTER = (
    (0.886226899, -1.645349621, 0.914624893, -0.140543331),
    (1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801),
)
_TAIL = (
    (-1.970840454, -1.624906493, 3.429567803, 1.641345311),
    (1.0, 3.543889200, 1.637067800),
)


@public(method=True, inplace=True, out=True)
def erfinv(input: Tensor) -> Tensor:
    """The inverse of `erf`: infinite at -1 and 1, NaN beyond.

    >>> import tgraph as tg
    >>> tg.erfinv(tg.erf(tg.tensor([0.5])))
    tensor([0.5000])
    """
    return _erfinv(as_real_float(input, "erfinv"))


@composite("erfinv")
@planned
def _erfinv(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    center, tail = (
        e.div(*(polynomial(z, each) for each in fraction))
        for z, fraction in (
            (e.mul(wide, wide), _CENTER),
            (e.sqrt(e.neg(e.log(e.mul(e.sub(1, size), 0.5)))), _TAIL),
        )
    )
    value = e.where(e.le(size, 0.7), e.mul(wide, center), e.mul(e.sgn(wide), tail))
    for _ in range(3 if x._type.dtype is float64 else 2):  # steps of Newton
        growth = e.exp(e.mul(value, value))
        away = e.mul(e.sub(e.erf(value), wide), growth)
        if x._type.dtype is float64:
            tail = e.sub(e.mul(e.sub(1, size), growth), _scaled_of_positive(e.abs(value)))
            away = e.where(e.le(size, 0.7), away, e.mul(e.sgn(wide), tail))
        value = e.sub(value, e.mul(away, math.sqrt(math.pi) / 2))
    return cast(e.where(e.eq(size, 1), e.mul(wide, math.inf), value), x._type.dtype)


@input_vjp(_erfinv, saves=(OUTPUT,))
@planned
def _erfinv_vjp(g: Tensor, out: Tensor, x: TensorType) -> Tensor:
    return e.mul(g, e.mul(e.exp(e.mul(out, out)), math.sqrt(math.pi) / 2))


# --- the normal distribution ---------------------------------------------------------------------


def ndtr(input: Tensor) -> Tensor:
    """The share of a standard normal distribution below x.

    >>> import tgraph as tg
    >>> tg.special.ndtr(tg.tensor([0.0, -1.0]))
    tensor([0.5000, 0.1587])
    """
    return _ndtr(as_real_float(input, "ndtr"))


@composite("ndtr")
@planned
def _ndtr(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    scaled = _scaled_of_positive(e.mul(size, math.sqrt(0.5)))
    share = e.mul(e.mul(scaled, 0.5), _bell(size, -0.5, x._type.dtype is float64))
    return cast(e.where(e.gt(wide, 0), e.sub(1, share), share), x._type.dtype)


@input_vjp(_ndtr, saves=(0,))
@planned
def _ndtr_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, e.mul(e.exp(e.mul(e.mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi)))


def log_ndtr(input: Tensor) -> Tensor:
    """The logarithm of `ndtr`, which does not vanish far below.

    >>> import tgraph as tg
    >>> tg.special.log_ndtr(tg.tensor([0.0, -30.0]))
    tensor([  -0.6931, -454.3213])
    """
    return _log_ndtr(as_real_float(input, "log_ndtr"))


@composite("log_ndtr")
@planned
def _log_ndtr(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    scaled = _scaled_of_positive(e.mul(size, math.sqrt(0.5)))
    low = e.sub(e.log(e.mul(scaled, 0.5)), e.mul(e.mul(size, size), 0.5))
    high = e.log1p(e.mul(e.mul(scaled, _bell(size, -0.5, x._type.dtype is float64)), -0.5))
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
    return _ndtri(as_real_float(input, "ndtri"))


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
