"""Continuous relaxations of one-hot vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Size, Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import clamp_probs, uniform_like


class ExpRelaxedCategorical(Distribution):
    """Logarithms of relaxed one-hot vectors (Maddison et al., 2017)."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ExpRelaxedCategorical:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        found: ExpRelaxedCategorical = super().expand(batch_shape, new)
        return found

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """Log-probabilities."""
        found: Tensor = self._categorical.logits
        return found

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        found: Tensor = self._categorical.probs
        return found

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        chance = clamp_probs(uniform_like(shape, self.logits))
        scores = (self.logits - (-chance.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        count = self._event_shape[0]
        score = self.logits - value * self.temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        temperature = self.temperature
        if not isinstance(temperature, Tensor):
            temperature = score.new_full((), temperature)
        return score + math.lgamma(count) + (count - 1) * temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex that go to one-hot vectors as `temperature` goes to 0."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How far from one-hot the draws are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log-probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self.base_dist.probs
