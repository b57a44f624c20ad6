"""The body of a stage under construction, and the parameters that bodies of a kernel share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ...runtime.dtypes import DType, bool_, int64
from ...runtime.records import replace
from ..ir import Node
from ..ir.node import attr_key
from ..ir.size_number import computed
from .checks import Check
from .index import Index, Loaded, Mask, data_atoms, substitute
from .kernel import EFFECTS, Instr, Param
from .kernel_io import BufferLayout
from .views import Need, decided


@cache
def _value_of(dtype: DType) -> Callable[[Any], Any]:
    return partial(_value, np.dtype(dtype.numpy).type)


def _value(type_: Callable[[Any], Any], value: Any) -> Any:
    """The Python number that a type makes of one."""
    return type_(value).item()


class Parameters:
    """The parameters of a kernel, in the order in which instructions first use them.

    `nodes` tells whose memory each is, None for the status; `checks` what instructions check.
    """

    def __init__(self) -> None:
        self.params: list[Param] = []
        self.nodes: list[Node | None] = []
        self.checks: list[Check] = []
        self._number: dict[Node, int] = {}
        self._status: int | None = None

    def number_of(self, node: Node, buffer: BufferLayout, written: bool) -> int:
        """The number of the parameter for `node`; a node both read and written has one."""
        number = self._number.get(node)
        if number is None:
            number = self._number[node] = len(self.params)
            name = ("out" if written else "in") + str(number)
            self._add(Param(name, node.type.dtype, buffer.elements, written), node)
        elif written and not self.params[number].written:
            self.params[number] = replace(self.params[number], written=True)
        return number

    def check_site(self, check: Check) -> tuple[int, int]:
        """The number of a check, and the parameter that it reports to."""
        if self._status is None:
            self._status = len(self.params)
            self._add(Param("status", int64, 8, True), None)
        self.checks.append(check)
        return len(self.checks) - 1, self._status

    def _add(self, param: Param, node: Node | None) -> None:
        self.params.append(param)
        self.nodes.append(node)


class Body:
    """Instructions in order, each known by its number; equal pure instructions are one.

    `values` tells which instruction holds a needed element.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.instrs: list[Instr] = []
        self.values: dict[Need, int] = {}
        self._known: dict[Instr, int] = {}
        self._checked: dict[Loaded, int] = {}

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
        return self.add(Instr("const", (), dtype, value=computed(_value_of(dtype), value)))

    # -- positions that are data ---------------------------------------------------------

    def resolve(self, index: Index) -> Index:
        """`index` with positions read from data replaced by checked scalar values."""
        atoms = data_atoms(index)
        if not atoms:
            return index
        return substitute(index, {a: Index({Loaded(self.checked(a), a.size): 1}) for a in atoms})

    def resolve_mask(self, mask: Mask) -> Mask:
        return tuple(replace(each, index=self.resolve(each.index)) for each in mask)

    def checked(self, atom: Loaded) -> int:
        """The value of a position after its check, which is made once."""
        if atom not in self._checked:
            node: Node
            node, _, mask = atom.key
            position = self.values[atom.key]
            wanted = None if self._is_zero_outside(position, mask) else self.wanted(mask)
            if node.type.dtype is not int64:
                position = self.add(Instr("cast", (position,), int64, value=int64))
            if wanted is not None:
                zero = self.constant(0, int64)
                position = self.add(Instr("where", (wanted, position, zero), int64))
            self._checked[atom] = self.check(Check(node.where), position, atom.size)
        return self._checked[atom]

    def wanted(self, mask: Mask) -> int | None:
        """The value that tells whether all conditions hold; None where they always do."""
        open_ones = tuple(each for each in mask if decided(each) is not True)
        if not open_ones:
            return None
        return self.add(Instr("condition", (), bool_, mask=self.resolve_mask(open_ones)))

    def _is_zero_outside(self, value: int, mask: Mask) -> bool:
        """Whether a value is read from memory under these conditions, and so 0 where one fails."""
        instr = self.instrs[value]
        return instr.op == "load" and instr.mask == self.resolve_mask(mask)

    def check(self, check: Check, value: int, size: int) -> int:
        """Report it where a value, an int64, is outside [0, size)."""
        site, status = self.parameters.check_site(check)
        return self.add(Instr("check", (value,), int64, value=(size, site, status)))

    # -- the finished body ---------------------------------------------------------------

    def without_dead(self) -> tuple[Instr, ...]:
        """The instructions that an effect depends on, renumbered."""
        needed = sorted(live(self.instrs))
        if len(needed) == len(self.instrs):
            return tuple(self.instrs)
        new = {old: position for position, old in enumerate(needed)}
        return tuple(renumber(self.instrs[old], new) for old in needed)


def live(instrs: Sequence[Instr]) -> set[int]:
    """The numbers of the instructions that have effects, or that one of these needs."""
    found: set[int] = set()
    for number in range(len(instrs) - 1, -1, -1):
        instr = instrs[number]
        if instr.op in EFFECTS or number in found:
            found.add(number)
            found.update(instr.args)
            found.update(atom.key for atom in _loaded(instr))
    return found


def _loaded(instr: Instr) -> list[Loaded]:
    """The scalar values that an instruction's addresses and conditions depend on."""
    return [atom for index in instr.indices for atom in data_atoms(index)]


def renumber(instr: Instr, new: Mapping[int, int]) -> Instr:
    """An instruction whose operands, also those of its addresses, have got new numbers."""
    args = tuple(new[arg] for arg in instr.args)
    loaded = _loaded(instr)
    if not loaded:
        return replace(instr, args=args) if args != instr.args else instr
    table = {atom: Index({Loaded(new[atom.key], atom.size): 1}) for atom in loaded}
    return replace(instr.with_indices(lambda index: substitute(index, table)), args=args)


def _const_key(instr: Instr) -> Instr:
    """Constants compare by their bits: -0.0 is not 0.0, and NaN is itself."""
    if instr.op != "const":
        return instr
    return replace(instr, value=attr_key(instr.value))
