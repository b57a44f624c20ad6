"""Every optimizer against its formula in NumPy over several steps, and against PyTorch's numbers.

The numbers were computed with torch 2.13 in float64, from the start and gradients below.
"""

import numpy as np
import pytest

import tgraph as tg
from tgraph import optim

START = [0.5, -1.25, 2.0]


def gradient(step):
    return np.array([0.3 * (step + 1), -0.7 + 0.2 * step, 0.05 * step - 0.1])


def run(name, options, steps=5, dtype=tg.float64):
    x = tg.tensor(START, dtype=dtype, requires_grad=True)
    optimizer = getattr(optim, name)([x], **options)
    for step in range(steps):
        x.grad = tg.tensor(gradient(step), dtype=dtype)
        assert optimizer.step() is None
    return x, optimizer


PYTORCH = [
    ("SGD", {"lr": 0.1}, [0.05, -1.0999999999999999, 1.9999999999999998]),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, [-0.451093, -0.7010930000000002, 2.0386459999999995]),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
        [-0.202621, -0.779768, 2.0393375000000002],
    ),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
        [-0.8292730975189638, -0.5215404770014934, 1.8677750822325625],
    ),
    (
        "SGD",
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
        [0.91953984525, -1.3337972330750003, 1.9024726447000002],
    ),
    (
        "SGD",
        {"lr": 0.05, "momentum": 0.8, "dampening": 0.5, "weight_decay": 0.1, "maximize": True},
        [0.7214606765043945, -1.3769655772452636, 1.9104062120970704],
    ),
    ("Adam", {"lr": 0.1}, [0.014916913764645476, -0.8155744214131622, 2.2805644151447084]),
    (
        "Adam",
        {"lr": 0.1, "betas": (0.8, 0.95), "eps": 0.001, "weight_decay": 0.1},
        [0.0026130873327405157, -0.8132432161130768, 1.4990296889257828],
    ),
    (
        "Adam",
        {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6)},
        [0.0008086880032510679, -0.9109008348341823, 2.128312376955382],
    ),
    (
        "Adam",
        {"lr": 0.1, "maximize": True, "weight_decay": 0.02},
        [0.9845646969330484, -1.6768090169702097, 1.6210282126126485],
    ),
    ("AdamW", {"lr": 0.1}, [0.013398119764789856, -0.8102956961288068, 2.2697314593234332]),
    (
        "AdamW",
        {"lr": 0.1, "weight_decay": 0.3, "betas": (0.7, 0.9)},
        [-0.048318459812725444, -0.7003494664488998, 1.9052800566611086],
    ),
    (
        "AdamW",
        {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6)},
        [-0.0006937788542026174, -0.9055605081479507, 2.1176199356922614],
    ),
    (
        "AdamW",
        {"lr": 0.1, "maximize": True},
        [0.9816118702402091, -1.6772292788836907, 1.7103085006965626],
    ),
    ("RMSprop", {"lr": 0.05}, [-1.5544151444405117, -0.29247822347512464, 2.198586477071982]),
    (
        "RMSprop",
        {"lr": 0.05, "centered": True, "momentum": 0.9},
        [-5.267731470718335, 2.3268086683947664, 4.12391223240553],
    ),
    (
        "RMSprop",
        {"lr": 0.05, "alpha": 0.8, "weight_decay": 0.1, "momentum": 0.5, "maximize": True},
        [1.2899877806679363, -1.5660983164494267, 1.4757291393126295],
    ),
]


@pytest.mark.parametrize(("name", "options", "expected"), PYTORCH)
def test_pytorchs_numbers(name, options, expected):
    x, _ = run(name, options)
    np.testing.assert_allclose(x.numpy(force=True), expected, rtol=1e-12)


def sgd(p, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    buffer = None
    while True:
        g = yield p
        g = -g if maximize else g
        g = g + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g


def adam(
    p, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False,
    decoupled=False,
):  # fmt: skip
    m = v = largest = np.zeros_like(p)
    t = 0
    while True:
        g = yield p
        t += 1
        g = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        largest = np.maximum(largest, v)
        second = (largest if amsgrad else v) / (1 - betas[1] ** t)
        p = p - lr * m / (1 - betas[0] ** t) / (np.sqrt(second) + eps)


def adamw(p, lr, weight_decay=1e-2, **options):
    return adam(p, lr, weight_decay=weight_decay, decoupled=True, **options)


@pytest.mark.parametrize(
    ("name", "formula", "options"),
    [
        *(("SGD", sgd, {"lr": 0.07, **extra}) for extra in (
            {}, {"momentum": 0.5}, {"momentum": 0.5, "dampening": 0.2, "weight_decay": 0.3},
            {"momentum": 0.7, "nesterov": True, "maximize": True},
        )),
        *(("Adam", adam, {"lr": 0.2, **extra}) for extra in (
            {}, {"weight_decay": 0.2}, {"amsgrad": True, "betas": (0.3, 0.4)}, {"maximize": True},
        )),
        *(("AdamW", adamw, {"lr": 0.2, **extra}) for extra in (
            {}, {"weight_decay": 0.0}, {"eps": 0.1, "betas": (0.0, 0.5)},
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [tg.float64, tg.float32])
def test_formulas(name, formula, options, dtype):
    run_formula = formula(np.array(START), **options)
    expected = next(run_formula)
    for step in range(12):
        expected = run_formula.send(gradient(step))
    x, _ = run(name, options, steps=12, dtype=dtype)
    assert x.dtype is dtype
    tolerance = 1e-12 if dtype is tg.float64 else 3e-6
    np.testing.assert_allclose(x.numpy(force=True), expected, rtol=tolerance)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_updates_are_in_place_and_outside_of_the_gradient(name):
    x = tg.tensor(START, requires_grad=True)
    memory = x.detach()
    optimizer = getattr(optim, name)([x], lr=0.1, weight_decay=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()
    assert x.is_leaf and x.requires_grad
    assert memory.tolist() == x.tolist() != START
    states = [each for each in optimizer.state[x].values() if isinstance(each, tg.Tensor)]
    assert not any(each.requires_grad for each in states)
    assert tg.is_grad_enabled()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_the_gradient_is_left_as_it_was(name):
    x = tg.tensor(START, requires_grad=True)
    x.grad = tg.ones(3)
    getattr(optim, name)([x], lr=0.1, weight_decay=0.5, maximize=True).step()
    assert x.grad.tolist() == [1, 1, 1]


def test_convergence_on_a_quadratic():
    for name, options in [
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("Adam", {"lr": 0.1}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.0}),
        ("RMSprop", {"lr": 0.01}),
    ]:
        x = tg.tensor(START, requires_grad=True)
        optimizer = getattr(optim, name)([x], **options)
        for _ in range(500):
            optimizer.zero_grad()
            ((x - 1) ** 2).sum().backward()
            optimizer.step()
        np.testing.assert_allclose(x.tolist(), [1, 1, 1], atol=2e-2, err_msg=name)
