"""PyTorch's switches of deterministic algorithms, which all algorithms here are as it is."""

from __future__ import annotations

_MODES = ("default", "warn", "error")
_mode = "default"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for algorithms that give the same bits in each run, which all do here, always.

    >>> import tgraph as tg
    >>> tg.use_deterministic_algorithms(True)
    >>> tg.are_deterministic_algorithms_enabled()
    True
    >>> tg.use_deterministic_algorithms(False)
    """
    set_deterministic_debug_mode(("warn" if warn_only else "error") if mode else "default")


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms(True)` was called."""
    return _mode != "default"


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether that was with `warn_only`."""
    return _mode == "warn"


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same by name or number: "default" or 0, "warn" or 1, "error" or 2.

    RuntimeError where it is none of them.
    """
    global _mode
    name = _MODES[debug_mode] if debug_mode in (0, 1, 2) else debug_mode
    if name not in _MODES:
        raise RuntimeError(
            "invalid value of debug_mode, expected `default`, `warn`, `error`, 0, 1 or 2, but got "
            f"{debug_mode!r}"
        )
    _mode = str(name)


def get_deterministic_debug_mode() -> int:
    """The number of the mode: 0, 1 or 2.

    >>> import tgraph as tg
    >>> tg.get_deterministic_debug_mode()
    0
    """
    return _MODES.index(_mode)
