"""Elementwise primitives: inputs broadcast against each other and share one dtype.

Promotion and casts are made explicit before a primitive is applied (see `promotion`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.dtypes import bool_
from .primitive import Attrs, Family, Primitive, register
from .shapes import broadcast
from .types import IRKindError, IRTypeError, TensorType


def _common(types: Sequence[TensorType]) -> TensorType:
    first = types[0]
    for other in types[1:]:
        if other.dtype is not first.dtype:
            raise IRTypeError(f"expected one dtype, got {first} and {other}")
        if other.device != first.device:
            raise IRTypeError(f"expected one device, got {first} and {other}")
    shape = broadcast(*(each.shape for each in types))
    return first if shape is first.shape else first.with_shape(shape)


def _check(kinds: tuple[str, ...], of: TensorType) -> None:
    if of.dtype.kind not in kinds:
        raise IRKindError(f"expected a dtype of kind {' or '.join(kinds)}, got {of}")


_REAL = ("uint", "int", "float")
_NUMBER = (*_REAL, "complex")
_INTEGER = ("uint", "int")
_BITS = ("bool", "uint", "int")
_ORDERED = ("bool", "uint", "int", "float")
_ANY = (*_ORDERED, "complex")


def _same(kinds: tuple[str, ...]) -> Any:
    def infer(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
        result = _common(types)
        _check(kinds, result)
        return result

    return infer


def _predicate(kinds: tuple[str, ...]) -> Any:
    def infer(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
        result = _common(types)
        _check(kinds, result)
        return result.with_dtype(bool_)

    return infer


def _infer_cast(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    return types[0].with_dtype(attrs["dtype"])


def _infer_bitcast(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (x,), dtype = types, attrs["dtype"]
    if x.dtype.is_complex or dtype.is_complex or x.dtype.itemsize != dtype.itemsize:
        raise IRTypeError(f"bitcast expected real types of one size, got {x} and {dtype}")
    return x.with_dtype(dtype)


def _infer_where(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    condition, *values = types
    if condition.dtype is not bool_:
        raise IRTypeError(f"where expected condition to be a boolean tensor, got {condition}")
    result = _common(values)
    return result.with_shape(broadcast(condition.shape, result.shape))


def _infer_require(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    holds, value = types
    if holds.dtype is not bool_:
        raise IRTypeError(f"require expected a boolean tensor as what must hold, got {holds}")
    return value.with_shape(broadcast(holds.shape, value.shape))


def _unary(name: str, infer: Any, **facts: Any) -> Primitive:
    return register(Primitive(name, Family.ELEMENTWISE, infer, arity=1, **facts))


def _binary(name: str, infer: Any, **facts: Any) -> Primitive:
    return register(Primitive(name, Family.ELEMENTWISE, infer, arity=2, **facts))


def _infer_abs(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    _check(_NUMBER, types[0])
    return types[0].with_dtype(types[0].dtype.to_real())


_FLOAT = _same(("float",))
_FRACTION = _same(("float", "complex"))

neg = _unary("neg", _same(_NUMBER), involution=True, exact=True)
abs_ = _unary("abs", _infer_abs, idempotent=True, exact=True)
sign = _unary("sign", _same(_NUMBER), idempotent=True, exact=True, discontinuous=True)
exp = _unary("exp", _FRACTION, cost=12)
exp2 = _unary("exp2", _FLOAT, cost=12)
expm1 = _unary("expm1", _FLOAT, cost=20)
log = _unary("log", _FRACTION, cost=16)
log2 = _unary("log2", _FLOAT, cost=16)
log1p = _unary("log1p", _FLOAT, cost=20)
sqrt = _unary("sqrt", _FRACTION, cost=6, reproducible=True)
rsqrt = _unary("rsqrt", _FRACTION, cost=10, reproducible=True)
reciprocal = _unary("reciprocal", _FRACTION, involution=False, cost=4, reproducible=True)
sin = _unary("sin", _FRACTION, cost=24)
cos = _unary("cos", _FRACTION, cost=24)
tan = _unary("tan", _FRACTION, cost=30)
asin = _unary("asin", _FRACTION, cost=20)
acos = _unary("acos", _FRACTION, cost=20)
atan = _unary("atan", _FRACTION, cost=20)
sinh = _unary("sinh", _FRACTION, cost=24)
cosh = _unary("cosh", _FRACTION, cost=24)
tanh = _unary("tanh", _FRACTION, cost=20)
erf = _unary("erf", _FLOAT, cost=24)
floor = _unary("floor", _FLOAT, idempotent=True, exact=True, discontinuous=True)
ceil = _unary("ceil", _FLOAT, idempotent=True, exact=True, discontinuous=True)
round_ = _unary("round", _FLOAT, idempotent=True, exact=True, discontinuous=True)
trunc = _unary("trunc", _FLOAT, idempotent=True, exact=True, discontinuous=True)
isnan = _unary("isnan", _predicate(("float",)), exact=True, discontinuous=True)
isinf = _unary("isinf", _predicate(("float",)), exact=True, discontinuous=True)
logical_not = _unary("logical_not", _same(("bool",)), involution=True, exact=True)
bitwise_not = _unary("bitwise_not", _same(_BITS), involution=True, exact=True)
copy = _unary("copy", _same(_ANY), idempotent=True, exact=True)
cast = _unary("cast", _infer_cast, exact=True, discontinuous=True)
# The bits of an element as another type of the same size. 16-bit floats lie in registers as
# float32, where a signalling NaN becomes a quiet one; a byte is True where it is not 0.
bitcast = _unary("bitcast", _infer_bitcast, exact=True, discontinuous=True)

add = _binary(
    "add", _same(_NUMBER), commutative=True, associative=True, identity=0, reproducible=True
)
sub = _binary("sub", _same(_NUMBER), reproducible=True)
mul = _binary(
    "mul", _same(_NUMBER), commutative=True, associative=True, identity=1, reproducible=True
)
div = _binary("div", _FRACTION, cost=4, reproducible=True)
floor_divide = _binary("floor_divide", _same(_REAL), cost=10, discontinuous=True)
remainder = _binary("remainder", _same(_REAL), cost=12, discontinuous=True)
pow_ = _binary("pow", _same(_NUMBER), cost=40)
maximum = _binary(
    "maximum", _same(_ORDERED), commutative=True, associative=True, idempotent=True, exact=True
)
minimum = _binary(
    "minimum", _same(_ORDERED), commutative=True, associative=True, idempotent=True, exact=True
)
atan2 = _binary("atan2", _FLOAT, cost=30, discontinuous=True)
_COMPARES: dict[str, Any] = {"exact": True, "discontinuous": True}
eq = _binary("eq", _predicate(_ANY), commutative=True, **_COMPARES)
ne = _binary("ne", _predicate(_ANY), commutative=True, **_COMPARES)
lt = _binary("lt", _predicate(_ORDERED), **_COMPARES)
le = _binary("le", _predicate(_ORDERED), **_COMPARES)
gt = _binary("gt", _predicate(_ORDERED), **_COMPARES)
ge = _binary("ge", _predicate(_ORDERED), **_COMPARES)
_LOGICAL: dict[str, Any] = {"commutative": True, "associative": True, "exact": True}
logical_and = _binary(
    "logical_and", _same(("bool",)), **_LOGICAL, idempotent=True, identity=True, absorbing=False
)
logical_or = _binary(
    "logical_or", _same(("bool",)), **_LOGICAL, idempotent=True, identity=False, absorbing=True
)
logical_xor = _binary("logical_xor", _same(("bool",)), **_LOGICAL, identity=False)
bitwise_and = _binary("bitwise_and", _same(_BITS), **_LOGICAL, idempotent=True)
bitwise_or = _binary("bitwise_or", _same(_BITS), **_LOGICAL, idempotent=True, identity=0)
bitwise_xor = _binary("bitwise_xor", _same(_BITS), **_LOGICAL, identity=0)
shift_left = _binary("shift_left", _same(_INTEGER), exact=True)
shift_right = _binary("shift_right", _same(_INTEGER), exact=True)

where = register(Primitive("where", Family.ELEMENTWISE, _infer_where, arity=3, exact=True))
# `require(holds, x; message)` is x; RuntimeError with the message where `holds` is False somewhere.
require = register(Primitive("require", Family.ELEMENTWISE, _infer_require, arity=2, exact=True))
