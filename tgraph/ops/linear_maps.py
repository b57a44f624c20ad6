"""Products of features with weights."""

from __future__ import annotations

from ..core.planned import planned
from ..core.tensor import Tensor
from . import elementwise as e
from . import linalg as la
from . import movement as m


@planned
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`; weight is [out, in]."""
    product = la.matmul(input, m.t(weight))
    return product if bias is None else e.add(product, bias)


@planned
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[o] @ input2` for every output o; weight is [out, in1, in2]."""
    result = la.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else e.add(result, bias)
