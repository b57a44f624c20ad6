"""The `out=` argument of functions: the result is written into tensors that exist."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import primitives as p
from . import pytree
from .argument_types import ArgumentTypes, are_ints, form_of
from .autocast import no_autocast
from .dispatch import apply, settled
from .eager_context import current_context
from .grad_mode import no_grad
from .inplace import assign, set_data
from .keywords import (
    ELEMENTWISE_NAMES,
    asks_for_sparse,
    made_sparse,
    other_names,
    parameters,
    translated,
)
from .operands import cast
from .overlap import refuse_overlap
from .state import state
from .tensor import Tensor


def with_out(
    function: Callable[..., Any], overlap: str = "all", exact: bool = False
) -> Callable[..., Any]:
    """`function` with an argument `out`: a tensor of the result's shape that receives it.

    Of a function with several results it is as many tensors. `overlap` tells whether operands may
    lie in its memory: "all" of it only, "none", or "any". An `exact` one has the result's type;
    else the result is converted to its type, if nothing is lost but precision.
    """

    known = parameters(function)
    first: dict[str, str | None] = {
        name: own for name, own in ELEMENTWISE_NAMES.items() if own in known
    }
    names = {**first, **other_names(function)}
    types = ArgumentTypes(function)
    looks = types.looks_at_positions()
    makes = "dtype" in known and "device" in known  # a tensor of nothing but numbers

    @functools.wraps(function)
    def wrapper(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            if asks_for_sparse(kwargs):
                return made_sparse(function, args, kwargs)
            args, kwargs = translated(names, args, kwargs)
        if looks or kwargs:
            form = form_of(args, kwargs) if kwargs else tuple(map(type, args))
            places = types.known.get(form)
            if places is None or (places and not are_ints(places, args, kwargs)):
                args, kwargs = types.fitting(args, kwargs)
        if out is None:
            try:
                return function(*args, **kwargs)
            except Exception:
                if (misfit := types.misfit_within(args, kwargs)) is not None:
                    raise misfit from None
                raise
        outs = _tensors(out, function.__name__)
        operands = [each for each in (*args, *outs) if isinstance(each, Tensor)]
        if state.grad_enabled and any(settled(each)._requires_grad for each in operands):
            raise RuntimeError(
                f"{function.__name__}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
        if overlap != "any":
            for each in outs:
                refuse_overlap(each, pytree.leaves((args, kwargs)), whole=overlap == "none")
        if makes:
            kwargs = {"dtype": outs[0]._type.dtype, "device": outs[0]._type.device, **kwargs}
        with no_grad(), no_autocast():
            result = function(*args, **kwargs)
        return _written(function.__name__, out, outs, result, exact)

    return wrapper


def _tensors(out: Any, name: str) -> Sequence[Tensor]:
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for each in outs:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"{name}(): argument 'out' must be a Tensor, or a tuple of them for several "
                f"results, not {type(each).__name__}"
            )
    return outs


def _written(name: str, out: Any, outs: Sequence[Tensor], result: Any, exact: bool) -> Any:
    """`out`, which receives the result; several as the named tuple that the result is."""
    results = (result,) if isinstance(result, Tensor) else tuple(result)
    if isinstance(out, Tensor) is not isinstance(result, Tensor) or len(outs) != len(results):
        raise TypeError(
            f"{name}(): argument 'out' has {len(outs)} tensors; expected "
            + ("one Tensor" if isinstance(result, Tensor) else f"a tuple of {len(results)}")
        )
    exact = exact or not isinstance(result, Tensor)
    for target, new in zip(outs, results):
        _check(name, target, new, exact)
    for target, new in zip(outs, results):
        if new._type.shape == target._type.shape:
            assign(target, new, name)
        else:
            _resize(target, new)
    if isinstance(out, Tensor):
        return out
    return type(result)(*outs) if hasattr(result, "_fields") else type(result)(outs)


def _check(name: str, target: Tensor, new: Tensor, exact: bool) -> None:
    if exact and new._type.dtype is not target._type.dtype:
        raise RuntimeError(
            f"{name}(): expected out= of the result's type {new._type.dtype.name}, got "
            f"{target._type.dtype.name}"
        )
    resized = target._type.numel == 0 and not current_context().tracing
    if new._type.shape != target._type.shape and not resized:
        raise RuntimeError(
            f"{name}(): out= has shape {list(target._type.shape)}, the result has "
            f"{list(new._type.shape)}"
        )


def _resize(target: Tensor, new: Tensor) -> None:
    """An `out` without elements is made as large as the result, as PyTorch does."""
    set_data(target, apply(p.copy, cast(new, target._type.dtype)))
