"""The table itself, and what its rows share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass
class World:
    """A function and what it writes into (besides what it closes over).

    `arguments(turn)` gives what it is called with; `after(turn)` is done behind each call.
    """

    function: Callable[..., Any]
    held: Any = None
    arguments: Callable[[int], tuple[Any, ...]] | None = None
    after: Callable[[int], Any] = lambda turn: None
    keywords: Callable[[int], dict[str, Any]] = lambda turn: {}


@dataclasses.dataclass(frozen=True)
class Row:
    """`plans`: how many five calls may make. `refused`: what the TraceError says.

    `backward`: what an error says of backward() outside, "" where that does what eager code does,
    None where there is none.
    """

    make: Callable[[], World]
    plans: int
    refused: str
    backward: str | None

    @property
    def name(self) -> str:
        return self.make.__name__


ROWS: list[Row] = []


def row(make=None, *, plans=3, refused="", backward=None):
    if make is None:
        return functools.partial(row, plans=plans, refused=refused, backward=backward)
    assert all(each.name != make.__name__ for each in ROWS)
    ROWS.append(Row(make, plans, refused, backward))
    return make


class Bag:
    """An object with attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)
