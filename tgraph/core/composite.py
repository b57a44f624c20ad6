"""Functions over primitives that bring their own gradient rule.

The gradient of most compositions follows from their parts. Some have a better one: cheaper, with
less to save, or more accurate. Such a function is recorded as one step, under its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .dispatch import attach, settled
from .sparse_tensor import SPARSE_RULES, NotOnSparseError, of_sparse
from .state import state
from .tensor import Tensor


class Composite:
    """A function of tensors, called with attributes by name, recorded as one step.

    It takes a primitive's place in the table of rules: `@input_vjp(composite, saves=...)`.
    """

    def __init__(self, name: str, function: Callable[..., Tensor]) -> None:
        self.name = name
        self.function = function

    def __call__(self, *tensors: Tensor, **attrs: Any) -> Tensor:
        context = state.context
        if context is not None and context.lifts:
            made: Tensor = context.composite(self, tensors, attrs)
            return made
        for each in tensors:
            if settled(each)._requires_grad and state.grad_enabled:
                break
        else:
            try:
                return self.function(*tensors, **attrs)
            except NotOnSparseError:
                if self not in SPARSE_RULES:
                    raise
                result = of_sparse(self, tensors, attrs)
                return result
        state.grad_enabled = False
        try:
            result = self.function(*tensors, **attrs)
        finally:
            state.grad_enabled = True
        result._view = result._storage = None  # nobody else holds what it may be a view of
        attach(self, tensors, attrs, (result,))
        return result

    def __repr__(self) -> str:
        return self.name


def composite(name: str) -> Callable[[Callable[..., Tensor]], Composite]:
    """Make a function a Composite called `name`; it must return a new tensor."""

    def decorate(function: Callable[..., Tensor]) -> Composite:
        return Composite(name, function)

    return decorate
