"""Sine waves that two LSTM cells go on with, trained by L-BFGS, eagerly and compiled.

    python examples/time_series.py            # or with --quick

It is PyTorch's example `time_sequence_prediction`: cells that are called for each time step, in
float64, and an optimizer that calls a closure as often as it needs. Compiled is the closure,
forward and backward over all time steps: one plan, in which alike steps of the loop are found.

Writes a picture of waves and what follows them to examples/out/.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib
import numpy as np

import tgraph as tg
from tgraph import Tensor, nn, optim

OUT = Path(__file__).parent / "out"


class Sequence(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.first, self.second = nn.LSTMCell(1, width), nn.LSTMCell(width, width)
        self.linear = nn.Linear(width, 1)

    def forward(self, waves: Tensor, future: int = 0) -> Tensor:
        """The value behind each of (rows, steps), and `future` more."""
        zeros = tg.zeros(waves.shape[0], self.width, dtype=tg.float64)
        h1, c1, h2, c2 = zeros, zeros, zeros, zeros
        outputs = []
        for part in waves.split(1, dim=1):
            h1, c1 = self.first(part, (h1, c1))
            h2, c2 = self.second(h1, (h2, c2))
            outputs.append(self.linear(h2))
        for _ in range(future):
            h1, c1 = self.first(outputs[-1], (h1, c1))
            h2, c2 = self.second(h1, (h2, c2))
            outputs.append(self.linear(h2))
        return tg.cat(outputs, dim=1)


def waves(rows: int, length: int) -> Tensor:
    """Sine waves that begin anywhere."""
    starts = np.random.default_rng(2).integers(-80, 80, (rows, 1))
    return tg.from_numpy(np.sin((np.arange(length) + starts) / 20.0))


def train(model: Sequence, compiled: bool, data: Tensor, steps: int, calls: int) -> list[float]:
    """The loss before and after each step of L-BFGS, of at most `calls` of its closure."""
    criterion = nn.MSELoss()
    inputs, targets = data[3:, :-1], data[3:, 1:]  # the first three are for the test
    optimizer = optim.LBFGS(model.parameters(), lr=0.8, max_iter=calls)
    times = []

    def loss_and_gradients() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = criterion(model(inputs), targets)
        loss.backward()
        return loss.detach()

    run = tg.compile(loss_and_gradients) if compiled else loss_and_gradients

    def closure() -> Tensor:
        start = time.perf_counter()
        loss = run()
        times.append(time.perf_counter() - start)
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(steps)]
    with tg.no_grad():
        losses.append(criterion(model(inputs), targets).item())
    print(
        f"{'compiled' if compiled else 'eager':8}  loss {losses[0]:.6f} -> {losses[-1]:.6f}, "
        f"{sorted(times)[len(times) // 2] * 1e3:.1f} ms a call of the closure"
    )
    return losses


def plot(data: Tensor, found: Tensor) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    known = data.shape[1] - 1
    for number, colour in enumerate("rgb"):
        row = found[number].numpy()
        axes.plot(np.arange(known), row[:known], colour)
        axes.plot(np.arange(known, len(row)), row[known:], f"{colour}:")
    axes.set(title="Waves, and what follows them (dotted)", xlabel="step")
    figure.savefig(OUT / "time_series.png", dpi=120)


def main(quick: bool) -> None:
    OUT.mkdir(exist_ok=True)
    rows, length, width, steps, calls = (8, 40, 8, 2, 5) if quick else (30, 200, 51, 8, 20)
    data = waves(rows, length)
    losses = {}
    for compiled in (False, True):  # eagerly a part of the steps
        tg.manual_seed(0)
        model = Sequence(width).double()
        losses[compiled] = train(model, compiled, data, steps if quick or compiled else 1, calls)
    worst = max(abs(a - b) / a for a, b in zip(losses[False], losses[True]))
    assert worst < 1e-6, f"compiled losses differ from eager ones by {worst:.1e} of them"
    with tg.no_grad():
        found = model(data[:3, :-1], future=length)
    tested = (found[:, : length - 1] - data[:3, 1:]).square().mean().item()
    print(f"losses differ by {worst:.1e} of them; test loss {tested:.6f}")
    assert tested < (0.1 if quick else 1e-2)
    plot(data, found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small network and few steps")
    main(parser.parse_args().quick)
