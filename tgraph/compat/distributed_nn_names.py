"""`torch.distributed.nn`: exchanges that have gradients. Libraries import it, and call it where
`torch.distributed.is_initialized()`, which it is not here."""

from __future__ import annotations

from ..core.absent import not_here

__all__ = ["all_gather", "all_reduce", "broadcast"]

_WAY_OUT = "there is one process, and distributed.is_initialized() is False"
all_gather = not_here("distributed.nn.all_gather", _WAY_OUT)
all_reduce = not_here("distributed.nn.all_reduce", _WAY_OUT)
broadcast = not_here("distributed.nn.broadcast", _WAY_OUT)
