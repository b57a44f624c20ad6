"""`tgraph.cuda`: devices, streams, events and memory."""

from __future__ import annotations

import gc
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from tgraph.runtime.cuda import arrays, backend, devices, memory

import tgraph as tg
from tgraph.compiled import call_helpers

pytest_plugins = ["cuda_tools.device"]
MEBI = 1 << 20


@pytest.fixture
def two(cuda):
    if tg.cuda.device_count() < 2:
        pytest.skip("this machine has one CUDA device")
    return cuda


def test_without_cuda_there_is_a_way_out():
    why = backend.why_unavailable()
    if why is None:
        pytest.skip("this machine has a CUDA device")
    assert not tg.cuda.is_available()
    assert tg.cuda.device_count() == 0
    for ask in (
        lambda: tg.ones(2).cuda(),
        lambda: tg.zeros(2, device="cuda:1"),
        lambda: tg.nn.Linear(2, 2).cuda(),
        lambda: tg.ones(2).pin_memory(),
        tg.cuda.current_device,
        tg.cuda.get_rng_state,
        tg.cuda.synchronize,
    ):
        with pytest.raises(RuntimeError, match="CUDA is not available") as caught:
            ask()
        assert why in str(caught.value)
    assert tg.cuda.get_rng_state_all() == []


def test_devices(cuda):
    assert tg.cuda.is_available()
    assert tg.cuda.current_device() == 0
    assert tg.device("cuda:0") == tg.zeros(1, device="cuda").device
    assert tg.cuda.get_device_name()
    major, minor = tg.cuda.get_device_capability()
    assert tg.cuda.get_device_properties().major == major and minor >= 0
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        tg.zeros(1, device="cuda:99")
    with pytest.raises(RuntimeError, match="expected a CUDA device"):
        tg.cuda.synchronize("cpu")


def test_the_current_device(two):
    with tg.cuda.device(1):
        assert tg.cuda.current_device() == 1
        assert tg.ones(2).cuda().device == tg.device("cuda:1")
    tg.cuda.set_device("cuda:1")
    assert tg.zeros(1, device="cuda").device == tg.device("cuda:1")
    tg.cuda.set_device(0)


def test_the_default_device(two):
    with tg.device("cuda"):
        assert tg.zeros(2).is_cuda and tg.tensor([1]).is_cuda and tg.arange(3).is_cuda
        with tg.device("cpu"):
            assert tg.zeros(2).is_cpu
        assert tg.rand(2).is_cuda
    assert tg.zeros(2).is_cpu
    tg.set_default_device("cuda:1")
    try:
        assert tg.eye(3).device == tg.device("cuda:1")
    finally:
        tg.set_default_device("cpu")
    assert tg.get_default_device() == tg.device("cpu")


def test_default_devices_are_a_threads_own(cuda):
    seen = []
    with tg.device("cuda"):
        thread = threading.Thread(target=lambda: seen.append(tg.zeros(1).device))
        thread.start()
        thread.join()
    assert seen == [tg.device("cpu")]


def test_a_compiled_function_follows_the_current_device(two):
    @tg.compile
    def made(x):
        return x.sum().item if False else tg.ones(3, device="cuda") * 2

    x = tg.ones(2)
    assert made(x).device == tg.device("cuda:0")
    with tg.cuda.device(1):
        assert made(x).device == tg.device("cuda:1")
        assert made.compiles[-1].reason.startswith("the current CUDA device changed")


def test_a_compiled_function_follows_the_default_device(cuda):
    made = tg.compile(lambda x: x.shape[0] + tg.zeros(2))
    x = tg.ones(2)
    assert made(x).is_cpu
    with tg.device("cuda"):
        assert made(x).is_cuda
        assert "default device changed" in made.compiles[-1].reason
    assert made(x).is_cpu
    assert len(made.compiles) == 2


def test_streams_and_events(cuda):
    stream = tg.cuda.Stream()
    begin, end = tg.cuda.Event(enable_timing=True), tg.cuda.Event(enable_timing=True)
    x = tg.arange(1000).cuda()
    stream.wait_stream(tg.cuda.current_stream())
    with tg.cuda.stream(stream):
        assert tg.cuda.current_stream() == stream
        begin.record()
        y = (x * 2).sum()
        end.record(stream)
    assert tg.cuda.current_stream() == tg.cuda.default_stream()
    end.wait()
    assert y.item() == 999000
    end.synchronize()
    assert end.query() and stream.query()
    assert begin.elapsed_time(end) >= 0


def test_no_stream_changes_nothing(cuda):
    stream = tg.cuda.Stream()
    with stream, tg.cuda.stream(None):
        assert tg.cuda.current_stream() == stream


def test_streams_of_other_libraries(cuda):
    """CuPy stands in for the other library: it has `__cuda_stream__` too."""
    cuda_of_cupy = backend.cupy().cuda
    theirs = cuda_of_cupy.Stream(non_blocking=True)
    assert theirs.__cuda_stream__() == (0, theirs.ptr)
    shown = cuda_of_cupy.Stream.from_external(theirs)
    assert shown == theirs and shown.device_id == -1
    with shown:
        assert tg.cuda.current_stream().cuda_stream == theirs.ptr
        x = tg.arange(1000, device="cuda") * 2
    del shown
    gc.collect()
    theirs.synchronize()  # it is still there
    tg.cuda.current_stream().wait_stream(tg.cuda.Stream(handle=theirs))
    assert x.sum().item() == 999000
    with pytest.raises(TypeError, match="stream protocol"):
        cuda_of_cupy.Stream.from_external(theirs.ptr)
    with pytest.raises(TypeError, match="unsupported version 1"):
        cuda_of_cupy.Stream.from_external(SimpleNamespace(__cuda_stream__=lambda: (1, theirs.ptr)))


def test_what_is_read_of_cupy_without_a_gpu_is_there():
    """Whose a stream is, and what memory is pinned, it tells by attributes with these names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    foreign = cupy.cuda.Stream.from_external(SimpleNamespace(__cuda_stream__=lambda: (0, 64)))
    defaults = [cupy.cuda.Stream(null=True), cupy.cuda.Stream(ptds=True)]
    with backend.use(cupy, None):
        assert not any(map(memory._ends_with_its_object, [foreign, *defaults]))
    assert foreign._foreign_stream_ref is not None
    assert cupy.cuda.Stream.null._foreign_stream_ref is None
    host = np.zeros(4)
    held = SimpleNamespace(ptr=host.ctypes.data, size=host.nbytes)
    array = np.frombuffer(cupy.cuda.PinnedMemoryPointer(held, 0))
    assert arrays.is_pinned(array) and call_helpers.root_of(array[1:]) is held


def test_one_generator_serves_all_devices(cuda):
    tg.cuda.manual_seed(5)
    assert tg.cuda.initial_seed() == tg.initial_seed() == 5
    state, states = tg.cuda.get_rng_state(), tg.cuda.get_rng_state_all()
    assert tg.equal(state, tg.get_rng_state()) and len(states) == tg.cuda.device_count()
    first = tg.rand(3, device="cuda")
    for restore in (
        lambda: tg.cuda.set_rng_state(state),
        lambda: tg.cuda.set_rng_state(state, "cuda:0"),
        lambda: tg.cuda.set_rng_state_all(states),
        lambda: tg.set_rng_state(state),
        lambda: tg.cuda.manual_seed_all(5),
    ):
        restore()
        assert tg.rand(3).tolist() == first.tolist()
    tg.cuda.set_rng_state_all([])
    assert tg.rand(3).tolist() != first.tolist()
    with pytest.raises(ValueError, match="one generator serves all devices"):
        tg.cuda.set_rng_state_all([state, tg.get_rng_state()])
    assert tg.cuda.seed_all() == tg.initial_seed()
    for use in (tg.cuda.get_rng_state, lambda device: tg.cuda.set_rng_state(state, device)):
        with pytest.raises(RuntimeError, match="expected a CUDA device"):
            use("cpu")


def test_a_compiled_function_on_several_streams(cuda):
    function = tg.compile(lambda x: tg.softmax(x, -1) @ x)
    inputs = [tg.randn(8, 8).cuda() for _ in range(3)]
    expected = [function(x.cpu()) for x in inputs]
    streams = [tg.cuda.Stream() for _ in inputs]
    for _ in range(4):
        results = []
        for x, stream in zip(inputs, streams, strict=True):
            stream.wait_stream(tg.cuda.current_stream())
            with stream:
                results.append(function(x))
        for stream in streams:
            stream.synchronize()
        for have, want in zip(results, expected, strict=True):
            np.testing.assert_allclose(have.cpu().numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_threads_share_a_plan(cuda):
    function = tg.compile(lambda x: (x * 2 + 1).sum())
    function(tg.ones(64).cuda())
    wrong = []

    def run(value):
        for _ in range(10):
            found = function(tg.full((64,), float(value)).cuda()).item()
            if found != 64 * (2 * value + 1):
                wrong.append((value, found))

    threads = [threading.Thread(target=run, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_thread_takes_memory_while_another_captures(cuda):
    tg.cuda.empty_cache()
    stream = backend.cupy().cuda.Stream(non_blocking=True)
    stream.begin_capture()
    made = []
    thread = threading.Thread(target=lambda: made.append(tg.empty(3 * MEBI, device="cuda")))
    thread.start()
    thread.join()
    stream.end_capture()
    assert made[0].fill_(2.0)[-1].item() == 2


def test_memory_is_counted(cuda):
    tg.zeros(2, device="cuda") + 1  # the constant 1 is kept
    gc.collect()
    tg.cuda.empty_cache()
    before = tg.cuda.memory_allocated()
    tg.cuda.reset_peak_memory_stats()
    x = tg.zeros(MEBI, device="cuda")
    assert tg.cuda.memory_allocated() - before == 4 * MEBI
    y = x + 1
    del y
    assert tg.cuda.memory_allocated() - before == 4 * MEBI
    assert tg.cuda.max_memory_allocated() - before >= 4 * MEBI
    assert tg.cuda.memory_reserved() >= 8 * MEBI
    del x
    tg.cuda.empty_cache()
    assert tg.cuda.memory_allocated() == before
    free, total = tg.cuda.mem_get_info()
    assert 0 < free <= total


class Strange:
    """Another library's object, which nobody is to ask what it is."""

    @property
    def __class__(self):
        raise RuntimeError("deprecated")


def test_out_of_memory_tells_who_holds_it(cuda):
    strange = Strange()
    total = tg.cuda.mem_get_info()[1]
    with pytest.raises(ValueError, match="fraction"):
        tg.cuda.set_per_process_memory_fraction(1.5)
    gc.collect()
    tg.cuda.empty_cache()
    kept = tg.cuda.memory_reserved()  # workspaces of products, for example
    held = tg.zeros(32 * MEBI // 4, device="cuda")
    tg.cuda.set_per_process_memory_fraction((kept + 64 * MEBI) / total)
    try:
        with pytest.raises(tg.cuda.OutOfMemoryError) as caught:
            tg.zeros(48 * MEBI // 4, device="cuda")
        message = str(caught.value)
        assert "32 MiB  1 x float32[8388608]@cuda:0" in message
        assert "test_cuda_api.py" in message
        assert isinstance(caught.value, MemoryError) and isinstance(caught.value, RuntimeError)
        assert tg.zeros(16 * MEBI // 4, device="cuda").numel() == 4 * MEBI
    finally:
        tg.cuda.set_per_process_memory_fraction(1.0)
    assert held[0].item() == 0
    assert type(strange) is Strange


def test_a_full_device_gives_up_its_caches_first(cuda):
    """The arenas of compiled functions, and blocks that wait to be used again."""
    total = tg.cuda.mem_get_info()[1]
    # Without products, whose workspaces are as large as the device's library wants.
    function = tg.compile(lambda x: tg.softmax(tg.softmax(x, -1), 0).sum())
    function(tg.zeros(1024, 1024).cuda())
    gc.collect()
    with_arena = tg.cuda.memory_allocated()
    tg.cuda.empty_cache()
    assert with_arena - tg.cuda.memory_allocated() >= 4 * MEBI
    kept = tg.cuda.memory_reserved()
    function(tg.zeros(1024, 1024).cuda())
    tg.cuda.set_per_process_memory_fraction((kept + 24 * MEBI) / total)
    try:
        held = tg.zeros(22 * MEBI // 4, device="cuda")
        assert held.is_cuda
        del held
        assert abs(function(tg.zeros(1024, 1024).cuda()).item() - 1024) < 1
    finally:
        tg.cuda.set_per_process_memory_fraction(1.0)


def test_pinned_memory(cuda):
    x = tg.arange(10).float()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned()
    assert pinned.pin_memory() is pinned
    there = pinned.to("cuda", non_blocking=True)
    back = (there + 1).to("cpu", non_blocking=True)
    tg.cuda.synchronize()
    assert back.tolist() == (x + 1).tolist()
    with pytest.raises(RuntimeError, match="cannot pin"):
        there.pin_memory()
    assert tg.tensor([1.0], pin_memory=True).is_pinned()


def test_arrays_of_cupy_are_shared(cuda):
    cupy = backend.cupy()
    array = cupy.arange(6, dtype=cupy.float32).reshape(2, 3)
    x = tg.as_tensor(array)
    assert x.device == tg.device("cuda:0") and x.shape == (2, 3)
    x.add_(1)
    assert array.tolist() == [[1, 2, 3], [4, 5, 6]]
    seen = cupy.asarray(x)  # through __cuda_array_interface__
    assert seen.data.ptr == array.data.ptr
    assert tg.tensor(array)._value.data.ptr != array.data.ptr
    with pytest.raises(AttributeError, match="non-CUDA"):
        _ = tg.ones(2).__cuda_array_interface__
    with pytest.raises(TypeError, match=r"Use Tensor.cpu"):
        x.numpy()


def test_the_cuda_array_interface_tells_and_takes_memory_as_it_lies(cuda):
    """Any library's array, of which there is no more than the dict: shape, strides, address."""
    cupy = backend.cupy()
    for name in ("bool", "uint8", "int16", "int32", "int64", "float16", "float64", "complex64"):
        held = cupy.asarray((np.arange(24) % 3).reshape(4, 6).astype(name))
        theirs = held[1:, ::2].T  # with an offset, steps, and axes exchanged
        x = tg.as_tensor(SimpleNamespace(__cuda_array_interface__=theirs.__cuda_array_interface__,
                                         held=held))  # fmt: skip
        size, wanted = held.itemsize, theirs.get()
        told = x.__cuda_array_interface__
        assert (told["shape"], told["strides"]) == ((3, 3), (2 * size, 6 * size)), name
        assert told["data"] == (held.data.ptr + 6 * size, False) and told["version"] == 3
        assert told["typestr"] == wanted.dtype.str == np.dtype(name).str
        np.testing.assert_array_equal(x.cpu().numpy(), wanted)
        back = cupy.asarray(SimpleNamespace(__cuda_array_interface__=told, held=x))
        back[0] = 1  # their writes are seen here, and ours there, and nowhere else
        x[2].zero_()
        wanted[0], wanted[2] = 1, 0
        np.testing.assert_array_equal(x.cpu().numpy(), wanted)
        rest = (np.arange(24) % 3).reshape(4, 6).astype(name)
        rest[1:, ::2] = wanted.T
        np.testing.assert_array_equal(held.get(), rest)
    empty = tg.zeros(0, 2, device="cuda").__cuda_array_interface__
    assert empty["shape"] == (0, 2) and empty["data"][0] == 0
    with pytest.raises(RuntimeError, match=r"requires grad. Use tensor.detach"):
        _ = tg.ones(2, device="cuda", requires_grad=True).__cuda_array_interface__


@pytest.mark.parametrize(
    ("offset", "strides", "reason"),
    [(0, (5,), "multiple"), (0, (-4,), "negative"), (2, (4,), "cannot read")],
)
def test_memory_that_a_device_cannot_read_as_elements_is_refused(cuda, offset, strides, reason):
    cupy = backend.cupy()
    held = cupy.zeros(64, np.uint8)
    interface = {**held.__cuda_array_interface__, "shape": (3,), "typestr": "<f4"}
    interface |= {"data": (held.data.ptr + 16 + offset, False), "strides": strides}
    array = SimpleNamespace(__cuda_array_interface__=interface, held=held)
    for make in (tg.tensor, tg.as_tensor):
        with pytest.raises(ValueError, match=reason):
            make(array)


def test_the_precision_of_products_makes_plans_of_its_own(cuda):
    function = tg.compile(lambda a, b: a @ b)
    a, b = tg.ones(4, 4).cuda(), tg.ones(4, 4).cuda()
    function(a, b)
    tg.set_float32_matmul_precision("high")
    try:
        assert tg.get_float32_matmul_precision() == "high"
        assert function(a, b).tolist() == [[4.0] * 4] * 4
        assert function.compiles[-1].reason == "matmul precision changed: highest -> high"
    finally:
        tg.set_float32_matmul_precision("highest")
    function(a, b)
    assert len(function.compiles) == 2
    with pytest.raises(ValueError, match="precision"):
        tg.set_float32_matmul_precision("low")


@pytest.mark.parametrize(
    ("capability", "arch"),
    [("75", "sm_75"), ("87", "sm_86"), ("90", "sm_90"), ("103", "sm_100"), ("121", "sm_120")],
)
def test_code_is_for_the_newest_architecture_that_a_device_runs(capability, arch):
    assert devices._architecture.__wrapped__(of_capability(capability), 0) == arch


@pytest.mark.parametrize("capability", ["70", "130"])
def test_devices_that_no_code_is_for(capability):
    with pytest.raises(RuntimeError, match=r"cuda:2: expected .* 7, 8, 9, 10, 12.x, got \d+\.0; "):
        devices._architecture.__wrapped__(of_capability(capability), 2)


def of_capability(capability):
    device = SimpleNamespace(compute_capability=capability)
    return SimpleNamespace(cuda=SimpleNamespace(Device=lambda index: device))
