"""Convolutions as matrix products: the same numbers for every combination of attributes."""

import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.fusion.fusion import fuse
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes import convolutions
from tgraph.compiler.passes.decompose import decompose
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.targets.cpu.rules import CpuRules
from tgraph.runtime.dtypes import bfloat16, float16, float32, float64

CASES = [
    ((2, 3, 6, 7), (4, 3, 2, 3), {}),
    ((2, 3, 6, 7), (4, 3, 3, 3), {"padding": ((1, 1), (1, 1))}),
    ((2, 3, 7, 7), (4, 3, 3, 3), {"strides": (2, 3), "padding": ((1, 2), (0, 1))}),
    ((2, 3, 9), (4, 3, 3), {"dilation": (2,), "padding": ((2, 0),)}),
    ((2, 4, 5, 5), (6, 2, 3, 3), {"groups": 2, "padding": ((1, 1), (1, 1))}),
    ((2, 4, 5, 5), (8, 1, 3, 3), {"groups": 4, "strides": (2, 2)}),
    ((2, 4, 5), (4, 1, 3), {"groups": 4}),
    ((2, 3, 5, 5), (4, 3, 1, 1), {}),
    ((3, 2, 6, 6), (4, 2, 5, 5), {}),  # windows larger than the result
    ((3, 2, 8, 9), (4, 2, 4, 4), {"dilation": (2, 2), "padding": ((0, -1), (1, -1))}),
    ((3, 2, 12, 12), (4, 2, 5, 5), {"strides": (2, 1), "dilation": (2, 2)}),
    ((2, 3, 3, 4), (4, 3, 3, 2), {"input_dilation": (2, 3), "padding": ((2, 2), (1, 1))}),
    ((2, 3, 3, 4), (4, 3, 3, 2), {"input_dilation": (2, 2), "padding": ((1, 3), (-1, 0))}),
    ((2, 3, 4), (4, 3, 3), {"input_dilation": (3,), "padding": ((4, 5),), "dilation": (2,)}),
    ((2, 4, 3, 3), (6, 2, 3, 3), {"input_dilation": (2, 2), "groups": 2,
                                  "padding": ((2, 1), (1, 2))}),
    ((2, 3, 4, 4), (4, 3, 2, 2), {"input_dilation": (2, 3), "strides": (2, 1),
                                  "padding": ((1, -2), (-1, 1))}),
    # Spread inputs with windows that overlap: a convolution for each phase.
    ((2, 3, 4, 5), (8, 3, 3, 3), {"input_dilation": (2, 2), "padding": ((1, 2), (1, 1))}),
    ((2, 3, 4, 5), (8, 3, 3, 5), {"input_dilation": (1, 3), "padding": ((1, -1), (-2, 6))}),
    ((2, 3, 6, 7), (8, 3, 5, 4), {"input_dilation": (2, 2), "padding": ((-3, 0), (4, -1))}),
    ((2, 3, 5, 6), (8, 3, 3, 4), {"input_dilation": (2, 3), "dilation": (3, 2),
                                  "padding": ((6, 6), (5, 4))}),
    ((2, 3, 5, 6), (8, 3, 7, 3), {"input_dilation": (4, 2), "dilation": (2, 1)}),
    ((2, 4, 5, 5), (16, 2, 3, 3), {"input_dilation": (2, 2), "groups": 2,
                                  "padding": ((2, 1), (0, 1))}),
    ((1, 2, 3), (8, 2, 5), {"input_dilation": (3,), "padding": ((0, -5),)}),
    ((2, 3, 8), (4, 3, 3), {"padding": ((-2, -1),)}),
    ((2, 3, 8), (4, 3, 3), {"padding": ((-1, 1),)}),
    ((2, 3, 3, 3, 3), (2, 3, 2, 2, 2), {"padding": ((1, 0),) * 3, "strides": (1, 2, 1)}),
    ((0, 3, 5), (2, 3, 2), {}),
    ((1, 1, 2), (1, 1, 5), {}),
    ((2, 0, 5), (3, 0, 2), {}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _as_if_large(monkeypatch):
    monkeypatch.setattr(convolutions, "LEAST_FOR_PHASES", 1)


def convolution(x_shape, w_shape, options, dtype=float64, swapped=False):
    """A convolution; `swapped` of an input whose samples and channels change places before."""
    make, spatial = Maker(), len(x_shape) - 2
    samples, channels, *sizes = x_shape
    x = make.input(*((channels, samples) if swapped else (samples, channels)), *sizes, dtype=dtype)
    w = make.input(*w_shape, dtype=dtype)
    if swapped:
        x = make.permute(x, axes=(1, 0, *range(2, len(x_shape))))
    ones = (1,) * spatial
    attrs = {"strides": ones, "padding": ((0, 0),) * spatial, "dilation": ones,
             "input_dilation": ones, "groups": 1, **options}  # fmt: skip
    return make, make.convolution(x, w, **attrs)


@pytest.mark.parametrize("x, w, options", CASES)
@pytest.mark.parametrize("run", [decompose, optimize])
@pytest.mark.parametrize("swapped", [False, True])
def test_same_numbers(x, w, options, run, swapped):
    make, y = convolution(x, w, options, swapped=swapped)
    after = assert_pass_keeps_values(run, make.graph(y), rtol=1e-12, special=False)
    assert p.convolution not in {node.primitive for node in after.nodes}


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_half_types_round_once(dtype):
    make, y = convolution((2, 3, 6, 7), (4, 3, 2, 3), {}, dtype)
    after = assert_pass_keeps_values(decompose, make.graph(y), rtol=1e-2, special=False)
    assert after.outputs[0].primitive is p.cast
    assert p.matmul in {node.primitive for node in after.nodes}


def test_the_forward_form():
    make, y = convolution((2, 3, 6, 7), (4, 3, 3, 3), {"padding": ((1, 1), (1, 1))})
    assert body(optimize(make.graph(y))).split(" | ") == [
        "%0 = pad(%x; high=(0, 0, 1, 1), interior=(0, 0, 0, 0), low=(0, 0, 1, 1), value=0.0)",
        "%1 = unfold(%0; axes=(2, 3), dilations=(1, 1), sizes=(3, 3), strides=(1, 1))",
        "%2 = permute(%1; axes=(0, 2, 3, 4, 5, 1))",
        "%3 = reshape(%2; shape=(84, 27))",
        "%4 = permute(%y; axes=(0, 2, 3, 1))",
        "%5 = reshape(%4; shape=(4, 27))",
        "%6 = matmul(%3, %5; transpose_a=False, transpose_b=True)",
        "%7 = reshape(%6; shape=(2, 6, 7, 4))",
        "%8 = permute(%7; axes=(0, 3, 1, 2))",
        "return %8",
    ]


def kernel_gradient(make, x, g, strides, padding, w_shape):
    """The gradient of a convolution with respect to its kernels, as a convolution."""
    transposed = make.permute(x, axes=(1, 0, 2, 3)), make.permute(g, axes=(1, 0, 2, 3))
    excess = [
        x.shape[2 + at] + sum(padding[at]) - ((g.shape[2 + at] - 1) * strides[at] + w_shape[2 + at])
        for at in range(2)
    ]
    cut = tuple((low, high - more) for (low, high), more in zip(padding, excess))
    result = make.convolution(
        *transposed, strides=(1, 1), padding=cut, dilation=strides, input_dilation=(1, 1), groups=1
    )
    return make.permute(result, axes=(1, 0, 2, 3))


@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
@pytest.mark.parametrize("samples, channels", [(2, 3), (2, 1)])
def test_the_gradient_of_the_kernels_shares_the_windows(strides, samples, channels):
    make, w_shape, padding = Maker(), (4, channels, 3, 3), ((1, 1), (1, 1))
    x = make.input(samples, channels, 8, 8, dtype=float64)
    w = make.input(*w_shape, dtype=float64)
    y = make.convolution(
        x, w, strides=strides, padding=padding, dilation=(1, 1), input_dilation=(1, 1), groups=1
    )
    g = make.input(*y.shape, dtype=float64)
    graph = make.graph(y, kernel_gradient(make, x, g, strides, padding, w_shape))
    after = assert_pass_keeps_values(optimize, graph, rtol=1e-12, special=False)
    primitives = [node.primitive for node in after.nodes]
    assert primitives.count(p.unfold) == 1 and primitives.count(p.matmul) == 2
    columns = [node.inputs[0] for node in after.nodes if node.primitive is p.matmul]
    assert columns[0] is columns[1]


def test_two_layers_stay_in_the_layout_of_the_products():
    """Between convolutions, bias, activation and pooling work on [n, h, w, c] without permutes."""
    make = Maker()
    x, w1, b = make.input(2, 3, 8, 8), make.input(4, 3, 3, 3), make.input(4)
    w2 = make.input(5, 4, 3, 3)
    attrs = {"strides": (1, 1), "padding": ((1, 1),) * 2, "dilation": (1, 1),
             "input_dilation": (1, 1), "groups": 1}  # fmt: skip
    h = make.add(make.convolution(x, w1, **attrs), make.reshape(b, shape=(1, 4, 1, 1)))
    h = make.maximum(h, make.number(0.0))
    h = make.unfold(h, axes=(2, 3), sizes=(2, 2), strides=(2, 2), dilations=(1, 1))
    h = make.max(h, axes=(4, 5), keepdims=False)
    y = make.convolution(h, w2, **attrs)
    after = assert_pass_keeps_values(optimize, make.graph(y), rtol=1e-4, special=False)
    between = [
        node for node in after.nodes
        if node.primitive is p.permute and node.inputs[0].primitive not in (p.input_, p.reshape)
    ]  # fmt: skip
    # One orders the windows of the first layer, none stands between the layers but the windows'.
    assert [node.inputs[0].primitive for node in between] == [p.unfold, p.unfold]
    pool = next(node for node in after.nodes if node.primitive is p.max_)
    assert pool.shape == (2, 4, 4, 4) and pool.inputs[0].attrs["axes"] == (1, 2)


def test_images_are_turned_where_strided_windows_would_be_gathered_one_by_one():
    """One copy with channels last; where windows do not overlap, their matrix is no larger."""
    strided = {"strides": (2, 2), "padding": ((1, 1), (1, 1))}
    make, y = convolution((2, 5, 8, 8), (4, 5, 3, 3), strided)
    after = assert_pass_keeps_values(optimize, make.graph(y), rtol=1e-12, special=False)
    (windows,) = (node for node in after.nodes if node.primitive is p.unfold)
    assert windows.attrs["axes"] == (1, 2)
    transposed = windows.inputs[0]
    assert transposed.primitive is p.permute and transposed.shape == (2, 9, 9, 5)
    make, y = convolution((2, 5, 8, 8), (4, 5, 2, 2), {"strides": (2, 2)})
    after = assert_pass_keeps_values(optimize, make.graph(y), rtol=1e-12, special=False)
    (windows,) = (node for node in after.nodes if node.primitive is p.unfold)
    assert windows.inputs[0].primitive is p.input_


def test_a_spread_input_is_cut_into_phases_that_read_one_padded_image():
    """None of the four multiplies zeros; windows apart are put in place behind one product."""
    spread = {"input_dilation": (2, 2), "padding": ((1, 2), (1, 2))}
    make, y = convolution((2, 3, 6, 6), (8, 3, 3, 3), spread)
    after = assert_pass_keeps_values(optimize, make.graph(y), rtol=1e-12, special=False)
    primitives = [node.primitive for node in after.nodes]
    assert primitives.count(p.matmul) == 4 and primitives.count(p.pad) == 1
    assert p.fold not in primitives
    products = [node for node in after.nodes if node.primitive is p.matmul]
    assert sum(node.inputs[1].type.numel for node in products) == 8 * 3 * 9
    for kernels in ((8, 3, 2, 2), (3, 3, 3, 3)):  # apart, and few columns
        make, y = convolution((2, 3, 6, 6), kernels, {"input_dilation": (2, 2)})
        after = optimize(make.graph(y))
        assert [node.primitive for node in after.nodes].count(p.matmul) == 1


def test_the_phases_of_a_gradient_are_joined_before_they_are_turned():
    """Neighbours in a row of the result come from two products; channels are side by side."""

    def copies(samples: int) -> list[tuple[str, tuple[int, ...]]]:
        spread = {"input_dilation": (2, 2), "padding": ((1, 2), (1, 2))}
        make, y = convolution((samples, 3, 8, 8), (24, 3, 3, 3), spread, dtype=float32)
        groups = fuse(CpuRules(optimize(make.graph(y)))).groups
        roots = [group.roots[0].node for group in groups if group.kind == "kernel"]
        return [(each.primitive.name, each.shape) for each in roots]

    joined, turned = ("reshape", (8, 16, 16, 24)), ("permute", (8, 24, 16, 16))
    assert copies(8)[-2:] == [joined, turned]
    assert copies(2)[-1] == ("permute", (2, 24, 16, 16))
    assert ("reshape", (2, 16, 16, 24)) not in copies(2)  # too little for a kernel more
