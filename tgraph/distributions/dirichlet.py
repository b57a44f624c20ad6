"""Dirichlet distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.dtype_info import finfo
from ..core.tensor import Tensor
from ..ops.elementwise import where
from ..ops.gather_scatter import one_hot
from ..ops.special_functions import digamma, lgamma, xlogy
from . import constraints
from .exp_family import ExponentialFamily
from .gamma_draws import standard_gamma


class Dirichlet(ExponentialFamily):
    """Points of the simplex; `concentration` lies along the last dimension.

    Draws are gamma numbers over their sum.
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True
    tensors = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        batch, event = concentration.shape[:-1], concentration.shape[-1:]
        super().__init__(batch, event, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, keepdim=True)
        below = (self.concentration < 1).all(-1, keepdim=True)
        corner = one_hot(mode.argmax(-1), mode.shape[-1]).to(mode.dtype)
        return where(below, corner, mode)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        total = a.sum(-1, keepdim=True)
        return a * (total - a) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        wanted = self.concentration.expand(self._extended_shape(sample_shape))
        kind = finfo(wanted.dtype)
        drawn = standard_gamma(wanted).clamp(min=kind.tiny)
        return (drawn / drawn.sum(-1, keepdim=True)).clamp(min=kind.tiny, max=1 - kind.eps / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        a = self.concentration
        return xlogy(a - 1.0, value).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a = self.concentration
        count, total = a.shape[-1], a.sum(-1)
        return (
            lgamma(a).sum(-1)
            - lgamma(total)
            - (count - total) * digamma(total)
            - ((a - 1.0) * digamma(a)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))
