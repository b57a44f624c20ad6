"""Three floors, one direction: tgraph -> compiler -> runtime, seen in the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).parent.parent
FLOORS = {"runtime": "tgraph.runtime", "compiler": "tgraph.compiler", "tgraph": "tgraph"}
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


def module_name(file: Path) -> str:
    floor, *inner = file.relative_to(ROOT).with_suffix("").parts
    parts = [FLOORS[floor], *inner]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    module_name(file): file for floor in FLOORS for file in sorted((ROOT / floor).rglob("*.py"))
}


@cache
def trees() -> dict[str, ast.Module]:
    """All files, read by the tests here and not by whoever collects them."""
    return {module: ast.parse(file.read_text()) for module, file in FILES.items()}


@pytest.fixture(autouse=True, scope="module")
def forget() -> Iterator[None]:
    yield
    trees.cache_clear()


def imported(module: str, tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Every import statement below `tree`, with the full name that it asks for."""
    package = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = [*base, node.module] if node.module else base
            origin = ".".join(start) if node.level else node.module or ""
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield node, inner if inner in FILES else origin


def place(module: str, node: ast.stmt) -> str:
    return f"{FILES[module].relative_to(ROOT)}:{node.lineno}"


def all_imports() -> Iterator[tuple[str, str, str]]:
    """The module, the place and the name of every import statement of all files."""
    for module, tree in trees().items():
        yield from ((module, place(module, node), name) for node, name in imported(module, tree))


def is_ours(name: str) -> bool:
    return name.split(".")[0] in ("tgraph", "compiler", "runtime")


def is_type_checking(tree: ast.Module) -> set[ast.stmt]:
    """Imports under `if TYPE_CHECKING`, which no interpreter runs."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
        if isinstance(inner, ast.stmt)
    }


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
    for module, where, name in all_imports():
        below = floor_of(name) in ALLOWED[floor_of(module)]
        if module.startswith("tgraph.compiler.ir"):
            below = any(name == each or name.startswith(each + ".") for each in IR_MAY_IMPORT)
        if name.split(".")[0] in ("compiler", "runtime", "tests") or (is_ours(name) and not below):
            wrong.append(f"{where} imports {name}")
    assert not wrong


def room_of(name: str) -> int:
    """The number of a module's room; one more for what stands above all."""
    floor = floor_of(name)
    room = name.removeprefix(floor).split(".")[1] if name != floor else ""
    in_room = room in ROOMS[floor] and name not in ABOVE
    return ROOMS[floor].index(room) if in_room else len(ROOMS[floor])


def test_rooms_have_an_order():
    wrong = []
    for module, tree in trees().items():
        if floor_of(module) not in ROOMS:
            continue
        skipped = is_type_checking(tree)
        for node, name in imported(module, tree):
            same_floor = is_ours(name) and floor_of(name) == floor_of(module)
            is_door = node in skipped or name in DOORS.get(module, ())
            if same_floor and not is_door and room_of(name) > room_of(module):
                wrong.append(f"{place(module, node)} imports {name}")
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
        f"{where} imports {name}"
        for module, where, name in all_imports()
        if module not in KNOW_A_TARGET and target_of(name) not in ("", target_of(module))
    ]
    assert not wrong


def test_a_name_of_the_package_is_public():
    """Neither rooms nor floors nor other packages are listed."""
    found = run_python(
        "import types, tgraph as tg, tgraph.nn\n"
        "assert set(tg.__all__) <= set(dir(tg)) and tg.__version__\n"
        "print([n for n in dir(tg) if isinstance(getattr(tg, n), types.ModuleType)])"
    )
    names = [
        "accelerator", "amp", "array_api", "autograd", "backends", "compat", "cuda", "distributed",
        "distributions", "fft", "func", "functional", "fx", "hub", "jit", "linalg", "masked",
        "multiprocessing", "nn", "onnx", "optim", "overrides", "profiler", "pytree", "quasirandom",
        "random", "return_types", "serialization", "signal", "sparse", "special", "testing",
        "tracing", "types", "utils", "version", "vision",
    ]  # fmt: skip
    assert found.strip() == str(names)


def test_the_package_is_found_from_the_root_of_the_repository():
    command = [sys.executable, "-S", "-c", "import tgraph.compiler.ir"]
    env = {"PYTHONPATH": str(Path(numpy.__file__).parents[1])}  # which has no finder of ours
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)
    assert run.returncode == 0, run.stderr


def test_no_function_imports_our_modules():
    """Imports are seen at the head of a file; DOORS are few, and no way around a cycle."""
    wrong = [
        f"{place(module, node)}: {name} is imported inside a function"
        for module, tree in trees().items()
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node, name in imported(module, function)
        if is_ours(name) and not name.startswith(DOORS.get(module, ("-",)))
    ]
    assert not wrong


def test_private_names_stay_in_their_module():
    """What another module needs has a public name."""
    wrong = [
        f"{place(module, node)} imports {alias.name}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
        if alias.name.startswith("_")
    ]
    assert not wrong


def test_no_module_imports_itself_in_a_circle():
    """The import graph of modules, without imports for type checkers, has no cycle."""
    reads: dict[str, set[str]] = {}
    for module, tree in trees().items():
        skipped = is_type_checking(tree)
        reads[module] = {
            name
            for node, name in imported(module, tree)
            if node not in skipped
            and name in FILES
            and name != module
            # A package that is being initialised serves its own submodules.
            and not module.startswith(name + ".")
        }
    left = dict(reads)
    while ready := [module for module, names in left.items() if not names & left.keys()]:
        for module in ready:
            del left[module]
    assert not left, f"modules that import each other: {sorted(left)}"


def run_python(code: str) -> str:
    """The output of `code`, run where no folder of this repository can be imported by chance."""
    elsewhere = tempfile.gettempdir()
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=elsewhere)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_needs_no_heavy_package():
    found = run_python(
        "import sys, tgraph; "
        f"print([name for name in {LATE!r} if name in sys.modules and sys.modules[name]])"
    )
    assert found.strip() == "[]"


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
        f"{place(module, node)} imports {name}"
        for module, tree in trees().items()
        if not module.startswith(behind)
        for statement in tree.body
        for node, name in imported(module, statement)
        if name in slow
        or (name in late and not isinstance(statement, ast.FunctionDef | ast.ClassDef))
    ]
    assert not wrong


def test_named_tuples_are_those_that_look_at_no_annotations():
    wrong = [
        place(module, node)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        # One makes it, the other one's tests run it by itself.
        if module not in ("tgraph.runtime.records", "tgraph.tracing.recording.instrument")
        if any(alias.name == "NamedTuple" for alias in node.names)
    ]
    assert not wrong, "runtime/records.py has a NamedTuple that is made in a fifth of the time"


def test_import_leaves_out_what_lies_behind_the_doors():
    found = run_python("import sys, tgraph; print(sorted(sys.modules))")
    behind = ("tgraph.compiler.targets", "tgraph.compiler.kernel", "tgraph.compiler.passes")
    doors = (behind, LATE_NAMES, *DOORS.values())
    assert not [name for names in doors for name in names if f"'{name}" in found]


def test_what_is_imported_late_is_there_as_if_it_were_not():
    found = run_python(
        "import sys, tgraph as tg; from tgraph import *\n"
        f"names = {[name.rpartition('.')[2] for name in LATE_NAMES if name.count('.') == 1]!r}\n"
        "names += ['finfo', 'iinfo']\n"
        "assert set(names) <= set(dir(tg)) and set(names) <= set(globals())\n"
        "print(nn.Linear.__name__, tg.finfo(tg.bfloat16).bits, tg.get_float32_matmul_precision())\n"
        "print(hasattr(tg, 'another'), sorted(sys.modules))"
    )
    first, second = found.splitlines()
    assert first == "Linear 16 highest"
    assert second.startswith("False")


def test_eager_operations_need_no_compiler():
    """Nothing of what `import tgraph` leaves out comes with the first operations and gradients."""
    found = run_python(
        "import sys, tgraph as tg; x = tg.tensor([[1.0, 2.0]], requires_grad=True)\n"
        "(tg.softmax(x @ x.T + 1, dim=-1) * 3).sum().backward(); print(x.sort(), x.grad)\n"
        "print(sorted(sys.modules))"
    )
    late = (*LATE_NAMES, *(name for names in DOORS.values() for name in names), "ml_dtypes")
    assert not [name for name in late if f"'{name}" in found]


def test_a_small_function_compiles_without_what_few_programs_need():
    found = run_python(
        "import os, sys; os.environ['TGRAPH_CACHE_DIR'] = ''  # no plan is found on disk\n"
        "import tgraph as tg; print(tg.compile(lambda x: x * 2 + 1)(tg.ones(3)))\n"
        "print(sorted(sys.modules))"
    )
    assert "tgraph.compiler.pipeline" in found
    assert not [name for name in NOT_FOR_SMALL_FUNCTIONS if f"'{name}" in found]


def test_a_traced_function_may_be_the_first_to_ask_for_a_late_name():
    found = run_python(
        "import tgraph as tg\n"
        "def f(x):\n"
        "    assert tg.optim.SGD and not tg.cuda.is_available.__closure__\n"
        "    return x * tg.finfo(tg.float32).bits\n"
        "c = tg.compile(f)\n"
        "print(c(tg.ones(1)), c(tg.ones(1)), len(c.compiles))"
    )
    assert found.strip() == "tensor([32.]) tensor([32.]) 1"


def test_one_name_for_each_module():
    """Two names for one file would give two registries."""
    found = run_python(
        "import sys, tgraph.compiler.pipeline; "
        "print([n for n in sys.modules if n.split('.')[0] in ('compiler', 'runtime')])"
    )
    assert found.strip() == "[]"


def test_installed_packages_are_complete():
    """Every folder with Python files is named in pyproject.toml, or a wheel would miss it."""
    listed = (ROOT / "pyproject.toml").read_text()
    for module, file in FILES.items():
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        assert f'"{package}"' in listed, f"{package} is not in [tool.setuptools] packages"
