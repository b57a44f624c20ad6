"""What `tgraph.load` raises for a file that it cannot read."""

from __future__ import annotations

from pickle import UnpicklingError


class LoadError(RuntimeError, UnpicklingError):
    """A file is damaged, of another format, or holds what may not be loaded.

    PyTorch raises RuntimeError for the one and UnpicklingError for the other; this is both.
    """
