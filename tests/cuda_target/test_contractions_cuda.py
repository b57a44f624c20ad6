"""Products with epilogues as kernels of their own, which only those ask for who measure them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_tools import nvrtc, shim
from cuda_tools.run_program import interpret_program, run_program
from tgraph.compiler.targets.cuda import reuse_tile_schedule
from tgraph.compiler.targets.cuda.program import CudaProgram, cuda_program
from tgraph.compiler.targets.cuda.schedule import Layout
from tgraph.runtime.memo import Memo
from tgraph.runtime.plan_steps import GemmStep

import tgraph as tg
from tgraph.nn import functional as F
from tgraph.tracing import trace

needs_shim = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))


def values(*shape: int, dtype: tg.dtype = tg.float32) -> tg.Tensor:
    rng = np.random.default_rng(sum(shape))
    return tg.from_numpy(rng.standard_normal(shape)).to(dtype)


CASES: dict[str, tuple[Any, tuple[tg.Tensor, ...]]] = {
    "linear": (
        lambda x, w, b: tg.relu(x @ w.t() + b),
        (values(96, 64), values(70, 64), values(70)),
    ),
    "several results": (
        lambda x, w, r: (tg.tanh(x @ w) * r, x @ w),
        (values(67, 80), values(80, 65), values(67, 65)),
    ),
    "batch": (
        lambda x, y, b: F.gelu(x.transpose(1, 2) @ y + b),
        (values(3, 64, 40), values(3, 64, 70), values(70)),
    ),
    "broadcast batch, reshaped": (
        lambda x, y: (x @ y).reshape(2, 4800) * 2 + 1,
        (values(2, 60, 70), values(70, 80)),
    ),
    "operand computed on the way": (
        lambda x, y, r: F.pad(x, (1, 2))[:, 1:] @ y + r,
        (values(80, 62), values(64, 70), values(80, 70)),
    ),
    "float64": (
        lambda x, y: tg.sigmoid(x @ y),
        (values(64, 64, dtype=tg.float64), values(64, 70, dtype=tg.float64)),
    ),
    "float16": (
        lambda x, w, b: tg.relu(x @ w.t() + b),
        tuple(values(*each, dtype=tg.float16) for each in ((96, 64), (70, 64), (70,))),
    ),
}


def tiled(name: str) -> tuple[CudaProgram, list[np.ndarray], list[np.ndarray]]:
    """The program of a case, its arguments, and what eager code makes of them."""
    function, arguments = CASES[name]
    wanted = function(*arguments)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    program = cuda_program(trace(function, *arguments), tiled=True)
    return program, [each.numpy() for each in arguments], [each.double().numpy() for each in wanted]


@needs_shim
@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_products_and_what_reads_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many results for a thread, as larger products have."""
    monkeypatch.setattr(reuse_tile_schedule, "BUSY", 1)
    Memo.forget_all()
    program, arguments, wanted = tiled(name)
    Memo.forget_all()
    layouts = [info.schedule.layout for info in program.kernels if info.schedule is not None]
    assert Layout.REUSE_TILE in layouts and not _products(program)
    error = 3e-2 if name == "float16" else 1e-4
    for order in ("forward", "backward", "shuffled"):
        for have, want in zip(run_program(program, arguments, order, seed=2), wanted, strict=True):
            np.testing.assert_allclose(have.astype(np.float64), want, rtol=error, atol=error)
    for have, want in zip(interpret_program(program, arguments), wanted, strict=True):
        np.testing.assert_allclose(have.astype(np.float64), want, rtol=error, atol=error)


def _products(program: CudaProgram) -> list[Any]:
    return [step for step in program.steps if isinstance(step, GemmStep)]


@pytest.mark.parametrize("name", CASES)
def test_nobody_gets_them_unasked(name: str) -> None:
    """cublasLt multiplies, as nobody has measured anything else on a GPU."""
    function, arguments = CASES[name]
    assert len(_products(cuda_program(trace(function, *arguments)))) == 1


def test_small_products_stay() -> None:
    x, y = values(8, 8), values(8, 8)
    program = cuda_program(trace(lambda x, y: tg.relu(x @ y), x, y), tiled=True)
    assert len(_products(program)) == 1
    assert any("make no tiles" in refusal.reason for refusal in program.refused)


@pytest.mark.parametrize(
    ("arch", "dtype"),
    [("sm_75", tg.float32), ("sm_80", tg.bfloat16), ("sm_90", tg.float16), ("sm_90", tg.float32)],
    ids=str,
)
def test_registers(arch: str, dtype: tg.dtype) -> None:
    """16 results of a thread lie in registers, with what two products need."""
    if reason := nvrtc.available():
        pytest.skip(reason)
    shapes = ((2048, 512), (1024, 512), (1024,), (2048, 1024))
    arguments = [tg.zeros(*each, dtype=dtype) for each in shapes]
    graph = trace(lambda x, w, b, r: F.gelu(x @ w.t() + b) + r, *arguments)
    program = cuda_program(graph, arch, tiled=True)
    (info,) = program.kernels
    assert info.schedule is not None and "4 x 4 per thread" in info.schedule.summary()
    (usage,) = nvrtc.compile_cubin(program.source, arch).kernels.values()
    assert usage.spill_bytes == 0 and usage.registers <= 128, usage
