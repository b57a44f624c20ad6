"""The random numbers that a trace draws: generators stand where each call finds them."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import Node
from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.provenance import user_site
from ..core.tensor import Tensor, intern_type, wrap
from ..core.trace_state import GeneratorUse, Source, TraceError
from ..runtime.device import CPU, Device
from ..runtime.dtypes import int64
from ..runtime.records import NamedTuple, replace


class _State(NamedTuple):
    """Where a generator of the `uses` of a scope stood, in the trace and by itself."""

    uses: dict[int, GeneratorUse]
    use: GeneratorUse
    start: tuple[int, int]


class RandomDraws:
    """The generators that one Trace uses, by id; `seeds` is where those stood that it seeded."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.generators: dict[int, GeneratorUse] = {}
        self.seeds: dict[int, tuple[Any, tuple[int, int]]] = {}
        # What `get_state` gave, and of which generator -> where that stood.
        self._states: dict[tuple[Node, int], _State] = {}

    def use(self, generator: Any) -> GeneratorUse:
        """Where the counter of a generator stands, in the running scope."""
        trace = self.trace
        if trace.is_in_body:
            scope = trace.scope
            if scope.pure:
                raise TraceError(
                    f"random numbers are drawn in {scope.pure}, at {user_site()}, which cannot "
                    "be compiled; draw them before it"
                )
            if id(generator) not in scope.draws:
                assert scope.outer is not None
                if scope.over is not None:
                    scope.over.allow_draws()
                with trace.within(scope.outer):
                    outer = self.use(generator)
                scope.draws[id(generator)] = scope.use(outer)
            return scope.draws[id(generator)]
        use = self.generators.get(id(generator))
        if use is None:
            source, type_ = Source("random", generator), intern_type((2,), int64)
            state_ = wrap(trace.new_input(source, "random_state", type_).node, type_)
            use = GeneratorUse(generator, _element(state_, 0), _element(state_, 1))
            self.generators[id(generator)] = use
        return use

    def next(self, generator: Any, device: Device = CPU) -> tuple[Tensor, Tensor]:
        """Key and counter of a draw, behind which the counter goes on."""
        use = self.use(generator)
        drawn = use.key, use.counter
        use.counter = apply(p.add, use.counter, self.trace.constant(1, int64))
        use.calls += 1
        if device is CPU:
            return drawn
        key, counter = (apply(p.transfer, each, device=device) for each in drawn)
        return key, counter

    def state(self, generator: Any) -> Tensor:
        """What `get_state` of a generator gives."""
        use = self.use(generator)
        parts = [apply(p.reshape, each, shape=(1,)) for each in (use.key, use.counter)]
        made: Tensor = apply(p.concatenate, *parts, axis=0)
        start = (generator.initial_seed(), generator.counter)
        key = (self.trace.value_of(made), id(generator))
        self._states[key] = _State(self._running, replace(use), start)
        return made

    def restart(self, generator: Any, state: Tensor) -> None:
        """The generator goes on from what `state` gave of it in this scope."""
        found = self._states.get((self.trace.value_of(state), id(generator)))
        uses = self._running
        if found is None or found.uses is not uses:
            raise TraceError(
                f"a generator is set at {user_site()} to a state that is known only when the "
                "compiled function runs. In a compiled function it may go back to a state that it "
                "had there before, outside of branches and loops or in the same one; set others "
                "outside of the function."
            )
        self._note_start(generator)
        uses[id(generator)] = replace(found.use)
        generator.restart(*found.start)

    @property
    def _running(self) -> dict[int, GeneratorUse]:
        """The generators of the running scope."""
        uses: dict[int, GeneratorUse] = self.generators
        return self.trace.scope.draws if self.trace.is_in_body else uses

    def _note_start(self, generator: Any) -> None:
        start = (generator.initial_seed(), generator.counter)
        self.seeds.setdefault(id(generator), (generator, start))

    def seed(self, generator: Any, seed: int) -> None:
        """The generator begins again."""
        self._note_start(generator)
        signed = seed - (1 << 64) if seed >= 1 << 63 else seed
        key, counter = self.trace.constant(signed, int64), self.trace.constant(0, int64)
        self.generators[id(generator)] = GeneratorUse(generator, key, counter, seed=seed)


def _element(numbers: Tensor, at: int) -> Tensor:
    """One of a row of numbers, as a tensor of no dimensions."""
    part = apply(p.slice_, numbers, starts=(at,), stops=(at + 1,), steps=(1,))
    made: Tensor = apply(p.reshape, part, shape=())
    return made
