"""Writes the stubs for type checkers and editors: `python -m tools.make_stubs`.

The functions of `tgraph` and the methods of Tensor are put in place when the package is imported,
from the declarations of the families (`@public`), so that who reads the text alone does not find
them. `tgraph/__init__.pyi` and `tgraph/core/tensor.pyi` have them with their full signatures, as
the families write them. A test holds the two files to the code.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tools.parsed import ROOT, statements, tree_of

PACKAGE = ROOT / "tgraph" / "__init__.py"
TENSOR = ROOT / "tgraph" / "core" / "tensor.py"
NAMED = ("bool", "bytes", "complex", "float", "int", "list", "object", "str", "tuple", "type")
"""Python's names in annotations, which names of ours would hide."""
COMMAND = "python -m tools.make_stubs"


class Names(ast.NodeTransformer):
    """Names of annotations as the stub imports them; what has to be imported is collected."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.imports: set[str] = set()
        self.origins = {**_origins(Path(module.__file__), module.__name__)}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if name in NAMED:
            return _name(f"_builtins.{name}")
        if hasattr(builtins, name) and name not in self.origins:
            return node
        origin, own = self.origins.get(name, (self.module.__name__, name))
        self.imports.add(
            f"from {origin} import {own} as _{name}" if own else f"import {origin} as _{name}"
        )
        return _name(f"_{name}")


def _result(names: Names, definition: ast.FunctionDef) -> str:
    """The annotation of what a function returns."""
    if definition.returns is None:
        return "_Any"
    return ast.unparse(names.visit(copy.deepcopy(definition.returns)))


@cache
def _origins(file: Path, module: str) -> dict[str, tuple[str, str]]:
    """Imported name -> the module, and the name there."""
    package = module.split(".")[:-1]
    found = {}
    for node in statements(tree_of(file).body):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                found[alias.asname or alias.name] = (origin, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = (alias.name, "")
    return found


def _name(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class Stub:
    """The lines of a stub, and what they import."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: set[str] = set()

    def function(
        self, function: Callable[..., Any], name: str, *, method: bool = False, out: bool = False,
        returns: str = "", indent: str = "",
    ) -> None:  # fmt: skip
        """A function as it is defined, under a name; its first argument is `self` of a method."""
        function = inspect.unwrap(function)
        module = importlib.import_module(function.__module__)
        definition = _definition(module, function.__name__)
        names = Names(module)
        arguments = copy.deepcopy(definition.args)
        if method:
            arguments = _with_self(arguments)
        if out:
            arguments.kwonlyargs.append(ast.arg("out", _name("Tensor | None")))
            arguments.kw_defaults.append(ast.Constant(None))
            names.origins["Tensor"] = ("tgraph.core.tensor", "Tensor")
        for each in ast.walk(arguments):
            if isinstance(each, ast.arg) and each.annotation is not None:
                each.annotation = names.visit(each.annotation)
        _plain_defaults(arguments)
        result = returns or _result(names, definition)
        self.imports |= names.imports
        text = ast.unparse(arguments)
        self.lines.append(f"{indent}def {name}({text}) -> {result}: ...")


def _definition(module: Any, name: str) -> ast.FunctionDef:
    found = _functions(Path(module.__file__)).get(name)
    if found is None:
        raise LookupError(f"{module.__name__} has no function {name}")
    return found


@cache
def _functions(file: Path) -> dict[str, ast.FunctionDef]:
    return {each.name: each for each in tree_of(file).body if isinstance(each, ast.FunctionDef)}


def _with_self(arguments: ast.arguments) -> ast.arguments:
    first = (arguments.posonlyargs or arguments.args)[0]
    first.arg, first.annotation = "self", None
    if arguments.defaults and len(arguments.defaults) == len(arguments.args):
        arguments.defaults.pop(0)
    return arguments


def _plain_defaults(arguments: ast.arguments) -> None:
    """Defaults that are no plain values are three dots."""

    def plain(node: ast.expr | None) -> ast.expr | None:
        return node if node is None or _is_plain(node) else ast.Constant(...)

    arguments.defaults = [plain(each) or ast.Constant(...) for each in arguments.defaults]
    arguments.kw_defaults = [plain(each) for each in arguments.kw_defaults]


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant)


def package_stub() -> str:
    """`tgraph/__init__.pyi`."""
    from tgraph.core.public import OPERATIONS
    from tgraph.ops import inplace_functions, methods

    stub = Stub()
    tree = tree_of(PACKAGE)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            _reexport(stub, node)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            _constant(stub, node.targets[0].id, node.value)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            stub.lines += _outline(node)
    for operation in [OPERATIONS[name] for name in sorted(OPERATIONS)]:
        if operation.is_function:
            for name in operation.names:
                stub.function(operation.function, name, out=bool(operation.out))
    by_name = {f"{name}_": each for each in OPERATIONS.values() for name in each.names}
    for name in inplace_functions.NAMES:
        if name in by_name:
            stub.function(by_name[name].function, name, returns="Tensor")
        else:
            function = methods.METHODS.get(name) or OPERATIONS[name].function
            stub.function(function, name, returns="Tensor")
    return _text(stub, PACKAGE)


def _reexport(stub: Stub, node: ast.ImportFrom) -> None:
    base = ".".join(["tgraph", *([node.module] if node.module else [])])
    for alias in node.names:
        name = alias.asname or alias.name
        if not name.startswith("_"):
            origin = "." if base == "tgraph" else base
            own = name if alias.name == name else f"_{alias.name}"
            stub.imports.add(f"from {origin} import {alias.name} as {own}")
            if own != name:  # which an import in a stub would not make public
                stub.lines.append(f"{name} = {own}")


def _constant(stub: Stub, name: str, value: ast.expr) -> None:
    if name == "__version__" or not name.startswith("_"):
        if isinstance(value, ast.Name):
            stub.lines.append(f"{name} = {value.id}")
        elif isinstance(value, ast.Constant):
            kind = "None" if value.value is None else f"_builtins.{type(value.value).__name__}"
            stub.lines.append(f"{name}: {kind}")
        else:
            stub.lines.append(f"{name}: _builtins.float")


def tensor_stub() -> str:
    """`tgraph/core/tensor.pyi`: the module as it is, and the methods of Tensor."""
    from tgraph.core.public import OPERATIONS
    from tgraph.ops import methods

    stub = Stub()
    tree = tree_of(TENSOR)
    for node in tree.body:
        if isinstance(node, ast.Import):
            stub.imports.add(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            origin = "." * node.level + (node.module or "")
            stub.imports |= {f"from {origin} import {ast.unparse(each)}" for each in node.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("TypeVar("):
            stub.lines.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            stub.lines += _outline(node)
            if isinstance(node, ast.ClassDef) and node.name == "Tensor":
                _methods(stub, methods, [OPERATIONS[name] for name in sorted(OPERATIONS)])
    return _text(stub, TENSOR)


def _outline(node: ast.FunctionDef | ast.ClassDef, indent: str = "") -> list[str]:
    """A definition without what it does."""
    if isinstance(node, ast.FunctionDef):
        lines = [f"{indent}@{ast.unparse(each)}" for each in node.decorator_list]
        arguments = copy.deepcopy(node.args)
        for each in ast.walk(arguments):
            if isinstance(each, ast.arg) and each.annotation is not None:
                each.annotation = _builtin(each.annotation)
        _plain_defaults(arguments)
        result = ast.unparse(_builtin(copy.deepcopy(node.returns))) if node.returns else "_Any"
        return [*lines, f"{indent}def {node.name}({ast.unparse(arguments)}) -> {result}: ..."]
    bases = [ast.unparse(_builtin(copy.deepcopy(each))) for each in node.bases]
    lines = [f"class {node.name}({', '.join(bases)}):" if bases else f"class {node.name}:"]
    inner = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AnnAssign)]
    for each in inner:
        if isinstance(each, ast.AnnAssign):
            annotation = ast.unparse(_builtin(copy.deepcopy(each.annotation)))
            lines.append(f"    {ast.unparse(each.target)}: {annotation}")
        else:
            lines += _outline(each, "    ")
    return lines if inner else [*lines, "    ..."]


class _Builtins(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id.removeprefix("_")
        return _name(f"_builtins.{name}") if name in NAMED else node


def _builtin(node: ast.expr) -> ast.expr:
    found = _Builtins().visit(node)
    assert isinstance(found, ast.expr)
    return found


def _methods(stub: Stub, methods: Any, operations: Sequence[Any]) -> None:
    for operation in operations:
        for name in operation.names:
            if operation.is_method:
                stub.function(operation.function, name, method=True, indent="    ")
            if operation.inplace:
                returns = {"method": True, "returns": "Tensor", "indent": "    "}
                stub.function(operation.function, f"{name}_", **returns)
    for name, function in methods.METHODS.items():
        if function.__name__ == "<lambda>":
            stub.lines.append(
                f"    def {name}(self, condition: Tensor, other: _Any) -> Tensor: ..."
            )
        else:
            stub.function(function, name, method=True, indent="    ")
    for name, function in methods.SPECIAL.items():
        if callable(function):
            stub.function(function, name, method=True, indent="    ")
    for name in (*methods.OPERATORS, "div"):
        for form in ("", "r", "i"):
            stub.lines.append(f"    def __{form}{name}__(self, other: _Any) -> Tensor: ...")
    for name in methods.COMPARISONS:
        ignored = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        stub.lines.append(f"    def __{name}__(self, other: _Any) -> Tensor: ...{ignored}")
    for name, value in methods.PROPERTIES.items():
        stub.lines.append("    @property")
        stub.function(value.fget, name, method=True, indent="    ")
        if value.fset is not None:
            stub.lines.append(f"    @{name}.setter")
            stub.lines.append(f"    def {name}(self, value: _Any) -> None: ...")
        if value.fdel is not None:
            stub.lines.append(f"    @{name}.deleter")
            stub.lines.append(f"    def {name}(self) -> None: ...")


def _text(stub: Stub, source: Path) -> str:
    head = [f"# Written by `{COMMAND}`; do not edit.", "# ruff: noqa", ""]
    own = ["import builtins as _builtins", "from typing import Any as _Any"]
    module = ".".join(source.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    imports = sorted(each for each in stub.imports if f"from {module} import" not in each)
    inside = sorted(
        each.partition(" import ")[2] for each in stub.imports if f"from {module} import" in each
    )
    aliases = [f"{new} = {old}" for old, new in (each.split(" as ") for each in inside)]
    text = "\n".join([*head, *dict.fromkeys([*own, *imports]), "", *stub.lines, *aliases, ""])
    command = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", source.name + "i"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def stubs() -> dict[Path, str]:
    """Every stub and its text."""
    return {
        PACKAGE.with_suffix(".pyi"): package_stub(),
        TENSOR.with_suffix(".pyi"): tensor_stub(),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
