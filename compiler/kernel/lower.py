"""Lowering: a fused group of graph nodes becomes a Kernel.

Values are pulled. A stage starts from the elements that its roots must produce; from consumers to
producers, every node learns at which coordinates (index expressions of the loop axes) it is
needed; views only rewrite coordinates (`views`). So far it is a plan (`stages`), which is enough
to know whether the group has a kernel; then the instructions are written, producers first
(`lower_instructions`). Both walks are iterative and touch each (node, coordinates) once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...runtime.dtypes import DType
from ..ir import Family, Node, is_decision, is_exact, is_float
from ..ir import primitives as p
from ..ir.monoids import MONOID_OF
from ..ir.scans import running_dtype
from ..ir.shapes import contiguous_strides, numel
from ..ir.size_number import is_expression
from .body import Parameters
from .index import ZERO, Axis, Coords, Index, Mask, constant, flatten, of_axis, unflatten
from .kernel import Kernel, compute_dtype
from .kernel_io import (
    BufferLayout,
    CannotFuse,
    Root,
    contracted_sizes,
    inner_sizes,
    is_contraction,
    iteration_shape,
    row_sizes,
    sums_rows,
)
from .kernel_needs import KernelNeeds, kernel_needs
from .lower_instructions import write_stages
from .stages import (
    Compute,
    Contract,
    Element,
    KernelPlan,
    Reduce,
    SavedRow,
    Scan,
    StagePlan,
    Store,
    SumOfRows,
    Target,
)
from .views import Need, contracted_operands, reduced_coords

# A row axis of at most this size is unrolled, so that its instances share their common work.
UNROLLED_ROWS = 4
# Rough size of a kernel's bodies (an exp counts for what it is inlined to): code generation takes
# more than linear time in it, and longer kernels hardly run faster.
MAX_SIZE = 1000
SCRATCH_BYTES = 128 * 1024
# A value at least this costly is saved for a later stage rather than computed again.
SAVED_COST = 8

StageKey = tuple[int, tuple[int, ...]]
"""The level of a stage, and the sizes of its axes."""


class Lowering:
    """Builds one Kernel from roots over the buffers of everything outside the group.

    `buffers` gives those, None for what the kernel computes; `layout_of` how its results lie.
    After `run`, `kernel` is its result, `param_nodes` tells whose memory each parameter is, None
    for the status, and `can_save` whether there are rows to save between stages.
    """

    def __init__(
        self,
        name: str,
        roots: Sequence[Root],
        buffers: Callable[[Node], BufferLayout | None],
        layout_of: Callable[[Node], BufferLayout],
        order: Mapping[Node, int],
        save_rows: bool = True,
    ) -> None:
        self.name = name
        self.roots = roots
        self.buffer_of = buffers
        self.layout_of = layout_of
        self.order = order
        self.save_rows = save_rows
        self.param_nodes: list[Node | None] = []
        self.results: dict[Element, int] = {}
        self.running: dict[Element, int] = {}
        self.result_dtypes: list[DType] = []
        self.size = 0
        self.can_save = False
        self.row_axes, self.unrolled = self.choose_rows()
        self._inner: dict[tuple[int, ...], tuple[Axis, ...]] = {}
        self.summed = {root.node for root in roots if sums_rows(root)}
        self.reduced = {
            root.node for root in roots if root.node.primitive.family is Family.REDUCE
        } - self.summed
        self.contracted = {root.node for root in roots if is_contraction(root.node)}
        self.scanned = {root.node for root in roots if root.node.primitive.family is Family.SCAN}
        self.nodes = self.group_nodes()

    kernel: Kernel

    def run(self) -> Kernel:
        """The kernel; CannotFuse if the group has none within the caps."""
        stages = self.plan_stages()
        saved = _choose_saved(stages)
        self.can_save = bool(saved)
        if not self.save_rows:
            saved = {}
        rounded = _rounded(self.nodes, self.roots)
        sums = {
            (target.node, target.coords): stage
            for stage in stages
            for target in stage.targets
            if isinstance(target, SumOfRows)
        }
        summed = {element: len(saved) + number for number, element in enumerate(sums)}
        nodes = set(self.nodes)
        plan = KernelPlan(nodes, stages, self.results, self.running, saved, summed, rounded)
        parameters = Parameters()
        written = write_stages(plan, self.buffer_of, self.layout_of, parameters)
        self.param_nodes = parameters.nodes
        in_rows = [(node, stages[row.stage]) for (node, _), row in saved.items()]
        in_rows += [(node, stage) for (node, _), stage in sums.items()]
        scratch = tuple(
            (compute_dtype(node.type.dtype), numel([axis.size for axis in stage.axes]))
            for node, stage in in_rows
        )
        self.kernel = Kernel(
            self.name,
            tuple(parameters.params),
            self.row_axes,
            written,
            tuple(self.result_dtypes),
            scratch,
            tuple(parameters.checks),
        )
        return self.kernel

    def needs(self) -> KernelNeeds:
        """What the kernel needs; CannotFuse if the group has none. No instructions are written."""
        stages = self.plan_stages()
        for stage in stages:
            for root in self.roots:
                if not self._has_own_loops(root.node):
                    self._require_own_elements(stage, root)
        saved = _choose_saved(stages) if self.save_rows and self._walks_along_rows() else {}
        plan = KernelPlan(set(self.nodes), stages, self.results, self.running, saved)
        return kernel_needs(plan, self.row_axes)

    def _has_own_loops(self, node: Node) -> bool:
        return (
            node in self.reduced
            or node in self.scanned
            or node in self.contracted
            or node in self.summed
        )

    def _is_result(self, node: Node) -> bool:
        """Whether later stages read a node where its own stage has put it together."""
        return node in self.reduced or node in self.contracted

    def _walks_along_rows(self) -> bool:
        """Whether stages run through memory in order, so that schedules can keep whole rows."""
        for root in self.roots:
            shape = iteration_shape(root.node)
            wide = [is_row for size, is_row in zip(shape, root.dims, strict=True) if size > 1]
            if wide and wide[-1] and not all(wide):
                return False
        return True

    def _require_own_elements(self, stage: StagePlan, root: Root) -> None:
        """A pointwise root is computed once: nobody in the group reads it elsewhere."""
        needs = stage.needs.get(root.node)
        if needs is None:
            return
        inner = tuple(map(of_axis, self.inner_axes(inner_sizes(root))))
        own = {self.coords_of(root, rows, inner) for rows in self.instances()}
        if any(coords not in own for coords, _ in needs):
            raise CannotFuse(
                f"{root.node.primitive.name} is read at other elements than its own, "
                "which would be computed again"
            )

    # -- loops ---------------------------------------------------------------------------

    def choose_rows(self) -> tuple[tuple[Axis, ...], Axis | None]:
        """The row axes, and one more that is unrolled, if that pays."""
        sizes = row_sizes(self.roots[0])
        for root in self.roots[1:]:
            if row_sizes(root) != sizes and numel(row_sizes(root)) != numel(sizes):
                raise CannotFuse(f"rows {row_sizes(root)} and {sizes} differ")
        axes = tuple(Axis(f"i{position}", size) for position, size in enumerate(sizes))
        inner = max(numel(inner_sizes(root)) for root in self.roots)
        few = axes and not is_expression(axes[-1].size) and axes[-1].size <= UNROLLED_ROWS
        if few and inner > UNROLLED_ROWS:
            return axes[:-1], axes[-1]
        return axes, None

    def inner_axes(self, sizes: tuple[int, ...]) -> tuple[Axis, ...]:
        """The axes of the stages that loop over `sizes`."""
        if sizes not in self._inner:
            used = sum(len(axes) for axes in self._inner.values())
            self._inner[sizes] = tuple(
                Axis(f"j{used + position}", size) for position, size in enumerate(sizes)
            )
        return self._inner[sizes]

    def instances(self) -> list[tuple[Index, ...]]:
        """The row coordinates, one tuple per value of the unrolled axis."""
        lead = tuple(map(of_axis, self.row_axes))
        if self.unrolled is None:
            return [lead]
        return [(*lead, constant(value)) for value in range(self.unrolled.size)]

    def coords_of(self, root: Root, rows: Sequence[Index], inner: Sequence[Index]) -> Coords:
        """Coordinates in the root's iteration shape of a point of the loops."""
        own = row_sizes(root)
        sizes = row_sizes(self.roots[0])
        if own != sizes:
            offset = flatten(rows, contiguous_strides(sizes))
            rows = unflatten(offset, own)
        row, column = iter(rows), iter(inner)
        coords: list[Index] = []
        for size, is_row in zip(iteration_shape(root.node), root.dims, strict=True):
            coords.append(ZERO if size == 1 else next(row if is_row else column))
        return tuple(coords)

    # -- stages --------------------------------------------------------------------------

    def group_nodes(self) -> list[Node]:
        """Every node that is computed inside the kernel, producers first."""
        seen: set[Node] = {root.node for root in self.roots}
        pending = list(seen)
        while pending:
            for operand in pending.pop().inputs:
                if operand not in seen and self.buffer_of(operand) is None:
                    seen.add(operand)
                    pending.append(operand)
        return sorted(seen, key=self.order.__getitem__)

    def plan_stages(self) -> list[StagePlan]:
        """Stages by level; a reduction is stored once its stage is over, in a later one."""
        levels = self._levels()
        roots: dict[StageKey, list[Root]] = {}
        completed: dict[int, list[Root]] = {}
        for root in self.roots:
            level = levels[root.node]
            roots.setdefault((level, self._stage_sizes(root)), []).append(root)
            if self._is_result(root.node) and root.stored:
                completed.setdefault(level + 1, []).append(root)
                roots.setdefault((level + 1, ()), [])
        stages: list[StagePlan] = []
        for key in sorted(roots, key=lambda key: (key[0], len(key[1]) > 0, key[1])):
            stages.append(self._plan_stage(len(stages), key, roots[key]))
            if not key[1]:
                stages[-1].finished = self._stores(completed.get(key[0], ()))
        return stages

    def _stage_sizes(self, root: Root) -> tuple[int, ...]:
        """The sizes of the loops of the stage that computes a root."""
        is_contracted = root.node in self.contracted
        return contracted_sizes(root.node) if is_contracted else inner_sizes(root)

    def _levels(self) -> dict[Node, int]:
        """For each node of the group, the first level of stages in which it can be computed."""
        level: dict[Node, int] = {}
        for node in self.nodes:
            at = 0
            for operand in node.inputs:
                if operand in level:
                    at = max(at, level[operand] + self._is_result(operand))
            level[node] = at
        return level

    def _plan_stage(self, number: int, key: StageKey, roots: Sequence[Root]) -> StagePlan:
        axes = self.inner_axes(key[1])
        inner = tuple(map(of_axis, axes))
        targets = [
            self._target(root, self.coords_of(root, rows, inner), inner)
            for root in roots
            for rows in self.instances()
        ]
        stage = StagePlan(number, axes, targets)
        self.spread_needs(stage)
        for target in targets:
            if isinstance(target, (Reduce, Contract)):
                self.results[target.node, target.coords] = len(self.result_dtypes)
                self.result_dtypes.append(compute_dtype(target.node.type.dtype))
            elif isinstance(target, Scan):
                self.running[target.node, target.coords] = len(self.result_dtypes)
                monoid, dtype = MONOID_OF[target.node.primitive], target.node.type.dtype
                self.result_dtypes.append(running_dtype(monoid, dtype))
        return stage

    def _target(self, root: Root, coords: Coords, inner: Sequence[Index]) -> Target:
        """What a stage makes of the element of `root` at a point of its loops."""
        if root.node in self.reduced:
            result = reduced_coords(root.node, coords)
            return Reduce((root.node.inputs[0], coords, ()), root.node, result)
        if root.node in self.summed:
            result = reduced_coords(root.node, coords)
            return SumOfRows((root.node.inputs[0], coords, ()), root.node, result)
        if root.node in self.scanned:
            return _scan(root, coords)
        if root.node in self.contracted:
            left, right = contracted_operands(root.node, coords, inner)
            return Contract(left, right, root.node, coords)
        value = (root.node, coords, ())
        return Store(value, root.node, coords) if root.stored else Compute(value)

    def _stores(self, completed: Iterable[Root]) -> list[Store]:
        return [
            Store((node, coords, ()), node, coords)
            for root in completed
            for node, coords in self.results
            if node is root.node
        ]

    def spread_needs(self, stage: StagePlan) -> None:
        """From consumers to producers: at which coordinates is each node needed?"""
        for target in stage.targets:
            for need in target.needs:
                stage.need(*need)
        for node in reversed(self.nodes):
            needs = stage.needs.get(node)
            if needs is None:
                continue
            if node in self.summed:
                raise CannotFuse("a sum of rows is complete when its kernel ends")
            self.size += len(needs) * node.primitive.cost
            if self.size > MAX_SIZE:
                raise CannotFuse(f"the kernel would have more than {MAX_SIZE} operations")
            if self._is_result(node):
                self._require_results(node, needs)
                continue
            if node in self.scanned:
                _require_running(stage, node, needs)
                continue
            for coords, mask in needs:
                for need in stage.operands((node, coords, mask)):
                    stage.need(*need)

    def _require_results(self, node: Node, needs: Iterable[tuple[Coords, Mask]]) -> None:
        for coords, _ in needs:
            if (node, coords) not in self.results:
                raise CannotFuse(
                    f"{node.primitive.name} is read at ({', '.join(map(str, coords))}), "
                    "which is another row than the one being computed"
                )


def _scan(root: Root, coords: Coords) -> Scan:
    """What a stage makes of the element of a scan at a point of its loops."""
    node, axis = root.node, root.node.attrs["axis"]
    at = list(coords)
    if node.attrs["reverse"]:
        at[axis] = constant(node.shape[axis] - 1) - at[axis]
    here = tuple(at)
    if node.primitive is p.linear_scan:
        factor, added = node.inputs
        return Scan((added, here, ()), node, here, (factor, here, ()), root.stored)
    first = (*at[:axis], ZERO, *at[axis + 1 :])
    start: Need | None = (node.inputs[1], first, ()) if len(node.inputs) > 1 else None
    return Scan((node.inputs[0], here, ()), node, here, start, root.stored)


def _require_running(stage: StagePlan, node: Node, needs: Iterable[tuple[Coords, Mask]]) -> None:
    """A running sum is there in its own stage only, and the one of the moment."""
    scans = (target for target in stage.targets if isinstance(target, Scan))
    own = {scan.coords for scan in scans if scan.node is node}
    if any(coords not in own for coords, _ in needs):
        raise CannotFuse(f"{node.primitive.name} is read elsewhere than where it is computed")


def _rounded(nodes: Sequence[Node], roots: Iterable[Root]) -> set[Node]:
    """The nodes of 16-bit floats whose values are rounded to them at once.

    Others stay float32 while the kernel lasts. What is stored is computed with as others will read
    it; and what a decision is made of is what they decide on. Exact operations in between pass a
    rounding on.
    """
    found = {root.node for root in roots if root.stored}
    decided: set[Node] = set()
    for node in reversed(nodes):
        if is_decision(node) or (node in decided and is_exact(node)):
            decided.update(node.inputs)
    found |= {node for node in decided if not is_exact(node)}
    return {node for node in found if is_float(node) and node.type.dtype.is_half}


def _choose_saved(stages: Sequence[StagePlan]) -> dict[Element, SavedRow]:
    """Costly values that are needed again in a later stage over the same axes."""
    saved: dict[Element, SavedRow] = {}
    first: dict[Element, StagePlan] = {}
    for stage in stages:
        for node, needs in stage.needs.items():
            if node.primitive.cost < SAVED_COST or node.primitive.family is Family.REDUCE:
                continue
            for coords, mask in needs:
                if mask:
                    continue
                origin = first.setdefault((node, coords), stage)
                if origin is stage or origin.axes != stage.axes or not stage.axes:
                    continue
                sizes = tuple(axis.size for axis in stage.axes)
                if numel(sizes) * node.type.dtype.itemsize > SCRATCH_BYTES:
                    continue
                slot = flatten(list(map(of_axis, stage.axes)), contiguous_strides(sizes))
                saved.setdefault((node, coords), SavedRow(len(saved), origin.number, slot))
    return saved
