"""The error of a position outside its axis."""

from __future__ import annotations


class OutOfBoundsError(IndexError, RuntimeError):
    """What `x[i]` raises as an IndexError, and PyTorch's gather and scatter as a RuntimeError."""
