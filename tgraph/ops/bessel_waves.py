"""Bessel functions of the first and second kind, of order 0 and 1, and the spherical one.

Up to 8 by Chebyshev's polynomials of x**2 / 32 - 1; of the second kind beside their logarithm.
Beyond, as waves whose two parts are such polynomials of 128 / x**2 - 1 (Abramowitz and Stegun,
9.2.5 to 9.2.10). The coefficients were computed by interpolation of the functions in 40 digits.
They agree with SciPy's to 1e-15, where PyTorch's are wrong in the seventh digit around 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.operands import as_float, as_real_float, cast
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from .error_functions import chebyshev

_J0_NEAR = (
    0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977,
    0.15806710233209725, -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504,
    3.246032882100508e-05, -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09,
    7.848696314479465e-11, -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16,
    1.2218515873961411e-17,
)  # fmt: skip
_J1_NEAR = (
    0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791,
    0.022213639654966037, -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05,
    1.9858774049915165e-06, -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10,
    3.160154580348003e-12, -7.221755239651773e-14, 1.4232144003513942e-15,
    -2.4441972916190464e-17, 3.6912682997929334e-19,
)  # fmt: skip
_Y0_NEAR = (
    -0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663,
    -0.17730201278114358, 0.04719668959576339, -0.007287962479552079, 0.0007531135932577742,
    -5.632079141056987e-05, 3.206532537654801e-06, -1.44072332740187e-07, 5.248794787330516e-09,
    -1.5837552541812015e-10, 4.02633081830612e-12, -8.747341203310769e-14, 1.6434898714919468e-15,
    -2.6977881152566837e-17, 3.9032584173475982e-19,
)  # fmt: skip
_Y1_NEAR = (
    0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346,
    -0.028328123944594365, 0.005289897544167113, -0.0006414551451326356, 5.505982873338744e-05,
    -3.53808001868935e-06, 1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10,
    -6.4651518414115946e-12, 1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17,
    -8.224911372021585e-19,
)  # fmt: skip
_P0 = (
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16,
    -1.0011513723467786e-16, 1.6305919233744186e-17, -2.880866169482871e-18,
)  # fmt: skip
_Q0 = (
    -0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07,
    -5.817532749493056e-09, 3.376097523734991e-10, -2.565397936797308e-11, 2.404916100281365e-12,
    -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
    -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886516e-18,
    1.0473158973776097e-18, -2.336930172211422e-19,
)  # fmt: skip
_P1 = (
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
    -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
    -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16,
    1.0667689114335412e-16, -1.7312313216116335e-17, 3.0492991197665872e-18,
)  # fmt: skip
_Q1 = (
    0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07,
    6.583354662120443e-09, -3.749090950541556e-10, 2.8121750359748866e-11, -2.61145253946232e-12,
    2.8774212663332235e-13, -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16,
    1.4141084390211833e-16, -2.626761589838529e-17, 5.2192649196714085e-18,
    -1.101261718787959e-18,
)  # fmt: skip


# --- parts ---------------------------------------------------------------------------------------


def _near(size: Tensor, coefficients: Sequence[float]) -> Tensor:
    inside = e.minimum(size, 8.0)
    return chebyshev(e.sub(e.mul(e.mul(inside, inside), 1 / 32), 1), coefficients)


def _far(size: Tensor, order: int, first: bool) -> Tensor:
    """The wave beyond 8, of the first or second kind; 0 at infinity."""
    large = e.maximum(size, 8.0)
    inverse = e.reciprocal(large)
    place = e.sub(e.mul(e.mul(inverse, inverse), 128), 1)
    even = chebyshev(place, (_P0, _P1)[order])
    odd = e.mul(chebyshev(place, (_Q0, _Q1)[order]), inverse)
    angle = e.where(e.isinf(large), 0.0, large)
    # Of the angle less pi / 4 or 3 / 4 * pi, times sqrt(2), from those of the angle itself: the
    # difference would be rounded, which is much where the angle is large.
    cosine, sine = e.cos(angle), e.sin(angle)
    if order:
        cosine, sine = e.sub(sine, cosine), e.neg(e.add(sine, cosine))
    else:
        cosine, sine = e.add(cosine, sine), e.sub(sine, cosine)
    if first:
        wave = e.sub(e.mul(even, cosine), e.mul(odd, sine))
    else:
        wave = e.add(e.mul(even, sine), e.mul(odd, cosine))
    return e.mul(wave, e.sqrt(e.mul(inverse, 1 / math.pi)))


def _first_kind(x: Tensor, order: int) -> Tensor:
    """Of float64."""
    size = e.abs(x)
    near, far = _near(size, (_J0_NEAR, _J1_NEAR)[order]), _far(size, order, True)
    if order:
        near, far = e.mul(near, e.where(e.isinf(x), 0.0, x)), e.mul(far, e.sgn(x))
    return e.where(e.gt(size, 8), far, near)


def _second_kind(x: Tensor, order: int) -> Tensor:
    positive = e.where(e.gt(x, 0), x, 1.0)
    small = e.minimum(positive, 8.0)
    beside = e.mul(e.log(small), _first_kind(small, order))
    near = _near(small, (_Y0_NEAR, _Y1_NEAR)[order])
    if order:
        near, beside = e.mul(near, small), e.sub(beside, e.reciprocal(small))
    near = e.add(near, e.mul(beside, 2 / math.pi))
    found = e.where(e.gt(positive, 8), _far(positive, order, False), near)
    edge = e.where(e.eq(x, 0), -math.inf, math.nan)
    return e.where(e.gt(x, 0), found, edge)


# --- the first kind ------------------------------------------------------------------------------


def bessel_j0(input: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 0.

    >>> import tgraph as tg
    >>> tg.special.bessel_j0(tg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652])
    """
    return _j0(as_real_float(input, "bessel_j0"))


@composite("bessel_j0")
@planned
def _j0(x: Tensor) -> Tensor:
    return cast(_first_kind(cast(x, float64), 0), x._type.dtype)


@input_vjp(_j0, saves=(0,))
@planned
def _j0_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.neg(e.mul(g, _j1(x)))


def bessel_j1(input: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 1.

    >>> import tgraph as tg
    >>> tg.special.bessel_j1(tg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.4401])
    """
    return _j1(as_real_float(input, "bessel_j1"))


@composite("bessel_j1")
@planned
def _j1(x: Tensor) -> Tensor:
    return cast(_first_kind(cast(x, float64), 1), x._type.dtype)


@input_vjp(_j1, saves=(0, OUTPUT))
@planned
def _j1_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    """j0(x) - j1(x) / x, and 1/2 at 0."""
    zero = e.eq(x, 0)
    ratio = e.where(zero, 0.5, e.div(out, e.where(zero, 1.0, x)))
    return e.mul(g, e.sub(_j0(x), ratio))


def spherical_bessel_j0(input: Tensor) -> Tensor:
    """sin(x) / x, and 1 at 0.

    >>> import tgraph as tg
    >>> tg.special.spherical_bessel_j0(tg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """
    return _spherical(as_float(input, "spherical_bessel_j0"))


@composite("spherical_bessel_j0")
@planned
def _spherical(x: Tensor) -> Tensor:
    zero, far = e.eq(x, 0), e.isinf(x)
    some = e.where(e.logical_or(zero, far), 1.0, x)
    return e.where(far, 0.0, e.where(zero, 1.0, e.div(e.sin(some), some)))


@input_vjp(_spherical, saves=(0, OUTPUT))
@planned
def _spherical_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    zero = e.eq(x, 0)
    return e.where(zero, 0.0, e.mul(g, e.div(e.sub(e.cos(x), out), e.where(zero, 1.0, x))))


# --- the second kind -----------------------------------------------------------------------------


def bessel_y0(input: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 0: -inf at 0, NaN below.

    >>> import tgraph as tg
    >>> tg.special.bessel_y0(tg.tensor([1.0, 2.0]))
    tensor([0.0883, 0.5104])
    """
    return _y0(as_real_float(input, "bessel_y0"))


@composite("bessel_y0")
@planned
def _y0(x: Tensor) -> Tensor:
    return cast(_second_kind(cast(x, float64), 0), x._type.dtype)


@input_vjp(_y0, saves=(0,))
@planned
def _y0_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.neg(e.mul(g, _y1(x)))


def bessel_y1(input: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 1: -inf at 0, NaN below.

    >>> import tgraph as tg
    >>> tg.special.bessel_y1(tg.tensor([1.0, 2.0]))
    tensor([-0.7812, -0.1070])
    """
    return _y1(as_real_float(input, "bessel_y1"))


@composite("bessel_y1")
@planned
def _y1(x: Tensor) -> Tensor:
    return cast(_second_kind(cast(x, float64), 1), x._type.dtype)


@input_vjp(_y1, saves=(0, OUTPUT))
@planned
def _y1_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(_y0(x), e.div(out, x)))
