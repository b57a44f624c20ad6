"""`DataLoader` and its helpers, where PyTorch has them."""

from .collate import default_collate, default_convert
from .loader import DataLoader
from .worker import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
