"""A stand-in for CuPy over NumPy, as strict as CuPy 14, for tests without a GPU.

`with install():` puts it behind `tgraph.runtime.cuda.backend`. `cupy` and `driver` stand for the
modules `cupy` and `cupy_backends.cuda.api.driver`; `machine` tells what ran and sets the order of
threads. Two devices of compute capability 9.0 have memory that is host memory; kernels are CUDA C
text, which the shim compiles. What CuPy lacks, this lacks; what this lacks raises AttributeError.

Differences: work runs at once, so that a missing synchronisation shows only with `lazy`; captures
have one stream; the pool does not split blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ..shim import Order
from . import (
    arrays,
    devices,
    dlpack,
    driver,
    indexing,
    memory,
    operators,
    reductions,
    routines,
    solvers,
    sparse_matrices,
    ufuncs,
)
from .machine import DEVICES, CUDARuntimeError, Violation, bytes_at, context, machine

__all__ = ["Violation", "bytes_at", "cupy", "driver", "install", "machine"]

CONSTANTS = {
    "memcpyHostToHost": 0,
    "memcpyHostToDevice": 1,
    "memcpyDeviceToHost": 2,
    "memcpyDeviceToDevice": 3,
    "memcpyDefault": 4,
    "streamDefault": 0,
    "streamNonBlocking": 1,
    "streamLegacy": 1,
    "streamPerThread": 2,
    "streamCaptureModeGlobal": 0,
    "streamCaptureModeThreadLocal": 1,
    "streamCaptureModeRelaxed": 2,
    "eventBlockingSync": 1,
    "eventDisableTiming": 2,
}
NUMPY_NAMES = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", "dtype", "newaxis", "nan", "inf", "pi", "e",
    "finfo", "iinfo", "result_type", "promote_types", "isscalar",
)  # fmt: skip
VERSION = 13000


def _device_properties(device: int) -> dict[str, Any]:
    attributes = devices.Device(device).attributes
    return {
        "name": b"NVIDIA of NumPy",
        "major": devices.CAPABILITY[0],
        "minor": devices.CAPABILITY[1],
        "totalGlobalMem": machine.memory,
        "multiProcessorCount": attributes["MultiProcessorCount"],
        "warpSize": attributes["WarpSize"],
        "l2CacheSize": attributes["L2CacheSize"],
    }


def _pointer_device(ptr: int) -> Any:
    block = machine.block_at(ptr)
    return SimpleNamespace(device=-1 if block is None else block.device, devicePointer=ptr)


_RUNTIME = {
    **CONSTANTS,
    "CUDARuntimeError": CUDARuntimeError,
    "getDeviceCount": lambda: DEVICES,
    "getDevice": lambda: context.device,
    "setDevice": devices.set_device,
    "getDeviceProperties": _device_properties,
    "deviceSynchronize": lambda: machine.synchronize(context.device),
    "deviceCanAccessPeer": lambda device, peer: 0,
    "pointerGetAttributes": _pointer_device,
    "driverGetVersion": lambda: VERSION,
    "runtimeGetVersion": lambda: VERSION,
    "memGetInfo": lambda: devices.Device().mem_info,
    "memcpy": memory.memcpy,
    "memcpyAsync": memory.memcpy_async,
    "memset": memory.memset,
    "memsetAsync": memory.memset_async,
    "streamSynchronize": lambda stream: machine.synchronize(context.device, stream),
    "streamIsCapturing": lambda stream: machine.stream(stream).capture is not None,
}
_CUDA = {
    "Device": devices.Device,
    "Event": devices.Event,
    "Function": devices.Function,
    "Graph": devices.Graph,
    "Memory": memory.Memory,
    "MemoryHook": memory.MemoryHook,
    "MemoryPointer": memory.MemoryPointer,
    "MemoryPool": memory.MemoryPool,
    "Module": devices.Module,
    "PinnedMemoryPointer": memory.PinnedMemoryPointer,
    "PinnedMemoryPool": memory.PinnedMemoryPool,
    "Stream": devices.Stream,
    "UnownedMemory": memory.UnownedMemory,
    "alloc": memory.alloc,
    "alloc_pinned_memory": memory.alloc_pinned_memory,
    "get_current_stream": devices.get_current_stream,
    "get_cublas_handle": solvers.handle,
    "get_cusolver_handle": solvers.handle,
    "get_elapsed_time": devices.get_elapsed_time,
    "is_available": lambda: True,
}
_SUBMODULES = {
    "device": ("Device", "get_cublas_handle", "get_cusolver_handle"),
    "function": ("Function", "Module"),
    "graph": ("Graph",),
    "memory": ("Memory", "MemoryPointer", "MemoryPool", "UnownedMemory", "alloc"),
    "memory_hook": ("MemoryHook",),
    "pinned_memory": ("PinnedMemoryPointer", "PinnedMemoryPool", "alloc_pinned_memory"),
    "stream": ("Event", "Stream", "get_current_stream", "get_elapsed_time"),
}


class _Fake(ModuleType):
    """A module of the fake; what is not in it is named in the error."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the fake of {self.__name__} has no {name!r}")


def _module(name: str, contents: dict[str, Any]) -> Any:
    made = _Fake(name)
    vars(made).update(contents)
    return made


def _cuda() -> Any:
    cuda = _module("cupy.cuda", dict(_CUDA))
    cuda.runtime = _module("cupy.cuda.runtime", dict(_RUNTIME))
    for name, contents in _SUBMODULES.items():
        setattr(cuda, name, _module(f"cupy.cuda.{name}", {each: _CUDA[each] for each in contents}))
    del cuda.get_cublas_handle, cuda.get_cusolver_handle
    cuda.memory.OutOfMemoryError = memory.OutOfMemoryError
    cuda.memory.PooledMemory = memory.PooledMemory
    cuda.pinned_memory.is_memory_pinned = memory.is_memory_pinned
    return cuda


def _cupy() -> Any:
    operators.install_on(arrays.ndarray)
    for name, method in reductions.METHODS.items():
        setattr(arrays.ndarray, name, method)
    for name, function in {
        "__getitem__": indexing.getitem,
        "__setitem__": indexing.setitem,
        "take": indexing.take,
        "nonzero": indexing.nonzero,
        "__dlpack__": dlpack.dlpack,
        "__dlpack_device__": dlpack.dlpack_device,
    }.items():
        setattr(arrays.ndarray, name, function)
    made = _module("cupy", {name: getattr(np, name) for name in NUMPY_NAMES})
    vars(made).update(ufuncs.UFUNCS)
    vars(made).update(routines.FUNCTIONS)
    made.__version__ = "14.2.0"
    made.ndarray, made.ufunc = arrays.ndarray, ufuncs.ufunc
    made.from_dlpack = dlpack.from_dlpack
    made.get_default_memory_pool = memory.get_default_memory_pool
    made.get_default_pinned_memory_pool = memory.get_default_pinned_memory_pool
    made.cuda = _cuda()
    made.linalg = _module("cupy.linalg", {"qr": solvers.qr})
    made.lib = _module("cupy.lib", {})
    tricks = {"as_strided": routines.as_strided}
    made.lib.stride_tricks = _module("cupy.lib.stride_tricks", tricks)
    return made


cupy = _cupy()
libraries = (
    _module("cupy_backends.cuda.libs.cublas", solvers.CUBLAS),
    _module("cupy_backends.cuda.libs.cusolver", solvers.CUSOLVER),
)


@contextmanager
def install(
    order: Order = "forward", seed: int = 0, memory_bytes: int = 1 << 30, lazy: bool = False
) -> Iterator[Any]:
    """The fake behind tgraph's CUDA runtime, on a machine with empty memory.

    Machine code becomes the text itself. Kernels run in `order`, devices have `memory_bytes`.
    `lazy` lets streams work as late as they may.
    Gives the machine; at the end, what was written outside of arrays is a Violation.
    """
    from tgraph.runtime.cuda import backend, nvrtc

    machine.reset(order, seed, memory_bytes, lazy)
    context.device, context.streams = 0, {}
    memory.allocator.reset()
    compile_cubin = nvrtc.compile_cubin
    nvrtc.compile_cubin = _text
    try:
        with backend.use(cupy, driver, libraries, sparse_matrices.module):
            yield machine
    finally:
        nvrtc.compile_cubin = compile_cubin
    machine.finish_all()
    machine.check_guards()


def _text(source: str, arch: str) -> bytes:
    if not arch.startswith("sm_"):
        raise ValueError(f"{arch} is no architecture")
    return source.encode()
