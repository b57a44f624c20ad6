"""Maxima of windows, and where they were: pooling with `return_indices`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import adaptive_pooling, pooling


def _with_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, return_indices: bool = True, **kwargs: Any) -> Any:
        return function(*args, return_indices=True, **kwargs)

    call.__name__ = call.__qualname__ = f"{function.__name__}_with_indices"
    call.__module__ = __name__
    call.__doc__ = f"`{function.__name__}`, and where the maxima were."
    return call


adaptive_max_pool1d_with_indices = _with_indices(adaptive_pooling.adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_pooling.adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_pooling.adaptive_max_pool3d)
fractional_max_pool2d_with_indices = _with_indices(adaptive_pooling.fractional_max_pool2d)
fractional_max_pool3d_with_indices = _with_indices(adaptive_pooling.fractional_max_pool3d)
max_pool1d_with_indices = _with_indices(pooling.max_pool1d)
max_pool2d_with_indices = _with_indices(pooling.max_pool2d)
max_pool3d_with_indices = _with_indices(pooling.max_pool3d)
