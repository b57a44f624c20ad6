"""The stand-in for CuPy that the tests of the CUDA runtime use: it is as strict as CuPy."""

import gc
import inspect
import warnings

import ml_dtypes
import numpy as np
import pytest
from cuda_tools import fake_cupy, shim
from cuda_tools.fake_cupy import arrays, cupy, driver, routines, ufuncs

bfloat16 = np.dtype(ml_dtypes.bfloat16)
NEEDS_COMPILER = pytest.mark.skipif(shim.available() is not None, reason=shim.available() or "")


@pytest.fixture(autouse=True)
def machine():
    with fake_cupy.install() as made:
        yield made


def real_cupy():
    """CuPy itself, which says what it has without a GPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.gpu)])
def both(request, monkeypatch):
    """`cupy` is the fake; where there is a GPU, CuPy has to do the same."""
    if request.param == "real":
        real = real_cupy()
        try:
            devices = real.cuda.runtime.getDeviceCount()
        except real.cuda.runtime.CUDARuntimeError as error:
            pytest.skip(f"no CUDA device: {error}")
        assert devices
        monkeypatch.setitem(globals(), "cupy", real)


shared = pytest.mark.usefixtures("both")


def held(values, dtype=None):
    return cupy.array(np.array(values, dtype))


# -- it has what CuPy has ------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ufuncs.LOOPS))
def test_ufuncs_have_the_loops_of_cupy(name):
    theirs = getattr(real_cupy(), name)
    ours = getattr(cupy, name)
    assert ours.types == [each for each in theirs.types if "V" not in each]  # V: structures
    assert (ours.nin, ours.nout, ours.name) == (theirs.nin, theirs.nout, theirs.name)
    assert ufuncs.SCATTERS.get(name) == theirs._scatter_op


def test_where_and_erf_have_the_loops_of_cupy():
    real_cupy()
    from cupy._sorting.search import _where_ufunc
    from cupyx.scipy.special import erf

    assert list(ufuncs.WHERE) == _where_ufunc.types
    assert list(ufuncs.ERF) == erf.types


@pytest.mark.parametrize("name", sorted(routines.FUNCTIONS))
def test_functions_have_signatures_of_cupy(name):
    theirs = getattr(real_cupy(), name)
    wanted = inspect.signature(theirs).parameters
    ours = inspect.signature(routines.FUNCTIONS[name]).parameters
    if name == "matmul":  # whose arrays are *args
        assert list(ours) == ["a", "b", "out"] and "out" in wanted
        return
    positions = [each for each, p in ours.items() if p.kind is not p.KEYWORD_ONLY]
    assert positions == list(wanted)[: len(positions)]
    for each, parameter in ours.items():
        assert parameter.default == wanted[each].default, each


def test_arrays_have_no_attribute_that_cupys_lack():
    real = real_cupy().ndarray
    own = {"_np", "__weakref__", "__annotations__"}
    assert not set(dir(arrays.ndarray)) - set(dir(real)) - set(dir(object)) - own


@pytest.mark.parametrize(
    "path",
    ["", "cuda", "cuda.runtime", "cuda.device", "cuda.function", "cuda.graph", "cuda.memory",
     "cuda.memory_hook", "cuda.pinned_memory", "cuda.stream", "lib.stride_tricks"],
)  # fmt: skip
def test_modules_have_no_name_that_cupys_lack(path):
    ours, theirs = cupy, real_cupy()
    for name in filter(None, path.split(".")):
        ours, theirs = getattr(ours, name), getattr(theirs, name)
    assert not [name for name in vars(ours) if not hasattr(theirs, name)]


def test_constants_of_the_runtime_are_those_of_cupy():
    runtime = real_cupy().cuda.runtime
    assert {name: getattr(runtime, name) for name in fake_cupy.CONSTANTS} == fake_cupy.CONSTANTS


@pytest.mark.parametrize(
    "name",
    ["Device", "Event", "Function", "Graph", "MemoryHook", "MemoryPointer", "MemoryPool", "Module",
     "PinnedMemoryPool", "Stream", "UnownedMemory"],
)  # fmt: skip
def test_classes_of_cuda_have_no_attribute_that_cupys_lack(name):
    ours, theirs = getattr(cupy.cuda, name), getattr(real_cupy().cuda, name)
    assert not [each for each in dir(ours) if each[0] != "_" and not hasattr(theirs, each)]


def test_the_driver_launches_as_cupys_does():
    real_cupy()
    from cupy_backends.cuda.api import driver as real

    assert issubclass(real.CUDADriverError, RuntimeError)
    ours = list(inspect.signature(driver.launchKernel).parameters)
    assert real.launchKernel.__doc__.count(",") == len(ours) - 1 == 10
    assert all(name in real.launchKernel.__doc__ for name in ours[1:10])
    ours = list(inspect.signature(driver.funcSetAttribute).parameters)
    assert all(f"{name}" in real.funcSetAttribute.__doc__ for name in ours)
    ours = list(inspect.signature(driver.funcGetAttribute).parameters)
    assert all(f"{name}" in real.funcGetAttribute.__doc__ for name in ours)


def test_unknown_names_are_told():
    with pytest.raises(AttributeError, match="the fake of cupy has no 'polyfit'"):
        cupy.polyfit  # noqa: B018


# -- arrays --------------------------------------------------------------------------------------


def test_an_array_is_of_its_own_class_in_module_cupy():
    x = held([[1, 2], [3, 4]], np.float32)
    assert type(x) is cupy.ndarray and not isinstance(x, np.ndarray)
    assert type(x).__module__ == "cupy"
    assert (x.shape, x.strides, x.size, x.nbytes, x.ndim) == ((2, 2), (8, 4), 4, 16, 2)
    assert x.data.ptr % 512 == 0 and x.device == cupy.cuda.Device(0) and x.base is None
    assert x.T.base is x and x.T[0].base is x and not x.T.flags.owndata


def test_fresh_memory_is_full_of_ones():
    assert np.isnan(cupy.empty(3, np.float32).get()).all()
    assert (cupy.empty(3, np.int32).get() == -1).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.asarray(x),
        lambda x: np.array([x]),
        lambda x: x + np.ones(2),
        lambda x: np.ones(2) + x,
        lambda x: cupy.add(x, np.ones(2)),
        lambda x: cupy.where(x > 0, np.array(1.0), x),
        lambda x: cupy.matmul(x, np.ones(2)),
        lambda x: cupy.concatenate([x, np.ones(2)]),
        lambda x: x.astype(np.int32, casting="unsafe"),
        lambda x: cupy.add(x, x, where=x > 0),
        lambda x: x.__iadd__(1j),
        lambda x: range(x[0]),
    ],
)
@shared
def test_what_cupy_refuses_with_a_type_error(call):
    with pytest.raises(TypeError):
        call(held([1.0, 2.0]))


@shared
def test_assigning_an_array_of_the_host_is_refused_but_for_one_element():
    x = cupy.zeros(3)
    with pytest.raises(ValueError, match="non-scalar"):
        x[...] = np.ones(3)
    x[...] = np.array(2.0)
    assert x.tolist() == [2, 2, 2]


@shared
def test_flags_know_nothing_of_writing():
    flags = held([1.0]).flags
    assert flags.c_contiguous and flags.f_contiguous and flags["OWNDATA"]
    assert not hasattr(flags, "writeable")


@shared
def test_results_without_axes_are_arrays():
    x = held([1, 2, 3])
    for found in (x.sum(), x[0], x.max(), x.argmax(), cupy.add(x[0], 1), x.take(1)):
        assert type(found) is cupy.ndarray and found.shape == ()
    assert int(x[0]) == 1 and float(x[1]) == 2.0 and bool(x[2]) and x[2].item() == 3


@shared
def test_an_array_is_no_index():
    with pytest.raises(TypeError):
        [1, 2][held(1)]


@shared
def test_truth_of_several_elements_is_ambiguous():
    with pytest.raises(ValueError, match="ambiguous"):
        bool(held([1, 2]))


@shared
def test_views_share_memory_and_copies_do_not():
    x = held(np.arange(12).reshape(3, 4))
    x[1:, ::2] = 0
    x.reshape(-1)[0] = 7
    x.T[3, 0] = 9
    assert x.tolist() == [[7, 1, 2, 9], [0, 5, 0, 7], [0, 9, 0, 11]]
    assert x[::-1].data.ptr == x.data.ptr + 2 * x.strides[0]
    assert x[1:, 2].data.ptr == x.data.ptr + x.strides[0] + 16
    assert x.reshape(4, 3).base is x and x.T.reshape(-1).base is None
    assert x.view(np.int32).shape == (3, 8)


@shared
def test_axes_move_as_in_numpy():
    x = np.arange(24).reshape(2, 3, 4)
    y = held(x)
    for found, wanted in [
        (y.transpose(2, 0, 1), x.transpose(2, 0, 1)),
        (y.transpose((1, 0, 2)), x.transpose(1, 0, 2)),
        (y.swapaxes(0, -1), x.swapaxes(0, -1)),
        (y[None, ..., 1], x[None, ..., 1]),
        (y[:, [0, 2]], x[:, [0, 2]]),
        (y[held([1, 0]), :, held([2, 3])], x[[1, 0], :, [2, 3]]),
        (y[:, held([[0, 1]]), held([2, 3])], x[:, [[0, 1]], [2, 3]]),
        (y[y > 11], x[x > 11]),
        (y[1, held([True, False, True])], x[1, [True, False, True]]),
        (cupy.broadcast_to(y[0], (5, 3, 4)), np.broadcast_to(x[0], (5, 3, 4))),
        (cupy.lib.stride_tricks.as_strided(y, (2, 2), (32, 8)), x[0, :2, :2]),
    ]:
        assert np.array_equal(found.get(), wanted)


@shared
def test_as_strided_hides_its_base():
    x = held([1.0, 2.0])
    assert cupy.lib.stride_tricks.as_strided(x, (1,), (8,)).base is None


@shared
def test_positions_wrap_around():
    x = held([10, 20, 30])
    assert x[held([3, -1, 5])].tolist() == [10, 30, 30]
    assert x.take(held([[4]])).tolist() == [[20]]
    x[held([3])] = 1
    assert x.tolist() == [1, 20, 30]
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(IndexError):
        cupy.empty((0, 2)).take(held([0]), axis=0)
    assert cupy.empty((2, 0)).take(held([1, 0, 1]), axis=0).shape == (3, 0)


def test_repeated_positions_are_not_written_in_the_order_of_numpy():
    x = cupy.zeros(1)
    x[held([0, 0])] = held([1.0, 2.0])
    assert x.tolist() == [1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, bool, bfloat16, np.int16])
@shared
def test_add_at_knows_few_types(dtype):
    with pytest.raises(TypeError, match=r"cupy\.add\.at only supports"):
        cupy.add.at(cupy.zeros(2, dtype), held([0, 0]), cupy.ones(2, dtype))


@shared
def test_add_at_counts_repeated_positions():
    x = cupy.zeros((2, 2), np.float32)
    cupy.add.at(x, (held([0, 0, 1]), held([1, 1, 0])), held([1, 2, 3], np.float32))
    assert x.tolist() == [[0, 3], [3, 0]]


@shared
def test_negative_zero_is_lost_where_cupy_loses_it():
    lost = [cupy.array(-0.0), cupy.asarray(np.float32(-0.0)), cupy.zeros(1)]
    lost[2][...] = -0.0
    kept = [cupy.full(2, -0.0), cupy.array(np.array([-0.0])), cupy.full((), -0.0)]
    assert not any(np.signbit(each.get()).any() for each in lost)
    assert all(np.signbit(each.get()).all() for each in kept)


@shared
def test_floats_saturate_in_integers():
    x = held([np.nan, np.inf, -np.inf, 3e9, -1.5, 300.7], np.float32)
    top, bottom = 2**31 - 1, -(2**31)
    assert x.astype(np.int32).tolist() == [0, top, bottom, top, -1, 300]
    assert x.astype(np.uint32).tolist() == [0, 2**32 - 1, 0, 3000000000, 0, 300]
    assert x.astype(np.int64).tolist()[1:4] == [2**63 - 1, -(2**63), 3000000000]
    assert x.astype(bool).tolist() == [True, True, True, True, True, True]


@shared
def test_pickling_and_printing_go_through_the_host():
    import pickle

    x = held([[1, 2]])
    assert pickle.loads(pickle.dumps(x)).tolist() == [[1, 2]]
    assert repr(x) == "array([[1, 2]])"


# -- ufuncs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda: cupy.add(held([1], np.uint8), 1), np.uint8),
        (lambda: 1.5 * held([1], np.float16), np.float16),
        (lambda: held([1], np.int8) + 1.5, np.float64),
        (lambda: held([1], np.int16) + np.int32(1), np.int32),
        (lambda: held([1], bfloat16) + held([1], bfloat16), bfloat16),
        (lambda: held([1], bfloat16) + 1, bfloat16),
        (lambda: held([1], bfloat16) * 0.5, np.float32),  # result_type(0.0, bfloat16) is float64
        (lambda: cupy.where(held([True]), held([1], bfloat16), held([1], bfloat16)), np.float32),
        (lambda: cupy.exp(held([1], np.int8)), np.float16),
        (lambda: cupy.true_divide(held([1], np.int8), held([2], np.int8)), np.float64),
        (lambda: held([1], np.uint64) * 0xD2511F53, np.uint64),
        (lambda: cupy.logical_not(held([1], bfloat16)), bool),
        (lambda: held([True]) + held([True]), bool),
        (lambda: cupy.sign(held([True])), np.int8),
        (lambda: held([1], np.int8).sum(), np.int64),
        (lambda: cupy.add.reduce(held([1], bfloat16), dtype=np.float32), np.float32),
        (lambda: held([1], bfloat16).max(), bfloat16),
        (lambda: held([1], bfloat16).argmax(), np.int64),
        (lambda: held([1], np.int8) < 300, bool),
        (lambda: held([1], np.float32) ** 2, np.float32),
        (lambda: held([1], np.float32) * 1j, np.complex64),
        (lambda: held([1], np.float64) + held([1], np.complex64), np.complex128),
        (lambda: held([1], np.complex64) * 2.5, np.complex64),
        (lambda: held([1], np.int8) + held([1], np.complex64), np.complex64),
        (lambda: abs(held([1], np.complex64)), np.float32),
        (lambda: held([1], np.complex128).imag, np.float64),
        (lambda: held([1], np.complex64).sum(), np.complex64),
        (lambda: cupy.isnan(held([1], np.complex64)), bool),
    ],
)
@shared
def test_dtypes_of_results(call, dtype):
    assert call().dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: cupy.maximum.reduce(held([1])), NotImplementedError),
        (lambda: np.maximum.reduce(held([1])), NotImplementedError),
        (lambda: cupy.logical_or.reduce(held([True])), NotImplementedError),
        (lambda: cupy.exp.at(held([1.0]), held([0])), NotImplementedError),
        (lambda: held([True]) - held([True]), TypeError),
        (lambda: -held([True]), TypeError),
        (lambda: held([1.0]) & held([1.0]), TypeError),
        (lambda: held([1], np.uint8) + 300, OverflowError),
        (lambda: held([1, 2]) + held([1, 2, 3]), ValueError),
        (lambda: cupy.empty((0,)).max(), ValueError),
        (lambda: held([1, 2]).__iadd__(held([[1, 2], [3, 4]])), ValueError),
        (lambda: held([1]).__iadd__(1.5), TypeError),
        (lambda: cupy.array([None]), ValueError),
        (lambda: cupy.array(held([1]), np.int8, copy=False), ValueError),
        (lambda: cupy.sort(held([1.0]), kind="quicksort"), ValueError),
        (lambda: cupy.add(held([1]), held([1]), held([0], np.int8)), None),
        (lambda: cupy.matmul(*[cupy.ones((2, 1, 1), bfloat16)] * 2), TypeError),
        (lambda: cupy.logical_or(held([1j]), held([1j])), TypeError),
        (lambda: cupy.logical_not(held([1j])), TypeError),
        (lambda: cupy.floor(held([1j])), TypeError),
        (lambda: held([1.0]).__iadd__(held([1j])), TypeError),
        (lambda: cupy.add.at(held([1j]), held([0]), held([1j])), TypeError),
        (lambda: held([1j]).astype(float), np.exceptions.ComplexWarning),
    ],
)
@shared
def test_what_fails(call, error):
    if error is None:
        assert call().dtype == np.int8  # int64 into int8 is of the same kind
        return
    with warnings.catch_warnings(), pytest.raises(error):
        warnings.simplefilter("error")  # as on the stand-in, also where warnings are collected
        call()


@shared
def test_integers_divide_by_zero_without_an_error():
    x, zero = held([7, -7]), held([0, 0])
    assert (x // zero).tolist() == (x % zero).tolist() == [0, 0]
    assert cupy.power(held([2, 1, -1, 0]), held([-1, -1, -1, -1])).tolist() == [0, 1, -1, 0]


@shared
def test_values_of_ufuncs_are_numpys():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 1, 4)), rng.normal(size=(2, 4))
    for name in ("add", "subtract", "multiply", "true_divide", "maximum", "arctan2", "less"):
        found = getattr(cupy, name)(held(x), held(y)).get()
        np.testing.assert_allclose(found, getattr(np, name)(x, y), rtol=1e-14)
    for name in ("exp", "sqrt", "negative", "floor", "isnan", "reciprocal"):
        found = getattr(cupy, name)(held(abs(x))).get()
        np.testing.assert_allclose(found, getattr(np, name)(abs(x)), rtol=1e-14)


@shared
def test_half_types_compute_in_float32():
    x = np.linspace(-3, 3, 50).astype(bfloat16)
    wanted = np.exp(x.astype(np.float32)).astype(bfloat16)
    found = cupy.exp(held(x, bfloat16)).get()
    assert found.dtype == bfloat16
    np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=1e-2)


@shared
def test_numpy_functions_reach_it():
    from scipy import special

    x = held([0.5, -0.5])
    assert np.concatenate([x, x]).shape == (4,)
    assert np.allclose(special.erf(x).get(), special.erf([0.5, -0.5]))
    assert type(np.exp(x)) is cupy.ndarray


@pytest.mark.parametrize("axes", [(), (0,), (1, 2), (0, 1, 2), None, -1])
@pytest.mark.parametrize("keepdims", [False, True])
@shared
def test_reductions(axes, keepdims):
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    for name in ("sum", "prod", "max", "min", "any", "all"):
        found = getattr(cupy, name)(held(x), axis=axes, keepdims=keepdims)
        wanted = getattr(np, name)(x, axis=axes, keepdims=keepdims)
        np.testing.assert_allclose(found.get(), wanted)
        assert found.shape == np.shape(wanted)


def test_of_several_nan_the_lowest_thread_has_the_position():
    x = np.zeros(2000)
    x[[520, 1025]] = np.nan
    assert int(held(x).argmax()) == 1025  # thread 1, where 520 is of thread 8
    assert int(held(x[:600]).argmin()) == 520
    assert held([[0, 3, 3], [5, 1, 5]]).argmax(axis=1, keepdims=True).tolist() == [[1], [0]]


@shared
def test_products_of_matrices():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal((held(a) @ held(b)).get(), a @ b)
    assert np.array_equal(cupy.matmul(held(a), held(a).T).get(), a @ a.T)
    assert cupy.matmul(held([[100]], np.int8), held([[2]], np.int8)).tolist() == [[-56]]


@shared
def test_parts_of_complex_numbers_are_views():
    x = held([[1 + 2j, 3 - 1j]])
    x.real[...] = 5
    x.imag[0, 1] += 1
    assert x.tolist() == [[5 + 2j, 5]] and x.imag.base is x and x.imag.strides == (32, 16)
    assert x.imag.data.ptr == x.data.ptr + 8
    assert held([2.0]).imag.tolist() == [0.0] and x[0, 0].conj().item() == 5 - 2j
    assert complex(x[0, 0]) == 5 + 2j


@shared
def test_values_of_complex_ufuncs_are_numpys_but_for_quotients_by_zero():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3)) for _ in range(2))
    for name in ("add", "subtract", "multiply", "true_divide", "power", "equal"):
        found = getattr(cupy, name)(held(x), held(y)).get()
        np.testing.assert_allclose(found, getattr(np, name)(x, y), rtol=1e-13)
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "tanh", "arcsin",
        "arctanh", "absolute", "conjugate", "reciprocal", "square", "rint", "sign", "isfinite",
    ):  # fmt: skip
        found = getattr(cupy, name)(held(x)).get()
        np.testing.assert_allclose(found, getattr(np, name)(x), rtol=1e-12)
    np.testing.assert_allclose(held(x).cumprod(1).get(), x.cumprod(1), rtol=1e-13)
    np.testing.assert_allclose(cupy.matmul(held(x), held(y).T).get(), x @ y.T, rtol=1e-13)
    assert np.isnan((held([1 + 0j]) / held([0j])).get()).all()


# -- behind tgraph -------------------------------------------------------------------------------


def test_install_puts_it_behind_the_runtime_and_takes_it_away():
    from tgraph.runtime.cuda import backend, nvrtc

    before = nvrtc.compile_cubin
    with fake_cupy.install(order="shuffled", seed=3) as made:
        assert backend.cupy() is cupy and backend.driver() is driver
        assert nvrtc.compile_cubin("text", "sm_90") == b"text" and made.order == "shuffled"
    assert nvrtc.compile_cubin is before and backend.cupy() is cupy  # the fixture's


def test_what_is_left_of_an_old_machine_does_not_touch_the_new_one():
    old, array = cupy.cuda.Stream(), cupy.zeros(3)
    with fake_cupy.install() as made:
        stream = cupy.cuda.Stream(non_blocking=True)
        del old, array
        gc.collect()
        assert stream.done and made.allocated == [0, 0]


def test_waits_of_the_host_are_counted(machine):
    x = cupy.zeros(3)
    x += 1
    assert machine.sync_count == 0
    x.get()
    cupy.cuda.Device().synchronize()
    assert machine.sync_count == 2


def test_random_bits_are_the_same_on_both():
    from tgraph.runtime import philox

    assert np.array_equal(
        philox.random_bits(5, 7, 1001, cupy).get(), philox.random_bits(5, 7, 1001)
    )
