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
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

LOST = 3
TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
LONGEST_WHY = 20_000
SLACK_BYTES = 1 << 20
"""Memory that may be taken up after all tests, beside workspaces: less is no leak of a loop."""


class Candidate(NamedTuple):
    """What the choice of tests depends on."""

    id: str
    fixtures: frozenset[str]
    marks: frozenset[str]


_Item = TypeVar("_Item")


def chosen(
    items: Sequence[tuple[Candidate, _Item]], options: argparse.Namespace
) -> list[tuple[str, _Item]]:
    """This process's share: tests that take the device, slow ones last."""
    found = []
    for candidate, item in items:
        for_device = {"cuda", "gpu"} & candidate.fixtures or "gpu" in candidate.marks
        if options.device == "fake" and "gpu" in candidate.marks:
            continue
        if options.only and not any(each in candidate.id for each in options.only):
            continue
        if options.quick and "slow" in candidate.marks:
            continue
        if for_device or options.all:
            found.append((candidate, item))
    found.sort(key=lambda each: "slow" in each[0].marks)
    number, count = options.shard
    return [(candidate.id, item) for candidate, item in found[number::count]]


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
        self.device: Any = None
        if device == "real":
            import tgraph

            self.device = tgraph.cuda

    def announce(self, ids: Sequence[str]) -> set[str]:
        """Write which tests there are; those to run."""
        self.journal.write("collected", tests=list(ids))
        return set(ids) - self.journal.before

    def around(self, test: str, run: Callable[[], tuple[str, str]]) -> None:
        """Run a test, which gives its outcome and why, and see what it leaves on the device."""
        self.journal.write("start", test=test)
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
        wanted = self.tests.announce([name for name, _ in found])
        items[:] = [item for name, item in found if name in wanted]

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
    return Candidate(item.nodeid, frozenset(item.fixturenames), marks)


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
            names = frozenset(item.needed)
            pairs.append((Candidate(item.id, names, frozenset(item.mark_names)), item))
    found = chosen(pairs, options)
    wanted = tests.announce([name for name, _ in found])
    runner = small_runner.Runner()
    for name, item in found:
        if name in wanted:
            with _told_warnings(tests.journal, name):
                tests.around(name, functools.partial(runner.run, item))
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


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gpu_run.worker")
    add = parser.add_argument
    add("journal", type=Path)
    add("--modules", type=lambda text: Path(text).resolve(), nargs="+", required=True)
    add("--device", choices=("real", "fake"), default="fake")
    add("--shard", default="0/1", help="NUMBER/COUNT")
    add("--only", default="", help="parts of tests' names, with commas between")
    add("--quick", action="store_true", help="leave slow tests out")
    add("--all", action="store_true", help="also tests that take no device")
    add("--without-pytest", action="store_true", help="even where it is installed")
    options = parser.parse_args(arguments)
    options.shard = tuple(map(int, options.shard.split("/")))
    options.only = [each for each in options.only.split(",") if each]
    return options


def main() -> int:
    faulthandler.enable()
    options = parsed()
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
