"""`torch.hub`, of which nothing is here: models and weights are not downloaded."""

from __future__ import annotations

import os
import re
from typing import Any, NoReturn
from urllib.parse import urlparse

__all__ = ["HASH_REGEX", "download_url_to_file", "get_dir", "load", "load_state_dict_from_url",
           "urlparse"]  # fmt: skip

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
"""How PyTorch finds the hash in the name of a file."""


def get_dir() -> str:
    """Where PyTorch keeps what it has downloaded."""
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def _not_here(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"hub.{name}: nothing is downloaded here; fetch the file yourself and load it with "
            "torch.load or load_state_dict"
        )

    return refuse


load = _not_here("load")
load_state_dict_from_url = load_url = _not_here("load_state_dict_from_url")
download_url_to_file = _not_here("download_url_to_file")
