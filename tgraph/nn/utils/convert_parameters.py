"""Many parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...ops.concatenation import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters as one vector."""
    return cat([each.reshape(-1) for each in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of `vec` into the parameters, in their order."""
    given = list(parameters)
    wanted = sum(each.numel() for each in given)
    if vec.ndim != 1 or vec.numel() != wanted:
        raise RuntimeError(
            f"vector_to_parameters(): expected a vector of {wanted} elements, got shape "
            f"{list(vec.shape)}"
        )
    start = 0
    for each in given:
        part = vec[start : start + each.numel()]
        each.copy_(part.reshape(each.shape))
        start += each.numel()
