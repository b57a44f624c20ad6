"""Student's t distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Tensor
from ..ops.elementwise import where
from ..ops.special_functions import digamma, lgamma
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all, standard_normal


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, moved by `loc` and scaled by `scale`."""

    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    tensors = ("df", "loc", "scale")

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        spread = self.scale.square() * self.df / where(self.df > 2, self.df - 2, 1.0)
        infinite = where(self.df > 1, math.inf, math.nan).to(self.df.dtype)
        return where(self.df > 2, spread, infinite)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = standard_normal(shape, self.df.dtype, self.df.device)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * noise * (squares / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        away = (value - self.loc) / self.scale
        whole = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + lgamma(0.5 * self.df)
            - lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * (away.square() / self.df).log1p() - whole

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        log_beta = lgamma(half) + math.lgamma(0.5) - lgamma(half + 0.5)
        more = (half + 0.5) * (digamma(half + 0.5) - digamma(half))
        return self.scale.log() + more + 0.5 * self.df.log() + log_beta
