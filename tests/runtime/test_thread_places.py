"""Workers wake on another CPU than their caller's, and their masks stay what they were."""

import contextlib
import ctypes
import os
import subprocess
import sys
import time

import pytest
from tgraph.runtime import parallel

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="threads have no choice of CPUs here",
)

LIBC = ctypes.CDLL(None)
RANGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ASLEEP = 0.003  # seconds: sixty times what a worker waits before it sleeps


@pytest.fixture(autouse=True)
def as_before():
    threads, mask = parallel.get_num_threads(), os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, mask)
    for tid in who_runs(parallel.get_num_threads()):
        os.sched_setaffinity(tid, mask)
    parallel.set_num_threads(threads)


def native_loop():
    number = ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, number, number, number)
    return function(parallel.parallel_for_address())


def who_runs(threads):
    """The CPU of each of the threads that run a loop of as many items, all of which take part."""
    cpus = {}

    @RANGE
    def body(_, lo, hi):
        cpus[ctypes.c_int(LIBC.gettid()).value] = LIBC.sched_getcpu()
        deadline = time.monotonic() + 60
        while len(cpus) < threads and time.monotonic() < deadline:
            time.sleep(0.0005)

    native_loop()(ctypes.cast(body, ctypes.c_void_p), None, threads, 1, 1)
    return cpus


def two_cpus():
    return sorted(os.sched_getaffinity(0))[:2]


def the_worker(threads=2):
    parallel.set_num_threads(threads)
    return next(iter(set(who_runs(threads)) - {LIBC.gettid()}))


def lay_to_sleep(worker, cpu, mask):
    """Let the worker sleep on `cpu`, with `mask` from then on."""
    os.sched_setaffinity(worker, {cpu})
    who_runs(2)
    time.sleep(ASLEEP)
    os.sched_setaffinity(worker, mask)


@contextlib.contextmanager
def busy(cpu):
    """Another process that keeps a CPU from being idle: the kernel prefers idle ones."""
    code = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield
        finally:
            process.kill()


def test_a_worker_that_slept_on_its_callers_cpu_wakes_on_another():
    here, there = two_cpus()
    worker = the_worker()
    woken = []
    os.sched_setaffinity(0, {here})
    with busy(there):
        for _ in range(10):
            lay_to_sleep(worker, here, {here, there})
            woken.append(who_runs(2)[worker])
            assert os.sched_getaffinity(worker) == {here, there}
    assert woken.count(there) >= 5  # the scheduler may move it back in between


def test_masks_are_as_before():
    here, there = two_cpus()
    everywhere = os.sched_getaffinity(0)
    worker = the_worker()
    os.sched_setaffinity(0, {here})
    for mask in [{here, there}, everywhere, {here}, {there}, everywhere]:
        for _ in range(5):
            lay_to_sleep(worker, here, mask)
            who_runs(2)
            assert os.sched_getaffinity(worker) == mask
            assert os.sched_getaffinity(0) == {here}


def test_a_mask_that_was_set_while_the_worker_sleeps_holds():
    here, there = two_cpus()
    worker = the_worker()
    os.sched_setaffinity(0, {here})
    for _ in range(5):
        lay_to_sleep(worker, here, {here, there})
        os.sched_setaffinity(worker, {here})
        assert who_runs(2)[worker] == here
        assert os.sched_getaffinity(worker) == {here}


def test_more_threads_than_cpus_stay_where_they_may():
    here, _ = two_cpus()
    parallel.set_num_threads(4)
    workers = set(who_runs(4)) - {LIBC.gettid()}
    for worker in workers:
        os.sched_setaffinity(worker, {here})
    for _ in range(5):
        time.sleep(ASLEEP)
        assert set(who_runs(4).values()) <= os.sched_getaffinity(0)
        assert all(os.sched_getaffinity(worker) == {here} for worker in workers)


def start_a_loop():
    """Run a loop that does not wait for other threads."""
    body = RANGE(lambda _, lo, hi: None)
    native_loop()(ctypes.cast(body, ctypes.c_void_p), None, 2, 1, 1)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("by", [os.fork, LIBC.fork], ids=["told", "untold"])
def test_a_child_changes_no_mask(by):
    here, there = two_cpus()
    worker = the_worker()
    os.sched_setaffinity(0, {here})
    for _ in range(5):
        lay_to_sleep(worker, here, {here, there})
        child = by()
        if child == 0:
            os.sched_setaffinity(0, {here, there})
            start_a_loop()
            os._exit(0 if os.sched_getaffinity(0) == {here, there} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert os.sched_getaffinity(worker) == {here, there}
        assert len(who_runs(2)) == 2
