"""Runs generated CUDA C on the CPU, without a GPU and without its compiler.

`Library(source)` compiles the text with g++ against `cuda_on_cpu.h`, which declares what CUDA C has
and NVRTC knows without a header; `Library.launch` runs a kernel on NumPy arrays. The threads of a
block take turns in an order that the caller chooses, so a missing barrier shows as a wrong result,
and one that not all threads reach as an error. `run_sanitized` finds accesses out of bounds and
races. Differences from a GPU: floats are not contracted into fused multiply-adds, casts of floats
to integers that do not hold them do not saturate, fast-math functions are exact, denormals stay,
and a block never sees another one that runs beside it. A kernel without an end does not return.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from . import host_compiler
from .host_compiler import Built, Sanitizer, Text

Order = Literal["forward", "backward", "shuffled"]
ORDERS: tuple[Order, ...] = ("forward", "backward", "shuffled")

MOST_THREADS = 1024
MOST_STATIC_SHARED = 48 * 1024
MOST_SHARED = 227 * 1024  # of a block on compute capability 9.0
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_LARGEST_BLOCK = (1024, 1024, 64)

_HERE = Path(__file__).parent
_SANITIZER_LIBRARIES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
# Python does not free everything at its end, and its own allocator would hide ends of arrays.
_SANITIZER_OPTIONS = {
    "PYTHONMALLOC": "malloc",
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:report_signal_unsafe=0",
}


class LaunchError(RuntimeError):
    """A launch that a GPU refuses, or whose outcome CUDA leaves undefined."""


def available() -> str | None:
    """None where kernels can be run, else the reason why not."""
    if not sys.platform.startswith("linux"):
        return f"CUDA C is run on the CPU on Linux only, and this is {sys.platform}"
    compiler = host_compiler.compiler()
    if shutil.which(compiler) is None:
        return f"CUDA C is run on the CPU with a C++ compiler, and {compiler} is not installed"
    return None


# -- the text ------------------------------------------------------------------------------------

_HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_BOUNDS = r"(?:__launch_bounds__\s*\((?P<{}>(?:[^()]|\([^()]*\))*)\)\s*)?"
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+'
    + _BOUNDS.format("before")
    + r"void\s+"
    + _BOUNDS.format("after")
    + r"(?P<name>\w+)\s*(?=\()"
)
_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\([^()]*\)\s*)?"
    r"(?P<type>[\w:<>, ]+?)\s*\b(?P<name>\w+)\s*\[\s*\]\s*;"
)
_PAIRS = {"(": ")", "{": "}"}
_LONG = 4000


class _Kernel(NamedTuple):
    name: str
    most_threads: int
    parameters: str
    body: tuple[int, int]  # where it stands in the text


def _without_comments(source: str) -> str:
    """The text with blanks for comments and strings (but "C"), every line where it was."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0] == '"C"' else re.sub(r"[^\n]", " ", match[0])

    return _HIDDEN.sub(blank, source)


def _closing(text: str, start: int) -> int:
    """The position behind the bracket that closes the one at `start`."""
    opening, closing = text[start], _PAIRS[text[start]]
    depth = 0
    for match in re.compile(rf"[{opening}{closing}]").finditer(text, start):
        depth += 1 if match[0] == opening else -1
        if depth == 0:
            return match.end()
    raise ValueError(f"no {closing} closes the {opening} in line {_line_of(text, start)}")


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _kernels(text: str) -> Iterator[_Kernel]:
    """The kernels that are defined in a text without comments."""
    for match in _KERNEL.finditer(text):
        after = _closing(text, match.end())
        start = after + len(text[after:]) - len(text[after:].lstrip())
        if text[start : start + 1] != "{":
            continue  # a declaration
        bounds = re.match(r"\s*(\d+)", match["before"] or match["after"] or "")
        most = int(bounds[1]) if bounds else MOST_THREADS
        parameters = text[match.end() + 1 : after - 1]
        yield _Kernel(match["name"], most, parameters, (start, _closing(text, start)))


def _translate(source: str) -> tuple[Text, dict[str, _Kernel]]:
    """The text for the C++ compiler, and its kernels by name."""
    text = _without_comments(source)
    include = _INCLUDE.search(text)
    if include:
        line = _line_of(text, include.start())
        raise ValueError(f"line {line}: generated CUDA C has no #include, as NVRTC has no headers")
    text = _DYNAMIC.sub(_dynamic_shared, text)
    kernels = {kernel.name: kernel for kernel in _kernels(text)}
    if not kernels:
        raise ValueError('no kernel found: each is defined as extern "C" __global__ void name(...)')
    pieces, position = [], 0
    for kernel in kernels.values():
        start, end = kernel.body
        pieces += [_no_shared(text, position, start), _static_shared(text[start:end], kernel.name)]
        position = end
    pieces.append(_no_shared(text, position, len(text)))
    front = _front(text)
    return Text(front, "".join(pieces)[len(front) :], tuple(kernels)), kernels


_fronts: list[str] = []


def _front(text: str) -> str:
    """The beginning that a text shares with others, where it is long, as the device library is."""
    known = [each for each in _fronts if text.startswith(each)]
    if known:
        return min(known, key=len)
    first = _KERNEL.search(text)
    front = text[: first.start()].rstrip() if first else ""
    if len(front) < _LONG:
        return ""
    _fronts.append(front)
    return front


def _dynamic_shared(match: re.Match[str]) -> str:
    lines = "\n" * match[0].count("\n")
    return f"{match['type']}* {match['name']} = ({match['type']}*)tg::dynamic_shared;{lines}"


def _static_shared(body: str, name: str) -> str:
    return re.sub(r"\b__shared__\b", f"TG_SHARED({name})", body)


def _no_shared(text: str, start: int, end: int) -> str:
    """The text from `start` to `end`, which belongs to no kernel."""
    shared = re.compile(r"\b__shared__\b").search(text, start, end)
    if shared:
        line = _line_of(text, shared.start())
        raise ValueError(f"line {line}: __shared__ stands in kernels only; others take pointers")
    return text[start:end]


# -- launching -----------------------------------------------------------------------------------


class _ParameterStruct(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_char),
        ("pointer", ctypes.c_bool),
        ("constant", ctypes.c_bool),
        ("bytes", ctypes.c_uint),
    )


class _KernelStruct(ctypes.Structure):
    _fields_ = (
        ("run", ctypes.c_void_p),
        ("shared", ctypes.c_void_p),
        ("shared_end", ctypes.c_void_p),
        ("parameters", ctypes.c_int),
        ("parameter", ctypes.POINTER(_ParameterStruct)),
    )


class _LaunchStruct(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("order", ctypes.c_int),
        ("seed", ctypes.c_uint),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
    )


class _FailureStruct(ctypes.Structure):
    _fields_ = (
        ("text", ctypes.c_char * 256),
        ("line", ctypes.c_int),
        ("block", ctypes.c_uint * 3),
        ("thread", ctypes.c_uint * 3),
    )


class Parameter(NamedTuple):
    """A parameter of a kernel.

    `kind` is NumPy's letter for its type or for what it points to: V is any (a struct or void), c
    raw bytes. `bytes` is the size of that type, 0 for void.
    """

    kind: str
    pointer: bool
    constant: bool
    bytes: int

    def takes(self, dtype: np.dtype[Any]) -> bool:
        """Whether elements of `dtype` are what it stands for in memory."""
        if self.kind == "V" or (self.pointer and self.kind == "c"):
            return self.pointer or (dtype.kind == "V" and dtype.itemsize == self.bytes)
        if dtype.itemsize != self.bytes:
            return False
        if self.kind == "u":
            # Generated code keeps bool in memory as unsigned char, 16-bit floats as unsigned short.
            return dtype.kind in "ub" or dtype == np.float16 or dtype.name == "bfloat16"
        return dtype.kind == ("i" if self.kind == "c" else self.kind)

    def __str__(self) -> str:
        name = {"V": "struct or void", "c": "char", "b": "bool"}.get(self.kind)
        name = name or {"f": "float", "i": "int", "u": "uint"}[self.kind] + str(8 * self.bytes)
        return f"a pointer to {name}" if self.pointer else name


_TYPES = {
    **dict.fromkeys(["float", "double"], "f"),
    **dict.fromkeys(["signed char", "short", "int", "long long"], "i"),
    **{f"unsigned {name}": "u" for name in ("char", "short", "int", "long long")},
    "bool": "b",
    "char": "c",
}
_BYTES = {"bool": 1, "char": 1, "short": 2, "int": 4, "float": 4, "long": 8, "double": 8}
_PARAMETER = re.compile(
    rf"\s*(?P<constant>const\s+)?(?P<type>{'|'.join(_TYPES)})\s*(?P<pointer>\*?)"
    r"\s*(?:\b__restrict__\s+)?\b\w+\s*"
)


def _parameters_of(text: str) -> tuple[Parameter, ...] | None:
    """What a kernel takes, read from its text; None where only the compiler knows."""
    found = [_PARAMETER.fullmatch(each) for each in text.split(",")] if text.strip() else []
    if None in found:
        return None
    return tuple(_parameter(each) for each in found if each)


def _parameter(match: re.Match[str]) -> Parameter:
    name, pointer = match["type"], bool(match["pointer"])
    word = name.removeprefix("signed ").removeprefix("unsigned ").split()[0]
    return Parameter(_TYPES[name], pointer, pointer and bool(match["constant"]), _BYTES[word])


def _address_of(place: str, parameter: Parameter, argument: Any) -> tuple[Any, int]:
    """What keeps the argument's bytes alive, and where they are."""
    if parameter.pointer and not isinstance(argument, np.ndarray):
        raise TypeError(f"{place} is {parameter}: it takes an array, not {argument!r}")
    if not parameter.pointer and not isinstance(argument, np.generic):
        # A GPU launch would pass a Python int as 8 bytes and a float as a double.
        raise TypeError(f"{place} is {parameter}: it takes a NumPy scalar, not {argument!r}")
    if not parameter.takes(argument.dtype):
        raise TypeError(f"{place} is {parameter}, not {argument.dtype}")
    if not parameter.pointer:
        value = np.array(argument)
        return value, value.ctypes.data
    if not parameter.constant and not argument.flags.writeable:
        raise TypeError(f"{place} is not const, but its array is read-only")
    pointer = ctypes.c_void_p(argument.ctypes.data)
    return pointer, ctypes.addressof(pointer)


def _three(numbers: int | Sequence[int], largest: Sequence[int], what: str) -> tuple[int, ...]:
    sizes = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    sizes = (*sizes, 1, 1)[:3] if len(sizes) <= 3 else sizes
    if len(sizes) != 3 or not all(1 <= size <= most for size, most in zip(sizes, largest)):
        raise LaunchError(f"{what} {sizes} has to be 1 to {tuple(largest)}")
    return sizes


class Library:
    """The kernels of a CUDA C text, compiled for the CPU.

    Kernels are defined as `extern "C" __global__ void name(...)`, where `__launch_bounds__(n)` may
    stand before or behind `void`. A text is compiled once; its library is kept in a folder for
    temporary files. With `later` it is compiled when it is launched first, together with all others
    that wait by then. With `sanitize` the library can only be loaded where the sanitizer is, which
    is what `run_sanitized` is for.

    Raises ValueError for a text without kernels, with an #include, or with static shared memory
    outside of kernels; RuntimeError with the compiler's messages for one that does not compile.
    """

    def __init__(
        self, source: str, *, sanitize: Sanitizer | None = None, later: bool = False
    ) -> None:
        if sanitize and _SANITIZER_LIBRARIES[sanitize][0] not in os.environ.get("LD_PRELOAD", ""):
            raise RuntimeError(f"the {sanitize} sanitizer is not loaded: use run_sanitized")
        self._lines = source.splitlines()
        self._text, self._kernels = _translate(source)
        self._loaded: tuple[ctypes.PyDLL, str] | None = None
        if sanitize:
            self._use(Built(host_compiler.sanitized_library(self._text, sanitize), ""))
        elif later:
            with _loading:
                _waiting.add(self)
        else:
            self._load()

    def _load(self) -> tuple[ctypes.PyDLL, str]:
        """The compiled kernels, and what their names begin with."""
        with _loading:
            if self._loaded is None:
                _waiting.discard(self)
                _compile([self, *_waiting])
        assert self._loaded is not None
        return self._loaded

    def _use(self, built: Built) -> None:
        _mathematics()
        # PyDLL keeps Python's lock: a library runs one launch at a time.
        self._loaded = ctypes.PyDLL(str(built.path)), built.prefix
        for name, kernel in self._kernels.items():
            read = _parameters_of(kernel.parameters)
            assert read in (None, self._compiled_parameters(name)), f"{name}: {read}"

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels, in the order of the text."""
        return tuple(self._kernels)

    def parameters(self, name: str) -> tuple[Parameter, ...]:
        """What a kernel takes."""
        read = _parameters_of(self._named(name).parameters) if self._loaded is None else None
        return self._compiled_parameters(name) if read is None else read

    def _compiled_parameters(self, name: str) -> tuple[Parameter, ...]:
        kernel = self._kernel(name)
        found = (kernel.parameter[i] for i in range(kernel.parameters))
        return tuple(Parameter(p.kind.decode(), p.pointer, p.constant, p.bytes) for p in found)

    def shared_bytes(self, name: str) -> int:
        """The static shared memory of a kernel."""
        kernel = self._kernel(name)
        return (kernel.shared_end or 0) - (kernel.shared or 0)

    def _named(self, name: str) -> _Kernel:
        if name not in self._kernels:
            raise ValueError(f"no kernel {name!r}; there are {', '.join(self._kernels)}")
        return self._kernels[name]

    def _kernel(self, name: str) -> _KernelStruct:
        self._named(name)
        library, prefix = self._loaded or self._load()
        return _KernelStruct.in_dll(library, f"tg_kernel_{prefix}{name}")

    def launch(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        shared_bytes: int = 0,
        order: Order = "forward",
        seed: int = 0,
    ) -> None:
        """Run a kernel to its end.

        `args` are arrays, passed as pointers to their first elements, and NumPy scalars, passed as
        their bytes. `order` is the order of blocks, of warps between barriers, and of the lanes of
        a warp; `seed` is that of "shuffled". Shared memory, static and `shared_bytes` of dynamic,
        is full of NaN when a block begins.

        Raises TypeError where arguments do not fit the kernel's parameters, and LaunchError for too
        many threads or too much shared memory, for barriers that not all threads of the block
        reach, shuffles and votes that not all lanes of the mask reach, writes behind the dynamic
        shared memory, and `__trap()`.
        """
        pointers, kept = self._arguments(name, args)
        self._run(name, pointers, self._sizes(name, grid, block, shared_bytes), order, seed)
        del kept  # until here the kernel had their addresses

    def launch_at(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[int | bytes],
        shared_bytes: int = 0,
        order: Order = "forward",
        seed: int = 0,
    ) -> None:
        """As `launch`, with addresses for pointers and the bytes of other arguments."""
        parameters = self.parameters(name)
        if len(args) != len(parameters):
            raise TypeError(f"{name} takes {len(parameters)} arguments, not {len(args)}")
        cells = []
        for i, (parameter, argument) in enumerate(zip(parameters, args)):
            data = argument.to_bytes(8, "little") if isinstance(argument, int) else argument
            if len(data) != (8 if parameter.pointer else parameter.bytes):
                raise TypeError(f"{name}: argument {i} is {parameter}, not {len(data)} bytes")
            cells.append(ctypes.create_string_buffer(data, len(data)))
        pointers = (ctypes.c_void_p * max(len(cells), 1))(*map(ctypes.addressof, cells))
        self._run(name, pointers, self._sizes(name, grid, block, shared_bytes), order, seed)

    def _run(self, name: str, pointers: Any, sizes: Any, order: Order, seed: int) -> None:
        launch = _LaunchStruct(*sizes, ORDERS.index(order), seed, pointers)
        failure = _FailureStruct()
        kernel = self._kernel(name)
        library, _ = self._loaded or self._load()
        failed = library.tg_launch(
            ctypes.byref(kernel), ctypes.byref(launch), ctypes.byref(failure)
        )
        if failed:
            raise LaunchError(self._message(name, failure))

    def _arguments(self, name: str, args: Sequence[Any]) -> tuple[Any, list[Any]]:
        parameters = self.parameters(name)
        if len(args) != len(parameters):
            raise TypeError(f"{name} takes {len(parameters)} arguments, not {len(args)}")
        found = [
            _address_of(f"{name}: argument {i}", parameter, argument)
            for i, (parameter, argument) in enumerate(zip(parameters, args))
        ]
        addresses = [address for _, address in found]
        return (ctypes.c_void_p * max(len(args), 1))(*addresses), [value for value, _ in found]

    def _sizes(self, name: str, grid: Any, block: Any, shared_bytes: int) -> tuple[Any, ...]:
        grid = _three(grid, _LARGEST_GRID, f"{name}: the grid")
        block = _three(block, _LARGEST_BLOCK, f"{name}: the block")
        threads, most = int(np.prod(block)), self._kernels[name].most_threads
        if threads > min(most, MOST_THREADS):
            raise LaunchError(f"{name}: {threads} threads in a block of at most {most}")
        static = self.shared_bytes(name)
        if static > MOST_STATIC_SHARED or not 0 <= shared_bytes <= MOST_SHARED - static:
            raise LaunchError(
                f"{name}: {static} bytes of static and {shared_bytes} of dynamic shared memory; "
                f"at most {MOST_STATIC_SHARED} are static, and {MOST_SHARED} in all"
            )
        return (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), shared_bytes

    def _message(self, name: str, failure: _FailureStruct) -> str:
        place = f"{name}, block {tuple(failure.block)}, thread {tuple(failure.thread)}"
        message = f"{place}: {failure.text.decode()}"
        if not 1 <= failure.line <= len(self._lines):
            return message
        return f"{message}\n  line {failure.line}: {self._lines[failure.line - 1].strip()}"


@cache
def _mathematics() -> ctypes.CDLL:
    """The functions that kernels call, which libraries look for among what is loaded globally."""
    return ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)


_loading = threading.RLock()
_waiting: weakref.WeakSet[Library] = weakref.WeakSet()


def _compile(together: Sequence[Library]) -> None:
    """Compile and load libraries. Where one of them is refused, only the first is tried again."""
    try:
        built = host_compiler.libraries([each._text for each in together])
    except RuntimeError:
        if len(together) == 1:
            raise
        _compile(together[:1])
        return
    for library, found in zip(together, built, strict=True):
        library._use(found)
        _waiting.discard(library)


def compile_together(sources: Iterable[str]) -> None:
    """Compile texts that are run later, several in a file."""
    host_compiler.libraries([_translate(each)[0] for each in dict.fromkeys(sources)])


# -- sanitizers ----------------------------------------------------------------------------------


class Launch(NamedTuple):
    """A launch for `run_sanitized`: the arguments of `Library.launch`."""

    name: str
    grid: int | Sequence[int]
    block: int | Sequence[int]
    args: Sequence[Any]
    shared_bytes: int = 0
    order: Order = "forward"
    seed: int = 0


def run_sanitized(source: str, launches: Sequence[Launch], kind: Sanitizer) -> str:
    """The report of a sanitizer on launches of a text's kernels, empty where all is well.

    "address" finds accesses outside of arrays and of dynamic shared memory, indices outside of
    local and static shared arrays, misaligned accesses and other undefined behaviour; "thread"
    finds accesses of threads of one block to the same memory that no barrier orders. It stops at
    the first finding. The launches run in a process of their own, on copies of the arrays: what
    they write is not seen here.

    Raises LaunchError where a launch does, RuntimeError where the text does not compile or the
    process fails otherwise.
    """
    host_compiler.sanitized_library(_translate(source)[0], kind)
    with tempfile.TemporaryDirectory() as folder:
        task, result = Path(folder) / "task", Path(folder) / "result"
        task.write_bytes(pickle.dumps((source, [tuple(launch) for launch in launches], kind)))
        command = [sys.executable, "-m", "cuda_tools.sanitized", str(task), str(result)]
        done = subprocess.run(
            command, env=_sanitized_environment(kind), capture_output=True, text=True
        )
        outcome = result.read_text() if result.exists() else None
    if outcome == "":
        return ""
    if outcome is not None:
        raise LaunchError(outcome)
    if "Sanitizer" not in done.stderr and "runtime error:" not in done.stderr:
        raise RuntimeError(f"the sanitized process ended with {done.returncode}:\n{done.stderr}")
    return done.stderr


def _sanitized_environment(kind: Sanitizer) -> dict[str, str]:
    paths = [_path_of_library(name) for name in _SANITIZER_LIBRARIES[kind]]
    places = [str(_HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **_SANITIZER_OPTIONS,
        "LD_PRELOAD": " ".join(paths),
        "PYTHONPATH": os.pathsep.join(places),
    }


@cache
def _path_of_library(name: str) -> str:
    command = [host_compiler.compiler(), f"-print-file-name={name}"]
    path = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(path):
        raise RuntimeError(f"the compiler has no {name}")
    return str(Path(path).resolve())
