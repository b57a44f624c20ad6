"""A cublasLt without a GPU, for tests: `fake_cublas_lt.cpp`, whose device memory is the host's.

`install(monkeypatch)` puts it in the library's place; the runtime then calls it as it would call
the real one. It says what it was asked in `log()`, and `fail_next` orders a failure.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tgraph.runtime.cuda import cublas_lt

from . import host_compiler, shim

_SOURCE = Path(__file__).with_suffix(".cpp")
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-Wall", "-Wextra")
ENUMS: tuple[type[IntEnum], ...] = (
    cublas_lt.DataType,
    cublas_lt.ComputeType,
    cublas_lt.Operation,
    cublas_lt.Status,
    cublas_lt.LayoutAttribute,
    cublas_lt.MatmulAttribute,
    cublas_lt.PreferenceAttribute,
    cublas_lt.ReductionScheme,
    cublas_lt.Epilogue,
)


def constants() -> Iterator[tuple[str, int]]:
    """The numbers that the runtime uses, under the names of NVIDIA's headers."""
    for enum in ENUMS:
        prefix = (enum.__doc__ or "").partition("...")[0]
        yield from ((prefix + member.name, int(member)) for member in enum)


class Log(ctypes.Structure):
    """What the library was asked: counts, then the last product, then the last choice."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("live", "heuristics", "matmuls")),
        *((name, ctypes.c_int64) for name in ("compute", "scale", "epilogue", "batch")),
        *((name, ctypes.c_int64) for name in ("reductions", "workspace_limit")),
        ("alignment", ctypes.c_int64 * 4),
        ("workspace", ctypes.c_int64),
        ("fail_status", ctypes.c_int64),
        ("fail_function", ctypes.c_char * 64),
    )


class Copy:
    """A description as it was when this was made, to be given to the library."""

    def __init__(self, cdll: ctypes.CDLL, pointer: int) -> None:
        self._cdll = cdll
        cdll.fake_copy.restype = ctypes.c_void_p
        self._as_parameter_ = ctypes.c_void_p(cdll.fake_copy(ctypes.c_void_p(pointer)))

    def __del__(self) -> None:
        self._cdll.fake_forget(self._as_parameter_)


class FakeCublasLt(cublas_lt.Library):
    """The library, as the runtime loads it."""

    def as_it_is(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Arguments of `cublasLtMatmul` for a call that runs later.

        Descriptions may change and go as soon as the real one returns.
        """
        described = (1, 4, 6, 9, 11)
        return [
            Copy(self.cdll, each) if at in described else each for at, each in enumerate(arguments)
        ]

    def log(self) -> Any:
        """What it was asked; the fields are those of `Log`, and change with each call."""
        return Log.in_dll(self.cdll, "fake_log")

    def fail_next(self, function: str, status: int) -> None:
        """Let the next call of a function return `status`."""
        log = self.log()
        log.fail_status, log.fail_function = int(status), function.encode()


available = shim.available


@cache
def _built() -> Path:
    names = "\n".join(f"  {name} = {value}," for name, value in constants())
    statuses = "".join(
        f'{{{int(each)}, "CUBLAS_STATUS_{each.name}"}}, ' for each in cublas_lt.Status
    )
    text = (
        f"enum {{\n{names}\n}};\n#include <map>\n"
        f"static const std::map<int, const char*> status_names = {{{statuses}}};\n"
        f'#line 1 "{_SOURCE.name}"\n{_SOURCE.read_text()}'
    )
    return host_compiler.build(text, (host_compiler.compiler(), *_FLAGS, "-x", "c++", "-"), ".so")


def library() -> FakeCublasLt:
    """The fake, compiled where that was not done before."""
    return FakeCublasLt(str(_built()))


def install(monkeypatch: pytest.MonkeyPatch) -> FakeCublasLt:
    """Let the runtime use the fake for the rest of the test."""
    fake = library()
    monkeypatch.setattr(cublas_lt, "_loaded", fake)
    return fake


class HostMemory:
    """Bytes of the host, aligned as device memory is, and full of ones (NaN as floats)."""

    def __init__(self, nbytes: int) -> None:
        whole = np.full(nbytes + 256, 0xFF, np.uint8)
        start = -whole.ctypes.data % 256
        self.bytes = whole[start : start + nbytes]

    @property
    def ptr(self) -> int:
        return int(self.bytes.ctypes.data)


def zero(address: int, nbytes: int, stream: int) -> None:
    """Fill memory with zeros at once, whatever the stream."""
    ctypes.memset(address, 0, nbytes)
