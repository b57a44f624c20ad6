"""Mixed precision on CUDA devices, under the names that it had before `tgraph.amp`."""

from __future__ import annotations

import functools
from typing import Any

from ..amp import GradScaler, autocast_mode
from ..runtime.dtypes import DType, float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def autocast(
    enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True
) -> autocast_mode.autocast:
    """`tgraph.amp.autocast("cuda", ...)`."""
    return autocast_mode.autocast("cuda", dtype, enabled, cache_enabled)


custom_fwd = functools.partial(autocast_mode.custom_fwd, device_type="cuda")
custom_bwd: Any = functools.partial(autocast_mode.custom_bwd, device_type="cuda")
