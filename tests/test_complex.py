"""Complex numbers: values, compiled code, gradients, and what PyTorch has of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from autograd.finite_differences import check_gradients
from batches import Batches, Call
from complex_cases import CASES, ComplexCase
from sampling import rotating
from tgraph.compiler.pipeline import optimize

import tgraph as tg
import tgraph.nn.functional as F

Array = np.ndarray[Any, Any]
SMOOTH = [case for case in CASES if case.gradient]
DTYPES = [np.complex64, np.complex128]


def name_of(value: Any) -> str:
    return value.name if isinstance(value, ComplexCase) else getattr(value, "__name__", str(value))


def assert_near(found: Array, wanted: Array, ulps: float = 16, label: str = "") -> None:
    """Equal to within some units in the last place of each number's size, or of the largest."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if found.dtype.kind == "b":
        np.testing.assert_array_equal(found, wanted)
        return
    size = np.abs(wanted).max(initial=0.0)
    atol = ulps * np.finfo(found.dtype).eps * size
    np.testing.assert_allclose(found, wanted, atol=atol, rtol=0, err_msg=label)


def of(case: ComplexCase, T: Any = tg) -> Callable[..., Any]:
    return lambda *tensors: case.function(T, *tensors)


VALUES = Batches(lambda case, dtype: Call(of(case), [*map(tg.tensor, case.arrays(dtype))]))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_are_numpy_s(case: ComplexCase, request: pytest.FixtureRequest) -> None:
    for dtype in DTYPES:
        arrays = case.arrays(dtype)
        eager = of(case)(*map(tg.tensor, arrays)).numpy()
        wide = np.asarray(case.reference(*(each.astype(np.complex128) for each in arrays)))
        narrow = {"c": dtype, "f": dtype(0).real.dtype}.get(wide.dtype.kind, wide.dtype)
        assert_near(eager, wide.astype(narrow), 64, f"{case.name} of {dtype.__name__}")
        compiled = VALUES.result(request, case, dtype).numpy()
        assert_near(compiled, eager, 64, f"{case.name} of {dtype.__name__}, compiled")


def strided(array: Array) -> Any:
    """A tensor with gaps between its elements and its rows in another order."""
    spread = np.zeros((*array.T.shape, 3), array.dtype)
    spread[..., 1] = array.T
    return tg.from_numpy(spread[..., 1].T)


def test_strided_operands() -> None:
    """All rows in one compiled function."""

    def every(*tensors: Any) -> list[Any]:
        given = iter(tensors)
        return [case.function(tg, *(next(given) for _ in case.shapes)) for case in CASES]

    arrays = [array for case in CASES for array in case.arrays(seed=1)]
    given = list(map(strided, arrays))
    wanted = every(*map(tg.tensor, arrays))
    for case, *results in zip(CASES, every(*given), tg.compile(every)(*given), wanted, strict=True):
        eager, compiled, expected = (each.numpy() for each in results)
        assert_near(eager, expected, 16, case.name)
        assert_near(compiled, expected, 64, case.name)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)], ids=str)
def test_without_dimensions_or_elements(shape: tuple[int, ...]) -> None:
    rows = [case for case in CASES if case.elementwise]
    operands = np.full(shape, 0.5 - 0.25j)

    def every(*tensors: Any) -> list[Any]:
        return [of(case)(*tensors[: len(case.shapes)]) for case in rows]

    tensors = [tg.tensor(operands), tg.tensor(operands)]
    for found, wanted in zip(tg.compile(every)(*tensors), every(*tensors), strict=True):
        assert found.shape == shape
        assert_near(found.numpy(), wanted.numpy(), 64)


# --- gradients -----------------------------------------------------------------------------------


def in_parts(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of the parts of its operands, giving the parts of its result."""

    def of_parts(*parts: Any) -> Any:
        result = function(*map(tg.view_as_complex, parts))
        return tg.view_as_real(result) if result.is_complex() else result

    return of_parts


@pytest.mark.parametrize("case", SMOOTH, ids=name_of)
def test_gradients_are_those_of_real_functions(case: ComplexCase) -> None:
    """What backward gives for z is dL/dRe(z) + i dL/dIm(z): so are gradients of its parts."""
    arrays = [np.stack([each.real, each.imag], -1) for each in case.arrays()]
    check_gradients(in_parts(of(case)), *arrays, tolerance=2e-5)


@pytest.mark.parametrize("case", rotating(SMOOTH, 4), ids=name_of)
def test_compiled_gradients_are_eager_ones(case: ComplexCase) -> None:
    """A quarter of the rows in each run: the rules are held by the test above."""

    def derivatives(function: Callable[..., Any]) -> list[Any]:
        leaves = [tg.tensor(each, requires_grad=True) for each in case.arrays()]
        return first_and_second(tg, function, leaves)

    compiled = derivatives(tg.compile(of(case)))
    for found, wanted in zip(compiled, derivatives(of(case)), strict=True):
        assert_near(found, wanted, 1000)


def first_and_second(T: Any, function: Callable[..., Any], leaves: Sequence[Any]) -> list[Array]:
    """Gradients of a loss with respect to the leaves, and those of a loss of these."""
    first = T.autograd.grad(loss_of(T, function(*leaves)), leaves, create_graph=True)
    second = [None] * len(leaves)
    connected = [each for each in first if each.requires_grad]
    if connected:
        total = sum(loss_of(T, each) for each in connected)
        second = T.autograd.grad(total, leaves, allow_unused=True)
    found = [each.detach().cpu() for each in (*first, *second) if each is not None]
    return [each.numpy() if T is tg else each.resolve_conj().numpy() for each in found]


def loss_of(T: Any, result: Any) -> Any:
    """A real number that hangs on both parts of every element."""
    weights = T.arange(1, result.numel() + 1, dtype=T.float64).reshape(result.shape)
    parts = (result.real, result.imag) if result.is_complex() else (result, result)
    return (parts[0] * weights).sum() + (parts[1] * weights * weights).sum()


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_and_gradients_are_pytorch_s(case: ComplexCase) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    arrays = case.arrays()
    ours, theirs = ([T.tensor(each, requires_grad=case.gradient) for each in arrays]
                    for T in (tg, torch))  # fmt: skip
    found, wanted = of(case)(*ours), of(case, torch)(*theirs)
    assert_near(found.detach().numpy(), wanted.detach().resolve_conj().numpy(), 64)
    if case.gradient:
        found, wanted = (first_and_second(T, of(case, T), leaves)
                         for T, leaves in ((tg, ours), (torch, theirs)))  # fmt: skip
        for ours_, theirs_ in zip(found, wanted, strict=True):
            assert_near(ours_, theirs_, 4000)


# --- extreme values ------------------------------------------------------------------------------

SIZES = {
    np.complex128: (1e-3, 0.6, 0.8, 1.0, 30.0, 400.0, 800.0, 1e-200, 1e160, 1e300, 1.7e308),
    np.complex64: (1e-3, 0.6, 0.8, 1.0, 15.0, 60.0, 100.0, 1e-25, 1e-40, 1e25, 3e38),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_compiled_functions_hold_for_numbers_of_any_size(dtype: Any) -> None:
    """Where eager code, that is NumPy's, gives a number, to some units of its size."""
    parts = [0.0, -0.0, *SIZES[dtype], *(-each for each in SIZES[dtype]), np.inf, -np.inf, np.nan]
    grid = np.array([complex(re, im) for re in parts for im in parts], dtype)
    names = """abs exp log sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh sgn asinh
        acosh atanh"""

    def every(x: Any) -> list[Any]:
        return [getattr(tg, name)(x) for name in names.split()]

    x = tg.tensor(grid)
    for name, found, wanted in zip(names.split(), tg.compile(every)(x), every(x), strict=True):
        assert_same_size(name, grid, found.numpy(), wanted.numpy())


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_compiled_arithmetic_holds_for_numbers_of_any_size(dtype: Any) -> None:
    parts = [0.0, *SIZES[dtype][::2], *(-each for each in SIZES[dtype][1::3]), np.inf, np.nan]
    grid = np.array([complex(re, im) for re in parts for im in parts], dtype)

    def every(x: Any, y: Any) -> list[Any]:
        return [x + y, x - y, x * y, x / y, x == y]

    pair = tg.tensor(grid[:, None]), tg.tensor(grid)
    for found, wanted in zip(tg.compile(every)(*pair), every(*pair), strict=True):
        with np.errstate(all="ignore"):
            both = grid[:, None] + 0 * grid
        assert_same_size("arithmetic", both, found.numpy(), wanted.numpy(), overflows=True)


def assert_same_size(
    name: str, given: Array, found: Array, wanted: Array, overflows: bool = False
) -> None:
    """Equal parts, or parts that differ by little of the whole; of infinite operands NaN is free.

    With `overflows`, so is what has an infinite part, or NaN, of finite operands.
    """
    if found.dtype.kind == "b":
        np.testing.assert_array_equal(found, wanted)
        return
    finite = np.isfinite(given.real) & np.isfinite(given.imag)
    with np.errstate(all="ignore"):
        size = np.abs(wanted.astype(np.complex128))
        near = 64 * np.finfo(found.dtype).eps * np.where(np.isfinite(size), size, 0.0)
        for a, b in ((found.real, wanted.real), (found.imag, wanted.imag)):
            unknown = np.isnan(a) | np.isnan(b)
            same = (
                (a == b) | (np.abs(a.astype(np.float64) - b) <= near) | (np.isnan(a) & np.isnan(b))
            )
            same |= np.abs(a - b) <= 64 * np.finfo(b.dtype).eps * np.abs(b)
            tiny = np.finfo(b.dtype).tiny
            same |= (np.abs(a) < 64 * tiny) & (np.abs(b) < 64 * tiny)
            same |= (unknown | ~np.isfinite(size)) if overflows else unknown & ~finite
            assert same.all(), (name, given[~same][:4], found[~same][:4], wanted[~same][:4])


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_compiled_special_values_are_those_of_eager_code(dtype: Any) -> None:
    """A NaN in one part spreads to the other where C99 says so, and zeros have its signs."""
    parts = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 1e30, -1e30, np.inf, -np.inf, np.nan]
    grid = np.array([complex(re, im) for re in parts for im in parts], dtype)
    names = """asin acos atan asinh acosh atanh sin cos tan sinh cosh tanh exp exp2 expm1 log log2
        log10 log1p sqrt reciprocal sigmoid"""

    def every(x: Any) -> list[Any]:
        return [getattr(tg, name)(x) for name in names.split()]

    x = tg.tensor(grid)
    for name, found, wanted in zip(names.split(), tg.compile(every)(x), every(x), strict=True):
        pairs = [*zip(*(tg.view_as_real(each).unbind(-1) for each in (found, wanted)))]
        for (a, b), (_, other) in (pairs, pairs[::-1]):
            assert (a.isnan() == b.isnan()).all(), (name, grid[(a.isnan() != b.isnan()).numpy()])
            # Infinities beside a NaN have no sign in C99, and NumPy's change with its version.
            special = (b.isinf() & ~(other.isnan() & a.isinf())) | (b == 0)
            same = b.isnan() | ((a == b) & (a.signbit() == b.signbit())) | ~special
            assert same.all(), (name, grid[~same.numpy()], found[~same], wanted[~same])


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_eager_special_values_and_branch_cuts_are_those_of_pytorch(dtype: Any) -> None:
    """Infinities, NaN, the sides of cuts by the signs of zeros; `sgn` of zeros has no sign."""
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    parts = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan]
    grid = [complex(re, im) for re in parts for im in parts]
    kind = getattr(torch, np.dtype(dtype).name)
    names = """asin atan asinh acosh atanh log log2 log10 sqrt sinh cosh tanh exp exp2"""
    for name in names.split():
        # one by one: PyTorch computes several by other means, that give other zeros
        wanted = np.array([getattr(torch, name)(torch.tensor(z, dtype=kind)).numpy() for z in grid])
        found = getattr(tg, name)(tg.tensor(np.array(grid, dtype))).numpy()
        for a, b in ((found.real, wanted.real), (found.imag, wanted.imag)):
            np.testing.assert_allclose(a, b, rtol=64 * np.finfo(dtype).eps, err_msg=name)
            signs = np.isnan(b) | (np.signbit(a) == np.signbit(b))
            assert signs.all(), (name, np.array(grid)[~signs], found[~signs], wanted[~signs])
    zeros = np.array([complex(re, im) for re in parts[:2] for im in parts[:2]], dtype)
    assert not tg.signbit(tg.view_as_real(tg.sgn(tg.tensor(zeros)))).any()


# --- dtypes, promotion, conversion ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_whole_powers_are_products(dtype: Any) -> None:
    x = tg.tensor(np.array([2.5j, 3 + 4j, complex(np.inf, 1.0), complex(0.0, -0.0)], dtype))
    powers = {1: lambda z: z, 3: lambda z: z * z * z, -1: tg.reciprocal}
    powers[-2] = lambda z: tg.reciprocal(z * z)
    for exponent, product in powers.items():
        for run in (lambda f: f, tg.compile):
            found = run(lambda z, exponent=exponent: z**exponent)(x)
            assert str(found.tolist()) == str(product(x).tolist()), exponent


def test_zeros_of_quotients_have_the_signs_of_eager_ones() -> None:
    x = tg.tensor(np.array([0j, 0j, 1.5j, complex(-0.0, 0.0)]))
    y = tg.tensor(np.array([1.5j, 1 + 1.5j, 1.5j, complex(-0.0, 1.5)]))
    assert str(tg.compile(tg.div)(x, y).tolist()) == str((x / y).tolist())


def test_dtypes_tell_their_parts_and_bits() -> None:
    assert (tg.complex64.bits, tg.complex128.itemsize, tg.complex64.to_real()) == (
        64,
        16,
        tg.float32,
    )
    assert tg.float64.to_complex() is tg.cdouble and tg.complex64.to_complex() is tg.cfloat
    assert tg.complex64.is_differentiable and not tg.complex64.is_floating_point
    assert not tg.int64.is_differentiable and tg.bfloat16.compute is tg.float32
    assert tg.complex64.compute is tg.complex64 and tg.complex64.is_signed
    with pytest.raises(TypeError, match="no complex dtype with parts of"):
        tg.float16.to_complex()


def test_promotion_is_pytorch_s() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    names = ["bool", "uint8", "int64", "bfloat16", "float32", "float64", "complex64", "complex128"]
    shapes = [(), (2,)]
    for name, other, shape, other_shape in (
        (a, b, s, t) for a in names for b in names for s in shapes for t in shapes
    ):
        found, wanted = (
            T.result_type(
                T.zeros(shape, dtype=getattr(T, name)),
                T.zeros(other_shape, dtype=getattr(T, other)),
            )
            for T in (tg, torch)
        )
        assert found.name == str(wanted)[6:], (name, shape, other, other_shape)
    for name, shape in ((a, s) for a in names for s in shapes):
        found, wanted = (
            T.result_type(T.zeros(shape, dtype=getattr(T, name)), 1j) for T in (tg, torch)
        )
        assert found.name == str(wanted)[6:], (name, shape)


def test_python_and_numpy_numbers() -> None:
    assert tg.tensor([1 + 2j, 3]).dtype is tg.complex64
    assert tg.tensor(np.array([1j])).dtype is tg.complex128
    assert (tg.ones(2) * 1j).dtype is tg.complex64 and (tg.arange(2) + 1j).dtype is tg.complex64
    assert tg.tensor(1 + 2j).item() == 1 + 2j and complex(tg.tensor(2j)) == 2j
    assert tg.full((2,), 1j).tolist() == [1j, 1j] and tg.zeros(1, dtype=complex).dtype is tg.cdouble
    assert float(tg.tensor(2 + 0j)) == 2.0 and bool(tg.tensor(1j))
    assert 2j in tg.tensor([1, 2j])
    signs = [tg.tensor(each).imag.item() for each in (complex(1, 0.0), complex(1, -0.0))]
    assert [np.signbit(each) for each in signs] == [False, True]
    zeros = [tg.full((1,), complex(0.0, each)).imag for each in (0.0, -0.0)]
    assert [bool(np.signbit(each.numpy()[0])) for each in zeros] == [False, True]
    with pytest.raises(RuntimeError, match="cannot be converted to type double without overflow"):
        float(tg.tensor(1j))
    for write in (
        lambda x: x.fill_(1j),
        lambda x: x.fill_(np.complex128(1j)),
        lambda x: x.__setitem__(0, 1j),
    ):
        with pytest.raises(RuntimeError, match="cannot be converted to type float32"):
            write(tg.ones(2))


def test_a_cast_to_real_numbers_warns() -> None:
    z = tg.tensor([1 + 2j, 0])
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert z.float().tolist() == [1.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert z.bool().tolist() == [True, False]
        assert z.to(tg.complex128).dtype is tg.complex128
        z.requires_grad_().real.sum().backward()  # a gradient may well lose its imaginary part
        (tg.ones(2, requires_grad=True) * z).abs().sum().backward()


def test_printing_is_pytorch_s() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    for data in (
        [1 + 2j, -0.5 - 1j], 2 + 0j, [], [[1e-5 + 2j, 3 + 1e6j]], [1e10j, 1], [0.25j] * 3000,
        [complex("nan+infj"), complex("-inf-1j")], [[1 + 1j] * 40] * 2,
    ):  # fmt: skip
        for dtype in ("complex64", "complex128"):
            found, wanted = (repr(T.tensor(data, dtype=getattr(T, dtype))) for T in (tg, torch))
            assert found == wanted.replace("torch.", "tgraph.")


def test_memory_is_shared_with_parts_and_with_numpy() -> None:
    array = np.array([1 + 2j, 3 - 1j])
    z = tg.from_numpy(array)
    z.real.add_(10)
    z.imag = 0.5
    tg.view_as_real(z)[1, 1] = -7
    assert array.tolist() == [11 + 0.5j, 13 - 7j]
    assert z.real.stride() == (2,) and tg.view_as_real(z).stride() == (2, 1)
    pairs = tg.zeros(3, 2)
    tg.view_as_complex(pairs)[1] = 4 + 5j
    assert pairs.tolist() == [[0, 0], [4, 5], [0, 0]]
    assert tg.from_dlpack(z).tolist() == z.tolist()
    with pytest.raises(RuntimeError, match="last dimension of size 2"):
        tg.view_as_complex(tg.zeros(2, 3))
    with pytest.raises(RuntimeError, match="stride 1"):
        tg.view_as_complex(tg.zeros(2, 3).t())


def test_writes_through_parts_have_gradients() -> None:
    """What is written over an imaginary part, as eager and as compiled code."""

    def written(z: Any, x: Any) -> Any:
        y = z * 1
        y.imag.copy_(x * x)
        return (y * y).abs().sum()

    found = []
    for function in (written, tg.compile(written)):
        z = tg.tensor([1 + 2j, 3 - 1j], dtype=tg.complex128, requires_grad=True)
        x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
        function(z, x).backward()
        found.append((z.grad.tolist(), x.grad.tolist()))
        np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().real.numpy(), rtol=1e-12)
        np.testing.assert_allclose(x.grad.numpy(), 4 * x.detach().numpy() ** 3, rtol=1e-12)


# --- what complex numbers have not ---------------------------------------------------------------

REFUSED = {
    "floor": lambda z: tg.floor(z),
    "round": lambda z: tg.round(z),
    "lt": lambda z: z < z,
    "ge": lambda z: z >= 1,
    "max": lambda z: z.max(),
    "argmax": lambda z: z.argmax(),
    "amin": lambda z: z.amin(),
    "maximum": lambda z: tg.maximum(z, z),
    "clamp": lambda z: z.clamp(0, 1),
    "sort": lambda z: z.sort(),
    "topk": lambda z: z.topk(1),
    "cummax": lambda z: z.cummax(0),
    "remainder": lambda z: z % z,
    "floor_divide": lambda z: z // z,
    "atan2": lambda z: tg.atan2(z, z),
    "erf": lambda z: tg.erf(z),
    "sign": lambda z: tg.sign(z),
    "bitwise_and": lambda z: z & z,
    "softmax": lambda z: tg.softmax(z, 0),
    "relu": lambda z: tg.relu(z),
    "median": lambda z: z.median(),
    "nanmedian": lambda z: z.nanmedian(),
    "unique": lambda z: z.unique(),
    "bincount": lambda z: z.bincount(),
    "layer_norm": lambda z: F.layer_norm(z, (2,)),
    "batch_norm": lambda z: F.batch_norm(z[:, None], None, None, training=True),
    "mse_loss": lambda z: F.mse_loss(z, z),
    "cosine_similarity": lambda z: F.cosine_similarity(z, z, 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    z = tg.tensor([1 + 2j, 3 - 1j])
    with pytest.raises((NotImplementedError, RuntimeError, TypeError), match=r"omplex|order"):
        REFUSED[name](z)


def test_refusals_of_functions_of_gradients_and_parts() -> None:
    z = tg.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        z.abs().backward(z.detach())
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex"):
        tg.imag(tg.ones(2))
    with pytest.raises(RuntimeError, match="only supported for complex tensors"):
        tg.view_as_real(tg.ones(2))
    with pytest.raises(RuntimeError, match="expected object of scalar type"):
        tg.complex(tg.ones(2), tg.ones(2, dtype=tg.float64))
    with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast"):
        tg.ones(1).add_(z.detach())
    with pytest.raises(RuntimeError, match="Adafactor does not support complex parameters"):
        tg.optim.Adafactor([z])
    assert tg.is_complex(z) and z.is_complex() and not tg.ones(2).is_complex()


# --- compiled functions and devices --------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "NAdam", "Rprop"])
def test_steps_of_complex_parameters_are_pytorchs(name: str) -> None:
    options = {"SGD": {"momentum": 0.9, "weight_decay": 0.01}}.get(name, {})

    def trained(T: Any) -> Array:
        z = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128, requires_grad=True)
        optimizer = getattr(T.optim, name)([z], lr=0.1, **options)

        def step() -> None:
            optimizer.zero_grad()
            ((z * z - 1j).abs() ** 2).sum().backward()
            T.nn.utils.clip_grad_norm_([z], 1.0)
            optimizer.step()

        step = tg.compile(step) if T is tg else step
        for _ in range(3):
            step()
        return z.detach().numpy()

    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    np.testing.assert_allclose(trained(tg), trained(torch), rtol=1e-10)


def test_compiled_functions_write_complex_arguments_and_are_checked() -> None:
    @tg.compile(check=True)
    def scaled(z: Any, factor: complex) -> Any:
        z *= factor
        return z.abs().sum()

    z = tg.tensor([[1 + 2j, 3 - 1j], [0j, 1j]])
    columns = z.t()
    for factor in (2j, 0.5, complex(-0.0, 1.0)):
        wanted = columns.numpy().copy() * np.complex64(factor)
        scaled(columns, factor)
        np.testing.assert_allclose(z.t().numpy(), wanted, rtol=1e-6)


def test_python_functions_between_kernels_get_complex_arrays() -> None:
    seen: list[Array] = []

    def through_numpy(z: Any) -> Any:
        found = tg.tracing.host_call(
            lambda array: np.fft.fft(array).astype(np.complex64), z * 2, results=z
        )
        tg.tracing.host_call(seen.append, found, effect="ordered")
        return found + 1

    z = tg.tensor([1 + 2j, 3 - 1j, 0.5j])
    found = tg.compile(through_numpy)(z)
    np.testing.assert_allclose(found.numpy(), np.fft.fft(z.numpy() * 2) + 1, rtol=1e-5)
    np.testing.assert_array_equal(seen[0] + 1, found.numpy())


def test_no_pass_behind_split_complex_sees_complex_values() -> None:
    def function(z: Any, w: Any) -> Any:
        return (z @ w).exp().cumprod(0) * 2j

    graph = tg.trace(function, *(tg.tensor(np.full((3, 3), 1j)) for _ in range(2)))
    seen: dict[str, bool] = {}

    def look(name: str, after: Any) -> None:
        seen[name] = any(node.type.dtype.is_complex for node in after.nodes)

    optimize(graph, look)
    behind = list(seen)[list(seen).index("split_complex") :]
    assert len(behind) > 5 and not any(seen[name] for name in behind)


def test_programs_for_cuda_have_real_numbers_alone() -> None:
    def function(z: Any, w: Any) -> Any:
        return (z * w).sum(0) / w[0].abs()

    z = tg.tensor(np.full((8, 16), 1 + 1j, np.complex64))
    program = tg.cuda.program(function, z, z)
    assert all("complex" not in param.dtype.name for info in program.kernels if info.kernel
               for param in info.kernel.params)  # fmt: skip
    assert "const float*" in program.source


# --- random programs -----------------------------------------------------------------------------

STEPS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b.conj(),
    lambda a, b: a * b,
    lambda a, b: a / (b.abs() + 1),
    lambda a, b: tg.tanh(a) * 1j,
    lambda a, b: tg.sqrt(a * a + 3),
    lambda a, b: tg.complex(a.real, b.imag),
    lambda a, b: tg.where(a.real.detach() > 0, a, b),
    lambda a, b: a @ b.mT / 3,
    lambda a, b: a.flip(0).t(),
    lambda a, b: tg.cat([a[1:], b[:1]]),
    lambda a, b: a - b.sum(0, keepdim=True) / 3,
    lambda a, b: tg.view_as_complex(tg.view_as_real(a).flip(-1)),
    lambda a, b: tg.cumsum(a, 1) / 3 + b.prod(0),
    lambda a, b: tg.sgn(a) + b[tg.tensor([2, 0, 1])],
)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_are_the_same_compiled(seed: int) -> None:
    rng = np.random.default_rng(seed)
    choices = [
        (rng.integers(len(STEPS)), rng.integers(0, 99), rng.integers(0, 99)) for _ in range(8)
    ]

    def program(x: Any, y: Any) -> Any:
        values = [x, y]
        for step, one, other in choices:
            values.append(STEPS[step](values[one % len(values)], values[other % len(values)]))
        return values[-1] + values[-2] * values[-3]

    arrays = [rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2)]

    def results(function: Callable[..., Any]) -> list[Array]:
        leaves = [tg.tensor(each, requires_grad=True) for each in arrays]
        found = function(*leaves)
        loss = loss_of(tg, found)
        return [found.detach().numpy(), *(
            each.numpy() for each in tg.autograd.grad(loss, leaves, materialize_grads=True)
        )]  # fmt: skip

    for found, wanted in zip(results(tg.compile(program)), results(program), strict=True):
        assert_near(found, wanted, 1e5, str(choices))


@pytest.mark.parametrize("upper", [False, True])
def test_gradients_of_cholesky_factors_are_pytorchs(upper: bool) -> None:
    """Murray (2016), equation 10, which is no Hermitian matrix where the cotangent is none."""
    rng = np.random.default_rng(3)
    root, g = (rng.normal(size=(2, 3, 3)) + 1j * rng.normal(size=(2, 3, 3)) for _ in range(2))
    root, g = root[0], g[0]
    x = tg.tensor(root @ root.conj().T + np.eye(3), requires_grad=True)
    factor = tg.linalg.cholesky(x, upper=upper)
    (found,) = tg.autograd.grad(factor, x, tg.tensor(g.conj().T if upper else g))
    lower = factor.detach().numpy()
    lower = lower.conj().T if upper else lower
    inner = np.tril(lower.conj().T @ g)
    inverse = np.linalg.inv(lower)
    wanted = inverse.conj().T @ (inner + np.tril(inner, -1).conj().T) / 2 @ inverse
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-9)


def test_sizes_of_complex_residuals_are_real() -> None:
    a, b = tg.randn(4, 2, dtype=tg.complex64), tg.randn(4, 1, dtype=tg.complex64)
    for driver in ("gelsy", "gelsd", "gels"):
        found = tg.linalg.lstsq(a, b, driver=driver)
        assert found.residuals.dtype == found.singular_values.dtype == tg.float32


OF_REAL_NUMBERS = (
    *(f"special.{name}" for name in (
        "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "erfc", "erfcx",
        "erfinv", "gammaln", "i0", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri",
        "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1",
    )),
    *(f"special.{name}" for name in (
        "gammainc", "gammaincc", "zeta", "chebyshev_polynomial_t", "hermite_polynomial_h",
        "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
    )),
    "bucketize", "searchsorted",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_REAL_NUMBERS)
def test_functions_of_real_numbers_refuse_complex_ones(name: str) -> None:
    """They would be those of the real parts."""
    function, x = getter(name), tg.tensor([0.5 + 0.3j, 1.7 - 0.4j])
    count = 1 if name in OF_REAL_NUMBERS[:21] else 2
    for call in (function, tg.compile(function)):
        with pytest.raises(NotImplementedError, match="complex"):
            call(*[x] * count)


def getter(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = attrgetter(name)(tg)
    return found


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_numbers_between_complex_ends(name: str) -> None:
    make = getattr(tg, name)
    for call in (make, tg.compile(make)):
        found = call(0.5j, 2, 3)
        wanted = getattr(np, name)(0.5j, 2, 3).astype(np.complex64)
        assert_near(found.numpy(), wanted)
        with pytest.raises(RuntimeError, match="complex ends"):
            call(0.5j, 2, 3, dtype=tg.float32)


def test_normal_numbers_have_the_type_of_their_mean() -> None:
    for mean in (tg.ones(3, dtype=tg.float16), tg.ones(3) + 1j):
        found = tg.normal(mean, tg.ones(3, dtype=tg.float64))
        assert found.dtype is mean.dtype
    assert tg.normal(0.0, 1.0, (8,), dtype=tg.complex64).imag.abs().max() > 0
