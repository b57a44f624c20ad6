"""Plans: every kind of step, alone and together, in one thread and several."""

import ctypes
import subprocess
import sys
import threading

import numpy as np
import pytest
from tgraph.runtime import jit, memory, parallel, plan_native
from tgraph.runtime.plan import (
    ARENA_SLOT,
    STATUS_SLOT,
    ArrayRef,
    BufferRef,
    CopyStep,
    GemmStep,
    KernelStep,
    NotDenseError,
    Plan,
    PythonStep,
    ReadOnlyError,
)

LOOP = """
define void @{name}(ptr %args, i64 %lo, i64 %hi) {{
entry:
  %x = load ptr, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  %out = load ptr, ptr %second
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%next, %loop]
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr double, ptr %out, i64 %i
  %a = load double, ptr %p
  %b = {operation}
  store double %b, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""

# Refuses a negative item: status = (7, position).
CHECK = """
define void @check(ptr %args, i64 %lo, i64 %hi) {
entry:
  %x = load ptr, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  %status = load ptr, ptr %second
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%next, %good]
  %p = getelementptr double, ptr %x, i64 %i
  %a = load double, ptr %p
  %bad = fcmp olt double %a, 0.0
  br i1 %bad, label %report, label %good
report:
  %where = getelementptr i64, ptr %status, i64 1
  store i64 %i, ptr %where
  store atomic i64 7, ptr %status release, align 8
  ret void
good:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""


def kernel(name, operation="fadd double %a, 1.0"):
    return jit.compile_module(LOOP.format(name=name, operation=operation)).address(name)


@pytest.fixture(autouse=True)
def threads():
    before = parallel.get_num_threads()
    parallel.set_num_threads(2)
    yield
    parallel.set_num_threads(before)


def add_one(source, target, n, grain=1 << 40):
    return KernelStep("add_one", kernel("add_one"), (source, target), n, grain)


def double(source, target, n, grain=1 << 40):
    address = kernel("double", "fmul double %a, 2.0")
    return KernelStep("double", address, (source, target), n, grain)


def array_ref(slot, shape, offset=0, dtype=np.float64, strides=None):
    return ArrayRef(BufferRef(slot, offset), shape, np.dtype(dtype), strides)


def test_kernels_through_the_arena():
    n = 1000
    steps = [
        add_one(BufferRef(1), BufferRef(ARENA_SLOT), n),
        double(BufferRef(ARENA_SLOT), BufferRef(ARENA_SLOT, 8 * n), n),
        add_one(BufferRef(ARENA_SLOT, 8 * n), BufferRef(2), n),
    ]
    plan = Plan(steps, 16 * n, 3)
    x, out = np.arange(float(n)), np.zeros(n)
    for _ in range(3):
        assert plan.run([x, out]) == 0
        np.testing.assert_array_equal(out, (x + 1) * 2 + 1)
        x = x + 5


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("grain", [0, 1, 100, 10_000])
def test_split_kernels_compute_the_same(number, grain):
    parallel.set_num_threads(number)
    n = 10_001
    plan = Plan([add_one(BufferRef(1), BufferRef(2), n, grain)], 0, 3)
    x, out = np.arange(float(n)), np.zeros(n + 1)
    assert plan.run((x, out)) == 0
    np.testing.assert_array_equal(out, [*(x + 1), 0])


def test_every_kind_of_step_in_one_plan():
    def transpose(x, out):
        np.copyto(out, x.T)

    steps = [
        CopyStep("in", BufferRef(ARENA_SLOT), BufferRef(1), 48),
        PythonStep(
            "transpose", transpose, (array_ref(ARENA_SLOT, (2, 3)),), (array_ref(0, (3, 2), 64),)
        ),
        add_one(BufferRef(ARENA_SLOT, 64), BufferRef(ARENA_SLOT, 128), 6),
        GemmStep(
            "product", "float64", 3, 4, 2,
            BufferRef(ARENA_SLOT, 128), BufferRef(3), BufferRef(2), False, False, 2, 4, 4,
        ),
        PythonStep("negate", np.negative, (array_ref(2, (3, 4)),), (array_ref(2, (3, 4)),)),
    ]  # fmt: skip
    weights = np.random.default_rng(0).standard_normal((2, 4))
    plan = Plan(steps, 256, 4, {3: weights})
    x, out = np.arange(6.0).reshape(2, 3), np.full((3, 4), np.nan)
    for _ in range(3):
        assert plan.run((x, out)) == 0
        np.testing.assert_allclose(out, -((x.T + 1) @ weights))
    assert plan.describe() == (
        "plan: 5 steps, arena 256 bytes, 2 arrays, 1 constants\n"
        "   1  copy in: arena = slot1 48 bytes\n"
        "   2  python transpose: arena+64 = (arena)\n"
        f"   3  kernel add_one(arena+64, arena+128) extent 6 grain {1 << 40}\n"
        "   4  gemm product: slot2 = arena+128 @ slot3 m 3 n 4 k 2 float64\n"
        "   5  python negate: slot2 = (slot2)"
    )


def test_constants_are_kept_alive():
    n = 200_000
    constant = memory.empty(n, np.float64)
    constant[...] = 4
    plan = Plan([add_one(BufferRef(1), BufferRef(2), n)], 0, 3, {1: constant})
    del constant
    others = [memory.empty(n, np.float64) for _ in range(4)]
    for other in others:
        other[...] = -1
    out = np.zeros(n)
    assert plan.run((out,)) == 0
    assert (out == 5).all()


def test_constant_between_call_time_arrays():
    plan = Plan(
        [add_one(BufferRef(1), BufferRef(4), 3), double(BufferRef(2), BufferRef(3), 3)],
        0, 5, {2: np.array([1.0, 2, 3])},
    )  # fmt: skip
    x, doubled, added = np.zeros(3), np.zeros(3), np.zeros(3)
    assert plan.run((x, doubled, added)) == 0
    assert added.tolist() == [1, 1, 1] and doubled.tolist() == [2, 4, 6]


@pytest.mark.parametrize("grain", [1, 1 << 40])
def test_status_stops_the_plan_at_its_step(grain):
    n = 100_000
    check = KernelStep(
        "check", jit.compile_module(CHECK).address("check"),
        (BufferRef(1), BufferRef(STATUS_SLOT)), n, grain,
    )  # fmt: skip
    steps = [add_one(BufferRef(1), BufferRef(2), n), check, add_one(BufferRef(2), BufferRef(2), n)]
    plan = Plan(steps, 0, 3)
    x, out = np.zeros(n), np.zeros(n)
    assert plan.run((x, out)) == 0
    assert (out == 2).all() and (plan.status == 0).all()
    x[77_777] = -1
    assert plan.run((x, out)) == 2
    assert plan.status[:2].tolist() == [7, 77_777]
    assert out[0] == 1, "the step behind the failure must not run"
    x[77_777] = 1
    assert plan.run((x, out)) == 0


def test_python_step_may_set_the_status():
    def refuse(x, status):
        status[:2] = [9, x[0]]

    step = PythonStep("refuse", refuse, (array_ref(1, (1,)),), (array_ref(-1, (8,), 0, np.int64),))
    plan = Plan([step, add_one(BufferRef(1), BufferRef(1), 1)], 0, 2)
    x = np.array([5.0])
    assert plan.run((x,)) == 1
    assert plan.status[:2].tolist() == [9, 5] and x[0] == 5


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_errors_of_python_steps_propagate(error):
    fails = []

    def maybe(x):
        if fails:
            raise error

    steps = [
        PythonStep("maybe", maybe, (array_ref(1, (1,)),), ()),
        add_one(BufferRef(1), BufferRef(1), 1),
    ]
    plan = Plan(steps, 0, 2)
    x = np.zeros(1)
    fails.append(1)
    with pytest.raises(error):
        plan.run((x,))
    assert x[0] == 0
    fails.clear()
    assert plan.run((x,)) == 0 and x[0] == 1
    assert len(plan._frames) == 1


def test_arrays_are_as_the_plan_takes_them_to_be():
    step = CopyStep("x", BufferRef(2), BufferRef(1), 24)
    plan = Plan([step], 0, 3, written=[2], dense=[1, 2])
    source, target = np.arange(3.0), np.zeros(3)
    assert plan.run((source, target)) == 0 and target.tolist() == [0, 1, 2]
    target[...] = 7
    with pytest.raises(NotDenseError, match="slot 1 must be C-contiguous"):
        plan.run((np.arange(6.0)[::2], target))
    with pytest.raises(NotDenseError, match="slot 2"):
        plan.run((source, np.zeros(6)[::2]))
    target.flags.writeable = False
    with pytest.raises(ReadOnlyError, match="slot 2"):
        plan.run((source, target))
    assert target.tolist() == [7, 7, 7]


def test_python_steps_see_strided_read_only_inputs():
    seen = []

    def look(x, out):
        seen.append((x.tolist(), x.flags.writeable, x.strides))
        out[...] = x

    source = array_ref(1, (2, 3), 8 * 5, np.float64, (-24, 16))
    plan = Plan([PythonStep("look", look, (source,), (array_ref(2, (2, 3)),))], 0, 3)
    x, out = np.arange(12.0), np.zeros((2, 3))
    assert plan.run((x, out)) == 0
    assert seen == [([[5, 7, 9], [2, 4, 6]], False, (-24, 16))]
    assert out.tolist() == seen[0][0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex64", "bfloat16"])
def test_python_steps_take_every_dtype(dtype):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    plan = Plan(
        [PythonStep("copy", lambda x, out: np.copyto(out, x),
                    (array_ref(1, (4,), 0, dtype),), (array_ref(2, (4,), 0, dtype),))], 0, 3,
    )  # fmt: skip
    x, out = np.array([0, 1, 2, 3]).astype(dtype), np.zeros(4, dtype)
    assert plan.run((x, out)) == 0
    assert (out == x).all()


@pytest.mark.parametrize("nbytes", [0, 1, 1000, 3_000_001])
def test_copies(nbytes):
    plan = Plan([CopyStep("c", BufferRef(2, 1), BufferRef(1, 2), nbytes)], 0, 3)
    x = np.random.default_rng(0).integers(0, 256, nbytes + 2, np.uint8)
    out = np.zeros(nbytes + 2, np.uint8)
    assert plan.run((x, out)) == 0
    np.testing.assert_array_equal(out[1:-1], x[2:])
    assert out[0] == out[-1] == 0


def test_empty_plans_and_steps():
    assert Plan([], 0, 1).run(()) == 0
    assert Plan([], 0, 3).run([np.zeros(1), np.zeros(0)]) == 0
    plan = Plan([add_one(BufferRef(1), BufferRef(2), 0)], 0, 3)
    out = np.zeros(1)
    assert plan.run((np.zeros(1), out)) == 0 and out[0] == 0


def test_wrong_use_is_refused():
    step = add_one(BufferRef(1), BufferRef(2), 3)
    plan = Plan([step], 0, 3)
    x = np.zeros(3)
    with pytest.raises(ValueError, match="expected 2 arrays, got 1"):
        plan.run((x,))
    with pytest.raises(TypeError, match="expected a NumPy array for slot 2, got list"):
        plan.run((x, [1, 2, 3]))
    with pytest.raises(ValueError, match="add_one uses slot 2, the plan has 2"):
        Plan([step], 0, 2)
    with pytest.raises(ValueError, match="constant in slot 3, expected 1 to 2"):
        Plan([step], 0, 3, {3: x})
    with pytest.raises(TypeError, match="constant in slot 1 is a list"):
        Plan([step], 0, 3, {1: [1.0]})


def test_subclasses_of_ndarray_are_taken(tmp_path):
    x = np.memmap(tmp_path / "x", np.float64, "w+", shape=(3,))
    out = np.zeros((1, 3)).view(np.matrix)
    plan = Plan([add_one(BufferRef(1), BufferRef(2), 3)], 0, 3)
    assert plan.run((x, out)) == 0
    assert out.tolist() == [[1, 1, 1]]


def test_threads_share_a_plan():
    n = 20_000
    steps = [
        add_one(BufferRef(1), BufferRef(0), n, 1000),
        PythonStep("pass", lambda x: None, (array_ref(0, (n,)),), ()),
        double(BufferRef(0), BufferRef(2), n, 1000),
    ]
    plan = Plan(steps, 8 * n, 3)
    failures = []

    def work(seed):
        x, out = np.full(n, float(seed)), np.zeros(n)
        for _ in range(200):
            if plan.run((x, out)) or not (out == 2 * (seed + 1)).all():
                failures.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == [] and len(plan._frames) <= 4


def test_arena_is_aligned_and_kept():
    seen = []
    step = PythonStep("see", lambda a: seen.append(a.ctypes.data), (array_ref(0, (8,)),), ())
    plan = Plan([step], 1000, 1)
    assert plan._frames == [], "no arena before the first call"
    plan.run(())
    plan.run(())
    assert seen[0] == seen[1] and seen[0] % 64 == 0


def test_other_object_layouts_are_refused(monkeypatch):
    monkeypatch.setattr(plan_native.sys, "byteorder", "big")
    with pytest.raises(RuntimeError, match="little-endian CPython"):
        plan_native._check_layouts()


def test_process_with_a_pool_and_plans_ends_well():
    code = """
import numpy as np
from tgraph.runtime import parallel
from tgraph.runtime.plan import *
parallel.set_num_threads(4)
x = np.zeros(4_000_000, np.uint8)
plan = Plan([CopyStep("c", BufferRef(2), BufferRef(1), x.nbytes)], 0, 3)
plan.run((x, x.copy()))
"""
    for _ in range(5):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_runner_lets_other_threads_run():
    address = ctypes.cast(
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(("usleep", ctypes.CDLL(None))),
        ctypes.c_void_p,
    ).value
    jit.add_symbol("tgraph_test_usleep", address)
    text = """
declare i32 @tgraph_test_usleep(i32)
define void @nap(ptr %args, i64 %lo, i64 %hi) {
  %a = call i32 @tgraph_test_usleep(i32 300000)
  ret void
}
"""
    nap = KernelStep("nap", jit.compile_module(text).address("nap"), (), 1, 1)
    worker = threading.Thread(target=Plan([nap], 0, 1).run, args=((),))
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
    worker.join()
    assert turns > 100
