"""Branches and loops: their parts are graphs, which read nothing but what they are given.

- `branch(index, *operands; branches)`: the results of one of the graphs `branches` on the operands.
  `index` is a single integer or bool; one below 0 is the first graph, one too large the last.
- `loop(*state, *captures; condition, body, carried)`: while the single bool that `condition` gives
  for the state and the captures is true, `body` gives the next state. The first `carried` operands
  are the state, the others never change; both graphs take all.

Both have several results, which `get` selects: of a loop its last state.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import bool_
from .graph import Graph
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType

Types = tuple[TensorType, ...]


def _infer_branch(types: Sequence[TensorType], attrs: Attrs) -> Types:
    branches: tuple[Graph, ...] = attrs["branches"]
    if not types or types[0].shape or types[0].dtype.kind not in ("bool", "int", "uint"):
        raise IRTypeError("branch expected a single integer or bool that chooses, before operands")
    if not branches:
        raise IRTypeError("branch expected at least one graph to choose")
    operands, results = tuple(types[1:]), _results(branches[0])
    for number, graph in enumerate(branches):
        _check(f"branch {number}", graph, operands, results)
    return results


def _infer_loop(types: Sequence[TensorType], attrs: Attrs) -> Types:
    state = tuple(types[: attrs["carried"]])
    if not 1 <= attrs["carried"] <= len(types):
        raise IRTypeError(f"loop cannot carry {attrs['carried']} of {len(types)} operands")
    decision = TensorType((), bool_, attrs["condition"].outputs[0].type.device)
    _check("the condition of loop", attrs["condition"], tuple(types), (decision,))
    _check("the body of loop", attrs["body"], tuple(types), state)
    return state


def _check(name: str, graph: Graph, operands: Types, results: Types) -> None:
    taken = tuple(node.type for node in graph.inputs)
    if taken != operands:
        raise IRTypeError(f"{name} takes {_text(taken)}, it is given {_text(operands)}")
    if _results(graph) != results:
        raise IRTypeError(f"{name} gives {_text(_results(graph))}, expected {_text(results)}")


def _results(graph: Graph) -> Types:
    return tuple(node.type for node in graph.outputs)


def _text(types: Types) -> str:
    return f"({', '.join(map(str, types))})"


branch = register(Primitive("branch", Family.CONTROL, _infer_branch))
loop = register(Primitive("loop", Family.CONTROL, _infer_loop))
