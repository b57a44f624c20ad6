"""Runs tests as on other processors: lower levels of x86-64 than this machine's.

python tests/cpus.py                      # each level below, the tests that depend on it
python tests/cpus.py --as x86-64 tests    # one level, all fast tests

Whatever else is given goes to pytest. A level sets what code is compiled for (TGRAPH_CPU), which
kernels OpenBLAS and NumPy choose (OPENBLAS_CORETYPE, NPY_DISABLE_CPU_FEATURES); what of these the
environment sets already stays. OpenBLAS takes the machine's own kernels where it does not know the
name, and the nearest where it was built without: Haswell's for Zen in the wheels of NumPy. A name
beyond the machine ends in an illegal instruction.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import sampling
from numpy._core import _multiarray_umath as numpy_core
from tgraph.runtime import jit

TESTS = Path(__file__).parent
CORES = {
    "x86-64": "Prescott",
    "x86-64-v2": "Nehalem",
    "x86-64-v3": "Haswell",
    "x86-64-v4": "SkylakeX",
}
SHORT = ("x86-64", "x86-64-v3")
"""Levels that run unasked: no vectors but the oldest, and AVX2."""

SELECTION = [
    *("cpu_target", "test_special_values.py", "test_found_graphs.py", "test_random_graphs.py"),
    *("runtime/test_plan_gemm.py", "runtime/test_gemm_native.py", "runtime/test_factorization.py"),
    *("compile/test_fusion.py", "compile/test_row_lengths.py", "compile/test_attention.py"),
    "compile/test_contractions.py",
    *("compile/test_attention_gradients.py", "compile/test_windows.py"),
]


def settings(level: str) -> dict[str, str]:
    """The environment's variables that make this machine one of `level`."""
    wanted = {"TGRAPH_CPU": level, "OPENBLAS_CORETYPE": CORES[level]}
    beyond = _numpy_features_beyond(level)
    if beyond:
        wanted["NPY_DISABLE_CPU_FEATURES"] = " ".join(beyond)
    return {name: os.environ.get(name) or value for name, value in wanted.items()}


def _numpy_features_beyond(level: str) -> list[str]:
    """What NumPy chooses kernels by that this machine has and `level` has not."""
    has = [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__[name]]
    if level == "x86-64-v4":
        return []
    if level == "x86-64-v3":
        return [name for name in has if "512" in name or name == "X86_V4"]
    return has


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests as on other processors.")
    parser.add_argument("--as", dest="level", choices=jit.supported_levels())
    options, rest = parser.parse_known_args()
    levels = [options.level] if options.level else _levels_below()
    if not any((TESTS.parent / word.split("::")[0]).exists() for word in rest):
        rest += [*(str(TESTS / name) for name in SELECTION), "--graphs", "30"]
    # The levels share the tests, and each runs once.
    parts = [["--part", f"{at}/{len(levels)}"] for at in range(1, len(levels) + 1)]
    results = [_run(level, [*part, *rest]) for level, part in zip(levels, parts, strict=True)]
    return max(results, default=0)


def _levels_below() -> list[str]:
    below = jit.supported_levels()[:-1]
    return [level for level in SHORT if level in below]


def _run(level: str, arguments: list[str]) -> int:
    chosen = settings(level)
    print("as", *(f"{name}={value!r}" for name, value in chosen.items()), flush=True)
    command = [sys.executable, "-m", "pytest", *arguments]
    turn = str(sampling.TURN)
    environ = {"TGRAPH_TURN": turn, **os.environ, "TGRAPH_RUN": level, **chosen}
    return subprocess.run(command, env=environ, cwd=TESTS.parent).returncode


if __name__ == "__main__":
    sys.exit(main())
