"""Negative binomial distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.activations import logsigmoid
from ..ops.count_draws import poisson
from ..ops.elementwise import where
from ..ops.special_functions import lgamma
from . import constraints
from .bernoulli import BinaryDistribution
from .gamma import Gamma
from .utils import broadcast_all


class NegativeBinomial(BinaryDistribution):
    """The number of successes of probability `probs` before `total_count` failures."""

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    tensors = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        kept = self._take(probs, logits)
        self.total_count, kept = broadcast_all(total_count, kept)
        self.total_count = self.total_count.to(kept.dtype)
        setattr(self, "probs" if self._is_given_probs else "logits", kept)
        super().__init__(kept.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        count = self.total_count
        whole = count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = lgamma(count + value) - lgamma(1.0 + value) - lgamma(count)
        return whole + where(count + value == 0.0, 0.0, ways)
