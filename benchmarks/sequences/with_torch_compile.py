"""PyTorch's modules under `torch.compile` in its default mode."""

from __future__ import annotations

from typing import Any

import torch

from .with_torch import Workloads

_workloads = Workloads(torch.compile)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
