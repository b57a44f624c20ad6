"""Transforms of the parts of a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.concatenation import cat, stack
from . import constraints
from .transform import Transform
from .utils import sum_rightmost


class _PartsTransform(Transform):
    """A list of transforms along `dim`."""

    transforms: list[Transform]
    dim: int

    def _take(self, tseq: Sequence[Transform], cache_size: int) -> list[Transform]:
        if not all(isinstance(each, Transform) for each in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        return [each.with_cache(cache_size) for each in tseq] if cache_size else list(tseq)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(each.bijective for each in self.transforms)


class CatTransform(_PartsTransform):
    """Transforms of parts of `lengths` along `dim`, which are put together again."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        self.transforms = self._take(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"expected a length for each of {len(self.transforms)} transforms, got {lengths}"
            )
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.transforms)

    @property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != self.length:
            raise AssertionError(
                f"CatTransform expected {self.length} elements in dimension {self.dim}, got a "
                f"tensor of shape {tuple(x.shape)}"
            )
        return x.split(self.lengths, self.dim)  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return cat([each(part) for each, part in pairs], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return cat([each.inv(part) for each, part in pairs], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        found = []
        for each, one, other in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            jacobian = each.log_abs_det_jacobian(one, other)
            found.append(sum_rightmost(jacobian, self.event_dim - each.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        dim += self.event_dim
        if dim < 0:
            return cat(found, dim)
        total = found[0]
        for each_found in found[1:]:
            total = total + each_found
        return total

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """One transform for each position along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        self.transforms = self._take(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != len(self.transforms):
            raise AssertionError(
                f"StackTransform expected {len(self.transforms)} elements in dimension "
                f"{self.dim}, got a tensor of shape {tuple(x.shape)}"
            )
        return x.unbind(self.dim)  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return stack([each(part) for each, part in pairs], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return stack([each.inv(part) for each, part in pairs], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        found = [each.log_abs_det_jacobian(one, other) for each, one, other in parts]
        return stack(found, self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.stack([each.codomain for each in self.transforms], self.dim)
