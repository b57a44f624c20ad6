"""An order in which groups can run, kept up while groups grow.

Each has a rank above those of what it needs. So a search for a path between two groups never looks
beyond their ranks, and a group that comes to need another moves, with what stands between them,
only where it stood before it. (Pearce and Kelly, "A dynamic topological sort algorithm for directed
acyclic graphs", 2006.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

MAX_SEARCHED = 128
"""Groups that a search looks at from either side before it takes a path for granted."""

Group = TypeVar("Group", bound=Hashable)
Neighbours = Callable[[Group], Iterable[Group]]


class RunningOrder(Generic[Group]):
    """The ranks of groups. `producers` and `followers` give the groups just before and behind."""

    def __init__(
        self,
        producers: Neighbours[Group],
        followers: Neighbours[Group],
    ) -> None:
        self._producers = producers
        self._followers = followers
        self.rank: dict[Group, int] = {}

    def add(self, group: Group) -> None:
        """Take in a group that is new, or has come to read more."""
        rank = self.rank
        if group not in rank:
            rank[group] = len(rank)
        late = [each for each in self._producers(group) if rank[each] > rank[group]]
        for producer in sorted(late, key=rank.__getitem__):
            if rank[producer] > rank[group]:  # not moved with another
                self._move(group, producer)

    def between(
        self, group: Group, other: Group, passable: Callable[[Group], bool]
    ) -> list[Group] | None:
        """What needs `group` and is needed by `other`, in order; None where that is too far to see.

        All of it has to be `passable`: what is not is known to stand elsewhere. Looks from both
        sides at once, and no further when one has seen all.
        """
        low, high = self.rank[group], self.rank[other]
        behind, before = {group: None}, {other: None}
        forwards = self._search(behind, self._followers, low, high, passable)
        backwards = self._search(before, self._producers, low, high, passable)
        for _ in range(MAX_SEARCHED):
            if next(forwards, None) is None:
                latest_first = sorted(behind, key=self.rank.__getitem__, reverse=True)
                return _leading(latest_first[:-1], other, self._followers)[::-1]
            if next(backwards, None) is None:
                earliest_first = sorted(before, key=self.rank.__getitem__)
                return _leading(earliest_first[:-1], group, self._producers)
        return None

    def _search(
        self,
        seen: dict[Group, None],
        step: Neighbours[Group],
        low: int,
        high: int,
        passable: Callable[[Group], bool],
    ) -> Iterator[Group]:
        """Adds what is reached from the one of `seen`, strictly between two ranks.

        Gives each that it looks at.
        """
        rank = self.rank
        pending = list(seen)
        while pending:
            for each in step(pending.pop()):
                if low < rank[each] < high and each not in seen and passable(each):
                    seen[each] = None
                    pending.append(each)
                yield each

    def _move(self, group: Group, producer: Group) -> None:
        """Put `group`, and what needs it, behind `producer` and what that needs."""
        rank = self.rank
        low, high = rank[group], rank[producer]
        behind = self._within(group, self._followers, low, high)
        before = self._within(producer, self._producers, low, high)
        moved = [*sorted(before, key=rank.__getitem__), *sorted(behind, key=rank.__getitem__)]
        for each, place in zip(moved, sorted(rank[each] for each in moved)):
            rank[each] = place

    def _within(self, start: Group, step: Neighbours[Group], low: int, high: int) -> set[Group]:
        """What is reached from `start` without leaving the ranks from `low` to `high`."""
        found = {start}
        pending = [start]
        while pending:
            for each in step(pending.pop()):
                if each not in found and low <= self.rank[each] <= high:
                    found.add(each)
                    pending.append(each)
        return found


def _leading(groups: Iterable[Group], end: Group, step: Neighbours[Group]) -> list[Group]:
    """Those of `groups`, the nearest to `end` first, from which steps lead there."""
    found: dict[Group, None] = {}
    for each in groups:
        if any(near is end or near in found for near in step(each)):
            found[each] = None
    return list(found)
