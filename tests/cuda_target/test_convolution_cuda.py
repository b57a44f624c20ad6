"""Convolutions as products of tiles: values, texts, machine code, and what the plan tells."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from convolution_cases import Many, Shapes, attrs_of, convolution, graph_of, random_shapes
from cuda_tools import nvrtc, shim
from cuda_tools.fake_device import installed
from cuda_tools.programs import program_of
from cuda_tools.run_program import run_program
from cuda_tools.shim import run_sanitized
from kernel_cases import Make
from random_graphs.engines import run_eagerly
from template_tools import golden_text, launches_of
from tgraph.compiler.ir import Graph
from tgraph.compiler.targets.cuda import convolution_schedule as sizes
from tgraph.compiler.targets.cuda.convolution_schedule import (
    DOUBLE_TILES,
    TILES,
    ConvolutionSchedule,
    ConvolutionSumSchedule,
)
from tgraph.compiler.targets.cuda.program import CudaProgram, cuda_program
from tgraph.runtime.cuda import backend
from tgraph.runtime.dtypes import bfloat16, float16, float32, float64
from tgraph.runtime.plan_steps import GemmStep

import tgraph as tg
from tgraph.compiled.compile import compile as compiled
from tgraph.nn import functional as F

needs_shim = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
GOLDEN = Path(__file__).parent / "golden" / "templates"
# Of the largest result: what order of summation, fused products and the result's type allow.
TOLERANCE = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
VIEWS = ("", "swapped", "flipped", "sliced")


def shapes_of(x: tuple[int, ...], w: tuple[int, ...], **attrs: Any) -> Shapes:
    return Shapes(x, w, attrs_of(len(x) - 2, **attrs))


def random_arrays(graph: Graph, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(each.shape).astype(each.type.dtype.numpy) for each in graph.inputs]


def agrees(graph: Graph, seed: int = 0) -> CudaProgram:
    """The program of a graph, run in two orders, gives what eager evaluation does."""
    program, arrays = cuda_program(graph), random_arrays(graph, seed)
    values = run_eagerly(graph, arrays)
    first = run_program(program, arrays, "backward")
    second = run_program(program, arrays, "shuffled", seed)
    for node, found, again in zip(graph.outputs, first, second, strict=True):
        np.testing.assert_array_equal(found, again)
        wanted = values[node].astype(np.float64)
        limit = TOLERANCE[node.type.dtype.name] * (1 + np.abs(wanted).max(initial=0))
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=0, atol=limit)
    return program


def schedules(program: CudaProgram) -> list[ConvolutionSchedule]:
    return [
        info.schedule for info in program.kernels if isinstance(info.schedule, ConvolutionSchedule)
    ]


# -- values --------------------------------------------------------------------------------

EDGES = {
    "one element": shapes_of((1, 1, 1), (1, 1, 1), padding=((1, 0),)),
    "window larger than the input": shapes_of((2, 3, 2, 3), (4, 3, 5, 5), padding=((3, 1), (2, 2))),
    "windows beside the input": shapes_of((1, 2, 3), (3, 2, 2), padding=((4, 5),)),
    "negative padding": shapes_of((2, 3, 9, 8), (4, 3, 3, 2), padding=((-2, -1), (-1, 2))),
    "strides": shapes_of((2, 3, 9, 11), (4, 3, 3, 3), strides=(2, 3), padding=((1, 1), (1, 0))),
    "a strided point": shapes_of((2, 5, 6, 7), (4, 5, 1, 1), strides=(2, 2)),
    "dilation": shapes_of((1, 2, 12), (3, 2, 3), dilation=(4,), padding=((2, 3),)),
    "groups": shapes_of((2, 6, 5, 5), (9, 2, 3, 2), groups=3, padding=((1, 1), (0, 1))),
    "spread": shapes_of((2, 3, 4, 5), (4, 3, 3, 3), input_dilation=(2, 3), padding=((2, 1),) * 2),
    "spread and dilated alike": shapes_of(
        (1, 2, 5, 4), (3, 2, 3, 2), input_dilation=(2, 4), dilation=(2, 2), padding=((3, 2),) * 2
    ),
    "spread and strided": shapes_of(
        (1, 2, 7, 4), (3, 2, 4, 3), input_dilation=(3, 2), strides=(2, 3), padding=((2, 2),) * 2
    ),
    "spread further than taps reach": shapes_of((1, 1, 4), (1, 1, 2), input_dilation=(5,)),
    "three axes": shapes_of((2, 2, 4, 3, 5), (3, 2, 2, 2, 2), padding=((1, 0),) * 3),
    "few results of much": shapes_of((3, 2, 40, 37), (5, 2, 40, 36), padding=((1, 1),) * 2),
}


@needs_shim
@pytest.mark.parametrize("dtype", [float32, float64])
def test_edges(dtype):
    make = Many()
    results = [convolution(make, shapes, dtype) for shapes in EDGES.values()]
    assert len(schedules(agrees(make.graph(*results)))) == len(EDGES)


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random(seed):
    rng = random.Random(seed)
    make = Many()
    dtypes = (float32, float32, float64, float16, bfloat16)
    results = [
        convolution(make, random_shapes(rng), rng.choice(dtypes), rng.choice(VIEWS))
        for _ in range(8)
    ]
    agrees(make.graph(*results), seed)


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("tile", [*TILES, *DOUBLE_TILES], ids=str)
@pytest.mark.parametrize("splits", [1, 3])
def test_every_tile(tile, splits, monkeypatch):
    """With sums in one piece and shared, over columns and rows behind the tile's end."""
    dtype = float64 if tile in DOUBLE_TILES else float32
    for name in ("TILES", "DOUBLE_TILES"):
        monkeypatch.setattr(sizes, name, (tile,))
    monkeypatch.setattr(sizes, "registers_suffice", lambda problem, tile: True)
    monkeypatch.setattr(sizes, "_splits", lambda problem, tile: [splits])
    make = Make()
    results = [
        convolution(make, shapes_of((2, 9, 12, 11), (70, 9, 3, 3), padding=((1, 1),) * 2), dtype),
        convolution(make, shapes_of((3, 4, 12, 11), (130, 4, 11, 9)), dtype, "swapped"),
        convolution(
            make, shapes_of((1, 9, 6, 7), (20, 9, 3, 3), input_dilation=(2, 2)), dtype, "flipped"
        ),
    ]
    found = schedules(agrees(make.graph(*results)))
    assert [each.tile for each in found] == [tile] * 3
    assert {each.splits for each in found} == {splits}
    assert {each.x_along_k for each in found} == {False, True}


@needs_shim
def test_what_is_not_a_number_stays_in_its_windows():
    graph = graph_of(shapes_of((1, 2, 6, 6), (3, 2, 3, 3), padding=((1, 1),) * 2))
    x, w = random_arrays(graph, 0)
    x[0, 1, 0, 5] = np.nan
    x[0, 0, 4, 0] = np.inf
    (found,) = run_program(cuda_program(graph), [x, w])
    (wanted,) = (run_eagerly(graph, [x, w])[each] for each in graph.outputs)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))


LAYERS = {
    "plain": {"padding": 1},
    "strided": {"stride": 2, "padding": 1},
    "dilated": {"dilation": 2, "padding": 2},
    "grouped": {"groups": 2, "stride": (2, 1)},
}


def gradients(options: dict[str, Any]) -> Any:
    def function(x, w, y):
        found = tg.autograd.grad((F.conv2d(x, w, **options) * y).sum(), [x, w], create_graph=True)
        return [each + 0 for each in found]

    return function


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name):
    options = LAYERS[name]
    rng = np.random.default_rng(1)
    x = tg.from_numpy(rng.standard_normal((3, 6, 9, 10))).requires_grad_()
    w = tg.from_numpy(rng.standard_normal((6, 6 // options.get("groups", 1), 3, 3)))
    y = tg.from_numpy(rng.standard_normal(F.conv2d(x, w, **options).shape))
    program, arrays, wanted = program_of(gradients(options), [x, w.requires_grad_(), y])
    assert len(schedules(program)) == 2
    for have, want in zip(run_program(program, arrays, "shuffled"), wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-11, atol=1e-11)


@needs_shim
@pytest.mark.slow
def test_a_step_on_a_device():
    """Launched, captured and replayed by the runtime, beside additions at positions."""

    def step(x, w, table, at):
        seen = F.relu(F.conv2d(x, w, padding=1, stride=2)).mean((2, 3))
        loss = ((seen - F.embedding(at, table).mean(1)) ** 2).sum()
        return [loss, *tg.autograd.grad(loss, [w, table])]

    rng = np.random.default_rng(3)
    shapes = ((2, 3, 12, 12), (6, 3, 3, 3), (100, 6))
    x, w, table = (tg.from_numpy(rng.standard_normal(shape)) for shape in shapes)
    given = [x, w.requires_grad_(), table.requires_grad_(),
             tg.from_numpy(rng.integers(0, 100, (2, 50)))]  # fmt: skip
    wanted = step(*given)
    real = backend.why_unavailable() is None
    with nullcontext() if real else installed(lazy=True):
        there = [each.detach().cuda().requires_grad_(each.requires_grad) for each in given]
        function = compiled(step)
        for _ in range(3):
            for have, want in zip(function(*there), wanted, strict=True):
                np.testing.assert_allclose(
                    have.detach().cpu().numpy(), want.detach().numpy(), rtol=1e-11, atol=1e-11
                )
        with pytest.raises(IndexError, match=r"index 100 is out of bounds .* size 100"):
            function(*there[:3], tg.from_numpy(np.full((2, 50), 100)).cuda())[0].cpu()


# -- plans ---------------------------------------------------------------------------------

TYPICAL = {
    "large": shapes_of((32, 64, 56, 56), (128, 64, 3, 3), padding=((1, 1),) * 2),
    "first layer": shapes_of((32, 3, 224, 224), (64, 3, 7, 7), strides=(2, 2),
                             padding=((3, 3),) * 2),
    "few channels": shapes_of((64, 1, 28, 28), (16, 1, 3, 3), padding=((1, 1),) * 2),
    "small": shapes_of((8, 32, 7, 7), (40, 32, 3, 3), padding=((1, 1),) * 2),
    "gradient of weights": shapes_of((64, 32, 58, 58), (64, 32, 56, 56)),
    "gradient of a strided input": shapes_of((32, 128, 28, 28), (64, 128, 3, 3),
                                             padding=((1, 2),) * 2, input_dilation=(2, 2)),
    "sequence": shapes_of((16, 80, 3000), (384, 80, 3), padding=((1, 1),)),
    "volume": shapes_of((2, 16, 16, 32, 32), (32, 16, 3, 3, 3), padding=((1, 1),) * 3),
}  # fmt: skip
VIEW_OF = {"gradient of weights": "swapped"}


def typical(name: str, dtype: Any = float32) -> Graph:
    return graph_of(TYPICAL[name], dtype, VIEW_OF.get(name, ""))


def test_points_are_matrix_products():
    program = cuda_program(graph_of(shapes_of((4, 8, 5, 6), (3, 8, 1, 1))))
    (step,) = program.steps
    assert isinstance(step, GemmStep)
    assert (step.m, step.n, step.k, step.batch) == (3, 30, 8, ((4, 0, 240, 90),))


def test_results_without_elements_need_no_launch():
    assert cuda_program(graph_of(shapes_of((0, 3, 5), (2, 3, 2)))).steps == ()
    make = Make()
    y = convolution(make, shapes_of((2, 0, 5), (3, 0, 2)))
    names = [info.name for info in cuda_program(make.graph(make.add(y, 1.0))).kernels]
    assert len(names) == 1 and "convolution" not in names[0]


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_where_they_lie(view):
    program = cuda_program(graph_of(TYPICAL["small"], float32, view))
    assert [info.name for info in program.kernels if "convolution" not in info.name] == []


def test_what_is_no_view_is_computed_first():
    make = Make()
    x, w = make.input(2, 3, 8, 8), make.input(4, 3, 3, 3)
    first, second, *_ = cuda_program(
        make.graph(make.convolution(make.exp(x), w, **attrs_of(2)))
    ).kernels
    assert (first.name, second.name) == ("k0_exp", "k1_convolution")


def test_long_sums_with_few_results_are_shared():
    (product, total) = cuda_program(typical("gradient of weights")).kernels
    assert isinstance(product.schedule, ConvolutionSchedule)
    assert isinstance(total.schedule, ConvolutionSumSchedule)
    assert product.schedule.grid >= 120
    (alone,) = cuda_program(typical("large")).kernels
    assert alone.schedule.splits == 1


def test_zeros_of_a_spread_input_are_not_multiplied():
    (info,) = cuda_program(typical("gradient of a strided input")).kernels
    assert info.schedule.problem.phases == 4
    assert info.schedule.problem.taps == 4  # of 9, at most
    # Of the pairs of 56 places and 3 taps per axis, half meet elements, not zeros.
    assert info.flops == 2 * 32 * 64 * 128 * (28 * 3) ** 2


def test_tiles_follow_the_shapes():
    tiles = {name: schedules(cuda_program(typical(name)))[0].tile for name in TYPICAL}
    assert tiles["large"].m * tiles["large"].n == 128 * 128
    assert tiles["few channels"].m == 16
    assert tiles["small"].m * tiles["small"].n <= 64 * 64


def test_the_plan_tells_what_moves_and_what_is_computed():
    shapes = TYPICAL["large"]
    (info,) = cuda_program(typical("large")).kernels
    x, w, y = (np.prod(each) * 4 for each in (shapes.x, shapes.w, (32, 128, 56, 56)))
    assert (info.kind, info.bytes) == ("kernel", x + w + y)
    assert info.flops == 2 * (y // 4) * 64 * 9


def test_the_text_tells_the_user_s_line():
    def layer(x, w):
        return F.conv2d(x, w, padding=1)

    program = tg.cuda.program(layer, tg.ones(2, 3, 8, 8), tg.ones(4, 3, 3, 3))
    line = layer.__code__.co_firstlineno + 1
    assert f"// {Path(__file__).name}:{line}: convolution\n" in program.source.replace(
        f"{Path(__file__).parent}/", ""
    )
    assert "launch k0_convolution<<<" in str(program)
    assert "x = x float32[384], w = w float32[108], y = result0 float32[512]" in str(program)


def test_large_tensors_have_64_bit_positions():
    huge = shapes_of((1 << 11, 8, 512, 512), (8, 8, 3, 3), padding=((1, 1),) * 2)
    large, small = (cuda_program(each).source for each in (graph_of(huge), typical("large")))
    assert "(long long)blockIdx.x" in large.split('extern "C"')[1]
    assert "long long" not in small.split('extern "C"')[1]


GOLDENS = {
    "convolution": lambda: graph_of(TYPICAL["large"]),
    "convolution_of_weights": lambda: typical("gradient of weights"),
    "convolution_of_a_strided_input": lambda: typical("gradient of a strided input", float16),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name, request):
    file = GOLDEN / f"{name}.cu"
    found = golden_text(cuda_program(GOLDENS[name]()))
    if request.config.getoption("--update-golden"):
        file.write_text(found)
    assert found == file.read_text()


# -- machine code --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "arch"),
    [(float32, "sm_75"), (float64, "sm_80"), (float16, "sm_90"), (float32, "sm_90")],
)
def test_compiling(dtype, arch):
    """128 registers, so that 512 threads fit on a multiprocessor, and nothing is spilled."""
    if reason := nvrtc.available():
        pytest.skip(reason)
    for name in TYPICAL:
        cubin = nvrtc.compile_cubin(cuda_program(typical(name, dtype)).source, arch)
        for kernel, usage in cubin.kernels.items():
            assert usage.registers <= 128, f"{name}: {kernel} has {usage.registers} registers"
            assert usage.spill_bytes == 0, f"{name}: {kernel} spills {usage.spill_bytes}"
            assert usage.shared_bytes <= 24 << 10


KINDS = {
    **{name: TYPICAL[name] for name in ("large", "gradient of weights", "volume")},
    "strided input": TYPICAL["gradient of a strided input"],
    "strided volume": shapes_of((4, 32, 8, 14, 14), (64, 32, 3, 3, 3), padding=((1, 2),) * 3,
                                input_dilation=(2, 2, 2)),
    "groups": shapes_of((32, 256, 28, 28), (256, 64, 3, 3), padding=((1, 1),) * 2, groups=4),
    "gradient of a volume's weights": shapes_of((16, 4, 16, 32, 32), (32, 4, 14, 30, 30)),
    "zeros": shapes_of((8, 32, 28, 28), (64, 32, 3, 3), padding=((2, 2),) * 2,
                       input_dilation=(2, 2), dilation=(2, 2)),
}  # fmt: skip


# Those with many sums per thread; the compiler has registers to spare for the others.
LARGE = [tile for tile in TILES if tile.each_m * tile.each_n >= 32]
LARGE += [tile for tile in DOUBLE_TILES if tile.each_m * tile.each_n >= 16]


@pytest.mark.slow
@pytest.mark.parametrize("tile", LARGE, ids=str)
def test_tiles_that_are_chosen_fit_into_registers(tile, monkeypatch):
    if reason := nvrtc.available():
        pytest.skip(reason)
    dtype = float64 if tile in DOUBLE_TILES else float32
    fitting = 0
    for shapes in KINDS.values():
        problem = schedules(cuda_program(graph_of(shapes, dtype)))[0].problem
        if not sizes.registers_suffice(problem, tile):
            continue
        fitting += 1
        with monkeypatch.context() as patch:
            patch.setattr(sizes, "TILES", (tile,))
            patch.setattr(sizes, "DOUBLE_TILES", (tile,))
            source = cuda_program(graph_of(shapes, dtype)).source
        usage = nvrtc.compile_cubin(source, "sm_90").kernels["k0_convolution"]
        assert usage.registers <= 128 and usage.spill_bytes == 0, f"{shapes}: {usage}"
    assert fitting > 0


@pytest.mark.slow
def test_slices_and_results_move_as_vectors():
    if reason := nvrtc.available() or nvrtc.disassembler_available():
        pytest.skip(reason)
    code = nvrtc.sass(nvrtc.compile_cubin(cuda_program(typical("large")).source, "sm_90"))
    tile = schedules(cuda_program(typical("large")))[0].tile
    products = tile.each_m * tile.each_n * tile.k
    assert code.count("FFMA") >= products
    # Of a slice: as many vectors of four as a thread's square has edges.
    assert code.count("LDS.128") == (tile.each_m + tile.each_n) // 4 * tile.k
    assert "STG.E.128" in code


# -- sanitizers ----------------------------------------------------------------------------


def small_programs() -> list[CudaProgram]:
    names = ("groups", "spread", "few results of much", "three axes")
    graphs = [graph_of(EDGES[name], dtype) for name in names for dtype in (float32, float64)]
    return [cuda_program(graph) for graph in graphs]


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_kernels_are_clean(kind):
    source, launches = launches_of(small_programs())
    assert run_sanitized(source, launches, kind) == ""


FAULTS = {
    "no barrier between slices": (
        "thread",
        "    __syncthreads();\n    half",
        "    half",
        "data race",
    ),
    "an input too small": ("address", "(unsigned int)p0 < 4", "(unsigned int)p0 < 99", "overflow"),
    "a result too long": ("address", "if (m < 4) ", "", "overflow"),
}


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    kind, old, new, message = FAULTS[fault]
    shapes = shapes_of((1, 8, 4, 5), (4, 8, 3, 3), padding=((1, 1),) * 2)
    source, launches = launches_of([cuda_program(graph_of(shapes))])
    assert old in source
    assert message in run_sanitized(source.replace(old, new), launches, kind)
