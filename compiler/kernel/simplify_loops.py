"""The loops of a Kernel in their simplest form, which schedules start from.

Axes of size 1 vanish, axes that only occur in parts (under quotients) are split, and neighbouring
axes that every access walks together are merged into one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from ...runtime.records import replace
from .index import Axis, Index, Quotient, Remainder, of_axis, substitute
from .kernel import Kernel, Stage


def simplify_loops(kernel: Kernel) -> Kernel:
    """Split axes that only occur in parts, then merge neighbours that walk together."""
    kernel = _drop_unit_axes(kernel)
    while (split := _splittable(kernel)) is not None:
        kernel = _split(kernel, *split)
    while (pair := _mergeable(kernel)) is not None:
        kernel = _merge(kernel, *pair)
    return kernel


def has_quotients(kernel: Kernel) -> bool:
    """Whether some access or condition divides positions."""
    return any(
        isinstance(atom, (Quotient, Remainder))
        for index in _all_indices(kernel)
        for atom in index.terms
    )


def map_indices(kernel: Kernel, change: Callable[[Index], Index]) -> Kernel:
    """`kernel` with every index expression changed."""
    stages = tuple(
        Stage(stage.axes, tuple(instr.with_indices(change) for instr in stage.body))
        for stage in kernel.stages
    )
    return replace(kernel, stages=stages)


def _all_indices(kernel: Kernel) -> Iterable[Index]:
    """Every index expression once, in the order of the text: sets would differ between runs."""
    return dict.fromkeys(index for instr in kernel.instructions() for index in instr.indices)


def _replace_axes(kernel: Kernel, old: tuple[Axis, ...], new: tuple[Axis, ...]) -> Kernel:
    """Put `new` in the place of the neighbours `old`, in whichever loop nest they are."""

    def swap(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        if old[0] not in axes:
            return axes
        at = axes.index(old[0])
        return (*axes[:at], *new, *axes[at + len(old) :])

    stages = tuple(Stage(swap(stage.axes), stage.body) for stage in kernel.stages)
    return replace(kernel, rows=swap(kernel.rows), stages=stages)


def _drop_unit_axes(kernel: Kernel) -> Kernel:
    stages = tuple(
        Stage(tuple(axis for axis in stage.axes if axis.size != 1), stage.body)
        for stage in kernel.stages
    )
    return replace(kernel, rows=tuple(a for a in kernel.rows if a.size != 1), stages=stages)


def _splittable(kernel: Kernel) -> tuple[Axis, int] | None:
    """An axis that occurs under a quotient or remainder whose divisor divides its size."""
    for index in _all_indices(kernel):
        pending = [index]
        while pending:
            for atom in pending.pop().terms:
                if not isinstance(atom, (Quotient, Remainder)):
                    continue
                pending.append(atom.index)
                for axis, coefficient in atom.index.terms.items():
                    if not isinstance(axis, Axis) or atom.divisor % coefficient:
                        continue
                    inner = atom.divisor // coefficient
                    if 1 < inner < axis.size and axis.size % inner == 0:
                        return axis, inner
    return None


def _split(kernel: Kernel, axis: Axis, inner: int) -> Kernel:
    high, low = Axis(f"{axis.name}h", axis.size // inner), Axis(f"{axis.name}l", inner)
    table = {axis: of_axis(high) * inner + of_axis(low)}
    kernel = _replace_axes(kernel, (axis,), (high, low))
    return map_indices(kernel, lambda index: substitute(index, table))


def _mergeable(kernel: Kernel) -> tuple[Axis, Axis] | None:
    nests = {kernel.rows, *(stage.axes for stage in kernel.stages)}
    indices = _all_indices(kernel)
    for axes in sorted(nests, key=str):
        for outer, inner in itertools.pairwise(axes):
            if all(_walks_together(index, outer, inner) for index in indices):
                return outer, inner
    return None


def _walks_together(index: Index, outer: Axis, inner: Axis) -> bool:
    if index.terms.get(outer, 0) != index.terms.get(inner, 0) * inner.size:
        return False
    return not any(
        isinstance(atom, (Quotient, Remainder)) and mentions(atom.index, (outer, inner))
        for atom in index.terms
    )


def mentions(index: Index, axes: Iterable[Axis]) -> bool:
    wanted = set(axes)
    pending = [index]
    while pending:
        for atom in pending.pop().terms:
            if atom in wanted:
                return True
            if isinstance(atom, (Quotient, Remainder)):
                pending.append(atom.index)
    return False


def _merge(kernel: Kernel, outer: Axis, inner: Axis) -> Kernel:
    merged = Axis(outer.name, outer.size * inner.size)

    def change(index: Index) -> Index:
        if outer not in index.terms and inner not in index.terms:
            return index
        terms = {atom: c for atom, c in index.terms.items() if atom not in (outer, inner)}
        terms[merged] = index.terms[inner]
        return Index(terms, index.const)

    return map_indices(_replace_axes(kernel, (outer, inner), (merged,)), change)
