"""Multivariate normal distributions with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Size, Tensor
from ..ops.factorizations import cholesky, solve_triangular
from ..ops.movement import broadcast_shapes
from . import constraints
from .distribution import Distribution
from .multivariate_normal import batch_mahalanobis, half_log_det
from .utils import diagonal_matrix, identity_like, lazy_property, standard_normal


def capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    inner = scaled @ factor
    return cholesky(inner + identity_like(inner))


def lowrank_log_det(diagonal: Tensor, capacitance: Tensor) -> Tensor:
    """The logarithm of the determinant of W W^T + D, by the matrix determinant lemma."""
    return 2 * half_log_det(capacitance) + diagonal.log().sum(-1)


def lowrank_mahalanobis(
    factor: Tensor, diagonal: Tensor, difference: Tensor, capacitance: Tensor
) -> Tensor:
    """Squares of lengths measured by W W^T + D, by Woodbury's identity."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    inner = (scaled @ difference.unsqueeze(-1)).squeeze(-1)
    whole = (difference.square() / diagonal).sum(-1)
    return whole - batch_mahalanobis(capacitance, inner)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    tensors = (
        "loc", "cov_factor", "cov_diag", "scale_tril", "covariance_matrix", "precision_matrix",
    )  # fmt: skip

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.ndim < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        size = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size[0]} x m")
        if cov_diag.shape[-1:] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {tuple(size)}")
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(*batch, -1)
        super().__init__(batch, size, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LowRankMultivariateNormal:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        found: LowRankMultivariateNormal = super().expand(Size(batch_shape), new)
        return found

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        whole = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return whole.expand(*self._batch_shape, *self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        whole = factor @ factor.mT + diagonal_matrix(self._unbroadcasted_cov_diag)
        size = self._event_shape[0]
        return whole.expand(*self._batch_shape, size, size)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        scaled = factor.mT / diagonal.unsqueeze(-2)
        inner = solve_triangular(self._capacitance_tril, scaled, upper=False)
        whole = diagonal_matrix(diagonal.reciprocal()) - inner.mT @ inner
        size = self._event_shape[0]
        return whole.expand(*self._batch_shape, size, size)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rank = self.cov_factor.shape[-1]
        inner = standard_normal((*shape[:-1], rank), self.loc.dtype, self.loc.device)
        noise = standard_normal(shape, self.loc.dtype, self.loc.device)
        along = (self._unbroadcasted_cov_factor @ inner.unsqueeze(-1)).squeeze(-1)
        return self.loc + along + self._unbroadcasted_cov_diag.sqrt() * noise

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        distance = lowrank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            value - self.loc,
            self._capacitance_tril,
        )
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def _log_det(self) -> Tensor:
        return lowrank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)

    def entropy(self) -> Tensor:
        size = self._event_shape[0]
        found = 0.5 * (size * (1 + math.log(2 * math.pi)) + self._log_det())
        return found.expand(self._batch_shape)
