"""Settings of PyTorch's process that have little to say here."""

from __future__ import annotations

_kept = {"interop": 1, "warn_always": False}


def get_num_interop_threads() -> int:
    """Between how many operations threads are shared: 1, or what was set."""
    return int(_kept["interop"])


def set_num_interop_threads(num: int) -> None:
    """Kept for who asks: operations run one after the other, each in `set_num_threads` threads."""
    if num <= 0:
        raise RuntimeError(f"set_num_interop_threads: expects a positive number of threads: {num}")
    _kept["interop"] = num


def set_warn_always(b: bool) -> None:
    """Kept for who asks: warnings are Python's, whose filters tell how often they are shown."""
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _kept["warn_always"] = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was given."""
    return bool(_kept["warn_always"])


def set_flush_denormal(mode: bool) -> bool:
    """False: subnormal numbers are kept everywhere, and not flushed to 0."""
    return False


def is_vulkan_available() -> bool:
    """False: devices are CPUs and CUDA GPUs."""
    return False
