"""`@public`: the one declaration of an operation that users call, in the file of its family.

The functions of the `tgraph` namespace (`ops/functions.py`), the methods of Tensor and their forms
that write in place (`ops/methods.py`), and the stubs for type checkers and editors
(`tools/make_stubs.py`) derive from these declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..runtime.records import NamedTuple
from .autocast import NAMES, with_autocast

_F = TypeVar("_F", bound=Callable[..., Any])


class Operation(NamedTuple):
    """Where users find a function, and under which names: see `public`."""

    function: Callable[..., Any]
    name: str
    aliases: tuple[str, ...]
    is_function: bool
    is_method: bool
    inplace: bool
    out: bool | str
    overlap: str

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.aliases


OPERATIONS: dict[str, Operation] = {}
"""Every public operation by its name."""


def public(
    *,
    name: str = "",
    aliases: tuple[str, ...] = (),
    function: bool = True,
    method: bool = False,
    inplace: bool = False,
    out: bool | str = False,
    overlap: str = "all",
) -> Callable[[_F], _F]:
    """Declare that users call the decorated function, which stays as it is.

    They know it by its `name` (its own, unless that would hide one of Python's) and `aliases`: as a
    `function` of `tgraph`, as a `method` of the tensor that is its first argument, as a method with
    an underscore behind its name that writes over that tensor (`inplace`), and, of the function,
    with the argument `out` for a tensor that receives the result, converted to its type, or only
    if it has that already ("exact"). `overlap` tells how operands may lie in the memory that is
    written: "all" of it or apart from it, only apart ("none"), or "any".

    >>> from tgraph.ops import elementwise
    >>> OPERATIONS["abs"].function is elementwise.abs, OPERATIONS["abs"].aliases
    (True, ('absolute',))
    """

    def declare(declared: _F) -> _F:
        own = name or declared.__name__
        if not NAMES.isdisjoint((own, *aliases)) and not hasattr(declared, "follows_autocast"):
            declared = with_autocast(declared, own)  # type: ignore[assignment]
        for each in (own, *aliases):
            if each in _names:
                raise ValueError(f"two public operations are called {each}")
            _names.add(each)
        OPERATIONS[own] = Operation(declared, own, aliases, function, method, inplace, out, overlap)
        return declared

    return declare


_names: set[str] = set()
