"""Tensors on CUDA devices: random numbers, copies and pickles, modules, optimizers."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
from device_tools import CPU, same
from sampling import rotating

import tgraph as tg
from tgraph import nn, optim
from tgraph.nn import functional as F

pytest_plugins = ["cuda_tools.device"]

# -- random numbers --------------------------------------------------------------------------


def drawn(device: Any) -> dict[str, Any]:
    tg.manual_seed(11)
    x = tg.zeros(40, device=device)
    generator = tg.Generator().manual_seed(5)
    return {
        "randn": tg.randn(40, device=device),
        "randn of doubles": tg.randn(7, dtype=tg.float64, device=device),
        "normal": tg.normal(x + 1, 2.0),
        "of a generator": tg.rand(5, generator=generator, device=device),
        "bernoulli": tg.bernoulli(x + 0.3),
        "multinomial": tg.multinomial(x + 1, 5),
        "repeated": tg.multinomial(tg.ones(2, 3, device=device), 9, replacement=True),
        "uniform_": tg.zeros(9, device=device).uniform_(-1, 1),
        "normal_": tg.zeros(9, dtype=tg.float16, device=device).normal_(),
        "exponential_": tg.zeros(9, device=device).exponential_(),
        "log_normal_": tg.zeros(9, device=device).log_normal_(),
        "cauchy_": tg.zeros(9, device=device).cauchy_(),
        "geometric_": tg.zeros(9, device=device).geometric_(0.3),
        "random_": tg.zeros(9, dtype=tg.int8, device=device).random_(),
        "bernoulli_": tg.zeros(9, device=device).bernoulli_(0.5),
        "dropout": F.dropout(x + 1, 0.5),
        "trunc_normal_": nn.init.trunc_normal_(tg.zeros(9, device=device)),
        "orthogonal_": nn.init.orthogonal_(tg.zeros(3, 3, device=device)),
        "eye_": nn.init.eye_(tg.zeros(3, 2, device=device)),
        "kaiming": nn.init.kaiming_uniform_(tg.zeros(3, 2, device=device)),
        "state": tg.get_rng_state()[1:],
    }


def test_the_same_seed_gives_the_same_numbers(cuda: Any) -> None:
    here, there = drawn(CPU), drawn(cuda)
    for name, expected in here.items():
        found = there[name]
        assert found.device == (CPU if name == "state" else cuda), name
        assert found.dtype is expected.dtype
        wide = found.cpu().double().numpy(), expected.double().numpy()
        np.testing.assert_allclose(*wide, rtol=1e-3 if "_" in name else 1e-5, atol=1e-5)


def test_many_random_bits(cuda: Any) -> None:
    tg.manual_seed(2)
    here = tg.rand(100_003)
    tg.manual_seed(2)
    same(tg.rand(100_003, device=cuda), here, cuda)


# -- copies, pickles, modules, optimizers ----------------------------------------------------


def test_copies_and_pickles(cuda: Any) -> None:
    x = tg.arange(6, device=cuda).to(tg.bfloat16).reshape(2, 3)
    x.requires_grad_()
    x.grad = tg.ones(2, 3, dtype=tg.bfloat16, device=cuda)
    twin = copy.deepcopy(x)
    same(twin, x.cpu(), cuda)
    assert twin.requires_grad and twin.grad.device == cuda and twin.data_ptr() != x.data_ptr()
    assert copy.copy(x).device == cuda
    again = pickle.loads(pickle.dumps(x))
    same(again, x.cpu(), cuda)
    assert again.requires_grad
    view = pickle.loads(pickle.dumps(x.detach().T[1:]))
    same(view, x.detach().cpu().T[1:], cuda)
    parameter = pickle.loads(pickle.dumps(nn.Parameter(tg.ones(2, device=cuda))))
    assert type(parameter) is nn.Parameter and parameter.device == cuda


def network() -> Any:
    tg.manual_seed(4)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 3),
    )  # fmt: skip


def test_modules_move(cuda: Any) -> None:
    net = network()
    parameters = list(net.parameters())
    x = tg.randn(5, 1, 4, 4)
    net(x).sum().backward()
    expected = net.eval()(x)
    assert net.to("cuda") is net and list(net.parameters()) == parameters
    for each in (*net.parameters(), *net.buffers(), *(each.grad for each in parameters)):
        assert each.device == cuda
    assert all(each.is_leaf and each.requires_grad for each in net.parameters())
    found = net(x.cuda())
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected.detach().numpy(), atol=1e-5)
    twin = copy.deepcopy(net)
    assert next(twin.parameters()).device == cuda
    assert next(net.to(cuda, tg.float64).parameters()).dtype is tg.float64
    assert next(net.cpu().parameters()).device == CPU
    assert next(net.cuda(0).parameters()).device == cuda
    twin.load_state_dict(net.float().cpu().state_dict())
    assert next(twin.parameters()).device == cuda
    file = io.BytesIO()
    pickle.dump(twin.state_dict(), file)
    file.seek(0)
    net.load_state_dict(pickle.load(file))
    assert next(net.parameters()).device == CPU
    with tg.device("cuda"):
        assert next(network().parameters()).device == cuda
    assert nn.Linear(2, 2, device="cuda").bias.device == cuda


OPTIMIZERS = {
    "sgd": lambda given: optim.SGD(given, lr=0.1),
    "momentum": lambda given: optim.SGD(given, lr=0.1, momentum=0.9, nesterov=True),
    "decay": lambda given: optim.SGD(given, lr=0.1, momentum=0.9, weight_decay=0.1),
    "adam": lambda given: optim.Adam(given, lr=0.01),
    "amsgrad": lambda given: optim.Adam(given, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adamw": lambda given: optim.AdamW(given, lr=0.01),
    "rmsprop": lambda given: optim.RMSprop(given, lr=0.01),
    "centered": lambda given: optim.RMSprop(given, lr=0.01, centered=True, momentum=0.9),
}


def trained(make: Any, device: Any) -> Any:
    tg.manual_seed(9)
    x, y = tg.randn(6, 4, dtype=tg.float64), tg.randint(0, 3, (6,))
    net = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 3))
    net.to(device, tg.float64)
    optimizer = make(net.parameters())
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x.to(device)), y.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return net, optimizer, losses


@pytest.mark.parametrize("name", rotating(OPTIMIZERS, 3))
def test_training(name: str, cuda: Any) -> None:
    make = OPTIMIZERS[name]
    here, _, expected = trained(make, CPU)
    there, optimizer, found = trained(make, cuda)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found[-1] < found[0]
    for mine, other in zip(there.parameters(), here.parameters(), strict=True):
        assert mine.device == cuda
        have, want = mine.detach().cpu().numpy(), other.detach().numpy()
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-9)
    states = [value for state in optimizer.state.values() for value in state.values()]
    assert all(each.device == cuda for each in states if isinstance(each, tg.Tensor))
    saved = copy.deepcopy(optimizer.state_dict())
    other = make(there.parameters())
    other.load_state_dict(saved)
    optimizer.zero_grad(set_to_none=False)
    assert not next(there.parameters()).grad.any()
    other.step()


def test_schedules(cuda: Any) -> None:
    x = tg.ones(2, device=cuda, requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(2):
        x.grad = tg.ones(2, device=cuda)
        optimizer.step()
        schedule.step()
    same(x, tg.tensor([-0.5, -0.5]), cuda)
