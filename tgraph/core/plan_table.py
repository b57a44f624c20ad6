"""What eager mode remembers of signatures: which were used once, and the plans of the others."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from .compile_lock import COMPILE_LOCK

_KEPT = 256
"""Signatures for which a function is remembered."""
_PLANS_AT_ONCE, _CALLS_PER_PLAN = 16, 8
"""A function gets more plans than the first number only where they were called so often each."""
enabled = os.environ.get("TGRAPH_COMPILE", "1") != "0"
"""Whether plans are made; tests of other things turn this off."""


class Entry:
    """What is known of a signature without a plan. `kept` is alive what its key names by id."""

    __slots__ = ("kept",)

    def __init__(self, kept: Any) -> None:
        self.kept = kept


class Once(Entry):
    """There was one call."""


class Never(Entry):
    """There can be no plan."""


class Plan:
    """What runs the calls with a signature."""

    __slots__ = ()


class PlanTable:
    """The signatures of one function, how many plans there were, and how often they were called.

    Who calls a plan counts it in `hits`.
    """

    __slots__ = ("__weakref__", "_made", "hits", "plans")
    _all: ClassVar[weakref.WeakSet[PlanTable]] = weakref.WeakSet()

    def __init__(self) -> None:
        self.plans: dict[Any, Any] = {}
        self._made = self.hits = 0
        PlanTable._all.add(self)

    @classmethod
    def forget_all(cls) -> None:
        """Empty every table: for those who change what devices there are."""
        for each in list(cls._all):
            each.plans = {}
            each._made = each.hits = 0

    def remember(self, key: Any, entry: Entry) -> None:
        """Keep what is known of a new signature; the oldest ones are forgotten."""
        if len(self.plans) >= _KEPT:
            for old in list(self.plans)[: _KEPT // 4]:
                self.plans.pop(old, None)
        self.plans[key] = entry

    def make(self, compiled: Callable[[], Any]) -> Any:
        """What `compiled` gives, None where that is not worth it or another thread is compiling."""
        if not enabled or sys.is_finalizing():
            return None
        if self._made >= _PLANS_AT_ONCE and self.hits < _CALLS_PER_PLAN * self._made:
            return None
        if not COMPILE_LOCK.acquire(blocking=False):
            return None
        try:
            self._made += 1
            return compiled()
        finally:
            COMPILE_LOCK.release()
