"""What a traced function cannot ask the world for: what is something else each time.

Such a call would be made once, while the function is traced, and its result be fixed in the plan.
Random numbers of others, generators without a seed, the clock and names of temporary files are
refused. What is the same most often, files and other processes, is warned of, once per line.
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
    "numpy.random._mt19937", "numpy.random._pcg64", "numpy.random._philox",
    "numpy.random._sfc64", "numpy.random.bit_generator", "secrets", "uuid", "cupy.random",
    "cupy.random._generator", "cupy.random._sample", "cupy.random._distributions",
})  # fmt: skip
_CLOCK = frozenset({
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
    "process_time", "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime",
    "clock_gettime_ns",
})  # fmt: skip
_CLOCK_UNLESS_GIVEN = {"localtime": 1, "gmtime": 1, "ctime": 1, "asctime": 1, "strftime": 2}
"""Functions of `time` that read the clock where they are called with fewer arguments."""
_TEMPORARY = frozenset({
    "mkdtemp", "mkstemp", "mktemp", "NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory",
    "SpooledTemporaryFile",
})  # fmt: skip
_FILES = {
    "io": ("open", "read", "readline", "readlines", "open_code"),
    "_io": ("open", "read", "readline", "readlines", "open_code"),
    "builtins": ("open", "input"),
    "pathlib": ("open", "read_text", "read_bytes", "exists", "is_file", "stat", "iterdir", "glob"),
    "numpy": ("load", "loadtxt", "fromfile", "genfromtxt", "memmap"),
    "os": ("listdir", "stat", "getcwd", "getpid", "popen", "system", "scandir", "walk"),
    "posix": ("listdir", "stat", "getcwd", "getpid", "system", "scandir"),
    "genericpath": ("exists", "isfile", "isdir", "getmtime", "getsize"),
    "subprocess": ("run", "check_output", "call", "check_call", "Popen"),
    "tgraph.files": ("load",),
    "time": ("sleep",),
}


def check(
    function: Any, arguments: tuple[Any, ...] | None = None, made_inside: bool = False
) -> None:
    """TraceError or a warning where calling `function` asks the world.

    `arguments`: what it is called with, None where others may call it. `made_inside`: the object
    whose method it is was made by the traced function itself.
    """
    module, name = _module_of(function), getattr(function, "__name__", "")
    if module in _RANDOM:
        if _makes_generator(function, name):
            if arguments is not None and not _has_seed(name, arguments):
                _refuse(f"makes a generator of random numbers without a seed, by {name}()", name)
        elif not made_inside:
            _refuse(f"draws random numbers by {name}()", name)
    elif name == "urandom" and module in ("os", "posix"):
        _refuse(f"draws random numbers by {name}()", name)
    elif module == "tempfile" and name in _TEMPORARY:
        _refuse(f"makes a temporary file by {name}()", name)
    elif _reads_clock(module, name, arguments):
        _refuse(f"reads the clock by {name}()", name)
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


def _reads_clock(module: str, name: str, arguments: tuple[Any, ...] | None) -> bool:
    if module == "datetime":  # others of its functions are of a time that is given
        return name in ("now", "utcnow", "today")
    fewest = _CLOCK_UNLESS_GIVEN.get(name, 0) if arguments is not None else 0
    return module == "time" and (name in _CLOCK or len(arguments or ()) < fewest)


def _makes_generator(function: Any, name: str) -> bool:
    """Whether it makes a generator of a seed, or a number of a text, as UUID does."""
    return isinstance(function, type) or name == "default_rng"


def _has_seed(name: str, arguments: tuple[Any, ...]) -> bool:
    return name != "SystemRandom" and any(each is not None for each in arguments)


def _refuse(what: str, name: str) -> None:
    way = "make tensors by tg.rand, tg.randn, tg.randint or the like" if "random" in what else ""
    raise TraceError(
        f"a compiled function {what}, at {user_site()}: the result would be the same one at every "
        f"call. Call {name}() outside and pass its result as an argument, give it to tg.host(), "
        f"which calls it each time{', or ' + way if way else ''}."
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
