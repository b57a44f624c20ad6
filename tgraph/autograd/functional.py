"""Jacobians, Hessians and their products with vectors, by PyTorch's functions of the same names.

`tgraph.func` has transforms that give functions, nest and batch; these take inputs and give values.
Gradients of the values are recorded with `create_graph` only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import pytree
from ..core.dispatch import zeros_of
from ..core.grad_mode import recorded
from ..core.tensor import Tensor
from ..ops.concatenation import stack
from ..transforms.forward import jvp as forward
from ..transforms.jacobians import jacfwd, jacrev
from .api import grad
from .transforms import grad as gradient_of

Tensors = tuple[Tensor, ...]


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The derivatives of each element of the outputs by each of the inputs.

    `inputs` is a tensor or a tuple of tensors, and so is what `func(*inputs)` gives. The result has
    a tensor [*output.shape, *input.shape] for each output and input, in tuples where those are.
    `strict` makes an output that does not depend on an input an error, instead of zeros.
    `vectorize` takes all elements in one batch; `strategy` "forward-mode" needs it.

    >>> import tgraph as tg
    >>> tg.autograd.functional.jacobian(lambda x: x**2, tg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode", got {strategy!r}'
        )
    if vectorize:
        if strict:
            raise RuntimeError("jacobian: strict needs vectorize=False")
        return _in_one_batch(func, inputs, create_graph, strategy)
    if strategy == "forward-mode":
        raise NotImplementedError("jacobian: strategy 'forward-mode' needs vectorize=True")
    with recorded():
        given, single = _prepared(inputs, "jacobian", create_graph)
        outputs, single_output = _called(func, given, "jacobian")
        rows = tuple(_rows(each, given, create_graph, strict) for each in outputs)
    found = tuple(row[0] if single else row for row in rows)
    return found[0] if single_output else found


def _in_one_batch(func: Callable[..., Any], inputs: Any, create_graph: bool, strategy: str) -> Any:
    given, single = _tuple_of(inputs, "inputs", "jacobian")
    transform = jacfwd if strategy == "forward-mode" else jacrev
    which = 0 if single else tuple(range(len(given)))
    found = transform(func, argnums=which)(*given)
    return found if create_graph else pytree.map(lambda each: each.detach(), found)


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function that gives one number, by each pair of inputs.

    >>> import tgraph as tg
    >>> tg.autograd.functional.hessian(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    given, single = _tuple_of(inputs, "inputs", "hessian")

    def gradient(*inner: Tensor) -> Any:
        output = _number(func(*inner), "hessian")
        with recorded():
            own = tuple(each if each._requires_grad else each.requires_grad_() for each in inner)
            found = grad(output, own, create_graph=True, allow_unused=not strict)
        filled = tuple(
            zeros_of(each._type) if one is None else one for each, one in zip(inner, found)
        )
        return filled[0] if single else filled

    if vectorize:
        which = 0 if single else tuple(range(len(given)))

        def gradient(*inner: Tensor) -> Any:  # type: ignore[no-redef]
            return gradient_of(lambda *each: _number(func(*each), "hessian"), which)(*inner)

    return jacobian(
        gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy
    )  # fmt: skip


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The outputs, and the product of the vector `v` with the Jacobian, by each input.

    `v` is like the outputs; it may be left out where they are one number.
    """
    with recorded():
        given, single = _prepared(inputs, "vjp", create_graph)
        outputs, single_output = _called(func, given, "vjp")
        vectors = _vectors(v, outputs, "vjp")
        found = _gradients(outputs, given, vectors, create_graph, strict)
    return _given_back(outputs, single_output, create_graph), found[0] if single else found


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The outputs, and the product of the Jacobian with the vector `v`, for each output.

    `v` is like the inputs; it may be left out where they are one number. Forward mode.
    """
    given, _ = _tuple_of(inputs, "inputs", "jvp")
    vectors = _vectors(v, given, "jvp")
    with recorded():
        if strict:  # reverse mode knows what depends on what
            own, _ = _prepared(inputs, "jvp", False)
            for each in _called(func, own, "jvp")[0]:
                _gradients((each,), own, (zeros_of(each._type),), False, strict)
        outputs, tangents = forward(func, given, vectors)
    single = isinstance(outputs, Tensor)
    pairs = [(each,) if single else tuple(each) for each in (outputs, tangents)]
    return (
        _given_back(pairs[0], single, create_graph), _given_back(pairs[1], single, create_graph)
    )  # fmt: skip


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """What a function of one number gives, and the product of the vector `v` with its Hessian."""
    with recorded():
        given, single = _prepared(inputs, "vhp", create_graph)
        output = func(*given)
        vectors = _vectors(v, given, "vhp")
        first = _gradients((_number(output, "vhp"),), given, None, True, strict)
        found = _gradients(first, given, vectors, create_graph, strict)
    result = output if create_graph else output.detach()
    return result, found[0] if single else found


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """What a function of one number gives, and the product of its Hessian with the vector `v`.

    The Hessian is symmetric where it is continuous, so this is `vhp`.
    """
    return vhp(func, inputs, v, create_graph, strict)


# --- parts ---------------------------------------------------------------------------------------


def _tuple_of(value: Any, what: str, operation: str) -> tuple[Tensors, bool]:
    """Tensors, and whether there is one that is no tuple."""
    single = isinstance(value, Tensor)
    found = (value,) if single else tuple(value) if isinstance(value, (tuple, list)) else value
    if not isinstance(found, tuple) or not all(isinstance(each, Tensor) for each in found):
        raise TypeError(
            f"The {what} given to {operation} must be either a Tensor or a tuple of Tensors but "
            f"got {type(value).__name__}"
        )
    return found, single


def _prepared(inputs: Any, operation: str, create_graph: bool) -> tuple[Tensors, bool]:
    """Own handles of the inputs, from which gradients start; with `create_graph` they go on."""
    given, single = _tuple_of(inputs, "inputs", operation)
    return tuple(
        each.view_as(each) if create_graph and each._requires_grad
        else each.detach().requires_grad_()
        for each in given
    ), single  # fmt: skip


def _called(func: Callable[..., Any], given: Tensors, operation: str) -> tuple[Tensors, bool]:
    return _tuple_of(func(*given), "outputs of the function", operation)


def _number(found: Any, operation: str) -> Tensor:
    if not isinstance(found, Tensor) or found.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {operation} should contain a single "
            "element"
        )
    return found.reshape(())


def _vectors(given: Any, like: Tensors, operation: str) -> Tensors:
    if given is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v of {operation} can only be None where there is one number"
            )
        return (zeros_of(like[0]._type) + 1,)
    found, _ = _tuple_of(given, "v", operation)
    if [each.shape for each in found] != [each.shape for each in like]:
        raise RuntimeError(
            f"v of {operation} has shapes {[tuple(each.shape) for each in found]} instead of "
            f"{[tuple(each.shape) for each in like]}"
        )
    return found


def _gradients(
    outputs: Sequence[Tensor], inputs: Tensors, vectors: Any, create_graph: bool, strict: bool
) -> Tensors:
    used = [each._requires_grad for each in outputs]
    found: Any = [None] * len(inputs)
    if any(used):
        chosen = [each for each, is_used in zip(outputs, used) if is_used]
        incoming = vectors and [each for each, is_used in zip(vectors, used) if is_used]
        found = grad(
            chosen, inputs, incoming, create_graph=create_graph, retain_graph=True,
            allow_unused=True,
        )  # fmt: skip
    for at, each in enumerate(found):
        if strict and (each is None or not all(used)):
            raise RuntimeError(f"An output of the function is independent of input {at} (strict)")
    return tuple(
        zeros_of(each._type) if one is None else one for each, one in zip(inputs, found)
    )  # fmt: skip


def _rows(output: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of one output by all inputs."""
    elements = output.reshape(-1)
    rows = [
        _gradients((elements[at],), inputs, None, create_graph, strict)
        for at in range(output.numel())
    ]
    return tuple(
        stack([row[at] for row in rows]).reshape((*output.shape, *each.shape))
        if rows
        else zeros_of(each._type).expand((0, *each.shape)).reshape((*output.shape, *each.shape))
        for at, each in enumerate(inputs)
    )


def _given_back(values: Tensors, single: bool, create_graph: bool) -> Any:
    found = values if create_graph else tuple(each.detach() for each in values)
    return found[0] if single else found
