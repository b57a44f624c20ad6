"""Methods that write in place, as functions of `tgraph`: those that `torch` has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor

_TEXT = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_
    asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_
    deg2rad_ detach_ erf_ erfc_ exp_ exp2_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_
    ldexp_ log_ log10_ log1p_ log2_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_
    resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_
    zero_
"""
NAMES = tuple(_TEXT.split())


def functions() -> dict[str, Callable[..., Any]]:
    """The functions by name, once Tensor has its methods."""
    return {name: _function(name) for name in NAMES}


def _function(name: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return method(input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`input.{name}`: written over `input`, which is returned."
    return function
