"""What the tests of a CUDA device use of pytest, for machines without it.

`install()` makes this module the one that `import pytest` finds; `small_runner` runs the tests.
What it has behaves as pytest's; what it lacks raises AttributeError.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn


def install() -> None:
    """Let `import pytest` give this module."""
    sys.modules["pytest"] = sys.modules[__name__]


# -- outcomes ------------------------------------------------------------------------------------


class Outcome(BaseException):
    """Ends a test; no `except Exception` stops it."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Skipped(Outcome):
    pass


class Failed(Outcome):
    pass


def skip(reason: str = "", *, allow_module_level: bool = False) -> NoReturn:
    raise Skipped(reason)


def fail(reason: str = "", pytrace: bool = True) -> NoReturn:
    raise Failed(reason)


def importorskip(name: str, minversion: str | None = None, reason: str | None = None) -> Any:
    """The module; the test is skipped where it cannot be imported."""
    if minversion is not None:
        raise NotImplementedError("importorskip: no minversion here")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        skip(reason or f"could not import {name!r}: {error}")


# -- marks ---------------------------------------------------------------------------------------


class Mark(NamedTuple):
    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}


class MarkDecorator:
    """`pytest.mark.NAME`: called with a function it marks it, with arguments it takes them."""

    def __init__(self, mark: Mark) -> None:
        self.mark = mark

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and inspect.isfunction(args[0]):
            args[0].pytestmark = [*getattr(args[0], "pytestmark", ()), self.mark]  # type: ignore[attr-defined]
            return args[0]
        name, before, named = self.mark
        return MarkDecorator(Mark(name, before + args, {**named, **kwargs}))


class _Marks:
    def __getattr__(self, name: str) -> MarkDecorator:
        return MarkDecorator(Mark(name))


mark = _Marks()


class ParameterSet(NamedTuple):
    values: tuple[Any, ...]
    marks: tuple[Mark, ...]
    id: str | None


def marks_in(given: Any) -> tuple[Mark, ...]:
    """The marks of what may be one or several, decorators or marks."""
    each = given if isinstance(given, Iterable) and not isinstance(given, Mark) else (given,)
    return tuple(one.mark if isinstance(one, MarkDecorator) else one for one in each)


def param(*values: Any, marks: Any = (), id: str | None = None) -> ParameterSet:
    return ParameterSet(values, marks_in(marks), id)


# -- fixtures ------------------------------------------------------------------------------------


class Fixture:
    """What `@pytest.fixture` makes of a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        scope: str = "function",
        params: Iterable[Any] | None = None,
        autouse: bool = False,
        ids: Any = None,
        name: str | None = None,
    ) -> None:
        self.function, self.scope, self.autouse, self.ids = function, scope, autouse, ids
        self.params = None if params is None else list(params)
        self.name = name or function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Failed(f"fixture {self.name!r} was called directly")


def fixture(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    if function is not None:
        return Fixture(function, **options)
    return lambda function: Fixture(function, **options)


# -- what is expected ----------------------------------------------------------------------------


class ExceptionInfo:
    """What `with raises(...) as info` gives; `value` is there behind the block."""

    value: BaseException

    @property
    def type(self) -> type[BaseException]:
        return type(self.value)

    def match(self, pattern: str) -> bool:
        if not re.search(pattern, str(self.value)):
            raise AssertionError(
                f"Regex pattern did not match.\n Expected: {pattern!r}\n Got: {str(self.value)!r}"
            )
        return True


class raises:
    """`with raises(Error, match="..."):` fails where the block does not raise such an error."""

    def __init__(
        self,
        expected: type[BaseException] | tuple[type[BaseException], ...],
        *,
        match: str | None = None,
    ) -> None:
        self.expected, self.match = expected, match
        self.info = ExceptionInfo()

    def __enter__(self) -> ExceptionInfo:
        return self.info

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if value is None:
            raise Failed(f"DID NOT RAISE {self.expected}")
        if not isinstance(value, self.expected):
            return False
        self.info.value = value
        return self.match is None or self.info.match(self.match)


class approx:
    """A number, or a sequence of some, that others within a tolerance are equal to."""

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None) -> None:
        self.expected, self.rel, self.abs = expected, rel, abs

    def __eq__(self, other: object) -> bool:
        expected: Any = self.expected
        expected = expected.tolist() if hasattr(expected, "tolist") else expected
        found: Any = other.tolist() if hasattr(other, "tolist") else other
        if isinstance(expected, (list, tuple)):
            return len(found) == len(expected) and all(
                approx(want, self.rel, self.abs) == have for want, have in zip(expected, found)
            )
        if found == expected:
            return True
        if not math.isfinite(expected) or not math.isfinite(found):
            return False
        return bool(abs(found - expected) <= self.tolerance(expected))

    def tolerance(self, expected: float) -> float:
        """Of one number; a tolerance given alone is the only one."""
        absolute = 1e-12 if self.abs is None else self.abs
        if self.rel is None and self.abs is not None:
            return absolute
        return max(absolute, (1e-6 if self.rel is None else self.rel) * abs(expected))

    def __repr__(self) -> str:
        return f"approx({self.expected!r}, rel={self.rel}, abs={self.abs})"


# -- monkeypatch ---------------------------------------------------------------------------------

_MISSING = object()


class MonkeyPatch:
    """Changes that `undo` takes back in the opposite order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()

    def setattr(self, target: Any, name: Any, value: Any = _MISSING, raising: bool = True) -> None:
        if isinstance(target, str):
            path, value = target, name
            module, _, name = path.rpartition(".")
            target = importlib.import_module(module)
        before = inspect.getattr_static(target, name, _MISSING)
        if before is _MISSING:
            if raising:
                raise AttributeError(f"{target!r} has no attribute {name!r}")
            self._undo.append(lambda: delattr(target, name))
        else:
            own = name in getattr(target, "__dict__", (name,))
            self._undo.append(
                (lambda: setattr(target, name, before)) if own else lambda: delattr(target, name)
            )
        setattr(target, name, value)

    def delattr(self, target: Any, name: str, raising: bool = True) -> None:
        if not raising and not hasattr(target, name):
            return
        before = inspect.getattr_static(target, name)
        self._undo.append(lambda: setattr(target, name, before))
        delattr(target, name)

    def setitem(self, mapping: Any, key: Any, value: Any) -> None:
        before = mapping.get(key, _MISSING)
        if before is _MISSING:
            self._undo.append(lambda: mapping.pop(key, None))
        else:
            self._undo.append(lambda: mapping.__setitem__(key, before))
        mapping[key] = value

    def delitem(self, mapping: Any, key: Any, raising: bool = True) -> None:
        if not raising and key not in mapping:
            return
        before = mapping[key]
        self._undo.append(lambda: mapping.__setitem__(key, before))
        del mapping[key]

    def setenv(self, name: str, value: str) -> None:
        self.setitem(os.environ, name, value)

    def delenv(self, name: str, raising: bool = True) -> None:
        self.delitem(os.environ, name, raising)

    def syspath_prepend(self, path: Any) -> None:
        before = list(sys.path)
        self._undo.append(lambda: sys.path.__setitem__(slice(None), before))
        sys.path.insert(0, str(path))
        importlib.invalidate_caches()

    def chdir(self, path: Any) -> None:
        before = Path.cwd()
        self._undo.append(lambda: os.chdir(before))
        os.chdir(path)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"the stand-in for pytest has no {name!r}")
