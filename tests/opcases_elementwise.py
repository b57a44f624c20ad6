"""Rows of elementwise operations and activations."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from opcase import (
    ANY,
    BITS,
    FLOAT,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Array,
    above_one,
    elementwise,
    few_values,
    normal,
    positive,
    share,
    small_counts,
    truth,
    unit,
)
from scipy import special

import tgraph as tg
from tgraph.nn import functional as F


def wrapped(reference: Any) -> Any:
    """Integers as their own type, which wraps as in C."""
    return lambda *arrays: np.asarray(reference(*arrays))


# -- arithmetic ------------------------------------------------------------------------------

elementwise("add", tg.add, np.add, normal, normal, dtypes=NUMBERS)
elementwise("add bools", tg.add, np.logical_or, normal, normal, dtypes=(tg.bool,), gradient=False)
elementwise("add scalar", lambda x: 2 + x + 1, lambda x: x + 3, normal, dtypes=NUMBERS)
elementwise(
    "add alpha",
    lambda x, y: tg.add(x, y, alpha=2),
    lambda x, y: x + 2 * y,
    normal,
    normal,
    dtypes=NUMBERS,
)
elementwise("sub", tg.sub, np.subtract, normal, normal, dtypes=NUMBERS)
elementwise("rsub", tg.rsub, lambda x, y: y - x, normal, normal, dtypes=NUMBERS)
elementwise("mul", tg.mul, np.multiply, normal, normal, dtypes=NUMBERS)
elementwise("mul bools", tg.mul, np.logical_and, normal, normal, dtypes=(tg.bool,), gradient=False)
elementwise("mul scalar", lambda x: x * 3, lambda x: x * x.dtype.type(3), normal, dtypes=NUMBERS)
elementwise("div", tg.div, lambda x, y: x / y, normal, positive)
elementwise(
    "div integers",
    tg.div,
    lambda x, y: x / y,
    normal,
    small_counts,
    dtypes=INTEGERS,
    result=tg.float32,
    gradient=False,
)
elementwise(
    "div floor",
    lambda x, y: tg.div(x, y, rounding_mode="floor"),
    np.floor_divide,
    normal,
    small_counts,
    dtypes=NUMBERS,
    gradient=False,
)
elementwise(
    "div trunc",
    lambda x, y: tg.div(x, y, rounding_mode="trunc"),
    lambda x, y: np.trunc(x / y),
    normal,
    small_counts,
    dtypes=NUMBERS,
    second=False,
)
elementwise("div scalar", lambda x: 1 / x + x / 4, lambda x: 1 / x + x / 4, positive)
elementwise(
    "floor_divide",
    tg.floor_divide,
    np.floor_divide,
    normal,
    small_counts,
    dtypes=NUMBERS,
    gradient=False,
)
elementwise(
    "remainder", tg.remainder, np.remainder, normal, small_counts, dtypes=NUMBERS, second=False
)
elementwise(
    "remainder by negative",
    lambda x, y: tg.remainder(x, -y),
    lambda x, y: np.remainder(x, -y),
    normal,
    small_counts,
    dtypes=(*FLOATS, tg.int64, tg.int32, tg.int8),
    gradient=False,
)
elementwise("fmod", tg.fmod, np.fmod, normal, small_counts, dtypes=NUMBERS, second=False)
elementwise("pow", tg.pow, np.power, positive, normal, tolerance=40)
elementwise(
    "pow integers", tg.pow, wrapped(np.power), normal, small_counts, dtypes=INTEGERS, gradient=False
)
for _power in (0, 1, 2, 3, 0.5, -1, -0.5, 2.5):
    elementwise(
        f"pow scalar {_power}",
        lambda x, p=_power: x**p,
        lambda x, p=_power: x**p,
        positive,
        tolerance=24,
    )
elementwise("pow of scalar", lambda x: 2.0**x, lambda x: 2.0**x, normal, tolerance=24)
elementwise("neg", tg.neg, np.negative, normal, dtypes=NUMBERS)
elementwise("positive", tg.positive, np.positive, normal, dtypes=NUMBERS)
elementwise("abs", tg.abs, np.abs, normal, dtypes=NUMBERS)
elementwise("sign", tg.sign, np.sign, normal, dtypes=NUMBERS, second=False)
elementwise("sign bools", tg.sign, lambda x: x, normal, dtypes=(tg.bool,), gradient=False)
elementwise("square", tg.square, np.square, normal, dtypes=NUMBERS)
elementwise("lerp", tg.lerp, lambda x, y, w: x + w * (y - x), normal, normal, unit)
elementwise(
    "addcmul",
    lambda x, y, z: tg.addcmul(x, y, z, value=0.5),
    lambda x, y, z: x + 0.5 * y * z,
    normal,
    normal,
    normal,
)
elementwise(
    "addcdiv",
    lambda x, y, z: tg.addcdiv(x, y, z, value=0.5),
    lambda x, y, z: x + 0.5 * y / z,
    normal,
    normal,
    positive,
)

# -- functions of one number -----------------------------------------------------------------

for _name, _reference, _domain in [
    ("exp", np.exp, normal), ("exp2", np.exp2, normal), ("expm1", np.expm1, normal),
    ("log", np.log, positive), ("log2", np.log2, positive), ("log10", np.log10, positive),
    ("log1p", np.log1p, positive), ("sqrt", np.sqrt, positive),
    ("rsqrt", lambda x: 1 / np.sqrt(x), positive), ("reciprocal", lambda x: 1 / x, positive),
    ("sin", np.sin, normal), ("cos", np.cos, normal), ("tan", np.tan, unit),
    ("asin", np.arcsin, unit), ("acos", np.arccos, unit), ("atan", np.arctan, normal),
    ("sinh", np.sinh, normal), ("cosh", np.cosh, normal), ("tanh", np.tanh, normal),
    ("erf", special.erf, normal),
]:  # fmt: skip
    _function = getattr(tg, _name)
    elementwise(_name, _function, _reference, _domain)
    if _domain is not unit:
        elementwise(
            f"{_name} of integers",
            _function,
            lambda x, f=_reference: f(1.0 * x),
            small_counts,
            dtypes=(*INTEGERS, tg.bool),
            result=FLOAT,
            gradient=False,
        )
for _name, _reference, _domain in [
    ("erfinv", special.erfinv, unit), ("lgamma", special.gammaln, positive),
    ("digamma", special.digamma, positive),
]:  # fmt: skip
    elementwise(_name, getattr(tg, _name), _reference, _domain, tolerance=40)
    if _domain is positive:
        elementwise(
            f"{_name} of all",
            getattr(tg, _name),
            _reference,
            normal,
            dtypes=FLOATS[:2],
            gradient=False,
            tolerance=400,
        )
elementwise(
    "polygamma",
    partial(tg.polygamma, 1),
    partial(special.polygamma, 1),
    positive,
    tolerance=40,
)
elementwise("xlogy", tg.xlogy, special.xlogy, normal, positive)
elementwise("atan2", tg.atan2, np.arctan2, normal, positive)
for _name, _reference in [
    ("floor", np.floor),
    ("ceil", np.ceil),
    ("round", np.round),
    ("trunc", np.trunc),
]:
    _function = getattr(tg, _name)
    elementwise(_name, _function, _reference, normal, dtypes=NUMBERS, second=False)
elementwise(
    "round decimals",
    lambda x: tg.round(x, decimals=1),
    lambda x: np.round(x, 1),
    normal,
    dtypes=(tg.float32, tg.float64),
    gradient=False,
)
elementwise("frac", tg.frac, lambda x: x - np.trunc(x), normal)

# -- choice ----------------------------------------------------------------------------------

elementwise("maximum", tg.maximum, np.maximum, normal, normal, dtypes=ANY)
elementwise("minimum", tg.minimum, np.minimum, normal, normal, dtypes=ANY)
elementwise(
    "clamp",
    lambda x: tg.clamp(x, -1, 1),
    lambda x: np.clip(x, -1, 1),
    normal,
    dtypes=(*FLOATS, tg.int64, tg.int32),
)
elementwise(
    "clamp above", lambda x: tg.clamp(x, max=1), lambda x: np.minimum(x, 1), normal, dtypes=NUMBERS
)
elementwise(
    "clamp tensors",
    tg.clamp,
    lambda x, low, high: np.minimum(np.maximum(x, low), high),
    normal,
    unit,
    above_one,
)
elementwise("where", tg.where, np.where, (truth, tg.bool), normal, normal, dtypes=ANY)
elementwise(
    "where scalar",
    lambda c, x: tg.where(c, x, 1),
    lambda c, x: np.where(c, x, x.dtype.type(1)),
    (truth, tg.bool),
    normal,
    dtypes=NUMBERS,
)
elementwise(
    "nan_to_num",
    lambda x: tg.nan_to_num(tg.where(x.trunc() == 0, x.sign() * math.inf, x), 7.0, 8.0, 9.0),
    lambda x: np.where(np.trunc(x) == 0, np.where(x > 0, 8.0, np.where(x < 0, 9.0, 0.0)), x),
    normal,
    dtypes=(tg.float32, tg.float64),
    second=False,
)

# -- comparison and logic --------------------------------------------------------------------

for _name, _reference in [
    ("eq", np.equal),
    ("ne", np.not_equal),
    ("lt", np.less),
    ("le", np.less_equal),
    ("gt", np.greater),
    ("ge", np.greater_equal),
]:
    _function = getattr(tg, _name)
    elementwise(
        _name,
        _function,
        _reference,
        few_values,
        few_values,
        dtypes=ANY,
        result=tg.bool,
        gradient=False,
    )
    elementwise(
        f"{_name} scalar",
        lambda x, f=_function: f(x, 1),
        lambda x, f=_reference: f(x, 1),
        few_values,
        dtypes=ANY,
        result=tg.bool,
        gradient=False,
    )
for _name, _reference in [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)]:
    _function = getattr(tg, _name)
    elementwise(
        _name,
        lambda x, f=_function: f(x / x.trunc()),
        lambda x, f=_reference: f(x / np.trunc(x)),
        normal,
        result=tg.bool,
        gradient=False,
    )
    elementwise(
        f"{_name} of integers",
        _function,
        _reference,
        normal,
        dtypes=INTEGERS,
        result=tg.bool,
        gradient=False,
    )
elementwise(
    "isclose",
    lambda x, y: tg.isclose(x, y, atol=0.5),
    lambda x, y: np.isclose(x, y, atol=0.5),
    normal,
    normal,
    dtypes=(tg.float32, tg.float64),
    result=tg.bool,
    gradient=False,
)
for _name in ("logical_and", "logical_or", "logical_xor"):
    _function = getattr(tg, _name)
    elementwise(
        _name,
        _function,
        getattr(np, _name),
        few_values,
        few_values,
        dtypes=ANY,
        result=tg.bool,
        gradient=False,
    )
elementwise(
    "logical_not",
    tg.logical_not,
    np.logical_not,
    few_values,
    dtypes=ANY,
    result=tg.bool,
    gradient=False,
)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _function = getattr(tg, _name)
    elementwise(_name, _function, getattr(np, _name), normal, normal, dtypes=BITS, gradient=False)
elementwise("bitwise_not", tg.bitwise_not, np.invert, normal, dtypes=BITS, gradient=False)
elementwise(
    "bitwise_left_shift",
    tg.bitwise_left_shift,
    np.left_shift,
    normal,
    small_counts,
    dtypes=INTEGERS,
    gradient=False,
)
elementwise(
    "bitwise_right_shift",
    tg.bitwise_right_shift,
    np.right_shift,
    normal,
    small_counts,
    dtypes=INTEGERS,
    gradient=False,
)

# -- casts -----------------------------------------------------------------------------------

for _target in ANY:
    elementwise(
        f"cast to {_target.name}",
        lambda x, t=_target: x.to(t),
        lambda x, t=_target: (
            x.astype(t.numpy).astype(np.float64) if t.is_floating_point else x.astype(t.numpy)
        ),
        positive,
        dtypes=ANY,
        result=_target,
        gradient=_target in (tg.float64,),
        tolerance=8,
    )


# -- activations -----------------------------------------------------------------------------


def sigmoid(x: Array) -> Array:
    return special.expit(x)


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


_SELU = (1.0507009873554805, 1.6732632423543772)
for _name, _function, _reference in [
    ("relu", tg.relu, lambda x: np.maximum(x, 0)),
    ("relu6", F.relu6, lambda x: np.clip(x, 0, 6)),
    ("hardtanh", F.hardtanh, lambda x: np.clip(x, -1, 1)),
    ("leaky_relu", F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    ("elu", lambda x: F.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    ("selu", F.selu, lambda x: _SELU[0] * np.where(x > 0, x, _SELU[1] * np.expm1(x))),
    ("celu", lambda x: F.celu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x / 0.5))),
    ("sigmoid", tg.sigmoid, sigmoid),
    ("softplus", F.softplus, softplus),
    ("softplus beta", lambda x: F.softplus(x, 2.0), lambda x: softplus(2 * x) / 2),
    ("logsigmoid", F.logsigmoid, lambda x: -softplus(-x)),
    ("silu", F.silu, lambda x: x * sigmoid(x)),
    ("mish", F.mish, lambda x: x * np.tanh(softplus(x))),
    ("hardsigmoid", F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    ("hardswish", F.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("softsign", F.softsign, lambda x: x / (1 + np.abs(x))),
    ("tanhshrink", F.tanhshrink, lambda x: x - np.tanh(x)),
    ("threshold", lambda x: F.threshold(x, 0.5, 2.0), lambda x: np.where(x > 0.5, x, 2.0)),
    ("hardshrink", lambda x: F.hardshrink(x, 0.7), lambda x: np.where(np.abs(x) > 0.7, x, 0)),
    ("softshrink", F.softshrink, lambda x: x - np.clip(x, -0.5, 0.5)),
    ("rrelu", lambda x: F.rrelu(x, 0.2, 0.6), lambda x: np.where(x > 0, x, 0.4 * x)),
    ("gelu", F.gelu, lambda x: x * special.ndtr(x)),
    ("gelu tanh", lambda x: F.gelu(x, "tanh"),
     lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
]:  # fmt: skip
    elementwise(_name, _function, _reference, normal, tolerance=24)
elementwise(
    "prelu",
    lambda x, w: F.prelu(x, w),
    lambda x, w: np.where(x > 0, x, w * x),
    normal,
    share,
    more=[((2, 4), (1,)), ((0, 4), (4,))],
)
