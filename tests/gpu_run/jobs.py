"""The processes of a run: watched, ended when they hang or the time is over, started anew."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .worker import LOST

MOST_HANGS = 3
"""Tests of a share that may hang before the rest of it is given up."""
SILENT = 90.0
"""Seconds that a process may take to collect its tests, or for anything between them."""
STARTS = 20
"""Processes of one share of the tests at most."""
GRACE = 5.0
"""Seconds that a process has to end when it is asked to."""
TELLING = 0.5
LOG_LINES = 25


@dataclass
class Found:
    """What came out of a test: `outcome` is passed, failed, or skipped, `why` the last two's."""

    test: str
    outcome: str
    why: str = ""
    seconds: float = 0.0

    @property
    def module(self) -> str:
        return Path(self.test.split("::", 1)[0]).stem


@dataclass
class Findings:
    """What tests of several processes have shown; `not_run` is known at the end."""

    tests: dict[str, Found] = field(default_factory=dict)
    not_run: list[str] = field(default_factory=list)
    warnings: dict[str, int] = field(default_factory=dict)
    memory: list[dict[str, Any]] = field(default_factory=list)

    def add(self, found: Found) -> None:
        self.tests[found.test] = found

    def of(self, outcome: str) -> list[Found]:
        return [each for each in self.tests.values() if each.outcome == outcome]


class Process:
    """A process in a group of its own, whose output goes to a file."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def tell(self) -> None:
        """Let it write what it is at, where it listens for that."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGUSR1)
        time.sleep(TELLING)

    def ask_to_end(self) -> None:
        """Without waiting for it."""
        if self.status is None:
            self._process.terminate()

    def stop(self) -> None:
        """End it and what it started: it is asked first, since it may have more to end."""
        end(self._process)

    def said(self) -> str:
        """The end of its output."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])


def end(process: subprocess.Popen[Any]) -> None:
    """Ask a process to end, and make it and its group end where it does not."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    # It may have ended by itself, with nobody left.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # What a device holds may not end even then; nobody waits for it.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


class Share:
    """One process after another that runs a part of the tests of some modules.

    `running` is the test that is, and until when it may be.
    """

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], folder: Path,
        findings: Findings,
    ) -> None:  # fmt: skip
        self.name, self.env, self.findings = name, env, findings
        self.journal = folder / f"{name}.journal"
        self.log = folder / f"{name}.log"
        self.command = [*command[:4], str(self.journal), *command[4:]]
        self.collected: list[str] = []
        self.running: tuple[str, float] | None = None
        self.done = False
        self._starts = self._hung = 0
        self._limit = 0.0
        self._read_to = 0
        self._begin()

    def _begin(self) -> None:
        self._starts += 1
        self.running = None
        self._silent_since = time.monotonic()
        self.process = Process(self.command, self.env, self.log)

    def poll(self) -> None:
        """Read what has happened, and do what must be done about it."""
        if self.done:
            return
        status = self.process.status  # first: what it wrote before its end is there then
        if self._read():
            self.process.stop()
        elif status is not None:
            self._ended(status)
        elif self.running is not None:
            if time.monotonic() > self.running[1]:
                self._hangs()
        elif time.monotonic() - self._silent_since > SILENT:
            self.process.tell()
            self._fail(f"nothing happened for {SILENT:.0f} s")

    def _hangs(self) -> None:
        self._hung += 1
        self.process.tell()
        why = f"it did not end within {self._limit:.0f} s:\n{self.process.said()}"
        self.process.stop()
        if self._hung < MOST_HANGS:
            self._give_up(why)
            return
        assert self.running is not None
        self.findings.add(Found(self.running[0], "failed", why))
        self._fail(f"{MOST_HANGS} tests hung: the rest of the share is left")

    def _fail(self, why: str) -> None:
        """End the share, which has failed as a whole."""
        self.process.stop()
        said = f"{why}\n{self.process.said()}".rstrip()
        self.findings.add(Found(f"{self.name}::(process)", "failed", said))
        self.done = True

    def stop(self) -> None:
        """The time is over."""
        if not self.done:
            self.process.stop()
            self._read()
            self.done = True
        self.findings.not_run += [t for t in self.collected if t not in self.findings.tests]

    def _read(self) -> bool:
        """Take the events that are new, but a line that is being written; whether it is done."""
        if not self.journal.exists():
            return False
        with self.journal.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            self._take(json.loads(line))
        return self.done

    def _take(self, event: Mapping[str, Any]) -> None:
        self._silent_since = time.monotonic()
        match event["event"]:
            case "collected":
                self.collected = event["tests"]
            case "start":
                self._limit = event["limit"]
                self.running = event["test"], time.monotonic() + self._limit
            case "end":
                self.running = None
                found = (event[key] for key in ("test", "outcome", "why", "seconds"))
                self.findings.add(Found(*found))
            case "broken":
                self.findings.add(
                    Found(f"{event['module']}::({self.name})", "failed", event["why"])
                )
            case "warning":
                text = " ".join(event["text"].split())
                self.findings.warnings[text] = self.findings.warnings.get(text, 0) + 1
            case "memory":
                self.findings.memory.append({"process": self.name, **event})
            case "done":
                self.done = True

    def _ended(self, status: int) -> None:
        """Without having done everything."""
        if self.running is not None:
            self._give_up(f"the process ended with status {status}:\n{self.process.said()}")
        elif status == LOST and self._starts < STARTS:
            self._begin()  # a failed test has told of it
        else:
            self._fail(f"the process ended with status {status}:")

    def _give_up(self, why: str) -> None:
        """Blame the test that was running, and go on behind it."""
        assert self.running is not None
        self.findings.add(Found(self.running[0], "failed", why))
        if self._starts < STARTS:
            self._begin()
        else:
            self.done = True


class Tool:
    """A command whose exit status tells whether all is well; `findings` gets it as a test."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], folder: Path,
        findings: Findings,
    ) -> None:  # fmt: skip
        self.name, self.findings, self.done = name, findings, False
        self._began = time.monotonic()
        self.process = Process(command, env, folder / f"{name}.log")

    def poll(self) -> None:
        status = self.process.status
        if self.done or status is None:
            return
        self.done = True
        seconds = round(time.monotonic() - self._began, 1)
        outcome, why = ("failed", self.process.said()) if status else ("passed", "")
        self.findings.add(Found(f"{self.name}::sample", outcome, why, seconds))
        self.process.stop()

    def stop(self) -> None:
        if not self.done:
            self.done = True
            self.process.stop()
            self.findings.not_run.append(f"{self.name}::sample")


Job = Share | Tool


def run(jobs: Iterable[Job], until: float, each: Any) -> None:
    """Wait until all jobs are done or `time.monotonic()` is past `until`, which stops them.

    `each()` is called again and again.
    """
    jobs = list(jobs)
    try:
        while not all(job.done for job in jobs) and time.monotonic() < until:
            for job in jobs:
                job.poll()
            each()
            time.sleep(0.05)
    finally:
        for job in jobs:
            job.process.ask_to_end()  # all of them, before any is waited for
        for job in jobs:
            job.stop()


def show(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, seconds: float
) -> int | None:
    """Run a command whose output is shown as it comes, and kept; None where it was stopped."""
    process = subprocess.Popen(
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    until = time.monotonic() + seconds
    try:
        with log.open("ab") as kept, selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0:
                if not ready.select(min(left, 1.0)):
                    continue
                text = os.read(process.stdout.fileno(), 1 << 16)
                if not text:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        return process.wait(GRACE)
                    return None
                kept.write(text)
                print(text.decode(errors="replace"), end="", flush=True)
    finally:
        end(process)
        process.stdout.close()
    return None
