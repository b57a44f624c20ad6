"""Forward mode: `jvp` carries tangents along with values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.custom_call import CustomCall, attach_custom, call_custom, run_recorded
from ..autograd.engine import run_backward
from ..autograd.transforms import Call, depends_on_others
from ..autograd.transposing import fresh_leaf
from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.composite import Composite
from ..core.dispatch import apply, attach, detached, rewritten, settled, zeros_of
from ..core.grad_mode import recorded
from ..core.inplace import along, assign, written_through
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Lifted, Tensor, ViewStep, root_of
from .jvp_rules import tangent_of
from .lifted import LiftedContext


class Dual(Lifted):
    """A value, `below`, and its tangent; None where it has none."""

    __slots__ = ("tangent",)

    def __init__(self, context: Any, below: Tensor, tangent: Tensor | None) -> None:
        super().__init__(context, below, user_site())
        self.tangent = tangent

    def of(self, function: Callable[[Tensor], Tensor]) -> Dual:
        tangent = None if self.tangent is None else function(self.tangent)
        return Dual(self.context, function(self.below), tangent)


class JvpContext(LiftedContext):
    """Tensors are dual numbers: each value is a tensor below and its tangent."""

    name = "jvp"
    pushes = True

    def __init__(self) -> None:
        super().__init__()
        # Tangents of tensors of the outside that were written in place, by id; those are kept.
        self.outside: dict[int, tuple[Tensor, Tensor]] = {}

    def as_lifted(self, tensor: Tensor) -> Dual:
        return Dual(self, tensor, self._outside_tangent(tensor) if self.outside else None)

    def _outside_tangent(self, tensor: Tensor) -> Tensor | None:
        root = root_of(tensor)
        if id(root) not in self.outside:
            return None
        tangent = self.outside[id(root)][1]
        steps: list[ViewStep] = []
        view = tensor._view
        while view is not None:
            steps = [*view.steps, *steps]
            view = view.base._view
        with self.lowered():
            return along(tangent, steps)

    def was_moved(self, tensor: Tensor) -> bool:
        return id(root_of(tensor)) in self.outside or super().was_moved(tensor)

    def as_read(self, tensor: Tensor, operand: Tensor) -> Tensor:
        below = super().as_read(tensor, operand)
        tangent = None if isinstance(operand._value, Lifted) else self._outside_tangent(tensor)
        return below if tangent is None else self.dual(below, tangent)

    def dual(self, primal: Tensor, tangent: Tensor | None) -> Tensor:
        requires_grad = primal._requires_grad or (tangent is not None and tangent._requires_grad)
        return self.made(Dual(self, primal, tangent), primal._type, requires_grad)

    def parts(self, tensor: Tensor) -> tuple[Tensor, Tensor | None]:
        """Value and tangent of any tensor."""
        value = self.value_of(settled(tensor))
        return value.below, value.tangent

    def evaluate(
        self, primitive: Any, tensors: tuple[Tensor, ...], attrs: dict[str, Any], type_: Any
    ) -> Any:
        pairs = [self.parts(each) for each in tensors]
        primals = [primal for primal, _ in pairs]
        tangents = [tangent for _, tangent in pairs]
        previous, state.context = state.context, self.below
        casting, state.autocast = state.autocast, None
        try:
            output = apply(primitive, *primals, **attrs)
            found = self._tangents(primitive, primals, tangents, output, attrs)
        finally:
            state.context, state.autocast = previous, casting
        if type(output) is tuple:
            return tuple(map(self._value, output, found))
        return self._value(output, found)

    def _value(self, primal: Tensor, tangent: Tensor | None) -> Dual:
        return Dual(self, primal, tangent)

    def _tangents(
        self, operation: Any, primals: Sequence[Tensor], tangents: Sequence[Tensor | None],
        output: Any, attrs: dict[str, Any],
    ) -> Any:  # fmt: skip
        if any(each is not None for each in tangents):
            return tangent_of(operation, primals, tangents, output, attrs)
        return (None,) * len(output) if type(output) is tuple else None

    def detached_value_of(self, tensor: Tensor) -> Any:
        primal, _ = self.parts(tensor)
        with self.lowered():
            return Dual(self, detached(primal), None)

    def rewritten_value(self, before: Tensor, new: Tensor, apart: bool) -> Any:
        (primal, tangent), (now, of_now) = self.parts(before), self.parts(new)
        with self.lowered():
            return Dual(self, rewritten(primal, now, apart), tangent if apart else of_now)

    def writable_outside(self, tensor: Tensor, target: Tensor, new: Tensor) -> Tensor:
        primal, tangent = self.parts(new)
        root = root_of(target)
        if tangent is None and id(root) not in self.outside:
            return primal
        steps = [] if target._view is None else list(target._view.steps)
        with self.lowered():
            given = zeros_of(target._type) if tangent is None else tangent
            whole = self.outside[id(root)][1] if id(root) in self.outside else zeros_of(root._type)
            if target._view is None:
                self.outside[id(root)] = root, given
            else:
                self.outside[id(root)] = root, written_through(whole, steps, given)
        return primal

    def is_any(self, decision: Tensor) -> bool | None:
        below, _ = self.parts(decision)
        with self.lowered():
            return self.under.is_any(below)

    # --- functions with rules of their own ---

    def composite(
        self, operation: Composite, tensors: tuple[Tensor, ...], attrs: dict[str, Any]
    ) -> Tensor:
        pairs = [self.parts(each) for each in tensors]
        primals = [primal for primal, _ in pairs]
        with self.lowered():
            output = operation(*primals, **attrs)
            tangent = self._tangents(operation, primals, [each[1] for each in pairs], output, attrs)
        result = self.made(Dual(self, output, tangent), output._type)
        if state.grad_enabled and any(each._requires_grad for each in tensors):
            attach(operation, tensors, attrs, (result,))
        return result

    def runs_as_written(self, tensors: Sequence[Tensor]) -> bool:
        if any(self.parts(each)[1] is not None for each in tensors):
            return False
        return super().runs_as_written(tensors)

    def custom(self, call: CustomCall, tensors: Sequence[Tensor]) -> list[Tensor]:
        if self.runs_as_written(tensors):
            return self._without_tangents(call, run_recorded(call, tensors))
        pairs = [self.parts(each) for each in tensors]
        primals, tangents = [each[0] for each in pairs], [each[1] for each in pairs]
        with self.lowered():
            if any(each is not None for each in tangents):
                outputs, pushed = call.tangents(primals, tangents)
            else:
                outputs = call_custom(call, primals)
                pushed = [None] * len(outputs)
        return self.attached(call, tensors, outputs, pushed)

    def attached(
        self, call: CustomCall, tensors: Sequence[Tensor], outputs: Sequence[Tensor],
        tangents: Sequence[Tensor | None],
    ) -> list[Tensor]:  # fmt: skip
        """Outputs, and their tangents, of a call that was made below."""
        made = [
            self.made(Dual(self, *pair), pair[0]._type)
            for pair in zip(outputs, tangents, strict=True)
        ]
        attach_custom(call, tensors, made, None)
        return made

    def _without_tangents(self, call: CustomCall, outputs: list[Tensor]) -> list[Tensor]:
        if any(self.parts(each)[1] is not None for each in outputs):
            raise RuntimeError(
                f"jvp: {call.name}, at {user_site()}, reads a tensor with a tangent that is none "
                "of its arguments, of which its rule knows nothing. Pass it as an argument, or "
                "stop_gradient() it."
            )
        return outputs


def jvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """`(outputs, tangents of the outputs)` of `func` at `primals`: a Jacobian-vector product.

    `tangents` has the structure of `primals`, a tuple of arguments. With `has_aux` the function
    gives `(outputs, aux)`, and the result is `(outputs, tangents, aux)`. Forward mode costs about
    as much as `func` itself, however many outputs it has.

    RuntimeError or TypeError where tangents do not fit the primals.

    >>> import tgraph as tg
    >>> tg.jvp(tg.sin, (tg.zeros(2),), (tg.ones(2),))
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or not primals:
        raise RuntimeError("jvp: expected primals and tangents to be tuples of arguments")
    leaves, spec = pytree.flatten(primals)
    given, given_spec = pytree.flatten(tangents)
    if given_spec != spec:
        raise RuntimeError(
            "jvp: expected primals and tangents to have the same structure, got "
            f"{len(leaves)} and {len(given)} tensors"
        )
    for primal, tangent in zip(leaves, given, strict=True):
        check_tangent(primal, tangent)
    context = JvpContext()
    own = [context.dual(settled(a), settled(b)) for a, b in zip(leaves, given, strict=True)]
    before = [each._value for each in own]
    with context.entered():
        result = func(*spec.unflatten(own))
        outputs, aux = result if has_aux else (result, None)
        found, out_spec = pytree.flatten(outputs)
        for each in found:
            if not isinstance(each, Tensor):
                raise RuntimeError(
                    f"jvp: expected the function to return Tensors only, got {type(each).__name__}"
                )
        pairs = [context.parts(each) for each in found]
        aux = pytree.map(lambda each: _outside(context, each), aux)
        written = [
            (leaf, context.parts(each)[0])
            for leaf, each, value in zip(leaves, own, before, strict=True)
            if settled(each)._value is not value
        ]
    for leaf, value in written:  # the function wrote its argument in place
        assign(leaf, value, "a write in place")
    values = out_spec.unflatten(primal for primal, _ in pairs)
    moved = out_spec.unflatten(_or_zeros(*pair) for pair in pairs)
    return (values, moved, aux) if has_aux else (values, moved)


def _outside(context: JvpContext, leaf: Any) -> Any:
    return context.parts(leaf)[0] if isinstance(leaf, Tensor) else leaf


def _or_zeros(primal: Tensor, tangent: Tensor | None) -> Tensor:
    return apply(p.copy, zeros_of(primal._type)) if tangent is None else tangent


def check_tangent(primal: Any, tangent: Any, operation: str = "jvp") -> None:
    """An error where `tangent` cannot be that of `primal`."""
    for name, each in (("primals", primal), ("tangents", tangent)):
        if not isinstance(each, Tensor):
            raise TypeError(f"{operation}: expected Tensors in {name}, got {type(each).__name__}")
    if not primal._type.dtype.is_differentiable:
        raise RuntimeError(
            f"{operation}: only Tensors of floating point and complex dtype have tangents, got "
            f"{primal._type}"
        )
    if primal._type != tangent._type:
        raise RuntimeError(
            f"{operation}: expected a tangent of the type of its primal, {primal._type}, got "
            f"{tangent._type}"
        )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`(outputs, jvp_function)`: `func` is run once, and then linear in its arguments.

    `jvp_function(*tangents)` gives the tangents of the outputs for those of the arguments. What the
    function computes under `no_grad()` is a constant to it, as it is to `grad`, not to `jvp`.

    >>> import tgraph as tg
    >>> y, push = tg.linearize(tg.sin, tg.zeros(2))
    >>> push(tg.ones(2))
    tensor([1., 1.])
    """
    call = Call(func, primals, range(len(primals)), "linearize")
    outputs = call.run({})
    leaves, spec = pytree.flatten(outputs)
    if any(not isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError("linearize: expected the function to return Tensors only")
    with recorded():
        cotangents = [fresh_leaf(each) for each in leaves]
        pulled = pytree.leaves(call.gradients(leaves, cotangents, retain=True))
        # Of what only adds to an argument, the gradient is the cotangent itself, a leaf.
        pulled = [apply(p.copy, each) if each._record is None else each for each in pulled]
    onward = depends_on_others(pulled, [*cotangents, *call.inputs])
    for each in cotangents:  # records may lead here, but nobody can ask for a gradient
        each._requires_grad = False
    own_leaves, own_spec = pytree.flatten(primals)

    def push(*tangents: Any) -> Any:
        given, given_spec = pytree.flatten(tangents)
        if given_spec != own_spec:
            raise RuntimeError("linearize: expected tangents with the structure of the primals")
        for primal, tangent in zip(own_leaves, given, strict=True):
            check_tangent(primal, tangent)
        pairs = [pair for pair in zip(pulled, given) if settled(pair[0])._requires_grad]
        found = run_backward(
            [each for each, _ in pairs], [tangent for _, tangent in pairs], retain_graph=True,
            create_graph=state.grad_enabled and (onward or _needs_graph(given)),
            inputs=cotangents, accumulate=False,
        )  # fmt: skip
        return spec.unflatten(_or_zeros(*pair) for pair in zip(leaves, found, strict=True))

    return call.left(outputs), push


def _needs_graph(tensors: Sequence[Tensor]) -> bool:
    return any(settled(each)._requires_grad for each in tensors)
