"""Lowering, second half: the scalar instructions of every stage that was planned.

Producers come first, and each needed element becomes instructions once. Whatever lies outside the
kernel is a load; a reduction that an earlier stage completed is a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...runtime.dtypes import DType, bool_, int64
from ...runtime.records import record
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.monoids import MONOID_OF
from .body import Body, Parameters
from .checks import Check
from .index import Coords, Mask, data_atoms, flatten, positions_in
from .kernel import Instr, Stage, compute_dtype
from .kernel_io import BufferLayout
from .lower_elements import emit
from .stages import (
    Contract,
    Element,
    KernelPlan,
    Reduce,
    Scan,
    Scatter,
    StagePlan,
    Store,
    SumOfRows,
    Target,
)
from .views import Need


def write_stages(
    plan: KernelPlan,
    buffer_of: Callable[[Node], BufferLayout | None],
    layout_of: Callable[[Node], BufferLayout],
    parameters: Parameters,
) -> tuple[Stage, ...]:
    """The stages with their bodies; those that have nothing to do are left out."""
    saved_in: dict[Element, StagePlan] = {}
    writers = [
        _StageWriter(plan, each, buffer_of, layout_of, Body(parameters), saved_in)
        for each in plan.stages
    ]
    stages = [Stage(writer.stage.axes, writer.write()) for writer in writers]
    return tuple(stage for stage in stages if stage.body)


@record()
class _StageWriter:
    """Writes the body of one stage. `saved_in` tells which stage has saved an element."""

    plan: KernelPlan
    stage: StagePlan
    buffer_of: Callable[[Node], BufferLayout | None]
    layout_of: Callable[[Node], BufferLayout]
    body: Body
    saved_in: dict[Element, StagePlan]

    def write(self) -> tuple[Instr, ...]:
        for target in self.stage.targets:
            self._pull(target.needs)
            if isinstance(target, Scan):
                self._scan(target)
        for target in self.stage.targets:
            self._write(target)
        for store in self.stage.finished:
            self._pull(store.needs)
            self._store(store)
        return self.body.without_dead()

    # -- elements ------------------------------------------------------------------------

    def _pull(self, needs: Iterable[Need]) -> None:
        """Write `needs`, producers first; an explicit stack, since positions add edges."""
        values = self.body.values
        pending = list(needs)
        while pending:
            need = pending[-1]
            missing = [each for each in self._depends(need) if each not in values]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if need not in values:
                values[need] = self._element(need)

    def _depends(self, need: Need) -> list[Need]:
        """What has to be written before `need`."""
        node, coords, mask = need
        found: Sequence[Need] = ()
        if node in self.plan.nodes:
            element = node, coords
            if element in self.plan.results or element in self.plan.running:
                return []
            if self._is_saved(node, coords):
                return []
            found = self.stage.operands(need)
        return [*positions_in(coords, mask), *found]

    def _is_saved(self, node: Node, coords: Coords) -> bool:
        """Whether an earlier stage over the same axes saved the value."""
        origin = self.saved_in.get((node, coords))
        if origin is None or origin is self.stage:
            return False
        return origin.axes == self.stage.axes

    def _element(self, need: Need) -> int:
        """Write one element; gives the number of its value."""
        node, coords, mask = need
        body, dtype = self.body, compute_dtype(node.type.dtype)
        result = self.plan.results.get((node, coords))
        if result is not None:
            return self._rounded(node, body.add(Instr("result", (), dtype, value=result)))
        if (node, coords) in self.plan.running:
            return body.values[node, coords, ()]
        saved = self.plan.saved.get((node, coords))
        if saved is not None and self._is_saved(node, coords):
            return body.add(Instr("saved", (), dtype, index=saved.slot, value=saved.number))
        if node not in self.plan.nodes:
            return self._load(need)
        needs = self.stage.operands(need)
        if node.primitive.family is Family.GATHER:
            self._check_positions(needs[-1])
        if node.primitive in (p.floor_divide, p.remainder) and node.type.dtype.is_integral:
            self._check_divisor(node, needs[1])
        if node.primitive is p.require:
            wrong = body.add(Instr("logical_not", (body.values[needs[0]],), bool_))
            self._report(Check(node.where, node.attrs["message"]), wrong, mask)
        value = emit(body, node, coords, [body.values[each] for each in needs])
        value = self._rounded(node, value)
        if saved is not None and saved.stage == self.stage.number and not mask:
            self.saved_in[node, coords] = self.stage
            body.add(Instr("save", (value,), dtype, index=saved.slot, value=saved.number))
        return value

    def _rounded(self, node: Node, value: int) -> int:
        """The value as it lies in memory, where later instructions must read it as such."""
        if node not in self.plan.rounded:
            return value
        dtype = node.type.dtype
        return self.body.add(Instr("cast", (value,), compute_dtype(dtype), value=dtype))

    def _load(self, need: Need) -> int:
        node, coords, mask = need
        buffer = self.buffer_of(node)
        assert buffer is not None
        param = self.body.parameters.number_of(node, buffer, written=False)
        index = self.body.resolve(flatten(coords, buffer.strides) + buffer.offset)
        conditions = self.body.resolve_mask(mask)
        dtype = compute_dtype(node.type.dtype)
        return self.body.add(Instr("load", (), dtype, param, index, conditions))

    def _check_positions(self, read: Need) -> None:
        """Positions are checked even where no address depends on them, as in an axis of size 1."""
        for index in read[1]:
            for atom in data_atoms(index):
                if atom.key in self.body.values:
                    self.body.checked(atom)

    def _check_divisor(self, node: Node, divisor: Need) -> None:
        """Integers are not divided by zero, where the element is wanted at all."""
        body, value = self.body, self.body.values[divisor]
        known = body.instrs[value]
        if known.op == "const" and known.value != 0:
            return
        zero = body.constant(0, node.type.dtype)
        wrong = body.add(Instr("eq", (value, zero), bool_))
        self._report(Check(node.where, "ZeroDivisionError"), wrong, divisor[2])

    def _report(self, check: Check, wrong: int, mask: Mask) -> None:
        """Report a check where a value is true, if the element is wanted at all."""
        body, wanted = self.body, self.body.wanted(mask)
        if wanted is not None:
            wrong = body.add(Instr("logical_and", (wanted, wrong), bool_))
        position = body.add(Instr("cast", (wrong,), int64, value=int64))
        body.check(check, position, 1)

    # -- targets -------------------------------------------------------------------------

    def _write(self, target: Target) -> None:
        match target:
            case Store():
                self._store(target)
            case Reduce():
                self._reduce(target)
            case SumOfRows():
                self._store(target, ("sum", self.plan.summed[target.node, target.coords]))
            case Contract():
                self._contract(target)
            case Scan() if target.stored:
                self._store(Store((target.node, target.coords, ()), target.node, target.coords))
            case Scatter():
                how = "add" if target.node.attrs.get("accumulate", True) else "put"
                self._store(target, how)

    def _store(self, target: Store | Scatter | SumOfRows, how: Any = None) -> None:
        node = target.node
        buffer = self.layout_of(node)
        index = self.body.resolve(flatten(target.coords, buffer.strides))
        param = self.body.parameters.number_of(node, buffer, written=True)
        args = (self._unrounded(self.body.values[target.value], node.type.dtype),)
        dtype = compute_dtype(node.type.dtype)
        self.body.add(Instr("store", args, dtype, param, index, value=how))

    def _unrounded(self, value: int, dtype: DType) -> int:
        """A value before it was rounded, for a store, which does so itself."""
        instr = self.body.instrs[value]
        if instr.op != "cast" or instr.value is not dtype or not dtype.is_half:
            return value
        is_float32 = self.body.instrs[instr.args[0]].dtype is instr.dtype
        return instr.args[0] if is_float32 else value

    def _scan(self, target: Scan) -> None:
        node, number = target.node, self.plan.running[target.node, target.coords]
        args = tuple(self.body.values[need] for need in target.needs)
        dtype = compute_dtype(node.type.dtype)
        value = self.body.add(Instr("scan", args, dtype, value=(number, MONOID_OF[node.primitive])))
        self.body.values[node, target.coords, ()] = self._rounded(node, value)

    def _contract(self, target: Contract) -> None:
        args = tuple(self.body.values[need] for need in target.needs)
        number = self.plan.results[target.node, target.coords]
        dtype = compute_dtype(target.node.type.dtype)
        self.body.add(Instr("contract", args, dtype, value=number))

    def _reduce(self, target: Reduce) -> None:
        node, (operand, coords, _) = target.node, target.value
        args = [self.body.values[target.value]]
        monoid = MONOID_OF[node.primitive]
        if monoid.is_position:
            position = coords[node.attrs["axes"][0]]
            args.append(self.body.add(Instr("index", (), int64, index=position)))
        number = self.plan.results[node, target.coords]
        dtype = compute_dtype(operand.type.dtype)
        self.body.add(Instr("reduce", tuple(args), dtype, value=(number, monoid)))
