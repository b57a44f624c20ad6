"""A step length that satisfies the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.records import NamedTuple


class Point(NamedTuple):
    """A step length, the loss and the gradient there, and the slope along the direction."""

    length: Any
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    at: Callable[[Any], Point],
    start: Point,
    length: Any,
    reach: float,
    most: int,
    enough_decrease: float = 1e-4,
    enough_flatness: float = 0.9,
    tolerance: float = 1e-9,
) -> tuple[Point, int]:
    """A point at which the loss has fallen and its slope is flat enough, and how many were tried.

    `at` gives the point of a length, `start` is the one of length 0, `length` the first to try,
    `reach` the largest change of a parameter for a length of 1, `most` the number of turns.

    Source: Nocedal and Wright, "Numerical optimization" (2006), algorithms 3.5 and 3.6, with the
    safeguards of minFunc and PyTorch.
    """

    def is_high(point: Point) -> bool:
        return point.loss > start.loss + enough_decrease * float(point.length) * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -enough_flatness * start.slope

    # Lengths grow until two of them have such a point between them.
    before, now, tried, turns = start, at(length), 1, 0
    bracket = None
    while turns < most:
        if is_high(now) or (turns > 1 and now.loss >= before.loss):
            bracket = [before, now]
            break
        if is_flat(now):
            return now, tried
        if now.slope >= 0:
            bracket = [before, now]
            break
        low, high = now.length + 0.01 * (now.length - before.length), now.length * 10
        length = lowest_of_cubic(before, now, (low, high))
        before, now = now, at(length)
        tried, turns = tried + 1, turns + 1
    if bracket is None:
        bracket = [start, now]

    # The bracket shrinks around the point, between its lower end and the other one.
    best = 0 if bracket[0].loss <= bracket[1].loss else 1
    is_stuck = False
    while turns < most:
        if float(abs(bracket[1].length - bracket[0].length)) * reach < tolerance:
            break
        length = lowest_of_cubic(*bracket)
        low, high = sorted((bracket[0].length, bracket[1].length))
        margin = 0.1 * (high - low)
        if min(high - length, length - low) < margin:
            if is_stuck or length >= high or length <= low:
                near_high = abs(length - high) < abs(length - low)
                length = high - margin if near_high else low + margin
                is_stuck = False
            else:
                is_stuck = True
        else:
            is_stuck = False
        now = at(length)
        tried, turns = tried + 1, turns + 1
        if is_high(now) or now.loss >= bracket[best].loss:
            bracket[1 - best] = now
            best = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        done = is_flat(now)
        across = float(bracket[1 - best].length - bracket[best].length)
        if not done and now.slope * across >= 0:
            bracket[1 - best] = bracket[best]
        bracket[best] = now
        if done:
            break
    return bracket[best], tried


def lowest_of_cubic(one: Point, other: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two points with their slopes is lowest, within bounds."""
    low, high = bounds or sorted((one.length, other.length))
    distance = one.length - other.length
    middle = one.slope + other.slope - 3 * (one.loss - other.loss) / distance
    square = middle**2 - one.slope * other.slope
    if not square >= 0:
        return (low + high) / 2
    root = square**0.5
    if one.length > other.length:
        one, other = other, one
    divisor = other.slope - one.slope + 2 * root
    if divisor == 0:
        return (low + high) / 2
    share = (other.slope + root - middle) / divisor
    return min(max(other.length - (other.length - one.length) * share, low), high)
