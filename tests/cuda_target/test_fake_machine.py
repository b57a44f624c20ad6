"""The machine behind the stand-in for CuPy: its memory, streams and kernels are CUDA's."""

import ctypes
import gc
import threading

import ml_dtypes
import numpy as np
import pytest
from cuda_tools import fake_cupy, shim
from cuda_tools.fake_cupy import Violation, cupy, driver
from cuda_tools.fake_cupy.machine import CUDARuntimeError

bfloat16 = np.dtype(ml_dtypes.bfloat16)
NEEDS_COMPILER = pytest.mark.skipif(shim.available() is not None, reason=shim.available() or "")


@pytest.fixture(autouse=True)
def machine():
    with fake_cupy.install() as made:
        yield made


def held(values, dtype=None):
    return cupy.array(np.array(values, dtype))


# -- memory --------------------------------------------------------------------------------------


def test_memory_is_counted_and_comes_back():
    pool = cupy.get_default_memory_pool()
    assert pool.used_bytes() == 0
    x, y = cupy.empty(100, np.float32), cupy.empty(200, np.float32)
    assert pool.used_bytes() == 512 + 1024
    view = x[:10]
    del x
    assert pool.used_bytes() == 512 + 1024
    del view, y
    assert pool.used_bytes() == 0 and pool.total_bytes() == 512 + 1024
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


def test_freed_memory_goes_to_the_next_taker():
    x = cupy.zeros(3)
    pointer = x.data.ptr
    del x
    y = cupy.empty(3)
    assert y.data.ptr == pointer and np.isnan(y.get()).all()
    with cupy.cuda.Stream(non_blocking=True):
        del y
        assert cupy.empty(3).data.ptr != pointer  # another stream has its own blocks


def test_limits_make_errors():
    pool = cupy.get_default_memory_pool()
    pool.set_limit(size=1024)
    kept = cupy.empty(1024, np.uint8)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match=r"limit set to: 1,024"):
        cupy.empty(1, np.uint8)
    del kept
    assert cupy.empty(1, np.uint8).size == 1  # free blocks are given up first
    pool.set_limit(fraction=0.5)
    assert pool.get_limit() == 1 << 29
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)


def test_a_device_has_an_end():
    with fake_cupy.install(memory_bytes=4096), pytest.raises(MemoryError):
        cupy.empty(8192, np.uint8)


def test_hooks_see_allocations():
    seen = []

    class Hook(cupy.cuda.MemoryHook):
        name = "test"

        def malloc_postprocess(self, **facts):
            seen.append(("malloc", facts["size"], facts["mem_size"], facts["mem_ptr"] != 0))

        def free_postprocess(self, **facts):
            seen.append(("free", facts["mem_size"], facts["device_id"]))

    with Hook():
        x = cupy.empty(3, np.uint8)
        del x
    cupy.empty(3)
    assert seen == [("malloc", 3, 512, True), ("free", 512, 0)]


def test_arrays_lie_in_memory_of_an_arena():
    arena = cupy.empty(4096, np.uint8)
    memory = cupy.cuda.UnownedMemory(arena.data.ptr, arena.nbytes, arena)
    x = cupy.ndarray((2, 3), np.float32, cupy.cuda.MemoryPointer(memory, 512))
    x.fill(2)
    assert arena[512:].view(np.float32)[:6].tolist() == [2] * 6
    with pytest.raises(Violation, match="end 8 bytes behind"):
        cupy.ndarray((2, 3), np.float32, cupy.cuda.MemoryPointer(memory, 4080))
    del arena, x
    gc.collect()
    assert memory.ptr and cupy.get_default_memory_pool().used_bytes() == 4096


def test_writes_behind_an_array_are_seen():
    x = cupy.empty(3, np.uint8)
    ctypes.memset(x.data.ptr + 5, 0, 1)
    with pytest.raises(Violation, match="3 bytes behind 3 of an array"):
        x.fill(0)


def test_pinned_memory_is_a_buffer():
    memory = cupy.cuda.alloc_pinned_memory(10)
    host = np.frombuffer(memory, np.float32, 2)
    host[:] = 1, 2
    x = cupy.empty(2, np.float32)
    runtime = cupy.cuda.runtime
    runtime.memcpyAsync(x.data.ptr, memory.ptr, 8, runtime.memcpyHostToDevice, 0)
    assert x.tolist() == [1, 2] and memory.size() >= 10


def test_kinds_of_copies_are_checked():
    x, host = cupy.zeros(2), np.ones(2)
    runtime = cupy.cuda.runtime
    with pytest.raises(runtime.CUDARuntimeError) as error:
        runtime.memcpy(x.data.ptr, host.ctypes.data, 16, runtime.memcpyDeviceToHost)
    assert error.value.status == 1
    with pytest.raises(Violation):
        runtime.memcpy(x.data.ptr, host.ctypes.data, 32, runtime.memcpyHostToDevice)


# -- devices and streams -------------------------------------------------------------------------


def test_there_are_two_devices():
    assert cupy.cuda.runtime.getDeviceCount() == 2
    with cupy.cuda.Device(1) as device:
        x = cupy.zeros(2)
        assert device.compute_capability == "90" and cupy.cuda.Device().id == 1
        assert cupy.get_default_memory_pool().used_bytes() == 512
    assert x.device.id == 1 and cupy.get_default_memory_pool().used_bytes() == 0
    with pytest.raises(ValueError, match="different from the current device"):
        x + 1
    y = x.copy()
    assert y.device.id == 0 and x.get().tolist() == y.get().tolist()
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidDevice"):
        cupy.cuda.Device(2).use()


def test_devices_are_current_per_thread():
    seen = []
    cupy.cuda.Device(1).use()
    thread = threading.Thread(target=lambda: seen.append(cupy.cuda.Device().id))
    thread.start()
    thread.join()
    assert seen == [0]


def test_streams_are_current_in_a_with_statement():
    null = cupy.cuda.Stream.null
    stream = cupy.cuda.Stream(non_blocking=True)
    assert cupy.cuda.get_current_stream() is null and null.ptr == 0
    with stream:
        assert cupy.cuda.get_current_stream() is stream
    assert cupy.cuda.get_current_stream() is null
    with cupy.cuda.Device(1), pytest.raises(RuntimeError, match="does not match"), stream:
        pass


def test_events_take_time():
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    end.record(cupy.cuda.Stream(non_blocking=True))
    end.synchronize()
    assert cupy.cuda.get_elapsed_time(start, end) >= 0
    with pytest.raises(CUDARuntimeError):
        cupy.cuda.get_elapsed_time(cupy.cuda.Event(disable_timing=True), end)


@pytest.fixture
def stream():
    with cupy.cuda.Stream(non_blocking=True) as made:
        yield made


def test_a_graph_does_again_what_was_recorded(stream):
    x, y, z = cupy.zeros(4), cupy.ones(4), cupy.empty(4)
    stream.begin_capture()
    cupy.add(x, y, z)
    z *= 2
    cupy.cuda.runtime.memcpyAsync(x.data.ptr, z.data.ptr, 32, 3, stream.ptr)
    cupy.cuda.runtime.memsetAsync(y.data.ptr, 0, 8, stream.ptr)
    graph = stream.end_capture()
    assert x.tolist() == [0] * 4 and np.isnan(z.get()).all()
    graph.launch(stream)
    assert x.tolist() == [2] * 4 and y.tolist() == [0, 1, 1, 1]
    graph.launch()
    assert x.tolist() == [4, 6, 6, 6]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x, stream: stream.synchronize(), CUDARuntimeError),
        (lambda x, stream: cupy.cuda.Device().synchronize(), CUDARuntimeError),
        (lambda x, stream: cupy.cuda.runtime.deviceSynchronize(), CUDARuntimeError),
        (lambda x, stream: cupy.cuda.runtime.memset(x.data.ptr, 0, 8), CUDARuntimeError),
        (lambda x, stream: stream.record().synchronize(), CUDARuntimeError),
        (lambda x, stream: stream.wait_event(cupy.cuda.Event()), CUDARuntimeError),
        (lambda x, stream: x.get(), RuntimeError),
        (lambda x, stream: bool(x[0]), RuntimeError),
        (lambda x, stream: x.set(np.zeros(3)), RuntimeError),
        (lambda x, stream: cupy.array(np.zeros(3)), (RuntimeError, CUDARuntimeError)),
        (lambda x, stream: x[x > 0], RuntimeError),
        (lambda x, stream: x @ x, NotImplementedError),
        (lambda x, stream: cupy.empty(10_000), CUDARuntimeError),
    ],
)
def test_what_cannot_be_captured(stream, call, error):
    kept = [cupy.zeros(3) for _ in range(4)]
    x = kept.pop()
    del kept  # free blocks, which a capture may use
    stream.begin_capture()
    with pytest.raises(error):
        call(x, stream)


def test_a_capture_that_was_broken_gives_no_graph(stream):
    stream.begin_capture()
    with pytest.raises(CUDARuntimeError):
        stream.synchronize()
    with pytest.raises(CUDARuntimeError, match="Invalidated"):
        stream.end_capture()
    with pytest.raises(CUDARuntimeError, match="Unmatched"):
        stream.end_capture()
    stream.synchronize()


def test_the_null_stream_waits_for_blocking_streams_only():
    free, blocking = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream()
    x = cupy.zeros(2)
    free.begin_capture()
    x += 1
    assert x.tolist() == [1, 1]
    free.end_capture()
    blocking.begin_capture()
    with pytest.raises(CUDARuntimeError, match="Implicit"):
        x += 1
    with pytest.raises(CUDARuntimeError):
        blocking.end_capture()
    with pytest.raises(RuntimeError, match="default"):
        cupy.cuda.Stream.null.begin_capture()


def test_a_graph_keeps_no_memory(stream):
    x = cupy.zeros(3)
    stream.begin_capture()
    x += 1
    graph = stream.end_capture()
    del x
    with pytest.raises(Violation, match="freed"):
        graph.launch()


def test_graphs_come_from_captures_only():
    with pytest.raises(NotImplementedError):
        cupy.cuda.Graph()


# -- a lazy machine ------------------------------------------------------------------------------


@pytest.fixture
def lazy():
    with fake_cupy.install(lazy=True):
        yield cupy.cuda.Stream(non_blocking=True)


def zeros(count):
    """An array that is there for all streams."""
    made = cupy.zeros(count)
    cupy.cuda.Device().synchronize()
    return made


def test_streams_that_do_not_block_do_not_wait_for_the_null_stream(lazy):
    x = cupy.zeros(3)
    with lazy:
        x += 1
        assert np.isnan(x.get()).all()
    assert x.tolist() == [0] * 3


def test_what_waits_for_nothing_reads_old_values(lazy):
    x = cupy.zeros(3)
    assert np.isnan(fake_cupy.bytes_at(x.data.ptr, 24).view(float)).all()
    cupy.cuda.Stream.null.synchronize()
    with lazy:
        x += 1
    assert x.tolist() == [0] * 3
    lazy.synchronize()
    assert x.tolist() == [1] * 3


@pytest.mark.parametrize(
    "wait",
    [
        lambda stream: stream.record().synchronize(),
        lambda stream: cupy.cuda.Device().synchronize(),
        lambda stream: cupy.cuda.Stream.null.wait_event(stream.record()),
        lambda stream: cupy.empty(3).get(stream=stream),
    ],
)
def test_ways_to_wait(lazy, wait):
    x = zeros(3)
    with lazy:
        x += 1
    wait(lazy)
    assert x.tolist() == [1] * 3


def test_blocking_streams_are_waited_for_by_the_null_stream(lazy):
    x = cupy.zeros(3)
    with cupy.cuda.Stream():
        x += 1
    assert x.tolist() == [1] * 3


def test_streams_wait_for_the_event_as_it_was_recorded(lazy):
    x, other = zeros(3), cupy.cuda.Stream(non_blocking=True)
    with lazy:
        x += 1
        event = lazy.record()
        x *= 10
    with other:
        other.wait_event(event)
        x += 5
    assert not event.done
    other.synchronize()
    assert x.tolist() == [6] * 3
    cupy.cuda.runtime.deviceSynchronize()
    assert x.tolist() == [60] * 3


def test_memory_that_another_stream_still_uses_must_be_kept(lazy):
    x = zeros(3)
    with lazy:
        y = x + 1
    del x
    with pytest.raises(Violation, match="freed before it ran"):
        lazy.synchronize()
    assert y.size == 3


def test_memory_of_the_same_stream_may_be_used_again(lazy):
    with lazy:
        x = cupy.zeros(3)
        y = x + 1
        del x
        z = cupy.empty(2) + y[:2]
        assert y.tolist() == [1] * 3 and np.isnan(z.get()).all()


def test_pinned_memory_is_read_late_and_other_memory_at_once(lazy):
    runtime = cupy.cuda.runtime
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(24), np.float64, 3)
    for host, wanted in ((pinned, 2.0), (np.empty(3), 1.0)):
        x = cupy.empty(3)
        host[:] = 1
        runtime.memcpyAsync(x.data.ptr, host.ctypes.data, 24, runtime.memcpyHostToDevice, lazy.ptr)
        host[:] = 2
        lazy.synchronize()
        assert x.tolist() == [wanted] * 3
        host[:] = 0
        runtime.memcpyAsync(host.ctypes.data, x.data.ptr, 24, runtime.memcpyDeviceToHost, lazy.ptr)
        assert host[0] == (0.0 if host is pinned else 1.0)
        lazy.synchronize()


@pytest.mark.parametrize("pinned", [True, False])
def test_copies_that_the_host_waits_for(lazy, pinned):
    """cudaMemcpy: to a device it may end later than the call, where the memory is not pinned."""
    runtime = cupy.cuda.runtime
    held = cupy.cuda.alloc_pinned_memory(24)
    host = np.frombuffer(held, np.float64, 3) if pinned else np.empty(3)
    x, y = zeros(3), zeros(3)
    host[:] = 1
    runtime.memcpy(x.data.ptr, host.ctypes.data, 24, runtime.memcpyHostToDevice)
    host[:] = 2
    with lazy:  # which does not wait for the null stream
        assert x.get().tolist() == [1.0 if pinned else 0.0] * 3
    x += 1
    runtime.memcpy(host.ctypes.data, x.data.ptr, 24, runtime.memcpyDeviceToHost)
    assert host.tolist() == [2] * 3
    x += 1
    runtime.memcpy(y.data.ptr, x.data.ptr, 24, runtime.memcpyDeviceToDevice)
    with lazy:
        assert y.get().tolist() == [0] * 3


def test_arrays_read_pinned_memory_when_their_stream_does(lazy):
    """And other memory at once, through pinned memory that is kept until then."""
    held = cupy.cuda.alloc_pinned_memory(24)
    pinned, plain = np.frombuffer(held, np.float64, 3), np.ones(3)
    pinned[:] = 1
    at_once, turned = cupy.array(plain), cupy.array(pinned[::-1])
    waited = cupy.array(pinned, blocking=True)
    late = cupy.array(pinned)
    pinned[:] = plain[:] = 2
    del held
    for each, value in ((late, 2), (at_once, 1), (turned, 1), (waited, 1)):
        assert each.tolist() == [value] * 3


def test_pinned_memory_is_used_again_as_it_was(machine):
    held = cupy.cuda.alloc_pinned_memory(1000)
    array = np.frombuffer(held, np.float64)
    array[:] = 5
    at = held.ptr
    assert held.size() == 1024 and held.mem.size == 1024
    assert cupy.cuda.pinned_memory.is_memory_pinned(at + 100)
    del held
    assert cupy.cuda.alloc_pinned_memory(1000).ptr != at  # the array has it
    del array
    gc.collect()
    assert not cupy.cuda.pinned_memory.is_memory_pinned(at)
    again = cupy.cuda.alloc_pinned_memory(600)
    assert again.ptr == at and np.frombuffer(again, np.float64)[0] == 5
    assert cupy.cuda.alloc_pinned_memory(300).ptr != at


@pytest.mark.parametrize("kind", ["to the device", "from it"])
def test_pinned_memory_that_a_copy_still_uses_must_be_kept(lazy, kind):
    runtime = cupy.cuda.runtime
    x, held = zeros(3), cupy.cuda.alloc_pinned_memory(24)
    both = x.data.ptr, held.ptr
    if kind == "to the device":
        runtime.memcpyAsync(*both, 24, runtime.memcpyHostToDevice, lazy.ptr)
    else:
        runtime.memcpyAsync(*both[::-1], 24, runtime.memcpyDeviceToHost, lazy.ptr)
    del held
    gc.collect()
    with pytest.raises(Violation, match="pinned memory of the host was freed before it ran"):
        lazy.synchronize()


def test_an_event_that_is_reached_is_done(lazy):
    x = zeros(3)
    with lazy:
        x += 1
        event = lazy.record()
        x *= 10
    event.synchronize()
    assert event.done and not lazy.done


def test_graphs_run_late_too(lazy):
    x = zeros(2)
    with lazy:
        lazy.begin_capture()
        x += 1
        graph = lazy.end_capture()
    graph.launch(lazy)
    graph.launch(lazy)
    assert x.tolist() == [0, 0]
    lazy.synchronize()
    assert x.tolist() == [2, 2]


def test_work_of_a_destroyed_stream_is_done(lazy):
    x = zeros(2)
    with cupy.cuda.Stream(non_blocking=True) as other:
        x += 1
    del other
    cupy.cuda.Device().synchronize()
    assert x.tolist() == [1, 1]


# -- kernels -------------------------------------------------------------------------------------

SOURCE = """
extern "C" __global__ void __launch_bounds__(64) doubled(const float* from, float* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 2.0f * from[i];
}
extern "C" __global__ void counted(int* to, int by) { atomicAdd(to, by); }
"""


def packed(*values):
    """The array of addresses of values, with what keeps it alive."""
    cells = [value if hasattr(value, "_type_") else ctypes.c_uint64(value) for value in values]
    pointers = (ctypes.c_void_p * len(cells))(*map(ctypes.addressof, cells))
    return ctypes.addressof(pointers), (cells, pointers)


@pytest.fixture
def module():
    from tgraph.runtime.cuda import nvrtc

    made = cupy.cuda.function.Module()
    made.load(nvrtc.compile_cubin(SOURCE, "sm_90"))
    return made


def launch(function, grid, block, *values, stream=0, shared=0):
    address, kept = packed(*values)
    driver.launchKernel(function.ptr, grid, 1, 1, block, 1, 1, shared, stream, address, 0)
    del kept


@NEEDS_COMPILER
def test_kernels_run_on_memory_of_arrays(module, machine):
    x, y = cupy.arange(128, dtype=np.float32), cupy.empty(128, np.float32)
    launch(module.get_function("doubled"), 2, 64, x.data.ptr, y.data.ptr)
    assert np.array_equal(y.get(), 2 * np.arange(128))
    count = cupy.zeros(1, np.int32)
    launch(module.get_function(b"counted"), 3, 7, count.data.ptr, ctypes.c_int(2))
    assert count.tolist() == [42] and machine.launches == ["doubled", "counted"]
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(4), np.int32)
    pinned[:] = 0
    launch(module.get_function("counted"), 2, 5, pinned.ctypes.data, ctypes.c_int(3))
    assert pinned[0] == 30


@NEEDS_COMPILER
def test_more_than_48_kib_of_shared_memory_is_asked_for_first(module):
    x, y = cupy.ones(64, np.float32), cupy.empty(64, np.float32)
    function, more = module.get_function("doubled"), (48 << 10) + 4
    launch(function, 1, 64, x.data.ptr, y.data.ptr, shared=48 << 10)
    with pytest.raises(driver.CUDADriverError, match="INVALID_VALUE"):
        launch(function, 1, 64, x.data.ptr, y.data.ptr, shared=more)
    driver.funcSetAttribute(function.ptr, 8, more)
    launch(function, 1, 64, x.data.ptr, y.data.ptr, shared=more)
    with pytest.raises(driver.CUDADriverError, match="INVALID_VALUE"):
        driver.funcSetAttribute(function.ptr, 8, 228 << 10)


@NEEDS_COMPILER
def test_launches_are_recorded_with_their_arguments(module, stream):
    x, y = cupy.ones(64, np.float32), cupy.empty(64, np.float32)
    function = module.get_function("doubled")
    address, (cells, pointers) = packed(x.data.ptr, y.data.ptr)
    stream.begin_capture()
    driver.launchKernel(function.ptr, 1, 1, 1, 64, 1, 1, 0, stream.ptr, address, 0)
    graph = stream.end_capture()
    cells[0].value = 0
    del pointers
    x *= 3
    graph.launch()
    assert y.tolist() == [6] * 64


@NEEDS_COMPILER
def test_wrong_launches_are_refused(module):
    x = cupy.zeros(64, np.float32)
    doubled = module.get_function("doubled")
    dead = cupy.zeros(64, np.float32).data.ptr
    with pytest.raises(Violation, match="freed"):
        launch(doubled, 1, 64, x.data.ptr, dead)
    with pytest.raises(Violation, match="no address of a device"):
        launch(doubled, 1, 64, x.data.ptr, 0)
    with pytest.raises(driver.CUDADriverError):
        launch(doubled, 0, 64, x.data.ptr, x.data.ptr)
    with pytest.raises(shim.LaunchError, match="at most 64"):
        launch(doubled, 1, 65, x.data.ptr, x.data.ptr)
    with pytest.raises(TypeError):
        launch(doubled, 1.0, 64, x.data.ptr, x.data.ptr)
    with pytest.raises(OverflowError):
        launch(doubled, -1, 64, x.data.ptr, x.data.ptr)
    with pytest.raises(driver.CUDADriverError, match="NOT_FOUND"):
        module.get_function("tripled")
    with cupy.cuda.Device(1), pytest.raises(driver.CUDADriverError):
        other = cupy.cuda.Stream()
        launch(doubled, 1, 64, x.data.ptr, x.data.ptr, stream=other.ptr)
    with pytest.raises(TypeError, match="bytes"):
        cupy.cuda.function.Module().load(SOURCE)


@NEEDS_COMPILER
def test_a_kernel_that_writes_behind_its_array_is_seen(module):
    x, y = cupy.zeros(64, np.float32), cupy.empty(63, np.float32)
    with pytest.raises(Violation, match="4 bytes behind 252 of an array"):
        launch(module.get_function("doubled"), 1, 64, x.data.ptr, y.data.ptr)


@NEEDS_COMPILER
def test_a_launch_that_is_refused(module, machine):
    x, y = cupy.ones(64, np.float32), cupy.zeros(64, np.float32)
    function, stream = module.get_function("doubled"), cupy.cuda.Stream(non_blocking=True)
    machine.refused["doubled"] = 701
    with pytest.raises(driver.CUDADriverError, match="OUT_OF_RESOURCES"):
        launch(function, 1, 64, x.data.ptr, y.data.ptr)
    stream.begin_capture()
    with pytest.raises(driver.CUDADriverError, match="OUT_OF_RESOURCES"):
        launch(function, 1, 64, x.data.ptr, y.data.ptr, stream=stream.ptr)
    with pytest.raises(CUDARuntimeError, match="Invalidated"):
        stream.end_capture()
    machine.refused.clear()
    launch(function, 1, 64, x.data.ptr, y.data.ptr)
    assert y.tolist() == [2] * 64


@NEEDS_COMPILER
def test_a_kernel_that_fails_loses_the_device(module, lazy):
    x, y = zeros(64).astype(np.float32), cupy.zeros(64, np.float32)
    function = module.get_function("doubled")
    fake_cupy.machine.deadly["doubled"] = 700
    launch(function, 1, 64, x.data.ptr, y.data.ptr)  # nobody knows yet
    for _ in range(2):
        with pytest.raises(CUDARuntimeError, match="IllegalAddress"):
            cupy.cuda.Device().synchronize()
    with pytest.raises(CUDARuntimeError, match="IllegalAddress"):
        y += 1
    fake_cupy.machine.broken = 0
