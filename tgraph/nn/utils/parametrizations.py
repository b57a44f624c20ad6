"""Weights that are orthogonal, of spectral norm 1, or a direction and a length."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ...core.dtype_info import finfo
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...ops.concatenation import cat
from ...ops.creation import eye
from ...ops.factorizations import qr, solve
from ...ops.from_data import from_numpy
from ...ops.linalg import matmul
from ...ops.matrix_functions import matrix_exp
from ...ops.random import randn
from ...ops.reflections import householder_product
from .. import functional as F
from ..module import Module
from . import parametrize
from .spectral_norm import as_matrix, default_dim
from .weight_norm import norm_except_dim, normalized_weight

M = TypeVar("M", bound=Module)

_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """From any matrix to one with orthonormal rows or columns."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        transposed = X.shape[-2] < X.shape[-1]
        if transposed:
            X = X.mT
        rows, columns = X.shape[-2:]
        if self.orthogonal_map == "householder":
            lower = X.tril(-1)
            tau = 2.0 / (1.0 + (lower * lower).sum(-2))
            found = householder_product(lower, tau)
            found = found * X.diagonal(0, -2, -1).detach().trunc().unsqueeze(-2)
        else:
            X = X.tril()
            if rows != columns:
                X = cat([X, X.new_zeros(*X.shape[:-1], rows - columns)], -1)
            skew = X - X.mT
            if self.orthogonal_map == "matrix_exp":
                found = matrix_exp(skew)
            else:
                one = eye(rows, dtype=skew.dtype, device=skew.device)
                found = solve(one - 0.5 * skew, one + 0.5 * skew)
            found = found[..., :columns]
        if self.use_trivialization:
            assert self.base is not None
            found = matmul(self.base, found)
        return found.mT if transposed else found

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """What gives `Q`, or the orthogonal matrix that it leads to."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        given = Q
        transposed = Q.shape[-2] < Q.shape[-1]
        Q = Q.detach().mT if transposed else Q.detach()
        rows, columns = Q.shape[-2:]
        if not self.use_trivialization:
            found = _reflections(Q, self.orthogonal_map)
            return found.mT if transposed else found
        if rows != columns:
            more = randn(*Q.shape[:-1], rows - columns, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(cat([Q, more], -1))
        else:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        self.base = Q
        return -eye(*given.shape[-2:], dtype=given.dtype, device=given.device).expand(given.shape)


def _is_orthogonal(matrix: Tensor) -> bool:
    one = eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    apart = (matmul(matrix.mT, matrix) - one).abs().max()
    return bool(apart <= 10.0 * matrix.shape[-2] * finfo(matrix.dtype).eps)


def _make_orthogonal(matrix: Tensor) -> Tensor:
    found, upper = qr(matrix)
    return found * upper.diagonal(0, -2, -1).sign().unsqueeze(-2)


def _reflections(matrix: Tensor, orthogonal_map: str) -> Tensor:
    """The Householder vectors of an orthogonal matrix below the diagonal, signs upon it."""
    if orthogonal_map != "householder":
        raise NotImplementedError(
            "It is not possible to assign to the matrix exponential or the Cayley "
            "parametrizations when use_trivialization=False."
        )
    array = matrix.cpu().numpy()
    flat = array.reshape(-1, *array.shape[-2:])
    found = np.empty_like(flat)
    for at, each in enumerate(flat):
        raw, tau = np.linalg.qr(each, mode="raw")
        found[at] = raw.T
        diagonal = np.arange(len(tau))
        signs = np.sign(found[at][diagonal, diagonal])
        found[at][diagonal, diagonal] = np.where(tau == 0, -signs, signs)
    return from_numpy(found.reshape(array.shape)).to(matrix.device)


def orthogonal(
    module: M,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> M:
    """Let a weight have orthonormal rows or columns, whichever are fewer.

    `orthogonal_map` is "matrix_exp" (of a skew matrix; for square weights), "cayley" or
    "householder" (a product of reflections; for others).

    Source: Lezcano-Casado, "Trivializations for Gradient-Based Optimization on Manifolds" (2019).

    >>> import tgraph as tg
    >>> layer = orthogonal(tg.nn.Linear(3, 2))
    >>> tg.allclose(layer.weight @ layer.weight.T, tg.eye(2), atol=1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if weight.is_complex():
        raise NotImplementedError("orthogonal: weights of complex numbers are not supported")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return normalized_weight(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths and the weight itself."""
        return norm_except_dim(weight, 2, self.dim), weight


class _OlderNames:
    """Before loading: what `nn.utils.weight_norm` saved, under the names of here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, state_dict: Any, prefix: str, *others: Any) -> None:
        own = f"{prefix}parametrizations.{self.name}.original"
        keys = f"{prefix}{self.name}_g", f"{prefix}{self.name}_v"
        if all(key in state_dict for key in keys):
            for at, key in enumerate(keys):
                state_dict[f"{own}{at}"] = state_dict.pop(key)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Have a weight as its lengths over all dimensions but `dim`, and a direction.

    >>> import tgraph as tg
    >>> layer = weight_norm(tg.nn.Linear(2, 3))
    >>> [(name, tuple(each.shape)) for name, each in layer.named_parameters()][1:]
    [('parametrizations.weight.original0', (3, 1)), ('parametrizations.weight.original1', (3, 2))]
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(_OlderNames(name))
    return module


class _SpectralNorm(Module):
    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but "
                f"got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            for key, size in zip(("_u", "_v"), matrix.shape):
                drawn = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(key, F.normalize(drawn, dim=0, eps=eps))
            self._improve(matrix, 15)

    @no_grad()
    def _improve(self, matrix: Tensor, times: int) -> None:
        u, v = self._u, self._v
        for _ in range(times):
            u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            v.copy_(F.normalize(matrix.mT.mv(u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._improve(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # what is saved must not change at the next call
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself, which is not required to have a norm of 1."""
        return value


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Have a weight over its largest singular value, which power iterations estimate.

    >>> import tgraph as tg
    >>> layer = spectral_norm(tg.nn.Linear(4, 4), n_power_iterations=30)
    >>> tg.allclose(tg.linalg.svdvals(layer.weight)[0], tg.tensor(1.0), atol=1e-3)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = _SpectralNorm(weight, n_power_iterations, default_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, made)
