"""Forward mode as PyTorch's `autograd.forward_ad` has it: dual numbers inside of a level.

`tgraph.jvp` does the same for a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..core.dispatch import settled
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.records import NamedTuple
from ..transforms.forward import Dual, JvpContext, check_tangent


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent; None where it has none."""

    primal: Tensor
    tangent: Tensor | None


@contextmanager
def dual_level() -> Iterator[None]:
    """A `with` block in which tensors of `make_dual` carry tangents along. Levels do not nest.

    >>> import tgraph as tg
    >>> from tgraph.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     y = forward_ad.make_dual(tg.tensor([2.0]), tg.tensor([1.0])) ** 3
    ...     forward_ad.unpack_dual(y).tangent
    tensor([12.])
    """
    if isinstance(state.context, JvpContext):
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: there is a dual level "
            "already. tg.jvp nests"
        )
    with JvpContext().entered():
        yield


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """`tensor` with the tangent `tangent` of the same shape and dtype, in the current level.

    RuntimeError outside of a level, or where the two do not fit.
    """
    context = state.context
    if not isinstance(context, JvpContext):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    check_tangent(tensor, tangent, "make_dual")
    # Made in the level, they are dual themselves.
    return context.dual(context.parts(tensor)[0], context.parts(tangent)[0])


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; its tangent is None outside of its level."""
    context, value = state.context, settled(tensor)._value
    if isinstance(context, JvpContext):
        return UnpackedDualTensor(*context.parts(tensor))
    return UnpackedDualTensor(value.below if isinstance(value, Dual) else tensor, None)


_levels: list[AbstractContextManager[None]] = []


def enter_dual_level() -> int:
    """Begin a level; its number. `exit_dual_level` ends it."""
    level = dual_level()
    level.__enter__()
    _levels.append(level)
    return len(_levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level that `enter_dual_level` began."""
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level was entered")
    _levels.pop().__exit__(None, None, None)
