"""Packages as a machine with a GPU has them, for processes to which the host is the device.

A folder of them on PYTHONPATH is what `import cupy` finds there. Tests take the device for a real
one: all of a process share it, as they do on a GPU.
"""

from __future__ import annotations

from pathlib import Path

_CUPY = """
import os, sys
from cuda_tools import fake_cupy
from cuda_tools.fake_device import streamed_library
from tgraph.runtime.cuda import cublas_lt, nvrtc

fake_cupy.machine.lazy = os.environ.get("STAND_IN_LATE", "0") == "1"
fake_cupy.machine.memory = 8 << 30
refused = os.environ.get("STAND_IN_REFUSES", "")
fake_cupy.machine.refused.update(dict.fromkeys(filter(None, refused.split(",")), 701))
nvrtc.compile_cubin = fake_cupy._text
nvrtc.why_unavailable = lambda: None
cublas_lt._loaded = streamed_library()
sys.modules["cupy"] = fake_cupy.cupy
if os.environ.get("STAND_IN_USED", "0") == "1":
    kept = fake_cupy.cupy.cuda.alloc(96 << 20)
    freed = [fake_cupy.cupy.cuda.alloc(1 << n) for n in range(9, 25)]
    freed += [fake_cupy.cupy.cuda.alloc_pinned_memory(1 << n) for n in range(9, 21)]
    del freed
"""
_DRIVER = """
import sys
from cuda_tools.fake_cupy import driver

sys.modules[__name__] = driver
"""
_LIBRARIES = """
from cuda_tools import fake_cupy

cublas, cusolver = fake_cupy.libraries
"""
_SANITIZER = """#!/bin/sh
echo "$@"
test "$2" = memcheck || exit 86
"""


def furnish(folder: Path) -> None:
    """Write the packages into a folder, and into its `bin` a sanitizer that finds something.

    With STAND_IN_LATE=1 in its environment a process has a device that works as late as CUDA
    allows, else one that works at once. With STAND_IN_USED=1 somebody keeps 96 MiB of it, and its
    pools have blocks of many sizes. Launches of the kernels in STAND_IN_REFUSES fail.
    """
    for name, text in {
        "cupy/__init__.py": _CUPY,
        "cupy_backends/__init__.py": "",
        "cupy_backends/cuda/__init__.py": "",
        "cupy_backends/cuda/api/__init__.py": "",
        "cupy_backends/cuda/libs/__init__.py": _LIBRARIES,
        "cupy_backends/cuda/api/driver.py": _DRIVER,
        "bin/compute-sanitizer": _SANITIZER,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
