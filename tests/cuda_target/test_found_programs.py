"""Programs that went wrong once."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_tools import nvrtc, shim
from cuda_tools.run_program import run_program

import tgraph as tg

needs_shim = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
LIMIT = 48 << 10


def test_reductions_of_a_kernel_share_their_memory():
    x = tg.ones(400, 96, dtype=tg.float64)
    sums = tg.cuda.program(lambda x: [(x * k).sum(0) for k in range(1, 20)], x)
    places = tg.cuda.program(lambda x: [(x * k).argmax(0) for k in range(1, 9)], tg.ones(600, 96))
    for program in (sums, places):
        assert 0 < max(program.shared.values()) <= LIMIT
        if nvrtc.available() is None:
            nvrtc.compile_cubin(program.source, "sm_75")


def test_tiles_fit_into_shared_memory():
    inputs = [tg.ones(64, 64, dtype=tg.float64) for _ in range(7)]
    program = tg.cuda.program(lambda *xs: sum(x.t() for x in xs) + 1, *inputs)
    assert max(program.shared.values()) <= LIMIT


def test_long_loops_count_in_64_bits():
    program = tg.cuda.program(
        lambda s, a, b: (s[:, None, None] * a[:, None] * b).amax((1, 2)),
        *(tg.ones(400), tg.ones(50_000), tg.ones(50_000)),
    )
    assert "for (int start" not in program.source.split('extern "C"', 1)[1]
    assert "for (long long start" in program.source
    program = tg.cuda.program(
        lambda s, a, b: (s.cumsum(0)[:, None, None] * a[:, None] * b).argmax(),
        *(tg.ones(4), tg.ones(50_000), tg.ones(50_000)),
    )
    assert "for (long long j" in program.source


def test_positions_inside_of_a_remainder_have_64_bits():
    program = tg.cuda.program(
        lambda x, s: (s[:, None] + x[None].expand(10_000_001, 1000).reshape(1000, -1)).amax(-1),
        *(tg.ones(1000), tg.ones(1000)),
    )
    kernel = program.source.split('extern "C"', 1)[1]
    assert "% 1000" in kernel and "long long" in kernel


@needs_shim
def test_a_gather_from_a_reshaped_table():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((4, 6, 8)).astype(np.float32)
    at = rng.integers(0, 24, (5, 8))
    program = tg.cuda.program(
        lambda y, i: tg.gather(y.permute(1, 0, 2).reshape(24, 8), 0, i) + 1,
        *(tg.from_numpy(table), tg.from_numpy(at)),
    )
    (found,) = run_program(program, [table, at])
    transposed = table.transpose(1, 0, 2).reshape(24, 8)
    np.testing.assert_array_equal(found, np.take_along_axis(transposed, at, 0) + 1)


@needs_shim
def test_checks_of_several_kernels_are_told_apart():
    x = np.ones((9, 9), np.float32)
    first, second = np.array([1, 2]), np.array([1, 2, 3])

    def function(x, i, k):
        return (
            x[i] + 1,
            (x @ x)[k].sum(0),
        )

    program = tg.cuda.program(function, *map(tg.from_numpy, (x, first, second)))
    assert len(program.launches) > 1 and len(program.checks) > 1
    line = function.__code__.co_firstlineno
    with pytest.raises(IndexError, match=rf"index 77 .*:{line + 2}"):
        run_program(program, [x, np.array([1, 77]), second])
    with pytest.raises(IndexError, match=rf"index -50 .*:{line + 3}"):
        run_program(program, [x, first, np.array([1, 2, -50])])


@needs_shim
def test_casts_out_of_range_keep_the_bits_that_remain_of_64():
    values = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 300.7, -1.5, 2.0**40], np.float32)

    def function(x):
        return [x.to(dtype) for dtype in (tg.int64, tg.int32, tg.int8, tg.uint8)]

    program = tg.cuda.program(function, tg.from_numpy(values))
    inside = np.abs(values) < 2.0**63
    wide = np.where(inside, np.where(inside, values, 0).astype(np.int64), np.int64(-(2**63)))
    types = (np.int64, np.int32, np.int8, np.uint8)
    for have, dtype in zip(run_program(program, [values]), types, strict=True):
        np.testing.assert_array_equal(have, wide.astype(dtype))


def test_a_file_name_stays_in_its_comment():
    names = {}
    exec(compile("def function(x): return x * 2 + 1", "/tmp/x\n#error y.py", "exec"), names)
    program = tg.cuda.program(names["function"], tg.ones(3))
    assert "#error" in program.source
    assert all(not line.startswith("#error") for line in program.source.splitlines())
