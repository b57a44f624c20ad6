"""The programs of the examples, define-by-run and define-and-run: they give the same numbers."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """What an example defines, after its short form has run."""

    def run(name):
        monkeypatch.setattr(sys, "argv", [name, "--quick"])
        return runpy.run_path(str(EXAMPLES / f"{name}.py"))

    return run


def same(found, want, tolerance=1e-5):
    found, want = (tg.pytree.flatten(each)[0] for each in (found, want))
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one.numpy(), other.detach().numpy(), tolerance, tolerance)


def test_quickstart(example):
    eager = example("quickstart")
    tg.manual_seed(0)
    points = tg.linspace(-1, 1, 200).reshape(-1, 1)
    values = 3 * points + 0.5 + 0.1 * tg.randn(200, 1)
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 1), "x")
        y = tg.placeholder(tg.float32, (None, 1), "y")
        model = nn.Linear(1, 1)
        loss = nn.MSELoss()(model(x), y)
        train = tg.optim.SGD(model.parameters(), lr=0.3).minimize(loss)
    session = tg.Session(g)
    for _ in range(20):
        last, _ = session.run([loss, train], {x: points, y: values})
    same([last, *map(session.get, model.parameters())],
         [eager["loss"], *eager["model"].parameters()])  # fmt: skip


def test_gradients(example):
    eager = example("gradients")
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None,), "x")
        transformed = [eager["slope"](x), eager["curvature"](x)]
        (slope,) = tg.gradients(eager["energy"](x), x)
        (curvature,) = tg.gradients(slope, x)
    found = tg.Session(g).run([transformed, [slope, curvature]], {x: eager["x"]})
    want = [eager["slope"](eager["x"]), eager["curvature"](eager["x"])]
    same(found, [want, want])


def test_a_compiled_function(example):
    eager = example("compile_function")
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 1000), "x")
        out = eager["softmax"](x)
    same(tg.Session(g).run(out, {x: eager["x"]}), tg.softmax(eager["x"], dim=1))


def test_gradients_of_each_sample(example):
    make = example("per_sample_gradients")["make_model"]
    rows, targets = tg.randn(7, 5), tg.randn(7, 1)

    def program(models, x, y):
        def loss(params, x, y):
            return ((tg.functional_call(models[0], params, (x,)) - y) ** 2).mean()

        own = {name: each.detach() for name, each in models[0].named_parameters()}
        gradients = tg.vmap(tg.grad(loss), in_dims=(None, 0, 0))(own, x, y)
        stacked, _ = tg.func.stack_module_state(models)
        params = {name: each.detach() for name, each in stacked.items()}
        step = tg.vmap(tg.func.grad_and_value(loss), in_dims=(0, None, None))
        slopes, _ = step(params, x, y)
        params = {name: each - 0.2 * slopes[name] for name, each in params.items()}
        return gradients, step(params, x, y)

    models = [make() for _ in range(3)]
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, rows.shape, "x")
        y = tg.placeholder(tg.float32, targets.shape, "y")
        out = program(models, x, y)
    same(tg.Session(g).run(out, {x: rows, y: targets}), program(models, rows, targets), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_digits(name):
    """The step as the example has it, by backward() and step(), of which a graph makes one."""
    pytest.importorskip("tqdm")
    make = runpy.run_path(str(EXAMPLES / "digits.py"))[name]
    rng = np.random.default_rng(0)
    batches = [
        (rng.random((rows, 1, 8, 8), np.float32), rng.integers(0, 10, rows)) for rows in (8, 8)
    ]

    def program(model):
        optimizer = tg.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.CrossEntropyLoss()(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    tg.manual_seed(4)
    step = program(make())
    want = [step(*map(tg.tensor, each)) for each in batches]
    tg.manual_seed(4)
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 1, 8, 8), "x")
        y = tg.placeholder(tg.int64, (None,), "y")
        model = make()
        with g.operation("train") as train:
            loss = program(model)(x, y)
    session = tg.Session(g)
    same([session.run([loss, train], {x: a, y: b})[0] for a, b in batches], want, 1e-4)
