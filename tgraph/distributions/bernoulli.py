"""Bernoulli distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops import random
from ..ops.creation import arange
from ..ops.elementwise import where
from ..ops.losses import binary_cross_entropy_with_logits
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class BinaryDistribution(Distribution):
    """With the parameter `probs` or `logits`, of which the other one follows."""

    tensors = ("probs", "logits")

    def _take(self, probs: Any, logits: Any) -> Tensor:
        """Keep the one that is given; ValueError for both or none."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        (kept,) = broadcast_all(given)
        setattr(self, name, kept)
        return kept

    @property
    def _param(self) -> Tensor:
        """The parameter that was given."""
        return self.__dict__["probs" if self._is_given_probs else "logits"]  # type: ignore[no-any-return]

    @property
    def _is_given_probs(self) -> bool:
        return "probs" in self.__dict__

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()


class Bernoulli(BinaryDistribution, ExponentialFamily):
    """1 with probability `probs`, else 0; `logits` are log odds.

    >>> from tgraph import tensor
    >>> Bernoulli(tensor(0.25)).mean
    tensor(0.2500)
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    tensors = ("probs", "logits")

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return where(self.probs == 0.5, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return random.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        param = self._param
        values = arange(2, dtype=param.dtype, device=param.device)
        values = values.reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp().log1p()
