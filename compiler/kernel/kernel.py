"""A kernel: a fused group as a loop program, independent of the target.

For every point of `rows` (parallel axes) the stages run one after another. A stage loops over its
own axes in order and runs its body, scalar instructions in SSA form, once per point. A `reduce`
instruction folds a value over the axes of its stage into a result that later stages of the same
row read. A stage without axes runs once per row. Values keep their compute type: 16-bit floats
are float32 between load and store.

A stage with a `contract` instruction is a matrix product, or what is like one: rows are the axes
of the result, axes of the stage those that are contracted, and the two operands are whatever the
body computes from loads, whose index maps tell which axes each of them has. So windows, transposes
and broadcast batches are index maps, and casts and factors instructions before the product. Later
stages read the result like that of a reduction: they are its epilogue. In which order products are
added, and in which tiles, is a schedule's to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property
from typing import Any

from ...runtime.dtypes import DType, float32
from ...runtime.records import record, replace
from ..ir.monoids import SUM
from .checks import Check
from .index import Axis, Index, Mask, positions_in


@record()
class Param:
    """A buffer that a kernel reads or writes, addressed by element offset.

    `elements` is how many elements may be addressed. The parameter called "status" is where a
    failed check reports. A few elements that are only read may come `by_value`, with the call of
    the kernel, instead of lying in a buffer.
    """

    name: str
    dtype: DType
    elements: int
    written: bool = False
    by_value: bool = False


@record()
class Instr:
    """One scalar instruction; `args` are numbers of earlier instructions of the same body.

    op is a primitive's name, or one of
    - "const" (value), "index" (index, as int64);
    - "load" (param, index, mask: zero where a condition fails);
    - "store" (args: value; param, index), with value "add" to add to what is there, ("sum",
      scratch number) to store the sum of what neighbouring rows give, those along the last row
      axes, which the index lacks: it grows in a scratch row;
    - "condition" (mask: all of them, as bool);
    - "check" (args: position; value = (axis size, site, status param)): the position, made safe,
      after reporting one outside [0, size); `Kernel.checks[site]` tells what that means;
    - "reduce" (args: value, and of monoids that keep it its position; value = (result number,
      monoid)) and "result" (value = number);
    - "contract" (args: two values; value = result number): the sum of their products over the axes
      of the stage, in the type of the result;
    - "scan" (args: value and perhaps a start; value = (result number, monoid)): what the values so
      far fold to, in the order of the stage's loops, and the start; of the monoid LINEAR (args:
      value, factor): the last one times the factor, and the value;
    - "save" (args: value; index) and "saved" (index): a scratch row kept between stages,
      value = scratch number;
    - "random_bits" (args: seed, counter; index).
    """

    op: str
    args: tuple[int, ...] = ()
    dtype: DType = float32
    param: int = -1
    index: Index | None = None
    mask: Mask = ()
    value: Any = None

    @cached_property
    def indices(self) -> tuple[Index, ...]:
        """The index expressions of its conditions and its address."""
        own = () if self.index is None else (self.index,)
        return (*(condition.index for condition in self.mask), *own) if self.mask else own

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """The instructions of the same body whose values it uses."""
        positions = positions_in(self.indices)
        return (*self.args, *positions) if positions else self.args

    def with_indices(self, change: Callable[[Index], Index]) -> Instr:
        """The same instruction with every index expression changed."""
        if not self.indices:
            return self
        index = None if self.index is None else change(self.index)
        mask = tuple(replace(each, index=change(each.index)) for each in self.mask)
        return replace(self, index=index, mask=mask)


@record()
class Stage:
    """A loop nest over `axes` (possibly none) around one body."""

    axes: tuple[Axis, ...]
    body: tuple[Instr, ...]

    @property
    def contraction(self) -> Instr | None:
        """The instruction that makes it a matrix product, if it is one."""
        return next((instr for instr in self.body if instr.op == "contract"), None)


def long_sums(stage: Stage) -> list[Instr]:
    """The reductions of a stage with loops whose error would grow with their length."""
    return [
        instr
        for instr in stage.body
        if instr.op == "reduce" and instr.value[1] is SUM and instr.dtype.kind == "float"
    ]


@record()
class Kernel:
    """See the module's text. `results` are the types in which reductions and scans are folded,
    `scratch` the (type, elements) of rows saved between stages, `checks` what its check sites look
    at."""

    name: str
    params: tuple[Param, ...]
    rows: tuple[Axis, ...]
    stages: tuple[Stage, ...]
    results: tuple[DType, ...] = ()
    scratch: tuple[tuple[DType, int], ...] = ()
    checks: tuple[Check, ...] = field(default=(), compare=False)

    def instructions(self) -> Iterator[Instr]:
        for stage in self.stages:
            yield from stage.body

    @property
    def sums_of_rows(self) -> list[Instr]:
        """The stores that add up what neighbouring rows give."""
        return list(filter(adds_up_rows, self.instructions()))

    @property
    def is_sequential(self) -> bool:
        """Whether a stage writes at positions that are data, so that its order must be kept."""
        return any(
            instr.op == "store" and instr.value in ("add", "put") for instr in self.instructions()
        )

    def renamed(self, name: str) -> Kernel:
        return replace(self, name=name)

    def __str__(self) -> str:
        return format_kernel(self)


def adds_up_rows(instr: Instr) -> bool:
    """Whether it stores the sum of what neighbouring rows give."""
    return instr.op == "store" and isinstance(instr.value, tuple)


def compute_dtype(dtype: DType) -> DType:
    """The type in which values of `dtype` are computed."""
    return dtype.compute


EFFECTS = frozenset({"store", "reduce", "contract", "scan", "save", "check"})


def format_kernel(kernel: Kernel) -> str:
    """The text form, stable, for tests and debugging."""
    params = ", ".join(
        f"{param.name}: {param.dtype.name}[{param.elements}]{' out' if param.written else ''}"
        for param in kernel.params
    )
    lines = [f"kernel {kernel.name}({params})"]
    if kernel.rows:
        lines.append("  rows " + ", ".join(f"{axis.name} < {axis.size}" for axis in kernel.rows))
    for stage in kernel.stages:
        loops = ", ".join(f"{axis.name} < {axis.size}" for axis in stage.axes)
        lines.append(f"  stage {loops}".rstrip() + ":")
        lines += [
            f"    {_format_instr(kernel, number, instr)}" for number, instr in enumerate(stage.body)
        ]
    return "\n".join(lines)


def _format_instr(kernel: Kernel, number: int, instr: Instr) -> str:
    args = ", ".join(f"%{arg}" for arg in instr.args)
    where = f" if {' and '.join(map(str, instr.mask))}" if instr.mask else ""
    match instr.op:
        case "load":
            return f"%{number} = load {kernel.params[instr.param].name}[{instr.index}]{where}"
        case "store":
            sign = "+=" if instr.value == "add" else "= sum of" if adds_up_rows(instr) else "="
            return f"{kernel.params[instr.param].name}[{instr.index}] {sign} {args}"
        case "reduce":
            result, operation = instr.value
            return f"r{result} = reduce {operation} {args}"
        case "contract":
            return f"r{instr.value} = contract {instr.dtype.name} {args}"
        case "scan":
            result, operation = instr.value
            return f"%{number} = r{result} = scan {operation} {args}"
        case "result":
            return f"%{number} = r{instr.value}"
        case "save":
            return f"s{instr.value}[{instr.index}] = {args}"
        case "saved":
            return f"%{number} = s{instr.value}[{instr.index}]"
        case "const":
            return f"%{number} = {instr.dtype.name} {instr.value!r}"
        case "index":
            return f"%{number} = index {instr.index}"
        case "condition":
            return f"%{number} = {' and '.join(map(str, instr.mask))}"
        case "check":
            return f"%{number} = check 0 <= {args} < {instr.value[0]}"
        case "random_bits":
            return f"%{number} = random_bits({args}; {instr.index})"
        case "cast":
            return f"%{number} = cast {args} to {instr.value.name}"
        case "bitcast":
            source, target = instr.value
            return f"%{number} = bitcast {args} from {source.name} to {target.name}"
    return f"%{number} = {instr.op} {args}"
