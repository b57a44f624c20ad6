"""Modified Bessel functions of the first kind, of order 0 and 1, also scaled by exp(-|x|).

By Chebyshev's polynomials, of x / 4 - 1 up to 8 and of 16 / x - 1 beyond, as the Cephes library
has them; `tools/fit_chebyshev.py` prints the coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.operands import as_real_float, cast
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from .error_functions import chebyshev

_I0_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165,
    -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06,
    1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08,
    -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15,
    -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18,
    5.669178006921496e-19,
)  # fmt: skip
_I0_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13,
    1.54008621752141e-14, -4.150569347287222e-14, -9.554846698828307e-15,
    3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17,
    -4.830504485944182e-18, -7.233180487874754e-18, 9.921475412173699e-19,
    1.193650890845982e-18,
)  # fmt: skip
_I1_NEAR = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05,
    -1.3273163656039436e-05, 3.4702513081376785e-06, -8.568720264695455e-07,
    2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13,
    -5.042185504727912e-14, 7.600684294735408e-15, -1.1055969477353862e-15,
    1.5536319577362005e-16, -2.111421214358166e-17, 2.7779141127610464e-18,
    -3.541581772542136e-19, 4.379302756655071e-20,
)  # fmt: skip
_I1_FAR = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09,
    -5.589743462196584e-10, -1.8974958123505413e-11, 3.2526035830154884e-11,
    1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13,
    -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15,
    3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17,
    -4.6503053684893586e-17, 4.414348323071708e-18, 7.517296310842105e-18,
    -9.314178867326884e-19, -1.242193275194891e-18,
)  # fmt: skip


def _scaled(size: Tensor, near: Sequence[float], far: Sequence[float]) -> Tensor:
    is_far = e.gt(size, 8)
    found = chebyshev(e.sub(e.mul(e.where(is_far, 8.0, size), 0.25), 1), near)
    large = e.where(is_far, size, 8.0)
    beyond = e.div(chebyshev(e.sub(e.div(16.0, large), 1), far), e.sqrt(large))
    return e.where(is_far, beyond, found)


def _grown(found: Tensor, size: Tensor) -> Tensor:
    """Times exp(size), which overflows earlier than the product."""
    half = e.exp(e.mul(size, 0.5))
    return e.mul(e.mul(found, half), half)


def _first(x: Tensor, is_scaled: bool) -> Tensor:
    size = e.abs(cast(x, float64))
    found = _scaled(size, _I0_NEAR, _I0_FAR)
    return cast(found if is_scaled else _grown(found, size), x._type.dtype)


def _second(x: Tensor, is_scaled: bool) -> Tensor:
    wide = cast(x, float64)
    size = e.abs(wide)
    is_far = e.gt(size, 8)
    found = _scaled(size, _I1_NEAR, _I1_FAR)
    found = e.mul(found, e.where(is_far, e.sgn(wide), wide))
    return cast(found if is_scaled else _grown(found, size), x._type.dtype)


@public(method=True, inplace=True, out=True)
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    >>> import tgraph as tg
    >>> tg.i0(tg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return _i0(as_real_float(input, "i0"))


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
    return _i0e(as_real_float(input, "i0e"))


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
    return _i1(as_real_float(input, "i1"))


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
    return _i1e(as_real_float(input, "i1e"))


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
