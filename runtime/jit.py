"""LLVM module text in, native addresses out.

Objects are kept in memory by text and on disk by (text, LLVM, target CPU, pass pipeline), so that
the same text is compiled once per machine. llvmlite is imported at the first compile. The target is
this machine's CPU, or the level of x86-64 that ``TGRAPH_CPU`` names at the first compile.

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
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from . import cache, interrupts, locks, memory

# Part of the key of cached objects: raise it when passes or code generation options change.
PIPELINE_VERSION = 2

# LLVM ends the process where it gets no memory. What starting it takes, what a module takes beside
# its text or object, and how many bytes for each of these.
_START_BYTES = 256 << 20
_MODULE_BYTES = 16 << 20
# Who starts a Python thread waits for its first steps, forever where there is no memory for them.
_THREAD_BYTES = 16 << 20
_BYTES_PER_CHARACTER = 512
_BYTES_PER_BYTE = 8

_NO_PASSES = -1

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


class Module:
    """Loaded native code; it stays loaded as long as the process lives."""

    __slots__ = ("_addresses", "text")

    def __init__(self, text: str, addresses: dict[str, int]) -> None:
        self.text = text
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

    `opt` is the optimisation level 0-3, `unroll` lets LLVM unroll loops as it likes. At level 0
    machine code, too, is made the quick way: six to ten times faster than at the others, which
    all use the same code generator. Without `passes` there is nothing but that generator, for text
    that is written as LLVM would leave it. `late` is text of functions (``available_externally
    alwaysinline``) that the module declares, and which become known only when loops are vectors.
    Every function that is defined with external linkage in `text` has an address.

    Raises JitError where LLVM rejects the text or a called function cannot be found.
    """
    if not passes:
        opt = _NO_PASSES
    key = (text, opt, unroll, late)
    module = _modules.get(key)
    if module is not None:
        return module
    with locks.RUNTIME:
        module = _modules.get(key)
        if module is None:
            with interrupts.held():  # llvmlite's own lock does not survive Ctrl-C
                module = Module(text, _compiler().load(text, opt, unroll, late))
                _modules[key] = module
    return module


def compile_early(load: Callable[[], object]) -> None:
    """Begin with `load`, which compiles something, in another thread.

    Nothing is told of its failures: whoever needs what it loads calls it again and meets them.
    """

    def begin() -> None:
        with suppress(Exception):
            load()

    if not locks.ending():
        with suppress(RuntimeError, MemoryError):  # no more threads
            memory.require(_THREAD_BYTES, "starting a thread")
            threading.Thread(target=begin, name="tgraph-prepare").start()


def add_symbol(name: str, address: int | Callable[[], int]) -> None:
    """Let modules that are compiled from now on call `name`, which lives at `address`.

    A function is called for the address when the first module needs it.
    """
    with locks.RUNTIME:
        _symbols[name] = address


def vector_bytes() -> int:
    """The size of the vector registers of the processor that code is compiled for."""
    with locks.RUNTIME:
        return _compiler().vector_bytes


def supported_levels() -> list[str]:
    """The levels of x86-64 that this machine has, lowest first; none on other machines."""
    import llvmlite.binding as llvm

    if platform.machine() not in ("x86_64", "AMD64"):
        return []
    has = {name for name, given in llvm.get_host_cpu_features().items() if given}
    fits = itertools.takewhile(lambda level: has.issuperset(LEVELS[level].split()), LEVELS)
    return list(fits)


def statistics() -> dict[str, int]:
    """Counts since the start: modules in memory, compiled by LLVM, loaded from disk."""
    return {"modules": len(_modules), **_counts}


_modules: dict[tuple[str, int, bool, str], Module] = {}
_symbols: dict[str, int | Callable[[], int]] = {}
_counts = {"compiled": 0, "from_disk": 0}

_instance: _Compiler | None = None


def _compiler() -> _Compiler:
    global _instance
    if _instance is None:
        memory.require(_START_BYTES, "starting LLVM")
        _instance = _Compiler()
        # Never freed, not even at exit: a worker of the thread pool may be running its code.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_instance))
    return _instance


def _target() -> tuple[str, str, int]:
    """What to compile for: a name, features beyond the name's, and the size of vectors.

    This machine, unless the environment's ``TGRAPH_CPU`` names a level of x86-64, such as
    'x86-64-v3' for any processor with AVX2.
    """
    import llvmlite.binding as llvm

    level = os.environ.get("TGRAPH_CPU", "")
    if not level:
        features = llvm.get_host_cpu_features()
        names = [name for name, given in features.items() if given]
        return llvm.get_host_cpu_name(), features.flatten(), _vector_bytes(names)
    levels = supported_levels()
    if level not in levels:
        known = ", ".join(levels) or "none"
        raise ValueError(f"TGRAPH_CPU: expected a level of this machine ({known}), got {level!r}")
    below = levels[: levels.index(level) + 1]
    return level, "", _vector_bytes([name for one in below for name in LEVELS[one].split()])


def _vector_bytes(features: list[str]) -> int:
    return max((_VECTOR_BYTES.get(name, 16) for name in features), default=16)


class _Compiler:
    """LLVM's long-lived objects: a target machine and one linker."""

    def __init__(self) -> None:
        import llvmlite
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm: Any = llvm
        self._cpu, self._features, self.vector_bytes = _target()
        self._machine = self._target_machine(2)
        self._quick_machine = self._target_machine(0)
        self._jit = llvm.create_lljit_compiler(self._machine, suppress_errors=True)
        self._trackers: list[Any] = []  # dropping one would unload its code
        self._links = 0
        self._target_key = (
            f"{llvm.llvm_version_info} {llvmlite.__version__} {self._machine.triple} "
            f"{self._cpu} {self._features} {PIPELINE_VERSION}"
        )

    def _target_machine(self, opt: int) -> Any:
        target = self._llvm.Target.from_default_triple()
        return target.create_target_machine(cpu=self._cpu, features=self._features, opt=opt)

    def load(self, text: str, opt: int, unroll: bool, late: str) -> dict[str, int]:
        """Addresses of the functions that `text` defines."""
        key = f"{self._target_key} {opt} {unroll}\n{text}{late}"
        data = cache.get(key)
        if data is not None:
            _counts["from_disk"] += 1
        else:
            data = self._compile(text, opt, unroll, late)
            _counts["compiled"] += 1
            cache.put(key, data)
        return self._link(data, _defined_functions(text))

    def _compile(self, text: str, opt: int, unroll: bool, late: str) -> bytes:
        needed = _MODULE_BYTES + _BYTES_PER_CHARACTER * len(text)
        memory.require(needed, "compiling a kernel")
        try:
            # A context of its own: its types and constants go with the module.
            context = self._llvm.create_context()
            module = self._llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise _refused(error, text) from None
        try:
            self._verify(module)
            if opt != _NO_PASSES:
                self._optimise(module, opt, unroll)
            if late:
                self._inline(module, self._llvm.parse_assembly(late, context))
            machine = self._machine if opt != 0 else self._quick_machine
            data: bytes = machine.emit_object(module)
        except RuntimeError as error:
            raise _refused(error, text) from None
        finally:
            module.close()  # before its context goes: garbage is collected in any order
        return data

    def _verify(self, module: Any) -> None:
        module.verify()
        module.triple = self._machine.triple
        module.data_layout = str(self._machine.target_data)

    def _inline(self, module: Any, late: Any) -> None:
        """Put the functions of `late` where the module calls them."""
        self._verify(late)
        module.link_in(late)
        builder = self._llvm.create_pass_builder(
            self._machine, self._llvm.create_pipeline_tuning_options(speed_level=0)
        )
        passes = self._llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.run(module, builder)

    def _optimise(self, module: Any, opt: int, unroll: bool) -> None:
        """Run LLVM's passes. A pass builder slows down with every use, so each has its own."""
        options = self._llvm.create_pipeline_tuning_options(speed_level=opt)
        options.loop_vectorization = options.slp_vectorization = opt > 1
        options.loop_interleaving = opt > 1
        options.loop_unrolling = unroll
        builder = self._llvm.create_pass_builder(self._machine, options)
        builder.getModulePassManager().run(module, builder)

    def _link(self, data: bytes, names: list[str]) -> dict[str, int]:
        memory.require(_MODULE_BYTES + _BYTES_PER_BYTE * len(data), "loading a kernel")
        library = self._llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
        missing = []
        for name in _undefined_symbols(data):
            address = _find_symbol(name)
            if address is None:
                missing.append(name)
            else:
                library.import_symbol(name, address)
        for name in names:
            library.export_symbol(name)
        self._links += 1  # a name counts as taken even after a failure
        try:
            tracker = library.link(self._jit, f"tgraph{self._links}")
        except RuntimeError as error:
            raise JitError(
                f"cannot link a module that defines {', '.join(names)}: it calls "
                f"{', '.join(missing) or 'an unknown function'} ({error}); a called function must "
                "be defined in the module, registered with add_symbol, or come from libc, libm, "
                "libmvec or libgcc"
            ) from None
        self._trackers.append(tracker)
        return {name: tracker[name] for name in names}


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
