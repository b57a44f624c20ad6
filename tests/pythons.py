"""Runs tests on the other versions of Python that tgraph supports, where they are installed.

python tests/pythons.py                     # each version, the tests that depend on it
python tests/pythons.py --only 3.13 tests   # one version, all fast tests
python tests/pythons.py --install           # what they need, and no test

Whatever else is given goes to pytest. Each version has an environment of its own, `.venv-3.12` and
so on. That of `OLDEST` has the oldest NumPy, SciPy, llvmlite, ... that pyproject.toml allows, the
others the newest. Versions that are not on this machine are named at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import sampling

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.12", "3.13")
OLDEST = "3.12"
"""The version whose environment has the oldest packages that are allowed."""
NEEDED = (
    "pytest", "pytest-xdist", "hypothesis", "ruff", "graphviz", "graphviz-pure", "array-api-strict",
    "pillow",
)  # fmt: skip
"""What the chosen tests need of the packages for development."""

SELECTION = [
    # recording and tracing
    *(
        "compile/test_instrument.py",
        "compile/test_rewriting.py",
        "compile/test_carried_numbers.py",
        "compile/test_rewriting_errors.py",
    ),
    *("compile/test_newer_python.py", "compile/test_errors.py", "compile/test_host_calls.py"),
    # state
    *("compile/test_state_changes.py", "compile/test_state_writes.py", "compile/test_guards.py"),
    *("compile/test_recompiling.py", "compile/test_world.py"),
    # calls
    *("compile/test_compile.py", "compile/test_pytree.py"),
    "tensor/test_operand_errors.py",
    # typing
    *("consistency/test_pages_and_stubs.py", "consistency/test_attributes.py"),
]


def interpreter(version: str) -> str | None:
    """A Python of this version that runs: on the path, or one that pyenv has."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    return next(filter(_is_version(version), [f"python{version}", *reversed(found)]), None)


def _is_version(version: str):  # type: ignore[no-untyped-def]
    """Tells by running a Python, as what pyenv puts on the path may be there and fail."""
    program = "import sys, venv; print('%d.%d' % sys.version_info[:2])"

    def check(python: str) -> bool:
        if shutil.which(python) is None:
            return False
        done = subprocess.run([python, "-c", program], capture_output=True, text=True)
        return done.stdout.strip() == version

    return check


def requirements(version: str) -> list[str]:
    """What pip installs for a version: dependencies, and what builds and tests tgraph."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = project["project"]["dependencies"]
    if version == OLDEST:
        needed = [oldest(each) for each in needed]
    development = project["project"]["optional-dependencies"]["dev"]
    tools = [each for each in development if re.split("[<>=]", each)[0] in NEEDED]
    return [*needed, *tools, "setuptools>=77"]


def oldest(requirement: str) -> str:
    """`numpy>=2.1,<3` -> `numpy==2.1`."""
    name, lowest = re.match(r"([\w-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
    return f"{name}=={lowest}"


def environment(version: str, python: str) -> Path:
    """The Python of the environment of a version, which is made anew where it would differ."""
    folder, wanted = ROOT / f".venv-{version}", requirements(version)
    stamp, made = folder / ".installed", folder / "bin" / "python"
    text = "\n".join([str(Path(python).resolve()), *wanted])
    if not stamp.exists() or stamp.read_text() != text:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        _install(made, *wanted)
        stamp.write_text(text)
    return made


def _install(python: Path, *what: str) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*command, *what], check=True)


def run(version: str, python: Path, arguments: Sequence[str]) -> int:
    """Runs pytest; how it ended."""
    # Built with what is installed already: an isolated build would install llvmlite once more.
    _install(python, "--no-build-isolation", "--no-deps", "-e", str(ROOT))
    said = "oldest" if version == OLDEST else "newest"
    print(f"Python {version}, {said} packages: {', '.join(_versions(python))}", flush=True)
    # Files are compiled once, not by each process.
    subprocess.run(
        [str(python), "-m", "compileall", "-q", "tgraph", "compiler", "runtime"], cwd=ROOT
    )
    command = [str(python), "-m", "pytest", *arguments]
    turn = str(sampling.TURN)
    environ = {"TGRAPH_TURN": turn, **os.environ, "TGRAPH_RUN": f"Python {version}"}
    return subprocess.run(command, env=environ, cwd=ROOT).returncode


def _versions(python: Path) -> Iterator[str]:
    program = (
        "import importlib.metadata as m; "
        "print(*(f'{n} {m.version(n)}' for n in ('numpy', 'scipy', 'llvmlite')), sep=chr(10))"
    )
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=True)
    yield from done.stdout.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests on other versions of Python.")
    parser.add_argument("--only", choices=VERSIONS)
    parser.add_argument("--install", action="store_true", help="make the environments only")
    options, rest = parser.parse_known_args()
    if not any((ROOT / word.split("::")[0]).exists() for word in rest):
        rest += [str(ROOT / "tests" / name) for name in SELECTION]
    results, lacking = [], []
    for version in [options.only] if options.only else VERSIONS:
        python = interpreter(version)
        if python is None:
            lacking.append(version)
            continue
        made = environment(version, python)
        if not options.install:
            results.append(run(version, made, rest))
    if lacking:
        print(f"Not tested, as this machine lacks it: Python {', '.join(lacking)}")
    return max(results, default=0)


if __name__ == "__main__":
    sys.exit(main())
