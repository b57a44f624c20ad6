"""PyTorch's tensors without values and its mode of proxies, by which libraries ask whether they are
traced. A trace here runs on tensors of tgraph: there are none of either."""

from __future__ import annotations

from typing import Any

__all__ = ["get_proxy_mode", "is_fake"]


def is_fake(x: Any) -> bool:
    """False."""
    return False


def get_proxy_mode() -> None:
    """None."""
