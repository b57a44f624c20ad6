"""What of a plan is captured as CUDA graphs: segments, in which Python decides nothing.

A segment begins where Python has decided what comes next, and ends where it has to do something
again: run a function or a library's routine, or decide by a value of the device. It goes through
jumps, and through all turns of a loop whose number of turns is known, unless there are too many.
What it is depends on where it begins and on where the pointers of loops are then: these are in one
of two places, so that two graphs serve all turns of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..plan_steps import BranchStep, CudaStep, JumpStep, PythonStep, RoutineStep, TurnsStep
from ..records import NamedTuple
from .capture import Capture, CaptureError, told
from .step_runner import StepRunner, leads_elsewhere

MOST_STEPS = 2048
"""Steps of a loop that become one graph with all of its turns."""
MANY = 8
"""So often a segment is met in one call before it is captured in the first one."""
MOST_SEGMENTS = 64
"""Of one set of addresses; others are asked for step by step."""


def stops_of(steps: Sequence[CudaStep]) -> frozenset[int]:
    """The numbers of the steps that are never a part of a graph."""
    stops = {
        number
        for number, step in enumerate(steps)
        if isinstance(step, (PythonStep, RoutineStep, BranchStep))
    }
    counts = [0 if leads_elsewhere(step) else 1 for step in steps]
    for end, step in enumerate(steps):  # those inside end before those around them
        if not isinstance(step, JumpStep) or step.by >= 0:
            continue
        begin = end + step.by
        first = steps[begin]
        if not isinstance(first, TurnsStep):
            continue
        inside = range(begin + 1, end)
        if not stops.isdisjoint(inside) or first.turns * sum(counts[begin:end]) > MOST_STEPS:
            stops.add(begin)
        else:
            counts[begin:end] = [count * first.turns for count in counts[begin:end]]
    return frozenset(stops)


class Segment(NamedTuple):
    """A graph, where Python goes on behind it, and where pointers are then."""

    graph: Any
    end: int
    pointers: bytes


class Segments:
    """The graphs of a plan for one set of addresses; its length is how many there are.

    `whole` is that of all steps, where there is such a one.
    """

    def __init__(self) -> None:
        self.whole: Any = None
        self.known: dict[Any, Segment | int] = {}  # or how often it was met
        self.is_first = True

    def __len__(self) -> int:
        return sum(isinstance(each, Segment) for each in self.known.values())


def run_segments(
    runner: StepRunner,
    segments: Segments,
    stops: frozenset[int],
    capturing: Capture,
    stream: Any,
) -> None:
    """Ask a stream for all steps, as graphs where they are known, or are worth it now.

    CaptureError where one cannot be captured or launched; all has been asked for nevertheless.
    """
    at, failed = 0, None
    while at < len(runner.steps):
        if at in stops:
            at = runner.ask_for(at, stream.ptr)
            continue
        ask = partial(runner.ask, at=at, stops=stops)
        state = runner.state
        try:
            segment = None if failed else _segment(runner, segments, at, ask, stops, capturing)
            if segment is None:
                at = ask(stream.ptr)
                continue
            _launch(segment.graph, stream)
            runner.pointers, at = segment.pointers, segment.end
        except CaptureError as error:
            failed, runner.state = error, state
            at = ask(stream.ptr)
    segments.is_first = False
    if failed is not None:
        raise failed


def _segment(
    runner: StepRunner,
    segments: Segments,
    at: int,
    ask: Callable[[int], int],
    stops: frozenset[int],
    capturing: Capture,
) -> Segment | None:
    """The segment that begins here, captured where that is worth it; else None.

    A single step is not, unless it is all.
    """
    if at + 1 in stops or 0 < at == len(runner.steps) - 1:
        return None
    key = at, runner.pointers
    found = segments.known.get(key, 0)
    if isinstance(found, Segment):
        return found
    if found < (MANY if segments.is_first else 1):
        if found or len(segments.known) < MOST_SEGMENTS:
            segments.known[key] = found + 1
        return None
    ends: list[int] = []
    state = runner.state
    graph = capturing.graph(
        lambda stream: runner.make_ready(stream, at, stops),
        lambda stream: ends.append(ask(stream.ptr)),
    )
    made = segments.known[key] = Segment(graph, ends[0], runner.pointers)
    runner.state = state
    if at == 0 and ends[0] == len(runner.steps):
        segments.whole = graph
    return made


def _launch(graph: Any, stream: Any) -> None:
    try:
        graph.launch(stream)
    except Exception as cause:
        raise CaptureError(f"{told(cause)} (when it was launched)") from cause
