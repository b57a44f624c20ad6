"""Compiles generated CUDA C with NVRTC, which needs neither a GPU nor a driver.

`compile_cubin` gives the machine code for an architecture, as the runtime compiles it, with the
registers, spills and shared memory of each kernel; `sass` disassembles it. The wheels are optional,
so tests skip with `available()`'s or `disassembler_available()`'s reason.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tgraph.runtime.cuda import nvrtc


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


def compile_cubin(source: str, arch: str, options: Sequence[str] = ()) -> Cubin:
    """Compile CUDA C for an architecture such as "sm_90", as plans do, and read the log."""
    compiled = nvrtc.compile_with_log(source, arch, ("--ptxas-options=-v", *options))
    return Cubin(compiled.data, arch, _usages(compiled.log), compiled.log)


available = nvrtc.why_unavailable


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
