"""Modules as functions of their parameters: what transforms need to work on models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..nn.batch_normalization import BatchNormBase
from ..nn.module import Module
from ..ops.concatenation import stack


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with other tensors in place of its parameters and buffers.

    They are given by their names in the module; those that are left out are the module's own.
    `args` that are no tuple are the one argument. A parameter that the module has under several
    names is replaced under all of them, unless `tie_weights` is False. With `strict` every name
    must be given. A buffer that the module sets anew stays with the call, the module is left as it
    was.

    RuntimeError for names that the module does not have, or (`strict`) that are missing.

    >>> import tgraph as tg
    >>> model = tg.nn.Linear(2, 1)
    >>> given = {"weight": tg.ones(1, 2), "bias": tg.zeros(1)}
    >>> tg.functional_call(model, given, (tg.ones(2),))
    tensor([2.])
    """
    dicts = parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for each in (dicts,) if isinstance(dicts, Mapping) else dicts:
        repeated = sorted(given.keys() & each.keys())
        if repeated:
            raise ValueError(f"functional_call: {repeated} appeared in multiple dictionaries")
        given.update(each)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


@contextmanager
def _replaced(
    module: Module, given: dict[str, Tensor], tie_weights: bool, strict: bool
) -> Iterator[None]:
    places = _places(module)
    unknown = sorted(given.keys() - places.keys())
    if unknown:
        raise RuntimeError(f"functional_call: Unexpected key(s): {', '.join(unknown)}")
    own = {name: registry[key] for name, (registry, key) in places.items()}
    names = dict(given)
    if tie_weights:
        by_tensor = {id(own[name]): each for name, each in given.items()}
        names = {
            name: by_tensor[id(tensor)] for name, tensor in own.items() if id(tensor) in by_tensor
        } | given
    missing = sorted(own.keys() - names.keys())
    if strict and missing:
        raise RuntimeError(f"functional_call: Missing key(s): {', '.join(missing)}")
    try:
        for name, tensor in names.items():
            registry, key = places[name]
            registry[key] = tensor
        yield
    finally:
        for name, (registry, key) in places.items():
            registry[key] = own[name]


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Where each parameter and buffer is held, by its name; shared ones under all their names."""
    found = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        held = owner.__dict__
        for key in (*owner._parameter_names, *owner._buffer_names):
            if held[key] is not None:
                found[f"{prefix}.{key}" if prefix else key] = held, key
    return found


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """`(parameters, buffers)` of modules of one structure, by name, stacked along a first axis.

    With `functional_call` and `vmap` they are an ensemble. The stacked parameters are leaves that
    require grad as the modules' own do.

    >>> import tgraph as tg
    >>> models = [tg.nn.Linear(2, 1) for _ in range(3)]
    >>> params, buffers = tg.func.stack_module_state(models)
    >>> one = lambda params, x: tg.functional_call(models[0], params, (x,))
    >>> tg.vmap(one, in_dims=(0, None))(params, tg.ones(2)).shape
    tgraph.Size([3, 1])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(type(each) is not type(models[0]) for each in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if any(each.training is not models[0].training for each in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    parameters = _stacked([dict(each.named_parameters()) for each in models])
    buffers = _stacked([dict(each.named_buffers()) for each in models])
    return parameters, buffers


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    made = {}
    for name, first in states[0].items():
        with no_grad():
            made[name] = stack([each[name] for each in states])
        made[name].requires_grad_(first.requires_grad)
    return made


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch norm below `root` go by its batch alone, and keep no running statistics.

    These are written in place, which `vmap` refuses for a buffer that is one for all examples.
    Changes `root`, and gives it.

    >>> import tgraph as tg
    >>> model = tg.func.replace_all_batch_norm_modules_(tg.nn.BatchNorm1d(3))
    >>> model.running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, BatchNormBase):
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(module, name, None)
    return root
