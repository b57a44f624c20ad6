"""A convolution or linear map and the batch norm behind it as one, for evaluation."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ...core.tensor import Tensor
from ...ops.creation import ones_like, zeros_like
from ...ops.elementwise import rsqrt
from ..module import Module
from ..parameter import Parameter

M = TypeVar("M", bound=Module)


def _check(module: Any, norm: Any) -> None:
    if module.training or norm.training:
        raise AssertionError("Fusion only for eval!")
    if norm.running_mean is None or norm.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """A convolution that computes what it and the batch norm behind it do in evaluation.

    >>> import tgraph as tg
    >>> conv, norm = tg.nn.Conv2d(1, 2, 3).eval(), tg.nn.BatchNorm2d(2).eval()
    >>> x = tg.randn(1, 1, 4, 4)
    >>> tg.allclose(fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-6)
    True
    """
    _check(conv, bn)
    fused: Any = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    made: M = fused
    return made


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that `fuse_conv_bn_eval` gives."""
    bias = zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * rsqrt(bn_rv + bn_eps)
    shift = zeros_like(bn_rm) if bn_b is None else bn_b
    kind = conv_w.dtype if conv_b is None else conv_b.dtype
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    moved = ((bias - bn_rm) * scale + shift).to(kind)
    return _as_parameter(weight, conv_w), _as_parameter(moved, bias)


def _as_parameter(value: Tensor, like: Tensor) -> Parameter:
    return Parameter(value.detach(), like.requires_grad)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A linear map that computes what it and the batch norm behind it do in evaluation."""
    _check(linear, bn)
    fused: Any = copy.deepcopy(linear)
    if fused.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={fused.out_features} and bn.num_features={bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    made: M = fused
    return made


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear map that `fuse_linear_bn_eval` gives."""
    bias = zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * rsqrt(bn_rv + bn_eps)
    kind = linear_w.dtype if linear_b is None else linear_b.dtype
    return (
        _as_parameter(linear_w * scale.unsqueeze(-1).to(linear_w.dtype), linear_w),
        _as_parameter(((bias - bn_rm) * scale + bn_b).to(kind), bias),
    )
