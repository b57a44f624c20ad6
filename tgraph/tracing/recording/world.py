"""What a traced function cannot ask the world for without a word: randomness, the clock, files.

Such a call would be made once, while the function is traced, and its result be fixed in the plan.
Random numbers of others are refused; the clock, files and other processes are warned of, once per
line.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import ModuleType
from typing import Any

from ...core.provenance import user_site
from ...core.trace_state import TraceError

ENVIRON = os.environ


_SEEN: dict[str, dict[Any, Any]] = {}  # file -> what was warned of there


class TraceWarning(UserWarning):
    """Something happens, or is read, only while a function is traced."""


_RANDOM = frozenset({
    "random", "numpy.random", "numpy.random.mtrand", "numpy.random._generator",
    "numpy.random._mt19937", "numpy.random._pcg64", "secrets", "uuid", "cupy.random",
    "cupy.random._generator", "cupy.random._sample", "cupy.random._distributions",
})  # fmt: skip
_CLOCK = frozenset({
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
    "process_time", "process_time_ns", "thread_time", "thread_time_ns", "sleep", "localtime",
    "gmtime", "ctime", "asctime", "strftime", "now", "utcnow", "today",
})  # fmt: skip
_FILES = {
    "io": ("open", "read", "readline", "readlines", "open_code"),
    "_io": ("open", "read", "readline", "readlines", "open_code"),
    "builtins": ("open", "input"),
    "pathlib": ("open", "read_text", "read_bytes", "exists", "is_file", "stat", "iterdir", "glob"),
    "numpy": ("load", "loadtxt", "fromfile", "genfromtxt", "memmap"),
    "os": ("listdir", "stat", "getcwd", "urandom", "getpid", "popen", "system", "scandir", "walk"),
    "posix": ("listdir", "stat", "getcwd", "urandom", "getpid", "system", "scandir"),
    "genericpath": ("exists", "isfile", "isdir", "getmtime", "getsize"),
    "subprocess": ("run", "check_output", "call", "check_call", "Popen"),
    "tgraph.files": ("load",),
}


def check(function: Any, made_inside: bool = False) -> None:
    """TraceError or a warning where calling `function` asks the world.

    `made_inside`: the object whose method it is was made by the traced function itself.
    """
    module, name = _module_of(function), getattr(function, "__name__", "")
    if module in _RANDOM:
        if not made_inside and not _is_seeded_maker(function, name):
            _refuse(function, name)
    elif module in ("time", "datetime"):
        if name in _CLOCK:
            _warn(name, "what it gives is fixed in the plan")
    elif name in _FILES.get(module, ()):
        _warn(name, "what it gives is fixed in the plan")


def _module_of(function: Any) -> str:
    named = getattr(function, "__module__", None)
    if isinstance(named, str):
        return named
    owner = getattr(function, "__self__", None)
    if owner is not None and not issubclass(type(owner), ModuleType):
        kind = owner if issubclass(type(owner), type) else type(owner)
        return str(kind.__module__)
    return ""


def _is_seeded_maker(function: Any, name: str) -> bool:
    """A class or function that makes a generator: what is drawn from it tells."""
    return isinstance(function, type) or name in ("default_rng", "Generator", "UUID")


def _refuse(function: Any, name: str) -> None:
    raise TraceError(
        f"a compiled function draws random numbers by {name}(), at {user_site()}: they would be "
        "the same ones at every call. Use tg.rand, tg.randn, tg.randint or the like, or draw "
        "outside and pass the numbers as arguments."
    )


def _warn(name: str, what: str) -> None:
    site = user_site()
    seen = _SEEN.setdefault(site.code.co_filename, {})
    warnings.warn_explicit(
        TraceWarning(
            f"{name}() is called while a compiled function is traced, not at every call: {what}. "
            "Pass its result as an argument, or give it to tg.host(), which calls it each time."
        ),
        None,
        site.code.co_filename,
        site.line,
        registry=seen,
    )


def is_shared_generator(owner: Any) -> bool:
    """Whether a generator of random numbers is the one that functions of a module draw from."""
    pythons, numpys = (sys.modules.get(name) for name in ("random", "numpy.random.mtrand"))
    own = getattr(getattr(pythons, "random", None), "__self__", None)
    shared = (own, getattr(numpys, "_rand", None))
    return issubclass(type(owner), ModuleType) or any(owner is each for each in shared)
