"""The devices `cpu:1`, `cpu:2`... of the CPU: apart from each other as GPUs are."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
from device_tools import CPU, MADE, MIXED, ON_SEVERAL, same

import tgraph as tg
from tgraph import nn

ONE, TWO = tg.device("cpu:1"), tg.device("cpu:2")


def test_names() -> None:
    assert tg.device("cpu:0") == tg.device("cpu", 0) == CPU != ONE and tg.device("cpu", 1) == ONE
    assert tg.ones(1, device="cpu:0").device == CPU and str(ONE) == "cpu:1"
    x = tg.ones(2, device=ONE)
    assert repr(x) == "tensor([1., 1.], device='cpu:1')" and x.type() == "torch.FloatTensor"
    assert x.is_cpu and not x.is_cuda and x.get_device() == 1 and tg.ones(1).get_device() == -1


def test_a_device_of_a_device_is_that_device() -> None:
    for name in ("cpu", "cpu:1", "meta"):
        device = tg.device(name)
        again = tg.device(device)
        assert again == device and again.type == device.type and again.index == device.index
        assert hash(again) == hash(device) and tg.ones(1, device=again).device == device
    with pytest.raises(TypeError, match="an index besides the device"):
        tg.device(tg.device("cpu"), 1)


def test_making_tensors() -> None:
    for name, make in MADE.items():
        tg.manual_seed(3)
        expected = make()
        for on in ({"device": "cpu:1"}, {"device": ONE}):
            tg.manual_seed(3)
            same(make(**on), expected, ONE)
        tg.manual_seed(3)
        with ONE:
            assert make().device == ONE, name
    tg.set_default_device("cpu:2")
    try:
        assert nn.Linear(2, 2).weight.device == tg.ones(1).device == TWO
    finally:
        tg.set_default_device(None)
    assert tg.ones(1).device == tg.get_default_device() == tg.device("cpu")
    assert tg.Generator("cpu:1").device == ONE


def test_moving() -> None:
    x = tg.arange(6.0).reshape(2, 3)
    there = x.to("cpu:1")
    assert there.to(ONE) is there and x.to("cpu:0") is x and there.to(tg.int8).device == ONE
    for each in (there.to(TWO), there.T.to("cpu:2").T, there.cpu()):
        each.add_(1)
    x.zero_()
    same(there, tg.arange(6.0).reshape(2, 3), ONE)
    same(there[there > 3], tg.tensor([4.0, 5.0]), ONE)
    assert there.nonzero().device == ONE and there.tolist()[1] == [3.0, 4.0, 5.0]
    assert there[0].device == ONE == tg.compile(lambda x: x[1])(there).device
    there[0] = tg.ones(3)  # a copy, which may come from elsewhere
    there[:, tg.tensor([2])] = 7.0
    same(there, tg.tensor([[1.0, 1.0, 7.0], [3.0, 4.0, 7.0]]), ONE)
    with pytest.raises(TypeError, match=r"can't convert cpu:1 device type tensor to numpy."):
        there.numpy()
    assert np.from_dlpack(there)[0, 2] == 7.0


def test_copies_and_files() -> None:
    x = tg.arange(6.0, device=ONE).reshape(2, 3)
    assert pickle.loads(pickle.dumps(x)).device == copy.deepcopy(x).device == ONE
    file = io.BytesIO()
    tg.save([x, x.t()[1:]], file)
    for where, wanted in ((None, ONE), ({"cpu:1": "cpu:2"}, TWO), ("cpu", CPU), ("cpu:2", TWO)):
        file.seek(0)
        found, part = tg.load(file, map_location=where)
        same(found, x.cpu(), wanted)
        part.fill_(5.0)
        assert found[0].tolist() == [0.0, 5.0, 5.0] and part.device == wanted


def test_numbers_of_the_cpu_go_with_them() -> None:
    x, number = tg.tensor([1.0, 4.0], device=ONE), tg.tensor(2.0, requires_grad=True)
    (x * number).sum().backward()
    same(number.grad, tg.tensor(5.0), CPU)
    with pytest.raises(RuntimeError, match=ON_SEVERAL + "cpu:1 and cpu:2! "):
        x + tg.tensor(2.0, device=TWO)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_numbers_alone_lie_where_new_tensors_do(compiled: bool) -> None:
    run: Any = tg.compile if compiled else lambda function: function
    truth, matrix = tg.tensor(True), tg.eye(2)
    with tg.device("cpu:1"):
        assert run(lambda: tg.maximum(2, 3))().device == tg.device("cpu:1")
        assert run(lambda: tg.add(2, 0.5))().device == tg.device("cpu:1")
        assert run(lambda: tg.where(truth, 1, 2))().device == tg.device("cpu")
        assert run(lambda: tg.linalg.pinv(matrix, atol=0.1))().device == tg.device("cpu")
    with tg.device("meta"):
        assert tg.maximum(2, 3).is_meta


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_devices_do_not_mix(compiled: bool) -> None:
    for name in ["matmul", "setitem of the cpu"] if compiled else MIXED:
        mix = tg.compile(MIXED[name]) if compiled else MIXED[name]
        for _ in range(1 if compiled else 2):
            with pytest.raises(RuntimeError, match=ON_SEVERAL + "cpu:1 and cpu! ") as error:
                mix(ONE)
            assert ".to('cpu:1') or .to('cpu')" in str(error.value), name


def test_compiled_functions_keep_devices_apart() -> None:
    """Memory of their own, branches and loops there, the same random numbers."""

    def run(x: Any) -> Any:
        there = x.to("cpu:1")
        picked = tg.cond(there.sum() > 0, lambda: there.T * 2, lambda: there.T)
        rows = tg.scan(lambda c, row: (c + row, c), tg.zeros(2, device=ONE), picked)[1]
        drawn = tg.rand(2, device="cpu:2")
        there.add_(1)
        return x.to("cpu:1"), there.T, rows.to("cpu:2") + drawn, x.T.to(ONE)

    x = tg.arange(6.0).reshape(2, 3)
    assert "program for a CPU" in str(tg.tracing.program(lambda x: x.to("cpu:1") + 1, x))
    tg.manual_seed(1)
    expected = run(x)
    tg.manual_seed(1)
    found = tg.compile(run)(x)
    x.zero_()
    for one, other in zip(found, expected, strict=True):
        same(one, other.cpu(), other.device)
