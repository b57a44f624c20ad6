"""What users ask of a trace: to see one, to be left out of it, and to be asked at each call."""

from .api import (
    TraceError,
    host,
    host_constant,
    host_scalar,
    is_tracing,
    program,
    suspend_tracing,
    trace,
)
from .host_calls import host_call

__all__ = [
    "TraceError", "host", "host_call", "host_constant", "host_scalar", "is_tracing", "program",
    "suspend_tracing", "trace",
]  # fmt: skip
