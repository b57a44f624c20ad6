"""Constants that all contenders share."""

from typing import NamedTuple

SOFTENING = 1e-3


class Adam(NamedTuple):
    rate: float
    beta1: float
    beta2: float
    epsilon: float
    decay: float


class Momentum(NamedTuple):
    rate: float
    momentum: float
    decay: float = 0.0


# Small steps: timing makes hundreds, and values must not run to zero or infinity meanwhile.
ADAMW = Adam(1e-4, 0.9, 0.999, 1e-8, 0.01)
SGD = Momentum(1e-3, 0.9)
DECAYED = Momentum(1e-3, 0.9, 5e-4)
DROPPED = 0.1


def heads(width: int) -> int:
    """Heads of attention: 64 numbers each, and at least four."""
    return max(4, width // 64)
