"""`torch._tensor_str`: what subclasses of Tensor print themselves by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import printing
from ..core.tensor import Tensor

__all__ = ["_add_suffixes", "_tensor_str"]


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements of a tensor, lines after the first indented."""
    return printing.format_array(self.detach().cpu().numpy(), self.dtype, indent)


def _add_suffixes(
    tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool = False
) -> str:
    """A text, what tells more of the tensor, and the closing bracket."""
    if force_newline and suffixes:
        tensor_str += ",\n" + " " * indent + suffixes[0]
        suffixes = suffixes[1:]
    return printing.with_suffixes(tensor_str, [*suffixes], indent) + ")"


def __getattr__(name: str) -> Any:
    if name != "PRINT_OPTS":
        raise AttributeError(name)
    return printing._options
