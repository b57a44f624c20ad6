"""What stands beside networks: loading data, checkpoints, containers of values."""

from . import checkpoint, data

__all__ = ["checkpoint", "data"]
