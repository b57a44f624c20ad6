"""The parts of `python tests/gpu.py` and the time they get.

First all tests that take a CUDA device and the sanitizers, side by side in several processes; then
the benchmark alone, with the time that remains.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import jobs, report
from .jobs import Share, Tool
from .report import Result
from .surroundings import ROOT, TESTS, command, environment

RESULTS = ROOT / "benchmarks" / "results"
MOST_PROCESSES = 10
TELL_EVERY = 15.0
CHECKS_SHARE = 0.42
"""Of the time, for everything but the benchmark, if that is to follow."""
# What memcheck says of calls that return an error, as some do that CuPy tries, is not wanted.
SANITIZERS = {"memcheck": ("--report-api-errors", "no"), "racecheck": ()}
# Parts of the tests that have processes of their own: memory is measured without other tests, and
# what runs on the shim too compiles for long.
ALONE = ("test_memory_on_device", "test_programs_on_device")
TAKES_DEVICE = re.compile(r"cuda_tools\.device|mark\.gpu\b|\bdef test_\w+\((?:[^()]*\W)?cuda\b")
EXCLUDED = ("test_gpu_run", "test_gpu_benchmarks")
FIRST = ("test_compiled_cuda", "test_eager_cuda")


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/gpu.py", description=__doc__)
    add = parser.add_argument
    add("--device", choices=("real", "fake"), default="real", help="fake tries it without a GPU")
    add("--seconds", type=float, default=465, help="for everything (%(default)s)")
    add("--no-benchmark", action="store_true", help="tests and sanitizers only")
    add("--no-sanitizer", action="store_true")
    add("--quick", action="store_true", help="leave slow tests out")
    add("--only", default="", metavar="A,B", help="tests with one of these in their names")
    add("--without-pytest", action="store_true", help="even where it is installed")
    add("--jobs", type=int, help="processes of tests; by the processors unless given")
    add("--save", metavar="NAME", help="write benchmarks/results/NAME-checks.md and .json")
    add("--build", type=Path, default=ROOT / "build" / "gpu", help="folder for temporary files")
    return parser.parse_args(arguments)


class NoDeviceError(Exception):
    """There is nothing that the run could be made on; the message is one line."""


class Run:
    """One run. `result` is as complete as the run is."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.build: Path = options.build.resolve()
        self.began = time.monotonic()
        self.ends = self.began + options.seconds
        cpus = len(os.sched_getaffinity(0))
        self.processes = options.jobs or max(1, min(MOST_PROCESSES, cpus - 5))
        self.env = environment(self.build, options.device, max(1, min(4, cpus // self.processes)))
        self.result = Result(self._facts())
        self._told = 0
        self._last = time.monotonic()

    def _facts(self) -> dict[str, Any]:
        probe = subprocess.run(
            command("gpu_run.probe"), env=self.env, cwd=self.build, capture_output=True, text=True
        )
        if probe.returncode:
            last = (probe.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise NoDeviceError(f"tgraph cannot be used here: {last}")
        facts: dict[str, Any] = json.loads(probe.stdout.splitlines()[-1])
        if self.options.device == "fake":
            facts.pop("why", None)
            facts = {"gpu": "none: the host stands in for it", **facts}
        elif "why" in facts:
            raise NoDeviceError(f"no CUDA device can be used: {facts['why']}")
        facts["processes"] = self.processes
        return facts

    # -- the parts ---------------------------------------------------------------------------

    def checks(self) -> None:
        """Tests and sanitizers."""
        began = time.monotonic()
        share = 1.0 if self.options.no_benchmark else CHECKS_SHARE
        folder = self.build / "run"
        folder.mkdir(exist_ok=True)
        for left in (*folder.glob("*.journal"), *folder.glob("*.log")):
            left.unlink()
        started: list[jobs.Job] = [*self._shares(folder), *self._sanitizers(folder)]
        try:
            jobs.run(started, self.began + share * self.options.seconds, self._progress)
        finally:
            self._progress()
            self.result.seconds["checks"] = round(time.monotonic() - began, 1)

    def _shares(self, folder: Path) -> Iterator[Share]:
        modules = device_modules()
        if not self.result.facts["g++"]:
            why = "g++ is not installed: kernels are held to eager evaluation alone"
            self.result.left_out["the shim against the device"] = why
        groups = {each.stem.removeprefix("test_"): [each] for each in modules if each.stem in ALONE}
        yield from (self._share(name, group, "0/1", folder) for name, group in groups.items())
        rest = [each for each in modules if each.stem not in ALONE]
        for number in range(self.processes):
            yield self._share(f"tests{number}", rest, f"{number}/{self.processes}", folder)

    def _share(self, name: str, modules: list[Path], part: str, folder: Path) -> Share:
        given = self.options
        arguments = ["--device", given.device, "--shard", part, "--only", given.only]
        arguments += ["--quick"] if given.quick else []
        arguments += ["--without-pytest"] if given.without_pytest else []
        worker = command("gpu_run.worker", *arguments, "--modules", *map(str, modules))
        return Share(name, worker, self.env, folder, self.result.findings)

    def _sanitizers(self, folder: Path) -> Iterator[Tool]:
        tool, what = self.result.facts["sanitizer"], "compute-sanitizer"
        if self.options.no_sanitizer:
            self.result.left_out[what] = "it was not asked for"
        elif tool is None:
            self.result.left_out[what] = "it is not installed"
        elif self.options.device == "fake":
            self.result.left_out[what] = "it watches GPUs alone"
        else:
            for kind, more in SANITIZERS.items():
                watched = [tool, "--tool", kind, "--error-exitcode", "86", "--print-limit", "10"]
                line = [*watched, *more, *command("gpu_run.sample")]
                yield Tool(f"sanitizer-{kind}", line, self.env, folder, self.result.findings)

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

    def benchmark(self) -> None:
        """The benchmark, whose lines are shown as they come."""
        began = time.monotonic()
        left = self.ends - began - jobs.GRACE
        arguments = ["--seconds", f"{left - 10:.0f}", "--json", str(self.build / "benchmark.json")]
        if self.options.device == "fake":
            arguments += ["--device", "cpu", "--scale", "tiny", "--only", "softmax"]
            arguments += ["--rounds", "2", "--turn", "0.001"]
        else:
            arguments += ["--save", f"{self.name()}-benchmark"]
        print("\nbenchmark", flush=True)
        process = subprocess.Popen(
            command("benchmarks.gpu", *arguments), env=self.env, cwd=ROOT, start_new_session=True
        )
        try:
            self.result.benchmark = process.wait(left)
        except subprocess.TimeoutExpired:
            print("the benchmark was stopped: it did not end in its time", flush=True)
            self.result.benchmark = 1
        finally:
            jobs.end(process)
        self.result.seconds["benchmark"] = round(time.monotonic() - began, 1)

    # -- the report --------------------------------------------------------------------------

    def name(self) -> str:
        """Of the files without what they are about: the date and the device unless given."""
        facts = self.result.facts
        slug = re.sub(r"[^A-Za-z0-9]+", "-", str(facts["gpu"])).strip("-").lower()
        return str(self.options.save or f"{facts['date']}-{slug}")

    def write(self) -> Path:
        """Write what is known so far; where, without the ending. The stand-in's stays in build."""
        given = self.options.device == "real" or self.options.save
        folder = RESULTS if given else self.build
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name()}-checks"
        data = json.dumps(report.as_json(self.result), indent=1)
        Path(f"{path}.json").write_text(data + "\n")
        Path(f"{path}.md").write_text(report.markdown(self.result))
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
    """The exit status: 1 where anything failed, or where there is no device."""
    options = parsed(arguments)
    options.build.mkdir(parents=True, exist_ok=True)
    try:
        run = Run(options)
    except NoDeviceError as error:
        print(f"make gpu: {error}", file=sys.stderr)
        return 1
    for name, value in run.result.facts.items():
        print(f"{name}: {value}")
    # Ended from outside, it still ends its processes and writes what it has.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    complete = False
    try:
        with contextlib.suppress(KeyboardInterrupt):
            run.checks()
            run.write()
            if not options.no_benchmark:
                print(f"\n{report.table(run.result)}", flush=True)
                run.benchmark()
            complete = True
    finally:
        path = run.write()
        print(report.ending(run.result))
        print(f"wrote {path}.md and .json")
    return 0 if run.result.good and complete else 1
