"""Random numbers in a graph: draws are marked, as a run counts only those that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import Node, TensorType
from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.eager_context import EAGER
from ..core.tensor import Tensor, intern_type, wrap
from ..core.trace_state import GeneratorUse
from ..runtime.device import CPU, Device
from ..runtime.dtypes import int64
from ..tracing.bodies import Body
from ..tracing.trace_context import Trace
from .operation import Marker


class DrawMarks(Trace):
    """The part of the trace of a graph that knows what is drawn and written of the outside."""

    markers: dict[Node, Marker]
    # The counter at which a branch or loop begins to draw -> where it has come to behind it.
    counters_behind: dict[Node, Node]

    def mark(self, type_: TensorType, name: str, value: Node | None, **what: Any) -> Node:
        """A node that stands for `value`, but is no other one's; see `Marker`."""
        raise NotImplementedError

    def draw_from(self, generator: Any, device: Device = CPU) -> tuple[Tensor, Tensor]:
        if self.is_in_body:
            return super().draw_from(generator, device)
        use = self._use_at_run(generator)
        if device is CPU:
            return use.key, use.counter
        key, counter = (apply(p.transfer, each, device=device) for each in (use.key, use.counter))
        return key, counter

    def _use_at_run(self, generator: Any) -> GeneratorUse:
        """A generator with its counter as a run will find it here, when it makes what comes."""
        use, type_ = self.draws.use(generator), intern_type((), int64)
        counter = wrap(self.mark(type_, "draw", None, generator=generator), type_)
        return GeneratorUse(generator, use.key, counter)

    def _counters(self, generators: Sequence[Any]) -> list[GeneratorUse]:
        if self.is_in_body:
            return super()._counters(generators)
        return [self._use_at_run(each) for each in generators]

    def _drawn(self, uses: Sequence[GeneratorUse], counters: Sequence[Tensor]) -> None:
        if not self.is_in_body:
            for use, counter in zip(uses, counters, strict=True):
                self.counters_behind[use.counter._value] = self.value_of(counter)
        super()._drawn(uses, counters)

    def random_state(self, generator: Any) -> Tensor:
        self._refuse_in_body("reads the state of a generator")
        return EAGER.random_state(generator)

    def restart(self, generator: Any, random_state: Tensor) -> None:
        self._refuse_in_body("sets the state of a generator")
        EAGER.restart(generator, random_state)

    def seeded(self, generator: Any, seed: int) -> None:
        """Done once, as all that Python does: for first values, and the runs that follow."""
        self._refuse_in_body("seeds a generator")

    def _changing(
        self,
        changed: Sequence[Any],
        bodies: Sequence[Body],
        run: Callable[..., list[Tensor]],
    ) -> list[Tensor]:
        """Whoever wants a result wants what the bodies write, as with code that is not in one."""
        if self.is_in_body:
            return super()._changing(changed, bodies, run)
        before = len(self.markers)
        found = super()._changing(changed, bodies, run)
        marks = list(self.markers.items())[before:] if changed else ()
        written = tuple(node for node, mark in marks if mark.variable is not None)
        if written:
            for each in found:
                each._value = self.mark(each._type, "after", each._value, requires=written)
        return found
