"""Which results of a body have a history outside: those made of something that has one."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.record import Record
from ..core.tensor import Tensor
from ..core.trace_state import Boundary

Ends = frozenset[int]
"""Ids of the boundaries that a history leads to."""


def ends_of(results: Sequence[Tensor]) -> list[Ends]:
    """For each result, where its history ends. Without recursion: histories are long."""
    found: dict[int, Ends] = {}
    for each in results:
        _follow(each._record, found)
    return [
        found[id(each._record)] if each._requires_grad and each._record is not None else Ends()
        for each in results
    ]


def _follow(start: Record | None, found: dict[int, Ends]) -> None:
    waiting = [] if start is None else [start]
    while waiting:
        record = waiting[-1]
        if id(record) in found:
            waiting.pop()
            continue
        if isinstance(record, Boundary):
            found[id(record)] = Ends((id(record),))
            continue
        before = [edge[0] for edge in record.edges if edge and not isinstance(edge[0], Tensor)]
        unknown = [each for each in before if id(each) not in found]
        if unknown:
            waiting += unknown
        else:
            found[id(record)] = Ends().union(*(found[id(each)] for each in before))
