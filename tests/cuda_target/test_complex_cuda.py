"""Complex numbers on a CUDA device: here one that is the host (see `cuda_tools.fake_device`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from complex_cases import CASES
from cuda_tools import shim
from cuda_tools.fake_device import installed
from tgraph.runtime.cuda import backend

import tgraph as tg


@pytest.fixture(autouse=True)
def cuda() -> Any:
    """The machine's own device, or the stand-in."""
    if backend.why_unavailable() is None:
        yield
        return
    if shim.available() is not None:
        pytest.skip(shim.available())
    with installed():
        yield


def test_compiled_rows_of_the_table_are_those_of_the_cpu() -> None:
    """In one program, eager code on the CPU beside it; with the gradient of a sum of sizes."""
    rows = [case for case in CASES if case.name not in NEED_POSITIONS]

    def every(*tensors: Any) -> list[Any]:
        given = iter(tensors)
        return [case.function(tg, *(next(given) for _ in case.shapes)) for case in rows]

    arrays = [array for case in rows for array in case.arrays()]
    wanted = every(*map(tg.tensor, arrays))
    compiled = tg.compile(every)
    for _ in range(3):  # launched, captured, replayed
        found = compiled(*(tg.tensor(array).cuda() for array in arrays))
        for case, ours, theirs in zip(rows, found, wanted, strict=True):
            size = np.abs(theirs.numpy()).max(initial=1.0)
            np.testing.assert_allclose(
                ours.cpu().numpy(), theirs.numpy(), rtol=0, atol=1e-13 * size, err_msg=case.name
            )


# They make tensors of the CPU within.
NEED_POSITIONS = ("index", "gather", "scatter_add")


def test_gradients_are_those_of_the_cpu() -> None:
    def gradients(place: Any) -> list[Any]:
        z = place(tg.tensor([1 + 2j, 3 - 1j, 0.5j], dtype=tg.complex128)).requires_grad_()
        x = place(tg.tensor([0.5, -1.0, 2.0], dtype=tg.float64)).requires_grad_()
        loss = tg.compile(lambda z, x: ((z * x).exp() / (z + 2)).abs().sum())
        loss(z, x).backward()
        return [z.grad.cpu().numpy(), x.grad.cpu().numpy()]

    for ours, theirs in zip(
        gradients(lambda each: each.cuda()), gradients(lambda each: each), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_eager_code_writes_parts() -> None:
    """Arithmetic of complex arrays is CuPy's own."""
    z = tg.tensor([1 + 2j, 3 - 1j]).cuda()
    z.real.add_(1)
    assert z.cpu().tolist() == [2 + 2j, 4 - 1j]
    assert (z.real.cpu().tolist(), z.imag.cpu().tolist()) == ([2.0, 4.0], [2.0, -1.0])
