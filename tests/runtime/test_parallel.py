"""The thread pool: every item once, the same ranges always, no hang after a fork."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import sampling
from tgraph.runtime import blas, jit, parallel

# Adds one to every item of a range, and records the range under its first item.
COUNT = """
define void @count(ptr %context, i64 %lo, i64 %hi) {
entry:
  %items = load ptr, ptr %context
  %second = getelementptr ptr, ptr %context, i64 1
  %ends = load ptr, ptr %second
  %e = getelementptr i64, ptr %ends, i64 %lo
  store i64 %hi, ptr %e
  %some = icmp slt i64 %lo, %hi
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [%lo, %entry], [%next, %loop]
  %p = getelementptr i64, ptr %items, i64 %i
  %a = load i64, ptr %p
  %b = add i64 %a, 1
  store i64 %b, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""

RANGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@pytest.fixture(autouse=True)
def threads():
    before = parallel.get_num_threads()
    yield
    parallel.set_num_threads(before)


def parallel_for(body, context, extent, grain, split=4):
    number = ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, number, number, number)
    function(parallel.parallel_for_address())(body, context, extent, grain, split)


def count(extent, grain, split=4):
    """How often each item was visited, and the ranges."""
    items = np.zeros(extent, np.int64)
    ends = np.zeros(extent + 1, np.int64)
    context = np.array([items.ctypes.data, ends.ctypes.data])
    parallel_for(
        jit.compile_module(COUNT).address("count"), context.ctypes.data, extent, grain, split
    )
    return items, [(int(lo), int(ends[lo])) for lo in np.nonzero(ends)[0]]


@pytest.mark.parametrize("number", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("extent", [0, 1, 2, 3, 5, 64, 1000, 100_003])
@pytest.mark.parametrize("grain", [0, 1, 3, 1000])
def test_every_item_is_visited_once(number, extent, grain):
    parallel.set_num_threads(number)
    for _ in range(3):
        items, ranges = count(extent, grain)
        assert (items == 1).all()
        assert all(hi - lo >= min(grain, extent) for lo, hi in ranges)


def test_ranges_depend_on_the_number_of_threads_alone():
    parallel.set_num_threads(3)
    assert {tuple(count(1000, 1, 2)[1]) for _ in range(100)} == {
        ((0, 166), (166, 333), (333, 500), (500, 666), (666, 833), (833, 1000))
    }
    assert count(1000, 400, 2)[1] == [(0, 500), (500, 1000)]
    assert count(1000, 600, 2)[1] == [(0, 1000)]


def test_other_threads_do_take_part():
    parallel.set_num_threads(2)
    seen = set()

    @RANGE
    def body(_, lo, hi):
        seen.add(threading.get_native_id())
        time.sleep(0.01)

    for _ in range(3):
        parallel_for(ctypes.cast(body, ctypes.c_void_p), None, 20, 1)
    assert len(seen) == 2


def test_no_more_threads_than_asked_for():
    parallel.set_num_threads(4)
    count(1000, 1)
    assert parallel._pool.workers() >= 3
    running, most = set(), []

    @RANGE
    def body(_, lo, hi):
        running.add(threading.get_native_id())
        time.sleep(0.002)
        most.append(len(running))
        running.discard(threading.get_native_id())

    parallel.set_num_threads(2)
    for _ in range(5):
        parallel_for(ctypes.cast(body, ctypes.c_void_p), None, 40, 1)
    assert max(most) == 2
    parallel.set_num_threads(1)
    most.clear()
    parallel_for(ctypes.cast(body, ctypes.c_void_p), None, 4, 1)
    assert most == [1]


def test_nested_loops_run_on_their_thread():
    parallel.set_num_threads(3)
    results = []

    @RANGE
    def body(_, lo, hi):
        items, _ = count(1000, 1)
        results.append(bool((items == 1).all()))

    parallel_for(ctypes.cast(body, ctypes.c_void_p), None, 12, 1)
    assert len(results) == 12 and all(results)


def test_concurrent_loops():
    parallel.set_num_threads(2)
    failures = []

    def work(extent):
        for _ in range(500):
            items, ranges = count(extent, 1)
            if not (items == 1).all() or len(ranges) != 8:
                failures.append(ranges)

    workers = [threading.Thread(target=work, args=(1000 + 77 * n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def test_many_loops_with_pauses_lose_nothing():
    parallel.set_num_threads(4)
    generator = np.random.default_rng(0)
    for number in range(400):
        extent = int(generator.integers(2, 3000))
        items, _ = count(extent, int(generator.integers(1, 50)))
        assert (items == 1).all()
        if number % 10 == 0:
            time.sleep(0.001)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_child_of_a_fork_goes_on():
    parallel.set_num_threads(3)
    count(10_000, 1)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                alone = parallel._pool.workers() == 0
                right = all((count(10_000, 1)[0] == 1).all() for _ in range(100))
                os._exit(0 if right and alone and parallel._pool.workers() == 2 else 1)
            finally:
                os._exit(2)
        assert (count(10_000, 1)[0] == 1).all()
        deadline = time.monotonic() + 60
        while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, 9)
                pytest.fail("the child hangs")
            time.sleep(0.01)
        assert os.waitstatus_to_exitcode(done[1]) == 0


def test_fork_without_pythons_hooks_costs_only_the_workers():
    parallel.set_num_threads(3)
    count(10_000, 1)
    child = ctypes.CDLL(None).fork()
    if child == 0:
        right = all((count(1000, 1)[0] == 1).all() for _ in range(20))
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("wrong", [0, -1, 5000])
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match=f"got {wrong}"):
        parallel.set_num_threads(wrong)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TGRAPH_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "6,2"}, 6),
        ({"OMP_NUM_THREADS": "many"}, None),
        ({}, None),
    ],
)
def test_environment_sets_the_default(monkeypatch, environment, expected):
    for name in ("TGRAPH_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert parallel._default_threads() == (expected or parallel._available_cpus())


def test_wrong_environment_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setenv("TGRAPH_NUM_THREADS", "all")
    with pytest.raises(ValueError, match=r"TGRAPH_NUM_THREADS.*'all'"):
        parallel._default_threads()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_default_follows_the_affinity():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from tgraph.runtime import parallel; print(parallel.get_num_threads())"
    )
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, check=True)
    assert done.stdout == b"1\n"


@pytest.mark.parametrize(
    ("content", "expected"), [("max 100000\n", 1024), ("150000 100000\n", 2), ("junk\n", 1024)]
)
def test_container_quota(tmp_path, content, expected):
    (tmp_path / "cpu.max").write_text(content)
    assert parallel._cgroup_cpus(str(tmp_path / "cpu.max")) == expected
    assert parallel._cgroup_cpus(str(tmp_path / "none")) == 1024


def test_number_of_threads_governs_openblas():
    libraries = blas.openblas_libraries()
    if not libraries:
        pytest.skip("this NumPy does not use OpenBLAS")
    parallel.set_num_threads(1)
    assert [library.get_num_threads() for library in libraries] == [1] * len(libraries)
    parallel.set_num_threads(2)
    assert [library.get_num_threads() for library in libraries] == [2] * len(libraries)


@pytest.mark.parametrize("spin", [0, 1, 100, 100_000])
def test_sleeping_and_waking_never_loses_or_doubles_an_item(spin):
    """With other numbers of items at each commit."""
    parallel.set_num_threads(5)
    count(100, 1)
    normal = parallel._pool._spins(0.00005)
    generator = np.random.default_rng([spin, sampling.TURN])
    parallel._pool._set_spin(spin)
    try:
        for number in range(2_500):
            items, _ = count(int(generator.integers(2, 400)), 1, int(generator.integers(1, 5)))
            assert (items == 1).all()
            if number % 500 == 0:
                parallel.set_num_threads(int(generator.integers(2, 9)))
    finally:
        parallel._pool._set_spin(normal)
