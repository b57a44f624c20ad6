"""One form for what can be written in many ways, so that later rules have few cases.

- Numbers: a uniform array is a `full`, its value is what the dtype makes of it; an elementwise
  operand is a 0-d `full` or unbroadcast wherever the result keeps its shape.
- Operands: constants stand on the right; `x - c` is `x + -c`; equal commutative applications
  with swapped operands are one node. (Which zero the maximum of 0.0 and -0.0 is, is not defined.)
- Movement: runs of reshape, permute, broadcast, slice, flip and pad are one each, or none; a
  permute that moves only axes of size one is a reshape, and a diagonal a slice of one. `copy` means
  nothing between values that never change.
- Casts: steps that lose nothing are skipped.
"""

from __future__ import annotations

import numpy as np

from ...runtime.dtypes import DType, bool_
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.node import attr_key
from ..ir.shapes import are_same, diagonal_slice
from ..ir.shapes import broadcast as broadcast_shapes
from .matching import broadcast, call, full, is_constant, reshape, scalar, scalar_of
from .rewrite import RewriteBuilder, elementwise_with, rewrite

_UNIFORM_ELEMENTS = 4096


@rewrite(p.full)
def full_holds_what_the_dtype_makes_of_it(build: RewriteBuilder, node: Node) -> Node | None:
    plain = full(build, node.type, node.attrs["value"])
    return None if plain is node else plain


@rewrite(p.constant)
def uniform_constant_is_full(build: RewriteBuilder, node: Node) -> Node | None:
    value = node.attrs["value"]
    if value.size == 0:
        return full(build, node.type, 0)
    if value.size > _UNIFORM_ELEMENTS:
        return None
    flat = np.ascontiguousarray(value).reshape(-1)
    bits = flat.view(f"u{value.itemsize}")
    return full(build, node.type, flat[0].item()) if (bits == bits[0]).all() else None


@rewrite(Family.ELEMENTWISE, Family.VIEW, Family.REDUCE, Family.WINDOW, Family.CONTRACTION)
def nothing_is_full(build: RewriteBuilder, node: Node) -> Node | None:
    """A tensor without elements has no value to compute."""
    return None if node.type.numel else full(build, node.type, 0)


@rewrite(p.copy)
def copy_is_its_operand(build: RewriteBuilder, node: Node) -> Node | None:
    return node.inputs[0]


# --- elementwise operands ---


@rewrite(Family.ELEMENTWISE, reading=[p.broadcast, p.full])
def operands_as_small_as_broadcasting_allows(build: RewriteBuilder, node: Node) -> Node | None:
    """Elementwise application broadcasts by itself, so a broadcast operand is often needless."""
    for operand in node.inputs:
        if (operand.primitive is p.broadcast or operand.primitive is p.full) and operand.shape:
            break
    else:
        return None
    operands = list(node.inputs)
    for at, operand in enumerate(operands):
        smaller = _unbroadcast(build, operand)
        if smaller is operand:
            continue
        others = [each.shape for position, each in enumerate(operands) if position != at]
        if broadcast_shapes(smaller.shape, *others) == node.shape:
            operands[at] = smaller
    return None if tuple(operands) == node.inputs else build.rebuild(node, operands)


def _unbroadcast(build: RewriteBuilder, node: Node) -> Node:
    if node.primitive is p.full and node.shape:
        return scalar(build, node, node.attrs["value"])
    return node.inputs[0] if node.primitive is p.broadcast else node


@rewrite(*elementwise_with("commutative"))
def commutative_operands_in_one_order(build: RewriteBuilder, node: Node) -> Node | None:
    """Constants to the right, otherwise in the order in which operands were made."""
    x, y = node.inputs
    swap = is_constant(x) if is_constant(x) != is_constant(y) else x.number > y.number
    return build.rebuild(node, [y, x]) if swap else None


_MIRRORED = {p.lt: p.gt, p.le: p.ge, p.gt: p.lt, p.ge: p.le}


@rewrite(*_MIRRORED)
def comparison_with_the_constant_on_the_right(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    if not is_constant(x) or is_constant(y):
        return None
    return call(build, _MIRRORED[node.primitive], y, x)


@rewrite(p.sub, reading=[p.full])
def subtracting_a_constant_is_adding(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    value = scalar_of(y)
    return None if value is None else call(build, p.add, x, full(build, y.type, -value))


@rewrite(p.sub, reading=[p.neg])
def subtracting_a_negative_is_adding(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    return call(build, p.add, x, y.inputs[0]) if y.primitive is p.neg else None


@rewrite(p.add, reading=[p.neg])
def adding_a_negative_is_subtracting(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    if y.primitive is p.neg:
        return call(build, p.sub, x, y.inputs[0])
    if x.primitive is p.neg and not is_constant(y):
        return call(build, p.sub, y, x.inputs[0])
    return None


@rewrite(p.where)
def where_of_a_negated_condition(build: RewriteBuilder, node: Node) -> Node | None:
    condition, x, y = node.inputs
    if condition.primitive is not p.logical_not:
        return None
    return call(build, p.where, condition.inputs[0], y, x)


# --- movement ---


@rewrite(p.reshape, p.broadcast)
def same_shape_is_no_change(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return x if x.shape == node.shape else None


@rewrite(p.reshape, reading=[p.reshape])
def reshape_of_reshape(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return reshape(build, x.inputs[0], node.shape) if x.primitive is p.reshape else None


@rewrite(p.permute, reading=[p.permute])
def permute_of_permute(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    if x.primitive is not p.permute:
        return None
    axes = tuple(x.attrs["axes"][axis] for axis in node.attrs["axes"])
    return call(build, p.permute, x.inputs[0], axes=axes)


@rewrite(p.permute)
def permute_of_small_axes_is_reshape(build: RewriteBuilder, node: Node) -> Node | None:
    """Axes of size one, or any axes of an empty tensor, move without moving elements."""
    (x,) = node.inputs
    moved = [axis for axis in node.attrs["axes"] if x.shape[axis] != 1]
    if moved != sorted(moved) and x.type.numel:
        return None
    return reshape(build, x, node.shape)


@rewrite(p.broadcast)
def broadcast_of_broadcast(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return broadcast(build, x.inputs[0], node.shape) if x.primitive is p.broadcast else None


@rewrite(p.broadcast)
def broadcast_adds_leading_axes(build: RewriteBuilder, node: Node) -> Node | None:
    """Without a reshape that does."""
    (x,) = node.inputs
    if x.primitive is not p.reshape:
        return None
    (source,) = x.inputs
    lead = x.type.ndim - source.type.ndim
    if lead < 0 or not are_same(x.shape, (1,) * lead + source.shape):
        return None
    return broadcast(build, source, node.shape)


@rewrite(p.broadcast)
def broadcast_of_nothing_is_reshape(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return reshape(build, x, node.shape) if x.type.numel == node.type.numel else None


@rewrite(p.slice_)
def slice_of_everything(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return x if x.shape == node.shape and not any(node.attrs["starts"]) else None


@rewrite(p.slice_)
def slice_of_slice(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    if x.primitive is not p.slice_ or not node.type.numel:
        return None
    inner, outer = x.attrs, node.attrs
    starts = tuple(
        start + at * step
        for start, step, at in zip(inner["starts"], inner["steps"], outer["starts"], strict=True)
    )
    steps = tuple(a * b for a, b in zip(inner["steps"], outer["steps"], strict=True))
    stops = tuple(
        start + (size - 1) * step + 1
        for start, size, step in zip(starts, node.shape, steps, strict=True)
    )
    return call(build, p.slice_, x.inputs[0], starts=starts, stops=stops, steps=steps)


@rewrite(p.slice_)
def slice_in_lowest_terms(build: RewriteBuilder, node: Node) -> Node | None:
    """The stop just after the last element taken, step 1 where one element or none is taken."""
    starts, stops, steps = (node.attrs[name] for name in ("starts", "stops", "steps"))
    new_steps = tuple(step if size > 1 else 1 for step, size in zip(steps, node.shape, strict=True))
    new_starts = tuple(start if size else 0 for start, size in zip(starts, node.shape, strict=True))
    new_stops = tuple(
        start + (size - 1) * step + 1 if size else 0
        for start, size, step in zip(new_starts, node.shape, new_steps, strict=True)
    )
    if (new_starts, new_stops, new_steps) == (starts, stops, steps):
        return None
    (x,) = node.inputs
    return call(build, p.slice_, x, starts=new_starts, stops=new_stops, steps=new_steps)


@rewrite(p.diagonal)
def diagonal_is_a_slice(build: RewriteBuilder, node: Node) -> Node | None:
    """Of both axes as one."""
    (x,) = node.inputs
    shape, taken = diagonal_slice(x.shape, node.attrs["offset"])
    return call(build, p.slice_, reshape(build, x, shape), **taken)


@rewrite(p.flip)
def flip_of_real_axes(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    given = node.attrs["axes"]
    axes = set(given)
    if x.primitive is p.flip:
        axes ^= set(x.attrs["axes"])
        x = x.inputs[0]
    real = tuple(sorted(axis for axis in axes if x.shape[axis] > 1))
    if not real:
        return x
    if real == given and x is node.inputs[0]:
        return None
    return call(build, p.flip, x, axes=real)


@rewrite(p.pad)
def pad_by_nothing(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return x if x.shape == node.shape else None


@rewrite(p.pad)
def pad_of_pad(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    outer, inner = node.attrs, x.attrs
    if x.primitive is not p.pad or any((*outer["interior"], *inner["interior"])):
        return None
    if attr_key(outer["value"]) != attr_key(inner["value"]):
        return None
    low, high = (
        tuple(map(sum, zip(outer[side], inner[side], strict=True))) for side in ("low", "high")
    )
    return call(
        build, p.pad, x.inputs[0],
        low=low, high=high, interior=outer["interior"], value=outer["value"],
    )  # fmt: skip


@rewrite(p.concatenate)
def concatenate_what_is_there(build: RewriteBuilder, node: Node) -> Node | None:
    """Without empty operands; of one operand nothing remains to be done."""
    axis = node.attrs["axis"]
    parts = [each for each in node.inputs if each.shape[axis]] or list(node.inputs[:1])
    if len(parts) == 1:
        return parts[0]
    return None if len(parts) == len(node.inputs) else build.rebuild(node, parts)


@rewrite(p.slice_update)
def slice_update_of_everything_or_nothing(build: RewriteBuilder, node: Node) -> Node | None:
    base, update = node.inputs
    if not update.type.numel:
        return base
    return update if update.shape == base.shape else None


@rewrite(p.sum_, p.prod, p.max_, p.min_, p.any_, p.all_)
def reduction_over_nothing_is_reshape(build: RewriteBuilder, node: Node) -> Node | None:
    """The sum of one -0.0 stays -0.0 where adding it to a start of 0.0 gives 0.0."""
    (x,) = node.inputs
    if any(x.shape[axis] != 1 for axis in node.attrs["axes"]):
        return None
    return reshape(build, x, node.shape)


@rewrite(p.argmax, p.argmin)
def position_among_one_is_zero(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return full(build, node.type, 0) if x.shape[node.attrs["axes"][0]] == 1 else None


# --- casts ---


@rewrite(p.cast)
def cast_in_one_step(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    target = node.attrs["dtype"]
    if x.type.dtype is target:
        return x
    if x.primitive is p.cast and loses_nothing(x.inputs[0].type.dtype, x.type.dtype):
        return call(build, p.cast, x.inputs[0], dtype=target)
    return None


@rewrite(p.bitcast)
def bitcast_in_one_step(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    target = node.attrs["dtype"]
    if x.type.dtype is target:
        return x
    # A boolean in between loses bits, a 16-bit float the payload of a signalling NaN.
    if x.primitive is p.bitcast and not (x.type.dtype is bool_ or x.type.dtype.is_half):
        return call(build, p.bitcast, x.inputs[0], dtype=target)
    return None


def loses_nothing(source: DType, target: DType) -> bool:
    """Whether every value of `source` is exactly one of `target`."""
    if source is target or source.kind == "bool":
        return True
    if target.kind == "bool":
        return False
    if source.is_floating_point:
        return target.is_floating_point and target.itemsize > source.itemsize
    value_bits = 8 * source.itemsize - (source.kind == "int")
    if target.is_floating_point:
        return value_bits <= _significand_bits(target)
    if source.kind == "int" and target.kind == "uint":
        return False
    return value_bits <= 8 * target.itemsize - (target.kind == "int")


def _significand_bits(dtype: DType) -> int:
    return {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]


RULES = (
    full_holds_what_the_dtype_makes_of_it,
    uniform_constant_is_full,
    nothing_is_full,
    copy_is_its_operand,
    operands_as_small_as_broadcasting_allows,
    commutative_operands_in_one_order,
    comparison_with_the_constant_on_the_right,
    subtracting_a_constant_is_adding,
    subtracting_a_negative_is_adding,
    adding_a_negative_is_subtracting,
    where_of_a_negated_condition,
    same_shape_is_no_change,
    reshape_of_reshape,
    permute_of_permute,
    permute_of_small_axes_is_reshape,
    broadcast_of_broadcast,
    broadcast_adds_leading_axes,
    broadcast_of_nothing_is_reshape,
    slice_of_everything,
    slice_of_slice,
    slice_in_lowest_terms,
    diagonal_is_a_slice,
    flip_of_real_axes,
    pad_by_nothing,
    pad_of_pad,
    concatenate_what_is_there,
    slice_update_of_everything_or_nothing,
    reduction_over_nothing_is_reshape,
    position_among_one_is_zero,
    cast_in_one_step,
    bitcast_in_one_step,
)
