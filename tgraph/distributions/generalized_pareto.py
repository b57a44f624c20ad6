"""Generalized Pareto distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Tensor
from ..ops.elementwise import where
from ..ops.random import rand
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all


class GeneralizedPareto(Distribution):
    """Tails above `loc`: exponential where `concentration` is 0, heavier where it is positive."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    tensors = ("loc", "scale", "concentration")

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        negative = self.concentration < 0
        safe = where(negative, self.concentration, -1.0)
        return constraints.interval(
            self.loc, where(negative, self.loc - self.scale / safe, math.inf)
        )

    def _exponential(self) -> tuple[Tensor, Tensor]:
        """Where it is an exponential distribution, and what may be divided by everywhere."""
        zero = self.concentration.abs() <= 1e-8
        return zero, where(zero, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        valid = self.concentration < 1
        found = self.loc + self.scale / (1 - where(valid, self.concentration, 0.5))
        return where(valid, found, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        c = where(valid, self.concentration, 0.25)
        return where(valid, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(*shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        z = (value - self.loc) / self.scale
        zero, c = self._exponential()
        power = 1 / c + 1
        tail = where(power == 0, 0.0, power * (c * where(power == 0, 0.0, z)).log1p())
        return -self.scale.log() - where(zero, z, tail)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        value = self._checked_value(value)
        z = (value - self.loc) / self.scale
        zero, c = self._exponential()
        return where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        left = (-value).log1p()
        zero, c = self._exponential()
        tail = self.loc + self.scale / c * (-c * left).expm1()
        return where(zero, self.loc - self.scale * left, tail)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
