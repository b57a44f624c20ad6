"""Sessions: they run parts of a graph, and have values of their own for its variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiled.explain import Explanation, explain_executable
from ..compiler.ir import Node
from ..core.devices import as_device
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import TraceError
from ..runtime.device import CPU
from ..tracing.record_call import TracedGraph
from .feeds import (
    array_of,
    check_assumptions,
    check_fed,
    placeholder_of,
    placeholders_of,
    sizes_of,
)
from .fetch_plan import FetchPlan
from .fetches import Fetches, fetches_of
from .graph import Graph
from .graph_trace import GraphTrace
from .needed import needed
from .of_function import graph_of
from .partial import Partial
from .run import Run
from .variables import Variables

MAX_RUNS = 256
"""Kept for so many fetches and shapes of feeds; the one made first goes first."""
MAX_PLANS = 64
"""Plans of a graph that its sessions share."""


class Session:
    """Runs parts of a graph; the values of its variables live in the session.

    They begin as the values that the tensors have when the session is made (or, for a variable
    that comes later, when it is first used), and only `run`, `set` and `restore` change them. A
    session is used by one thread at a time; several sessions may run one graph at once.

    A function that was traced runs, too: `tg.Session(tg.trace(f, *args))`. Its tensors are fed by
    the names of arguments, and fetched as "result" (of a tuple "result[0]", ...); what it writes is
    an operation of its name.

    Variables and computation are on `device`, but for what the graph itself has on a GPU, and so
    are results; RuntimeError where there is no such device.

    >>> import tgraph as tg
    >>> w = tg.nn.Parameter(tg.tensor([1.0, 2.0]))
    >>> with tg.Graph() as g:
    ...     x = tg.placeholder(tg.float32, (None, 2), "x")
    ...     loss = ((x @ w) ** 2).mean()
    ...     train = tg.optim.SGD([w], lr=0.1).minimize(loss)
    >>> with tg.Session(g) as session:
    ...     session.run([train, loss, w], {x: [[1.0, 0.0]]})
    [None, tensor(1.), tensor([0.8000, 2.0000])]
    """

    def __init__(self, graph: Graph | TracedGraph, device: Any = "cpu") -> None:
        if isinstance(graph, TracedGraph):
            graph = graph_of(graph)
        if not isinstance(graph, Graph):
            raise TypeError(
                f"Session(): expected a tg.Graph, or what tg.trace gives, got a "
                f"{type(graph).__name__}; a function is run by tg.compile"
            )
        self.graph = graph
        self.device = as_device(device)
        self.variables = Variables(graph, self.device)
        self._trace = graph.trace
        self._runs: dict[tuple[Any, ...], Run] = {}

    # --- running ---

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The values of `fetches`, nested as they are; `feed_dict` gives those of placeholders.

        Tensors give tensors, operations None, variables their value after the run. No more is
        computed than the fetches need. A run that raises an error has written nothing. Whatever is
        fetched or fed may be given by its name in the graph.

        KeyError for a name that the graph does not have; ValueError for a placeholder that is
        needed and not fed, for shapes that do not fit, and for what belongs to another graph;
        TypeError for a value of another dtype.
        """
        context = state.context
        if context is not None and context.tracing and type(context) is not GraphTrace:
            raise TraceError(
                "session.run() is called in a function that is being traced, which would run it "
                f"once for all calls, at {user_site()}: call it outside, or by tg.host()"
            )
        kind = type(fetches)
        if kind is list or kind is tuple:
            asked = [kind, *[each if type(each) is str else id(each) for each in fetches]]
        else:
            asked = [fetches if kind is str else id(fetches)]
        arrays = []
        fed: list[Any] = [self._trace.rebinds]
        if feed_dict:
            for key, value in feed_dict.items():
                if type(value) is not _ndarray:
                    value = self.array_of(key, value)
                arrays.append(value)
                fed += (key if type(key) is str else id(key)), value.shape, value.dtype
        run = self._runs.get((*fed, *asked))
        if run is None:
            run = self._prepared(fetches, feed_dict or {}, arrays, asked, fed)
        return run(arrays)

    def array_of(self, key: Any, value: Any) -> Any:
        """The array that is fed to a placeholder, on its device."""
        placeholder = placeholder_of(self._trace, key)
        own = placeholder.type.device
        return array_of(placeholder, value, self.device if own is CPU else own)

    def _prepared(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any],
        arrays: Sequence[Any],
        asked: Sequence[Any],
        fed: Sequence[Any],
    ) -> Run:
        """What runs; remembered by the leaves of the fetches, which it holds."""
        with self.variables.lock:
            found = fetches_of(self._trace, fetches)
            ids = list(map(_key, found.leaves))
            if ids != list(asked[-len(ids) :]) or len(asked) - len(ids) not in (0, 1):
                asked = [found.tree, *ids]  # nested: the containers may be others next time
            run = self._runs.get((*fed, *asked))
            if run is None:
                run = self._made(found, list(feed_dict), arrays)
                if len(self._runs) >= MAX_RUNS:
                    self._runs.pop(next(iter(self._runs)))
                self._runs[(*fed, *asked)] = run
            return run

    def _made(self, asked: Fetches, keys: Sequence[Any], arrays: Sequence[Any]) -> Run:
        fed = placeholders_of(self._trace, keys)
        sizes = sizes_of(self._trace, fed, arrays)
        plan = self.plan(asked, [each.node for each in fed if each.node in self._trace.markers])
        check_fed(plan.needed, fed, self._trace)
        check_assumptions(self._trace, sizes, plan.guards())
        return Run(asked, fed, plan, sizes, self.variables, self._trace)

    def plan(self, asked: Fetches, held: Collection[Node] = ()) -> FetchPlan:
        """The plan for what is fetched, which the sessions of a graph share."""
        self.variables.check_open()
        graph, trace = self.graph, self._trace
        key = (asked.nodes, asked.others, self.device, frozenset(held))
        with graph.lock:
            plan = graph.plans.get(key)
            if plan is None:
                found = needed(trace, asked.nodes, asked.others, held=held)
                if len(graph.plans) >= MAX_PLANS:
                    graph.plans.pop(next(iter(graph.plans)))
                plan = graph.plans[key] = FetchPlan(found, trace, self.device)
            return plan

    def partial(self, fetches: Any, feeds: Sequence[Any]) -> Partial:
        """A run in several steps: `partial.run` feeds some of `feeds` and gives some of `fetches`.

        What one step has computed the next ones go on from, as if all were one run: every number is
        computed and drawn, every variable read and written once.

        >>> import tgraph as tg
        >>> with tg.Graph() as g:
        ...     a, b = (tg.placeholder(tg.float32, (), name) for name in "ab")
        ...     double = a * 2 + tg.rand(()) * 0
        ...     total = double + b
        >>> partial = tg.Session(g).partial([double, total], [a, b])
        >>> first = partial.run(double, {a: 3.0})
        >>> first, partial.run(total, {b: first * 10})
        (tensor(6.), tensor(66.))
        """
        return Partial(self, fetches, feeds)

    # --- variables ---

    def get(self, variable: Tensor | str) -> Tensor:
        """The value of a variable in this session, a copy; by the tensor, or by its name."""
        return self.variables.get(variable)

    def set(self, variable: Tensor | str, value: Any) -> None:
        """Give a variable another value, of its shape and dtype."""
        self.variables.set(variable, value)

    def initialize(self) -> None:
        """Let all variables begin again as the values that their tensors have now."""
        self.variables.initialize()

    def save(self, path: Any) -> None:
        """Write the values of all variables to an `.npz` file, whole or not at all."""
        self.variables.save(path)

    def restore(self, path: Any, strict: bool = True) -> None:
        """Read what `save` wrote, by the names of variables.

        ValueError where those of the file are not those of the graph; without `strict` only for
        one of another shape or dtype, and variables that the file does not have stay as they are.
        """
        self.variables.restore(path, strict)

    # --- what runs ---

    def executable(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """What the compiler made for a run: its kernels and steps, which `tg.draw` shows.

        Of a run that selects by data it is the last stage, which the others have to run for.
        """
        run, arrays = self._run_for(fetches, feed_dict or {})
        return run.stages(arrays)[-1][0]

    def explain(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        measure: bool = False,
    ) -> Explanation:
        """What each kernel of a run computes, moves and, with `measure`, how long it takes.

        Nothing is written: kernels are measured on copies of what they write.
        """
        run, arrays = self._run_for(fetches, feed_dict or {})
        *earlier, (executable, inputs) = run.stages(arrays)
        stages = [each for each, _ in earlier]
        return explain_executable(
            "session.run", run.plan.notes, executable, inputs if measure else None, stages
        )

    def _run_for(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> tuple[Run, list[Any]]:
        arrays = [self.array_of(*each) for each in feed_dict.items()]
        return self._made(fetches_of(self._trace, fetches), list(feed_dict), arrays), arrays

    def close(self) -> None:
        """Let go of the values of variables; after it there are no runs and no values."""
        with self.variables.lock:
            self._runs.clear()
            self.variables.close()

    def __repr__(self) -> str:
        return f"<Session of {self.graph!r} on {self.device}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_ndarray = np.ndarray


def _key(asked: Any) -> Any:
    """What a run is remembered by: names, and the identity of all else."""
    return asked if type(asked) is str else id(asked)


def function_of(
    session: Session, fetches: Any, feeds: Sequence[Tensor | str] | Tensor | str
) -> Callable[..., Any]:
    """A function of the values of `feeds`, in their order, that runs `fetches` in a session.

    >>> import tgraph as tg
    >>> with tg.Graph() as g:
    ...     x = tg.placeholder(tg.float32, (None,), "x")
    ...     y = x * 2
    >>> double = tg.function_of(tg.Session(g), y, [x])
    >>> double([1.0, 2.0])
    tensor([2., 4.])
    """
    given = [feeds] if isinstance(feeds, (Tensor, str)) else feeds
    found = placeholders_of(session.graph.trace, given)
    placeholders, names = [each.tensor for each in found], [each.name for each in found]

    def call(*values: Any) -> Any:
        if len(values) != len(placeholders):
            raise TypeError(
                f"expected {len(placeholders)} values, for {', '.join(names)}, got {len(values)}"
            )
        return session.run(fetches, dict(zip(placeholders, values)))

    return call
