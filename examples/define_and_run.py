"""Define and run: a graph with placeholders, built once and run in sessions.

The training of an MLP on handwritten digits, as it was written for TensorFlow 1, beside the same
program written eagerly: with one seed for weights and dropout, both give the same losses.

    python examples/define_and_run.py            # or with --quick

Writes a picture of the training step's kernels and the trained variables to examples/out/.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import tgraph as tg
from tgraph import nn, optim

OUT = Path(__file__).parent / "out"
BATCH = 100


def mlp() -> nn.Module:
    tg.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))


def define_by_run(batches: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    model, losses = mlp(), []
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    for images, labels in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tg.tensor(images)), tg.tensor(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two epochs, as a check")
    epochs = 2 if parser.parse_args().quick else 20
    OUT.mkdir(exist_ok=True)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    starts = range(0, 1437, BATCH)  # the last batch is shorter
    batches = [(images[at:1437][:BATCH], labels[at:1437][:BATCH]) for at in starts] * epochs

    with tg.Graph() as graph:
        x = tg.placeholder(tg.float32, ("batch", 64), "images")
        y = tg.placeholder(tg.int64, ("batch",), "labels")
        model = mlp()
        with tg.name_scope("training"):
            loss = tg.identity(nn.functional.cross_entropy(model(x), y), "loss")
            train = optim.AdamW(model.parameters(), lr=3e-3).minimize(loss)
        with tg.name_scope("test"):
            model.eval()  # what is built from here on has no dropout
            accuracy = tg.identity((model(x).argmax(1) == y).float().mean(), "accuracy")
    graph.finalize()

    with tg.Session(graph) as session:
        losses = [session.run([loss, train], {x: a, y: b})[0].item() for a, b in batches]
        reached = session.run(accuracy, {x: images[1437:], y: labels[1437:]}).item()
        session.save(OUT / "digits.npz")
        tg.draw(session.executable([loss, train], {x: images[:5], y: labels[:5]}), OUT / "step.svg")
        print(session.explain(accuracy, {x: images[1437:], y: labels[1437:]}, measure=True))
    with tg.Session(graph) as another:
        another.restore(OUT / "digits.npz")
        feeds = {"images": images[1437:], "labels": labels[1437:]}
        assert another.run("test/accuracy", feeds).item() == reached

    worst = max(abs(a - b) for a, b in zip(losses, define_by_run(batches), strict=True))
    print(f"accuracy {reached:.2%}, losses differ from those of eager code by {worst:.1e} at most")
    if worst > 0.02 or reached < (0.85 if epochs == 2 else 0.96):
        raise SystemExit("that is not what it should be")


if __name__ == "__main__":
    main()
