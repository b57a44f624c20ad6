"""Products that run an elementwise kernel on blocks of their result: bits, memory, and refusals."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from control_graphs import Maker, below, graph, types_of, up
from tgraph.compiler.fusion import contractions as fusion_contractions
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.targets.cpu.contraction_schedule import ContractionSchedule
from tgraph.compiler.targets.cpu.executable import CpuExecutable
from tgraph.compiler.targets.cpu.program import CpuProgram
from tgraph.runtime import parallel

import tgraph as tg
from tgraph import nn
from tgraph.nn import functional as F
from tgraph.tracing import trace

Function = Callable[..., Any]


def values(*shape: int, dtype: tg.dtype = tg.float32) -> tg.Tensor:
    rng = np.random.default_rng(sum(shape))
    return tg.from_numpy(rng.standard_normal(shape)).to(dtype)


@pytest.fixture
def whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step wherever there is one, however small."""
    monkeypatch.setattr(fusion_contractions, "LEAST_SAVED", -1e9)


always = pytest.mark.usefixtures("whatever_it_costs")


def as_one_and_apart(function: Function, *arguments: tg.Tensor, folds: int = 0) -> CpuExecutable:
    """The plan of a function with contractions, whose results have the bits of the one without.

    The last `folds` results are sums, whose order may be another in a kernel of their own.
    """
    graph, arrays = optimize(trace(function, *arguments)), [each.numpy() for each in arguments]
    whole, apart = (CpuExecutable(CpuProgram(graph, epilogues=each)) for each in (True, False))
    assert apart.program.arena_bytes >= whole.program.arena_bytes and not contractions(apart)
    pairs = list(zip(whole.run(arrays), apart.run(arrays), strict=True))
    for number, (have, want) in enumerate(pairs):
        assert have.dtype == want.dtype
        if number < len(pairs) - folds:
            assert have.tobytes() == want.tobytes()
        else:
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-4)
    return whole


def contractions(executable: CpuExecutable) -> list[ContractionSchedule]:
    found = [info.schedule for info in executable.kernels]
    return [each for each in found if isinstance(each, ContractionSchedule)]


SHAPES = [(100, 70, 5), (48, 256, 1), (49, 257, 64), (300, 513, 17), (9, 16, 384), (13, 2100, 33)]


@always
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_results_are_those_of_a_product_and_a_kernel(m: int, n: int, k: int, threads: int) -> None:
    before = parallel.get_num_threads()
    parallel.set_num_threads(threads)
    for ta, tb, dtype in itertools.product((0, 1), (0, 1), (tg.float32, tg.float64)):
        x, y = values(*((k, m), (m, k))[1 - ta], dtype=dtype), values(*((k, n), (n, k))[tb])
        bias, beside = values(n, dtype=dtype), values(m, n, dtype=dtype)

        def several(x, y, bias, beside, ta=ta, tb=tb):
            product = (x.t() if ta else x) @ (y.t() if tb else y)
            return tg.tanh(product + bias) * beside, product, product > 0

        executable = as_one_and_apart(several, x, y.to(dtype), bias, beside)
        assert len(executable.kernels) == len(contractions(executable)) == 1
    parallel.set_num_threads(before)


ONE_STEP: dict[str, tuple[Function, tuple[tg.Tensor, ...]]] = {
    "linear over three axes": (
        lambda x, w, b: F.gelu(F.linear(x, w, b)),
        (values(4, 50, 40), values(120, 40), values(120)),
    ),
    "batch": (
        lambda x, y, b: tg.relu(x @ y + b),
        (values(6, 50, 40), values(6, 40, 90), values(90)),
    ),
    "broadcast batch": (
        lambda x, y: tg.exp(x @ y),
        (values(2, 1, 50, 20), values(3, 20, 64)),
    ),
    "one matrix twice": (lambda x: tg.relu(x @ x.t()), (values(200, 40),)),
    "views with gaps": (
        lambda x, y: tg.sqrt((x[:, 1:21] @ y[2:]).abs()),
        (values(90, 40), values(22, 50)),
    ),
    "a reshaped result": (
        lambda x, y: tg.relu((x @ y).reshape(20, 10, 50) + 1),
        (values(200, 40), values(40, 50)),
    ),
    "outer product": (
        lambda x, y: tg.sigmoid(x.reshape(-1, 1) @ y.reshape(1, -1)),
        (values(300), values(400)),
    ),
    "turned result": (lambda x, y: tg.exp((x @ y).t()), (values(90, 40), values(40, 70))),
    "mask and residual": (
        lambda x, y, r, mask: r + tg.where(mask > 0, 2 * (x @ y), 0.0),
        (values(100, 30), values(30, 60), values(100, 60), values(100, 60)),
    ),
    "gradient of an activation": (
        lambda g, w, h: tg.where(h > 0, g @ w, 0.0) * 2,
        (values(100, 30), values(30, 60), values(100, 60)),
    ),
}


@always
@pytest.mark.parametrize("name", ONE_STEP)
def test_one_step(name: str) -> None:
    function, arguments = ONE_STEP[name]
    executable = as_one_and_apart(function, *arguments)
    (schedule,) = contractions(executable)
    assert [info.schedule for info in executable.kernels] == [schedule]


@always
def test_what_folds_over_results_is_a_kernel_of_its_own() -> None:
    """The gradients of a layer: of what goes into its activation, and of its bias."""

    def gradients(g, w, h):
        before = tg.where(h > 0, g @ w, 0.0)
        return before, before.sum(0), before.abs().sum()

    arguments = values(100, 30), values(30, 60), values(100, 60)
    executable = as_one_and_apart(gradients, *arguments, folds=2)
    first, *others = executable.kernels
    assert isinstance(first.schedule, ContractionSchedule) and others
    assert all(info.kind == "kernel" and info.schedule is not None for info in others)


@always
def test_half_types_are_rounded_where_they_are_stored() -> None:
    for dtype in (tg.float16, tg.bfloat16):
        arguments = [values(*shape, dtype=dtype) for shape in ((64, 40), (120, 40), (120,))]
        executable = as_one_and_apart(lambda x, w, b: tg.relu(F.linear(x, w, b)), *arguments)
        assert len(contractions(executable)) == 1


REFUSED: dict[str, tuple[Function, tuple[tg.Tensor, ...], str]] = {
    "long sums": (
        lambda x, y: tg.relu(x @ y), (values(64, 400), values(400, 64)), "more than 384",
    ),
    "a row": (lambda x, y: tg.relu(x @ y), (values(1, 40), values(40, 64)), "not one of matrices"),
    "a sum of rows": (
        lambda x, y: (x @ y).exp().sum(0), (values(64, 40), values(40, 640)), "loops",
    ),
    "read across": (
        lambda x, y, r: x @ y + r.t(), (values(90, 40), values(40, 70), values(70, 90)), "across",
    ),
    "a check": (
        lambda x, y: (x @ y).long() // 3 + tg.ones(70, dtype=tg.int64)[(x[0, :1] > 9).long()],
        (values(90, 40), values(40, 70)), "what it checks",
    ),
}  # fmt: skip


@always
@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    function, arguments, reason = REFUSED[name]
    executable = as_one_and_apart(function, *arguments)
    assert not contractions(executable)
    assert any(reason in refusal.reason for refusal in executable.refused)


LAYERS = {
    # Rows, columns and sums, and whether one step saves enough of what both take.
    (4096, 4096, 64): True,
    (100_000, 64, 16): True,
    (1024, 1024, 32): True,
    (256, 512, 8): True,
    (2048, 2048, 256): False,  # the work hides it
    (256, 256, 256): False,
    (64, 64, 64): False,  # in the nearest caches
    (1000, 16, 8): False,
}


@pytest.mark.parametrize("sizes", LAYERS, ids=str)
def test_the_price_decides(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    arguments = [tg.empty(*shape) for shape in ((m, k), (n, k), (n,))]
    graph = optimize(trace(lambda x, w, b: tg.relu(F.linear(x, w, b)), *arguments))
    program = CpuProgram(graph)
    assert (len(program.kernels) == 1) is LAYERS[sizes]
    if not LAYERS[sizes]:
        assert any("one after the other" in refusal.reason for refusal in program.refused)
    else:
        assert 0 < program.kernels[0].price < program.kernels[0].apart
        assert program.arena_bytes == 0  # which would hold the product


@always
def test_a_product_that_others_read_stays() -> None:
    """Two kernels that are no one kernel read it, so that it has to be in memory whole."""
    executable = as_one_and_apart(
        lambda x, y: (tg.relu(x @ y), tg.softmax((x @ y).t(), 1)), values(64, 40), values(40, 64)
    )
    assert not contractions(executable)


@always
def test_a_parameter_is_updated_in_its_own_memory() -> None:
    """w -= lr * xᵀ g is one step, which writes over w."""
    w, x, g = values(40, 64), values(90, 40), values(90, 64)
    graph = optimize(trace(lambda w, x, g: w - 0.1 * (x.t() @ g), w, x, g))
    program = CpuProgram(graph, {0: 0})
    assert [info.kind for info in program.kernels] == ["kernel"] and not program.arena_bytes
    array = w.numpy().copy()
    CpuExecutable(program).run([array, x.numpy(), g.numpy()])
    np.testing.assert_allclose(
        array, w.numpy() - 0.1 * (x.numpy().T @ g.numpy()), rtol=1e-4, atol=1e-5
    )


@always
def test_a_training_step_has_the_numbers_of_eager_code() -> None:
    def model() -> nn.Module:
        tg.manual_seed(3)
        return nn.Sequential(
            nn.Linear(20, 64),
            nn.GELU(),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(64, 32),
        )

    x, losses = values(96, 20), {}
    for compiled in (False, True):
        net = model()
        optimizer = tg.optim.SGD(net.parameters(), lr=0.1)

        def step(net=net, optimizer=optimizer):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = tg.compile(step) if compiled else step
        losses[compiled] = [run().item() for _ in range(5)]
        if compiled:
            text = str(run.explain())
            assert len(re.findall(r"blocks of \d+ x \d+ while they are in a cache", text)) >= 3
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-4)


@always
def test_sizes_that_vary() -> None:
    f = tg.compile(lambda x, w, b: tg.relu(F.linear(x, w, b)), dynamic={"x": 0})
    w, b = values(600, 24), values(600)
    for rows in (40, 41, 7, 300, 64):
        x = values(rows, 24)
        np.testing.assert_allclose(
            f(x, w, b).numpy(),
            np.maximum(x.numpy() @ w.numpy().T + b.numpy(), 0),
            rtol=1e-4,
            atol=1e-5,
        )


@always
@pytest.mark.parametrize("epilogues", [True, False])
def test_graphs_inside_have_kernels_in_products_as_the_one_around(epilogues: bool) -> None:
    def body(m: Maker, i: Any, x: Any, w: Any, last: Any) -> list[Any]:
        return [up(m, i), m("exp", m("neg", m("matmul", x, w, **PLAIN)))]

    types = types_of([np.zeros(()).astype(int), *np.zeros((2, 64, 64), "f4"), np.array(3)])
    made = graph(types, lambda m, *given: m.loop(given, 2, below, body))
    program = CpuProgram(optimize(made), epilogues=epilogues)
    inside = [each for info in program.info_of_step.values() for each in info.whole]
    found = [each for each in inside if isinstance(each.schedule, ContractionSchedule)]
    assert bool(found) == epilogues


PLAIN = {"transpose_a": False, "transpose_b": False}
