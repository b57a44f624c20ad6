"""What is kept for the backward pass, handed through functions of users: PyTorch's saved-tensor
hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.records import NamedTuple
from .grad_mode import unrecorded
from .record import Record, Saved
from .state import state
from .tensor import CONSTANTS, Tensor, wrap

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]


class Hooks(NamedTuple):
    """`pack` makes of a tensor what is kept, `unpack` gives the tensor back."""

    pack: Pack
    unpack: Unpack


class Packed:
    """What a hook made of a saved tensor, in whose place it stands in `Saved`."""

    __slots__ = ("_type", "edge", "kept", "unpack")

    # A packed tensor has no memory that somebody could write.
    _storage = None
    _version = 0

    def __init__(self, tensor: Tensor, hooks: Hooks) -> None:
        self._type, self.unpack = tensor._type, hooks.unpack
        self.edge = (tensor._record or tensor, tensor._index) if tensor._requires_grad else None
        version = tensor._version
        with unrecorded():
            self.kept = hooks.pack(tensor)
        if tensor._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook cannot be modified by in-place operations as this can lead to "
                "unexpected side-effects. Work on input.clone() in the hook."
            )

    def unpacked(self) -> Tensor:
        """The tensor, with the history that it had."""
        found = self.unpack(self.kept)
        if not isinstance(found, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(found).__name__}"
            )
        twin = wrap(found._value, found._type)
        if self.edge is not None:
            target, index = self.edge
            # Of a leaf, too, the tensor is a step away from it, as it has a value of its own.
            twin._record = _Again(target) if isinstance(target, Tensor) else target
            twin._index, twin._requires_grad = index, True
        return twin


class _Again(Record):
    """A leaf that was packed and unpacked."""

    __slots__ = ()

    makes_fresh = False

    def __init__(self, leaf: Tensor) -> None:
        super().__init__(((leaf, 0),), (leaf._type,), None)

    def name(self) -> str:
        return "UnpackBackward0"

    def cotangents(self, incoming: list[Tensor | None], wanted: Any) -> list[Tensor | None]:
        return incoming


def pack_saved(saved: Saved, hooks: Hooks) -> None:
    """Hand a tensor that was saved through hooks; a constant is none."""
    if type(saved.tensor) is not Packed and saved.tensor._storage is not CONSTANTS:
        saved.tensor = Packed(saved.tensor, hooks)


def packs() -> Hooks | None:
    """The hooks through which what is saved now goes: not those of a trace, which has no values."""
    hooks: Hooks | None = state.saved_hooks
    if hooks is not None and state.context is not None and state.context.tracing:
        return None
    return hooks
