"""BLAS as function pointers, from wheels and through SciPy."""

import ctypes

import numpy as np
import pytest
from tgraph.runtime import blas


def gemm(address, kind, integer, a, b):
    """Row-major a @ b through a Fortran function."""
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), np.nan, a.dtype)
    numbers = {value: integer(value) for value in (m, n, k)}
    letter, one, zero = ctypes.c_char(b"N"), kind(1), kind(0)
    at = ctypes.addressof
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(address)
    function(
        *(at(letter), at(letter), at(numbers[n]), at(numbers[m]), at(numbers[k]), at(one)),
        *(b.ctypes.data, at(numbers[n]), a.ctypes.data, at(numbers[k])),
        *(at(zero), c.ctypes.data, at(numbers[n])),
    )
    return c


@pytest.mark.parametrize("source", [blas.load, blas._of_scipy_linalg])
@pytest.mark.parametrize(
    ("dtype", "kind"), [("float32", ctypes.c_float), ("float64", ctypes.c_double)]
)
def test_pointers_multiply(source, dtype, kind):
    generator = np.random.default_rng(0)
    a = generator.standard_normal((5, 7)).astype(dtype)
    b = generator.standard_normal((7, 3)).astype(dtype)
    address = source().gemm(dtype)
    np.testing.assert_allclose(gemm(address, kind, ctypes.c_int64, a, b), a @ b, rtol=1e-5)


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
    addresses = {library.blas().sgemm for library in libraries}
    assert len(addresses) == len(libraries) <= 2


def test_not_a_library(tmp_path):
    path = tmp_path / "libopenblas.so"
    path.write_text("not a library")
    assert blas._openblas(str(path)) is None
    assert blas._bundled("tgraph_no_such_package") == []
