"""Placeholders: tensors of a graph that each run is fed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import Node, TensorType
from ..core.devices import as_device
from ..core.provenance import user_site
from ..core.record import Record
from ..core.state import state
from ..core.tensor import Tensor, intern_type, wrap
from ..core.trace_state import Source
from ..ops.creation_options import as_dtype
from ..ops.from_data import as_tensor
from ..runtime.dtypes import DType
from ..runtime.records import record
from .graph_trace import GraphTrace
from .lookup import scoped


@record(eq=False)
class Placeholder:
    """A tensor that is fed: its name, its node in the graph, and how its shape was given."""

    tensor: Tensor
    name: str
    node: Node
    shape: tuple[Any, ...]

    @property
    def type(self) -> TensorType:
        type_: TensorType = self.node.type
        return type_

    def __str__(self) -> str:
        shape = ", ".join("None" if each is None else str(each) for each in self.shape)
        return f"placeholder '{self.name}', {self.type.dtype.name}[{shape}]"


class _Fed(Record):
    """The history of a placeholder: gradients can be asked of it, and it keeps none."""

    __slots__ = ()

    def __init__(self, type_: TensorType) -> None:
        super().__init__((), (type_,), user_site())

    def name(self) -> str:
        return "Placeholder"


def building(what: str) -> GraphTrace:
    """The graph under construction, which `what` adds to."""
    context = state.context
    if isinstance(context, GraphTrace):
        return context
    raise RuntimeError(f"{what} adds to a graph under construction: call it inside `with graph:`")


def placeholder(
    dtype: DType,
    shape: Sequence[int | str | None] = (),
    name: str = "placeholder",
    *,
    device: Any = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """A tensor that each run of the graph is fed, by `session.run(..., {tensor: value})`.

    Axes of unknown size are None, or a name, which is the same size wherever it is used in the
    graph. Unknown sizes that have to be equal, as in `x + y`, are taken to be, which is checked
    when they are fed. Inside of `with graph:` only.

    `tg.gradients` gives those with respect to placeholders of floats. With `requires_grad`, so does
    `backward()`, in `.grad`; with `requires_grad=False` none are known.

    >>> import tgraph as tg
    >>> with tg.Graph() as g:
    ...     x = tg.placeholder(tg.float32, ("batch", 8), "x")
    ...     y = tg.placeholder(tg.int64, ("batch",), "y")
    ...     loss = tg.nn.functional.cross_entropy(x, y)
    >>> tg.Session(g).run(loss, {x: tg.zeros(5, 8), y: [0, 1, 2, 3, 4]})
    tensor(2.0794)
    """
    trace = building("placeholder()")
    kind = as_dtype(dtype)
    if kind is None:
        raise TypeError(f"placeholder(): expected a dtype such as tg.float32, got {dtype!r}")
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for size in given:
        if not (size is None or isinstance(size, str) or (type(size) is int and size >= 0)):
            raise TypeError(
                f"placeholder(): a size is a number, None or a name, such as 'batch', not {size!r}"
            )
    label = scoped(name)
    source = Source("placeholder", label)
    taken = trace.unique(label)
    sizes = []
    for axis, size in enumerate(given):
        if not isinstance(size, int):
            own = f"{taken}[{axis}]" if size is None else size
            where = f"axis {axis} of placeholder '{taken}' ({trace.site()})"
            size = trace.sizes.of_axis(own, where)
        sizes.append(size)
    type_ = intern_type(tuple(sizes), kind, as_device(device))
    node = trace.new_input(source, label, type_).node
    return _registered(trace, Placeholder(wrap(node, type_), taken, node, given), requires_grad)


def placeholder_with_default(
    default: Any,
    name: str = "placeholder",
    *,
    dtype: DType | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """A placeholder of the shape of `default`, which it is in runs that do not feed it.

    `default` is a tensor of the graph or of the outside, an array, or numbers. It is not computed,
    and no random number is drawn for it, where something is fed. Gradients end here.

    >>> import tgraph as tg
    >>> with tg.Graph() as g:
    ...     x = tg.placeholder(tg.float32, (None,), "x")
    ...     scale = tg.placeholder_with_default(1.0, "scale")
    ...     y = x * scale
    >>> session = tg.Session(g)
    >>> session.run(y, {x: [1.0, 2.0]}), session.run(y, {x: [1.0, 2.0], scale: 3.0})
    (tensor([1., 2.]), tensor([3., 6.]))
    """
    trace = building("placeholder_with_default()")
    given = as_tensor(default, dtype=dtype)
    taken, type_ = trace.take_name(scoped(name)), given._type
    node = trace.mark(type_, taken, trace.value_of(given))
    return _registered(
        trace, Placeholder(wrap(node, type_), taken, node, type_.shape), requires_grad
    )


def _registered(trace: GraphTrace, made: Placeholder, requires_grad: bool | None) -> Tensor:
    tensor = made.tensor
    if requires_grad is None and made.type.dtype.is_differentiable:
        tensor._record, tensor._requires_grad = _Fed(made.type), True
    else:
        tensor.requires_grad_(bool(requires_grad))
    trace.labels[made.name] = tensor
    trace.graph.placeholders[id(tensor)] = made
    return tensor
