"""Finding where gradients become NaN: `detect_anomaly` and `set_detect_anomaly`."""

from __future__ import annotations

from ..core.anomaly import mode as _current


class set_detect_anomaly:
    """Look for NaN in backward passes from now on, or until the end of a `with` block.

    While it is on, an operation whose gradient has a NaN is an error that names the operation and
    the line that called it, and compiled functions run eagerly, so that they are looked at, too.
    Graphs that a session runs are not. `check_nan=False` looks for nothing.

    >>> import tgraph as tg
    >>> x = tg.tensor([0.0], requires_grad=True)
    >>> with tg.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).sum().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _current.enabled
        self.prev_check_nan = _current.check_nan
        _current.enabled, _current.check_nan = bool(mode), check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _current.enabled, _current.check_nan = self.prev, self.prev_check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """`set_detect_anomaly` as a function."""
    set_detect_anomaly(enabled, check_nan)


class detect_anomaly:
    """Look for NaN in the backward passes of a `with` block. See `set_detect_anomaly`."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self._before = (False, True)

    def __enter__(self) -> None:
        self._before = _current.enabled, _current.check_nan
        _current.enabled, _current.check_nan = True, self.check_nan

    def __exit__(self, *error: object) -> None:
        _current.enabled, _current.check_nan = self._before


def is_anomaly_enabled() -> bool:
    """Whether backward passes are looked at.

    >>> import tgraph as tg
    >>> tg.is_anomaly_enabled()
    False
    """
    return _current.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN.

    >>> import tgraph as tg
    >>> tg.is_anomaly_check_nan_enabled()
    True
    """
    return _current.check_nan
