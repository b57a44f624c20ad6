"""Threads, Ctrl-C and call overhead."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tgraph.runtime import interrupts

import tgraph as tg


def test_threads_share_plans():
    weight = tg.tensor([1.0, 2.0, 3.0])
    function = tg.compile(lambda x: (x * weight).cumsum(0) if False else (x * weight).sum() + x)
    errors, start = [], threading.Barrier(6)

    def work(number):
        try:
            start.wait()
            for turn in range(30):
                size = 3
                x = tg.full((size,), float(number + turn))
                found = function(x).tolist()
                wanted = (number + turn) * 7.0
                if found != [wanted] * 3:
                    errors.append((number, found))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(function.compiles) == 1


def test_modes_belong_to_their_thread():
    w = tg.ones(2, requires_grad=True)
    function = tg.compile(lambda: w * 2)
    found = {}

    def work():
        with tg.no_grad():
            found["other"] = function().requires_grad

    thread = threading.Thread(target=work)
    with tg.enable_grad():
        thread.start()
        thread.join()
        found["main"] = function().requires_grad
    assert found == {"other": False, "main": True}


def test_other_threads_stay_eager_while_one_traces():
    inside, go_on = threading.Event(), threading.Event()

    @tg.compile
    def slow(x):
        inside.set()
        assert go_on.wait(10)
        return x + 1

    thread = threading.Thread(target=slow, args=(tg.ones(2),))
    thread.start()
    assert inside.wait(10)
    try:
        assert (tg.ones(2) * 3).tolist() == [3, 3]
        assert not tg.tracing.is_tracing()
    finally:
        go_on.set()
        thread.join()


def test_traces_wait_for_each_other():
    """The first one has changed `x`, which the second would take for its value."""
    x = tg.ones(3)
    entered, graphs = threading.Event(), []

    def reads():
        entered.set()
        return x * 2

    def changes():
        x.add_(1)
        other.start()
        assert not entered.wait(0.2)
        return x * 3

    other = threading.Thread(target=lambda: graphs.append(tg.trace(reads)))
    graphs.append(tg.trace(changes))
    other.join()
    assert entered.is_set() and x.tolist() == [1.0, 1.0, 1.0]
    assert [len(graph.inputs) for graph in graphs] == [1, 1]


def test_threads_do_not_wait_for_each_other():
    """One makes the second plan of a function while another compiles a function."""
    w = tg.ones(3, requires_grad=True)
    twice_planned = tg.compile(lambda x: x * w)
    twice_planned(tg.ones(3)).sum().backward()  # keeps the plan without gradients for later
    inside = threading.Event()

    @tg.compile
    def slow(x):
        inside.set()
        threading.Event().wait(0.2)
        return x + 1

    def without_gradients():
        with tg.no_grad():
            twice_planned.latest.function([tg.ones(3), w])

    threads = [threading.Thread(target=slow, args=(tg.ones(2),), daemon=True)]
    threads[0].start()
    assert inside.wait(10)
    threads.append(threading.Thread(target=without_gradients, daemon=True))
    threads[1].start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_child_of_a_fork_compiles_whatever_other_threads_did():
    weight, inside = tg.ones(2), threading.Event()

    @tg.compile
    def slow(x):
        weight.add_(x)
        inside.set()
        threading.Event().wait(0.2)
        return weight * 2

    thread = threading.Thread(target=slow, args=(tg.ones(2),))
    thread.start()
    assert inside.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            other = tg.compile(lambda x: tg.exp(x).sum() * 3)
            right = other(tg.zeros(5)).item() == 15 and weight.tolist() in ([1, 1], [2, 2])
            os._exit(0 if right else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    assert weight.tolist() == [2, 2]


FORK_AT_ONCE = """
import os, signal, sys, time
import tgraph as tg
f = tg.compile(lambda x: tg.exp(x).sum())
time.sleep(float(sys.argv[1]))
child = os.fork()
signal.alarm(60)
right = f(tg.zeros(10)).item() == 10
if child == 0:
    os._exit(0 if right else 1)
assert right and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.parametrize("delay", [0, 0.01, 0.05, 0.1])
def test_fork_while_the_runtime_is_prepared(delay):
    """Wherever the thread is that starts LLVM, and imports the compiler, before the first call."""
    command = [sys.executable, "-c", FORK_AT_ONCE, str(delay)]
    subprocess.run(command, check=True)


@pytest.mark.usefixtures("python_handler")
def test_ctrl_c_waits_for_the_end_of_a_call():
    order = []
    handler = interrupts.hold()
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        order.append("held")
    finally:
        with pytest.raises(KeyboardInterrupt):
            interrupts.release(handler)
    assert order == ["held"]
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.usefixtures("python_handler")
def test_ctrl_c_in_a_loop_leaves_tensors_consistent():
    count, copies = tg.zeros(()), tg.zeros(4)
    w = tg.ones(4, requires_grad=True)

    @tg.compile
    def step():
        w.grad = None
        (w * count).sum().backward()
        count.add_(1)
        copies.copy_(w.grad + 1)

    step()
    for delay in (0.001, 0.003, 0.005):
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            for _ in range(1_000_000):
                step()
        timer.join()
        n = count.item()
        assert copies.tolist() == [n] * 4 and w.grad.tolist() == [n - 1] * 4
        assert count._version == copies._version == n


def test_the_hot_path_makes_few_calls():
    """The generated function, the plan's two runs, the walk, memory and a handle per output."""
    model = tg.nn.Sequential(tg.nn.Linear(8, 16), tg.nn.ReLU(), tg.nn.Linear(16, 4))
    function = tg.compile(model)
    x, calls = tg.ones(4, 8), []
    with tg.no_grad():
        function(x)
        sys.setprofile(lambda frame, event, _: calls.append(frame.f_code) if event == "call" else 0)
        try:
            function(x)
        finally:
            sys.setprofile(None)
    assert len(calls) <= 12, calls
