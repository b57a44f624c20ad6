"""State dictionaries of modules: saving, loading, and the hooks around both."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..autograd.api import RemovableHandle
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.from_data import as_tensor
from ..runtime.records import NamedTuple
from .making import at_once
from .module_hooks import add_hook, table_property
from .parameter import Parameter, is_lazy

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found on one side only."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


_IncompatibleKeys = IncompatibleKeys  # what PyTorch calls it


class _WithModule:
    """A hook before loading that is handed its module, which is also copied with it."""

    def __init__(self, hook: Callable[..., Any], module: Any) -> None:
        self.hook = hook
        self.module = module

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module, *args)


class Stateful:
    """The part of a Module that gives and takes state dictionaries."""

    _version: int = 1

    _state_dict_hooks = table_property("_state_dict_hooks")
    _state_dict_pre_hooks = table_property("_state_dict_pre_hooks")
    _load_state_dict_pre_hooks = table_property("_load_state_dict_pre_hooks")
    _load_state_dict_post_hooks = table_property("_load_state_dict_post_hooks")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads this module."""
        return add_hook(self._state_dict_pre_hooks, hook, [])

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`.

        It may change the dictionary in place.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook, [])

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`, but what it returns replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook, [])

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook` before this module's part of a state dictionary is loaded.

        `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)` may change its arguments.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = _WithModule(hook, self) if with_module else hook
        return add_hook(self._load_state_dict_pre_hooks, wrapped, [])

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` when this module and those below are loaded.

        It may change the lists of keys in place.
        """
        return add_hook(self._load_state_dict_post_hooks, hook, [])

    def _hooks_of_state(self, name: str) -> list[Any]:
        """The hooks of a table, which is not made for that."""
        return list(self.__dict__.get(name, {}).values())

    # --- saving ---

    def get_extra_state(self) -> Any:
        """What else belongs to the state dictionary, by modules that define it."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` gave, by modules that define it."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put the state of this module, without those below, into `destination`."""
        own = self.__dict__
        for name in _names_of_state(own):
            tensor = own[name]
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    @at_once
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by path. They share memory with the module's.

        Shared ones are there under every name. `destination` is a dictionary to fill.

        >>> import tgraph as tg
        >>> list(tg.nn.Sequential(tg.nn.Linear(2, 1)).state_dict())
        ['0.weight', '0.bias']
        """
        destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._hooks_of_state("_state_dict_pre_hooks"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in _children(self):
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
        for hook in self._hooks_of_state("_state_dict_hooks"):
            given = hook(self, destination, prefix, metadata)
            if given is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = given
        found: dict[str, Any] = destination
        return found

    # --- loading ---

    @at_once
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the values of `state_dict` into parameters and buffers, in place.

        Values are tensors, NumPy arrays, or tensors of other libraries that know DLPack. With
        `assign` they take the place of the parameters and buffers, with their dtype and device.

        RuntimeError lists every missing and unexpected key (unless not `strict`) and every shape
        that does not fit; what fits has been loaded then.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        found = IncompatibleKeys([], [])
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None) or {}
        given: Any = OrderedDict(state_dict)
        given._metadata = metadata
        _load(self, given, "", metadata, assign, found, errors)
        if strict:
            errors = _key_errors(*found) + errors
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return found

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Copy from `state_dict` into this module, but not those below.

        `local_metadata` is what was saved of this module, such as the version of its class.
        """
        for hook in self._hooks_of_state("_load_state_dict_pre_hooks"):
            hook(
                state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                error_msgs,
            )  # fmt: skip
        own = self.__dict__
        state = {name: own[name] for name in _names_of_state(own) if own[name] is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in state.items():
            if prefix + name in state_dict:
                value = _lent(state_dict[prefix + name])
                error = self._load_one(name, tensor, value, prefix + name, assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(prefix + name)
        has_extra = prefix + EXTRA_STATE in state_dict
        takes_extra = type(self).set_extra_state is not Stateful.set_extra_state
        if takes_extra and has_extra:
            self.set_extra_state(state_dict[prefix + EXTRA_STATE])
        elif strict and takes_extra:
            missing_keys.append(prefix + EXTRA_STATE)
        elif strict and has_extra:
            unexpected_keys.append(prefix + EXTRA_STATE)
        if strict:
            unexpected_keys += _unexpected(state_dict, prefix, state, own["_module_names"])

    def _load_one(self, name: str, own: Tensor, given: Any, key: str, assign: bool) -> str:
        """Load a value for `own`; what is wrong with it, empty where nothing is."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected tgraph.Tensor or '
                f"Tensor-like object from checkpoint but received {type(given)}"
            )
        if is_lazy(own):
            if is_lazy(given):
                return ""
            own.materialize(given.shape)  # type: ignore[attr-defined]
        if not own.shape and given.shape == (1,):  # as PyTorch saved scalars once
            given = given[0]
        if given.shape != own.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {own.shape}."
            )
        try:
            with no_grad():
                if assign:
                    setattr(self, name, _as_own(own, given))
                else:
                    if own.is_meta and not given.is_meta:
                        _warn_of_no_copy(key)
                    own.copy_(given)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{own.shape} and whose dimensions in the checkpoint are {given.shape}, an "
                f"exception occurred : {error.args}."
            )
        return ""


def _warn_of_no_copy(key: str) -> None:
    warnings.warn(
        f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in "
        "the current model, which is a no-op. (Did you mean to pass `assign=True` to assign items "
        "in the state dictionary to their corresponding key in the module instead of copying them "
        "in place?)",
        stacklevel=2,
    )


def _names_of_state(own: dict[str, Any]) -> list[str]:
    """The parameters and persistent buffers among the attributes of a module."""
    kept = [name for name, persistent in own["_buffer_names"].items() if persistent]
    return [*own["_parameter_names"], *kept]


def _children(module: Any) -> list[tuple[str, Any]]:
    return [(name, each) for name, each in module._modules.items() if each is not None]


def _load(
    module: Any,
    state_dict: Any,
    prefix: str,
    metadata: Any,
    assign: bool,
    found: IncompatibleKeys,
    errors: list[str],
) -> None:
    local = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(
        state_dict, prefix, local, True, found.missing_keys, found.unexpected_keys, errors
    )
    for name, child in _children(module):
        inner = f"{prefix}{name}."
        below = {key: each for key, each in state_dict.items() if key.startswith(inner)}
        _load(child, below, inner, metadata, assign, found, errors)
    for hook in module._hooks_of_state("_load_state_dict_post_hooks"):
        if hook(module, found) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                "return new values, if incompatible_keys need to be modified, it should be done "
                "inplace."
            )


def _unexpected(state_dict: Any, prefix: str, own: Any, modules: Any) -> list[str]:
    """Keys under `prefix` that are neither this module's nor one's below it."""
    found = []
    for key in state_dict:
        if key.startswith(prefix) and key != prefix + EXTRA_STATE:
            name, *inner = key[len(prefix) :].split(".", 1)
            if name not in (modules if inner else own):
                found.append(key)
    return found


def _as_own(own: Tensor, given: Tensor) -> Tensor:
    """A value as it can take the place of `own`."""
    if not isinstance(own, Parameter):
        return given
    if not isinstance(given, Parameter):
        return Parameter(given.detach(), requires_grad=own.requires_grad)
    return given.requires_grad_(own.requires_grad)


def _key_errors(missing: list[str], unexpected: list[str]) -> list[str]:
    def quoted(keys: list[str]) -> str:
        return ", ".join(f'"{key}"' for key in keys)

    errors = []
    if missing:
        errors.append(f"Missing key(s) in state_dict: {quoted(missing)}. ")
    if unexpected:
        errors.append(f"Unexpected key(s) in state_dict: {quoted(unexpected)}. ")
    return errors


def _lent(given: Any) -> Any:
    """A tensor over the memory of what another library gave; anything else as it is."""
    foreign = isinstance(given, np.ndarray) or hasattr(given, "__dlpack__")
    return as_tensor(given) if foreign and not isinstance(given, Tensor) else given
