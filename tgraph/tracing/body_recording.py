"""What a trace does where the functions that branches and loops are given become their bodies.

Each is recorded into a scope of its own (`bodies.py`); `control_flow.py` makes nodes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..compiler.ir import Builder, Node, TensorType
from ..compiler.ir import primitives as p
from ..core.context import Context, use_context
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Tensor, root_of
from ..core.trace_state import GeneratorUse, HandleState, TraceError
from . import body_calls, control_flow, loops, pushed_bodies, scans
from .bodies import Body, changed_by, changing, decision_of, trace_body
from .outside_writes import Carried, write_back, written_operand
from .random_draws import RandomDraws
from .regions import Region
from .scopes import Scope

pushed_bodies.register()


class BodyRecording(Context):
    """The part of a trace that knows in which scope it records; the outermost one is `root`."""

    takes_bodies = True

    root: Scope
    scope: Scope
    builder: Builder
    table: dict[int, Node]  # id of a tensor of the outside -> its current value
    journal: dict[int, HandleState]  # in the order of first touch
    carried: dict[int, Carried]  # by id: tensors that bodies write, which did not make them
    draws: RandomDraws
    arrived: list[Region]  # at which a gradient arrived that is being derived
    _own: set[Node]
    _constants: dict[Any, Node]

    def _enter(self, scope: Scope) -> None:
        self.scope = scope
        self.builder = scope.builder
        self.table, self.journal = scope.table, scope.journal
        self._own = scope.own
        self._constants = scope.constants  # a number, its kind, dtype and device -> a node

    @property
    def is_in_body(self) -> bool:
        """Whether the body of a branch or loop is traced now."""
        return self.scope is not self.root

    @contextmanager
    def within(self, scope: Scope) -> Iterator[None]:
        """Record into `scope`, to which a region of another does not reach."""
        previous, region = self.scope, state.region
        self._enter(scope)
        if region is not None and region.scope is not scope:
            state.region = None
        try:
            yield
        finally:
            state.region = region
            self._enter(previous)

    @contextmanager
    def at_home(self, tensor: Tensor) -> Iterator[None]:
        scope = self.scope
        if scope.outer is None or scope.owns(tensor) or id(root_of(tensor)) in scope.written:
            yield
        elif scope.is_above(tensor):
            with self.around(tensor), use_context(scope.over):
                yield
        else:
            with self.around(tensor), self.at_home(tensor):
                yield

    @contextmanager
    def around(self, tensor: Tensor) -> Iterator[None]:
        """Record into the scope around, with `tensor` and what it shows as they are out there."""
        scope = self.scope
        assert scope.outer is not None
        shown = [tensor]
        while shown[-1]._view is not None:
            shown.append(shown[-1]._view.base)
        touched = [each for each in shown if id(each) in scope.journal]
        inside = [HandleState.of(each) for each in touched]
        for each in touched:
            scope.journal[id(each)].restore(grad=False)
        try:
            with self.within(scope.outer):
                yield
        finally:
            scope.journal.update((id(each), HandleState.of(each)) for each in touched)
            for before in inside:
                before.restore(grad=False)

    def rebuild(self, node: Node, inputs: Sequence[Node]) -> Node:
        """A `node` of a body, on other inputs, in the running scope."""
        made = self.builder.rebuild(node, inputs)
        self._own.add(made)
        return made

    def barrier(self, node: Node, after: Node) -> Node:
        """`node` as another value, which is there once `after` is."""
        if after.type.device != node.type.device:
            after = self.builder.apply(p.transfer, [after], {"device": node.type.device})
            self._own.add(after)
        made = self.builder.apply(p.barrier, [node, after], where=node.where)
        self._own.add(made)
        return made

    def body(self, function: Any, types: Sequence[TensorType], watched: Sequence[Any]) -> Body:
        return trace_body(self, function, types, watched, state.grad_enabled)

    @contextmanager
    def pure(self, where: str) -> Iterator[None]:
        scope = self.scope
        before, scope.pure = scope.pure, where
        try:
            yield
        finally:
            scope.pure = before

    # --- what bodies change of the outside ---

    def carry(self, tensor: Tensor, requires_grad: bool = False) -> None:
        """Note that a body writes `tensor`."""
        if requires_grad or id(tensor) not in self.carried:
            self.carried[id(tensor)] = Carried(tensor, requires_grad)

    def _counters(self, generators: Sequence[Any]) -> list[GeneratorUse]:
        """Of what bodies draw from, where a branch or loop begins."""
        return [self.draws.use(each) for each in generators]

    def _drawn(self, uses: Sequence[GeneratorUse], counters: Sequence[Tensor]) -> None:
        """The counters that the generators go on from."""
        for use, counter in zip(uses, counters, strict=True):
            use.counter, use.counts = counter, True

    def _changing(
        self, changed: Sequence[Any], bodies: Sequence[Body], run: Callable[..., list[Tensor]]
    ) -> list[Tensor]:
        """What `run` gives behind what is changed of the outside, which it is given and gives."""
        tensors = [each for each in changed if isinstance(each, Tensor)]
        uses = self._counters(changed[: len(changed) - len(tensors)])
        given = [use.counter for use in uses]
        found = run([*given, *(written_operand(self, each) for each in tensors)])
        self._drawn(uses, found[: len(uses)])
        for each, result in zip(tensors, found[len(uses) :]):
            write_back(self, each, result, bodies)
        return found[len(changed) :]

    def branch(self, index: Tensor, bodies: Sequence[Body]) -> list[Tensor]:
        changed = changed_by(bodies)
        bodies = changing(bodies, changed)
        return self._changing(
            changed, bodies, lambda given: control_flow.branch(index, bodies, given)
        )

    def loop(
        self, condition: Body, body: Body, carried: Sequence[Tensor], bound: Any = None,
        checkpoints: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        changed = changed_by([body])
        decision = decision_of(condition, changed)
        return self._changing(
            changed,
            [body],
            lambda given: loops.loop(decision, body, [*given, *carried], bound, checkpoints),
        )

    def scan(
        self, step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any,
        reverse: bool, checkpoints: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        def run(given: list[Tensor]) -> list[Tensor]:
            return scans.scan(step, [*given, *carried], xs, length, reverse, checkpoints)

        return self._changing(changed_by([step]), [step], run)

    # --- contexts over the trace ---

    def gradients_off(self) -> None:
        self.scope.check_recording()

    def run_above(
        self, context: Any, function: Any, tensors: Sequence[Tensor], name: str
    ) -> list[Tensor]:
        return body_calls.run_above(self, context, function, tensors, name)

    def replayed(self, graph: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
        return body_calls.replayed(self, graph, tensors)

    def _refuse_in_body(self, what: str) -> None:
        if self.is_in_body:
            raise TraceError(
                f"the body of a branch or loop {what}, at {user_site()}, which cannot be compiled; "
                "do it outside, or write the branch or loop in Python"
            )
