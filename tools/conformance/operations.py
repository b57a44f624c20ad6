"""PyTorch's samples of its operations (`common_methods_invocations.op_db`)."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.opinfo.core import (
    BinaryUfuncInfo,
    ReductionOpInfo,
    UnaryUfuncInfo,
)

from .encode import again, encoded, gradients, torch_tensors_of
from .replay import COMPOSED, Record
from .values import told

SAMPLES = 12
"""How many samples of an operation are run, evenly among all."""

FORMS = 3
"""Of how many samples the method and the method in place are run, too."""

_RANDOM = (
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform", "dropout",
    "alpha_dropout", "feature_alpha_dropout", "rrelu", "fractional_max_pool2d",
    "fractional_max_pool3d", "empty", "empty_like", "new_empty", "empty_strided", "empty_permuted",
    "new_empty_strided", "dropout2d", "dropout3d", "poisson", "svd_lowrank",
    "scaled_dot_product_attention_dropout",
)  # fmt: skip
"""Draw numbers that a seed of PyTorch's decides, or leave memory as it is."""

_IGNORED = ("device", "generator")


class Case(NamedTuple):
    """An operation, and what it is called with; whether PyTorch refuses that."""

    operation: Any
    sample: Any
    text: str
    forms: bool = False
    refused: bool = False


def _name(info: Any) -> str:
    return f"{info.name}{'.' + info.variant_test_name if info.variant_test_name else ''}"


def _public(info: Any) -> bool:
    """Operations that PyTorch's users call, among them Python's operators."""
    return not any(
        part.startswith("_") and not part.startswith("__") for part in info.name.split(".")
    )


_INFOS = {_name(each): each for each in common_methods_invocations.op_db if _public(each)}


def names() -> list[str]:
    """All operations, in PyTorch's order."""
    return list(_INFOS)


def group_of(name: str) -> str:
    """The row of the table that an operation is counted in."""
    info = _INFOS[name]
    place = info.name.rpartition(".")[0]
    if place:
        return place.split(".")[0] if place != "nn.functional" else place
    if isinstance(info, UnaryUfuncInfo):
        return "functions of one number"
    if isinstance(info, BinaryUfuncInfo):
        return "functions of two numbers"
    return "reductions" if isinstance(info, ReductionOpInfo) else "other operations"


def cases_of(name: str, dtype: torch.dtype) -> Iterator[Case]:
    """Samples of an operation; of another dtype where it has none of this one."""
    info = _INFOS[name]
    if dtype not in info.dtypes:
        usual = [each for each in (torch.float64, torch.float32) if each in info.dtypes]
        dtype = (usual or [min(info.dtypes, key=str, default=dtype)])[0]
    differentiable = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    samples = list(info.sample_inputs("cpu", dtype, requires_grad=differentiable))
    step = max(1, len(samples) // SAMPLES)
    for index, sample in enumerate(itertools.islice(samples, 0, None, step)):
        yield Case(info, sample, str(sample)[:150], index < FORMS)
    if info.error_inputs_func is not None:
        for each in info.error_inputs("cpu"):
            if name.startswith("__") and not isinstance(each.sample_input.input, torch.Tensor):
                continue  # an operator of Tensor's called as a function, of something else
            text = f"{str(each.sample_input)[:150]} is refused"
            yield Case(info, each.sample_input, text, refused=True)


def record(case: Case) -> Record | None:
    """What PyTorch gives; None where it does not do with a sample what its list says."""
    info, sample = case.operation, case.sample
    keywords = {key: each for key, each in sample.kwargs.items() if key not in _IGNORED}
    args, keywords = again((sample.input, *sample.args)), again(keywords)
    if info.name == "nn.functional.multi_head_attention_forward":
        args, keywords = _without_dropout(args, keywords)
    given: dict[str, Any] = {"args": encoded(args), "keywords": encoded(keywords)}
    torch.manual_seed(0)
    try:
        result = info.op(*args, **keywords)
    except Exception as error:
        if not case.refused:
            return None
        wanted = {"error": type(error).__name__, "message": told(error)}
        if isinstance(error, TypeError) and any(isinstance(each, _NUMBERS) for each in args):
            wanted |= _of_tensors(info, args, keywords)
        return Record("operations", _called(info), case.text, given, wanted)
    if case.refused:
        return None
    part = sample.output_process_fn_grad(result)
    drops = bool(keywords.get("dropout_p"))
    given["random"] = drops or info.name.split(".")[-1] in _RANDOM
    if part is not result:
        given["part"] = sample.output_process_fn_grad
    wanted = {"result": encoded(part)}
    given["cotangents"], wanted["gradients"] = gradients(part, [args, keywords])
    if case.forms and isinstance(sample.input, torch.Tensor):
        given["forms"] = [
            name for form in (info.method_variant, info.inplace_variant)
            if (name := getattr(form, "__name__", "")) and _has_form(name, sample, part)
        ]  # fmt: skip
    if case.forms and info.supports_out and part is result:
        given["out"] = _has_out(info, sample, keywords, result)
    return Record("operations", _called(info), case.text, given, wanted)


def _called(info: Any) -> str:
    """Where tgraph should have it: what writes in place is a method."""
    if _name(info) in COMPOSED:
        return _name(info)
    return f"{info.name}_" if info.variant_test_name == "in_place" else info.name


_NUMBERS = (bool, int, float, complex)


def _of_tensors(info: Any, args: Any, keywords: Any) -> dict[str, Any]:
    """What PyTorch gives or raises for tensors in the place of numbers, which it refuses."""
    args = [torch.tensor(each) if isinstance(each, _NUMBERS) else each for each in args]
    try:
        return {"of_tensors": encoded(info.op(*args, **keywords))}
    except Exception as error:
        return {"error_of_tensors": type(error).__name__}


def _without_dropout(args: Any, keywords: Any) -> tuple[Any, Any]:
    named = inspect.signature(torch.nn.functional.multi_head_attention_forward).bind(
        *args, **keywords
    )
    named.arguments["dropout_p"] = 0.0
    return named.args, named.kwargs


def _has_out(info: Any, sample: Any, keywords: Any, wanted: Any) -> bool:
    """Whether PyTorch writes the results into tensors of their shapes and types."""
    args, keywords = again((sample.input, *sample.args)), again(keywords)
    outs = [torch.zeros_like(each) for each in torch_tensors_of(wanted)]
    try:
        with torch.no_grad():
            info.op(*args, **keywords, out=outs[0] if isinstance(wanted, torch.Tensor) else outs)
    except (RuntimeError, TypeError):
        return False
    return True


def _has_form(form: str, sample: Any, wanted: Any) -> bool:
    """Whether PyTorch's method gives the same for a sample."""
    with torch.no_grad():
        subject, *rest = again((sample.input, *sample.args))
        try:
            found = getattr(subject, form)(*rest, **again(sample.kwargs))
        except (RuntimeError, TypeError, AttributeError):
            return False
    one, other = list(torch_tensors_of(found)), list(torch_tensors_of(wanted))
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape for a, b in zip(one, other, strict=True)
    )
