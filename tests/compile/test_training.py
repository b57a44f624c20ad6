"""Whole training steps as one plan: the numbers and the state are those of eager training."""

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.compiled import call_text


def data(count=16, features=6, classes=3):
    random = np.random.default_rng(0)
    x = random.standard_normal((count, features)).astype(np.float32)
    y = random.integers(0, classes, count)
    return tg.tensor(x), tg.tensor(y)


def parameters():
    random = np.random.default_rng(1)
    shapes = [(6, 8), (8,), (8, 3), (3,)]
    return [
        tg.tensor(random.standard_normal(shape).astype(np.float32) * 0.3, requires_grad=True)
        for shape in shapes
    ]


def forward(weights, x):
    w1, b1, w2, b2 = weights
    return (x @ w1 + b1).tanh() @ w2 + b2


def cross_entropy(logits, y):
    log_probabilities = logits.log_softmax(-1)
    return -log_probabilities.gather(1, y.reshape(-1, 1)).mean()


def sgd_by_hand():
    weights = parameters()
    momentum = [tg.zeros_like(w) for w in weights]

    def step(x, y):
        loss = cross_entropy(forward(weights, x), y)
        loss.backward()
        with tg.no_grad():
            for w, m in zip(weights, momentum, strict=True):
                m.mul_(0.9).add_(w.grad)
                w.sub_(m, alpha=0.1)
                w.grad = None
        return loss.detach()

    return step, [*weights, *momentum]


def adam_by_hand():
    weights = parameters()
    first, second = [tg.zeros_like(w) for w in weights], [tg.zeros_like(w) for w in weights]
    count = tg.zeros(())

    def step(x, y):
        for w in weights:
            w.grad = None
        loss = cross_entropy(forward(weights, x), y)
        loss.backward()
        norm = sum(w.grad.square().sum() for w in weights).sqrt()
        with tg.no_grad():
            count.add_(1)
            for w, m, v in zip(weights, first, second, strict=True):
                grad = w.grad * (1 / (norm + 1e-6)).clamp(max=1.0)
                m.mul_(0.9).add_(grad, alpha=0.1)
                v.mul_(0.99).addcmul_(grad, grad, value=0.01)
                corrected = m / (1 - 0.9**count)
                w.sub_(0.01 * corrected / ((v / (1 - 0.99**count)).sqrt() + 1e-8))
        return loss, norm

    return step, [*weights, *first, *second, count]


def functional_by_hand():
    weights = parameters()

    def step(x, y):
        loss = cross_entropy(forward(weights, x), y)
        grads = tg.autograd.grad(loss, weights)
        with tg.no_grad():
            for w, grad in zip(weights, grads, strict=True):
                w -= 0.1 * grad
        return loss

    return step, weights


def accumulating():
    weights = parameters()

    def step(x, y):
        for part in range(2):
            loss = cross_entropy(forward(weights, x[part::2]), y[part::2]) / 2
            loss.backward()
        with tg.no_grad():
            for w in weights:
                w.add_(w.grad, alpha=-0.1)
                w.grad.zero_()
        return loss

    for w in weights:
        w.grad = tg.zeros_like(w)
    return step, weights


STEPS = [sgd_by_hand, adam_by_hand, functional_by_hand, accumulating]


@pytest.mark.parametrize("make", STEPS)
def test_steps_written_by_hand(make):
    x, y = data()
    eager, eager_state = make()
    step, state = make()
    compiled = tg.compile(step)
    for _ in range(6):
        wanted, found = eager(x, y), compiled(x, y)
        for a, b in zip(tg.pytree.leaves(wanted), tg.pytree.leaves(found), strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4)
        for a, b in zip(eager_state, state, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
            assert (a.grad is None) == (b.grad is None)
            assert b.is_leaf and a.requires_grad == b.requires_grad and a._version == b._version
    assert len(compiled.compiles) == 1


def make_model(kind):
    tg.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.25), nn.Linear(16, 3)
    )
    optimizers = {
        "sgd": lambda p: tg.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
        "adam": lambda p: tg.optim.Adam(p, lr=0.01),
        "adamw": lambda p: tg.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    }
    return model, optimizers[kind](model.parameters())


@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
def test_modules_and_optimizers(kind):
    x, y = data()
    losses, models = [], []
    for is_compiled in (False, True):
        model, optimizer = make_model(kind)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = tg.compile(step) if is_compiled else step
        found = []
        for n in range(10):
            if n == 5:
                optimizer.param_groups[0]["lr"] *= 0.1
            found.append(run(x, y).item())
        losses.append(found)
        models.append(model)
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-5)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-3, atol=2e-5)
    assert len(run.compiles) == 1


CHANGES = {
    "lr": ("sgd", lambda n: {"lr": 0.05 / (n + 1)}),
    "momentum": ("sgd", lambda n: {"momentum": 0.9 - 0.1 * n}),
    "decay of sgd": ("sgd", lambda n: {"weight_decay": 0.1 * (n % 2)}),
    "decay of adam": ("adam", lambda n: {"weight_decay": 0.1 * (n % 2)}),
    "decay of adamw": ("adamw", lambda n: {"weight_decay": 0.1 * (n % 2)}),
    "betas": ("adam", lambda n: {"betas": (0.9 - 0.05 * n, 0.999 - 0.01 * n)}),
    "eps": ("adamw", lambda n: {"eps": 10.0 ** -(n + 1)}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_hyperparameters_change_without_compiling_anew(change):
    kind, values = CHANGES[change]
    x, y = data()
    losses = []
    for is_compiled in (False, True):
        model, optimizer = make_model(kind)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss

        run = tg.compile(step) if is_compiled else step
        found = []
        for n in range(6):
            optimizer.param_groups[0].update(values(n))
            found.append(run(x, y).item())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-5)
    assert len(run.compiles) == 1


def test_what_turns_an_operation_on_compiles_anew_and_says_what():
    weight = tg.ones(3, requires_grad=True)
    optimizer = tg.optim.SGD([weight], lr=0.1)

    @tg.compile
    def step():
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

    step()
    optimizer.param_groups[0]["maximize"] = True
    step()
    assert weight.tolist() == [1, 1, 1]
    assert step.compiles[1].reason == "whether an optimizer has maximize changed: False -> True"


def test_a_compiled_model_in_an_eager_loop():
    x, y = data()
    losses = []
    for is_compiled in (False, True):
        model, optimizer = make_model("sgd")
        run = tg.compile(model) if is_compiled else model
        found = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(run(x), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-5)
    assert len(run.compiles) == 1


def test_training_and_evaluation_have_plans_of_their_own():
    x, y = data()
    model, optimizer = make_model("sgd")

    @tg.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    @tg.compile
    @tg.no_grad()
    def accuracy(x, y):
        return (model(x).argmax(-1) == y).float().mean()

    for _ in range(4):
        model.train()
        step(x, y)
        model.eval()
        wanted = accuracy.function(x, y)
        assert accuracy(x, y).item() == pytest.approx(wanted.item())
    assert len(step.compiles) == len(accuracy.compiles) == 1


def test_a_last_batch_of_another_size():
    x, y = data()
    step, _ = sgd_by_hand()
    compiled = tg.compile(step)
    for _ in range(2):
        compiled(x, y)
        compiled(x[:5], y[:5])
    assert len(compiled.compiles) == 2


def test_many_gradients_may_get_another_type(monkeypatch):
    monkeypatch.setattr(call_text, "LOOPED", 2)  # as for many tensors
    weights = [tg.ones(2, requires_grad=True) for _ in range(2)]
    total = tg.compile(lambda: weights[0].grad + weights[1].grad)
    for shape in ((2,), (3,), (2,)):
        for w in weights:
            w.data, w.grad = tg.ones(shape), tg.ones(shape)
        assert total().tolist() == tg.full(shape, 2.0).tolist()
