"""CUDA devices: which there are, their memory and streams, and the programs that functions become.

`is_available()` tells whether a GPU can be used; `program` shows the kernels of a function on any
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from ..core.out_of_memory import OutOfMemoryError
from ..core.tensor import Tensor
from ..ops import generator
from ..ops.generator import initial_seed, manual_seed, seed
from ..ops.typed import ON_CUDA
from ..runtime.cuda.arrays import current
from ..runtime.cuda.devices import (
    DeviceProperties,
    cuda_device,
    current_device,
    device_count,
    index_of,
    is_available,
    properties,
    set_device,
    synchronize,
)
from ..runtime.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from ..runtime.cuda.streams import Event, Stream, current_stream, default_stream
from ..runtime.device import Device
from ..tracing.api import trace

if TYPE_CHECKING:
    from ..compiler.targets.cuda.program import CudaProgram

__all__ = [
    "DeviceProperties", "Event", "OutOfMemoryError", "Stream", "current_device", "current_stream",
    "default_stream", "device", "device_count", "empty_cache", "get_device_capability",
    "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all",
    "initial_seed", "is_available", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "mem_get_info", "memory_allocated", "memory_reserved", "program", "reset_peak_memory_stats",
    "seed", "seed_all", "set_device", "set_per_process_memory_fraction", "set_rng_state",
    "set_rng_state_all", "stream", "synchronize",
]  # fmt: skip

# The classes of tensors on CUDA devices, such as `cuda.FloatTensor`.
globals().update(ON_CUDA)


def __getattr__(name: str) -> Any:
    if name != "amp":  # which stands above what imports this package
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(".amp", __name__)


# One generator serves the CPU and all devices: seeding it for one of them is seeding it for all.
manual_seed_all = manual_seed
seed_all = seed
get_device_properties = properties
DeviceLike = int | str | Device


def device(device: int | str | Device) -> AbstractContextManager[Any]:
    """Inside `with tgraph.cuda.device(1):`, "cuda" means that device."""
    return current(cuda_device(index_of(device)))


def stream(stream: Stream | None) -> AbstractContextManager[Any]:
    """Inside `with tgraph.cuda.stream(s):`, work is asked of stream `s`; None changes nothing."""
    return nullcontext() if stream is None else stream


def get_device_name(device: int | str | Device | None = None) -> str:
    """What a device is called; the current one unless given."""
    return properties(device).name


def get_device_capability(device: int | str | Device | None = None) -> tuple[int, int]:
    """The compute capability of a device, such as (9, 0)."""
    found = properties(device)
    return found.major, found.minor


def get_rng_state(device: DeviceLike = "cuda") -> Tensor:
    """The state of the random numbers on a device: that of `tgraph.get_rng_state`.

    Random numbers are the same on every device and come from one generator, whose state is one.
    """
    index_of(device)
    return generator.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """The state of the random numbers, once for each device."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: DeviceLike = "cuda") -> None:
    """Go on from what `get_rng_state` gave, on a device and everywhere else."""
    index_of(device)
    generator.set_rng_state(new_state)


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Go on from what `get_rng_state_all` gave, of however many devices.

    ValueError for states that differ: one generator serves all devices.
    """
    if len({tuple(state.tolist()) for state in new_states}) > 1:
        raise ValueError(
            "set_rng_state_all(): expected equal states, as one generator serves all devices; use "
            "a tgraph.Generator for each sequence of random numbers of its own"
        )
    for state in new_states[:1]:
        generator.set_rng_state(state)


def program(
    function: Callable[..., Any], *args: Any, arch: str = "sm_90", **kwargs: Any
) -> CudaProgram:
    """What `function(*args, **kwargs)` becomes on CUDA: its kernels as CUDA C, and its launches.

    With tensors of the CPU neither a GPU nor CuPy is needed; nothing is computed. `source` of the
    result is the text of the kernels, `launches` their launches in order, `steps` these and the
    library calls between them, `buffers` the memory that they work on; `str` lists all of it, and
    `save(folder)` writes it as files. `arch` is the architecture that the program is meant for.

    Raises TraceError where the function cannot be traced, ValueError for an unknown `arch` or work
    that lies on several devices.

    >>> import tgraph as tg
    >>> program = tg.cuda.program(lambda x: tg.softmax(x, -1), tg.ones(64, 512))
    >>> [(launch.name, launch.grid, launch.block) for launch in program.launches]
    [('k0_max_sum_div', 16, (128, 1))]
    >>> print(program)
    program for sm_90
      status status int64[8] 64 bytes
      input x float32[64, 512] 131072 bytes
      output result0 float32[64, 512] 131072 bytes
       0  launch k0_max_sum_div<<<16, (128, 1)>>>(in0 = x float32[32768], out1 = result0 \
float32[32768])
    """
    from ..compiler.targets.cuda.program import program_of

    return program_of(trace(function, *args, **kwargs).of_known_sizes(), arch)
