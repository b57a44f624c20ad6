"""What tests of matrix products share: where they are launched, and steps with their operands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided
from tgraph.runtime.cuda import backend, products
from tgraph.runtime.plan_steps import BufferRef, GemmStep

from cuda_tools import fake_cublas_lt
from cuda_tools.fake_cublas_lt import HostMemory

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
        self.cupy.cuda.Device().synchronize()  # for which the stream does not wait
        product.launch(*addresses[:3], self.stream.ptr, *addresses[3:])
        self.stream.synchronize()
        for copied, (memory, _) in zip(copies, given):
            if copied:
                copied.copy_to_host(memory.ptr, len(memory.bytes))


def placed(operand):
    return operand if isinstance(operand, tuple) else (operand, 0)


def view_of(memory, offset, shape, strides, dtype):
    flat = memory.bytes[offset:]
    flat = flat[: len(flat) // dtype.itemsize * dtype.itemsize].view(dtype)
    return as_strided(flat, shape, [each * dtype.itemsize for each in strides])


def wide(array):
    return np.asarray(array).astype(np.float64)


# Results are rounded when they are stored, and so is each step of a sum.
ROUNDING = {"float32": 2**-24, "float64": 2**-53, "float16": 2**-11, "bfloat16": 2**-8}


def assert_close(dtype, got, wanted, terms):
    """As exact as sums of so many terms are in the type that they are computed in."""
    largest = max(np.abs(wanted).max(initial=0), 1)
    sums = (2**-53 if dtype == "float64" else 2**-24) * 4 * np.sqrt(terms)
    error = np.abs(wide(got) - wanted).max(initial=0)
    assert error <= (ROUNDING[dtype] + sums) * largest, f"{error} of {largest}"


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
