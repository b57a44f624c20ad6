"""Convolutions and their gradients in compiled code, of sizes at which products gather windows."""

import numpy as np
import pytest
from tgraph.compiler.compile_graph import compile_graph
from tgraph.runtime import parallel
from tgraph.runtime.plan import GemmStep

import tgraph as tg
from tgraph.nn import functional as F
from tgraph.tracing import trace

# samples, channels, filters, size, kernel, and the options of conv2d
CASES = {
    "same": (2, 8, 10, (13, 17), (3, 3), {"padding": 1}),
    "one image": (1, 20, 33, (9, 40), (3, 3), {"padding": 1}),
    "no padding": (3, 5, 4, (12, 11), (3, 2), {}),
    "points": (2, 16, 8, (9, 9), (1, 1), {}),
    "strided": (2, 3, 16, (21, 23), (5, 5), {"stride": 2, "padding": 2}),
    "strided with channels": (3, 40, 64, (25, 30), (3, 3), {"stride": 2, "padding": 1}),
    "strided points": (2, 16, 8, (9, 9), (1, 1), {"stride": 2}),
    "strides by axis": (2, 6, 7, (15, 16), (3, 3), {"stride": (1, 2), "padding": (0, 1)}),
    "dilated": (2, 8, 5, (16, 15), (3, 3), {"dilation": 2, "padding": 2}),
    "dilated and strided": (2, 8, 5, (19, 18), (3, 3), {"dilation": (2, 1), "stride": 2}),
    "groups": (2, 12, 8, (11, 10), (3, 3), {"groups": 4, "padding": 1}),
    "strided groups": (3, 8, 12, (12, 13), (3, 3), {"groups": 2, "padding": 1, "stride": 2}),
    "depthwise": (2, 6, 6, (11, 10), (3, 3), {"groups": 6, "padding": 1}),
    "one filter": (2, 7, 1, (11, 10), (3, 3), {"padding": 1}),
    "one channel": (5, 1, 6, (14, 13), (3, 3), {"padding": 1}),
    "one place": (4, 9, 6, (3, 3), (3, 3), {}),
    "many images": (60, 8, 8, (7, 7), (3, 3), {"padding": 1}),
    "long sums": (2, 150, 130, (8, 9), (3, 3), {"padding": 1}),
    "no images": (0, 3, 4, (6, 6), (3, 3), {"padding": 1}),
}


def pair(value):
    return (value, value) if isinstance(value, int) else value


def windows(x, w, stride=1, padding=0, dilation=1, groups=1):
    """Windows [n, g, c, oy, ox, ky, kx] of the padded images."""
    (sy, sx), (py, px), (dy, dx) = map(pair, (stride, padding, dilation))
    padded = np.pad(x, ((0, 0), (0, 0), (py, py), (px, px)))
    taps = ((w.shape[2] - 1) * dy + 1, (w.shape[3] - 1) * dx + 1)
    found = np.lib.stride_tricks.sliding_window_view(padded, taps, (2, 3))
    found = found[:, :, ::sy, ::sx, ::dy, ::dx]
    return found.reshape(len(x), groups, x.shape[1] // groups, *found.shape[2:])


def reference(x, w, gy, **options):
    """Result and gradients by the definition, in float64."""
    groups = options.get("groups", 1)
    seen = windows(x, w, **options)
    wide = w.reshape(groups, -1, *w.shape[1:])
    y = np.einsum("ngcyxij,gocij->ngoyx", seen, wide)
    g = gy.reshape(y.shape)
    gw = np.einsum("ngcyxij,ngoyx->gocij", seen, g).reshape(w.shape)
    spread = np.einsum("ngoyx,gocij->ngcyxij", g, wide)
    py, px = pair(options.get("padding", 0))
    padded = np.zeros((*x.shape[:2], x.shape[2] + 2 * py, x.shape[3] + 2 * px))
    (sy, sx), (dy, dx) = pair(options.get("stride", 1)), pair(options.get("dilation", 1))
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            rows = slice(i * dy, i * dy + sy * y.shape[3], sy)
            columns = slice(j * dx, j * dx + sx * y.shape[4], sx)
            part = padded[:, :, rows, columns]
            part += spread[..., i, j].reshape(len(x), x.shape[1], *part.shape[2:])
    gx = padded[:, :, py : py + x.shape[2], px : px + x.shape[3]]
    return y.reshape(len(x), len(w), *y.shape[3:]), gx, gw


def data(case, dtype):
    samples, channels, filters, size, kernel, options = CASES[case]
    random = np.random.default_rng(7)
    x = random.standard_normal((samples, channels, *size))
    w = random.standard_normal((filters, channels // options.get("groups", 1), *kernel))
    x, w = x.astype(dtype), w.astype(dtype)
    shape = F.conv2d(tg.from_numpy(x), tg.from_numpy(w), **options).shape
    return x, w, random.standard_normal(shape).astype(dtype), options


def compiled(options):
    def function(x, w, gy):
        y, back = tg.vjp(lambda x, w: F.conv2d(x, w, **options), x, w)
        return y, *back(gy)

    return tg.compile(function)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case, channels_last, dtype):
    x, w, gy, options = data(case, dtype)
    wanted = reference(*(each.astype(np.float64) for each in (x, w, gy)), **options)
    sizes = reference(*(np.abs(each.astype(np.float64)) for each in (x, w, gy)), **options)
    if channels_last:
        x, gy = (
            np.ascontiguousarray(each.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            for each in (x, gy)
        )
    found = compiled(options)(*map(tg.from_numpy, (x, w, gy)))
    for got, right, size in zip(found, wanted, sizes, strict=True):
        allowed = 60 * np.finfo(dtype).eps * size.max(initial=1)
        np.testing.assert_allclose(got.numpy(), right, rtol=0, atol=allowed)


@pytest.mark.parametrize("case", ["same", "strided", "groups", "one channel", "long sums"])
def test_results_do_not_depend_on_the_number_of_threads(case):
    x, w, gy, options = data(case, "float32")
    function, before, results = compiled(options), parallel.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            parallel.set_num_threads(threads)
            results.append([each.numpy() for each in function(*map(tg.from_numpy, (x, w, gy)))])
    finally:
        parallel.set_num_threads(before)
    for other in results[1:]:
        for one, another in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, another)


GATHERED = [
    *("same", "one image", "no padding", "dilated", "groups", "one channel", "long sums"),
    *("strided", "strides by axis", "dilated and strided", "strided groups"),
]


@pytest.mark.parametrize("case", GATHERED)
def test_no_matrix_of_windows_is_stored(case):
    x, w, _, options = data(case, "float32")
    arguments = tg.from_numpy(x), tg.from_numpy(w)
    graph = trace(lambda x, w: F.conv2d(x, w, **options), *arguments)
    executable = compile_graph(graph)
    plan = executable.plan
    (product,) = (step for step in plan.steps if isinstance(step, GemmStep))
    assert product.spread_a or product.spread_b
    most = 4 * x.nbytes + 2 * w.nbytes + 4 * product.m * product.n + 4096
    assert plan.arena_bytes < most
    assert sum(info.bytes for info in executable.kernels if info.kind == "gemm") < most
