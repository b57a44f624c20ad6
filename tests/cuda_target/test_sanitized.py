"""All kinds of generated kernels under the sanitizers, and faults that are planted in them.

`make sanitize` runs these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.shim import Launch, run_sanitized
from kernel_cases import CASES
from tgraph.compiler.targets.cuda.kernel_writer import kernel_text
from tgraph.compiler.targets.cuda.module_text import module_text
from tgraph.compiler.targets.cuda.program import cuda_program
from tgraph.compiler.targets.cuda.schedule import CudaSchedule

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shim.available() is not None, reason=str(shim.available())),
]


def buffer(param: Any) -> np.ndarray[Any, Any]:
    """Memory for a parameter, exactly as large as it may be addressed; positions are 0 or 1."""
    rng = np.random.default_rng(0)
    if param.written:
        return np.zeros(param.elements, param.dtype.numpy)
    if param.dtype.kind == "float":
        return rng.standard_normal(param.elements).astype(param.dtype.numpy)
    return rng.integers(0, 2, param.elements).astype(param.dtype.numpy)


def kernels() -> Iterator[tuple[str, Any]]:
    for name, make in CASES.items():
        for number, info in enumerate(cuda_program(make()).kernels):
            if isinstance(info.schedule, CudaSchedule):  # templates have tests of their own
                yield f"{name}_{number}", info.schedule


def launch(name: str, schedule: Any, order: str) -> Launch:
    args = [buffer(param) for param in schedule.kernel.params]
    return Launch(name, schedule.grid, schedule.block, args, schedule.shared, order, 1)


@pytest.mark.parametrize("kind", ["address", "thread"])
def test_kernels_are_clean(kind):
    found = dict(kernels())
    source = module_text(kernel_text(schedule, name) for name, schedule in found.items())
    launches = [
        launch(name, schedule, order)
        for name, schedule in found.items()
        for order in ("forward", "shuffled")
    ]
    assert run_sanitized(source, launches, kind) == ""


FAULTS = {
    "no barrier in a tile": ("transpose", "thread", "__syncthreads();", "", "data race"),
    "a row too long": ("softmax", "address", "in0 + i0 * 512", "in0 + i0 * 512 + 4", "overflow"),
    "a misaligned vector": ("gelu", "address", "(in0 + i0)", "(in0 + i0 + 1)", "misaligned"),
    "no barrier in a join": ("column_sum", "thread", "__syncthreads();", "", "data race"),
    "a tile too narrow": ("transpose", "address", "[32][33]", "[32][31]", "out of bounds"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    name, kind, old, new, message = FAULTS[fault]
    schedule = dict(kernels())[f"{name}_0"]
    source = module_text([kernel_text(schedule, name)])
    assert old in source
    report = run_sanitized(source.replace(old, new), [launch(name, schedule, "forward")], kind)
    assert message in report
