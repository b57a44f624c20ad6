"""Compiles generated CUDA C with NVRTC, which needs neither a GPU nor a driver.

`compile_cubin` gives the machine code for an architecture with the registers, spills and shared
memory of each kernel; `sass` disassembles it. NVRTC is reached through CuPy's bindings; the wheels
are optional, so tests skip with `available()`'s or `disassembler_available()`'s reason.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

# Not CuPy's own, which flush denormals to zero. Contraction is the compiler's default; said here
# since results depend on it. No include paths: generated code includes nothing.
OPTIONS = ("--std=c++17", "-ftz=false", "-fmad=true", "-prec-div=true", "-prec-sqrt=true")
_FILE = "kernel.cu"


class Usage(NamedTuple):
    """What a thread of a kernel needs, shared memory apart, which is its block's."""

    registers: int
    spill_bytes: int  # stored and loaded
    stack_bytes: int
    shared_bytes: int  # the static part


class Cubin(NamedTuple):
    """Machine code for one architecture, what each of its kernels uses, and the compiler's log."""

    data: bytes
    arch: str
    kernels: Mapping[str, Usage]
    log: str


def available() -> str | None:
    """None where NVRTC can compile, else the reason why it cannot."""
    found = _nvrtc()
    return found if isinstance(found, str) else None


@cache
def _nvrtc() -> Any:
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


def compile_cubin(source: str, arch: str, options: Sequence[str] = ()) -> Cubin:
    """Compile CUDA C for an architecture such as "sm_90".

    Raises RuntimeError where NVRTC is missing, and for a text that does not compile: with NVRTC's
    log and the numbered lines around its first error.
    """
    nvrtc = _nvrtc()
    if isinstance(nvrtc, str):
        raise RuntimeError(nvrtc)
    flags = (*OPTIONS, f"-arch={arch}", "--ptxas-options=-v", *options)
    program = nvrtc.createProgram(source, _FILE, (), ())
    try:
        nvrtc.compileProgram(program, flags)
        log = nvrtc.getProgramLog(program)
        # The bindings take the last byte of the code for the end of a string.
        return Cubin(nvrtc.getCUBIN(program) + b"\0", arch, _usages(log), log)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise RuntimeError(_report(str(error), log, source)) from None
    finally:
        nvrtc.destroyProgram(program)


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_STACK = r"Function properties for {}\n.*?(\d+) bytes stack frame, "
_SPILLS = r"(\d+) bytes spill stores, (\d+) bytes spill loads"
_REGISTERS = re.compile(r"Used (\d+) registers([^\n]*)")
_SHARED = re.compile(r"(\d+) bytes smem")


def _usages(log: str) -> dict[str, Usage]:
    _, *parts = _ENTRY.split(log)
    return {name: _usage(name, text) for name, text in zip(parts[::2], parts[1::2])}


def _usage(name: str, text: str) -> Usage:
    """Read from what the log tells behind "Compiling entry function"."""
    frame = re.search(_STACK.format(name) + _SPILLS, text)
    used = _REGISTERS.search(text)
    if not frame or not used:
        raise RuntimeError(f"the log does not tell what {name} uses:\n{text}")
    stack, stores, loads = map(int, frame.groups())
    shared = _SHARED.search(used[2])
    return Usage(int(used[1]), stores + loads, stack, int(shared[1]) if shared else 0)


def _report(error: str, log: str, source: str) -> str:
    found = re.search(rf"^{re.escape(_FILE)}\((\d+)\): (?:catastrophic )?error", log, re.MULTILINE)
    excerpt = f"\n{_numbered(source, int(found[1]))}" if found else ""
    return f"{error}\n{log.strip()}{excerpt}"


def _numbered(source: str, line: int, around: int = 3) -> str:
    """The lines around one, which is marked."""
    numbered = list(enumerate(source.splitlines(), 1))[max(line - 1 - around, 0) : line + around]
    return "\n".join(f"{'>' if n == line else ' '} {n:4} {text}" for n, text in numbered)


# -- disassembly ---------------------------------------------------------------------------------

_DISASSEMBLERS = (("nvdisasm", ("-c",)), ("cuobjdump", ("-sass",)))


@cache
def _disassembler() -> tuple[str, ...] | None:
    """The command of the first tool found, in the wheels or else on the path."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    for name, options in _DISASSEMBLERS:
        in_wheels = [str(path) for wheel in wheels for path in wheel.glob(f"*/bin/{name}")]
        tool = next(iter(in_wheels), None) or shutil.which(name)
        if tool:
            return (tool, *options)
    return None


def disassembler_available() -> str | None:
    """None where `sass` works, else the reason why it does not."""
    return None if _disassembler() else "neither nvdisasm nor cuobjdump is installed"


def sass(cubin: Cubin) -> str:
    """The machine code in words. RuntimeError where no disassembler is installed."""
    command = _disassembler()
    if command is None:
        raise RuntimeError(disassembler_available())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin.data)
        done = subprocess.run([*command, str(path)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr}")
    return done.stdout
