"""Values of PyTorch as plain data; see `values.py`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from .values import Array, Made, Missing, Named, Sparse, parts_of

_PLAIN = (bool, int, float, complex, str, slice, range, type(None), type(...), np.ndarray)


_SINGLE = {torch.float64: torch.float32, torch.complex128: torch.complex64}


def encoded(value: Any, known: dict[int, Any] | None = None) -> Any:
    """A value, or a container of such; the same `Array` for the same tensor of `known`."""
    known = {} if known is None else known
    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            known[id(value)] = _tensor(value)
        return known[id(value)]
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return Named(str(value).removeprefix("torch."))
    if isinstance(value, (torch.device, torch.layout)):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.nn.Module):
        return _module(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return Made(f"nn.{type(value).__name__}", (), encoded(dataclasses.asdict(value)))
    if isinstance(value, list):
        return [encoded(each, known) for each in value]
    if isinstance(value, tuple):
        return tuple(encoded(each, known) for each in value)
    if isinstance(value, dict):
        return {key: encoded(each, known) for key, each in value.items()}
    if isinstance(value, functools.partial):
        return Made("partial", (encoded(value.func), *encoded(value.args)), encoded(value.keywords))
    if type(value) in _PLAIN or isinstance(value, np.generic):
        return value
    return _function(value)


def _tensor(tensor: torch.Tensor) -> Any:
    """On the device meta a shape and a type alone."""
    if tensor.is_meta:
        named = {"dtype": encoded(tensor.dtype), "device": "meta"}
        return Made("empty", (tuple(tensor.shape),), named)
    if tensor.layout is torch.strided:
        return _array(tensor)
    layout = str(tensor.layout).removeprefix("torch.")
    parts = tuple(map(_array, parts_of(tensor.detach())))
    return Sparse(layout, tuple(tensor.shape), parts, tensor.requires_grad)


def _array(tensor: torch.Tensor) -> Array:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise Missing(f"tensors of layout {tensor.layout}")
    # A copy: memory that an array shows may not grow any more.
    plain = tensor.detach().clone().resolve_conj().resolve_neg()
    dtype = str(plain.dtype).removeprefix("torch.")
    values = plain.float() if plain.dtype is torch.bfloat16 else plain
    try:
        array = np.array(values.numpy(), copy=True)
    except (TypeError, ValueError) as error:  # NumPy has no such type, or not so many dimensions
        raise Missing(f"tensors of {dtype} with {plain.dim()} dimensions") from error
    parameter = isinstance(tensor, torch.nn.Parameter)
    return Array(array, dtype, tensor.requires_grad, _order(plain), parameter)


def _order(plain: torch.Tensor) -> tuple[int, ...] | None:
    """How the axes lie in memory, where it is another way than theirs and without gaps."""
    if plain.is_contiguous():
        return None
    order = sorted(range(plain.dim()), key=lambda axis: (-plain.stride(axis), axis))
    return tuple(order) if plain.permute(order).is_contiguous() else None


def _module(module: torch.nn.Module) -> Made:
    """Modules come as arguments of others only: activations without state, and layers to stack."""
    path = f"nn.{type(module).__name__}"
    if isinstance(module, (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer)):
        attention = module.self_attn
        args = (attention.embed_dim, attention.num_heads, module.linear1.out_features,
                module.dropout.p, encoded(module.activation), module.norm1.eps)  # fmt: skip
        keywords = {
            "batch_first": attention.batch_first, "norm_first": module.norm_first,
            "bias": module.linear1.bias is not None,
            "dtype": encoded(module.linear1.weight.dtype),
        }  # fmt: skip
        return Made(path, args, keywords, encoded(dict(module.state_dict())))
    if list(module.parameters()):
        raise Missing(f"modules as arguments: {type(module).__name__}")
    return Made(path, (), {})


def _function(function: Any) -> Any:
    """By its name where it is PyTorch's; what a test defines, as it is."""
    module = getattr(function, "__module__", "") or ""
    if not callable(function):
        raise Missing(f"values of type {type(function).__name__}")
    if not module.startswith("torch") or "testing" in module:
        return function
    name = function.__name__
    for place in ("nn.functional", "", "nn"):
        if hasattr(functools.reduce(getattr, filter(None, place.split(".")), torch), name):
            return Named(f"{place}.{name}".removeprefix("."))
    raise Missing(name)


def decoded(value: Any, known: dict[int, Any] | None = None) -> Any:
    """A value of PyTorch's from plain data; the same tensor for the same `Array`."""
    known = {} if known is None else known
    if isinstance(value, Array):
        if id(value) not in known:
            known[id(value)] = _decoded_tensor(value)
        return known[id(value)]
    if isinstance(value, Named):
        return functools.reduce(getattr, value.path.split("."), torch)
    if isinstance(value, Made):
        args, keywords = decoded(value.args, known), decoded(value.keywords, known)
        if value.path == "partial":
            return functools.partial(*args, **keywords)
        return functools.reduce(getattr, value.path.split("."), torch)(*args, **keywords)
    if isinstance(value, (list, tuple)):
        return type(value)(decoded(each, known) for each in value)
    if isinstance(value, dict):
        return {key: decoded(each, known) for key, each in value.items()}
    return value


def _decoded_tensor(value: Array) -> torch.Tensor:
    made = torch.tensor(np.array(value.values, copy=True))
    if value.dtype == "bfloat16":
        made = made.to(torch.bfloat16)
    if value.order is not None:
        back = [value.order.index(axis) for axis in range(len(value.order))]
        made = made.permute(value.order).contiguous().permute(back)
    if value.parameter:
        return torch.nn.Parameter(made, requires_grad=value.grad)
    return made.requires_grad_(True) if value.grad else made


def again(value: Any) -> Any:
    """Tensors of PyTorch that are leaves, with values of their own; containers of such.

    They have numbers that single precision holds, so that a file has them in half the bytes.
    """
    if isinstance(value, torch.Tensor):
        made = value.detach().clone()
        if made.dtype in _SINGLE and made.layout is torch.strided:
            made.copy_(made.to(_SINGLE[made.dtype]))
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(map(again, value))
    if isinstance(value, dict):
        return {key: again(each) for key, each in value.items()}
    return value


def torch_tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a container, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from torch_tensors_of(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from torch_tensors_of(each)


def gradients(results: Any, sources: Any) -> tuple[Any, Any]:
    """Cotangents for the results and the gradients of the sources; None where PyTorch has none."""
    differentiable = [each for each in torch_tensors_of(results) if each.requires_grad]
    torch.manual_seed(1)
    given = [again(torch.randn_like(each)) for each in differentiable]
    if differentiable:
        try:
            torch.autograd.backward(differentiable, given)
        except RuntimeError:
            return None, None
    return encoded(given), [encoded(each.grad) for each in torch_tensors_of(sources)]
