"""Lowering, element by element: the scalar instructions that each primitive becomes.

What an element is made of says `views.operand_needs`; here those values are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...runtime.dtypes import DType, bool_, int64
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.monoids import MONOID_OF
from ..ir.shapes import contiguous_strides
from .body import Body
from .index import Condition, Coords, flatten
from .kernel import Instr, compute_dtype
from .views import decided, pad_parts, pieces, taps, update_parts

# Primitives whose element is the element of their last operand.
_MOVES = frozenset({
    p.reshape, p.permute, p.broadcast, p.slice_, p.diagonal, p.flip, p.unfold, p.gather, p.index,
    p.copy, p.require, p.barrier,
})  # fmt: skip


def emit(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    """The number of the value of `node` at `coords`, made from the values of its needs."""
    if node.primitive in _MOVES:
        return args[-1]
    name = node.primitive.name
    dtype = compute_dtype(node.type.dtype)
    if name in _SPECIAL:
        return _SPECIAL[name](body, node, coords, args)
    if node.primitive.family is Family.REDUCE:
        return _combine(body, node, args)
    if node.primitive is p.cast:
        return body.add(Instr("cast", tuple(args), dtype, value=node.attrs["dtype"]))
    if node.primitive is p.bitcast:
        types = node.inputs[0].type.dtype, node.type.dtype
        return body.add(Instr("bitcast", tuple(args), dtype, value=types))
    return body.add(Instr(name, tuple(args), dtype))


def _combine(body: Body, node: Node, args: Sequence[int]) -> int:
    monoid, dtype = MONOID_OF[node.primitive], compute_dtype(node.type.dtype)
    if not args:
        return body.constant(monoid.identity(dtype), dtype)
    return _joined(body, monoid.combine.name, args, dtype)


def _joined(body: Body, op: str, values: Sequence[int], dtype: DType) -> int:
    total = values[0]
    for value in values[1:]:
        total = body.add(Instr(op, (total, value), dtype))
    return total


def _choose(
    body: Body, conditions: Iterable[Condition], chosen: int, otherwise: int, dtype: DType
) -> int:
    """`chosen` where all conditions hold, else `otherwise`."""
    open_ = tuple(each for each in conditions if decided(each) is not True)
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
    _, conditions = pad_parts(node, coords)
    return _choose(body, conditions, args[0], fill, node.type.dtype)


def _emit_concatenate(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    total = args[-1]
    choices = list(zip(pieces(node, coords), args, strict=True))
    for (_, _, condition), value in reversed(choices[:-1]):
        total = _choose(body, [condition], value, total, node.type.dtype)
    return total


def _emit_slice_update(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    if len(args) == 1:
        return args[0]
    _, conditions = update_parts(node, coords)
    return _choose(body, conditions, args[1], args[0], node.type.dtype)


def _emit_fold(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    zero = body.constant(0, node.type.dtype)
    parts = [
        _choose(body, conditions, value, zero, node.type.dtype)
        for (_, conditions), value in zip(taps(node, coords), args, strict=True)
    ]
    return _joined(body, "add", parts, compute_dtype(node.type.dtype)) if parts else zero


def _emit_random_bits(body: Body, node: Node, coords: Coords, args: Sequence[int]) -> int:
    index = body.resolve(flatten(coords, contiguous_strides(node.shape)))
    return body.add(Instr("random_bits", tuple(args), node.type.dtype, index=index))


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
