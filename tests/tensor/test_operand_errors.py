"""Errors of elementwise functions name the operation, what was expected and what came."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph.nn import functional as F


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(RuntimeError) as error:
        tg.ones(2, 3) + tg.ones(2, 4)
    assert str(error.value) == (
        "add(float32[2, 3], float32[2, 4]): The size of tensor a (3) must match the size of "
        "tensor b (4) at non-singleton dimension 1"
    )
    with pytest.raises(RuntimeError, match=r"where\(bool\[2\], float32\[\], float32\[3\]\)"):
        tg.where(tg.ones(2) > 0, 1.0, tg.ones(3))


def test_operands_of_other_types() -> None:
    x = tg.ones(2)
    for symbol in (operator.add, operator.truediv, operator.lt, operator.matmul):
        with pytest.raises(TypeError):
            symbol(x, "a")
        with pytest.raises(TypeError):
            symbol(None, x)
    with pytest.raises(TypeError, match=r"mul\(\): expected a Tensor or a number, got str"):
        tg.mul(x, "a")
    with pytest.raises(TypeError, match=r"exp\(\): argument .input. .*must be Tensor, not float"):
        tg.exp(1.0)


@pytest.mark.parametrize("value", [None, 3, "a", [None]], ids=repr)
def test_others_in_the_place_of_several_tensors(value: Any) -> None:
    several = (
        tg.cat, tg.stack, tg.hstack, tg.vstack, tg.dstack, tg.column_stack, tg.block_diag,
        tg.atleast_1d, tg.atleast_2d, tg.atleast_3d, tg.linalg.multi_dot,
    )  # fmt: skip
    for function in several:
        with pytest.raises(TypeError, match=r"^\w+\(\): argument 'tensors'.* must be .*ensor"):
            function(value)
    x = tg.ones(3)
    for write in (x.index_put, x.index_put_):
        with pytest.raises(TypeError, match=r"argument 'indices' .* must be tuple of Tensors, not"):
            write(value, x)
    if not isinstance(value, int):
        with pytest.raises(TypeError, match=r"hsplit\(\): argument 'indices_or_sections'"):
            tg.hsplit(x, value)


def test_tensors_without_dimensions_in_the_place_of_vectors() -> None:
    for transform in (tg.fft.fft, tg.fft.irfft, tg.fft.fft2):
        with pytest.raises(IndexError, match=r"Dimension specified as -\d but tensor has no dim"):
            transform(tg.tensor(1.0))
    with pytest.raises(RuntimeError, match=r"roll\(\): `shifts` required"):
        tg.roll(tg.tensor(1.0), (), ())
    assert tg.tensor(1j).mT.item() == 1j and tg.tensor(1j).mH.item() == -1j


def test_complex_tolerances() -> None:
    for function in (tg.linalg.pinv, tg.linalg.matrix_rank):
        for name in ("atol", "rtol"):
            with pytest.raises(TypeError, match=f"'{name}' must be Tensor or float, not complex"):
                function(tg.eye(2), **{name: 1j})
            with pytest.raises(RuntimeError, match=f"{name} tensor of complex type"):
                function(tg.eye(2), **{name: tg.tensor(1j)})


def test_values_that_are_refused() -> None:
    integers = tg.arange(3)
    with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
        integers**-1
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        integers // 0
    for refused in (
        lambda: tg.add(integers, integers, alpha=0.5),
        lambda: tg.sub(integers, 1, alpha=0.5),
        lambda: integers.clone().add_(1, alpha=0.5),
        lambda: tg.add(tg.ones(2), 1, alpha=1j),
        lambda: tg.add(integers, 1, alpha=True),
    ):
        with pytest.raises(RuntimeError, match=r"argument alpha must not be|Boolean alpha only"):
            refused()
    with pytest.raises(ValueError, match="only one element tensors can be converted"):
        float(integers)
    with pytest.raises(TypeError, match=r"poisson\(\): argument .input. .*must be Tensor"):
        tg.poisson(2.0)
    with pytest.raises(TypeError, match=r"'generator' must be tgraph\.Generator, not int"):
        tg.rand(2, generator=5)
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max'"):
        tg.clamp(integers)
    with pytest.raises(RuntimeError, match="expected rounding_mode to be one of"):
        tg.div(integers, 2, rounding_mode="up")
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor"):
        tg.where(tg.ones(2), 1, 2)


def test_integers_divided_by_the_number_zero() -> None:
    integers = tg.arange(3)
    for function in (
        lambda x: x // 0,
        lambda x: x % 0,
        lambda x: tg.fmod(x, 0),
        lambda x: tg.div(x, 0, rounding_mode="trunc"),
    ):
        for run in (function, tg.compile(function)):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                run(integers)
            assert run(integers.float()).isfinite().logical_not().all()
            assert run(integers[:0]).shape == (0,)  # nothing is divided


def test_operations_of_bools() -> None:
    flags = tg.tensor([True, False])
    assert tg.square(flags).dtype is tg.int64
    for operands in ((flags, flags), (flags, True), (True, flags)):
        with pytest.raises(RuntimeError, match=r"Subtraction, the `-` operator, with two bool"):
            tg.sub(*operands)


def test_integers_of_more_than_64_bits() -> None:
    for function in (
        lambda: tg.ones(2, dtype=tg.int8) + 2**70,
        lambda: tg.ones(2) < 2**70,
        lambda: tg.full((2,), -(2**70)),
        lambda: tg.ones(2).fill_(2**70),
    ):
        with pytest.raises(OverflowError, match="int too big to convert"):
            function()


def test_sizes_and_dimensions_of_other_types() -> None:
    for function in (lambda: tg.zeros(2.5), lambda: tg.ones(4).view(2.0, 2)):
        with pytest.raises(TypeError, match="sizes must be ints, not float"):
            function()
    for device in ("cpu", "meta"):
        with pytest.raises(TypeError, match="sizes must be ints, not bool"):
            tg.full(True, 1.0, device=device)
    with pytest.raises(TypeError, match=r"max\(\): argument 'dim' must be int, not tuple; amax"):
        tg.ones(2, 2).max((0, 1))
    with pytest.raises(TypeError, match="float"):
        tg.ones(2, 2).select(0, 1.0)
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar, but you passed"):
        assert [1.0] not in tg.ones(2)
    with pytest.raises(RuntimeError, match="num_groups=0"):
        F.group_norm(tg.ones(2, 4), 0)
    with pytest.raises(TypeError, match=r"cat\(\): argument 'tensors' .* must be tuple of Te"):
        tg.cat(tg.ones(2, 2))


def test_operations_that_a_dtype_does_not_have() -> None:
    mask = tg.ones(2) > 0
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        tg.relu(mask)
    with pytest.raises(NotImplementedError, match='"matmul" not implemented for bool'):
        mask @ mask
    with pytest.raises(NotImplementedError, match='"rand" not implemented for int64'):
        tg.rand(2, dtype=tg.int64)
    with pytest.raises(TypeError, match=r"~ .* only implemented on integer and Boolean"):
        ~tg.ones(2)


ARRAY = np.ones((2, 2), np.float32)


@pytest.mark.parametrize(
    "function",
    [
        tg.sum, tg.prod, tg.mean, tg.std, tg.amax, tg.any, tg.max, tg.argmax, tg.norm,
        lambda x: tg.logsumexp(x, 0), lambda x: tg.softmax(x, 0),
        lambda x: tg.allclose(tg.ones(2, 2), x), lambda x: tg.equal(x, tg.ones(2, 2)),
        lambda x: tg.mm(tg.ones(2, 2), x), lambda x: tg.matmul(x, x),
        lambda x: tg.dot(x, x), lambda x: tg.inner(tg.ones(2, 2), x),
        lambda x: F.mse_loss(tg.ones(2, 2), x), lambda x: F.cross_entropy(x, tg.tensor([0, 1])),
        lambda x: tg.ones(2, 2).view_as(x), lambda x: tg.ones(2, 2).expand_as(x),
        lambda x: tg.ones(2, 2).type_as(x), lambda x: tg.masked_select(tg.ones(2, 2), x),
        lambda x: F.cross_entropy(tg.ones(2, 2), x), lambda x: F.nll_loss(tg.ones(2, 2), x),
    ],
)  # fmt: skip
def test_arrays_in_the_place_of_tensors(function: Any) -> None:
    with pytest.raises(TypeError, match=r"argument '\w+' .*must be Tensor, not ndarray"):
        function(ARRAY)


def test_types_are_looked_at_in_all_functions_of_networks() -> None:
    x, weight = tg.ones(2, 4), tg.ones(4)
    for call, told in (
        (lambda: tg.native_layer_norm(x, [4], 2, weight, 1e-5), "'weight' .* must be Tensor"),
        (lambda: tg.native_group_norm(1.5, None, None, 2, 4, 1, 2, 1e-5), "'input' .* Tensor"),
        (lambda: tg.constant_pad_nd(x, (1, 1), "a"), "'value' .* must be Number, not str"),
        (lambda: tg.softmax(x, 0, dtype=2), "'dtype' must be dtype, not int"),
        (lambda: F.pad(x, (1, 1), 2), "'mode' must be str, not int"),
        (lambda: tg.masked.sum(x, mask=1.5), r"masked.sum\(\): argument 'mask' must be Tensor"),
        (lambda: F.adaptive_avg_pool2d(tg.ones(1, 2, 2), None), "'output_size' must be int"),
    ):
        with pytest.raises(TypeError, match=told):
            call()


def test_what_stands_for_a_dtype() -> None:
    for dtype in (float, np.float64, np.dtype("float64")):
        assert tg.softmax(tg.ones(2), 0, dtype=dtype).dtype is tg.float64
        assert tg.masked.sum(tg.ones(2), dtype=dtype).dtype is tg.float64


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm", "layer_norm", "group_norm"])
def test_normalization_of_whole_numbers(name: str) -> None:
    x = tg.ones(2, 4, 3, dtype=tg.int64)
    given = {"batch_norm": (tg.zeros(4), tg.ones(4)), "layer_norm": ([3],), "group_norm": (2,)}
    with pytest.raises(NotImplementedError, match=f'"{name}" not implemented for int64; convert'):
        getattr(F, name)(x, *given.get(name, ()))


def test_flags_that_python_code_looks_at_are_taken_by_their_truth() -> None:
    x = tg.arange(4.0).reshape(1, 4)
    assert isinstance(F.max_pool1d(x, 2, return_indices=1), tuple)
    assert isinstance(F.max_pool1d(x, 2, return_indices=None), tg.Tensor)
    assert tg.masked.amax(x, 1, keepdim=1).shape == (1, 1)
    with pytest.raises(TypeError, match="'ceil_mode' must be bool, not int"):
        F.max_pool1d(x, 2, ceil_mode=1)


@pytest.mark.parametrize("compiles", [False, True])
def test_shapes_and_types_that_layers_refuse(compiles: bool) -> None:
    def ran(function: Any, *given: Any, **named: Any) -> Any:
        return (tg.compile(function) if compiles else function)(*given, **named)

    x, weight = tg.ones(2, 3), tg.ones(2, 3, 3)
    for told, function, *given in (
        ("a bias that broadcasts to the shape", F.linear, x, tg.ones(1, 3), tg.ones(4)),
        ("inputs of the same size but for", F.bilinear, x, tg.ones(1, 3), weight),
        (r"bias size .*: got \[1\] but expected \[2\]", F.bilinear, x, x, weight, tg.ones(1)),
        ("kernel size should be greater", F.conv1d, tg.ones(1, 2, 3), tg.ones(1, 2, 0)),
        ("Only zero batch or zero channel", F.conv1d, tg.ones(1, 2, 0), tg.ones(1, 2, 1)),
        ("running_mean should have one dim", F.batch_norm, x, tg.ones(1, 3), tg.ones(3)),
        ("kernel_size equals to 2, but got size 1", F.unfold, tg.ones(1, 1, 3, 3), (2,)),
        (r"chunk\(\) expects a tensor with at least", tg.chunk, tg.tensor(1.0), 2),
        ("must be smaller than num_classes", F.one_hot, tg.tensor([0, 1]), 0),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=told):
            ran(function, *given)
    whole = tg.ones(1, 1, 2, 2, dtype=tg.int64)
    for told, function, *given in (
        ('"grid_sampler" not implemented for int64', F.grid_sample, whole, tg.zeros(1, 1, 1, 2),
         "bilinear", "zeros", False),
        ('"rms_norm" not implemented for int64', F.rms_norm, whole, [2]),
        ('"logsigmoid" not implemented for bool', F.logsigmoid, x > 0),
        ('"adaptive_avg_pool" not implemented for int64', F.adaptive_avg_pool2d, whole, 1),
        (r"got 4D\) ", F.interpolate, whole, 2, None, [1.5]),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match=told):
            ran(function, *given)


def test_what_the_types_of_layers_are() -> None:
    x, wide = tg.ones(2, 3), tg.ones(3, dtype=tg.float64)
    assert F.rms_norm(x, [3], wide).dtype is tg.float32
    assert F.cosine_similarity(tg.ones(2, 3, dtype=tg.int64), wide).dtype is tg.float64
    assert F.linear(tg.ones(3), tg.ones(2, 3), tg.ones(1, 2)).shape == (2,)
    assert F.nll_loss(tg.zeros(3), tg.tensor([1]), reduction="none").shape == ()
    for scale in ("a", tg.ones(2), 1j):
        with pytest.raises(TypeError, match="'scale_factor' must be float or tuple of floats"):
            F.interpolate(tg.ones(1, 1, 2), scale_factor=scale)
    with pytest.raises(TypeError, match="'options' must be LinearCrossEntropyOptions, not int"):
        F.linear_cross_entropy(x, tg.ones(4, 3), tg.tensor([0, 1]), options=2)
    with pytest.raises(RuntimeError, match="at least two devices, meta and cpu"):
        F.embedding_bag(
            tg.tensor([0, 1]), tg.ones(4, 3), tg.zeros(1, device="meta", dtype=tg.int64)
        )


def test_keys_and_values_that_attention_adds_have_its_features() -> None:
    x, weight, bias = tg.rand(3, 1, 4), tg.rand(12, 4), tg.zeros(12)

    def attended(more: tg.Tensor) -> Any:
        return F.multi_head_attention_forward(
            x, x, x, 4, 2, weight, bias, more, more, False, 0.0, tg.rand(4, 4), None
        )

    assert attended(tg.ones(4))[0].shape == attended(tg.ones(1, 1, 4))[0].shape == (3, 1, 4)
    for wrong in (tg.ones(()), tg.ones(1), tg.ones(2, 1, 4)):
        with pytest.raises(RuntimeError, match=r"expected bias_k to be \[1, 1, 4\], got"):
            attended(wrong)
