"""Users' own Python functions over arrays, in eager and in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.host_calls import EFFECTS
from ..core.dispatch import apply_several
from ..core.eager_context import current_context
from ..core.tensor import Tensor, intern_type
from ..core.vjp_rules import vjp
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType
from .recording.entered import without_hooks


def host_call(
    function: Callable[..., Any],
    *tensors: Tensor,
    results: Any = None,
    effect: str = "pure",
    name: str | None = None,
) -> Any:
    """What `function` makes of the elements of `tensors`: Python code that runs in compiled code.

    For what tgraph has no operation for, and to print or write down values. `function` is called
    with a NumPy array for each tensor, a copy that it may keep, in eager code at once and in
    compiled code at each call; tensors of a CUDA device are copied to the host and back.
    `results` says what it returns: a pair `(shape, dtype)` or a tensor whose shape and dtype it
    has, for one array; a list of these for several; None where nothing is returned that matters.
    Results lie on the device of the tensors. `name` is what errors and pictures call it.

    `effect` says what compiled code must keep:

    - "pure": results follow from the arrays, and nothing else happens. Equal calls may be made
      once, and those whose results nobody uses not at all.
    - "random": results differ from call to call. Each is made once, in a backward pass too, or not
      at all where nobody uses its results.
    - "ordered": something else happens. Each is made, once, in the order of the program among all
      ordered calls, on whatever devices. A compiled call that fails behind one is not repeated
      eagerly: its other writes are then not made, where eager code would have made some.

    There is no gradient: backward() through the results raises RuntimeError. Call it in the
    forward of a `tg.autograd.Function`, whose backward gives the gradient. RuntimeError, too,
    where results are not of the shapes and dtypes that `results` says; TypeError and ValueError
    for arguments that make no sense. `compile(check=True)` refuses calls that are not pure.

    >>> import numpy as np
    >>> import tgraph as tg
    >>> seen = []
    >>> @tg.compile
    ... def step(x):
    ...     spread = tg.tracing.host_call(np.ptp, x, results=((), x.dtype))
    ...     tg.tracing.host_call(lambda a: seen.append(a.item()), spread, effect="ordered")
    ...     return x / spread
    >>> step(tg.tensor([1.0, 3.0]))
    tensor([0.5000, 1.5000])
    >>> seen
    [2.0]
    """
    if effect not in EFFECTS:
        raise ValueError(f"host_call: effect is one of {', '.join(EFFECTS)}, got {effect!r}")
    for each in tensors:
        if not isinstance(each, Tensor):
            raise TypeError(f"host_call: expected tensors, got {type(each).__name__}")
    device = tensors[0]._type.device if tensors else CPU
    types = [_type_of(each, device) for each in _several(results)]
    if not types and effect != "ordered":
        raise ValueError(
            f'host_call: without results, a call with the effect "{effect}" would never run; say '
            'what it returns with results, or effect="ordered" if it does something else'
        )
    attrs = {
        "function": _OverArrays(function, results),
        "results": tuple(types),
        "name": name or getattr(function, "__name__", type(function).__name__),
        "effect": effect,
    }
    return _made(_applied(tensors, attrs, device), results)


def _applied(tensors: Sequence[Tensor], attrs: dict[str, Any], device: Device) -> Sequence[Tensor]:
    context = current_context()
    if attrs["effect"] == "pure":
        return apply_several(p.host_call, *tensors, **attrs)
    if attrs["effect"] == "random":
        return apply_several(p.host_call, *tensors, **attrs, serial=context.serial())
    *made, token = apply_several(p.host_call, *tensors, context.token(device), **attrs)
    context.ordered(token)
    return made


def _several(results: Any) -> Sequence[Any]:
    if results is None:
        return ()
    return results if isinstance(results, list) else (results,)


def _made(tensors: Sequence[Tensor], results: Any) -> Any:
    if results is None:
        return None
    return tuple(tensors) if isinstance(results, list) else tensors[0]


def _type_of(result: Any, device: Device) -> TensorType:
    if isinstance(result, Tensor):
        return intern_type(result._type.shape, result._type.dtype, device)
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], DType):
        return intern_type(tuple(map(int, result[0])), result[1], device)
    raise TypeError(
        "host_call: results are described by a pair (shape, dtype) or a tensor, several by a list "
        f"of these; got {result!r}"
    )


class _OverArrays:
    """A user's function over arrays as one from arrays to a tuple of arrays, all its own.

    Equal where it does the same, so that equal pure calls are one.
    """

    __slots__ = ("form", "function", "runs")

    def __init__(self, function: Callable[..., Any], results: Any) -> None:
        self.function, self.runs = function, without_hooks(function)
        self.form = None if results is None else "list" if isinstance(results, list) else "one"

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        found = self.runs(*[np.array(each) for each in arrays])
        if self.form is None:
            return ()
        return tuple(map(np.array, found if self.form == "list" else (found,)))

    def __eq__(self, other: object) -> bool:
        return type(other) is _OverArrays and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, str | None]:
        return id(self.function), self.form


@vjp(p.host_call)
def _host_call(
    cotangents: Any, outputs: Any, inputs: Any, attrs: dict[str, Any], wanted: Any
) -> NoReturn:
    raise RuntimeError(
        f"host_call: the gradient of '{attrs['name']}' is not known, as it is a Python function. "
        "Call it in the forward of a tg.autograd.Function, whose backward gives the gradient, or "
        "detach() its arguments"
    )
