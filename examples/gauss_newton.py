"""A Gauss-Newton fit without a Jacobian, and the derivative of its solution.

python examples/gauss_newton.py

Each step solves (JᵀJ + damping) d = -Jᵀr by conjugate gradients, with J d by forward mode and Jᵀ of
that by reverse mode. The whole fit is one compiled loop, run for many data sets by vmap. How the
solution moves with the data follows from the implicit function theorem, told by custom_vjp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tgraph as tg

SETS, POINTS, STEPS, TURNS, DAMPING = 5, 40, 12, 4, 1e-9

T = tg.linspace(0.0, 3.0, POINTS, dtype=tg.float64)


def curve(params: tg.Tensor) -> tg.Tensor:
    """A damped oscillation: amplitude, rate of decay, frequency, offset."""
    amplitude, decay, frequency, offset = params.unbind(0)
    return amplitude * tg.exp(-decay * T) * tg.cos(frequency * T) + offset


def conjugate_gradients(product: Callable[[Any], Any], b: Any) -> Any:
    """The solution of a positive system of as many unknowns as there are turns."""

    def turn(_: Any, state: Any) -> Any:
        x, r, d, rr = state
        ad = product(d)
        alpha = rr / (d @ ad).clamp(min=1e-300)
        r = r - alpha * ad
        following = r @ r
        return x + alpha * d, r, r + following / rr.clamp(min=1e-300) * d, following

    return tg.fori_loop(0, TURNS, turn, (b * 0, b, b, b @ b))[0]


def normal_product(residuals: Callable[[Any], Any], params: Any) -> Any:
    """`d -> (JᵀJ + damping) d`, and the gradient Jᵀr."""
    r, pull = tg.vjp(residuals, params)

    def product(d: Any) -> Any:
        return pull(tg.jvp(residuals, (params,), (d,))[1])[0] + DAMPING * d

    return product, pull(r)[0]


@tg.custom_vjp
def fit(y: Any, start: Any) -> Any:
    def step(_: Any, params: Any) -> Any:
        product, gradient = normal_product(lambda p: curve(p) - y, params)
        return params - conjugate_gradients(product, gradient)

    return tg.fori_loop(0, STEPS, step, start)


def fit_forward(y: Any, start: Any) -> Any:
    params = fit(y, start)
    return params, (params, y)


def fit_backward(residuals: Any, cotangent: Any) -> Any:
    """At the solution Jᵀr = 0. Where residuals are small, d params / d y = (JᵀJ)⁻¹ Jᵀ."""
    params, y = residuals
    product, _ = normal_product(lambda p: curve(p) - y, params)
    solved = conjugate_gradients(product, cotangent)
    return tg.jvp(curve, (params,), (solved,))[1], None


fit.defvjp(fit_forward, fit_backward)


def main() -> None:
    tg.manual_seed(0)
    truth = tg.tensor([2.0, 0.5, 3.0, 0.3], dtype=tg.float64)
    start = truth + tg.tensor([0.4, 0.2, -0.25, -0.3], dtype=tg.float64)
    noise = 1e-3 * tg.randn(SETS, POINTS, dtype=tg.float64)
    data = curve(truth) + noise

    fit_all = tg.compile(tg.vmap(fit, in_dims=(0, None)))
    found = fit_all(data, start)
    worst = (found - truth).abs().max().item()
    print(f"{SETS} data sets fitted at once; the worst parameter is off by {worst:.1e}")
    assert worst < 5e-3

    # How the frequency that is found moves with each point: by the rule, and by differences.
    y = data[0]
    slopes = tg.compile(tg.grad(lambda y: fit(y, start)[2]))(y)
    at, step = 17, 1e-5 * tg.eye(POINTS, dtype=tg.float64)[17]
    expected = (fit(y + step, start)[2] - fit(y - step, start)[2]).item() / 2e-5
    print(f"d frequency / d point {at}: {slopes[at].item():.5f}, by differences {expected:.5f}")
    assert abs(slopes[at].item() - expected) < 0.02 * abs(expected) + 1e-4


if __name__ == "__main__":
    main()
