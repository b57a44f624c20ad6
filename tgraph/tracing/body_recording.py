"""What a trace does where the functions that branches and loops are given become their bodies.

Each is recorded into a scope of its own (`bodies.py`); `control_flow.py` makes nodes of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..compiler.ir import Builder, Node, TensorType
from ..core.context import Context
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import GeneratorUse, TraceError
from . import control_flow
from .bodies import Body, Scope, decision_of, drawing, trace_body


class BodyRecording(Context):
    """The part of a trace that knows in which scope it records; the outermost one is `root`."""

    takes_bodies = True

    root: Scope
    scope: Scope
    builder: Builder
    _own: set[Node]
    _constants: dict[Any, Node]

    def _enter(self, scope: Scope) -> None:
        self.scope = scope
        self.builder = scope.builder
        self._own = scope.own
        self._constants = scope.constants  # a number, its kind, dtype and device -> a node

    @property
    def is_in_body(self) -> bool:
        """Whether the body of a branch or loop is traced now."""
        return self.scope is not self.root

    @contextmanager
    def within(self, scope: Scope) -> Iterator[None]:
        """Record into `scope`."""
        previous = self.scope
        self._enter(scope)
        try:
            yield
        finally:
            self._enter(previous)

    @contextmanager
    def at_home(self, tensor: Tensor) -> Iterator[None]:
        scope: Scope = self.scope
        value = tensor._value
        while scope.outer is not None and (type(value) is not Node or value not in scope.own):
            scope = scope.outer
        with self.within(scope):
            yield

    def rebuild(self, node: Node, inputs: Sequence[Node]) -> Node:
        """A `node` of a body, on other inputs, in the running scope."""
        made = self.builder.rebuild(node, inputs)
        self._own.add(made)
        return made

    def body(self, function: Any, types: Sequence[TensorType], watched: Sequence[Any]) -> Body:
        return trace_body(self, function, types, watched, state.grad_enabled)

    @contextmanager
    def no_draws(self, where: str) -> Iterator[None]:
        scope = self.scope
        before, scope.no_draws = scope.no_draws, where
        try:
            yield
        finally:
            scope.no_draws = before

    def _use(self, generator: Any) -> GeneratorUse:
        """Where the counter of a generator stands, in the running scope."""
        raise NotImplementedError

    def _counters(self, bodies: Sequence[Body]) -> list[GeneratorUse]:
        """Of what any of the bodies draws from."""
        found = {id(each): each for body in bodies for each in body.generators}
        return [self._use(each) for each in found.values()]

    def _drawn(self, uses: Sequence[GeneratorUse], results: Sequence[Tensor]) -> list[Tensor]:
        """The results behind the counters, which the generators go on from."""
        for use, counter in zip(uses, results):
            use.counter, use.counts = counter, True
        return list(results[len(uses) :])

    def branch(self, index: Tensor, bodies: Sequence[Body]) -> list[Tensor]:
        uses = self._counters(bodies)
        bodies = drawing(bodies, [use.generator for use in uses])
        return self._drawn(uses, control_flow.branch(index, bodies, [u.counter for u in uses]))

    def loop(self, condition: Body, body: Body, carried: Sequence[Tensor]) -> list[Tensor]:
        uses = self._counters([body])
        drawn = [use.generator for use in uses]
        condition = decision_of(condition, drawn)
        carried = [*(use.counter for use in uses), *carried]
        return self._drawn(uses, control_flow.loop(condition, body, carried))

    def scan(
        self, step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any,
        reverse: bool,
    ) -> list[Tensor]:  # fmt: skip
        uses = self._counters([step])
        carried = [*(use.counter for use in uses), *carried]
        return self._drawn(uses, control_flow.scan(step, carried, xs, length, reverse))

    def _refuse_in_body(self, what: str) -> None:
        if self.is_in_body:
            raise TraceError(
                f"the body of a branch or loop {what}, at {user_site()}, which cannot be compiled; "
                "do it outside, or write the branch or loop in Python"
            )
