"""Contractions on the CPU: a generated product that runs an elementwise kernel on blocks of C.

The product is the one that runs without an epilogue, with the same tiles and sums, and the kernel
is written like any other, so results have the same bits as one after the other. Only where C lies
changes: in a block on the stack, which the kernel reads from the first or second cache
(`runtime/gemm_epilogue.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ....runtime import gemm_epilogue, gemm_text, jit
from ....runtime.dtypes import DType
from ....runtime.memo import Memo
from ....runtime.plan_gemm import product_summary
from ....runtime.plan_steps import BufferRef, EpilogueStep, GemmStep, KernelStep
from ....runtime.records import NamedTuple, record, replace
from ...ir.shapes import contiguous_strides
from ...kernel.cost import cost
from ...kernel.index import Axis, of_axis
from ...kernel.kernel import Instr, Kernel, Param, Stage
from ...kernel.kernel_io import CannotFuse
from ...kernel.simplify_loops import simplify_loops
from .schedule import Schedule, TaskAxis, grain_of

MOST_DEPTH = 384
"""Products that are added in registers. Longer sums would need C in memory in between."""

FEWEST_ROWS, FEWEST_COLUMNS = 8, 16
"""Of a matrix in a batch, or of C: where it is smaller, calls of the kernel take too long."""

BLOCK_BYTES, BLOCK_WIDTH = gemm_text.EPILOGUE_BYTES, 4096
"""Of C, that the price takes a block and a row of it to have."""

BLOCK_TIME = 60.0
"""Nanoseconds that a call of the kernel takes beside its work."""


class _Matrix(NamedTuple):
    """An operand: its parameter, where it begins, and its strides along the batch.

    Its lines are rows of A or columns of B; they lie `leading` elements apart, or side by side if
    it `is_transposed`, with so many from one step along k to the next.
    """

    param: int
    offset: int
    is_transposed: bool
    leading: int
    batch: tuple[int, ...]


class Product(NamedTuple):
    """The product of a contraction: C has the rows and columns of its last two row axes."""

    left: _Matrix
    right: _Matrix
    batch: tuple[int, ...]
    m: int
    n: int
    k: int


class _Parts(NamedTuple):
    """What a kernel is cut into: `params` are those that the epilogue has, in front of C."""

    product: Product
    epilogue: Schedule
    params: tuple[int, ...]


@record(eq=False)
class ContractionSchedule:
    """A kernel with a contraction, its loops simplified: CannotFuse where there is none for it."""

    kernel: Kernel

    @property
    def extent(self) -> int:
        """The elements of the result."""
        return prod(axis.size for axis in self.kernel.rows)

    @property
    def product(self) -> Product:
        return self.parts.product

    @property
    def parts(self) -> _Parts:
        """The product and its epilogue; found out once."""
        key = id(self.kernel), jit.vector_bytes()
        found = _parts.get(key)
        return (found or _parts.keep(key, (self.kernel, _cut(self.kernel))))[1]

    def step(self, name: str, args: Sequence[BufferRef], then: KernelStep) -> GemmStep:
        """The step over the places `args` of the kernel's parameters; `then` is the epilogue."""
        of, dtype = self.parts.product, self.kernel.results[0]
        a, b = (_place(args[each.param], each.offset, dtype) for each in (of.left, of.right))
        strides = contiguous_strides((*of.batch, of.m, of.n))
        return GemmStep(
            name, dtype.name, of.m, of.n, of.k, a, b, a,
            of.left.is_transposed, not of.right.is_transposed, of.left.leading, of.right.leading,
            of.n,
            tuple(zip(of.batch, of.left.batch, of.right.batch, strides)), then=EpilogueStep(then),
        )  # fmt: skip

    def arguments(self, args: Sequence[BufferRef]) -> tuple[BufferRef, ...]:
        """The places of the epilogue's parameters but for C."""
        return tuple(args[at] for at in self.parts.params)


def _place(ref: BufferRef, elements: int, dtype: DType) -> BufferRef:
    return BufferRef(ref.slot, ref.offset + elements * dtype.itemsize)


# By the id of a kernel, which is held, and the size of vectors.
_parts: Memo[tuple[int, int], tuple[Kernel, _Parts]] = Memo(4_000)


def schedule_contraction(kernel: Kernel) -> ContractionSchedule:
    """The schedule of a kernel with a contraction; CannotFuse where the CPU has none."""
    kernel = simplify_loops(kernel)
    schedule = ContractionSchedule(kernel)
    find_product(kernel)
    if len(schedule.parts.params) > gemm_epilogue.MOST_ARGUMENTS:
        raise CannotFuse("a product's kernel would have too many arguments")
    return schedule


def contraction_summary(schedule: ContractionSchedule) -> str:
    """A line for people: the product, and the blocks on which the kernel runs."""
    nowhere = BufferRef(0)
    args = (nowhere,) * len(schedule.kernel.params)
    epilogue = schedule.parts.epilogue
    then = KernelStep("", 0, schedule.arguments(args), epilogue.extent, epilogue.grain)
    rows, columns = _block_of(schedule.kernel)
    product = product_summary(schedule.step("", args, then))
    return f"{product}; the kernel runs on blocks of {rows} x {columns} while they are in a cache"


def find_product(kernel: Kernel) -> Product:
    """The product in a kernel whose loops are simple; CannotFuse where tiles cannot compute it."""
    (stage,) = [each for each in kernel.stages if each.contraction is not None]
    contract = stage.contraction
    assert contract is not None
    if [instr.op for instr in stage.body if instr.op != "load"] != ["contract"]:
        raise CannotFuse("a product's operands would be computed on the way")
    if any(each.axes for each in kernel.stages if each is not stage):
        raise CannotFuse("what reads the product has loops of its own")
    if len(stage.axes) > 1 or len(kernel.rows) < 2:
        raise CannotFuse("the product is not one of matrices")
    k = stage.axes[0] if stage.axes else None
    if k is not None and not k.size:
        raise CannotFuse("there are no products to add up")
    if k is not None and k.size > MOST_DEPTH:
        raise CannotFuse(f"sums of more than {MOST_DEPTH} products are computed in several passes")
    *batch, m, n = kernel.rows
    if m.size < FEWEST_ROWS or n.size < FEWEST_COLUMNS:
        raise CannotFuse("blocks of so few rows or columns are not worth a kernel's start")
    left, right = (stage.body[arg] for arg in contract.args)
    strides = [_strides(kernel, each) for each in (left, right)]
    if n in strides[0] or m in strides[1]:
        raise CannotFuse("rows and columns of the product are cut")
    matrices = [
        _matrix(each, found, axis, k, batch)
        for each, found, axis in zip((left, right), strides, (m, n))
    ]
    sizes = tuple(axis.size for axis in batch)
    return Product(matrices[0], matrices[1], sizes, m.size, n.size, k.size if k else 1)


def _strides(kernel: Kernel, load: Instr) -> Mapping[Axis, int]:
    assert load.index is not None
    if load.mask or not all(isinstance(atom, Axis) for atom in load.index.terms):
        raise CannotFuse("a product gathers its operand by itself")
    return load.index.terms


def _matrix(
    load: Instr, strides: Mapping[Axis, int], line: Axis, k: Axis | None, batch: Sequence[Axis]
) -> _Matrix:
    """An operand whose lines walk along `line`."""
    assert load.index is not None
    lines, depth = strides.get(line, 0), k.size if k else 1
    along = line.size if k is None else strides.get(k, 0)
    moves = tuple(strides.get(axis, 0) for axis in batch)
    if (along == 1 or k is None) and lines >= depth:
        return _Matrix(load.param, load.index.const, False, lines, moves)
    if lines == 1 and along >= line.size:
        return _Matrix(load.param, load.index.const, True, along, moves)
    raise CannotFuse("an operand of the product does not lie as a matrix")


def _cut(kernel: Kernel) -> _Parts:
    """The product of a kernel, and the kernel of what is behind it."""
    product = find_product(kernel)
    *batch, m, n = kernel.rows
    stages = [stage for stage in kernel.stages if stage.contraction is None]
    used = sorted({each.param for stage in stages for each in stage.body if each.param >= 0})
    numbers = {old: new for new, old in enumerate(used)}
    rows, columns = _block_of(kernel)
    block = Param("product", kernel.results[0], rows * columns)
    at = of_axis(m) * columns + of_axis(n)
    c = Instr("load", (), kernel.results[0], len(used), at)

    def behind(instr: Instr) -> Instr:
        if instr.op == "result":
            return c
        return replace(instr, param=numbers[instr.param]) if instr.param >= 0 else instr

    epilogue = replace(
        kernel,
        params=(*(kernel.params[at] for at in used), block),
        stages=tuple(Stage((), tuple(map(behind, stage.body))) for stage in stages),
        results=(),
    )
    _check_lanes(epilogue, n)
    tasks = tuple(TaskAxis(axis, 1) for axis in batch)
    tasks += TaskAxis(m, 1), TaskAxis(n, columns)
    work = prod(axis.size for axis in kernel.rows) * sum(map(cost, epilogue.instructions()))
    grain = grain_of(work // max(1, prod(task.count for task in tasks)))
    return _Parts(product, Schedule(epilogue, tasks, n, False, grain, work), tuple(used))


def _block_of(kernel: Kernel) -> tuple[int, int]:
    """Rows and columns of the blocks of C."""
    of = gemm_text.tiles(kernel.results[0].name, jit.vector_bytes())
    *batch, m, n = (axis.size for axis in kernel.rows)
    return of.epilogue_block(m, n, prod(batch))


def _check_lanes(kernel: Kernel, lane: Axis) -> None:
    """Vectors are to read and write memory along rows of C."""
    for instr in kernel.instructions():
        if instr.index is None or instr.op not in ("load", "store"):
            continue
        if abs(instr.index.terms.get(lane, 0)) > 1 or not all(
            isinstance(atom, Axis) for atom in instr.index.terms
        ):
            raise CannotFuse("what is read or written beside the product lies across it")
