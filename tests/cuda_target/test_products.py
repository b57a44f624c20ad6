"""Matrix products through cublasLt: a fake of it computes them, and the real one on a GPU.

What the real one can do without a GPU is asked of both.
"""

import gc
from dataclasses import dataclass

import numpy as np
import pytest
from cuda_tools import fake_cublas_lt
from cuda_tools.fake_cublas_lt import HostMemory
from cuda_tools.products import (
    DTYPES,
    STREAM,
    Host,
    Run,
    array_in,
    assert_close,
    filled,
    plain,
    view_of,
    wide,
)
from tgraph.runtime.cuda import cublas_lt, products
from tgraph.runtime.cuda.cublas_lt import ComputeType, CublasLtError, Status
from tgraph.runtime.cuda.precision import get_precision, set_precision
from tgraph.runtime.plan_steps import BufferRef, GemmStep

pytest_plugins = ["cuda_tools.product_fixtures"]


@pytest.fixture(autouse=True)
def _precision_afterwards():
    yield
    set_precision("highest")


# -- products of a random kind -------------------------------------------------------------------


@dataclass
class Operand:
    """Batches of matrices in memory: `view` has the batch's axes, rows and columns."""

    memory: HostMemory
    offset: int  # bytes to the first element
    strides: tuple[int, ...]  # in elements, columns apart
    view: np.ndarray

    @property
    def place(self):
        return self.memory, self.offset


def make_operand(rng, dtype, sizes, rows, columns, *, shared=False, transposed=False):
    """Axes in random order with gaps between them, some shared by the batch or walked backwards."""
    extents = [*sizes, rows]
    strides = [0] * len(extents)
    step = max(columns, 1) + int(rng.integers(0, 3))
    order = rng.permutation(len(extents)) if rng.random() < 0.5 else range(len(extents))[::-1]
    for axis in order:
        if shared and axis < len(sizes) and rng.random() < 0.3:
            continue
        strides[axis] = step
        step *= max(extents[axis], 1)
        step += int(rng.integers(0, 2)) * int(rng.integers(0, 4))
    start = 0
    for axis in range(len(sizes)):
        if transposed and rng.random() < 0.2:
            start += strides[axis] * max(extents[axis] - 1, 0)
            strides[axis] = -strides[axis]
    offset = int(rng.choice([0, 256, dtype.itemsize, 3 * dtype.itemsize, 16]))
    memory = HostMemory(offset + (step + 1) * dtype.itemsize)
    values = rng.standard_normal(len(memory.bytes) // dtype.itemsize - offset // dtype.itemsize)
    filled = memory.bytes[offset : offset + values.size * dtype.itemsize]
    filled.view(dtype)[:] = values.astype(dtype)
    offset += start * dtype.itemsize
    shape = (*extents, columns)
    view = view_of(memory, offset, shape, (*strides, 1), dtype)
    return Operand(memory, offset, tuple(strides), view)


SIZES = (1, 1, 2, 3, 5, 8, 16, 33)


def random_product(rng):
    """A step and its operands."""
    name = str(rng.choice(list(DTYPES)))
    m, n, k = (int(rng.choice(SIZES)) for _ in range(3))
    if rng.random() < 0.3:
        k = int(rng.choice([0, 64, 100]))
    sizes = [int(rng.integers(1, 4)) for _ in range(rng.integers(0, 5))]
    if sizes and rng.random() < 0.05:
        sizes[0] = 0
    dtype = DTYPES[name]
    transpose_a, transpose_b = (bool(rng.integers(0, 2)) for _ in range(2))
    stored_a, stored_b = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)
    a = make_operand(rng, dtype, sizes, *stored_a, shared=True, transposed=True)
    b = make_operand(rng, dtype, sizes, *stored_b, shared=True, transposed=True)
    c = make_operand(rng, dtype, sizes, m, n)
    # Where there is one row, nobody need know where the next would be.
    leading = [
        each.strides[-1] * (each.view.shape[-2] > 1 or rng.random() < 0.5) for each in (a, b, c)
    ]
    step = GemmStep(
        "matmul", name, m, n, k,
        # What is expected of addresses is sometimes wrong.
        BufferRef(1, a.offset), BufferRef(2, b.offset if rng.random() < 0.8 else 0), BufferRef(3),
        transpose_a, transpose_b, *leading,
        tuple(zip(sizes, a.strides, b.strides, c.strides)),
        float(rng.choice([1, 1, 0.5, -2])), float(rng.choice([0, 0, 1, -0.5])),
    )  # fmt: skip
    return step, a, b, c


def expected_product(step, a, b, c):
    """C of float64, from the operands as they are."""
    left = wide(a.view).swapaxes(-1, -2) if step.transpose_a else wide(a.view)
    right = wide(b.view).swapaxes(-1, -2) if step.transpose_b else wide(b.view)
    product = step.alpha * (left @ right)
    return product + step.beta * wide(c.view) if step.beta else product


@pytest.mark.parametrize("seed", range(6))
def test_products_are_those_of_numpy(machine, seed):
    rng = np.random.default_rng(seed)
    for number in range(60):
        step, a, b, c = random_product(rng)
        wanted = expected_product(step, a, b, c)
        beside = without_view(c)
        product = products.prepare(step, 0, machine.workspaces)
        machine.launch(product, a.place, b.place, c.place)
        assert_close(step.dtype, c.view, wanted, step.k + 2)
        assert np.array_equal(without_view(c), beside), f"{number}: {step} has written beside C"


def without_view(operand):
    """All bytes of the operand's memory, zeros for those of its elements."""
    inside = np.zeros_like(operand.memory.bytes)
    copy = HostMemory(len(inside))
    copy.bytes[:] = operand.memory.bytes
    view = operand.view
    strides = [each // view.itemsize for each in view.strides]
    view_of(copy, operand.offset, view.shape, strides, view.dtype)[...] = 0
    return copy.bytes


# -- small steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5])
def test_a_sum_of_nothing(machine, dtype, beta):
    before = np.arange(24).reshape(2, 3, 4).astype(DTYPES[dtype])
    step = plain(3, 4, 0, dtype, batch=(2,), beta=beta, alpha=np.inf)
    run = Run(machine, step, before=before)
    assert np.array_equal(wide(run.c), beta * wide(before))


def test_zeros_lie_where_the_workspace_would(library, workspaces):
    products.prepare(plain(3, 4, 0), 0, workspaces)
    assert library.log().workspace_limit == 0


@pytest.mark.parametrize("sizes", [(0, 4, 5), (3, 0, 5), (0, 0, 0)])
def test_nothing_is_called_for_no_elements(monkeypatch, workspaces, sizes):
    monkeypatch.setattr(cublas_lt, "_loaded", None)
    monkeypatch.setattr(cublas_lt, "_find", lambda: pytest.fail("the library was looked for"))
    product = products.prepare(plain(*sizes), 0, workspaces)
    product.launch(0, 0, 0, STREAM)
    product.ready(0, 0, 0, STREAM)
    products.prepare(plain(2, 2, 2, batch=(3, 0)), 0, workspaces).launch(0, 0, 0, STREAM)


def test_what_c_held_is_not_read_where_beta_is_zero(machine):
    run = Run(machine, plain(3, 4, 5), before=np.full((3, 4), np.nan, np.float32))
    run.check(run.c, run.plain)


BATCHES = {
    "contiguous": (plain(3, 4, 5, batch=(2, 3, 4, 5)), 1, 120),
    "of one": (plain(3, 4, 5, batch=(1, 1)), 1, 1),
    "one A": (plain(3, 4, 5, batch=((7, 0, 20, 12),)), 1, 7),
    "one B": (plain(3, 4, 5, batch=((7, 15, 0, 12),)), 1, 1),
    "one B, A transposed": (
        plain(3, 4, 5, batch=((7, 15, 0, 12),), transpose_a=True, lda=3),
        *(1, 7),
    ),
    "the longest is walked inside": (
        plain(3, 4, 5, batch=((2, 15, 20, 6 * 12), (6, 0, 40, 12))),
        *(2, 6),
    ),
    "what runs backwards is walked outside": (
        plain(3, 4, 5, batch=((2, 15, 20, 6 * 12), (6, -30, 40, 12)), a=BufferRef(1, 600)),
        *(6, 2),
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_takes_few_calls(library, workspaces, name):
    step, calls, batch = BATCHES[name]
    product = products.prepare(step, 0, workspaces)
    memory = [HostMemory(4 * 4000) for _ in range(3)]
    before = library.log().matmuls
    product.launch(*(each.ptr + 600 for each in memory), STREAM)
    assert (library.log().matmuls - before, library.log().batch) == (calls, batch)


# -- precision -----------------------------------------------------------------------------------


def test_precision_is_that_of_when_it_was_prepared(machine):
    exact = Run(machine, plain(64, 64, 64))
    exact.check(exact.c, exact.plain)
    for precision in ("high", "medium"):
        set_precision(precision)
        assert get_precision() == precision
        rough = Run(machine, plain(64, 64, 64))
        assert 1e-4 < np.abs(rough.c - rough.plain).max() < 5e-2
    memory = HostMemory(4 * 64 * 64)
    machine.launch(exact.product, filled(exact.a), filled(exact.b), memory)
    assert np.array_equal(array_in(memory, (64, 64)), exact.c)
    assert exact.product.precision == "highest"


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_precision_is_of_float32_only(machine, dtype):
    before = Run(machine, plain(5, 6, 7, dtype))
    set_precision("medium")
    after = Run(machine, plain(5, 6, 7, dtype))
    assert np.array_equal(before.c, after.c)


@pytest.mark.parametrize(
    "dtype, precision, compute",
    [
        ("float32", "highest", ComputeType.COMPUTE_32F),
        ("float32", "high", ComputeType.COMPUTE_32F_FAST_TF32),
        ("float64", "high", ComputeType.COMPUTE_64F),
        ("float16", "high", ComputeType.COMPUTE_32F),
        ("bfloat16", "high", ComputeType.COMPUTE_32F),
    ],
)
def test_what_it_is_computed_in(library, dtype, precision, compute):
    set_precision(precision)
    Run(Host(), plain(5, 6, 7, dtype))
    scale = cublas_lt.DataType.R_64F if dtype == "float64" else cublas_lt.DataType.R_32F
    assert (library.log().compute, library.log().scale) == (compute, scale)


def test_a_precision_that_is_none():
    with pytest.raises(ValueError, match="one of 'highest', 'high', 'medium', got 'low'"):
        set_precision("low")


# -- choosing an algorithm -----------------------------------------------------------------------


def test_an_algorithm_is_chosen_once_for_an_alignment(library, workspaces):
    step = plain(4, 4, 4, a=BufferRef(1, 16), b=BufferRef(2, 512))
    product = products.prepare(step, 0, workspaces)
    log = library.log()
    assert log.heuristics == 1
    # cublasLt's A is our B.
    assert list(log.alignment) == [256, 16, 256, 256]
    memory = HostMemory(4096)
    for _ in range(3):
        product.launch(memory.ptr + 16, memory.ptr + 512, memory.ptr + 1024, STREAM)
        product.launch(memory.ptr + 16, memory.ptr + 768, memory.ptr + 1024, STREAM)
    assert log.heuristics == 1
    product.ready(memory.ptr + 4, memory.ptr + 512, memory.ptr + 1024 + 8, STREAM)
    assert log.heuristics == 2
    assert list(log.alignment) == [256, 4, 8, 8]
    product.launch(memory.ptr + 4, memory.ptr + 512, memory.ptr + 1024 + 8, STREAM)
    assert (log.heuristics, log.matmuls) == (2, 7)


def test_the_alignment_holds_for_every_call_of_a_batch(library, workspaces):
    # From one product of the batch to the next are 12 and 20 bytes.
    step = plain(1, 3, 1, batch=((2, 3, 0, 12), (3, 0, 5, 3)), ldb=3)
    products.prepare(step, 0, workspaces)
    assert list(library.log().alignment) == [256, 4, 16, 16]


def test_only_sums_in_order_are_allowed(library, workspaces):
    products.prepare(plain(4, 4, 4), 0, workspaces)
    scheme = cublas_lt.ReductionScheme
    assert library.log().reductions == scheme.NONE | scheme.COMPUTE_TYPE
    assert library.log().workspace_limit == 32 * 2**20


# -- the workspace -------------------------------------------------------------------------------


class Allocations(list):
    """Gives memory and remembers how much of it."""

    def __call__(self, nbytes):
        self.append(nbytes)
        return HostMemory(nbytes)


def test_each_device_and_stream_has_a_workspace(library):
    allocations = Allocations()
    workspaces = products.Workspaces(allocations, fake_cublas_lt.zero)
    first = workspaces.at_least(1000, 0, 1)
    assert workspaces.at_least(64 * 1024, 0, 1) == first
    others = [workspaces.at_least(1000, *place) for place in ((0, 2), (1, 1))]
    assert len({first, *others}) == 3
    larger = workspaces.at_least(64 * 1024 + 1, 0, 1)
    assert larger != first
    assert workspaces.at_least(1000, 0, 1) == larger
    assert allocations == [65536, 65536, 65536, 131072]


def test_a_workspace_is_taken_where_an_algorithm_needs_one(library):
    allocations = Allocations()
    workspaces = products.Workspaces(allocations, fake_cublas_lt.zero)
    memory = [HostMemory(4 * 128 * 128) for _ in range(3)]
    addresses = [each.ptr for each in memory]
    products.prepare(plain(8, 8, 8), 0, workspaces).launch(*addresses, STREAM)
    assert not allocations
    product = products.prepare(plain(128, 64, 128), 0, workspaces)
    assert not allocations
    product.ready(*addresses, STREAM)
    assert allocations == [2 * 8 * 128 * 64]
    product.launch(*addresses, STREAM)
    assert len(allocations) == 1
    small = products.Workspaces(allocations, fake_cublas_lt.zero, limit=1000)
    products.prepare(plain(128, 64, 128), 0, small).launch(*addresses, STREAM)
    assert len(allocations) == 1


def test_workspace_limits():
    assert [products.workspace_limit(major) for major in (7, 8, 9, 10)] == [
        4 << 20, 4 << 20, 32 << 20, 32 << 20,
    ]  # fmt: skip


def test_a_workspace_is_aligned():
    class Odd:
        ptr = 264

    workspaces = products.Workspaces(lambda nbytes: Odd(), fake_cublas_lt.zero)
    with pytest.raises(RuntimeError, match="aligned to 256 bytes, got 0x108"):
        workspaces.at_least(1, 0, 0)


# -- on a GPU only -------------------------------------------------------------------------------


def on_device(gpu, *arrays):
    return [gpu.copy(filled(array)) for array in arrays]


def read(copied, shape):
    memory = HostMemory(int(np.prod(shape)) * 4)
    copied.copy_to_host(memory.ptr, len(memory.bytes))
    return array_in(memory, shape)


@pytest.mark.gpu
@pytest.mark.parametrize("k", [64, 0, 2**15])
def test_a_captured_product_is_computed_anew(gpu, k):
    rng = np.random.default_rng(0)
    m, n = 96, 80
    first, second = (rng.standard_normal((m, k), np.float32) for _ in range(2))
    right = rng.standard_normal((k, n), np.float32)
    a, b, c = on_device(gpu, first, right, np.ones((m, n), np.float32))
    product = products.prepare(plain(m, n, k), 0, gpu.workspaces)
    # No launch went before, which is the hardest case.
    product.ready(a.ptr, b.ptr, c.ptr, gpu.stream.ptr)
    with gpu.stream:
        gpu.stream.begin_capture()
        product.launch(a.ptr, b.ptr, c.ptr, gpu.stream.ptr)
        graph = gpu.stream.end_capture()
    for left in (first, second):
        changed = filled(left)
        a.copy_from_host(changed.ptr, left.nbytes)
        graph.launch(gpu.stream)
        gpu.stream.synchronize()
        assert_close("float32", read(c, (m, n)), wide(left) @ wide(right), k + 1)


@pytest.mark.gpu
def test_results_do_not_change_while_other_streams_work(gpu):
    """Few results and a long k, where the sums are cut."""
    rng = np.random.default_rng(0)
    m, n, k = 64, 64, 2**17
    left, right = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    a, b = on_device(gpu, left, right)
    product = products.prepare(plain(m, n, k), 0, gpu.workspaces)
    streams = [gpu.stream, *(gpu.cupy.cuda.Stream(non_blocking=True) for _ in range(3))]
    outs = [gpu.cupy.cuda.alloc(4 * m * n) for _ in streams]
    seen = set()
    for _ in range(25):
        for stream, out in zip(streams, outs):
            product.launch(a.ptr, b.ptr, out.ptr, stream.ptr)
        for stream, out in zip(streams, outs):
            stream.synchronize()
            seen.add(read(out, (m, n)).tobytes())
    assert len(seen) == 1


# -- errors --------------------------------------------------------------------------------------

STEP_ERRORS = {
    "dtype": (plain(3, 4, 5, "int32"), "", "expected one of float32, .*, got int32"),
    "lda": (plain(3, 4, 5, lda=4), "", "expected lda of at least 5, .*, got 4"),
    "ldb": (plain(3, 4, 5, transpose_b=True, ldb=4), "", "expected ldb of at least 5"),
    "ldc": (plain(3, 4, 5, ldc=3), "", "expected ldc of at least 4"),
    "epilogue": (plain(3, 4, 5), "tanh", "expected an epilogue of bias, relu, .*, got tanh"),
    "no sum": (plain(0, 4, 5), "sum_b", "expected a product with elements"),
}


@pytest.mark.parametrize("name", STEP_ERRORS)
def test_steps_that_are_no_products(library, workspaces, name):
    step, epilogue, message = STEP_ERRORS[name]
    with pytest.raises(ValueError, match=rf"gemm matmul \(m \d, n 4, k 5, .*\): {message}"):
        products.prepare(step, 0, workspaces, epilogue)


def test_pointers_that_an_epilogue_needs(library, workspaces):
    memory = HostMemory(256)
    with pytest.raises(ValueError, match=r"expected no bias, got 0x10"):
        products.prepare(plain(1, 1, 1), 0, workspaces).launch(*[memory.ptr] * 3, STREAM, 16)
    product = products.prepare(plain(1, 1, 1), 0, workspaces, "bias_relu_saved")
    with pytest.raises(ValueError, match=r"expected the address of bias, got 0x0"):
        product.launch(*[memory.ptr] * 3, STREAM)
    with pytest.raises(ValueError, match=r"expected the address of aux, got 0x0"):
        product.ready(*[memory.ptr] * 3, STREAM, memory.ptr)
    with pytest.raises(ValueError, match=r"expected bias at a multiple of 16 bytes, got 0x\w+8"):
        product.launch(*[memory.ptr] * 3, STREAM, memory.ptr + 8, memory.ptr)
    with pytest.raises(ValueError, match=r"expected aux at a multiple of 16 bytes, got 0x\w+4"):
        product.ready(*[memory.ptr] * 3, STREAM, memory.ptr, memory.ptr + 4)


def test_what_the_library_does_not_support(library, workspaces):
    with pytest.raises(
        CublasLtError,
        match=r"gemm matmul \(batch 2, m 3, n 4, k 5, float64, bias\): "
        r"cublasLtMatmulAlgoGetHeuristic failed with CUBLAS_STATUS_NOT_SUPPORTED \(15\)",
    ) as caught:
        products.prepare(plain(3, 4, 5, "float64", batch=(2,)), 0, workspaces, "bias")
    assert caught.value.status == Status.NOT_SUPPORTED


PREPARING = (
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
)


@pytest.mark.parametrize("function", PREPARING)
def test_a_failure_while_preparing(library, workspaces, function):
    gc.collect()
    before = library.log().live
    library.fail_next(function, Status.ALLOC_FAILED)
    message = rf"gemm matmul \(batch 2, m 3, n 4, k 5, float32\).*: {function} failed with "
    with pytest.raises(
        CublasLtError, match=message + r"CUBLAS_STATUS_ALLOC_FAILED \(3\)"
    ) as caught:
        products.prepare(plain(3, 4, 5, batch=(2,)), 0, workspaces)
    del caught
    gc.collect()
    assert library.log().live == before
    products.prepare(plain(3, 4, 5, batch=(2,)), 0, workspaces)


def test_a_failure_of_the_device(library, workspaces):
    library._handles.clear()
    library.fail_next("cublasLtCreate", Status.NOT_INITIALIZED)
    with pytest.raises(CublasLtError, match=r"cuda device 3: .*NOT_INITIALIZED"):
        products.prepare(plain(3, 4, 5), 3, workspaces)
    assert products.prepare(plain(3, 4, 5), 3, workspaces) is not None


def test_a_failure_of_a_launch(library, workspaces):
    product = products.prepare(plain(3, 4, 5), 0, workspaces)
    memory = HostMemory(4096)
    for status, name in ((13, "CUBLAS_STATUS_EXECUTION_FAILED"), (99, "CUBLAS_STATUS_UNKNOWN")):
        library.fail_next("cublasLtMatmul", status)
        message = rf"n 4, k 5, float32\): cublasLtMatmul failed with {name} \({status}\)"
        with pytest.raises(CublasLtError, match=message) as caught:
            product.launch(memory.ptr, memory.ptr, memory.ptr + 1024, STREAM)
        assert caught.value.status == status
    product.launch(memory.ptr, memory.ptr, memory.ptr + 1024, STREAM)


def test_descriptors_are_given_back(library, workspaces):
    gc.collect()
    before = library.log().live
    kept = [products.prepare(plain(3, 4, size, batch=(2,)), 0, workspaces) for size in range(4)]
    # A description and three layouts; the preference is needed while the algorithm is chosen.
    assert library.log().live - before == 4 * len(kept)
    kept.clear()
    gc.collect()
    assert library.log().live == before
