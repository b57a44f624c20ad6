"""`torch.onnx`, of which nothing is here: files of ONNX are not written.

>>> import tgraph as tg
>>> tg.onnx.is_in_onnx_export()
False
"""

from __future__ import annotations

from typing import Any

from .core.absent import attribute_error, not_here

__all__ = ["dynamo_export", "export", "is_in_onnx_export"]

_WAY_OUT = (
    "files of ONNX are not written; state_dicts have PyTorch's keys, so that tgraph.save(model."
    "state_dict(), path) gives a file that PyTorch loads, whose torch.onnx.export writes it"
)
export = not_here("onnx.export", _WAY_OUT)
dynamo_export = not_here("onnx.dynamo_export", _WAY_OUT)


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False


def __getattr__(name: str) -> Any:
    raise attribute_error(__name__, name, None if name.startswith("__") else _WAY_OUT)
