"""Matrix products in plans against NumPy: layouts, batches, edge sizes, threads."""

import ctypes
import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
from tgraph.runtime import blas, parallel
from tgraph.runtime.plan import BufferRef, GemmStep, KernelStep, Plan
from tgraph.runtime.plan_gemm import native_product
from tgraph.runtime.plan_steps import EpilogueStep, Spread


@pytest.fixture(autouse=True, params=[1, 2, 3])
def threads(request):
    before = parallel.get_num_threads()
    parallel.set_num_threads(request.param)
    yield request.param
    parallel.set_num_threads(before)


def stored(generator, rows, columns, transpose, leading, batch, dtype):
    """A batch of matrices with `leading` spare elements per row, as memory and as seen."""
    shape = (columns, rows) if transpose else (rows, columns)
    memory = generator.standard_normal((*batch, shape[0], shape[1] + leading)).astype(dtype)
    seen = memory[..., : shape[1]]
    return memory, seen.swapaxes(-1, -2) if transpose else seen


def strides(array, batch):
    """Strides in elements over the batch; 0 where the array has one item."""
    own = [s // array.itemsize if n > 1 else 0 for n, s in zip(array.shape[:-2], array.strides)]
    return [0] * (len(batch) - len(own)) + own


def run(m, n, k, *, dtype="float64", ta=False, tb=False, spare=(0, 0, 0), batch=(),
        batch_a=None, batch_b=None, alpha=1.0, beta=0.0):  # fmt: skip
    generator = np.random.default_rng(m * 31 + n * 7 + k)
    a_batch = batch if batch_a is None else batch_a
    b_batch = batch if batch_b is None else batch_b
    a, a_seen = stored(generator, m, k, ta, spare[0], a_batch, dtype)
    b, b_seen = stored(generator, k, n, tb, spare[1], b_batch, dtype)
    c, c_seen = stored(generator, m, n, False, spare[2], batch, dtype)
    expected = alpha * (a_seen @ b_seen) + (beta * c_seen if beta else 0)
    border = c[..., n:].copy()
    if not beta:
        c_seen[...] = np.nan
    items = zip(batch, strides(a, batch), strides(b, batch), strides(c, batch))
    step = GemmStep(
        "test", dtype, m, n, k, BufferRef(1), BufferRef(2), BufferRef(3), ta, tb,
        a.shape[-1], b.shape[-1], c.shape[-1], tuple(items), alpha, beta,
    )  # fmt: skip
    assert Plan([step], 0, 4).run((a, b, c)) == 0
    tolerance = {"float32": 2e-4, "float64": 1e-11}[dtype]
    np.testing.assert_allclose(c_seen, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(c[..., n:], border)
    return step


LAYOUTS = list(itertools.product([False, True], [False, True], [(0, 0, 0), (3, 1, 5)]))


def run_layouts(*sizes, **others):
    for ta, tb, spare in LAYOUTS:
        run(*sizes, ta=ta, tb=tb, spare=spare, **others)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes",
    [
        *((1, 1, 1), (3, 5, 7), (64, 32, 10), (130, 257, 65), (300, 7, 300), (7, 300, 300)),
        *((1, 5, 3), (5, 1, 3), (1, 1, 9), (4, 6, 1), (1, 700, 900), (700, 1, 900)),
        *((150, 140, 1000), (30, 2100, 20), (500, 40, 33), (2, 2, 800)),
    ],
)
def test_layouts(sizes, dtype):
    run_layouts(*sizes, dtype=dtype)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (0, 0, 0)])
def test_empty_results(sizes):
    run_layouts(*sizes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 3, 90])
@pytest.mark.parametrize("n", [1, 4, 300])
def test_empty_sum_is_zero(m, n, dtype):
    run_layouts(m, n, 0, dtype=dtype)
    run_layouts(m, n, 0, dtype=dtype, beta=2.0)


@pytest.mark.parametrize("sizes", [(5, 6, 7), (1, 9, 20), (9, 1, 20), (200, 100, 150)])
@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.0), (1.0, 1.0), (-0.5, 0.25), (0.0, 0.0)])
def test_scales(sizes, alpha, beta):
    run(*sizes, alpha=alpha, beta=beta)
    run(*sizes, alpha=alpha, beta=beta, dtype="float32", ta=True, spare=(1, 2, 3))


@pytest.mark.parametrize(
    ("batch", "batch_a", "batch_b"),
    [
        ((4,), (4,), (4,)),
        ((100,), (100,), (100,)),
        ((3, 5), (3, 5), (3, 5)),
        ((6,), (6,), ()),
        ((6,), (), (6,)),
        ((6,), (1,), (6,)),
        ((2, 3, 4), (3, 1), (2, 1, 4)),
        ((2, 3, 2, 1, 3, 2), (2, 1, 2, 1, 3, 1), (3, 1, 1, 1, 2)),
        ((2, 1, 3, 2), (2, 1, 3, 2), (3, 1)),
        ((0,), (0,), (0,)),
        ((2, 0), (2, 0), ()),
    ],
)
@pytest.mark.parametrize("sizes", [(5, 6, 7), (1, 8, 9), (8, 1, 9), (1, 1, 3), (80, 70, 60)])
def test_batches(sizes, batch, batch_a, batch_b):
    run_layouts(*sizes, batch=batch, batch_a=batch_a, batch_b=batch_b)


def test_batch_with_one_b_becomes_rows():
    step = run(8, 6, 7, batch=(5, 4), batch_b=())
    product = native_product(step)
    assert product.parameters[:3] == [160, 6, 7] and product.parameters[14] == 0


def windows(generator, shape, kernel, stride, dilation, channels_last, dtype):
    """Windows [n, y, x, ky, kx, c] of images of the shape [n, c, h, w], with their memory."""
    n, c, height, width = shape
    memory = generator.standard_normal((n, height, width, c) if channels_last else shape)
    memory = memory.astype(dtype)
    seen = memory if channels_last else memory.transpose(0, 2, 3, 1)
    by_n, by_y, by_x, by_c = seen.strides
    sizes = [(size - dilation * (kernel - 1) - 1) // stride + 1 for size in (height, width)]
    strides = (by_n, stride * by_y, stride * by_x, dilation * by_y, dilation * by_x, by_c)
    shape = (n, *sizes, kernel, kernel, c)
    return memory, np.lib.stride_tricks.as_strided(seen, shape, strides)


def axes_of(view, *axes):
    return tuple((view.shape[at], view.strides[at] // view.itemsize) for at in axes)


def product(a, b, c, sizes, dtype, **spread):
    m, n, k = sizes
    names = (BufferRef(a), BufferRef(b), BufferRef(c))
    return GemmStep("product", dtype, m, n, k, *names, False, False, k, n, n, **spread)


IMAGES = [
    *(((2, 5, 9, 11), 3, 1, 1), ((3, 33, 30, 31), 3, 1, 1), ((1, 40, 13, 12), 3, 2, 1)),
    *(((2, 17, 14, 15), 3, 1, 2), ((2, 2, 40, 20), 1, 1, 1), ((40, 16, 8, 8), 3, 1, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [3, 40, 150])
@pytest.mark.parametrize("by_taps", [False, True])
@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize(("shape", "kernel", "stride", "dilation"), IMAGES)
def test_windows(shape, kernel, stride, dilation, channels_last, by_taps, width, dtype):
    """As A and as B, rows being places or taps: to the last bit the sums of the stored matrix."""
    if stride > 1 and not channels_last:
        channels_last = True  # nothing lies side by side
    generator = np.random.default_rng(width)
    memory, view = windows(generator, shape, kernel, stride, dilation, channels_last, dtype)
    spread = Spread(axes_of(view, 0, 1, 2), axes_of(view, 3, 4, 5))
    stored = view.reshape(np.prod(view.shape[:3]), -1)
    if by_taps:
        spread, stored = Spread(spread.columns, spread.rows), stored.T
    stored, transposed = np.ascontiguousarray(stored), np.ascontiguousarray(stored.T)
    (m, k), swapped = stored.shape, Spread(spread.columns, spread.rows)
    right = generator.standard_normal((k, width)).astype(dtype)
    left = np.ascontiguousarray(right.T)
    results = [np.full(shape, np.nan, dtype) for shape in 2 * [(m, width)] + 2 * [(width, m)]]
    steps = [
        product(1, 4, 6, (m, width, k), dtype, spread_a=spread),
        product(2, 4, 7, (m, width, k), dtype),
        product(5, 1, 8, (width, m, k), dtype, spread_b=swapped),
        product(5, 3, 9, (width, m, k), dtype),
    ]
    assert Plan(steps, 0, 10).run((memory, stored, transposed, right, left, *results)) == 0
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[2], results[3])


def test_spread_operands_have_an_axis_of_neighbours():
    steps = [
        product(1, 2, 3, (4, 3, 6), "float32", spread_a=Spread(((4, 2),), ((6, 8),))),
        product(1, 2, 3, (4, 3, 6), "float32", spread_b=Spread(((6, 2),), ((3, 12),))),
        product(1, 2, 3, (4, 3, 6), "float32", spread_a=Spread(((5, 1),), ((6, 8),))),
    ]
    for step in steps:
        with pytest.raises(ValueError, match="expected a"):
            native_product(step)


class Recorder:
    """Stands in for BLAS and notes what it is asked for: sizes and places."""

    def __init__(self):
        self.calls = set()
        number, pointer = ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
        # letter, m, n, alpha, a, lda, x, step, beta, y, step
        kinds = [pointer, number, number, *[pointer] * 8]
        self.function = ctypes.CFUNCTYPE(None, *kinds)(
            lambda *at: self.calls.add((at[1][0], at[2][0], at[4], at[6], at[9]))
        )

    def run(self, product, ranges):
        """The calls of a product that is run in these ranges."""
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        parameters = [address, *product.parameters[1:]]
        self.calls = set()
        run_pieces(product, parameters, [1 << 32, 1 << 36, 1 << 40], ranges)
        return self.calls


def run_pieces(product, parameters, addresses, ranges):
    """The body of a native step over these ranges of its pieces."""
    words = np.array(parameters, np.int64)
    args = np.array([*addresses, words.ctypes.data], np.int64)
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(product.body)
    for low, high in ranges:
        body(args.ctypes.data, low, high)


def plain(m, n, k, batch=(), ta=False, tb=False):
    """The step of dense matrices."""
    refs, items = (BufferRef(1), BufferRef(2), BufferRef(3)), 1
    dims = []
    for size in reversed(batch):
        dims.insert(0, (size, items * m * k, items * k * n, items * m * n))
        items *= size
    return GemmStep(
        "test", "float32", m, n, k, *refs, ta, tb, m if ta else k, k if tb else n, n, tuple(dims)
    )  # fmt: skip


SPLIT = [
    *((200, 200, 300), (64, 64, 4096), (512, 512, 512), (1024, 1000, 700), (4096, 64, 256)),
    *((64, 4096, 256), (100_000, 10, 64), (1, 700, 900), (700, 1, 900), (3, 5, 7), (129, 257, 64)),
]


def cuts(product):
    """The pieces in one range, in seven, each for itself."""
    sevenths = [product.extent * i // 7 for i in range(8)]
    yield [(0, product.extent)]
    yield list(itertools.pairwise(sevenths))
    yield [(i, i + 1) for i in range(product.extent)]


@pytest.mark.parametrize("batch", [(), (3,), (100,)])
@pytest.mark.parametrize("sizes", [each for each in SPLIT if 1 in each[:2]])
def test_blas_is_asked_for_the_same_whoever_asks(sizes, batch):
    """Results do not depend on threads because no call does: kernels differ by the shape."""
    for ta, tb in itertools.product([False, True], repeat=2):
        product = native_product(plain(*sizes, batch, ta, tb))
        whole, *others = (Recorder().run(product, ranges) for ranges in cuts(product))
        assert others == [whole, whole]
        assert len(whole) == product.extent


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("sizes", [*SPLIT, (100, 90, 80), (20, 3000, 40)])
def test_results_do_not_depend_on_the_split(sizes, batch):
    m, n, k = sizes
    if 1 in sizes[:2] or m * n * k > 10**8:
        pytest.skip("is a product of BLAS, or takes too long")
    generator = np.random.default_rng(0)
    for ta, tb in itertools.product([False, True], repeat=2):
        product = native_product(plain(m, n, k, batch, ta, tb))
        a, b = (generator.standard_normal((*batch, x, y), np.float32) for x, y in ((m, k), (k, n)))
        found = []
        for ranges in cuts(product):
            c = np.full((*batch, m, n), np.nan, np.float32)
            run_pieces(product, product.parameters, [x.ctypes.data for x in (a, b, c)], ranges)
            found.append(c)
        for each in found:
            np.testing.assert_array_equal(each, found[0])


@pytest.mark.parametrize("sizes", SPLIT)
def test_the_split_does_not_depend_on_threads(sizes):
    """Not even the table of a plan that was made with another number."""
    found = set()
    for count in (1, 2, 7, 16):
        parallel.set_num_threads(count)
        found.add(str(native_product(plain(*sizes))))
    assert len(found) == 1


def test_small_products_stay_on_one_thread_large_ones_do_not():
    small = native_product(run(10, 64, 32))
    assert small.extent <= small.grain
    large = native_product(run(512, 64, 128))
    assert large.extent >= 4 * large.grain and large.parameters[13] == 1
    wide = native_product(run(64, 1024, 128))
    assert wide.extent >= 4 * wide.grain and wide.parameters[12] == 1
    many = native_product(run(10, 32, 64, batch=(1000,)))
    assert many.extent == 1000 and 10 <= many.grain <= 100


def test_without_control_of_the_blas_nothing_is_split(monkeypatch):
    monkeypatch.setattr(blas, "_loaded", blas._of_scipy_linalg())
    product = native_product(run(512, 1, 1280))
    assert product.grain == product.extent == 1
    run(1, 64, 128, batch=(300,))


def test_openblas_threads_are_as_before(threads):
    library = blas.load()
    if not library.set_threads:
        pytest.skip("this NumPy does not use OpenBLAS")
    run(300, 1, 300)
    assert {one.get_num_threads() for one in blas.openblas_libraries()} == {threads}


def test_blas_has_one_thread_until_the_last_of_overlapping_calls_ends(monkeypatch):
    """Products that some other call's end left to several threads were added in another order."""
    threads, seen = [4], []
    second_began, first_ended = threading.Event(), threading.Event()

    def product(*_):
        seen.append(threads[0])
        if threading.current_thread() is not threading.main_thread():
            second_began.set()
            first_ended.wait(30)
            seen.append(threads[0])
        elif len(seen) == 1:
            other.start()
            second_began.wait(30)

    get = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: threads[0])
    put = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda count: threads.__setitem__(0, count))
    gemv = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(product)
    at = [ctypes.cast(function, ctypes.c_void_p).value for function in (gemv, get, put)]
    fake = blas.load()._replace(sgemv=at[0], get_threads=at[1], set_threads=at[2])
    monkeypatch.setattr(blas, "_loaded", fake)
    plan = Plan([plain(4, 1, 4)], 0, 4)
    arrays = [np.zeros((4, 4), np.float32)] * 3
    other = threading.Thread(target=plan.run, args=(arrays,))
    plan.run(arrays)
    assert threads == [1]
    first_ended.set()
    other.join()
    assert threads == [4] and seen == [1, 1, 1]


def test_wrong_steps_are_refused():
    refs = (BufferRef(1), BufferRef(2), BufferRef(3))
    with pytest.raises(ValueError, match="gemm bad: expected float32 or float64, got float16"):
        Plan([GemmStep("bad", "float16", 2, 2, 2, *refs, False, False, 2, 2, 2)], 0, 4)
    with pytest.raises(ValueError, match=r"gemm bad: expected lda of at least 3.*got 2"):
        Plan([GemmStep("bad", "float32", 2, 2, 3, *refs, False, False, 2, 2, 2)], 0, 4)
    kernel = KernelStep("then", 0, (BufferRef(3),), 5, 1)
    for wrong, sizes, message in (
        ({"k": 400, "lda": 400}, (), "k from 1 to 384 and no factors before an epilogue"),
        ({"m": 1}, (), "expected matrices"),
        ({}, (), "expected an epilogue of 20 tasks, got 5"),
        ({}, (BufferRef(3),) * 30, "at most 24 arguments of the epilogue, got 30"),
    ):
        step = GemmStep("bad", "float32", 20, 30, 8, *refs, False, False, 8, 30, 30)
        then = EpilogueStep(replace(kernel, args=sizes) if sizes else kernel)
        with pytest.raises(ValueError, match=message):
            Plan([replace(step, then=then, **wrong)], 0, 4)
