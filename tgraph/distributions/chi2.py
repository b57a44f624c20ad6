"""Chi-squared distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.tensor import Tensor
from . import constraints
from .gamma import Gamma
from .utils import broadcast_all


class Chi2(Gamma):
    """Sums of the squares of `df` standard normal numbers."""

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}
    tensors = ("concentration", "rate")

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
