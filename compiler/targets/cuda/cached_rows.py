"""Rows that several stages of a kernel load are loaded once and cached.

They are scratch rows of the type that they have in memory; where they lie is left to a schedule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod

from ....runtime.dtypes import DType
from ....runtime.records import NamedTuple, replace
from ...ir.shapes import contiguous_strides
from ...kernel.body import renumber
from ...kernel.index import Axis, Index, data_atoms, flatten, loop_atoms, of_axis
from ...kernel.kernel import Instr, Kernel, Stage


def cached_rows(kernel: Kernel) -> Iterator[Kernel]:
    """`kernel` with elements that several stages over the same axes load loaded only once.

    The first stage saves them in a scratch row, whose elements stay with the thread that loaded
    them. First with all such rows, then with fewer and fewer, those that most stages load, and at
    last as it is.
    """
    again = _loaded_again(kernel)
    by_use = sorted(again, key=lambda element: -len(again[element]))
    for count in range(len(again), 0, -1):
        yield _caching(kernel, {element: again[element] for element in by_use[:count]})
    yield kernel


def _caching(kernel: Kernel, again: Mapping[_Element, list[int]]) -> Kernel:
    row = {element: len(kernel.scratch) + number for number, element in enumerate(again)}
    stages = []
    for number, stage in enumerate(kernel.stages):
        loads = {element: row[element] for element, users in again.items() if number in users}
        firsts = {element for element in loads if again[element][0] == number}
        stages.append(_caching_stage(kernel, stage, loads, firsts))
    sizes = [
        (kernel.params[element.param].dtype, prod(axis.size for axis in element.axes))
        for element in again
    ]
    return replace(kernel, stages=tuple(stages), scratch=(*kernel.scratch, *sizes))


def _loaded_again(kernel: Kernel) -> dict[_Element, list[int]]:
    """What several stages load, and could cache, with the numbers of these stages."""
    loaded: dict[_Element, list[int]] = {}
    for number, stage in enumerate(kernel.stages):
        for element in filter(None, (_loaded_element(kernel, stage, each) for each in stage.body)):
            loaded.setdefault(element, []).append(number)
    return {element: stages for element, stages in loaded.items() if len(stages) > 1}


class _Element(NamedTuple):
    """What a load reads."""

    param: int
    at: Index
    axes: tuple[Axis, ...]
    dtype: DType


def _loaded_element(kernel: Kernel, stage: Stage, instr: Instr) -> _Element | None:
    """What an instruction loads, if a thread can cache it for a later stage."""
    if instr.op != "load" or instr.mask or kernel.params[instr.param].written:
        return None
    assert instr.index is not None
    atoms = loop_atoms(instr.index)
    if data_atoms(instr.index) or atoms.isdisjoint(stage.axes):
        return None
    if kernel.sums_of_rows and atoms.isdisjoint(kernel.rows):
        return None  # a block that walks over rows finds it in the nearest cache
    return _Element(instr.param, instr.index, stage.axes, instr.dtype)


def _caching_stage(
    kernel: Kernel, stage: Stage, rows: Mapping[_Element, int], firsts: Collection[_Element]
) -> Stage:
    """A stage that saves the elements it is the first to load, and takes the others."""
    sizes = tuple(axis.size for axis in stage.axes)
    slot = flatten(list(map(of_axis, stage.axes)), contiguous_strides(sizes))
    body: list[Instr] = []
    new: dict[int, int] = {}
    for old, instr in enumerate(stage.body):
        element = _loaded_element(kernel, stage, instr)
        row = rows.get(element) if element is not None else None
        new[old] = len(body)
        if row is not None and element not in firsts:
            body.append(Instr("saved", (), instr.dtype, index=slot, value=row))
            continue
        body.append(renumber(instr, new))
        if row is not None:
            body.append(Instr("save", (new[old],), instr.dtype, index=slot, value=row))
    return Stage(stage.axes, tuple(body))
