"""Tensors without dimensions where a dimension is asked for: one of a single element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..core.tensor import Tensor
from . import movement as m

_F = TypeVar("_F", bound=Callable[..., Any])


def with_one_element(function: _F) -> _F:
    """Let `function(input, ...)` with an argument `dim` take tensors without dimensions.

    As in PyTorch they count as vectors of one element, `dim` may be 0 or -1, and the result (or
    each of a named tuple) has no dimensions.
    """

    @functools.wraps(function)
    def wrapped(input: Tensor, *args: Any, **options: Any) -> Any:
        if not isinstance(input, Tensor) or input._type.shape:
            return function(input, *args, **options)
        results = function(
            *map(_vector, (input, *args)), **{k: _vector(v) for k, v in options.items()}
        )
        if isinstance(results, Tensor):
            return m.reshape(results, ())
        return type(results)(*(m.reshape(each, ()) for each in results))

    return cast(_F, wrapped)


def _vector(argument: Any) -> Any:
    if isinstance(argument, Tensor) and not argument._type.shape:
        return m.reshape(argument, 1)
    return argument
