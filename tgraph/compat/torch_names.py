"""`import torch`, and all modules below it, from tgraph; so is `torchvision`."""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from ..compiled.compile import compile
from ..compiled.compiled_function import CompiledFunction
from ..compiled.optimized_module import OptimizedModule
from ..core.absent import WAYS_OUT
from ..core.trace_state import TraceError
from ..interop.array_protocols import speak_as_pytorch

VERSION = "2.13.0+tgraph"
"""What `torch.__version__` says: the names are those of that version."""

OTHER_PLACES = {
    "torch.__config__": "tgraph.compat.config_names",
    "torch._C": "tgraph.compat.c_names",
    "torch._dynamo": "tgraph.compat.dynamo_names",
    "torch._dynamo._trace_wrapped_higher_order_op": "tgraph.compat.dynamo_names",
    "torch._tensor_str": "tgraph.compat.tensor_str_names",
    "torch._subclasses": "tgraph.compat.tracer_names",
    "torch._subclasses.fake_tensor": "tgraph.compat.tracer_names",
    "torch.autograd.profiler": "tgraph.profiler",
    "torch.compiler": "tgraph.compat.compiler_names",
    "torch.distributed.nn": "tgraph.compat.distributed_nn_names",
    "torch.fx.experimental": "tgraph.compat.tracer_names",
    "torch.fx.experimental.proxy_tensor": "tgraph.compat.tracer_names",
    "torch.jit.annotations": "tgraph.compat.annotation_names",
    "torch.library": "tgraph.compat.library_names",
    "torch.nn.attention.flex_attention": "tgraph.nn.flex_attention",
    "torch.ops": "tgraph.compat.ops_names",
    "torch.utils._pytree": "tgraph.compat.pytree_names",
    "torch.utils.data.dataloader": "tgraph.utils.data",
    "torchvision.io": "tgraph.compat.vision_io_names",
    "torchvision.ops.misc": "tgraph.vision.ops",
}
"""Modules that tgraph has elsewhere: `tgraph.compiler` is a floor of its own."""

_PRIVATE = "tgraph.compat.private_names"
_OWN = "tgraph"
_THEIRS = "torch"
_CONSTANT = (type, types.FunctionType)
_PACKAGES = {_THEIRS: _OWN, "torchvision": f"{_OWN}.vision"}
"""Packages that are given, and what of ours they are. torchvision's own compiled parts need
PyTorch's."""
_VERSIONS = {_THEIRS: VERSION, "torchvision": "0.28.0+tgraph"}


def _own_name(name: str) -> str:
    """Our name of a module or of what is in it."""
    package, dot, rest = name.partition(".")
    return f"{_PACKAGES[package]}{dot}{rest}"


def _is_own(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__.startswith(f"{_OWN}.")


class _Module(types.ModuleType):
    """A module of tgraph under PyTorch's name. What it has not is noted."""

    _own: types.ModuleType
    _names: TorchNames

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__config__"):
            raise AttributeError(name)
        if name == "__version__" and self.__name__ in _VERSIONS:
            return _VERSIONS[self.__name__]
        if self.__name__ == name == _THEIRS:
            return self  # PyTorch imports itself, and some write `torch.torch`
        full = f"{self.__name__}.{name}"
        if full in OTHER_PLACES:
            return importlib.import_module(full)
        try:
            found = getattr(self._own, name)
        except AttributeError:
            if self._names._has(full):
                return importlib.import_module(full)
            if self.__name__ == _THEIRS:
                private = importlib.import_module(_PRIVATE)
                if hasattr(private, name):
                    return getattr(private, name)
            self._names._note(full)
            raise AttributeError(
                f"module '{self.__name__}' has no attribute '{name}': it is tgraph's, which has "
                f"no {_own_name(full)}{_way_out(full)}"
            ) from None
        if _is_own(found):
            return importlib.import_module(full)
        return found

    def __dir__(self) -> list[str]:
        return dir(self._own)


class _Distribution(importlib.metadata.Distribution):
    """The installed package `torch`, of which there is a name and a version."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {_THEIRS}\nVersion: {VERSION}\n"

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"{path}: torch is tgraph's here and has no files")


def _way_out(name: str) -> str:
    """What to do without a module or name of PyTorch, where it is known."""
    package, name, *_ = name.split(".")
    found = WAYS_OUT.get(name) if package == _THEIRS else None
    return "" if found is None else f"; {found}"


class TorchNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """What `as_torch` returns: `missing` tells what was asked for and not found, `undo` ends it."""

    def __init__(self) -> None:
        self.missing: dict[tuple[str, str, int], int] = {}
        self.eager: dict[str, str] = {}  # names of functions that could not be compiled, and why

    # --- finding ---

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The place of a module of PyTorch's, where tgraph has one of that name."""
        package = fullname.partition(".")[0]
        if package not in _PACKAGES:
            return None
        if self._own_module(fullname) is None:
            self._note(fullname)
            raise ModuleNotFoundError(
                f"No module named '{fullname}': `import {package}` gives {_PACKAGES[package]} "
                f"here, and there is no {_own_name(fullname)}{_way_out(fullname)}", name=fullname,
            )  # fmt: skip
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> Iterable[importlib.metadata.Distribution]:
        """What is installed as `torch`: libraries look there before they import it."""
        return [_Distribution()] if context.name == _THEIRS else []

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The module that stands for tgraph's."""
        own = self._own_module(spec.name)
        assert own is not None
        return self._made(spec.name, own)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: tgraph's module has run."""

    def _own_module(self, name: str) -> types.ModuleType | None:
        """tgraph's module for one of PyTorch's; None where there is none."""
        own = OTHER_PLACES.get(name) or _own_name(name)
        outer, _, inner = own.rpartition(".")
        try:
            if outer:
                found = getattr(importlib.import_module(outer), inner, None)
                if isinstance(found, types.ModuleType):
                    return found
            return importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is not None and own.startswith(error.name):
                return None
            raise

    def _has(self, name: str) -> bool:
        return self._own_module(name) is not None

    def _made(self, name: str, own: types.ModuleType) -> types.ModuleType:
        if type(own) is not types.ModuleType:
            return own  # switches, which are set: a module that stands for it would take them
        made = _Module(name, own.__doc__)
        # Some libraries read `vars()` of a module for all of its classes.
        made.__dict__.update(
            {
                key: value
                for key, value in vars(own).items()
                if isinstance(value, _CONSTANT) and not key.startswith("__")
            }
        )
        made.__dict__.update(_own=own, _names=self, __path__=[])
        if made.__dict__.get("compile") is compile:
            made.__dict__["compile"] = self._compile
        if hasattr(own, "__all__"):
            made.__dict__["__all__"] = list(own.__all__)
        return made

    # --- compiling ---

    def _compile(self, model: Any = None, *, fullgraph: bool = False, **options: Any) -> Any:
        """`tgraph.compile`; what it refuses runs eagerly, unless with `fullgraph`.

        PyTorch compiles the parts of such a function.
        """
        if model is None:
            return functools.partial(self._compile, fullgraph=fullgraph, **options)
        made = compile(model, fullgraph=fullgraph, **options)
        inner = made._compiled if isinstance(made, OptimizedModule) else made
        if not fullgraph and isinstance(inner, CompiledFunction):
            inner.when_refused = self._runs_eagerly
        return made

    def _runs_eagerly(self, function: CompiledFunction, error: TraceError) -> None:
        self.eager[function.name] = str(error)
        warnings.warn(f"'{function.name}' is not compiled and runs eagerly: {error}", stacklevel=5)

    # --- what is missing ---

    def _note(self, name: str) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file != __file__ and "importlib" not in file:
                key = name, file, frame.f_lineno
                self.missing[key] = self.missing.get(key, 0) + 1
                return
            frame = frame.f_back

    def report(self) -> str:
        """What was asked for and not found, by name and line, and what was not compiled.

        Empty where there was nothing.
        """
        lines = []
        if self.missing:
            count = len({name for name, *_ in self.missing})
            lines.append(f"tgraph has not {count} of the names asked for:")
        for (name, file, line), count in sorted(self.missing.items()):
            times = "" if count == 1 else f" ({count} times)"
            lines.append(f"  {name:40} {file}:{line}{times}")
        if self.eager:
            lines.append(f"{len(self.eager)} of the compiled functions ran eagerly:")
        lines += [f"  {name}: {reason}" for name, reason in sorted(self.eager.items())]
        return "\n".join(lines)

    def undo(self) -> None:
        """Take PyTorch's names away again; modules that imported them keep what they have."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            speak_as_pytorch(False)
        for name, module in list(sys.modules.items()):
            is_ours = isinstance(module, _Module) and module._names is self
            if is_ours or (name.partition(".")[0] in _PACKAGES and _is_own(module)):
                del sys.modules[name]

    def __enter__(self) -> TorchNames:
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()


def as_torch(report: bool = False) -> TorchNames:
    """From here on `import torch` gives tgraph, and so do all modules below it; `torchvision` is
    `tgraph.vision`.

    For programs and libraries that one does not want to edit. Call it before they are imported; a
    `with` statement ends it behind its block. Meanwhile NumPy's functions of tensors, but for
    elementwise ones, give what they give for PyTorch's, which are arrays most often. The result's
    `missing` counts, by name and place, what was asked for and not found; `report` prints that to
    stderr when the process ends.

    RuntimeError where PyTorch has been imported.

        import tgraph as tg
        tg.compat.as_torch()
        import torch.nn.functional as F  # tgraph.nn.functional
    """
    existing = sys.modules.get(_THEIRS)
    if isinstance(existing, _Module):
        return existing._names
    if existing is not None:
        raise RuntimeError(
            "as_torch(): PyTorch has been imported in this process; call it before that"
        )
    names = TorchNames()
    sys.meta_path.insert(0, names)
    speak_as_pytorch(True)
    if report:
        atexit.register(_print_report, names)
    return names


def _print_report(names: TorchNames) -> None:
    text = names.report()
    if text:
        print(text, file=sys.stderr)
