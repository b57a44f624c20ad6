"""Memory that must not be written: compiled functions refuse it as eager code does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tgraph.compiler.compile_graph import compile_graph
from tgraph.compiler.ir import Builder, Graph, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import float64
from tgraph.runtime.plan import ReadOnlyError

import tgraph as tg

N = 6


def read_only() -> tg.Tensor:
    """A tensor over bytes, which Python counts on never to change."""
    return tg.from_numpy(np.frombuffer(bytes(np.arange(1.0, N + 1)), np.float64))


def fresh() -> tg.Tensor:
    return tg.arange(1.0, N + 1, dtype=tg.float64)


VALUES = fresh().tolist()

WRITES: dict[str, Callable[[tg.Tensor], Any]] = {
    "add_": lambda x: x.add_(1),
    "+=": lambda x: x.__iadd__(1),
    "copy_": lambda x: x.copy_(tg.zeros(N)),
    "zero_": lambda x: x.zero_(),
    "view": lambda x: x[1:].mul_(2),
    "view of view": lambda x: x.view(2, 3).t()[0].neg_(),
    "detached": lambda x: x.detach().add_(1),
    ".data": lambda x: x.data.add_(1),
    "item": lambda x: x.__setitem__(0, 5.0),
    "slice": lambda x: x.__setitem__(slice(1, 3), tg.zeros(2)),
    "mask": lambda x: x.__setitem__(x > 2, 0.0),
    "positions": lambda x: x.__setitem__(tg.tensor([1, 2]), 0.0),
    "index_put_": lambda x: x.index_add_(0, tg.tensor([1]), tg.ones(1, dtype=tg.float64)),
    "out": lambda x: tg.exp(fresh(), out=x),
    "random": lambda x: x.normal_(),
    "twice": lambda x: (x.add_(1), x.mul_(2)),
    "two results": lambda x: (x.copy_(fresh() * 3), x * 1, fresh() * 3),
    "stepped": lambda x: x[::2].zero_(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_arguments(write: Callable[..., Any]) -> None:
    function = tg.compile(lambda x: (write(x), x + 0)[1])
    with pytest.raises(RuntimeError, match="read-only"):
        function(read_only())  # while it is traced
    x = fresh()
    function(x)
    function(x)
    refused = read_only()
    with pytest.raises(RuntimeError, match="read-only"):
        function(refused)  # by the plan
    assert refused.tolist() == VALUES
    function(fresh())
    assert len(function.compiles) == 1


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_captured_tensors(write: Callable[..., Any]) -> None:
    x = read_only()
    with pytest.raises(RuntimeError, match="read-only"):
        tg.compile(lambda: write(x))()
    assert x.tolist() == VALUES
    y = fresh()
    function = tg.compile(lambda: write(y))
    function()
    y.data = read_only()
    with pytest.raises(RuntimeError, match="read-only"):
        function()
    assert y.tolist() == VALUES


def test_the_array_is_flagged_later() -> None:
    """As with any view of an array, what a tensor may do was settled when it was made."""
    array = np.arange(4.0)
    x = tg.from_numpy(array)
    function = tg.compile(lambda x: x.add_(1))
    function(x)
    array.flags.writeable = False
    x.add_(1)
    function(x)
    assert array.tolist() == [3.0, 4.0, 5.0, 6.0]
    for write in (lambda x: x.add_(1), function):
        with pytest.raises(RuntimeError, match="read-only"):
            write(tg.from_numpy(array))
    array.flags.writeable = True
    assert function(tg.from_numpy(array)).tolist() == [4.0, 5.0, 6.0, 7.0]


def test_other_arguments_are_as_eager_code_leaves_them() -> None:
    def change(x: tg.Tensor, y: tg.Tensor) -> None:
        x.add_(1)
        y.add_(1)

    found = []
    for run in (change, tg.compile(change)):
        run(fresh(), fresh())
        x = fresh()
        with pytest.raises(RuntimeError, match="read-only"):
            run(x, read_only())
        found.append((x.tolist(), x._version))
    assert found[0] == found[1]


def test_what_is_only_read_may_be_read_only() -> None:
    x = read_only()
    weight = read_only()
    function = tg.compile(lambda x, y: (y.add_(x * weight), y.sum())[1])
    for _ in range(2):
        assert function(x, fresh()).item() == sum(VALUES) + sum(v * v for v in VALUES)


def test_flags_are_put_back() -> None:
    def learn(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        x.requires_grad_()
        y.add_(1)
        return (x * y).sum()

    function = tg.compile(learn)
    function(fresh(), fresh())
    x = fresh()
    with pytest.raises(RuntimeError, match="read-only"):
        function(x, read_only())
    assert x.requires_grad  # eager code came so far
    assert function(fresh(), fresh()).requires_grad


def test_new_data_needs_no_old_memory() -> None:
    """`.data = ` gives other memory."""
    x = read_only()
    function = tg.compile(lambda x: setattr(x, "data", tg.zeros(N, dtype=tg.float64)))
    function(x)
    assert x.tolist() == [0.0] * N
    x = read_only()
    function(x)
    assert x.tolist() == [0.0] * N and read_only().tolist() == VALUES


@pytest.mark.parametrize("run", [lambda f: f, tg.compile], ids=["eager", "compiled"])
def test_gradients(run: Any) -> None:
    w = fresh().requires_grad_()
    accumulate = run(lambda: (w * 3).sum().backward())
    w.grad = tg.zeros(N, dtype=tg.float64)
    accumulate()
    assert w.grad.tolist() == [3.0] * N
    w.grad = kept = read_only()
    for write in (accumulate, run(lambda: w.grad.zero_()), run(lambda: w.grad.mul_(2))):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert kept.tolist() == VALUES
    w.grad = None
    accumulate()
    assert w.grad.tolist() == [3.0] * N


OPTIMIZERS = {
    "SGD": lambda ps: tg.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: tg.optim.SGD(ps, lr=0.1, momentum=0.9),
    "Adam": lambda ps: tg.optim.Adam(ps),
    "AdamW": lambda ps: tg.optim.AdamW(ps, amsgrad=True),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_optimizer_steps(make: Any) -> None:
    """A model over a read-only file cannot learn; nor one whose state became read-only."""
    w, frozen = fresh().requires_grad_(), read_only().requires_grad_()
    both = make([w, frozen])

    @tg.compile
    def step() -> None:
        both.zero_grad()
        ((w * w).sum() + (frozen * frozen).sum()).backward()
        both.step()

    with pytest.raises(RuntimeError, match="read-only"):
        step()
    assert frozen.tolist() == VALUES

    parameter = fresh().requires_grad_()
    optimizer = make([parameter])

    @tg.compile
    def learn() -> None:
        optimizer.zero_grad()
        (parameter * parameter).sum().backward()
        optimizer.step()

    learn()
    parameter.data = read_only()
    with pytest.raises(RuntimeError, match="read-only"):
        learn()
    assert parameter.tolist() == VALUES
    parameter.data = fresh()
    learn()
    assert parameter.tolist() != VALUES
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, tg.Tensor) and value.ndim:
                array = value.numpy().copy()
                array.flags.writeable = False
                value.data = tg.from_numpy(array)
                with pytest.raises(RuntimeError, match="read-only"):
                    learn()
                assert value.tolist() == array.tolist(), name
                value.data = tg.tensor(array)


def test_memory_of_other_libraries() -> None:
    """By DLPack read-only memory comes as a copy; by NumPy it is shared and refused."""
    array = np.frombuffer(bytes(np.arange(1.0, N + 1)), np.float64)
    function = tg.compile(lambda x: x.add_(1))
    function(fresh())
    assert function(tg.from_dlpack(array)).tolist() == [v + 1 for v in VALUES]
    assert array.tolist() == VALUES
    for shown in (tg.from_numpy(np.from_dlpack(array)), tg.as_tensor(array)):
        with pytest.raises(RuntimeError, match="read-only"):
            function(shown)
    lent = np.from_dlpack(read_only())
    assert not lent.flags.writeable
    with pytest.raises(RuntimeError, match="read-only"):
        function(tg.as_tensor(lent))
    assert array.tolist() == VALUES


def test_checked_calls() -> None:
    function = tg.compile(lambda x: x.add_(1), check=True)
    function(fresh())
    refused = read_only()
    with pytest.raises(RuntimeError, match="read-only"):
        function(refused)
    assert refused.tolist() == VALUES


def test_no_elements_are_never_refused() -> None:
    function = tg.compile(lambda x: x.add_(1))
    for run in (lambda x: x.add_(1), function, function):
        assert run(tg.from_numpy(np.frombuffer(b"", np.float64))).tolist() == []


class Memory(np.ndarray):
    """A subclass, such as np.memmap."""


def test_subclasses_of_arrays_are_looked_at() -> None:
    x = input_node("x", TensorType((N,), float64))
    run = compile_graph(Graph([x], [Builder().apply(p.neg, [x])]), donate={0: 0}).run
    array = np.arange(float(N)).view(Memory)
    run([array])
    assert array.tolist() == [-float(n) for n in range(N)]
    array.flags.writeable = False
    with pytest.raises(ReadOnlyError, match="must not be written"):
        run([array])
    assert array.tolist() == [-float(n) for n in range(N)]


MAPPED = """
import sys
import numpy as np
import tgraph as tg

def mapped():
    return tg.from_numpy(np.memmap(sys.argv[1], np.float64, "r", shape=(1000,)))

def refused(function, *args):
    try:
        function(*args)
    except RuntimeError as error:
        assert "read-only" in str(error), error
        return
    raise AssertionError("was written")

def fresh():
    return tg.ones(1000, dtype=tg.float64)

add = tg.compile(lambda x: x.add_(1))
add(fresh())
refused(add, mapped())

x = fresh()
captured = tg.compile(lambda: x.mul_(2))
captured()
x.data = mapped()
refused(captured)

w = fresh().requires_grad_()
learn = tg.compile(lambda: (w * 3).sum().backward())
w.grad = fresh()
learn()
w.grad = mapped()
refused(learn)

into = tg.compile(lambda x, out: tg.exp(x, out=out))
into(fresh(), fresh())
refused(into, mapped(), mapped())
assert add(tg.from_dlpack(np.memmap(sys.argv[1], np.float64, "r"))).tolist()[0] == 1.0
changed = tg.from_numpy(np.memmap(sys.argv[1], np.float64, "c", shape=(1000,)))
assert add(changed).tolist() == [1.0] * 1000
print("alive")
"""


def test_files_that_are_mapped_for_reading(tmp_path: Any) -> None:
    """Writing to them ends the process."""
    path = tmp_path / "data.bin"
    path.write_bytes(bytes(8000))
    run = subprocess.run(
        [sys.executable, "-c", MAPPED, path], capture_output=True, text=True, timeout=300
    )
    assert (run.returncode, run.stdout) == (0, "alive\n"), run.stderr
    assert path.read_bytes() == bytes(8000)
