"""Three floors, one direction: tgraph -> compiler -> runtime, seen in the imports themselves."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy

from tools.parsed import ROOT, files, inner_statements, tree_of

# The heavy packages that `import tgraph` must not need, and what each is needed for.
LATE = (
    "scipy",
    "llvmlite",
    "ml_dtypes",
    "networkx",
    "graphviz",
    "cupy",
    "matplotlib",
    "sklearn",
    "hypothesis",
    "h5py",
    "PIL",
)
# The doors to parts of ours that `import tgraph` leaves out: what traces and compiles, passes and
# code generation, which the first compilation needs, checks and pictures, products on a GPU; and
# those to what few compilations need.
DOORS = {
    "tgraph.compiled.compile": (
        "tgraph.compiled.compiled_function", "tgraph.compiled.optimized_module",
        "tgraph.tracing.record_call",
    ),
    "tgraph.core.planned": ("tgraph.compiled.eager_plan",),
    "tgraph.ops.row_scans": ("tgraph.tracing.rehearsal",),
    "tgraph.compiled.operation_plans": (
        "tgraph.compiler.compile_graph", "tgraph.compiled.graph_function",
    ),
    "tgraph.tracing.api": (
        "tgraph.tracing.record_call", "tgraph.compiler.targets.cpu.program",
    ),
    "tgraph.compiler.compile_graph": (
        "tgraph.compiler.make_executable",
        "tgraph.compiler.passes.fuse_attention_gradients",
        "tgraph.compiler.passes.keep_products",
        "tgraph.compiler.passes.roll_loops",
        "tgraph.compiler.passes.symbolic_zeros",
    ),
    "tgraph.compiler.targets.known_targets": ("tgraph.compiler.targets.cuda.target",),
    "tgraph.compiler.targets.cpu.plan_builder": (
        "tgraph.compiler.targets.cpu.native_steps", "tgraph.compiler.targets.cpu.attention_step",
    ),
    "tgraph.compiler.targets.cpu.target": ("tgraph.compiler.targets.cpu.sized_program",),
    "tgraph.compiler.targets.cpu.loader": ("tgraph.compiler.targets.cpu.varying_numbers",),
    "tgraph.compiled.compiled_function": (
        "tgraph.compiled.check", "tgraph.compiled.explain",
    ),
    "tgraph.compiled.function_tracer": ("tgraph.rewriting.rewritings",),
    "tgraph.interop.array_protocols": ("tgraph.array_api", "tgraph.interop.numpy_functions"),
    "tgraph.nn.utils.stateless": ("tgraph.transforms.functional",),
    "tgraph.nn.module": ("tgraph.compiled.compiled_function",),
    "tgraph.cuda": ("tgraph.compiler.targets.cuda.program",),
    "tgraph.drawing.draw": (
        "tgraph.drawing.autograd_picture", "tgraph.drawing.dot", "tgraph.drawing.function_picture",
        "tgraph.drawing.graph_picture", "tgraph.drawing.picture", "tgraph.compiler.plan.program",
        "tgraph.compiled.compiled_function", "tgraph.compiled.optimized_module",
        "tgraph.compiler.plan.ready_plan", "tgraph.nn.module",
        "tgraph.drawing.built_picture", "tgraph.graphs.graph",
    ),
    "tgraph.runtime.parallel": ("tgraph.runtime.thread_pool",),
    "tgraph.runtime.array_functions_factorizations": ("tgraph.runtime.factorization",),
    "tgraph.runtime.array_functions_sparse": ("tgraph.runtime.csr_product",),
    "tgraph.runtime.array_functions_contractions": ("tgraph.runtime.cuda.eager_matmul",),
}  # fmt: skip
# What `tgraph` imports when one of its names is first asked for, and what comes with `tgraph.nn`.
LATE_NAMES = (
    "tgraph.accelerator", "tgraph.array_api", "tgraph.backends", "tgraph.compat",
    "tgraph.core.dtype_info",
    "tgraph.cuda", "tgraph.distributed", "tgraph.distributions", "tgraph.fx", "tgraph.jit",
    "tgraph.multiprocessing",
    "tgraph.nn", "tgraph.random", "tgraph.testing", "tgraph.ops.losses", "tgraph.optim",
    "tgraph.runtime.cuda.precision", "tgraph.utils", "tgraph.vision",
)  # fmt: skip
# What a small function compiles without: passes and native steps that few programs have, products
# on a GPU, modules of networks.
NOT_FOR_SMALL_FUNCTIONS = (
    "tgraph.compiler.passes.split_complex", "tgraph.compiler.passes.complex_arithmetic",
    "tgraph.compiler.passes.fuse_attention", "tgraph.compiler.passes.attention_pattern",
    "tgraph.compiler.passes.concatenate_updates", "tgraph.compiler.passes.one_pass_statistics",
    "tgraph.compiler.passes.split_state", "tgraph.compiler.passes.keep_products",
    "tgraph.compiler.passes.sum_products", "tgraph.compiler.passes.sink_biases",
    "tgraph.compiler.targets.cpu.native_steps", "tgraph.compiler.targets.cpu.attention_step",
    "tgraph.compiler.targets.cpu.varying_numbers", "tgraph.compiler.targets.cuda",
    "tgraph.runtime.lapack_calls", "tgraph.runtime.order_native", "tgraph.runtime.cuda.products",
    "tgraph.runtime.cuda.cublas_lt", "tgraph.nn", "tgraph.optim", "decimal",
)  # fmt: skip


# The rooms of a floor, folders and some single files: each may import those before it. Other files
# (`tgraph` itself, `tgraph.cuda`, `compile_graph`) stand above all rooms of their floor.
ROOMS = {
    "tgraph": (
        "core", "autograd", "ops", "nn", "transforms", "interop", "serialization", "tracing",
        "rewriting", "compiled", "optim", "distributions", "amp", "graphs", "drawing",
        "utils", "vision", "compat",
    ),
    "tgraph.compiler": (
        "ir", "graph_interpreter", "moved_graph", "kernel", "passes", "pipeline", "fusion", "plan",
        "placement", "targets",
    ),
}  # fmt: skip
# Modules that lie in a room for their name alone, and stand above all.
ABOVE = (
    "tgraph.autograd.forward_ad",
    "tgraph.autograd.functional",
    "tgraph.autograd.gradient_checks",
    "tgraph.interop.numpy_functions",
)
# A target does not know the others.
TARGETS = ("tgraph.compiler.targets.cpu", "tgraph.compiler.targets.cuda")


class Import(NamedTuple):
    """An import statement, for one of the names that it asks for."""

    module: str
    line: int
    name: str
    """The module that is imported, in full; of a name in it, the module that has the name."""
    alias: str
    is_relative: bool
    in_function: bool
    in_type_checking: bool
    runs_late: bool
    """Inside a function or a class at the head of its file."""

    @property
    def place(self) -> str:
        return f"{files()[self.module].relative_to(ROOT)}:{self.line}"


class Context(NamedTuple):
    """What is around a statement."""

    in_function: bool = False
    in_type_checking: bool = False
    runs_late: bool = False

    def inside(self, node: ast.AST, is_top: bool) -> Context:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if not is_function and not isinstance(node, ast.ClassDef):
            return self
        is_late = self.runs_late or (is_top and not isinstance(node, ast.AsyncFunctionDef))
        return Context(self.in_function or is_function, self.in_type_checking, is_late)


def is_for_type_checkers(statement: ast.AST) -> TypeGuard[ast.If]:
    """`if TYPE_CHECKING`, which no interpreter runs."""
    return isinstance(statement, ast.If) and any(
        "TYPE_CHECKING" in (getattr(each, "id", ""), getattr(each, "attr", ""))
        for each in ast.walk(statement.test)
    )


def statements(tree: ast.Module) -> Iterator[tuple[ast.AST, Context]]:
    """Every statement of a file and what is around it."""
    todo: list[tuple[ast.AST, Context, bool]] = [(each, Context(), True) for each in tree.body]
    while todo:
        node, context, is_top = todo.pop()
        yield node, context
        inner = context.inside(node, is_top)
        if is_for_type_checkers(node):
            inner = inner._replace(in_type_checking=True)
            todo += [(each, context, False) for each in node.orelse]
            todo += [(each, inner, False) for each in node.body]
        else:
            todo += [(each, inner, False) for each in inner_statements(node)]


def imported(module: str) -> Iterator[Import]:
    """Every import statement of a module, once for each name."""
    package = module if files()[module].name == "__init__.py" else module.rpartition(".")[0]
    for node, context in statements(tree_of(files()[module])):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node.lineno, alias.name, alias.name, False, *context)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = [*base, node.module] if node.module else base
            origin = ".".join(start) if node.level else node.module or ""
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                name = inner if inner in files() else origin
                yield Import(module, node.lineno, name, alias.name, bool(node.level), *context)


@cache
def all_imports() -> list[Import]:
    """Every import statement of the package."""
    return [each for module in files() for each in imported(module)]


def is_ours(name: str) -> bool:
    return name.split(".")[0] in ("tgraph", "compiler", "runtime")


def floor_of(name: str) -> str:
    for floor in ("tgraph.runtime", "tgraph.compiler"):
        if name == floor or name.startswith(floor + "."):
            return floor
    return "tgraph"


ALLOWED = {
    "tgraph": {"tgraph", "tgraph.compiler", "tgraph.runtime"},
    "tgraph.compiler": {"tgraph.compiler", "tgraph.runtime"},
    "tgraph.runtime": {"tgraph.runtime"},
}
IR_MAY_IMPORT = (
    "tgraph.runtime.dtypes", "tgraph.runtime.device", "tgraph.runtime.records",
    "tgraph.compiler.ir",
)  # fmt: skip


def test_imports_go_downwards():
    wrong = []
    for each in all_imports():
        below = floor_of(each.name) in ALLOWED[floor_of(each.module)]
        if each.module.startswith("tgraph.compiler.ir"):
            below = any(each.name == m or each.name.startswith(m + ".") for m in IR_MAY_IMPORT)
        outside = each.name.split(".")[0] in ("compiler", "runtime", "tests")
        if outside or (is_ours(each.name) and not below):
            wrong.append(f"{each.place} imports {each.name}")
    assert not wrong


def room_of(name: str) -> int:
    """The number of a module's room; one more for what stands above all."""
    floor = floor_of(name)
    room = name.removeprefix(floor).split(".")[1] if name != floor else ""
    in_room = room in ROOMS[floor] and name not in ABOVE
    return ROOMS[floor].index(room) if in_room else len(ROOMS[floor])


def test_rooms_have_an_order():
    wrong = []
    for each in all_imports():
        if floor_of(each.module) not in ROOMS:
            continue
        same_floor = is_ours(each.name) and floor_of(each.name) == floor_of(each.module)
        is_door = each.in_type_checking or each.name in DOORS.get(each.module, ())
        if same_floor and not is_door and room_of(each.name) > room_of(each.module):
            wrong.append(f"{each.place} imports {each.name}")
    assert not wrong


def target_of(module: str) -> str:
    return next((each for each in TARGETS if module.startswith(each)), "")


# What measures the CPU, and shows programs for it, knows it; so do the public names of CUDA.
KNOW_A_TARGET = (
    "tgraph.compiler.targets.known_targets", "tgraph.cuda", "tgraph.tracing.api",
    "tgraph.compiled.measure",
)  # fmt: skip


def test_no_other_file_names_a_target():
    """Neither those of the other target, nor those of none."""
    wrong = [
        f"{each.place} imports {each.name}"
        for each in all_imports()
        if each.module not in KNOW_A_TARGET
        and target_of(each.name) not in ("", target_of(each.module))
    ]
    assert not wrong


def test_no_function_imports_our_modules():
    """Imports are seen at the head of a file; DOORS are few, and no way around a cycle."""
    wrong = [
        f"{each.place}: {each.name} is imported inside a function"
        for each in all_imports()
        if each.in_function
        and is_ours(each.name)
        and not each.name.startswith(DOORS.get(each.module, ("-",)))
    ]
    assert not wrong


def test_private_names_stay_in_their_module():
    """What another module needs has a public name."""
    wrong = [
        f"{each.place} imports {each.alias}"
        for each in all_imports()
        if each.is_relative and each.alias.startswith("_")
    ]
    assert not wrong


def test_no_module_imports_itself_in_a_circle():
    """The import graph of modules, without imports for type checkers, has no cycle."""
    left: dict[str, set[str]] = {module: set() for module in files()}
    for module, _, name, *_, in_type_checking, _ in all_imports():
        # A package that is being initialised serves its own submodules.
        is_own_package = module.startswith(name + ".")
        if not in_type_checking and name in left and name != module and not is_own_package:
            left[module].add(name)
    while ready := [module for module, names in left.items() if not names & left.keys()]:
        for module in ready:
            del left[module]
    assert not left, f"modules that import each other: {sorted(left)}"


def test_slow_standard_modules_are_not_imported_at_the_head():
    """Each takes milliseconds, to read the configuration of a build for one."""
    slow = {"random", "secrets", "sysconfig", "subprocess", "tempfile"}
    late = {"hashlib", "hmac", "concurrent.futures", "logging"}  # functions may import these
    behind = (
        "tgraph.compiler.passes",
        "tgraph.utils",
        *(n for names in DOORS.values() for n in names),
    )
    wrong = [
        f"{each.place} imports {each.name}"
        for each in all_imports()
        if not each.module.startswith(behind)
        if each.name in slow or (each.name in late and not each.runs_late)
    ]
    assert not wrong


def test_named_tuples_are_those_that_look_at_no_annotations():
    wrong = [
        each.place
        for each in all_imports()
        # One makes it, the other one's tests run it by itself.
        if each.module not in ("tgraph.runtime.records", "tgraph.tracing.recording.instrument")
        if each.name == "typing" and each.alias == "NamedTuple"
    ]
    assert not wrong, "runtime/records.py has a NamedTuple that is made in a fifth of the time"


def test_installed_packages_are_complete():
    """Every folder with Python files is named in pyproject.toml, or a wheel would miss it."""
    listed = (ROOT / "pyproject.toml").read_text()
    for module, file in files().items():
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        assert f'"{package}"' in listed, f"{package} is not in [tool.setuptools] packages"


# -- what processes import ---------------------------------------------------------------------


def run_python(code: str) -> list[Any]:
    """What `code` passes to `show`, run where no folder of this repository can be imported."""
    head = "import json, sys\ndef show(value): print('SHOWN', json.dumps(value), flush=True)\n"
    result = subprocess.run(
        [sys.executable, "-c", head + code],
        capture_output=True, text=True, check=False, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    return [json.loads(each.removeprefix("SHOWN")) for each in lines if each.startswith("SHOWN")]


class Loaded(NamedTuple):
    """The modules that are there after each stage of a process, and what it found."""

    by_import: list[str]
    by_eager_operations: list[str]
    by_a_compiled_function: list[str]
    late_name_in_a_trace: list[str]


@cache
def loaded() -> Loaded:
    return Loaded(
        *run_python("""
import os
os.environ["TGRAPH_CACHE_DIR"] = ""  # no plan is found on disk
import tgraph as tg
show([name for name, module in sys.modules.items() if module])
x = tg.tensor([[1.0, 2.0]], requires_grad=True)
(tg.softmax(x @ x.T + 1, dim=-1) * 3).sum().backward()
print(x.sort(), x.grad)
show(list(sys.modules))
print(tg.compile(lambda x: x * 2 + 1)(tg.ones(3)))
show(list(sys.modules))
def f(x):
    assert tg.optim.SGD and not tg.cuda.is_available.__closure__
    return x * tg.finfo(tg.float32).bits
c = tg.compile(f)
show([str(c(tg.ones(1))), str(c(tg.ones(1))), str(len(c.compiles))])
""")
    )


@cache
def names() -> list[Any]:
    late = [name.rpartition(".")[2] for name in LATE_NAMES if name.count(".") == 1]
    return run_python(f"""
import tgraph as tg
from tgraph import *
names = {{*{late!r}, 'finfo', 'iinfo'}}
show(sorted(names - set(dir(tg))) + sorted(names - set(globals())))
show([nn.Linear.__name__, tg.finfo(tg.bfloat16).bits, tg.get_float32_matmul_precision()])
show(hasattr(tg, 'another'))
import tgraph.nn
show(sorted(set(tg.__all__) - set(dir(tg))) + ([] if tg.__version__ else ['__version__']))
show([n for n in dir(tg) if isinstance(getattr(tg, n), type(tg))])
""")


def begin(modules: list[str], starts: tuple[str, ...]) -> list[str]:
    return [name for name in modules if name.startswith(starts)]


def test_import_needs_no_heavy_package():
    assert not set(LATE) & set(loaded().by_import)


def test_import_leaves_out_what_lies_behind_the_doors():
    behind = ("tgraph.compiler.targets", "tgraph.compiler.kernel", "tgraph.compiler.passes")
    doors = (behind, LATE_NAMES, *DOORS.values())
    assert not [name for names in doors for name in begin(loaded().by_import, names)]


def test_eager_operations_need_no_compiler():
    """Nothing of what `import tgraph` leaves out comes with the first operations and gradients."""
    late = (*LATE_NAMES, *(name for names in DOORS.values() for name in names), "ml_dtypes")
    assert not begin(loaded().by_eager_operations, late)


def test_a_small_function_compiles_without_what_few_programs_need():
    found = loaded().by_a_compiled_function
    assert "tgraph.compiler.pipeline" in found
    assert not begin(found, NOT_FOR_SMALL_FUNCTIONS)


def test_a_traced_function_may_be_the_first_to_ask_for_a_late_name():
    assert not begin(loaded().by_a_compiled_function, ("tgraph.optim", "tgraph.core.dtype_info"))
    assert loaded().late_name_in_a_trace == ["tensor([32.])", "tensor([32.])", "1"]


def test_one_name_for_each_module():
    """Two names for one file would give two registries."""
    found = loaded().by_a_compiled_function
    assert not [name for name in found if name.split(".")[0] in ("compiler", "runtime")]


def test_what_is_imported_late_is_there_as_if_it_were_not():
    missing, values, has_another, *_ = names()
    assert not missing
    assert values == ["Linear", 16, "highest"]
    assert not has_another


def test_a_name_of_the_package_is_public():
    """Neither rooms nor floors nor other packages are listed."""
    *_, missing, found = names()
    assert not missing
    assert found == [
        "accelerator", "amp", "array_api", "autograd", "backends", "compat", "cuda", "distributed",
        "distributions", "fft", "func", "functional", "fx", "hub", "jit", "linalg", "masked",
        "multiprocessing", "nn", "onnx", "optim", "overrides", "profiler", "pytree", "quasirandom",
        "random", "return_types", "serialization", "signal", "sparse", "special", "testing",
        "tracing", "types", "utils", "version", "vision",
    ]  # fmt: skip


def test_the_package_is_found_from_the_root_of_the_repository():
    command = [sys.executable, "-S", "-c", "import tgraph.compiler.ir"]
    env = {"PYTHONPATH": str(Path(numpy.__file__).parents[1])}  # which has no finder of ours
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)
    assert run.returncode == 0, run.stderr
