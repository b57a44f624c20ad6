"""Collects and runs tests as pytest does, as far as those of a CUDA device need it.

Test functions of modules, marks, parameters and their ids, fixtures of modules, of the plugins
that modules name and of `conftest.py`. Not here: classes, hooks, options, captured output.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from . import small_pytest as api
from .small_pytest import Fixture, Mark, MonkeyPatch, ParameterSet, Skipped, marks_in

BUILT_IN = {"request", "monkeypatch", "tmp_path"}
UNKNOWN_HERE = {"xfail"}
SCOPES = ("session", "package", "module", "class", "function")
LONGEST_REPR = 160


@dataclass
class Item:
    """One test: a function with one set of its parameters.

    `given` are values of arguments, `params` those of fixtures, by name.
    """

    id: str
    function: Callable[..., Any]
    fixtures: Mapping[str, Fixture]
    needed: Sequence[str]
    marks: Sequence[Mark]
    given: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mark_names(self) -> set[str]:
        return {mark.name for mark in self.marks}


# -- collection ----------------------------------------------------------------------------------


def load(path: Path, root: Path) -> ModuleType:
    """Import a test module as pytest does: its folder, or its package's, becomes importable.

    `root` holds `conftest.py`.
    """
    folder, name = path.parent, path.stem
    while (folder / "__init__.py").exists():
        folder, name = folder.parent, f"{folder.name}.{name}"
    for each in (root, folder):
        if str(each) not in sys.path:
            sys.path.insert(0, str(each))
    return importlib.import_module(name)


def collect(path: Path, root: Path, above: Path) -> list[Item]:
    """The tests of a module, in its order; ids begin with the path below `above`.

    Raises Skipped where the whole module is.
    """
    module = load(path, root)
    fixtures = _fixtures(module, root)
    of_module = marks_in(getattr(module, "pytestmark", ()))
    place = path.relative_to(above).as_posix() if path.is_relative_to(above) else path.as_posix()
    items: list[Item] = []
    for name, value in list(vars(module).items()):
        if (
            name.startswith("Test")
            and inspect.isclass(value)
            and value.__module__ == module.__name__
        ):
            raise NotImplementedError(f"{place}: test classes need pytest")
        if name.startswith("test") and inspect.isfunction(value):
            items += _items(f"{place}::{name}", value, fixtures, of_module)
    return items


def _fixtures(module: ModuleType, root: Path) -> dict[str, Fixture]:
    """Those that tests of a module can take; the nearest of a name is last."""
    sources = [importlib.import_module(each) for each in getattr(module, "pytest_plugins", ())]
    if (root / "conftest.py").exists():
        sources.append(_conftest(root))
    found = {}
    for source in (*sources, module):
        for value in vars(source).values():
            if isinstance(value, Fixture):
                if value.name in _arguments(value.function):
                    raise NotImplementedError(f"{value.name} takes a fixture of its own name")
                found[value.name] = value
    return found


def _conftest(root: Path) -> ModuleType:
    return load(root / "conftest.py", root)


def _items(
    place: str, function: Callable[..., Any], fixtures: Mapping[str, Fixture], above: Sequence[Mark]
) -> Iterator[Item]:
    own = tuple(getattr(function, "pytestmark", ()))
    marks = (*own, *above)
    for mark in marks:
        if mark.name in UNKNOWN_HERE:
            raise NotImplementedError(f"{place}: the mark {mark.name} needs pytest")
    needed = _needed(function, fixtures, marks)
    parametrized = [mark for mark in marks if mark.name == "parametrize"]
    given = {name for mark in parametrized for name in _names_of(mark)}
    taken = [name for name in needed if _has_params(fixtures, name) and name not in given]
    axes = [_axis_of_fixture(fixtures[name]) for name in taken]
    axes = [*axes, *(_axis(mark, function) for mark in parametrized)]
    sets = [_Set()]
    for axis in axes:
        sets = [before.joined(each) for before in sets for each in axis]
    for one, suffix in zip(sets, _unique([one.id for one in sets])):
        label = f"{place}[{suffix}]" if axes else place
        yield Item(label, function, fixtures, needed, (*marks, *one.marks), one.given, one.params)


def _has_params(fixtures: Mapping[str, Fixture], name: str) -> bool:
    return name in fixtures and fixtures[name].params is not None


def _arguments(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.default is inspect.Parameter.empty]


def _needed(
    function: Callable[..., Any], fixtures: Mapping[str, Fixture], marks: Sequence[Mark]
) -> list[str]:
    """The fixtures of a test and what these need, those of wider scopes first."""
    names = [name for name, each in fixtures.items() if each.autouse]
    names += [name for mark in marks if mark.name == "usefixtures" for name in mark.args]
    names += _arguments(function)
    found: list[str] = []
    while names:
        name = names.pop(0)
        if name not in found:
            found.append(name)
            names += _arguments(fixtures[name].function) if name in fixtures else []
    scope = {name: fixtures[name].scope for name in found if name in fixtures}
    return sorted(found, key=lambda name: SCOPES.index(scope.get(name, "function")))


@dataclass
class _Set:
    """One choice of parameters."""

    ids: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()

    @property
    def id(self) -> str:
        return "-".join(self.ids)

    def joined(self, other: _Set) -> _Set:
        return _Set(
            self.ids + other.ids,
            {**self.given, **other.given},
            {**self.params, **other.params},
            self.marks + other.marks,
        )


def _axis(mark: Mark, function: Callable[..., Any]) -> list[_Set]:
    """The sets of one `parametrize`."""
    names, several = _names_of(mark), not isinstance(mark.args[0], str)
    rows = [_row(each, several or len(names) > 1) for each in mark.args[1]]
    if not rows:
        raise NotImplementedError(f"{function.__name__}: no parameters for {names}")
    ids = _ids(names, rows, mark.kwargs.get("ids"))
    indirect = mark.kwargs.get("indirect", False)
    through = set(names) if indirect is True else set(indirect or ())  # fixtures get these
    found = []
    for row, id_ in zip(rows, ids):
        values = dict(zip(names, row.values, strict=True))
        params = {name: values.pop(name) for name in names if name in through}
        found.append(_Set((id_,), values, params, row.marks))
    return found


def _names_of(mark: Mark) -> list[str]:
    names = mark.args[0]
    return [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)


def _axis_of_fixture(fixture: Fixture) -> list[_Set]:
    rows = [_row(each, False) for each in fixture.params or ()]
    ids = _ids([fixture.name], rows, fixture.ids)
    return [
        _Set((id_,), {}, {fixture.name: row.values[0]}, row.marks) for row, id_ in zip(rows, ids)
    ]


def _row(value: Any, several: bool) -> ParameterSet:
    if isinstance(value, ParameterSet):
        return value
    return ParameterSet(tuple(value) if several else (value,), (), None)


def _ids(names: Sequence[str], rows: Sequence[ParameterSet], given: Any) -> list[str]:
    listed = list(given) if given is not None and not callable(given) else None
    found = []
    for number, row in enumerate(rows):
        if row.id is not None:
            found.append(row.id)
        elif listed is not None and listed[number] is not None:
            found.append(str(listed[number]))
        else:
            name = given if callable(given) else None
            parts = [_id(value, f"{n}{number}", name) for n, value in zip(names, row.values)]
            found.append("-".join(parts))
    return _unique(found)


def _id(value: Any, otherwise: str, given: Callable[[Any], Any] | None) -> str:
    if given is not None and (named := given(value)) is not None:
        value = named
    if isinstance(value, str):
        return value.encode("unicode_escape").decode("ascii")
    if isinstance(value, bytes):
        return value.decode("ascii", "backslashreplace")
    if value is None or isinstance(value, (bool, int, float, complex)):
        return str(value)
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, re.Pattern):
        return str(value.pattern)
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else otherwise


def _unique(ids: Sequence[str]) -> list[str]:
    """The ids, with a number behind those that are there more than once."""
    taken, count = set(ids), dict.fromkeys(ids, 0)
    found = []
    for each in ids:
        new = each
        if ids.count(each) > 1:
            end = "_" if each and each[-1].isdigit() else ""
            while (new := f"{each}{end}{count[each]}") in taken:
                count[each] += 1
            taken.add(new)
            count[each] += 1
        found.append(new)
    return found


# -- running -------------------------------------------------------------------------------------


class Runner:
    """Runs items; fixtures of a scope wider than one function live until `close`."""

    def __init__(self) -> None:
        self._wide: dict[tuple[Fixture, Any], Any] = {}
        self._ends: list[Callable[[], None]] = []

    def run(self, item: Item) -> tuple[str, str]:
        """How a test ended, "passed", "failed" or "skipped"; and the reason or the traceback."""
        try:
            for mark in item.marks:
                _skip_by_mark(mark)
        except Skipped as skipped:
            return "skipped", skipped.reason
        test = _Test(self, item)
        outcome, text = _ended(test.call)
        for end in reversed(test.ends):
            ended, why = _ended(end)
            if ended != "passed" and outcome != "failed":
                outcome, text = "failed", why
        return outcome, text

    def close(self) -> list[str]:
        """End the fixtures that are left; the tracebacks of those that fail."""
        told = [_ended(end) for end in reversed(self._ends)]
        self._ends.clear()
        return [text for outcome, text in told if outcome != "passed"]


def _skip_by_mark(mark: Mark) -> None:
    if mark.name == "skip":
        raise Skipped(mark.kwargs.get("reason") or "".join(mark.args) or "unconditional skip")
    if mark.name == "skipif":
        if isinstance(mark.args[0], str):
            raise NotImplementedError(f"skipif({mark.args[0]!r}): conditions in text need pytest")
        if mark.args[0]:
            raise Skipped(mark.kwargs.get("reason", ""))


def _ended(run: Callable[[], None]) -> tuple[str, str]:
    try:
        run()
    except Skipped as skipped:
        return "skipped", skipped.reason
    except (Exception, api.Failed, SystemExit) as error:
        return "failed", told(error)
    return "passed", ""


class _Request:
    """What a fixture or a test gets as `request`."""

    def __init__(self, test: _Test, fixture: Fixture | None) -> None:
        self._test = test
        if fixture is not None and fixture.name in test.item.params:
            self.param = test.item.params[fixture.name]

    def getfixturevalue(self, name: str) -> Any:
        return self._test.value(name)

    def addfinalizer(self, end: Callable[[], None]) -> None:
        self._test.ends.append(end)


class _Test:
    """One run of a test and the fixtures that live as long."""

    def __init__(self, runner: Runner, item: Item) -> None:
        self.runner, self.item = runner, item
        self.ends: list[Callable[[], None]] = []
        self._values: dict[str, Any] = {}

    def call(self) -> None:
        for name in self.item.needed:
            if name not in self.item.given:
                self.value(name)
        self.item.function(**{name: self.value(name) for name in _arguments(self.item.function)})

    def value(self, name: str, asking: Fixture | None = None) -> Any:
        if name == "request":
            return _Request(self, asking)
        if name in self.item.given:
            return self.item.given[name]
        if name not in self._values:
            self._values[name] = self._made(name)
        return self._values[name]

    def _made(self, name: str) -> Any:
        fixture = self.item.fixtures.get(name)
        if fixture is None:
            return self._built_in(name)
        if fixture.scope == "function":
            return self._start(fixture, self.ends)
        key = fixture, repr(self.item.params.get(name))
        if key not in self.runner._wide:
            self.runner._wide[key] = self._start(fixture, self.runner._ends)
        return self.runner._wide[key]

    def _start(self, fixture: Fixture, ends: list[Callable[[], None]]) -> Any:
        arguments = {each: self.value(each, fixture) for each in _arguments(fixture.function)}
        made = fixture.function(**arguments)
        if not inspect.isgenerator(made):
            return made
        value = next(made)
        ends.append(lambda: _finish(made, fixture))
        return value

    def _built_in(self, name: str) -> Any:
        if name == "monkeypatch":
            patch = MonkeyPatch()
            self.ends.append(patch.undo)
            return patch
        if name == "tmp_path":
            folder = tempfile.TemporaryDirectory()
            self.ends.append(folder.cleanup)
            return Path(folder.name)
        raise api.Failed(f"fixture {name!r} not found")


def _finish(generator: Iterator[Any], fixture: Fixture) -> None:
    for _ in generator:
        raise api.Failed(f"fixture {fixture.name!r} yields more than once")


# -- tracebacks ----------------------------------------------------------------------------------


def told(error: BaseException) -> str:
    """A traceback without the frames of this module, and what the innermost test's names were."""
    frames = _outside(error.__traceback__)
    lines = traceback.format_exception(type(error), error, frames)
    text = "".join(lines).rstrip()
    names = _names(frames)
    return f"{text}\n{names}" if names and isinstance(error, AssertionError) else text


def _outside(trace: TracebackType | None) -> TracebackType | None:
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename == __file__:
        first = first.tb_next
    return first or trace


def _names(trace: TracebackType | None) -> str:
    """The local names where a test or a helper of it failed: pytest would show the values."""
    frame = None
    while trace is not None:
        if "site-packages" not in trace.tb_frame.f_code.co_filename:
            frame = trace.tb_frame
        trace = trace.tb_next
    values = frame.f_locals if frame is not None else {}
    return "\n".join(f"  where {name} = {_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    try:
        text = " ".join(repr(value).split())
    except Exception as error:  # a device that failed cannot show its values
        return f"<no repr: {type(error).__name__}>"
    return text if len(text) <= LONGEST_REPR else text[:LONGEST_REPR] + "..."
