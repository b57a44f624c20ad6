"""One run of a graph in several steps, between which somebody looks at results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.ir import Node, TensorType
from ..compiler.ir import primitives as p
from ..core.tensor import wrap
from ..tracing.selections import Counted
from .feeds import check_assumptions, check_fed, placeholders_of, sizes_of, sizes_of_held
from .fetches import fetches_of
from .lookup import named
from .needed import below, needed, reached
from .placeholder import Placeholder
from .run import Run

if TYPE_CHECKING:
    from .session import Session

Array = Any  # of NumPy or CuPy


class Partial:
    """What `Session.partial` gives. Each of what is fetched and fed comes in one step.

    Of what a step has computed, that is held which something needs that is fetched later: the plan
    of a later step takes it as an input, and computes nothing that lies behind it.
    """

    def __init__(self, session: Session, fetches: Any, feeds: Sequence[Any]) -> None:
        self._session, self._trace = session, session.graph.trace
        asked = fetches_of(self._trace, fetches)
        needed(self._trace, asked.nodes, asked.others)  # an error where it cannot be one run
        self._left = {self._identity(leaf): leaf for leaf in asked.leaves}
        self._to_feed = {id(each): each for each in placeholders_of(self._trace, feeds)}
        self._held: dict[Node, Array] = {}
        self._fed: list[Placeholder] = []
        self._shapes: list[Array] = []  # arrays of the shapes of what was fed, without memory

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The values of `fetches`, from what is fed now and in earlier steps.

        ValueError for what `partial` was not told of, or what an earlier step has had.
        """
        session, trace = self._session, self._trace
        asked = fetches_of(trace, fetches)
        for leaf in asked.leaves:
            if self._identity(leaf) not in self._left:
                raise ValueError(f"{leaf!r} is none of the fetches that this partial run has left")
        now = {self._identity(leaf) for leaf in asked.leaves}
        left = {key: leaf for key, leaf in self._left.items() if key not in now}
        fed = placeholders_of(trace, feed_dict or {})
        for each in fed:
            if id(each) not in self._to_feed:
                raise ValueError(f"{each} is none of the feeds that this partial run has left")
        arrays = [session.array_of(*each) for each in (feed_dict or {}).items()]
        nodes = [each.node for each in fed]
        kept = list(self._frontier(asked.nodes + asked.others, list(left.values()), nodes))
        shapes = [*self._shapes, *(np.broadcast_to(np.empty((), a.dtype), a.shape) for a in arrays)]
        sizes = sizes_of(trace, [*self._fed, *fed], shapes)
        sizes_of_held(trace, sizes, self._held)
        asked = fetches_of(trace, (fetches, [wrap(node, node.type) for node in kept]))
        plan = session.plan(
            asked, [*self._held, *(each for each in nodes if each in trace.markers)]
        )
        check_fed(plan.needed, fed, trace)
        check_assumptions(trace, sizes, plan.guards())
        run = Run(asked, fed, plan, sizes, session.variables, trace, self._held)
        found, values = run(arrays)
        self._held.update((node, each._value) for node, each in zip(kept, values, strict=True))
        self._left, self._shapes = left, shapes
        self._fed += fed
        for each in fed:
            del self._to_feed[id(each)]
        return found

    def _frontier(
        self, now: Sequence[Node], left: Sequence[Any], fed: Sequence[Node]
    ) -> Iterator[Node]:
        """What is computed for `now` and needed for what is `left`, but not by way of others.

        `fed` is what is fed now.
        """
        trace = self._trace
        later = fetches_of(trace, left)
        targets = [*later.nodes, *later.others]
        known = {*self._held, *(each for each in fed if each in trace.markers)}
        counted = Counted.of_trace(trace)
        here = reached(trace, now, held=known)
        beyond = [each for each in reached(trace, targets, held=known) if each not in here]
        here |= dict.fromkeys(fed)
        wanted = dict.fromkeys(each for each in targets if each in here)
        wanted.update(
            (each, None) for node in beyond for each in below(trace, node, counted) if each in here
        )
        for each in list(wanted):  # with what tells how long it is
            wanted.update((c.inputs[0].node, None) for c in counted.of(each))
        states = {entry.node for entry in trace.inputs if entry.source.kind == "random"}
        for each in wanted:
            if type(each.type) is TensorType and each not in states:
                yield each
        for each in beyond:
            if each.primitive is p.get and each.inputs[0] in here:  # of what gives several results
                yield each

    def _identity(self, leaf: Any) -> int:
        return id(named(self._trace, leaf) if type(leaf) is str else leaf)
