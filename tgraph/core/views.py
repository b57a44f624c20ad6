"""Tensors that show the memory of others: made at once, detached, or found from what they show.

How a view is linked to its base, and follows it, stands beside `apply` in `dispatch.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..compiler.ir.layouts import view_strides
from ..runtime.array_functions_movement import slices_of
from .classes import like
from .dispatch import apply, detached, link_view, settled
from .eager_context import ARRAY_FUNCTIONS, array_type, current_context
from .state import state
from .tensor import (
    Tensor,
    View,
    ViewStep,
    root_of,
    storage_of,
    strides_of,
    wrap,
)

ArrayViews = tuple[Callable[[Any], Any], ...]


def array_views(steps: tuple[ViewStep, ...]) -> ArrayViews:
    """What `steps` do to an array of NumPy, made ready for many calls."""
    return tuple(
        itemgetter(slices_of(**step.attrs))
        if step.primitive is p.slice_
        else partial(ARRAY_FUNCTIONS[step.primitive.name], np, **step.attrs)
        for step in steps
    )


def shown(base: Tensor, steps: tuple[ViewStep, ...], views: ArrayViews) -> Tensor:
    """The view of `base` after `steps`, of which none copies; as if they were applied one by one.

    Where nothing is recorded, it is made at once, by `views`, the `array_views` of the steps.
    """
    value = settled(base)._value
    is_recorded = state.grad_enabled and base._requires_grad
    if not steps or is_recorded or state.context is not None or type(value) is not np.ndarray:
        for step in steps:
            base = apply(step.primitive, base, **step.attrs)
        return base
    for view in views:
        value = view(value)
    result = like(base, wrap(value, array_type(value, base._type.device)))
    link_view(base, steps, result)
    return result


def would_alias(source: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether `source` can be shown as `shape` without a copy, going by its strides."""
    value = source._value
    if type(value) is np.ndarray and value.flags.c_contiguous:
        return True
    return view_strides(source._type.shape, strides_of(source), shape) is not None


def detach(input: Tensor) -> Tensor:
    """A tensor that shares the memory of `input`, without its history.

    >>> import tgraph as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> x.detach().requires_grad
    False
    """
    result = detached(input)
    result._storage = storage_of(input)
    return result


def data(input: Tensor) -> Tensor:
    """What `.data` gives: as `detach()`, but writes to it are not counted as writes to `input`.

    The backward pass does not notice them, and works with what is in memory then.
    """
    result = detached(input)
    result._storage = type(storage_of(input))()
    return result


def base_to_view(view: Tensor) -> Tensor | None:
    """The tensor that `view` shows a part of, such that its views have the history of `view`'s.

    None where there is no such tensor: gradients are asked of the view itself.
    """
    how = settled(view)._view
    if how is None:
        return view
    base = how.base
    if not how.differentiable or base._view is not None:  # detached somewhere
        return None if view._requires_grad else _unlinked(root_of(base), view)
    return base if view._requires_grad is base._requires_grad and not how.without_grad else None


def _unlinked(base: Tensor, view: Tensor) -> Tensor:
    result = wrap(current_context().value_of(base), base._type)
    # A gradient through a view of this twin would not reach `view`: it is refused.
    result._view = View(base, (), differentiable=False, without_grad="no_grad")
    result._storage = view._storage
    return result
