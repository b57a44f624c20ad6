"""Which axes of a reshape's operand become which axes of its result."""

from __future__ import annotations

from .shapes import Shape

Group = tuple[tuple[int, ...], tuple[int, ...]]


def reshape_groups(source: Shape, target: Shape) -> list[Group]:
    """Pairs of runs of axes with equal products, as short as possible, in order.

    Every axis of both shapes is in exactly one group, axes of size one beside a neighbour; only
    shapes of one element give the single group of everything. For shapes without zeros.

    >>> reshape_groups((2, 12, 5), (2, 3, 4, 5))
    [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]
    >>> reshape_groups((2, 3, 1), (1, 6))
    [((0, 1, 2), (0, 1))]
    """
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        inner, outer = _next_run(source, target, i, j)
        ones = all(source[axis] == 1 for axis in inner)
        if ones and groups:
            groups[-1][0].extend(inner)
            groups[-1][1].extend(outer)
        else:
            groups.append((inner, outer))
        i, j = i + len(inner), j + len(outer)
    if len(groups) > 1 and all(source[axis] == 1 for axis in groups[0][0]):
        first = groups.pop(0)
        groups[0] = (first[0] + groups[0][0], first[1] + groups[0][1])
    return [(tuple(inner), tuple(outer)) for inner, outer in groups]


def crosses(source: Shape, target: Shape) -> bool:
    """Whether axes of two shapes of as many elements are different parts of the same numbers.

    >>> crosses((4, 6), (6, 4)), crosses((4, 6), (2, 2, 6)), crosses((4, 6), (24,))
    (True, False, False)
    """
    if 0 in source:
        return False
    ours, theirs = (tuple(size for size in each if size != 1) for each in (source, target))
    return any(len(a) > 1 and len(b) > 1 for a, b in reshape_groups(ours, theirs))


def _next_run(source: Shape, target: Shape, i: int, j: int) -> tuple[list[int], list[int]]:
    """The shortest runs from axes i and j on whose sizes have equal products."""
    inner: list[int] = []
    outer: list[int] = []
    left = right = 1
    while True:
        if left <= right and i < len(source) and (left < right or not inner):
            left *= source[i]
            inner.append(i)
            i += 1
        elif right <= left and j < len(target) and (right < left or not outer):
            right *= target[j]
            outer.append(j)
            j += 1
        elif left < right:
            left *= source[i]
            inner.append(i)
            i += 1
        elif right < left:
            right *= target[j]
            outer.append(j)
            j += 1
        else:
            return inner, outer
