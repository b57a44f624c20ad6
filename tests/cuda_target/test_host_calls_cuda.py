"""Python functions in code for CUDA: values, and the order of calls over several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph.tracing import host_call

pytest_plugins = ["cuda_tools.device"]


def test_values_on_a_device(cuda: Any) -> None:
    def function(x: tg.Tensor) -> Any:
        cube, size = host_call(lambda a: [a**3, np.int64(a.size)], x * 2,
                               results=[x, ((), tg.int64)])  # fmt: skip
        return cube + 1, size

    x = tg.arange(5).float()
    for f in (function, tg.compile(function)):
        for _ in range(3):
            found = f(x.cuda())
            assert [each.device for each in found] == [cuda, cuda]
            assert [each.tolist() for each in found] == [[(2.0 * n) ** 3 + 1 for n in range(5)], 5]


@pytest.mark.parametrize("devices", [("cpu", "cuda:0"), ("cuda:0", "cuda:1", "cpu")], ids=str)
def test_calls_keep_their_order_over_devices(cuda: Any, devices: tuple[str, ...]) -> None:
    if "cuda:1" in devices and tg.cuda.device_count() < 2:
        pytest.skip("this machine has one CUDA device")
    seen: list[Any] = []

    def note(place: str, *tensors: tg.Tensor) -> None:
        host_call(lambda *x: seen.append((place, *map(np.ndarray.tolist, x))), *tensors,
                  effect="ordered")  # fmt: skip

    def function(x: tg.Tensor) -> tg.Tensor:
        here = [x.to(place) * (n + 1) for n, place in enumerate(devices)]
        for _ in range(2):
            for place, each in zip(devices, here):
                note(place, each)
                each.add_(1)
        for place, each in reversed(list(zip(devices, here))):
            note(place, (each @ each.T).sum())  # nobody reads what comes of it
        note("nothing")
        return here[0]

    wanted = [function(tg.ones(1, 1)).tolist() for _ in range(3)]
    eager, compiled = seen.copy(), tg.compile(function)
    seen.clear()
    assert [compiled(tg.ones(1, 1)).tolist() for _ in range(3)] == wanted
    assert seen == eager and len(seen) == 3 * (3 * len(devices) + 1)
    assert [each[0] for each in seen[: len(devices)]] == list(devices)
