"""From fused groups to the steps of a plan: memory is assigned, library calls are written.

Every value in memory has one place: the caller's arrays for inputs and outputs, constants bound
once, and the plan's arena for the rest, where places are reused as soon as their last reader is
done. An output that replaces an input (a parameter after its update) is written straight into the
input's memory where nobody reads the old value any more, and copied there at the end otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from functools import partial
from math import prod

from ...runtime.dtypes import ALL_DTYPES
from ...runtime.plan_steps import (
    STATUS_SLOT,
    BufferRef,
    CopyStep,
    CudaStep,
    GemmStep,
    Step,
)
from ..fusion.fused_graph import FusedGraph, Group
from ..fusion.rules import is_stored_source
from ..fusion.structure import Structure
from ..ir import Family, Graph, Node, TensorType
from ..ir import primitives as p
from ..kernel.kernel import Kernel
from ..kernel.lower import Lowering
from ..kernel.scheduled_kernel import KernelSchedule, ScheduledKernel
from .arena import Arena, PlanMemory, Space
from .control_flow import Surroundings, write_branch, write_loop
from .library_steps import call_step, primitive_step, product_step
from .operands import Operands
from .pattern import PATTERNS, Pattern, Piece, Scheduled
from .step_info import LibraryStep, StepInfo


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
    counts_turns = False
    """Whether loops whose number of turns is known count them, and compute no condition."""

    def __init__(
        self,
        fused: FusedGraph,
        donate: Mapping[int, int],
        within: Surroundings | None = None,
        space: Space | None = None,
    ) -> None:
        self.within = within
        self.graph = fused.graph
        self.fused = fused
        self.groups: Sequence[Group] = fused.groups
        self.donate = donate
        self.place: dict[Node, BufferRef] = {}
        self.operands = Operands(fused, self.place)
        self.infos: list[StepInfo] = []
        self.info_of_step: dict[int, StepInfo] = {}
        self.steps: list[Step | CudaStep] = []
        # What runs before the loop whose body this is, once for all turns.
        self.early_steps: list[Step | CudaStep] = []
        self.early_infos: list[StepInfo] = []
        space = space or Space(self.alignment, self.never_reused)
        self.memory = PlanMemory(space) if within is None else within.memory
        self.arena = Arena(self.memory.space)
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
        self.targets: list[BufferRef] = []  # where outputs belong
        if within is None:
            self._take_slots()
        else:
            self.place.update(zip(self.graph.inputs, within.inputs, strict=True))
            self.targets = list(within.outputs)
        for node in self.graph.nodes:
            if is_stored_source(node) and node.primitive is p.constant:
                self.place[node] = self.memory.constant(node.attrs["value"])

    def place_outputs(self) -> None:
        """Decide the order of groups, and where outputs are computed."""
        self._order_groups()
        self._place_outputs()

    def write(self) -> None:
        """Write all steps, over the graph's inputs and then one array per fresh output."""
        last = self._last_uses()
        for position, group in enumerate(self.groups):
            for each in self.checked_early if position == self.first_writer else ():
                for piece in self.early_checks(each):
                    self.write_piece(self.position[each], each, piece)
            self._write_group(position, group, last)
        self.steps += self.copies
        self.arena.release_all()
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
    def schedule(self, group: Group) -> tuple[Lowering, KernelSchedule]:
        """The kernel of a group, lowered and scheduled."""

    @abstractmethod
    def write_kernel(
        self, info: StepInfo, schedule: ScheduledKernel, args: tuple[BufferRef, ...]
    ) -> None:
        """Append the step that runs a kernel which has something to do."""

    @abstractmethod
    def tell_kernel(self, schedule: ScheduledKernel) -> str:
        """How a kernel runs, in a line for people."""

    @abstractmethod
    def tell_product(self, step: GemmStep) -> str:
        """How a matrix product is computed, in a line for people."""

    # -- memory --------------------------------------------------------------------------

    def _take_slots(self) -> None:
        """Number what has memory of its own: inputs, and fresh outputs."""
        for node in self.graph.inputs:
            self.place[node] = self.memory.slot()
        for number in range(len(self.graph.outputs)):
            source = self.donate.get(number)
            replaced = None if source is None else self.place[self.graph.inputs[source]]
            self.targets.append(replaced or self.memory.slot())

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
                self.place[node] = self.targets[number]
        for number, output in enumerate(self.graph.outputs):
            node, target = self.in_memory(output), self.targets[number]
            if self.place.get(node) != target:
                group = self.fused.group_of[node]
                self.late_copies.setdefault(group, []).append((output, node, target))
            elif number not in self.donate:
                self._place_first(node, target)

    def _place_donated(self, number: int, node: Node) -> None:
        replaced = self.graph.inputs[self.donate[number]]
        if node in self.place:
            return
        if replaced not in self.overwritten and self._may_overwrite(node, replaced):
            self.place[node] = self.targets[number] = self.place[replaced]
            self.in_place[node] = replaced
            self.overwritten.add(replaced)
        elif self.targets[number] != self.place[replaced]:  # a loop has other memory for it
            self.place[node] = self.targets[number]

    def _place_first(self, node: Node, target: BufferRef) -> None:
        """Compute what a loop begins with where its result belongs, if only the loop reads it."""
        first = self._begins_with(node)
        if first is None or first in self.place or first not in self.fused.group_of:
            return
        is_own = first.type == node.type and first not in self.fused.rules.pieces
        if is_own and self._is_last_reader(node.inputs[0], first):
            self.place[first] = target

    def _may_overwrite(self, node: Node, replaced: Node) -> bool:
        """Whether nobody reads `replaced` once `node` is written, but at the same element."""
        if self.fused.rules.inputs.get(replaced) is not None or node.type != replaced.type:
            return False
        writer = self.fused.group_of[node]
        at = self.position[writer]
        if at <= self.last_failure or self.last_read.get(replaced, at) > at:
            return False
        if self._begins_with(node) is replaced:
            return self._is_last_reader(node.inputs[0], replaced)
        if writer.kind == "scatter":
            return self.scatters_into(writer, node, replaced)
        if writer.kind not in ("kernel", "contraction"):
            return False
        return replaced not in writer.reads or self._reads_in_step(writer, node, replaced)

    def _begins_with(self, node: Node) -> Node | None:
        """What a value that a loop carries is at first, if the loop reads it as nothing else."""
        call = node.inputs[0] if node.primitive is p.get else None
        if call is None or call.primitive is not p.loop:
            return None
        at, read = node.attrs["index"], [self.in_memory(each) for each in call.inputs]
        first = call.inputs[at]
        return first if read[at] is first and read.count(first) == 1 else None

    def _is_last_reader(self, call: Node, read: Node) -> bool:
        return self.last_read[read] == self.position[self.fused.group_of[call]]

    def _reads_in_step(self, group: Group, node: Node, replaced: Node) -> bool:
        pattern, nodes, _ = self.scheduled(group)
        if replaced not in nodes:  # needed by the graph, but no element of it
            return True
        return pattern.reads_in_step(nodes.index(replaced), nodes.index(node))

    def _order_groups(self) -> None:
        """Where a step may fail, what overwrites inputs comes after everything else.

        What cannot come after the last step that may fail is written elsewhere and copied.
        """
        keeps = self.donate and self.within is None  # the state of a loop is lost with the call
        failing = {group for group in self.groups if keeps and self._may_fail(group)}
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
                self._take_over(position, node, last)
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

    def _take_over(self, position: int, node: Node, last: Mapping[Node, int]) -> None:
        """Let a loop carry a value on where it lies, if nobody reads it as it was at first."""
        first = self._begins_with(node)
        if first is None or last.get(first, position) > position or node.type != first.type:
            return
        if self.arena.is_taken(first) and first not in self.fused.rules.pieces:
            self.place[node] = self.place[first]
            self.arena.hand_over(first, node)

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
        pattern = PATTERNS.get(key) or PATTERNS.get(lines)
        if pattern is None:
            lowering, schedule = self.schedule(group)
            # Who fails late must not have written over inputs before: see `_order_groups`.
            assert self.fused.assess(group).may_fail or not lowering.kernel.checks
            number = {node: at for at, node in enumerate(structure.nodes)}
            params = [None if node is None else number[node] for node in lowering.param_nodes]
            pattern = Pattern(lowering.kernel, params, schedule)
            PATTERNS.keep(lines if lowering.kernel.checks else key, pattern)
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
        prefix = "" if self.within is None else self.within.name
        name = prefix + "_".join([f"k{position}", *names])[:48]
        name += piece.role and f"_{piece.role}"
        outputs = tuple(root.node for root in group.roots if root.stored)
        inside = self.scheduled(group).inside
        info = StepInfo(
            name, "kernel", inside, outputs, piece.bytes, piece.flops, piece.kernel, piece.schedule,
            None, group.price, group.apart, partial(self.tell_kernel, piece.schedule),
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
    ) -> tuple[KernelSchedule, list[Node | None]]:
        """An output in the memory of an input is the same parameter, not an alias of it."""
        shared: dict[int, int] = {}
        for number, node in enumerate(nodes):
            replaced = self.in_place.get(node) if node is not None else None
            if replaced is not None and replaced in nodes:
                shared[number] = nodes.index(replaced)
        left = [node for number, node in enumerate(nodes) if number not in shared]
        return pattern.shared(shared), left

    def _write_step(self, node: Node) -> None:
        if node.primitive.family is Family.GET:
            return
        if node.primitive.family is Family.ASSEMBLY:
            assert self.written.issuperset(node.inputs), f"pieces are missing in {node}"
            self.written.add(node)
            return
        if node.primitive.family is Family.CONTROL:
            self._write_control(node)
            return
        outputs: tuple[Node, ...] = (node,)
        if has_several_results(node):
            outputs = tuple(self.results(node))
        step, kind, flops, tell = self.library_step(node)
        moved = self.operands.read_bytes(node) + sum(each.type.nbytes for each in outputs)
        self.written.update(outputs)
        product = step if isinstance(step, GemmStep) else None
        info = StepInfo(step.name, kind, (node,), outputs, moved, flops, product=product, tell=tell)
        self.info_of_step[len(self.steps)] = info
        self.steps.append(step)
        self.infos.append(info)

    def _write_control(self, node: Node) -> None:
        """The steps of a branch or a loop, with those of the graphs inside it."""
        first, outputs = len(self.steps), tuple(self.results(node))
        inside = write_branch(self, node) if node.primitive is p.branch else write_loop(self, node)
        self.written.update(outputs)
        moved = self.operands.read_bytes(node) + sum(each.type.nbytes for each in outputs)
        name = node.primitive.name
        tell = partial(self.tell_control, node)
        info = StepInfo(name, name, (node,), outputs, moved, 0, tell=tell, inside=tuple(inside))
        self.infos.append(info)
        for number in range(first, len(self.steps)):
            self.info_of_step.setdefault(number, info)

    def tell_control(self, node: Node) -> str:
        """How a branch or a loop runs, in a line for people."""
        return ""

    def turns_at_once(self, turns: int, steps: Sequence[Step | CudaStep]) -> int:
        """How many of the turns of a loop whose body has these steps are one loop by themselves."""
        return turns

    @abstractmethod
    def inner(
        self, node: Node, graph: Graph, donate: Mapping[int, int], within: Surroundings
    ) -> PlanBuilder:
        """A builder for the steps of a graph inside `node`, which belong to this plan."""

    def reserve(self, fixed: Sequence[Node], take: Callable[[int], BufferRef]) -> None:  # noqa: B027
        """Take memory for what `early_steps` make of inputs that no turn of a loop changes."""

    def add_steps(self, inner: PlanBuilder) -> None:
        """Go on with the steps of an inner builder."""
        first = len(self.steps)
        self.steps += inner.steps
        self.info_of_step |= {first + at: info for at, info in inner.info_of_step.items()}

    def library_step(self, node: Node) -> LibraryStep:
        """The step of a node that is no kernel."""
        if node.primitive is p.matmul and node.type.dtype.name in self.products:
            step = product_step(self.operands, node)
            rows = prod(size for size, *_ in step.batch) * step.m
            flops = 2 * rows * step.n * step.k
            return LibraryStep(step, "gemm", flops, partial(self.tell_product, step))
        if has_several_results(node):
            return LibraryStep(call_step(self.operands, node, self.results(node)), "python")
        return LibraryStep(primitive_step(self.operands, node), "python")


def has_several_results(node: Node) -> bool:
    return not isinstance(node.type, TensorType)
