"""What of a plan is captured as CUDA graphs: segments, in which Python decides nothing.

A segment begins where Python has decided what comes next, and ends where it has to do something
again: run a function or a library's routine, or decide by a value of the device. It goes through
jumps, and through all turns of a loop whose number of turns is known, unless there are too many.
What it is depends on where it begins and on where the pointers of loops are then: these are in one
of two places, so that two graphs serve all turns of a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..plan_steps import (
    BranchStep,
    CudaStep,
    JumpStep,
    PythonStep,
    RoutineStep,
    Step,
    TurnsStep,
)
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
    return weighed(steps)[0]


def weighed(steps: Sequence[Step | CudaStep]) -> tuple[frozenset[int], int]:
    """`stops_of`, and how many steps there are with all turns of loops that are in graphs."""
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
    return frozenset(stops), sum(counts)


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
        # By where they begin, and where pointers are then; or how often one was met.
        self.known: dict[tuple[int, bytes], Segment | int] = {}
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
        pointers = runner.pointers
        segment = segments.known.get((at, pointers), 0)
        try:
            is_alone = at + 1 in stops or 0 < at == len(runner.steps) - 1  # a single step
            is_worth = not is_alone and failed is None
            if isinstance(segment, int) and is_worth and _is_worth(segments, (at, pointers)):
                segment = _captured(runner, segments, at, stops, capturing)
            if isinstance(segment, int) or failed is not None:
                at = runner.ask(stream.ptr, at, stops)
                continue
            _launch(segment.graph, stream)
            runner.pointers, at = segment.pointers, segment.end
        except CaptureError as error:
            failed = error
            at = runner.ask(stream.ptr, at, stops)
    segments.is_first = False
    if failed is not None:
        raise failed


def _is_worth(segments: Segments, key: tuple[int, bytes]) -> bool:
    """Whether to capture a segment that is not known; else it is noted that it was met."""
    met = segments.known.get(key, 0)
    assert isinstance(met, int)
    if met >= (MANY if segments.is_first else 1):
        return True
    if met or len(segments.known) < MOST_SEGMENTS:
        segments.known[key] = met + 1
    return False


def _captured(
    runner: StepRunner, segments: Segments, at: int, stops: frozenset[int], capturing: Capture
) -> Segment:
    """The segment that begins here, as a graph; nothing has run."""
    ends: list[int] = []
    pointers, left = runner.pointers, dict(runner.left)
    try:
        graph = capturing.graph(
            lambda stream: runner.make_ready(stream, at, stops),
            lambda stream: ends.append(runner.ask(stream.ptr, at, stops)),
        )
        made = segments.known[at, pointers] = Segment(graph, ends[0], runner.pointers)
    finally:
        runner.pointers, runner.left = pointers, left
    if at == 0 and ends[0] == len(runner.steps):
        segments.whole = graph
    return made


def _launch(graph: Any, stream: Any) -> None:
    try:
        graph.launch(stream)
    except Exception as cause:
        raise CaptureError(f"{told(cause)} (when it was launched)") from cause
