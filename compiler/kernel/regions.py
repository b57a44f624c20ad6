"""Parts of loops in which conditions are known: a hot interior, and a generic border.

Pads, concatenations, windows and written slices become conditions on loop axes. An axis is cut
where they change; in a part in which each holds or fails throughout, the instructions ask for
nothing. Conditions of divisibility, of strided windows, alternate: there the phases of the stride
are written one after another, as if the loop were unrolled.

A part is a substitution: the axis becomes offset + step * counter + phase. What ranges tell then
follows by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from math import gcd, lcm, prod

from ...runtime.records import NamedTuple, record, replace
from .body import live
from .index import Axis, Condition, Divides, Index, of_axis, substitute
from .kernel import Instr, Stage
from .views import decided

# A part of fewer values is not worth instructions of its own.
MIN_PART = 16
MAX_PHASES = 4
MAX_PARTS = 6
# Of the parts of several outer axes together.
MAX_BOXES = 4
# Instructions that the copies of a stage may have together.
MAX_COPIED = 3000


@record()
class Part:
    """The values offset + step * counter + phase in [low, high) of an axis.

    `stages` has the stage for each phase, over `counter` in the place of the axis.
    """

    axis: Axis
    low: int
    high: int
    offset: int
    counter: Axis
    stages: tuple[Stage, ...]

    @property
    def step(self) -> int:
        return len(self.stages)

    @property
    def size(self) -> int:
        return self.high - self.low


def whole(stage: Stage, axis: Axis, low: int = 0, high: int | None = None) -> Part:
    """Values of an axis, with the stage as it is."""
    return Part(axis, low, axis.size if high is None else high, 0, axis, (stage,))


def parts(stage: Stage, axis: Axis) -> list[Part]:
    """The whole of `axis`, cut where conditions on it change."""
    step = period(stage, axis)
    found: list[Part] = []
    for low, high in _cuts(stage, axis):
        if high - low >= MIN_PART:
            found.append(_known(stage, axis, low, high, step))
        elif found and found[-1].counter == axis:
            found[-1] = whole(stage, axis, found[-1].low, high)
        else:
            found.append(whole(stage, axis, low, high))
    copies = sum(part.step for part in found)
    if len(found) > MAX_PARTS or (copies > 1 and copies * len(stage.body) > MAX_COPIED):
        return [whole(stage, axis)]
    return found


def _known(stage: Stage, axis: Axis, low: int, high: int, step: int) -> Part:
    if high - low == axis.size and step == 1:
        return whole(stage, axis)
    counter = _counter(axis, (high - low) // step)
    places = [_place(counter, low, step, phase) for phase in range(step)]
    stages = [within(stage, {axis: (counter, place)}) for place in places]
    return Part(axis, low, high, low, counter, tuple(stages))


def _counter(axis: Axis, size: int) -> Axis:
    return Axis(axis.name + "p", size)


def _place(counter: Axis, offset: int, step: int, phase: int) -> Index:
    return of_axis(counter) * step + (offset + phase)


class Side(NamedTuple):
    """The values low + step * counter + phase below high of an outer axis."""

    axis: Axis
    low: int
    high: int
    step: int
    phase: int

    @property
    def counter(self) -> Axis:
        return _counter(self.axis, -(-(self.high - self.low - self.phase) // self.step))

    @property
    def place(self) -> tuple[Axis, Index]:
        """What stands in the place of the axis: what counts, and the value for it."""
        return self.counter, _place(self.counter, self.low, self.step, self.phase)


class Box(NamedTuple):
    """A stage where outer axes lie in parts of theirs, its sides."""

    stage: Stage
    sides: tuple[Side, ...]


def boxes(stage: Stage, axes: Iterable[Axis]) -> list[Box]:
    """Parts of the space of outer `axes` in which conditions on these are known."""
    found: list[tuple[Side, ...]] = [()]
    for axis in axes:
        sides = _sides(stage, axis, MAX_BOXES // len(found))
        if sides:
            found = [(*box, side) for box in found for side in sides]
    if found == [()] or len(found) * len(stage.body) > MAX_COPIED:
        return []
    return [Box(within(stage, {side.axis: side.place for side in box}), box) for box in found]


def _sides(stage: Stage, axis: Axis, most: int) -> list[Side]:
    """At most so many parts of `axis`, the longest; none where conditions are the same in all."""
    step, cuts = period(stage, axis), _cuts(stage, axis)
    if (step == 1 and len(cuts) == 1) or step > most:
        return []
    cuts.sort(key=lambda cut: cut[0] - cut[1])
    cuts = [cut for cut in cuts[: most // step] if 4 * (cut[1] - cut[0]) >= axis.size]
    return [Side(axis, *cut, step, phase) for cut in cuts for phase in range(step)]


def fill(boxes: Sequence[Box]) -> bool:
    """Whether the boxes are all of the space of their axes."""
    volumes = [prod(side.counter.size for side in box.sides) for box in boxes]
    return bool(boxes) and sum(volumes) == prod(side.axis.size for side in boxes[0].sides)


# -- where conditions change -------------------------------------------------------------------


def _conditions(stage: Stage) -> dict[Condition, None]:
    return dict.fromkeys(each for instr in stage.body for each in instr.mask)


def _cuts(stage: Stage, axis: Axis) -> list[tuple[int, int]]:
    """The axis in pieces, cut where some condition begins or ends to hold, or may do so."""
    found: set[int] = set()
    for condition in _conditions(stage):
        factor = condition.index.terms.get(axis, 0)
        if factor and not isinstance(condition, Divides):
            rest = condition.index + Index({axis: -factor})
            least, most = rest.bounds
            found.update(_crossings(factor, condition.low - least, condition.high - most))
            found.update(_crossings(factor, condition.low - most, condition.high - least))
    inner = sorted(each for each in found if 0 < each < axis.size)
    return list(itertools.pairwise([0, *inner, axis.size]))


def _crossings(factor: int, low: int, high: int) -> tuple[int, ...]:
    """The first value with low <= factor * value < high, and the first behind; none if empty."""
    if factor < 0:
        factor, low, high = -factor, 1 - high, 1 - low
    begin, end = -(-low // factor), -(-high // factor)
    return (begin, end) if begin < end else ()


def period(stage: Stage, axis: Axis) -> int:
    """Steps of `axis` after which conditions of divisibility repeat; 1 for none or too many."""
    found = 1
    for condition in _conditions(stage):
        if isinstance(condition, Divides) and axis in condition.index.terms:
            others = [c for atom, c in condition.index.terms.items() if atom != axis]
            if all(c % condition.divisor == 0 for c in others):
                factor = condition.index.terms[axis]
                found = lcm(found, condition.divisor // gcd(condition.divisor, factor))
    return found if found <= MAX_PHASES else 1


# -- a stage where they are known ----------------------------------------------------------------


def within(stage: Stage, places: Mapping[Axis, tuple[Axis, Index]]) -> Stage:
    """`stage` with axes replaced by others, and without what that decides.

    Instructions keep their numbers; one that nothing needs any more is a constant.
    """
    body: list[Instr] = []
    chosen: dict[int, int] = {}
    table = {axis: index for axis, (_, index) in places.items()}
    for number, old in enumerate(stage.body):
        instr = _decided(old.with_indices(lambda index: substitute(index, table)))
        instr = replace(instr, args=tuple(chosen.get(arg, arg) for arg in instr.args))
        if instr.op == "where" and body[instr.args[0]].op == "const":
            chosen[number] = instr.args[1 if body[instr.args[0]].value else 2]
        body.append(instr)
    axes = [places[axis][0] if axis in places else axis for axis in stage.axes]
    return Stage(tuple(axes), _without_dead(body))


def _decided(instr: Instr) -> Instr:
    """The instruction without conditions that are known."""
    if not instr.mask:
        return instr
    known = [decided(each) for each in instr.mask]
    if instr.op == "condition" and (False in known or all(known)):
        return Instr("const", (), instr.dtype, value=False not in known)
    if False in known:
        return _zero(instr) if instr.op == "load" else instr
    return replace(
        instr, mask=tuple(each for each, is_known in zip(instr.mask, known) if not is_known)
    )


def _zero(instr: Instr) -> Instr:
    value = {"float": 0.0, "bool": False}.get(instr.dtype.kind, 0)
    return Instr("const", (), instr.dtype, value=value)


def _without_dead(body: Sequence[Instr]) -> tuple[Instr, ...]:
    needed = live(body)
    return tuple(each if number in needed else _zero(each) for number, each in enumerate(body))
