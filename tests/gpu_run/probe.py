"""`python -m gpu_run.probe` writes, as JSON, what there is: the device, versions, tools."""

from __future__ import annotations

import faulthandler
import glob
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PACKAGES = (
    "numpy", "scipy", "llvmlite", "networkx", "ml_dtypes", "cupy-cuda13x", "cupy-cuda12x", "cupy",
    "pytest", "torch", "triton", "jax",
)  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent.parent
COMMIT = "TGRAPH_COMMIT"
"""An environment variable: what a checkout is of that has no data of git."""
STUCK = 80.0
"""Seconds after which it tells what it is at, shortly before nobody waits any more."""


def device() -> dict[str, Any]:
    """The first device, or "why" there is none."""
    import llvmlite  # noqa: F401 - these tgraph imports late: what is missing is told now
    import ml_dtypes  # noqa: F401
    import networkx  # noqa: F401
    from tgraph.runtime.cuda import backend, devices, nvrtc

    why = backend.why_unavailable() or nvrtc.why_unavailable()
    if why is not None:
        return {"why": why}
    found = devices.properties(0)
    runtime = backend.cupy().cuda.runtime
    return {
        "gpu": found.name,
        "capability": f"{found.major}.{found.minor}",
        "memory": f"{found.total_memory / 2**30:.0f} GiB",
        "devices": devices.device_count(),
        "cuda": f"runtime {runtime.runtimeGetVersion()}, driver {runtime.driverGetVersion()}",
    }


def versions() -> str:
    """Of the packages that matter, those that are there."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def sanitizer() -> str | None:
    """Where compute-sanitizer is: on the path, in a toolkit, or in a wheel."""
    found = shutil.which("compute-sanitizer")
    places = glob.glob("/usr/local/cuda*/bin/compute-sanitizer")
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        places += glob.glob(f"{folder}/**/compute-sanitizer", recursive=True)
    return found or next((place for place in sorted(places) if Path(place).is_file()), None)


def commit() -> str:
    """What is told of the checkout, else what git tells, where it and its data are there."""
    if os.environ.get(COMMIT):
        return os.environ[COMMIT]
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(git, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({error})"
    return done.stdout.strip() or "unknown"


def main() -> None:
    faulthandler.dump_traceback_later(STUCK)
    facts = {
        **device(),
        "python": platform.python_version(),
        "versions": versions(),
        "pytest": importlib.util.find_spec("pytest") is not None,
        "g++": shutil.which("g++"),
        "sanitizer": sanitizer(),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
