"""Values of PyTorch as values of tgraph, and comparing them."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import tgraph as tg

_TOLERANCES = {
    torch.float64: (1e-7, 1e-7), torch.float32: (1e-4, 2e-5), torch.complex128: (1e-7, 1e-7),
    torch.complex64: (1e-4, 2e-5), torch.float16: (2e-2, 2e-2), torch.bfloat16: (5e-2, 5e-2),
}  # fmt: skip
"""Relative and absolute, by the type of PyTorch's value."""


class Missing(Exception):
    """tgraph has no such name."""


class Difference(Exception):
    """tgraph gives something else than PyTorch; `kind` is what was compared."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def told(error: Exception) -> str:
    """The type and first line of an error."""
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]


def outcome(run: Callable[[Any], None], case: Any) -> str:
    """What is different about a case; empty where everything agrees."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(case)
        except Missing as error:
            return f"missing: {error}"
        except Difference as error:
            return str(error)
        except Exception as error:
            return f"raises: {told(error)}"
    return ""


def own_name(path: str) -> Any:
    """What tgraph has at a dotted path of PyTorch's, without "torch."."""
    found: Any = tg
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise Missing(path) from error
    return found


def own_tensor(tensor: torch.Tensor) -> Any:
    """Equal values, dtype, strides and `requires_grad`."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise Missing(f"tensors of layout {tensor.layout}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        made = tg.tensor(plain.float().numpy()).to(tg.bfloat16)
    else:
        made = tg.tensor(np.array(plain.numpy(), copy=True))
    if not plain.is_contiguous() and plain.dim() == 4:
        made = _with_strides(made, plain)
    if tensor.requires_grad:
        made.requires_grad_(True)
    return made


def _with_strides(made: Any, like: torch.Tensor) -> Any:
    order = sorted(range(like.dim()), key=lambda axis: (-like.stride(axis), axis))
    back = [order.index(axis) for axis in range(like.dim())]
    return made.permute(order).contiguous().permute(back)


def own(value: Any) -> Any:
    """A value of PyTorch, or a container of such, as one of tgraph."""
    if isinstance(value, torch.nn.Parameter):
        return tg.nn.Parameter(own_tensor(value), requires_grad=value.requires_grad)
    if isinstance(value, torch.Tensor):
        return own_tensor(value)
    if isinstance(value, torch.dtype):
        return own_name(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return tg.device(str(value))
    if isinstance(value, torch.memory_format):
        return own_name(str(value).removeprefix("torch."))
    if isinstance(value, torch.nn.Module):
        return _own_module(value)
    if isinstance(value, torch.nn.LinearCrossEntropyOptions):
        return own_name("nn.LinearCrossEntropyOptions")(**own(dataclasses.asdict(value)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(own, value))
    if isinstance(value, (list, tuple, torch.Size)):
        return [own(each) for each in value] if isinstance(value, list) else tuple(map(own, value))
    if isinstance(value, dict):
        return {key: own(each) for key, each in value.items()}
    if isinstance(value, functools.partial):
        return functools.partial(own(value.func), *own(value.args), **own(value.keywords))
    if callable(value) and (getattr(value, "__module__", "") or "").startswith("torch"):
        return _own_function(value)
    return value


def _own_function(function: Any) -> Any:
    name = function.__name__
    for path in (f"nn.functional.{name}", name, f"nn.{name}"):
        try:
            return own_name(path)
        except Missing:
            continue
    raise Missing(name)


def _own_module(module: torch.nn.Module) -> Any:
    """Modules come as arguments of others only: activations without state, and layers to stack."""
    if isinstance(module, (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer)):
        attention = module.self_attn
        made = own_name(f"nn.{type(module).__name__}")(
            attention.embed_dim, attention.num_heads, module.linear1.out_features,
            module.dropout.p, own(module.activation), module.norm1.eps,
            batch_first=attention.batch_first, norm_first=module.norm_first,
            bias=module.linear1.bias is not None, dtype=own(module.linear1.weight.dtype),
        )  # fmt: skip
        made.load_state_dict(own(dict(module.state_dict())))
        return made
    if list(module.parameters()):
        raise Missing(f"modules as arguments: {type(module).__name__}")
    return own_name(f"nn.{type(module).__name__}")()


def again(value: Any) -> Any:
    """Tensors of PyTorch that are leaves, with values of their own; containers of such."""
    if isinstance(value, torch.Tensor):
        made = value.detach().clone()
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(map(again, value))
    if isinstance(value, dict):
        return {key: again(each) for key, each in value.items()}
    return value


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors of a container, in order."""
    if isinstance(value, (torch.Tensor, tg.Tensor)):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_of(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_of(each)


def compare(kind: str, found: Any, wanted: Any, *, loose: float = 1.0) -> None:
    """Raise Difference unless containers, shapes, dtypes and values agree."""
    if isinstance(wanted, torch.Tensor):
        _compare_tensors(kind, found, wanted, loose)
    elif isinstance(wanted, dict):
        if not isinstance(found, dict) or list(found) != list(wanted):
            raise Difference(kind, f"keys {_keys(found)} instead of {list(wanted)}")
        for key, each in wanted.items():
            compare(kind, found[key], each, loose=loose)
    elif isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
            raise Difference(kind, f"{type(found).__name__} instead of {len(wanted)} values")
        for pair in zip(found, wanted, strict=True):
            compare(kind, *pair, loose=loose)
    elif wanted is None or isinstance(wanted, (bool, int, float, complex, str)):
        if isinstance(wanted, float) and isinstance(found, float):
            same = np.isclose(found, wanted, rtol=1e-6, equal_nan=True)
        else:
            same = type(found) is type(wanted) and found == wanted
        if not same:
            raise Difference(kind, f"{found!r} instead of {wanted!r}"[:160])


def _keys(found: Any) -> Any:
    return list(found) if isinstance(found, dict) else type(found).__name__


def _compare_tensors(kind: str, found: Any, wanted: torch.Tensor, loose: float) -> None:
    if not isinstance(found, tg.Tensor):
        raise Difference(kind, f"{type(found).__name__} instead of a tensor")
    if tuple(found.shape) != tuple(wanted.shape):
        raise Difference(kind, f"shape {tuple(found.shape)} instead of {tuple(wanted.shape)}")
    dtype = str(wanted.dtype).removeprefix("torch.")
    if str(found.dtype).removeprefix("tgraph.") != dtype:
        raise Difference(kind, f"{found.dtype} instead of {dtype}")
    plain = wanted.detach().resolve_conj().resolve_neg()
    if wanted.dtype in (torch.bfloat16, torch.float16):
        one, other = found.detach().to(tg.float32).numpy(), plain.float().numpy()
    else:
        one, other = found.detach().numpy(), plain.numpy()
    relative, absolute = _TOLERANCES.get(wanted.dtype, (0.0, 0.0))
    if not np.allclose(one, other, relative * loose, absolute * loose, equal_nan=True):
        with np.errstate(all="ignore"):
            distance = np.abs(one.astype(np.complex128) - other)
        raise Difference(kind, f"differs by up to {np.nanmax(distance):.3g}")
