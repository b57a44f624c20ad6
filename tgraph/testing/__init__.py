"""Comparing tensors in tests."""

from .comparison import assert_close

__all__ = ["assert_close"]
