"""A recorded call that holds for all sizes of some axes of its arguments.

The function was traced once, with open sizes (`dim.SymInt`) in the shapes. `OpenCall` has a
`CompiledCall` for each size that comes. Most are made of a compilation for many sizes; others of
the graph with numbers in place of sizes, whose types are inferred again. Nothing is traced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..compiler.ir import Graph, TensorType, input_node
from ..compiler.ir.dim import Dim, SizeGuard, Sizes, SymInt, size_at, solved
from ..compiler.plan.plan_sizes import PlanSizes
from ..core.tensor import Size, ViewStep
from ..runtime.records import replace
from ..tracing.open_sizes import number_at
from ..tracing.recorded_call import Call, Change, Effects, Ref
from ..tracing.recording.guards import Guard
from ..tracing.recording.places import Place
from .compiled_call import CompiledCall
from .fed import Fed, attrs_at, type_at
from .graph_function import GraphFunction
from .open_run import OpenRun
from .sized_call import NOT_SIZED, Refusal, SizedCall

MAX_SIZES = 64
"""Plans kept of one recorded call, for so many sizes; the one made first goes first."""

MOST_SIZED = 48
"""Compilations kept that serve many sizes each; the one unused longest goes first."""

MOST_REFUSALS = 16
"""From so many reasons on why sizes are compiled alone, all others are, too."""


class OpenCall:
    """Stands among the plans of a function for those of all sizes.

    Sizes that the compiler treats alike share one compilation (`SizedCall`). Where that cannot be,
    each is compiled alone.

    `make(call, fed, leaves)` makes the CompiledCall of a call at the sizes of `fed`. `function`
    makes the function of its graph alone. What lies in the `places` follows the leaves.
    """

    def __init__(
        self,
        call: Call,
        axes: Mapping[tuple[int, int], SymInt],
        make: Callable[[Call, Fed, Sequence[Any]], CompiledCall],
        function: Callable[[Call, Fed], GraphFunction],
        names: Sequence[str],
        leaves: Sequence[Any],
        places: Sequence[Place] = (),
    ) -> None:
        self._places = places if any(at >= len(leaves) for at, _ in axes) else ()
        self.call, self.axes, self._make, self._names = call, dict(axes), make, names
        self._function = function
        self._dims = list(dict.fromkeys(d for size in self.axes.values() for d in size.dims))
        self._dims.sort(key=call.trace.sizes.dims.index)
        self._plans: OrderedDict[tuple[int, ...], CompiledCall] = OrderedDict()
        self._telling = _telling(self.axes, self._dims)
        every = list(self.axes)
        self._runs = OpenRun([every[number] for number in self._telling], self._places)
        self.run = self._runs.run
        self._sized: list[SizedCall] = []  # the one used last is the first
        self._refusals: list[Refusal] = []
        made = self._plan_at(leaves)
        self._first = self._sized[0].call if self._sized else made  # it knows all but the sizes

    def _put(self, key: tuple[int, ...], plan: CompiledCall) -> None:
        """Let the hot path find a plan by the sizes of all axes."""
        self._runs.put(self._known(key), plan)
        self.run = self._runs.run

    def _known(self, key: tuple[int, ...]) -> tuple[int, ...]:
        """By what the hot path finds the plan for the sizes of all axes."""
        return tuple(key[number] for number in self._telling)

    def at(self, leaves: Sequence[Any]) -> CompiledCall:
        """The plan for a call that fits, made if there is none for its sizes."""
        return self._plans.get(self._key(leaves)) or self._plan_at(leaves)

    def _plan_at(self, leaves: Sequence[Any]) -> CompiledCall:
        sizes = self._sizes(leaves)
        made = self._at_sizes(sizes, leaves) or self._alone(sizes, leaves)
        key = self._key(leaves)
        self._plans[key] = made
        self._put(key, made)
        if len(self._plans) > MAX_SIZES:
            key, _ = self._plans.popitem(last=False)
            self._runs.drop(self._known(key))
        return made

    def _at_sizes(self, sizes: Sizes, leaves: Sequence[Any]) -> CompiledCall | None:
        """From what is compiled for many sizes, or that now; None where it cannot be."""

        def alone() -> tuple[Call, GraphFunction]:
            fed = fed_for(self.call, sizes)
            call = call_at(self.call, fed)
            return call, self._function(call, fed)

        for number, sized in enumerate(self._sized):
            found = sized.at(sizes, leaves, alone)
            if found is not None:
                self._sized.insert(0, self._sized.pop(number))
                return found
        numbers = self._numbers(sizes)
        if len(self._refusals) > MOST_REFUSALS or any(e.holds(numbers) for e in self._refusals):
            return None
        opened = PlanSizes()
        try:
            sized = SizedCall(opened, sizes, lambda own: self._made_at(own, leaves))
        except NOT_SIZED as error:
            self._refusals.append(Refusal(opened, error))
            return None
        self._sized = [sized, *self._sized][:MOST_SIZED]
        return sized.at(sizes, leaves, alone)

    def _numbers(self, sizes: Sizes) -> tuple[int, ...]:
        """The sizes of dims, in their order."""
        return tuple(sizes[dim] for dim in self._dims)

    def _alone(self, sizes: Sizes, leaves: Sequence[Any]) -> CompiledCall:
        """By all of the compiler, for these sizes alone."""
        return self._made_at(sizes, leaves)

    def _made_at(self, sizes: Sizes, leaves: Sequence[Any]) -> CompiledCall:
        fed = fed_for(self.call, sizes)
        return self._make(call_at(self.call, fed), fed, leaves)

    def _key(self, leaves: Sequence[Any]) -> tuple[int, ...]:
        if self._places:
            leaves = [*leaves, *(place.now() for place in self._places)]
        return tuple(leaves[at]._type.shape[axis] for at, axis in self.axes)

    def _sizes(self, leaves: Sequence[Any]) -> Sizes:
        return solved(zip(self.axes.values(), self._key(leaves)))

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """The sizes of `axes` that there are plans for."""
        return list(self._plans)

    @property
    def size_notes(self) -> list[str]:
        """Which sizes this holds for, in words."""
        notes = [
            f"{self._names[at]}.shape[{axis}] is any size {size.text}"
            for (at, axis), size in self.axes.items()
        ]
        notes += [f"{dim.name} is {bounds_text(dim)}" for dim in self._dims if bounds_text(dim)]
        notes += [f"{one.name} has to be {last.name}" for one, last in self.call.trace.sizes.joined]
        notes += [f"where {each} ({each.where})" for each in self.size_guards]
        notes += [f"one plan where {each.notes}" for each in self._sized]
        refused = dict.fromkeys(why for each in self._sized for why in each.refused)
        notes += [f"a backward plan for each size: {why}" for why in refused]
        refused = dict.fromkeys(each.reason for each in self._refusals)
        return notes + [f"a plan for each size: {why}" for why in refused]

    @property
    def size_guards(self) -> list[SizeGuard]:
        """What sizes this holds for."""
        guards = self.call.trace.sizes.guards.values()
        return [each for each in guards if each.size.dims.issubset(self._dims)]

    # --- as a CompiledCall ---

    @property
    def reason(self) -> str:
        return self._first.reason

    @property
    def guards(self) -> list[Guard]:
        return self._first.guards

    @property
    def environment(self) -> dict[str, Any]:
        return self._first.environment

    def moved_numbers(self, leaves: Sequence[Any]) -> list[int]:
        return self._first.moved_numbers(leaves)

    def rebind(self) -> None:
        for plan in (*(sized.call for sized in self._sized), *self._plans.values()):
            plan.rebind()
        self._runs.clear()
        for key, plan in self._plans.items():
            self._put(key, plan)

    def why_not(self, leaves: Sequence[Any]) -> str | None:
        return next((why for _, why in self.differences(leaves)), None)

    def distance(self, leaves: Sequence[Any]) -> int:
        return sum(weight for weight, _ in self.differences(leaves))

    def differences(self, leaves: Sequence[Any]) -> Iterator[tuple[int, str]]:
        """What of a call does not fit, as a CompiledCall tells it."""
        fits = True
        for difference in self._first.differences(leaves):
            fits = False
            yield difference
        if not fits:
            return
        sizes = self._sizes(leaves)
        first: dict[str, str] = {}
        for ((at, axis), size), number in zip(self.axes.items(), self._key(leaves)):
            name = f"{self._names[at]}.shape[{axis}]"
            wanted = size.at(sizes)
            if wanted == number:
                first.setdefault(size.key, name)
                continue
            fits = False
            other = first.get(size.key)
            if other is None:
                yield 1, f"{name} is {number}, which is no {size.text}"
            else:
                yield 1, f"sizes differ that were equal: {other} is {wanted}, {name} {number}"
        if not fits:
            return
        for guard in self.size_guards:
            if not guard.holds(sizes):
                yield 1, f"sizes for which it is not so that {guard} ({guard.where})"

    def leaves_out(self, leaves: Sequence[Any]) -> bool:
        """Whether the sizes of a call are singled out, so that a trace of it is of no more use."""
        if self._first.why_not(leaves) is not None:
            return False
        sizes = self._sizes(leaves)
        return any(each.relation == "!=" and not each.holds(sizes) for each in self.size_guards)


def _telling(axes: Mapping[tuple[int, int], SymInt], dims: Sequence[Dim]) -> list[int]:
    """The numbers of axes that tell all sizes: for each one that it is the size of, if any is."""
    sizes = list(axes.values())
    found: dict[int, None] = {}
    for dim in dims:
        own = [number for number, size in enumerate(sizes) if size.single is dim]
        every = [number for number, size in enumerate(sizes) if dim in size.dims]
        found.update(dict.fromkeys(own[:1] or every))
    return list(found)


def fed_for(call: Call, sizes: Sizes) -> Fed:
    """What stands for the nodes of a call at some sizes."""
    cut = {
        node: input_node(f"kept{number}", type_at(node.type, sizes), node.where)
        for number, node in enumerate(call.cut)
    }
    return Fed(cut, sizes)


def types_with(
    fed: Fed, axes: Mapping[tuple[int, int], SymInt], leaves: Sequence[Any]
) -> dict[int, TensorType]:
    """The types of arguments by their positions, with the sizes of `fed` along `axes`."""
    found: dict[int, TensorType] = {}
    for (at, axis), size in axes.items():
        type_ = found.get(at, leaves[at]._type)
        shape = (*type_.shape[:axis], size.at(fed.sizes), *type_.shape[axis + 1 :])
        found[at] = type_.with_shape(shape)
    return found


def open_axes(axes: Mapping[tuple[int, int], SymInt]) -> dict[int, dict[int, str]]:
    """Position of an argument -> axis -> its size in words."""
    found: dict[int, dict[int, str]] = {}
    for (at, axis), size in axes.items():
        found.setdefault(at, {})[axis] = size.text
    return found


def bounds_text(dim: Dim) -> str:
    """The range of a size in words; nothing where it has none."""
    low, high = dim.bounds
    if high is not None:
        return f"from {low} to {high}"
    return f"{low} or more" if low else ""


def call_at(call: Call, fed: Fed) -> Call:
    """A recorded call where its sizes are known."""
    inputs = [
        replace(entry, node=node)
        for entry, node in zip(call.inputs, fed.apply([entry.node for entry in call.inputs]))
    ]
    graph = Graph([entry.node for entry in inputs], fed.apply(call.graph.outputs))
    refs = _Refs(fed.sizes)
    return replace(
        call,
        graph=graph,
        inputs=[_input_at(entry, fed.sizes) for entry in inputs],
        refs=[refs.at(ref) for ref in call.refs],
        effects=refs.effects(call.effects),
        leaves=[refs.at(ref) for ref in call.leaves],
    )


def _input_at(entry: Any, sizes: Sizes) -> Any:
    source = entry.source
    if source.kind != "number":
        return entry
    return replace(entry, source=replace(source, key=number_at(source.key, sizes)))


class _Refs:
    """What stands for Refs where sizes are known; one Ref in several places stays one."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self._new: dict[int, Ref] = {}

    def at(self, ref: Ref) -> Ref:
        if id(ref) not in self._new:
            self._new[id(ref)] = self._at(ref)
        return self._new[id(ref)]

    def _at(self, ref: Ref) -> Ref:
        match ref.kind:
            case "number":
                return replace(ref, key=number_at(ref.key, self.sizes))
            case "shape":
                return Ref("static", Size(size_at(each, self.sizes) for each in ref.key))
            case "view":
                steps = tuple(self._step(each) for each in ref.steps)
                return replace(ref, key=self.at(ref.key), steps=steps)
            case "container":
                tree, refs = ref.key
                return replace(ref, key=(tree, [self.at(each) for each in refs]))
        return ref

    def _step(self, step: ViewStep) -> ViewStep:
        attrs = attrs_at(step.attrs, self.sizes)
        return step if attrs is None else ViewStep(step.primitive, dict(attrs))

    def effects(self, effects: Effects) -> Effects:
        return replace(
            effects,
            grads=[
                (self._holder(owner), None if ref is None else self.at(ref))
                for owner, ref in effects.grads
            ],
            replaced=[(owner, self.at(ref)) for owner, ref in effects.replaced],
            parted=[self.at(ref) for ref in effects.parted],
            changes=[self._change(each) for each in effects.changes],
        )

    def _change(self, change: Change) -> Change:
        refs = [self.at(ref) for ref in change.refs]
        return replace(change, holder=self._holder(change.holder), refs=refs)

    def _holder(self, holder: Any) -> Any:
        return self.at(holder) if isinstance(holder, Ref) else holder
