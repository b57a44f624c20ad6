"""Matrix products in plans against NumPy: layouts, batches, edge sizes, threads."""

import itertools

import numpy as np
import pytest
from tgraph.runtime import blas, parallel
from tgraph.runtime.plan import BufferRef, GemmStep, Plan
from tgraph.runtime.plan_gemm import native_product


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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("ta", "tb", "spare"), LAYOUTS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        *((1, 1, 1), (3, 5, 7), (64, 32, 10), (130, 257, 65), (300, 7, 300), (7, 300, 300)),
        *((1, 5, 3), (5, 1, 3), (1, 1, 9), (4, 6, 1), (1, 700, 900), (700, 1, 900)),
    ],
)
def test_layouts(m, n, k, ta, tb, spare, dtype):
    run(m, n, k, dtype=dtype, ta=ta, tb=tb, spare=spare)


@pytest.mark.parametrize(("ta", "tb", "spare"), LAYOUTS)
@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (0, 0, 0)])
def test_empty_results(sizes, ta, tb, spare):
    run(*sizes, ta=ta, tb=tb, spare=spare)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("ta", "tb", "spare"), LAYOUTS)
@pytest.mark.parametrize("m", [1, 3, 90])
@pytest.mark.parametrize("n", [1, 4, 300])
def test_empty_sum_is_zero(m, n, ta, tb, spare, dtype):
    run(m, n, 0, ta=ta, tb=tb, spare=spare, dtype=dtype)
    run(m, n, 0, ta=ta, tb=tb, spare=spare, dtype=dtype, beta=2.0)


@pytest.mark.parametrize("sizes", [(5, 6, 7), (1, 9, 20), (9, 1, 20), (200, 100, 150)])
@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.0), (1.0, 1.0), (-0.5, 0.25), (0.0, 0.0)])
def test_scales(sizes, alpha, beta):
    run(*sizes, alpha=alpha, beta=beta)
    run(*sizes, alpha=alpha, beta=beta, dtype="float32", ta=True, spare=(1, 2, 3))


@pytest.mark.parametrize(("ta", "tb", "spare"), LAYOUTS)
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
        ((2, 1, 3, 2), (2, 1, 3, 2), (3, 1)),
        ((0,), (0,), (0,)),
        ((2, 0), (2, 0), ()),
    ],
)
@pytest.mark.parametrize("sizes", [(5, 6, 7), (1, 8, 9), (8, 1, 9), (1, 1, 3), (80, 70, 60)])
def test_batches(sizes, batch, batch_a, batch_b, ta, tb, spare):
    run(*sizes, ta=ta, tb=tb, spare=spare, batch=batch, batch_a=batch_a, batch_b=batch_b)


def test_batch_with_one_b_becomes_rows():
    step = run(8, 6, 7, batch=(5, 4), batch_b=())
    product = native_product(step)
    assert product.parameters[3:6] == [160, 6, 7] and product.parameters[17] == 0
    assert product.extent == 1


def test_small_products_stay_on_one_thread_large_ones_do_not():
    small = native_product(run(10, 64, 32))
    assert small.extent <= small.grain
    large = native_product(run(512, 64, 128))
    assert large.extent >= 4 * large.grain
    wide = native_product(run(64, 512, 128))
    assert wide.extent >= 4 * wide.grain and wide.parameters[13] == 0
    many = native_product(run(10, 32, 64, batch=(1000,)))
    assert many.extent == 1000 and 10 <= many.grain <= 100


def test_without_control_of_the_blas_nothing_is_split(monkeypatch):
    monkeypatch.setattr(blas, "_loaded", blas._of_scipy_linalg())
    product = native_product(run(512, 64, 128))
    assert product.grain == product.extent
    run(1, 64, 128, batch=(300,))


def test_openblas_threads_are_as_before(threads):
    library = blas.load()
    if not library.set_threads:
        pytest.skip("this NumPy does not use OpenBLAS")
    run(300, 300, 300)
    assert {one.get_num_threads() for one in blas.openblas_libraries()} == {threads}


def test_wrong_steps_are_refused():
    refs = (BufferRef(1), BufferRef(2), BufferRef(3))
    with pytest.raises(ValueError, match="gemm bad: expected float32 or float64, got float16"):
        Plan([GemmStep("bad", "float16", 2, 2, 2, *refs, False, False, 2, 2, 2)], 0, 4)
    with pytest.raises(ValueError, match=r"gemm bad: expected lda of at least 3.*got 2"):
        Plan([GemmStep("bad", "float32", 2, 2, 3, *refs, False, False, 2, 2, 2)], 0, 4)
    five = ((2, 1, 1, 1),) * 5
    with pytest.raises(ValueError, match="at most 4 batch dimensions, got 5"):
        Plan([GemmStep("bad", "float32", 2, 2, 2, *refs, False, False, 2, 2, 2, five)], 0, 4)
