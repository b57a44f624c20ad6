"""What stands beside networks: loading data, checkpoints, events, exchange of memory."""

from . import checkpoint, data, dlpack, hooks, model_zoo, tensorboard

__all__ = ["checkpoint", "data", "dlpack", "hooks", "model_zoo", "tensorboard"]
