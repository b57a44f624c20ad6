"""What programs written for TorchScript ask for. Functions stay Python; `tgraph.compile` compiles.

>>> import tgraph as tg
>>> @tg.jit.script
... def double(x):
...     return x * 2
>>> double(tg.ones(2)), tg.jit.is_scripting()
(tensor([2., 2.]), False)
"""

from __future__ import annotations

import builtins as _builtins
from typing import Any, Final, NoReturn, TypeVar

from .core.eager_context import current_context
from .nn.module import Module

T = TypeVar("T")

__all__ = ["Attribute", "Final", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
           "TopLevelTracedModule", "TracedModule", "TracerWarning", "annotate", "export", "ignore",
           "interface", "is_scripting", "is_tracing", "isinstance", "load", "save", "script",
           "script_method", "trace", "trace_module", "unused"]  # fmt: skip


class ScriptModule(Module):
    """A module like others, for classes that are written for TorchScript."""


class RecursiveScriptModule(ScriptModule):
    """What `script` would give; here it gives the module itself, so that none is one."""


class TracedModule(ScriptModule):
    """What `trace` would give; here it gives the module itself, so that none is one."""


class TopLevelTracedModule(TracedModule):
    """As `TracedModule`."""


class ScriptFunction:
    """What `script` would give of a function; here it gives the function itself."""


def _itself(value: T, *args: Any, **kwargs: Any) -> T:
    """What is given: it runs as Python."""
    return value


script = export = script_method = interface = _itself
trace = trace_module = _overload = _overload_method = _itself


def ignore(function: Any = None, drop: bool = False, **kwargs: Any) -> Any:
    """The function itself."""
    return function if callable(function) else _itself


unused = ignore


class TracerWarning(Warning):
    """What PyTorch's tracer warns with; here a wrong trace is an error."""


def Attribute(value: T, type: Any) -> T:
    """The value."""
    return value


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def is_scripting() -> bool:
    """False: nothing is TorchScript."""
    return False


def is_tracing() -> bool:
    """Whether a function is being traced by `tgraph.compile` or `tgraph.trace`."""
    return bool(current_context().tracing)


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's."""
    return _builtins.isinstance(obj, target_type)


def load(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: TorchScript's files hold programs of another machine."""
    raise NotImplementedError(
        "jit.load: TorchScript is not read here; save the state_dict with torch.save, and load it "
        "into the module with load_state_dict"
    )


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no TorchScript here."""
    raise NotImplementedError(
        "jit.save: TorchScript is not written here; save the state_dict of the module"
    )
