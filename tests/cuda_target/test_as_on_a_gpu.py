"""Tests of memory and streams hold on a device that is shared, used, and as fast as it likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_tools import as_on_a_gpu, shim
from sampling import rotating

TESTS = Path(__file__).parent.parent
MODULES = [
    "cuda_target/test_record_stream.py",
    "cuda_target/test_cuda_api.py",
    "cuda_target/test_transfers.py",
    "cuda_target/test_memory_on_device.py",
    "cuda_target/test_dlpack.py",
    "tensor/test_devices.py",
]


@pytest.mark.slow
@pytest.mark.skipif(shim.available() is not None, reason=shim.available() or "")
@pytest.mark.parametrize("late", rotating(["1", "0"], 2))
def test_on_one_used_device(tmp_path: Path, late: str) -> None:
    """All tests of a process share it, as they do on a GPU."""
    as_on_a_gpu.furnish(tmp_path)
    line = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=",
        # It looks at CuPy itself, which is not there.
        "-k", "not read_of_cupy_without_a_gpu",
        *(str(TESTS / each) for each in MODULES),
    ]  # fmt: skip
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        "STAND_IN_LATE": late,
        "STAND_IN_USED": "1",
    }
    done = subprocess.run(line, env=env, cwd=TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
