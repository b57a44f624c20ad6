"""PyTorch's cases of its modules (`common_modules.module_db`), and those of the rest, here."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_modules

import tgraph as tg

from .more_modules import MORE
from .translate import Difference, Missing, again, compare, own, own_name, tensors_of, told

_SHAPES_ONLY = ("FractionalMaxPool2d", "FractionalMaxPool3d", "RReLU")
"""Draw numbers that a seed of PyTorch's decides."""


class Case(NamedTuple):
    """A module to make and to call."""

    module: str
    constructor: Any
    forward: Any
    training: bool
    dtype: torch.dtype
    text: str


def names() -> list[str]:
    """All modules with cases, in PyTorch's order, then the rest."""
    found = [info.module_cls.__name__ for info in common_modules.module_db]
    return [*dict.fromkeys([*found, *(each.module for each in MORE)])]


def cases_of(module: str, dtype: torch.dtype) -> Iterator[Case]:
    for info in common_modules.module_db:
        if info.module_cls.__name__ != module:
            continue
        for training in (True, False) if info.train_and_eval_differ else (True,):
            made = info.module_inputs_func(
                info, device="cpu", dtype=dtype, requires_grad=True, training=training
            )
            for each in made:
                if each.forward_input is not None:
                    yield Case(module, each.constructor_input, each.forward_input, training, dtype,
                               f"{each.constructor_input.args} {each.constructor_input.kwargs} "
                               f"{each.desc}")  # fmt: skip
    for more in MORE:
        if more.module == module:
            made_input = common_modules.FunctionInput(*more.inputs(dtype))
            constructor = common_modules.FunctionInput(*more.args, **more.keywords)
            yield Case(module, constructor, made_input, more.training, dtype,
                       f"{more.args} {more.keywords}")  # fmt: skip


def run(case: Case) -> None:
    """Raise Missing, Difference or the error that tgraph raises, unless everything agrees."""
    theirs_class = getattr(torch.nn, case.module, None) or _class_of(case.module)
    torch.manual_seed(0)
    constructor, forward = case.constructor, case.forward
    keywords = {key: each for key, each in constructor.kwargs.items() if key != "device"}
    theirs = theirs_class(*constructor.args, **keywords)
    ours = own_name(f"nn.{case.module}")(*own(constructor.args), **own(keywords))
    theirs.to(case.dtype)
    ours.to(own(case.dtype))
    theirs.train(case.training)
    ours.train(case.training)
    _without_dropout(theirs)
    _without_dropout(ours)
    if any(map(_is_lazy, theirs.modules())):
        with torch.no_grad():
            theirs(*again(forward.args), **again(forward.kwargs))
        ours(*own(forward.args), **own(forward.kwargs))
    _same_state(ours, theirs)
    _same_repr(ours, theirs)
    _load(ours, theirs)
    shapes_only = case.module in _SHAPES_ONLY
    for compiled in (False, True):
        _same_call(ours, theirs, forward, compiled, shapes_only)


def _class_of(name: str) -> Any:
    for info in common_modules.module_db:
        if info.module_cls.__name__ == name:
            return info.module_cls
    raise LookupError(name)


def _is_lazy(module: Any) -> bool:
    return isinstance(module, torch.nn.modules.lazy.LazyModuleMixin)


def _without_dropout(module: Any) -> None:
    """Which elements are dropped, a seed of PyTorch's decides."""
    for each in module.modules():
        if "Dropout" in type(each).__name__:
            each.p = 0.0
        if isinstance(getattr(each, "dropout", None), float):
            each.dropout = 0.0


def _same_state(ours: Any, theirs: Any) -> None:
    found = {key: tuple(each.shape) for key, each in ours.state_dict().items()}
    wanted = {key: tuple(each.shape) for key, each in theirs.state_dict().items()}
    if list(found.items()) != list(wanted.items()):
        raise Difference("state", f"{found} instead of {wanted}")


def _same_repr(ours: Any, theirs: Any) -> None:
    one = repr(ours).replace("tgraph.", "torch.")
    if one != repr(theirs):
        raise Difference("repr", f"{one} instead of {theirs!r}")


def _load(ours: Any, theirs: Any) -> None:
    ours.load_state_dict({key: own(each) for key, each in theirs.state_dict().items()})


def _same_call(ours: Any, theirs: Any, forward: Any, compiled: bool, shapes_only: bool) -> None:
    ours, theirs = copy.deepcopy(ours), copy.deepcopy(theirs)
    args, keywords = again(forward.args), again(forward.kwargs)
    our_args, our_keywords = own(args), own(keywords)
    wanted = theirs(*args, **keywords)
    call = tg.compile(lambda *args, **keywords: ours(*args, **keywords)) if compiled else ours
    try:
        found = call(*our_args, **our_keywords)
    except (Missing, Difference):
        raise
    except Exception as error:
        raise Difference("compiled" if compiled else "raises", told(error)) from error
    kind = "compiled" if compiled else "values"
    if shapes_only:
        for one, other in zip(tensors_of(found), tensors_of(wanted), strict=True):
            if tuple(one.shape) != tuple(other.shape):
                raise Difference(kind, f"shape {one.shape} instead of {other.shape}")
        return
    compare(kind, found, wanted)
    compare(f"{kind} of buffers", dict(ours.named_buffers()), dict(theirs.named_buffers()))
    _same_gradients(
        kind.replace("values", "gradient"), (ours, our_args, our_keywords, found),
        (theirs, args, keywords, wanted),
    )  # fmt: skip


def _same_gradients(kind: str, ours: Any, theirs: Any) -> None:
    torch.manual_seed(1)
    results = [each for each in tensors_of(theirs[3]) if each.requires_grad]
    of_ours = [each for each in tensors_of(ours[3]) if each.requires_grad]
    if len(results) != len(of_ours):
        raise Difference(kind, f"{len(of_ours)} results have gradients instead of {len(results)}")
    if not results:
        return
    given = [torch.randn_like(each) for each in results]
    torch.autograd.backward(results, given)
    tg.autograd.backward(of_ours, [own(each) for each in given])
    sources = [
        (list(ours[0].parameters()), list(theirs[0].parameters())),
        (list(tensors_of(ours[1])), list(tensors_of(theirs[1]))),
        (list(tensors_of(ours[2])), list(tensors_of(theirs[2]))),
    ]
    for one, other in sources:
        for mine, their in zip(one, other, strict=True):
            if (mine.grad is None) != (their.grad is None):
                raise Difference(kind, f"gradient {mine.grad} instead of {their.grad}"[:160])
            if their.grad is not None:
                compare(kind, mine.grad, their.grad, loose=5.0)
