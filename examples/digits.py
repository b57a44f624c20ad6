"""Train an MLP and a small CNN on real handwritten digits, eagerly and compiled.

The compiled run differs by one decorator on the training step: forward, loss, backward pass,
AdamW's update and dropout's random numbers become one plan. With the same seed it gives the same
losses.

    python examples/digits.py            # or: make demo
    python examples/digits.py --quick    # two epochs, no accuracy asked for
    python examples/digits.py --device cuda

Writes the loss curves and pictures of the training steps' graphs to examples/out/.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import tgraph as tg
from tgraph import nn, optim

OUT = Path(__file__).parent / "out"
BATCH = 64
# Losses of the two runs are compared step by step: fused kernels round differently in the last
# bits, and a thousand steps of training make more of it.
LOSS_TOLERANCE = 0.02


def digits(device: str) -> tuple[tuple[tg.Tensor, tg.Tensor], tuple[tg.Tensor, tg.Tensor]]:
    """1,797 images of 8 x 8 pixels, shuffled, as training (1,437) and test (360) sets."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    x = tg.from_numpy((images[order] / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)).to(device)
    y = tg.from_numpy(labels[order].astype(np.int64)).to(device)
    return (x[:1437], y[:1437]), (x[1437:], y[1437:])


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * 4 * 4, 10),
    )


@dataclass
class Run:
    """What one training gave."""

    name: str
    accuracy: float = 0.0
    seconds_per_epoch: float = 0.0
    compile_seconds: float = 0.0
    losses: list[float] = field(default_factory=list)


def train(
    name: str, make: Callable[[], nn.Module], compiled: bool, epochs: int, seed: int, device: str
) -> Run:
    """Train a fresh model and test it."""
    (x, y), (x_test, y_test) = digits(device)
    tg.manual_seed(seed)
    model = make().to(device)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    loss_of = nn.CrossEntropyLoss()

    def step(images: tg.Tensor, labels: tg.Tensor) -> tg.Tensor:
        optimizer.zero_grad()
        loss: tg.Tensor = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def predict(images: tg.Tensor) -> tg.Tensor:
        with tg.no_grad():
            scores: tg.Tensor = model(images)
            return scores.argmax(1)

    fast = tg.compile(step) if compiled else None
    train_on, classify = fast or step, tg.compile(predict) if compiled else predict
    run = Run(f"{name} {'compiled' if compiled else 'eager'}")
    batches = len(x) // BATCH
    rng = np.random.default_rng(seed)
    times = []
    with tqdm(total=epochs * batches, desc=run.name, unit="step") as progress:
        for epoch in range(epochs):
            optimizer.param_groups[0]["lr"] = 2e-3 * (1 - epoch / epochs)
            order = tg.from_numpy(rng.permutation(len(x))).to(device)
            start = time.perf_counter()
            for batch in range(batches):
                chosen = order[batch * BATCH : (batch + 1) * BATCH]
                run.losses.append(train_on(x[chosen], y[chosen]).item())
                progress.update()
            times.append(time.perf_counter() - start)
            progress.set_postfix(loss=f"{run.losses[-1]:.4f}")
    model.eval()
    run.accuracy = (classify(x_test) == y_test).float().mean().item()
    # The first epoch also traces, compiles and meets every memory block for the first time.
    run.seconds_per_epoch = float(np.median(times[1:])) if epochs > 1 else times[0]
    if fast is not None:
        run.compile_seconds = sum(
            record.trace_seconds + record.compile_seconds for record in fast.compiles
        )
        model.train()
        draw(name, fast, x[:BATCH], y[:BATCH])
    return run


def draw(name: str, step: Any, images: tg.Tensor, labels: tg.Tensor) -> None:
    """Pictures of the step's graph as recorded, and as optimised into fused kernels."""
    tg.draw(step.graph(images, labels), OUT / f"{name}_traced.svg")
    tg.draw(step, OUT / f"{name}_fused.svg", images, labels)


def plot(runs: list[Run]) -> None:
    """The loss curves; a compiled one lies on its eager one."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for run in runs:
        style = "--" if run.name.endswith("compiled") else "-"
        axes.semilogy(np.convolve(run.losses, np.ones(10) / 10, "valid"), style, label=run.name)
    axes.set(xlabel="step", ylabel="training loss (mean of 10 steps)", title="Digits")
    axes.legend()
    figure.savefig(OUT / "losses.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two epochs, as a check")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    options = parser.parse_args()
    epochs = 2 if options.quick else options.epochs
    OUT.mkdir(exist_ok=True)

    runs = []
    for name, make in (("mlp", mlp), ("cnn", cnn)):
        for compiled in (False, True):
            runs.append(train(name, make, compiled, epochs, options.seed, options.device))
    plot(runs)

    print(f"\n{'':14}{'accuracy':>10}{'s/epoch':>10}{'compile s':>11}{'loss difference':>17}")
    for number, run in enumerate(runs):
        eager = runs[number - number % 2]
        worst = max(abs(a - b) for a, b in zip(eager.losses, run.losses, strict=True))
        compiled = run is not eager
        print(
            f"{run.name:14}{run.accuracy:>10.2%}{run.seconds_per_epoch:>10.4f}"
            + (f"{run.compile_seconds:>11.2f}{worst:>17.1e}" if compiled else "")
        )
        if worst > LOSS_TOLERANCE:
            raise SystemExit(f"{run.name}: losses differ from the eager run by {worst:.1e}")
        if not options.quick and run.accuracy < 0.97:
            raise SystemExit(f"{run.name}: test accuracy {run.accuracy:.2%} is below 97 %")
    print(f"Loss curves and graphs are in {OUT}")


if __name__ == "__main__":
    main()
