"""Modified Bessel functions of the second kind, of order 0 and 1, and Airy's function.

By Chebyshev's polynomials, whose coefficients were computed by interpolation of the functions in 40
digits: beside a logarithm up to 2, times what falls off beyond (Abramowitz and Stegun, 9.6.13 and
9.7.2; 10.4.59 and 10.4.60 for Airy's).
"""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.operands import as_real_float, cast
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from .error_functions import chebyshev

_K0_NEAR = (
    -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926,
    2.286212103119452e-05, 2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11,
    4.2598161427910826e-14, 1.3744654358807508e-16, 3.5708965285083736e-19,
)  # fmt: skip
_K1_NEAR = (
    0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864,
    -0.0001730288957513052, -2.4334061415659684e-06, -2.213387630734726e-08,
    -1.4114883926335278e-10, -6.666901694199329e-13, -2.427449850519366e-15,
    -7.023863479386288e-18,
)  # fmt: skip
_K0_FAR = (
    1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802,
    1.39498137188765e-05, -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08,
    8.574034017414225e-09, -1.6975345093890614e-09, 3.5773972814003283e-10,
    -7.957489244477396e-11, 1.8559491149549264e-11, -4.514597883374519e-12,
    1.1403405882073441e-12, -2.9800969231481784e-13, 8.032890775068375e-14,
    -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15,
    5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17,
)  # fmt: skip
_K1_FAR = (
    1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162,
    -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07,
    5.7410841254500495e-08, -1.0345762465678097e-08, 2.0150497551970347e-09,
    -4.1903547593419254e-10, 9.218315187605315e-11, -2.129967838427791e-11, 5.139639673482343e-12,
    -1.2891739609498229e-12, 3.348419666052243e-13, -8.976705182010146e-14,
    2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15,
    -6.057047270643018e-16, 1.8380935752430455e-16, -5.689462849193648e-17,
)  # fmt: skip
_AIRY_MIDDLE = (
    0.10402246716847544, 0.06444867039344003, -0.11123841850750431, -0.2098152201801173,
    0.24130696134104257, -0.023637236494278183, -0.0788569574046253, 0.04252688714794434,
    0.0002444813054748775, -0.008024480361174324, 0.002800360519190255, 0.000166200453433493,
    -0.0003865853641193655, 9.669532373945356e-05, 9.556605084663184e-06, -1.0878420397349373e-05,
    2.0496029617242283e-06, 2.741919480630902e-07, -2.0066795396366864e-07,
    2.9244967944637544e-08, 4.9352461646282084e-09, -2.6124879438625483e-09,
    2.982707550801404e-10, 6.17949029731889e-11, -2.5274842797939168e-11, 2.2654739847960757e-12,
    5.727091960959942e-13, -1.8876962157771884e-13, 1.3176985924249449e-14, 4.099081304581728e-15,
    -1.1207919680228624e-15, 5.969217901533855e-17, 2.3377064100403853e-17,
    -5.414726380679242e-18,
)  # fmt: skip
_AIRY_RIGHT = (
    0.9866337147158044, -0.012766830256082632, 0.0005537722535274219, -4.101424803889175e-05,
    4.0883724210728214e-06, -4.969507813098104e-07, 6.986582052190016e-08,
    -1.0998283546765958e-08, 1.897088096618047e-09, -3.5308797457603726e-10,
    7.010830962317011e-11, -1.47217541686444e-11, 3.246913515636614e-12, -7.480015159540821e-13,
    1.7917900253009824e-13, -4.446175609787159e-14, 1.1392506875803452e-14,
    -3.006120243715142e-15, 8.149517550978504e-16, -2.2652325377179937e-16, 6.44429178280922e-17,
)  # fmt: skip
_AIRY_F = (
    0.9995536016592858, -0.00044255600249022215, 3.7464948785574585e-06, -9.147926787106577e-08,
    4.0685023228430725e-09, -2.6897245359447526e-10, 2.363449618675092e-11,
    -2.576195886826486e-12, 3.3274850157582603e-13, -4.9322091688066274e-14,
    8.196203733152184e-15, -1.5003542015688562e-15, 2.9845588289887906e-16,
    -6.382686146177526e-17, 1.4547981358580236e-17, -3.509120995979975e-18,
)  # fmt: skip
_AIRY_G = (
    0.0689986813746521, -0.00043847415305876955, 7.0285131258204494e-06, -2.4531075470483036e-07,
    1.3871875616806255e-08, -1.0947446912594973e-09, 1.1046844858983291e-10,
    -1.3475725842508134e-11, 1.9127441564251805e-12, -3.074037537243461e-13,
    5.482078329678447e-14, -1.068281395250709e-14, 2.2475712780366504e-15, -5.056721949945704e-16,
    1.2071941989372259e-16, -3.038483751855352e-17, 8.020234897573714e-18, -2.210076494801649e-18,
    6.333518733387472e-19, -1.881310033029514e-19,
)  # fmt: skip


# --- modified Bessel functions -------------------------------------------------------------------


def _of_logarithm(x: Tensor, order: int) -> Tensor:
    """The modified function of the first kind up to 2, by its power series."""
    quarter = e.mul(e.mul(x, x), 0.25)
    total: Any = 1.0
    for k in range(14, 0, -1):
        total = e.add(e.mul(e.mul(quarter, total), 1 / (k * (k + order))), 1)
    found: Tensor = e.mul(total, e.mul(x, 0.5)) if order else total
    return found


def _second_kind(x: Tensor, order: int, is_scaled: bool) -> Tensor:
    """Times exp(x) where it is scaled; inf at 0, NaN below."""
    wide = cast(x, float64)
    positive = e.where(e.gt(wide, 0), wide, 1.0)
    small, large = e.minimum(positive, 2.0), e.maximum(positive, 2.0)
    place = e.sub(e.mul(e.mul(small, small), 0.5), 1)
    near = chebyshev(place, (_K0_NEAR, _K1_NEAR)[order])
    beside = e.mul(e.log(e.mul(small, 0.5)), _of_logarithm(small, order))
    near = e.add(e.div(near, small), beside) if order else e.sub(near, beside)
    far = chebyshev(e.sub(e.div(4.0, large), 1), (_K0_FAR, _K1_FAR)[order])
    far = e.div(far, e.sqrt(large))
    if is_scaled:
        near = e.mul(near, e.exp(small))
    else:
        far = e.mul(far, e.exp(e.neg(large)))
    found = e.where(e.gt(positive, 2), far, near)
    edge = e.where(e.eq(wide, 0), math.inf, math.nan)
    return cast(e.where(e.gt(wide, 0), found, edge), x._type.dtype)


def modified_bessel_k0(input: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 0: inf at 0, NaN below.

    >>> import tgraph as tg
    >>> tg.special.modified_bessel_k0(tg.tensor([1.0, 2.0]))
    tensor([0.4210, 0.1139])
    """
    return _k0(as_real_float(input, "modified_bessel_k0"))


@composite("modified_bessel_k0")
@planned
def _k0(x: Tensor) -> Tensor:
    return _second_kind(x, 0, False)


@input_vjp(_k0, saves=(0,))
@planned
def _k0_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.neg(e.mul(g, _k1(x)))


def modified_bessel_k1(input: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 1: inf at 0, NaN below.

    >>> import tgraph as tg
    >>> tg.special.modified_bessel_k1(tg.tensor([1.0, 2.0]))
    tensor([0.6019, 0.1399])
    """
    return _k1(as_real_float(input, "modified_bessel_k1"))


@composite("modified_bessel_k1")
@planned
def _k1(x: Tensor) -> Tensor:
    return _second_kind(x, 1, False)


@input_vjp(_k1, saves=(0, OUTPUT))
@planned
def _k1_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.neg(e.mul(g, e.add(_k0(x), e.div(out, x))))


def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    """exp(x) * modified_bessel_k0(x).

    >>> import tgraph as tg
    >>> tg.special.scaled_modified_bessel_k0(tg.tensor([1.0, 1000.0]))
    tensor([1.1445, 0.0396])
    """
    return _k0e(as_real_float(x, "scaled_modified_bessel_k0"))


@composite("scaled_modified_bessel_k0")
@planned
def _k0e(x: Tensor) -> Tensor:
    return _second_kind(x, 0, True)


@input_vjp(_k0e, saves=(0, OUTPUT))
@planned
def _k0e_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(out, _k1e(x)))


def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    """exp(x) * modified_bessel_k1(x).

    >>> import tgraph as tg
    >>> tg.special.scaled_modified_bessel_k1(tg.tensor([1.0, 1000.0]))
    tensor([1.6362, 0.0396])
    """
    return _k1e(as_real_float(x, "scaled_modified_bessel_k1"))


@composite("scaled_modified_bessel_k1")
@planned
def _k1e(x: Tensor) -> Tensor:
    return _second_kind(x, 1, True)


@input_vjp(_k1e, saves=(0, OUTPUT))
@planned
def _k1e_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.sub(e.sub(out, _k0e(x)), e.div(out, x)))


# --- Airy's function -----------------------------------------------------------------------------

_LEFT, _RIGHT = -4.5, 2.25


def airy_ai(x: Tensor) -> Tensor:
    """Airy's function of the first kind: y'' = x * y, of which it is the solution that falls off.

    >>> import tgraph as tg
    >>> tg.special.airy_ai(tg.tensor([0.0, 1.0]))
    tensor([0.3550, 0.1353])
    """
    return _airy_ai(as_real_float(x, "airy_ai"))


@planned
def _airy_ai(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    middle = e.clamp(wide, _LEFT, _RIGHT)
    half = (_RIGHT - _LEFT) / 2
    found = chebyshev(e.div(e.sub(middle, (_LEFT + _RIGHT) / 2), half), _AIRY_MIDDLE)
    is_right, is_left = e.gt(wide, _RIGHT), e.lt(wide, _LEFT)
    size = e.abs(e.where(is_left, wide, e.where(is_right, wide, 5.0)))
    root = e.sqrt(size)
    turn = e.mul(e.mul(size, root), 2 / 3)
    scale = e.reciprocal(e.mul(e.sqrt(root), math.sqrt(math.pi)))
    least = 2 / 3 * _RIGHT**1.5
    right = chebyshev(e.sub(e.div(2 * least, e.maximum(turn, least)), 1), _AIRY_RIGHT)
    right = e.mul(e.mul(right, e.exp(e.neg(turn))), e.mul(scale, 0.5))
    least = 2 / 3 * (-_LEFT) ** 1.5
    inverse = e.reciprocal(e.maximum(turn, least))
    place = e.sub(e.mul(e.mul(inverse, inverse), 2 * least * least), 1)
    phase = e.add(turn, math.pi / 4)
    left = e.mul(chebyshev(place, _AIRY_F), e.sin(phase))
    left = e.sub(left, e.mul(e.mul(chebyshev(place, _AIRY_G), inverse), e.cos(phase)))
    found = e.where(is_left, e.mul(left, scale), e.where(is_right, right, found))
    return cast(e.where(e.isnan(wide), wide, found), x._type.dtype)
