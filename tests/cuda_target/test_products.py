"""Matrix products through cublasLt: a fake of it computes them, and the real one on a GPU.

What the real one can do without a GPU is asked of both.
"""

import ctypes
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cuda_tools import fake_cublas_lt
from cuda_tools.fake_cublas_lt import HostMemory
from numpy.lib.stride_tricks import as_strided
from tgraph.runtime.cuda import backend, cublas_lt, products
from tgraph.runtime.cuda.cublas_lt import ComputeType, CublasLtError, Epilogue, Status
from tgraph.runtime.plan_steps import BufferRef, GemmStep

DTYPES = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
STREAM = 17


class Host:
    """Where products of the fake are launched."""

    def __init__(self):
        self.workspaces = products.Workspaces(HostMemory, fake_cublas_lt.zero)

    def launch(self, product, *operands):
        """Launch it for a, b, c, bias and aux: each is memory, memory and an offset, or None."""
        addresses = [
            memory.ptr + offset if memory else 0 for memory, offset in map(placed, operands)
        ]
        product.launch(*addresses[:3], STREAM, *addresses[3:])


class Gpu:
    """Where products of the real library are launched: copies of the operands."""

    def __init__(self):
        cupy = backend.cupy()
        runtime = cupy.cuda.runtime
        self.cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.workspaces = products.Workspaces(
            cupy.cuda.alloc,
            lambda address, nbytes, stream: runtime.memsetAsync(address, 0, nbytes, stream),
            products.workspace_limit(int(cupy.cuda.Device().compute_capability[:-1])),
        )

    def copy(self, memory):
        copied = self.cupy.cuda.alloc(len(memory.bytes))
        copied.copy_from_host(memory.ptr, len(memory.bytes))
        return copied

    def launch(self, product, *operands):
        """As the host's; the memory is copied there and back."""
        given = [(memory, offset) for memory, offset in map(placed, operands)]
        copies = [self.copy(memory) if memory else None for memory, _ in given]
        addresses = [copied.ptr + at if copied else 0 for copied, (_, at) in zip(copies, given)]
        product.launch(*addresses[:3], self.stream.ptr, *addresses[3:])
        self.stream.synchronize()
        for copied, (memory, _) in zip(copies, given):
            if copied:
                copied.copy_to_host(memory.ptr, len(memory.bytes))


def placed(operand):
    return operand if isinstance(operand, tuple) else (operand, 0)


@pytest.fixture
def gpu():
    reason = backend.why_unavailable()
    if reason:
        pytest.skip(reason)
    return Gpu()


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def machine(request):
    """Each of them, with what it needs."""
    if request.param == "gpu":
        return request.getfixturevalue("gpu")
    request.getfixturevalue("library")
    return Host()


@pytest.fixture
def library(monkeypatch):
    reason = fake_cublas_lt.available()
    if reason:
        pytest.skip(reason)
    fake = fake_cublas_lt.install(monkeypatch)
    ctypes.memset(ctypes.addressof(fake.log()), 0, ctypes.sizeof(fake_cublas_lt.Log))
    return fake


@pytest.fixture
def workspaces():
    return products.Workspaces(HostMemory, fake_cublas_lt.zero)


@pytest.fixture(autouse=True)
def _precision_afterwards():
    yield
    products.set_precision("highest")


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


def view_of(memory, offset, shape, strides, dtype):
    flat = memory.bytes[offset:]
    flat = flat[: len(flat) // dtype.itemsize * dtype.itemsize].view(dtype)
    return as_strided(flat, shape, [each * dtype.itemsize for each in strides])


def make_operand(rng, dtype, sizes, rows, columns, *, shared=False, turned=False):
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
        if turned and rng.random() < 0.2:
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
    a = make_operand(rng, dtype, sizes, *stored_a, shared=True, turned=True)
    b = make_operand(rng, dtype, sizes, *stored_b, shared=True, turned=True)
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


def wide(array):
    return np.asarray(array).astype(np.float64)


def expected_product(step, a, b, c):
    """C of float64, from the operands as they are."""
    left = wide(a.view).swapaxes(-1, -2) if step.transpose_a else wide(a.view)
    right = wide(b.view).swapaxes(-1, -2) if step.transpose_b else wide(b.view)
    product = step.alpha * (left @ right)
    return product + step.beta * wide(c.view) if step.beta else product


# Results are rounded when they are stored, and so is each step of a sum.
ROUNDING = {"float32": 2**-24, "float64": 2**-53, "float16": 2**-11, "bfloat16": 2**-8}


def assert_close(dtype, got, wanted, terms):
    """As exact as sums of so many terms are in the type that they are computed in."""
    largest = max(np.abs(wanted).max(initial=0), 1)
    sums = (2**-53 if dtype == "float64" else 2**-24) * 4 * np.sqrt(terms)
    error = np.abs(wide(got) - wanted).max(initial=0)
    assert error <= (ROUNDING[dtype] + sums) * largest, f"{error} of {largest}"


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


def plain(m, n, k, dtype="float32", batch=(), **changes):
    """Contiguous matrices, also through a batch whose sizes are given."""
    entries, stride = [], 1
    for size in reversed(batch):
        if isinstance(size, tuple):
            entries.insert(0, size)
            continue
        entries.insert(0, (size, m * k * stride, k * n * stride, m * n * stride))
        stride *= size
    step = GemmStep(
        "matmul", dtype, m, n, k, BufferRef(1), BufferRef(2), BufferRef(3), False, False,
        max(k, 1), max(n, 1), max(n, 1), tuple(entries),
    )  # fmt: skip
    return replace(step, **changes)


def filled(values):
    memory = HostMemory(max(values.nbytes, 256))
    memory.bytes[: values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return memory


def array_in(memory, shape, dtype="float32"):
    return view_of(memory, 0, shape, contiguous_strides(shape), DTYPES[dtype])


def contiguous_strides(shape):
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


@dataclass
class Run:
    """A step with contiguous operands, launched."""

    machine: Host | Gpu
    step: GemmStep
    epilogue: str = ""
    bias: np.ndarray | None = None
    aux: HostMemory | None = None
    seed: int = 0
    before: np.ndarray | None = None
    a: np.ndarray = field(init=False)
    b: np.ndarray = field(init=False)
    c: np.ndarray = field(init=False)

    def __post_init__(self):
        step, rng = self.step, np.random.default_rng(self.seed)
        sizes = [size for size, *_ in step.batch]
        dtype = DTYPES[step.dtype]
        a, b = (step.m, step.k), (step.k, step.n)
        shapes = (a[::-1] if step.transpose_a else a), (b[::-1] if step.transpose_b else b)
        own = [any(entry[1 + which] for entry in step.batch) for which in range(2)]
        self.a, self.b = (
            rng.standard_normal([*(sizes if each else ()), *shape]).astype(dtype)
            for shape, each in zip(shapes, own)
        )
        self.product = products.prepare(step, 0, self.machine.workspaces, self.epilogue)
        out = (*sizes, step.m, step.n)
        memory = HostMemory(max(int(np.prod(out)) * dtype.itemsize, 256))
        self.c = array_in(memory, out, step.dtype)
        if self.before is not None:
            self.c[...] = self.before
        bias = None if self.bias is None else filled(self.bias)
        operands = filled(self.a), filled(self.b), memory, bias, self.aux
        self.machine.launch(self.product, *operands)
        if bias:
            self.bias[...] = array_in(bias, self.bias.shape, step.dtype)

    @property
    def plain(self):
        """alpha * op(A) @ op(B) + beta * C, in float64."""
        a = wide(self.a).swapaxes(-1, -2) if self.step.transpose_a else wide(self.a)
        b = wide(self.b).swapaxes(-1, -2) if self.step.transpose_b else wide(self.b)
        product = self.step.alpha * (a @ b)
        return product + self.step.beta * wide(self.before) if self.step.beta else product

    def check(self, got, wanted):
        assert_close(self.step.dtype, got, wanted, self.step.k + 2)


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
        products.set_precision(precision)
        assert products.get_precision() == precision
        rough = Run(machine, plain(64, 64, 64))
        assert 1e-4 < np.abs(rough.c - rough.plain).max() < 5e-2
    memory = HostMemory(4 * 64 * 64)
    machine.launch(exact.product, filled(exact.a), filled(exact.b), memory)
    assert np.array_equal(array_in(memory, (64, 64)), exact.c)
    assert exact.product.precision == "highest"


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_precision_is_of_float32_only(machine, dtype):
    before = Run(machine, plain(5, 6, 7, dtype))
    products.set_precision("medium")
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
    products.set_precision(precision)
    Run(Host(), plain(5, 6, 7, dtype))
    scale = cublas_lt.DataType.R_64F if dtype == "float64" else cublas_lt.DataType.R_32F
    assert (library.log().compute, library.log().scale) == (compute, scale)


def test_a_precision_that_is_none():
    with pytest.raises(ValueError, match="one of 'highest', 'high', 'medium', got 'low'"):
        products.set_precision("low")


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


# -- epilogues -----------------------------------------------------------------------------------


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x):
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5


FLOATS = ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ["", "relu", "gelu"])
def test_bias_and_activation(machine, dtype, bias, activation):
    m, n, k = 16, 32, 24
    name = "_".join(filter(None, ("bias" * bias, activation)))
    added = np.linspace(-1, 1, n).astype(DTYPES[dtype]) if bias else None
    before = (np.arange(m * n).reshape(m, n) % 16 / 16).astype(DTYPES[dtype])
    run = Run(machine, plain(m, n, k, dtype, beta=0.5, alpha=0.5), name, added, before=before)
    value = run.plain + (wide(added) if bias else 0)
    wanted = {"": value, "relu": np.maximum(value, 0), "gelu": gelu(value)}[activation]
    run.check(run.c, wanted)
    assert run.product.bias_length == n * bias


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_of_activations(machine, dtype, activation, bias):
    """y = activation(x @ w + b), then (dy @ v.T) * activation'(x @ w + b) and the sums of that."""
    m, n, k, other = 16, 40, 24, 8
    added = np.linspace(-1, 1, n).astype(DTYPES[dtype]) if bias else None
    name = "bias_" * bias + activation + "_saved"
    forward = plain(m, n, k, dtype)
    aux = HostMemory(products.prepare(forward, 0, machine.workspaces, name).aux_bytes)
    first = Run(machine, forward, name, added, aux)
    value = first.plain + (wide(added) if bias else 0)
    function = {"relu": lambda x: np.maximum(x, 0), "gelu": gelu}[activation]
    first.check(first.c, function(value))
    if activation == "gelu":
        value = wide(array_in(aux, (m, n), dtype))  # as it was saved
    slope = wide(value > 0) if activation == "relu" else gelu_slope(value)

    backward = plain(m, n, other, dtype, transpose_b=True, ldb=other)
    second = Run(machine, backward, f"{activation}_gradient", aux=aux, seed=1)
    assert second.product.aux_bytes == len(aux.bytes)
    wanted = second.plain * slope
    second.check(second.c, wanted)
    sums = np.zeros(n, DTYPES[dtype])
    third = Run(machine, backward, f"{activation}_gradient_sum", sums, aux, seed=1)
    third.check(third.c, wanted)
    # They may be summed before or after the elements are rounded.
    rounded = ROUNDING[dtype] * np.abs(wanted).sum(0)
    assert (np.abs(wide(sums) - wanted.sum(0)) <= 2 * rounded + 1e-5).all()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("which", ["a", "b"])
def test_sums_of_operands(machine, which, transposed):
    m, n, k = 16, 24, 40
    step = plain(m, n, k)
    if transposed:
        step = replace(step, transpose_a=True, lda=m, transpose_b=True, ldb=k)
    sums = np.zeros(m if which == "a" else n, np.float32)
    run = Run(machine, step, f"sum_{which}", sums)
    run.check(run.c, run.plain)
    a, b = (run.a.T, run.b.T) if transposed else (run.a, run.b)
    run.check(sums, wide(a).sum(1) if which == "a" else wide(b).sum(0))
    assert run.product.bias_length == sums.size


def test_epilogues_of_a_batch(machine):
    bias = np.arange(8, dtype=np.float32)
    run = Run(machine, plain(4, 8, 16, batch=(2, 3)), "bias_relu", bias)
    run.check(run.c, np.maximum(run.plain + bias, 0))
    # With one B the batch is a taller matrix, whose rows have sums of their own.
    sums = np.zeros(8, np.float32)
    run = Run(machine, plain(4, 8, 16, batch=((2, 64, 0, 32),)), "sum_a", sums)
    run.check(sums, wide(run.a).sum(-1).reshape(-1))


@pytest.mark.parametrize("m, n", [(16, 1), (1, 16), (1, 1)])
def test_epilogues_of_vectors(machine, m, n):
    bias = np.linspace(1, 2, n, dtype=np.float32)
    run = Run(machine, plain(m, n, 24), "bias", bias)
    run.check(run.c, run.plain + bias)
    sums = np.zeros(m, np.float32)
    run = Run(machine, plain(m, n, 24), "sum_a", sums)
    run.check(sums, wide(run.a).sum(1))


def test_room_for_what_epilogues_save(library, workspaces):
    step = plain(3, 4, 5, batch=((2, 15, 0, 12),))
    saved = products.prepare(step, 0, workspaces, "gelu_saved")
    assert (saved.aux_leading, saved.aux_bytes, saved.bias_length) == (8, 6 * 8 * 4, 0)
    saved = products.prepare(step, 0, workspaces, "relu_saved")
    assert (saved.aux_leading, saved.aux_bytes, saved.bias_length) == (128, 6 * 16, 0)
    for name in ("relu_saved", "gelu_gradient", "sum_b"):
        with pytest.raises(ValueError, match=rf"{name}.*got a batch of \[6\] products"):
            products.prepare(plain(3, 4, 5, batch=(2, 3)), 0, workspaces, name)


def test_the_step_may_say_its_epilogue(library, workspaces):
    step = plain(3, 4, 5, epilogue="bias", bias=BufferRef(4, 16))
    product = products.prepare(step, 0, workspaces)
    assert (product.bias_length, product.operands) == (4, 4)
    memory = HostMemory(4096)
    product.launch(memory.ptr, memory.ptr, memory.ptr + 1024, STREAM, memory.ptr + 2048 + 16)
    assert (library.log().heuristics, library.log().epilogue) == (1, Epilogue.BIAS)
    products.prepare(step, 0, workspaces, "").launch(memory.ptr, memory.ptr, memory.ptr, STREAM)
    assert library.log().epilogue == Epilogue.DEFAULT


def test_threads_share_a_product(library, workspaces):
    """Where they point its bias to is theirs until the launch is done."""
    product = products.prepare(plain(2, 4, 3), 0, workspaces, "bias")
    zeros = filled(np.zeros((3, 4), np.float32))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(number):
        bias, out = filled(np.full(4, number, np.float32)), HostMemory(256)
        seen = set()
        for _ in range(100):
            product.launch(zeros.ptr, zeros.ptr, out.ptr, number, bias.ptr)
            seen.update(array_in(out, (2, 4)).ravel().tolist())
        return seen

    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(8))) == [{float(number)} for number in range(8)]
    finally:
        sys.setswitchinterval(before)


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


# -- finding the library -------------------------------------------------------------------------


def test_it_is_found_in_the_wheels(library, monkeypatch, tmp_path):
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    path = shutil.copy(library.name, folder / "libcublasLt.so.99")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cublas_lt, "NAMES", ("libcublasLt.so.98", "libcublasLt.so.99"))
    monkeypatch.setattr(cublas_lt, "_by_pathfinder", lambda: None)
    assert cublas_lt._find().name == str(path)


def test_it_is_found_by_the_loader(library, monkeypatch):
    monkeypatch.setattr(cublas_lt, "NAMES", ("libcublasLt.so.98", library.name))
    monkeypatch.setattr(cublas_lt, "_by_pathfinder", lambda: None)
    monkeypatch.setattr(cublas_lt, "_in_wheels", lambda: None)
    monkeypatch.setattr(cublas_lt, "_loaded", None)
    assert cublas_lt.load().name == library.name
    assert cublas_lt.load() is cublas_lt.load()


def test_pathfinder_comes_first(library, monkeypatch):
    class Pathfinder:
        class DynamicLibNotFoundError(RuntimeError):
            pass

        @staticmethod
        def load_nvidia_dynamic_lib(name):
            assert name == "cublasLt"
            if missing:
                raise Pathfinder.DynamicLibNotFoundError(name)
            return ctypes_library

    class ctypes_library:
        abs_path = library.name

    missing = False
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(cublas_lt.importlib, "import_module", lambda name: Pathfinder)
    monkeypatch.setattr(cublas_lt, "_in_wheels", lambda: pytest.fail("looked further"))
    assert cublas_lt._find().name == library.name
    missing = True
    assert cublas_lt._by_pathfinder() is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cublas_lt._by_pathfinder() is None


def test_it_is_not_found(monkeypatch):
    monkeypatch.setattr(cublas_lt, "NAMES", ("libcublasLt.so.98",))
    monkeypatch.setattr(cublas_lt, "_by_pathfinder", lambda: None)
    with pytest.raises(
        RuntimeError, match=r"cublasLt, .*\.98; pip install nvidia-cublas .* brings"
    ):
        cublas_lt._find()


def test_another_library_is_none():
    with pytest.raises(RuntimeError, match=r"is no cublasLt of CUDA 12 or newer: .*cublasLtCreate"):
        cublas_lt.Library("libc.so.6")


# -- the real library, and its headers -----------------------------------------------------------


def _homes():
    """Where CUDA's wheels or a toolkit keep `include`."""
    spec = importlib.util.find_spec("nvidia")
    for home in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(home).glob("*/include"))
    for toolkit in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if toolkit:
            yield Path(toolkit, "include")


def test_the_numbers_are_those_of_the_headers(tmp_path):
    folders = [folder for folder in _homes() if folder.is_dir()]
    for header in ("cublasLt.h", "cuda_runtime_api.h"):
        if not any((folder / header).exists() for folder in folders):
            pytest.skip(f"{header} is in no CUDA wheel or toolkit that is installed")
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    sizes = {
        "cublasLtMatmulAlgo_t": ctypes.sizeof(cublas_lt.Algorithm),
        "cublasLtMatmulHeuristicResult_t": ctypes.sizeof(cublas_lt.HeuristicResult),
    }
    offsets = {
        "algo": cublas_lt.HeuristicResult.algo.offset,
        "workspaceSize": cublas_lt.HeuristicResult.workspace_bytes.offset,
        "state": cublas_lt.HeuristicResult.state.offset,
    }
    checks = [
        *(f"{name} == {value}" for name, value in fake_cublas_lt.constants()),
        *(f"sizeof({name}) == {value}" for name, value in sizes.items()),
        *(
            f"offsetof(cublasLtMatmulHeuristicResult_t, {name}) == {value}"
            for name, value in offsets.items()
        ),
    ]
    source = tmp_path / "check.cpp"
    lines = "\n".join(f'static_assert({check}, "{check}");' for check in checks)
    source.write_text(f"#include <cublasLt.h>\n#include <cstddef>\n{lines}\n")
    command = [compiler, "-fsyntax-only", *(f"-I{folder}" for folder in folders), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=["fake", "real"])
def either(request, monkeypatch):
    if request.param == "fake":
        return request.getfixturevalue("library")
    monkeypatch.setattr(cublas_lt, "_loaded", None)
    try:
        return cublas_lt.load()
    except RuntimeError as error:
        pytest.skip(str(error))


VALUES = {
    "Layout": (("MatrixLayout", (cublas_lt.DataType.R_32F, 5, 6, 7)), [3, 40]),
    "Matmul": (
        ("MatmulDesc", (ComputeType.COMPUTE_32F, cublas_lt.DataType.R_32F)),
        [1, 1, Epilogue.BGRADB, 2**40, 2**41, 256],
    ),
    "Preference": (("MatmulPreference", ()), [2**25, 2, 4, 8, 16, 32]),
}


@pytest.mark.parametrize("name", VALUES)
def test_attributes_are_what_they_were_set_to(either, name):
    (kind, arguments), values = VALUES[name]
    descriptor = getattr(cublas_lt, name)(either, *arguments)
    read = getattr(either.cdll, f"cublasLt{kind}GetAttribute")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    read.argtypes = (pointer, ctypes.c_int, pointer, size, pointer)
    assert len(values) == len(descriptor.types)
    for attribute, value in zip(descriptor.types, values):
        descriptor.set(attribute, value)
    for (attribute, type_), value in zip(descriptor.types.items(), values):
        word, written = type_(), size()
        status = read(
            *(descriptor.pointer, attribute, ctypes.byref(word), ctypes.sizeof(word)),
            ctypes.byref(written),
        )
        assert (status, word.value, written.value) == (0, value, ctypes.sizeof(type_))


def test_attributes_that_do_not_fit_are_refused(either):
    descriptor = cublas_lt.Preference(either)
    attribute = cublas_lt.PreferenceAttribute.MAX_WORKSPACE_BYTES
    descriptor.types = {attribute: ctypes.c_uint16}
    with pytest.raises(CublasLtError, match=r"MAX_WORKSPACE_BYTES 7: .*INVALID_VALUE \(7\)"):
        descriptor.set(attribute, 7)


def test_every_status_has_its_name(either):
    for status in Status:
        name = either.cdll.cublasLtGetStatusName(int(status)).decode()
        assert name == f"CUBLAS_STATUS_{status.name}"
    assert either.version() >= 120000
