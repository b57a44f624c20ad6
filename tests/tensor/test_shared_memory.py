"""Tensors in memory that other processes see."""

from __future__ import annotations

from typing import Any

import pytest

import tgraph as tg
from tgraph import multiprocessing, nn


def child(net: Any, part: Any, queue: Any) -> None:
    with tg.no_grad():
        part[0, 0] = 42.0
        net[0].weight.fill_(7.0)
    assert type(net[0].weight) is nn.Parameter and net[0].weight.requires_grad
    received = queue.get()
    assert received.is_shared() and received.device == tg.device("cpu:1")
    received[1] = 5.0


def test_writes_are_seen_by_other_processes() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    assert net.share_memory() is net and all(each.is_shared() for each in net.state_dict().values())
    x, sent = tg.zeros(2, 3).share_memory_(), tg.zeros(3, device="cpu:1").share_memory_()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    queue.put(sent)
    process = context.Process(target=child, args=(net, x[:, 1:], queue))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert x.tolist() == [[0.0, 42.0, 0.0], [0.0] * 3] and sent.tolist() == [0.0, 5.0, 0.0]
    assert net[0].weight.tolist() == [[7.0] * 3] * 3


def test_all_that_shows_the_memory_moves_with_it() -> None:
    root = tg.arange(8.0, requires_grad=True)
    view, apart, storage = root.detach()[2:].T, root.detach(), root.untyped_storage()
    turned, parameter = root.detach().reshape(2, 4).T[1:], nn.Parameter(root.detach().clone())
    assert not root.is_shared() and view.share_memory_() is view
    for each in (root, view, apart, turned):
        assert each.is_shared() and each.untyped_storage().data_ptr() == storage.data_ptr()
    assert not parameter.is_shared() and turned.stride() == (1, 4)
    apart.mul_(2)
    assert turned.tolist() == [[2.0, 10.0], [4.0, 12.0], [6.0, 14.0]] and view[0].item() == 4.0
    assert root.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    before = root.data_ptr()
    assert root.share_memory_().data_ptr() == before  # once is enough
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized"):
        nn.LazyLinear(2).share_memory()
