"""What is asked about values that stand for tensors. Functions are not overridden here."""

from __future__ import annotations

from .core.tensor import Tensor

__all__ = ["is_tensor_like"]


def is_tensor_like(inp: object) -> bool:
    """Whether a value is a tensor, or its class has `__torch_function__`.

    >>> import tgraph as tg
    >>> is_tensor_like(tg.ones(2)), is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")
