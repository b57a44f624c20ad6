"""Loops of Python over the elements of tensors, which are written over: slow, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.inplace import copy_
from ..core.public import public
from ..core.tensor import Tensor
from . import from_data
from . import movement as m


def _looped(name: str, function: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """Write over the first tensor what a function of Python gives for each element of all."""
    first = tensors[0]
    if first._type.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    if first.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use "
                           f"var.detach().{name}().")  # fmt: skip
    rows = [m.expand(each.detach(), *first.shape).flatten().tolist() for each in tensors]
    values = [function(*each) for each in zip(*rows)]
    return copy_(first, from_data.tensor(values, dtype=first.dtype).reshape(first.shape))


@public(function=False, method=True)
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write `callable(element)` over each element: a loop of Python, for tests.

    >>> import tgraph as tg
    >>> tg.tensor([1.0, 2.0]).apply_(lambda number: number + 1)
    tensor([2., 3.])
    """
    return _looped("apply_", callable, self)


@public(function=False, method=True)
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write `callable(element, other)` over each element, with those of another tensor."""
    return _looped("map_", callable, self, tensor)


@public(function=False, method=True)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Write `callable(element, other, third)` over each element, with those of two tensors."""
    return _looped("map2_", callable, self, x, y)
