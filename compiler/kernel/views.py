"""How each primitive reads its operands: views only say where their elements come from.

`operand_needs(node, coords, mask)` lists which element of which operand makes the element of
`node` at `coords` (`lower_elements` says how). `mask` holds the conditions under which the element
is wanted at all: loads below it must not leave their buffer when it fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from ..ir import Family, Node
from ..ir.dim import fixed
from ..ir.shapes import diagonal_place
from .index import (
    ZERO,
    Condition,
    Coords,
    Divides,
    Index,
    InRange,
    Loaded,
    Mask,
    constant,
    in_range,
    reshape_coords,
)

Need = tuple[Node, Coords, Mask]
"""The element of a node at some coordinates, wanted where the mask holds."""

Needs = list[Need]

NEVER = (InRange(constant(0), 1, 2),)


def reduced_coords(node: Node, coords: Coords) -> Coords:
    """Coordinates in a reduction's result of the operand's element at `coords`."""
    axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
    kept = [ZERO if axis in axes else at for axis, at in enumerate(coords)]
    if keepdims:
        return tuple(kept)
    return tuple(at for axis, at in enumerate(kept) if axis not in axes)


def contracted_operands(node: Node, coords: Coords, inner: Sequence[Index]) -> tuple[Need, Need]:
    """The two elements whose product, added up along `inner`, is an element of a matrix product."""
    a, b = node.inputs
    *lead, row, column = coords
    (along,) = inner
    left = (along, row) if node.attrs["transpose_a"] else (row, along)
    right = (column, along) if node.attrs["transpose_b"] else (along, column)
    first = (*_broadcast_lead(a, lead), *left)
    return (a, first, ()), (b, (*_broadcast_lead(b, lead), *right), ())


def _broadcast_lead(operand: Node, lead: Sequence[Index]) -> Coords:
    """The coordinates along the leading axes of an operand, which broadcast."""
    sizes = operand.shape[:-2]
    own = lead[len(lead) - len(sizes) :]
    return tuple(ZERO if size == 1 else at for size, at in zip(sizes, own, strict=True))


def operand_needs(node: Node, coords: Coords, mask: Mask) -> Needs:
    """The elements (operand, coordinates, mask) from which `node` at `coords` is made."""
    special = _NEEDS.get(node.primitive.name)
    if special is not None:
        return special(node, coords, mask)
    if node.primitive.family is Family.ELEMENTWISE:
        return [(each, _broadcast(each, coords), mask) for each in node.inputs]
    if node.primitive.family is Family.REDUCE:
        return _unrolled(node, coords, mask)
    raise NotImplementedError(f"{node.primitive.name} has no scalar form")


def _broadcast(operand: Node, coords: Coords) -> Coords:
    shape = operand.shape
    if len(shape) == len(coords) and 1 not in shape:
        return coords
    lead = len(coords) - len(shape)
    return tuple(ZERO if size == 1 else at for size, at in zip(shape, coords[lead:], strict=True))


def decided(condition: Condition) -> bool | None:
    """Whether the condition holds, where that is certain; None where it is not."""
    if isinstance(condition, Divides):
        rest = condition.index % condition.divisor
        return None if rest.terms else rest.const == 0
    low, high = condition.index.bounds
    if low >= condition.low and high < condition.high:
        return True
    return False if high < condition.low or low >= condition.high else None


def _under(mask: Mask, conditions: Iterable[Condition]) -> Mask:
    """`mask` and `conditions` together, without what always holds; NEVER if one cannot hold."""
    result = list(mask)
    for condition in conditions:
        outcome = decided(condition)
        if outcome is False:
            return NEVER
        if outcome is None and condition not in result:
            result.append(condition)
    return tuple(result)


def _reshape(node: Node, coords: Coords, mask: Mask) -> Needs:
    (operand,) = node.inputs
    return [(operand, reshape_coords(coords, node.shape, operand.shape), mask)]


def _barrier(node: Node, coords: Coords, mask: Mask) -> Needs:
    return [(node.inputs[0], coords, mask)]


def _permute(node: Node, coords: Coords, mask: Mask) -> Needs:
    at: list[Index] = [ZERO] * len(coords)
    for position, axis in enumerate(node.attrs["axes"]):
        at[axis] = coords[position]
    return [(node.inputs[0], tuple(at), mask)]


def _broadcast_needs(node: Node, coords: Coords, mask: Mask) -> Needs:
    return [(node.inputs[0], _broadcast(node.inputs[0], coords), mask)]


def _slice(node: Node, coords: Coords, mask: Mask) -> Needs:
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    at = tuple(c * step + start for c, start, step in zip(coords, starts, steps, strict=True))
    return [(node.inputs[0], at, mask)]


def _diagonal(node: Node, coords: Coords, mask: Mask) -> Needs:
    (operand,) = node.inputs
    row, column, _ = diagonal_place(operand.shape, node.attrs["offset"])
    *lead, at = coords
    return [(operand, (*lead, at + row, at + column), mask)]


def _flip(node: Node, coords: Coords, mask: Mask) -> Needs:
    axes, shape = node.attrs["axes"], node.shape
    at = tuple(
        constant(shape[axis] - 1) - c if axis in axes else c for axis, c in enumerate(coords)
    )
    return [(node.inputs[0], at, mask)]


def pad_parts(node: Node, coords: Coords) -> tuple[Coords, list[Condition]]:
    """Where the operand's element at `coords` of a pad lies, and when it is not padding."""
    at, conditions = [], list[Condition]()
    shape = node.inputs[0].shape
    low, interior = node.attrs["low"], node.attrs["interior"]
    for axis, c in enumerate(coords):
        spread = interior[axis] + 1
        shifted = c - low[axis]
        conditions.append(in_range(shifted, 0, (shape[axis] - 1) * spread + 1))
        if spread > 1:
            conditions.append(Divides(shifted, spread))
        at.append(shifted // spread)
    return tuple(at), conditions


def _pad(node: Node, coords: Coords, mask: Mask) -> Needs:
    at, conditions = pad_parts(node, coords)
    under = _under(mask, conditions)
    return [] if under == NEVER else [(node.inputs[0], at, under)]


def pieces(node: Node, coords: Coords) -> list[tuple[Node, Coords, InRange]]:
    """The inputs of a concatenation that can hold the element at `coords`."""
    axis, begin, found = node.attrs["axis"], 0, []
    for operand in node.inputs:
        end = begin + operand.shape[axis]
        condition = in_range(coords[axis], begin, end)
        if begin < end and decided(condition) is not False:
            at = (*coords[:axis], coords[axis] - begin, *coords[axis + 1 :])
            found.append((operand, at, condition))
        begin = end
    return found


def _concatenate(node: Node, coords: Coords, mask: Mask) -> Needs:
    return [(each, at, _under(mask, [when])) for each, at, when in pieces(node, coords)]


def update_parts(node: Node, coords: Coords) -> tuple[Coords, list[Condition]]:
    """Where the update's element at `coords` of a slice update lies, and when there is one."""
    at, conditions = [], list[Condition]()
    shape = node.inputs[1].shape
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    for axis, c in enumerate(coords):
        shifted = c - starts[axis]
        conditions.append(in_range(shifted, 0, (shape[axis] - 1) * steps[axis] + 1))
        if steps[axis] > 1:
            conditions.append(Divides(shifted, steps[axis]))
        at.append(shifted // steps[axis])
    return tuple(at), conditions


def _slice_update(node: Node, coords: Coords, mask: Mask) -> Needs:
    base, update = node.inputs
    at, conditions = update_parts(node, coords)
    under = _under(mask, conditions)
    needs: Needs = []
    if under != mask or under == NEVER:  # some elements of the base shine through
        needs.append((base, coords, mask))
    if under != NEVER:
        needs.append((update, at, under))
    return needs


def _unfold(node: Node, coords: Coords, mask: Mask) -> Needs:
    (operand,) = node.inputs
    at = list(coords[: operand.type.ndim])
    for number, axis in enumerate(node.attrs["axes"]):
        tap = coords[operand.type.ndim + number]
        at[axis] = at[axis] * node.attrs["strides"][number] + tap * node.attrs["dilations"][number]
    return [(operand, tuple(at), mask)]


def taps(node: Node, coords: Coords) -> list[tuple[Coords, list[Condition]]]:
    """The window elements of a fold that land on `coords` where their conditions hold."""
    (operand,) = node.inputs
    axes, ndim = node.attrs["axes"], len(node.shape)
    found = []
    for tap in itertools.product(*map(range, operand.shape[ndim:])):
        at, conditions = list(coords), list[Condition]()
        for axis, k, stride, dilation in zip(
            axes, tap, node.attrs["strides"], node.attrs["dilations"], strict=True
        ):
            shifted = coords[axis] - k * dilation
            last = (operand.shape[axis] - 1) * stride
            conditions.append(in_range(shifted, 0, last + 1))
            if stride > 1:
                conditions.append(Divides(shifted, stride))
            at[axis] = shifted // stride
        if all(decided(condition) is not False for condition in conditions):
            found.append(((*at, *map(constant, tap)), conditions))
    return found


def _fold(node: Node, coords: Coords, mask: Mask) -> Needs:
    (operand,) = node.inputs
    return [(operand, at, _under(mask, when)) for at, when in taps(node, coords)]


def _unrolled(node: Node, coords: Coords, mask: Mask) -> Needs:
    (operand,) = node.inputs
    axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
    sizes = [operand.shape[axis] for axis in axes]
    needs: Needs = []
    for taps in itertools.product(*map(range, map(fixed, sizes))):
        tap = dict(zip(axes, taps, strict=True))
        kept = iter(coords)
        at = []
        for axis in range(operand.type.ndim):
            if axis not in tap:
                at.append(next(kept))
                continue
            at.append(constant(tap[axis]))
            if keepdims:
                next(kept)
        needs.append((operand, tuple(at), mask))
    return needs


def _gather(node: Node, coords: Coords, mask: Mask) -> Needs:
    operand, index = node.inputs
    axis = node.attrs["axis"]
    loaded = Index({Loaded((index, coords, mask), operand.shape[axis]): 1})
    at = (*coords[:axis], loaded, *coords[axis + 1 :])
    return [(index, coords, mask), (operand, at, mask)]


def _index(node: Node, coords: Coords, mask: Mask) -> Needs:
    operand, *indices = node.inputs
    axis, ndim = node.attrs["axis"], indices[0].type.ndim
    inside = coords[axis : axis + ndim]
    needs: Needs = [(each, inside, mask) for each in indices]
    loaded = tuple(
        Index({Loaded((each, inside, mask), operand.shape[axis + number]): 1})
        for number, each in enumerate(indices)
    )
    return [*needs, (operand, (*coords[:axis], *loaded, *coords[axis + ndim :]), mask)]


def _nothing(node: Node, coords: Coords, mask: Mask) -> Needs:
    return []


def _random_bits(node: Node, coords: Coords, mask: Mask) -> Needs:
    return [(each, (), ()) for each in node.inputs]


_NEEDS: dict[str, Callable[[Node, Coords, Mask], Needs]] = {
    "reshape": _reshape,
    "permute": _permute,
    "broadcast": _broadcast_needs,
    "slice": _slice,
    "diagonal": _diagonal,
    "flip": _flip,
    "pad": _pad,
    "concatenate": _concatenate,
    "barrier": _barrier,
    "slice_update": _slice_update,
    "unfold": _unfold,
    "fold": _fold,
    "gather": _gather,
    "index": _index,
    "full": _nothing,
    "constant": _nothing,
    "iota": _nothing,
    "random_bits": _random_bits,
}
