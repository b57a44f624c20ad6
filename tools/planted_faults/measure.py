"""Plants faults one after another, runs their tests, and confirms what they found."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from .faults import Fault, older_paths
from .results import Result, Results
from .tree_copy import TestRun, TreeCopy

TIMEOUT = "timeout"


@dataclass
class Measurement:
    """Faults measured with one suite: the copies to plant them in, and where results go."""

    copies: Sequence[TreeCopy]
    results: Results
    suite: str
    timeout: float

    def measure(self, faults: Sequence[Fault]) -> None:
        """Measure every fault, each in a copy that is free, and print what comes out."""
        free: SimpleQueue[TreeCopy] = SimpleQueue()
        for copy in self.copies:
            free.put(copy)

        def one(fault: Fault) -> None:
            copy = free.get()
            try:
                result = self._result(copy, fault)
            finally:
                free.put(copy)
            self.results.put(self.suite, fault, result)
            print(line(fault, result), flush=True)

        with ThreadPoolExecutor(len(self.copies)) as pool:
            list(pool.map(one, faults))

    def confirm(self, faults: Sequence[Fault]) -> None:
        """Run the tests that found faults without any fault, all of them in one run first."""
        found = [fault for fault in faults if self._unconfirmed(fault)]
        tests = sorted({self._first(fault) for fault in found if self._has_test(fault)})
        failing = set(self._failing(tests))
        for fault in found:
            by_test = self._has_test(fault)
            passes = self._first(fault) not in failing if by_test else self._passes_whole(fault)
            self.results.settle(self.suite, fault, passes)
            if not passes:
                print(line(fault, self.results.suites[self.suite][fault.name]), flush=True)

    def _result(self, copy: TreeCopy, fault: Fault) -> Result:
        try:
            arguments = present_arguments(fault, copy.tree)
            with copy.planted(fault):
                run = copy.run(arguments, self.timeout)
        except (RuntimeError, ValueError) as reason:
            return Result(fault.key(), "error", 0.0, str(reason))
        verdict = "missed" if run.code == 0 else "found"
        return Result(fault.key(), verdict, round(run.seconds, 1), _first_failure(run))

    def _failing(self, tests: list[str]) -> tuple[str, ...]:
        """Which of these tests fail without a fault; those that fail together are run alone."""
        if not tests:
            return ()
        together = self.copies[0].run(tests, self.timeout * 4, keep_going=True)
        crashed = together.code not in (0, 1)
        alone = tests if crashed else set(together.failed) & set(tests)
        return tuple(test for test in alone if self.copies[0].run([test], self.timeout).code != 0)

    def _has_test(self, fault: Fault) -> bool:
        """Whether a test failed: neither the timeout, nor the end of the process."""
        return self._first(fault).startswith("tests/")

    def _passes_whole(self, fault: Fault) -> bool:
        copy = self.copies[0]
        return copy.run(present_arguments(fault, copy.tree), self.timeout).code == 0

    def _unconfirmed(self, fault: Fault) -> bool:
        result = self.results.get(self.suite, fault)
        return result is not None and result.verdict == "found" and not result.confirmed

    def _first(self, fault: Fault) -> str:
        return self.results.suites[self.suite][fault.name].first_failure


def present_arguments(fault: Fault, tree: Path) -> list[str]:
    """The arguments of pytest, with the names that the test files have in this tree."""
    older = older_paths()
    arguments = []
    for part in fault.tests:
        path, separator, rest = part.partition("::")
        if not part.startswith("tests/"):
            arguments.append(part)
            continue
        names = [name for name in (path, *older.get(path, ())) if (tree / name).exists()]
        if names:
            arguments.append(names[0] + separator + rest)
    if not any(part.startswith("tests/") for part in arguments):
        raise ValueError(f"{fault.name}: no test path exists in this tree")
    return arguments


def line(fault: Fault, result: Result) -> str:
    """One line of the report."""
    return f"{result.verdict:8}{result.seconds:6.1f} s  {fault.name:44}{result.first_failure}"


def _first_failure(run: TestRun) -> str:
    if run.code is None:
        return TIMEOUT
    if run.code == 0:
        return ""
    return run.failed[0] if run.failed else f"exit code {run.code}"
