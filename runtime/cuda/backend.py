"""The one door to CuPy, which is imported when CUDA is first asked for."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..records import NamedTuple

INSTALL = "pip install 'tgraph[cuda13]' (or 'tgraph[cuda12]', by the version of the driver)"


class Backend(NamedTuple):
    """The array module, the bindings of the CUDA driver that CuPy brings, and what is kept of both.

    `kept` has what is made once on devices and lives as long as they are used. `libraries` gives
    the bindings of cuBLAS and cuSOLVER.
    """

    cupy: Any
    driver: Any
    kept: dict[Any, Any]
    libraries: Callable[[], tuple[Any, Any]]
    sparse: Any = None
    """What stands in for `cupyx.scipy.sparse`."""


_replaced: Backend | None = None
capturing = threading.RLock()
"""Held while a stream is captured: captures take turns, and nobody waits for a device meanwhile."""


def why_unavailable() -> str | None:
    """None where a CUDA device can be used, else the reason why none can."""
    found = _replaced or _imported()
    if isinstance(found, str):
        return found
    return _without_device() if _replaced is None else None


def cupy() -> Any:
    """The array module CuPy; RuntimeError says what is missing."""
    return _backend().cupy


def driver() -> Any:
    """CuPy's bindings of the CUDA driver."""
    return _backend().driver


def libraries() -> tuple[Any, Any]:
    """CuPy's bindings of cuBLAS and cuSOLVER; ImportError where these libraries are missing."""
    return _backend().libraries()


def sparse() -> Any:
    """The module `cupyx.scipy.sparse`, whose products are cuSPARSE's."""
    if _replaced is not None:
        return _replaced.sparse
    from cupyx.scipy import sparse  # imported here, as CuPy is

    return sparse


def kept() -> dict[Any, Any]:
    """What is made once on devices, by keys of its maker."""
    return _backend().kept


def _backend() -> Backend:
    return _replaced or _found()


@cache
def _found() -> Backend:
    why = why_unavailable()
    if why is not None:
        raise RuntimeError(f"CUDA is not available: {why}")
    found = _imported()
    assert isinstance(found, Backend)
    return found


@contextmanager
def use(
    cupy: Any, driver: Any, libraries: tuple[Any, Any] | None = None, sparse: Any = None
) -> Iterator[None]:
    """Let others stand in for CuPy, the driver and libraries, as tests without a GPU do."""
    global _replaced
    given = _imported_libraries if libraries is None else lambda: libraries
    before, _replaced = _replaced, Backend(cupy, driver, {}, given, sparse)
    try:
        yield
    finally:
        _replaced = before


@cache
def _imported() -> Backend | str:
    try:
        with warnings.catch_warnings():
            # Wheels bring what is needed without a toolkit, whose path CuPy misses.
            warnings.filterwarnings("ignore", message="CUDA path could not be detected")
            import cupy
            from cupy_backends.cuda.api import driver
    except ImportError as error:
        return f"CuPy cannot be imported ({_first_line(error)}); {INSTALL} brings it"
    return Backend(cupy, driver, {}, _imported_libraries)


@cache
def _imported_libraries() -> tuple[Any, Any]:
    # Not with CuPy: it finds cuSOLVER only when that is asked for.
    from cupy_backends.cuda.libs import cublas, cusolver

    return cublas, cusolver


@cache
def _without_device() -> str | None:
    found = _imported()
    assert isinstance(found, Backend)
    runtime = found.cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        return f"the CUDA driver gives no device ({_first_line(error)})"
    return None if count else "this machine has no CUDA device"


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip("= ")]
    return lines[0].strip() if lines else type(error).__name__
