"""Geometric distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.elementwise import where
from ..ops.losses import binary_cross_entropy_with_logits
from . import constraints
from .bernoulli import BinaryDistribution
from .utils import broadcast_all, checked, uniform_like


class Geometric(BinaryDistribution):
    """The number of failures before the first success of probability `probs`."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    tensors = ("probs", "logits")

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            self.probs = checked(
                self.probs > 0,
                self.probs,
                lambda: (
                    f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of "
                    f"distribution {self!r} to be positive"
                ),
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            chance = uniform_like(self._extended_shape(sample_shape), self.probs)
            return (chance.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        value, probs = broadcast_all(value, self.probs)
        certain = (probs == 1) & (value == 0)
        return value * (-where(certain, 0, probs)).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        both = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return both / self.probs
