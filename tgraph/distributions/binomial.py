"""Binomial distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.count_draws import binomial
from ..ops.creation import arange
from ..ops.special_functions import lgamma, xlogy
from . import constraints
from .bernoulli import BinaryDistribution
from .utils import broadcast_all


class Binomial(BinaryDistribution):
    """The number of successes of probability `probs` among `total_count` trials."""

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    tensors = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        kept = self._take(probs, logits)
        self.total_count, kept = broadcast_all(total_count, kept)
        self.total_count = self.total_count.to(kept.dtype)
        setattr(self, "probs" if self._is_given_probs else "logits", kept)
        super().__init__(kept.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _count(self) -> int:
        return int(self.total_count.max())

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        count = self.total_count
        ways = lgamma(count + 1) - lgamma(value + 1) - lgamma(count - value + 1)
        if self._is_given_probs:
            # Which is exact for probabilities of 0 and 1, too.
            return ways + xlogy(value, self.probs) + xlogy(count - value, 1 - self.probs)
        logits = self.logits
        # -count * log(1 + exp(logits)), without overflow
        none = count * (logits.clamp(min=0) + (-logits.abs()).exp().log1p())
        return value * logits - none + ways

    def entropy(self) -> Tensor:
        if not bool((self.total_count == self.total_count.max()).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        chances = self.log_prob(self.enumerate_support(False))
        return -(chances.exp() * chances).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._count()
        if not bool((self.total_count == count).all()):
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        param = self._param
        values = arange(count + 1, dtype=param.dtype, device=param.device)
        values = values.reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
