"""Ctrl-C and a lack of memory inside a compilation: it did not happen, and the next one works."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from tgraph.runtime import locks

import tgraph as tg
from tgraph.core.compile_lock import COMPILE_LOCK
from tgraph.core.state import state

SECONDS = 300
# How a trace begins and ends: what an exception there leaves behind is seen by everybody.
ENDS = frozenset({"roll_back", "restore", "resumed", "standing_in", "use_context"})
WITHOUT_MEMORY = frozenset({"__enter__", "__exit__", "acquire", "release", "setprofile"})


class Raises:
    """A profile function that raises at the `at`-th call, of those inside of `functions`."""

    def __init__(self, kind: type[BaseException], at: int, functions: frozenset[str]) -> None:
        self.kind, self.at, self.functions = kind, at, functions
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event != "call" and (event != "c_call" or arg.__name__ in WITHOUT_MEMORY):
            return
        if self.functions and not self._is_inside(frame):
            return
        self.seen += 1
        if self.seen == self.at:
            raise self.kind("injected")

    def _is_inside(self, frame: FrameType | None) -> bool:
        for _ in range(4):
            if frame is None:
                return False
            if frame.f_code.co_name in self.functions:
                return True
            frame = frame.f_back
        return False


class Model:
    """A training step, which writes, draws random numbers, and has state that is made late."""

    def __init__(self, number: int) -> None:
        self.number = 1 + number / 1024  # so that every kernel is compiled anew
        self.w = tg.ones(6, 4, requires_grad=True)
        self.count = tg.zeros(())
        self.optimizer = tg.optim.SGD([self.w], lr=0.5, momentum=0.9)

    def step(self, x: tg.Tensor) -> tuple[tg.Tensor, ...]:
        self.optimizer.zero_grad()
        loss = ((x @ self.w) * self.number).tanh().sum() + tg.rand(2).sum()
        loss.backward()
        self.optimizer.step()
        self.count.add_(1)
        return loss, self.w[0]

    def state(self) -> Any:
        w, count = self.w, self.count
        grad = None if w.grad is None else w.grad.tolist()
        of_w = (w.tolist(), grad, w.requires_grad, w.is_leaf, w._version)
        return of_w, count.tolist(), count._version, tg.get_rng_state().tolist()


def is_free(lock: Any) -> bool:
    found: list[bool] = []

    def look() -> None:
        found.append(lock.acquire(timeout=10))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def call(function: Callable[..., Any], profile: Raises) -> None:
    sys.setprofile(profile)
    try:
        function(tg.ones(3, 6))
    finally:
        sys.setprofile(None)


def interrupted(kind: type[BaseException], at: int, functions: frozenset[str]) -> bool:
    """Whether the exception came; after it all must be as before, and work."""
    tg.manual_seed(3)
    model, twin = Model(at), Model(at)
    compiled = tg.compile(model.step)
    before = model.state()
    try:
        call(compiled, Raises(kind, at, functions))
    except kind:
        pass
    else:
        return False
    assert is_free(COMPILE_LOCK) and is_free(locks.RUNTIME)
    assert state.context is None and state.grad_enabled
    if model.count.item():  # it came behind the call, which has happened as a whole
        return True
    assert model.state() == before
    tg.manual_seed(3)
    found = [[each.tolist() for each in compiled(tg.ones(3, 6))] for _ in range(2)]
    tg.manual_seed(3)
    for each in found:
        wanted = twin.step(tg.ones(3, 6))
        assert each[0] == pytest.approx(wanted[0].item(), rel=1e-5)
        assert each[1] == pytest.approx(wanted[1].tolist(), rel=1e-5)
    return True


def calls(functions: frozenset[str]) -> int:
    """How many there are in a compilation."""
    profile = Raises(MemoryError, -1, functions)
    call(tg.compile(Model(-1).step), profile)
    return profile.seen


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path))
    tg.compile(Model(-2).step)(tg.ones(3, 6))


KINDS = pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt], ids=lambda k: k.__name__)


@KINDS
@pytest.mark.usefixtures("fresh_cache")
def test_where_a_trace_begins_and_ends(kind: type[BaseException]) -> None:
    number = calls(ENDS)
    assert number > 10
    for at in range(1, number + 1, 1 + number // 60):
        interrupted(kind, at, ENDS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in generators
@KINDS
@pytest.mark.parametrize("share", [pytest.param(20), pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("fresh_cache")
def test_anywhere(kind: type[BaseException], share: int) -> None:
    number = calls(frozenset())
    came = [interrupted(kind, at, frozenset()) for at in range(7, number, number // share)]
    assert sum(came) > len(came) * 0.8


KEYS = """
import _thread, random, signal, sys, threading, time
import tgraph as tg

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = random.Random(int(sys.argv[1]))
w = tg.ones(5, requires_grad=True)
signal.signal(signal.SIGALRM, lambda *_: _thread.interrupt_main())
came, whole = 0, 0.0
for number in range(-2, 60):
    @tg.compile
    def step(x):
        loss = ((x * w).tanh() * (number + 4)).sum()
        loss.backward()
        return loss
    begun = time.perf_counter()
    if number < 0:  # how long it takes, without what is done once
        step(tg.ones(5))
        whole = time.perf_counter() - begun
        w.grad = None
        continue
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.01, 1.2) * whole)
        step(tg.ones(5))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        came += 1
    w.grad = None
    found = []
    # In another thread, for which no lock may be left behind.
    other = threading.Thread(target=lambda: found.append(step(tg.ones(5)).item()), daemon=True)
    other.start()
    other.join(60)
    wanted = (tg.ones(5) * w).tanh().sum().item() * (number + 4)
    assert found and abs(found[0] - wanted) < 1e-3, (number, found, wanted)
    w.grad = None
print(came > 5)
"""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c(seed: int, monkeypatch) -> None:
    monkeypatch.setenv("TGRAPH_CACHE_DIR", "")  # in which compilations would take no time
    assert output(KEYS, str(seed)) == "True\n"


def output(program: str, *args: str) -> str:
    command = [sys.executable, "-c", program, *args]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, (run.returncode, run.stderr)
    return run.stdout


LIMITED = """
import errno, resource, sys, threading
import tgraph as tg

def limit(more):
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if more is None else now + more, most))

def long(number):
    def function(x):
        for turn in range(30):
            x = tg.tanh(x * (turn + number)) + tg.sin(x)
        return tg.softmax(x, 0).sum() + (x @ x.t()).sum()
    return function

def train(number):
    w = tg.ones(9, 9, requires_grad=True)
    def function(x):
        w.grad = None
        loss = ((x @ w).tanh() * number).sum()
        loss.backward()
        return loss.detach() + w.grad.sum()
    return function

refused = 0
x = tg.ones(7, 9)
if sys.argv[1] == "warm":
    tg.compile(lambda x: tg.exp(x @ x.t()))(x)
for number, kilobytes in enumerate(map(int, sys.argv[2:])):
    for make in (long, train):
        compiled, wanted = tg.compile(make(number + 0.5)), make(number + 0.5)(x).item()
        # A thread that has asked for memory, and been told that it is there, needs it.
        for each in threading.enumerate():
            if each.name == "tgraph-prepare":
                each.join()
        limit(kilobytes << 10)
        try:
            compiled(x)
        except MemoryError:
            refused += 1
        except OSError as error:  # from an import that lists a folder
            assert error.errno == errno.ENOMEM, error
            refused += 1
        except SystemError as error:  # CPython 3.11, with no memory for a frame of Python's own
            assert "exception" in str(error), error  # "... without setting an exception" and alike
            refused += 1
        finally:
            limit(None)
        found = compiled(x).item()
        assert abs(found - wanted) < 1e-3 * max(1, abs(wanted)), (number, found, wanted)
print(refused)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads /proc, which this system lacks"
)
def test_no_memory_for_the_first_compilation(tmp_path, monkeypatch) -> None:
    """LLVM, which is not there yet, ends processes that do not give it memory."""
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path / "none" / "yet"))
    for kilobytes in ("100", "3000"):
        assert output(LIMITED, "cold", kilobytes) in ("1\n", "2\n")
    # Enough where LLVM, which another thread begins to load at once, happens to be there already.
    assert output(LIMITED, "cold", "60000") in ("0\n", "1\n", "2\n")


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads /proc, which this system lacks"
)
def test_no_memory_for_another_compilation(monkeypatch) -> None:
    monkeypatch.setenv("TGRAPH_CACHE_DIR", "")
    limits = ("0", "300", "4000", "20000", "400000")
    assert 4 <= int(output(LIMITED, "warm", *limits)) <= 8


def test_what_is_found_on_disk_needs_memory_too(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path))
    program = LIMITED.replace("def long(number):\n", "def long(number):\n    number = 1.5\n")
    assert int(output(program, "warm", "0", "0", "1000", "5000", "400000")) >= 2
