"""Changes of globals, builtins and modules."""

from __future__ import annotations

import builtins
import contextvars
import os
import sys
import threading
import types
import weakref

import tgraph as tg

from .table import Thing, row

RATE = 2.0
LIST = [1.0, 2.0]


@row
def global_variable():
    global RATE
    yield lambda x: x * RATE
    RATE = 3.0
    yield
    RATE = 2.0
    yield


@row
def global_list():
    yield lambda x: x * sum(LIST)
    LIST.append(3.0)
    yield
    LIST.pop()
    yield


@row
def global_in_a_helper():
    global RATE
    yield lambda x: _helper(x)
    RATE = 3.0
    yield
    RATE = 2.0
    yield


def _helper(x):
    return _inner(x) + 1


def _inner(x):
    return x * RATE


@row
def global_helper_replaced():
    global _inner
    before = _inner
    yield lambda x: _helper(x)
    _inner = lambda x: x * 7  # noqa: E731
    yield
    _inner = before
    yield


@row
def global_that_is_absent():
    def function(x):
        try:
            return x * NOT_THERE_YET
        except NameError:
            return x

    yield function
    globals()["NOT_THERE_YET"] = 3.0
    yield
    del globals()["NOT_THERE_YET"]
    yield


@row
def global_that_is_absent_in_a_nested_function():
    def function(x):
        def inner():
            return x * NOT_THERE_YET  # noqa: F821

        try:
            return inner()
        except NameError:
            return x

    yield function
    globals()["NOT_THERE_YET"] = 3.0
    yield
    del globals()["NOT_THERE_YET"]
    yield


@row
def global_by_name():
    global RATE
    yield lambda x: x * globals()["RATE"]
    RATE = 3.0
    yield
    RATE = 2.0
    yield


@row
def global_membership():
    yield lambda x: x * 2 if "NOT_THERE_YET" in globals() else x
    globals()["NOT_THERE_YET"] = 3.0
    yield
    del globals()["NOT_THERE_YET"]
    yield


@row
def global_shadows_a_builtin():
    yield lambda x: x * len([1, 2])
    globals()["len"] = lambda values: 7
    yield
    del globals()["len"]
    yield


@row
def builtin_replaced():
    before = builtins.abs
    yield lambda x: x * abs(-2)
    builtins.abs = lambda value: 7
    yield
    builtins.abs = before
    yield


@row
def builtin_added():
    def function(x):
        try:
            return x * NOT_BUILT_IN
        except NameError:
            return x

    yield function
    builtins.NOT_BUILT_IN = 3.0
    yield
    del builtins.NOT_BUILT_IN
    yield


def _module(name, **attributes):
    module = types.ModuleType(name)
    vars(module).update(attributes)
    return module


@row
def module_attribute():
    settings = _module("settings", rate=2.0)
    yield lambda x: x * settings.rate
    settings.rate = 3.0
    yield
    del settings.rate
    yield
    settings.rate = 2.0
    yield


@row
def module_attribute_of_a_package():
    package = _module("package", inner=_module("package.inner", rate=2.0))
    yield lambda x: x * package.inner.rate
    package.inner.rate = 3.0
    yield
    package.inner = _module("package.other", rate=4.0)
    yield


@row
def module_function():
    settings = _module("settings")
    exec("rate = 2.0\ndef scaled(x):\n    return x * rate", vars(settings))
    yield lambda x: settings.scaled(x)
    settings.rate = 3.0
    yield
    settings.scaled = lambda x: x
    yield


@row
def function_of_code_made_under_a_name_of_its_own():
    names = {"rate": 2.0}
    exec(compile("def scaled(x):\n    return x * rate", "<made by a library>", "exec"), names)
    yield names["scaled"]
    names["rate"] = 3.0
    yield


@row
def module_attributes_by_vars():
    settings = _module("settings", rate=2.0)
    yield lambda x: x * vars(settings)["rate"]
    settings.rate = 3.0
    yield


@row
def module_imported_inside():
    settings = _module("_settings_of_rows", rate=2.0)
    sys.modules["_settings_of_rows"] = settings

    def function(x):
        from _settings_of_rows import rate

        return x * rate

    yield function
    settings.rate = 3.0
    yield
    del sys.modules["_settings_of_rows"]


@row
def module_imported_whole_inside():
    settings = _module("_settings_of_rows", rate=2.0)
    sys.modules["_settings_of_rows"] = settings

    def function(x):
        import _settings_of_rows as s

        return x * s.rate

    yield function
    settings.rate = 3.0
    yield
    sys.modules["_settings_of_rows"] = _module("_settings_of_rows", rate=5.0)
    yield
    del sys.modules["_settings_of_rows"]


@row
def module_membership_of_sys_modules():
    yield lambda x: x * 2 if "_settings_of_rows" in sys.modules else x
    sys.modules["_settings_of_rows"] = _module("_settings_of_rows")
    yield
    del sys.modules["_settings_of_rows"]
    yield


@row
def environment_variable():
    os.environ["TGRAPH_ROW"] = "2"
    yield lambda x: x * float(os.environ["TGRAPH_ROW"])
    os.environ["TGRAPH_ROW"] = "3"
    yield
    del os.environ["TGRAPH_ROW"]
    yield


@row
def environment_variable_by_getenv():
    yield lambda x: x * float(os.getenv("TGRAPH_ROW", "2"))
    os.environ["TGRAPH_ROW"] = "3"
    yield
    del os.environ["TGRAPH_ROW"]
    yield


@row
def environment_variable_by_get_and_in():
    yield (
        lambda x: x * float(os.environ.get("TGRAPH_ROW", 2)) if "TGRAPH_B" not in os.environ else x
    )
    os.environ["TGRAPH_ROW"] = "3"
    yield
    os.environ["TGRAPH_B"] = ""
    yield
    del os.environ["TGRAPH_ROW"], os.environ["TGRAPH_B"]
    yield


@row
def environment_iterated():
    yield lambda x: x * len([name for name in os.environ if name.startswith("TGRAPH_ROW")])
    os.environ["TGRAPH_ROW"] = "3"
    yield
    del os.environ["TGRAPH_ROW"]
    yield


@row
def context_variable():
    rate = contextvars.ContextVar("rate", default=2.0)
    yield lambda x: x * rate.get()
    token = rate.set(3.0)
    yield
    rate.reset(token)
    yield


@row
def context_variable_without_a_default():
    rate = contextvars.ContextVar("rate")
    yield lambda x: x * rate.get(2.0)
    rate.set(3.0)
    yield


@row
def thread_local_attribute():
    local = threading.local()
    local.rate = 2.0
    yield lambda x: x * local.rate
    local.rate = 3.0
    yield
    del local.rate
    yield


@row
def weak_reference():
    thing = Thing(rate=2.0)
    reference = weakref.ref(thing)
    yield lambda x: x * reference().rate
    thing.rate = 3.0
    yield
    thing = Thing(rate=4.0)
    reference = weakref.ref(thing)
    yield


@row
def weak_dictionary():
    thing = Thing()
    table = weakref.WeakKeyDictionary({thing: 2.0})
    yield lambda x: x * table[thing]
    table[thing] = 3.0
    yield


@row
def settings():
    def read(x):
        modes = tg.get_deterministic_debug_mode(), tg.is_warn_always_enabled()
        return x * tg.get_num_threads(), modes, tg.get_float32_matmul_precision(), tg.initial_seed()

    threads, precision = tg.get_num_threads(), tg.get_float32_matmul_precision()
    yield read
    tg.set_num_threads(threads + 1)
    yield
    tg.set_num_threads(threads)
    tg.set_deterministic_debug_mode("warn")
    yield
    tg.set_deterministic_debug_mode("default")
    tg.set_warn_always(True)
    yield
    tg.set_warn_always(False)
    tg.set_float32_matmul_precision("high")
    yield
    tg.set_float32_matmul_precision(precision)
    tg.manual_seed(tg.initial_seed() + 1)
    yield


@row
def recursion_limit():
    limit = sys.getrecursionlimit()
    yield lambda x: x * sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 10)
    yield
    sys.setrecursionlimit(limit)
    yield
