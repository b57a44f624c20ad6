"""Gamma distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.dtype_info import finfo
from ..core.tensor import Tensor
from ..ops.incomplete_gamma import igamma
from ..ops.special_functions import digamma, lgamma, xlogy
from . import constraints
from .exp_family import ExponentialFamily
from .gamma_draws import standard_gamma
from .utils import broadcast_all


class Gamma(ExponentialFamily):
    """Gamma numbers of shape `concentration` and of `rate`, the inverse of their scale.

    >>> from tgraph import tensor
    >>> Gamma(tensor(3.0), tensor(2.0)).mean
    tensor(1.5000)
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    tensors = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = standard_gamma(self.concentration.expand(shape)) / self.rate
        return drawn.clamp(min=finfo(drawn.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        return (
            xlogy(self.concentration, self.rate)
            + xlogy(self.concentration - 1, value)
            - self.rate * value
            - lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        return igamma(self.concentration, self.rate * self._checked_value(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1.0 - a) * digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return lgamma(x + 1) + (x + 1) * (-y.reciprocal()).log()
