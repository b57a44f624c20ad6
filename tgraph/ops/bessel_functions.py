"""Modified Bessel functions of the first kind, of order 0 and 1, also scaled by exp(-|x|).

By Chebyshev's polynomials, of x / 4 - 1 up to 8 and of 16 / x - 1 beyond, as the Cephes library
has them; the coefficients were computed by interpolation of SciPy's functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.operands import as_float, cast
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from .error_functions import chebyshev

_I0_NEAR = (
    0.33839763720473803,
    -0.30468267234319846,
    0.1716209015222087,
    -0.09490109704804754,
    0.04930528423967051,
    -0.02373741480589925,
    0.010546460394594625,
    -0.004324309995050205,
    0.0016394756169407442,
    -0.0005763755745380683,
    0.00018850288509510108,
    -5.754195010017655e-05,
    1.6448448069798088e-05,
    -4.416738357605159e-06,
    1.117387537852288e-06,
    -2.670793843076843e-07,
    6.046994867614508e-08,
    -1.300024885916454e-08,
    2.659821848486185e-09,
    -5.189780351498387e-10,
    9.675592390781925e-11,
    -1.7266576264012606e-11,
    2.9526758022717965e-12,
    -4.838702851093858e-13,
    7.437780550187004e-14,
    -9.944029726633678e-15,
    -5.689893001203927e-16,
    1.3965019616892148e-15,
    -2.0681868915874346e-15,
    1.5519331851367366e-15,
    -2.0412243324179664e-15,
    1.5796887607523655e-15,
    -2.185553325619237e-15,
    1.7069679003611782e-15,
    -2.227979705488841e-15,
)
_I0_FAR = (
    0.40224520550705434,
    0.003369116478255734,
    6.889758346912035e-05,
    2.891370520828562e-06,
    2.0489185887713702e-07,
    2.2666689901373523e-08,
    3.3962319265134326e-09,
    4.940602335847739e-10,
    1.188904888516801e-11,
    -3.149917602737303e-11,
    -1.3216130251113244e-11,
    -1.794169651557442e-12,
    7.1762488424783e-13,
    3.8528499387318277e-13,
    1.5167079062217866e-14,
    -4.14972715688119e-14,
    -1.0024239502986495e-14,
    3.7872930598100095e-15,
    1.0833627901584189e-15,
    -3.4739236576980703e-16,
    -8.743006318923108e-16,
    3.133694021119394e-17,
    -7.780514583865008e-16,
    -7.162729191130042e-18,
    -1.0851534724562013e-15,
    -1.7906822977825105e-18,
    -1.0009914044604233e-15,
    0.0,
    -9.544336647180782e-16,
    0.0,
    -1.0457584619049862e-15,
)
_I1_NEAR = (
    0.12629359322181682,
    -0.17641651835783403,
    0.10264365868984705,
    -0.05294598120809491,
    0.024726449030626405,
    -0.010564084894626048,
    0.0041564229443127,
    -0.0015135724506310404,
    0.0005122859561683162,
    -0.00016176081582561835,
    4.781565107516794e-05,
    -1.3273163655690294e-05,
    3.47025130771028e-06,
    -8.56872026011392e-07,
    2.0032947479367966e-07,
    -4.445059069822193e-08,
    9.38153669660261e-09,
    -1.887249032843969e-09,
    3.625581849623202e-10,
    -6.663405501975258e-11,
    1.173521379278191e-11,
    -1.9830123158616682e-12,
    3.2132763711738883e-13,
    -4.943172607352331e-14,
    6.54134484674123e-15,
    -1.3971958510796055e-16,
    -8.483293432805437e-16,
    8.920443748751592e-16,
    -9.425000462621418e-16,
    8.671634838768634e-16,
    -9.35957660581315e-16,
    8.844115915808613e-16,
    -1.0095099359627317e-15,
    9.434417532919579e-16,
    -1.0213060555993739e-15,
)
_I1_FAR = (
    0.38928811750914,
    -0.00976109749136148,
    -0.00011058893876266544,
    -3.882564808880524e-06,
    -2.5122362386086373e-07,
    -2.631468845693702e-08,
    -3.8353804934866e-09,
    -5.589743435144379e-10,
    -1.8975065246661048e-11,
    3.252602488421343e-11,
    1.4125508110866243e-11,
    2.035639578048818e-12,
    -7.202070481212324e-13,
    -4.0834181913943036e-13,
    -2.123391068710501e-14,
    4.274000508347296e-14,
    9.97051903405302e-15,
    -3.806990565085617e-15,
    -2.5409781805533824e-15,
    3.420203188764595e-16,
    -2.7486973270961535e-16,
    -6.267388042238787e-18,
    -8.478880680000187e-16,
    2.3278869871172638e-17,
    -1.0439677796072036e-15,
    3.40229636578677e-17,
    -9.759218522914683e-16,
    3.760432825343272e-17,
    -9.22201383357993e-16,
    1.2534776084477573e-17,
    -9.696544642492295e-16,
)


def _scaled(size: Tensor, near: Sequence[float], far: Sequence[float]) -> Tensor:
    is_far = e.gt(size, 8)
    found = chebyshev(e.sub(e.mul(e.where(is_far, 8.0, size), 0.25), 1), near)
    large = e.where(is_far, size, 8.0)
    beyond = e.div(chebyshev(e.sub(e.div(16.0, large), 1), far), e.sqrt(large))
    return e.where(is_far, beyond, found)


def _first(x: Tensor, is_scaled: bool) -> Tensor:
    size = e.abs(cast(x, float64))
    found = _scaled(size, _I0_NEAR, _I0_FAR)
    return cast(found if is_scaled else e.mul(found, e.exp(size)), x._type.dtype)


def _second(x: Tensor, is_scaled: bool) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    is_far = e.gt(size, 8)
    found = _scaled(size, _I1_NEAR, _I1_FAR)
    found = e.mul(found, e.where(is_far, e.sgn(wide), wide))
    return cast(found if is_scaled else e.mul(found, e.exp(size)), x._type.dtype)


@public(method=True, inplace=True, out=True)
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    >>> import tgraph as tg
    >>> tg.i0(tg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return _i0(as_float(input, "i0"))


@composite("i0")
@planned
def _i0(x: Tensor) -> Tensor:
    return _first(x, False)


@input_vjp(_i0, saves=(0,))
@planned
def _i0_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, _i1(x))


def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) * i0(x).

    >>> import tgraph as tg
    >>> tg.special.i0e(tg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """
    return _i0e(as_float(input, "i0e"))


@composite("i0e")
@planned
def _i0e(x: Tensor) -> Tensor:
    return _first(x, True)


@input_vjp(_i0e, saves=(0, OUTPUT))
@planned
def _i0e_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(_i1e(x), e.mul(e.sgn(x), out)))


def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1.

    >>> import tgraph as tg
    >>> tg.special.i1(tg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """
    return _i1(as_float(input, "i1"))


@composite("i1")
@planned
def _i1(x: Tensor) -> Tensor:
    return _second(x, False)


@input_vjp(_i1, saves=(0, OUTPUT))
@planned
def _i1_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    """i0(x) - i1(x) / x, and 1/2 at 0."""
    return e.mul(g, e.sub(_i0(x), _over(out, x)))


def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) * i1(x)."""
    return _i1e(as_float(input, "i1e"))


@composite("i1e")
@planned
def _i1e(x: Tensor) -> Tensor:
    return _second(x, True)


@input_vjp(_i1e, saves=(0, OUTPUT))
@planned
def _i1e_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(e.sub(_i0e(x), _over(out, x)), e.mul(e.sgn(x), out)))


def _over(y: Tensor, x: Tensor) -> Tensor:
    zero = e.eq(x, 0)
    return e.where(zero, 0.5, e.div(y, e.where(zero, 1.0, x)))
