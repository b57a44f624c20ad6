"""Rows and columns of every length: teams of all sizes, partial vectors, rows too long to keep."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import run_program

import tgraph as tg
from tgraph.nn import functional as F

pytestmark = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
LENGTHS = (1, 2, 3, 7, 13, 31, 32, 33, 64, 100, 128, 255, 500, 1024, 1025, 2048, 3000, 4097, 20_000)
TOLERANCE = {tg.float32: 3e-5, tg.float64: 1e-12, tg.float16: 3e-3}


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
    turned = x.t() + 1
    return [tg.softmax(turned, 0), turned.mean(0), x.sum(0), x.argmax(0), (x > -9).all(0)]


def check(function, x):
    program = tg.cuda.program(function, x)
    expected = [each.double().numpy() for each in function(x)]
    for order in ("forward", "shuffled"):
        found = run_program(program, [x.numpy()], order, seed=3)
        for have, want in zip(found, expected, strict=True):
            tolerance = TOLERANCE[x.dtype]
            np.testing.assert_allclose(
                have.astype(np.float64), want, rtol=tolerance, atol=tolerance
            )
    return program


def rows(count, length, dtype):
    values = np.random.default_rng(length).standard_normal((count, length))
    return tg.tensor(values.astype(np.float32)).to(dtype)


@pytest.mark.parametrize("function", [along_rows, along_columns], ids=lambda f: f.__name__)
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length, function):
    check(function, rows(3, length, tg.float32))


@pytest.mark.parametrize("dtype", [tg.float64, tg.float16], ids=str)
@pytest.mark.parametrize("length", [6, 96, 1000, 3000])
def test_other_types(length, dtype):
    check(along_rows, rows(5, length, dtype))


def test_teams_of_all_sizes_are_there():
    """The lengths above reach single threads, parts of warps, warps and blocks."""
    teams = set()
    for length in LENGTHS:
        program = tg.cuda.program(lambda x: tg.exp(x).sum(-1), tg.ones(3, length))
        teams |= {info.schedule.team for info in program.kernels}
    assert teams == {1, 2, 4, 8, 16, 32, 128, 256, 512, 1024}


def test_rows_that_registers_do_not_hold_are_read_again():
    short, long = (
        tg.cuda.program(lambda x: tg.softmax(x, -1), tg.ones(3, length))
        for length in (4096, 200000)
    )
    assert "s0[" in short.source.split('extern "C"', 1)[1]
    assert "s0[" not in long.source.split('extern "C"', 1)[1]
