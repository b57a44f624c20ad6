"""The table itself, and what its rows share."""

from __future__ import annotations

import enum
import typing

import tgraph as tg

STATE_CHANGES = {}
"""Name -> row."""
REFUSED = {}
"""Name -> row whose function is refused at its first call."""


def row(factory):
    assert factory.__name__ not in STATE_CHANGES
    STATE_CHANGES[factory.__name__] = factory
    return factory


def refused(factory):
    assert factory.__name__ not in REFUSED
    REFUSED[factory.__name__] = factory
    return factory


class Thing:
    """An object with any attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Weight(tg.nn.Parameter):
    """A tensor that can have any attributes."""


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(typing.NamedTuple):
    x: float
    y: float = 0.0


class Scaler:
    def __init__(self, rate=2.0):
        self.rate = rate

    def scaled(self, x):
        return x * self.rate
