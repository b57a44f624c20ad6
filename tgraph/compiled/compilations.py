"""How often a function was compiled, and why: records, what tests assert of them, a warning."""

from __future__ import annotations

import functools
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..core.provenance import is_internal
from ..core.trace_state import RecompileWarning
from ..runtime.records import record

MANY_PLANS = 8
"""So many plans of one function are warned of."""


@record()
class CompileRecord:
    """One compilation: why it was needed and how long its parts took, in seconds.

    `compile_seconds` is all but the trace, `optimize_seconds` and `codegen_seconds` are in it. A
    backward plan is made when it is first needed and not counted.
    """

    reason: str
    trace_seconds: float
    compile_seconds: float
    optimize_seconds: float
    codegen_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.reason} (trace {self.trace_seconds:.3f} s, "
            f"optimize {self.optimize_seconds:.3f} s, codegen {self.codegen_seconds:.3f} s)"
        )


def assert_compiled(name: str, records: Sequence[CompileRecord], count: int, when: str) -> None:
    """AssertionError, with the reason for each, unless there are `count` records."""
    if len(records) == count:
        return
    times = {1: "once"}.get(len(records), f"{len(records)} times")
    wanted = {1: "once"}.get(count, f"{count} times")
    reasons = "".join(f"\n  {each.reason}" for each in records)
    raise AssertionError(
        f"'{name}' was compiled {times} {when}, not {wanted}{':' if reasons else ''}{reasons}"
    )


def warn_of_many(name: str, records: Sequence[CompileRecord]) -> None:
    """Name what changes most often, and the way out."""
    counts = Counter(_subject(each.reason) for each in records[1:])
    subject, count = counts.most_common(1)[0]
    warnings.warn(
        f"'{name}' was compiled {len(records)} times, {count} of them for this "
        f"reason: {subject} (last: {records[-1].reason}). {_way_out(subject)} "
        "`compiles` of the compiled function lists all reasons.",
        RecompileWarning,
        stacklevel=_user_level(),
    )


@functools.cache
def warn_once(message: str) -> None:
    """A warning at the user's line, the first time only."""
    warnings.warn(message, RuntimeWarning, stacklevel=_user_level())


def _subject(reason: str) -> str:
    """A reason without the values that changed."""
    return reason.partition("; ")[0].partition(": ")[0]


def _way_out(subject: str) -> str:
    if "shape" in subject:
        return (
            "Name the axes whose size varies in compile(..., dynamic={...}) (explain() says what "
            "fixes one), pad tensors to a few sizes, or compile a function for each."
        )
    if "another object" in subject or "structure" in subject:
        return "Make the object once, outside of the function, and keep it."
    return "Pass what changes as a tensor, or keep it out of the compiled function."


def _user_level() -> int:
    """How many callers up the user's code stands, for a warning of the function that asks."""
    frame: Any = sys._getframe(1)
    level = 1
    while frame.f_back is not None and is_internal(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level
