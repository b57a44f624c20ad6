"""Hooks in bytecode: code does what it did before, and each kind of read reaches its hook once.

The module is loaded by its path, so that this file runs on a Python without tgraph's dependencies.
"""

import ast
import calendar
import collections
import configparser
import contextlib
import copy
import dataclasses
import difflib
import fractions
import importlib.util
import io
import json
import pathlib
import statistics
import string
import sys
import textwrap
import tokenize
import traceback
import types

import instrumented_programs as programs
import pytest
from instrumented_programs import LOG, PROGRAMS, handlers

_PATH = pathlib.Path(__file__).parents[2] / "tgraph" / "tracing" / "recording" / "instrument.py"


def _loaded():
    spec = importlib.util.spec_from_file_location("instrument_alone", _PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


instrument = _loaded()


class Hook:
    def __init__(self, function):
        self.function = function

    def __or__(self, operand):
        return self.function(operand)


def logged(name, result=None):
    """A hook that notes what it got, and gives what the instruction would have given."""

    def hook(operand):
        LOG.append((name, operand))
        return None if result is None else result(operand)

    return Hook(hook)


def named(kind, result=None):
    return lambda name: logged(f"{kind} {name}", result and (lambda operand: result(operand, name)))


HOOKS = instrument.Hooks(
    enter=lambda code: logged(f"enter {code.co_name}"),
    attribute=named("attribute", getattr),
    super_attribute=named("super", lambda of, name: getattr(of[0](of[1], of[2]), name)),
    imported=named("imported"),
    module=logged("module"),
    item=logged("item", lambda of: of[0][of[1]]),
    contains=logged("contains", lambda of: of[0] in of[1]),
    lacks=logged("lacks", lambda of: of[0] not in of[1]),
    identical=logged("identical", lambda of: of[0] is of[1]),
    differs=logged("differs", lambda of: of[0] is not of[1]),
    call=logged("call", lambda of: of[0]),
    call_unpacked=logged("call unpacked", lambda of: of[0]),
    look=logged("look"),
    look_at_each=logged("look at each"),
    update=logged("update"),
    change=logged("change"),
    truth=logged("truth"),
    iterate=logged("iterate"),
    store=logged("store"),
    store_item=logged("store item"),
    delete_item=logged("delete item"),
    store_attribute=named("store attribute"),
    store_global=named("store global"),
)


def armed(function):
    """The same function with hooks."""
    code = instrument.instrument(function.__code__, HOOKS)
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def notes(function, *args):
    """What hooks were told of a call, but for the beginning."""
    made = armed(function)
    LOG.clear()
    made(*args)
    return [(name, operand) for name, operand in LOG if not name.startswith("enter")]


# --- each kind of read ----------------------------------------------------------------------------


class Thing:
    rate = 2.0

    def scaled(self, x):
        return x


class Above(Thing):
    def scaled(self, x):
        return super().scaled(x)


THING, TABLE, VALUES = Thing(), {"a": 1}, [1, 2, 3]


def _import_from():
    from math import pi

    return pi


def _import():
    import math

    return math


def _unpack(values):
    one, two, three = values
    return one, two, three


def _with(manager):
    with manager:
        pass


def _loop(values):
    for value in values:
        return value


def _if(value):
    if value:
        return 1
    return 2


def _if_not(value):
    return not value


def _add_in_place(value):
    value += [1]
    return value


def _store(thing):
    thing.more = 1
    del thing.more


def _store_item(table):
    table["z"] = 1
    del table["z"]


def _keywords(function):
    return function(1, key=2)


def _star(function, args):
    return function(*args)


def _taken(*args, **kwargs):
    return None


def _match(value):
    match value:
        case {"a": one}:
            return one
        case [one, *_]:
            return one


MANAGER = contextlib.nullcontext()
READS = {
    "attribute": (lambda t: t.rate, (THING,), [("attribute rate", THING)]),
    "method": (
        lambda t: t.scaled(5), (THING,),
        [("attribute scaled", THING), ("call", (THING.scaled, 5))],
    ),
    "item": (lambda t: t["a"], (TABLE,), [("item", (TABLE, "a"))]),
    "slice": (lambda t, n: t[1:n], (VALUES, 2), [("item", (VALUES, slice(1, 2)))]),
    "contains": (lambda t: "a" in t, (TABLE,), [("contains", ("a", TABLE))]),
    "lacks": (lambda t: "a" not in t, (TABLE,), [("lacks", ("a", TABLE))]),
    "identical": (lambda t, u: t is u, (TABLE, VALUES), [("identical", (TABLE, VALUES))]),
    "differs": (lambda t, u: t is not u, (TABLE, VALUES), [("differs", (TABLE, VALUES))]),
    "call": (lambda f: f(1, 2), (max,), [("call", (max, 1, 2))]),
    "call without arguments": (lambda f: f(), (dict,), [("call", (dict,))]),
    "call with keywords": (_keywords, (_taken,), [("call", (_taken, 1, 2))]),
    "call unpacked": (_star, (max, [1, 2]), [("call unpacked", (max, [1, 2]))]),
    "operator": (lambda t, u: t + u, (VALUES, [4]), [("look at each", (VALUES, [4]))]),
    "comparison": (lambda t, u: t < u, (VALUES, [4]), [("look at each", (VALUES, [4]))]),
    "in place": (_add_in_place, ([2],), [("update", ([2, 1], [1]))]),
    "truth": (_if, (VALUES,), [("truth", VALUES)]),
    "not": (_if_not, (VALUES,), [("truth", VALUES)]),
    "loop": (_loop, (VALUES,), [("iterate", VALUES)]),
    "unpack": (_unpack, (VALUES,), [("look", VALUES)]),
    "text": (lambda t: f"{t}", (VALUES,), [("look", VALUES)]),
    "text with a form": (lambda t, f: f"{t!r:{f}}", (VALUES, "s"), None),
    "store": (_store, (THING,), [("store attribute more", THING)] * 2),
    "store item": (
        _store_item, ({"q": 1},),
        [("store item", ({"q": 1}, "z")), ("delete item", ({"q": 1}, "z"))],
    ),
    "import from": (_import_from, (), None),
    "import": (_import, (), None),
    "with": (_with, (MANAGER,), None),
    "match": (_match, (TABLE,), None),
}  # fmt: skip
COUNTED = {
    "text with a form": ["look", "look"],
    "import from": ["module", "imported pi"],
    "import": ["module"],
    "with": ["look"],
    "match": ["look", "look", "look at each"],
}


@pytest.mark.parametrize("name", READS)
def test_each_kind_of_read_reaches_its_hook_once(name):
    function, args, expected = READS[name]
    found = notes(function, *args)
    if expected is None:
        kinds = [kind for kind, _ in found]
        assert {*COUNTED[name]} <= {*kinds}
        if "import" in name:
            assert kinds == COUNTED[name]
    else:
        assert found == expected


def test_super_reaches_its_hook():
    above = Above()
    LOG.clear()
    assert armed(Above.scaled)(above, 5) == 5
    kinds = [kind for kind, _ in LOG]
    assert len([kind for kind in kinds if kind in ("super scaled", "attribute scaled")]) == 1


def test_a_function_tells_when_it_begins():
    LOG.clear()
    armed(lambda: [value + 1 for value in (lambda: VALUES)()])()
    entered = [name for name, _ in LOG if name.startswith("enter")]
    assert entered.count("enter <lambda>") == 2


# --- what code does -------------------------------------------------------------------------------


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_code_does_what_it_did(function, monkeypatch):
    expected = function()
    for name in ("generator", "delegates", "asynchronous"):
        monkeypatch.setattr(programs, name, armed(getattr(programs, name)))
    monkeypatch.setattr(programs, "armed_or_not", armed)
    assert armed(function)() == expected
    assert LOG


def test_handlers_do_what_they_did():
    assert armed(handlers)([1, 0, 2]) == handlers([1, 0, 2])


# --- errors and lines -----------------------------------------------------------------------------


def fails_in_an_attribute(thing):
    return (thing
            .rate
            .absent)  # fmt: skip


def fails_in_an_item(table):
    return [
        table["a"],
        table["absent"],
    ]


def fails_in_a_call(thing):
    return thing.scaled(1,
                        2, 3)  # fmt: skip


def fails_in_an_operator(values):
    x = 1; return x + (values  # noqa: E702
                       * values)  # fmt: skip


def fails_in_a_handler(values):
    try:
        values.absent  # noqa: B018
    except AttributeError as error:
        raise ValueError("again") from error


def fails_in_a_comprehension(values):
    return [value.absent for value in values]


def fails_in_a_finally(values):
    try:
        return values[10]
    finally:
        values[0]


FAILING = [
    (fails_in_an_attribute, THING), (fails_in_an_item, TABLE), (fails_in_a_call, THING),
    (fails_in_an_operator, VALUES), (fails_in_a_handler, VALUES),
    (fails_in_a_comprehension, VALUES), (fails_in_a_finally, VALUES),
]  # fmt: skip


def told(function, *args):
    """An error, its causes, and the positions of the frames of this file but for hooks."""
    with pytest.raises(Exception) as caught:
        function(*args)
    error, found = caught.value, []
    while error is not None:
        frames = traceback.walk_tb(error.__traceback__)
        own = [(frame, at) for frame, at in frames if frame.f_code.co_name.startswith("fails")]
        places = [(*positions(error.__traceback__, frame), line) for frame, line in own]
        found.append((type(error), str(error), places))
        error = error.__cause__ or error.__context__
    return found


def positions(trace, frame):
    while trace.tb_frame is not frame:
        trace = trace.tb_next
    return tuple(frame.f_code.co_positions())[trace.tb_lasti // 2]


@pytest.mark.parametrize(
    "function, argument", FAILING, ids=lambda case: getattr(case, "__name__", "")
)
def test_errors_and_where_they_are_told_from(function, argument):
    assert told(armed(function), argument) == told(function, argument)


def lines_of(code):
    """All places of the source that code names, those of functions inside of it too."""
    found = set(code.co_positions())
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            found |= lines_of(each)
    return found


@pytest.mark.parametrize("module", [textwrap, statistics, ast, json.decoder],
                         ids=lambda module: module.__name__)  # fmt: skip
def test_all_lines_are_still_there(module):
    for function in functions_of(module):
        code = instrument.instrument(function.__code__, HOOKS)
        assert lines_of(function.__code__) <= lines_of(code) | {(None,) * 4}


# --- the standard library -------------------------------------------------------------------------


def functions_of(module):
    for value in list(vars(module).values()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            yield value
        if isinstance(value, type) and value.__module__ == module.__name__:
            for member in vars(value).values():
                member = getattr(member, "__func__", member)
                member = member.fget if isinstance(member, property) else member
                if isinstance(member, types.FunctionType):
                    yield member


SOURCE = _PATH.read_text()
MODULES = [
    textwrap, fractions, statistics, difflib, ast, tokenize, configparser, dataclasses, json,
    json.decoder, json.encoder, calendar, copy, string, collections, contextlib,
]  # fmt: skip


def workout():
    @dataclasses.dataclass(order=True)
    class Made:
        a: int
        b: list = dataclasses.field(default_factory=list)

    config = configparser.ConfigParser()
    config.read_string("[a]\nb=1\nc=%(b)s2\n[d]\ne=f")
    tokens = tokenize.generate_tokens(io.StringIO(SOURCE).readline)
    Pair = collections.namedtuple("Pair", "a b")
    return [
        textwrap.fill("hello world foo bar " * 10, 30),
        str(fractions.Fraction(3, 7) + fractions.Fraction(1, 9)),
        statistics.stdev([1, 2, 5, 7.5]), statistics.quantiles([1, 2, 5, 7.5]),
        list(difflib.unified_diff(["abc", "def"], ["abc", "xyz", "def"])),
        ast.unparse(ast.parse(SOURCE)),
        [token[:2] for token in tokens],
        dict(config["a"]),
        repr(Made(1, [2])), dataclasses.asdict(Made(1, [Made(2)])), Made(1) < Made(2),
        json.dumps({"a": [1, 2, {"b": None}]}, indent=2), json.loads('{"a": [2.5, {"b": null}]}'),
        calendar.TextCalendar().formatyear(2024), copy.deepcopy({"a": [1, {2}]}),
        string.Formatter().format("{0:>{w}} {k[a]}", 1, w=4, k={"a": 2}),
        Pair(1, 2)._replace(a=5), collections.Counter("aab").most_common(),
        collections.ChainMap({1: 2}, {3: 4})[3],
    ]  # fmt: skip


def test_modules_of_the_standard_library_do_what_they_did():
    expected = workout()
    functions = [each for module in MODULES for each in functions_of(module)]
    codes = [each.__code__ for each in functions]
    quiet = HOOKS._replace(enter=lambda code: Hook(lambda _: None))
    try:
        for each, code in zip(functions, codes):
            each.__code__ = instrument.instrument(code, quiet)
        found = workout()
    finally:
        for each, code in zip(functions, codes):
            each.__code__ = code
        LOG.clear()
    assert found == expected
    assert len(functions) > 300
