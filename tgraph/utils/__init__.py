"""What stands beside networks: loading data."""

from . import data

__all__ = ["data"]
