"""The process that runs a share of the tests: `python -m gpu_run.worker JOURNAL --modules ...`.

Every event is written to the journal as one line of JSON when it happens, so that what a crash
leaves behind tells which test it was. A process that finds the test in its journal already does
not run it again. It ends with status 3 when the device has become unusable, for a fresh process to
go on.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import gc
import importlib.util
import itertools
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

LOST = 3
HANGS = {"real": 20.0, "fake": 300.0}
"""Seconds that a test may take; on the stand-in kernels are built by a C++ compiler."""
SLOW = 3
"""Tests that are marked slow may take so many times as long."""
TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
LONGEST_WHY = 20_000
SLACK_BYTES = 1 << 20
"""Memory that may be taken up after all tests, beside workspaces: less is no leak of a loop."""


class Candidate(NamedTuple):
    """What the choice and the order of tests depend on.

    `operation` is what a test of the table of operations is about, such as "softmax".
    """

    id: str
    fixtures: frozenset[str]
    marks: frozenset[str]
    operation: str = ""

    @property
    def limit(self) -> int:
        """How many times as long as others it may take."""
        return SLOW if "slow" in self.marks else 1


_Item = TypeVar("_Item")
# The tests of all operations, compiled and eager, whose first rows come before everything else.
OF_OPERATIONS = ("test_compiled_cuda.py::test_forward[", "test_eager_cuda.py::test_forward[")


def chosen(
    items: Sequence[tuple[Candidate, _Item]], options: argparse.Namespace
) -> list[tuple[Candidate, _Item]]:
    """This process's share of the tests that take the device, in the order to run them."""
    found = [each for each in items if _is_wanted(each[0], options)]
    ranks = _ranks([candidate for candidate, _ in found])
    ordered = [each for _, each in sorted(zip(ranks, found), key=lambda pair: pair[0])]
    number, count = options.shard
    return ordered[number::count]


def _is_wanted(candidate: Candidate, options: argparse.Namespace) -> bool:
    if options.test:
        return candidate.id in options.test
    if options.device == "fake" and "gpu" in candidate.marks:
        return False
    if options.only and not any(each in candidate.id for each in options.only):
        return False
    if options.quick and "slow" in candidate.marks:
        return False
    return bool({"cuda", "gpu"} & candidate.fixtures or "gpu" in candidate.marks or options.all)


def _ranks(candidates: Sequence[Candidate]) -> list[int]:
    """When each is run: one compiled and one eager case of every operation first.

    Then what is about anything else, then the other rows and types of operations; what is slow
    otherwise comes last.
    """
    seen: set[tuple[str, str]] = set()
    ranks = []
    for candidate in candidates:
        kind = next((each for each in OF_OPERATIONS if each in candidate.id), "")
        first = bool(kind and candidate.operation) and (kind, candidate.operation) not in seen
        seen.add((kind, candidate.operation))
        slow = "slow" in candidate.marks
        ranks.append(0 if first else 2 if candidate.operation else 3 if slow else 1)
    return ranks


class Journal:
    """The file of events, of this process and of those before it."""

    def __init__(self, path: Path) -> None:
        self.before: set[str] = set()
        if path.exists():
            events = map(json.loads, path.read_text().splitlines())
            self.before = {each["test"] for each in events if each["event"] == "start"}
        self._path = path

    def write(self, event: str, **values: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"event": event, **values}) + "\n")


class Recorder:
    """Runs one test after another and writes what happens."""

    def __init__(self, journal: Journal, device: str) -> None:
        self.journal = journal
        self.failed = False
        self.hangs, self.limits = HANGS[device], dict[str, int]()
        self.device: Any = None
        if device == "real":
            import tgraph

            self.device = tgraph.cuda

    def announce(self, candidates: Sequence[Candidate]) -> set[str]:
        """Write which tests there are; those to run."""
        ids = [each.id for each in candidates]
        self.limits = {each.id: each.limit for each in candidates}
        self.journal.write("collected", tests=ids)
        return set(ids) - self.journal.before

    def around(self, test: str, run: Callable[[], tuple[str, str]]) -> None:
        """Run a test, which gives its outcome and why, and see what it leaves on the device."""
        self.journal.write("start", test=test, limit=self.hangs * self.limits.get(test, 1))
        began = time.perf_counter()
        outcome, why = run()
        left = self._left_behind()
        if left and outcome != "failed":
            outcome, why = "failed", f"it ended well, but left behind:\n{left}"
        seconds = round(time.perf_counter() - began, 4)
        why = why[-LONGEST_WHY:]
        self.journal.write("end", test=test, outcome=outcome, why=why, seconds=seconds)
        self.failed |= outcome == "failed"
        if outcome == "failed" and self._lost():
            self.journal.write("lost", test=test)
            os._exit(LOST)  # nothing can be cleaned up on a device that is lost

    def _left_behind(self) -> str:
        """What a test has asked for may fail after its end."""
        if self.device is None:
            return ""
        try:
            self.device.synchronize()
        except Exception:
            return traceback.format_exc()
        return ""

    def _lost(self) -> bool:
        """Whether the device has failed for good, as after an illegal address."""
        if self.device is None:
            return False
        from tgraph.runtime.cuda import backend

        try:
            backend.cupy().cuda.runtime.deviceSynchronize()
            int(backend.cupy().zeros(1).sum())
        except Exception:
            return True
        return False

    def memory(self) -> None:
        """Write how much memory is taken up once nothing of the tests is there any more."""
        if self.device is None:
            return
        gc.collect()
        self.device.synchronize()
        self.device.empty_cache()
        used, known = self.device.memory_allocated(), workspace_bytes()
        # The tracebacks of failed tests may hold arrays.
        bad = used > known + SLACK_BYTES and not self.failed
        self.journal.write("memory", used=used, known=known, bad=bad)


def workspace_bytes() -> int:
    """What is kept for good on all devices: scratch memory for products."""
    from tgraph.runtime.cuda import backend
    from tgraph.runtime.cuda.products import Workspaces

    kept = [each for each in backend.kept().values() if isinstance(each, Workspaces)]
    return sum(piece.mem.size for each in kept for piece in each._kept)


# -- with pytest ---------------------------------------------------------------------------------


class Report(Protocol):
    """What is read of pytest's report of a phase."""

    outcome: str
    longrepr: Any
    longreprtext: str


class Plugin:
    """Lets pytest collect and run, and tells it which tests."""

    def __init__(self, tests: Recorder, options: argparse.Namespace) -> None:
        self.tests, self.options = tests, options
        self._reports: list[Report] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        pairs = [(_candidate(item), item) for item in items]
        found = chosen(pairs, self.options)
        wanted = self.tests.announce([candidate for candidate, _ in found])
        items[:] = [item for candidate, item in found if candidate.id in wanted]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tests.journal.write("broken", module=report.nodeid, why=report.longreprtext)

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        from _pytest.runner import runtestprotocol

        def run() -> tuple[str, str]:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            for report in reports:
                if report.outcome == "failed":
                    return "failed", report.longreprtext
            for report in reports:
                if report.outcome == "skipped":
                    return "skipped", _reason(report.longrepr)
            return "passed", ""

        self.tests.around(item.nodeid, run)
        return True

    def pytest_warning_recorded(self, warning_message: Any, nodeid: str) -> None:
        self.tests.journal.write("warning", text=_warning(warning_message), test=nodeid)


def _candidate(item: Any) -> Candidate:
    marks = frozenset(mark.name for mark in item.iter_markers())
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return Candidate(item.nodeid, frozenset(item.fixturenames), marks, _operation(given))


def _operation(given: Mapping[str, Any]) -> str:
    """What the row is about that a test is given: its name begins with it."""
    return str(getattr(given.get("case"), "name", "")).split(" ")[0]


def _reason(why: Any) -> str:
    text = why[2] if isinstance(why, tuple) else str(why)
    return text.removeprefix("Skipped: ")


def with_pytest(tests: Recorder, options: argparse.Namespace) -> None:
    # Plugins of other packages that are installed there have no part in this.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    pytest.main(
        [
            *("-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--tb=short"),
            # Numbers of slow tests are wanted, and warnings are told and no failures: they depend
            # on the versions of what is installed there.
            *("-o", "addopts=", "-o", "filterwarnings=", "-W", "default"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
            *map(str, options.modules),
        ],
        plugins=[Plugin(tests, options)],
    )


# -- without pytest ------------------------------------------------------------------------------


def without_pytest(tests: Recorder, options: argparse.Namespace) -> None:
    from . import small_pytest, small_runner

    small_pytest.install()
    pairs = []
    for path in options.modules:
        try:
            items = small_runner.collect(path, TESTS, ROOT)
        except (Exception, small_pytest.Outcome) as error:
            tests.journal.write("broken", module=str(path), why=small_runner.told(error))
            continue
        for item in items:
            marks = frozenset(item.mark_names)
            operation = _operation(item.given)
            pairs.append((Candidate(item.id, frozenset(item.needed), marks, operation), item))
    found = chosen(pairs, options)
    wanted = tests.announce([candidate for candidate, _ in found])
    runner = small_runner.Runner()
    for candidate, item in found:
        if candidate.id in wanted:
            with _told_warnings(tests.journal, candidate.id):
                tests.around(candidate.id, functools.partial(runner.run, item))
    for why in runner.close():
        tests.journal.write("broken", module="fixtures", why=why)


@contextlib.contextmanager
def _told_warnings(journal: Journal, test: str) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for each in caught:
        journal.write("warning", text=_warning(each), test=test)


def _warning(message: Any) -> str:
    return f"{message.category.__name__}: {message.message}"


# -- the process ---------------------------------------------------------------------------------


def save_kernels(folder: Path) -> None:
    """Let every program that is loaded, also those of eager mode, be written there."""
    from tgraph.compiler.targets.cuda import executable

    numbers = itertools.count()

    def saving(load: Any) -> Any:
        def load_and_save(program: Any, device: Any, from_host: Any) -> Any:
            program.save(folder / f"{next(numbers):03}")
            return load(program, device, from_host)

        return load_and_save

    executable._load = saving(executable._load)
    executable._load_direct = saving(executable._load_direct)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gpu_run.worker")
    add = parser.add_argument
    add("journal", type=Path)
    add("--modules", type=lambda text: Path(text).resolve(), nargs="+", required=True)
    add("--device", choices=("real", "fake"), default="fake")
    add("--shard", default="0/1", help="NUMBER/COUNT")
    add("--only", default="", help="parts of tests' names, with commas between")
    add("--quick", action="store_true", help="leave slow tests out")
    add("--test", action="append", default=[], metavar="ID", help="this one alone; repeatable")
    add("--save-kernels", type=Path, metavar="DIR", help="write all kernels there")
    add("--all", action="store_true", help="also tests that take no device")
    add("--without-pytest", action="store_true", help="even where it is installed")
    options = parser.parse_args(arguments)
    options.shard = tuple(map(int, options.shard.split("/")))
    options.only = [each for each in options.only.split(",") if each]
    return options


def main() -> int:
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # asked for where it hangs
    options = parsed()
    if options.save_kernels is not None:
        save_kernels(options.save_kernels)
    tests = Recorder(Journal(options.journal), options.device)
    if options.without_pytest or importlib.util.find_spec("pytest") is None:
        without_pytest(tests, options)
    else:
        with_pytest(tests, options)
    tests.memory()
    tests.journal.write("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
