"""Tensors that a module learns."""

from __future__ import annotations

import numpy as np

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.eager_context import array_type, current_context
from ..core.tensor import Tensor, storage_of


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module whose attribute it is.

    It takes over the memory of `data` (a copy of it where `data` is a view) and requires grad
    unless told otherwise.

    >>> import tgraph as tg
    >>> tg.nn.Parameter(tg.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        if data is None:
            self._value = np.empty(0, np.float32)
            self._type = array_type(self._value)
        elif isinstance(data, Tensor):
            replace_value(self, data)
        else:
            raise TypeError(f"Parameter expected a Tensor as data, got {type(data).__name__}")
        if requires_grad and not self._type.dtype.is_differentiable:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        self._requires_grad = requires_grad
        current_context().made(self)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def replace_value(tensor: Tensor, data: Tensor) -> None:
    """Let `tensor` be what `data` is: its memory, shape and dtype, without its history."""
    if data._view is not None:
        data = apply(p.copy, data.detach())
    tensor._value = current_context().state_of(data)
    tensor._type = data._type
    tensor._storage = storage_of(data)
    tensor._view = None
