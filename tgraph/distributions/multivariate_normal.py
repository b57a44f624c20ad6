"""Multivariate normal distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Size, Tensor
from ..ops.factorizations import cholesky, solve_triangular
from ..ops.movement import broadcast_shapes
from . import constraints
from .distribution import Distribution
from .utils import identity_like, lazy_property, standard_normal


def batch_mahalanobis(lower: Tensor, difference: Tensor) -> Tensor:
    """The squares of the lengths of `difference`, measured by the covariance `lower @ lower.mT`."""
    shape = broadcast_shapes(lower.shape[:-2], difference.shape[:-1])
    size = lower.shape[-1]
    if lower.ndim == 2:  # one factor for all vectors: they are the columns of one system
        rows = difference.reshape(-1, size)
        solved = solve_triangular(lower, rows.T, upper=False)
        return solved.square().sum(0).reshape(shape)
    vectors = difference.expand(*shape, size).unsqueeze(-1)
    solved = solve_triangular(lower.expand(*shape, size, size), vectors, upper=False)
    return solved.square().sum((-2, -1))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a matrix, by factors of it turned around."""
    turned = cholesky(precision.flip(-2, -1))
    upper = turned.flip(-2, -1).mT
    return solve_triangular(upper, identity_like(precision), upper=False)


def inverse_of_factored(lower: Tensor) -> Tensor:
    """The inverse of `lower @ lower.mT`."""
    inverse = solve_triangular(lower, identity_like(lower).expand(lower.shape), upper=False)
    return inverse.mT @ inverse


def half_log_det(lower: Tensor) -> Tensor:
    """Half the logarithm of the determinant of `lower @ lower.mT`."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(Distribution):
    """Normal vectors of mean `loc`, with a covariance given in one of three ways.

    `covariance_matrix`, its inverse `precision_matrix`, or its Cholesky factor `scale_tril`, which
    is the cheapest.

    >>> from tgraph import eye, zeros
    >>> MultivariateNormal(zeros(2), eye(2)).log_prob(zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    tensors = (
        "loc", "_unbroadcasted_scale_tril", "covariance_matrix", "precision_matrix", "scale_tril",
    )  # fmt: skip

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        ways = {
            "covariance_matrix": covariance_matrix,
            "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }
        given = [(name, each) for name, each in ways.items() if each is not None]
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given
        if matrix.ndim < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(*batch, -1, -1))
        self.loc = loc.expand(*batch, -1)
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MultivariateNormal:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        shape = Size(batch_shape)
        size = self._event_shape[0]
        new.loc = self.loc.expand(*shape, size)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(*shape, size, size))
        Distribution.__init__(new, shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new  # type: ignore[no-any-return]

    def _whole(self, matrix: Tensor) -> Tensor:
        size = self._event_shape[0]
        return matrix.expand(*self._batch_shape, size, size)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        lower = self._unbroadcasted_scale_tril
        return self._whole(lower @ lower.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._whole(inverse_of_factored(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.square().sum(-1)
        return squares.expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        lower = self._unbroadcasted_scale_tril
        distance = batch_mahalanobis(lower, value - self.loc)
        size = self._event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + distance) - half_log_det(lower)

    def entropy(self) -> Tensor:
        size = self._event_shape[0]
        found = 0.5 * size * (1 + math.log(2 * math.pi)) + half_log_det(
            self._unbroadcasted_scale_tril
        )
        return found.expand(self._batch_shape)
