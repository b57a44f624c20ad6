"""Which code is watched while a function is traced, and which is taken for constant.

Constant are the standard library, tgraph itself but for its modules (`tgraph.nn`), and packages
that tgraph is built on or that users bring along for other work. All else is the user's.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import weakref
from types import CodeType, ModuleType

from ...core.provenance import RECORDED_FILES, is_internal

_PACKAGES = frozenset({
    "numpy", "scipy", "ml_dtypes", "llvmlite", "networkx", "cupy", "cupyx", "cupy_backends",
    "torch", "jax", "jaxlib", "pytest", "_pytest", "pluggy", "hypothesis", "IPython", "ipykernel",
    "matplotlib", "graphviz", "tqdm", "pandas", "sklearn", "PIL", "h5py", "safetensors", "rich",
})  # fmt: skip
# Packages may also lie with another Python's, such as the one that a virtual environment is of.
_SITE = re.compile(r".*[/\\](?:site|dist)-packages[/\\]", re.DOTALL)
# What `sysconfig` calls stdlib and platstdlib; asking it takes 10 ms.
_LIBRARY = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_STANDARD = (
    os.path.dirname(os.__file__) + os.sep,
    os.path.join(sys.exec_prefix, sys.platlibdir, _LIBRARY) + os.sep,
)


@functools.cache
def is_constant_file(file: str) -> bool:
    """Whether code of a file is taken for constant."""
    if file.startswith("<"):  # no file: typed at a prompt, made by exec, or the interpreter's own
        return file.startswith("<frozen ")
    if is_internal(file):
        return not file.startswith(RECORDED_FILES)
    site = _SITE.match(file)
    if site is not None:
        package = file[site.end() :].split(os.sep)[0].partition(".")[0]
        return package in _PACKAGES
    return file.startswith(_STANDARD)


def is_constant_code(code: CodeType) -> bool:
    return is_constant_file(code.co_filename)


def is_nn_code(code: CodeType) -> bool:
    """Code of tgraph's modules, scalers and hooks of optimizers: it records what it reads of
    objects, its globals are constant."""
    return code.co_filename.startswith(RECORDED_FILES)


def is_constant_module(module: ModuleType) -> bool:
    return is_of_tgraph(vars(module).get("__name__")) or is_constant_file_of(module)


def is_constant_file_of(module: ModuleType) -> bool:
    own = vars(module)  # asks no __getattr__ of the user's
    return _is_constant_name(str(own.get("__name__")), own.get("__file__"))


@functools.cache
def _is_constant_name(name: str, file: str | None) -> bool:
    if file is not None:
        return is_constant_file(file)
    return name in sys.builtin_module_names or name in sys.stdlib_module_names


def is_constant_class(class_: type) -> bool:
    found = _CLASSES.get(class_)
    if found is None:
        found = _CLASSES[class_] = _is_constant_class(class_)
    return found


# Weak, for programs make classes as they go.
_CLASSES: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def _is_constant_class(class_: type) -> bool:
    name = class_.__module__
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or name == "__main__":
        return False
    return is_constant_file_of(module)


def is_machinery(class_: type) -> bool:
    """Whether objects of a class are threads, processes, logs and the like, not data."""
    return str(class_.__module__).partition(".")[0] in _MACHINERY


_MACHINERY = frozenset({
    "threading", "_thread", "multiprocessing", "concurrent", "asyncio", "subprocess", "logging",
    "socket", "selectors", "signal", "weakref", "warnings",
})  # fmt: skip


def is_of_tgraph(name: object) -> bool:
    """Whether a module of that name is of tgraph: it reads as its caller would."""
    return isinstance(name, str) and (name == "tgraph" or name.startswith("tgraph."))
