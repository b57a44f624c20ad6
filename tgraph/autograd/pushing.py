"""Tangents along records that were made before: what forward mode would have carried along.

Each record knows how cotangents go back; transposed, that tells how tangents go on. So values that
were computed once, by an operation with whatever rule, can be given tangents later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.dispatch import settled
from ..core.record import Edge, Record
from ..core.tensor import Tensor, wrap
from .custom_call import CustomRecord
from .engine import sum_to
from .transposing import transposed

Tangents = Sequence[Tensor | None]
Key = tuple[int, int]
"""Which output of which record, or a leaf, by their ids."""
Again = dict[Key, Tensor]
"""Outputs that were computed once more beside their tangents, and may take their place."""
PUSH_RULES: dict[Any, Callable[[Any, Tangents, Sequence[bool], Again], Tangents]] = {}
"""Rules of operations that have a better one than the transpose of their gradient:
`rule(record, tangents, needed, again)` gives those of all outputs, at least of the needed ones."""


def key_of(edge: Edge) -> Key | None:
    return None if edge is None else (id(edge[0]), 0 if isinstance(edge[0], Tensor) else edge[1])


def tangents_along(
    outputs: Sequence[Edge], given: Mapping[Key, Tensor]
) -> tuple[list[Tensor | None], Again]:
    """The tangents of what the edges `outputs` lead to, from those of where histories begin."""
    tangents: dict[Any, Tensor] = dict(given)
    again: Again = {}
    records = _between(outputs, given)
    needed = {key_of(edge) for record in records for edge in record.edges}
    needed.update(map(key_of, outputs))
    for record in records:
        of_inputs = [tangents.get(key_of(edge)) for edge in record.edges]
        if all(each is None for each in of_inputs):
            continue
        keys = [(id(record), at) for at in range(len(record.outputs))]
        found = _pushed(record, of_inputs, [key in needed for key in keys], again)
        tangents.update(
            (key, each) for key, each in zip(keys, found, strict=True) if each is not None
        )
    return [tangents.get(key_of(edge)) for edge in outputs], again


def _between(outputs: Sequence[Edge], given: Mapping[Key, Tensor]) -> list[Record]:
    """The records that outputs are made of, in the order in which they were made."""
    found: dict[int, Record] = {}
    waiting = [edge[0] for edge in outputs if edge is not None]
    while waiting:
        target = waiting.pop()
        if isinstance(target, Tensor) or id(target) in found or (id(target), 0) in given:
            continue
        found[id(target)] = target
        waiting += [edge[0] for edge in target.edges if edge is not None]
    return sorted(found.values(), key=lambda each: each.order)


def _pushed(record: Record, tangents: Tangents, needed: Sequence[bool], again: Again) -> Tangents:
    rule = PUSH_RULES.get(getattr(record, "primitive", None))
    if rule is not None:
        return rule(record, tangents, needed, again)
    if isinstance(record, CustomRecord):
        return record.call.tangents(record.given(), tangents)[1]
    wanted = [each is not None for each in tangents]

    def pull(cotangents: Tangents) -> list[Tensor | None]:
        found = record.cotangents(list(cotangents), wanted)
        return [
            None if each is None or edge is None else settled(sum_to(each, _type_at(edge)))
            for each, edge in zip(found, record.edges, strict=True)
        ]

    likes = [wrap(None, each) for each in record.outputs]
    return transposed(pull, likes, tangents, [each for each in tangents if each is not None])


def _type_at(edge: Any) -> Any:
    target, index = edge
    return target._type if isinstance(target, Tensor) else target.outputs[index]
