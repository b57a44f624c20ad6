"""What a graph does besides computing: writes into variables, which are fetched as operations."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import Node
from ..core.tensor import Tensor
from ..runtime.records import record


@record(eq=False)
class Marker:
    """What the `input` node of a mark stands for in a graph.

    It is `value` once all of `requires` is computed. A mark of a `variable` is what that was
    written to, after `previous`, its value before. One of a `generator` counts a draw: its value
    is known when it is known which draws there are in a run.
    """

    serial: int
    value: Node | None
    requires: tuple[Node, ...] = ()
    variable: Tensor | None = None
    previous: Node | None = None
    generator: Any = None
    where: str = ""


class Operation:
    """Something to be done by a run of a graph, such as a step of an optimizer.

    A run that fetches it gives None in its place. `nodes` are those that it needs; `variables`
    those that it writes. Ordered host calls are a part of it, too.
    """

    def __init__(self, graph: Any, name: str) -> None:
        self.graph, self.name = graph, name
        self.nodes: tuple[Node, ...] = ()
        self.written: dict[int, tuple[Tensor, Node]] = {}  # id of a variable -> it, its mark
        self.token: Node | None = None  # of the last ordered host call that it makes

    @property
    def variables(self) -> list[Tensor]:
        return [tensor for tensor, _ in self.written.values()]

    def __repr__(self) -> str:
        return f"<Operation {self.name}: writes {len(self.written)} variables>"
