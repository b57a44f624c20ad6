"""Functions of signals: `tgraph.signal`, whose windows are in `tgraph.signal.windows`."""

from . import windows

__all__ = ["windows"]
