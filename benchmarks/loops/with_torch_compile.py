"""Programs with loops in PyTorch under `torch.compile` in its default mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import with_torch


class Workloads(with_torch.Workloads):
    @staticmethod
    def pulled_back(function: Any, inputs: Sequence[torch.Tensor], cotangent: torch.Tensor) -> Any:
        """By a transform, which makes faster kernels than the tape."""
        found, pull = torch.func.vjp(function, *inputs)
        return found, pull(cotangent)


_workloads = Workloads(torch.compile)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
