"""Dropout."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zeroes elements with probability `p` and divides the others by 1 - p.

    Source: Srivastava et al., "Dropout: A simple way to prevent neural networks from overfitting"
    (2014).

    >>> import tgraph as tg
    >>> drop = tg.nn.Dropout(0.5)
    >>> sorted(set(drop(tg.ones(100)).tolist()))
    [0.0, 2.0]
    >>> drop.eval()(tg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """In training, zeroes whole channels of [N, C, L] or [C, L], each with chance `p`.

    >>> import tgraph as tg
    >>> dropped = tg.nn.Dropout1d(0.5)(tg.ones(2, 3, 4))
    >>> bool((dropped.amax(2) == dropped.amin(2)).all())
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """In training, zeroes whole channels of [N, C, H, W] or [N, C, L], each with chance `p`.

    >>> import tgraph as tg
    >>> dropped = tg.nn.Dropout2d(0.5)(tg.ones(2, 3, 4, 4))
    >>> bool((dropped.amax((2, 3)) == dropped.amin((2, 3))).all())
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """In training, zeroes whole channels of [N, C, D, H, W] or [C, D, H, W], each with chance `p`.

    >>> import tgraph as tg
    >>> dropped = tg.nn.Dropout3d(0.5)(tg.ones(2, 3, 4, 4, 4))
    >>> bool((dropped.amax((2, 3, 4)) == dropped.amin((2, 3, 4))).all())
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout behind `SELU`: elements become its lowest value, so that mean and variance stay.

    Source: Klambauer et al., "Self-normalizing neural networks" (2017).

    >>> import tgraph as tg
    >>> len(set(tg.nn.AlphaDropout(0.5)(tg.zeros(100)).tolist()))
    2
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels of [N, C, *].

    >>> import tgraph as tg
    >>> tg.nn.FeatureAlphaDropout(0.2)(tg.zeros(2, 3, 4)).shape
    tgraph.Size([2, 3, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
