"""Where PyTorch keeps what batches are made by, which programs import."""

from . import collate as collate
