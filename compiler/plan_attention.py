"""How attention becomes a native step: the sizes and strides of a call, and its units of work."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from math import prod

from ..runtime import jit
from ..runtime.gemm_text import tiles
from ..runtime.parallel import shared_out
from ..runtime.plan_gemm import MIN_FLOPS
from ..runtime.plan_steps import ArrayRef, BufferRef, KernelStep
from .codegen import llvm_attention
from .ir import Node

PANEL_BYTES = 32 << 10
"""Of the panels of queries and sums of a unit, which read each block of keys one after another.

They lie on the stack, with three blocks of scores and masks: of 128 KiB, as threads have on some
systems, that leaves enough, for the widest panel, too.
"""
MOST_PANELS = 4
ENOUGH_UNITS = 16
"""So many are easily shared by threads."""


def attention_step(node: Node, arrays: Sequence[ArrayRef], result: BufferRef) -> KernelStep:
    """The step that computes `node` of operands that lie in memory like `arrays`."""
    query, key, value, *masks = arrays
    *lead, queries, value_width = node.shape
    keys, width = key.shape[-2:]
    bias = masks[0] if node.attrs["bias"] else None
    mask = masks[-1] if node.attrs["mask"] else None
    panels, units = _units(node, width)
    scale, diagonal = node.attrs["scale"], node.attrs["diagonal"]
    of = {
        "queries": queries,
        "keys": keys,
        "width": width,
        "value_width": value_width,
        "scale": _bits(scale, node.type.dtype.name),
        "fill": _bits(node.attrs["fill"], node.type.dtype.name),
        "empty": _bits(0.0 if node.attrs["zeros"] else math.inf, node.type.dtype.name),
        "has_bias": bias is not None,
        "has_mask": mask is not None,
        "is_causal": diagonal is not None,
        "diagonal": diagonal or 0,
        "panels": panels,
        "units": units,
        "dimensions": len(lead),
    }
    operands = dict(zip(llvm_attention.OPERANDS, (query, key, value, bias, mask)))
    for name, array in operands.items():
        of[f"{name}_row"], of[f"{name}_column"] = _strides(array, 2)
    steps = [_strides(array, 2 + len(lead))[:-2] for array in operands.values()]
    steps.append([prod(node.shape[at + 1 :]) for at in range(len(lead))])
    batch = [word for words in zip(lead, *steps, strict=True) for word in words]
    return KernelStep(
        "attention",
        llvm_attention.load(node.type.dtype.name),
        (*((array or query).ref for array in operands.values()), result),
        prod(lead) * units,
        _grain(node, prod(lead) * units),
        tuple(int(of[name]) for name in llvm_attention.WORDS) + tuple(batch),
    )


def attention_summary(node: Node) -> str:
    """A line for people: sizes, masks and blocks, and how the work is shared."""
    *lead, queries, _ = node.shape
    keys, width = node.inputs[1].shape[-2:]
    panels, units = _units(node, width)
    size = tiles(node.type.dtype.name, jit.vector_bytes())
    numbers = " x ".join(f"{each:,}" for each in (prod(lead), queries, keys))
    masks = [name for name in ("bias", "mask") if node.attrs[name]]
    masks += ["diagonal"] if node.attrs["diagonal"] is not None else []
    masked = f", with {' and '.join(masks)}" if masks else ""
    extent = prod(lead) * units
    return (
        f"blocks of keys: {node.type.dtype.name} {numbers} (batch x queries x keys), "
        f"width {width}{masked}; up to {panels * size.columns} queries and {llvm_attention.KEYS} "
        f"keys at a time; {shared_out(extent, _grain(node, extent), 'piece')}"
    )


def _grain(node: Node, extent: int) -> int:
    """How many units are worth a thread."""
    return max(1, MIN_FLOPS * extent // flops_of(node))


def flops_of(node: Node) -> int:
    """What the two products take; of causal ones about what is not skipped."""
    *lead, queries, value_width = node.shape
    keys, width = node.inputs[1].shape[-2:]
    seen = queries * keys
    if (diagonal := node.attrs["diagonal"]) is not None:
        seen = sum(min(max(at + diagonal + 1, 0), keys) for at in range(queries))
    return 2 * prod(lead) * max(seen, 1) * (width + value_width)


def _units(node: Node, width: int) -> tuple[int, int]:
    """How many panels a unit has, and how many units an item of the batch."""
    *lead, queries, value_width = node.shape
    size = tiles(node.type.dtype.name, jit.vector_bytes())
    count = -(-queries // size.columns)
    bytes_ = (width + value_width) * size.columns * size.item
    panels = min(MOST_PANELS, count, max(1, PANEL_BYTES // bytes_))
    while panels > 1 and prod(lead) * -(-count // panels) < ENOUGH_UNITS:
        panels //= 2
    return panels, -(-count // panels)


def _strides(array: ArrayRef | None, dimensions: int) -> list[int]:
    """Elements from one index to the next of the last dimensions; 0 where there is only one."""
    if array is None:
        return [0] * dimensions
    assert array.strides is not None
    item = array.dtype.itemsize
    found = [0 if size == 1 else stride // item for size, stride in zip(array.shape, array.strides)]
    return ([0] * dimensions + found)[-dimensions:]


def _bits(value: float, dtype: str) -> int:
    """The number as the low bytes of a word."""
    word = struct.pack("<f4x" if dtype == "float32" else "<d", value)
    return int(struct.unpack("<q", word)[0])
