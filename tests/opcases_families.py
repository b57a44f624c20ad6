"""Rows that test many operations of a family at once, as one function of several results.

The name of such a row has those of its operations, with commas between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from opcase import TRUTH, case, normal, positive, share, small_counts
from opcases_linalg import definite, near_unit
from scipy import linalg as scipy_linalg

import tgraph as tg

Pair = tuple[Callable[..., Any], Callable[..., Any]]
FEW = (tg.float64, tg.float32)


MOST = 6
"""Operations of a row: the time to compile a function grows faster than its size."""


def family(operations: dict[str, Pair], *arguments: Any, **options: Any) -> None:
    """Rows of some operations each: every function and its reference take all arguments.

    Where `result` has the dtype of each result, all operations are in one row.
    """
    names = list(operations)
    most = len(names) if isinstance(options.get("result"), tuple) else MOST
    for first in range(0, len(names), most):
        part = {name: operations[name] for name in names[first : first + most]}
        _row(part, *arguments, **options)


def _row(operations: dict[str, Pair], *arguments: Any, **options: Any) -> None:
    def both(which: int) -> Callable[..., Any]:
        def run(*given: Any) -> tuple[Any, ...]:
            found: list[Any] = []
            for pair in operations.values():
                result = pair[which](*given)
                found += result if isinstance(result, (tuple, list)) else [result]
            return tuple(found)

        return run

    case(",".join(operations), both(0), both(1), *arguments, **{"dtypes": FEW, **options})


family({
    "asinh": (tg.asinh, np.arcsinh),
    "atanh": (tg.atanh, np.arctanh),
    "sinc": (tg.sinc, np.sinc),
    "logit": (lambda x: (tg.logit(x), tg.logit(x, 0.3)),
              lambda x: tuple(np.log(y / (1 - y)) for y in (x, np.clip(x, 0.3, 0.7)))),
    "deg2rad": (tg.deg2rad, np.deg2rad),
    "rad2deg": (tg.rad2deg, np.rad2deg),
    "acosh": (lambda x: tg.acosh(x + 1), lambda x: np.arccosh(x + 1)),
    "clamp_max": (lambda x: tg.clamp_max(x, 0.5), lambda x: np.minimum(x, 0.5)),
    "clamp_min": (lambda x: tg.clamp_min(x, 0.5), lambda x: np.maximum(x, 0.5)),
    "conj_physical": (tg.conj_physical, lambda x: x),
    "resolve_conj": (lambda x: x.resolve_conj() + 1, lambda x: x + 1),
    "resolve_neg": (lambda x: x.resolve_neg() + 2, lambda x: x + 2),
}, ((5,), share), tolerance=64)  # fmt: skip
family({
    "logaddexp": (tg.logaddexp, np.logaddexp),
    "logaddexp2": (tg.logaddexp2, np.logaddexp2),
    "hypot": (tg.hypot, np.hypot),
    "fmax": (tg.fmax, np.fmax),
    "fmin": (tg.fmin, np.fmin),
    "copysign": (tg.copysign, np.copysign),
    "ldexp": (tg.ldexp, lambda x, y: x * 2**y),
}, ((3, 4), normal), ((4,), normal), tolerance=64)  # fmt: skip
family({
    "float_power": (lambda x: tg.float_power(x, 1.5), lambda x: x**1.5),
}, ((3, 4), positive), dtypes=(tg.float64,))  # fmt: skip
family({
    "gcd": (tg.gcd, np.gcd),
    "lcm": (tg.lcm, np.lcm),
}, ((3, 4), small_counts), ((4,), normal), dtypes=(tg.int64, tg.int32), gradient=False)  # fmt: skip
family({
    "signbit": (tg.signbit, np.signbit),
    "isposinf": (lambda x: tg.isposinf(1 / x.round()), lambda x: np.isposinf(1 / np.round(x))),
    "isneginf": (lambda x: tg.isneginf(1 / x.round()), lambda x: np.isneginf(1 / np.round(x))),
    "isreal": (tg.isreal, np.isreal),
    "heaviside": (lambda x: tg.heaviside(x.round(), x), lambda x: np.heaviside(np.round(x), x)),
    "nextafter": (lambda x: tg.nextafter(x, x.abs()) != x, lambda x: x < 0),
    "frexp": (tg.frexp, np.frexp),
}, ((8,), normal), gradient=False,
   result=(*(TRUTH,) * 4, "same", TRUTH, "same", tg.int32))  # fmt: skip


FUNCTIONS = scipy.special
family({
    "erfc": (tg.erfc, FUNCTIONS.erfc),
    "special.erfcx": (tg.special.erfcx, FUNCTIONS.erfcx),
    "special.ndtr": (tg.special.ndtr, FUNCTIONS.ndtr),
    "special.log_ndtr": (lambda x: tg.special.log_ndtr(4 - 8 * x),
                         lambda x: FUNCTIONS.log_ndtr(4 - 8 * x)),
    "special.ndtri": (lambda x: tg.special.ndtri(x * x), lambda x: FUNCTIONS.ndtri(x * x)),
    "special.entr": (tg.special.entr, FUNCTIONS.entr),
    "special.xlog1py": (lambda x: tg.special.xlog1py(x, x), lambda x: FUNCTIONS.xlog1py(x, x)),
    "i0": (lambda x: tg.i0(x * 12), lambda x: FUNCTIONS.i0(x * 12)),
    "special.i0e": (tg.special.i0e, FUNCTIONS.i0e),
    "special.i1": (tg.special.i1, FUNCTIONS.i1),
    "special.i1e": (lambda x: tg.special.i1e(x * 12), lambda x: FUNCTIONS.i1e(x * 12)),
    "special.zeta": (lambda x: tg.special.zeta(2.5, x), lambda x: FUNCTIONS.zeta(2.5, x)),
    "special.bessel_j0": (lambda x: tg.special.bessel_j0(x * 14), lambda x: FUNCTIONS.j0(x * 14)),
    "special.bessel_j1": (lambda x: tg.special.bessel_j1(-14 * x), lambda x: FUNCTIONS.j1(-14 * x)),
    "special.bessel_y0": (lambda x: tg.special.bessel_y0(x * 14), lambda x: FUNCTIONS.y0(x * 14)),
    "special.bessel_y1": (lambda x: tg.special.bessel_y1(x * 14), lambda x: FUNCTIONS.y1(x * 14)),
    "special.spherical_bessel_j0": (tg.special.spherical_bessel_j0,
                                    lambda x: FUNCTIONS.spherical_jn(0, x)),
    "special.modified_bessel_k0": (lambda x: tg.special.modified_bessel_k0(x * 4),
                                   lambda x: FUNCTIONS.k0(x * 4)),
    "special.modified_bessel_k1": (lambda x: tg.special.modified_bessel_k1(x * 4),
                                   lambda x: FUNCTIONS.k1(x * 4)),
    "special.scaled_modified_bessel_k0": (lambda x: tg.special.scaled_modified_bessel_k0(x * 4),
                                          lambda x: FUNCTIONS.k0e(x * 4)),
    "special.scaled_modified_bessel_k1": (lambda x: tg.special.scaled_modified_bessel_k1(x * 4),
                                          lambda x: FUNCTIONS.k1e(x * 4)),
    "special.airy_ai": (lambda x: tg.special.airy_ai(16 * x - 11),
                        lambda x: FUNCTIONS.airy(16 * x - 11)[0]),
    "igamma": (lambda x: tg.igamma(x * x, x), lambda x: FUNCTIONS.gammainc(x * x, x)),
    "igammac": (lambda x: tg.igammac(9 * x, 12 * x), lambda x: FUNCTIONS.gammaincc(9 * x, 12 * x)),
    "mvlgamma": (lambda x: tg.mvlgamma(x + 1, 3), lambda x: FUNCTIONS.multigammaln(x + 1, 3)),
}, ((5,), share), dtypes=(tg.float64,), tolerance=2e4, second=False, layouts=False)  # fmt: skip


POLYNOMIALS = {
    "chebyshev_polynomial_t": FUNCTIONS.eval_chebyt,
    "chebyshev_polynomial_u": FUNCTIONS.eval_chebyu,
    "chebyshev_polynomial_v": lambda n, x: (
        FUNCTIONS.eval_chebyu(n, x) - FUNCTIONS.eval_chebyu(n - 1, x)),
    "chebyshev_polynomial_w": lambda n, x: (
        FUNCTIONS.eval_chebyu(n, x) + FUNCTIONS.eval_chebyu(n - 1, x)),
    "hermite_polynomial_h": FUNCTIONS.eval_hermite,
    "hermite_polynomial_he": FUNCTIONS.eval_hermitenorm,
    "laguerre_polynomial_l": FUNCTIONS.eval_laguerre,
    "legendre_polynomial_p": FUNCTIONS.eval_legendre,
}  # fmt: skip


def _ends(rng: Any, shape: tuple[int, ...]) -> Any:
    """At the ends of [-1, 1], inside and outside."""
    return np.array([[-1.7], [-1.0], [-0.4], [0.6], [1.0], [1.3]])


def _degrees(rng: Any, shape: tuple[int, ...]) -> Any:
    """From 0 on; they are cut to whole numbers."""
    return rng.permutation(9)[: int(np.prod(shape))].reshape(shape) + 0.4


def _polynomials(name: str, f: Any) -> dict[str, Pair]:
    found = getattr(tg.special, name)
    pairs = {f"special.{name}": (found, lambda x, n: f(n.astype(int), x))}
    if shifted := getattr(tg.special, f"shifted_{name}", None):
        pairs[f"special.shifted_{name}"] = shifted, lambda x, n: f(n.astype(int), 2 * x - 1)
    return pairs


family(
    {key: pair for item in POLYNOMIALS.items() for key, pair in _polynomials(*item).items()},
    ((6, 1), _ends), ((5,), _degrees), dtypes=(tg.float64,), tolerance=2e4, second=False,
    layouts=False,
)  # fmt: skip


def _spectra(T: Any, x: Any, axes: str) -> tuple[Any, ...]:
    """Real results of each kind of transform, of lengths that are cut in several ways."""
    wide = T.concatenate((x, x * x), 1)  # 72 points
    return (
        T.fft.fft(wide).real, T.fft.ifft(wide, n=37).imag, abs(T.fft.rfft(x, norm="ortho")),
        T.fft.irfft(T.fft.rfft(x), n=11), T.fft.hfft(x, norm="forward"), T.fft.ihfft(x).imag,
        T.fft.fft2(x, norm="forward").imag, abs(T.fft.rfftn(x, s=(3, 10), **{axes: (0, 1)})),
        T.fft.irfft2(T.fft.fftshift(x)), T.fft.ifftn(T.fft.ifftshift(x)).real,
    )  # fmt: skip


family({
    "fft": (lambda x: _spectra(tg, x, "dim"), lambda x: _spectra(np, x, "axes")),
}, (2, 36), dtypes=(tg.float64,), tolerance=400, second=False, layouts=False)  # fmt: skip


def _pieces(x: Any, hop: int, window: Any) -> Any:
    size = len(window)
    starts = range(0, x.shape[-1] - size + 1, hop)
    return np.stack([x[..., at : at + size] * window for at in starts], -2)


def _short_spectra(T: Any, x: Any) -> tuple[Any, ...]:
    """Real results: with padding and half of a spectrum, without, and what a signal is again."""
    window = np.array([0.2, 0.7, 1.0, 0.6, 0.3])
    wide = np.array([0.0, *window, 0.0, 0.0])[:-1]
    if T is np:
        padded = np.pad(x, ((0, 0), (3, 3)), "reflect")
        half = np.fft.rfft(_pieces(padded, 2, wide), norm="ortho").swapaxes(1, 2)
        whole = np.fft.fft(_pieces(x, 3, np.ones(6))).swapaxes(1, 2)
        return half.real, half.imag, whole.real + whole.imag, x[:, :16] * 1.5
    window = tg.tensor(window, dtype=x.dtype, device=x.device)
    half = tg.stft(x, 7, 2, 5, window, normalized=True, return_complex=True)
    whole = x.stft(6, 3, center=False, onesided=False, return_complex=False)
    signal = tg.istft(half * 1.5, 7, 2, 5, window, normalized=True, length=16)
    return half.real, half.imag, whole.sum(-1), signal


family({
    "stft,istft": (lambda x: _short_spectra(tg, x), lambda x: _short_spectra(np, x)),
}, (2, 20), dtypes=(tg.float64,), tolerance=4000, second=False, layouts=False)  # fmt: skip


def _masked(reduce: Callable[..., Any], identity: float) -> Callable[[Any], Any]:
    return lambda x: reduce(np.where(KEPT, x, identity), 1)


KEPT = np.array([[True, False, True, True], [False, True, True, False], [True] * 4])


def _mask(x: Any) -> Any:
    return tg.tensor(KEPT, device=x.device)


family({
    "masked.sum": (lambda x: tg.masked.sum(x, 1, mask=_mask(x)), _masked(np.sum, 0)),
    "masked.prod": (lambda x: tg.masked.prod(x, (1,), mask=_mask(x)), _masked(np.prod, 1)),
    "masked.amax": (lambda x: tg.masked.amax(x, 1, mask=_mask(x)), _masked(np.amax, -np.inf)),
    "masked.amin": (lambda x: tg.masked.amin(x, 1, mask=_mask(x)), _masked(np.amin, np.inf)),
    "masked.argmax": (lambda x: tg.masked.argmax(x, 1, mask=_mask(x), dtype=tg.int64),
                      _masked(np.argmax, -np.inf)),
    "masked.argmin": (lambda x: tg.masked.argmin(x, 1, mask=_mask(x), dtype=tg.int64),
                      _masked(np.argmin, np.inf)),
    "masked.mean": (lambda x: tg.masked.mean(x, 1, mask=_mask(x)), _masked(np.nanmean, np.nan)),
    "masked.median": (lambda x: tg.masked.median(x, 1, mask=_mask(x)),
                      lambda x: np.nanquantile(np.where(KEPT, x, np.nan), 0.5, 1, method="lower")),
    "masked.var": (lambda x: tg.masked.var(x, 1, mask=_mask(x)),
                   lambda x: np.nanvar(np.where(KEPT, x, np.nan), 1, ddof=1)),
    "masked.std": (lambda x: tg.masked.std(x, unbiased=False, mask=_mask(x)[0]),
                   lambda x: x[:, KEPT[0]].std()),
    "masked.norm": (lambda x: tg.masked.norm(x, 3, 1, mask=_mask(x)),
                    lambda x: (np.abs(np.where(KEPT, x, 0)) ** 3).sum(1) ** (1 / 3)),
    "masked.cumsum": (lambda x: tg.masked.cumsum(x, 1, mask=_mask(x)), _masked(np.cumsum, 0)),
    "masked.cumprod": (lambda x: tg.masked.cumprod(x, 1, mask=_mask(x)), _masked(np.cumprod, 1)),
    "masked.softmax": (lambda x: tg.masked.softmax(x, 1, mask=_mask(x)),
                       _masked(FUNCTIONS.softmax, -np.inf)),
    "masked.softmin": (lambda x: tg.masked.softmin(x, 1, mask=_mask(x)),
                       lambda x: FUNCTIONS.softmax(np.where(KEPT, -x, -np.inf), 1)),
    "masked.log_softmax": (
        lambda x: tg.where(_mask(x), tg.masked.log_softmax(x, 1, mask=_mask(x)), 0),
        lambda x: np.where(KEPT, FUNCTIONS.log_softmax(np.where(KEPT, x, -np.inf), 1), 0)),
    "masked.normalize": (
        lambda x: tg.masked.normalize(x, 2, 1, mask=_mask(x)),
        _masked(lambda x, axis: x / np.linalg.norm(x, axis=axis, keepdims=True), 0)),
    "masked.logsumexp": (lambda x: tg.masked.logsumexp(x, 1, mask=_mask(x)),
                         _masked(FUNCTIONS.logsumexp, -np.inf)),
    "masked.logaddexp": (
        lambda x: tg.masked.logaddexp(x, x * 2, other_mask=_mask(x)),
        lambda x: np.logaddexp(x, np.where(KEPT, x * 2, -np.inf))),
}, (3, 4), result=(*("same",) * 4, tg.int64, tg.int64, *("same",) * 13), tolerance=64,
   layouts=False)  # fmt: skip


# -- rearranging -----------------------------------------------------------------------------


def _embedded(x: Any) -> Any:
    found = np.zeros((*x.shape[:-1], x.shape[-1] + 1, x.shape[-1] + 1))
    places = np.arange(x.shape[-1])
    found[..., places, places + 1] = x
    return np.moveaxis(found, (-2, -1), (0, 2))


def _with(x: Any, at: Any, value: Any) -> Any:
    found = x.copy()
    found[at] = value
    return found


def _filled(x: Any) -> Any:
    found = x.copy()
    np.fill_diagonal(found, 3.0)
    return found


_rows, _columns = np.diag_indices(4)
family({
    "atleast_1d": (lambda x: tg.atleast_1d(x[0, 0]), lambda x: np.atleast_1d(x[0, 0])),
    "atleast_2d": (lambda x: tg.atleast_2d(x[0]), lambda x: np.atleast_2d(x[0])),
    "atleast_3d": (lambda x: tg.atleast_3d(x[0], x),
                   lambda x: (np.atleast_3d(x[0]), np.atleast_3d(x))),
    "column_stack": (lambda x: tg.column_stack((x, x[:, 0])),
                     lambda x: np.column_stack((x, x[:, 0]))),
    "dstack": (lambda x: tg.dstack((x, x * 2)), lambda x: np.dstack((x, x * 2))),
    "hsplit": (lambda x: tg.hsplit(x, 2), lambda x: np.hsplit(x, 2)),
    "vsplit": (lambda x: tg.vsplit(x, [1, 2]), lambda x: np.vsplit(x, [1, 2])),
    "dsplit": (lambda x: tg.dsplit(x.reshape(1, 4, 6), 3),
               lambda x: np.dsplit(x.reshape(1, 4, 6), 3)),
    "split_with_sizes": (lambda x: tg.split_with_sizes(x, [1, 5], 1),
                         lambda x: np.split(x, [1], 1)),
    "unsafe_split": (lambda x: tg.unsafe_split(x, 3), lambda x: np.split(x, [3])),
    "unsafe_chunk": (lambda x: tg.unsafe_chunk(x, 2), lambda x: np.split(x, 2)),
    "fliplr": (tg.fliplr, np.fliplr),
    "flipud": (tg.flipud, np.flipud),
    "rot90": (lambda x: (tg.rot90(x), tg.rot90(x, -1), tg.rot90(x, 2)),
              lambda x: (np.rot90(x), np.rot90(x, -1), np.rot90(x, 2))),
    "diag_embed": (lambda x: tg.diag_embed(x, 1, 0, 2), _embedded),
    "diagflat": (lambda x: tg.diagflat(x[:2, :2], -1), lambda x: np.diagflat(x[:2, :2], -1)),
    "select_scatter": (lambda x: tg.select_scatter(x, x[:, 0], 1, -1),
                       lambda x: _with(x, np.s_[:, -1], x[:, 0])),
    "slice_scatter": (lambda x: tg.slice_scatter(x, x[:, :3], 1, 0, 6, 2),
                      lambda x: _with(x, np.s_[:, ::2], x[:, :3])),
    "diagonal_scatter": (lambda x: tg.diagonal_scatter(x, x[0, :4]),
                         lambda x: _with(x, (_rows, _columns), x[0, :4])),
    "as_strided_scatter": (
        lambda x: tg.as_strided_scatter(x.contiguous(), x[0, :4], (4,), (1,), 6),
        lambda x: _with(x, np.s_[1, :4], x[0, :4])),
    "adjoint": (tg.adjoint, np.transpose),
    "sum_to_size": (lambda x: x.sum_to_size(4, 1), lambda x: x.sum(1, keepdims=True)),
    "fill_diagonal": (lambda x: x.clone().fill_diagonal_(3.0), _filled),
}, (4, 6), second=False, layouts=False)  # fmt: skip
family({
    "unravel_index": (lambda x: tg.unravel_index(x, (3, 5)), lambda x: np.unravel_index(x, (3, 5))),
}, ((4,), small_counts), dtypes=(tg.int64,), gradient=False)  # fmt: skip


# -- statistics ------------------------------------------------------------------------------


def _quantiles(T: Any, x: Any, axis: str, how: str) -> tuple[Any, ...]:
    q = np.array([0.2, 0.75])
    q = q if isinstance(x, np.ndarray) else x.new_tensor(q)
    ways = ("linear", "lower", "higher", "midpoint", "nearest")
    return (
        *(T.quantile(x, 0.4, **{axis: 1, how: each}) for each in ways),
        T.quantile(x, q, **{axis: 0}),
    )  # fmt: skip


def _holes(T: Any, x: Any) -> Any:
    return T.where(x > 1, float("nan"), x)


family({
    "quantile": (lambda x: _quantiles(tg, x, "dim", "interpolation"),
                 lambda x: _quantiles(np, x, "axis", "method")),
    "nanquantile": (lambda x: tg.nanquantile(_holes(tg, x), 0.3, 1),
                    lambda x: np.nanquantile(_holes(np, x), 0.3, 1)),
    "nansum": (lambda x: tg.nansum(_holes(tg, x), 0), lambda x: np.nansum(_holes(np, x), 0)),
    "nanmean": (lambda x: tg.nanmean(_holes(tg, x), 1), lambda x: np.nanmean(_holes(np, x), 1)),
    "cov": (tg.cov, np.cov),
    "corrcoef": (tg.corrcoef, np.corrcoef),
    "msort": (tg.msort, lambda x: np.sort(x, 0)),
    "mode": (lambda x: tg.mode(x.round(), 1).values * x[:, 0],
             lambda x: np.array([min(row, key=lambda v: (-row.count(v), v))
                                 for row in np.round(x).tolist()]) * x[:, 0]),
    "bucketize": (lambda x: tg.bucketize(x, x.new_tensor([-1.0, 0.0, 1.0]), out_int32=True) + x,
                  lambda x: np.digitize(x, [-1.0, 0.0, 1.0], right=True) + x),
    "isin": (lambda x: tg.isin(x.round(), x.new_tensor([1.0, 0.0])) * x,
             lambda x: np.isin(np.round(x), [1, 0]) * x),
    "histc": (lambda x: tg.histc(x, 5) + x[0], lambda x: np.histogram(x, 5)[0] + x[0]),
    "diff": (lambda x: (tg.diff(x, 2), tg.diff(x, dim=0, append=x)),
             lambda x: (np.diff(x, 2), np.diff(x, axis=0, append=x))),
    "trapezoid": (lambda x: (tg.trapezoid(x), tg.trapezoid(x, x[0].sort()[0])),
                  lambda x: (np.trapezoid(x), np.trapezoid(x, np.sort(x[0])))),
    "cumulative_trapezoid": (lambda x: tg.cumulative_trapezoid(x, dx=2),
                             lambda x: np.cumsum(x[:, 1:] + x[:, :-1], 1)),
    "gradient": (lambda x: tg.gradient(x, spacing=2, edge_order=2),
                 lambda x: np.gradient(x, 2, edge_order=2)),
}, (4, 5), dtypes=(tg.float64,), second=False, layouts=False, tolerance=64)  # fmt: skip


# -- products --------------------------------------------------------------------------------


def _distances(x: Any, y: Any, p: float) -> Any:
    return (np.abs(x[:, None] - y[None]) ** p).sum(-1) ** (1 / p)


def _pairwise(x: Any, p: float) -> Any:
    return _distances(x, x, p)[np.triu_indices(len(x), 1)]


def _pairs(x: Any, y: Any) -> Any:
    return np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)


def _renormed(x: Any) -> Any:
    sizes = np.sqrt((x * x).sum(1, keepdims=True))
    return np.where(sizes > 1, x / (sizes + 1e-7), x)


family({
    "cross": (lambda x, y: (tg.cross(x[:2], y), tg.linalg.cross(y, x[2:])),
              lambda x, y: (np.cross(x[:2], y), np.cross(y, x[2:]))),
    "kron": (tg.kron, np.kron),
    "addr": (lambda x, y: tg.addr(x, x[:, 0], y[0], beta=2, alpha=3),
             lambda x, y: 2 * x + 3 * np.outer(x[:, 0], y[0])),
    "addbmm": (lambda x, y: tg.addbmm(x[:, :2], x[None], y.mT[None], alpha=2),
               lambda x, y: x[:, :2] + 2 * x @ y.T),
    "cdist": (lambda x, y: (tg.cdist(x, y), tg.cdist(x, y, 3.0),
                            tg.cdist(x, y, compute_mode="use_mm_for_euclid_dist")),
              lambda x, y: (_distances(x, y, 2), _distances(x, y, 3), _distances(x, y, 2))),
    "pdist": (lambda x, y: (tg.pdist(x), tg.nn.functional.pdist(y, 3.0)),
              lambda x, y: (_pairwise(x, 2), _pairwise(y, 3))),
    "dist": (lambda x, y: tg.dist(x[0], y[0], 3), lambda x, y: _distances(x[:1], y[:1], 3)[0, 0]),
    "renorm": (lambda x, y: tg.renorm(x, 2, 0, 1.0), lambda x, y: _renormed(x)),
    "vander": (lambda x, y: (tg.vander(x[0]), tg.linalg.vander(x)),
               lambda x, y: (np.vander(x[0]),
                             np.stack([np.vander(row, increasing=True) for row in x]))),
    "cartesian_prod": (lambda x, y: tg.cartesian_prod(x[0], y[1]),
                       lambda x, y: _pairs(x[0], y[1])),
    "combinations": (lambda x, y: tg.combinations(x[0]),
                     lambda x, y: x[0][[[0, 1], [0, 2], [1, 2]]]),
    "block_diag": (lambda x, y: tg.block_diag(x, y[0]),
                   lambda x, y: scipy_linalg.block_diag(x, y[0])),
    "linalg.vecdot": (lambda x, y: tg.linalg.vecdot(x[:2], y),
                      lambda x, y: (x[:2] * y).sum(-1)),
    "linalg.multi_dot": (lambda x, y: tg.linalg.multi_dot([y, x.mT, x, y[0]]),
                         lambda x, y: np.linalg.multi_dot([y, x.T, x, y[0]])),
    "chain_matmul": (lambda x, y: tg.chain_matmul(x, y.mT), lambda x, y: x @ y.T),
}, (4, 3), (2, 3), tolerance=400, second=False, layouts=False)  # fmt: skip


# -- matrices --------------------------------------------------------------------------------


def _norms(T: Any, x: Any, keep: str) -> tuple[Any, ...]:
    flat = x.reshape(-1)
    orders = ("fro", "nuc", 1, -1, 2, np.inf, -np.inf)
    return (
        T.norm(x), *(T.norm(x, order) for order in orders),
        *(T.norm(flat, order) for order in (1, 2, 3, np.inf)),
        T.norm(x, 3, **{keep: 1}),
    )  # fmt: skip


def _references(x: Any) -> tuple[Any, ...]:
    return _norms(np.linalg, x, "axis")


family({
    "linalg.norm": (lambda x: _norms(tg.linalg, x, "dim"), _references),
    "linalg.matrix_norm": (lambda x: tg.linalg.matrix_norm(tg.stack([x, 2 * x], -1), 1, (0, 1)),
                           lambda x: np.linalg.norm(x, 1) * np.array([1.0, 2.0])),
    "linalg.vector_norm": (lambda x: tg.linalg.vector_norm(x, 0.5, (0, 1), True),
                           lambda x: (np.abs(x) ** 0.5).sum(keepdims=True) ** 2),
    "norm": (lambda x: tg.norm(x, "nuc"), lambda x: np.linalg.norm(x, "nuc")),
    "linalg.pinv": (tg.linalg.pinv, np.linalg.pinv),
    "pinverse": (lambda x: tg.pinverse(x.mT), lambda x: np.linalg.pinv(x.T)),
    "linalg.lstsq": (lambda x: tg.linalg.lstsq(x, x * x, driver="gelsd")[:2],
                     lambda x: np.linalg.lstsq(x, x * x, rcond=None)[:2]),
    "linalg.cond": (lambda x: (tg.linalg.cond(x), tg.linalg.cond(near_unit(x[:3]), 1)),
                    lambda x: (np.linalg.cond(x), np.linalg.cond(near_unit(x[:3]), 1))),
    "svd": (lambda x: (lambda u, s, v: (u * s) @ v.mT * s[0])(*tg.svd(x)),
            lambda x: x * np.linalg.norm(x, 2)),
    "qr": (lambda x: (lambda q, r: q @ r)(*tg.qr(x)), lambda x: x),
}, (4, 3), dtypes=(tg.float64,), second=False, layouts=False, tolerance=4000)  # fmt: skip


def _solved(T: Any, a: Any, b: Any) -> Any:
    return T.linalg.solve(near_unit(a), b)


def _lu_parts(found: Any) -> Any:
    return found[0] @ found[1], found[2]


def _largest(values: Any, vectors: Any) -> Any:
    """What does not depend on the direction of an eigenvector."""
    return values, vectors**2


def _permuted(a: Any) -> Any:
    """So that rows are exchanged."""
    return near_unit(a)[[2, 0, 1]]


def _tall(a: Any) -> Any:
    return (np if isinstance(a, np.ndarray) else tg).concatenate((a, a * a))


family({
    "linalg.inv_ex": (lambda a, b: tg.linalg.inv_ex(near_unit(a)).inverse,
                      lambda a, b: np.linalg.inv(near_unit(a))),
    "inverse": (lambda a, b: tg.inverse(near_unit(a)), lambda a, b: np.linalg.inv(near_unit(a))),
    "linalg.solve_ex": (lambda a, b: tg.linalg.solve_ex(near_unit(a), b).result,
                        lambda a, b: _solved(np, a, b)),
    "linalg.cholesky_ex": (lambda a, b: tg.linalg.cholesky_ex(definite(a)).L,
                           lambda a, b: np.linalg.cholesky(definite(a))),
    "cholesky": (lambda a, b: tg.cholesky(definite(a), True),
                 lambda a, b: np.linalg.cholesky(definite(a)).T),
    "cholesky_solve": (lambda a, b: tg.cholesky_solve(b, tg.cholesky(definite(a))),
                       lambda a, b: np.linalg.solve(definite(a), b)),
    "cholesky_inverse": (lambda a, b: tg.cholesky_inverse(tg.cholesky(definite(a))),
                         lambda a, b: np.linalg.inv(definite(a))),
    "triangular_solve": (lambda a, b: tg.triangular_solve(b, near_unit(a), transpose=True)[0],
                         lambda a, b: np.linalg.solve(np.triu(near_unit(a)).T, b)),
    "det": (lambda a, b: tg.det(near_unit(a)), lambda a, b: np.linalg.det(near_unit(a))),
    "slogdet": (lambda a, b: tg.slogdet(near_unit(a))[1],
                lambda a, b: np.linalg.slogdet(near_unit(a))[1]),
    "logdet": (lambda a, b: tg.logdet(definite(a)),
               lambda a, b: np.log(np.linalg.det(definite(a)))),
    "linalg.matrix_power": (lambda a, b: tg.linalg.matrix_power(near_unit(a), 5),
                            lambda a, b: np.linalg.matrix_power(near_unit(a), 5)),
    "matrix_power": (lambda a, b: tg.matrix_power(near_unit(a), -2),
                     lambda a, b: np.linalg.matrix_power(near_unit(a), -2)),
    "linalg.lu": (lambda a, b: _lu_parts(tg.linalg.lu(_permuted(a))),
                  lambda a, b: _lu_parts(scipy_linalg.lu(_permuted(a)))),
    "linalg.lu_factor": (lambda a, b: tg.linalg.lu_factor(_tall(_permuted(a))).LU,
                         lambda a, b: scipy_linalg.lu_factor(_tall(_permuted(a)))[0]),
    "linalg.lu_factor_ex": (lambda a, b: tg.linalg.lu_factor_ex(_tall(_permuted(a)).mT).LU,
                            lambda a, b: scipy_linalg.lu_factor(_tall(_permuted(a)).T)[0]),
    "linalg.lu_solve": (
        lambda a, b: tg.linalg.lu_solve(*tg.linalg.lu_factor(_permuted(a)), b, adjoint=True),
        lambda a, b: np.linalg.solve(_permuted(a).T, b)),
    "lu_solve": (lambda a, b: tg.lu_solve(b, *tg.lu(_permuted(a))),
                 lambda a, b: np.linalg.solve(_permuted(a), b)),
    "lu": (lambda a, b: tg.lu(_permuted(a))[0],
           lambda a, b: scipy_linalg.lu_factor(_permuted(a))[0]),
    "lu_unpack": (lambda a, b: _lu_parts(tg.lu_unpack(*tg.linalg.lu_factor(_permuted(a)))),
                  lambda a, b: _lu_parts(scipy_linalg.lu(_permuted(a)))),
    "linalg.tensorinv": (lambda a, b: tg.linalg.tensorinv(near_unit(a), ind=1),
                         lambda a, b: np.linalg.inv(near_unit(a))),
    "linalg.tensorsolve": (lambda a, b: tg.linalg.tensorsolve(near_unit(a), b[:, 0]),
                           lambda a, b: np.linalg.solve(near_unit(a), b[:, 0])),
    "matrix_exp": (lambda a, b: tg.matrix_exp(a),
                   lambda a, b: scipy_linalg.expm(a)),
    "geqrf": (lambda a, b: (lambda r, t: (r, t))(*tg.geqrf(_tall(a))),
              lambda a, b: (lambda qr, r: (qr[0], qr[1]))(
                  *scipy_linalg.qr(_tall(a), mode="raw"))),
    "ormqr": (lambda a, b: (tg.ormqr(a, b[:, 0], b), tg.ormqr(a, b[:2, 1], b.mT, False, True)),
              lambda a, b: (_householder(a, b[:, 0]) @ b, b.T @ _householder(a, b[:2, 1]).T)),
    "orgqr": (lambda a, b: (tg.orgqr(a, b[:, 0]), tg.orgqr(a, b[:2, 1])),
              lambda a, b: (_householder(a, b[:, 0]), _householder(a, b[:2, 1]))),
    "lobpcg": (lambda a, b: _largest(*tg.lobpcg(definite(a), X=a.new_ones(3, 1))),
               lambda a, b: _largest(*(x[..., -1:] for x in np.linalg.eigh(definite(a))))),
    "linalg.diagonal": (lambda a, b: tg.linalg.diagonal(a, offset=1),
                        lambda a, b: np.diagonal(a, 1)),
}, (3, 3), (3, 2), dtypes=(tg.float64,), second=False, layouts=False, tolerance=4000)  # fmt: skip


def _vectors(found: Any) -> Any:
    """What does not depend on the order and the phases of eigenvectors."""
    return (abs(found[1]) * abs(found[0])[:, None]).sum(-1)


family({
    "linalg.eigvals": (lambda a: (tg.linalg.eigvals(a) ** 3).sum(-1).real,
                       lambda a: np.trace(a @ a @ a, axis1=-2, axis2=-1)),
    "linalg.eig": (lambda a: _vectors(tg.linalg.eig(a)), lambda a: _vectors(np.linalg.eig(a))),
}, (2, 4, 4), dtypes=(tg.float64,), second=False, layouts=False, tolerance=4e5)  # fmt: skip
family({
    "linalg.ldl_factor_ex": (lambda a, b: tg.linalg.ldl_factor_ex(a + a.mT).LD.diagonal(0, -2, -1),
                             lambda a, b: np.diag(scipy_linalg.lapack.dsytrf(a + a.T, lower=1)[0])),
    "linalg.ldl_factor": (lambda a, b: tg.linalg.ldl_factor(definite(a)).LD.tril(-1),
                          lambda a, b: np.tril(scipy_linalg.ldl(definite(a))[0], -1)),
    "linalg.ldl_solve": (
        lambda a, b: tg.linalg.ldl_solve(*tg.linalg.ldl_factor(a + a.mT), tg.stack([b, b])),
        lambda a, b: np.stack([np.linalg.solve(a + a.T, b)] * 2)),
}, (6, 6), (6, 2), dtypes=(tg.float64,), gradient=False, layouts=False,
   tolerance=4e5)  # fmt: skip


def _householder(a: Any, tau: Any) -> Any:
    found = np.eye(len(a))
    for at, scale in enumerate(tau):
        v = np.tril(a, -1)[:, at]
        v[at] = 1
        found = found @ (np.eye(len(a)) - scale * np.outer(v, v))
    return found


family({
    "linalg.matrix_rank": (lambda a: tg.linalg.matrix_rank(tg.cat([a, a])),
                           lambda a: np.linalg.matrix_rank(np.concatenate([a, a]))),
}, (2, 3), result=tg.int64, gradient=False)  # fmt: skip
