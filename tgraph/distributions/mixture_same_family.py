"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ..core.grad_mode import no_grad
from ..core.tensor import Size, Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """One of the components along the last batch dimension, chosen by a Categorical.

    >>> from tgraph import tensor
    >>> from tgraph.distributions import Normal
    >>> parts = Normal(tensor([-1.0, 3.0]), 1.0)
    >>> MixtureSameFamily(Categorical(tensor([0.5, 0.5])), parts).mean
    tensor(1.)
    """

    arg_constraints: ClassVar[Any] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "torch.distributions.Distribution"
            )
        own, parts = mixture_distribution.batch_shape, component_distribution.batch_shape
        for one, other in zip(reversed(own), reversed(parts[:-1]), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({own}) is not compatible with "
                    f"`component_distribution.batch_shape`({parts})"
                )
        count = mixture_distribution.logits.shape[-1]
        if parts[-1] != count:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({parts[-1]})"
            )
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(
            parts[:-1], component_distribution.event_shape, validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        shape = Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(
            (*shape, self._num_component)
        )
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        found: Self = super().expand(shape, new)
        return found

    def _own_init(self) -> bool:
        return type(self).__init__ is not MixtureSameFamily.__init__

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """What chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        probs: Tensor = self.mixture_distribution.probs
        return self._pad_mixture_dimensions(probs)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        weights, dim = self._weights(), -1 - self._event_ndims
        inner = (weights * self.component_distribution.variance).sum(dim)
        away = self.component_distribution.mean - self._pad(self.mean)
        return inner + (weights * away.square()).sum(dim)

    def cdf(self, value: Tensor) -> Tensor:
        chances = self.component_distribution.cdf(self._pad(value))
        return (chances * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._pad(self._checked_value(value))
        each = self.component_distribution.log_prob(value)
        weights = self.mixture_distribution.logits
        weights = weights - weights.logsumexp(-1, keepdim=True)
        return (each + weights).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        with no_grad():
            chosen = self.mixture_distribution.sample(shape)
            chosen = chosen.expand(shape + self.batch_shape)
            drawn = self.component_distribution.sample(shape)
            at = len(shape) + len(self.batch_shape)
            index = chosen.reshape(*chosen.shape, *(1,) * (self._event_ndims + 1))
            index = index.expand(*chosen.shape, 1, *self.event_shape)
            return drawn.gather(at, index).squeeze(at)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """With dimensions for the batch of the components and for their events."""
        own = self.mixture_distribution.batch_shape
        missing = 0 if len(own) else len(self.batch_shape)
        shape = (*x.shape[:-1], *(1,) * missing, x.shape[-1], *(1,) * self._event_ndims)
        return x.reshape(shape)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
