"""Weights as a direction and a length, computed before each call of a module.

Source: Salimans and Kingma, "Weight Normalization" (2016).
"""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ...core.tensor import Tensor
from ...ops.norms import norm
from ..module import Module
from ..parameter import Parameter

M = TypeVar("M", bound=Module)


def norm_except_dim(v: Tensor, power: float, dim: int) -> Tensor:
    """The norm over all dimensions but `dim`, which are kept; over all for -1.

    >>> import tgraph as tg
    >>> norm_except_dim(tg.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0).tolist()
    [[5.0], [1.0]]
    """
    if dim == -1:
        return norm(v, power)
    others = [at for at in range(v.ndim) if at != dim % v.ndim]
    return norm(v, power, others, keepdim=True) if others else v.abs()


def normalized_weight(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """The direction of `v` with the lengths `g`."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """The hook before calls that computes the weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight of a module."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return normalized_weight(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Let a module have its weight in two parts."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of "
            "`torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        lengths = norm_except_dim(weight.detach(), 2, made.dim)
        module.register_parameter(f"{name}_g", Parameter(lengths))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Let a module have its weight as one parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Have a weight as `name_g`, its lengths over all dimensions but `dim`, and `name_v`.

    Deprecated, as in PyTorch: see `nn.utils.parametrizations.weight_norm`.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo `weight_norm`; the weight stays what it is."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
