"""Distributions of transformed random variables."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ..core.grad_mode import no_grad
from ..core.tensor import Size, Tensor
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transform import ComposeTransform, Transform
from .utils import sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of f(X), for X of `base_distribution` and f one transform after another.

    >>> from tgraph.distributions import Normal
    >>> from tgraph.distributions.transforms import ExpTransform
    >>> from tgraph import tensor
    >>> TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()]).log_prob(tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(each, Transform) for each in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        base_dist, shape = self._fitting(base_distribution, whole)
        own_event_dim = len(base_distribution.event_shape)
        more = whole.domain.event_dim - own_event_dim
        self.base_dist = Independent(base_dist, more) if more > 0 else base_dist
        change = whole.codomain.event_dim - whole.domain.event_dim
        cut = len(shape) - max(whole.codomain.event_dim, own_event_dim + change)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    @staticmethod
    def _fitting(base: Distribution, whole: Transform) -> tuple[Distribution, Size]:
        """The base with the batch that the transform's parameters ask for, and the final shape."""
        own = base.batch_shape + base.event_shape
        if len(own) < whole.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{whole.domain.event_dim}, but got {own}."
            )
        shape = Size(whole.forward_shape(own))
        needed = Size(whole.inverse_shape(shape))
        if tuple(needed) != tuple(own):
            base = base.expand(needed[: len(needed) - len(base.event_shape)])
        return base, shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        shape = Size(batch_shape) + self.event_shape
        for each in reversed(self.transforms):
            shape = each.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        found: Self = super().expand(batch_shape, new)
        return found

    def _own_init(self) -> bool:
        return False  # `expand` makes all that there is, whatever made the base and the transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def _transformed(self, x: Tensor) -> Tensor:
        for each in self.transforms:
            x = each(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked_value(value)
        event_dim = len(self.event_shape)
        total: Any = 0.0
        for each in reversed(self.transforms):
            x = each.inv(y)
            event_dim += each.domain.event_dim - each.codomain.event_dim
            jacobian = each.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(jacobian, event_dim - each.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))  # type: ignore[no-any-return]

    def _rising(self, chance: Tensor) -> Tensor:
        """The probability, or its complement where the transforms fall."""
        sign: Any = 1
        for each in self.transforms:
            sign = sign * each.sign
        if isinstance(sign, int) and sign == 1:
            return chance
        return sign * (chance - 0.5) + 0.5  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        for each in reversed(self.transforms):
            value = each.inv(value)
        if self._validate_args:
            value = self.base_dist._validate_sample(value)
        return self._rising(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._rising(value)))
