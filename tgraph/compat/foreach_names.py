"""`torch._foreach_...`: one operation on each tensor of a list, which some optimizers call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.tensor import Tensor

_PREFIX = "_foreach_"
# Operations of one, two and three lists, whose names are those of methods of tensors.
_METHODS = (
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max",
    "clamp_min", "cos", "cosh", "copy", "div", "erf", "erfc", "exp", "expm1", "floor", "frac",
    "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul", "neg",
    "norm", "pow", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "sub", "tan", "tanh", "trunc", "zero",
)  # fmt: skip
_NAMES = {"clamp_max": "minimum", "clamp_min": "maximum"}


def foreach(name: str) -> Callable[..., Any] | None:
    """The function that PyTorch calls `name`, as "_foreach_add_"; None where there is none."""
    method = name.removeprefix(_PREFIX)
    if not name.startswith(_PREFIX) or method.removesuffix("_") not in _METHODS:
        return None
    inplace = method.endswith("_")

    def each(tensors: Sequence[Tensor], *args: Any, **kwargs: Any) -> list[Tensor] | None:
        results = [
            _applied(tensor, method, [_part(arg, at) for arg in args],
                     {key: _part(value, at) for key, value in kwargs.items()})
            for at, tensor in enumerate(tensors)
        ]  # fmt: skip
        return None if inplace else results

    each.__name__ = each.__qualname__ = name
    return each


def _part(value: Any, at: int) -> Any:
    """What belongs to a tensor: lists have an element for each, numbers and tensors are of all."""
    return value[at] if isinstance(value, (list, tuple)) else value


def _applied(tensor: Tensor, method: str, args: list[Any], kwargs: dict[str, Any]) -> Tensor:
    kind = method.removesuffix("_")
    if kind in ("addcdiv", "addcmul") and len(args) == 3:  # whose value is a keyword of a tensor
        kwargs = {"value": args.pop(), **kwargs}
    if kind in ("add", "sub", "mul") and "scalar" in kwargs:
        args.append(kwargs.pop("scalar"))
    other = _NAMES.get(kind, kind)
    if other in ("maximum", "minimum"):
        value = args[0]
        if not isinstance(value, Tensor):
            value = tensor.new_tensor(value)
        result = getattr(tensor, other)(value)
        return tensor.copy_(result) if method.endswith("_") else result
    if other == "copy":
        return tensor.copy_(*args) if method.endswith("_") else args[0].to(tensor).clone()
    found: Tensor = getattr(tensor, method)(*args, **kwargs)
    return found
