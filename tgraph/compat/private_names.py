"""Names of `torch` itself that PyTorch's programs use and users of tgraph do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler.ir.dim import SymInt
from ..core.tensor import Tensor
from ..ops.from_data import tensor
from ..ops.tensor_facts import typename
from ..runtime.dtypes import int64
from .foreach_names import foreach

__all__ = ["SymBool", "SymFloat", "SymInt", "typename"]


class _AbsentType:
    """A type of numbers that tgraph lacks: tables name it, and no tensor has it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


_ABSENT_TYPES = {
    name: _AbsentType(name)
    for name in (
        "complex32", "float4_e2m1fn_x2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
        "float8_e5m2fnuz", "float8_e8m0fnu", "qint32", "qint8", "quint2x4", "quint4x2", "quint8",
    )
}  # fmt: skip


class SymFloat:
    """A float that a trace does not know; here such numbers are tensors or floats."""


class SymBool:
    """A truth that a trace does not know; here it is guarded, and a bool."""


def _assert(condition: Any, message: str) -> None:
    """AssertionError with `message` unless `condition`."""
    assert condition, message


def _assert_async(condition: Any, message: str = "") -> None:
    """RuntimeError with `message` unless `condition`."""
    _check(condition, lambda: message or "Expected Tensor with single nonzero value, but got zero")


def _check(cond: Any, message: Callable[[], str] | None = None) -> None:
    """RuntimeError with what `message` gives unless `cond`."""
    if not cond:
        raise RuntimeError("Expected cond to be True" if message is None else str(message()))


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes of a tensor."""
    return tensor(list(input.shape), dtype=int64)


def are_deterministic_algorithms_enabled() -> bool:
    """True: results do not depend on the order in which threads run."""
    return True


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """False."""
    return False


def __getattr__(name: str) -> Any:
    found = foreach(name) or _ABSENT_TYPES.get(name)
    if found is None:
        raise AttributeError(name)
    return found
