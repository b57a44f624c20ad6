"""What is written inside of `with graph:` beside operations: scopes, variables, writes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..compiler.ir import Node
from ..core.grad_mode import no_grad
from ..core.state import state
from ..core.tensor import Tensor
from ..nn.parameter import Parameter
from ..ops.from_data import as_tensor
from ..runtime.dtypes import DType
from .lookup import plain
from .operation import Operation
from .placeholder import building


class name_scope:
    """Names of what is made inside begin with `name`, also in pictures and errors.

    "a/b" is the scope "b" in the scope "a".

    >>> import tgraph as tg
    >>> with tg.Graph() as g, tg.name_scope("input"):
    ...     x = tg.placeholder(tg.float32, (), "x")
    >>> print(g.ir(x))
    graph(%input.x: float32[])
      return %input.x
    """

    def __init__(self, name: str) -> None:
        self.name = plain(name)
        self._outer: list[str] = []

    def __enter__(self) -> str:
        outer = state.module_path
        self._outer.append(outer)
        state.module_path = f"{outer}.{self.name}" if outer else self.name
        return state.module_path

    def __exit__(self, *error: object) -> None:
        state.module_path = self._outer.pop()


def control_dependencies(inputs: Sequence[Operation | Tensor]) -> AbstractContextManager[None]:
    """What is built in the `with` block waits for operations, and sees what they have written.

    A run that needs something of the block also does `inputs`. For tensors among them, that means
    that the writes that they were computed from are made.

    >>> import tgraph as tg
    >>> n = tg.zeros(())
    >>> with tg.Graph() as g:
    ...     count = tg.assign(n, n + 1)
    ...     before = n * 10
    ...     with tg.control_dependencies([count]):
    ...         after = n * 10
    >>> session = tg.Session(g)
    >>> session.run(before), session.run([before, after])
    (tensor(0.), [tensor(0.), tensor(10.)])
    """
    trace = building("control_dependencies()")
    operations = [each for each in inputs if isinstance(each, Operation)]
    tensors = [each for each in inputs if isinstance(each, Tensor)]
    if len(operations) + len(tensors) < len(inputs):
        raise TypeError("control_dependencies(): expected operations and tensors")
    for each in operations:
        if each.graph.trace is not trace:
            raise ValueError(f"operation '{each.name}' belongs to another graph")
    nodes: list[Node] = [trace.value_of(each) for each in tensors]
    return trace.after(operations, nodes)


def variable(
    initial: Any, name: str = "variable", *, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """A variable of the graph under construction, such as a count of steps or an average.

    `initial` is a tensor, an array or numbers, known when the graph is built. Sessions begin with
    it, and save the variable by its `name`, behind that of the `name_scope`. With `requires_grad`
    it is a Parameter, as those are which modules make. What runs write into it, `assign` says, or
    any operation in place.

    >>> import tgraph as tg
    >>> with tg.Graph() as g, tg.name_scope("model"):
    ...     step = tg.variable(0, "step")
    ...     count = tg.assign(step, step + 1)
    >>> list(g.variables), tg.Session(g).run([count, step])
    (['model.step'], [None, tensor(1)])
    """
    trace = building("variable()")
    given = initial if isinstance(initial, Tensor) else as_tensor(initial)
    kept = trace.kept(given)
    with trace.making_state():
        own = kept.detach().to(dtype or kept.dtype, copy=True)
        made = Parameter(own) if requires_grad else own
    trace.declare(made, name)
    return made


def assign(variable: Tensor, value: Any, name: str = "assign") -> Operation:
    """An operation that writes `value` into a tensor of the outside, a variable of the graph.

    `value` broadcasts to its shape. What is built afterwards still reads the variable as a run
    finds it; see `control_dependencies`.
    """
    trace = building("assign()")
    if type(variable._value) is Node:
        raise ValueError(
            f"assign(): expected a tensor of the outside, such as a Parameter, not the one made at "
            f"{variable._value.where}, which is computed by each run"
        )
    with trace.operation(name) as made, no_grad():
        variable.copy_(value if isinstance(value, Tensor) else as_tensor(value))
    return made


def group(*inputs: Operation | Tensor, name: str = "group") -> Operation:
    """One operation that does several; tensors among them are computed."""
    if not inputs:
        raise ValueError("group(): expected operations or tensors")
    first = inputs[0]
    trace = first.graph.trace if isinstance(first, Operation) else building("group()")
    made = trace.new_operation(name)
    nodes: list[Node] = []
    for each in inputs:
        if isinstance(each, Operation):
            if each.graph.trace is not trace:
                raise ValueError(f"operation '{each.name}' belongs to another graph")
            nodes += each.nodes
            made.written |= each.written
            made.token = each.token or made.token
        else:
            nodes.append(trace.value_of(each))
    made.nodes = tuple(dict.fromkeys(nodes))
    return made
