"""Linear functions the other way: J t as the gradient of `g -> Jᵀ g`.

(J. Townsend, "A new trick for calculating Jacobian vector products", 2017.) It holds for complex
numbers too, as the convention of gradients is the transpose under the real inner product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.dispatch import settled, without_record, zeros_of
from ..core.state import state
from ..core.tensor import Tensor
from .engine import run_backward, sum_to


def fresh_leaf(like: Tensor) -> Tensor:
    """What stands for a cotangent: its elements do not matter, as all is linear in them."""
    leaf = without_record(zeros_of(like._type))
    leaf._requires_grad = True
    return leaf


def transposed(
    function: Callable[[list[Tensor | None]], Sequence[Tensor | None]],
    likes: Sequence[Tensor],
    given: Sequence[Tensor | None],
    known: Sequence[Tensor],
) -> list[Tensor | None]:
    """The transpose of a linear function, applied to `given`, one tensor for each of its results.

    `function` takes one tensor like each of `likes`, None for those that have no gradient.
    `known` are the tensors on which it depends otherwise.
    """
    previous, state.grad_enabled = state.grad_enabled, True
    try:
        leaves = [fresh_leaf(x) if x._type.dtype.is_differentiable else None for x in likes]
        pairs = [
            (settled(sum_to(made, tensor._type)), tensor)
            for made, tensor in zip(function(leaves), given, strict=True)
            if made is not None and tensor is not None
        ]
    finally:
        state.grad_enabled = previous
    pairs = [(made, tensor) for made, tensor in pairs if made._requires_grad]
    asked = [each for each in leaves if each is not None]
    onward = any(each._requires_grad for each in (*known, *(tensor for _, tensor in pairs)))
    found = iter(
        run_backward(
            [made for made, _ in pairs], [tensor for _, tensor in pairs], retain_graph=True,
            create_graph=previous and onward, inputs=asked, accumulate=False,
        )
        if pairs
        else [None] * len(asked)
    )  # fmt: skip
    for each in asked:  # records may lead here, but nobody can ask for a gradient
        each._requires_grad = False
    return [None if each is None else next(found) for each in leaves]
