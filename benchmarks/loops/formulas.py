"""A solver of differential equations whose steps adapt, as it reads in every library.

`library` has NumPy's names (maximum, where, sqrt). The method is Dormand and Prince's of order five
(1980), its steps are controlled as in Hairer and Wanner, "Solving Ordinary Differential Equations
II", IV.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Slope = Callable[[Sequence[Any]], Sequence[Any]]  # of what the state consists of

STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
END, FIRST_STEP, ACCURACY = 10.0, 0.05, 1e-4


def begin(slope: Slope, y: Sequence[Any], number: Callable[[float], Any]) -> tuple[Any, ...]:
    """The first state of the loop: time, step, last error, state of the equation and its slope."""
    return number(0.0), number(FIRST_STEP), number(1.0), tuple(y), tuple(slope(y))


def step(library: Any, slope: Slope, counted: int, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """The state after another turn; it goes on while its time is below `END`.

    The first `counted` parts of the equation decide how large steps are.
    """
    t, h, before, y, first = state
    is_last = t + h >= END
    taken = library.where(is_last, END - t, h)
    slopes, after = [first], y
    for weights in STAGES:
        after = _moved(y, taken, weights, slopes)
        slopes.append(slope(after))
    error = _error(library, counted, y, after, _moved(None, taken, ERROR, slopes))
    accepted = error <= 1
    factor = library.maximum(0.9 * error**-0.14 * before**0.08, 0.2 + 0 * error)
    h = taken * library.where(accepted, library.minimum(factor, 5 + 0 * error), 0.5)
    t = library.where(accepted, library.where(is_last, END, t + taken), t)
    before = library.where(accepted, error, before)
    chosen = [library.where(accepted, new, old) for new, old in zip(after, y, strict=True)]
    last = [library.where(accepted, new, old) for new, old in zip(slopes[-1], first, strict=True)]
    return t, h, before, tuple(chosen), tuple(last)


def _moved(y: Any, h: Any, weights: Sequence[float], slopes: Sequence[Any]) -> list[Any]:
    """Each part of `y`, or zero, and the sum of its slopes times weights and the step."""
    parts = []
    for at in range(len(slopes[0])):
        total: Any = sum(w * k[at] for w, k in zip(weights, slopes, strict=True) if w)
        parts.append(h * total if y is None else y[at] + h * total)
    return parts


def _error(
    library: Any, counted: int, y: Sequence[Any], after: Sequence[Any], error: Sequence[Any]
) -> Any:
    """The error of a step, 1 where it is as large as it may be."""
    total: Any = 0
    for old, new, e in list(zip(y, after, error, strict=True))[:counted]:
        scaled = e / (ACCURACY * (1 + library.maximum(abs(old), abs(new))))
        total = total + (scaled * scaled).mean()
    return library.maximum(library.sqrt(total / counted), 1e-10 + 0 * total)
