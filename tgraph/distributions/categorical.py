"""Categorical distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.dtype_info import finfo
from ..core.grad_mode import no_grad
from ..core.tensor import Size, Tensor
from ..ops import random
from ..ops.creation import arange, full
from ..runtime.dtypes import int64
from . import constraints
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


class Categorical(Distribution):
    """An index, with probabilities proportional to `probs`, or to the exponentials of `logits`.

    The probabilities lie along the last dimension.

    >>> from tgraph import tensor
    >>> Categorical(tensor([1.0, 3.0])).log_prob(tensor(1)).exp()
    tensor(0.7500)
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True
    tensors = ("probs", "logits")

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            if probs.ndim < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        elif logits is not None:
            if logits.ndim < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        """The parameter that was given."""
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]  # type: ignore[no-any-return]

    @lazy_property
    def logits(self) -> Tensor:
        """Log-probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Categorical:
        new = self._get_checked_instance(Categorical, _instance)
        new._num_events = self._num_events
        found: Categorical = super().expand(batch_shape, new)
        return found

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = random.multinomial(rows, max(shape.numel(), 1), True).T
            if not shape.numel():
                drawn = drawn[:0]
            return drawn.reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        value = value.to(int64).unsqueeze(-1)
        shape = (value + self.logits[..., :1]).shape[:-1]
        index = value.expand(*shape, 1)
        return self.logits.expand(*shape, self._num_events).gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, dtype=int64, device=self._param.device)
        values = values.reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
