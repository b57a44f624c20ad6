"""Distributions of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.dtype_info import finfo
from ..core.grad_mode import no_grad
from ..core.tensor import Size, Tensor
from ..ops.creation import arange, eye
from ..ops.random import randn
from ..ops.special_functions import lgamma
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, log_multigamma


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices C of (dim, dim).

    The density of C is proportional to `det(C) ** (concentration - 1)`: 1 makes all equally likely.
    Drawn row by row, as in Lewandowski, Kurowicka and Joe, "Generating random correlation matrices
    based on vines and extended onion method" (2009), section 3. (PyTorch draws longer rows from the
    third on, whose correlations are not of this density.)

    >>> from tgraph import eye
    >>> LKJCholesky(3, 1.0).log_prob(eye(3))
    tensor(-1.5963)
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LKJCholesky:
        made: LKJCholesky = self._get_checked_instance(LKJCholesky, _instance)
        made.dim = self.dim
        made.concentration = self.concentration.expand(batch_shape)
        Distribution.__init__(made, Size(batch_shape), self.event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    @property
    def _beta(self) -> Beta:
        """The squared lengths of the rows left of the diagonal."""
        rows = arange(
            self.dim - 1, dtype=self.concentration.dtype, device=self.concentration.device
        )
        offset = rows.new_tensor([0.0, *range(self.dim - 1)])
        marginal = (self.concentration + 0.5 * (self.dim - 2)).unsqueeze(-1)
        return Beta(0.5 * offset + 0.5, marginal - 0.5 * offset, validate_args=False)

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        squares = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normals = randn(shape, dtype=squares.dtype, device=squares.device).tril(-1)
        lengths = normals.square().sum(-1, keepdim=True).sqrt()
        below = squares.sqrt() * normals / lengths.clamp(min=finfo(squares.dtype).tiny)
        rest = (1 - below.square().sum(-1)).clamp(min=finfo(squares.dtype).tiny).sqrt()
        return below + rest.unsqueeze(-1) * eye(self.dim, dtype=below.dtype, device=below.device)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        size = self.dim - 1
        rows = arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        density = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * size
        constant = 0.5 * size * math.log(math.pi) + log_multigamma(alpha - 0.5, size)
        return density - (constant - lgamma(alpha) * size)
