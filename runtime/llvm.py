"""LLVM, by the C functions of the library that llvmlite brings.

llvmlite's own Python is left out. Importing it takes five times as long as loading the library,
most of it for writing LLVM assembly, which is done elsewhere here; and its functions share a lock,
whereas modules that have a context and a target machine each, as here, can be compiled side by
side. Its C functions have no documented interface: `unknown_prototypes` holds those that are called
here to what llvmlite's Python says of them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace, TracebackType
from typing import Any

from .records import NamedTuple

_P, _S, _INT, _BOOL, _SIZE = (
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_bool, ctypes.c_size_t
)  # fmt: skip
_OUT = ctypes.POINTER(_S)
"""A string that the library makes, of an error for the most part; `_string` reads it."""

CHECKED = ((0, 45), (0, 50))
"""The first and the last version of llvmlite whose functions are known to be those below."""


class _Element(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_uint8), ("value", _S), ("length", _SIZE))


class _Symbol(ctypes.Structure):
    _fields_ = (("name", _S), ("address", ctypes.c_uint64))


_OBJECT, _LIBRARY = 2, 3
"""Kinds of elements to link; a library without a name is what the process has loaded."""

# What each function returns, and its arguments.
PROTOTYPES: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "GetVersionInfo": (ctypes.c_uint, ()),
    "InitializeNativeTarget": (_INT, ()),
    "InitializeNativeAsmPrinter": (_INT, ()),
    "GetHostCPUFeatures": (_INT, (_OUT,)),
    "GetHostCPUName": (_INT, (_OUT,)),
    "GetDefaultTargetTriple": (_INT, (_OUT,)),
    "GetTargetFromTriple": (_P, (_S, _OUT)),
    # target, triple, processor, features, level, relocation, code model, two flags, ABI
    "CreateTargetMachine": (_P, (_P, _S, _S, _S, _INT, _S, _S, _INT, _INT, _S)),
    "DisposeTargetMachine": (_INT, (_P,)),
    "CreateTargetMachineData": (_P, (_P,)),
    "CopyStringRepOfTargetData": (_INT, (_P, _OUT)),
    "DisposeTargetData": (_INT, (_P,)),
    "ContextCreate": (_P, ()),
    "ContextDispose": (_INT, (_P,)),
    "ParseAssembly": (_P, (_P, _S, _OUT)),
    "VerifyModule": (_BOOL, (_P, _OUT)),
    "LinkModules": (_INT, (_P, _P, _OUT)),
    "SetTarget": (_INT, (_P, _S)),
    "SetDataLayout": (_INT, (_P, _S)),
    "PrintModuleToString": (_INT, (_P, _OUT)),
    "DisposeModule": (_INT, (_P,)),
    "CreatePipelineTuningOptions": (_P, ()),
    "PTOSetLoopVectorization": (_INT, (_P, _BOOL)),
    "PTOSetSLPVectorization": (_INT, (_P, _BOOL)),
    "PTOSetLoopInterleaving": (_INT, (_P, _BOOL)),
    "PTOSetLoopUnrolling": (_INT, (_P, _BOOL)),
    "DisposePipelineTuningOptions": (_INT, (_P,)),
    "CreatePassBuilder": (_P, (_P, _P)),
    "DisposePassBuilder": (_INT, (_P,)),
    # The third, a level for size, is there in older versions only; others do not look at it.
    "buildPerModuleDefaultPipeline": (_P, (_P, _INT, _INT)),
    "CreateNewModulePassManager": (_P, ()),
    "module_AddAlwaysInlinerPass": (_INT, (_P,)),
    "RunNewModulePassManager": (_INT, (_P, _P, _P)),
    "DisposeNewModulePassManger": (_INT, (_P,)),
    "TargetMachineEmitToMemory": (_P, (_P, _P, _INT, _OUT)),
    "GetBufferStart": (_P, (_P,)),
    "GetBufferSize": (_SIZE, (_P,)),
    "DisposeMemoryBuffer": (_INT, (_P,)),
    "DisposeString": (_INT, (_S,)),
    "CreateLLJITCompiler": (_P, (_P, _BOOL, _BOOL, _OUT)),
    "LLJIT_Link": (
        _P,
        (_P, _S, ctypes.POINTER(_Element), _SIZE, ctypes.POINTER(_Symbol), _SIZE,
         ctypes.POINTER(_Symbol), _SIZE, _OUT),
    ),
}  # fmt: skip

LONG = frozenset((
    "CreateTargetMachine", "DisposeTargetMachine", "CreateLLJITCompiler", "ContextDispose",
    "ParseAssembly", "VerifyModule", "DisposeModule", "RunNewModulePassManager",
    "TargetMachineEmitToMemory", "LLJIT_Link",
))  # fmt: skip
"""What takes a tenth of a millisecond or more lets other threads run Python meanwhile. Whoever has
let them may wait five milliseconds for its turn, so the others, twenty for a module, do not."""


@functools.cache
def library() -> Any:
    """The C functions by their names, without the prefix; the library can make code for here."""
    path = _path()
    loaded, at_once = ctypes.CDLL(path), ctypes.PyDLL(path)
    if not CHECKED[0] <= _numbers(version())[:2] <= CHECKED[1] and (other := unknown_prototypes()):
        raise ImportError(
            f"llvmlite {version()} has C functions that tgraph does not know: {', '.join(other)}. "
            f"Install one from {CHECKED[0]} to {CHECKED[1]}"
        )
    found = SimpleNamespace()
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(loaded if name in LONG else at_once, f"LLVMPY_{name}")
        function.restype, function.argtypes = result, arguments
        setattr(found, name, function)
    found.InitializeNativeTarget()
    found.InitializeNativeAsmPrinter()
    return found


def _path() -> str:
    """Where the library lies."""
    found = importlib.util.find_spec("llvmlite")
    for place in (found and found.submodule_search_locations) or ():
        for name in ("libllvmlite.so", "libllvmlite.dylib", "llvmlite.dll"):
            path = os.path.join(place, "binding", name)
            if os.path.exists(path):
                return path
    raise ImportError("tgraph needs the library of llvmlite to compile, and llvmlite has none")


def version() -> str:
    """llvmlite's version."""
    import llvmlite

    return str(llvmlite.__version__)


def llvm_version() -> str:
    """LLVM's version, as a number."""
    return str(library().GetVersionInfo())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def unknown_prototypes() -> list[str]:
    """The functions that llvmlite's Python declares otherwise than `PROTOTYPES`, or not at all."""
    import llvmlite.binding

    theirs = llvmlite.binding.ffi.lib
    return [name for name in PROTOTYPES if not _agrees(name, theirs)]


def _agrees(name: str, theirs: Any) -> bool:
    function = getattr(theirs, f"LLVMPY_{name}", None)
    result, arguments = PROTOTYPES[name]
    if function is None or _kind(function.restype) != _kind(result):
        return False
    given = [_kind(each) for each in function.argtypes or ()]
    # A C function does not look at arguments behind its own.
    return given == [_kind(each) for each in arguments[: len(given)]]


def _kind(type_: Any) -> str:
    """The type of an argument; all pointers but strings are one."""
    kind = getattr(type_, "_type_", "P")
    return kind if isinstance(kind, str) else "P"


def _string(out: Any) -> str:
    """The string that a function has put in `out`, which is freed."""
    if not out:
        return ""
    text = (out.value or b"").decode(errors="replace")
    library().DisposeString(out)
    return text


def _told(name: str, *before: Any) -> str:
    """What a function tells by its last argument."""
    out = _S()
    getattr(library(), name)(*before, ctypes.byref(out))
    return _string(out)


def _made(name: str, *arguments: Any) -> Any:
    """What a function makes; RuntimeError with its reason where that is nothing."""
    out = _S()
    made = getattr(library(), name)(*arguments, ctypes.byref(out))
    reason = _string(out)
    if not made:
        raise RuntimeError(reason or f"LLVM: {name} failed")
    return made


def _refuse(name: str, *arguments: Any) -> None:
    """RuntimeError with its reason where a function, which says so, fails."""
    out = _S()
    failed = getattr(library(), name)(*arguments, ctypes.byref(out))
    reason = _string(out)
    if failed:
        raise RuntimeError(reason)


# --- the machine ----------------------------------------------------------------------------------


def host_name() -> str:
    """LLVM's name of this machine's processor."""
    return _told("GetHostCPUName")


def host_features() -> dict[str, bool]:
    """The processor's features by name, and whether it has them."""
    listed = _told("GetHostCPUFeatures").split(",")
    return {each[1:]: each[0] == "+" for each in listed if each}


class Target(NamedTuple):
    """What to compile for: a processor's name, and features beyond the name's."""

    processor: str
    features: str = ""

    @property
    def triple(self) -> str:
        return _told("GetDefaultTargetTriple")

    def machine(self, level: int) -> int:
        """A target machine with a `level` of code generation (0-3), to be disposed of."""
        triple = self.triple.encode()
        made = library().CreateTargetMachine(
            _made("GetTargetFromTriple", triple), triple, self.processor.encode(),
            self.features.encode(), level, b"default", b"jitdefault", 0, 0, b"",
        )  # fmt: skip
        if not made:
            raise RuntimeError(f"LLVM has no target machine for {self.processor} ({self.triple})")
        return int(made)


# --- modules --------------------------------------------------------------------------------------


class Module:
    """A module in a context of its own; RuntimeError where LLVM rejects its text.

    `level` is that of code generation. Threads may each have a module at work.
    """

    def __init__(self, text: str, target: Target, level: int = 2) -> None:
        call = library()
        with ExitStack() as stack:
            self._context = call.ContextCreate()
            stack.callback(call.ContextDispose, self._context)
            self._machine = target.machine(level)
            stack.callback(call.DisposeTargetMachine, self._machine)
            self._triple, self._layout = target.triple.encode(), _data_layout(self._machine)
            self._module = self._parsed(text)
            stack.callback(call.DisposeModule, self._module)
            self._verify(self._module)
            self._close = stack.pop_all()

    def __enter__(self) -> Module:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._close.close()

    def __str__(self) -> str:
        return _told("PrintModuleToString", self._module)

    def _parsed(self, text: str) -> int:
        return int(_made("ParseAssembly", self._context, text.encode()))

    def _verify(self, module: int) -> None:
        """Make sure that a module is well formed, and tell it of the machine."""
        _refuse("VerifyModule", module)
        library().SetTarget(module, self._triple)
        library().SetDataLayout(module, self._layout)

    def optimise(self, level: int, *, vectors: bool, unroll: bool) -> None:
        """Run LLVM's passes."""
        call = library()
        with self._builder(vectors, unroll) as builder:
            self._run(call.buildPerModuleDefaultPipeline(builder, level, 0), builder)

    def inline(self, text: str) -> None:
        """Put functions of another module, which must be inlined, where this one calls them."""
        call = library()
        other = self._parsed(text)
        with ExitStack() as stack:
            stack.callback(call.DisposeModule, other)
            self._verify(other)
            stack.pop_all()  # linking disposes of it, whatever comes of it
        _refuse("LinkModules", self._module, other)
        with self._builder(False, False) as builder:
            passes = call.CreateNewModulePassManager()
            call.module_AddAlwaysInlinerPass(passes)
            self._run(passes, builder)

    @contextmanager
    def _builder(self, vectors: bool, unroll: bool) -> Iterator[int]:
        """A pass builder. It slows down with every use, so it is used once."""
        call = library()
        with ExitStack() as stack:
            options = call.CreatePipelineTuningOptions()
            stack.callback(call.DisposePipelineTuningOptions, options)
            call.PTOSetLoopVectorization(options, vectors)
            call.PTOSetSLPVectorization(options, vectors)
            call.PTOSetLoopInterleaving(options, vectors)
            call.PTOSetLoopUnrolling(options, unroll)
            builder = call.CreatePassBuilder(self._machine, options)
            stack.callback(call.DisposePassBuilder, builder)
            yield builder

    def _run(self, passes: int, builder: int) -> None:
        try:
            library().RunNewModulePassManager(passes, self._module, builder)
        finally:
            library().DisposeNewModulePassManger(passes)

    def emit(self, *, assembly: bool = False) -> bytes:
        """The module's object, or its assembly."""
        call = library()
        made = _made("TargetMachineEmitToMemory", self._machine, self._module, int(not assembly))
        try:
            return ctypes.string_at(call.GetBufferStart(made), call.GetBufferSize(made))
        finally:
            call.DisposeMemoryBuffer(made)


def _data_layout(machine: int) -> bytes:
    data = library().CreateTargetMachineData(machine)
    try:
        return _told("CopyStringRepOfTargetData", data).encode()
    finally:
        library().DisposeTargetData(data)


class Linker:
    """Loads objects; what is loaded stays as long as the process lives."""

    def __init__(self, target: Target) -> None:
        self._linker = _made("CreateLLJITCompiler", target.machine(2), True, False)
        self._count = 0

    def link(
        self, data: bytes, imports: Mapping[str, int], exports: Sequence[str]
    ) -> dict[str, int]:
        """The addresses of `exports` in an object; RuntimeError where a symbol is nowhere."""
        self._count += 1  # a name counts as taken even after a failure
        elements = (_Element * 2)(_Element(_OBJECT, data, len(data)), _Element(_LIBRARY, b"", 0))
        given = (_Symbol * len(imports))(
            *(_Symbol(name.encode(), at) for name, at in imports.items())
        )
        wanted = (_Symbol * len(exports))(*(_Symbol(name.encode(), 0) for name in exports))
        # What this makes would unload the code if it were disposed of.
        _made(
            "LLJIT_Link", self._linker, f"tgraph{self._count}".encode(), elements, len(elements),
            given, len(given), wanted, len(wanted),
        )  # fmt: skip
        return {name: each.address for name, each in zip(exports, wanted)}
