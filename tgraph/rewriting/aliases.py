"""Variables that are one tensor or another, as a traced tensor decides.

In Python, `y = x` in a branch makes two names of one tensor. In the graph y has a value of its own
behind the branch; so it is an error where either is written in place while the other is there to be
read: only the running function would know whether that is the same memory. So are two variables
that a branch or turn leaves with one tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.eager_context import current_context
from ..core.tensor import Tensor, root_of
from .exits import RETURNED
from .values import error

RESULT = "the result"
"""Stands for a variable where a branch is an expression."""


class Fork:
    """A tensor that the variable `name` holds, and those that it may be."""

    def __init__(self, result: Tensor, sources: Sequence[Tensor], name: str) -> None:
        self.result = weakref.ref(result)
        self.roots = [weakref.ref(root_of(each)) for each in sources]
        self.name = name

    @property
    def sources(self) -> list[Tensor]:
        return [each for each in (root() for root in self.roots) if each is not None]

    @property
    def _told(self) -> str:
        if self.name == RESULT:
            return "the result of `a if c else b`, `min`, `max`, `and` or `or`"
        return f"`{self.name}`"

    def check(self, written: Tensor) -> None:
        """An error where a write is one that the other tensor may have to see."""
        result, root, sources = self.result(), root_of(written), self.sources
        if result is None or not sources or self.name == RETURNED:  # which is read at once or never
            return
        if root is root_of(result) or any(root is each for each in sources):
            raise error(
                f"a tensor is written in place that may be the same as {self._told}, for a branch "
                "or loop on tensors decides it",
                "x.clone()  # in the place of each x that it chooses from"
                if self.name == RESULT
                else f"{self.name} = {self.name}.clone()  # behind it",
            )


def tensors_of(leaves: Iterable[Any]) -> list[Tensor]:
    return [x for x in leaves if isinstance(x, Tensor)]


def shares_memory(tensor: Tensor, others: Iterable[Tensor]) -> bool:
    root = root_of(tensor)
    return any(root_of(each) is root for each in others)


def forks_here() -> int:
    """How many forks the trace knows of: those made later are of a body that ends."""
    return len(_forks())


def ended(leaves: Iterable[Any], before: int) -> dict[int, list[Tensor]]:
    """What each of the leaves of a body that has ended may be; its forks are forgotten."""
    found: dict[int, list[Tensor]] = {}
    for leaf in tensors_of(leaves):
        root = root_of(leaf)
        for fork in _forks():
            result = fork.result()
            if result is not None and root_of(result) is root:
                found.setdefault(id(leaf), []).extend(fork.sources)
    del _forks()[before:]
    return found


def may_be(result: Any, sources: Sequence[Tensor], name: str) -> None:
    """Note that `result`, which the variable `name` holds, may be one of the tensors `sources`."""
    if tensors_of([result]) and sources and current_context().takes_bodies:
        _forks().append(Fork(result, sources, name))


def may_be_one(
    results: Iterable[tuple[str, Any, Any]], forks: Mapping[int, Sequence[Tensor]]
) -> None:
    """Note which results of a branch or loop stand for one tensor inside of it.

    Each comes behind the name of its variable and before that tensor, which, by its id in `forks`,
    may be others.
    """
    known: dict[int, list[Tensor]] = {}  # id of a root -> results that may be in its memory
    for name, result, leaf in results:
        if name == RETURNED or not tensors_of([result]) or not tensors_of([leaf]):
            continue
        for root in {id(root_of(each)) for each in (leaf, *forks.get(id(leaf), ()))}:
            others = known.setdefault(root, [])
            may_be(result, others, name)
            others.append(result)


def _forks() -> list[Fork]:
    context: Any = current_context()
    found: list[Fork] = context.forks if context.takes_bodies else []
    return found
