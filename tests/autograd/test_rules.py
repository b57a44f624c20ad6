"""Every gradient rule, and its own gradient, against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from finite_differences import check_gradients
from tgraph.compiler.ir import PRIMITIVES, Primitive
from tgraph.compiler.ir import primitives as p

import tgraph as tg
import tgraph.linalg  # the rules of factorizations come with it
from tgraph.core.dispatch import apply
from tgraph.core.vjp_rules import NON_DIFFERENTIABLE, RULES
from tgraph.nn import functional as F
from tgraph.ops import losses

Array = np.ndarray[Any, Any]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed + sum(shape)).randn(*shape)


def positive(*shape: int, seed: int = 0) -> Array:
    return np.abs(normal(*shape, seed=seed)) + 0.3


def small(*shape: int) -> Array:
    """In (-0.9, 0.9)."""
    return np.random.RandomState(1).uniform(-0.9, 0.9, shape)


X = normal(3, 4)
ZEROS = (tg.arange(12) % 5 > 0).reshape(3, 4).to(tg.float64)  # one in each row
UNARY: dict[Primitive, Array] = {
    p.neg: X, p.abs_: X, p.sign: X, p.exp: X, p.exp2: X, p.expm1: X, p.log: positive(3, 4),
    p.log2: positive(3, 4), p.log1p: positive(3, 4), p.sqrt: positive(3, 4),
    p.rsqrt: positive(3, 4), p.reciprocal: positive(3, 4), p.sin: X, p.cos: X, p.tan: small(3, 4),
    p.asin: small(3, 4), p.acos: small(3, 4), p.atan: X, p.sinh: X, p.cosh: X, p.tanh: X,
    p.erf: X, p.floor: X, p.ceil: X, p.round_: X, p.trunc: X, p.copy: X,
}  # fmt: skip
BINARY: dict[Primitive, tuple[Array, Array]] = {
    p.add: (X, normal(4)),
    p.sub: (X, normal(3, 1)),
    p.mul: (X, normal(1, 4)),
    p.div: (X, positive(4)),
    p.remainder: (X, positive(3, 1)),
    p.pow_: (positive(3, 4), normal(4)),
    p.maximum: (X, normal(3, 4, seed=5)),
    p.minimum: (X, normal(4, seed=5)),
    p.atan2: (X, normal(3, 4, seed=5)),
}
INDEX = tg.tensor([[0, 2], [1, 1], [2, 0]])
ROWS = tg.tensor([2, 0, 0])
CONVOLUTION = {"padding": ((1, 1), (0, 2)), "strides": (2, 1), "dilation": (1, 2)}


def applied(primitive: Primitive, **attrs: Any) -> Callable[..., Any]:
    return lambda *tensors: apply(primitive, *tensors, **attrs)


# name -> function, inputs
OTHERS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "where": (lambda x, y: tg.where(tg.tensor([True, False, True, True]), x, y), (X, normal(3, 1))),
    "sum": (applied(p.sum_, axes=(0, 2), keepdims=False), (normal(2, 3, 2),)),
    "sum keepdims": (applied(p.sum_, axes=(1,), keepdims=True), (X,)),
    "prod": (applied(p.prod, axes=(0, 2), keepdims=False), (normal(2, 3, 2),)),
    "prod of zeros": (lambda x: tg.prod(x * tg.tensor([1.0, 0.0, 1.0]), 1), (normal(3, 3),)),
    "prod at a zero": (lambda x: tg.prod(x, 1), (np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 2.0]]),)),
    "max": (applied(p.max_, axes=(1,), keepdims=False), (X,)),
    "min": (applied(p.min_, axes=(0, 1), keepdims=True), (X,)),
    "reshape": (applied(p.reshape, shape=(2, 6)), (X,)),
    "permute": (applied(p.permute, axes=(2, 0, 1)), (normal(2, 3, 2),)),
    "broadcast": (applied(p.broadcast, shape=(2, 3, 4)), (normal(3, 1),)),
    "slice": (applied(p.slice_, starts=(0, 1), stops=(3, 4), steps=(2, 2)), (X,)),
    "slice to the end": (applied(p.slice_, starts=(0, 0), stops=(3, 4), steps=(1, 3)), (X,)),
    "empty slice": (applied(p.slice_, starts=(1, 0), stops=(1, 4), steps=(1, 1)), (X,)),
    "diagonal": (applied(p.diagonal, offset=0), (normal(2, 3, 3),)),
    "diagonal below": (applied(p.diagonal, offset=-2), (normal(2, 4, 3),)),
    "diagonal beyond": (applied(p.diagonal, offset=5), (normal(3, 4),)),
    "flip": (applied(p.flip, axes=(1,)), (X,)),
    "pad": (applied(p.pad, low=(1, 0), high=(0, 2), interior=(1, 2), value=3.0), (X,)),
    "concatenate": (applied(p.concatenate, axis=1), (X, normal(3, 2), normal(3, 1))),
    "barrier": (applied(p.barrier), (X, normal(2))),
    "slice_update": (
        applied(p.slice_update, starts=(0, 1), stops=(3, 4), steps=(2, 2)),
        (X, normal(2, 2)),
    ),
    "unfold": (
        applied(p.unfold, axes=(0, 1), sizes=(2, 2), strides=(1, 2), dilations=(2, 1)),
        (normal(4, 5),),
    ),
    "fold": (
        applied(p.fold, axes=(1,), strides=(2,), dilations=(1,), shape=(2, 7)),
        (normal(2, 3, 3),),
    ),
    "gather": (lambda x: apply(p.gather, x, INDEX, axis=1), (X,)),
    "scatter_add": (lambda x, s: apply(p.scatter_add, x, INDEX, s, axis=1), (X, normal(3, 2))),
    "index": (lambda x: apply(p.index, x, ROWS, axis=0), (X,)),
    "index two axes": (lambda x: apply(p.index, x, ROWS, ROWS, axis=1), (normal(2, 3, 4),)),
    "index_put": (
        lambda x, v: apply(p.index_put, x, tg.tensor([2, 0]), v, axis=0, accumulate=False),
        (X, normal(2, 4)),
    ),
    "index_put accumulate": (
        lambda x, v: apply(p.index_put, x, ROWS, v, axis=0, accumulate=True),
        (X, normal(3, 4)),
    ),
    **{
        f"matmul {ta} {tb}": (
            applied(p.matmul, transpose_a=ta, transpose_b=tb),
            (normal(*((4, 3) if ta else (3, 4))), normal(*((2, 4) if tb else (4, 2)))),
        )
        for ta in (False, True)
        for tb in (False, True)
    },
    "matmul of broadcast batches": (
        applied(p.matmul, transpose_a=True, transpose_b=False),
        (normal(2, 1, 3, 2), normal(3, 3, 2)),
    ),
    "convolution": (
        applied(p.convolution, **CONVOLUTION, input_dilation=(1, 1), groups=1),
        (normal(2, 2, 5, 4), normal(3, 2, 2, 2)),
    ),
    "convolution of a spread input": (
        applied(p.convolution, **CONVOLUTION, input_dilation=(2, 1), groups=1),
        (normal(1, 2, 3, 4), normal(1, 2, 2, 2)),
    ),
    "convolution in groups": (
        applied(
            p.convolution,
            strides=(2,),
            padding=((0, 1),),
            dilation=(1,),
            input_dilation=(1,),
            groups=2,
        ),
        (normal(2, 4, 6), normal(4, 2, 3)),
    ),
    "convolution padded beyond its window": (
        applied(
            p.convolution,
            strides=(2,),
            padding=((3, 2),),
            dilation=(1,),
            input_dilation=(1,),
            groups=1,
        ),
        (normal(1, 1, 4), normal(1, 1, 2)),
    ),
    "convolution of nothing but its padding": (
        applied(
            p.convolution,
            strides=(1,),
            padding=((1, 2),),
            dilation=(1,),
            input_dilation=(2,),
            groups=1,
        ),
        (normal(2, 1, 0), normal(1, 1, 2)),
    ),
    # Composites with rules of their own.
    "fmod": (tg.fmod, (X, positive(4))),
    "logsumexp": (lambda x: tg.logsumexp(x, 1), (X,)),
    "std": (lambda x: x.std(1), (X,)),
    "norm": (lambda x: x.norm(dim=0), (X,)),
    "relu": (tg.relu, (X,)),
    "sigmoid": (tg.sigmoid, (4 * X,)),
    "softplus": (tg.nn.functional.softplus, (X,)),
    "silu": (tg.nn.functional.silu, (X,)),
    "gelu": (tg.nn.functional.gelu, (X,)),
    "gelu tanh": (lambda x: tg.nn.functional.gelu(x, approximate="tanh"), (X,)),
    "softmax": (lambda x: tg.softmax(x, 0), (X,)),
    "log_softmax": (lambda x: tg.log_softmax(x, 1), (X,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (X, normal(4), normal(4))),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, 1, 1), (normal(1, 2, 4, 3),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2, 2, 1), (normal(1, 2, 4, 3),)),
    "logistic loss": (
        lambda x, y: losses.binary_cross_entropy_with_logits(x, y, reduction="none"),
        (X, normal(3, 4, seed=2)),
    ),
    "cross_entropy": (lambda x: losses.cross_entropy(x, tg.tensor([0, 3, 1])), (X,)),
    "cumsum": (lambda x: tg.cumsum(x, 1), (X,)),
    "cumprod": (lambda x: tg.cumprod(x, 1), (X,)),
    "cumprod with zeros": (lambda x: tg.cumprod(x * ZEROS, 1), (X,)),
    "cummax": (lambda x: tg.cummax(x, 1).values, (X,)),
    "cummin": (lambda x: tg.cummin(x, 0).values, (X,)),
    "logcumsumexp": (lambda x: tg.logcumsumexp(x, 1), (X,)),
    "sort": (lambda x: tg.sort(x, 1).values, (X,)),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (normal(1, 3, 2), normal(1, 3, 2, seed=1), normal(1, 3, 2, seed=2)),
    ),
}


@pytest.mark.parametrize("primitive", UNARY, ids=str)
def test_unary(primitive: Primitive) -> None:
    check_gradients(applied(primitive), UNARY[primitive])


@pytest.mark.parametrize("primitive", BINARY, ids=str)
def test_binary(primitive: Primitive) -> None:
    check_gradients(applied(primitive), *BINARY[primitive])


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    function, inputs = OTHERS[name]
    check_gradients(function, *inputs)


def test_third_derivative() -> None:
    x = tg.tensor(0.7, dtype=tg.float64, requires_grad=True)
    y = x.sin() * x.exp()
    for _ in range(3):
        (y,) = tg.autograd.grad(y, x, create_graph=True)
    expected = 2 * np.exp(0.7) * (np.cos(0.7) - np.sin(0.7))
    assert y.item() == pytest.approx(expected)


def test_every_primitive_with_float_results_has_a_rule_or_is_listed() -> None:
    no_gradient = {
        # sources and what gives integers, booleans or bits
        "input", "constant", "full", "iota", "random_bits", "isnan", "isinf", "eq", "ne", "lt",
        "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "logical_xor",
        "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
        "argmax", "argmin", "argsort", "select_nth", "any", "all",
        # what selects among results, which have their rule together
        "get",
        # of detached matrices only: what is solved with its factors has a rule for the matrix
        "lu",
        # what only a pass writes, behind all that is differentiated
        "attention", "attention_rows", "attention_gradient", "sort", "assemble",
    }  # fmt: skip
    listed = no_gradient | {each.name for each in NON_DIFFERENTIABLE}
    missing = [
        name
        for name, primitive in PRIMITIVES.items()
        if primitive not in RULES and name not in listed
    ]
    assert missing == []


def test_a_rule_saves_only_what_it_names() -> None:
    """`mul` keeps its right operand only if the left one needs a gradient."""
    x = tg.ones(3, requires_grad=True)
    y = tg.ones(3)
    left = (x * y).grad_fn
    kept = [type(each).__name__ for each in left.inputs]
    assert kept == ["TensorType", "Saved"]


def test_a_missing_rule_is_named() -> None:
    with pytest.raises(NotImplementedError, match="gradient of where with respect to input 0"):
        RULES[p.where].saves((True, False, False))


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float32])
def test_cast_returns_the_cotangent_in_the_dtype_of_the_input(dtype: Any) -> None:
    x = tg.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    (x.double() * 3).sum().backward()
    assert x.grad.dtype is dtype
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_an_empty_source_is_part_of_the_history(reduce):
    w, at = tg.ones(0, requires_grad=True), tg.zeros(0, dtype=tg.int64)
    for y in (
        tg.zeros(3).scatter_reduce(0, at, w, reduce),
        tg.zeros(3).index_reduce(0, at, w, reduce),
    ):
        y.sum().backward()
        assert y.tolist() == [0.0] * 3 and w.grad.shape == (0,)
