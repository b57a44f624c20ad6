"""How attention becomes a native step: the sizes and strides of a call, and its units of work."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from math import prod
from typing import Any, cast

from ....runtime import jit
from ....runtime.gemm_text import tiles
from ....runtime.parallel import shared_out
from ....runtime.plan_gemm import MIN_FLOPS
from ....runtime.plan_steps import ArrayRef, BufferRef, KernelStep
from ...ir import Graph, Node, TensorType
from ...ir import primitives as p
from ...ir.shapes import at_least_one
from ...ir.size_number import computed, decided, is_expression
from . import attention as llvm_attention
from . import attention_gradient as llvm_attention_gradient

PANEL_BYTES = 32 << 10
"""Of the panels of queries and sums of a unit, which read each block of keys one after another.

They lie on the stack, with three blocks of scores and masks: of 128 KiB, as threads have on some
systems, that leaves enough, for the widest panel, too.
"""
MOST_PANELS = 4
ENOUGH_UNITS = 16
"""So many are easily shared by threads."""


def begin_attention(graph: Graph) -> None:
    """Begin to compile what the steps of `graph` call."""
    for primitive, code in _CODE.items():
        found = (node.inputs[0].type.dtype for node in graph.nodes if node.primitive is primitive)
        for dtype in set(found) if primitive in graph.primitives else ():
            code.begin(dtype.name)


_CODE = {
    p.attention: llvm_attention,
    p.attention_rows: llvm_attention,
    p.attention_gradient: llvm_attention_gradient,
}


def attention_step(
    node: Node, arrays: Sequence[ArrayRef], results: Sequence[BufferRef | None]
) -> KernelStep:
    """The step that computes `node` of operands that lie in memory like `arrays`."""
    query, key, value, *masks = arrays
    *lead, queries, value_width = _result(node).shape
    panels, units = _units(node, key.shape[-1])
    of = _words(node, arrays[:3], masks)
    of |= {"panels": panels, "units": units, "has_rows": len(results) > 1}
    operands = dict(zip(llvm_attention.OPERANDS, (query, key, value, *_masks(node, masks))))
    for name, array in operands.items():
        of[f"{name}_row"], of[f"{name}_column"] = _strides(array, 2)
    steps = [_strides(array, 2 + len(lead))[:-2] for array in operands.values()]
    for size in (queries * value_width, 2 * queries):
        steps.append(_items(lead, size))
    return KernelStep(
        node.primitive.name,
        llvm_attention.load(query.dtype.name),
        (*((array or query).ref for array in operands.values()), *_places(results, query, 2)),
        prod(lead) * units,
        _grain(node, prod(lead) * units),
        tuple(_word(of[name]) for name in llvm_attention.WORDS) + _batch(lead, steps),
    )


def attention_gradient_step(
    node: Node, arrays: Sequence[ArrayRef], results: Sequence[BufferRef | None]
) -> KernelStep:
    """The same for the gradient, of which results may be left out."""
    query, key, value, gradient, rows, sums, *masks = arrays
    *lead, queries, value_width = gradient.shape
    (keys, width), parts = key.shape[-2:], node.attrs["parts"]
    of = _words(node, arrays[:3], masks)
    of |= {"panels": 1, "units": parts, "has_rows": True, "parts": parts}
    of["part_step"] = prod(lead) * queries * width
    given = (query, key, value, gradient, rows, sums, *_masks(node, masks))
    operands = dict(zip(llvm_attention_gradient.OPERANDS, given))
    for name, array in operands.items():
        of[f"{name}_row"], of[f"{name}_column"] = _strides(array, 2)
    for name, place in zip(("query", "key", "value"), results, strict=True):
        of[f"wants_{name}"] = place is not None
    steps = [_strides(array, 2 + len(lead))[:-2] for array in operands.values()]
    for size in (queries * width, keys * width, keys * value_width):
        steps.append(_items(lead, size))
    return KernelStep(
        node.primitive.name,
        llvm_attention_gradient.load(query.dtype.name),
        (*((array or query).ref for array in operands.values()), *_places(results, query, 3)),
        prod(lead) * parts,
        _grain(node, prod(lead) * parts),
        tuple(_word(of[name]) for name in llvm_attention_gradient.WORDS) + _batch(lead, steps),
    )


def _words(
    node: Node, arrays: Sequence[ArrayRef], masks: Sequence[ArrayRef]
) -> dict[str, int | bool]:
    """What both have in common."""
    query, key, value = arrays
    dtype, diagonal = query.dtype.name, node.attrs["diagonal"]
    return {
        "queries": query.shape[-2],
        "keys": key.shape[-2],
        "width": key.shape[-1],
        "value_width": value.shape[-1],
        "scale": _bits(node.attrs["scale"], dtype),
        "fill": _bits(node.attrs["fill"], dtype),
        "empty": _bits(0.0 if node.attrs["zeros"] else math.inf, dtype),
        "has_bias": node.attrs["bias"],
        "has_mask": node.attrs["mask"],
        "is_causal": diagonal is not None,
        "diagonal": 0 if diagonal is None else diagonal,
        "dimensions": len(_result(node).shape) - 2,
    }


def _result(node: Node) -> TensorType:
    """The type of attention's result, of whatever `node` computes of it."""
    if node.primitive is p.attention_gradient:
        return node.inputs[3].type
    if node.primitive is p.attention_rows:
        return cast(tuple[TensorType, ...], node.type)[0]
    return node.type


def _masks(node: Node, masks: Sequence[ArrayRef]) -> tuple[ArrayRef | None, ArrayRef | None]:
    """The bias and the mask."""
    bias = masks[0] if node.attrs["bias"] else None
    return bias, masks[-1] if node.attrs["mask"] else None


def _places(results: Sequence[BufferRef | None], instead: ArrayRef, count: int) -> list[BufferRef]:
    """`count` places; what is not wanted is not written."""
    found = [place or instead.ref for place in results]
    return found + [instead.ref] * (count - len(found))


def _items(lead: Sequence[int], size: int) -> list[int]:
    """The strides of the leading axes, where each item has `size` elements."""
    return [prod(lead[at + 1 :]) * size for at in range(len(lead))]


def _batch(lead: Sequence[int], steps: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(word for words in zip(lead, *steps, strict=True) for word in words)


def attention_summary(node: Node) -> str:
    """A line for people: sizes, masks and blocks, and how the work is shared."""
    result = _result(node)
    *lead, queries, _ = result.shape
    keys, width = node.inputs[1].shape[-2:]
    size = tiles(result.dtype.name, jit.vector_bytes())
    if node.primitive is p.attention_gradient:
        panels, units, what = 1, node.attrs["parts"], "weights again by blocks of keys"
    else:
        panels, units = _units(node, width)
        what = "blocks of keys"
    numbers = " x ".join(f"{each:,}" for each in (prod(lead), queries, keys))
    masks = [name for name in ("bias", "mask") if node.attrs[name]]
    masks += ["diagonal"] if node.attrs["diagonal"] is not None else []
    masked = f", with {' and '.join(masks)}" if masks else ""
    extent = prod(lead) * units
    return (
        f"{what}: {result.dtype.name} {numbers} (batch x queries x keys), "
        f"width {width}{masked}; up to {panels * size.columns} queries and {llvm_attention.KEYS} "
        f"keys at a time; {shared_out(extent, _grain(node, extent), 'piece')}"
    )


def _grain(node: Node, extent: int) -> int:
    """How many units are worth a thread."""
    return at_least_one(MIN_FLOPS * extent // flops_of(node))


def flops_of(node: Node) -> int:
    """What the two products take, or the five; of causal ones about what is not skipped."""
    *lead, queries, value_width = _result(node).shape
    keys, width = node.inputs[1].shape[-2:]
    seen = queries * keys
    if (diagonal := node.attrs["diagonal"]) is not None:
        seen = computed(_seen, queries, keys, diagonal)
    if node.primitive is p.attention_gradient:
        width, value_width = 3 * width, 2 * value_width
    return 2 * at_least_one(prod(lead) * seen) * (width + value_width)


def _seen(queries: int, keys: int, diagonal: int) -> int:
    """How many keys the queries see, all together."""
    return _seen_below(diagonal + queries, keys) - _seen_below(diagonal, keys)


def _seen_below(diagonal: int, keys: int) -> int:
    """How many keys queries see that stand at a diagonal or above, each of its own place."""
    last = max(diagonal, 0)
    whole = max(last - keys, 0)  # these see every key
    return (last - whole) * (last - whole + 1) // 2 + whole * keys


def _units(node: Node, width: int) -> tuple[int, int]:
    """How many panels a unit has, and how many units an item of the batch."""
    result = _result(node)
    *lead, queries, value_width = result.shape
    size = tiles(result.dtype.name, jit.vector_bytes())
    count = -(-queries // size.columns)
    bytes_ = (width + value_width) * size.columns * size.item
    most = min(MOST_PANELS, max(1, PANEL_BYTES // bytes_))
    panels = decided(_panels, most, count, prod(lead))
    return panels, -(-count // panels)


def _panels(most: int, count: int, batch: int) -> int:
    """How many of `count` panels are worth a unit."""
    panels = max(min(most, count), 1)
    while panels > 1 and batch * -(-count // panels) < ENOUGH_UNITS:
        panels //= 2
    return panels


def _strides(array: ArrayRef | None, dimensions: int) -> list[int]:
    """Elements from one index to the next of the last dimensions; 0 where there is only one."""
    if array is None:
        return [0] * dimensions
    assert array.strides is not None
    item = array.dtype.itemsize
    found = [0 if size == 1 else stride // item for size, stride in zip(array.shape, array.strides)]
    return ([0] * dimensions + found)[-dimensions:]


def _word(value: Any) -> int:
    """A truth as a number, too."""
    return value if is_expression(value) else int(value)


def _bits(value: float, dtype: str) -> int:
    """The number as the low bytes of a word."""
    word = struct.pack("<f4x" if dtype == "float32" else "<d", value)
    return int(struct.unpack("<q", word)[0])
