"""From fused groups to the steps of a plan: memory is assigned, library calls are written.

Every value in memory has one place: the caller's arrays for inputs and outputs, constants bound
once, and the plan's arena for the rest, where places are reused as soon as their last reader is
done. An output that replaces an input (a parameter after its update) is written straight into the
input's memory where nobody reads the old value any more, and copied there at the end otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...runtime.arrays import copy_elements, copy_from_host, evaluate, module_of, to_host
from ...runtime.dtypes import ALL_DTYPES
from ...runtime.memo import Memo
from ...runtime.plan_steps import (
    ARENA_SLOT,
    STATUS_SLOT,
    ArrayRef,
    BufferRef,
    CopyStep,
    CudaStep,
    GemmStep,
    PythonStep,
    Spread,
    Step,
    merged_batch,
)
from ...runtime.records import record
from ..fusion.fused_graph import FusedGraph, Group
from ..fusion.rules import is_stored_source
from ..fusion.structure import Structure
from ..ir import Family, Node, TensorType
from ..ir import primitives as p
from ..kernel.cost import cost
from ..kernel.dependences import dependences
from ..kernel.kernel import Kernel
from ..kernel.lower import Lowering
from ..kernel.memory_views import spread_view, strided_view

if TYPE_CHECKING:
    from ..targets.cpu.schedule import Schedule
    from ..targets.cuda.schedule import CudaSchedule
    from ..targets.cuda.template import TemplateSchedule

    AnySchedule = Schedule | CudaSchedule


@record()
class StepInfo:
    """What `explain` and pictures tell of one step: the nodes it computes and what it moves.

    `kernel` and `schedule` are None for products, copies and Python functions, `product` for all
    but products. `price` and `apart` are those of its group, 0 for other steps.
    """

    name: str
    kind: str
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    bytes: int
    flops: int
    kernel: Kernel | None = None
    schedule: AnySchedule | TemplateSchedule | None = None
    product: GemmStep | None = None
    price: float = 0.0
    apart: float = 0.0


class Pattern:
    """What groups of one structure have in common: their kernel, and what was made of it.

    `params` has the number of a node of the structure for each parameter, None for the status.
    `sharing` are the schedules in which parameters are one: pairs of theirs -> the schedule.
    `in_step` tells of pairs whether the one may lie in the memory of the other; `parts` are other
    kernels that a target made of this one.
    """

    def __init__(self, kernel: Kernel, params: Sequence[int | None], schedule: AnySchedule) -> None:
        self.kernel, self.params, self.schedule = kernel, params, schedule
        self.sharing: dict[tuple[tuple[int, int], ...], AnySchedule] = {}
        self.in_step: dict[tuple[int, int], bool] = {}
        self.parts: dict[Any, Any] = {}
        self.bytes = moved_bytes(kernel)
        self.flops = operations(kernel)


# By what schedules depend on beside the structure, and by that; with lines where those matter.
_patterns: Memo[tuple[Any, ...], Pattern] = Memo(4_000)


class Piece(NamedTuple):
    """One of the kernels of a group, with the nodes of its parameters, and what it does."""

    role: str
    kernel: Kernel
    schedule: AnySchedule
    nodes: list[Node | None]
    bytes: int
    flops: int


class Scheduled(NamedTuple):
    """The kernel of one group: the node of each parameter, None for the status, and its values."""

    pattern: Pattern
    nodes: list[Node | None]
    inside: tuple[Node, ...]


class PlanBuilder(ABC):
    """Gives the values of one fused graph their places and writes the steps that compute them.

    What is a target's own is left to a subclass: the schedules of kernels, and their steps.
    """

    products: tuple[str, ...] = ("float32", "float64")
    """The dtypes whose matrix products the target's library computes."""
    alignment = 64
    """Values in the arena start at multiples of this many bytes."""
    never_reused = 0
    """Places in the arena of at most this many bytes are not given to other values."""

    def __init__(self, fused: FusedGraph, donate: Mapping[int, int]) -> None:
        self.graph = fused.graph
        self.fused = fused
        self.groups: Sequence[Group] = fused.groups
        self.donate = donate
        self.place: dict[Node, BufferRef] = {}
        self.infos: list[StepInfo] = []
        self.info_of_step: dict[int, StepInfo] = {}
        self.steps: list[Step | CudaStep] = []
        self.constants: dict[int, np.ndarray[Any, Any]] = {}
        self.arena = _Arena(self.alignment, self.never_reused)
        self.copies: list[CopyStep] = []
        self.in_place: dict[Node, Node] = {}
        self.written: set[Node] = set()  # what steps write, all of its elements
        self.overwritten: set[Node] = set()  # inputs in whose memory an output is computed
        self.checked_early: list[Group] = []  # what they check is checked before they are written
        self.lowered: dict[Group, Scheduled] = {}
        self.first_writer = -1  # of the groups: the first that overwrites an input
        self.last_failure = -1  # of the groups: the last that may fail once that has begun
        self.position: dict[Group, int] = {}
        self.last_read: dict[Node, int] = {}
        self.late_copies: dict[Group, list[tuple[Node, Node, BufferRef]]] = {}
        self.output_slot: dict[int, int] = {}
        self.slots = 1
        self._take_slots()

    def write(self) -> None:
        """Write all steps, over the graph's inputs and then one array per fresh output."""
        self._order_groups()
        self._place_outputs()
        last = self._last_uses()
        for position, group in enumerate(self.groups):
            for each in self.checked_early if position == self.first_writer else ():
                for piece in self.early_checks(each):
                    self.write_piece(self.position[each], each, piece)
            self._write_group(position, group, last)
        self.steps += self.copies
        self._verify_outputs()

    def _verify_outputs(self) -> None:
        """No plan shows memory that none of its steps wrote in full."""
        for number, output in enumerate(self.graph.outputs):
            node = self.in_memory(output)
            if not is_stored_source(node) and node not in self.written:
                raise AssertionError(f"output {number} of the plan is not written: {output}")

    @property
    @abstractmethod
    def variant(self) -> Hashable:
        """What schedules depend on beside the structure of a group, this class included."""

    @abstractmethod
    def schedule(self, group: Group) -> tuple[Lowering, AnySchedule]:
        """The kernel of a group, lowered and scheduled."""

    @abstractmethod
    def write_kernel(
        self, info: StepInfo, schedule: AnySchedule, args: tuple[BufferRef, ...]
    ) -> None:
        """Append the step that runs a kernel which has something to do."""

    # -- memory --------------------------------------------------------------------------

    def _take_slots(self) -> None:
        """Number what has memory of its own: inputs, fresh outputs, constants."""
        for node in self.graph.inputs:
            self.place[node] = BufferRef(self.slots)
            self.slots += 1
        for number in range(len(self.graph.outputs)):
            if number not in self.donate:
                self.output_slot[number] = self.slots
                self.slots += 1
        for node in self.graph.nodes:
            if is_stored_source(node) and node.primitive is p.constant:
                self.place[node] = BufferRef(self.slots)
                self.constants[self.slots] = np.ascontiguousarray(node.attrs["value"])
                self.slots += 1

    def in_memory(self, node: Node) -> Node:
        """The node whose memory holds `node`."""
        return self.fused.in_memory(node)

    def _place_outputs(self) -> None:
        """Outputs are computed in place; a second output of one value is copied."""
        for number, output in enumerate(self.graph.outputs):
            node = self.in_memory(output)
            if number in self.donate:
                self._place_donated(number, node)
            elif node not in self.place:
                self.place[node] = BufferRef(self.output_slot[number])
        for number, output in enumerate(self.graph.outputs):
            node = self.in_memory(output)
            if number in self.donate:
                target = BufferRef(1 + self.donate[number])
            else:
                target = BufferRef(self.output_slot[number])
            if self.place.get(node) != target:
                group = self.fused.group_of[node]
                self.late_copies.setdefault(group, []).append((output, node, target))

    def _place_donated(self, number: int, node: Node) -> None:
        replaced = self.graph.inputs[self.donate[number]]
        if node in self.place or replaced in self.overwritten:
            return
        if self._may_overwrite(node, replaced):
            self.place[node] = BufferRef(1 + self.donate[number])
            self.in_place[node] = replaced
            self.overwritten.add(replaced)

    def _may_overwrite(self, node: Node, replaced: Node) -> bool:
        """Whether nobody reads `replaced` once `node` is written, but at the same element."""
        if self.fused.rules.inputs.get(replaced) is not None or node.type != replaced.type:
            return False
        writer = self.fused.group_of[node]
        at = self.position[writer]
        if at <= self.last_failure or self.last_read.get(replaced, at) > at:
            return False
        if writer.kind == "scatter":
            return self.scatters_into(writer, node, replaced)
        if writer.kind != "kernel":
            return False
        return replaced not in writer.reads or self._reads_in_step(writer, node, replaced)

    def _reads_in_step(self, group: Group, node: Node, replaced: Node) -> bool:
        pattern, nodes, _ = self.scheduled(group)
        if replaced not in nodes:  # needed by the graph, but no element of it
            return True
        pair = nodes.index(replaced), nodes.index(node)
        found = pattern.in_step.get(pair)
        if found is None:
            found = pattern.in_step[pair] = _reads_before_writing(pattern.kernel, *pair)
        return found

    def _order_groups(self) -> None:
        """Where a step may fail, what overwrites inputs comes after everything else.

        What cannot come after the last step that may fail is written elsewhere and copied.
        """
        failing = {group for group in self.groups if self.donate and self._may_fail(group)}
        if failing:
            late = {self.in_memory(self.graph.outputs[number]) for number in self.donate}
            writers: set[Group] = set()
            for group in self.groups:
                after = any(self.fused.group_of.get(read) in writers for read in group.reads)
                if after or not late.isdisjoint(group.nodes):
                    writers.add(group)
            first = [group for group in self.groups if group not in writers]
            last = [group for group in self.groups if group in writers]
            self.groups, self.first_writer = first + last, len(first)
            ready = {node for group in first for node in group.nodes}
            self.checked_early = [
                group for group in last if group in failing and self._can_check_early(group, ready)
            ]
            failing.difference_update(self.checked_early)
        self.position = {group: number for number, group in enumerate(self.groups)}
        self.last_read = {
            read: position for position, group in enumerate(self.groups) for read in group.reads
        }
        self.last_failure = max((self.position[group] for group in failing), default=-1)

    def _can_check_early(self, group: Group, ready: Container[Node]) -> bool:
        """Whether all that a group checks can be checked once the nodes `ready` are computed."""
        checks = self.early_checks(group)
        read = [self.in_memory(each) for piece in checks for each in piece.nodes if each]
        return bool(checks) and all(is_stored_source(each) or each in ready for each in read)

    def _may_fail(self, group: Group) -> bool:
        if group.kind == "step":
            family = group.roots[0].node.primitive.family
            return family not in (Family.CONTRACTION, Family.SEVERAL, Family.ASSEMBLY)
        return self.fused.assess(group).may_fail

    def _last_uses(self) -> dict[Node, int]:
        last = dict(self.last_read)
        for position, group in enumerate(self.groups):
            for node in group.nodes:
                last.setdefault(node, position)
        end = len(self.groups)
        for output in self.graph.outputs:
            last[self.in_memory(output)] = end
        return last

    # -- steps ---------------------------------------------------------------------------

    def _write_group(self, position: int, group: Group, last: Mapping[Node, int]) -> None:
        written = [root.node for root in group.roots if root.stored]
        if group.kind == "step" and has_several_results(written[0]):
            written = self.results(written[0])
        elif written and written[0].primitive.family is Family.GET:
            written = []  # lies where the call put it
        for node in written:
            if node not in self.place:
                self.place[node] = self._take(node)
        if group.kind != "step":
            self._write_kernel(position, group)
        else:
            self._write_step(group.roots[0].node)
        for output, node, target in self.late_copies.get(group, ()):
            self.copies.append(CopyStep("output", target, self.place[node], output.type.nbytes))
        for node in {*group.reads, *written}:
            if last.get(node, position) <= position:
                self.arena.release(node)

    def _take(self, node: Node) -> BufferRef:
        """Memory for a node: in the arena, or where it lies in another."""
        piece = self.fused.rules.pieces.get(node)
        if piece is None:
            return self.arena.take(node.type.nbytes, node)
        if piece.whole not in self.place:
            self.place[piece.whole] = self._take(piece.whole)
        whole = self.place[piece.whole]
        return BufferRef(whole.slot, whole.offset + piece.offset * node.type.dtype.itemsize)

    def results(self, call: Node) -> list[Node]:
        return list(self.graph.consumers[call])

    def scheduled(self, group: Group) -> Scheduled:
        """The kernel of a group and its parameters; made once for each structure of groups."""
        found = self.lowered.get(group)
        if found is None:
            structure = self.fused.structure(group)
            pattern = self._pattern(group, structure)
            nodes = [None if at is None else structure.nodes[at] for at in pattern.params]
            found = self.lowered[group] = Scheduled(pattern, nodes, structure.inside)
        return found

    def _pattern(self, group: Group, structure: Structure) -> Pattern:
        key = (self.variant, structure.key)
        # The checks of a kernel name lines of the program.
        lines = (*key, *(node.where for node in structure.inside))
        pattern = _patterns.get(key) or _patterns.get(lines)
        if pattern is None:
            lowering, schedule = self.schedule(group)
            # Who fails late must not have written over inputs before: see `_order_groups`.
            assert self.fused.assess(group).may_fail or not lowering.kernel.checks
            number = {node: at for at, node in enumerate(structure.nodes)}
            params = [None if node is None else number[node] for node in lowering.param_nodes]
            pattern = Pattern(lowering.kernel, params, schedule)
            _patterns.keep(lines if lowering.kernel.checks else key, pattern)
        return pattern

    def _write_kernel(self, position: int, group: Group) -> None:
        pattern, nodes, _ = self.scheduled(group)
        self.written.update(self._written_in_full(pattern.kernel, nodes))
        for piece in self.kernels_of(group):
            self.write_piece(position, group, piece)

    def _written_in_full(self, kernel: Kernel, nodes: Sequence[Node | None]) -> Iterator[Node]:
        """The nodes whose memory a kernel writes, in the type and all elements that they have.

        Generated code knows dtypes by identity: one that only looks like another would be mistaken.
        """
        for param, node in zip(kernel.params, nodes, strict=True):
            if node is None or not param.written or param.dtype not in ALL_DTYPES:
                continue
            elements = self.fused.rules.buffer(node).elements
            if param.dtype is node.type.dtype and param.elements == elements:
                yield node

    def kernels_of(self, group: Group) -> list[Piece]:
        """The kernels of a group, in the order in which they run."""
        pattern, nodes, _ = self.scheduled(group)
        schedule, nodes = self._share_params(pattern, nodes)
        return [Piece("", pattern.kernel, schedule, nodes, pattern.bytes, pattern.flops)]

    def write_piece(self, position: int, group: Group, piece: Piece) -> None:
        names = dict.fromkeys(root.node.primitive.name for root in group.roots)
        name = "_".join([f"k{position}", *names])[:48] + (piece.role and f"_{piece.role}")
        outputs = tuple(root.node for root in group.roots if root.stored)
        inside = self.scheduled(group).inside
        info = StepInfo(
            name, "kernel", inside, outputs, piece.bytes, piece.flops, piece.kernel, piece.schedule,
            None, group.price, group.apart,
        )  # fmt: skip
        self.infos.append(info)
        if piece.schedule.extent > 0 and any(param.elements for param in piece.kernel.params):
            self.info_of_step[len(self.steps)] = info
            args = tuple(
                BufferRef(STATUS_SLOT) if node is None else self.place[self.in_memory(node)]
                for node in piece.nodes
            )
            self.write_kernel(info, piece.schedule, args)

    # What only some targets do: see `CpuPlanBuilder`.

    def early_checks(self, group: Group) -> list[Piece]:
        """What checks all that a group checks, apart from it; nothing where that cannot be."""
        return []

    def scatters_into(self, group: Group, node: Node, replaced: Node) -> bool:
        """Whether a scatter may write `node` into the memory of `replaced`, which none reads."""
        return False

    def _share_params(
        self, pattern: Pattern, nodes: list[Node | None]
    ) -> tuple[AnySchedule, list[Node | None]]:
        """An output in the memory of an input is the same parameter, not an alias of it."""
        shared: dict[int, int] = {}
        for number, node in enumerate(nodes):
            replaced = self.in_place.get(node) if node is not None else None
            if replaced is not None and replaced in nodes:
                shared[number] = nodes.index(replaced)
        if not shared:
            return pattern.schedule, nodes
        which = tuple(shared.items())
        schedule = pattern.sharing.get(which)
        if schedule is None:
            kernel = _with_shared_params(pattern.schedule.kernel, shared)
            schedule = pattern.sharing[which] = replace(pattern.schedule, kernel=kernel)
        return schedule, [node for number, node in enumerate(nodes) if number not in shared]

    def _write_step(self, node: Node) -> None:
        if node.primitive.family is Family.GET:
            return
        if node.primitive.family is Family.ASSEMBLY:
            assert self.written.issuperset(node.inputs), f"pieces are missing in {node}"
            self.written.add(node)
            return
        outputs: tuple[Node, ...] = (node,)
        if has_several_results(node):
            outputs = tuple(self.results(node))
        step, kind, flops = self.library_step(node)
        moved = sum(min(each.type.nbytes, self._read_of(node, each)) for each in node.inputs)
        moved += sum(each.type.nbytes for each in outputs)
        self.written.update(outputs)
        product = step if isinstance(step, GemmStep) else None
        info = StepInfo(step.name, kind, (node,), outputs, moved, flops, product=product)
        self.info_of_step[len(self.steps)] = info
        self.steps.append(step)
        self.infos.append(info)

    def library_step(self, node: Node) -> tuple[Step, str, int]:
        """The step of a node that is no kernel, its kind and its operations."""
        if node.primitive is p.matmul and node.type.dtype.name in self.products:
            step = self._gemm(node)
            rows = prod(size for size, *_ in step.batch) * step.m
            return step, "gemm", 2 * rows * step.n * step.k
        if has_several_results(node):
            return self._call(node), "python", 0
        function = partial(_run_primitive, node.primitive.name, dict(node.attrs))
        results = (self.contiguous(node, node.type),)
        return PythonStep(node.primitive.name, function, self.arrays(node), results), "python", 0

    def arrays(self, step: Node) -> tuple[ArrayRef, ...]:
        """The operands of a step as they lie in memory."""
        return tuple(self._array(step, operand) for operand in step.inputs)

    def _read_of(self, step: Node, operand: Node) -> int:
        """Bytes of what a step finds in memory for an operand."""
        return int(self.in_memory(self.fused.rules.step_operand(step, operand)).type.nbytes)

    def _call(self, node: Node) -> PythonStep:
        """A Python function or a routine of a library, for those of its results that are read."""
        results = {each.attrs["index"]: each for each in self.results(node)}
        wanted = tuple(sorted(results))
        outputs = tuple(self.contiguous(results[at], results[at].type) for at in wanted)
        name = str(node.attrs.get("name", node.primitive.name))
        if node.primitive.family is Family.OPAQUE:
            function = partial(_run_host_call, node.attrs["function"], wanted, len(node.inputs))
        else:
            attrs = dict(node.attrs)
            function = partial(_run_routine, node.primitive.name, attrs, wanted, len(node.inputs))
        return PythonStep(name, function, self.arrays(node), outputs)

    def contiguous(self, node: Node, type_: TensorType) -> ArrayRef:
        return ArrayRef(self.place[node], type_.shape, type_.dtype.numpy)

    def _array(self, step: Node, operand: Node) -> ArrayRef:
        base = self.in_memory(self.fused.rules.step_operand(step, operand))
        view = strided_view(operand, base, self.fused.rules.buffer(base))
        assert view is not None, f"{operand} is no view of {base}"
        strides, offset = view
        size = operand.type.dtype.itemsize
        ref = self.place[base]
        return ArrayRef(
            BufferRef(ref.slot, ref.offset + offset * size),
            operand.shape,
            operand.type.dtype.numpy,
            tuple(stride * size for stride in strides),
        )

    def _gemm(self, node: Node) -> GemmStep:
        a, b = node.inputs
        left = self._matrix(node, a, node.attrs["transpose_a"])
        right = self._matrix(node, b, node.attrs["transpose_b"])
        *lead, m, n = node.shape
        k = a.shape[-2] if node.attrs["transpose_a"] else a.shape[-1]
        batch = []
        out_stride = m * n
        for axis in range(len(lead) - 1, -1, -1):
            from_end = axis - len(lead)
            entry = (lead[axis], left.stride(from_end), right.stride(from_end), out_stride)
            out_stride *= lead[axis]
            batch.append(entry)
        return GemmStep(
            "matmul", node.type.dtype.name, m, n, k, left.ref, right.ref, self.place[node],
            left.transposed, right.transposed, left.leading, right.leading, max(n, 1),
            merged_batch(batch[::-1]), spread_a=left.spread, spread_b=right.spread,
        )  # fmt: skip

    def _matrix(self, node: Node, operand: Node, transpose: bool) -> _Matrix:
        images = self.fused.rules.windows_base(node, operand)
        if images is not None:
            return self._spread(operand, self.in_memory(images), transpose)
        base = self.in_memory(self.fused.rules.step_operand(node, operand))
        view = strided_view(operand, base, self.fused.rules.buffer(base))
        assert view is not None, f"{operand} is no view of {base}"
        strides, offset = view
        rows, columns = operand.shape[-2:]
        row, column = strides[-2:]
        plain = (column == 1 or columns == 1) and (row >= columns or rows == 1)
        if plain:
            leading = max(row if rows > 1 else 0, columns, 1)
        else:
            leading = max(column if columns > 1 else 0, rows, 1)
        place, batch = self._place_in(operand, base, strides[:-2], offset)
        return _Matrix(place, transpose == plain, leading, batch)

    def _spread(self, operand: Node, base: Node, transpose: bool) -> _Matrix:
        """A matrix of windows, which the product gathers from the images themselves."""
        found = spread_view(operand, base, self.fused.rules.buffer(base))
        assert found is not None, f"{operand} is no view of {base}"
        spread, (strides, offset) = found
        place, batch = self._place_in(operand, base, strides, offset)
        turned = Spread(spread.columns, spread.rows) if transpose else spread
        return _Matrix(place, False, 0, batch, turned)

    def _place_in(
        self, operand: Node, base: Node, strides: Sequence[int], offset: int
    ) -> tuple[BufferRef, dict[int, int]]:
        """Where an operand begins, and the strides of its leading axes."""
        ref, axes = self.place[base], range(-len(strides), 0)
        place = BufferRef(ref.slot, ref.offset + offset * operand.type.dtype.itemsize)
        sizes = operand.shape[:-2]
        return place, {
            axis: 0 if size == 1 else stride for axis, size, stride in zip(axes, sizes, strides)
        }


@record()
class _Matrix:
    """A matrix operand: whether BLAS must transpose it as stored, and its strides.

    One of windows is `spread`, without such strides.
    """

    ref: BufferRef
    transposed: bool
    leading: int
    batch: Mapping[int, int]
    spread: Spread | None = None

    def stride(self, from_end: int) -> int:
        return self.batch.get(from_end, 0)


def _reads_before_writing(kernel: Kernel, read: int, written: int) -> bool:
    """Whether each element of the parameter `read` is read only where `written` gets its own."""
    stored: set[Any] = set()
    stage_of_store = -1
    for number, stage in enumerate(kernel.stages):
        for instr in stage.body:
            if instr.op == "store" and instr.param == written:
                stored.add(instr.index)
                stage_of_store = number
    if len(stored) != 1:
        return False
    return all(
        instr.index in stored and not instr.mask and number <= stage_of_store
        for number, stage in enumerate(kernel.stages)
        for instr in stage.body
        if instr.op == "load" and instr.param == read
    )


def operations(kernel: Kernel) -> int:
    """Operations with multiplicity: each stands in the outermost loop that it allows."""
    total = 0
    for stage in kernel.stages:
        loops = [*kernel.rows, *stage.axes]
        for instr, axes in zip(stage.body, dependences(kernel, stage, kernel.rows), strict=True):
            if instr.op in ("load", "store", "const", "index"):
                continue
            needed = [at + 1 for at, axis in enumerate(loops) if axes is None or axis in axes]
            total += cost(instr) * prod(axis.size for axis in loops[: max(needed, default=0)])
    return total


def _with_shared_params(kernel: Kernel, shared: Mapping[int, int]) -> Kernel:
    """`kernel` without the parameters that `shared` maps to others, which are written now."""
    kept = [number for number in range(len(kernel.params)) if number not in shared]
    new = {old: position for position, old in enumerate(kept)}
    table = {number: new[shared.get(number, number)] for number in range(len(kernel.params))}
    params = [kernel.params[number] for number in kept]
    for source in shared.values():
        params[new[source]] = replace(params[new[source]], written=True)
    stages = tuple(
        replace(
            stage,
            body=tuple(
                replace(instr, param=table[instr.param]) if instr.param >= 0 else instr
                for instr in map(partial(_move_status, table), stage.body)
            ),
        )
        for stage in kernel.stages
    )
    return replace(kernel, params=tuple(params), stages=stages)


def moved_bytes(kernel: Kernel) -> int:
    """Bytes that must move at least: what is accessed of each buffer, every element once."""
    rows = prod(axis.size for axis in kernel.rows)
    accesses = [0] * len(kernel.params)
    for stage in kernel.stages:
        steps = rows * prod(axis.size for axis in stage.axes)
        for instr in stage.body:
            if instr.op in ("load", "store"):
                accesses[instr.param] += steps
    return sum(
        min(count, param.elements) * param.dtype.itemsize
        for count, param in zip(accesses, kernel.params, strict=True)
    )


def _move_status(table: Mapping[int, int], instr: Any) -> Any:
    if instr.op != "check":
        return instr
    size, site, status = instr.value
    return replace(instr, value=(size, site, table[status]))


def _run_primitive(name: str, attrs: Mapping[str, Any], *arrays: Any) -> None:
    *inputs, output = arrays
    copy_elements(output, evaluate(name, inputs, attrs, module_of(output)))


def _run_host_call(function: Any, wanted: Sequence[int], count: int, *arrays: Any) -> None:
    results = function(*map(to_host, arrays[:count]))
    for number, output in zip(wanted, arrays[count:], strict=True):
        copy_from_host(output, results[number])


def has_several_results(node: Node) -> bool:
    return not isinstance(node.type, TensorType)


def _run_routine(
    name: str, attrs: Mapping[str, Any], wanted: Sequence[int], count: int, *arrays: Any
) -> None:
    results = evaluate(name, arrays[:count], attrs, module_of(arrays[0]))
    for number, output in zip(wanted, arrays[count:], strict=True):
        copy_elements(output, results[number])


class _Arena:
    """Offsets in the arena: the lowest gap that fits, reused once released if it is large."""

    def __init__(self, alignment: int, never_reused: int) -> None:
        self.alignment = alignment
        self.never_reused = never_reused
        self.size = 0
        self.gaps: list[tuple[int, int]] = []  # (start, end), ascending, never touching
        self.taken: dict[Hashable, tuple[int, int]] = {}

    def take(self, nbytes: int, key: Hashable) -> BufferRef:
        place = self.taken[key] = self._take(nbytes)
        return BufferRef(ARENA_SLOT, place[0])

    def _take(self, nbytes: int) -> tuple[int, int]:
        wanted = max(-(-nbytes // self.alignment), 1) * self.alignment
        start = self._fill_gap(wanted)
        if start is None:
            ends_free = self.gaps and self.gaps[-1][1] == self.size
            start = self.gaps.pop()[0] if ends_free else self.size
            self.size = start + wanted
        return start, start + wanted

    @contextmanager
    def borrowed(self, nbytes: int) -> Iterator[BufferRef]:
        """A place for what one step needs while it runs."""
        place = self._take(nbytes)
        yield BufferRef(ARENA_SLOT, place[0])
        self._give_back(*place)

    def _fill_gap(self, wanted: int) -> int | None:
        for number, (start, end) in enumerate(self.gaps):
            if end - start >= wanted:
                left = [(start + wanted, end)] if end - start > wanted else []
                self.gaps[number : number + 1] = left
                return start
        return None

    def release(self, key: Hashable) -> None:
        """Give back what was taken for `key`, a node above all, if there is any."""
        if key not in self.taken:
            return
        self._give_back(*self.taken.pop(key))

    def _give_back(self, start: int, end: int) -> None:
        if end - start <= self.never_reused:
            return
        at = bisect(self.gaps, (start, end))
        if at < len(self.gaps) and self.gaps[at][0] == end:
            end = self.gaps.pop(at)[1]
        if at and self.gaps[at - 1][1] == start:
            at -= 1
            start = self.gaps.pop(at)[0]
        self.gaps.insert(at, (start, end))
