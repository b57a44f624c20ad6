"""Automatic mixed precision: which operations compute in a smaller float type, which in float32.

Inside of `autocast` (`tgraph/amp/autocast_mode.py`) an operation that users call casts its
arguments by the policy of its name on their device, and runs as a unit: what it is made of casts
nothing. `state.autocast` is what is on in this thread. Equal settings are one object, so that a
compiled function watches it by identity.

The policies are PyTorch's (`aten/src/ATen/autocast_mode.h` and `.cpp`), for the CPU and for CUDA.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..compiler.ir import primitives as p
from ..runtime.dtypes import DType, bfloat16, float16, float32, float64
from ..runtime.records import NamedTuple
from .dispatch import apply, settled
from .state import state
from .tensor import Tensor, storage_of

_F = TypeVar("_F", bound=Callable[..., Any])

LOWER, FLOAT32, WIDEST, BANNED = "lower", "float32", "widest", "banned"
"""Compute in the smaller type, in float32, in the widest type of the arguments, or not at all."""
THROUGH = "through"
"""Cast nothing, but let operations cast of which this one is made."""


def _table(**names: str) -> dict[str, str]:
    return {name: policy for policy, listed in names.items() for name in listed.split()}


_LOSSES = """
    cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss
    mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss
    soft_margin_loss triplet_margin_loss binary_cross_entropy_with_logits cross_entropy"""
_PRODUCTS = """
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear matmul mm bmm
    addmm addbmm baddbmm prelu scaled_dot_product_attention vecdot chain_matmul multi_dot"""

POLICIES: dict[str, dict[str, str]] = {
    "cpu": _table(
        lower=f"{_PRODUCTS} tensordot",
        float32=f"""{_LOSSES}
            binary_cross_entropy ctc_loss avg_pool3d adaptive_avg_pool3d max_pool3d max_unpool2d
            max_unpool3d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d grid_sample
            polar prod trace quantile nanquantile stft cdist view_as_complex pad_mirrored cholesky
            cholesky_ex cholesky_inverse cholesky_solve inverse inv inv_ex pinverse solve svd
            svdvals qr geqrf eig eigh eigvals eigvalsh lstsq lu_solve matrix_rank cond tensorinv
            tensorsolve triangular_solve ormqr orgqr householder_product""",
        widest="cat concat concatenate stack hstack vstack dstack index_copy",
        through="einsum",
    ),
    "cuda": _table(
        lower=f"{_PRODUCTS} mv addmv addr einsum",
        float32=f"""{_LOSSES}
            acos arccos asin arcsin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh
            tan pow softplus layer_norm rms_norm group_norm cosine_similarity dist pdist cdist
            renorm logsumexp interpolate gaussian_nll_loss prod softmax log_softmax softmin cumprod
            cumsum norm vector_norm matrix_norm sum normalize pairwise_distance""",
        widest="addcdiv addcmul atan2 arctan2 bilinear cross dot vdot grid_sample index_put "
        "scatter_add tensordot",
        banned="binary_cross_entropy",
    ),
}
"""By the type of the device, the policy of an operation. Others take what they get."""

# Operations that cast nothing and are made of some that do.
_UNITS = """
    mean std var std_mean var_mean logaddexp logaddexp2 logcumsumexp sigmoid tanh sinc float_power
    ldexp outer xlogy mv addmv dot vdot nansum nanmean square sqrt
    """
NAMES = frozenset({*POLICIES["cpu"], *POLICIES["cuda"], *_UNITS.split()})
"""Operations that do not simply run with autocast on."""


class Autocast(NamedTuple):
    """What is on: the type for each type of device, and whether casts of parameters are kept."""

    types: tuple[tuple[str, DType], ...]
    cache_enabled: bool

    def type_on(self, device_type: str) -> DType | None:
        """The smaller type on a device, None where nothing is cast."""
        return next((dtype for name, dtype in self.types if name == device_type), None)


_known: dict[Autocast, Autocast] = {}
_DEFAULTS = {"cpu": bfloat16, "cuda": float16}


def setting(
    before: Autocast | None, device_type: str, dtype: DType | None, cache_enabled: bool
) -> Autocast | None:
    """`before` with another type on one device, None for no casts there."""
    types = {} if before is None else dict(before.types)
    types.pop(device_type, None)
    if dtype is not None:
        types[device_type] = dtype
    if not types:
        return None
    made = Autocast(tuple(sorted(types.items(), key=lambda item: item[0])), cache_enabled)
    return _known.setdefault(made, made)


def default_type(device_type: str) -> DType:
    """The smaller type where none is said."""
    return _DEFAULTS[device_type]


def with_autocast(function: _F, name: str = "") -> _F:
    """`function`, which casts its arguments by the policy of its name, inside of `autocast`."""
    name = name or function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.autocast is None:
            return function(*args, **kwargs)
        return run_cast(name, function, args, kwargs)

    call.follows_autocast = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


class no_autocast:
    """Inside, nothing is cast: what runs is a part of an operation, or of a backward pass."""

    _before: Autocast | None

    def __enter__(self) -> None:
        self._before = state.autocast
        state.autocast = None

    def __exit__(self, *error: object) -> None:
        state.autocast = self._before


def run_cast(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call inside of `autocast`, with arguments cast by the policy of `name`."""
    current = state.autocast
    tensors = list(_tensors((*args, *kwargs.values())))
    device_type = tensors[0]._type.device.type if tensors else ""
    lower = current.type_on(device_type)
    if name == "pad" and {"reflect", "replicate"} & {*args[2:3], kwargs.get("mode")}:
        name = "pad_mirrored"
    policy = POLICIES.get(device_type, {}).get(name)
    if policy == THROUGH:
        return function(*args, **kwargs)
    state.autocast = None
    try:
        if lower is not None and policy is not None:
            wanted = _wanted(policy, lower, name, tensors, kwargs)
            if wanted is not None:
                caster = _Caster(wanted, device_type, current.cache_enabled and wanted is lower)
                args = tuple(map(caster.cast, args))
                kwargs = {key: caster.cast(value) for key, value in kwargs.items()}
        return function(*args, **kwargs)
    finally:
        state.autocast = current


def _tensors(values: Any) -> Iterator[Tensor]:
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _tensors(each)


def _wanted(
    policy: str, lower: DType, name: str, tensors: list[Tensor], kwargs: dict[str, Any]
) -> DType | None:
    if policy == BANNED:
        raise RuntimeError(
            f"{name} is unsafe to autocast: its gradients overflow in {lower.name}. Let the model "
            "end without a sigmoid, and use binary_cross_entropy_with_logits; or call it inside "
            "`with tgraph.autocast(..., enabled=False)` with arguments in float32."
        )
    if policy == LOWER:
        return lower
    if policy == FLOAT32:
        return None if kwargs.get("dtype") is not None else float32
    return float32 if any(each._type.dtype is float32 for each in tensors) else lower


class _Caster:
    """Casts floats on one type of device, but float64, to one type."""

    def __init__(self, dtype: DType, device_type: str, keeps: bool) -> None:
        self.dtype, self.device_type = dtype, device_type
        # In a trace equal casts are one node, without being kept.
        self.keeps = keeps and state.context is None and state.autocast_casts is not None

    def cast(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if type(value) in (list, tuple):
            return type(value)(map(self.cast, value))
        return value

    def _tensor(self, tensor: Tensor) -> Tensor:
        dtype, device = tensor._type.dtype, tensor._type.device
        if dtype is self.dtype or not dtype.is_floating_point or dtype is float64:
            return tensor
        if device.type != self.device_type:
            return tensor
        is_parameter = tensor._requires_grad and tensor._record is None and tensor._view is None
        if not (self.keeps and is_parameter and dtype is float32):
            return apply(p.cast, settled(tensor), dtype=self.dtype)
        key = (id(tensor), self.dtype, state.grad_enabled)
        version = storage_of(tensor).version
        found = state.autocast_casts.get(key)
        if found is not None and found[0] is tensor and found[1] == version:
            kept: Tensor = found[2]
            return kept
        made = apply(p.cast, tensor, dtype=self.dtype)
        state.autocast_casts[key] = (tensor, version, made)
        return made
