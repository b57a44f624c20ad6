"""The axes that `compile(..., dynamic=...)` names, checked and found among the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.tensor import Tensor
from ..tracing.record_call import called

Axes = Mapping[str, int | Sequence[int]]
Place = tuple[int, int]
"""The position of a tensor among the leaves of the arguments, and an axis of it."""


def checked(function: Callable[..., Any], dynamic: Axes | None) -> dict[str, tuple[int, ...]]:
    """`dynamic` as name -> axes; TypeError or ValueError where it cannot be meant."""
    found: dict[str, tuple[int, ...]] = {}
    for name, axes in (dynamic or {}).items():
        given = axes if isinstance(axes, (tuple, list)) else (axes,)
        if not all(type(axis) is int for axis in given):
            raise TypeError(
                f"compile(): dynamic[{name!r}] must be an axis or several, such as 0 or (0, 1), "
                f"not {axes!r}"
            )
        _check_name(function, name)
        found[name] = tuple(given)
    return found


def _check_name(function: Callable[..., Any], name: str) -> None:
    try:
        parameters = inspect.signature(called(function)).parameters
    except (TypeError, ValueError):
        return
    if any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters.values()):
        return
    root = name.partition("[")[0].partition(".")[0]
    if root not in parameters:
        raise ValueError(
            f"compile(): dynamic names `{name}`, which is no argument of "
            f"{getattr(function, '__name__', 'the function')}; it has "
            f"{', '.join(f'`{each}`' for each in parameters) or 'none'}"
        )


def places_of(
    dynamic: Mapping[str, tuple[int, ...]], leaves: Sequence[Any], names: Sequence[str]
) -> list[Place]:
    """Where the named axes are; an argument that is not given or no tensor has none.

    TypeError for a container, IndexError for a tensor that does not have the axis.
    """
    found: list[Place] = []
    for name, axes in dynamic.items():
        if name in names:
            at = names.index(name)
            if isinstance(leaves[at], Tensor):
                found += [(at, _checked_axis(name, axis, leaves[at])) for axis in axes]
            continue
        inner = [each for each in names if each.startswith((f"{name}[", f"{name}."))]
        if inner:
            raise TypeError(
                f"dynamic names `{name}`, which is a container; name tensors in it, such as "
                f"`{inner[0]}`"
            )
    return list(dict.fromkeys(found))


def _checked_axis(name: str, axis: int, tensor: Tensor) -> int:
    ndim = tensor.ndim
    if not -ndim <= axis < ndim:
        raise IndexError(
            f"dynamic names axis {axis} of argument `{name}`, which has the shape "
            f"{list(tensor.shape)}; "
            + (f"name one from {-ndim} to {ndim - 1}" if ndim else "it has no axes: leave it out")
        )
    return axis % ndim
