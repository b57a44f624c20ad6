"""The `out=` argument of functions: the result is written into a tensor that exists."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import pytree
from .autocast import no_autocast
from .dispatch import settled
from .grad_mode import no_grad
from .inplace import assign
from .keywords import ELEMENTWISE_NAMES, other_names, parameters, translated
from .overlap import refuse_overlap
from .state import state
from .tensor import Tensor


def with_out(function: Callable[..., Any], overlap: str = "all") -> Callable[..., Any]:
    """`function` with an argument `out`: a tensor of the result's shape that receives it.

    `overlap` tells whether operands may lie in its memory: "all" of it only, "none", or "any".
    """

    known = parameters(function)
    names = {**ELEMENTWISE_NAMES, **other_names(function)}
    names = {name: own for name, own in names.items() if own is None or own in known}

    @functools.wraps(function)
    def wrapper(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = translated(names, args, kwargs)
        if out is None:
            return function(*args, **kwargs)
        operands = [each for each in (*args, out) if isinstance(each, Tensor)]
        if state.grad_enabled and any(settled(each)._requires_grad for each in operands):
            raise RuntimeError(
                f"{function.__name__}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
        if overlap != "any":
            refuse_overlap(out, pytree.leaves((args, kwargs)), whole=overlap == "none")
        with no_grad(), no_autocast():
            result = function(*args, **kwargs)
        if result._type.shape != out._type.shape:
            raise RuntimeError(
                f"{function.__name__}(): out= has shape {list(out._type.shape)}, the result has "
                f"{list(result._type.shape)}"
            )
        return assign(out, result, function.__name__)

    return wrapper
