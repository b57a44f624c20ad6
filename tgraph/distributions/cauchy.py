"""Cauchy distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Tensor
from ..ops.creation import full_like
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, uniform_like


class Cauchy(Distribution):
    """Cauchy numbers of median `loc` and half width at half height `scale`; they have no mean."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    tensors = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        chance = uniform_like(self._extended_shape(sample_shape), self.loc)
        return self.loc + (math.pi * (chance - 0.5)).tan() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        away = ((value - self.loc) / self.scale).square()
        return -math.log(math.pi) - self.scale.log() - away.log1p()

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
