"""Programs that read the same in every library of arrays.

Where libraries have different names for a function, it is an argument; dimensions are given by
position. `library` has NumPy's names (exp, sin, maximum and so on).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Join = Callable[[Sequence[Any], int], Any]

STENCIL_STEPS = 10
# An Asian option: strike, rate and volatility a year, years.
STRIKE, RATE, VOLATILITY, YEARS = 1.0, 0.02, 0.3, 1.0
VISCOSITY, TIME_STEP = 0.01, 1e-3
# Of a filter: a Gaussian curve, to about a thousandth.
TAPS = (0.004, 0.054, 0.242, 0.4, 0.242, 0.054, 0.004)


def stencil(cat: Join, u: Any) -> Any:
    """Heat after ten explicit steps; the border stays as it is."""
    for _ in range(STENCIL_STEPS):
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        inner = middle + 0.1 * (around - 4 * middle)
        rows = cat([u[1:-1, :1], inner, u[1:-1, -1:]], 1)
        u = cat([u[:1], rows, u[-1:]], 0)
    return u


def stencil_3d(pad: Callable[[Any], Any], u: Any) -> Any:
    """Heat after two explicit steps; `pad` puts a frame of zeros around a cube."""
    for _ in range(2):
        p = pad(u)
        across = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1]
        along = p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
        within = p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
        u = u + 0.1 * (across + along + within - 6 * u)
    return u


def recurrence(library: Any, stack: Join, x: Any) -> Any:
    """Each state by the one before and a row of `x`; all of them, side by side."""
    state, states = x[0] * 0, []
    for step in range(x.shape[0]):
        state = library.tanh(0.9 * state + x[step])
        states.append(state)
    return stack(states, 1)


def columns(library: Any, stack: Join, u: Any) -> Any:
    """Sines and cosines of 24 frequencies, as positions are encoded."""
    waves = [function(u * 0.7**at) for at in range(24) for function in (library.sin, library.cos)]
    return stack(waves, 1)


def image_filter(image: Any, taps: Sequence[float]) -> Any:
    """A separable filter: weighted sums of shifted rows, then of shifted columns."""
    height, width = image.shape[0] - len(taps) + 1, image.shape[1] - len(taps) + 1
    rows = sum(tap * image[at : at + height] for at, tap in enumerate(taps))
    return sum(tap * rows[:, at : at + width] for at, tap in enumerate(taps))


def float64_sums(library: Any, x: Any) -> Any:
    return (library.exp(-x) * library.sin(x)).sum(-1)


def box_overlaps(library: Any, greatest: Callable[[Any, int], Any], a: Any, b: Any) -> Any:
    """The greatest intersection over union of each box (left, top, right, bottom) with others."""
    low = library.maximum(a[:, None, :2], b[None, :, :2])
    high = library.minimum(a[:, None, 2:], b[None, :, 2:])
    sides = (high - low).clip(0)
    common = sides[..., 0] * sides[..., 1]
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return greatest(common / (area_a[:, None] + area_b[None] - common), 1)


def solved(stack: Join, matrices: Any, right: Any) -> Any:
    """Gaussian elimination without pivoting, and substitution, of many small systems."""
    size = matrices.shape[-1]
    rows = [matrices[:, at] for at in range(size)]
    values = [right[:, at] for at in range(size)]
    for pivot in range(size):
        inverse = 1 / rows[pivot][:, pivot]
        for below in range(pivot + 1, size):
            factor = rows[below][:, pivot] * inverse
            rows[below] = rows[below] - factor[:, None] * rows[pivot]
            values[below] = values[below] - factor * values[pivot]
    found: dict[int, Any] = {}
    for at in reversed(range(size)):
        known = sum(rows[at][:, other] * found[other] for other in found)
        found[at] = (values[at] - known) / rows[at][:, at]
    return stack([found[at] for at in range(size)], 1)


def hashed(x: Any) -> Any:
    """MurmurHash3's last mixing of 32-bit integers; shifts are made logical by a mask."""
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * -2048144789  # 0x85ebca6b
    x = x ^ ((x >> 13) & 0x7FFFF)
    x = x * -1028477387  # 0xc2b2ae35
    return x ^ ((x >> 16) & 0xFFFF)


def histogram(x: Any, edges: Any) -> Any:
    """How many values are between each two neighbouring edges."""
    return ((x[:, None] >= edges[:-1]) & (x[:, None] < edges[1:])).sum(0)


def distances(queries: Any, points: Any) -> Any:
    """Squared distances of all queries from all points."""
    return ((queries[:, None] - points[None]) ** 2).sum(-1)


def option_price(exp: Callable[[Any], Any], draws: Any) -> Any:
    """The price of an Asian option from normal numbers (paths, steps)."""
    step = YEARS / draws.shape[1]
    moves = (RATE - VOLATILITY**2 / 2) * step + VOLATILITY * math.sqrt(step) * draws
    average = exp(moves.cumsum(1)).mean(1)
    return math.exp(-RATE * YEARS) * (average - STRIKE).clip(0).mean()


def spectral_step(exp: Callable[[Any], Any], u: Any, cosines: Any, sines: Any, numbers: Any) -> Any:
    """A step of Burgers' equation over one period: advection by points, diffusion by waves.

    `cosines` and `sines` (points, waves) are scaled so that their transposes lead back.
    """
    a, b = u @ cosines, u @ sines
    slope = (b * numbers) @ cosines.T - (a * numbers) @ sines.T
    moved = u - TIME_STEP * u * slope
    decay = exp(-VISCOSITY * TIME_STEP * numbers * numbers)
    return ((moved @ cosines) * decay) @ cosines.T + ((moved @ sines) * decay) @ sines.T


def forward_algorithm(
    logsumexp: Callable[[Any, int], Any], start: Any, transitions: Any, evidence: Any
) -> Any:
    """Log-probabilities of a hidden Markov model's states (batch, states) after all steps.

    `transitions` (states, states) and `evidence` (steps, batch, states) are logarithms.
    """
    for step in range(evidence.shape[0]):
        start = logsumexp(start[:, :, None] + transitions, 1) + evidence[step]
    return start
