"""`torch._dynamo`: marks for PyTorch's compiler, which need nothing here."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from ..compiled.optimized_module import OptimizedModule
from .compiler_names import allow_in_graph, disable, is_compiling, reset

__all__ = ["OptimizedModule", "TransformGetItemToIndex", "allow_in_graph", "config",
           "disable", "is_compiling", "mark_dynamic", "mark_static", "reset"]  # fmt: skip

config = SimpleNamespace(cache_size_limit=8, suppress_errors=False, recompile_limit=8)
"""Settings that programs change; they change nothing here."""

TransformGetItemToIndex = nullcontext
"""Inside of it PyTorch indexes by tensors without dimensions, which tgraph always does."""


def mark_dynamic(tensor: Any, index: Any, **kwargs: Any) -> None:
    """Nothing: `tgraph.compile(dynamic=...)` says which sizes vary."""


mark_static = maybe_mark_dynamic = mark_dynamic
