"""Memory of the fake's devices with the names of `cupy.cuda`: pointers, the pool, host memory.

The pool hands a freed block only to a request of the same rounded size, on the same stream, and
makes it look fresh. CuPy would split larger ones: `used_bytes` is the same, `total_bytes` not.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

from .machine import (
    DEVICES,
    UNIT,
    Block,
    CUDARuntimeError,
    HostBlock,
    Work,
    bytes_at,
    context,
    machine,
)

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, DEFAULT = 1, 2, 3, 4


class OutOfMemoryError(MemoryError):
    """As CuPy's."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(text + (f", limit set to: {limit:,} bytes)." if limit else ")."))


class BaseMemory:
    """Memory at `ptr` of `size` bytes on the device `device_id`."""

    ptr: int
    size: int
    device_id: int

    def __int__(self) -> int:
        return self.ptr

    @property
    def device(self) -> Any:
        from .devices import Device

        return Device(self.device_id)


class Memory(BaseMemory):
    """Memory of its own, freed when the object dies."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id, self.ptr = size, context.device, 0
        if size:
            block = machine.allocate(size, size, self.device_id)
            self.ptr = block.start
            weakref.finalize(self, _give_up, block)


def _give_up(block: Block) -> None:
    block.live = False
    machine.release(block)


class UnownedMemory(BaseMemory):
    """Memory that somebody else owns; `owner` is kept."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        if device_id < 0:
            if ptr == 0:
                message = "UnownedMemory requires explicit device ID for a null pointer."
                raise RuntimeError(message)
            (block,) = machine.require([(ptr, size)], "UnownedMemory")
            device_id = block.device
        self.ptr, self.size, self.device_id, self._owner = ptr, size, device_id, owner


class PooledMemory(BaseMemory):
    """Memory that goes back to its pool when the object dies."""

    identity = "Memory"

    def __init__(self, pool: SingleDevicePool, block: Block) -> None:
        self.ptr, self.size, self.device_id = block.start, block.size, block.device
        self.pool = pool.reference  # its own: Python clears those that die in a cycle first
        self._block = block

    def free(self) -> None:
        """Give the memory back; nothing where that was done."""
        if not self.ptr:
            return
        facts = {"device_id": self.device_id, "mem_size": self.size, "mem_ptr": self.ptr}
        facts["pmem_id"] = id(self)
        self.ptr = 0
        hooks = list(context.hooks.values())
        for hook in hooks:
            hook.free_preprocess(**facts)
        self._block.live = False
        pool = self.pool()
        if pool is None:
            machine.release(self._block)
        else:
            pool.take_back(self._block)
        for hook in hooks:
            hook.free_postprocess(**facts)
        self._block.check()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            self.free()


class MemoryPointer:
    """A place in memory, which it keeps alive."""

    __slots__ = ("device_id", "mem", "ptr")

    def __init__(self, mem: BaseMemory, offset: int) -> None:
        if not isinstance(mem, BaseMemory):
            raise TypeError(f"a MemoryPointer takes memory of a device, not {type(mem).__name__}")
        assert mem.ptr != 0 or offset == 0
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    def __int__(self) -> int:
        return self.ptr

    @property
    def device(self) -> Any:
        return self.mem.device

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -offset

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        if size > 0:
            memcpy_async(self.ptr, src.ptr, size, DEFAULT, _pointer(stream))

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        _refuse_while_capturing(stream, "H2D transfers")
        if size > 0:
            memcpy_async(self.ptr, _address(mem), size, HOST_TO_DEVICE, _pointer(stream))

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        _refuse_while_capturing(stream, "D2H transfers")
        if size > 0:
            memcpy_async(_address(mem), self.ptr, size, DEVICE_TO_HOST, _pointer(stream))

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        if isinstance(mem, MemoryPointer):
            self.copy_from_device_async(mem, size, stream)
        else:
            self.copy_from_host_async(mem, size, stream)

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        _refuse_while_capturing(None, "synchronous API calls")
        if size > 0:
            memcpy(self.ptr, src.ptr, size, DEFAULT)

    def copy_from_host(self, mem: Any, size: int) -> None:
        _refuse_while_capturing(None, "synchronous API calls")
        if size > 0:
            memcpy(self.ptr, _address(mem), size, HOST_TO_DEVICE)

    def copy_to_host(self, mem: Any, size: int) -> None:
        _refuse_while_capturing(None, "synchronous API calls")
        if size > 0:
            memcpy(_address(mem), self.ptr, size, DEVICE_TO_HOST)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        if size > 0:
            memset_async(self.ptr, value, size, _pointer(stream))

    def memset(self, value: int, size: int) -> None:
        _refuse_while_capturing(None, "synchronous API calls")
        if size > 0:
            memset(self.ptr, value, size)


def _pointer(stream: Any) -> int:
    return context.stream_pointer() if stream is None else int(stream.ptr)


def _address(mem: Any) -> int:
    return mem if isinstance(mem, int) else int(mem.value)


def _refuse_while_capturing(stream: Any, what: str) -> None:
    if machine.stream(_pointer(stream)).capture is not None:
        raise RuntimeError(f"the current stream is capturing, so {what} are disallowed")


# -- copies, as in cupy.cuda.runtime ---------------------------------------------------------


def _copy_work(dst: int, src: int, size: int, kind: int) -> Work:
    to_device = kind in (HOST_TO_DEVICE, DEVICE_TO_DEVICE)
    from_device = kind in (DEVICE_TO_HOST, DEVICE_TO_DEVICE)
    if kind == DEFAULT:
        to_device, from_device = (machine.block_at(each) is not None for each in (dst, src))
    for address, on_device in ((dst, to_device), (src, from_device)):
        if address == 0 or (machine.block_at(address) is not None) != on_device:
            raise CUDARuntimeError(1)
    touches = [(dst, size)] * to_device + [(src, size)] * from_device
    hosts = (machine.pinned_at(each) for each in (dst, src))
    held = tuple(each for each in hosts if each is not None)
    return Work(lambda: _move(dst, src, size), tuple(touches), "memcpy", held)


def _move(dst: int, src: int | bytes, size: int) -> None:
    ctypes.memmove(dst, src, size)


def _is_pageable(address: int) -> bool:
    """Whether an address is host memory that is not pinned."""
    return machine.block_at(address) is None and machine.pinned_at(address) is None


def memcpy_async(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """cudaMemcpyAsync, also of host memory while the stream captures, as CUDA lets it be.

    Otherwise host memory that is not pinned is read at once, through the driver's own pinned
    memory, and written before this returns.
    """
    work = _copy_work(dst, src, size, kind)
    if machine.stream(stream).capture is not None:
        machine.enqueue(stream, work)
        return
    if _is_pageable(src):
        data = ctypes.string_at(src, size)
        work = work._replace(run=lambda: _move(dst, data, size))
    machine.enqueue(stream, work)
    if _is_pageable(dst):
        machine.catch_up(stream)


def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    """cudaMemcpy on the null stream, as "API synchronization behavior" of the runtime tells.

    It waits for the copy, but to a device from host memory that is not pinned: what was before is
    waited for, and that memory read. Copies within devices wait for nothing.
    """
    machine.refuse_synchronous(context.device)
    staged = _is_pageable(src)
    if staged:
        machine.catch_up(0)
    memcpy_async(dst, src, size, kind, 0)
    within = all(machine.block_at(each) is not None for each in (dst, src))
    if not (staged or within):
        machine.catch_up(0)
    machine.sync_count += 1


def memset_async(ptr: int, value: int, size: int, stream: int) -> None:
    """cudaMemsetAsync."""

    def run() -> None:
        bytes_at(ptr, size)[:] = value & 0xFF

    machine.enqueue(stream, Work(run, ((ptr, size),), "memset"))


def memset(ptr: int, value: int, size: int) -> None:
    """cudaMemset."""
    machine.refuse_synchronous(context.device)
    memset_async(ptr, value, size, 0)


# -- the pool --------------------------------------------------------------------------------


class SingleDevicePool:
    """Free blocks of one device, by stream and size, and how much is in use."""

    def __init__(self, device: int) -> None:
        self.reference = weakref.ref(self)
        self.device, self.used, self.total, self.limit = device, 0, 0, 0
        self._free: dict[tuple[int, int], list[Block]] = {}

    def malloc(self, size: int) -> MemoryPointer:
        rounded = -(-size // UNIT) * UNIT
        facts = {"device_id": self.device, "size": size, "mem_size": rounded}
        hooks = list(context.hooks.values())
        for hook in hooks:
            hook.malloc_preprocess(**facts)
        memory: BaseMemory | None = None
        try:
            memory = self._malloc(size, rounded) if size else Memory(0)
        finally:
            facts["mem_ptr"] = 0 if memory is None else memory.ptr
            facts["pmem_id"] = 0 if memory is None else id(memory)
            for hook in hooks:
                hook.malloc_postprocess(**facts)
        return MemoryPointer(memory, 0)

    def _malloc(self, size: int, rounded: int) -> PooledMemory:
        arena = context.stream_pointer()
        with machine.lock:
            free = self._free.get((arena, rounded))
            used = free.pop() if free else None
            block = self._grow(size, rounded, arena) if used is None else used
            block.live, block.requested = True, size
            block.life += 1
            self.used += rounded
        if used is not None:
            _refresh(used, size, arena)
        return PooledMemory(self, block)

    def _grow(self, size: int, rounded: int, arena: int) -> Block:
        """A block from the device; on failure again without free blocks, and without garbage."""
        for attempt in range(3):
            if attempt:
                self.free_all_blocks()
            if attempt == 2 and gc.collect() >= 0:
                self.free_all_blocks()
            if self.limit and self.total + rounded > self.limit:
                continue
            try:
                block = self._allocate(size, rounded, arena)
            except CUDARuntimeError as error:
                if error.status != 2:
                    raise
                continue
            self.total += rounded
            return block
        raise OutOfMemoryError(rounded, self.total, self.limit)

    def _allocate(self, size: int, rounded: int, arena: int) -> Block:
        facts = {"device_id": self.device, "mem_size": rounded}
        hooks = list(context.hooks.values())
        for hook in hooks:
            hook.alloc_preprocess(**facts)
        block: Block | None = None
        try:
            block = machine.allocate(size, rounded, self.device, arena)
        finally:
            for hook in hooks:
                hook.alloc_postprocess(**facts, mem_ptr=0 if block is None else block.start)
        return block

    def take_back(self, block: Block) -> None:
        with machine.lock:
            self._free.setdefault((block.arena, block.size), []).append(block)
            self.used -= block.size

    def free_all_blocks(self, stream: Any = None) -> None:
        with machine.lock:
            for key in list(self._free):
                if stream is None or key[0] == stream.ptr:
                    for block in self._free.pop(key):
                        self.total -= block.size
                        machine.release(block)

    def free_count(self) -> int:
        return sum(map(len, self._free.values()))


def _refresh(block: Block, size: int, stream: int) -> None:
    """Make a used block look fresh: behind what its stream still does with it."""
    state = machine.stream(stream)
    if state.pending and state.capture is None and not machine.broken:
        work = Work(lambda: block.refresh(size), ((block.start, 1),), "an allocation")
        machine.enqueue(stream, work)
    else:
        block.refresh(size)


class MemoryPool:
    """As CuPy's: the numbers are those of the current device."""

    def __init__(self) -> None:
        self._pools = [SingleDevicePool(device) for device in range(DEVICES)]

    def _here(self) -> SingleDevicePool:
        return self._pools[context.device]

    def malloc(self, size: int) -> MemoryPointer:
        return self._here().malloc(size)

    def free_all_blocks(self, stream: Any = None) -> None:
        self._here().free_all_blocks(stream)

    def n_free_blocks(self) -> int:
        return self._here().free_count()

    def used_bytes(self) -> int:
        return self._here().used

    def free_bytes(self) -> int:
        return self._here().total - self._here().used

    def total_bytes(self) -> int:
        return self._here().total

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        if size is not None and fraction is not None:
            raise ValueError("size and fraction cannot be specified at one time")
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = int(fraction * machine.memory)
        if size is not None and size < 0:
            raise ValueError(f"memory limit size out of range: {size}")
        self._here().limit = size or 0

    def get_limit(self) -> int:
        return self._here().limit


class _Allocator:
    """The pools in use; new ones begin with every `install`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.pool, self.pinned, self.watcher = MemoryPool(), PinnedMemoryPool(), EventWatcher()


def alloc(size: int) -> MemoryPointer:
    """Memory of the current device from the default pool."""
    return allocator.pool.malloc(size)


def get_default_memory_pool() -> MemoryPool:
    return allocator.pool


class MemoryHook:
    """As CuPy's: methods that are called around allocations, in a `with` statement."""

    name = "MemoryHook"

    def __enter__(self) -> MemoryHook:
        if self.name in context.hooks:
            raise KeyError(f"memory hook {self.name} already exists")
        context.hooks[self.name] = self
        return self

    def __exit__(self, *_: object) -> None:
        del context.hooks[self.name]

    def alloc_preprocess(self, **kwargs: int) -> None: ...
    def alloc_postprocess(self, **kwargs: int) -> None: ...
    def malloc_preprocess(self, **kwargs: int) -> None: ...
    def malloc_postprocess(self, **kwargs: int) -> None: ...
    def free_preprocess(self, **kwargs: int) -> None: ...
    def free_postprocess(self, **kwargs: int) -> None: ...


# -- pinned host memory ----------------------------------------------------------------------


class PooledPinnedMemory:
    """Pinned memory that goes back to its pool when the object dies."""

    def __init__(self, pool: PinnedMemoryPool, block: HostBlock) -> None:
        self.ptr, self.size = block.start, block.size
        self.pool = weakref.ref(pool)
        self._block = block

    def free(self) -> None:
        """Give the memory back; nothing where that was done."""
        if not self.ptr:
            return
        self.ptr = self.size = 0
        self._block.live = False
        pool = self.pool()
        if pool is not None:
            pool._take_back(self._block)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            self.free()


class PinnedMemoryPointer:
    """Host memory with the buffer protocol. Made by `alloc_pinned_memory`."""

    ptr: int
    mem: PooledPinnedMemory

    def size(self) -> int:
        return ctypes.sizeof(self)  # type: ignore[arg-type]

    def __int__(self) -> int:
        return self.ptr


class PinnedMemoryPool:
    """As CuPy's: a block that is let go is the next one's of its size, whoever still reads it."""

    def __init__(self) -> None:
        self._free: dict[int, list[HostBlock]] = {}

    def malloc(self, size: int) -> Any:
        units = -(-size // UNIT) * UNIT
        rounded = 1 << max(units - 1, 0).bit_length() if units else UNIT
        free = self._free.get(rounded)
        block = free.pop() if free else HostBlock(rounded)
        block.live, block.life = True, block.life + 1
        machine.pinned[block.start] = block
        array: Any = ctypes.c_uint8 * rounded
        made = type("PinnedMemoryPointer", (PinnedMemoryPointer, array), {}).from_buffer(
            memoryview(block.bytes)
        )
        made.ptr, made.mem = block.start, PooledPinnedMemory(self, block)
        return made

    def _take_back(self, block: HostBlock) -> None:
        machine.pinned.pop(block.start, None)
        self._free.setdefault(block.size, []).append(block)

    def free_all_blocks(self) -> None:
        allocator.watcher.check_and_release()
        self._free.clear()

    def n_free_blocks(self) -> int:
        return sum(map(len, list(self._free.values())))


class EventWatcher:
    """CuPy's way to keep host memory until an event: those that came first go first."""

    def __init__(self) -> None:
        self._events: list[tuple[Any, Any]] = []

    def add(self, event: Any, held: Any) -> None:
        self.check_and_release()
        if not event._is_reached:
            self._events.append((event, held))

    def check_and_release(self) -> None:
        while self._events and self._events[0][0]._is_reached:
            del self._events[0]


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    return allocator.pinned


def alloc_pinned_memory(size: int) -> Any:
    """Host memory; as CuPy's it may be larger than asked for."""
    allocator.watcher.check_and_release()
    return allocator.pinned.malloc(size)


def is_memory_pinned(data: int) -> bool:
    return machine.pinned_at(data) is not None


def keep_until_done(stream: Any, held: Any) -> None:
    """Keep what a copy of the stream reads, as CuPy does."""
    allocator.watcher.add(stream.record(), held)


allocator = _Allocator()
