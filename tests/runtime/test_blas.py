"""BLAS as function pointers, from wheels and through SciPy."""

import ctypes

import numpy as np
import pytest
from tgraph.runtime import blas


def gemv(address, kind, a, x):
    """Row-major a @ x through a Fortran function, which sees the transposed matrix."""
    m, k = a.shape
    y = np.full(m, np.nan, a.dtype)
    rows, columns, step = ctypes.c_int64(k), ctypes.c_int64(m), ctypes.c_int64(1)
    letter, one, zero = ctypes.c_char(b"T"), kind(1), kind(0)
    at = ctypes.addressof
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(address)
    function(
        *(at(letter), at(rows), at(columns), at(one), a.ctypes.data, at(rows)),
        *(x.ctypes.data, at(step), at(zero), y.ctypes.data, at(step)),
    )
    return y


@pytest.mark.parametrize("source", [blas.load, blas._of_scipy_linalg])
@pytest.mark.parametrize(
    ("dtype", "kind"), [("float32", ctypes.c_float), ("float64", ctypes.c_double)]
)
def test_pointers_multiply(source, dtype, kind):
    generator = np.random.default_rng(0)
    a = generator.standard_normal((5, 7)).astype(dtype)
    x = generator.standard_normal(7).astype(dtype)
    np.testing.assert_allclose(gemv(source().gemv(dtype), kind, a, x), a @ x, rtol=1e-5)


def test_openblas_threads_can_be_set_by_address():
    library = blas.load()
    if not library.set_threads:
        pytest.skip("this NumPy does not use OpenBLAS")
    get = ctypes.CFUNCTYPE(ctypes.c_int)(library.get_threads)
    put = ctypes.CFUNCTYPE(None, ctypes.c_int)(library.set_threads)
    before = get()
    try:
        put(1)
        assert get() == 1
    finally:
        put(before)


def test_each_library_is_listed_once():
    import scipy.linalg  # noqa: F401  its extension modules link to OpenBLAS too

    libraries = blas.openblas_libraries()
    addresses = {library.blas().sgemv for library in libraries}
    assert len(addresses) == len(libraries) <= 2


def test_not_a_library(tmp_path):
    path = tmp_path / "libopenblas.so"
    path.write_text("not a library")
    assert blas._openblas(str(path)) is None
    assert blas._bundled("tgraph_no_such_package") == []
