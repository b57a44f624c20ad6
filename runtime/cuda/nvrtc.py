"""CUDA C in, machine code out: NVRTC through CuPy's bindings, which need neither GPU nor driver.

Code is kept on disk by (text, architecture, options), beside that of the CPU, so that a second
process starts without NVRTC. CuPy is imported at the first text that is not there.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import cache as remembered
from typing import Any

from .. import cache
from ..records import NamedTuple

# Not CuPy's own, which flush denormals to zero. Contraction is the compiler's default; said here
# since results of reductions depend on it; other sums are written as __fadd_rn. No include paths:
# generated code includes nothing.
OPTIONS = ("--std=c++17", "-ftz=false", "-fmad=true", "-prec-div=true", "-prec-sqrt=true")
INSTALL = "pip install 'tgraph[nvrtc]'"
_FILE = "kernel.cu"


class Compiled(NamedTuple):
    """Machine code, and what the compiler said about it."""

    data: bytes
    log: str


def why_unavailable() -> str | None:
    """None where NVRTC can compile, else the reason why it cannot."""
    found = _bindings()
    return found if isinstance(found, str) else None


def compile_cubin(source: str, arch: str) -> bytes:
    """The machine code of CUDA C for an architecture such as "sm_90", from the disk cache or NVRTC.

    Raises RuntimeError where NVRTC is needed and missing, and for a text that does not compile:
    with NVRTC's messages and the numbered lines around its first error.
    """
    key = f"cubin {arch} {' '.join(OPTIONS)}\n{without_comments(source)}"
    data = cache.get(key)
    if data is None:
        data = compile_with_log(source, arch).data
        cache.put(key, data)
    return data


def without_comments(source: str) -> str:
    """The code alone: comments name the user's lines, which move without changing any of it."""
    return re.sub(r"^ *//.*\n", "", source, flags=re.MULTILINE)


def compile_with_log(source: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """As `compile_cubin`, always by NVRTC, with further options."""
    nvrtc = _bindings()
    if isinstance(nvrtc, str):
        raise RuntimeError(f"{nvrtc}; {INSTALL} brings it")
    program = nvrtc.createProgram(source, _FILE, (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"-arch={arch}", *options))
        # The bindings take the last byte of the code for the end of a string.
        return Compiled(nvrtc.getCUBIN(program) + b"\0", nvrtc.getProgramLog(program))
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise RuntimeError(_report(str(error), log, source)) from None
    finally:
        nvrtc.destroyProgram(program)


@remembered
def _bindings() -> Any:
    """CuPy's bindings, or the reason why they do not work."""
    try:
        with warnings.catch_warnings():
            # Wheels bring NVRTC without a toolkit, whose path CuPy misses.
            warnings.filterwarnings("ignore", message="CUDA path could not be detected")
            from cupy.cuda import nvrtc
    except ImportError as error:
        return f"NVRTC is reached through CuPy, which cannot be imported: {_first_line(error)}"
    try:
        nvrtc.getVersion()
    except (ImportError, OSError, RuntimeError) as error:
        return f"CuPy does not find NVRTC: {_first_line(error)}"
    return nvrtc


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip("= ")]
    return lines[0].strip() if lines else type(error).__name__


def _report(error: str, log: str, source: str) -> str:
    found = re.search(rf"^{re.escape(_FILE)}\((\d+)\): (?:catastrophic )?error", log, re.MULTILINE)
    excerpt = f"\n{_numbered(source, int(found[1]))}" if found else ""
    return f"{error}\n{log.strip()}{excerpt}"


def _numbered(source: str, line: int, around: int = 3) -> str:
    """The lines around one, which is marked."""
    numbered = list(enumerate(source.splitlines(), 1))[max(line - 1 - around, 0) : line + around]
    return "\n".join(f"{'>' if n == line else ' '} {n:4} {text}" for n, text in numbered)
