"""Continuous relaxations of Bernoulli distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.tensor import Tensor
from . import constraints
from .bernoulli import BinaryDistribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs, uniform_like


class LogitRelaxedBernoulli(BinaryDistribution):
    """Logits of relaxed Bernoulli numbers (Maddison et al., 2017)."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real
    has_rsample = True
    tensors = ("probs", "logits")

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LogitRelaxedBernoulli:
        new = self._get_checked_instance(LogitRelaxedBernoulli, _instance)
        new.temperature = self.temperature
        found: LogitRelaxedBernoulli = super().expand(batch_shape, new)
        return found

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        chance = clamp_probs(uniform_like(shape, probs))
        odds = chance.log() - (-chance).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        temperature = self.temperature
        if not isinstance(temperature, Tensor):
            temperature = away.new_full((), temperature)
        return temperature.log() + away - 2 * away.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) that go to those of a Bernoulli as `temperature` goes to 0."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How far from discrete the draws are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log odds."""
        found: Tensor = self.base_dist.logits
        return found

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        found: Tensor = self.base_dist.probs
        return found
