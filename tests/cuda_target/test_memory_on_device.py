"""Loops take no more memory of a device the longer they run, and give back what they took."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tgraph.runtime.cuda import backend
from tgraph.runtime.cuda.products import Workspaces

import tgraph as tg
from tgraph import nn
from tgraph.compile import compile as compiled

F = tg.nn.functional
pytest_plugins = ["cuda_tools.device"]
WARM, ROUNDS = 4, 8


def taken() -> tuple[int, int]:
    """Bytes that are in use on the device, and that the pool holds."""
    gc.collect()
    tg.cuda.synchronize()
    return tg.cuda.memory_allocated(), tg.cuda.memory_reserved()


def workspace_bytes() -> int:
    """Scratch memory for matrix products, which is kept for good."""
    kept = [each for each in backend.kept().values() if isinstance(each, Workspaces)]
    return sum(piece.mem.size for each in kept for piece in each._kept)


def does_not_grow(round_: Callable[[], Any]) -> None:
    """In use or held: garbage is collected behind every round, whenever Python would do so."""
    for _ in range(WARM):
        round_()
        taken()
    before = taken()
    for _ in range(ROUNDS):
        round_()
        assert taken() == before


def gives_back(make: Callable[[], Callable[[], Any]]) -> None:
    """`make()` gives a round; once that is gone, so is all that it took."""
    tg.cuda.empty_cache()
    before, workspaces = taken()[0], workspace_bytes()
    round_ = make()
    for _ in range(WARM):
        round_()
    tg.cuda.synchronize()
    assert tg.cuda.max_memory_allocated() > before
    del round_
    gc.collect()
    tg.cuda.empty_cache()
    assert taken()[0] - before == workspace_bytes() - workspaces


def eager_round() -> Callable[[], Any]:
    x = tg.randn(64, 64).cuda()
    w = tg.randn(64, 64).cuda().requires_grad_()

    def run() -> None:
        loss = tg.softmax(tg.relu(x @ w), -1).square().sum()
        loss.backward()
        w.grad = None

    return run


def compiled_round() -> Callable[[], Any]:
    function = compiled(lambda x, y: (tg.softmax(x * 2 + y, -1), (x @ y).sum(0)))
    x, y = tg.randn(64, 64).cuda(), tg.randn(64, 64).cuda()
    return lambda: function(x, y)


def training_round() -> Callable[[], Any]:
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4))
    model = model.to("cuda")
    optimizer = tg.optim.AdamW(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    x = tg.from_numpy(rng.standard_normal((16, 8)).astype(np.float32)).cuda()
    y = tg.from_numpy(rng.integers(0, 4, 16)).cuda()

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: step(x, y).item()


def differentiated_round() -> Callable[[], Any]:
    """A forward and a backward plan, with what is kept between them."""
    function = compiled(lambda x, w: tg.tanh(x @ w).square().sum())
    x = tg.randn(32, 16).cuda()
    w = tg.randn(16, 8).cuda().requires_grad_()

    def run() -> None:
        function(x, w).backward()
        w.grad = None

    return run


MAKES = [eager_round, compiled_round, training_round, differentiated_round]


@pytest.mark.parametrize("make", MAKES)
def test_a_loop_does_not_grow(cuda, make):
    does_not_grow(make())


@pytest.mark.parametrize("make", MAKES)
def test_everything_is_given_back(cuda, make):
    make()()  # what is made once for a device
    gives_back(make)


def test_more_addresses_than_graphs_are_kept_for(cuda):
    """Each set of addresses is captured when it comes again; old graphs go."""
    function = compiled(lambda x: tg.softmax(x, -1) * 2)
    inputs = [tg.randn(32, 32).cuda() for _ in range(20)]

    def run() -> None:
        for each in inputs:
            for _ in range(3):
                function(each)

    does_not_grow(run)
    for each in inputs:
        want = tg.softmax(each.cpu(), -1) * 2
        np.testing.assert_allclose(function(each).cpu().numpy(), want.numpy(), rtol=1e-5)


def test_a_failed_check_leaves_nothing(cuda):
    table = tg.randn(10, 4).cuda()
    look_up = compiled(lambda at: table[at] * 2)
    good, bad = tg.tensor([1, 9]).cuda(), tg.tensor([1, 10]).cuda()

    def run() -> None:
        look_up(good)
        look_up(bad)
        with pytest.raises(IndexError):
            tg.cuda.synchronize()

    does_not_grow(run)


def test_growth_is_seen(cuda):
    """The test of the tests: what keeps a tensor of each round fails."""
    kept = []
    with pytest.raises(AssertionError):
        does_not_grow(lambda: kept.append(tg.ones(1000).cuda()))
