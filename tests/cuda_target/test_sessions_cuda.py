"""Graphs that are built up front, on a device."""

from __future__ import annotations

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn

pytest_plugins = ["cuda_tools.device"]


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


@pytest.mark.slow
def test_training_as_on_the_cpu(cuda, tmp_path):
    path = tmp_path / "state.npz"
    np.testing.assert_allclose(losses("cuda", path), losses("cpu", path), rtol=1e-4)


def trained(device, path):
    """By a graph that is built for the CPU: all that sessions of it give on a device."""
    tg.manual_seed(0)
    seen = []
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 6), "x")
        y = tg.placeholder(tg.int64, (None,), "y")
        model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.2))
        turned = nn.Parameter(tg.ones(3, 16).t() / 8)
        scale = tg.host(lambda: 0.5)
        logits = tg.scan(lambda c, row: (c * 0.5, (c + row).exp()), tg.ones(3), model(x) @ turned)[
            1
        ]
        halved = tg.cond(x.sum() > 0, lambda: logits * scale + tg.rand(3), lambda: logits)
        seldom, weight = y != 0, tg.tensor([1.0, 2.0, 3.0])
        loss = nn.functional.cross_entropy(halved[seldom], y[seldom], weight=weight)
        tg.tracing.host_call(lambda a: seen.append(round(float(a), 3)), loss, effect="ordered")
        train = tg.optim.SGD([turned, *model.parameters()], lr=0.1, momentum=0.9).minimize(loss)
    session, found, rng = tg.Session(g, device=device), [], np.random.default_rng(2)
    for rows in (8, 8, 5):
        fed = rng.normal(size=(rows, 6)).astype(np.float32), rng.integers(0, 3, rows)
        feeds = {x: tg.tensor(fed[0]), y: fed[1]}
        value, _, out = session.run([loss, train, logits], feeds)
        assert {each.device.type for each in (value, out, session.get(turned))} == {
            tg.device(device).type
        }
        found += value.item(), *out.cpu().numpy().ravel()
        session.save(path)
        session = tg.Session(g, device=device)
        session.restore(path)
    assert turned.device.type == "cpu" and turned.sum().item() == 6
    last = session.get(turned).cpu().numpy().ravel()
    session.set(turned, tg.zeros(16, 3))
    emptied = session.run(logits, {x: tg.ones(2, 6, device=device)}).cpu().numpy().ravel()
    session.initialize()
    return [*found, *last, *emptied, *session.get(turned).cpu().numpy().ravel()], seen


@pytest.mark.slow
def test_sessions_move_a_graph_to_their_device(cuda, tmp_path):
    found, want = (trained(device, tmp_path / "state.npz") for device in ("cuda", "cpu"))
    np.testing.assert_allclose(found[0], want[0], rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], want[1], atol=2e-3)
    with tg.Graph() as g:
        tg.placeholder(tg.float32, (), "x")
    with pytest.raises(RuntimeError, match="cuda"):
        tg.Session(g, device="cuda:63")


def test_sessions_of_one_graph_run_on_their_own_devices(cuda):
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (2,), "x")
        y = x * 2
    for device in ("cpu", cuda, "cpu"):
        found = tg.Session(g, device=device).run(y, {x: [1.0, 2.0]})
        assert found.device == tg.device(device)
        assert found.cpu().tolist() == [2.0, 4.0]
