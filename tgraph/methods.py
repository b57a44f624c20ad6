"""Gives Tensor its operations: every method is a function of a module named after its family."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dispatch, elementwise
from .autograd import (
    api,
    rules_contractions,
    rules_elementwise,
    rules_movement,
    rules_reductions,
)
from .compiler.ir import primitives as p
from .dispatch import apply, current_context
from .inplace import assign
from .operands import SCALARS
from .tensor import Tensor

# Imported for the gradient rules that they register.
RULE_MODULES = (rules_contractions, rules_elementwise, rules_movement, rules_reductions)


def sum_(x: Tensor) -> Any:
    return apply(p.sum_, x, axes=tuple(range(x.ndim)), keepdims=False)


def _operator(function: Any, reflected: bool = False) -> Any:
    if reflected:

        def method(self: Tensor, other: Any) -> Any:
            if isinstance(other, (Tensor, *SCALARS)):
                return function(other, self)
            return NotImplemented
    else:

        def method(self: Tensor, other: Any) -> Any:
            if isinstance(other, (Tensor, *SCALARS)):
                return function(self, other)
            return NotImplemented

    return method


def _in_place(function: Any, name: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return assign(self, function(self, *args, **kwargs), name)

    return method


def install() -> None:
    for name in ("add", "sub", "mul", "pow"):
        function = getattr(elementwise, name)
        setattr(Tensor, f"__{name}__", _operator(function))
        setattr(Tensor, f"__r{name}__", _operator(function, True))
        setattr(Tensor, f"{name}_", _in_place(function, f"{name}_"))
        setattr(Tensor, f"__i{name}__", _in_place(function, f"{name}_"))
        setattr(Tensor, name, function)
    Tensor.__truediv__ = _operator(elementwise.div)
    Tensor.__rtruediv__ = _operator(elementwise.div, True)
    Tensor.__neg__ = elementwise.neg
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", _operator(getattr(elementwise, name)))
    Tensor.sum = sum_
    Tensor.detach = dispatch.detach
    Tensor.backward = api.tensor_backward
    Tensor.requires_grad = property(api.requires_grad, api.set_requires_grad)
    Tensor.requires_grad_ = api.requires_grad_
    Tensor.grad = property(api.get_grad, api.set_grad)
    Tensor.grad_fn = property(api.grad_fn)
    Tensor.is_leaf = property(api.is_leaf)
    Tensor.register_hook = api.register_hook
    Tensor.retain_grad = api.retain_grad
    Tensor.numpy = lambda self: current_context().host_array(self, "numpy()")


install()
