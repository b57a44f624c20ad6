"""Rows and columns of every length: groups of all sizes, partial vectors, rows too long to keep."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import run_program
from sampling import rotating
from tgraph.compiler.passes import split_reductions
from tgraph.compiler.targets.cuda import schedule as schedule_cuda

import tgraph as tg
from tgraph.nn import functional as F

pytestmark = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
LENGTHS = (1, 2, 3, 7, 13, 31, 32, 33, 64, 100, 128, 255, 500, 1024, 1025, 2048, 3000, 4097, 20_000)
TOLERANCE = {
    tg.int32: 3e-5,
    tg.float32: 3e-5,
    tg.float64: 1e-12,
    tg.float16: 3e-3,
    tg.bfloat16: 2e-2,
}


def along_rows(x):
    return [
        tg.softmax(x, -1),
        F.layer_norm(x, x.shape[-1:]),
        x.max(-1).values,
        x.argmin(-1),
        (x > 3).any(-1),
        (x * 2).sum(-1),
    ]


def along_columns(x):
    transposed = x.t() + 1
    return [tg.softmax(transposed, 0), transposed.mean(0), x.sum(0), x.argmax(0), (x > -9).all(0)]


def check(function, x):
    (program,) = check_all([(function, x)])
    return program


def check_all(pairs):
    """The programs of functions with an argument each, whose results are those of eager code."""
    programs = [tg.cuda.program(function, x) for function, x in pairs]
    shim.compile_together(program.source for program in programs)
    for program, (function, x) in zip(programs, pairs, strict=True):
        agrees(program, function, x)
    return programs


def agrees(program, function, x):
    expected = [each.double().numpy() for each in function(x)]
    tolerance = TOLERANCE[x.dtype]
    for order in ("forward", "shuffled"):
        found = run_program(program, [x.numpy()], order, seed=3)
        for number, (have, want) in enumerate(zip(found, expected, strict=True)):
            label = f"{function.__name__} of {x.dtype} {x.shape}, {order}, result {number}"
            np.testing.assert_allclose(
                have.astype(np.float64), want, rtol=tolerance, atol=tolerance, err_msg=label
            )


def rows(count, length, dtype):
    values = np.random.default_rng(length).standard_normal((count, length))
    return tg.tensor(values.astype(np.float32)).to(dtype)


@pytest.mark.parametrize("function", [along_rows, along_columns], ids=lambda f: f.__name__)
def test_lengths(function):
    check_all([(function, rows(3, length, tg.float32)) for length in rotating(LENGTHS, 3)])


@pytest.mark.parametrize("dtype", [tg.float64, tg.float16], ids=str)
def test_other_types(dtype):
    check_all([(along_rows, rows(5, length, dtype)) for length in (6, 96, 1000, 3000)])


def test_groups_of_all_sizes_are_there():
    """The lengths above reach single threads, parts of warps, warps and blocks."""
    groups = set()
    for length in LENGTHS:
        program = tg.cuda.program(lambda x: tg.exp(x).sum(-1), tg.ones(3, length))
        groups |= {info.schedule.group for info in program.kernels}
    assert groups == {1, 2, 4, 8, 16, 32, 128, 256, 512, 1024}


def softmax_program(length, arch="sm_90", dtype=tg.float32):
    return tg.cuda.program(
        lambda x: tg.softmax(x, -1), tg.ones(600, length, dtype=dtype), arch=arch
    )


@pytest.mark.parametrize(
    ("length", "arch", "dtype", "shared"),
    [
        (4096, "sm_90", tg.float32, 0),  # in registers
        (50_257, "sm_90", tg.float32, 200 << 10),
        (50_257, "sm_80", tg.float32, None),  # a block has less there: rows are read again
        (50_257, "sm_80", tg.bfloat16, 100 << 10),  # kept as they lie in memory
        (60_000, "sm_90", tg.float32, None),  # of longer rows `one_pass_statistics` makes pieces
    ],
)
def test_where_rows_are_kept(length, arch, dtype, shared):
    program = softmax_program(length, arch, dtype)
    (launch,) = program.launches
    text = program.source.split('extern "C"', 1)[1]
    assert launch.shared == (shared or 0)
    assert ("s0[" in text) == (shared is not None)
    # Behind the parameter itself: one of the three stages loads elements, or else all.
    assert len(re.findall(r"\bin0\b", text)) - 1 == (3 if shared is None else 1)
    assert (f", {launch.shared}>>>" in str(program)) == bool(launch.shared)


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.int32], ids=str)
def test_rows_in_shared_memory(monkeypatch, dtype):
    def function(x):
        y = x.float()
        return [tg.softmax(y, -1), (y - y.mean(-1, keepdim=True)).abs().amax(-1)]

    monkeypatch.setattr(split_reductions, "GPU_BLOCKS", 1)
    x = rows(9, 40_001, tg.float32).mul(8).to(dtype)
    program = check(function, x)
    assert any(launch.shared > 48 << 10 for launch in program.launches)


def test_as_many_rows_are_kept_as_there_is_room_for():
    """Of the two rows that the gradient of softmax loads twice, one."""

    def gradient(x, g):
        return x * (g - (x * g).sum(-1, keepdim=True))

    x = tg.zeros(300, 50_257)
    (launch,) = tg.cuda.program(gradient, x, x).launches
    assert launch.shared == 200 << 10
    x, g = rows(9, 40_000, tg.float32), rows(9, 40_001, tg.float32)[:, 1:].clone()
    program = tg.cuda.program(gradient, x, g)
    (found,) = run_program(program, [x.numpy(), g.numpy()], "shuffled", seed=3)
    np.testing.assert_allclose(found, gradient(x, g).numpy(), rtol=1e-3, atol=2e-3)


def test_columns_in_shared_memory(monkeypatch):
    monkeypatch.setattr(split_reductions, "GPU_BLOCKS", 1)
    x = rows(1500, 40, tg.float32)
    program = check(lambda x: [tg.softmax(x + 1, 0)], x)
    (launch,) = program.launches
    assert (launch.block, launch.shared) == ((32, 16), 32 * 1504 * 4)


def test_a_larger_team_keeps_more_rows_in_registers():
    """The gradient of layer norm keeps two rows of a thousand elements."""

    def gradient(x, g):
        return tg.vjp(lambda x: F.layer_norm(x, x.shape[-1:]), x)[1](g)

    x, g = rows(4, 1024, tg.float32), rows(4, 1024, tg.float32)
    program = tg.cuda.program(gradient, x, g)
    kept = [info.schedule for info in program.kernels if info.schedule.kernel.scratch]
    assert kept and all(not schedule.shared for schedule in kept)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float16], ids=str)
def test_threads_stride_over_the_grid(monkeypatch, dtype):
    """Where single elements are loaded, a few blocks do all of the work."""
    monkeypatch.setattr(schedule_cuda, "MAX_BLOCKS", 3)
    x = rows(77, 101, dtype)
    program = check(lambda x: [(x[:, ::2] * 2 + 1).clone(), x.flip(-1).clone()], x)
    assert max(launch.grid for launch in program.launches) <= 3 * len(program.kernels)
    assert program.source.count("item += 768") == len(program.kernels)
