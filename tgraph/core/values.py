"""The numbers in tensors, where they are known."""

from __future__ import annotations

from ..compiler.ir import Node
from ..compiler.ir import primitives as p
from .eager_context import current_context
from .tensor import Tensor


def known_values(tensor: Tensor) -> list[int] | None:
    """The numbers in a tensor of integers; None where only calls of what is traced know them."""
    if current_context().has_value(tensor):
        return [int(each) for each in tensor.detach().reshape(-1).tolist()]
    value = tensor._value
    if type(value) is not Node or value.primitive is not p.constant:
        return None
    return [int(each) for each in value.attrs["value"].reshape(-1)]
