"""The parts of `python tests/gpu.py` and the time they get.

First the ladder, alone: where that does not hold, nothing else is tried. Then all tests that take a
CUDA device, in several processes; then the benchmark, with the time that remains. Sanitizers, and
what failed the last time, are runs of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import archive, jobs, probe, report
from .jobs import Found, Share, Tool
from .report import Result
from .surroundings import ROOT, TESTS, command, environment

RESULTS = ROOT / "benchmarks" / "results"
MOST_PROCESSES = 10
TELL_EVERY = 15.0
PROBE_SECONDS = 90.0
LADDER_SECONDS = 120.0
"""For all rungs, of which each ends itself where it hangs."""
CHECKS_SHARE = 0.42
"""Of the time, for everything but the benchmark, if that is to follow."""
# What memcheck says of calls that return an error, as some do that CuPy tries, is not wanted.
SANITIZERS = {"memcheck": ("--report-api-errors", "no"), "racecheck": ()}
# Parts of the tests that have processes of their own: memory is measured without other tests, and
# what runs on the shim too compiles for long.
ALONE = ("test_memory_on_device", "test_programs_on_device")
TAKES_DEVICE = re.compile(r"cuda_tools\.device|mark\.gpu\b|\bdef test_\w+\((?:[^()]*\W)?cuda\b")
EXCLUDED = ("test_gpu_run", "test_gpu_benchmarks", "test_as_on_a_gpu")
FIRST = ("test_compiled_cuda", "test_eager_cuda")
# What runs of tests that are repeated have: the error of a launch is told where it is made.
SYNCHRONOUS = {"TGRAPH_CUDA_SYNC": "1", "CUDA_LAUNCH_BLOCKING": "1"}
LAST = "last-run.json"


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/gpu.py", description=__doc__)
    add = parser.add_argument
    add("--device", choices=("real", "fake"), default="real", help="fake tries it without a GPU")
    add("--seconds", type=float, default=465, help="for everything (%(default)s)")
    add("--ladder", action="store_true", help="the ladder only")
    add("--no-benchmark", action="store_true", help="the ladder and tests only")
    add("--quick", action="store_true", help="leave slow tests out")
    add("--only", default="", metavar="A,B", help="tests with one of these in their names")
    add("--without-pytest", action="store_true", help="even where it is installed")
    add("--jobs", type=int, help="processes of tests; by the processors unless given")
    add("--commit", metavar="NAME", help="what the checkout is of, where it has no data of git")
    add(
        "--out", type=Path, metavar="DIR", help="write both reports there, and all logs as one file"
    )
    add("--save", metavar="NAME", help="write benchmarks/results/NAME-checks.md and .json")
    add("--build", type=Path, default=ROOT / "build" / "gpu", help="folder for temporary files")
    instead = parser.add_mutually_exclusive_group()
    told = "run the failures of the last run, or of that report, one by one, and save their kernels"
    instead.add_argument("--repeat-failed", nargs="?", const=LAST, metavar="CHECKS.json", help=told)
    instead.add_argument("--sanitize", action="store_true", help="compute-sanitizer alone")
    return parser.parse_args(arguments)


class NothingToDoError(Exception):
    """There is nothing to run, as the message tells."""


class NoDeviceError(NothingToDoError):
    """There is nothing that the run could be made on; the message's first line says why."""


class Run:
    """One run. `result` is as complete as the run is, `kind` what its report is called."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.kind = "checks"
        if options.sanitize or options.repeat_failed:
            self.kind = "sanitizer" if options.sanitize else "repeated"
        self.build: Path = options.build.resolve()
        self.began = time.monotonic()
        self.ends = self.began + options.seconds
        cpus = len(os.sched_getaffinity(0))
        self.processes = options.jobs or max(1, min(MOST_PROCESSES, cpus - 5))
        self.env = environment(self.build, options.device, max(1, min(4, cpus // self.processes)))
        if options.commit:
            self.env[probe.COMMIT] = options.commit
        self.folder = self.build / self.kind
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.result = Result(self._facts())
        self.repeated = self._failed_before() if options.repeat_failed else []
        self._told = 0
        self._last = time.monotonic()

    def _facts(self) -> dict[str, Any]:
        log = self.folder / "probe.log"
        line, limit = command("gpu_run.probe"), PROBE_SECONDS
        try:
            with log.open("wb") as errors:
                probed = subprocess.run(
                    line, env=self.env, cwd=self.build, stdout=subprocess.PIPE, stderr=errors,
                    stdin=subprocess.DEVNULL, text=True, timeout=limit,
                )  # fmt: skip
        except subprocess.TimeoutExpired:
            at = log.read_text(errors="replace").strip()
            raise NoDeviceError(f"the device gave no answer within {limit:.0f} s\n{at}") from None
        if probed.returncode:
            last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            raise NoDeviceError(f"tgraph cannot be used here: {last}")
        facts: dict[str, Any] = json.loads(probed.stdout.splitlines()[-1])
        if self.options.device == "fake":
            facts.pop("why", None)
            facts = {"gpu": "none: the host stands in for it", **facts}
        elif "why" in facts:
            raise NoDeviceError(f"no CUDA device can be used: {facts['why']}")
        facts["processes"] = self.processes
        return facts

    # -- the parts ---------------------------------------------------------------------------

    def everything(self) -> None:
        """What was asked for."""
        if self.options.sanitize:
            self._timed("sanitizer", self.sanitize)
        elif self.options.repeat_failed:
            self._timed("repeated", self.repeat)
        elif self._timed("ladder", self.ladder) and not self.options.ladder:
            self._timed("checks", self.checks)
            self.write()
            if not self.options.no_benchmark:
                print(f"\n{report.table(self.result)}", flush=True)
                self._timed("benchmark", self.benchmark)

    def _timed(self, part: str, run: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return run()
        finally:
            self.result.seconds[part] = round(time.monotonic() - began, 1)

    def ladder(self) -> bool:
        """Whether the ground holds, which is shown rung by rung."""
        began, log = time.monotonic(), self.folder / "ladder.log"
        given = command("gpu_run.ladder", "--device", self.options.device)
        # On the stand-in a C++ compiler builds the kernels.
        most = LADDER_SECONDS if self.options.device == "real" else self.options.seconds
        status = jobs.show(given, self.env, self.build, log, min(most, self.ends - began))
        seconds = round(time.monotonic() - began, 1)
        said = log.read_text(errors="replace")
        rungs = re.findall(r"^ *\d+/\d+  (.+?)(?: {2,}|$)", said, re.MULTILINE)
        if status == 0:
            self.result.findings.add(Found("ladder::all of it", "passed", "", seconds))
        else:
            why = said if status is not None else f"{said}\nit did not end in its time"
            rung = rungs[-1] if rungs else "before the first rung"
            self.result.findings.add(Found(f"ladder::{rung}", "failed", why, seconds))
            self.result.left_out["everything else"] = "the ladder does not hold"
            self._told += 1  # the whole traceback has been shown
        return status == 0

    def checks(self) -> None:
        """All tests that take a device."""
        share = 1.0 if self.options.no_benchmark else CHECKS_SHARE
        until = self.began + share * self.options.seconds
        started = list(self._shares())
        try:
            jobs.run(started, until, self._progress)
        finally:
            self._progress()

    def _shares(self) -> Iterator[Share]:
        modules = device_modules()
        if not self.result.facts["g++"]:
            why = "g++ is not installed: kernels are held to eager evaluation alone"
            self.result.left_out["the shim against the device"] = why
        groups = {each.stem.removeprefix("test_"): [each] for each in modules if each.stem in ALONE}
        yield from (self._share(name, group, "0/1") for name, group in groups.items())
        rest = [each for each in modules if each.stem not in ALONE]
        for number in range(self.processes):
            yield self._share(f"tests{number}", rest, f"{number}/{self.processes}")

    def _share(self, name: str, modules: list[Path], part: str) -> Share:
        arguments = ["--shard", part, "--only", self.options.only]
        arguments += ["--quick"] if self.options.quick else []
        line = self._worker(modules, *arguments)
        return Share(name, line, self.env, self.folder, self.result.findings)

    def _worker(self, modules: list[Path], *arguments: str) -> list[str]:
        given = ["--device", self.options.device, *arguments]
        given += ["--without-pytest"] if self.options.without_pytest else []
        return command("gpu_run.worker", *given, "--modules", *map(str, modules))

    def sanitize(self) -> None:
        """compute-sanitizer over a sample of kernels."""
        tool, what = self.result.facts["sanitizer"], "compute-sanitizer"
        if tool is None or self.options.device == "fake":
            why = "it is not installed" if tool is None else "it watches GPUs alone"
            self.result.left_out[what] = why
            return
        started = []
        for kind, more in SANITIZERS.items():
            watched = [tool, "--tool", kind, "--error-exitcode", "86", "--print-limit", "10"]
            line = [*watched, *more, *command("gpu_run.sample")]
            name = f"sanitizer-{kind}"
            started.append(Tool(name, line, self.env, self.folder, self.result.findings))
        try:
            jobs.run(started, self.ends, self._progress)
        finally:
            self._progress()

    def repeat(self) -> None:
        """The tests that failed, one after another, alone, each launch waited for."""
        env = {**self.env, **SYNCHRONOUS}
        print(f"{len(self.repeated)} tests are repeated", flush=True)
        for number, test in enumerate(self.repeated):
            kernels = self.folder / f"kernels{number:03}"
            given = ["--test", test, "--save-kernels", str(kernels)]
            line = self._worker([ROOT / test.split("::", 1)[0]], *given)
            findings = self.result.findings
            share = Share(f"repeated{number:03}", line, env, self.folder, findings)
            jobs.run([share], self.ends, self._progress)
            if test not in findings.tests:
                findings.not_run = list(dict.fromkeys([*findings.not_run, test]))
            found = findings.tests.get(test)
            print(f"{found.outcome if found else 'not run'}: {test}", flush=True)
        self._progress()

    def _failed_before(self) -> list[str]:
        given = self.options.repeat_failed
        path = self.build / LAST if given == LAST else Path(given)
        if not path.exists():
            raise NothingToDoError(f"there is no report of an earlier run at {path}")
        failures = json.loads(path.read_text())["failures"]
        tests = [each["test"] for each in failures]
        ids = [each for each in tests if (ROOT / each.split("::", 1)[0]).is_file()]
        for each in sorted(set(tests) - set(ids)):
            self.result.left_out[each] = "it is no test that can be run alone"
        return ids

    def _progress(self) -> None:
        """Tell of new failures at once, and of the rest now and then."""
        failed = self.result.findings.of("failed")
        for found in failed[self._told : report.SHOWN_FAILURES]:
            print(report.failure_lines(found), flush=True)
        self._told = len(failed)
        if time.monotonic() - self._last > TELL_EVERY:
            self._last = time.monotonic()
            count = len(self.result.findings.tests)
            seconds = self._last - self.began
            print(f"{seconds:4.0f} s: {count} tests are done, {len(failed)} failed", flush=True)
            self.write()  # what is known outlives whatever ends this

    def benchmark(self) -> None:
        """The benchmark, whose lines are shown as they come."""
        left = self.ends - time.monotonic() - jobs.GRACE
        arguments = ["--seconds", f"{left - 10:.0f}", "--json", str(self.build / "benchmark.json")]
        if self.options.device == "fake":
            arguments += ["--device", "cpu", "--scale", "tiny", "--only", "softmax"]
            arguments += ["--rounds", "2", "--turn", "0.001"]
        if self.options.device == "real" or self.options.out:
            arguments += ["--save", str(self._place("benchmark"))]
        print("\nbenchmark", flush=True)
        line, log = command("benchmarks.gpu", *arguments), self.folder / "benchmark.log"
        status = jobs.show(line, self.env, ROOT, log, left)
        if status is None:
            print("the benchmark was stopped: it did not end in its time", flush=True)
        self.result.benchmark = 1 if status is None else status

    # -- the report --------------------------------------------------------------------------

    def _place(self, about: str) -> Path:
        """Where a report is written, without the ending. The stand-in's stays in the build."""
        if self.options.out is not None:
            return Path(self.options.out.resolve()) / about
        facts = self.result.facts
        slug = re.sub(r"[^A-Za-z0-9]+", "-", str(facts["gpu"])).strip("-").lower()
        given = self.options.device == "real" or self.options.save
        name = self.options.save or f"{facts['date']}-{slug}"
        return (RESULTS if given else self.build) / f"{name}-{about}"

    def write(self) -> Path:
        """Write what is known so far; where, without the ending."""
        path = self._place(self.kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = json.dumps(report.as_json(self.result), indent=1) + "\n"
        Path(f"{path}.json").write_text(data)
        Path(f"{path}.md").write_text(report.markdown(self.result))
        if self.kind == "checks":
            (self.build / LAST).write_text(data)
        if self.options.out is not None:
            name = "logs" if self.kind == "checks" else f"{self.kind}-logs"
            archive.write(path.with_name(f"{name}.tar.gz"), self.folder)
        return path


def device_modules() -> list[Path]:
    """The test modules whose tests take a CUDA device, those of all operations first."""
    found = [
        path
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.stem not in EXCLUDED and TAKES_DEVICE.search(path.read_text())
    ]
    return sorted(found, key=lambda path: FIRST.index(path.stem) if path.stem in FIRST else 9)


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 1 where anything failed, or where there is nothing to run."""
    options = parsed(arguments)
    options.build.mkdir(parents=True, exist_ok=True)
    try:
        run = Run(options)
    except NothingToDoError as error:
        print(f"make gpu: {error}", file=sys.stderr)
        return 1
    for name, value in run.result.facts.items():
        print(f"{name}: {value}", flush=True)
    return _finished(run)


def _finished(run: Run) -> int:
    # Ended from outside, it still ends its processes and writes what it has.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    complete = False
    try:
        with contextlib.suppress(KeyboardInterrupt):
            run.everything()
            complete = True
    finally:
        path = run.write()
        print(report.ending(run.result))
        print(f"wrote {path}.md and .json")
    return 0 if run.result.good and complete else 1
