"""Small programs as CUDA kernels, run on the CPU, give what eager code gives.

Each is of one kind of access or of one conversion where kernels differ from those of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.programs import owned, program_of
from cuda_tools.run_program import run_program

import tgraph as tg
from tgraph.nn import functional as F

pytestmark = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))

ROWS, ODD = tg.rand(32, 256), tg.rand(33, 129)
OUT_OF_RANGE = tg.tensor([300.0, -5.5, 255.9, 256.0, -1.0, 70_000.0])

PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[tg.Tensor]]] = {
    "flipped rows": (lambda x: x.flip(-1) * 2 + x, [ROWS]),
    "flipped rows, from the second on": (lambda x: x[:, 1:].flip(-1) * 2, [ROWS]),
    "rows of odd length": (lambda x: x * 2 + 1, [ODD]),
    "a part of rows of odd length": (lambda x: x[:, :128] * 2, [ODD]),
    "sums of rows of odd length": (lambda x: (x * x).sum(-1), [ODD]),
    "softmax of a part of rows": (lambda x: tg.softmax(x[:, :128], -1), [ODD]),
    "padding of what is repeated": (
        lambda x: F.pad(F.interpolate(x[None, None], scale_factor=2), (3, 1, 1, 3)) + 1,
        [ROWS[:4, :8].clone()],
    ),
    "padding of what is repeated, across": (
        lambda x: F.pad(x.repeat_interleave(3, 1), (5, 2)) * 2,
        [ROWS[:4, :8].clone()],
    ),
    "what is repeated, flipped": (
        lambda x: x.repeat_interleave(3, 1).flip(1) * 2,
        [ROWS[:4, :8].clone()],
    ),
    "transposed": (lambda x: x.T * 2 + x, [ROWS[:, :32].clone()]),
    **{
        f"to {dtype}": (lambda x, dtype=dtype: (x * 1.0).to(dtype), [OUT_OF_RANGE])
        for dtype in (tg.uint8, tg.int8, tg.int16)
    },
}


@pytest.fixture(scope="module")
def programs() -> dict[str, Any]:
    """All of them, compiled together."""
    found = {name: program_of(owned(*row[:1]), list(row[1])) for name, row in PROGRAMS.items()}
    shim.compile_together([program.source for program, *_ in found.values()])
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_eager_code(name: str, programs: dict[str, Any]) -> None:
    program, arrays, expected = programs[name]
    for have, want in zip(run_program(program, arrays, "shuffled", seed=1), expected, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6, err_msg=str(program))


def kernel(program: Any) -> str:
    """The text of the kernel, behind what all kernels share."""
    source: str = program.source
    return source[source.rfind('extern "C"') :]


def test_rows_that_are_not_aligned_are_read_element_by_element(programs: dict[str, Any]) -> None:
    """A vector that is not aligned ends a kernel on a GPU, but not on a CPU."""
    assert "(const Pack<" in kernel(programs["flipped rows"][0])
    for name in ("a part of rows of odd length", "flipped rows, from the second on"):
        assert "(const Pack<" not in kernel(programs[name][0])


def test_numbers_out_of_range_of_an_integer_are_those_of_the_cpu(programs: dict[str, Any]) -> None:
    """A GPU's own conversion gives the nearest number in range."""
    for dtype in (tg.uint8, tg.int8, tg.int16):
        assert "tg_to_integer(" in kernel(programs[f"to {dtype}"][0])
