"""Packages written for PyTorch, run with PyTorch and with tgraph under its names.

    python -m tools.third_party
    python -m tools.third_party --only timm einops --verbose
    python -m tools.third_party --write docs/third_party.md

The cases of a package run in a process with PyTorch, and in another with tgraph, eager and
compiled, with equal weights and inputs. Results, gradients and the losses of training steps are
compared. The packages must be installed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import pickle
import platform
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from .cases import CASES

SECONDS = 900
_HEAD = """# Packages written for PyTorch

Written by `make thirdparty ARGS="--write docs/third_party.md"`: code that nobody here wrote runs by
`tgraph.compat`, unchanged, with the weights and inputs that PyTorch {torch} has in the same run
(Python {python}, {machine}). "equal" means that results, all
gradients and, of a model, the losses of three training steps agree with PyTorch's. Eager is tgraph
as such; compiled is `torch.compile` of the call, and of the whole step, which is `tgraph.compile`
there. Otherwise the first thing that stops it is told. For torchvision stands an empty module in
PyTorch's run, `tgraph.vision` in the other.

The gradients of efficientnet_lite0 differ by rounding: in float64 those of both agree to 1e-13 of
their norm; of float32's, PyTorch's lie 0.005 of the norm from float64's and tgraph's 0.006, and
the farthest number of either lies 2.7 away, where the largest is 399. (Measured apart from this
table, with other first weights.)

| package | what | eager | compiled |
| --- | --- | --- | --- |
"""


def _run(names: list[str], library: str, folder: Path, verbose: bool) -> str:
    """What stopped the process, if anything did."""
    command = [sys.executable, "-m", f"{__package__}.worker", library, str(folder), *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"took more than {SECONDS // 60} minutes"
    if verbose:
        print(done.stderr)
    return f"the process ended with {done.returncode}"


def _found(folder: Path, name: str, way: str, stopped: str) -> dict[str, Any]:
    file = folder / f"{name}.{way}"
    if not file.exists():
        return {"error": stopped}
    answer: dict[str, Any] = pickle.loads(file.read_bytes())
    return answer


def _verdict(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    if "error" in found:
        return str(found["error"])
    for kind in ("outputs", "gradients", "losses"):
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


def _verdicts(names: list[str], verbose: bool) -> dict[str, list[str]]:
    """Of each case what eager and compiled code gave."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        stopped = {each: _run(names, each, folder, verbose) for each in ("torch", "tgraph")}
        verdicts = {}
        for name in names:
            wanted = _found(folder, name, "torch", stopped["torch"])
            if "error" in wanted:
                verdicts[name] = [f"not with PyTorch either: {wanted['error']}"] * 2
                continue
            ways = ("eager", "compiled")
            both = [_found(folder, name, each, stopped["tgraph"]) for each in ways]
            verdicts[name] = [_verdict(each, wanted) for each in both]
    return verdicts


def _rows(page: Path) -> dict[str, str]:
    """The rows of a page by case: those that are not run again stay."""
    rows = {}
    for line in page.read_text().splitlines() if page.exists() else ():
        found = re.match(r"\| (\S+) \S+ \| ([^|]+) \| ", line)
        name = found and f"{found[1]}__{found[2].replace(' ', '_')}"
        if name in CASES:
            rows[name] = line
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.third_party", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    known = {name.partition("__")[0] for name in CASES}
    parser.add_argument("--only", nargs="+", choices=[*known, *CASES], default=list(CASES),
                        metavar="CASE", help="packages or cases")  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="what the processes say")
    parser.add_argument(
        "--write", type=Path, help="a page with all of it; rows of other cases stay"
    )
    parser.add_argument("--jobs", type=int, default=2, help="packages that run at once")
    options = parser.parse_args()
    asked = [name for name in CASES if {name, name.partition("__")[0]} & {*options.only}]
    rows = _rows(options.write) if options.write else {}
    groups = [[*group] for _, group in groupby(asked, key=lambda name: name.partition("__")[0])]
    pool = ThreadPoolExecutor(options.jobs)
    for found in pool.map(lambda names: _verdicts(names, options.verbose), groups):
        for name, verdicts in found.items():
            print(f"{name:40} {' | '.join(verdicts)}", flush=True)
            package, _, what = name.partition("__")
            cells = " | ".join(each.replace("|", "\\|") for each in verdicts)
            rows[name] = f"| {package} {_version(package)} | {what.replace('_', ' ')} | {cells} |"
    equal = [name for name, row in rows.items() if row.endswith(" | equal | equal |")]
    packages = {name.partition("__")[0] for name in equal}
    summary = f"{len(equal)} of {len(rows)} run unchanged and agree, of {len(packages)} packages."
    print(summary)
    if options.write:
        head = _HEAD.format(
            torch=importlib.metadata.version("torch"), python=platform.python_version(),
            machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        )  # fmt: skip
        lines = [rows[name] for name in CASES if name in rows]
        options.write.write_text(head + "\n".join(lines) + f"\n\n{summary}\n")


main()
