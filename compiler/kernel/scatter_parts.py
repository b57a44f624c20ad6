"""A scatter's kernel as several that run one after another.

Its first stage writes the base, its second one scatters into that. Apart, the base is written by
all threads along memory, and not at all where the scatter goes on in the memory of the base. That
may be the memory of somebody else, so what is checked must be checked before: a failed call leaves
memory as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...runtime.dtypes import int64
from ...runtime.records import NamedTuple, replace
from .body import live, renumber
from .index import Axis, loop_atoms
from .kernel import Instr, Kernel, Stage

# Bytes of a base that are worth a kernel of their own, and elements of a scatter that are.
APART = LONG = 1 << 16


class ScatterPart(NamedTuple):
    """A kernel that does one part, which `role` names; `params` are those of the whole one."""

    role: str
    kernel: Kernel
    params: tuple[int, ...]


def scatter_parts(kernel: Kernel, on_base: bool, is_checked: bool) -> list[ScatterPart]:
    """The kernels that do what `kernel` does.

    `on_base`: the result is in the memory of the base. `is_checked`: `checks_of` has run.
    """
    base, scatter = kernel.stages
    rest = replace(scatter, body=_unchecked(scatter.body)) if is_checked else scatter
    if on_base:
        return [_part(kernel, "", kernel.rows, (rest,))]
    is_short = prod(axis.size for axis in (*kernel.rows, *scatter.axes)) < LONG
    if (_base_bytes(kernel) < APART and is_short) or _folds(base):
        return [_part(kernel, "", kernel.rows, (base, rest))]
    rows = _along_memory(base, (*kernel.rows, *base.axes))
    flat = _part(kernel, "base", rows, (replace(base, axes=()),))
    return [flat, _part(kernel, "", kernel.rows, (rest,))]


def checks_of(kernel: Kernel) -> ScatterPart | None:
    """The checks of the scatter alone; None where its base has some too."""
    base, scatter = kernel.stages
    if any(instr.op == "check" for instr in base.body):
        return None
    nothing = Instr("const", value=0)
    body = _alive([nothing if each.op == "store" else each for each in scatter.body])
    used = {axis for instr in body for index in instr.indices for axis in loop_atoms(index)}
    rows = tuple(axis for axis in (*kernel.rows, *scatter.axes) if axis in used)
    return _part(kernel, "check", rows, (Stage((), body),))


def copies_base(kernel: Kernel, base: int, result: int) -> bool:
    """Whether parameter `base` is read only to be copied, element by element, to `result`."""
    first, *others = kernel.stages
    stores = [instr for instr in first.body if instr.op == "store"]
    loads = [instr for instr in first.body if instr.op == "load"]
    elsewhere = any(i.op == "load" and i.param == base for stage in others for i in stage.body)
    if elsewhere or len(first.body) != 2 or len(stores) != 1 or len(loads) != 1:
        return False
    (store,), (load,) = stores, loads
    same = load.index == store.index and not load.mask and store.args == (0,)
    return same and load.param == base and store.param == result


def _part(
    kernel: Kernel, role: str, rows: tuple[Axis, ...], stages: tuple[Stage, ...]
) -> ScatterPart:
    """The kernel of some stages, with the parameters that these use."""
    used = {_status(each) for stage in stages for each in stage.body}
    used |= {each.param for stage in stages for each in stage.body}
    params = tuple(number for number in range(len(kernel.params)) if number in used)
    new = {old: number for number, old in enumerate(params)}
    moved = tuple(
        replace(stage, body=tuple(_moved(each, new) for each in stage.body)) for stage in stages
    )
    given = tuple(kernel.params[number] for number in params)
    return ScatterPart(role, replace(kernel, params=given, rows=rows, stages=moved), params)


def _status(instr: Instr) -> int:
    return instr.value[2] if instr.op == "check" else -1


def _moved(instr: Instr, new: dict[int, int]) -> Instr:
    if instr.op == "check":
        size, site, status = instr.value
        return replace(instr, value=(size, site, new[status]))
    return replace(instr, param=new[instr.param]) if instr.param >= 0 else instr


def _unchecked(body: Sequence[Instr]) -> tuple[Instr, ...]:
    """The same instructions, for positions that are known to be inside."""
    return tuple(
        replace(each, op="cast", value=int64) if each.op == "check" else each for each in body
    )


def _alive(instrs: Sequence[Instr]) -> tuple[Instr, ...]:
    needed = sorted(live(instrs))
    new = {old: number for number, old in enumerate(needed)}
    return tuple(renumber(instrs[old], new) for old in needed)


def _folds(stage: Stage) -> bool:
    return any(each.op in ("reduce", "result", "scan", "save", "saved") for each in stage.body)


def _base_bytes(kernel: Kernel) -> int:
    base = kernel.stages[0]
    store = next(each for each in base.body if each.op == "store")
    elements = prod(axis.size for axis in (*kernel.rows, *base.axes))
    return elements * kernel.params[store.param].dtype.itemsize


def _along_memory(stage: Stage, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Axes from the one along which the stage stores farthest apart to the nearest."""
    store = next(each for each in stage.body if each.op == "store")
    assert store.index is not None
    terms = store.index.terms
    return tuple(sorted(axes, key=lambda axis: -abs(terms.get(axis, 0))))
