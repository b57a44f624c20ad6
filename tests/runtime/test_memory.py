"""Pooled arrays: memory is used again, but never while any array or view still needs it."""

import gc
import os
import pickle
import random
import threading
from itertools import pairwise

import numpy as np
import pytest
from tgraph.runtime import memory

LARGE = 100_000


@pytest.fixture(autouse=True)
def clean_pool():
    memory.empty_cache()
    limit = memory._pool.limit
    yield
    memory.set_cache_limit(limit)
    memory.empty_cache()


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 5), (7,), (1000, 1000), (1 << 16, 5), 300_000])
@pytest.mark.parametrize("dtype", [np.float32, "float64", np.bool_, np.complex64, np.int8])
def test_empty_is_like_numpys(shape, dtype):
    array = memory.empty(shape, dtype)
    like = np.empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype, array.strides) == (like.shape, like.dtype, like.strides)
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    if array.nbytes >= memory.POOLED_FROM:
        assert address(array) % 64 == 0
    array[...] = 1
    assert (array == 1).all()


def test_object_arrays_are_plain():
    assert memory.empty(LARGE, object)[0] is None


@pytest.mark.parametrize("nbytes", [0, 1, 100, 5000, memory.POOLED_FROM, 1_000_001])
def test_arena_is_aligned(nbytes):
    block = memory.arena(nbytes)
    assert block.nbytes == nbytes and block.dtype == np.uint8
    assert address(block) % 64 == 0 or nbytes == 0
    block[...] = 7


def test_memory_is_used_again():
    first = memory.empty(LARGE)
    where = address(first)
    assert memory.cached_bytes() == 0
    del first
    assert memory.cached_bytes() >= 4 * LARGE
    second = memory.empty((LARGE // 100, 100), np.int32)
    assert address(second) == where
    assert memory.cached_bytes() == 0


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[5:],
        lambda a: a[5:][::2][3:],
        lambda a: a.reshape(10, -1).T,
        lambda a: a.view(np.int32),
        lambda a: np.broadcast_to(a, (3, *a.shape)),
        lambda a: np.frombuffer(a, np.uint8),
        lambda a: memoryview(a),
        lambda a: np.lib.stride_tricks.as_strided(a, (10,), (8,)),
        lambda a: np.asarray(a).ravel(),
        lambda a: a.astype(np.float32, copy=False)[1:],
        lambda a: a.view(np.matrix),
        lambda a: np.ma.masked_array(a, copy=False),
        lambda a: a.reshape(10, -1).flat,
        lambda a: a.real,
        lambda a: (x for x in [a]),
        lambda a: np.ndarray((4,), np.uint8, a),
        lambda a: pickle.PickleBuffer(a),
    ],
)
def test_views_keep_the_memory(view):
    array = memory.empty(LARGE)
    where = address(array)
    kept = view(array)
    del array
    gc.collect()
    others = [memory.empty(LARGE) for _ in range(3)]
    assert where not in [address(other) for other in others]
    del kept
    gc.collect()
    assert memory.cached_bytes() >= 4 * LARGE


def test_random_use_never_hands_out_live_memory():
    generator = random.Random(3)
    live = []
    for number in range(3000):
        if live and generator.random() < 0.5:
            live.pop(generator.randrange(len(live)))
        else:
            array = memory.empty(generator.choice([70_000, 80_000, 150_000]), np.int32)
            array[::997] = number
            view = generator.choice([lambda a: a, lambda a: a[:], lambda a: a[:-1].view()])(array)
            live.append((number, view))
        if len(live) > 12:
            live.pop(0)
        for number_of, view in live:
            assert (view[::997] == number_of).all()
    ranges = sorted((address(v), address(v) + v.nbytes) for _, v in live)
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))


def test_pool_is_bounded():
    memory.set_cache_limit(3_000_000)
    arrays = [memory.empty(LARGE + 20_000 * number) for number in range(12)]
    del arrays
    assert 0 < memory.cached_bytes() <= 3_000_000
    held = sum(block.nbytes for blocks in memory._pool.free.values() for block in blocks)
    assert held == memory.cached_bytes()
    too_large = memory.empty(2_000_000)
    del too_large
    assert memory.cached_bytes() <= 3_000_000


def test_sizes_in_use_stay_when_the_pool_shrinks():
    old, new = memory.empty(LARGE), memory.empty(2 * LARGE)
    where = address(new)
    memory.set_cache_limit(1_100_000)
    del old
    del new
    assert address(memory.empty(2 * LARGE)) == where


def test_empty_cache_lets_go():
    array, other = memory.empty(LARGE), memory.empty(LARGE)
    array[...] = 5
    del other
    memory.empty_cache()
    assert memory.cached_bytes() == 0
    assert (array == 5).all()


def test_threads():
    errors = []

    def work(seed):
        generator = random.Random(seed)
        for number in range(300):
            array = memory.empty(generator.choice([70_000, 90_000]), np.int64)
            array[::1000] = seed * 1000 + number
            kept = array[1000:]
            del array
            if not (kept[::1000] == seed * 1000 + number).all():
                errors.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    held = sum(block.nbytes for blocks in memory._pool.free.values() for block in blocks)
    assert held == memory.cached_bytes()


def test_memory_is_taken_and_given_back_under_the_lock(monkeypatch):
    """Two threads that do so at once would lose a block, or find none where there was one."""
    lock, entered = memory._pool.lock, []

    class Watched:
        def __enter__(self):
            entered.append(lock.__enter__())

        def __exit__(self, *error):
            return lock.__exit__(*error)

    monkeypatch.setattr(memory._pool, "lock", Watched())
    block = memory.empty(1 << 20, np.uint8)
    assert len(entered) == 1
    del block
    assert len(entered) == 2


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_child_of_a_fork_may_allocate_while_the_lock_was_held():
    array = memory.empty(LARGE)
    array[...] = 3
    held = threading.Event()
    release = threading.Event()

    def hold():
        with memory._pool.lock:
            held.set()
            release.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    child = os.fork()
    if child == 0:
        try:
            memory.empty(LARGE)[...] = 4
            os._exit(0 if (array == 3).all() else 1)
        finally:
            os._exit(2)
    release.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_size_steps_waste_little():
    for nbytes in [memory.POOLED_FROM, 300_001, 1 << 20, (1 << 20) + 1, 123_456_789]:
        rounded = memory._rounded(nbytes)
        assert nbytes <= rounded <= nbytes * 1.125 + 64
        assert rounded == memory._rounded(rounded)
