"""What stands beside networks: loading data, checkpoints, events, exchange of memory."""

from . import checkpoint, data, dlpack, hooks, model_zoo, plot, tensorboard

__all__ = ["checkpoint", "data", "dlpack", "hooks", "model_zoo", "plot", "tensorboard"]
