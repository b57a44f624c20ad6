"""PyTorch's samples of its operations (`common_methods_invocations.op_db`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_methods_invocations

import tgraph as tg

from .translate import Difference, again, compare, own, own_name, tensors_of, told

SAMPLES = 12
"""How many samples of an operation are run, evenly among all."""

_RANDOM = (
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform", "dropout",
    "alpha_dropout", "feature_alpha_dropout", "rrelu", "fractional_max_pool2d",
    "fractional_max_pool3d", "empty", "empty_like", "new_empty", "empty_strided", "empty_permuted",
    "new_empty_strided", "dropout2d", "dropout3d", "poisson", "svd_lowrank", "pca_lowrank",
    "scaled_dot_product_attention_dropout",
)  # fmt: skip
"""Draw numbers that a seed of PyTorch's decides, or leave memory as it is."""


class Case(NamedTuple):
    """An operation, and what it is called with."""

    operation: Any
    sample: Any
    dtype: torch.dtype
    text: str


def _name(info: Any) -> str:
    return f"{info.name}{'.' + info.variant_test_name if info.variant_test_name else ''}"


def _public(info: Any) -> bool:
    return not any(part.startswith("_") for part in info.name.split("."))


_INFOS = {_name(each): each for each in common_methods_invocations.op_db if _public(each)}


def names() -> list[str]:
    """All operations, in PyTorch's order."""
    return list(_INFOS)


def cases_of(name: str, dtype: torch.dtype) -> Iterator[Case]:
    """Samples of an operation; of another dtype where it has none of this one."""
    info = _INFOS[name]
    if dtype not in info.dtypes:
        dtype = next(iter(sorted(info.dtypes, key=str)))
    differentiable = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    samples = list(info.sample_inputs("cpu", dtype, requires_grad=differentiable))
    step = max(1, len(samples) // SAMPLES)
    for sample in itertools.islice(samples, 0, None, step):
        yield Case(info, sample, dtype, str(sample)[:150])


def run(case: Case) -> None:
    """Raise Missing, Difference or the error that tgraph raises, unless everything agrees."""
    info, sample = case.operation, case.sample
    function = _function(info)
    ignored = ("device", "generator")
    keywords = {key: each for key, each in sample.kwargs.items() if key not in ignored}
    shapes_only = info.name.split(".")[-1] in _RANDOM
    for compiled in (False, True):
        theirs = again((sample.input, *sample.args)), again(keywords)
        ours = own(theirs[0]), own(theirs[1])
        wanted = info.op(*theirs[0], **theirs[1])
        call = tg.compile(function) if compiled else function
        kind = "compiled" if compiled else "values"
        try:
            found = call(*ours[0], **ours[1])
        except Exception as error:
            raise Difference("compiled" if compiled else "raises", told(error)) from error
        if shapes_only:
            same = [tuple(each.shape) for each in tensors_of(found)]
            if same != [tuple(each.shape) for each in tensors_of(wanted)]:
                raise Difference(kind, f"shapes {same}")
            continue
        if sample.output_process_fn_grad is not None:
            found_part, wanted_part = _processed(sample, found, wanted)
        else:
            found_part, wanted_part = found, wanted
        compare(kind, found_part, _plain(wanted_part))
        _same_gradients("compiled gradient" if compiled else "gradient",
                        (ours, found_part), (theirs, wanted_part))  # fmt: skip


def _function(info: Any) -> Any:
    return own_name(info.name)


def _processed(sample: Any, found: Any, wanted: Any) -> tuple[Any, Any]:
    """The part of the results that is determined."""
    try:
        return sample.output_process_fn_grad(found), sample.output_process_fn_grad(wanted)
    except Exception as error:
        raise Difference("values", f"no such part of the result: {error}"[:150]) from error


def _plain(wanted: Any) -> Any:
    """Named tuples of results as tuples."""
    if isinstance(wanted, tuple):
        return tuple(map(_plain, wanted))
    return wanted


def _same_gradients(kind: str, ours: Any, theirs: Any) -> None:
    results = [each for each in tensors_of(theirs[1]) if each.requires_grad]
    if not results:
        return
    of_ours = [each for each in tensors_of(ours[1]) if each.requires_grad]
    if len(results) != len(of_ours):
        raise Difference(kind, f"{len(of_ours)} results have gradients instead of {len(results)}")
    torch.manual_seed(1)
    given = [torch.randn_like(each) for each in results]
    try:
        torch.autograd.backward(results, given)
    except RuntimeError:
        return  # PyTorch has no gradient of this
    try:
        tg.autograd.backward(of_ours, [own(each) for each in given])
    except Exception as error:
        raise Difference(kind, told(error)) from error
    for mine, their in zip(tensors_of(ours[0]), tensors_of(theirs[0]), strict=True):
        if (mine.grad is None) != (their.grad is None):
            raise Difference(kind, f"gradient {mine.grad} instead of {their.grad}"[:160])
        if their.grad is not None:
            compare(kind, mine.grad, their.grad, loose=5.0)
