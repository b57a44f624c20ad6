"""The text of a module: the device library, and behind it kernels, each of them once.

A model's layers are computed by kernels that differ only in what they are given. These have one
text, so that a deep model takes hardly longer to compile than one of its layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .device_library import library_text
from .varying_numbers import Written, with_parameters

_NAME = "@name@"


class CudaModule:
    """Collects kernels and functions; `text` has those with the same body once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # by text
        self._taken: set[str] = set()
        self._comments: dict[str, dict[str, None]] = {}

    def add(self, name: str, comments: Iterable[str], write: Callable[[str], str]) -> Written:
        """The kernel that `write` writes under a name: `name`, if it is new and nobody has it.

        `comments` stand above it, those of all that it is used for.
        """
        text, numbers = with_parameters(write(_NAME))
        if text not in self._names:
            self._names[text] = name if name not in self._taken else f"{name}_{len(self._names)}"
            self._taken.add(self._names[text])
        known = self._names[text]
        self._comments.setdefault(known, {}).update(dict.fromkeys(comments))
        return Written(known, numbers)

    def text(self) -> str:
        """CUDA C, in the order in which kernels were added."""
        return module_text(
            "\n".join([*map(_comment, self._comments[name]), text.replace(_NAME, name)])
            for text, name in self._names.items()
        )


def module_text(kernels: Iterable[str]) -> str:
    """The text of a module of kernels."""
    return "\n".join([library_text(), *kernels])


def _comment(text: str) -> str:
    """A comment that ends where its line does, whatever a file is called."""
    return "// " + "".join(each if each.isprintable() else "?" for each in text).rstrip("\\")
