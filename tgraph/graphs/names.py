"""What users call the tensors of the outside that a graph reads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from ..core.provenance import is_internal
from ..core.tensor import Tensor
from ..nn.module import Module
from ..optim.optimizer import Optimizer


def name_of(
    tensor: Tensor, known: Callable[[Tensor], str | None], scope_of: Callable[[Any], str]
) -> str:
    """The path that leads to a tensor from a variable of the callers, the outermost of these.

    It begins with the scope in which the tensor, or its module, was made, which `scope_of` gives.
    State of an optimizer that is making a step is named after the parameter, which may have a name
    that is `known`.
    """
    found, frame = "captured", sys._getframe(1)
    seen: FrameType | None = frame
    while seen is not None:
        if is_internal(seen.f_code.co_filename):
            owner = seen.f_locals.get("self")
            key = _key_in(owner, tensor) if isinstance(owner, Optimizer) else None
            if key is not None:
                owner_name = known(key[0]) or name_of(key[0], known, scope_of)
                return f"{owner_name}.{key[1]}"
        else:
            own = next(_names_in(seen.f_locals, tensor, scope_of), None)
            if own is None and seen.f_locals is not seen.f_globals:
                own = next(_names_in(seen.f_globals, tensor, scope_of), None)
            found = own or found
        seen = seen.f_back
    return found


def _key_in(optimizer: Optimizer, tensor: Tensor) -> tuple[Tensor, str] | None:
    """The parameter whose state a tensor is, and what it is of it."""
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            if value is tensor:
                return parameter, key
    return None


def _names_in(
    namespace: Mapping[str, Any], tensor: Tensor, scope_of: Callable[[Any], str]
) -> Iterator[str]:
    """A variable's own name first, then paths in modules, `self` last."""
    items = [(name, value) for name, value in namespace.items() if not name.startswith("__")]
    for name, value in items:
        if value is tensor:
            yield f"{scope_of(value)}{name}"
    modules = [(name, value) for name, value in items if isinstance(value, Module)]
    for name, value in sorted(modules, key=lambda each: each[0] == "self"):
        for path, each in (*value.named_parameters(), *value.named_buffers()):
            if each is tensor:
                yield f"{scope_of(value)}{name}.{path}"
