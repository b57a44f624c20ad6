"""Products of features with weights."""

from __future__ import annotations

from ..compiler.ir.shapes import are_same, is_one
from ..core.planned import planned
from ..core.tensor import Tensor
from . import elementwise as e
from . import linalg as la
from . import movement as m


@planned
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`; weight is [out, in]."""
    product = la.matmul(input, m.t(weight))
    if bias is None:
        return product
    shape = product._type.shape
    if input.ndim == 1 and bias.ndim == 2 and is_one(bias._type.shape[0]):
        bias = m.squeeze(bias, 0)  # as PyTorch makes a matrix of a vector
    result = e.add(product, bias)
    if not are_same(result._type.shape, shape):
        raise RuntimeError(
            f"linear(): expected a bias that broadcasts to the shape of the product {list(shape)}, "
            f"got {list(bias.shape)}"
        )
    return result


@planned
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[o] @ input2` for every output o; weight is [out, in1, in2]."""
    rows, others = input1._type.shape[:-1], input2._type.shape[:-1]
    if input1.ndim != input2.ndim or not are_same(rows, others):
        raise RuntimeError(
            "bilinear(): expected inputs of the same size but for the last dimension, got "
            f"{list(input1.shape)} and {list(input2.shape)}"
        )
    if bias is not None and not are_same(bias._type.shape, weight._type.shape[:1]):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {list(bias.shape)} but "
            f"expected {list(weight.shape[:1])}"
        )
    result = la.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else e.add(result, bias)
