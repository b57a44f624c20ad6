"""What stands in for `cupy_backends.cuda.api.driver`: launches on the shim."""

from __future__ import annotations

import ctypes
import operator
from typing import NoReturn

from ..shim import MOST_SHARED, MOST_STATIC_SHARED, Library, Parameter
from .machine import Work, machine

_STATUS = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    400: ("CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
}
_SHARED_BYTES = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LARGEST = (2**31 - 1, 65535, 65535, 1024, 1024, 64)


class CUDADriverError(RuntimeError):
    """As CuPy's: `status` is the number of the error."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(": ".join(_STATUS[status]))


def launchKernel(
    f: int,
    grid_dim_x: int,
    grid_dim_y: int,
    grid_dim_z: int,
    block_dim_x: int,
    block_dim_y: int,
    block_dim_z: int,
    shared_mem_bytes: int,
    stream: int,
    kernel_params: int,
    extra: int,
) -> None:
    """Launch the kernel of a `Function.ptr`.

    `kernel_params` is the address of an array of addresses, one per parameter, at which its value
    lies. The values are read now, also where the stream captures. Raises CUDADriverError as CUDA
    does, TypeError and OverflowError where CuPy does, Violation for a pointer that is no memory in
    use, and the shim's LaunchError for what happens in the kernel.
    """
    if machine.broken:
        raise CUDADriverError(machine.broken)
    numbers = (grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z)
    sizes = tuple(_unsigned(number) for number in (*numbers, shared_mem_bytes))
    f, stream, kernel_params, extra = map(operator.index, (f, stream, kernel_params, extra))
    if f not in machine.functions:
        raise CUDADriverError(400)
    library, name, device = machine.functions[f]
    owner = machine.stream(stream).device
    if owner not in (-1, device):
        raise CUDADriverError(400)
    if sizes[6] > machine.dynamic_shared.get(f, MOST_STATIC_SHARED):
        raise CUDADriverError(1)
    if extra or any(not 1 <= size <= most for size, most in zip(sizes, _LARGEST)):
        raise CUDADriverError(1)
    parameters = library.parameters(name)
    args = _values(kernel_params, parameters)
    if name in machine.refused:
        _refuse(machine.refused[name], stream)
    pointers = [arg for arg in args if isinstance(arg, int)]
    touches = tuple((arg, 1) for arg in pointers if machine.pinned_at(arg) is None)
    work = Work(lambda: _run(library, name, sizes, args), touches, f"kernel {name}")
    for block in machine.require(touches, work.name):
        if block.device != device:
            raise CUDADriverError(1)
    machine.enqueue(stream, work)


def _refuse(status: int, stream: int) -> NoReturn:
    """The error of a launch; a capture of its stream is lost."""
    capture = machine.stream(stream).capture
    if capture is not None:
        capture.invalid = True
    raise CUDADriverError(status)


def funcSetAttribute(f: int, attribute: int, value: int) -> None:
    """Let launches of a `Function.ptr` ask for more than 48 KiB of shared memory, by attribute 8.

    Raises CUDADriverError as CUDA does for what a block cannot have, NotImplementedError for other
    attributes.
    """
    f, attribute, value = map(operator.index, (f, attribute, value))
    if attribute != _DYNAMIC_SHARED:
        raise NotImplementedError(f"attribute {attribute} of a function")
    if f not in machine.functions:
        raise CUDADriverError(400)
    library, name, _ = machine.functions[f]
    if not 0 <= value <= MOST_SHARED - library.shared_bytes(name):
        raise CUDADriverError(1)
    machine.dynamic_shared[f] = value


def funcGetAttribute(attribute: int, f: int) -> int:
    """The shared memory that a kernel declares, in bytes, which is attribute 1.

    Raises CUDADriverError as CUDA does, NotImplementedError for other attributes.
    """
    attribute, f = map(operator.index, (attribute, f))
    if attribute != _SHARED_BYTES:
        raise NotImplementedError(f"attribute {attribute} of a function")
    if machine.broken:
        raise CUDADriverError(machine.broken)
    if f not in machine.functions:
        raise CUDADriverError(400)
    library, name, _ = machine.functions[f]
    return library.shared_bytes(name)


def _unsigned(number: int) -> int:
    number = operator.index(number)
    if not 0 <= number < 1 << 32:
        raise OverflowError(f"{number} is no unsigned int")
    return number


def _values(address: int, parameters: tuple[Parameter, ...]) -> tuple[int | bytes, ...]:
    """The values of the parameters: numbers for pointers, bytes for others."""
    if parameters and not address:
        raise CUDADriverError(1)
    cells = (ctypes.c_uint64 * len(parameters)).from_address(address) if parameters else ()
    found: list[int | bytes] = []
    for cell, parameter in zip(cells, parameters):
        data = ctypes.string_at(cell, 8 if parameter.pointer else parameter.bytes)
        found.append(int.from_bytes(data, "little") if parameter.pointer else data)
    return tuple(found)


def _run(
    library: Library, name: str, sizes: tuple[int, ...], args: tuple[int | bytes, ...]
) -> None:
    machine.break_by(name)
    machine.launches.append(name)
    library.launch_at(
        name, sizes[:3], sizes[3:6], args, sizes[6], order=machine.order, seed=machine.seed
    )
