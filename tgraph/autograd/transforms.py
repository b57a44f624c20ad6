"""Gradients as functions of functions: `grad`, `value_and_grad`, `vjp`. They nest to any order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.dispatch import apply, edge_of, settled, without_record
from ..core.grad_mode import recorded
from ..core.record import Edge, Record
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import Boundary
from .api import grad as gradients_of

ArgNums = int | Sequence[int]


def _entered(value: Any, operation: str) -> Tensor:
    """An own handle to an argument, from which the inner gradient starts.

    It keeps its connection to the argument where that requires grad, for gradients of gradients.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{operation}: expected Tensors in the arguments to differentiate, got "
            f"{type(value).__name__}; pass a tensor, or leave the argument out of argnums"
        )
    if not value._type.dtype.is_differentiable:
        raise RuntimeError(
            f"{operation}: only Tensors of floating point and complex dtype can require "
            f"gradients, got {value._type}"
        )
    if settled(value)._requires_grad:
        return apply(p.reshape, value, shape=value._type.shape)
    inner = without_record(value)
    inner._requires_grad = True
    return inner


def depends_on_others(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> bool:
    """Whether a gradient with respect to anything but `inputs` can be asked for later."""
    own = {id(each) for each in inputs}
    stack: list[Any] = [each._record or each for each in outputs if settled(each)._requires_grad]
    seen: set[int] = set()
    while stack:
        target = stack.pop()
        if isinstance(target, Record):
            if not target.edges:  # that of a placeholder
                return True
            if id(target) not in seen:
                seen.add(id(target))
                stack.extend(edge[0] for edge in target.edges if edge is not None)
        elif id(target) not in own:
            return True
    return False


def ends_since(first: int, outputs: Sequence[Tensor]) -> list[Edge]:
    """Where the history of `outputs` leaves the records that were made since `next_order()` gave
    `first`. What a lifted context or a body was given meanwhile is no end."""
    found: dict[Any, Edge] = {}
    pending = [edge for edge in map(edge_of, outputs) if edge is not None]
    seen: set[int] = set()
    while pending:
        target, index = pending.pop()
        if isinstance(target, Tensor) or target.order < first:
            found[id(target), index] = target, index
        elif id(target) not in seen and not isinstance(target, Boundary):
            seen.add(id(target))
            pending += [edge for edge in target.edges if edge is not None]
    return list(found.values())


class Call:
    """One call of a transformed function: its inputs entered, its outputs taken apart."""

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], argnums: ArgNums, operation: str
    ) -> None:
        chosen = [argnums] if isinstance(argnums, int) else list(argnums)
        if any(not -len(args) <= at < len(args) for at in chosen):
            raise RuntimeError(
                f"{operation}: argnums={argnums} does not fit a call with {len(args)} positional "
                "arguments"
            )
        self.single = isinstance(argnums, int)
        self.function, self.args, self.operation = function, list(args), operation
        self.inputs: list[Tensor] = []
        self.specs: list[Any] = []
        with recorded():
            for at in chosen:
                leaves, spec = pytree.flatten(self.args[at])
                entered = [_entered(leaf, operation) for leaf in leaves]
                self.args[at] = spec.unflatten(entered)
                self.inputs += entered
                self.specs.append(spec)

    def run(self, kwargs: dict[str, Any]) -> Any:
        with recorded():
            return self.function(*self.args, **kwargs)

    def gradients(self, outputs: Sequence[Tensor], cotangents: Any, retain: bool) -> Any:
        """Gradients in the structure of the arguments; zeros for those without influence."""
        onward = state.grad_enabled and (
            depends_on_others(outputs, self.inputs)
            or any(settled(each)._requires_grad for each in cotangents or ())
        )
        live = [at for at, each in enumerate(outputs) if settled(each)._requires_grad]
        found = gradients_of(
            [outputs[at] for at in live],
            self.inputs,
            None if cotangents is None else [cotangents[at] for at in live],
            retain_graph=retain or onward,
            create_graph=onward,
            materialize_grads=True,
        )
        return self.structured(found)

    def structured(self, leaves: Sequence[Any]) -> Any:
        rest, trees = list(leaves), []
        for spec in self.specs:
            trees.append(spec.unflatten(rest[: spec.count]))
            rest = rest[spec.count :]
        return trees[0] if self.single else tuple(trees)

    def left(self, value: Any) -> Any:
        """A result as it goes out: without history that leads only to the entered inputs."""
        leaves, spec = pytree.flatten(value)
        return spec.unflatten([self._left(leaf) for leaf in leaves])

    def _left(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not settled(leaf)._requires_grad:
            return leaf
        keeps = state.grad_enabled and depends_on_others([leaf], self.inputs)
        return leaf if keeps else without_record(leaf)


def _scalar(value: Any, operation: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise RuntimeError(
            f"{operation}: expected the function to return a Tensor, got {type(value).__name__}"
        )
    if value._type.shape != ():
        raise RuntimeError(
            f"{operation}: expected the function to return a scalar tensor, got one of shape "
            f"{list(value._type.shape)}; reduce it, or use vjp"
        )
    return value


def value_and_grad(
    function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns `(value, gradient)` of a scalar function of tensors.

    `argnums` says for which positional arguments; each may be a container of tensors, and the
    gradient has its structure. With `has_aux` the function returns `(value, aux)`, and the result
    is `((value, aux), gradient)`.

    >>> import tgraph as tg
    >>> tg.value_and_grad(lambda x: (x * x).sum())(tg.tensor([1.0, 2.0]))
    (tensor(5.), tensor([2., 4.]))
    """
    return _value_and_grad(function, argnums, has_aux, "value_and_grad")


def _value_and_grad(
    function: Callable[..., Any], argnums: ArgNums, has_aux: bool, operation: str
) -> Callable[..., Any]:
    @functools.wraps(function)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, args, argnums, operation)
        result = call.run(kwargs)
        value, aux = result if has_aux else (result, None)
        scalar = _scalar(value, operation)
        gradient = call.gradients([scalar], None, retain=False)
        out = call.left(scalar)
        return ((out, call.left(aux)), gradient) if has_aux else (out, gradient)

    return transformed


def grad(
    function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of a scalar function; see `value_and_grad`.

    With `has_aux`, it returns `(gradient, aux)`.

    >>> import tgraph as tg
    >>> tg.grad(tg.grad(lambda x: x**3))(tg.tensor(2.0))
    tensor(12.)
    """
    both = _value_and_grad(function, argnums, has_aux, "grad")

    @functools.wraps(function)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return transformed


def grad_and_value(
    function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """`value_and_grad` as `torch.func` has it: `(gradient, value)`, or `(gradient, (value, aux))`.

    >>> import tgraph as tg
    >>> tg.func.grad_and_value(lambda x: (x * x).sum())(tg.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    both = _value_and_grad(function, argnums, has_aux, "grad_and_value")

    @functools.wraps(function)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return transformed


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(outputs, vjp_function)`, or `(outputs, vjp_function, aux)` with `has_aux`.

    `vjp_function(cotangents)`, given cotangents in the structure of the outputs, returns the
    vector-Jacobian products for all arguments, as a tuple.

    >>> import tgraph as tg
    >>> y, pull = tg.vjp(tg.sin, tg.zeros(2))
    >>> pull(tg.ones(2))
    (tensor([1., 1.]),)
    """
    call = Call(function, primals, range(len(primals)), "vjp")
    result = call.run({})
    outputs, aux = result if has_aux else (result, None)
    leaves, spec = pytree.flatten(outputs)
    if any(not isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError("vjp: expected the function to return Tensors only")

    def pull(cotangents: Any) -> Any:
        given, given_spec = pytree.flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError(
                "vjp: expected the cotangents to have the structure of the outputs, "
                f"{len(leaves)} tensors in {spec.container or Tensor}"
            )
        return call.gradients(leaves, given, retain=True)

    out = call.left(outputs)
    return (out, pull, call.left(aux)) if has_aux else (out, pull)
