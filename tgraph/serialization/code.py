"""Reading with Python's own unpickler, which runs what a file asks for: `weights_only=False`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from .allowed import NAMED, not_ours
from .errors import LoadError


def unpickled_by(
    module: Any, data: bytes, persistent_load: Callable[[Any], Any], encoding: str
) -> tuple[Any, int]:
    """The object of a pickle, and the bytes that it takes."""

    class CodeUnpickler(module.Unpickler):
        def find_class(self, place: str, name: str) -> Any:
            ours = NAMED.get(f"{place}.{name}")
            if ours is None and place.partition(".")[0] == "torch":
                raise LoadError(not_ours(f"{place}.{name}"))
            return super().find_class(place, name) if ours is None else ours

        def persistent_load(self, given: Any) -> Any:
            return persistent_load(given)

    file = io.BytesIO(data)
    found = CodeUnpickler(file, encoding=encoding).load()
    return found, file.tell()
