"""What all optimizers share: groups of parameters, state, and one loop over both.

An optimizer runs eagerly and inside a compiled training step alike. There,

- hyperparameters are read anew at every call of the compiled step (`hyperparameters.py`), so that a
  changed learning rate takes effect without a new compilation; those that decide which operations
  run at all compile anew when they change;
- the state of a parameter is made of real tensors at its first step, also while tracing; the
  compiled step finds them by identity and writes them in place;
- the number of steps is a tensor, so that bias corrections are part of the compiled step. It is one
  tensor for all parameters of a group that have taken the same steps (`step_counter.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np

from ..autograd.api import grad
from ..core.eager_context import current_context
from ..core.grad_mode import enable_grad, no_grad, set_grad_enabled
from ..core.provenance import is_internal
from ..core.state import state
from ..core.tensor import Tensor
from ..nn.module import clear_gradients
from ..ops.complex_numbers import view_as_real
from ..ops.from_data import as_tensor, tensor
from ..runtime.dtypes import float32
from ..tracing.api import host_constant, is_tracing, suspend_tracing
from ..tracing.trace_context import Trace
from .hooks import (
    Hooked,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    with_hooks,
)
from .hyperparameters import Group, check_rate, check_ways
from .sparse_gradients import is_sparse
from .step_counter import (
    Counted,
    new_counter,
    own_counters,
    part_counters,
    remember_count,
    share_counters,
    with_own_counters,
)

__all__ = [
    "Group",
    "Optimizer",
    "Parameters",
    "ParamsT",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
    "run_update",
]

Parameters = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]
ParamsT = params_t = Parameters


class _RequiredParameter:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()
"""The default of a hyperparameter that each group of parameters must give."""


class Optimizer(Hooked):
    """Base class of optimizers. Subclasses define `_new_state` and `_update_group`, or `step`.

    `params` are tensors, (name, tensor) pairs, or dicts with "params" and hyperparameters of their
    own; `defaults` are the hyperparameters of all others. Changing `param_groups[i]["lr"]` takes
    effect at the next step, compiled or not. PyTorch's choices of how a step runs (`foreach`,
    `fused`, `capturable`) are kept and change nothing here: a step is fused in any case. With
    `differentiable`, steps are recorded for gradients, which takes parameters that are no leaves.
    """

    takes_complex = True
    """Whether complex parameters are taken: each of them is two real numbers to a step."""

    counts_steps = True
    """Whether the state of a parameter has the number of its steps, as "step"."""

    takes_sparse_gradients = False

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        super().__init__()
        if isinstance(params, (Tensor, Mapping, str)):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params).__name__}"
            )
        check_ways(defaults)
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._generation = 0
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Optimise more parameters: a dict with "params" and its own hyperparameters."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        group = dict(param_group)
        group["params"], names = _as_tensors(group["params"])
        if names:
            group["param_names"] = names
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        known = {id(each) for other in self.param_groups for each in other["params"]}
        for parameter in group["params"]:
            self._check_parameter(parameter)
            if id(parameter) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            known.add(id(parameter))
        if any(("param_names" in each) != bool(names) for each in self.param_groups):
            kind = "with names" if names else "without names"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {kind} to the optimizer"
            )
        check_rate(group)
        self._check_group(group)
        self.param_groups.append(group)
        self._generation += 1

    def _check_parameter(self, parameter: Any) -> None:
        if not isinstance(parameter, Tensor):
            raise TypeError(
                f"optimizer can only optimize Tensors, but got {type(parameter).__name__}"
            )
        differentiable = self.defaults.get("differentiable")
        if not differentiable and not (parameter.is_leaf or parameter.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")
        if parameter.is_complex() and not self.takes_complex:
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")

    def _check_group(self, group: Group) -> None:
        """ValueError for hyperparameters that make no sense."""

    # --- stepping ---

    @with_hooks
    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient, in place.

        `closure`, where given, computes the loss and its gradients first; its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        active = self._active()
        self._check_gradients(active)
        self._make_states(active)
        recording = bool(self.defaults.get("differentiable"))
        with self._at_the_line_of_the_step(), set_grad_enabled(recording):
            for group, parameters in zip(self.param_groups, active, strict=True):
                if parameters:
                    if recording:
                        self._renew_states(parameters)
                    self._update_group(group, parameters)
        return loss

    def _check_gradients(self, active: Sequence[Sequence[Tensor]]) -> None:
        if self.takes_sparse_gradients:
            return
        if any(is_sparse(each.grad) for parameters in active for each in parameters):
            name = "Adam" if type(self).__name__ == "AdamW" else type(self).__name__
            hint = ", please consider SparseAdam instead" if name == "Adam" else ""
            raise RuntimeError(f"{name} does not support sparse gradients{hint}")

    @no_grad()
    def _tensors_of_a_step(self) -> list[Tensor]:
        """Parameters and state that the next step writes; the state is made if need be."""
        active = self._active()
        if type(self)._new_state is not Optimizer._new_state:
            self._make_states(active)
        found: dict[int, Tensor] = {}
        for parameters in active:
            for each in parameters:
                own = (value for value in self.state[each].values() if isinstance(value, Tensor))
                found.update((id(value), value) for value in (each, *own))
        return [*found.values(), *self._other_tensors()]

    def _other_tensors(self) -> list[Tensor]:
        """What a step writes beside parameters and state."""
        return []

    def _renew_states(self, parameters: Sequence[Tensor]) -> None:
        """Other tensors for the state, since gradients read the ones that earlier steps wrote."""
        for each in parameters:
            own = self.state[each]
            for name, value in own.items():
                if name != "step" and isinstance(value, Tensor):
                    own[name] = value.clone()

    def _active(self) -> list[list[Tensor]]:
        """The parameters of each group that have gradients."""
        return [
            [each for each in group["params"] if each.grad is not None]
            for group in self.param_groups
        ]

    def minimize(self, loss: Tensor, name: str | None = None) -> Any:
        """Take a step against the gradient of `loss`, a number, without a change of any `.grad`.

        In a graph that is built up front this adds gradients and updates, and gives the operation
        that a session fetches to make them. The operation also makes what was written in place
        before it (such as running statistics), so that a run does what the lines so far do. It has
        the name `name` in the graph, or that of the optimizer's class.

        >>> import tgraph as tg
        >>> x = tg.tensor([1.0], requires_grad=True)
        >>> tg.optim.SGD([x], lr=0.25).minimize((x * x).sum())
        >>> x
        tensor([0.5000], requires_grad=True)
        """
        every = [each for group in self.param_groups for each in group["params"]]
        learned = [each for each in every if each.requires_grad]
        found = grad(loss, learned, retain_graph=is_tracing(), allow_unused=True)
        if learned and all(each is None for each in found):
            raise RuntimeError("minimize(): the loss depends on none of the optimizer's parameters")
        kept = [each.grad for each in every]
        with current_context().operation(name or type(self).__name__, closing=True) as operation:
            try:
                for each in every:
                    each.grad = None
                for each, gradient in zip(learned, found, strict=True):
                    each.grad = gradient
                self.step()
            finally:
                for each, gradient in zip(every, kept, strict=True):
                    each.grad = gradient
        return operation

    def _at_the_line_of_the_step(self) -> AbstractContextManager[None]:
        """Spares a trace from looking for it at each operation, unless the user wrote those."""
        context = state.context
        own = is_internal(self._update_group.__func__.__code__.co_filename)
        if own and isinstance(context, Trace):
            return context.at_one_line(context.site())
        return nullcontext()

    def _make_states(self, active: Sequence[Sequence[Tensor]]) -> None:
        """Make what is missing of the state of parameters, whose counters are shared."""
        fresh = self._part_counters(active) if self.counts_steps else []
        with suspend_tracing(), no_grad():
            for group, parameters in zip(self.param_groups, active, strict=True):
                for parameter in parameters:
                    own = self.state[parameter]
                    if self.counts_steps and "step" not in own:
                        own["step"] = new_counter(parameter)
                    self._new_state(group, parameter, own)
        for states in fresh:
            share_counters(states)
        if is_tracing():
            host_constant(self._structure, "the state of an optimizer")

    def _part_counters(self, active: Sequence[Sequence[Tensor]]) -> list[list[dict[str, Any]]]:
        """Take counters of parameters that step from those that wait. The states that get one."""
        fresh = []
        for group, parameters in zip(self.param_groups, active, strict=True):
            stepping = [self.state[each] for each in parameters]
            fresh.append([each for each in stepping if "step" not in each])
            if len(parameters) < len(group["params"]):
                waiting = (each for each in group["params"] if each.grad is None)
                others = [self.state[each] for each in waiting if each in self.state]
                self._generation += part_counters(stepping, others)
        return fresh

    def _structure(self) -> tuple[int, ...]:
        """What a compiled step takes for granted: changes when tensors of the state do."""
        sizes = (len(group["params"]) for group in self.param_groups)
        return (self._generation, len(self.state), *sizes)

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        """Put what is missing into the state of `parameter`."""
        raise NotImplementedError

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        """One step of the parameters of a group, all of which have gradients."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            clear_gradients(group["params"], set_to_none)

    # --- saving ---

    def state_dict(self) -> dict[str, Any]:
        """State and hyperparameters, with parameters as numbers in the order of the groups.

        The keys are PyTorch's. Tensors are the optimizer's own, not copies, but for counters of
        steps that several parameters share: each has one.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers[id(parameter)] = len(numbers)
        groups = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [numbers[id(each)] for each in group["params"]],
            }
            for group in self.param_groups
        ]
        filled = {key: value for key, value in self.state.items() if value}
        kept = with_own_counters(filled.values())
        state = {numbers[id(key)]: value for key, value in zip(filled, kept, strict=True)}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            other = hook(self, result)
            result = result if other is None else other
        return result

    @no_grad()
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, of this or another optimizer, ours or PyTorch's.

        State that it does not have is dropped. Tensors that are there already are written in place,
        so that compiled steps go on.
        """
        given: Any = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            other = hook(self, given)
            given = given if other is None else other
        saved = given["param_groups"]
        self._check_groups(saved)
        own_counters(self.state.values())
        parameters: dict[Any, Tensor] = {}
        for own, new in zip(self.param_groups, saved, strict=True):
            parameters.update(zip(new["params"], own["params"], strict=True))
            own.update((key, deepcopy(new[key])) for key in new if key != "params")
        before = dict(self.state)
        self.state.clear()
        for key, values in given["state"].items():
            parameter = parameters[key]
            own = self.state[parameter] = before.get(parameter, {})
            _load_state(parameter, own, values)
        for group in self.param_groups:
            share_counters(self.state[each] for each in group["params"] if each in self.state)
        self._generation += 1
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_groups(self, saved: Sequence[Mapping[str, Any]]) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for own, given in zip(self.param_groups, saved, strict=True):
            if len(own["params"]) != len(given["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )

    def __getstate__(self) -> dict[str, Any]:
        # Hooks are left out, as in PyTorch: they are of this optimizer.
        return {name: value for name, value in vars(self).items() if not name.endswith("_hooks")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Hooked.__init__(self)
        vars(self).update(state)

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            names = sorted(name for name in group if name != "params")
            lines += [f"    {name}: {group[name]}" for name in names]
        return f"{type(self).__name__} (\n" + "\n".join(lines) + "\n)"


def run_update(
    group: Group,
    update: Callable[..., None],
    parameter: Tensor,
    *args: Any,
    counted: Counted | None = None,
) -> None:
    """One step of one parameter by a `fused_update`, which also writes the counter in `counted`.

    It sees complex numbers as pairs of real ones. Where the step is to be differentiated, it runs
    as it is written.
    """
    if group.get("differentiable"):
        update = update.__wrapped__  # type: ignore[attr-defined]
    if parameter.is_complex():
        args = tuple(map(_as_real, args))
        parameter = view_as_real(parameter)
    if counted is None:
        update(parameter, *args)
        return
    update(parameter, *args, *counted)
    if counted[0] is not None:
        remember_count(*counted)


def _as_real(value: Any) -> Any:
    return view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def _as_tensors(given: Any) -> tuple[list[Tensor], list[str]]:
    """The parameters of a group and their names: of a tensor, tensors, or (name, tensor) pairs."""
    if isinstance(given, Tensor):
        return [given], []
    if isinstance(given, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    given = list(given)
    names = [each[0] for each in given if isinstance(each, tuple)]
    if names and len(names) < len(given):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    return [each[1] if isinstance(each, tuple) else each for each in given], names


def _load_state(parameter: Tensor, own: dict[str, Any], given: Mapping[str, Any]) -> None:
    for name in own.keys() - given.keys():
        del own[name]
    for name, value in given.items():
        if name == "step" and isinstance(value, (int, float)):
            value = tensor(float(value), dtype=float32)
        loaded, found = _loaded(parameter, value, name), own.get(name)
        if isinstance(loaded, Tensor) and isinstance(found, Tensor) and _fits(found, loaded):
            found.copy_(loaded)
        else:
            own[name] = loaded


def _fits(own: Tensor, loaded: Tensor) -> bool:
    return own.shape == loaded.shape and own.dtype is loaded.dtype and own.device == loaded.device


def _loaded(parameter: Tensor, value: Any, name: str = "") -> Any:
    """A copy of a value of a state, of the type and on the device of its parameter."""
    if isinstance(value, np.ndarray) or hasattr(value, "__dlpack__"):
        value = as_tensor(value)
    if isinstance(value, Tensor):
        convert = name != "step" and parameter.is_floating_point() and value.is_floating_point()
        dtype = parameter.dtype if convert else value.dtype
        return value.detach().to(parameter.device, dtype).clone()
    if isinstance(value, dict):
        return {key: _loaded(parameter, each, key) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_loaded(parameter, each) for each in value)
    return deepcopy(value)
