"""Fisher-Snedecor distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.dtype_info import finfo
from ..core.tensor import Tensor
from ..ops.elementwise import where
from ..ops.special_functions import lgamma
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all


class FisherSnedecor(Distribution):
    """Quotients of two chi-squared numbers over their degrees of freedom `df1` and `df2`."""

    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    tensors = ("df1", "df2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        df2 = where(self.df2 > 4, self.df2, math.nan)
        spread = 2 * df2.square() * (self.df1 + df2 - 2)
        return spread / (self.df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above, below = (
            Gamma(df * 0.5, df, validate_args=False).rsample(sample_shape)
            for df in (self.df1, self.df2)
        )
        tiny = finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        half1, half2 = self.df1 * 0.5, self.df2 * 0.5
        quotient = self.df1 / self.df2
        return (
            lgamma(half1 + half2)
            - lgamma(half1)
            - lgamma(half2)
            + half1 * quotient.log()
            + (half1 - 1) * value.log()
            - (half1 + half2) * (quotient * value).log1p()
        )
