"""Von Mises distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops import random
from ..ops.count_draws import first_accepted
from ..ops.elementwise import where
from ..runtime.dtypes import float64
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

# Abramowitz and Stegun, 9.8.1 to 9.8.4: in (x / 3.75)**2 below 3.75, in 3.75 / x above.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537,
     -0.01647633, 0.00392377),
    (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312,
     0.01787654, -0.00420059),
)  # fmt: skip
_CANDIDATES = 40  # of which each is refused with a probability below 0.35


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    value: Any = coefficients[-1]
    for each in reversed(coefficients[:-1]):
        value = each + x * value
    return value  # type: ignore[no-any-return]


def log_bessel(x: Tensor, order: int) -> Tensor:
    """The logarithm of the modified Bessel function I of order 0 or 1."""
    small = _polynomial((x / 3.75).square(), _SMALL[order])
    if order == 1:
        small = x.abs() * small
    high = where(x < 3.75, 3.75, x)
    large = high - 0.5 * high.log() + _polynomial(3.75 / high, _LARGE[order]).log()
    return where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """Angles in radians around `loc`; the mean and the variance are the circular ones."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real
    tensors = ("loc", "concentration")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        kappa = self.concentration
        return 1 - (log_bessel(kappa, 1) - log_bessel(kappa, 0)).exp()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By the rejection of Best and Fisher (1979), in float64."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            kappa, loc = (each.to(float64) for each in (self.concentration, self.loc))
            tau = 1 + (1 + 4 * kappa.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho.square()) / (2 * rho))
            many = (3, _CANDIDATES, *shape)
            u1, u2, u3 = (1 - random.rand(*many, dtype=float64, device=loc.device)).unbind()
            z = (math.pi * u1).cos()
            f = ((1 + r * z) / (r + z)).clamp(min=-1, max=1)
            c = kappa * (r - f)
            accepted = (c * (2 - c) > u2) | ((c / u2).log() + 1 - c >= 0)
            angle = first_accepted((u3 - 0.5).sign() * f.acos(), accepted)
            turned = (angle + math.pi + loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked_value(value)
        along = self.concentration * (value - self.loc).cos()
        return along - math.log(2 * math.pi) - log_bessel(self.concentration, 0)
