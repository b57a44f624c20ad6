"""The steps that plans are made of, and how they name memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .records import record, replace

ARENA_SLOT = 0
STATUS_SLOT = -1
"""The plan's status: int64[8], see `Plan.status`."""

RANGES_PER_THREAD = 4
"""That a step is cut into where that costs nothing, so that who is late leaves some to others."""


class Address(int):
    """A parameter that is an address of this process, and so keeps a plan from being stored."""


@record()
class BufferRef:
    """A place in memory: `offset` bytes behind the start of slot `slot`."""

    slot: int
    offset: int = 0

    def __str__(self) -> str:
        name = {ARENA_SLOT: "arena", STATUS_SLOT: "status"}.get(self.slot, f"slot{self.slot}")
        return f"{name}+{self.offset}" if self.offset else name


@record()
class ArrayRef:
    """An array at `ref`; `strides` are in bytes, None means C-contiguous."""

    ref: BufferRef
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None = None


@record()
class KernelStep:
    """Call the native ``void kernel(ptr args, i64 lo, i64 hi)`` over [0, extent).

    `args` points at the addresses of `args`, in order, and then at the words of `parameters`. The
    range is split over threads where it has more than `grain` items, the least that is worth a
    thread; the kernel guarantees that the split does not change results. Parameters that are
    addresses are of the type `Address`. `limits_blas`: BLAS is called, and is to use one thread.
    """

    name: str
    address: int
    args: tuple[BufferRef, ...]
    extent: int
    grain: int
    parameters: tuple[int, ...] = ()
    limits_blas: bool = False

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.args))
        return f"kernel {self.name}({arguments}) extent {self.extent} grain {self.grain}"


@record()
class LaunchStep:
    """Start the CUDA kernel `name` of the plan's module: `grid` blocks of `block` threads (x, y).

    `args` are the addresses that it takes, in order, and `numbers` the integers behind them. A
    block gets `shared` bytes of shared memory beside what the kernel declares.
    """

    name: str
    args: tuple[BufferRef, ...]
    grid: int
    block: tuple[int, int]
    shared: int = 0
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        x, y = self.block
        threads = f"{x} x {y}" if y > 1 else str(x)
        shared = f", {self.shared} bytes of shared memory" if self.shared else ""
        return (
            f"launch {self.name}({', '.join(map(str, (*self.args, *self.numbers)))}) "
            f"{self.grid} blocks of {threads}{shared}"
        )


Axes = tuple[tuple[int, int], ...]
"""Axes of an operand in memory, the last one fastest: size, and stride in elements."""


@record()
class Spread:
    """A matrix whose rows and whose columns have axes of their own, as windows of images have.

    The last axis of one of the two has stride 1.
    """

    rows: Axes
    columns: Axes


@record()
class EpilogueStep:
    """What a product does with each block of C: `kernel`, whose tasks are rows, or parts of them.

    C is one more argument of the kernel, behind the others. It is never in memory as a whole
    (`gemm_epilogue.py`).
    """

    kernel: KernelStep


@record()
class GemmStep:
    """C = alpha * op(A) @ op(B) + beta * C for row-major matrices, once per batch item.

    op(A) is m x k and op(B) k x n, where op transposes if `transpose_a`, `transpose_b`. `lda`,
    `ldb` and `ldc` are the elements from row to row of A, B and C as they are stored. `batch`
    has up to four dimensions (size, stride of a, of b, of c), in elements. `dtype` is 'float32'
    or 'float64', on CUDA also 'float16' or 'bfloat16', whose sums are float32. C must not overlap
    A or B.

    `spread_a` and `spread_b` tell how op(A) and op(B) lie where that is no matrix, on the CPU only;
    their flags and leading dimensions then mean nothing, and alpha is 1.

    `packed_b` tells that B lies in the panels of generated products (`gemm_packing.py`), on the CPU
    only; its flag and leading dimension then mean nothing.

    `epilogue` is what else is done before C is stored, on CUDA only: "bias" adds the n numbers at
    `bias` to every row of C; "" does nothing. `then` is what reads C instead of memory, on the CPU
    only; `c` means nothing then, k is at most the depth of tiles, alpha 1 and beta 0.
    """

    name: str
    dtype: str
    m: int
    n: int
    k: int
    a: BufferRef
    b: BufferRef
    c: BufferRef
    transpose_a: bool
    transpose_b: bool
    lda: int
    ldb: int
    ldc: int
    batch: tuple[tuple[int, int, int, int], ...] = ()
    alpha: float = 1.0
    beta: float = 0.0
    epilogue: str = ""
    bias: BufferRef | None = None
    then: EpilogueStep | None = None
    spread_a: Spread | None = None
    spread_b: Spread | None = None
    packed_b: bool = False

    def __str__(self) -> str:
        batch = "x".join(str(size) for size, *_ in self.batch)
        a = f"{self.a}{'.windows' if self.spread_a else '.T' if self.transpose_a else ''}"
        b = f"{self.b}{'.windows' if self.spread_b else '.T' if self.transpose_b else ''}"
        return (
            f"gemm {self.name}: {self.c} = {a} @ {b} "
            f"{f'+ {self.bias} ' if self.bias else ''}"
            f"{f'batch {batch} ' if batch else ''}m {self.m} n {self.n} k {self.k} {self.dtype}"
            f"{f' with {self.epilogue}' if self.epilogue else ''}"
            f"{f' then {self.then.kernel}' if self.then else ''}"
        )


Batch = tuple[tuple[int, int, int, int], ...]
"""Dimensions of a batch of products: size, and the strides of a, b and c in elements."""


def merged_batch(batch: Sequence[tuple[int, int, int, int]]) -> Batch:
    """Neighbouring dimensions through which all three operands run evenly, as one."""
    merged: list[tuple[int, int, int, int]] = []
    for size, a, b, c in batch:
        if size == 1:
            continue
        if merged and merged[-1][1:] == (size * a, size * b, size * c):
            merged[-1] = (merged[-1][0] * size, a, b, c)
        else:
            merged.append((size, a, b, c))
    return tuple(merged)


@record()
class CopyStep:
    """Copy `nbytes` bytes; the two places do not overlap, unless they are the same."""

    name: str
    dst: BufferRef
    src: BufferRef
    nbytes: int

    def __str__(self) -> str:
        return f"copy {self.name}: {self.dst} = {self.src} {self.nbytes} bytes"


@record()
class PythonStep:
    """Call ``function(*inputs, *outputs)`` with arrays; it writes into the outputs.

    The arrays lie in the plan's memory: `function` must not keep them. Inputs are read-only.
    """

    name: str
    function: Callable[..., None]
    inputs: tuple[ArrayRef, ...]
    outputs: tuple[ArrayRef, ...]

    def __str__(self) -> str:
        inputs = ", ".join(str(array.ref) for array in self.inputs)
        outputs = ", ".join(str(array.ref) for array in self.outputs)
        return f"python {self.name}: {outputs} = ({inputs})"


@record()
class RoutineStep:
    """Call a library's routines for a primitive on batches of matrices, on CUDA.

    All `results` are contiguous; those that nobody reads are None. Where a failure is an error,
    `site` is the number of its check, by which the status tells of it.
    """

    name: str
    primitive: str
    operands: tuple[ArrayRef, ...]
    results: tuple[ArrayRef | None, ...]
    attrs: tuple[tuple[str, Any], ...]
    site: int = 0

    @property
    def read_results(self) -> tuple[ArrayRef, ...]:
        """Those that somebody reads."""
        return tuple(each for each in self.results if each is not None)

    def __str__(self) -> str:
        operands = ", ".join(str(array.ref) for array in self.operands)
        results = ", ".join("-" if each is None else str(each.ref) for each in self.results)
        checked = f" check {self.site}" if self.site else ""
        sizes = " x ".join(map(str, self.operands[0].shape))
        return f"routine {self.name}: {results} = ({operands}) {sizes}{checked}"


@record()
class BindStep:
    """Let each of `slots` begin at its place of `places` from now on."""

    name: str
    slots: tuple[int, ...]
    places: tuple[BufferRef, ...]

    def __str__(self) -> str:
        bound = ", ".join(f"slot{slot} at {ref}" for slot, ref in zip(self.slots, self.places))
        return f"bind {self.name}: {bound}"


@record()
class BranchStep:
    """Go on with the step `by[i]` behind this one, where i is the number that lies at `index`.

    A number below 0 counts as 0, one too large as the last. `dtype` is its type, of integers that
    int64 holds, or bools.
    """

    name: str
    index: BufferRef
    dtype: str
    by: tuple[int, ...]

    def __str__(self) -> str:
        return f"branch {self.name}: on {self.dtype} {self.index} by {', '.join(map(str, self.by))}"


@record()
class JumpStep:
    """Go on with the step `by` behind this one, or before it.

    The slots of each pair of `exchanged` change places first.
    """

    name: str
    by: int
    exchanged: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        pairs = ", ".join(f"slot{one} and slot{other}" for one, other in self.exchanged)
        return f"jump {self.name}: by {self.by}{pairs and f', exchanging {pairs}'}"


@record()
class TurnsStep:
    """Go on with the next step, `turns` times; then with the one `by` behind this one, on CUDA.

    A loop begins with it whose number of turns is known. It counts anew when it is met again.
    """

    name: str
    turns: int
    by: int

    def __str__(self) -> str:
        return f"turns {self.name}: {self.turns}, then by {self.by}"


ControlStep = BindStep | BranchStep | JumpStep


def references(step: Step | CudaStep) -> tuple[BufferRef, ...]:
    """The places in memory that a step is told of, in its own order."""
    match step:
        case KernelStep() | LaunchStep():
            return step.args
        case GemmStep():
            behind = step.then.kernel.args if step.then else ()
            return (step.a, step.b, step.c, *((step.bias,) if step.bias else ()), *behind)
        case CopyStep():
            return step.dst, step.src
        case PythonStep():
            return tuple(array.ref for array in step.inputs + step.outputs)
        case RoutineStep():
            arrays = (*step.operands, *step.read_results)
            status = (BufferRef(STATUS_SLOT),) if step.site else ()
            return (*(array.ref for array in arrays), *status)
        case BindStep():
            return step.places
        case BranchStep():
            return (step.index,)
        case JumpStep() | TurnsStep():
            return ()


def kernel_of(step: Step) -> KernelStep | None:
    """The step itself if it is a kernel; the one that a product runs on its result."""
    if isinstance(step, GemmStep) and step.then is not None:
        return step.then.kernel
    return step if isinstance(step, KernelStep) else None


def with_kernel(step: Step, **changes: Any) -> Step:
    """A step with changes to the kernel that `kernel_of` gives."""
    kernel = kernel_of(step)
    if kernel is None:
        return step
    changed = replace(kernel, **changes)
    return replace(step, then=EpilogueStep(changed)) if isinstance(step, GemmStep) else changed


Step = KernelStep | GemmStep | CopyStep | PythonStep | ControlStep
CudaStep = LaunchStep | GemmStep | CopyStep | PythonStep | RoutineStep | ControlStep | TurnsStep
