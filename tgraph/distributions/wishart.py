"""Wishart distributions."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..core.dtype_info import finfo
from ..core.state import state
from ..core.tensor import Size, Tensor
from ..ops.creation import arange, eye
from ..ops.determinants import slogdet
from ..ops.elementwise import where
from ..ops.factorizations import cholesky, solve_triangular
from ..ops.from_data import as_tensor
from ..ops.movement import broadcast_shapes
from ..ops.random import randn
from ..ops.special_functions import digamma
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .multivariate_normal import half_log_det, inverse_of_factored, precision_to_scale_tril
from .utils import checked, lazy_property, log_multigamma


class Wishart(ExponentialFamily):
    """Positive definite matrices: sums of `df` outer products of normal vectors.

    Their covariance is given as `covariance_matrix`, its inverse `precision_matrix`, or its
    Cholesky factor `scale_tril`. Drawn by Bartlett's decomposition.

    >>> from tgraph import eye, tensor
    >>> Wishart(tensor(3.0), eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """What each parameter must satisfy: more degrees of freedom than columns, less one."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        ways = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = [(name, each) for name, each in ways.items() if each is not None]
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given
        if matrix.ndim < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        df = as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = broadcast_shapes(matrix.shape[:-2], df.shape)
        size = matrix.shape[-1]
        self.df = checked(
            df > size - 1, df.expand(batch),
            lambda: f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.",
        )  # fmt: skip
        setattr(self, name, matrix.expand(*batch, -1, -1))
        if state.context is None and bool((df < size).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Wishart:
        made: Wishart = self._get_checked_instance(Wishart, _instance)
        shape = Size(batch_shape)
        made.df = self.df.expand(shape)
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if name in self.__dict__:
                setattr(made, name, self.__dict__[name].expand(*shape, *self._event_shape))
        Distribution.__init__(made, shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(*self._batch_shape, *self._event_shape)

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
    def _matrix_df(self) -> Tensor:
        return self.df[..., None, None]

    @property
    def mean(self) -> Tensor:
        return self._matrix_df * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """NaN where there is none."""
        factor = self._matrix_df - self._event_shape[-1] - 1
        return where(factor <= 0, math.nan, factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._matrix_df * (covariance.square() + products)

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draws; `max_try_correction` changes nothing, as draws are clamped away from zero."""
        size = self._event_shape[-1]
        rows = arange(size, dtype=self.df.dtype, device=self.df.device)
        chi2 = Chi2(self.df.unsqueeze(-1) - rows, validate_args=False)
        lengths = chi2.rsample(sample_shape).sqrt().clamp(min=finfo(self.df.dtype).eps)
        normals = randn(
            self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device
        )
        unit = eye(size, dtype=self.df.dtype, device=self.df.device)
        lower = self._unbroadcasted_scale_tril @ (normals.tril(-1) + lengths.unsqueeze(-1) * unit)
        return lower @ lower.mT

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        size, lower = self._event_shape[-1], self._unbroadcasted_scale_tril
        weighed = solve_triangular(lower, value, upper=False)
        ratio = solve_triangular(lower.mT, weighed, upper=True)
        return (
            -self.df * (size * math.log(2) / 2 + half_log_det(lower))
            - log_multigamma(self.df / 2, size)
            + (self.df - size - 1) / 2 * slogdet(value)[1]
            - ratio.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self) -> Tensor:
        size, half = self._event_shape[-1], self.df / 2
        places = arange(size, dtype=self.df.dtype, device=self.df.device)
        digammas = digamma(half.unsqueeze(-1) - places / 2).sum(-1)
        return (
            (size + 1) * (size * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + log_multigamma(half, size)
            - (self.df - size - 1) / 2 * digammas
            + self.df * size / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        return half * (math.log(2) * size - slogdet(-2 * x)[1]) + log_multigamma(half, size)
