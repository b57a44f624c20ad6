"""`compile(check=True)`: hold every call against eager code, and find the operation that differs.

The plan runs on copies of what goes in; then the function runs eagerly, in earnest. Results,
in-place changes and gradients must agree to within the rounding of their dtype. If they do not,
the traced graph is run operation by operation, and compiled in growing pieces, to find the first
operation whose compiled value differs, the kernel that computed it, and the pass to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.engine import run_backward
from ..compiler.compile_graph import compile_graph
from ..compiler.graph_interpreter import interpret
from ..compiler.ir import Family, Graph, Node, TensorType, effect_of
from ..compiler.pipeline import optimize
from ..core import pytree
from ..core.tensor import wrap
from ..core.trace_state import Source
from ..runtime.array_functions_complex import view_as_real
from ..runtime.arrays import place, to_host
from ..tracing.recorded_call import Ref
from .call_helpers import overlap
from .call_inputs import call_inputs, copies, tensor_at
from .compiled_call import CompiledCall
from .graph_function import odd_strides

Array = np.ndarray[Any, Any]

# By bytes of a float type: how far results may lie apart, relative to the largest in the tensor.
# Sums are added up in another order when compiled.
RELATIVE_ERROR = {8: 1e-9, 4: 2e-4, 2: 4e-2}
MAX_SINGLE_TRIES = 200


class CheckError(RuntimeError):
    """A compiled call gave another result than eager code.

    `node` is the first operation that differs (None where it could not be found) and `graph` what
    leads to it.
    """

    def __init__(self, message: str, node: Node | None = None, graph: Graph | None = None) -> None:
        super().__init__(message)
        self.node = node
        self.graph = graph


def run_checked(
    plan: CompiledCall, name: str, leaves: Sequence[Any], eager: Callable[[], Any]
) -> Any:
    """The result of `eager()`, after holding the plan against it; CheckError where they differ."""
    _refuse_effects(plan, name)
    leaves = plan.with_places(leaves)
    inputs = call_inputs(plan, leaves)
    if _shares_memory(plan, inputs):  # such calls run eagerly
        return eager()
    try:
        outputs, record = _run_plan(plan, copies(inputs))
        for output in outputs:  # a check that failed on a device is told by who waits for it
            to_host(output)
    except Exception:
        eager()  # leaves behind what comes before the failure, and should fail too
        raise
    before = copies(inputs)
    result = eager()
    for what, compiled, wanted in _pairs(plan, leaves, outputs, result):
        if not close(compiled, wanted):
            raise _difference(plan, name, what, compiled, wanted, before, outputs)
    if record is not None:
        _check_gradients(plan, name, record, leaves, result, before)
    return result


def _refuse_effects(plan: CompiledCall, name: str) -> None:
    """Everything runs twice here, which host calls with an effect must not."""
    call = plan.effectful_call
    if call is not None:
        raise CheckError(
            f"compile(check=True) runs '{name}' twice, by its plan and eagerly, and so would run "
            f"'{call.attrs['name']}' twice, a host_call with the effect "
            f'"{effect_of(call)}" at {call.where}. Nothing was run. Leave check out, or the call.',
            call,
        )


def _run_plan(plan: CompiledCall, inputs: list[Array]) -> tuple[list[Array], Any]:
    """Outputs on copies, and the record where calls are recorded."""
    if not plan.function.differentiable:
        return plan.function.run(inputs), None
    return plan.function.run_recorded(inputs, inputs)


def _shares_memory(plan: CompiledCall, inputs: Sequence[Array]) -> bool:
    written = {write.input for write in plan.call.effects.writes}
    shown = {at for at, entry in enumerate(plan.call.inputs) if entry.shown}
    others = [array for at, array in enumerate(inputs) if at not in written | shown]
    return overlap([inputs[at] for at in written], others)


def _on_host(arrays: Sequence[Array]) -> list[Array]:
    return list(map(to_host, copies(arrays)))


# --- comparing -----------------------------------------------------------------------------------


def close(compiled: Array, wanted: Array) -> bool:
    """Whether two results agree to within the rounding of their dtype."""
    if compiled.shape != wanted.shape or compiled.dtype != wanted.dtype:
        return False
    compiled, wanted = map(in_parts, map(to_host, (compiled, wanted)))
    if wanted.dtype.kind in "biu":
        return bool(np.array_equal(compiled, wanted))
    a, b = compiled.astype(np.float64), wanted.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    a, b = a[finite], b[finite]
    tolerance = RELATIVE_ERROR[wanted.dtype.itemsize] * np.abs(b).max(initial=0.0)
    return bool(np.all(np.abs(a - b) <= tolerance))


def in_parts(array: Array) -> Array:
    """Complex numbers as floats: as passes have them from the first one on."""
    return view_as_real(np, array) if array.dtype.kind == "c" else array


def _pairs(
    plan: CompiledCall, leaves: Sequence[Any], outputs: Sequence[Array], result: Any
) -> list[tuple[str, Array, Array]]:
    """(what it is, compiled, eager) for everything that a call gives or changes."""
    call = plan.call
    found, tree = pytree.flatten(result)
    if tree != call.result:
        raise CheckError(
            f"eager code returned another structure than the traced function: {tree}, "
            f"not {call.result}. The function decides on something that changes between calls."
        )
    pairs = [
        (f"result {path}".rstrip(), outputs[ref.key], leaf._value)
        for path, ref, leaf in zip(tree.paths(), call.refs, found, strict=True)
        if ref.kind == "output"
    ]
    for write in call.effects.writes:
        source = call.inputs[write.input].source
        tensor = tensor_at(source, leaves)
        if write.output is not None and tensor is not None:
            what = f"the new value of `{call.inputs[write.input].node.attrs['name']}`"
            pairs.append((what, outputs[write.output], tensor._value))
    for owner, ref in call.effects.grads:
        if isinstance(owner, Ref):  # of a tensor that the call made
            continue
        grad = tensor_at(Source("grad", owner), leaves)
        if ref is not None and ref.kind == "output" and grad is not None:
            pairs.append((f"`{_owner_name(plan, owner)}.grad`", outputs[ref.key], grad._value))
    return pairs


def _owner_name(plan: CompiledCall, owner: Source) -> str:
    if owner.kind == "argument":
        return plan.names[owner.key]
    return plan.call.trace.names.get(id(owner.key), "captured")


def _check_gradients(
    plan: CompiledCall,
    name: str,
    record: Any,
    leaves: Sequence[Any],
    result: Any,
    inputs: Sequence[Array],
) -> None:
    """Hold the backward plan against eager backward, for cotangents made for the purpose."""
    found, _ = pytree.flatten(result)
    shown = {ref.key: leaf for ref, leaf in zip(plan.call.refs, found) if ref.kind == "output"}
    function = plan.function
    if any(output not in shown for output in function.differentiable):
        return  # the history of something written in place: checked by whoever reads it
    random = np.random.default_rng(0)
    cotangents = [
        wrap(place(random.standard_normal(t.shape).astype(t.dtype.numpy), t.device), t)
        for t in record.outputs
    ]
    results = [shown[output] for output in function.differentiable]
    outside = [at for at in function.asked if at >= 0]
    asked = [tensor_at(plan.call.inputs[at].source, leaves) for at in outside]
    tensors = [each for each in asked if each is not None]
    wanted = run_backward(results, cotangents, True, False, tensors, False)
    compiled = record.cotangents(list(cotangents), [at >= 0 for at in function.asked])
    for at, mine, eager in zip(outside, compiled, wanted, strict=False):
        if mine is None or eager is None:
            continue
        if not close(mine._value, eager._value):
            given = plan.call.inputs[at].node.attrs["name"]
            message = _headline(name, f"the gradient of `{given}`", mine._value, eager._value)
            arrays = [*inputs, *(each._value for each in cotangents)]
            raise _located(message, function.joint, arrays)


# --- finding the operation -----------------------------------------------------------------------


def _headline(name: str, what: str, compiled: Array, wanted: Array) -> str:
    if compiled.shape != wanted.shape or compiled.dtype != wanted.dtype:
        size = f"{compiled.dtype}{list(compiled.shape)} and {wanted.dtype}{list(wanted.shape)}"
        return f"compiled '{name}' differs from eager code: {what} has other types: {size}"
    compiled, wanted = to_host(compiled), to_host(wanted)
    with np.errstate(all="ignore"):
        error = np.abs(compiled.astype(np.float64) - wanted.astype(np.float64))
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(error, nan=np.inf))), error.shape)
    at = f"[{', '.join(map(str, worst))}]" if worst else ""
    return (
        f"compiled '{name}' differs from eager code: {what}{at} is {compiled[worst]}, "
        f"eagerly {wanted[worst]}"
    )


def _difference(
    plan: CompiledCall,
    name: str,
    what: str,
    compiled: Array,
    wanted: Array,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
) -> CheckError:
    message = _headline(name, what, compiled, wanted)
    graph = plan.call.graph
    traced = interpret(graph, _on_host(inputs))
    if all(close(mine, value) for mine, value in zip(outputs, traced)):
        return CheckError(
            f"{message}. The compiled code agrees with the traced graph, so the function did "
            "something else when it was traced: it reads something that changes between calls and "
            "is not watched (see tgraph.recording), or uses values outside of tgraph.",
            graph=graph,
        )
    return _located(message, graph, inputs)


def _located(message: str, graph: Graph, inputs: Sequence[Array]) -> CheckError:
    """The error with the first operation of `graph` whose compiled value differs."""
    nodes = [
        node
        for node in graph.nodes
        if node.primitive.family is not Family.SOURCE and isinstance(node.type, TensorType)
    ]
    wanted = interpret(Graph(graph.inputs, nodes), _on_host(inputs))
    at = _first_wrong(graph, nodes, wanted, inputs)
    if at is None:
        return CheckError(
            f"{message}. No operation differs on its own: the fault depends on how operations are "
            "fused.",
            graph=graph,
        )
    node = nodes[at]
    found = Graph(graph.inputs, nodes[: at + 1])
    if _agrees(found, wanted[: at + 1], inputs):
        found = Graph(graph.inputs, [node])
    guilty = _guilty_pass(found, wanted[at], inputs)
    return CheckError(
        f"{message}.\nThe first operation that differs is {node.primitive.name} of type "
        f"{node.type}, at {node.where}, computed by {_kernel_of(found)}.\n{guilty}",
        node,
        Graph(graph.inputs, [node]),
    )


def _agrees(graph: Graph, wanted: Sequence[Array], inputs: Sequence[Array]) -> bool:
    values = compile_graph(graph, strides=odd_strides(graph)).run(copies(inputs))
    return all(map(close, values, wanted))


def _first_wrong(
    graph: Graph, nodes: Sequence[Node], wanted: Sequence[Array], inputs: Sequence[Array]
) -> int | None:
    """The first node whose value is wrong when all nodes up to it are compiled together."""
    low, high = 0, len(nodes)
    if not _agrees(Graph(graph.inputs, nodes), wanted, inputs):
        while low < high - 1:  # up to `low` nodes agree, `high` do not
            middle = (low + high) // 2
            if _agrees(Graph(graph.inputs, nodes[:middle]), wanted[:middle], inputs):
                low = middle
            else:
                high = middle
        return high - 1
    # Kept apart they are right: compile each with all before it hidden.
    for at in range(min(len(nodes), MAX_SINGLE_TRIES)):
        if not _agrees(Graph(graph.inputs, [nodes[at]]), [wanted[at]], inputs):
            return at
    return None


def _kernel_of(graph: Graph) -> str:
    """The step that computes the last output of `graph`."""
    executable = compile_graph(graph, strides=odd_strides(graph))
    target = executable.graph.outputs[-1]
    for info in executable.kernels:
        if target in info.outputs or target in info.nodes:
            return f"kernel {info.name} [{info.kind}]"
    return "no kernel (a constant or a copy)"


def _guilty_pass(graph: Graph, wanted: Array, inputs: Sequence[Array]) -> str:
    """Which pass changed the value of the last output, if one did."""
    first: list[str] = []
    wanted, inputs = in_parts(wanted), list(map(in_parts, _on_host(inputs)))

    def after(name: str, optimized: Graph) -> None:
        if not first and not close(interpret(optimized, copies(inputs))[-1], wanted):
            first.append(name)

    optimize(graph, after)
    if first:
        return f"The pass '{first[0]}' changed its value."
    return "The optimised graph is right; the kernel computes something else."
