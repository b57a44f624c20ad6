"""Compiles CUDA C for the CPU with g++: several texts at a time, and each of them once.

A text costs the compiler less than what stands in front of all of them, the header and the device
library. So of these it sees only what a text uses, and texts that are wanted together are one file,
each in a namespace of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from .declarations import Declaration, declarations, needed

Sanitizer = Literal["address", "thread"]

AT_ONCE = 16
"""Texts per file: larger files save hardly more."""

_HERE = Path(__file__).parent
_HEADER = _HERE / "cuda_on_cpu.h"
_RUNTIME = _HERE / "cuda_on_cpu.cpp"
_FLAGS = (
    *("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"),
    *("-fno-strict-aliasing", "-fno-math-errno", "-fwrapv", "-ffp-contract=off", "-w"),
    # Errors in what the header's macros make are told of the kernel's line.
    *("-ftrack-macro-expansion=0", "-fmax-errors=5"),
)
# Kernels run for less time than the compiler would take to make them faster. Python has loaded the
# libraries of C and of mathematics; to look them up again takes longer than to compile a kernel.
_QUICK = ("-O0", "-shared", "-nostdlib")
_LIBRARIES = ("-lgcc",)
_SANITIZER_FLAGS = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-wrapv"),
    "thread": ("-fsanitize=thread",),
}


class Text(NamedTuple):
    """CUDA C as `shim` has translated it, and its kernels."""

    front: str  # what others have too, such as the device library, or nothing
    text: str  # behind that
    kernels: tuple[str, ...]


class Built(NamedTuple):
    """A library for the CPU; the kernels of a text have names that begin with `prefix`."""

    path: Path
    prefix: str


def compiler() -> str:
    """g++, or the one that TGRAPH_TEST_CXX names."""
    return os.environ.get("TGRAPH_TEST_CXX", "g++")


# -- files ---------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where results are kept, for all processes and runs of the user."""
    folder = Path(tempfile.gettempdir()) / f"tgraph-cuda-on-cpu-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@cache
def _version(compiler: str) -> str:
    command = [compiler, "--version"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def build(text: str, command: Sequence[str], suffix: str) -> Path:
    """What `command` makes of the text, from the cache where it is there.

    The key holds everything that the result depends on. The file gets its name when it is complete,
    so that processes which build the same do not disturb each other.
    """
    key = _key(text, *command, _version(command[0]), _header())
    path = cache_folder() / (key + suffix)
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        built = Path(folder) / path.name
        run = [*command, "-o", str(built)]
        done = subprocess.run(run, input=text, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the C++ compiler refused the kernels:\n{done.stderr}")
        built.replace(path)
    return path


def runtime(sanitize: Sanitizer | None) -> Path:
    """What runs the threads, which each library has."""
    defines = (f"-DTG_ASAN={int(sanitize == 'address')}", f"-DTG_TSAN={int(sanitize == 'thread')}")
    command = (compiler(), *_FLAGS, "-g1", "-O2", *defines, f"-I{_HERE}", "-x", "c++", "-c", "-")
    return build(f'#line 1 "{_RUNTIME.name}"\n{_RUNTIME.read_text()}', command, ".o")


# -- one text ------------------------------------------------------------------------------------


def sanitized_library(text: Text, sanitize: Sanitizer) -> Path:
    """A library with a sanitizer, whose reports tell lines."""
    flags = (*_FLAGS, "-O1", "-g1", *_SANITIZER_FLAGS[sanitize], "-shared")
    return _whole(text, flags, str(runtime(sanitize)))


def _whole(text: Text, flags: Sequence[str], *files: str) -> Path:
    """A library of a text behind all that there is in front of it."""
    command = (compiler(), *flags, "-include", str(_HEADER), *files, "-x", "c++", "-")
    ends = "".join(f"TG_KERNEL({name})\n" for name in text.kernels)
    whole = f'#line 1 "kernel.cu"\n{text.front}{text.text}\n#line 1 "ends"\n{ends}'
    return build(whole, command, ".so")


# -- several texts -------------------------------------------------------------------------------


def libraries(texts: Sequence[Text]) -> list[Built]:
    """The libraries of texts. What was not there before is compiled, `AT_ONCE` in a file.

    RuntimeError with the compiler's messages where a text does not compile.
    """
    entries = [_entry(each) for each in texts]
    new = {entry: text for entry, text in zip(entries, texts) if _read(entry) is None}
    for front in dict.fromkeys(each.front for each in new.values()):
        group = [each for each in new.items() if each[1].front == front]
        size = AT_ONCE if front else 1
        for at in range(0, len(group), size):
            _build_together(front, dict(group[at : at + size]))
    found = [_read(entry) for entry in entries]
    return [each for each in found if each is not None]


def _entry(text: Text) -> Path:
    """The file that tells where the library of a text is."""
    key = _key(
        text.front + text.text,
        *_FLAGS,
        *_QUICK,
        _version(compiler()),
        _header(),
        _RUNTIME.read_text(),
    )
    return cache_folder() / f"{key}.entry"


def _read(entry: Path) -> Built | None:
    """What an entry tells, where all of it is still there."""
    if not entry.exists():
        return None
    name, prefix = entry.read_text().split(" ")
    path = entry.parent / name
    return Built(path, prefix) if path.exists() else None


def _write(entry: Path, built: Built) -> None:
    with tempfile.NamedTemporaryFile("w", dir=entry.parent, delete=False) as file:
        file.write(f"{built.path.name} {built.prefix}")
    os.replace(file.name, entry)


def _build_together(front: str, texts: dict[Path, Text]) -> None:
    """One library of texts that have the same in front of them, or one of each if that fails."""
    pieces = [_in_namespace(f"t{at}_", each) for at, each in enumerate(texts.values())]
    used = "".join(pieces)
    files = (str(runtime(None)), "-x", "c++", "-", "-x", "none", *_LIBRARIES)
    command = (compiler(), *_FLAGS, *_QUICK, *files)
    try:
        path = build(needed(_in_front(front), used) + used, command, ".so")
        found = {entry: Built(path, f"t{at}_") for at, entry in enumerate(texts)}
    except RuntimeError:  # whose messages would be of another text
        flags, file = (*_FLAGS, "-O0", "-shared"), str(runtime(None))
        found = {entry: Built(_whole(each, flags, file), "") for entry, each in texts.items()}
    for entry, built in found.items():
        _write(entry, built)


def _in_namespace(prefix: str, text: Text) -> str:
    body = text.text
    if text.kernels:
        names = re.compile(rf"\b(?:{'|'.join(text.kernels)})\b")
        body = names.sub(lambda found: prefix + found[0], body)
    ends = "".join(f"TG_KERNEL({prefix}{name})\n" for name in text.kernels)
    line = text.front.count("\n") + 1
    head, tail = f'namespace {prefix} {{\n#line {line} "kernel.cu"\n', '\n#line 1 "ends"\n'
    return f"{head}{body}{tail}{ends}}}\n"


@cache
def _header() -> str:
    return _HEADER.read_text()


@cache
def _in_front(front: str) -> list[Declaration]:
    """The declarations of the header and of what stands in front of kernels."""
    text = f'#line 1 "header"\n{_header()}\n#line 1 "kernel.cu"\n{front}'
    command = (compiler(), "-std=c++17", "-E", "-dD", "-x", "c++", "-")
    expanded = build(text, command, ".ii").read_text().split('# 1 "header"\n', 1)[1]
    return declarations(re.sub(r"^# \d+ .*\n", "", expanded, flags=re.MULTILINE))
