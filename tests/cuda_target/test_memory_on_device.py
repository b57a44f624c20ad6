"""Loops take no more memory of a device the longer they run, and give back what they took."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_tools import fake_cupy
from tgraph.runtime.cuda import backend, memory
from tgraph.runtime.cuda.capture import Capture
from tgraph.runtime.cuda.plan import CudaPlan
from tgraph.runtime.cuda.products import Workspaces

import tgraph as tg
from tgraph import nn
from tgraph.compiled.compile import compile as compiled

F = tg.nn.functional
pytest_plugins = ["cuda_tools.device"]
WARM, ROUNDS = 4, 8


@pytest.fixture(autouse=True, scope="module")
def without_what_is_there():
    """The many collections do not look at what other tests have left, which takes seconds each."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


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


def products_on(stream: Any, function: Any) -> None:
    """Work on a stream that takes memory for it alone; what is compiled is captured."""
    x = tg.randn(64, 64).cuda()
    stream.wait_stream(tg.cuda.current_stream())
    with stream:
        for _ in range(4):
            function(x)
    stream.synchronize()


@pytest.mark.parametrize("kind", ["eager", "compiled"])
def test_a_stream_that_is_gone_gives_its_memory_back(cuda, kind):
    function = compiled(multiplied) if kind == "compiled" else multiplied
    for _ in range(2):
        products_on(tg.cuda.current_stream(), function)
        products_on(tg.cuda.Stream(), function)
    before = taken()[0], len(streams())
    for _ in range(3):
        stream = tg.cuda.Stream()
        products_on(stream, function)
        if kind == "compiled" or backend.cupy() is fake_cupy.cupy:
            assert taken()[0] > before[0]  # else only where cublasLt wants a workspace
        del stream
        assert taken()[0] == before[0]
        assert len(streams()) == before[1]
    x = tg.randn(64, 64)
    want = multiplied(x)
    np.testing.assert_allclose(function(x.cuda()).cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def multiplied(x: Any) -> Any:
    return (tg.softmax(x @ x, -1) @ x).sum(0)


def streams() -> Any:
    """What streams there are, where the device is the stand-in, which tells."""
    return list(fake_cupy.machine.streams) if backend.cupy() is fake_cupy.cupy else []


def test_streams_share_nothing_that_goes(cuda):
    """What one stream still uses stays when another is gone."""
    function = compiled(multiplied)
    kept, gone = tg.cuda.Stream(), tg.cuda.Stream()
    x = tg.randn(64, 64)
    there, want = x.cuda(), multiplied(x)
    for stream in (kept, gone):
        products_on(stream, function)
    kept.wait_stream(tg.cuda.current_stream())
    with kept:
        before = [function(there) for _ in range(4)]
    del gone, stream
    gc.collect()
    tg.cuda.memory_allocated()
    with kept:
        after = [function(there) for _ in range(4)]
        tg.zeros(64, 64, device="cuda")  # over what was given back
    kept.synchronize()
    for each in before + after:
        np.testing.assert_allclose(each.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def test_a_plan_that_runs_gives_back_later(cuda):
    """A stream may go while another thread runs the plan."""
    function = compiled(multiplied)
    products_on(tg.cuda.current_stream(), function)
    before = taken()[0]
    stream = tg.cuda.Stream()
    products_on(stream, function)
    with ExitStack() as others:
        for each in memory._keepers:
            if isinstance(each, CudaPlan):
                others.enter_context(busy(each._lock))
        del stream
        assert taken()[0] > before
    assert taken()[0] == before


def test_plans_are_asked_again_only_where_they_could_not_give_back(cuda, monkeypatch):
    """The handle may be that of a new stream by then, for which others keep something."""
    functions = [compiled(multiplied), compiled(lambda x: multiplied(x) * 2)]
    plans = []
    for function in functions:
        known = set(memory._keepers)
        products_on(tg.cuda.current_stream(), function)
        plans += [each for each in set(memory._keepers) - known if isinstance(each, CudaPlan)]
    assert len(plans) == 2
    stream = tg.cuda.Stream()
    for function in functions:
        products_on(stream, function)
    told = []
    forget = CudaPlan.forget

    def noted(plan: CudaPlan, pointer: int) -> bool:
        done = forget(plan, pointer)
        if pointer == gone and plan in plans:
            told.append((plans.index(plan), done))
        return done

    gone = stream.cuda_stream
    monkeypatch.setattr(CudaPlan, "forget", noted)
    with busy(plans[0]._lock):
        del stream
        gc.collect()
        for _ in range(2):
            tg.cuda.memory_allocated()
    for _ in range(2):
        tg.cuda.memory_allocated()
    assert sorted(told) == [(0, False), (0, False), (0, True), (1, True)]
    assert not memory._untold and not memory._gone


def test_a_plan_that_is_gone_is_not_asked(cuda):
    function = compiled(multiplied)
    known = set(memory._keepers)
    products_on(tg.cuda.current_stream(), function)
    (plan,) = (each for each in set(memory._keepers) - known if isinstance(each, CudaPlan))
    stream = tg.cuda.Stream()
    products_on(stream, function)
    known = None
    with busy(plan._lock):
        del stream
        gc.collect()
        tg.cuda.memory_allocated()
        assert plan in memory._untold
    seen = weakref.ref(plan)
    del plan, function
    gc.collect()
    assert seen() is None and not memory._untold


def test_captures_keep_their_workspace_when_their_handle_was_anothers(cuda):
    """The driver gives handles anew, and that a stream is gone may be told late."""
    function = compiled(multiplied)
    stream = tg.cuda.Stream()
    x = tg.randn(64, 64)
    there, want = x.cuda(), multiplied(x)
    products_on(stream, function)
    captures = list(backend.kept()[Capture].values())
    kept = [each for each in backend.kept().values() if isinstance(each, Workspaces)]
    pieces = [dict(each._pieces) for each in kept]
    handles = {each.stream.ptr for each in captures}
    assert handles
    memory._gone.extend(handles)
    tg.cuda.memory_allocated()
    assert [dict(each._pieces) for each in kept] == pieces
    with stream:
        for _ in range(2):
            result = function(there)
    stream.synchronize()
    np.testing.assert_allclose(result.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def test_a_capture_takes_nothing_over_from_a_stream_that_is_gone():
    given = []

    def allocate(nbytes: int) -> Any:
        given.append(SimpleNamespace(ptr=256 * (len(given) + 1)))
        return given[-1]

    workspaces = Workspaces(allocate, lambda *_: None)
    old = workspaces.at_least(1, 0, 7)
    workspaces.hold(7)
    new = workspaces.at_least(1, 0, 7)
    assert new != old
    assert workspaces.forget(7) and workspaces.at_least(1, 0, 7) == new
    workspaces.let_go(7)
    assert workspaces._kept == []
    workspaces.at_least(1, 0, 7)
    assert workspaces.forget(7) and workspaces._kept == []


def from_external(own: Any) -> Any:
    return backend.cupy().cuda.Stream.from_external(own)


def null(own: Any) -> Any:
    return backend.cupy().cuda.Stream(null=True)


def per_thread(own: Any) -> Any:
    return backend.cupy().cuda.Stream(ptds=True)


@pytest.mark.parametrize("made", [from_external, null, per_thread])
def test_objects_that_go_before_their_stream(cuda, made):
    """What is kept for a stream stays, so that calls replay the graph of those before."""
    function = compiled(multiplied)
    x = tg.randn(64, 64)
    there, want = x.cuda(), multiplied(x)
    tg.cuda.synchronize()
    known = set(memory._keepers)
    own = backend.cupy().cuda.Stream()
    frames = []
    for _ in range(6):
        with made(own) as stream:
            result = function(there)
            pointer = stream.ptr
        del stream
        gc.collect()
        (plan,) = (each for each in set(memory._keepers) - known if isinstance(each, CudaPlan))
        frames.append(plan._frames[pointer])
        tg.cuda.synchronize()
        np.testing.assert_allclose(result.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
        del result
    assert all(frame is frames[0] for frame in frames)
    assert any(frames[0].graphs.values())


@contextmanager
def busy(lock: Any) -> Any:
    """A lock that another thread holds."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


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
