"""Gradient rules of matrix products and convolutions."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate
from ..core.dispatch import apply
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from .convolution_gradients import input_gradient, weight_gradient


def _matmul(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Any:
    return apply(p.matmul, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@input_vjp(p.matmul, 0, saves=(1,))
def _matmul_left(
    g: Tensor, out: TensorType, a: TensorType, b: Tensor, transpose_a: bool, transpose_b: bool
) -> Any:
    b = conjugate(b)
    if transpose_a:
        return _matmul(b, g, transpose_b, True)
    return _matmul(g, b, False, not transpose_b)


@input_vjp(p.matmul, 1, saves=(0,))
def _matmul_right(
    g: Tensor, out: TensorType, a: Tensor, b: TensorType, transpose_a: bool, transpose_b: bool
) -> Any:
    a = conjugate(a)
    if transpose_b:
        return _matmul(g, a, True, transpose_a)
    return _matmul(a, g, not transpose_a, False)


@input_vjp(p.convolution, 0, saves=(1,))
def _convolution_input(g: Tensor, out: TensorType, x: TensorType, w: Tensor, **attrs: Any) -> Any:
    return input_gradient(g, w, x.shape, **attrs)


@input_vjp(p.convolution, 1, saves=(0,))
def _convolution_weight(g: Tensor, out: TensorType, x: Tensor, w: TensorType, **attrs: Any) -> Any:
    return weight_gradient(g, x, w.shape, **attrs)
