"""Losses with layers of their own: a linear map, and the adaptive softmax of many classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..core.tensor import Tensor
from ..ops.concatenation import cat
from ..ops.indexing import index_put
from ..ops.reductions import argmax
from ..runtime.dtypes import DType, int64
from ..runtime.records import NamedTuple
from . import functional as F
from . import loss
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


@dataclass
class LinearCrossEntropyOptions:
    """How PyTorch divides the work of `linear_cross_entropy`: read and checked, and no more.

    Here a compiled function decides itself what it keeps and what it computes again.

    >>> LinearCrossEntropyOptions(batch_chunk_size=16).chunking_method
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, factor = f"{self.chunking_method}:1".split(":")[:2]
            if name != "aspect_ratio" or not factor.isdigit() or int(factor) < 1:
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype is not None and not self.acc_dtype.is_floating_point:
            raise ValueError(f"acc_dtype must be a floating point dtype, got {self.acc_dtype!r}")


class LinearCrossEntropyLoss(loss._WeightedLoss):
    """The cross-entropy of the results of a linear map, which it owns.

    With `out_features` there are that many losses for each example: scores [n, classes,
    *out_features]. `options`, of how PyTorch divides the work, change nothing here.

    >>> import tgraph as tg
    >>> loss = tg.nn.LinearCrossEntropyLoss(3, 4)
    >>> loss(tg.ones(2, 3), tg.tensor([0, 1])).shape
    tgraph.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if label_smoothing < 0 or label_smoothing > 1.0:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        size = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, size, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        sizes = (self.num_classes, *self.out_features)
        linear = self.linear
        return F.linear_cross_entropy(
            input,
            linear.weight.reshape(*sizes, linear.in_features),
            target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(sizes),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The softmax of many classes, of which rare ones are found in two steps.

    Classes are numbered by how frequent they are. Those below the first of `cutoffs` are scored by
    `head`, together with one score for each cluster of the others, which `tail` scores, by
    smaller and smaller projections.

    Source: Grave et al., "Efficient softmax approximation for GPUs" (2017).

    >>> import tgraph as tg
    >>> loss = tg.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 12])
    >>> loss(tg.ones(2, 8), tg.tensor([1, 15])).output.shape, loss.log_prob(tg.ones(2, 8)).shape
    (tgraph.Size([2]), tgraph.Size([2, 20]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*_checked_cutoffs(list(cutoffs), n_classes), n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options: Any = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for at, (low, high) in enumerate(pairwise(self.cutoffs)):
            inner = int(in_features // (div_value ** (at + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **options),
                    Linear(inner, high - low, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        _check_targets(input_, target_)
        is_batched = target_.ndim > 0
        input = input_ if is_batched else input_.unsqueeze(0)
        target = (target_ if is_batched else target_.unsqueeze(0)).to(int64)
        used_rows = 0
        output = input.new_zeros(target.shape[0])
        chosen = target.new_zeros(target.shape[0])
        for at, (low, high) in enumerate(pairwise([0, *self.cutoffs])):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            used_rows += rows.numel()
            inner = target[rows] - low
            if at == 0:
                chosen = chosen.index_copy(0, rows, inner)
                continue
            scores = F.log_softmax(self.tail[at - 1](input[rows]), dim=1)
            chosen = chosen.index_fill(0, rows, self.shortlist_size + at - 1)
            picked = scores.gather(1, inner.unsqueeze(1)).squeeze(1)
            output = index_put(output, (rows,), picked)
        if used_rows != target.shape[0]:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, chosen.unsqueeze(1)).squeeze(1)
        mean = (-output).mean()
        return _ASMoutput(output if is_batched else output.squeeze(0), mean)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for at, cluster in enumerate(self.tail):
            inner = F.log_softmax(cluster(input), dim=1)
            parts.append(inner + head[:, self.shortlist_size + at].unsqueeze(1))
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row.

        >>> import tgraph as tg
        >>> tg.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 12]).predict(tg.ones(2, 8)).shape
        tgraph.Size([2])
        """
        head = self.head(input)
        found = argmax(head, 1)
        rare = (found >= self.shortlist_size).nonzero().squeeze(1)
        if rare.numel() == 0:
            return found
        full = self._get_full_log_prob(input[rare], head[rare])
        return index_put(found, (rare,), argmax(full, 1))


def _checked_cutoffs(cutoffs: list[Any], n_classes: int) -> list[int]:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    if (
        cutoffs != sorted(set(cutoffs))
        or min(cutoffs) <= 0
        or max(cutoffs) > n_classes - 1
        or any(int(each) != each for each in cutoffs)
    ):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
            "order, where each value is between 1 and n_classes-1"
        )
    return cutoffs


def _check_targets(input: Tensor, target: Tensor) -> None:
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.ndim == 1 and input.shape[:1] != target.shape:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.ndim != target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found "
            f"inputs with size {input.shape}"
        )
