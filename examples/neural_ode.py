"""A neural ODE: a solver whose steps adapt, and gradients by integrating backwards in time.

    python examples/neural_ode.py            # or with --quick

The solver is a loop whose number of turns depends on the data, inside of a scan over the times that
are asked for. Its gradient integrates the adjoint backwards with the same solver, so that no state
of a step is kept. A whole training step, with both and the optimizer, compiles once.

Sources: Dormand and Prince, "A family of embedded Runge-Kutta formulae" (1980); control of steps
after Hairer and Wanner, "Solving Ordinary Differential Equations II", IV.2; Chen et al., "Neural
Ordinary Differential Equations" (2018); errors of the backward solution measured without the sums
over parameters after Kidger et al., "Hey, that's not an ODE" (2021).
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import tgraph as tg
from tgraph import Tensor

# --- one step of order five, with an error of order four -----------------------------------------

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)

Slope = Callable[[Tensor, Any], Any]  # of time and state, which is any container of tensors
Field = Callable[[Tensor, Tensor, Any], Tensor]  # of time, state and parameters


def weighted(weights: tuple[float, ...], slopes: list[Any]) -> Any:
    """The sum of slopes times weights, for each tensor of a state."""

    def total(*parts: Tensor) -> Any:
        return sum(w * part for w, part in zip(weights, parts) if w)

    return tg.pytree.map(total, *slopes)


def dormand_prince(slope: Slope, t: Tensor, y: Any, h: Tensor, first: Any) -> Any:
    """The state after a step from a slope `first`, the slope there, and the error of the step."""
    slopes, there = [first], y
    for node, weights in zip(NODES, STAGES):
        there = tg.pytree.map(lambda y, k: y + h * k, y, weighted(weights, slopes))
        slopes.append(slope(t + node * h, there))
    return there, slopes[-1], tg.pytree.map(lambda e: h * e, weighted(ERROR, slopes))


# --- as many steps as it takes -------------------------------------------------------------------

MOST = 10_000  # turns; a solution that takes more is NaN


def integrate(
    slope: Slope, y: Any, start: Tensor, end: Tensor, h: Tensor, tolerance: float, counted: int
) -> Any:
    """The state at `end`, later than `start`, the step to go on with, and the number of turns.

    The first `counted` tensors of the state decide the size of steps, by their error.
    """

    def error_of(error: Any, y: Any, after: Any) -> Any:
        squares = [
            (e / (tolerance * (1 + tg.maximum(a.abs(), b.abs())))).square().mean()
            for e, a, b in zip(*map(tg.pytree.leaves, (error, y, after)))
        ]
        return tg.sqrt(sum(squares[:counted]) / counted)

    def goes_on(t: Tensor, h: Tensor, before: Tensor, turns: Tensor, y: Any, first: Any) -> Any:
        return (t < end) & (turns < MOST)

    def turn(t: Tensor, h: Tensor, before: Tensor, turns: Tensor, y: Any, first: Any) -> Any:
        is_last = t + h >= end
        taken = tg.where(is_last, end - t, h)
        after, last, error = dormand_prince(slope, t, y, taken, first)
        found = error_of(error, y, after).clamp(min=1e-10)
        accepted = found <= 1
        factor = (0.9 * found**-0.14 * before**0.08).clamp(0.2, 5.0)
        wanted = tg.where(accepted, taken * factor, taken * factor.clamp(max=1.0))
        t = tg.where(accepted, tg.where(is_last, end, t + taken), t)
        before = tg.where(accepted, found, before)
        h = tg.where(accepted & is_last, tg.maximum(h, wanted), wanted)
        chosen = functools.partial(tg.where, accepted)
        y, first = tg.pytree.map(chosen, (after, last), (y, first))
        return t, h, before, turns + 1, y, first

    state = start, h, tg.ones_like(h), 0, y, slope(start, y)
    t, h, _, turns, y, _ = tg.while_loop(goes_on, turn, state)
    return tg.pytree.map(lambda y: tg.where(t < end, float("nan"), y), y), h, turns


# --- and backwards -------------------------------------------------------------------------------


def solve(field: Field, params: Any, y: Tensor, times: Tensor, tolerance: float) -> Any:
    """States at all `times`, which rise, from `y` at the first; and the turns between them."""

    def slope(t: Tensor, y: Tensor) -> Tensor:
        return field(t, y, params)

    def interval(state: Any, end: Tensor) -> Any:
        t, y, h = state
        y, h, turns = integrate(slope, y, t, end, h, tolerance, counted=1)
        return (end, y, h), (y, turns)

    _, (ys, turns) = tg.scan(interval, (times[0], y, (times[1] - times[0]) / 10), times[1:])
    return tg.cat([y[None], ys]), turns


@functools.partial(tg.custom_vjp, nondiff_argnums=(0,))
def odeint(field: Field, params: Any, y: Tensor, times: Tensor, tolerance: float) -> Any:
    """States at all times, as `solve` gives them, with gradients of parameters, `y` and times."""
    return solve(field, params, y, times, tolerance)[0]


def forward(field: Field, params: Any, y: Tensor, times: Tensor, tolerance: float) -> Any:
    ys, _ = solve(field, params, y, times, tolerance)
    return ys, (params, ys, times, tolerance)


def backward(field: Field, residuals: Any, cotangents: Tensor) -> Any:
    """With a = dL/dy: a' = -a ∂f/∂y and (dL/dparams)' = -a ∂f/∂params, backwards in time -t."""
    params, ys, times, tolerance = residuals

    def slope(s: Tensor, state: Any) -> Any:
        y, a, _ = state
        f, pull = tg.vjp(lambda y, params: field(-s, y, params), y, params)
        return -f, *pull(a)

    def interval(state: Any, row: Any) -> Any:
        a, found, h = state
        y, cotangent, start, end = row
        of_time = (cotangent * field(end, y, params)).sum()
        state = y, a + cotangent, found
        (_, a, found), h, _ = integrate(slope, state, -end, -start, h, tolerance, counted=2)
        return (a, found, h), of_time

    zeros = tg.pytree.map(tg.zeros_like, (ys[0], params))
    rows = ys[1:], cotangents[1:], times[:-1], times[1:]
    first = (*zeros, (times[-1] - times[-2]) / 10)
    (a, found, _), of_times = tg.scan(interval, first, rows, reverse=True)
    of_first = -(a * field(times[0], ys[0], params)).sum()
    return found, a + cotangents[0], tg.cat([of_first[None], of_times]), None


odeint.defvjp(forward, backward)


# --- gradients, compared -------------------------------------------------------------------------


def check_gradients() -> None:
    """Those of an oscillator, whose solution is known: y = (cos wt, sin wt)."""

    def circle(t: Tensor, y: Tensor, params: Any) -> Tensor:
        found: Tensor = params["w"] * tg.stack([-y[1], y[0]])
        return found

    def reached(params: Any, y: Tensor, times: Tensor) -> Tensor:
        found: Tensor = odeint(circle, params, y, times, 1e-10)[-1, 0]
        return found

    y = tg.tensor([1.0, 0.0], dtype=tg.float64)
    gradient = tg.compile(tg.grad(reached, argnums=(0, 1, 2)))
    for frequency, end in ((1.5, 2.0), (0.4, 5.0), (7.0, 3.0)):
        w, last = tg.tensor([frequency, end], dtype=tg.float64).unbind()
        times = tg.stack([last * 0, last / 3, last])
        of_params, of_y, of_times = gradient({"w": w}, y, times)
        sine, cosine = tg.sin(w * last), tg.cos(w * last)
        assert tg.allclose(of_params["w"], -last * sine, atol=1e-8)
        assert tg.allclose(of_y, tg.stack([cosine, -sine]), atol=1e-8)
        assert tg.allclose(of_times, tg.stack([w * sine, w * 0, -w * sine]), atol=1e-8)
        print(f"d cos({frequency} * {end}) / d {frequency} = {of_params['w'].item():.8f}")
    gradient.assert_compiles(1)


# --- a network that learns a spiral --------------------------------------------------------------

TOLERANCE, BATCH, POINTS, SPACING = 1e-4, 32, 5, 0.1
SPIRAL = tg.tensor([[-0.1, 2.0], [-2.0, -0.1]])


def true_field(t: Tensor, y: Tensor, params: Any) -> Tensor:
    return y**3 @ SPIRAL


class Slopes(tg.nn.Module):
    """The slope at each of several points, as a network has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = tg.nn.Linear(2, width)
        self.outer = tg.nn.Linear(width, 2)

    def forward(self, y: Tensor) -> Tensor:
        found: Tensor = self.outer(tg.tanh(self.inner(y**3)))
        return found


def train(steps: int) -> tuple[float, float]:
    """The error before and after."""
    model = Slopes(32)
    optimizer = tg.optim.Adam(model.parameters(), lr=0.01)

    def field(t: Tensor, y: Tensor, params: Any) -> Tensor:
        found: Tensor = tg.functional_call(model, params, (y,))
        return found

    def error(params: Any, y: Tensor, times: Tensor, expected: Tensor) -> Tensor:
        found: Tensor = odeint(field, params, y, times, TOLERANCE)
        return (found - expected).abs().mean()

    @tg.compile
    def step(y: Tensor, times: Tensor, expected: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = error(dict(model.named_parameters()), y, times, expected)
        loss.backward()
        optimizer.step()
        return loss

    @tg.compile
    def examples(y: Tensor, times: Tensor) -> Any:
        return solve(true_field, None, y, times, TOLERANCE)

    losses, turns = [], set()
    for _ in range(steps):
        y = tg.randn(BATCH, 2)
        times = tg.arange(float(POINTS)) * SPACING * (0.5 + tg.rand(()))
        expected, taken = examples(y, times)
        losses.append(step(y, times, expected).item())
        turns.add(int(taken.sum()))
    print(f"{steps} steps of training, solutions of {min(turns)} to {max(turns)} steps")
    print(f"  error {losses[0]:.3f} -> {sum(losses[-10:]) / 10:.3f}")
    assert len(turns) > 1
    step.assert_compiles(1)
    examples.assert_compiles(1)
    return losses[0], sum(losses[-10:]) / 10


def main(quick: bool) -> None:
    tg.manual_seed(0)
    check_gradients()
    first, last = train(60 if quick else 1000)
    assert last < first / (2 if quick else 5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer training steps")
    main(parser.parse_args().quick)
