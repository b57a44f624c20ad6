"""Continuous Bernoulli distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Tensor
from ..ops.creation import full_like
from ..ops.elementwise import where
from ..ops.losses import binary_cross_entropy_with_logits
from ..ops.random import rand
from . import constraints
from .bernoulli import BinaryDistribution
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs


class ContinuousBernoulli(BinaryDistribution, ExponentialFamily):
    """Numbers in [0, 1] of a density proportional to probs**x * (1 - probs)**(1 - x).

    For probabilities within `lims`, near 1/2 (Loaiza-Ganem and Cunningham, 2019), formulas would
    divide 0 by 0: there series take their place.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    tensors = ("probs", "logits")

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        kept = self._take(probs, logits)
        if self._is_given_probs:
            if validate_args is not None and not bool(((kept >= 0) & (kept <= 1)).all()):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(kept)
        self._lims = lims
        super().__init__(kept.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ContinuousBernoulli:
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        found: ContinuousBernoulli = super().expand(batch_shape, new)
        return found

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> tuple[Tensor, Tensor]:
        """Where formulas hold, and probabilities that are far enough from 1/2 everywhere."""
        outside = self._outside()
        return outside, where(outside, self.probs, full_like(self.probs, self._lims[0]))

    def log_normalizer(self) -> Tensor:
        """The logarithm of what the density is multiplied by to have the integral 1."""
        outside, probs = self._cut()
        whole = ((-probs).log1p() - probs.log()).abs().log() - (1 - 2 * probs).abs().log()
        x = (self.probs - 0.5).square()
        return where(outside, whole, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        outside, probs = self._cut()
        whole = probs / (2.0 * probs - 1.0) + 1.0 / ((-probs).log1p() - probs.log())
        x = self.probs - 0.5
        return where(outside, whole, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        outside, probs = self._cut()
        whole = probs * (probs - 1.0) / (1.0 - 2.0 * probs).square()
        whole = whole + 1.0 / ((-probs).log1p() - probs.log()).square()
        x = (self.probs - 0.5).square()
        return where(outside, whole, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(*shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        logits, value = broadcast_all(self.logits, value)
        entropy = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self.log_normalizer() - entropy

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        outside, probs = self._cut()
        whole = probs**value * (1.0 - probs) ** (1.0 - value) + probs - 1.0
        inner = where(outside, whole / (2.0 * probs - 1.0), value)
        return where(value <= 0.0, 0.0, where(value >= 1.0, 1.0, inner))

    def icdf(self, value: Tensor) -> Tensor:
        outside, probs = self._cut()
        none = (-probs).log1p()
        whole = (-probs + value * (2.0 * probs - 1.0)).log1p() - none
        return where(outside, whole / (probs.log() - none), value)

    def entropy(self) -> Tensor:
        none, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (none - one) - self.log_normalizer() - none

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)
