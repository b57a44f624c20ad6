"""Which transform leads from all real numbers to a constraint: `biject_to`, `transform_to`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints as c
from . import transforms as t


class ConstraintRegistry:
    """A table from types of constraints to functions that make transforms.

    >>> from tgraph import tensor
    >>> biject_to(c.positive)(tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], t.Transform]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Enter a function for a constraint, or for a class of constraints. Also a decorator."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = type(constraint) if isinstance(constraint, c.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, c.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> t.Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()
BOTH = (biject_to, transform_to)


def _interval(constraint: Any) -> t.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and (low, high) == (0, 1):
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _above(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.lower_bound, 1)])


def _below(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.upper_bound, -1)])


for _registry in BOTH:
    _registry.register(c.real, lambda constraint: t.identity_transform)
    for _kind in (c.greater_than, c.greater_than_eq):
        _registry.register(_kind, _above)
    _registry.register(c.less_than, _below)
    for _kind in (c.interval, c.half_open_interval):
        _registry.register(_kind, _interval)
    _registry.register(c.corr_cholesky, lambda constraint: t.CorrCholeskyTransform())

biject_to.register(c.simplex, lambda constraint: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda constraint: t.SoftmaxTransform())
transform_to.register(c.lower_cholesky, lambda constraint: t.LowerCholeskyTransform())
for _constraint in (c.positive_definite, c.positive_semidefinite):
    transform_to.register(_constraint, lambda constraint: t.PositiveDefiniteTransform())


def _of_parts(registry: ConstraintRegistry) -> None:
    @registry.register(c.independent)
    def _independent(constraint: Any) -> t.Transform:
        base = registry(constraint.base_constraint)
        return t.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(c.cat)
    def _cat(constraint: Any) -> t.Transform:
        parts = [registry(each) for each in constraint.cseq]
        return t.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(c.stack)
    def _stack(constraint: Any) -> t.Transform:
        return t.StackTransform([registry(each) for each in constraint.cseq], constraint.dim)


for _registry in BOTH:
    _of_parts(_registry)
