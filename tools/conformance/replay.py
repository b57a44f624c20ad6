"""What PyTorch gave for a case, as plain data, against what tgraph gives; needs no PyTorch."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tgraph as tg

from .values import (
    Array,
    Difference,
    Missing,
    Sparse,
    TakesNumbers,
    compare,
    compare_shapes,
    own,
    own_name,
    same_gradients,
    tensors_of,
    told,
)


class Record(NamedTuple):
    """A case of a family: what is called with what, and what PyTorch gave."""

    family: str
    name: str
    text: str
    given: dict[str, Any]
    wanted: dict[str, Any]


EAGER_AND_COMPILED = (False, True)


def replay(record: Record, ways: Sequence[bool] = EAGER_AND_COMPILED, device: Any = "cpu") -> None:
    """Raise Missing, Difference or the error of tgraph's, unless everything agrees."""
    with warnings.catch_warnings(), tg.device(device):
        warnings.simplefilter("ignore")
        if "error" in record.wanted:
            _same_error(record)
        else:
            _REPLAYS[record.family](record, ways)


def _called(compiled: bool, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    call = tg.compile(function) if compiled else function
    try:
        return call(*args, **keywords)
    except (Missing, Difference):
        raise
    except Exception as error:
        raise Difference("compiled" if compiled else "raises", told(error)) from error


# --- modules ------------------------------------------------------------------------------------


def _made_module(record: Record) -> Any:
    given = record.given
    made = own_name(f"nn.{record.name}")(*own(given["args"]), **own(given["keywords"]))
    made.to(own_name(given["dtype"]))
    return made.train(given["training"])


def without_dropout(module: Any) -> None:
    """Which elements are dropped, a seed of PyTorch's decides; of modules of both libraries."""
    for each in module.modules():
        if "Dropout" in type(each).__name__:
            each.p = 0.0
        if isinstance(getattr(each, "dropout", None), float):
            each.dropout = 0.0


def _module(record: Record, ways: Sequence[bool]) -> None:
    given, wanted = record.given, record.wanted
    module = _made_module(record)
    without_dropout(module)
    if given["lazy"]:
        module(*own(given["inputs"]), **own(given["named"]))
    found = {key: tuple(each.shape) for key, each in module.state_dict().items()}
    shapes = {key: each.values.shape for key, each in given["state"].items()}
    if list(found.items()) != list(shapes.items()):
        raise Difference("state", f"{found} instead of {shapes}")
    if repr(module).replace("tgraph.", "torch.") != wanted["repr"]:
        raise Difference("repr", f"{module!r} instead of {wanted['repr']}")
    module.load_state_dict(own(given["state"]))
    for compiled in ways:
        _same_call(record, copy.deepcopy(module), compiled)


def _same_call(record: Record, module: Any, compiled: bool) -> None:
    given, wanted = record.given, record.wanted
    kind = "compiled" if compiled else "values"
    inputs, named = own(given["inputs"]), own(given["named"])
    found = _called(compiled, lambda *x, **named: module(*x, **named), *inputs, **named)
    if given["random"]:
        return compare_shapes(kind, found, wanted["result"])
    compare(kind, found, wanted["result"])
    compare(f"{kind} of buffers", dict(module.named_buffers()), wanted["buffers"])
    same_gradients(kind.replace("values", "gradient"), found,
                   [list(module.parameters()), inputs, named],
                   given["cotangents"], wanted["gradients"])  # fmt: skip
    return None


# --- operations ---------------------------------------------------------------------------------


def _operation(record: Record, ways: Sequence[bool]) -> None:
    given = record.given
    function = operation_of(record.name)
    for compiled in ways:
        args, keywords = own(given["args"]), own(given["keywords"])
        found = _called(compiled, function, *args, **keywords)
        _same_result(record, "compiled" if compiled else "", found, [args, keywords])
    if False in ways:
        _same_forms(record)
        if given.get("out"):
            _same_out(record, function)


def _same_result(record: Record, kind: str, found: Any, sources: Any) -> None:
    given, wanted = record.given, record.wanted
    if given.get("part"):
        try:
            found = given["part"](found)
        except Exception as error:
            text = f"no such part of the result: {told(error)}"
            raise Difference(kind or "values", text) from error
    if given["random"]:
        return compare_shapes(kind or "values", found, wanted["result"])
    compare(kind or "values", found, wanted["result"])
    same_gradients(f"{kind} gradient".strip(), found, sources,
                   given["cotangents"], wanted["gradients"])  # fmt: skip
    return None


def _same_forms(record: Record) -> None:
    """The method, and the method that writes in place, where PyTorch has them."""
    for form in record.given.get("forms", ()):
        args, keywords = own(record.given["args"]), own(record.given["keywords"])
        subject, *rest = args
        if not hasattr(subject, form):
            raise Difference("forms", f"Tensor.{form} is missing")
        if form.endswith("_") and not form.startswith("__"):
            subject, rest, keywords = _detached(subject), _detached(rest), _detached(keywords)
        try:
            found = getattr(subject, form)(*rest, **keywords)
        except Exception as error:
            raise Difference("forms", f"Tensor.{form} raises {told(error)}") from error
        if record.given["random"]:
            compare_shapes(f"forms: {form}", found, record.wanted["result"])
        elif not record.given.get("part"):
            compare(f"forms: {form}", found, record.wanted["result"])


def _same_out(record: Record, function: Callable[..., Any]) -> None:
    """The results in tensors that exist."""
    wanted = record.wanted["result"]
    outs = [tg.zeros_like(own(each)) for each in tensors_of(wanted)]
    args, keywords = own(record.given["args"]), own(record.given["keywords"])
    out = outs[0] if isinstance(wanted, (Array, Sparse)) else tuple(outs)
    try:
        with tg.no_grad():
            found = function(*args, **keywords, out=out)
    except Exception as error:
        raise Difference("out=", told(error)) from error
    if [*map(id, tensors_of(found))] != [*map(id, outs)]:
        raise Difference("out=", "the results are others than the tensors given")
    if not record.given["random"]:
        compare("out=", found, wanted)


def _detached(value: Any) -> Any:
    if isinstance(value, tg.Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_detached, value))
    if isinstance(value, dict):
        return {key: _detached(each) for key, each in value.items()}
    return value


def operation_of(name: str) -> Callable[..., Any]:
    """A function of tgraph's; a method where PyTorch has no function of the name."""
    if name in COMPOSED:
        return COMPOSED[name]
    if name.endswith("_") and "." not in name and not name.startswith("__"):
        return method(name)  # which writes over a copy
    try:
        found = own_name(name)
        if callable(found):  # and not the dtype `float`
            return in_order(name, found)
        return method(name)
    except Missing:
        for form in (name, f"{name}_"):
            if "." not in name and hasattr(tg.Tensor, form):
                return method(form)
        raise


def _product(a: Any, b: Any) -> Any:
    return a @ b.mT


COMPOSED: dict[str, Callable[..., Any]] = {
    "linalg.lstsq.grad_oriented": lambda a, b, driver: tg.linalg.lstsq(a, b, driver=driver)[:2],
    "linalg.pinv.singular": lambda a, b: tg.linalg.pinv(_product(a, b)),
    "svd_lowrank": lambda a, b, **named: tg.svd_lowrank(_product(a, b), **named),
    "pca_lowrank": lambda a, b, **named: tg.pca_lowrank(_product(a, b), **named),
}
"""What PyTorch's samples call is a function of more than one of its operations."""

_SECOND_FIRST = (
    "einsum", "polygamma", "special.polygamma", "nn.functional.embedding",
    "nn.functional.embedding_bag",
)  # fmt: skip


def in_order(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of either library, which some samples give what is differentiated first."""
    if name in _SECOND_FIRST:
        return lambda first, second, *rest, **named: function(second, first, *rest, **named)
    if name == "where":
        return lambda chosen, condition, other, **named: function(condition, chosen, other, **named)
    return function


def method(name: str) -> Callable[..., Any]:
    """That of a tensor of either library; what writes in place writes over a copy."""
    writes = name.endswith("_") and not name.startswith("__")

    def call(subject: Any, *args: Any, **keywords: Any) -> Any:
        subject = subject.clone() if writes else subject
        found = getattr(subject, name)  # what PyTorch has as a property is the result
        return found(*args, **keywords) if callable(found) else found

    return call


# --- optimizers ---------------------------------------------------------------------------------


def training_step(
    optimizer: Any, parameters: list[Any], targets: list[Any], compiled: bool = False
) -> Callable[[], Any]:
    """A step of either library's optimizer towards targets.

    SparseAdam has sparse gradients, of all elements; compiled, dense ones.
    """
    sparse = type(optimizer).__name__ == "SparseAdam" and not compiled

    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum(((one - other) ** 2).mean() + (one**4).mean() / 10
                   for one, other in zip(parameters, targets, strict=True))  # fmt: skip
        loss.backward()
        for each in parameters if sparse else ():
            each.grad = each.grad.to_sparse()
        return loss

    return lambda: optimizer.step(closure)


def _optimizer(record: Record, ways: Sequence[bool]) -> None:
    given, wanted = record.given, record.wanted
    for compiled in ways:
        kind = "compiled" if compiled else "values"
        parameters = own(given["begin"])
        optimizer = own_name(f"optim.{record.name}")(parameters, **own(given["options"]))
        step = training_step(optimizer, parameters, own(given["targets"]), compiled)
        run_step = tg.compile(step) if compiled else step
        for _ in range(given["steps"]):
            _called(False, run_step)
        compare(kind, parameters, wanted["parameters"], loose=10.0)
        _same_state(optimizer.state_dict(), wanted["groups"], wanted["state"])


def _same_state(found: Any, groups: Any, state: Any) -> None:
    for mine, their in zip(found["param_groups"], groups, strict=True):
        if set(mine) != set(their):
            raise Difference("state", f"groups differ in {sorted(set(mine) ^ set(their))}")
    for key, their in state.items():
        mine = found["state"].get(key, {})
        if set(mine) != set(their):
            raise Difference("state", f"of {key} differs in {sorted(set(mine) ^ set(their))}")
        for name, value in their.items():
            if value is not None:
                compare(f"state {name}", mine[name], value, loose=10.0)


# --- errors -------------------------------------------------------------------------------------


def _same_error(record: Record) -> None:
    """An error of the class that who catches PyTorch's catches."""
    wanted = record.wanted
    try:
        found = _REFUSED[record.family](record)
    except Missing:
        raise
    except Exception as error:
        classes = [each.__name__ for each in type(error).__mro__]
        if wanted["error"] in classes:
            return
        if wanted.get("error_of_tensors") in classes:
            raise TakesNumbers from error
        text = f"{told(error)} instead of {wanted['message']}"
        raise Difference("errors", text) from error
    if "of_tensors" in wanted:
        compare("numbers taken for tensors", _detached(found), wanted["of_tensors"])
        raise TakesNumbers
    raise Difference("errors", f"nothing raised instead of {wanted['message']}")


def _refused_module(record: Record) -> None:
    module = _made_module(record)
    if record.given["inputs"] is not None:
        module(*own(record.given["inputs"]), **own(record.given["named"]))


def _refused_operation(record: Record) -> Any:
    return operation_of(record.name)(*own(record.given["args"]), **own(record.given["keywords"]))


def _refused_optimizer(record: Record) -> None:
    known: dict[int, Any] = {}
    options = own(record.given["options"], known)
    parameters = own(record.given["begin"], known)
    optimizer = own_name(f"optim.{record.name}")(parameters, **options)
    if record.given["step"] is not None:
        for each, gradient in zip(parameters, record.given["step"], strict=True):
            each.grad = own(gradient)
        optimizer.step()


_REPLAYS = {"modules": _module, "operations": _operation, "optimizers": _optimizer}
_REFUSED = {
    "modules": _refused_module, "operations": _refused_operation, "optimizers": _refused_optimizer,
}  # fmt: skip
