"""Kullback-Leibler divergences: the table of pairs, and the look-up of the most specific one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.tensor import Tensor
from .distribution import Distribution

_Rule = TypeVar("_Rule", bound=Callable[[Any, Any], Any])

KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
"""The rules that were registered."""
_found: dict[tuple[type, type], Callable[[Any, Any], Tensor] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Rule], _Rule]:
    """Register the decorated function of `p` and `q` as their divergence.

    It serves subclasses, too, for which none is registered that fits better.
    """
    for name, each in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(each, type):  # PyTorch takes any class, such as Pyro's own
            raise TypeError(f"Expected {name} to be a class of distributions but got {each!r}")

    def declare(rule: _Rule) -> _Rule:
        KL_REGISTRY[type_p, type_q] = rule
        _found.clear()
        return rule

    return declare


def _distance(classes: tuple[type, type], pair: tuple[type, type]) -> list[int]:
    return [each.__mro__.index(above) for each, above in zip(classes, pair, strict=True)]


def _rule_for(type_p: type, type_q: type) -> Callable[[Any, Any], Tensor] | None:
    """The nearest by the class of `p`; a warning where it is another by that of `q`."""
    classes = type_p, type_q
    fitting = [
        pair for pair in KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
    ]
    if not fitting:
        return None
    left = min(fitting, key=lambda pair: _distance(classes, pair))
    right = min(fitting, key=lambda pair: _distance(classes, pair)[::-1])
    if KL_REGISTRY[left] is not KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl("
            f"{left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence KL(p || q), of the batch shape.

    NotImplementedError where no rule is registered for the two classes.

    >>> from tgraph.distributions import Normal
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _found:
        _found[pair] = _rule_for(*pair)
    rule = _found[pair]
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return rule(p, q)
