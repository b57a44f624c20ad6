"""All contenders on all workloads within a time: prepared side by side, timed one by one.

Compiling takes far longer than timing. So the processes of all contenders prepare workloads at the
same time, and hold what they have prepared: several workloads in the process of a fast contender,
one in each of the several processes of a slow one. Once all contenders of a workload have it
ready, or have failed at it, everything else is stopped and they are timed in turns.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..measure import Result
from ..process import MissingError, Process, WorkerError
from ..report import OURS
from .contenders import SLOW, takes_part
from .worker import COPY, REFERENCE
from .workloads import GpuWorkload

# So many workloads may a process hold; a slow contender would keep one waiting for the other.
HELD, HELD_BY_SLOW = 3, 1
# So many workloads may have their data on disk before the first of them is timed.
AHEAD = 6
# What was given to the device before a process was stopped has run after this many seconds.
DRAIN = 0.05
# A turn takes far less than so many seconds, and so does tgraph's first call.
ANSWER = 30.0
# Parts of the time that are left when slow contenders, and then all, have to stop preparing: for
# the others to go on, and for timing what is ready.
SLOW_ENDS, ALL_END = 0.25, 0.08
COPY_BYTES = {"gpu": 1 << 30, "tiny": 1 << 16}
# For matrix products with epilogues, on a CUDA device; less than `ANSWER`.
EPILOGUES, EPILOGUE_SECONDS = "epilogues", 20.0
# Whose first call is timed in a process of its own, with empty caches and again.
FIRST_CALLS = (("tgraph", "transformer_train"),)


@dataclass(frozen=True)
class Options:
    """How to measure.

    contenders: names; processes: of each slow one; jobs: how many prepare at the same time.
    rounds: of turns; least: seconds of one turn.
    patience: seconds for one contender to prepare one workload, times the workload's own factor;
    seconds: for everything.
    threads: processors of a contender; scratch: a folder for data and caches.
    epilogues: whether tgraph's matrix products with epilogues are measured first.
    """

    device: str
    scale: str
    contenders: Sequence[str]
    processes: int
    jobs: int
    rounds: int
    least: float
    patience: float
    seconds: float
    threads: int
    scratch: Path
    epilogues: bool = False


@dataclass
class Outcome:
    """What was measured.

    results: by workload and contender, where "copy" is a copy of `copied` bytes, read and written.
    moved, flops: of each workload, at least.
    first: by workload, seconds of tgraph's first call with empty caches and with its own, or text
    of what failed.
    epilogues: what `epilogues.measure` gives, or text of what failed; None if it was not asked for.
    not_run: by workload, contenders that there was no time for.
    faults: of what is no contender.
    """

    results: dict[str, dict[str, Result]] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    flops: dict[str, int] = field(default_factory=dict)
    copied: int = 0
    first: dict[str, tuple[float, float] | str] = field(default_factory=dict)
    epilogues: dict[str, Any] | str | None = None
    not_run: dict[str, list[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class Hand:
    """One process of a contender, what it does at present, and what it has prepared.

    state: "starting", "idle", "busy" with `task`, or "gone".
    """

    def __init__(self, name: str, launch: Callable[[str], Process]) -> None:
        self.name, self.launch = name, launch
        self.holds = HELD_BY_SLOW if name in SLOW else HELD
        self.start()

    def start(self) -> None:
        """Begin with a fresh process."""
        self.process = self.launch(self.name)
        self.ready: set[str] = set()
        self.set("starting")

    def set(self, state: str, task: str = "") -> None:
        self.state, self.task, self.since = state, task, time.perf_counter()

    @property
    def working(self) -> bool:
        """Whether an answer is to come."""
        return self.state in ("starting", "busy")

    def send(self, do: str, task: str, **arguments: Any) -> None:
        """Ask for something that may take long; a process that has died fails by its answer."""
        with contextlib.suppress(WorkerError):
            self.process.send(do, **arguments)
        self.set("busy", task)

    def end(self) -> None:
        self.process.stop()
        self.set("gone")


class Session:
    """One run. `told` is called with each finished workload's name."""

    def __init__(
        self,
        workloads: Mapping[str, GpuWorkload],
        options: Options,
        told: Callable[[Outcome, str], None],
    ) -> None:
        self.workloads, self.options, self.told = workloads, options, told
        self.outcome = Outcome()
        self.ends = time.perf_counter() + options.seconds
        self.hands: list[Hand] = []
        self.closed: set[str] = set()  # contenders that prepare nothing any more
        self.queues: dict[str, deque[str]] = {REFERENCE: deque(workloads), COPY: deque()}
        # By workload, the contenders that are neither ready nor have failed.
        self.waiting: dict[str, set[str]] = {}
        self.referenced: set[str] = set()
        for name in options.contenders:
            self.queues[name] = deque(w for w in workloads if takes_part(name, workloads[w]))
        for workload in workloads:
            names = [name for name in options.contenders if workload in self.queues[name]]
            self.waiting[workload] = set(names)
            self.outcome.results[workload] = {name: Result() for name in names}

    def run(self) -> Outcome:
        """Measure until everything is done or the time is over."""
        try:
            self._first_calls()
            self._epilogues()
            self._start()
            self._loop()
        finally:
            for hand in self.hands:
                hand.process.stop()
        for workload in list(self.waiting):
            self._abandon(workload)
        return self.outcome

    # --- processes ---

    def _launch(self, name: str, caches: str = "") -> Process:
        options = self.options
        folder = options.scratch / "caches" / (caches or name)
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        arguments = (options.device, options.scale, str(options.threads))
        return Process(
            name,
            options.threads,
            folder,
            ANSWER,
            ("benchmarks.gpu.worker", name, *arguments),
            settings(options.device, folder),
        )

    def _start(self) -> None:
        """A process for each contender, several for those that compile long."""
        for name, queue in self.queues.items():
            count = min(self.options.processes, len(queue)) if name in SLOW else 1
            self.hands += [Hand(name, self._launch) for _ in range(count) if queue or name == COPY]

    def _again(self, hand: Hand) -> None:
        """A fresh process, if there is more to do: an error may have left the device unusable."""
        hand.end()
        for workload in hand.ready - {hand.task, COPY}:
            if hand.name in self.closed:
                self._leave_out(workload, hand.name)
            else:
                self.queues[hand.name].appendleft(workload)
                self.waiting[workload].add(hand.name)
        if self.queues[hand.name]:
            hand.start()

    def _first_calls(self) -> None:
        for name, workload in FIRST_CALLS:
            if name in self.options.contenders and workload in self.workloads:
                self.outcome.first[workload] = self._first_call(name, workload)

    def _first_call(self, name: str, workload: str) -> tuple[float, float] | str:
        """With empty caches, then in another process that finds them filled."""
        times = []
        for _ in range(2):
            process = self._launch(name, f"{name}-first")
            try:
                process.greet()
                times.append(process.ask("first", workload=workload)["first"])
            except WorkerError as error:
                return f"failed: {_line(error)}"
            finally:
                process.stop()
        return times[0], times[1]

    def _epilogues(self) -> None:
        """Alone on the machine, in a process of its own."""
        if not self.options.epilogues:
            return
        process = self._launch(OURS, f"{OURS}-{EPILOGUES}")
        try:
            process.greet()
            self.outcome.epilogues = process.ask(EPILOGUES, seconds=EPILOGUE_SECONDS)
        except WorkerError as error:
            self.outcome.epilogues = f"failed: {_line(error)}"
        finally:
            process.stop()

    # --- the loop ---

    def _loop(self) -> None:
        while self.waiting and time.perf_counter() < self.ends:
            self._close()
            done = [workload for workload, names in self.waiting.items() if not names]
            self._dispatch(done)
            now = next((each for each in done if not self._hindered(each)), None)
            if now is not None:
                self._finish(now)
            elif self.waiting:
                self._collect()

    def _hindered(self, workload: str) -> bool:
        """Whether someone who is to be timed is at work on something else."""
        return any(hand.working for hand in self._ready(workload))

    def _closing(self) -> Iterator[tuple[float, set[str]]]:
        """When who has to stop preparing; those who have stopped are left out."""
        for left, names in ((SLOW_ENDS, set(SLOW)), (ALL_END, set(self.queues) - {COPY})):
            if names & self.queues.keys() - self.closed:
                yield self.ends - left * self.options.seconds, names

    def _close(self) -> None:
        """Give up what is not ready when it has to be."""
        for when, names in list(self._closing()):
            if time.perf_counter() > when:
                self._stop_preparing(names & self.queues.keys() - self.closed)

    def _stop_preparing(self, names: set[str]) -> None:
        self.closed |= names
        for hand in self.hands:
            if hand.name in names and hand.working and not hand.ready:
                hand.end()
        for name in names:
            self.queues[name].clear()
        for workload, waiting in list(self.waiting.items()):
            for name in sorted(waiting & names):
                self._leave_out(workload, name)
            waiting -= names
            if not waiting and not self._ready(workload):
                self._abandon(workload)

    def _leave_out(self, workload: str, name: str) -> None:
        self.outcome.not_run.setdefault(workload, []).append(name)
        del self.outcome.results[workload][name]

    def _abandon(self, workload: str) -> None:
        """Nobody is timed on a workload any more."""
        del self.waiting[workload]
        for name, result in list(self.outcome.results[workload].items()):
            if not result.error:
                self._leave_out(workload, name)
        if not self.outcome.results[workload]:
            del self.outcome.results[workload]

    def _dispatch(self, done: Sequence[str]) -> None:
        """Give everyone who has nothing to do the next workload, but for those now to be timed."""
        for hand in self.hands:
            queue = self.queues[hand.name]
            full = len(hand.ready) >= hand.holds or not hand.ready.isdisjoint(done)
            if hand.state != "idle" or not queue or full:
                continue
            if hand.name == REFERENCE:
                if len(self.referenced & self.waiting.keys()) < AHEAD:
                    workload = queue.popleft()
                    hand.send("reference", workload, workload=workload, folder=self._at(workload))
            elif queue[0] in self.referenced and self._preparing() < self.options.jobs:
                workload = queue.popleft()
                hand.send("prepare", workload, workload=workload, folder=self._at(workload))

    def _preparing(self) -> int:
        return sum(hand.state == "busy" and hand.name != REFERENCE for hand in self.hands)

    def _at(self, workload: str) -> str:
        return str(self.options.scratch / "data" / workload)

    def _collect(self) -> None:
        """Wait for an answer, or until there is something else to do, and take what has come."""
        with selectors.DefaultSelector() as selector:
            for hand in self.hands:
                if hand.working:
                    selector.register(hand.process, selectors.EVENT_READ, hand)
            if not selector.get_map():
                raise RuntimeError(f"nobody is at work, but there is to do: {self.waiting}")
            answered = [key.data for key, _ in selector.select(self._until_next())]
        for hand in answered:
            self._answered(hand)
        for hand in self.hands:
            if hand.working and time.perf_counter() - hand.since > self._patience(hand):
                self._failed(hand, f"no answer within {self._patience(hand):.0f} s")

    def _until_next(self) -> float:
        """Seconds until somebody loses patience or the time is over."""
        times = [hand.since + self._patience(hand) for hand in self.hands if hand.working]
        times += [self.ends, *(when for when, _ in self._closing())]
        return max(0.0, min(times) - time.perf_counter()) + 0.001

    def _patience(self, hand: Hand) -> float:
        chosen = self.workloads.get(hand.task)
        return self.options.patience * (chosen.patience if chosen else 1.0)

    def _answered(self, hand: Hand) -> None:
        try:
            if hand.state == "starting":
                hand.process.greet()
                self._greeted(hand)
            else:
                self._done(hand, hand.process.answer())
        except MissingError as error:
            self._missing(hand, f"not installed ({error})")
        except WorkerError as error:
            self._failed(hand, _line(error), error.trace)

    def _greeted(self, hand: Hand) -> None:
        hand.set("idle")
        for row in self.outcome.results.values():
            if hand.name in row:
                row[hand.name].versions = hand.process.versions
        if hand.name == COPY:
            self.outcome.copied = COPY_BYTES[self.options.scale]
            hand.send("copy", COPY, size=self.outcome.copied)

    def _done(self, hand: Hand, reply: dict[str, Any]) -> None:
        """An answer to `send`."""
        workload = hand.task
        if hand.name == COPY:
            hand.set("idle")
            hand.ready.add(COPY)
        elif not workload:  # it has dropped its case
            hand.set("idle")
        elif hand.name == REFERENCE:
            self.referenced.add(workload)
            self.outcome.moved[workload] = reply["moved"]
            self.outcome.flops[workload] = reply["flops"]
            hand.set("idle")
        else:
            self._prepared(hand, workload, reply)

    def _prepared(self, hand: Hand, workload: str, reply: dict[str, Any]) -> None:
        hand.set("idle")
        if workload not in self.waiting or hand.name not in self.waiting[workload]:
            return  # too late
        result = self.outcome.results[workload][hand.name]
        result.first_cold, result.deviation = reply["first"], reply["deviation"]
        self.waiting[workload].discard(hand.name)
        allowed = self.workloads[workload].tolerance
        if result.deviation <= allowed:
            hand.ready.add(workload)
            return
        result.failed = True
        result.error = f"wrong results: off by {result.deviation:.1e}, allowed is {allowed:.0e}"
        hand.send("drop", "", workload=workload)

    # --- failures ---

    def _failed(self, hand: Hand, message: str, trace: str = "") -> None:
        """What it was doing has failed; without a contender's start there is none at all."""
        workload, starting = hand.task, hand.state == "starting"
        if starting or hand.name == COPY:
            self._missing(hand, f"did not start: {message}", trace, failed=True)
            return
        self._again(hand)
        if hand.name == REFERENCE:
            self._without_reference(workload, message, trace)
        elif workload in self.waiting and hand.name in self.waiting[workload]:
            self._fault(workload, hand.name, message, trace)

    def _fault(self, workload: str, name: str, message: str, trace: str = "") -> None:
        result = self.outcome.results[workload][name]
        result.error, result.failed, result.trace = message, True, trace
        self.waiting[workload].discard(name)

    def _without_reference(self, workload: str, message: str, trace: str) -> None:
        for name in list(self.waiting[workload]):
            self._fault(workload, name, f"no reference: {message}", trace)
            self.queues[name].remove(workload)

    def _missing(self, hand: Hand, message: str, trace: str = "", failed: bool = False) -> None:
        """A contender, or the reference, is not there: nothing that it has to do can be done."""
        hand.end()
        if any(other.name == hand.name and other.state != "gone" for other in self.hands):
            return
        if hand.name in (REFERENCE, COPY):
            self.outcome.faults.append(f"{hand.name}: {message}")
        left = list(self.queues[hand.name])
        self.queues[hand.name].clear()
        for workload in left:
            if hand.name == REFERENCE:
                self._without_reference(workload, message, trace)
                continue
            self._fault(workload, hand.name, message, trace)
            self.outcome.results[workload][hand.name].failed = failed

    # --- timing ---

    def _ready(self, workload: str) -> list[Hand]:
        return [hand for hand in self.hands if workload in hand.ready and hand.state != "gone"]

    def _finish(self, workload: str) -> None:
        """Time a workload for which all are ready, and forget it."""
        hands = self._ready(workload)
        if hands:
            copies = self._ready(COPY) if self.outcome.moved[workload] else []
            with self._quiet():
                self._time(workload, [*hands, *copies])
        for hand in self._ready(workload):
            hand.ready.discard(workload)
            hand.send("drop", "", workload=workload)
        del self.waiting[workload]
        shutil.rmtree(self._at(workload), ignore_errors=True)
        self.told(self.outcome, workload)

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        """Stop everyone who is at work."""
        stopped = [hand for hand in self.hands if hand.working]
        began = time.perf_counter()
        for hand in stopped:
            hand.process.pause()
        time.sleep(DRAIN)
        yield
        for hand in stopped:
            hand.process.resume()
            hand.since += time.perf_counter() - began

    def _time(self, workload: str, hands: list[Hand]) -> None:
        """Rounds of turns, each beginning with another contender."""
        row = self.outcome.results[workload]
        calls: dict[str, int] = {}
        for hand in hands:
            if hand.name == COPY:
                row[COPY] = Result()
            reply = self._asked(workload, hand, "calibrate", least=self.options.least)
            if reply is not None:
                calls[hand.name] = reply["calls"]
        for number in range(self.options.rounds):
            timed = [hand for hand in hands if hand.name in calls]
            first = number % max(1, len(timed))
            for hand in timed[first:] + timed[:first]:
                reply = self._asked(workload, hand, "time", calls=calls[hand.name])
                if reply is None:
                    del calls[hand.name]
                    continue
                result = row[hand.name]
                result.rounds.append(reply["seconds"])
                result.least = min(result.least, reply["seconds"])

    def _asked(self, workload: str, hand: Hand, do: str, **more: Any) -> dict[str, Any] | None:
        """The answer; None, with the fault noted, if there is none."""
        held = COPY if hand.name == COPY else workload
        try:
            return hand.process.ask(do, workload=held, **more)
        except WorkerError as error:
            self.outcome.results[workload][hand.name].rounds.clear()
            self._fault(workload, hand.name, _line(error), error.trace)
            hand.ready.discard(held)
            self._again(hand)
            return None


def settings(device: str, folder: Path) -> dict[str, str]:
    """For a contender's environment: caches and files of its own, memory as it is needed."""
    return {
        "CUDA_CACHE_PATH": str(folder / "cuda"),
        "CUPY_CACHE_DIR": str(folder / "cupy"),
        "TMPDIR": str(folder / "tmp"),
        "JAX_PLATFORMS": device,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TORCHINDUCTOR_COMPILE_THREADS": str(max(1, min(4, (os.cpu_count() or 1) // 4))),
    }


def _line(error: Exception) -> str:
    """The first line of a message."""
    return next(iter(str(error).splitlines()), type(error).__name__)
