"""Statistics of long rows and columns: one pass over memory, and the numbers of eager code."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.programs import program_of
from cuda_tools.run_program import interpret_program, run_program
from tgraph.compiler.passes import one_pass_statistics as pass_

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]

SMALL = pass_.Limits(row=64, whole=64, piece=24, fewest=4, column=0)
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def small(monkeypatch):
    """Rows of a few numbers are long."""
    monkeypatch.setattr(pass_, "FOR_THREADS", SMALL)
    monkeypatch.setattr(pass_, "FOR_GPU", SMALL)


def with_decision(x):
    peak = x.amax(-1, keepdim=True)
    return tg.logsumexp(x, -1), (x == peak).sum(-1), peak


def normalized(x):
    return tg.nn.functional.batch_norm(x, None, None, training=True)


FUNCTIONS = {
    "var": lambda x: x.var(),
    "std and mean": lambda x: tg.std_mean(x, -1),
    "var of some": lambda x: x.var(tuple(range(1, x.ndim)), correction=0),
    "batch norm": normalized,
    "layer norm": lambda x: tg.nn.functional.layer_norm(x, x.shape[-1:]),
    "logsumexp": with_decision,
    "logsumexp of all": lambda x: tg.logsumexp(x, tuple(range(x.ndim))),
    "softmax": lambda x: tg.softmax(x, -1),
    "log_softmax": lambda x: tg.log_softmax(x * 2 - 1, -1),
}
SHAPES = [(2, 3, 64), (3, 2, 101), (5, 2, 8, 5)]


def values(shape, dtype=tg.float32):
    x = 3 + 2 * np.random.default_rng(1).standard_normal(shape)
    return tg.tensor(x).to(dtype)


def results(found):
    return [each.detach().numpy() for each in (found if isinstance(found, tuple) else (found,))]


def loads(function, x):
    """How often the elements of x are read."""
    plan = tg.compile(function).explain(x)
    return sum(each.bytes for each in plan.kernels) / (x.numel() * x._type.dtype.itemsize)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.float16], ids=str)
def test_numbers_are_those_of_eager_code(small, name, dtype):
    function, used = FUNCTIONS[name], 0
    for shape in SHAPES:
        x = values(shape, dtype)
        used += names_pass(function, x)
        tolerance = {tg.float32: 2e-5, tg.float64: 1e-12, tg.float16: 4e-3}[dtype]
        for one, other in zip(results(function(x)), results(tg.compile(function)(x)), strict=True):
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)
    assert used


def names_pass(function, x):
    """Whether the pass changes the graph."""
    changed = []
    rewritten = pass_._rewritten

    def noted(graph, limits):
        found = rewritten(graph, limits)
        changed.append(found is not graph)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pass_, "_rewritten", noted)
        tg.tracing.program(function, x)
    return any(changed)


ROWS = {
    "nothing": [-INF] * 70,
    "a piece of nothing": [-INF] * 48 + [1000.0, -1000.0] + [-2000.0] * 20,
    "an infinite one": [0.0] * 50 + [INF] + [-1.0] * 19,
    "both": [INF] + [-INF] * 69,
    "no number": [1.0] * 40 + [NAN] + [INF] * 29,
    # Of which no sum overflows in any order; those of squares do.
    "far apart": [-1e38] + [0.0] * 68 + [1e38],
    "small": [-5000.0] * 69 + [-5001.0],
}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_not_finite_comes_out_as_in_eager_code(small, name):
    x = tg.tensor([ROWS[name], [0.5] * 70])
    for function in FUNCTIONS.values():
        if function is normalized:
            continue
        for one, other in zip(results(function(x)), results(tg.compile(function)(x)), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_eager_code(small):
    x = values((3, 90), tg.float64)
    for name in ("std and mean", "logsumexp", "layer norm", "softmax", "log_softmax"):

        def loss(x, function=FUNCTIONS[name]):
            found = function(x)
            first = found[0] if isinstance(found, tuple) else found
            return (first * first.sin()).sum()

        expected, found = (tg.grad(f)(x) for f in (loss, tg.compile(loss)))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
@pytest.mark.parametrize("name", ["std and mean", "batch norm", "logsumexp"])
def test_programs_for_cuda(small, name):
    x = values((3, 2, 101))
    program, arrays, expected = program_of(FUNCTIONS[name], [x])
    for found in (run_program(program, arrays, "shuffled", 1), interpret_program(program, arrays)):
        for have, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(have, np.asarray(want), rtol=2e-5, atol=2e-5)


COLUMNS = {
    "var": lambda x: tg.var_mean(x, 0),
    "var of leading axes": lambda x: x.reshape(2, -1, 40).var((0, 1)),
    "logsumexp": lambda x: tg.logsumexp(x, 0),
    "softmax": lambda x: tg.softmax(x, 0),
}


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16], ids=str)
def test_columns_for_cuda(monkeypatch, name, dtype):
    """As exact as elements are, far from zero and in pieces with other means."""
    monkeypatch.setattr(pass_, "FOR_GPU", SMALL._replace(column=16))
    x = (values((134, 40)) + tg.linspace(10, 20, 134)[:, None]).to(dtype)
    program, arrays, _ = program_of(COLUMNS[name], [x])
    exact = results(COLUMNS[name](x.double()))
    for found in (run_program(program, arrays, "shuffled", 1), interpret_program(program, arrays)):
        for have, want in zip(found, exact, strict=True):
            tolerance = 3e-6 if dtype is tg.float32 else 1e-2
            np.testing.assert_allclose(have.astype(np.float64), want, rtol=tolerance)


def test_long_columns_are_read_once_on_a_gpu():
    x = tg.zeros(4096, 2048)
    for name in ("var", "logsumexp"):
        kernels = tg.cuda.program(COLUMNS[name], x).kernels
        assert sum(each.bytes for each in kernels) < 1.02 * 4 * x.numel()
        assert not names_pass(COLUMNS[name], x)  # which is for the CPU


@pytest.mark.parametrize("name", ["std and mean", "batch norm", "logsumexp", "softmax"])
def test_on_a_device(small, cuda, name):
    x, compiled = values((3, 2, 101)), tg.compile(FUNCTIONS[name])
    for one, other in zip(results(FUNCTIONS[name](x)), on_host(compiled(x.cuda())), strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)


def on_host(found):
    return [each.cpu().numpy() for each in (found if isinstance(found, tuple) else (found,))]


def test_long_rows_are_read_once_and_short_ones_left_alone():
    x = tg.from_numpy(np.ones((2, 1 << 22), np.float32))
    for function in (lambda x: x.var(1), lambda x: tg.logsumexp(x, 1)):
        assert loads(function, x) < 1.01
    assert not names_pass(lambda x: x.var(1), x.reshape(1 << 13, 1 << 10))
    assert not names_pass(lambda x: x.var(), x[:, : 1 << 20].contiguous())


def test_a_variance_is_as_exact_as_its_elements():
    """Of numbers far from zero, whose pieces have other means."""
    x = np.random.default_rng(0).standard_normal(1 << 23, dtype=np.float32)
    x += np.float32(1000.0) + np.linspace(0, 8, x.size, dtype=np.float32)
    found = float(tg.compile(lambda x: x.var())(tg.from_numpy(x)))
    assert abs(found / x.astype(np.float64).var(ddof=1) - 1) < 3e-7


def test_what_is_subtracted_may_come_of_a_factorization(small):
    def function(x):
        center = tg.linalg.eigvalsh(x.mean().reshape(1, 1))
        return ((x - center) ** 2).sum(-1)

    x = values((3, 101))
    np.testing.assert_allclose(tg.compile(function)(x).numpy(), function(x).numpy(), rtol=1e-5)
