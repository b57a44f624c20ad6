"""What all optimizers share: groups of parameters, state, and one loop over both.

An optimizer runs eagerly and inside a compiled training step alike. There,

- hyperparameters are read anew at every call of the compiled step (`number`), so that a changed
  learning rate takes effect without a new compilation; those that decide which operations run at
  all (`choice`) compile anew when they change;
- the state of a parameter is made of real tensors at its first step, also while tracing; the
  compiled step finds them by identity and writes them in place;
- the number of steps is a tensor, so that bias corrections are part of the compiled step.
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
from ..core.grad_mode import enable_grad, no_grad
from ..core.provenance import is_internal
from ..core.state import state
from ..core.tensor import Tensor
from ..nn.module import clear_gradients
from ..ops.creation import as_tensor
from ..tracing.api import host_constant, host_scalar, is_tracing, suspend_tracing
from ..tracing.trace_context import Trace

Group = dict[str, Any]
Parameters = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]


class Optimizer:
    """Base class of optimizers. Subclasses define `_new_state` and `_update_group`.

    `params` are tensors, or dicts with "params" and hyperparameters of their own; `defaults` are
    the hyperparameters of all others. Changing `param_groups[i]["lr"]` takes effect at the next
    step, compiled or not. `ways` are PyTorch's choices of how a step runs (`foreach`, `fused`,
    `capturable`), which change nothing here: a compiled step is fused in any case.
    """

    takes_complex = False
    """Whether a step is right for complex parameters, too."""

    def __init__(
        self, params: Parameters, defaults: dict[str, Any], ways: Mapping[str, Any] | None = None
    ) -> None:
        _check_ways(type(self).__name__, ways or {})
        if isinstance(params, (Tensor, Mapping, str)):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params).__name__}"
            )
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
        group["params"] = _as_tensors(group["params"])
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        known = {id(each) for other in self.param_groups for each in other["params"]}
        for parameter in group["params"]:
            _check_parameter(parameter)
            if parameter.is_complex() and not self.takes_complex:
                raise TypeError(
                    f"{type(self).__name__} does not take complex parameters: make the complex "
                    "tensor of a real parameter, by tgraph.view_as_complex"
                )
            if id(parameter) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            known.add(id(parameter))
        self._check_group(group)
        self.param_groups.append(group)
        self._generation += 1

    def _check_group(self, group: Group) -> None:
        """ValueError for hyperparameters that make no sense."""

    # --- stepping ---

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient, in place.

        `closure`, where given, computes the loss and its gradients first; its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        active = [
            [each for each in group["params"] if each.grad is not None]
            for group in self.param_groups
        ]
        self._make_states(active)
        with self._at_the_line_of_the_step():
            for group, parameters in zip(self.param_groups, active, strict=True):
                if parameters:
                    self._update_group(group, parameters)
        return loss

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
        with suspend_tracing(), no_grad():
            for group, parameters in zip(self.param_groups, active, strict=True):
                for parameter in parameters:
                    self._new_state(group, parameter, self.state[parameter])
        if is_tracing():
            host_constant(self._structure, "the state of an optimizer")

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

        The tensors are the optimizer's own, not copies.
        """
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers[id(parameter)] = len(numbers)
        groups = [
            {**group, "params": [numbers[id(each)] for each in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(key)]: value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, of the same or another optimizer of this class.

        Tensors that are there already are written in place, so that compiled steps go on.
        """
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for own, given in zip(self.param_groups, saved, strict=True):
            if len(own["params"]) != len(given["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        parameters: dict[Any, Tensor] = {}
        for own, given in zip(self.param_groups, saved, strict=True):
            parameters.update(zip(given["params"], own["params"], strict=True))
            own.update((key, deepcopy(given[key])) for key in given if key != "params")
        for key, values in state_dict["state"].items():
            _load_state(parameters[key], self.state[parameters[key]], values)
        self._generation += 1

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            names = sorted(name for name in group if name != "params")
            lines += [f"    {name}: {group[name]}" for name in names]
        return f"{type(self).__name__} (\n" + "\n".join(lines) + "\n)"


_WAYS = ("foreach", "fused", "capturable", "differentiable")


def _check_ways(optimizer: str, ways: Mapping[str, Any]) -> None:
    """TypeError for what is no way to run a step, NotImplementedError for one that is not ours."""
    for name in ways:
        if name not in _WAYS:
            raise TypeError(f"{optimizer}() got an unexpected keyword argument '{name}'")
    if ways.get("differentiable"):
        raise NotImplementedError(
            f"{optimizer}(differentiable=True): steps are not recorded for gradients; compute new "
            "parameters from old ones by tensor operations instead"
        )
    if ways.get("foreach") and ways.get("fused"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _as_tensors(given: Any) -> list[Tensor]:
    """The parameters of a group: one tensor, tensors, or (name, tensor) pairs."""
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    return [each[1] if isinstance(each, tuple) else each for each in given]


def _check_parameter(parameter: Any) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but got {type(parameter).__name__}")
    if not parameter.is_leaf:
        raise ValueError("can't optimize a non-leaf Tensor")


@no_grad()
def _load_state(parameter: Tensor, own: dict[str, Any], given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        found = own.get(name)
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack__"):
            value = as_tensor(value)
        if not isinstance(value, Tensor):
            own[name] = deepcopy(value)
        elif isinstance(found, Tensor) and found.shape == value.shape:
            found.copy_(value)
        else:
            convert = value.is_floating_point() and name != "step"
            dtype = parameter.dtype if convert else value.dtype
            own[name] = value.detach().to(parameter.device, dtype).clone()


# --- reading hyperparameters --------------------------------------------------------------------


def number(group: Group, name: str, index: int | None = None) -> Any:
    """A hyperparameter, or one of a tuple of them; in a compiled step, as it is at each call."""
    value = group[name]
    if isinstance(value, Tensor):
        return value
    if index is None:
        return host_scalar(lambda: group[name])
    return host_scalar(lambda: group[name][index])


def choice(group: Group, name: str) -> bool:
    """Whether a hyperparameter is set or not zero: decides which operations run."""
    value = group[name]
    if isinstance(value, Tensor):
        return True
    return bool(host_constant(lambda: bool(group[name]), f"whether an optimizer has {name}"))


def weight_decay(group: Group) -> Any:
    """The weight decay, None for none. A compiled step has room for it even while it is 0."""
    if not is_tracing() and not choice(group, "weight_decay"):
        return None
    return number(group, "weight_decay")


def check_not_negative(group: Group, *names: str) -> None:
    """ValueError unless the hyperparameters are numbers from 0 up."""
    for name in names:
        value = group[name]
        if not isinstance(value, Tensor) and not value >= 0:
            label = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"Invalid {label}: {value}")
