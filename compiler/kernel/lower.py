"""Lowering: a fused group of graph nodes becomes a Kernel.

Values are pulled. A stage starts from the elements that its roots must produce; from consumers to
producers, every node learns at which coordinates (index expressions of the loop axes) it is
needed; views only rewrite coordinates. Then, producers first, each needed element becomes scalar
instructions. Whatever lies outside the group is a load; a reduction finished in an earlier stage
is a result. Both walks are iterative and touch each (node, coordinates) once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...runtime.dtypes import DType, int64
from ..ir import Family, Node, Provenance
from ..ir.node import attr_key
from ..ir.shapes import contiguous_strides, numel
from . import views
from .index import (
    ZERO,
    Axis,
    Condition,
    Index,
    Loaded,
    constant,
    data_atoms,
    flatten,
    of_axis,
    substitute,
    unflatten,
)
from .kernel import EFFECTS, Instr, Kernel, Param, Stage, compute_dtype

# Reductions over at most this many elements are written out inside their consumer's body.
UNROLLED_ELEMENTS = 32
# A row axis of at most this size is unrolled, so that its instances share their common work.
UNROLLED_ROWS = 4
# Rough size of a kernel's bodies (an exp counts for what it is inlined to): code generation takes
# more than linear time in it, and longer kernels hardly run faster.
MAX_SIZE = 1000
SCRATCH_BYTES = 128 * 1024
# A value at least this costly is saved for a later stage rather than computed again.
SAVED_COST = 8

Coords = tuple[Index, ...]
Mask = tuple[Condition, ...]
Need = tuple[Coords, Mask]
NodeNeed = tuple[Node, Coords, Mask]


class CannotFuse(Exception):
    """The group has no kernel; the text says why."""


@dataclass(frozen=True)
class Buffer:
    """Where a materialised node lies: element strides, offset, addressable elements."""

    strides: tuple[int, ...]
    offset: int = 0
    elements: int = 0

    @staticmethod
    def contiguous(shape: tuple[int, ...]) -> Buffer:
        return Buffer(contiguous_strides(shape), 0, numel(shape))


@dataclass(frozen=True)
class Root:
    """A node that a kernel produces.

    `dims` says for every axis of its iteration shape (the operand's shape for a reduction, its
    own otherwise) whether it is a row axis (True) or an axis of its stage (False).
    """

    node: Node
    dims: tuple[bool, ...]
    stored: bool = True


def iteration_shape(node: Node) -> tuple[int, ...]:
    """The shape that a kernel producing `node` loops over."""
    return node.inputs[0].shape if node.primitive.family is Family.REDUCE else node.shape


def is_unrolled(node: Node) -> bool:
    """Whether a reduction is written out inside its consumers rather than looped over."""
    if node.primitive.name == "fold":
        return numel(node.inputs[0].shape[node.type.ndim :]) <= UNROLLED_ELEMENTS
    if node.primitive.family is not Family.REDUCE or node.primitive.name in ("argmax", "argmin"):
        return False
    return numel([node.inputs[0].shape[axis] for axis in node.attrs["axes"]]) <= UNROLLED_ELEMENTS


class Lowering:
    """Builds one Kernel from roots over the buffers of everything outside the group."""

    def __init__(
        self,
        name: str,
        roots: Sequence[Root],
        buffers: Callable[[Node], Buffer | None],
        order: Mapping[Node, int],
        save_rows: bool = True,
    ) -> None:
        self.name = name
        self.roots = roots
        self.buffer_of = buffers
        self.order = order
        self.save_rows = save_rows
        self.params: list[Param] = []
        self.param_nodes: list[Node | None] = []
        self._param_of: dict[Any, int] = {}
        self.results: dict[tuple[Node, Coords], tuple[int, int]] = {}  # number, stage it is from
        self.result_dtypes: list[DType] = []
        self.checks: list[Provenance] = []
        self.saved_in: dict[tuple[Node, Coords], _StagePlan] = {}
        self.size = 0
        self.row_axes, self.unrolled = self._row_axes()
        self._inner: dict[tuple[int, ...], tuple[Axis, ...]] = {}
        self.reduced = {root.node for root in roots if root.node.primitive.family is Family.REDUCE}

    # -- loops ---------------------------------------------------------------------------

    def _row_axes(self) -> tuple[tuple[Axis, ...], Axis | None]:
        sizes = row_sizes(self.roots[0])
        for root in self.roots[1:]:
            if row_sizes(root) != sizes and numel(row_sizes(root)) != numel(sizes):
                raise CannotFuse(f"rows {row_sizes(root)} and {sizes} differ")
        axes = tuple(Axis(f"i{position}", size) for position, size in enumerate(sizes))
        inner = max(numel(inner_sizes(root)) for root in self.roots)
        if axes and axes[-1].size <= UNROLLED_ROWS and inner > UNROLLED_ROWS:
            return axes[:-1], axes[-1]
        return axes, None

    def inner_axes(self, sizes: tuple[int, ...]) -> tuple[Axis, ...]:
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
            offset = flatten(list(rows), contiguous_strides(sizes))
            rows = unflatten(offset, own)
        row, column = iter(rows), iter(inner)
        coords: list[Index] = []
        for size, is_row in zip(iteration_shape(root.node), root.dims, strict=True):
            coords.append(ZERO if size == 1 else next(row if is_row else column))
        return tuple(coords)

    # -- stages --------------------------------------------------------------------------

    def levels(self) -> dict[Node, int]:
        """For each node of the group, the first stage in which it can be computed."""
        level: dict[Node, int] = {}
        for node in self._group_nodes():
            at = 0
            for operand in node.inputs:
                if operand in level:
                    at = max(at, level[operand] + (operand in self.reduced))
            level[node] = at
        return level

    def _group_nodes(self) -> list[Node]:
        """Every node that is computed inside the kernel, producers first."""
        seen: set[Node] = {root.node for root in self.roots}
        pending = list(seen)
        while pending:
            for operand in pending.pop().inputs:
                if operand not in seen and self.buffer_of(operand) is None:
                    seen.add(operand)
                    pending.append(operand)
        return sorted(seen, key=self.order.__getitem__)

    def run(self) -> Kernel:
        """The kernel; CannotFuse if the group has none within the caps."""
        self.nodes = self._group_nodes()
        self.level = self.levels()
        plans = self._plan_stages()
        saved = self._choose_saved(plans) if self.save_rows else {}
        stages = [stage for plan in plans if (stage := self._emit_stage(plan, saved)).body]
        scratch = tuple(
            (compute_dtype(node.type.dtype), numel([axis.size for axis in plans[first].axes]))
            for (node, _), (_, first, _) in saved.items()
        )
        return Kernel(
            self.name,
            tuple(self.params),
            self.row_axes,
            tuple(stages),
            tuple(self.result_dtypes),
            scratch,
            tuple(self.checks),
        )

    def check(self) -> None:
        """CannotFuse if the group has no kernel; what `run` does, without the instructions."""
        self.nodes = self._group_nodes()
        self.level = self.levels()
        for plan in self._plan_stages():
            for root in self.roots:
                if root.node not in self.reduced:
                    self._require_own_elements(plan, root)

    def _require_own_elements(self, plan: _StagePlan, root: Root) -> None:
        """A pointwise root is computed once: nobody in the group reads it elsewhere."""
        needs = plan.needs.get(root.node)
        if needs is None:
            return
        inner = tuple(map(of_axis, self.inner_axes(inner_sizes(root))))
        own = {self.coords_of(root, rows, inner) for rows in self.instances()}
        if any(coords not in own for coords, _ in needs):
            raise CannotFuse(
                f"{root.node.primitive.name} is read at other elements than its own, "
                "which would be computed again"
            )

    def _plan_stages(self) -> list[_StagePlan]:
        """Stages by level; a reduction is stored once its stage is over, in a later one."""
        roots: dict[tuple[int, tuple[int, ...]], list[Root]] = {}
        finished: dict[int, list[Root]] = {}
        for root in self.roots:
            level = self.level[root.node]
            roots.setdefault((level, inner_sizes(root)), []).append(root)
            if root.node in self.reduced and root.stored:
                finished.setdefault(level + 1, []).append(root)
                roots.setdefault((level + 1, ()), [])
        keys = sorted(roots, key=lambda key: (key[0], len(key[1]) > 0, key[1]))
        plans = []
        for number, key in enumerate(keys):
            plan = self._plan_stage(number, key, roots[key])
            if not key[1]:
                plan.finished = [
                    (root, result)
                    for root in finished.get(key[0], ())
                    for node, result in self.results
                    if node is root.node
                ]
            plans.append(plan)
        return plans

    def _plan_stage(self, number: int, key: Any, roots: list[Root]) -> _StagePlan:
        axes = self.inner_axes(key[1])
        plan = _StagePlan(number, axes)
        inner = tuple(map(of_axis, axes))
        for root in roots:
            for rows in self.instances():
                coords = self.coords_of(root, rows, inner)
                if root.node in self.reduced:
                    plan.targets.append((root, coords, views.reduced_coords(root.node, coords)))
                else:
                    plan.targets.append((root, coords, coords))
        self._spread_needs(plan)
        for root, _, result in plan.targets:
            if root.node in self.reduced:
                dtype = compute_dtype(root.node.type.dtype)
                self.results[root.node, result] = (len(self.result_dtypes), number)
                self.result_dtypes.append(dtype)
        return plan

    def _spread_needs(self, plan: _StagePlan) -> None:
        """From consumers to producers: at which coordinates is each node needed?"""
        for root, coords, _ in plan.targets:
            start = root.node.inputs[0] if root.node in self.reduced else root.node
            plan.need(start, coords, ())
        for node in reversed(self.nodes):
            needs = plan.needs.get(node)
            if needs is None:
                continue
            self.size += len(needs) * node.primitive.cost
            if self.size > MAX_SIZE:
                raise CannotFuse(f"the kernel would have more than {MAX_SIZE} operations")
            if node in self.reduced:
                self._require_results(plan, node, needs)
                continue
            for coords, mask in needs:
                for operand, at, under in views.operand_needs(node, coords, mask):
                    plan.need(operand, at, under)

    def _require_results(self, plan: _StagePlan, node: Node, needs: Mapping[Need, None]) -> None:
        for coords, _ in needs:
            if (node, coords) not in self.results:
                raise CannotFuse(
                    f"{node.primitive.name} is read at ({', '.join(map(str, coords))}), "
                    "which is another row than the one being computed"
                )

    def _choose_saved(self, plans: list[_StagePlan]) -> dict[Any, tuple[int, int, Index]]:
        """Costly values needed again in a later stage: (node, coords) -> number, stage, slot."""
        saved: dict[Any, tuple[int, int, Index]] = {}
        first: dict[Any, _StagePlan] = {}
        for plan in plans:
            for node, needs in plan.needs.items():
                if node.primitive.cost < SAVED_COST or node.primitive.family is Family.REDUCE:
                    continue
                for coords, mask in needs:
                    if mask:
                        continue
                    origin = first.setdefault((node, coords), plan)
                    if origin is plan or origin.axes != plan.axes or not plan.axes:
                        continue
                    sizes = [axis.size for axis in plan.axes]
                    if numel(sizes) * node.type.dtype.itemsize > SCRATCH_BYTES:
                        continue
                    slot = flatten(list(map(of_axis, plan.axes)), contiguous_strides(tuple(sizes)))
                    if (node, coords) not in saved:
                        saved[node, coords] = (len(saved), origin.number, slot)
        return saved

    # -- instructions --------------------------------------------------------------------

    def _emit_stage(self, plan: _StagePlan, saved: Mapping[Any, Any]) -> Stage:
        """Producers first; an explicit stack, since positions read from data add edges."""
        body = _Body()
        values: dict[Any, int] = {}
        for target in plan.targets:
            pending = self._target_needs(plan, target)
            while pending:
                need = pending[-1]
                missing = [each for each in self._depends(plan, need, saved) if each not in values]
                if missing:
                    pending.extend(missing)
                    continue
                pending.pop()
                if need not in values:
                    values[need] = self._element(body, plan, need, values, saved)
        for root, coords, result in plan.targets:
            self._emit_root(body, root, coords, result, values)
        for root, result in plan.finished:
            number = self.results[root.node, result][0]
            dtype = compute_dtype(root.node.type.dtype)
            value = body.add(Instr("result", (), dtype, value=number))
            self._store(body, root.node, result, value)
        return Stage(plan.axes, body.without_dead())

    def _target_needs(
        self, plan: _StagePlan, target: tuple[Root, Coords, Coords]
    ) -> list[NodeNeed]:
        root, coords, _ = target
        return [(root.node.inputs[0] if root.node in self.reduced else root.node, coords, ())]

    def _is_leaf(self, plan: _StagePlan, need: NodeNeed, saved: Mapping[Any, Any]) -> bool:
        node, coords, _ = need
        if node not in self.level or node in self.reduced:
            return True
        return self._is_saved(plan, node, coords)

    def _is_saved(self, plan: _StagePlan, node: Node, coords: Coords) -> bool:
        """Whether an earlier stage over the same axes saved the value."""
        origin = self.saved_in.get((node, coords))
        return origin is not None and origin is not plan and origin.axes == plan.axes

    def _depends(
        self, plan: _StagePlan, need: NodeNeed, saved: Mapping[Any, Any]
    ) -> list[NodeNeed]:
        node, coords, mask = need
        if self._is_leaf(plan, need, saved):
            if node in self.level:
                return []
            found: list[NodeNeed] = []
        else:
            found = list(views.operand_needs(node, coords, mask))
        positions = [
            atom.key
            for index in (*coords, *(condition.index for condition in mask))
            for atom in data_atoms(index)
        ]
        return [*positions, *found]

    def _element(
        self,
        body: _Body,
        plan: _StagePlan,
        need: NodeNeed,
        values: dict[Any, int],
        saved: Mapping[Any, Any],
    ) -> int:
        node, coords, mask = need
        dtype = compute_dtype(node.type.dtype)
        if node in self.reduced:
            return body.add(Instr("result", (), dtype, value=self.results[node, coords][0]))
        entry = saved.get((node, coords))
        if self._is_saved(plan, node, coords):
            assert entry is not None
            return body.add(Instr("saved", (), dtype, index=entry[2], value=entry[0]))
        if node not in self.level:
            return self._load(body, node, coords, mask, values)
        needs = views.operand_needs(node, coords, mask)
        args = [values[each] for each in needs]
        if node.primitive.family is Family.GATHER:
            self._check_positions(body, needs, values)
        value = views.emit(body, self, node, coords, args, values)
        if entry is not None and entry[1] == plan.number and not mask:
            self.saved_in[node, coords] = plan
            body.add(Instr("save", (value,), dtype, index=entry[2], value=entry[0]))
        return value

    def _load(
        self, body: _Body, node: Node, coords: Coords, mask: Mask, values: dict[Any, int]
    ) -> int:
        buffer = self.buffer_of(node)
        assert buffer is not None
        offset = flatten(list(coords), buffer.strides) + buffer.offset
        param = self.param(node, buffer, written=False)
        index = self.resolve(body, offset, values)
        conditions = self.resolve_mask(body, mask, values)
        dtype = compute_dtype(node.type.dtype)
        return body.add(Instr("load", (), dtype, param, index, conditions))

    def resolve(self, body: _Body, index: Index, values: dict[Any, int]) -> Index:
        """`index` with positions read from data replaced by checked scalar values."""
        atoms = data_atoms(index)
        if not atoms:
            return index
        replacements = {}
        for atom in atoms:
            number = self._checked(body, atom, values)
            replacements[atom] = Index({Loaded(number, atom.size): 1})
        return substitute(index, replacements)

    def resolve_mask(self, body: _Body, mask: Mask, values: dict[Any, int]) -> Mask:
        return tuple(
            replace(condition, index=self.resolve(body, condition.index, values))
            for condition in mask
        )

    def _check_positions(
        self, body: _Body, needs: Sequence[NodeNeed], values: dict[Any, int]
    ) -> None:
        """Positions are checked even where no address depends on them, as in an axis of size 1."""
        for _, coords, _ in needs[-1:]:
            for index in coords:
                for atom in data_atoms(index):
                    if atom.key in values:
                        self._checked(body, atom, values)

    def _checked(self, body: _Body, atom: Loaded, values: dict[Any, int]) -> int:
        key = ("checked", atom)
        if key not in values:
            node = atom.key[0]
            site = self.check_site(node.where)
            value = (atom.size, site, self.status_param)
            position = values[atom.key]
            if node.type.dtype is not int64:
                position = body.add(Instr("cast", (position,), int64, value=int64))
            values[key] = body.add(Instr("check", (position,), int64, value=value))
        return values[key]

    def param(self, node: Node, buffer: Buffer, written: bool) -> int:
        """The number of the parameter for `node`; a node both read and written has one."""
        number = self._param_of.get(node)
        if number is None:
            number = len(self.params)
            self._param_of[node] = number
            name = ("out" if written else "in") + str(number)
            self.params.append(Param(name, node.type.dtype, buffer.elements, written))
            self.param_nodes.append(node)
        elif written and not self.params[number].written:
            old = self.params[number]
            self.params[number] = Param(old.name, old.dtype, old.elements, True)
        return number

    def check_site(self, where: Provenance) -> int:
        """The number of a check made for the line `where`; adds the status parameter."""
        if "status" not in self._param_of:
            self._param_of["status"] = len(self.params)
            self.params.append(Param("status", int64, 8, True))
            self.param_nodes.append(None)
        self.checks.append(where)
        return len(self.checks) - 1

    @property
    def status_param(self) -> int:
        return self._param_of["status"]

    def _emit_root(
        self, body: _Body, root: Root, coords: Coords, result: Coords, values: Mapping[Any, int]
    ) -> None:
        node = root.node
        if node not in self.reduced:
            if root.stored:
                self._store(body, node, coords, values[node, coords, ()])
            return
        args = [values[node.inputs[0], coords, ()]]
        name = node.primitive.name
        if name in ("argmax", "argmin"):
            position = coords[node.attrs["axes"][0]]
            args.append(body.add(Instr("index", (), int64, index=position)))
        number = self.results[node, result][0]
        dtype = compute_dtype(node.inputs[0].type.dtype)
        body.add(Instr("reduce", tuple(args), dtype, value=(number, name)))

    def _store(self, body: _Body, node: Node, coords: Coords, value: int) -> None:
        buffer = Buffer.contiguous(node.shape)
        param = self.param(node, buffer, written=True)
        index = flatten(list(coords), buffer.strides)
        dtype = compute_dtype(node.type.dtype)
        body.add(Instr("store", (value,), dtype, param, index))


class _StagePlan:
    """What one stage must produce and, per node, the coordinates at which it is needed."""

    def __init__(self, number: int, axes: tuple[Axis, ...]) -> None:
        self.number = number
        self.axes = axes
        self.targets: list[tuple[Root, Coords, Coords]] = []
        self.finished: list[tuple[Root, Coords]] = []
        self.needs: dict[Node, dict[Need, None]] = {}

    def need(self, node: Node, coords: Coords, mask: Mask) -> None:
        self.needs.setdefault(node, {})[coords, mask] = None


class _Body:
    """Instructions under construction; equal pure instructions are one."""

    def __init__(self) -> None:
        self.instrs: list[Instr] = []
        self._known: dict[Instr, int] = {}

    def add(self, instr: Instr) -> int:
        if instr.op in EFFECTS:
            self.instrs.append(instr)
            return len(self.instrs) - 1
        key = _const_key(instr)
        if key not in self._known:
            self._known[key] = len(self.instrs)
            self.instrs.append(instr)
        return self._known[key]

    def constant(self, value: Any, dtype: DType) -> int:
        return self.add(Instr("const", (), dtype, value=np.dtype(dtype.numpy).type(value).item()))

    def without_dead(self) -> tuple[Instr, ...]:
        """The instructions that an effect depends on, renumbered."""
        live: set[int] = set()
        for number in range(len(self.instrs) - 1, -1, -1):
            instr = self.instrs[number]
            if instr.op in EFFECTS or number in live:
                live.add(number)
                live.update(instr.args)
                live.update(loaded_values(instr))
        if len(live) == len(self.instrs):
            return tuple(self.instrs)
        new = {old: position for position, old in enumerate(sorted(live))}
        return tuple(_renumber(self.instrs[old], new) for old in sorted(live))


def row_sizes(root: Root) -> tuple[int, ...]:
    """The sizes of a root's row axes, without those of size 1."""
    shape = iteration_shape(root.node)
    return tuple(n for n, is_row in zip(shape, root.dims, strict=True) if is_row and n != 1)


def inner_sizes(root: Root) -> tuple[int, ...]:
    """The sizes of the axes of a root's stage, without those of size 1."""
    shape = iteration_shape(root.node)
    return tuple(n for n, is_row in zip(shape, root.dims, strict=True) if not is_row and n != 1)


def loaded_values(instr: Instr) -> list[int]:
    """The scalar values that an instruction's addresses and conditions depend on."""
    indices = [condition.index for condition in instr.mask]
    if instr.index is not None:
        indices.append(instr.index)
    return [atom.key for index in indices for atom in data_atoms(index)]


def _renumber(instr: Instr, new: Mapping[int, int]) -> Instr:
    args = tuple(new[arg] for arg in instr.args)
    used = loaded_values(instr)
    if not used:
        return replace(instr, args=args) if args != instr.args else instr
    indices = [condition.index for condition in instr.mask]
    if instr.index is not None:
        indices.append(instr.index)
    table = {
        atom: Index({Loaded(new[atom.key], atom.size): 1})
        for index in indices
        for atom in data_atoms(index)
    }
    mask = tuple(replace(each, index=substitute(each.index, table)) for each in instr.mask)
    index = None if instr.index is None else substitute(instr.index, table)
    return replace(instr, args=args, index=index, mask=mask)


def _const_key(instr: Instr) -> Instr:
    """Constants compare by their bits: -0.0 is not 0.0, and NaN is itself."""
    if instr.op != "const":
        return instr
    return replace(instr, value=attr_key(instr.value))
