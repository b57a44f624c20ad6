"""`torch.utils.model_zoo`, the older name of `tgraph.hub`: nothing is downloaded."""

from __future__ import annotations

from ..core.absent import not_here

__all__ = ["load_url"]

load_url = not_here(
    "utils.model_zoo.load_url", "nothing is downloaded; fetch the file, and tgraph.load reads it"
)
