"""LLVM module text in, native addresses out.

Objects are kept in memory by text and on disk by (text, LLVM, target CPU, pass pipeline), so that
the same text is compiled once per machine. LLVM is loaded at the first compile. The target is
this machine's CPU, or the level of x86-64 that ``TGRAPH_CPU`` names at the first compile. The
runtime's own code is compiled for the level that the CPU has, for which it may have been compiled
when the package was installed (`prebuilt`).

Objects are made without the runtime's lock, several at a time; they are loaded under it.

Three properties of the pipeline matter to who writes the text. Loops are vectorised and
interleaved, but unrolled only where their metadata asks for it (``llvm.loop.unroll.full`` or
``.enable``): unrolling what the vectoriser already interleaved cost 20-30 % of the compile time
and gained nothing. Innermost loops must have their width as metadata
(``llvm.loop.vectorize.width``): LLVM then weighs one width instead of five, and its two cost
models cannot disagree, on which builds with assertions (such as llvmlite's wheels) end the
process. And everything that a module calls must be defined in it, be registered with `add_symbol`,
or be a function of libc, libm, libmvec or libgcc.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import re
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from . import cache, interrupts, llvm, locks, memory, prebuilt
from .records import NamedTuple

# Part of the key of cached objects: raise it when passes or code generation options change.
PIPELINE_VERSION = 2

# More of them would gain little: Python writes the texts one after another.
THREADS = len(locks.COMPILING)
"""How many modules may be compiled at a time."""

# LLVM ends the process where it gets no memory. What starting it takes, what a module takes beside
# its text or object, and how many bytes for each of these.
_START_BYTES = 256 << 20
_MODULE_BYTES = 16 << 20
# Who starts a Python thread waits for its first steps, forever where there is no memory for them.
_THREAD_BYTES = 16 << 20
_BYTES_PER_CHARACTER = 512
_BYTES_PER_BYTE = 8

LEVELS = {
    "x86-64": "sse2",
    "x86-64-v2": "cx16 sahf popcnt sse3 ssse3 sse4.1 sse4.2",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""What each level of x86-64 adds to the one before (System V ABI, "Micro-Architecture Levels")."""

_VECTOR_BYTES = {"avx512f": 64, "avx2": 32}
"""Bytes of a vector where a processor has the feature; all others have at least 16."""


class JitError(RuntimeError):
    """LLVM refused a module, or a module calls a function that is nowhere."""


class Source(NamedTuple):
    """What is compiled as one module: LLVM assembly, and how.

    `opt` is the optimisation level 0-3, `unroll` lets LLVM unroll loops as it likes. At level 0
    machine code, too, is made the quick way: six to ten times faster than at the others, which
    all use the same code generator. Without `passes` there is nothing but that generator, for text
    that is written as LLVM would leave it. `late` is text of functions (``available_externally
    alwaysinline``) that the module declares, and which become known only when loops are vectors.
    What is the runtime's `own` is the same on all processors of a level.
    """

    text: str
    opt: int = 3
    unroll: bool = False
    passes: bool = True
    late: str = ""
    own: bool = False


class Module:
    """Loaded native code; it stays loaded as long as the process lives.

    `calls` are the functions registered with `add_symbol` that it calls, and their addresses.
    """

    __slots__ = ("_addresses", "calls", "text")

    def __init__(self, text: str, addresses: dict[str, int], calls: dict[str, int]) -> None:
        self.text, self.calls = text, calls
        self._addresses = addresses

    def address(self, name: str) -> int:
        """The address of the function `name`; KeyError where the text does not define it."""
        try:
            return self._addresses[name]
        except KeyError:
            known = ", ".join(self._addresses) or "nothing"
            raise KeyError(f"module has no function {name!r}; it defines {known}") from None

    def __repr__(self) -> str:
        return f"Module({', '.join(self._addresses)})"


def compile_module(
    text: str, *, opt: int = 3, unroll: bool = False, passes: bool = True, late: str = ""
) -> Module:
    """Compile and load LLVM assembly `text`; the same text gives the same Module again.

    The options are those of a `Source`. Every function that is defined with external linkage in
    `text` has an address.

    Raises JitError where LLVM rejects the text or a called function cannot be found.
    """
    return compile_modules([Source(text, opt, unroll, passes, late)])[0]


def compile_modules(sources: Sequence[Source]) -> list[Module]:
    """`compile_module` of each of `sources`, of which several are compiled at a time."""
    sources = [_limited(each) for each in sources]
    if any(each not in _modules for each in sources):
        with interrupts.held():  # a module that is half made would stay so
            make_objects(sources)
            with locks.RUNTIME:
                for each in sources:
                    if each not in _modules:
                        _load(each)
    return [_modules[each] for each in sources]


def make_objects(sources: Iterable[Source], threads: int = THREADS) -> None:
    """Do what takes long of `compile_modules`, in some threads, without the runtime's lock.

    Nothing is told of failures: `compile_modules` meets them again.
    """
    distinct = dict.fromkeys(_limited(each) for each in sources)
    waiting = deque(each for each in distinct if not _is_there(each))
    if not waiting:
        return
    compiler = _ready_compiler()  # helpers must not ask for the lock, which may be held here

    def work() -> None:
        _make_all(compiler, waiting)

    helpers = [_start(work) for _ in range(min(len(waiting), threads) - 1)]
    work()
    for helper in helpers:
        if helper is not None:
            helper.join()


def _limited(source: Source) -> Source:
    """`source` at no higher level than `highest_level`; the runtime's own code as it is shipped."""
    if source.own or source.opt <= highest_level:
        return source
    return source._replace(opt=highest_level)


def _is_there(source: Source) -> bool:
    return source in _modules or ((found := _objects.get(source)) is not None and bool(found.data))


def begin(source: Source) -> None:
    """Begin to compile what `compile_modules` will be asked for, in another thread."""
    source = _limited(source)
    if source in _modules or source in _objects:
        return
    compiler = _ready_compiler()
    stored = compiler.stored(source)
    if stored is not None:
        _objects.setdefault(source, _Object(*stored))
        return
    _begun.append(source)
    _workers[:] = [each for each in _workers if each.is_alive()]  # none is, after a fork
    if len(_workers) < THREADS and (worker := _start(lambda: _make_all(compiler, _begun))):
        _workers.append(worker)


def _make_all(compiler: _Compiler, waiting: deque[Source]) -> None:
    """Make objects until none are waiting; several threads may."""
    with suppress(IndexError):
        while True:
            source = waiting.popleft()
            if source not in _modules:
                with suppress(Exception):
                    _made_object(compiler, source)


class _Object:
    """An object that is being made by the thread that came first, and is awaited by others."""

    def __init__(self, data: bytes = b"", origin: str = "compiled") -> None:
        self.data, self.origin = data, origin
        self.making = threading.Lock()  # held by who makes it, whatever comes in between


def _made_object(compiler: _Compiler, source: Source) -> _Object:
    """The object of a module, made here unless another thread makes it already."""
    while True:
        mine = _Object()
        # A fork waits for what is made here, since nobody would go on with it in the child.
        with locks.one_of(locks.COMPILING), mine.making:
            found = _objects.setdefault(source, mine)
            if found is mine:
                try:
                    stored = compiler.stored(source) or (compiler.make(source), "compiled")
                    mine.data, mine.origin = stored
                finally:
                    if not mine.data:
                        _objects.pop(source, None)
        with found.making:
            if found.data:
                return found
        # Whoever made it failed or was interrupted. A failure is met again here, if it was not one
        # of that moment.
        if _objects.get(source) is found:
            _objects.pop(source, None)


def _load(source: Source) -> None:
    """Make the module of an object, under the runtime's lock."""
    compiler = _compiler()
    found = _made_object(compiler, source)
    try:
        known = _known_symbols(found.data)
        addresses = compiler.link(found.data, known, _defined_functions(source.text))
        calls = {name: known[name] for name in known if name in _symbols}
        _modules[source] = Module(source.text, addresses, calls)
    finally:
        _objects.pop(source, None)
    _counts[found.origin] += 1
    _origins.update((address, (source, name)) for name, address in addresses.items())


def compile_early(load: Callable[[], object]) -> None:
    """Begin with `load`, which compiles something, in another thread.

    Nothing is told of its failures: whoever needs what it loads calls it again and meets them.
    """

    def begin() -> None:
        with suppress(Exception):
            load()

    _start(begin)


def _start(work: Callable[[], None]) -> threading.Thread | None:
    """A thread that does `work`, if there can be one."""
    if locks.ending():
        return None
    with suppress(RuntimeError, MemoryError):  # no more threads
        memory.require(_THREAD_BYTES, "starting a thread")
        thread = threading.Thread(target=work, name="tgraph-prepare")
        thread.start()
        return thread
    return None


def add_symbol(name: str, address: int | Callable[[], int]) -> None:
    """Let modules that are compiled from now on call `name`, which lives at `address`.

    A function is called for the address when the first module needs it.
    """
    with locks.RUNTIME:
        _symbols[name] = address


def origin(address: int) -> tuple[Source, str] | None:
    """The module, and the name there, of the function at `address`, if it was compiled here."""
    return _origins.get(address)


def target() -> str:
    """What code is compiled for, and by which LLVM."""
    return _ready_compiler().key


def vector_bytes() -> int:
    """The size of the vector registers of the processor that code is compiled for."""
    return _ready_compiler().vector_bytes


def object_for(level: str, source: Source) -> bytes:
    """The object of a module for all processors of a level of x86-64."""
    with _optimised(source, llvm.Target(level)) as module:
        return module.emit()


def prebuilt_key(source: Source) -> str:
    """What `prebuilt` finds the object of one of the runtime's own modules by."""
    return f"{PIPELINE_VERSION} {_told(source)}"


def level_vector_bytes(level: str) -> int:
    """The size of the vector registers of processors of a level of x86-64."""
    names = list(LEVELS)
    below = names[: names.index(level) + 1]
    return _vector_bytes([feature for name in below for feature in LEVELS[name].split()])


def supported_levels() -> list[str]:
    """The levels of x86-64 that this machine has, lowest first; none on other machines."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return []
    has = {name for name, given in llvm.host_features().items() if given}
    fits = itertools.takewhile(lambda level: has.issuperset(LEVELS[level].split()), LEVELS)
    return list(fits)


def statistics() -> dict[str, int]:
    """Counts since the start: modules in memory, compiled by LLVM, loaded from the cache, and from
    the package (`prebuilt`)."""
    return {"modules": len(_modules), **_counts}


highest_level = 3
"""Modules are compiled at no higher level. Tests of meaning set 0, which is quick to compile."""

_modules: dict[Source, Module] = {}
_objects: dict[Source, _Object] = {}  # made, or in the making, and not yet loaded
_origins: dict[int, tuple[Source, str]] = {}  # of functions, by their addresses
_begun: deque[Source] = deque()
_workers: list[threading.Thread] = []  # who makes them
_symbols: dict[str, int | Callable[[], int]] = {}
_counts = {"compiled": 0, "from_disk": 0, "prebuilt": 0}

_instance: _Compiler | None = None


def _ready_compiler() -> _Compiler:
    if _instance is not None:
        return _instance
    with locks.RUNTIME:
        return _compiler()


def _compiler() -> _Compiler:
    global _instance
    if _instance is None:
        memory.require(_START_BYTES, "starting LLVM")
        _instance = _Compiler()
        # Never freed, not even at exit: a worker of the thread pool may be running its code.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_instance))
    return _instance


def _target() -> tuple[llvm.Target, int]:
    """What to compile for, and the size of its vectors.

    This machine, unless the environment's ``TGRAPH_CPU`` names a level of x86-64, such as
    'x86-64-v3' for any processor with AVX2.
    """
    level = os.environ.get("TGRAPH_CPU", "")
    if not level:
        features = llvm.host_features()
        flags = ",".join(
            f"{'+' if given else '-'}{name}" for name, given in sorted(features.items())
        )
        names = [name for name, given in features.items() if given]
        return llvm.Target(llvm.host_name(), flags), _vector_bytes(names)
    levels = supported_levels()
    if level not in levels:
        known = ", ".join(levels) or "none"
        raise ValueError(f"TGRAPH_CPU: expected a level of this machine ({known}), got {level!r}")
    return llvm.Target(level), level_vector_bytes(level)


def _vector_bytes(features: list[str]) -> int:
    return max((_VECTOR_BYTES.get(name, 16) for name in features), default=16)


def _own_level(vector_bytes: int) -> str:
    """The level of x86-64 that the runtime's own code is compiled for; "" for the very processor,
    where that has other vectors than its level."""
    limit = os.environ.get("TGRAPH_CPU", "")
    level = limit or next(reversed(supported_levels()), "")
    return level if level and level_vector_bytes(level) == vector_bytes else ""


def _told(source: Source) -> str:
    """All that an object follows from but what it is compiled for, and by what."""
    return f"{source.opt} {source.unroll} {source.passes}\n{source.text}{source.late}"


def _optimised(source: Source, target: llvm.Target) -> llvm.Module:
    """The module behind LLVM's passes."""
    module = llvm.Module(source.text, target, 2 if source.opt or not source.passes else 0)
    if source.passes:
        module.optimise(source.opt, vectors=source.opt > 1, unroll=source.unroll)
    if source.late:
        module.inline(source.late)
    return module


class _Compiler:
    """What to compile for, and the one linker."""

    def __init__(self) -> None:
        self.target, self.vector_bytes = _target()
        self._level = _own_level(self.vector_bytes)
        self._linker = llvm.Linker(self.target)
        self.key = (
            f"{llvm.llvm_version()} {llvm.version()} {self.target.triple} "
            f"{self.target.processor} {self.target.features} {PIPELINE_VERSION}"
        )

    def stored(self, source: Source) -> tuple[bytes, str] | None:
        """The object of a module, if there is one, and where it was found."""
        if source.own and self._level:
            found = prebuilt.get(self._level, prebuilt_key(source))
            if found is not None:
                return found, "prebuilt"
        found = cache.get(self._key_of(source))
        return None if found is None else (found, "from_disk")

    def make(self, source: Source) -> bytes:
        """The object of a module, which goes on disk."""
        data = self._compiled(source)
        cache.put(self._key_of(source), data)
        return data

    def _key_of(self, source: Source) -> str:
        return f"{self.key} {self._level if source.own else ''} {_told(source)}"

    def _compiled(self, source: Source) -> bytes:
        memory.require(
            _MODULE_BYTES + _BYTES_PER_CHARACTER * len(source.text), "compiling a kernel"
        )
        try:
            with self.optimised(source) as module:
                return module.emit()
        except RuntimeError as error:
            raise _refused(error, source.text) from None

    def optimised(self, source: Source) -> llvm.Module:
        """The module behind LLVM's passes."""
        own = source.own and self._level
        return _optimised(source, llvm.Target(self._level) if own else self.target)

    def link(self, data: bytes, known: dict[str, int], names: list[str]) -> dict[str, int]:
        """Load an object, which calls what is `known`; the addresses of the functions `names`."""
        memory.require(_MODULE_BYTES + _BYTES_PER_BYTE * len(data), "loading a kernel")
        try:
            return self._linker.link(data, known, names)
        except RuntimeError as error:
            missing = [name for name in _undefined_symbols(data) if name not in known]
            raise JitError(
                f"cannot link a module that defines {', '.join(names)}: it calls "
                f"{', '.join(missing) or 'an unknown function'} ({error}); a called function must "
                "be defined in the module, registered with add_symbol, or come from libc, libm, "
                "libmvec or libgcc"
            ) from None


def _refused(error: RuntimeError, text: str) -> JitError:
    return JitError(f"LLVM rejects a module: {error}\n{_numbered(text)}")


def _defined_functions(text: str) -> list[str]:
    """Names of the functions that the text defines for others to call."""
    found = re.findall(r'^define\s([^@]*)@("[^"]+"|[-\w.$]+)\(', text, re.MULTILINE)
    return [
        name.strip('"')
        for head, name in found
        if "internal" not in head.split() and "private" not in head.split()
    ]


def _numbered(text: str, limit: int = 60) -> str:
    lines = text.splitlines()
    shown = [f"{number:4d}  {line}" for number, line in enumerate(lines[:limit], 1)]
    return "\n".join(shown + ["      ..."] * (len(lines) > limit))


def _undefined_symbols(data: bytes) -> Iterator[str]:
    """Names that a 64-bit little-endian ELF object needs from outside (none for other formats).

    Layout: System V ABI, "Object Files": Elf64_Ehdr, Elf64_Shdr, Elf64_Sym.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        return
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * i) for i in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        strings = sections[link][4]
        for start in range(offset, offset + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", data, start)
            if name and section == 0:  # SHN_UNDEF
                begin = strings + name
                yield data[begin : data.index(b"\0", begin)].decode()


def _known_symbols(data: bytes) -> dict[str, int]:
    """The functions that an object calls and where they are, but for those that are nowhere."""
    found = {name: _find_symbol(name) for name in _undefined_symbols(data)}
    return {name: address for name, address in found.items() if address is not None}


def _find_symbol(name: str) -> int | None:
    address = _symbols.get(name)
    if callable(address):
        address = _symbols[name] = address()
    if address is not None:
        return address
    for library in _math_libraries():
        if hasattr(library, name):
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    return None


_libraries: list[ctypes.CDLL] = []


def _math_libraries() -> list[ctypes.CDLL]:
    """What compiled code may call though the process did not load it: libm, libmvec, libgcc."""
    if not _libraries:
        _libraries.append(ctypes.CDLL(None))
        for name in ("libm.so.6", "libmvec.so.1", "libgcc_s.so.1"):
            try:
                _libraries.append(ctypes.CDLL(name))
            except OSError:  # musl has no libmvec, for one
                continue
    return _libraries
