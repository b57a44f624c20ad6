"""Batching: `vmap` runs a function written for one example on many at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..autograd.custom_call import CustomCall, attach_custom, call_custom, run_recorded
from ..autograd.engine import sum_to
from ..compiler.ir import Family, TensorType
from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.carried_number import CarriedNumber
from ..core.composite import Composite
from ..core.context import use_context
from ..core.dispatch import apply, attach, detached, make_source, rewritten, settled
from ..core.grad_mode import recorded, unrecorded
from ..core.inplace import assign
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Lifted, Tensor, intern_type
from ..core.vjp_rules import RULES, WholeRule
from ..runtime.device import CPU
from ..runtime.dtypes import int64
from .batch_rules import BATCH_RULES, Batch, moved, one_by_one, spread
from .batched_call import BatchedCall, lifted, of_input
from .control_rules import on_examples
from .lifted import LiftedContext


class Batched(Lifted):
    """Examples along the first axis of `below`; with `leading` 0, all of them are `below`."""

    __slots__ = ("leading",)

    def __init__(self, context: Any, below: Tensor, is_batched: bool) -> None:
        super().__init__(context, below, user_site())
        self.leading = int(is_batched)  # type: ignore[misc]

    def of(self, function: Callable[[Tensor], Tensor]) -> Batched:
        return Batched(self.context, function(self.below), bool(self.leading))


RANDOMNESS = ("error", "different", "same")


class BatchContext(LiftedContext):
    """Tensors are examples: each value is a tensor below with one more axis, the first one."""

    name = "vmap"

    def __init__(self, size: int, randomness: str = "error") -> None:
        super().__init__()
        self.size = size
        self.randomness = randomness

    def as_lifted(self, tensor: Tensor) -> Batched:
        return Batched(self, tensor, False)

    def batch(self, below: Tensor) -> Tensor:
        """The tensor whose examples are along the first axis of `below`."""
        shape, dtype, device = below._type
        type_ = intern_type(shape[1:], dtype, device)
        return self.made(Batched(self, below, True), type_, below._requires_grad)

    def shared(self, below: Tensor) -> Tensor:
        """The tensor that is `below` for every example."""
        return self.made(Batched(self, below, False), below._type, below._requires_grad)

    def is_batched(self, tensor: Tensor) -> bool:
        return self.owns(tensor) and bool(tensor._value.leading)

    def evaluate(
        self, primitive: Any, tensors: tuple[Tensor, ...], attrs: dict[str, Any], type_: Any
    ) -> Any:
        below = [self.lowered_tensor(each) for each in tensors]
        batched = tuple(map(self.is_batched, tensors))
        previous, state.context = state.context, self.below
        casting, state.autocast = state.autocast, None
        try:
            if primitive.family is Family.CONTROL and any(batched) and self.base.takes_bodies:
                return tuple(map(self._value, *on_examples(self, primitive, tensors, attrs)))
            if primitive is p.random_bits and any(batched) and self.randomness == "different":
                result, are_batched = self._drawn_again(below, batched, attrs), True
            elif any(batched):
                rule = BATCH_RULES.get(primitive, one_by_one)
                result, are_batched = rule(Batch(primitive, self.size, batched), below, attrs), True
            elif primitive is p.random_bits and self.randomness == "different":
                shape = (self.size, *attrs["shape"])
                result, are_batched = apply(primitive, *below, **{**attrs, "shape": shape}), True
            else:
                result, are_batched = apply(primitive, *below, **attrs), False
        finally:
            state.context, state.autocast = previous, casting
        if type(result) is tuple:
            return tuple(Batched(self, each, are_batched) for each in result)
        return Batched(self, result, are_batched)

    def _value(self, below: Tensor, is_batched: bool) -> Batched:
        return Batched(self, below, is_batched)

    def _drawn_again(
        self, tensors: Sequence[Tensor], batched: Sequence[bool], attrs: dict[str, Any]
    ) -> Tensor:
        """Bits of draws that differ from example to example: of each the part of one."""
        own = {**attrs, "shape": (self.size, *attrs["shape"])}
        given = Batch(p.random_bits, self.size, tuple(batched))
        drawn = one_by_one(given, tensors, own)
        numbers = make_source(p.iota, CPU, size=self.size, dtype=int64)
        if attrs.get("device", CPU) is not CPU:
            numbers = apply(p.transfer, numbers, device=attrs["device"])
        return apply(p.index, drawn, numbers, numbers, axis=0)

    def alike(self) -> BatchContext:
        """Another one of as many examples, over the current context."""
        return type(self)(self.size, self.randomness)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record graphs into the trace below, without derivatives."""
        with unrecorded(), use_context(self.base):
            yield

    def detached_value_of(self, tensor: Tensor) -> Any:
        below = self.lowered_tensor(tensor)
        with self.lowered():
            return Batched(self, detached(below), self.is_batched(tensor))

    def rewritten_value(self, before: Tensor, new: Tensor, apart: bool) -> Any:
        pair = [self.lowered_tensor(each) for each in (before, new)]
        if not (self.under.lifts or any(each._requires_grad for each in pair)):
            return self.value_of(new)
        leading = [self.is_batched(each) for each in (before, new)]
        with self.lowered():
            if leading[0] is not leading[1]:
                at = leading.index(False)
                with recorded():
                    pair[at] = spread(pair[at], self.size)
            return Batched(self, rewritten(*pair, apart), any(leading))

    def has_value(self, tensor: Tensor) -> bool:
        return not self.is_batched(tensor) and super().has_value(tensor)

    def is_any(self, decision: Tensor) -> bool | None:
        below = self.lowered_tensor(settled(decision))
        with self.lowered():
            if self.is_batched(decision):
                below = apply(p.any_, below, axes=(0,), keepdims=False)
            return self.under.is_any(below)

    def _greatest(self, count: Tensor) -> Tensor:
        below = self.lowered_tensor(count)
        return apply(p.max_, below, axes=(0,), keepdims=False) if self.is_batched(count) else below

    def readable(self, tensor: Tensor, operation: str) -> Tensor:
        if self.is_batched(tensor):
            self.not_rewritten(operation)
            raise RuntimeError(
                f"vmap: {operation} at {user_site()} needs the value of a tensor that is another "
                f"one in each of {self.size} examples, so there is not one value to go by. Use "
                "tg.where(condition, a, b) to choose between values, operations that keep the "
                "shape, or move it out of the function."
            )
        return self.lowered_tensor(tensor)

    def writable_outside(self, tensor: Tensor, target: Tensor, new: Tensor) -> Tensor:
        if self.is_batched(new):
            raise RuntimeError(
                f"vmap: a tensor of type {tensor._type} from outside of the function is written in "
                f"place, at {user_site()}, with values of which there is one in each of "
                f"{self.size} examples. Make the tensor inside of the function, or pass it as an "
                "argument with an axis of examples."
            )
        return self.lowered_tensor(new)

    def allow_draws(self) -> None:
        if self.randomness == "error":
            raise RuntimeError(
                f"vmap: called random operation while in randomness error mode, at {user_site()}. "
                "Please either use the 'same' or 'different' randomness flags on vmap, or perform "
                "the randomness operation out of vmap."
            )
        super().allow_draws()

    # --- functions with rules of their own ---

    def composite(
        self, operation: Composite, tensors: tuple[Tensor, ...], attrs: dict[str, Any]
    ) -> Tensor:
        below = [self.lowered_tensor(each) for each in tensors]
        batched = tuple(map(self.is_batched, tensors))
        if not any(batched):
            with self.lowered():
                result = operation(*below, **attrs)
        else:
            with self.lowered():
                result = _batched_composite(operation, batched)(*below, **attrs)
        return self.result_of(operation, tensors, attrs, result, any(batched))

    def result_of(
        self, operation: Composite, tensors: tuple[Tensor, ...], attrs: dict[str, Any],
        below: Tensor, is_batched: bool,
    ) -> Tensor:  # fmt: skip
        shape, dtype, device = below._type
        type_ = intern_type(shape[1:] if is_batched else shape, dtype, device)
        result = self.made(Batched(self, below, is_batched), type_)
        if state.grad_enabled and any(each._requires_grad for each in tensors):
            attach(operation, tensors, attrs, (result,))
        return result

    def custom(self, call: CustomCall, tensors: Sequence[Tensor]) -> list[Tensor]:
        if self.runs_as_written(tensors):
            return run_recorded(call, tensors)
        below = [self.lowered_tensor(each) for each in tensors]
        batched = BatchedCall(call, self, [self.is_batched(each) for each in tensors])
        with self.lowered():
            outputs = call_custom(batched, below)
        return self.attached(call, tensors, outputs)

    def custom_by_user(
        self, call: CustomCall, tensors: Sequence[Tensor], rule: Callable[..., Any]
    ) -> list[Tensor]:
        """The outputs of a call for which the user wrote what it does to examples.

        `rule(size, randomness, dims, tensors)` gives outputs below, and where their examples are.
        """
        below = [self.lowered_tensor(each) for each in tensors]
        dims = [0 if self.is_batched(each) else None for each in tensors]
        with self.lowered():
            found, places = rule(self.size, self.randomness, dims, below)
            outputs = [
                spread(each, self.size) if dim is None else moved(each, dim % each.ndim, 0)
                for each, dim in zip(found, places, strict=True)
            ]
        return self.attached(call, tensors, outputs)

    def attached(
        self, call: CustomCall, tensors: Sequence[Tensor], below: Sequence[Tensor]
    ) -> list[Tensor]:
        """Outputs of a call that was made below, with the examples in front."""
        made = []
        for each in below:
            shape, dtype, device = each._type
            made.append(self.made(Batched(self, each, True), intern_type(shape[1:], dtype, device)))
        attach_custom(call, tensors, made, None)
        return made


_BATCHED: dict[Any, Composite] = {}


def _batched_composite(operation: Composite, batched: tuple[bool, ...]) -> Composite:
    """The composite that does what `operation` does, to examples along first axes.

    Its rule is that of `operation`, run on many examples.
    """
    found = _BATCHED.get((operation, batched))
    if found is not None:
        return found

    def context_of(tensors: Sequence[Any]) -> BatchContext:
        sizes = (x.shape[0] for x, is_batched in zip(tensors, batched) if is_batched)
        return BatchContext(next(sizes), "same")

    def own_of(context: BatchContext, value: Any, is_batched: bool) -> Any:
        if isinstance(value, TensorType):
            return value.with_shape(value.shape[1:]) if is_batched else value
        return lifted(context, value, is_batched)

    def function(*tensors: Tensor, **attrs: Any) -> Tensor:
        context = context_of(tensors)
        with context.entered():
            own = [own_of(context, *pair) for pair in zip(tensors, batched)]
            result = operation.function(*own, **attrs)
            below = context.lowered_tensor(result)
            has_examples = context.is_batched(result)
        return below if has_examples else spread(below, context.size)

    def rule(
        cotangents: Any, outputs: Any, inputs: Any, attrs: Any, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        context = context_of(inputs)
        with context.entered():
            own = [own_of(context, *pair) for pair in zip(inputs, batched)]
            results = [own_of(context, each, True) for each in outputs]
            given = [None if each is None else own_of(context, each, True) for each in cotangents]
            found = RULES[operation](given, results, own, attrs, wanted)
            summed = [
                None if each is None else settled(sum_to(each, _type_of(x)))
                for each, x in zip(found, own)
            ]
        return [
            None if each is None else of_input(context, each, is_batched)
            for each, is_batched in zip(summed, batched)
        ]

    made = _BATCHED[operation, batched] = Composite(operation.name, function)
    own_rule = RULES[operation]
    RULES[made] = WholeRule(
        rule, lambda wanted: own_rule.saves(wanted).inputs,
        lambda wanted: own_rule.saves(wanted).outputs,
    )  # fmt: skip
    return made


def _type_of(value: Any) -> TensorType:
    found: TensorType = value if isinstance(value, TensorType) else value._type
    return found


# --- vmap ---


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    in_axes: Any = None,
    out_axes: Any = None,
) -> Callable[..., Any]:
    """A function that does to many examples what `func` does to one.

    `in_dims` says which axis of each argument has the examples, None for an argument that is one
    for all; `out_dims` where they are in the results. Both may be one number, or a container of the
    structure of arguments or results. JAX's names `in_axes` and `out_axes` mean the same.

    `randomness` says what random numbers are: "different" for each example, the "same" for all, or
    an "error". With `chunk_size` that many examples are run at a time, which takes less memory.

    ValueError where axes do not fit arguments, or examples are not equally many; RuntimeError where
    `func` asks for the value of a tensor that is another one in each example.

    >>> import tgraph as tg
    >>> dot = lambda a, b: (a * b).sum()
    >>> tg.vmap(dot)(tg.ones(3, 2), tg.ones(3, 2))
    tensor([2., 2., 2.])
    >>> tg.vmap(dot, in_dims=(0, None))(tg.ones(3, 2), tg.ones(2))
    tensor([2., 2., 2.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0, got {chunk_size}")
    given = in_dims if in_axes is None else in_axes
    results = out_dims if out_axes is None else out_axes

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.flatten((args, kwargs))
        dims = _dims_of(given, args, kwargs)
        size = _examples(leaves, dims)
        if chunk_size is None or size <= chunk_size:
            return _run(func, leaves, spec, dims, size, results, randomness)
        parts = []
        for start in range(0, size, chunk_size):
            stop = min(start + chunk_size, size)
            own = [
                leaf if dim is None else leaf.narrow(dim, start, stop - start)
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            parts.append(_run(func, own, spec, dims, stop - start, results, randomness))
        return _joined(parts, results)

    return transformed


def _run(
    func: Callable[..., Any], leaves: list[Any], spec: Any, dims: list[int | None], size: int,
    out_dims: Any, randomness: str,
) -> Any:  # fmt: skip
    context = BatchContext(size, randomness)
    own, before = list(leaves), {}
    for at, dim in enumerate(dims):
        if dim is not None:
            own[at] = context.batch(moved(settled(leaves[at]), dim, 0))
            before[at] = own[at]._value
    with context.entered():
        args, kwargs = spec.unflatten(own)
        results, out_spec = pytree.flatten(func(*args, **kwargs))
        places = _results_dims(out_dims, out_spec, results)
        made = [_result(context, *pair) for pair in zip(results, places, strict=True)]
        written = [
            (at, context.lowered_tensor(own[at]), context.is_batched(own[at]))
            for at, value in before.items()
            if settled(own[at])._value is not value
        ]
    for at, value, is_batched in written:  # the function wrote its argument in place
        value = value if is_batched else spread(value, size)
        assign(leaves[at], moved(value, 0, dims[at] or 0), "a write in place")
    return out_spec.unflatten(made)


def _result(context: BatchContext, result: Any, dim: int | None) -> Tensor:
    if type(result) is CarriedNumber:
        result = result.tensor
    if not isinstance(result, Tensor):
        raise ValueError(
            f"vmap: expected the function to return only tensors, got {type(result).__name__}"
        )
    below = context.lowered_tensor(settled(result))
    is_batched = context.is_batched(result)
    with context.lowered():
        if dim is None:
            if is_batched:
                raise ValueError(
                    "vmap: out_dims is None for a result that is another one in each example"
                )
            return below
        if not -below.ndim - (not is_batched) <= dim < below.ndim + (not is_batched):
            raise IndexError(
                f"vmap: out_dim {dim} does not fit a result of {result.ndim} dimensions"
            )
        below = below if is_batched else spread(below, context.size)
        return moved(below, 0, dim % below.ndim)


def _dims_of(in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
    """The axis of the examples for each leaf of the arguments; keywords have them in front."""
    if not args and not kwargs:
        raise ValueError("vmap: expected at least one argument, with an axis of examples")
    if isinstance(in_dims, (tuple, list)):
        if len(in_dims) != len(args):
            raise ValueError(
                f"vmap: in_dims has {len(in_dims)} entries, and the function got {len(args)} "
                "positional arguments"
            )
        found = [dim for each, arg in zip(in_dims, args) for dim in _prefix(each, arg, "in_dims")]
    else:
        found = _prefix(in_dims, args, "in_dims")
    found += _prefix(0, kwargs, "in_dims")
    leaves = pytree.leaves((args, kwargs))
    return [_checked(dim, leaf) for dim, leaf in zip(found, leaves, strict=True)]


def _checked(dim: int | None, leaf: Any) -> int | None:
    if dim is None:
        return None
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"vmap: got in_dim={dim} for an input of type {type(leaf).__name__}, which has no axes;"
            " use None as the respective in_dim"
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(
            f"vmap: got in_dim={dim} for a tensor of dimensionality {leaf.ndim}, of shape "
            f"{list(leaf._type.shape)}; expected it between {-leaf.ndim} and {leaf.ndim - 1}"
        )
    return dim % leaf.ndim


def _prefix(dims: Any, tree: Any, name: str) -> list[int | None]:
    """`dims`, of the structure of `tree` or of a part of it from the root, for each leaf."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(pytree.leaves(tree))
    own, inner = pytree.children(dims), pytree.children(tree)
    if own is None or inner is None or len(own) != len(inner):
        raise ValueError(f"vmap: {name}={dims} does not have the structure of {type(tree)}")
    return [dim for pair in zip(own, inner, strict=True) for dim in _prefix(*pair, name)]


def _results_dims(out_dims: Any, spec: Any, results: list[Any]) -> list[int | None]:
    return _prefix(out_dims, spec.unflatten(results), "out_dims")


def _examples(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [leaf._type.shape[dim] for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: at least one argument needs an axis of examples: in_dims has none")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    found: int = sizes[0]
    return found


def _joined(parts: list[Any], out_dims: Any) -> Any:
    """The results for chunks of the examples as those for all."""
    leaves, spec = pytree.flatten(parts[0])
    others = [pytree.leaves(each) for each in parts]
    places = _results_dims(out_dims, spec, leaves)
    return spec.unflatten(
        rows[0] if dim is None else apply(p.concatenate, *rows, axis=dim % rows[0].ndim)
        for rows, dim in zip(zip(*others, strict=True), places, strict=True)
    )
