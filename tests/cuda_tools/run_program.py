"""Runs a CUDA program without a GPU: kernels on the shim, library calls with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from tgraph.compiler.cuda_program import Program
from tgraph.runtime.dtypes import dtype_named
from tgraph.runtime.plan_steps import (
    STATUS_SLOT,
    ArrayRef,
    BufferRef,
    CopyStep,
    GemmStep,
    LaunchStep,
    PythonStep,
)

from .shim import Library, Order

Array = np.ndarray[Any, Any]
ALIGNMENT = 64


def run_program(
    program: Program, inputs: Sequence[Array], order: Order = "forward", seed: int = 0
) -> list[Array]:
    """The results of `program` for contiguous `inputs`; the error of a failed check.

    Outputs and the arena begin full of ones (NaN as floats), so that what is not written shows.
    """
    return _Run(program, inputs).run(order, seed)


class _Run:
    def __init__(self, program: Program, inputs: Sequence[Array]) -> None:
        self.program = program
        self.memory: dict[int, Array] = {}
        given = iter(inputs)
        for slot, buffer in program.buffers.items():
            memory = _aligned(buffer.nbytes)
            memory[:] = 0 if slot == STATUS_SLOT else 0xFF
            if buffer.kind == "input":
                value = np.ascontiguousarray(next(given))
                assert value.nbytes == buffer.nbytes, f"{buffer}: got {value.shape}"
                memory[:] = value.reshape(-1).view(np.uint8)
            elif buffer.kind == "constant":
                value = np.ascontiguousarray(program.constants[slot])
                memory[:] = value.reshape(-1).view(np.uint8)
            self.memory[slot] = memory

    def run(self, order: Order, seed: int) -> list[Array]:
        library = Library(self.program.source) if self.program.launches else None
        for number, step in enumerate(self.program.steps):
            match step:
                case LaunchStep():
                    assert library is not None
                    info = self.program.kernel_of_step[number]
                    assert info.schedule is not None
                    kernel = info.schedule.kernel
                    args = [
                        self.at(ref)[: param.elements * param.dtype.itemsize].view(_raw(param))
                        for ref, param in zip(step.args, kernel.params, strict=True)
                    ]
                    library.launch(step.name, step.grid, step.block, args, step.shared, order, seed)
                case GemmStep():
                    _multiply(step, *map(self.at, (step.a, step.b, step.c)))
                case CopyStep():
                    self.at(step.dst)[: step.nbytes] = self.at(step.src)[: step.nbytes]
                case PythonStep():
                    step.function(*map(self.array, (*step.inputs, *step.outputs)))
        self.check()
        return self.results()

    def results(self) -> list[Array]:
        found = []
        computed = [slot for slot, each in self.program.buffers.items() if each.kind == "output"]
        for node in self.program.graph.outputs:
            dtype = node.type.dtype.numpy
            if node.type.numel:
                found.append(self.memory[computed.pop(0)].view(dtype).reshape(node.shape))
            else:
                found.append(np.empty(node.shape, dtype))
        return found

    def check(self) -> None:
        code, position, size = (int(word) for word in self.memory[STATUS_SLOT].view(np.int64)[:3])
        if code:
            raise self.program.checks[code - 1].error(position, size)

    def at(self, ref: BufferRef) -> Array:
        return self.memory[ref.slot][ref.offset :]

    def array(self, array: ArrayRef) -> Array:
        flat = self.at(array.ref)
        flat = flat[: len(flat) // array.dtype.itemsize * array.dtype.itemsize].view(array.dtype)
        if array.strides is None:
            return flat[: int(np.prod(array.shape))].reshape(array.shape)
        return as_strided(flat, array.shape, array.strides)


def _aligned(nbytes: int) -> Array:
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes]


def _raw(param: Any) -> Any:
    """The type of a parameter's elements as C has it."""
    if param.dtype.kind == "bool":
        return np.uint8
    return np.uint16 if param.dtype.is_half else param.dtype.numpy


def _multiply(step: GemmStep, a: Array, b: Array, c: Array) -> None:
    """C = alpha * op(A) @ op(B) + beta * C for every item of the batch."""
    dtype = dtype_named(step.dtype).numpy
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    sizes = [size for size, *_ in step.batch]

    def matrices(memory: Array, rows: int, columns: int, leading: int, which: int) -> Array:
        strides = [entry[1 + which] * dtype.itemsize for entry in step.batch]
        flat = memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype)
        steps = (*strides, leading * dtype.itemsize, dtype.itemsize)
        return as_strided(flat, (*sizes, rows, columns), steps)

    def operand(memory: Array, shape: tuple[int, int], turn: bool, leading: int, at: int) -> Array:
        rows, columns = shape[::-1] if turn else shape
        found = matrices(memory, rows, columns, leading, at)
        return np.swapaxes(found, -1, -2) if turn else found

    left = operand(a, (step.m, step.k), step.transpose_a, step.lda, 0)
    right = operand(b, (step.k, step.n), step.transpose_b, step.ldb, 1)
    out = matrices(c, step.m, step.n, step.ldc, 2)
    product = step.alpha * (left.astype(wide) @ right.astype(wide))
    out[...] = product + step.beta * out if step.beta else product
