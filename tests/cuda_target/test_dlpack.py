"""Tensors lent to other libraries, and their arrays as tensors, by DLPack."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tgraph.runtime.cuda import arrays, backend

import tgraph as tg
from tgraph.compiled import call_helpers

pytest_plugins = ["cuda_tools.device"]
NUMPY_DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                "float16", "float32", "float64"]  # fmt: skip
CPU, CUDA = 1, 2


class Foreign:
    """An array of another library, which speaks DLPack only.

    `old` knows nothing of DLPack 1.0, and `stream` is where the library works.
    """

    def __init__(
        self, array: Any, old: bool = False, device: Any = None, stream: Any = None
    ) -> None:
        self.array, self.old, self.device = array, old, device
        self.stream = nullcontext() if stream is None else stream
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if self.old and options:
            raise TypeError("unexpected keyword argument")
        self.asked.append({"stream": stream, **options})
        with self.stream:
            return self.array.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> Any:
        return self.device or self.array.__dlpack_device__()


NUMPY_WRITES = np.from_dlpack(np.zeros(1)).flags.writeable
"""In NumPy 2.1 all arrays that came by DLPack are read-only."""


# -- the CPU -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_memory_of_the_cpu_is_shared(dtype: str) -> None:
    x = tg.arange(6).reshape(2, 3).to(getattr(tg, dtype))
    assert x.__dlpack_device__() == (CPU, 0)
    seen = np.from_dlpack(x)
    assert seen.dtype == np.dtype(dtype) and seen.flags.writeable == NUMPY_WRITES
    seen = seen if NUMPY_WRITES else x.numpy()
    back = tg.from_dlpack(Foreign(seen))
    assert back.dtype is x.dtype and back.tolist() == x.tolist()
    back[0, 0] = 1
    assert x[0, 0].item() == seen[0, 0] == 1


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_memory_is_shared_with_other_libraries(library: str) -> None:
    other = pytest.importorskip(library)
    x = tg.arange(64, dtype=tg.float32)
    lent = other.from_dlpack(x)
    at = lent.data_ptr() if library == "torch" else lent.unsafe_buffer_pointer()
    assert at == x.data_ptr() and lent.tolist() == x.tolist()
    made = other.ones(3)
    borrowed = tg.from_dlpack(made)
    assert borrowed.tolist() == [1.0, 1.0, 1.0]
    if library == "torch":  # arrays of JAX are not written
        borrowed[1] = 5.0
        assert made[1] == 5.0


def test_views_keep_their_strides() -> None:
    x = tg.arange(24).reshape(2, 3, 4)
    for view in (x.permute(2, 0, 1), x[:, 1:, ::2], x[0, 0, 0], x[:, :0]):
        seen = np.from_dlpack(view)
        assert seen.shape == view.shape
        assert seen.strides == tuple(8 * stride for stride in view.stride()) or not seen.size
        assert seen.tolist() == view.tolist() == tg.from_dlpack(view).tolist()


def test_the_memory_outlives_its_first_owner() -> None:
    seen = np.from_dlpack(tg.full((1000,), 7.0))
    back = tg.from_dlpack(np.full(1000, 7.0))
    gc.collect()
    assert seen.tolist() == back.tolist() == [7.0] * 1000


def test_writes_are_seen_on_both_sides() -> None:
    array = np.zeros(3, np.float32)
    x = tg.from_dlpack(array)
    array[0] = 1
    assert x.tolist() == [1, 0, 0]
    x.mul_(3)
    assert array.tolist() == [3, 0, 0]


def test_copies_are_made_where_they_are_asked_for() -> None:
    array = np.zeros(3, np.float32)
    assert tg.from_dlpack(array, copy=True).add_(1).tolist() == [1, 1, 1]
    assert array.tolist() == [0, 0, 0]
    tg.from_dlpack(array, copy=False).add_(2)
    assert array.tolist() == [2, 2, 2]
    x = tg.from_dlpack(array)
    assert np.from_dlpack(x, copy=True).base is not array
    if NUMPY_WRITES:
        np.from_dlpack(x, copy=True)[0] = 9
    assert x.tolist() == [2, 2, 2]


def test_what_must_not_be_written_is_copied() -> None:
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    tg.from_dlpack(array).add_(1)
    assert array.tolist() == [0, 0, 0]
    with pytest.raises(BufferError, match="without a copy"):
        tg.from_dlpack(array, copy=False)


@pytest.mark.parametrize("writeable", [True, False])
def test_one_copy_is_enough(writeable: bool) -> None:
    array = np.ones(10_000)  # less than what comes from the pool, which would not be seen
    array.flags.writeable = writeable
    tg.from_dlpack(array, copy=True)
    tracemalloc.start()
    try:
        copy = tg.from_dlpack(array, copy=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert copy.tolist() == array.tolist() and not np.shares_memory(copy.numpy(), array)
    assert array.nbytes <= peak < 1.5 * array.nbytes


def test_what_must_not_be_written_is_copied_by_each_call() -> None:
    array = np.zeros(3, np.float32)
    lent = array[:]
    lent.flags.writeable = False
    for copy in (None, True):

        @tg.compile
        def f(copy: Any = copy) -> Any:
            return tg.from_dlpack(lent, copy=copy).add_(1)

        for number in range(3):
            array[:] = number
            assert f().tolist() == [number + 1] * 3
            assert array.tolist() == [number] * 3


def test_gradients_are_not_lost_silently() -> None:
    x = tg.ones(2, requires_grad=True)
    for refused in (x, x * 2):
        with pytest.raises(BufferError, match=r"use tensor.detach\(\)"):
            np.from_dlpack(refused)
    assert np.from_dlpack(x.detach()).tolist() == [1, 1]


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_bfloat16_of_which_numpy_has_none(max_version: Any) -> None:
    x = tg.arange(6.0, dtype=tg.bfloat16).reshape(2, 3).t()
    shown = tg.from_dlpack(x)
    assert shown.dtype is tg.bfloat16 and shown.stride() == x.stride()
    shown[0, 0] = 7
    assert x[0, 0] == 7 and tg.from_dlpack(Foreign(x)).tolist() == x.tolist()
    capsule = x.__dlpack__(max_version=max_version)
    assert tg.from_dlpack(capsule).tolist() == x.tolist()
    assert tg.from_dlpack(x.float().__dlpack__(max_version=max_version)).dtype is tg.float32
    torch = pytest.importorskip("torch")
    other = torch.from_dlpack(x)
    other[1, 1] = 9
    assert x[1, 1] == 9 and other.data_ptr() == x.data_ptr()
    assert tg.from_dlpack(other).data_ptr() == x.data_ptr()


def test_meta_has_no_memory_to_lend() -> None:
    x = tg.ones(2, device="meta")
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        x.__dlpack__()
    with pytest.raises(ValueError, match="meta"):
        x.__dlpack_device__()


def test_other_errors() -> None:
    with pytest.raises(TypeError, match="expected an array with __dlpack__"):
        tg.from_dlpack([1, 2])
    capsule = tg.ones(2).__dlpack__()
    assert tg.from_dlpack(capsule).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        tg.from_dlpack(capsule)
    with pytest.raises(TypeError, match="of kind 8; copy it"):
        tg.from_dlpack(Foreign(np.ones(2), device=(8, 0)))
    with pytest.raises(ValueError, match="negative"):
        tg.from_dlpack(np.arange(3)[::-1])
    with pytest.raises(BufferError, match="unsupported device"):
        tg.ones(2).__dlpack__(dl_device=(CUDA, 0))


def test_tensors_of_a_trace_have_no_memory() -> None:
    for use in (np.from_dlpack, lambda x: x.__dlpack__(), tg.from_dlpack):

        @tg.compile
        def f(x: Any, use: Any = use) -> Any:
            use(x)
            return x

        with pytest.raises(tg.TraceError, match=r"__dlpack__\(\) needs the value of a tensor"):
            f(tg.ones(2))


# -- CUDA ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*NUMPY_DTYPES, "bfloat16"])
def test_memory_of_a_device_is_shared(cuda: Any, dtype: str) -> None:
    cupy = backend.cupy()
    x = tg.arange(6).reshape(2, 3).to("cuda", getattr(tg, dtype))
    assert x.__dlpack_device__() == (CUDA, 0)
    seen = cupy.from_dlpack(x)
    assert seen.data.ptr == x.data_ptr() and seen.dtype == x._value.dtype
    back = tg.from_dlpack(Foreign(seen))
    assert back.device == cuda and back.dtype is x.dtype and back.tolist() == x.tolist()
    back[0, 0] = 1
    assert x[0, 0].item() == 1


def test_views_of_a_device_keep_their_strides(cuda: Any) -> None:
    x = tg.arange(24).reshape(2, 3, 4).cuda()
    for view in (x.permute(2, 0, 1), x[:, 1:, ::2], x[0, 0, 0], x[:, :0]):
        shown = tg.from_dlpack(Foreign(view))
        assert shown.stride() == view.stride() or not view.numel()
        assert shown.tolist() == view.tolist()


@pytest.mark.parametrize("old", [False, True])
def test_our_stream_waits_for_that_of_another_library(cuda: Any, old: bool) -> None:
    array = backend.cupy().zeros(1000, np.float32)
    theirs, ours = tg.cuda.Stream(), tg.cuda.Stream()
    theirs.wait_stream(tg.cuda.current_stream())
    with theirs:
        array += 1
    source = Foreign(array, old, stream=theirs)
    with ours:
        x = tg.from_dlpack(source)
        assert source.asked[-1]["stream"] == ours.cuda_stream
        assert (x * 2).tolist() == [2.0] * 1000


def test_the_stream_of_a_reader_waits(cuda: Any) -> None:
    reader = tg.cuda.Stream()
    x = tg.zeros(1000, device="cuda")
    x.add_(1)
    capsule = x.__dlpack__(stream=reader.cuda_stream, max_version=(1, 0))
    with reader:
        assert (backend.cupy().from_dlpack(capsule) * 2).tolist() == [2.0] * 1000
    with pytest.raises(ValueError, match="valid stream"):
        x.__dlpack__(stream=0)


def test_memory_is_lent_until_the_reader_lets_it_go(cuda: Any) -> None:
    gc.collect()
    before = tg.cuda.memory_allocated()
    x = tg.zeros(1 << 20, device="cuda")
    capsule = x.__dlpack__()
    del x
    gc.collect()
    assert tg.cuda.memory_allocated() - before == 4 << 20
    shown = backend.cupy().from_dlpack(capsule)
    with pytest.raises(ValueError, match="consumed multiple times"):
        backend.cupy().from_dlpack(capsule)
    del capsule
    gc.collect()
    assert tg.cuda.memory_allocated() - before == 4 << 20
    assert float(shown.sum()) == 0
    del shown
    gc.collect()
    assert tg.cuda.memory_allocated() == before
    tg.zeros(1 << 20, device="cuda").__dlpack__()  # nobody takes this one
    gc.collect()
    assert tg.cuda.memory_allocated() == before


def test_copies_to_the_cpu_are_made_for_those_who_want_them(cuda: Any) -> None:
    x = tg.arange(4).cuda()
    assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2, 3]
    with pytest.raises(BufferError, match="without a copy"):
        x.__dlpack__(dl_device=(CPU, 0), copy=False)
    with pytest.raises(BufferError, match="unsupported device"):
        x.__dlpack__(dl_device=(8, 0))
    same = backend.cupy().from_dlpack(x.__dlpack__(dl_device=(CUDA, 0), copy=False))
    other = backend.cupy().from_dlpack(x.__dlpack__(dl_device=(CUDA, 0), copy=True))
    assert same.data.ptr == x.data_ptr() != other.data.ptr
    assert other.tolist() == [0, 1, 2, 3]


def test_arrays_move_where_they_are_wanted(cuda: Any) -> None:
    x = tg.from_dlpack(np.arange(3), device="cuda")
    assert x.device == cuda and x.tolist() == [0, 1, 2]
    assert tg.from_dlpack(x, device="cpu").is_cpu
    with pytest.raises(BufferError, match="without a copy"):
        tg.from_dlpack(x, device="cpu", copy=False)
    assert tg.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    with tg.device("cuda"):  # of what has no device
        assert tg.from_dlpack(np.arange(3)).is_cpu


def test_gradients_and_traces_on_a_device(cuda: Any) -> None:
    x = tg.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(BufferError, match=r"use tensor.detach\(\)"):
        x.__dlpack__()
    with pytest.raises(tg.TraceError, match="needs the value"):
        tg.compile(lambda x: x.__dlpack__())(x.detach())


def test_the_second_device_lends_too(second_cuda: Any) -> None:
    x = tg.ones(4, device=second_cuda)
    assert x.__dlpack_device__() == (CUDA, 1)
    shown = tg.from_dlpack(x)
    assert shown.device == second_cuda and shown.data_ptr() == x.data_ptr()
    assert (shown + 1).tolist() == [2.0] * 4


def test_compiled_functions_see_that_borrowed_memory_is_one(cuda: Any) -> None:
    """Two arrays of other libraries may share memory, whoever owns it."""

    @tg.compile
    def f(x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2

    array = backend.cupy().zeros(4, np.float32)
    f(tg.zeros(4, device="cuda"), tg.zeros(4, device="cuda"))
    x, y = tg.from_dlpack(array), tg.from_dlpack(array)
    assert f(x, y).tolist() == [2.0] * 4


def add_one_and_double(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    x.add_(1)
    return y * 2


def test_compiled_functions_see_that_borrowed_memory_of_the_cpu_is_one() -> None:
    """An array that came in twice is written in the call, and read behind that."""
    function = tg.compile(add_one_and_double)
    function(tg.zeros(4), tg.zeros(4))
    array = np.zeros(4, np.float32)
    both = tg.from_dlpack(Foreign(array)), tg.from_dlpack(Foreign(array))
    assert function(*both).tolist() == [2.0] * 4
    assert function(both[0], tg.from_numpy(array)).tolist() == [4.0] * 4
    for captured, given in ((tg.from_numpy(array), both[0]), (both[1], tg.from_numpy(array))):
        array[:] = 0
        reader = tg.compile(lambda x, z=captured: add_one_and_double(x, z))
        reader(tg.zeros(4))
        assert reader(given).tolist() == [2.0] * 4


def test_borrowed_memory_and_an_array_of_cupy(cuda: Any) -> None:
    function = tg.compile(add_one_and_double)
    function(tg.zeros(4, device=cuda), tg.zeros(4, device=cuda))
    array = backend.cupy().zeros(4, np.float32)
    lent, same = tg.from_dlpack(array), tg.as_tensor(array)
    assert function(lent, same).tolist() == [2.0] * 4
    assert function(same, lent).tolist() == [4.0] * 4


@pytest.fixture
def compared(monkeypatch: Any) -> list[Any]:
    """The pairs of arrays of which the calls of plans ask whether they share memory."""
    pairs = []
    share_memory = call_helpers.share_memory

    def noted(a: Any, b: Any) -> bool:
        pairs.append((a, b))
        return share_memory(a, b)

    monkeypatch.setattr(call_helpers, "share_memory", noted)
    return pairs


def test_borrowed_memory_of_a_device_is_compared_with_what_lies_beside_it(
    cuda: Any, compared: Any
) -> None:
    tensors = [tg.zeros(4, device=cuda) for _ in range(50)]

    @tg.compile
    def step(x: Any) -> Any:
        for each in tensors:
            each.add_(x)
        return x * 2

    lent = tg.from_dlpack(backend.cupy().ones(4, np.float32))
    for _ in range(3):
        assert step(lent).tolist() == [2.0] * 4
    assert compared == [] and tensors[49].tolist() == [3.0] * 4
    tensors[20].data = lent
    assert step(lent).tolist() == [4.0] * 4 and len(compared) == 1


def test_arrays_of_the_host_lie_beside_no_array_of_a_device(cuda: Any, compared: Any) -> None:
    there = backend.cupy().zeros(8, np.float32)
    here = np.zeros(8, np.float32)
    assert not call_helpers.overlap([there[:4], here[:4]], [there[4:], here[4:], there[2:2]])
    assert compared == []
    assert call_helpers.overlap([there[:4], here[:4]], [there[3:], here[4:]])
    assert call_helpers.overlap([here[:4], there[:4], here[3:]], [])


def test_pinned_memory_has_one_owner(cuda: Any) -> None:
    x, y = tg.ones(4).pin_memory(), tg.ones(4).pin_memory()
    owners = [call_helpers.root_of(each._value) for each in (x, x[1:], y)]
    assert call_helpers.FOREIGN not in owners
    assert owners[0] is owners[1] is not owners[2]
    assert call_helpers.root_of(np.asarray(memoryview(x.numpy()))) is call_helpers.FOREIGN
    function = tg.compile(add_one_and_double)
    assert function(x, y).tolist() == [2.0] * 4
    assert function(x, x[:]).tolist() == [6.0] * 4


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1], np.s_[:, ::-2], np.s_[2:1:-1, 1:3]])
def test_bounds_hold_all_elements(view):
    array = np.arange(20, dtype=np.float32).reshape(4, 5)[view]
    pointer = SimpleNamespace(ptr=array.__array_interface__["data"][0])
    found = arrays.bounds(
        SimpleNamespace(
            data=pointer, size=array.size, shape=array.shape, strides=array.strides, itemsize=4
        )
    )
    assert found == np.lib.array_utils.byte_bounds(array)
