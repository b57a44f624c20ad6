"""`Tensor.record_stream`: memory that other streams use is given back when they are done."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from cuda_tools import fake_cupy
from tgraph.runtime.cuda import backend, record_stream

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]
SIZE = 1 << 18
NBYTES = 4 * SIZE


def filled(value: float) -> Any:
    return tg.full((SIZE,), value, device="cuda")


@pytest.fixture
def other(cuda: Any) -> Any:
    """A stream beside the default one."""
    filled(1.0) * 2 + 1  # what is made once for a device
    gc.collect()
    tg.cuda.synchronize()
    tg.cuda.empty_cache()
    return tg.cuda.Stream()


def used_elsewhere(stream: Any, value: float) -> tuple[Any, Any]:
    """A tensor of the default stream, and what another stream makes of it."""
    x = filled(value)
    stream.wait_stream(tg.cuda.current_stream())
    with stream:
        y = x * 2
    return x, y


def elements(y: Any, stream: Any) -> Any:
    """What a stream has made."""
    with stream:
        return y.tolist()


def test_memory_is_kept_until_the_stream_is_done(other: Any) -> None:
    before = tg.cuda.memory_allocated()
    x, y = used_elsewhere(other, 3.0)
    x.record_stream(other)
    at = x.data_ptr()
    del x
    z = filled(-1.0)  # of the default stream, which would have overwritten x
    assert z.data_ptr() != at or other.query()  # a fast device is done before
    assert elements(y, other) == [6.0] * SIZE
    tg.cuda.synchronize()
    assert tg.cuda.memory_allocated() - before == 2 * NBYTES  # y and z
    del y, z
    assert tg.cuda.memory_allocated() == before


def test_what_is_not_recorded_is_overwritten(other: Any) -> None:
    """The test of the tests, where the device is the stand-in, which sees it if it is late."""
    if backend.cupy() is not fake_cupy.cupy or not fake_cupy.machine.lazy:
        pytest.skip("this device does not tell of it")
    x, y = used_elsewhere(other, 3.0)
    del x
    z = filled(-1.0)
    with pytest.raises(
        fake_cupy.Violation, match="memory of another stream was freed before it ran"
    ):
        elements(y, other)
    del z


def test_views_share_what_is_recorded(other: Any) -> None:
    x = filled(3.0)
    view = x[::2]
    other.wait_stream(tg.cuda.current_stream())
    x.record_stream(other)
    del x
    filled(-1.0)
    with other:
        y = view * 2
    del view
    filled(-1.0)
    assert elements(y, other) == [6.0] * (SIZE // 2)


def test_several_streams(other: Any) -> None:
    before = tg.cuda.memory_allocated()
    third = tg.cuda.Stream()
    x = filled(3.0)
    results = []
    for stream in (other, third, other):
        stream.wait_stream(tg.cuda.current_stream())
        with stream:
            results.append(x + 1)
        x.record_stream(stream)
    del x
    filled(-1.0)
    tg.cuda.synchronize()
    assert [each.sum().item() for each in results] == [4.0 * SIZE] * 3
    results.clear()
    tg.cuda.synchronize()
    assert tg.cuda.memory_allocated() == before


def places_of_batches(other: Any, count: int) -> set[int]:
    """Where batches lie that come on a stream of their own and are used on the default one."""
    seen = set()
    for value in range(count):
        with other:
            batch = filled(float(value))
        tg.cuda.current_stream().wait_stream(other)
        batch.record_stream(tg.cuda.current_stream())
        seen.add(batch.data_ptr())
        assert (batch * 2).sum().item() == 2.0 * value * SIZE
        del batch
    return seen


def test_a_loop_of_batches_takes_a_few_blocks(other: Any) -> None:
    assert len(places_of_batches(other, 20)) <= 3
    gc.collect()
    tg.cuda.synchronize()
    tg.cuda.empty_cache()


def test_what_is_looked_at_does_not_grow(other: Any, monkeypatch: Any) -> None:
    """Allocations, and further records, look at a few of what is held, however much it is."""
    looked = []
    references = record_stream._references

    def counted(held: Any) -> int:
        looked.append(held)
        return references(held)

    x = tg.ones(4, device="cuda")
    kept = [tg.ones(4, device="cuda") for _ in range(50)]
    monkeypatch.setattr(record_stream, "_references", counted)
    for each in kept:
        each.record_stream(other)
    assert len(looked) <= record_stream.A_FEW * len(kept)
    looked.clear()
    (x + 1).sum()
    assert 0 < len(looked) <= 4 * record_stream.A_FEW


def test_all_that_is_held_has_its_turn(other: Any) -> None:
    """What is kept for long does not hide what is free, nor does memory grow."""
    kept = [tg.ones(4, device="cuda") for _ in range(30)]
    for each in kept:
        each.record_stream(other)
    gc.collect()
    before = tg.cuda.memory_allocated()
    assert len(places_of_batches(other, 60)) <= 12
    gc.collect()
    tg.cuda.synchronize()
    assert tg.cuda.memory_allocated() == before


def test_what_a_backward_pass_reads_is_kept_too(other: Any) -> None:
    w = tg.full((SIZE,), 2.0, device="cuda", requires_grad=True)
    x = filled(3.0)
    other.wait_stream(tg.cuda.current_stream())
    with other:
        loss = (x * w).sum()
    x.record_stream(other)
    del x  # the history has it
    filled(-1.0)
    with other:
        loss.backward()
    del loss
    filled(-1.0)
    tg.cuda.current_stream().wait_stream(other)
    assert w.grad.tolist() == [3.0] * SIZE


def test_a_full_device_waits_for_streams(other: Any) -> None:
    total = tg.cuda.mem_get_info()[1]
    x, y = used_elsewhere(other, 3.0)
    x.record_stream(other)
    del x
    tg.cuda.set_per_process_memory_fraction((tg.cuda.memory_allocated() + NBYTES // 2) / total)
    try:
        z = filled(-1.0)
        assert z.is_cuda and elements(y, other) == [6.0] * SIZE
    finally:
        tg.cuda.set_per_process_memory_fraction(1.0)


def test_emptying_the_cache_waits_for_streams(other: Any) -> None:
    before = tg.cuda.memory_reserved()
    x, y = used_elsewhere(other, 3.0)
    x.record_stream(other)
    del x
    tg.cuda.empty_cache()
    assert tg.cuda.memory_reserved() - before == NBYTES  # y
    assert elements(y, other) == [6.0] * SIZE


def test_a_stream_that_is_gone_is_waited_for(other: Any) -> None:
    stream = tg.cuda.Stream()
    x, y = used_elsewhere(stream, 3.0)
    x.record_stream(stream)
    del x, stream
    gc.collect()
    filled(-1.0)
    tg.cuda.synchronize()
    assert y.tolist() == [6.0] * SIZE


def test_borrowed_memory_is_kept_for_the_stream(other: Any) -> None:
    array = backend.cupy().full(SIZE, 3.0, "float32")
    x = tg.from_dlpack(array)
    other.wait_stream(tg.cuda.current_stream())
    with other:
        y = x * 2
    x.record_stream(other)
    del x, array
    filled(-1.0)
    assert elements(y, other) == [6.0] * SIZE


def test_results_of_compiled_functions(other: Any) -> None:
    """Small results share a block."""
    function = tg.compile(lambda x: (x.sum(), x.max()))
    for value in (1.0, 2.0, 3.0):
        total, most = function(filled(value))
        other.wait_stream(tg.cuda.current_stream())
        with other:
            found = total + most
        total.record_stream(other)
        most.record_stream(other)
        del total, most
        for _ in range(3):
            function(filled(-1.0))
        with other:
            assert found.item() == value * SIZE + value


def test_threads_record_at_the_same_time(other: Any) -> None:
    wrong = []

    def run(value: float) -> None:
        stream = tg.cuda.Stream()
        for _ in range(5):
            x, y = used_elsewhere(stream, value)
            x.record_stream(stream)
            del x
            stream.synchronize()
            if y.sum().item() != 2 * value * SIZE:
                wrong.append(value)

    threads = [threading.Thread(target=run, args=(float(value),)) for value in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_second_device_records(second_cuda: Any) -> None:
    x = tg.full((SIZE,), 3.0, device=second_cuda)
    stream = tg.cuda.Stream(second_cuda)
    stream.wait_stream(tg.cuda.current_stream(second_cuda))
    with stream:
        y = x * 2
    x.record_stream(stream)
    del x
    tg.full((SIZE,), -1.0, device=second_cuda)
    assert elements(y, stream) == [6.0] * SIZE


def test_wrong_uses(cuda: Any) -> None:
    stream = tg.cuda.Stream()
    with pytest.raises(NotImplementedError, match="'record_stream' on a tensor of the 'cpu'"):
        tg.ones(2).record_stream(stream)
    with pytest.raises(TypeError, match=r"expected a tgraph.cuda.Stream, got int"):
        tg.ones(2, device="cuda").record_stream(1)

    @tg.compile
    def f(x: Any) -> Any:
        x.record_stream(stream)
        return x

    with pytest.raises(tg.TraceError, match=r"record_stream\(\) needs the value"):
        f(tg.ones(2, device="cuda"))
