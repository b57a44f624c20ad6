"""Runs a CUDA program without a GPU: kernels on the shim, library calls with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from tgraph.compiler.kernel.kernel import Param
from tgraph.compiler.kernel.kernel_interpreter import interpret_kernel
from tgraph.compiler.targets.cuda.program import CudaProgram
from tgraph.compiler.targets.cuda.schedule import CudaSchedule
from tgraph.compiler.targets.cuda.wide_kernels import WideSchedule
from tgraph.runtime.arrays import evaluate
from tgraph.runtime.dtypes import dtype_named
from tgraph.runtime.plan_steps import (
    STATUS_SLOT,
    ArrayRef,
    BindStep,
    BranchStep,
    BufferRef,
    ControlStep,
    CopyStep,
    GemmStep,
    JumpStep,
    LaunchStep,
    PythonStep,
    RoutineStep,
    TurnsStep,
)

from .shim import Library, Order

Array = np.ndarray[Any, Any]
ALIGNMENT = 64


def run_program(
    program: CudaProgram, inputs: Sequence[Array], order: Order = "forward", seed: int = 0
) -> list[Array]:
    """The results of `program` for contiguous `inputs`; the error of a failed check.

    Outputs and the arena begin full of ones (NaN as floats), so that what is not written shows.
    """
    return _Run(program, inputs).run(order, seed)


def interpret_program(program: CudaProgram, inputs: Sequence[Array]) -> list[Array]:
    """The same by the kernel interpreter: what the loop programs mean that kernels are made from.

    Hand-written kernels have none, and run on the shim.
    """
    return _Run(program, inputs).run("forward", 0, interpreted=True)


@lru_cache(maxsize=64)
def _library(source: str) -> Library:
    return Library(source)


class _Run:
    def __init__(self, program: CudaProgram, inputs: Sequence[Array]) -> None:
        self.program = program
        self.memory: dict[int, Array] = {}
        self.left: dict[int, int] = {}  # turns of loops, by where these begin
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

    def run(self, order: Order, seed: int, interpreted: bool = False) -> list[Array]:
        at, steps = 0, self.program.steps
        while at < len(steps):
            number, step = at, steps[at]
            at += 1
            match step:
                case LaunchStep():
                    schedule = self.program.info_of_step[number].schedule
                    assert schedule is not None
                    if interpreted and isinstance(schedule, (CudaSchedule, WideSchedule)):
                        self.interpret(step, schedule)
                    else:
                        self.launch(step, schedule.kernel.params, order, seed)
                case GemmStep():
                    bias = self.bias(step)
                    _multiply(step, *map(self.at, (step.a, step.b, step.c)), bias)
                case CopyStep():
                    self.at(step.dst)[: step.nbytes] = self.at(step.src)[: step.nbytes]
                case PythonStep():
                    step.function(*map(self.array, (*step.inputs, *step.outputs)))
                case RoutineStep():
                    operands = list(map(self.array, step.operands))
                    found = evaluate(step.primitive, operands, dict(step.attrs), np)
                    given = found if isinstance(found, tuple) else (found,)
                    for place, value in zip(step.results, given, strict=True):
                        if place is not None:
                            self.array(place)[...] = value
                case BindStep() | BranchStep() | JumpStep() | TurnsStep():
                    at = number + self.walk(number, step)
                    self.check()
        self.check()
        return self.results()

    def walk(self, number: int, step: ControlStep | TurnsStep) -> int:
        """How many steps further a plan goes on."""
        match step:
            case BindStep():
                found = [self.at(each) for each in step.places]
                self.memory |= zip(step.slots, found)
                return 1
            case BranchStep():
                (index,) = self.at(step.index)[: np.dtype(step.dtype).itemsize].view(step.dtype)
                return step.by[min(max(int(index), 0), len(step.by) - 1)]
            case TurnsStep():
                left = self.left.pop(number, step.turns)
                self.left |= {number: left - 1} if left else {}
                return 1 if left else step.by
            case JumpStep():
                for one, other in step.exchanged:
                    both = self.memory[other], self.memory[one]
                    self.memory[one], self.memory[other] = both
                return step.by

    @property
    def library(self) -> Library:
        return _library(self.program.source)

    def launch(self, step: LaunchStep, params: Sequence[Param], order: Order, seed: int) -> None:
        if self.program.eager:
            self.launch_by_value(step, params, order, seed)
            return
        args = [
            self.elements(ref, param).view(_raw(param))
            for ref, param in zip(step.args, params, strict=True)
        ]
        self.library.launch(step.name, step.grid, step.block, args, step.shared, order, seed)

    def launch_by_value(
        self, step: LaunchStep, params: Sequence[Param], order: Order, seed: int
    ) -> None:
        """With numbers, and values in the place of some addresses."""
        args: list[int | bytes] = []
        for ref, param in zip(step.args, params, strict=True):
            elements = self.elements(ref, param)
            args.append(elements.tobytes() if param.by_value else elements.ctypes.data)
        taken = self.library.parameters(step.name)[len(args) :]
        for number, parameter in zip(step.numbers, taken, strict=True):
            args.append(number.to_bytes(parameter.bytes, "little", signed=True))
        grid, block = step.grid, step.block
        self.library.launch_at(step.name, grid, block, args, step.shared, order, seed)

    def interpret(self, step: LaunchStep, schedule: CudaSchedule | WideSchedule) -> None:
        kernels = [(schedule.kernel.params, schedule.kernel)]
        if isinstance(schedule, WideSchedule):
            kernels = [(piece.params, piece.kernel) for piece in schedule.pieces]
        refs = iter(step.args)
        for params, kernel in kernels:
            buffers = [self.elements(next(refs), param) for param in params]
            if kernel is not None:
                interpret_kernel(kernel, buffers[: len(kernel.params)])  # behind them is the guard
            else:
                source, target = buffers[:2]
                target[:] = source

    def elements(self, ref: BufferRef, param: Param) -> Array:
        flat = self.at(ref)[: param.elements * param.dtype.itemsize]
        return flat.view(param.dtype.numpy)

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

    def bias(self, step: GemmStep) -> Array | None:
        """The numbers that a product adds to its rows."""
        if not step.bias:
            return None
        assert step.epilogue == "bias" and step.bias.offset % 16 == 0
        dtype = dtype_named(step.dtype).numpy
        return self.at(step.bias)[: step.n * dtype.itemsize].view(dtype)

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


def _multiply(step: GemmStep, a: Array, b: Array, c: Array, bias: Array | None) -> None:
    """C = alpha * op(A) @ op(B) + beta * C + bias for every item of the batch."""
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
    product = product + step.beta * out if step.beta else product
    out[...] = product if bias is None else product + bias.astype(wide)
