"""`torch.profiler`, of which the marks are here alone: `record_function` marks nothing.

`tgraph.compile(function, measure=True)` and its `explain` tell the time of each kernel; of Python
its own `cProfile` tells.

>>> import tgraph as tg
>>> with tg.profiler.record_function("forward"):
...     x = tg.ones(2)
"""

from __future__ import annotations

import contextlib
import enum
from typing import Any

from .core.absent import attribute_error, not_here

__all__ = [
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]

_WAY_OUT = (
    "tgraph.compile(function, measure=True) and its explain() tell the time of each kernel, "
    "cProfile that of Python"
)
profile = not_here("profiler.profile", _WAY_OUT)
schedule = not_here("profiler.schedule", _WAY_OUT)
tensorboard_trace_handler = not_here("profiler.tensorboard_trace_handler", _WAY_OUT)


class ProfilerActivity(enum.Enum):
    """What a profile tells of: libraries name it in annotations."""

    CPU = 0
    CUDA = 2


class record_function(contextlib.ContextDecorator):
    """A mark in the code, as a `with` statement or a decorator; there is no profile to hold it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def __getattr__(name: str) -> Any:
    raise attribute_error(__name__, name, None if name.startswith("__") else _WAY_OUT)
