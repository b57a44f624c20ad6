"""Lists that each turn of a loop appends to: what is appended becomes rows of a scan's result."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from ..core import pytree
from ..core.state import state
from ..core.tensor import Tensor
from .values import as_tensor, error, shown, standing, type_of


class Growing:
    """The lists that a loop's body names, and what one turn appends to them."""

    def __init__(self, functions: Sequence[Any], header: str) -> None:
        self.header = header
        self.lists = _lists_of(functions)
        self.before = {name: list(each) for name, each in self.lists.items()}
        self.appended: dict[str, list[Any]] = {}

    def taken(self, is_known: bool) -> list[Tensor]:
        """What a turn has appended, as tensors; the lists are as they were."""
        self.appended = {}
        for name, each in self.lists.items():
            before = self.before[name]
            count = len(before)
            if len(each) <= count or any(a is not b for a, b in zip(each, before)):
                continue  # whatever else was done to it is refused
            self.appended[name] = each[count:]
            del each[count:]
            if not is_known:
                raise error(
                    f"`{name}` grows in the loop `{self.header}`, of which it is not known how "
                    "many turns it runs",
                    f"{name} = tg.zeros(most, ...)  # before it, and in it: {name}[n] = ...",
                )
        leaves = pytree.leaves(list(self.appended.values()))
        for leaf in leaves:
            if type_of(leaf) is None:
                raise error(f"a turn of the loop `{self.header}` appends {shown(leaf)} to a list")
        return [as_tensor(each, type_of(each)) for each in leaves]  # type: ignore[arg-type]

    def extend(self, rows: Sequence[Tensor], turns: int) -> None:
        """Append what all turns have appended: `rows` has it stacked."""
        leaves, spec = pytree.flatten(list(self.appended.values()))
        for at in range(turns):
            row = [standing(each[at], leaf) for each, leaf in zip(rows, leaves, strict=True)]
            for name, items in zip(self.appended, spec.unflatten(row), strict=True):
                self.lists[name].extend(items)


def _lists_of(functions: Sequence[Any]) -> dict[str, list[Any]]:
    """The lists in the variables of functions, but those that were there before the trace."""
    found: dict[str, list[Any]] = {}
    recorder = state.recorder
    for function in functions:
        if not isinstance(function, FunctionType):
            continue
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                held = cell.cell_contents
            except ValueError:
                continue
            is_outside = recorder is not None and recorder.is_outside(held)
            if type(held) is list and not is_outside and all(held is not x for x in found.values()):
                found[name] = held
    return found
