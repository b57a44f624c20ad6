"""Every row of the table of operations on tensors without elements, without dimensions, broadcast.

The shapes are derived: of each size that occurs in a row all are made 0, all dimensions are taken
away, and operands of one shape get a size of 1. An operation may refuse such operands, compiled as
well as eagerly; what it accepts must be right in shape, dtype, value and gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from batches import Batches, Call
from opcase import Array, OpCase
from opcases import CASES
from test_ops import Gradients, as_tuple, check_values, compiled, ids, plainly, tensors

REFUSALS = (RuntimeError, IndexError, ValueError, TypeError, AssertionError)
# NumPy's formula divides 0 by 0, where PyTorch's has an epsilon; rows with a fixed answer.
NOT_AS_NUMPY = {"cosine_similarity", "cosine_embedding_loss", "equal"}
# Convolutions with a window of no size; references that know the shapes of their rows.
ODD_REFERENCES = {"conv2d same", "searchsorted batch", "max_unpool1d", "max_unpool3d"}
# Where an operand of the same shape as another does not broadcast, in PyTorch neither.
SAME_SHAPES = {
    "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "stack", "setitem",
    "scatter", "scatter_add", "scatter_reduce", "put", "masked_scatter", "matmul", "dot",
    "gaussian_nll_loss", "soft_margin_loss",
    "multilabel_margin_loss", "layer_norm", "group_norm", "batch_norm", "instance_norm",
}  # fmt: skip
# What needs a dimension, in PyTorch too, or by the arguments that its rows give.
NEEDS_DIMENSIONS = {
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "addmm", "addmv", "affine_grid", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "baddbmm", "batch_norm", "bilinear", "bincount", "bmm", "cat",
    "channel_shuffle", "chunk", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity",
    "ctc_loss", "cummax", "cummin", "diag", "diagonal", "dot", "embedding_bag", "fft", "fold",
    "fractional_max_pool2d", "fractional_max_pool3d", "glu", "grid_sample", "group_norm",
    "hash_tensor",
    "index_put", "index_put_", "instance_norm", "interpolate", "layer_norm", "linalg.cholesky",
    "linalg.det", "linalg.eigh", "linalg.eigvalsh", "linalg.inv", "linalg.matrix_rank",
    "linalg.qr", "linalg.slogdet", "linalg.solve", "linalg.solve_triangular", "linalg.svd",
    "linalg.svdvals", "linear",
    "linear_cross_entropy", "local_response_norm", "logcumsumexp", "lp_pool1d", "lp_pool2d",
    "lp_pool3d", "matmul", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "mm", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "mv",
    "narrow", "native_channel_shuffle", "nll_loss", "nuclear_norm", "outer", "pad", "pixel_shuffle",
    "pixel_unshuffle", "rms_norm", "scaled_dot_product_attention", "searchsorted",
    "segment_reduce", "select",
    "slice_axis", "softmin", "split", "tensor_split", "trace", "tril", "triu", "unbind",
    "unflatten", "unfold", "upsample", "upsample_bilinear", "upsample_nearest", "var_mean",
}  # fmt: skip

# What needs elements in each of its dimensions but the first, in PyTorch too.
NEEDS_ELEMENTS = {
    "adaptive_avg_pool1d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool3d",
    "fft", "upsample", "upsample_bilinear", "upsample_nearest",
}  # fmt: skip


# A family is refused as a whole where one of its operations is.
ALONE = [case for case in CASES if "," not in case.name]


def without_elements(case: OpCase) -> Iterator[OpCase]:
    shapes = [argument.shape for argument in case.arguments]
    for size in sorted({each for shape in shapes for each in shape if each}):
        yield case.with_shapes([tuple(0 if n == size else n for n in shape) for shape in shapes])


def without_dimensions(case: OpCase) -> OpCase:
    return case.with_shapes([()] * len(case.arguments))


def broadcasting(case: OpCase) -> Iterator[OpCase]:
    """Where operands have the same shape, one after another with a first size of 1."""
    shapes = [argument.shape for argument in case.arguments]
    for at, shape in enumerate(shapes):
        if shape and shapes.count(shape) > 1:
            yield case.with_shapes([*shapes[:at], (1, *shape[1:]), *shapes[at + 1 :]])


def outcome(function: Any, arrays: list[Array]) -> Any:
    """The results, or the refusal."""
    try:
        return as_tuple(function(*tensors(arrays)))
    except REFUSALS as error:
        assert not isinstance(error, RecursionError)
        return error


class Edges:
    """The rows in shapes that `derive` gives, compiled together where eager code takes them."""

    def __init__(self, derive: Callable[[OpCase], Iterable[OpCase]]) -> None:
        self.derive = derive
        self.forward = Batches(self._call)
        self.gradients = Batches(self._gradient_call, 10)

    def _variant(self, case: OpCase, number: int) -> OpCase | None:
        """A variant of a row; None where there is none that is compiled with others."""
        variant = next(islice(self.derive(case), number, None), None)
        taken = variant is not None and case.compiles and runs(variant)
        return variant if taken else None

    def _call(self, case: OpCase, number: int) -> Call | None:
        variant = self._variant(case, number)
        if variant is None:
            return None
        return Call(variant.function, tensors(variant.arrays(variant.dtypes[0])))

    def _gradient_call(self, case: OpCase, number: int) -> Call | None:
        variant = self._variant(case, number)
        if variant is None or not case.gradient:
            return None
        row = Gradients(variant)
        return Call(row.first, row.arguments())

    def accept(self, request: pytest.FixtureRequest, case: OpCase) -> Iterator[bool]:
        """For each shape of a row whether it is accepted, eagerly, compiled and with gradients."""
        for number, variant in enumerate(self.derive(case)):
            arrays = variant.arrays(variant.dtypes[0])
            label = f"{variant.name} of {[array.shape for array in arrays]}"
            eager = outcome(variant.function, arrays)
            if isinstance(eager, Exception):
                _check_refusal(variant, eager, arrays, label)
                yield False
                continue
            if case.compiles:
                found = as_tuple(self.forward.result(request, case, number))
                for have, want in zip(found, eager, strict=True):
                    assert have.dtype is want.dtype and have.shape == want.shape, label
                    check_values(have.numpy(), want.detach().numpy(), case.tolerance, label)
            _check_reference(variant, arrays, eager, label)
            if case.gradient:
                self._check_gradients(request, case, number, variant, label)
            yield True

    def _check_gradients(
        self, request: pytest.FixtureRequest, case: OpCase, number: int, variant: OpCase, label: str
    ) -> None:
        row = Gradients(variant)
        eager = plainly(row.first, *row.arguments())
        found = self.gradients.result(request, case, number) if case.compiles else eager
        for have, want, point in zip(found, eager, row.points, strict=True):
            assert have.shape == want.shape == point.shape, label
            check_values(have.detach().numpy(), want.detach().numpy(), 1e5, label)


def _check_refusal(case: OpCase, eager: Exception, arrays: list[Array], label: str) -> None:
    """Compiled code refuses what eager code refuses."""
    found = outcome(compiled(case.function), arrays) if case.compiles else eager
    # A result without elements is not computed, so nothing is read at a position outside.
    nothing = not isinstance(found, Exception) and not any(each.numel() for each in found)
    # Of a family, a trace refuses by shapes what eager code refuses behind another's values.
    other = "," in case.name and isinstance(found, Exception)
    assert isinstance(found, type(eager)) or (isinstance(eager, IndexError) and nothing) or other, (
        label
    )


def _check_reference(case: OpCase, arrays: list[Array], found: tuple[Any, ...], label: str) -> None:
    try:
        expected = as_tuple(case.expected(arrays))
    except (ValueError, IndexError):  # a reference for the shapes of its row only
        return
    if len(expected) != len(found):
        return
    if case.operation in NOT_AS_NUMPY or case.name in ODD_REFERENCES:
        return
    for have, want in zip(found, expected, strict=True):
        result = have.numpy()
        if arrays[0].ndim == 0 and np.size(want) == result.size:
            want = np.reshape(want, result.shape)  # some functions of NumPy give vectors
        assert np.shape(want) == result.shape, label
        check_values(result, np.asarray(want).astype(result.dtype), case.tolerance, label)


WITHOUT_ELEMENTS = Edges(without_elements)
WITHOUT_DIMENSIONS = Edges(lambda case: [without_dimensions(case)])
BROADCASTING = Edges(broadcasting)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_without_elements(case: OpCase, request: pytest.FixtureRequest) -> None:
    list(WITHOUT_ELEMENTS.accept(request, case))


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_without_dimensions(case: OpCase, request: pytest.FixtureRequest) -> None:
    list(WITHOUT_DIMENSIONS.accept(request, case))


@pytest.mark.filterwarnings("ignore:.*using a target size:UserWarning")
@pytest.mark.parametrize("case", [c for c in CASES if not c.elementwise], ids=ids)
def test_broadcasting(case: OpCase, request: pytest.FixtureRequest) -> None:
    """Elementwise rows have such shapes of their own."""
    for accepted in BROADCASTING.accept(request, case):
        assert accepted or case.operation in SAME_SHAPES, case.name


def has_shape(case: OpCase, wanted: Any) -> bool:
    shapes = [[argument.shape for argument in case.arguments], *case.more]
    return any(wanted(shape) for each in shapes for shape in each)


def runs(case: OpCase) -> bool:
    return not isinstance(outcome(case.function, case.arrays(case.dtypes[0])), Exception)


def test_every_operation_takes_tensors_without_elements() -> None:
    done = {case.operation for case in ALONE if has_shape(case, lambda shape: 0 in shape)}
    done |= {case.operation for case in ALONE if any(map(runs, without_elements(case)))}
    assert {case.operation for case in ALONE} - done == NEEDS_ELEMENTS


def test_what_needs_dimensions_is_known() -> None:
    done = {case.operation for case in ALONE if has_shape(case, lambda shape: shape == ())}
    done |= {case.operation for case in ALONE if runs(without_dimensions(case))}
    assert {case.operation for case in ALONE} - done == NEEDS_DIMENSIONS
