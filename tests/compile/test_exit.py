"""Compiling while Python shuts down: nothing hangs, and what can be computed is right."""

from __future__ import annotations

import subprocess
import sys

import pytest

SECONDS = 120  # a hang, on a machine that is busy

HEAD = """
import atexit, builtins, os, sys, threading, time
import tgraph as tg

# Globals may be None by then.
def work(tg=tg, exp=tg.exp, write=os.write):
    function = tg.compile(lambda x: (x @ x).sum() + exp(x).sum())
    write(1, b"%.3f\\n" % function(tg.ones(3, 3)).item())

class AtTheEnd:
    def __init__(self, work=work):
        self.work = work
    def __del__(self):
        self.work()
"""
RIGHT = "51.465\n"

WHEN = {
    "global": "kept = AtTheEnd()",
    "cycle": "kept = AtTheEnd(); kept.itself = kept",
    "in another module": "builtins.kept = AtTheEnd()",
    "atexit": "atexit.register(work)",
    "after the threads": "threading._register_atexit(work)",
    "a thread that outlives the main one": """
def later():
    threading.main_thread().join()
    work()
threading.Thread(target=later).start()
""",
    "an exception": "kept = AtTheEnd(); sys.exit(0)",
    "a daemon": """
started = threading.Event()
def busy():
    for number in range(10_000):
        tg.compile(lambda x: tg.exp(x * number))(tg.ones(3 + number % 3))
        started.set()
threading.Thread(target=busy, daemon=True).start()
assert started.wait(60)
builtins.kept = AtTheEnd()  # the thread's frame keeps its globals
""",
    "a daemon that never ends its trace": """
started = threading.Event()
def busy():
    def traced(x):
        started.set()
        threading.Event().wait(1000)
        return x
    tg.compile(traced)(tg.ones(3))
threading.Thread(target=busy, daemon=True).start()
assert started.wait(60)
builtins.kept = AtTheEnd()  # the thread's frame keeps its globals
""",
    "a process that was forked": """
if os.fork() == 0:
    kept = AtTheEnd()
else:
    assert os.wait()[1] == 0
""",
}


def output(program: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", HEAD + program], capture_output=True, text=True, timeout=SECONDS
    )
    assert (run.returncode, run.stderr) == (0, ""), (run.returncode, run.stderr)
    return run.stdout


@pytest.mark.parametrize("program", WHEN.values(), ids=WHEN)
def test_the_first_compilation(program: str) -> None:
    assert output(program) == RIGHT


def test_another_plan_of_a_compiled_function() -> None:
    """Large enough for the pool of memory and the threads."""
    program = """
exp = tg.compile(lambda x: tg.exp(x).sum())
exp(tg.zeros(5))
kept = AtTheEnd(lambda: print(exp(tg.zeros(5)).item(), exp(tg.zeros(600, 600)).item()))
"""
    assert output(program) == "5.0 360000.0\n"


@pytest.mark.parametrize(
    "ask",
    ["loss.backward()", "tg.trace(tg.exp, tg.ones(2))", "square.explain(tg.ones(2, 2))"],
)
def test_what_needs_a_plan_says_so(ask: str) -> None:
    program = f"""
square = tg.compile(lambda x: (x * x).sum())
loss = square(tg.ones(3, requires_grad=True))
def late():
    try:
        {ask}
    except RuntimeError as error:
        print(error)
kept = AtTheEnd(late)
"""
    assert "cannot compile while Python shuts down" in output(program)


def test_large_results_let_go_at_the_end() -> None:
    """Their memory returns to a pool whose lock a thread may have taken along."""
    program = """
from tgraph.runtime import memory
held = threading.Event()
def busy():
    with memory._pool.lock:
        held.set()
        threading.Event().wait(1000)
double = tg.compile(lambda x: x * 2)
kept = [double(tg.ones(600, 600)) for _ in range(3)]
threading.Thread(target=busy, daemon=True).start()
assert held.wait(60)
builtins.also = kept
ones, write = tg.ones, os.write
builtins.more = AtTheEnd(
    lambda double=double, ones=ones, write=write:
        write(1, b"%.1f\\n" % double(ones(600, 600)).sum().item())
)
"""
    assert output(program) == "720000.0\n"
