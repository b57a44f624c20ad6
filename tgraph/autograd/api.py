"""`backward` and `grad`: what users call to get gradients, and what tensors say of theirs."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..compiler.ir import primitives as p
from ..core.dispatch import apply, edge_of, handle_of, make_source, settled
from ..core.eager_context import constant, current_context
from ..core.record import AccumulateGrad, Keeping, Node, RemovableHandle, as_node, shown
from ..core.sparse_tensor import SparseTensor, with_elements
from ..core.tensor import Tensor, refuse_inference_leaf
from ..runtime.dtypes import DType
from ..runtime.records import NamedTuple
from .engine import AfterAccumulation, run_backward


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: to output `output_nr` of `node`.

    It stands for the tensor in `backward` and `grad`, and keeps nothing of its values.
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


TensorOrTensors: TypeAlias = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of `tensor` goes.

    >>> import tgraph as tg
    >>> x = tg.tensor(3.0, requires_grad=True)
    >>> edge = tg.autograd.graph.get_gradient_edge(x * 2)
    >>> tg.autograd.grad(edge, x, tg.tensor(1.0))
    (tensor(2.),)
    """
    edge = edge_of(settled(tensor))
    if edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(as_node(edge[0]), edge[1])


def _tensors(value: TensorOrTensors) -> tuple[Tensor, ...]:
    """Tensors, with handles for edges."""
    several = isinstance(value, (tuple, list)) and not isinstance(value, GradientEdge)
    given: Any = value if several else (value,)
    found = tuple(_of_edge(each) if isinstance(each, GradientEdge) else each for each in given)
    for each in found:
        if not isinstance(each, Tensor):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got {type(each).__name__}"
            )
    return found


def _of_edge(edge: GradientEdge) -> Tensor:
    node: Any = edge.node
    if isinstance(node, AccumulateGrad):
        return node.variable
    return handle_of((node, edge.output_nr))


def _plain(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """What is recorded: of sparse tensors the values."""
    return tuple(each._elements if isinstance(each, SparseTensor) else each for each in tensors)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _first_cotangents(outputs: Sequence[Tensor], given: Any) -> list[Tensor]:
    cotangents = (None,) * len(outputs) if given is None else _as_tuple(given)
    if len(cotangents) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(cotangents)} gradients")
    return [
        (_of_elements if isinstance(output, SparseTensor) else _first_cotangent)(output, given, at)
        for at, (output, given) in enumerate(zip(outputs, cotangents))
    ]


def _of_elements(output: SparseTensor, given: Any, at: int) -> Tensor:
    """The cotangent of the values of a sparse tensor, of what one of the whole has at them."""
    if not isinstance(given, Tensor) or given._type.shape != output._type.shape:
        whole = f"output {at} of layout {output._layout!r} needs a gradient of its shape"
        raise RuntimeError(f"{whole}, {list(output.shape)}, sparse or not, got {given!r}")
    if isinstance(given, SparseTensor):
        if all(map(operator.is_, given._positions, output._positions)):
            return _first_cotangent(output._elements, given._elements, at)
        given = given.to_dense()
    return _first_cotangent(output._elements, given.sparse_mask(output)._elements, at)


def _first_cotangent(output: Tensor, given: Tensor | None, at: int) -> Tensor:
    if not settled(output)._requires_grad:
        raise RuntimeError(
            f"element {at} of tensors does not require grad and does not have a grad_fn"
        )
    shape, dtype = output._type.shape, output._type.dtype
    if given is None:
        if dtype.is_complex:
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {dtype}"
            )
        if output._type.numel != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs, but output {at} has "
                f"shape {shape}; pass gradient= or reduce it to a scalar first"
            )
        one = constant(1.0, dtype, output._type.device)
        return apply(p.broadcast, one, shape=shape) if shape else apply(p.copy, one)
    if not isinstance(given, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if given._type.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{at}] has a shape of {given.shape} and output[{at}] "
            f"has a shape of {output.shape}."
        )
    if given._type.dtype.is_complex is not dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{at}] has a dtype of {given._type.dtype} and "
            f"output[{at}] has a dtype of {dtype}."
        )
    return given if given._type.dtype is dtype else apply(p.cast, given, dtype=dtype)


def backward(
    tensors: TensorOrTensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: TensorOrTensors | None = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves (or of `inputs` only).

    `grad_tensors` are the cotangents, of the shapes of `tensors`; a tensor of one element needs
    none. `create_graph` records the backward pass, so that its results can be differentiated;
    `retain_graph` keeps saved values for a second pass. `grad_variables` is a former name of
    `grad_tensors`.
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning,
            stacklevel=2,
        )  # fmt: skip
        if grad_tensors is not None:
            raise RuntimeError("grad_tensors and grad_variables are two names of one argument")
        grad_tensors = grad_variables
    outputs = _tensors(tensors)
    cotangents = _first_cotangents(outputs, grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    asked = None if inputs is None else _plain(_tensors(inputs))
    if asked is not None and not asked:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    run_backward(_plain(outputs), cotangents, retain, create_graph, asked, accumulate=True)


def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` stays untouched.

    With `allow_unused`, None for inputs that the outputs do not depend on; with
    `materialize_grads`, zeros. `is_grads_batched`: `grad_outputs` have a first axis more, along
    which there is a vector for each of as many backward passes; so have the results.
    `only_inputs=False` is warned of, and passed over: `backward` adds to `.grad`.

    >>> import tgraph as tg
    >>> x = tg.tensor(3.0, requires_grad=True)
    >>> (first,) = tg.autograd.grad(x**3, x, create_graph=True)
    >>> tg.autograd.grad(first, x)
    (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use backward.",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
    results, wrt = _tensors(outputs), _tensors(inputs)
    if not wrt:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        return _grads_of_batch(
            results, wrt, grad_outputs, create_graph, allow_unused, materialize_grads
        )
    asked = _plain(wrt)
    cotangents = _first_cotangents(results, grad_outputs)
    for each in asked:
        if not settled(each)._requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    retain = create_graph if retain_graph is None else retain_graph
    found = run_backward(_plain(results), cotangents, retain, create_graph, asked, accumulate=False)
    if materialize_grads:
        return tuple(_or_zeros(each, x) for each, x in zip(found, asked))
    missing = [at for at, each in enumerate(found) if each is None]
    if missing and not allow_unused:
        raise RuntimeError(
            f"The differentiated Tensor at index {missing[0]} appears to not have been used in the "
            "graph. Set allow_unused=True if this is the desired behavior."
        )
    return tuple(
        with_elements(x, each) if isinstance(x, SparseTensor) and each is not None else each
        for x, each in zip(wrt, found)
    )


def _grads_of_batch(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], grad_outputs: Any, create_graph: bool,
    allow_unused: bool | None, materialize_grads: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients for each of the vectors that lie along the first axis of `grad_outputs`."""
    given = _as_tuple(grad_outputs)
    counts = {each.shape[0] for each in given if each is not None}
    if len(counts) != 1:
        raise RuntimeError(
            "is_grads_batched: expected grad_outputs with the same first axis, got sizes "
            f"{sorted(counts)}"
        )
    count = counts.pop()
    if not count:
        return tuple(
            make_source(p.full, x._type.device, shape=(0, *x.shape), value=0, dtype=x._type.dtype)
            for x in inputs
        )
    rows = [
        grad(
            outputs, inputs, [None if each is None else each[at] for each in given], True,
            create_graph, allow_unused=allow_unused or materialize_grads,
        )
        for at in range(count)
    ]  # fmt: skip
    return tuple(
        # What is not used is no batch either, as in PyTorch.
        (_or_zeros(None, x) if materialize_grads else column[0]) if column[0] is None
        else apply(p.concatenate, *(each[None] for each in column), axis=0)
        for x, column in zip(inputs, zip(*rows, strict=True))
    )  # fmt: skip


def _or_zeros(found: Tensor | None, like: Tensor) -> Tensor:
    if found is not None:
        return found
    shape, dtype, device = like._type
    return make_source(p.full, device, shape=shape, value=0, dtype=dtype)


# --- methods and properties of Tensor ----------------------------------------------------------


def tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorOrTensors | None = None,
) -> None:
    """Add the gradient of this tensor to `.grad` of the leaves it was computed from.

    Saved values are freed on the way unless `retain_graph`. See `tgraph.autograd.backward`.
    """
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def requires_grad(self: Tensor) -> bool:
    """Whether gradients with respect to this tensor are recorded."""
    return settled(self)._requires_grad


def set_requires_grad(self: Tensor, value: bool) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"requires_grad must be a bool, got {type(value).__name__}")
    requires_grad_(self, value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Ask for gradients with respect to this tensor, a leaf from now on."""
    settled(self)
    if self._record is not None:
        if not requires_grad:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        return self
    if requires_grad and not self._type.dtype.is_differentiable:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    if requires_grad:
        refuse_inference_leaf(self)
    current_context().touch(self)
    self._requires_grad = bool(requires_grad)
    return self


def is_leaf(self: Tensor) -> bool:
    """Whether no recorded operation made this tensor."""
    return settled(self)._record is None


def output_nr(self: Tensor) -> int:
    """Which result of the operation that made it this tensor is."""
    return settled(self)._index


def name(self: Tensor) -> None:
    """None: tensors have no names."""


def grad_fn(self: Tensor) -> Node | None:
    """The record of the operation that made this tensor; None for leaves."""
    record = settled(self)._record
    found: Node | None = None if record is None else shown(record)
    return found


def get_grad(self: Tensor) -> Tensor | None:
    """The accumulated gradient, None until `backward` has reached this tensor."""
    return current_context().read_grad(self)


def set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type "
                            f"{type(value).__name__}")  # fmt: skip
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value._type.shape != self._type.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value._type.shape)}' to a tensor "
                f"of size '{list(self._type.shape)}'. Please ensure that the gradient and the "
                "tensor are the same size"
            )
        _check_grad_dtype(self._type.dtype, value._type.dtype)
        if value._type.device != self._type.device:
            raise RuntimeError(
                f"attempting to assign a gradient on '{value._type.device}' to a tensor on "
                f"'{self._type.device}'. Please ensure that the gradient and the tensor are on the "
                "same device"
            )
    current_context().write_grad(self, value)


def _check_grad_dtype(wanted: DType, came: DType) -> None:
    if wanted is not came:
        raise RuntimeError(
            f"assigned grad has data of a different type: expected {wanted}, got {came}"
        )


def _hooks_of(tensor: Tensor) -> dict[int, Any]:
    settled(tensor)
    record = tensor._record
    if record is None:
        current_context().touch(tensor)
        if tensor._hooks is None:
            tensor._hooks = {}
        hooks: dict[int, Any] = tensor._hooks
        return hooks
    if record.hooks is None:
        record.hooks = {}
    found: dict[int, Any] = record.hooks.setdefault(tensor._index, {})
    return found


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of this tensor is complete; its result replaces it."""
    if not settled(self)._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    hooks = _hooks_of(self)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to `.grad` of this leaf tensor.

    An optimizer of one parameter may step there, so that its gradient can go at once. It is called
    at the end of the backward pass.

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda each: print(each.grad))
    >>> (x * x).sum().backward()
    tensor([2., 4.])
    """
    if not settled(self)._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._record is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = _hooks_of(self)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = AfterAccumulation(hook)
    return handle


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this tensor in `.grad`, though it is no leaf."""
    if not settled(self)._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._record is None or retains_grad(self):
        return
    hooks = _hooks_of(self)
    hooks[RemovableHandle(hooks).id] = Keeping(self, _keep)
    self._hooks = hooks


def _keep(tensor: Tensor, cotangent: Tensor) -> None:
    context = current_context()
    old = context.read_grad(tensor)
    kept = apply(p.copy, cotangent) if old is None else apply(p.add, old, cotangent)
    context.write_grad(tensor, kept)


def retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on this tensor."""
    return self._record is not None and self._hooks is not None
