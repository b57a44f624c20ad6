"""`torch.hub`, of which nothing is here but its folder: models and weights are not downloaded.

>>> import tgraph as tg
>>> tg.hub.load("pytorch/vision", "resnet18")
Traceback (most recent call last):
    ...
NotImplementedError: tgraph.hub.load is not here: nothing is downloaded; ...
"""

from __future__ import annotations

import os
import re
from urllib.parse import urlparse

from .core.absent import not_here

__all__ = ["HASH_REGEX", "download_url_to_file", "get_dir", "help", "list", "load",
           "load_state_dict_from_url", "set_dir", "urlparse"]  # fmt: skip

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
"""How PyTorch finds the hash in the name of a file."""

_chosen: str | None = None


def get_dir() -> str:
    """Where PyTorch keeps what it has downloaded, or the folder that `set_dir` has told."""
    return os.path.join(_get_torch_home(), "hub") if _chosen is None else _chosen


def set_dir(d: str | os.PathLike[str]) -> None:
    """Tell another folder."""
    global _chosen
    _chosen = os.path.expanduser(d)


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


_WAY_OUT = (
    "nothing is downloaded; fetch the file yourself, make the module, and give it what "
    "tgraph.load reads by load_state_dict"
)
load = not_here("hub.load", _WAY_OUT)
list = not_here("hub.list", _WAY_OUT)
help = not_here("hub.help", _WAY_OUT)
load_state_dict_from_url = not_here("hub.load_state_dict_from_url", _WAY_OUT)
download_url_to_file = not_here("hub.download_url_to_file", _WAY_OUT)
