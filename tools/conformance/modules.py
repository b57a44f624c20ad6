"""PyTorch's cases of its modules (`common_modules.module_db`), and those of the rest, here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_modules

from .encode import again, encoded, gradients
from .more_modules import MORE
from .replay import Record, without_dropout
from .values import told

_SHAPES_ONLY = ("FractionalMaxPool2d", "FractionalMaxPool3d", "RReLU")
"""Draw numbers that a seed of PyTorch's decides."""


class Case(NamedTuple):
    """A module to make and to call; whether PyTorch refuses that."""

    module: str
    constructor: Any
    forward: Any
    training: bool
    dtype: torch.dtype
    text: str
    refused: bool = False


def names() -> list[str]:
    """All modules with cases, in PyTorch's order, then the rest."""
    found = [info.module_cls.__name__ for info in common_modules.module_db]
    return [*dict.fromkeys([*found, *(each.module for each in MORE)])]


def group_of(name: str) -> str:
    """The row of the table that a module is counted in."""
    return "modules"


def cases_of(module: str, dtype: torch.dtype) -> Iterator[Case]:
    for info in common_modules.module_db:
        if info.module_cls.__name__ == module:
            for training in (True, False) if info.train_and_eval_differ else (True,):
                yield from _cases_of_info(info, dtype, training)
    for more in MORE:
        if more.module == module:
            made_input = common_modules.FunctionInput(*more.inputs(dtype))
            constructor = common_modules.FunctionInput(*more.args, **more.keywords)
            yield Case(module, constructor, made_input, more.training, dtype,
                       f"{more.args} {more.keywords}")  # fmt: skip


def _cases_of_info(info: Any, dtype: torch.dtype, training: bool) -> Iterator[Case]:
    module = info.module_cls.__name__
    keywords = {"device": "cpu", "dtype": dtype, "training": training}
    for each in info.module_inputs_func(info, requires_grad=True, **keywords):
        if each.forward_input is not None:
            yield Case(module, each.constructor_input, each.forward_input, training, dtype,
                       f"{_text(each.constructor_input)} {each.desc}")  # fmt: skip
    if info.module_error_inputs_func is None:
        return
    for refused in info.module_error_inputs_func(info, requires_grad=False, **keywords):
        each = refused.module_error_input
        at_call = refused.error_on is common_modules.ModuleErrorEnum.FORWARD_ERROR
        forward = each.forward_input if at_call else None
        text = f"{_text(each.constructor_input)} is refused"
        yield Case(module, each.constructor_input, forward, training, dtype, text, True)


def _text(constructor: Any) -> str:
    return f"{constructor.args} {constructor.kwargs}"


def record(case: Case) -> Record | None:
    """What PyTorch gives; None where it does not refuse what its list says it does."""
    torch.manual_seed(0)
    keywords = {key: each for key, each in case.constructor.kwargs.items() if key != "device"}
    arguments, keywords = again(case.constructor.args), again(keywords)
    given: dict[str, Any] = {
        "args": encoded(arguments), "keywords": encoded(keywords),
        "training": case.training, "dtype": encoded(case.dtype).path, "inputs": None,
    }  # fmt: skip
    if case.forward is not None:
        args, named = again(case.forward.args), again(case.forward.kwargs)
        given |= {"inputs": encoded(args), "named": encoded(named)}
    try:
        theirs = _class_of(case.module)(*arguments, **keywords).to(case.dtype)
        theirs.train(case.training)
        if not case.refused:
            return _called(case, theirs, given, args, named)
        if case.forward is not None:
            theirs(*args, **named)
    except Exception as error:
        if not case.refused:
            raise
        wanted = {"error": type(error).__name__, "message": told(error)}
        return Record("modules", case.module, case.text, given, wanted)
    return None


def _called(case: Case, theirs: Any, given: dict[str, Any], args: Any, named: Any) -> Record:
    without_dropout(theirs)
    given["lazy"] = any(map(_is_lazy, theirs.modules()))
    if given["lazy"]:
        with torch.no_grad():
            theirs(*again(args), **again(named))
    with torch.no_grad():
        for each in theirs.state_dict().values():
            each.copy_(again(each))
    given["state"] = encoded(dict(theirs.state_dict()))
    given["random"] = case.module in _SHAPES_ONLY
    shown = repr(theirs)
    result = theirs(*args, **named)
    wanted = {
        "repr": shown, "result": encoded(result), "buffers": encoded(dict(theirs.named_buffers())),
    }  # fmt: skip
    sources = [list(theirs.parameters()), args, named]
    given["cotangents"], wanted["gradients"] = gradients(result, sources)
    return Record("modules", case.module, case.text, given, wanted)


def _class_of(name: str) -> Any:
    for info in common_modules.module_db:
        if info.module_cls.__name__ == name:
            return info.module_cls
    return getattr(torch.nn, name)


def _is_lazy(module: Any) -> bool:
    return isinstance(module, torch.nn.modules.lazy.LazyModuleMixin)
