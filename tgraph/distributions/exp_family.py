"""Exponential families, whose entropies and divergences follow from their log-normalizers."""

from __future__ import annotations

from typing import Any

from ..autograd.api import grad
from ..core.grad_mode import recorded
from ..core.tensor import Tensor
from .distribution import Distribution


class ExponentialFamily(Distribution):
    """Densities of the form h(x) exp(t(x) . eta - F(eta)).

    Subclasses give the natural parameters eta, the log-normalizer F and the mean of log h(x).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(eta) - eta . F'(eta) less the mean of log h(x) (Nielsen and Nock, 2010)."""
        with recorded():
            points = [each.detach().requires_grad_() for each in self._natural_params]
            total = self._log_normalizer(*points)
            slopes = grad(total.sum(), points, create_graph=True)
        result = -self._mean_carrier_measure + total
        for point, slope in zip(points, slopes, strict=True):
            own = (point * slope).reshape(*self._batch_shape, -1).sum(-1)
            result = result - own
        return result
