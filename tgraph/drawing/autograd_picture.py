"""The picture of what eager autograd remembers of a tensor: its records, back to the leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..autograd.function import FunctionRecord
from ..compiled.compiled_record import CompiledRecord
from ..compiler.ir import Primitive, TensorType
from ..compiler.ir.shapes import are_same
from ..core.dispatch import PrimitiveRecord, edge_of, settled
from ..core.record import Record, Saved, type_name
from ..core.tensor import Tensor
from ..nn.parameter import Parameter
from .graph_picture import KINDS, code_at, place, place_lines, plural, shape_text, si
from .picture import Arrow, Box, Picture


def autograd_picture(tensor: Tensor, names: Mapping[int, str] | None = None) -> Picture:
    """The records that lead to `tensor`; `names` gives names of tensors by id.

    RuntimeError if `tensor` has no history.
    """
    names = names or {}
    edge = edge_of(settled(tensor))
    if edge is None:
        raise RuntimeError(
            f"tg.draw: a tensor of type {tensor._type} that does not require grad has no history "
            "to draw. Set requires_grad on what it is computed from, or draw the function that "
            "computes it."
        )
    records, leaves = _reached(edge)
    keys: dict[int, str] = {}
    boxes: list[Box] = []
    for number, leaf in enumerate(leaves):
        keys[id(leaf)] = f"leaf{number}"
        boxes.append(_leaf_box(keys[id(leaf)], leaf, names.get(id(leaf), "leaf")))
    for number, record in enumerate(records):
        keys[id(record)] = f"r{number}"
        boxes.append(_record_box(keys[id(record)], record))
    arrows = [arrow for record in records for arrow in _arrows(record, keys)]
    name, type_ = names.get(id(tensor), "output"), str(tensor._type)
    boxes.append(Box("out", "output", name, "", (type_,), f"{name}: {type_}"))
    arrows.append(_arrow(edge, "out", tensor._type, keys))
    saved = [each.tensor for record in records for each in _saved(record)]
    held = {id(each._value): each._type.nbytes for each in saved}
    summary = (
        f"{plural(len(records), 'recorded operation')}, {plural(len(leaves), 'leaf', 'leaves')}, "
        f"{si(sum(held.values()), 'B')} saved for the backward pass"
    )
    return Picture(f"autograd graph of {name}", summary, tuple(boxes), tuple(arrows))


def _reached(edge: tuple[Any, int]) -> tuple[list[Record], list[Tensor]]:
    """The records behind `edge`, first made first, and the leaves in the order of their use."""
    records: dict[Record, None] = {}
    pending = [] if isinstance(edge[0], Tensor) else [edge[0]]
    while pending:
        record = pending.pop()
        if record not in records:
            records[record] = None
            pending += [
                each[0]
                for each in record.edges
                if each is not None and not isinstance(each[0], Tensor)
            ]
    ordered = sorted(records, key=lambda record: record.order)
    ends = [each for record in ordered for each in record.edges if each is not None] + [edge]
    leaves = {id(target): target for target, _ in ends if isinstance(target, Tensor)}
    return ordered, list(leaves.values())


def _arrows(record: Record, keys: Mapping[int, str]) -> Iterator[Arrow]:
    result = record.outputs[0] if len(record.outputs) == 1 else None
    seen: set[tuple[int, int]] = set()
    for edge in record.edges:
        if edge is not None and (id(edge[0]), edge[1]) not in seen:
            seen.add((id(edge[0]), edge[1]))
            yield _arrow(edge, keys[id(record)], result, keys)


def _arrow(
    edge: tuple[Any, int], target: str, result: TensorType | None, keys: Mapping[int, str]
) -> Arrow:
    source, index = edge
    type_ = source._type if isinstance(source, Tensor) else source.outputs[index]
    changes = result is not None and not are_same(result.shape, type_.shape)
    several = not isinstance(source, Tensor) and len(source.outputs) > 1
    label = shape_text(type_.shape) if changes else ""
    if several:
        label = f"{index}: {label}" if label else f"output {index}"
    return Arrow(keys[id(source)], target, label, str(type_))


def _leaf_box(key: str, leaf: Tensor, name: str) -> Box:
    kind = "parameter" if isinstance(leaf, Parameter) else "leaf"
    grad = leaf._grad
    held = "no gradient yet" if grad is None else "holds a gradient"
    return Box(key, kind, name, "", (str(leaf._type),), f"{name}: {leaf._type}\n{held}")


def _record_box(key: str, record: Record) -> Box:
    where = record.site.provenance
    kept = _saved(record)
    lines = [", ".join(map(str, record.outputs))]
    if record.freed:
        lines.append("saved values freed")
    elif kept:
        lines.append(f"saves {si(sum(each.tensor._type.nbytes for each in kept), 'B')}")
    short = place(where)
    name = type_name(record.name())
    tooltip = [name, *(f"saves {each.tensor._type}" for each in kept), *place_lines(where)]
    return Box(
        key, _kind(record), name, "", tuple(filter(None, (*lines, short))),
        "\n".join(tooltip), "", where.module, short, code_at(where.file, where.line),
    )  # fmt: skip


def _kind(record: Record) -> str:
    if isinstance(record, CompiledRecord):
        return "compiled"
    if not isinstance(record, PrimitiveRecord):
        return "opaque" if isinstance(record, FunctionRecord) else "view"
    primitive = record.primitive
    return KINDS[primitive.family] if isinstance(primitive, Primitive) else "composite"


def _saved(record: Record) -> list[Saved]:
    """The tensors that a record keeps for its backward pass."""
    kept: list[Any] = []
    if isinstance(record, (PrimitiveRecord, FunctionRecord)):
        kept = list(record.saved_values())
    elif isinstance(record, CompiledRecord):
        kept = list(record.saved or ())
    return [each for each in kept if isinstance(each, Saved)]
