"""The hooks that instrumented code calls: they hand what they get to the thread's Recorder.

Where nothing is recorded, in other threads and behind a trace, they do what the code says."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from ...core.state import state
from .entered import Enter
from .guards import is_a
from .instrument import Hooks


class _Named:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class _Attribute(_Named):
    __slots__ = ()

    def __or__(self, obj: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return getattr(obj, self.name)
        return recorder.attribute(obj, self.name)


class _SuperAttribute(_Named):
    __slots__ = ()

    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return getattr(operands[0](operands[1], operands[2]), self.name)
        return recorder.super_attribute(operands, self.name)


class _Imported(_Named):
    __slots__ = ()

    def __or__(self, operands: Any) -> None:
        recorder = state.recorder
        if recorder is not None and is_a(operands[0], ModuleType):
            recorder.imported(*operands, self.name)


class _StoreAttribute(_Named):
    __slots__ = ()

    def __or__(self, obj: Any) -> None:
        if state.recorder is not None:
            state.recorder.store_attribute(obj, self.name)


class _StoreGlobal(_Named):
    __slots__ = ()

    def __or__(self, _: Any) -> None:
        if state.recorder is not None:
            state.recorder.store_global(sys._getframe(1).f_globals, self.name)


class _Item:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return operands[0][operands[1]]
        return recorder.item(*operands)


class _Contains:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        return operands[0] in operands[1] if recorder is None else recorder.contains(*operands)


class _Lacks(_Contains):
    def __or__(self, operands: Any) -> Any:
        return not super().__or__(operands)


class _Identical:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return operands[0] is operands[1]
        return recorder.identical(*operands)


class _Differs(_Identical):
    def __or__(self, operands: Any) -> Any:
        return not super().__or__(operands)


class _Call:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        return operands[0] if recorder is None else recorder.call(operands[0], operands[1:])


class _CallUnpacked:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return operands[0]
        recorder.look(operands[1])
        given = operands[1] if is_a(operands[1], (tuple, list)) else ()
        keywords = [
            each for named in operands[2:] if type(named) is dict for each in named.values()
        ]
        return recorder.call(operands[0], (*given, *keywords))


class _Noted:
    """Tells the recorder of a value, or of several that come as a tuple."""

    def __init__(self, method: str, several: bool = False) -> None:
        self.method, self.several = method, several

    def __or__(self, value: Any) -> None:
        recorder = state.recorder
        if recorder is not None:
            method = getattr(recorder, self.method)
            method(*value) if self.several else method(value)


HOOKS = Hooks(
    enter=Enter,
    attribute=functools.cache(_Attribute),
    super_attribute=functools.cache(_SuperAttribute),
    imported=functools.cache(_Imported),
    module=_Noted("module"),
    item=_Item(),
    contains=_Contains(),
    lacks=_Lacks(),
    identical=_Identical(),
    differs=_Differs(),
    call=_Call(),
    call_unpacked=_CallUnpacked(),
    look=_Noted("look"),
    look_at_each=_Noted("look_at_each", several=True),
    update=_Noted("update", several=True),
    change=_Noted("change", several=True),
    truth=_Noted("truth"),
    iterate=_Noted("iterate"),
    store=_Noted("store_slice"),
    store_item=_Noted("store_item", several=True),
    delete_item=_Noted("delete_item", several=True),
    store_attribute=functools.cache(_StoreAttribute),
    store_global=functools.cache(_StoreGlobal),
)
