"""Points that fill a cube evenly."""

from __future__ import annotations

import warnings
from typing import Any

from .core.tensor import Tensor
from .ops import creation_options, from_data
from .runtime.dtypes import DType

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of a Sobol sequence in [0, 1) of a number of dimensions, by `scipy.stats.qmc`.

    With `scramble` the sequence is a random one of its kind, by a `seed`.

    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXDIM = 21201
    MAXBIT = 30

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._sequence: Any = self._begun()

    def _begun(self) -> Any:
        from scipy.stats import qmc

        return qmc.Sobol(self.dimension, scramble=self.scramble, bits=self.MAXBIT, seed=self.seed)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `n` points: (n, dimension)."""
        wanted = creation_options.get_default_dtype() if dtype is None else dtype
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that are no powers of 2
            points = self._sequence.random(n)
        self.num_generated += n
        made = from_data.tensor(points, dtype=wanted)
        return made if out is None else out.resize_(n, self.dimension).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `2**m` points, which have to end at a power of two points in all."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self._sequence.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over `n` points."""
        self._sequence.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        names = [f"dimension={self.dimension}"]
        names += ["scramble=True"] if self.scramble else []
        names += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(names)})"
