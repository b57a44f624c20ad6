"""What this version is called, as `torch.version` tells it."""

from __future__ import annotations

import sys

__version__: str = sys.modules[__package__].__version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]

cuda: str | None = None
"""None: the CUDA that is used is that of CuPy, whichever is installed."""
hip: str | None = None
debug = False
git_version = ""
