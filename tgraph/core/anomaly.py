"""Whether backward passes look for NaN: PyTorch's anomaly mode, which is of all threads."""

from __future__ import annotations


class _Mode:
    __slots__ = ("check_nan", "enabled")

    def __init__(self) -> None:
        self.enabled = False
        self.check_nan = True


mode = _Mode()
