"""Users' Python functions in a graph, and what they may do beside giving results.

`host_call(*inputs; function, results, name, effect, serial)` runs a Python function from arrays to
a tuple of arrays, of the types `results`, in the memory of the host. Its `effect` is

- "pure" (or not given): its results follow from its inputs. Equal calls are one, one that nobody
  reads does not run, and one may run again;
- "random": each call gives other results. Every one has its own `serial`, so that no two are equal,
  and none is made again, as a backward pass would (`is_repeatable`); one that nobody reads does not
  run;
- "ordered": it does something that the graph does not see. The last operand is a *token*, and so
  is the last result: uint8[], which stands for all that ordered calls have done so far. Each call
  takes that of the one before it, on whatever device, and the last one is a result of the graph.
  So their order and their number follow from what reads what, and no pass has to know of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import uint8
from .graph import nested_graphs
from .node import Node
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType

EFFECTS = ("pure", "random", "ordered")


def _infer_host_call(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    results, effect = tuple(attrs["results"]), attrs.get("effect", "pure")
    if effect not in EFFECTS:
        raise IRTypeError(f"host_call has an effect of {', '.join(EFFECTS)}, got {effect!r}")
    if effect != "ordered":
        return results
    if not types or types[-1].shape != () or types[-1].dtype is not uint8:
        raise IRTypeError("an ordered host_call expected a token, uint8[], as its last operand")
    return (*results, types[-1])


host_call = register(Primitive("host_call", Family.OPAQUE, _infer_host_call))


def effect_of(node: Node) -> str:
    """The effect of a host call; "pure" for all else."""
    return str(node.attrs.get("effect", "pure")) if node.primitive is host_call else "pure"


def is_repeatable(node: Node) -> bool:
    """Whether `node` gives the same once more, and does nothing else; of a result, its call.

    A branch or a loop does what the graphs inside it do.
    """
    call = node.inputs[0] if node.primitive.family is Family.GET else node
    inside = (
        each for graph in nested_graphs(call) for inner in graph.whole for each in inner.nodes
    )
    return all(effect_of(each) == "pure" for each in (call, *inside))
