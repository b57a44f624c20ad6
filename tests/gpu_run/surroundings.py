"""Where the processes run: tgraph importable from the checkout, everything they write in a folder.

tgraph need not be installed: its packages lie in folders of the checkout, and links to them make
up a folder that Python imports from.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
DROPPED = ("PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "OPENBLAS_CORETYPE")
DROPPED_PREFIXES = ("TGRAPH_", "PYTEST_")


def link_package(folder: Path) -> Path:
    """Fill `folder` with links to the packages of the checkout, where pyproject.toml has them."""
    shutil.rmtree(folder, ignore_errors=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    places: dict[str, str] = project["tool"]["setuptools"]["package-dir"]
    for package, place in places.items():
        target = folder.joinpath(*package.split("."))
        if any(other.startswith(f"{package}.") for other in places):
            target.mkdir(parents=True)
            for each in sorted((ROOT / place).iterdir()):
                if each.name != "__pycache__":
                    (target / each.name).symlink_to(each, each.is_dir())
        else:
            target.symlink_to(ROOT / place, True)
    return folder


def environment(build: Path, device: str, threads: int) -> dict[str, str]:
    """For processes that import tgraph and the tests; `build` is where they may write."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in DROPPED and not name.startswith(DROPPED_PREFIXES)
    }
    folders = [link_package(build / "site"), TESTS, ROOT, os.environ.get("PYTHONPATH")]
    for name in ("tmp", "cache", "cupy", "pycache"):
        (build / name).mkdir(parents=True, exist_ok=True)
    found = {
        **kept,
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(threads)),
        "TGRAPH_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(str(each) for each in folders if each),
        "PYTHONPYCACHEPREFIX": str(build / "pycache"),
        "TGRAPH_CACHE_DIR": str(build / "cache"),
        "CUPY_CACHE_DIR": str(build / "cupy"),
        "TMPDIR": str(build / "tmp"),
    }
    if device == "fake":
        found["CUDA_VISIBLE_DEVICES"] = ""
    return found


def command(*arguments: str) -> list[str]:
    """A Python process of this environment."""
    return [sys.executable, "-P", "-m", *arguments]
