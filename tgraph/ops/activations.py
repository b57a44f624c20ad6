"""Activation functions and the softmax family, computed so that nothing overflows on the way."""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core.autocast import with_autocast
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.inplace import applied
from ..core.operands import as_float, cast, require_float, require_tensor, widened
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import DType, bool_
from . import elementwise as e
from . import reductions as r

# --- rectifiers --------------------------------------------------------------------------------


@composite("relu")
@planned
def _relu(x: Tensor) -> Tensor:
    return e.where(e.le(x, 0), 0, x)


@input_vjp(_relu, saves=(OUTPUT,))
@planned
def _relu_vjp(g: Tensor, out: Tensor, x: TensorType) -> Tensor:
    return e.where(e.le(out, 0), 0, g)


@public(method=True, inplace=True, out=True)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0); the gradient at 0 is 0."""
    if require_tensor(input, "relu")._type.dtype is bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    return applied(_relu, input, "relu_", inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x limited to [min_val, max_val]; the gradient at both ends is 0."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    dtype = require_tensor(input, "hardtanh")._type.dtype
    if dtype is bool_:
        raise NotImplementedError("Bool inputs not supported for hardtanh")
    if not dtype.is_signed and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if not dtype.is_floating_point:
        min_val, max_val = int(min_val), int(max_val)
    return applied(_hardtanh, input, "hardtanh_", inplace, min_val, max_val)


@planned
def _hardtanh(x: Tensor, low: float, high: float) -> Tensor:
    inside = e.logical_and(e.gt(x, low), e.lt(x, high))
    return e.where(inside, x, e.clamp(x, low, high).detach())


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x for x > 0, else negative_slope * x."""
    return applied(
        _leaky_relu, require_float(input, "leaky_relu"), "leaky_relu_", inplace, negative_slope
    )


@planned
def _leaky_relu(x: Tensor, slope: Tensor | float) -> Tensor:
    return e.where(e.gt(x, 0), x, e.mul(x, slope))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, else alpha * (exp(x) - 1)."""
    return applied(_elu, require_float(input, "elu"), "elu_", inplace, alpha)


@planned
def _elu(x: Tensor, alpha: float) -> Tensor:
    positive = e.gt(x, 0)
    below = e.mul(e.expm1(e.where(positive, 0, x)), alpha)
    return e.where(positive, x, below)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising elu of Klambauer et al. (2017)."""
    return applied(_selu, require_float(input, "elu"), "selu_", inplace)


@planned
def _selu(x: Tensor) -> Tensor:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return e.mul(_elu(x, alpha), scale)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, else alpha * (exp(x / alpha) - 1)."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return applied(_celu, require_float(input, "elu"), "celu_", inplace, alpha)


@planned
def _celu(x: Tensor, alpha: float) -> Tensor:
    positive = e.gt(x, 0)
    below = e.mul(e.expm1(e.div(e.where(positive, 0, x), alpha)), alpha)
    return e.where(positive, x, below)


# --- smooth ------------------------------------------------------------------------------------


@composite("sigmoid")
@planned
def _sigmoid(x: Tensor) -> Tensor:
    # exp of a negative number only; 1 / (1 + exp(-x)) = exp(x) / (1 + exp(x)).
    small = e.exp(e.neg(e.abs(x)))
    return e.div(e.where(e.ge(x, 0), 1, small), e.add(small, 1))


@input_vjp(_sigmoid, saves=(OUTPUT,))
@planned
def _sigmoid_vjp(g: Tensor, out: Tensor, x: TensorType) -> Tensor:
    return e.mul(g, e.mul(out, e.sub(1, out)))


@public(method=True, inplace=True, out=True)
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), accurate at both ends."""
    x = as_float(input, "sigmoid")
    if x._type.dtype.is_complex:
        return e.reciprocal(e.add(1, e.exp(e.neg(x))))
    return _sigmoid(x)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return e.tanh(input)


@composite("softplus")
@planned
def _log1pexp(x: Tensor) -> Tensor:
    return e.add(e.maximum(x, 0), e.log1p(e.exp(e.neg(e.abs(x)))))


@input_vjp(_log1pexp, saves=(0,))
@planned
def _log1pexp_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, sigmoid(x))


@planned
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""
    scaled = e.mul(input, beta) if beta != 1 else as_float(input, "softplus")
    soft = e.div(_log1pexp(scaled), beta) if beta != 1 else _log1pexp(scaled)
    return e.where(e.gt(scaled, threshold), input, soft)


@planned
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without underflow."""
    x = require_float(input, "logsigmoid")
    return e.sub(0, _log1pexp(e.neg(x)))  # 0.0 and not -0.0 where it vanishes


@composite("silu")
@planned
def _silu(x: Tensor) -> Tensor:
    return e.mul(x, sigmoid(x))


@input_vjp(_silu, saves=(0,))
@planned
def _silu_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    s = sigmoid(x)
    return e.mul(g, e.mul(s, e.add(e.mul(x, e.sub(1, s)), 1)))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x), also known as swish."""
    if isinstance(input, Tensor) and input.is_complex():
        return applied(lambda x: e.div(x, e.add(e.exp(e.neg(x)), 1)), input, "silu_", inplace)
    return applied(lambda x: _silu(as_float(x, "silu")), input, "silu_", inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return applied(_mish, require_float(input, "mish"), "mish_", inplace)


@planned
def _mish(x: Tensor) -> Tensor:
    return e.mul(x, e.tanh(_log1pexp(x)))


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    return applied(_hardsigmoid, require_float(input, "hardsigmoid"), "hardsigmoid_", inplace)


@planned
def _hardsigmoid(x: Tensor) -> Tensor:
    return e.div(relu6(e.add(x, 3)), 6)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * min(max(x + 3, 0), 6) / 6."""
    return applied(_hardswish, require_float(input, "hardswish"), "hardswish_", inplace)


@planned
def _hardswish(x: Tensor) -> Tensor:
    return e.mul(x, _hardsigmoid(x))


@planned
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return e.div(input, e.add(e.abs(input), 1))


@planned
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return e.sub(input, e.tanh(input))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    return applied(_threshold, input, "threshold_", inplace, threshold, value)


@planned
def _threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    return e.where(e.gt(x, threshold), x, value)


_SQRT_HALF = math.sqrt(0.5)
_GELU_SCALE = math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715


@composite("gelu")
@planned
def _gelu_erf(x: Tensor) -> Tensor:
    wide = widened(x)  # its tail is a small difference
    below = e.add(e.erf(e.mul(wide, _SQRT_HALF)), 1)
    return cast(e.mul(e.mul(wide, 0.5), below), x._type.dtype)


@input_vjp(_gelu_erf, saves=(0,))
@planned
def _gelu_erf_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    dtype, g, x = x._type.dtype, widened(g), widened(x)
    below = e.mul(e.add(e.erf(e.mul(x, _SQRT_HALF)), 1), 0.5)
    density = e.mul(e.exp(e.mul(e.mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return cast(e.mul(g, e.add(below, e.mul(x, density))), dtype)


@composite("gelu")
@planned
def _gelu_tanh(x: Tensor) -> Tensor:
    wide = widened(x)
    below = e.add(e.tanh(_gelu_inner(wide)), 1)
    return cast(e.mul(e.mul(wide, 0.5), below), x._type.dtype)


def _gelu_inner(x: Tensor) -> Tensor:
    return e.mul(e.mul(x, e.add(e.mul(e.mul(x, x), _GELU_CUBIC), 1)), _GELU_SCALE)


@input_vjp(_gelu_tanh, saves=(0,))
@planned
def _gelu_tanh_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    dtype, g, x = x._type.dtype, widened(g), widened(x)
    bend = e.tanh(_gelu_inner(x))
    slope = e.mul(e.add(e.mul(e.mul(x, x), 3 * _GELU_CUBIC), 1), _GELU_SCALE)
    left = e.mul(e.add(bend, 1), 0.5)
    right = e.mul(e.mul(e.mul(x, 0.5), e.sub(1, e.mul(bend, bend))), slope)
    return cast(e.mul(g, e.add(left, right)), dtype)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * P(X <= x) for a standard normal X; "tanh" approximates it.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if not require_tensor(input, "gelu")._type.dtype.is_floating_point:
        raise NotImplementedError(f'"GeluKernelImpl" not implemented for {input._type.dtype.name}')
    return _gelu_erf(input) if approximate == "none" else _gelu_tanh(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second."""
    if not require_tensor(input, "glu").ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = normalize_axis(dim, input.ndim)
    size = input._type.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    left, right = input.chunk(2, dim)
    return _gated(left, right)


@planned
def _gated(x: Tensor, gate: Tensor) -> Tensor:
    return e.mul(x, sigmoid(gate))


# --- softmax -----------------------------------------------------------------------------------


@composite("softmax")
@planned
def _softmax(x: Tensor, axis: int) -> Tensor:
    wide = widened(x)
    raised = e.exp(e.sub(wide, apply(p.max_, wide, axes=(axis,), keepdims=True)))
    whole = apply(p.sum_, raised, axes=(axis,), keepdims=True)
    return cast(e.div(raised, whole), x._type.dtype)


@input_vjp(_softmax, saves=(OUTPUT,))
@planned
def _softmax_vjp(g: Tensor, out: Tensor, x: TensorType, axis: int) -> Tensor:
    g, share = widened(g), widened(out)
    inner = apply(p.sum_, e.mul(g, share), axes=(axis,), keepdims=True)
    return cast(e.mul(share, e.sub(g, inner)), x.dtype)


@composite("log_softmax")
@planned
def _log_softmax(x: Tensor, axis: int) -> Tensor:
    wide = widened(x)
    lowered = e.sub(wide, apply(p.max_, wide, axes=(axis,), keepdims=True))
    whole = apply(p.sum_, e.exp(lowered), axes=(axis,), keepdims=True)
    return cast(e.sub(lowered, e.log(whole)), x._type.dtype)


@input_vjp(_log_softmax, saves=(OUTPUT,))
@planned
def _log_softmax_vjp(g: Tensor, out: Tensor, x: TensorType, axis: int) -> Tensor:
    g = widened(g)
    total = apply(p.sum_, g, axes=(axis,), keepdims=True)
    return cast(e.sub(g, e.mul(e.exp(widened(out)), total)), x.dtype)


def _along_axis(function: Any, x: Tensor, dim: int, dtype: DType | None, name: str) -> Tensor:
    x = require_tensor(x, name) if dtype is None else cast(x, dtype)
    if not x._type.dtype.is_floating_point:
        raise NotImplementedError(
            f'"{name}_lastdim_kernel_impl" not implemented for {x._type.dtype.name}'
        )
    shape = x._type.shape
    axis = normalize_axis(dim, len(shape))
    if not shape:
        return apply(p.reshape, function(apply(p.reshape, x, shape=(1,)), axis=0), shape=())
    if shape[axis] == 0:
        return apply(p.copy, x)
    result: Tensor = function(x, axis=axis)
    return result


@public(method=True, out="exact", overlap="any")
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """exp(x) over its sum along `dim`: positive numbers that add up to 1.

    >>> import tgraph as tg
    >>> tg.softmax(tg.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _along_axis(_softmax, input, dim, dtype, "softmax")


@public(method=True, out="exact", overlap="any")
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The logarithm of softmax, without underflow."""
    return _along_axis(_log_softmax, input, dim, dtype, "log_softmax")


@with_autocast
def softmin(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The softmax of -x."""
    return softmax(e.neg(input), dim, dtype)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """See `reductions.logsumexp`."""
    return r.logsumexp(input, dim, keepdim)
