"""Packages written for PyTorch, run with PyTorch and with tgraph under its names.

    python -m tools.third_party
    python -m tools.third_party --only timm__resnet18 --verbose
    python -m tools.third_party --write docs/third_party.md

Each case runs in processes of its own: with PyTorch, with tgraph, and with tgraph compiled, with
equal weights and inputs; results and gradients are compared. The packages must be installed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .cases import CASES

LIBRARIES = ("torch", "tgraph", "compiled")
_HEAD = """# Packages written for PyTorch

Written by `make thirdparty`: code that nobody here wrote runs with `tgraph.compat`, unchanged, with
the weights and inputs that PyTorch {version} has in the same run. "equal" means that results and
all gradients agree, eagerly and by `torch.compile`, which is `tgraph.compile` there; otherwise the
first thing that stops it is told. An empty module stands for torchvision in both runs.

| package | what | eager | compiled |
| --- | --- | --- | --- |
"""


def _run(name: str, library: str, folder: Path, verbose: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", f"{__package__}.worker", name, library, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "took more than five minutes"}
    if verbose:
        print(done.stderr)
    file = folder / f"{name}.{library}"
    if not file.exists():
        return {"error": f"the process ended with {done.returncode}"}
    found: dict[str, Any] = pickle.loads(file.read_bytes())
    return found


def _verdict(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    if "error" in found:
        return str(found["error"])
    for kind in ("outputs", "gradients"):
        if len(found[kind]) != len(wanted[kind]):
            return f"{len(found[kind])} {kind} instead of {len(wanted[kind])}"
        for one, other in zip(found[kind], wanted[kind], strict=True):
            if (one is None) != (other is None) or (one is not None and one.shape != other.shape):
                return f"{kind} of other shapes"
            if one is None:
                continue
            scale = max(1.0, float(np.abs(other).max(initial=0)))
            if not np.allclose(one, other, 2e-3, 2e-4 * scale, equal_nan=True):
                return f"{kind} differ by {float(np.abs(one - other).max()):.2g}"
    return "equal"


def _version(package: str) -> str:
    for name in (package, package.replace("_", "-"), f"{package}-ppl"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "?"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.third_party", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--verbose", action="store_true", help="what the processes say")
    parser.add_argument("--write", type=Path, help="a page with all of it")
    options = parser.parse_args()
    lines, equal, packages = [], 0, set()
    for name in options.only:
        package, _, what = name.partition("__")
        with tempfile.TemporaryDirectory() as folder:
            runs = [_run(name, each, Path(folder), options.verbose) for each in LIBRARIES]
        if "error" in runs[0]:
            verdicts = [f"not with PyTorch either: {runs[0]['error']}"] * 2
        else:
            verdicts = [_verdict(each, runs[0]) for each in runs[1:]]
        if verdicts[0] == "equal":
            equal += 1
            packages.add(package)
        print(f"{name:40} {verdicts[0]} | {verdicts[1]}", flush=True)
        cells = [each.replace("|", "\\|") for each in verdicts]
        lines.append(f"| {package} {_version(package)} | {what} | {cells[0]} | {cells[1]} |")
    summary = f"{equal} of {len(options.only)} run unchanged, of {len(packages)} packages."
    print(summary)
    if options.write:
        head = _HEAD.format(version=importlib.metadata.version("torch"))
        options.write.write_text(head + "\n".join(lines) + f"\n\n{summary}\n")


main()
