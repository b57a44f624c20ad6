"""Switching automatic mixed precision on and off."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.autocast import POLICIES, default_type, setting
from ..core.pytree import flatten
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, bfloat16, float16, float64

_F = TypeVar("_F", bound=Callable[..., Any])


class autocast:
    """Compute in mixed precision inside the block, or inside the decorated function.

    Products, convolutions and attention run in `dtype` (bfloat16 by default on "cpu", float16 on
    "cuda"), whatever floats they get; losses, and on CUDA also powers, exponentials, norms and
    sums, in float32. All else takes what it gets. The operations are PyTorch's, by device
    (`tgraph/core/autocast.py`); those that write in place or into `out=` are left alone, and so is
    float64. Gradients have the types of what was computed, so call `backward()` outside.

    It holds for tensors on devices of type `device_type`. Casts of parameters are kept until the
    outermost block ends, unless `cache_enabled` is False. What a compiled function computes depends
    on what is on when it is called: it is compiled anew where that changes.

    Raises ValueError for a device or type that is not known, RuntimeError for
    `binary_cross_entropy` in float16.

    >>> import tgraph as tg
    >>> with tg.autocast("cpu"):
    ...     product = tg.ones(2, 2) @ tg.ones(2, 2)
    >>> product.dtype
    tgraph.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_device(device_type)
        dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and dtype not in (bfloat16, float16):
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. "
                f"Disabling autocast. {device_type.upper()} autocast only supports dtype of "
                f"bfloat16, float16, got {dtype.name}.",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        # Never changed: a traced function that enters it takes it for constant.
        self._setting = (device_type, dtype, enabled, cache_enabled is not False)
        self._before: list[Any] = []

    @property
    def device(self) -> str:
        """The type of the devices for whose tensors it holds."""
        return self._setting[0]

    @property
    def fast_dtype(self) -> DType:
        """The smaller type."""
        return self._setting[1]

    def __enter__(self) -> autocast:
        self._before.append((state.autocast, state.autocast_casts))
        device, dtype, enabled, keeps = self._setting
        state.autocast = setting(state.autocast, device, dtype if enabled else None, keeps)
        if state.autocast_casts is None:
            state.autocast_casts = {}
        return self

    def __exit__(self, *error: object) -> None:
        state.autocast, state.autocast_casts = self._before.pop()

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


_ELSEWHERE = ("hpu", "mps", "mtia", "xpu")
"""Devices of PyTorch's that are not here: libraries ask all of them whether it is on."""


def _check_device(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in POLICIES:
        raise RuntimeError(
            f"User specified an unsupported autocast device_type '{device_type}'; those of "
            f"tgraph are {sorted(POLICIES)}"
        )


def is_autocast_available(device_type: str) -> bool:
    """Whether there is mixed precision on devices of this type."""
    return device_type in POLICIES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether mixed precision is on now, for tensors on devices of this type."""
    if device_type in _ELSEWHERE:
        return False
    _check_device(device_type)
    return state.autocast is not None and state.autocast.type_on(device_type) is not None


def get_autocast_dtype(device_type: str) -> DType:
    """The smaller type that is used now, or by default, on devices of this type."""
    _check_device(device_type)
    now = None if state.autocast is None else state.autocast.type_on(device_type)
    return default_type(device_type) if now is None else now


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled` of the CPU."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> DType:
    """`get_autocast_dtype` of the CPU."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> DType:
    """`get_autocast_dtype` of CUDA GPUs."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept."""
    return state.autocast is None or bool(state.autocast.cache_enabled)


# --- functions with gradients of their own --------------------------------------------------------


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """For `forward` of an `autograd.Function`: cast floats that come in, where autocast is on.

    With `cast_inputs` the method runs with autocast off; without, `custom_bwd` runs `backward` as
    this one runs.
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        is_on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_on and cast_inputs is None
        if cast_inputs is None or not is_on:
            return fwd(ctx, *args, **kwargs)
        leaves, spec = flatten((args, kwargs))
        leaves = [_cast(each, device_type, cast_inputs) for each in leaves]
        args, kwargs = spec.unflatten(leaves)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """For `backward` of an `autograd.Function`: autocast as it was on in its `forward`."""
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    if not isinstance(value, Tensor) or value.device.type != device_type:
        return value
    is_cast = value.is_floating_point() and value.dtype is not float64
    return value.to(dtype) if is_cast else value
