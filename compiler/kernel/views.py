"""How each primitive reads its operands, and the scalar instructions it becomes.

`operand_needs(node, coords, mask)` lists which element of which operand makes the element of
`node` at `coords`; `emit` turns those values into that element. `mask` holds the conditions under
which the element is wanted at all: loads below it must not leave their buffer when it fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from ...runtime.dtypes import DType, bool_, int64
from ..ir import Family, Node
from ..ir.shapes import contiguous_strides
from .body import Body
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
    flatten,
    reshape_coords,
)
from .kernel import Instr, compute_dtype
from .stages import Need

Needs = list[Need]

NEVER = (InRange(constant(0), 1, 2),)


def reduced_coords(node: Node, coords: Coords) -> Coords:
    """Coordinates in a reduction's result of the operand's element at `coords`."""
    axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
    kept = [ZERO if axis in axes else at for axis, at in enumerate(coords)]
    if keepdims:
        return tuple(kept)
    return tuple(at for axis, at in enumerate(kept) if axis not in axes)


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
    lead = len(coords) - len(shape)
    return tuple(ZERO if size == 1 else at for size, at in zip(shape, coords[lead:], strict=True))


def _bounded(condition: Condition) -> bool | None:
    """True or False where the condition is decided by ranges alone."""
    if isinstance(condition, Divides):
        return True if (condition.index % condition.divisor) == ZERO else None
    low, high = condition.index.bounds
    if low >= condition.low and high < condition.high:
        return True
    return False if high < condition.low or low >= condition.high else None


def _under(mask: Mask, conditions: Iterable[Condition]) -> Mask:
    """`mask` and `conditions` together, without what always holds; NEVER if one cannot hold."""
    result = list(mask)
    for condition in conditions:
        decided = _bounded(condition)
        if decided is False:
            return NEVER
        if decided is None and condition not in result:
            result.append(condition)
    return tuple(result)


def _reshape(node: Node, coords: Coords, mask: Mask) -> Needs:
    (operand,) = node.inputs
    return [(operand, reshape_coords(coords, node.shape, operand.shape), mask)]


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


def _flip(node: Node, coords: Coords, mask: Mask) -> Needs:
    axes, shape = node.attrs["axes"], node.shape
    at = tuple(
        constant(shape[axis] - 1) - c if axis in axes else c for axis, c in enumerate(coords)
    )
    return [(node.inputs[0], at, mask)]


def _pad_parts(node: Node, coords: Coords) -> tuple[Coords, list[Condition]]:
    at, conditions = [], list[Condition]()
    shape = node.inputs[0].shape
    low, interior = node.attrs["low"], node.attrs["interior"]
    for axis, c in enumerate(coords):
        spread = interior[axis] + 1
        shifted = c - low[axis]
        conditions.append(InRange(shifted, 0, (shape[axis] - 1) * spread + 1))
        if spread > 1:
            conditions.append(Divides(shifted, spread))
        at.append(shifted // spread)
    return tuple(at), conditions


def _pad(node: Node, coords: Coords, mask: Mask) -> Needs:
    at, conditions = _pad_parts(node, coords)
    under = _under(mask, conditions)
    return [] if under == NEVER else [(node.inputs[0], at, under)]


def _pieces(node: Node, coords: Coords) -> list[tuple[Node, Coords, InRange]]:
    """The inputs of a concatenation that can hold the element at `coords`."""
    axis, begin, found = node.attrs["axis"], 0, []
    for operand in node.inputs:
        end = begin + operand.shape[axis]
        condition = InRange(coords[axis], begin, end)
        if begin < end and _bounded(condition) is not False:
            at = (*coords[:axis], coords[axis] - begin, *coords[axis + 1 :])
            found.append((operand, at, condition))
        begin = end
    return found


def _concatenate(node: Node, coords: Coords, mask: Mask) -> Needs:
    return [(each, at, _under(mask, [when])) for each, at, when in _pieces(node, coords)]


def _update_parts(node: Node, coords: Coords) -> tuple[Coords, list[Condition]]:
    at, conditions = [], list[Condition]()
    shape = node.inputs[1].shape
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    for axis, c in enumerate(coords):
        shifted = c - starts[axis]
        conditions.append(InRange(shifted, 0, (shape[axis] - 1) * steps[axis] + 1))
        if steps[axis] > 1:
            conditions.append(Divides(shifted, steps[axis]))
        at.append(shifted // steps[axis])
    return tuple(at), conditions


def _slice_update(node: Node, coords: Coords, mask: Mask) -> Needs:
    base, update = node.inputs
    at, conditions = _update_parts(node, coords)
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


def _taps(node: Node, coords: Coords) -> list[tuple[Coords, list[Condition]]]:
    """For every tap of a fold: the window element that lands on `coords`, if there is one."""
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
            conditions.append(InRange(shifted, 0, last + 1))
            if stride > 1:
                conditions.append(Divides(shifted, stride))
            at[axis] = shifted // stride
        found.append(((*at, *map(constant, tap)), conditions))
    return found


def _fold(node: Node, coords: Coords, mask: Mask) -> Needs:
    needs: Needs = []
    for at, conditions in _taps(node, coords):
        under = _under(mask, conditions)
        if under != NEVER:
            needs.append((node.inputs[0], at, under))
    return needs


def _unrolled(node: Node, coords: Coords, mask: Mask) -> Needs:
    (operand,) = node.inputs
    axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
    sizes = [operand.shape[axis] for axis in axes]
    needs: Needs = []
    for taps in itertools.product(*map(range, sizes)):
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
    (key,) = node.inputs
    return [(key, (constant(0),), ()), (key, (constant(1),), ())]


_NEEDS: dict[str, Callable[[Node, Coords, Mask], Needs]] = {
    "reshape": _reshape,
    "permute": _permute,
    "broadcast": _broadcast_needs,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "concatenate": _concatenate,
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

# Primitives whose element is the element of their last operand.
_MOVES = frozenset(
    ("reshape", "permute", "broadcast", "slice", "flip", "unfold", "gather", "index", "copy")
)
COMBINE = {
    "sum": "add",
    "prod": "mul",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}


def emit(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    """The number of the value of `node` at `coords`, made from the values of its needs."""
    name = node.primitive.name
    if name in _MOVES:
        return args[-1]
    dtype = compute_dtype(node.type.dtype)
    if name in _SPECIAL:
        return _SPECIAL[name](body, node, coords, args)
    if node.primitive.family is Family.REDUCE:
        return _combine(body, COMBINE[name], node, args)
    if name == "cast":
        return body.add(Instr("cast", tuple(args), dtype, value=node.attrs["dtype"]))
    return body.add(Instr(name, tuple(args), dtype))


def _combine(body: Body, op: str, node: Node, args: Sequence[int]) -> int:
    dtype = compute_dtype(node.type.dtype)
    if not args:
        return body.constant(node.primitive.identity, dtype)
    total = args[0]
    for value in args[1:]:
        total = body.add(Instr(op, (total, value), dtype))
    return total


def _choose(
    body: Body, conditions: Iterable[Condition], chosen: int, otherwise: int, dtype: DType
) -> int:
    """`chosen` where all conditions hold, else `otherwise`."""
    open_ = tuple(each for each in conditions if _bounded(each) is not True)
    if not open_:
        return chosen
    condition = body.add(Instr("condition", (), bool_, mask=body.resolve_mask(open_)))
    return body.add(Instr("where", (condition, chosen, otherwise), compute_dtype(dtype)))


def _emit_full(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    return body.constant(node.attrs["value"], node.type.dtype)


def _emit_constant(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    return body.constant(node.attrs["value"].reshape(-1)[0].item(), node.type.dtype)


def _emit_iota(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    value = body.add(Instr("index", (), int64, index=body.resolve(coords[0])))
    if node.type.dtype is int64:
        return value
    dtype = compute_dtype(node.type.dtype)
    return body.add(Instr("cast", (value,), dtype, value=node.type.dtype))


def _emit_pad(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    fill = body.constant(node.attrs["value"], node.type.dtype)
    if not args:
        return fill
    _, conditions = _pad_parts(node, coords)
    return _choose(body, conditions, args[0], fill, node.type.dtype)


def _emit_concatenate(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    total = args[-1]
    pieces = list(zip(_pieces(node, coords), args, strict=True))
    for (_, _, condition), value in reversed(pieces[:-1]):
        total = _choose(body, [condition], value, total, node.type.dtype)
    return total


def _emit_slice_update(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    if len(args) == 1:
        return args[0]
    _, conditions = _update_parts(node, coords)
    return _choose(body, conditions, args[1], args[0], node.type.dtype)


def _emit_fold(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    zero = body.constant(0, node.type.dtype)
    landed = [c for _, c in _taps(node, coords) if _under((), c) != NEVER]
    parts = [
        _choose(body, conditions, value, zero, node.type.dtype)
        for conditions, value in zip(landed, args, strict=True)
    ]
    return _combine(body, "add", node, parts) if parts else zero


def _emit_random_bits(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    counter = args[1]
    if node.attrs["offset"]:
        offset = body.constant(node.attrs["offset"], int64)
        counter = body.add(Instr("add", (counter, offset), int64))
    index = body.resolve(flatten(coords, contiguous_strides(node.shape)))
    return body.add(Instr("random_bits", (args[0], counter), node.type.dtype, index=index))


_SPECIAL: dict[str, Callable[[Body, Node, Coords, Sequence[int]], int]] = {
    "full": _emit_full,
    "constant": _emit_constant,
    "iota": _emit_iota,
    "pad": _emit_pad,
    "concatenate": _emit_concatenate,
    "slice_update": _emit_slice_update,
    "fold": _emit_fold,
    "random_bits": _emit_random_bits,
}
