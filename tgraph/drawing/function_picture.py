"""Pictures of functions: what they record when they are traced, and the plans made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..compiled.compiled_call import CompiledCall
from ..compiled.compiled_function import CompiledFunction
from ..compiled.graph_function import GraphFunction
from ..compiler.ir import Node
from ..compiler.plan.executable import Executable
from ..core.trace_state import Source
from ..nn.parameter import Parameter
from ..optim.optimizer import Optimizer
from ..tracing.recorded_call import Call
from ..tracing.recording.guards import Guard
from .graph_picture import Ends, executable_picture, graph_picture
from .picture import Picture

_INPUTS = {"argument": "argument", "captured": "captured", "grad": "captured", "random": "random"}


def traced_picture(function: Callable[..., Any], args: Any, kwargs: Any) -> Picture:
    """The graph of `function(*args, **kwargs)` as it is recorded, before any optimisation."""
    compiled = CompiledFunction(function)
    recording = compiled.recording_for(*args, **kwargs)
    call = recording.call
    ends = ends_of(call, recording.recorder.guards.values())
    return graph_picture(call.graph, f"{compiled.name}, as traced", ends)


def compiled_picture(function: CompiledFunction, args: Any, kwargs: Any) -> Picture:
    """The plan of a compiled function for a call with these arguments.

    Without arguments, the plan that was made last. Where calls are recorded for gradients, the
    backward plan for all of them stands below the forward plan.
    """
    latest = function.latest if not args and not kwargs else None
    plan = latest or function.plan_for(*args, **kwargs)
    title = f"{function.name}, compiled"
    if not plan.function.differentiable:
        return _plan_picture(plan, plan.function.plain, title)
    forward = _plan_picture(plan, plan.function.forward.executable, title)
    return _with_backward(plan, forward)


# --- what inputs and outputs are -----------------------------------------------------------------


def ends_of(call: Call, guards: Iterable[Guard]) -> Ends:
    """Kinds and names of the inputs and outputs of a recorded call.

    `guards` tell which optimizers it uses, whose state is named after the parameters.
    """
    kinds: dict[Node, str] = {}
    for entry in call.inputs:
        learned = isinstance(entry.source.key, Parameter) or isinstance(entry.handle, Parameter)
        kinds[entry.node] = "parameter" if learned else _INPUTS.get(entry.source.kind, "number")
    outputs: dict[int, str] = {}
    for path, ref in zip(call.result.paths("result"), call.refs, strict=True):
        _name_output(outputs, ref, path)
    for owner, grad in call.effects.grads:
        _name_output(outputs, grad, f"{_name_of(call, owner)}.grad")
    return Ends(kinds, _state_names(call, guards), call.donate, outputs)


def _state_names(call: Call, guards: Iterable[Guard]) -> dict[Node, str]:
    """Such as "model.weight exp_avg" for inputs that are the state of an optimizer."""
    known: dict[int, str] = {}
    for guard in guards:
        if isinstance(guard.expected, Optimizer):
            for parameter, state in guard.expected.state.items():
                name = call.trace.names.get(id(parameter), "parameter")
                known.update((id(value), f"{name} {key}") for key, value in state.items())
    entries = [entry for entry in call.inputs if entry.source.kind == "captured"]
    found = {entry.node: known.get(id(entry.source.key)) for entry in entries}
    return {node: name for node, name in found.items() if name is not None}


def _name_output(outputs: dict[int, str], ref: Any, name: str) -> None:
    while ref is not None and ref.kind == "view":
        ref = ref.key
    if ref is not None and ref.kind == "output":
        outputs.setdefault(ref.key, name)


def _name_of(call: Call, source: Source) -> str:
    for entry in call.inputs:
        if _same(entry.source, source):
            return str(entry.node.attrs["name"])
    return call.trace.names.get(id(source.key), source.kind)


def _same(one: Source, other: Source) -> bool:
    """Whether two sources are one; their keys may be tensors, so == is not asked."""
    if one.kind != other.kind:
        return False
    numbers = isinstance(one.key, int) and isinstance(other.key, int)
    return one.key == other.key if numbers else one.key is other.key


# --- plans ---------------------------------------------------------------------------------------


def _plan_picture(plan: CompiledCall, executable: Executable, title: str) -> Picture:
    ends, outputs = ends_of(plan.call, plan.guards), plan.function.outputs
    count = len(outputs.nodes)
    numbers = {index: outputs.number_of(index) for index in range(count)}
    names = {index: ends.outputs.get(at, f"output {at}") for index, at in numbers.items()}
    saved = frozenset(range(count, len(executable.graph.outputs)))
    return executable_picture(
        executable, title, Ends(ends.kinds, ends.names, executable.donate, names, saved)
    )


def _with_backward(plan: CompiledCall, forward: Picture) -> Picture:
    """Both plans in one picture: what the forward plan saves is what the backward plan reads."""
    function: GraphFunction = plan.function
    executable, places = function.backward_plan(function.asks_all)
    inputs = [function.graph.inputs[number] for number in function.asked]
    names = {
        number: f"gradient of {node.attrs['name']}"
        for node, place in zip(inputs, places, strict=True)
        for number in (() if place is None else place.outputs)
    }
    backward = executable_picture(executable, "", Ends(written=executable.donate, outputs=names))
    shared = {
        f"n{at}": f"out{number}" if kind == "output" else f"n{number}"
        for at, (kind, number) in enumerate(function.forward.saved)
    }
    below = _renamed(backward, "b_", shared)
    return Picture(
        forward.title,
        f"forward: {forward.summary}; backward: {backward.summary}",
        (*forward.boxes, *below.boxes),
        (*forward.arrows, *below.arrows),
        (*forward.clusters, *below.clusters),
    )


def _renamed(picture: Picture, prefix: str, shared: Mapping[str, str]) -> Picture:
    """`picture` as the backward pass, with other keys, without boxes that are `shared`."""

    def new(key: str) -> str:
        return shared.get(key) or prefix + key

    boxes = tuple(
        box._replace(
            key=new(box.key), cluster=box.cluster and prefix + box.cluster, phase="backward"
        )
        for box in picture.boxes
        if box.key not in shared
    )
    arrows = tuple(
        arrow._replace(source=new(arrow.source), target=new(arrow.target))
        for arrow in picture.arrows
    )
    clusters = tuple(each._replace(key=prefix + each.key) for each in picture.clusters)
    return picture._replace(boxes=boxes, arrows=arrows, clusters=clusters)
