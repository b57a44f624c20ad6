"""Graphs that are built up front, on a device."""

from __future__ import annotations

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn

pytest_plugins = ["cuda_tools.device"]
pytestmark = pytest.mark.slow


def losses(device, path):
    """Of three steps, of which the last goes on from a file, with a shorter batch."""
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3)).to(device)
    optimizer = tg.optim.AdamW(model.parameters(), lr=0.01)
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 6), "x", device=device)
        y = tg.placeholder(tg.int64, (None,), "y", device=device)
        loss = nn.functional.cross_entropy(model(x), y)
        train = optimizer.minimize(loss)
    rng, found = np.random.default_rng(2), []
    session = tg.Session(g)
    for rows in (8, 8, 5):
        feeds = {x: rng.normal(size=(rows, 6)).astype(np.float32), y: rng.integers(0, 3, rows)}
        value, _ = session.run([loss, train], feeds)
        assert value.device.type == tg.device(device).type
        found.append(value.item())
        session.save(path)
        session = tg.Session(g)
        session.restore(path)
    feeds = {x: tg.ones(2, 6, device=device), y: tg.tensor([0, 1])}
    return [*found, session.run(loss, feeds).item(), *session.get("model.3.bias").tolist()]


def test_training_as_on_the_cpu(cuda, tmp_path):
    path = tmp_path / "state.npz"
    np.testing.assert_allclose(losses("cuda", path), losses("cpu", path), rtol=1e-4)
