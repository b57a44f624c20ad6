"""How examples become batches, under PyTorch's path."""

from ..collate import collate, default_collate, default_convert

__all__ = ["collate", "default_collate", "default_convert"]
