"""The call of a fused function: one kernel on a device, a plan on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType
from typing import TYPE_CHECKING, Any

from ..compiler.ir import TensorType
from ..core import pytree
from ..core.eager_context import EAGER
from ..core.planned import Planned
from ..core.provenance import is_internal
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.device import CPU
from ..runtime.dtypes import DType

if TYPE_CHECKING:
    from .fused_function import Fused


def with_plans(
    function: Callable[..., Any], on_device: Callable[[], Fused], writes: bool = False
) -> Callable[..., Any]:
    """A plain function, which can be a method too: on a device `on_device`, on the CPU a plan."""

    def plainly(*args: Any, **kwargs: Any) -> Any:
        context = state.context
        if (context is None or context is EAGER) and _is_on_device(args, kwargs):
            return on_device().run(args, kwargs)
        if writes and context is not None and not kwargs:
            return context.update(function, args)
        return function(*args, **kwargs)

    is_ours = is_internal(function.__code__.co_filename)
    reads = None if is_ours else lambda: numbers_read(function)
    return Planned(function, plainly, writes, reads).decorated()


def numbers_read(function: Callable[..., Any]) -> Iterator[Any]:
    """The numbers that a function itself finds in globals and closures now."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    found = function.__globals__
    for name in code.co_names:
        value = found.get(name)
        if type(value) in _NUMBERS:
            yield value
    for cell in function.__closure__ or ():
        if cell != _EMPTY and type(cell.cell_contents) in _NUMBERS:
            yield cell.cell_contents


def _is_on_device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor among the arguments lies on a CUDA device."""
    nested = bool(kwargs)
    for each in args:
        if isinstance(each, Tensor):
            if each._type.device is not CPU:
                return True
            if each._type.shape:
                return False  # it goes with no tensor of a device
        elif type(each) not in _PLAIN:
            nested = True
    if not nested:
        return False
    leaves = pytree.leaves((args, kwargs))
    return any(isinstance(each, Tensor) and each._type.device is not CPU for each in leaves)


_NUMBERS = frozenset({float, int, bool})
_EMPTY = CellType()
_PLAIN = frozenset({float, int, bool, str, type(None), TensorType, DType})
