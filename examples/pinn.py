"""A network that solves Burgers' equation, taught by its derivatives, eagerly and compiled.

    python examples/pinn.py            # or with --quick

It learns u(x, t) with u_t + u u_x = v u_xx, u(x, 0) = -sin(pi x), u(-1, t) = u(1, t) = 0, from no
data but the equation: the derivatives are `autograd.grad` of the network, the second one of the
first, and training differentiates them once more. What it finds is compared with the solution by
Cole and Hopf. Compiled, all of a step is one plan.

Sources: Raissi, Perdikaris and Karniadakis, "Physics-informed neural networks" (2019); the solution
and its quadrature after Basdevant et al., "Spectral and finite difference solutions of the Burgers
equation" (1986).

Writes a picture to examples/out/.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import matplotlib
import numpy as np

import tgraph as tg
from tgraph import Tensor, autograd, nn, optim

OUT = Path(__file__).parent / "out"
VISCOSITY = 0.02 / math.pi
LOSS_TOLERANCE = 0.02  # of the loss; fused kernels round differently, and training makes more of it


def exact(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The solution at points with t > 0, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite.hermgauss(80)
    at = x[..., None] - nodes * np.sqrt(4 * VISCOSITY * t[..., None])
    # Divided by the largest value of the exponential, which would overflow.
    mass = weights * np.exp(-(np.cos(np.pi * at) + 1) / (2 * np.pi * VISCOSITY))
    found: np.ndarray = -(np.sin(np.pi * at) * mass).sum(-1) / mass.sum(-1)
    return found


def network(width: int, layers: int) -> nn.Module:
    parts: list[nn.Module] = [nn.Linear(2, width), nn.Tanh()]
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*parts, nn.Linear(width, 1))


def residual(model: nn.Module, points: Tensor) -> Tensor:
    """u_t + u u_x - v u_xx at points (x, t)."""
    x, t = (each.detach().requires_grad_() for each in points.split(1, dim=1))
    u = model(tg.cat([x, t], dim=1))
    ones = tg.ones_like(u)
    u_x, u_t = autograd.grad(u, (x, t), ones, create_graph=True)
    (u_xx,) = autograd.grad(u_x, x, ones, create_graph=True)
    found: Tensor = u_t + u * u_x - VISCOSITY * u_xx
    return found


def points_of(count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Points inside, and points at the start and at the walls with the values there."""
    inside = rng.uniform((-1, 0), (1, 1), (count, 2))
    start = np.stack([rng.uniform(-1, 1, count // 8), np.zeros(count // 8)], axis=1)
    walls = np.stack([rng.choice([-1.0, 1.0], count // 8), rng.uniform(0, 1, count // 8)], axis=1)
    known = np.concatenate([-np.sin(np.pi * start[:, :1]), np.zeros((len(walls), 1))])
    parts = inside, np.concatenate([start, walls]), known
    first, second, third = (tg.from_numpy(each.astype(np.float32)) for each in parts)
    return first, second, third


def train(model: nn.Module, compiled: bool, count: int, steps: int, all_steps: int) -> list[float]:
    """The loss of each of `steps`, with a rate that falls until `all_steps`."""
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=all_steps)
    mse = nn.MSELoss()

    def step(inside: Tensor, edge: Tensor, known: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = residual(model, inside).square().mean() + 4 * mse(model(edge), known)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run, losses, times = tg.compile(step) if compiled else step, [], []
    rng = np.random.default_rng(0)
    for _ in range(steps):
        points = points_of(count, rng)
        start = time.perf_counter()
        losses.append(run(*points).item())
        times.append(time.perf_counter() - start)
        scheduler.step()
    usual, name = sorted(times)[len(times) // 2] * 1e3, "compiled" if compiled else "eager"
    print(f"{name:8}  {steps} steps, loss {losses[0]:.4f} -> {losses[-1]:.5f}, {usual:.2f} ms each")
    return losses


def plot(found: np.ndarray, known: np.ndarray, x: np.ndarray, t: np.ndarray) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    shown = left.pcolormesh(t[:, 0], x[0], found.T, cmap="RdBu_r", vmin=-1, vmax=1)
    figure.colorbar(shown, ax=left)
    left.set(xlabel="t", ylabel="x", title="u(x, t) of the network")
    for row in (0, len(t) // 3, 2 * len(t) // 3, len(t) - 1):
        (line,) = right.plot(x[0], known[row], linewidth=3, alpha=0.4)
        right.plot(x[0], found[row], "--", color=line.get_color(), label=f"t = {t[row, 0]:.2f}")
    right.set(xlabel="x", xticks=np.linspace(-1, 1, 5), title="Solution (thick), network (dashed)")
    right.legend()
    figure.savefig(OUT / "pinn.png", dpi=120)


def main(quick: bool) -> None:
    OUT.mkdir(exist_ok=True)
    width, layers, count = (16, 2, 64) if quick else (32, 4, 1024)
    most = 40 if quick else 6000
    losses = {}
    for compiled in (False, True):  # eagerly a part of the steps
        tg.manual_seed(0)
        model = network(width, layers)
        steps = most if quick or compiled else 100
        losses[compiled] = train(model, compiled, count, steps, most)
    worst = max(abs(a - b) / a for a, b in zip(losses[False], losses[True]))
    assert worst < LOSS_TOLERANCE, f"compiled losses differ from eager ones by {worst:.1e}"
    t, x = np.meshgrid(np.linspace(0.01, 1, 50), np.linspace(-1, 1, 201), indexing="ij")
    with tg.no_grad():
        grid = tg.from_numpy(np.stack([x, t], axis=-1).astype(np.float32))
        found = model(grid)[..., 0].numpy()
    known = exact(x, t)
    error = np.linalg.norm(found - known) / np.linalg.norm(known)
    print(f"losses differ by {worst:.1e} of them; error of the solution {error:.2%}")
    assert error < (1.0 if quick else 0.03)
    plot(found, known, x, t)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small network and few steps")
    main(parser.parse_args().quick)
