"""Steps that go on elsewhere: branches by numbers in memory, jumps, slots that are bound."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from tgraph.runtime import interrupts, plan_native
from tgraph.runtime.plan import ArrayRef, BufferRef, CopyStep, Plan, PythonStep
from tgraph.runtime.plan_steps import BindStep, BranchStep, JumpStep

Array = np.ndarray[Any, Any]
INT64 = np.dtype(np.int64)
DTYPES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
)  # fmt: skip


def copy(target: int, source: int, nbytes: int = 8) -> CopyStep:
    return CopyStep("x", BufferRef(target), BufferRef(source), nbytes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_branches_read_every_integer_and_clamp_it(dtype: str) -> None:
    steps = [
        BranchStep("which", BufferRef(1), dtype, (1, 3, 5)),
        *(copy(5, 2), JumpStep("end", 4), copy(5, 3), JumpStep("end", 2), copy(5, 4)),
    ]
    plan = Plan(steps, 0, 6)
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for number in {*limits, 0, 1, min(2, limits[1]), max(-1, limits[0])}:
        out = np.zeros(1)
        arrays = [np.array([value]) for value in (10.0, 11.0, 12.0)]
        assert plan.run((np.array(number, dtype), *arrays, out)) == 0
        assert out[0] == 10 + min(max(int(number), 0), 2)


def count_down(step: Any) -> Plan:
    """Slot 1 has a number that `step` lowers from slot 3 to slot 4 until it is 0."""
    steps = [
        BindStep("ends", (3, 4), (BufferRef(1), BufferRef(2))),
        BranchStep("done", BufferRef(3), "int64", (3, 1)),
        step,
        JumpStep("back", -2, ((3, 4),)),
        copy(1, 3),
    ]
    return Plan(steps, 0, 5, pointers=(3, 4))


def test_python_steps_in_a_loop_and_slots_that_change_places() -> None:
    seen = []

    def lower(x: Array, out: Array) -> None:
        seen.append(int(x))
        out[...] = x - 1

    places = [ArrayRef(BufferRef(slot), (), INT64) for slot in (3, 4)]
    plan = count_down(PythonStep("lower", lower, places[:1], places[1:]))
    for start in (0, 1, 2, 5):
        number = np.array(start)
        assert plan.run((number, np.array(99))) == 0
        assert number == 0 and seen == list(range(start, 0, -1))
        seen.clear()


def test_errors_in_a_loop_leave_it() -> None:
    def lower(x: Array, out: Array) -> None:
        if x == 3:
            raise ValueError("three")
        out[...] = x - 1

    places = [ArrayRef(BufferRef(slot), (), INT64) for slot in (3, 4)]
    plan = count_down(PythonStep("lower", lower, places[:1], places[1:]))
    with pytest.raises(ValueError, match="three"):
        plan.run((np.array(5), np.array(0)))
    assert plan.run((np.array(2), np.array(0))) == 0


def test_a_jump_may_lead_to_the_end_and_steps_may_be_empty() -> None:
    plan = Plan([copy(2, 1, 0), JumpStep("over", 2), copy(2, 1), copy(2, 1, 0)], 0, 3)
    out = np.zeros(1)
    assert plan.run((np.ones(1), out)) == 0 and out == 0
    assert Plan([JumpStep("end", 1)], 0, 1).run(()) == 0


def test_a_copy_onto_itself_is_none() -> None:
    plan = Plan([BindStep("same", (2,), (BufferRef(1, 8),)), copy(2, 2)], 0, 3, pointers=(2,))
    values = np.arange(3.0)
    assert plan.run((values,)) == 0 and values.tolist() == [0, 1, 2]


def endless() -> Plan:
    steps = [BranchStep("more", BufferRef(1), "bool", (2, 1)), JumpStep("back", -1)]
    return Plan(steps, 0, 2)


def interrupt_soon() -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.mark.usefixtures("python_handler")
def test_ctrl_c_ends_a_native_loop() -> None:
    plan = endless()
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        plan.run((np.array(True),))
    assert plan.run((np.array(False),)) == 0


@pytest.mark.usefixtures("python_handler")
def test_ctrl_c_ends_a_loop_where_it_is_held_back() -> None:
    """Once, and whoever held it back is not told again."""
    plan = endless()
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt), interrupts.held(), interrupts.held():
        plan.run((np.array(True),))
    time.sleep(0)  # where it would be raised a second time
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("python_handler")
def test_ctrl_c_is_told_to_the_handler_that_was_set_last() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.held():  # nobody would hear of it
        signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            interrupts.deliver()
            assert heard == [signal.SIGINT]
    assert heard == [signal.SIGINT]


@pytest.mark.usefixtures("python_handler")
def test_other_handlers_of_ctrl_c_are_called_and_the_loop_goes_on() -> None:
    more, seen = np.array(True), []

    def stop(number: int, frame: object) -> None:
        seen.append(number)
        more[...] = False

    before = signal.signal(signal.SIGINT, stop)
    try:
        interrupt_soon()
        with interrupts.held():
            assert endless().run((more,)) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_pauses_do_not_change_what_a_loop_does(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(interrupts, "deliver", lambda: calls.append(None))
    plan, more = endless(), np.array(True)
    threading.Timer(5 * plan_native.PAUSE / 1e9, more.fill, (False,)).start()
    assert plan.run((more,)) == 0
    assert 2 <= len(calls) <= 10


def test_wrong_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="no pointers"):
        Plan([BindStep("x", (2,), (BufferRef(1),))], 0, 3)
    with pytest.raises(ValueError, match="no pointers"):
        Plan([JumpStep("x", 1, ((1, 2),))], 0, 3, pointers=(1,))
    with pytest.raises(ValueError, match="uses slot 5"):
        Plan([BranchStep("x", BufferRef(5), "bool", (1,))], 0, 3)
    with pytest.raises(ValueError, match="leads to"):
        Plan([JumpStep("x", -1)], 0, 1)
