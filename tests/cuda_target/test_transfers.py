"""Copies between the host and a device: what they wait for, and what they keep until they are done.

The stand-in, which is the device where there is no GPU, does them as late as CUDA allows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_tools import fake_cupy
from tgraph.runtime.cuda import backend

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]
SIZE = 6


def pinned(value: float = 0.0) -> Any:
    return tg.full((SIZE,), value).pin_memory()


# -- from a device -------------------------------------------------------------------------------


def test_a_result_that_nobody_waits_for_keeps_its_memory(cuda: Any) -> None:
    """Also where it is let go before the copy has come: the next memory is another."""
    z = tg.full((SIZE,), 7.0, device=cuda)
    gc.collect()
    there = z.to("cpu", non_blocking=True)
    del there
    e = tg.zeros(SIZE).pin_memory()
    tg.cuda.synchronize()
    assert e.tolist() == [0.0] * SIZE


def test_results_in_flight_on_several_streams(cuda: Any) -> None:
    streams = [tg.cuda.Stream() for _ in range(3)]
    z = tg.full((SIZE,), 7.0, device=cuda)
    tg.cuda.synchronize()
    kept = []
    for stream in streams:
        with stream:
            z.to("cpu", non_blocking=True)
            kept.append(z.to("cpu", non_blocking=True))
    others = [pinned() for _ in range(8)]
    for stream in reversed(streams):
        stream.synchronize()
        pinned()
    assert [each.tolist() for each in kept] == [[7.0] * SIZE] * 3
    assert [each.tolist() for each in others] == [[0.0] * SIZE] * 8


def test_memory_of_results_is_used_again(cuda: Any) -> None:
    """What has arrived and is let go: a loop takes no more and more memory of the host."""
    z = tg.full((SIZE,), 7.0, device=cuda)
    seen = set()
    for _ in range(50):
        there = z.to("cpu", non_blocking=True)
        tg.cuda.synchronize()
        assert there[0].item() == 7.0
        seen.add(there.data_ptr())
        del there
    assert len(seen) <= 3


def test_emptying_the_cache_keeps_what_is_in_flight(cuda: Any) -> None:
    z = tg.full((SIZE,), 7.0, device=cuda)
    z.to("cpu", non_blocking=True)
    tg.cuda.empty_cache()
    e = pinned()
    tg.cuda.synchronize()
    assert e.tolist() == [0.0] * SIZE


# -- to a device ---------------------------------------------------------------------------------

WAITING: dict[str, Callable[[Any, Any], Any]] = {
    "cuda": lambda x, cuda: x.cuda(),
    "to": lambda x, cuda: x.to(cuda),
    "view": lambda x, cuda: x.reshape(2, 3).to(cuda).reshape(-1),
    "cast behind": lambda x, cuda: x.to(cuda, tg.float64),
    "copy_": lambda x, cuda: tg.empty(SIZE, device=cuda).copy_(x),
    "as_tensor": lambda x, cuda: tg.as_tensor(x, device=cuda),
    "tensor of an array": lambda x, cuda: tg.tensor(x.numpy(), device=cuda),
    "item": lambda x, cuda: tg.stack([x[i].cuda() for i in range(SIZE)]),
    "compiled": tg.compile(lambda x, cuda: x.to("cuda") * 1),
    "module": lambda x, cuda: module_with(x).to(cuda).weight.detach(),
    "assignment": lambda x, cuda: assigned(x, cuda),
}


def module_with(x: Any) -> Any:
    made = tg.nn.Module()
    made.weight = tg.nn.Parameter(x)
    return made


def assigned(x: Any, cuda: Any) -> Any:
    target = tg.zeros(SIZE, device=cuda)
    target[:] = x.to(cuda)
    return target


@pytest.mark.parametrize("name", WAITING)
def test_what_was_given_away_may_change(name: str, cuda: Any) -> None:
    """As in PyTorch: without `non_blocking` the memory of the host has been read."""
    x = pinned(1.0)
    assert x.is_pinned()
    there = WAITING[name](x, cuda)
    x.fill_(2.0)
    assert there.tolist() == [1.0] * SIZE


def test_large_inputs_of_compiled_functions(cuda: Any) -> None:
    """They are moved before the call, and not with it as small ones are."""
    function = tg.compile(lambda x: x.cuda() * 2)
    for _ in range(4):
        x = tg.full((1 << 18,), 1.0).pin_memory()
        there = function(x)
        x.fill_(2.0)
        assert there[[0, -1]].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "move",
    [
        lambda x, cuda: x.to(cuda, non_blocking=True),
        lambda x, cuda: x.cuda(non_blocking=True),
        lambda x, cuda: tg.empty(SIZE, device=cuda).copy_(x, non_blocking=True),
    ],
)
def test_what_is_not_waited_for(move: Callable[[Any, Any], Any], cuda: Any) -> None:
    x = pinned(1.0)
    tg.cuda.synchronize()
    waits = fake_cupy.machine.sync_count
    there = move(x, cuda)
    if backend.cupy() is fake_cupy.cupy:
        assert fake_cupy.machine.sync_count == waits
    del x
    gc.collect()
    others = [pinned(5.0) for _ in range(3)]
    assert there.tolist() == [1.0] * SIZE and len(others) == 3


def test_other_memory_is_not_waited_for(cuda: Any) -> None:
    """It is read at once, by way of pinned memory."""
    if backend.cupy() is not fake_cupy.cupy:
        pytest.skip("a GPU does not count how often it is waited for")
    x = tg.ones(SIZE)
    tg.cuda.synchronize()
    waits = fake_cupy.machine.sync_count
    there = x.cuda()
    x.fill_(2.0)
    assert fake_cupy.machine.sync_count == waits
    assert there.tolist() == [1.0] * SIZE


def test_a_copy_to_the_host_arrives(cuda: Any) -> None:
    """`non_blocking` or not: what a tensor is overwritten with must be there to be copied."""
    z = tg.full((SIZE,), 7.0, device=cuda)
    for target in (pinned(), tg.zeros(SIZE)):
        target.copy_(z, non_blocking=True)
        tg.cuda.synchronize()
        assert target.tolist() == [7.0] * SIZE


def test_numbers_that_were_read_by_the_device_tell_of_failed_checks(cuda: Any) -> None:
    """Whoever waits for the device learns of what went wrong there."""
    look_up = tg.compile(lambda table, at: table[at])
    table, at = tg.ones(4).cuda(), tg.tensor([9]).cuda()
    look_up(table, at)
    with pytest.raises(IndexError):
        pinned().cuda()
    np.testing.assert_array_equal(pinned(3.0).cuda().cpu().numpy(), np.full(SIZE, 3.0))
