"""A copy of the working tree, in which faults are planted and tests run."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from .faults import Fault
from .pytest_plugin import WRONG_TREE

ROOT = Path(__file__).parent.parent.parent
NO_TESTS = (4, 5)
"""Exit codes of pytest: wrong arguments, or no test collected."""
OPTIONS = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-n",
    "0",
    "-p",
    "tools.planted_faults.pytest_plugin",
)


@dataclass(frozen=True)
class TestRun:
    """How a run of pytest ended: its exit code, or None after the timeout."""

    __test__ = False
    code: int | None
    failed: tuple[str, ...]
    seconds: float
    output: str


class TreeCopy:
    """The tracked and new files of the working tree in another folder."""

    def __init__(self, folder: Path, tests_from: str | None = None) -> None:
        self.folder = folder
        for name in _files():
            target = folder / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        self.tree = folder / "tree"
        if tests_from is not None:
            _replace_tests(self.tree, tests_from)

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """The fault is in the copy until the end of the block."""
        file = self.tree / fault.file
        text = file.read_text()
        try:
            self._write(file, fault.plant(text))
            yield
        finally:
            self._write(file, text)

    def run(self, arguments: Sequence[str], timeout: float, keep_going: bool = False) -> TestRun:
        """Run pytest in the copy, with an empty cache folder."""
        self._clean()
        options = OPTIONS[1:] if keep_going else OPTIONS
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        began = time.monotonic()
        code, output = _finished(command, self.tree, self._environment(), timeout)
        if code == WRONG_TREE or code in NO_TESTS:
            raise RuntimeError(f"pytest {' '.join(arguments)}: exit code {code}\n{output[-2000:]}")
        return TestRun(code, self._failed(), time.monotonic() - began, output)

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text)
        # Python compares times in seconds and sizes, both of which may be equal.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def _clean(self) -> None:
        for path in (self.folder / "cache", self.tree / ".hypothesis"):
            shutil.rmtree(path, ignore_errors=True)
        (self.folder / "report").unlink(missing_ok=True)

    def _failed(self) -> tuple[str, ...]:
        report = self.folder / "report"
        return tuple(report.read_text().splitlines()) if report.exists() else ()

    def _environment(self) -> dict[str, str]:
        own = {
            "PYTHONPATH": str(self.tree),
            "TGRAPH_CACHE_DIR": str(self.folder / "cache"),
            "PLANTED_FAULTS_REPORT": str(self.folder / "report"),
        }
        dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
        return {name: value for name, value in os.environ.items() if name not in dropped} | own


def _finished(
    command: list[str], folder: Path, environment: dict[str, str], timeout: float
) -> tuple[int | None, str]:
    """Exit code and output of a command; None after the timeout, when its group is killed."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        with suppress(ProcessLookupError):  # also what the tests left running
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _files() -> list[str]:
    """The files of the working tree that git does not ignore."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in sorted({*names.split("\0")} - {""}) if (ROOT / name).is_file()]


def _replace_tests(tree: Path, source: str) -> None:
    """Take `tests/` from a folder or a commit."""
    shutil.rmtree(tree / "tests")
    if Path(source, "tests").is_dir():
        shutil.copytree(Path(source, "tests"), tree / "tests")
        return
    archive = ["git", "archive", "--format=tar", source, "tests"]
    data = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(tree, filter="data")
