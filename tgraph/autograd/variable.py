"""`Variable`, which tensors were called once."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor


class _IsTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_IsTensor):
    """`Variable(tensor)` is that tensor, as it has been in PyTorch since tensors have gradients."""

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        found = data.detach() if requires_grad else data
        return found.requires_grad_() if requires_grad else found
