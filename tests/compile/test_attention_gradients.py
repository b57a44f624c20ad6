"""Gradients of attention without stored weights: their values, memory, and who gets them."""

from __future__ import annotations

import itertools
import math
import threading

import numpy as np
import pytest
from attention_views import strided, views
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import Builder, Graph, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes import attention_pattern, fuse_attention_gradients
from tgraph.compiler.targets.cpu import attention as llvm_attention
from tgraph.compiler.targets.cpu import attention_step as plan_attention

import tgraph as tg
import tgraph.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

# Batch, queries, keys, width, width of values: around vectors, tiles, panels, blocks and parts.
SHAPES = [
    ((), 1, 3, 2, 1), ((2,), 5, 7, 3, 4), ((), 16, 128, 8, 16), ((1, 3), 33, 129, 64, 80),
    ((2, 2), 100, 300, 40, 17), ((), 257, 130, 100, 33), ((3,), 65, 513, 12, 1),
    ((2,), 333, 333, 40, 40),
]  # fmt: skip
DTYPES = {tg.float32: 2e-5, tg.float64: 1e-13}
STORED = 1 << 60


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    """However few queries there are, and however small the weights."""
    monkeypatch.setattr(attention_pattern, "FEW_QUERIES", 0)
    monkeypatch.setattr(fuse_attention_gradients, "STORED_BYTES", 0)


def operands(shape, dtype=tg.float32, seed=0):
    batch, queries, keys, width, value_width = shape
    rng = np.random.default_rng(seed)
    sizes = ((queries, width), (keys, width), (keys, value_width), (queries, value_width))
    return [tg.tensor(rng.standard_normal((*batch, *size))).to(dtype) for size in sizes]


def leaves(arrays):
    return [each.detach().clone().requires_grad_() for each in arrays]


def training(function):
    """Value and gradients in one plan."""

    def step(q, k, v, given, *masks):
        result = function(q, k, v, *masks)
        return result, *tg.autograd.grad((result * given).sum(), [q, k, v])

    return step


def names(plan, *arguments):
    found = plan.explain(*arguments)
    return [each.name for each in found.kernels]


def joined(function, q, k, v, given, *masks):
    """Value and gradients of one plan, in which no product and no softmax is left."""
    inputs = leaves((q, k, v))
    plan = tg.compile(training(function))
    found = plan(*inputs, given, *masks)
    kernels = names(plan, *inputs, given, *masks)
    assert kernels.count("attention_gradient") == 1 and kernels.count("attention_rows") == 1
    assert "matmul" not in kernels
    return [each.detach().to(tg.float64).numpy() for each in found]


def apart(function, q, k, v, given, *masks):
    """The same of a compiled function whose backward is called outside."""
    inputs = leaves((q, k, v))
    plan = tg.compile(function)
    result = plan(*inputs, *masks)
    found = tg.autograd.grad((result * given).sum(), inputs)
    kernels = names(plan, *inputs, *masks)
    assert "attention_rows" in kernels and "attention_gradient" in kernels
    assert "matmul" not in kernels
    return [each.detach().to(tg.float64).numpy() for each in (result, *found)]


def stored(function, q, k, v, given, *masks):
    """The same in float64, as eager code has it at first: with all weights in memory."""
    inputs = [each.to(tg.float64).detach().requires_grad_() for each in (q, k, v)]
    masks = [each if each.dtype is tg.bool else each.to(tg.float64) for each in masks]
    with tg.no_grad():
        given = given.to(tg.float64)
    with np.errstate(all="ignore"):
        result = function(*inputs, *masks)
        found = tg.autograd.grad((result * given).sum(), inputs)
    return [each.detach().numpy() for each in (result, *found)]


def check(found, wanted, tolerance):
    for one, other in zip(found, wanted, strict=True):
        scale = np.abs(other[np.isfinite(other)]).max(initial=1e-30)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


def check_all(function, given, dtype=tg.float32):
    wanted = stored(function, *given)
    check(joined(function, *given), wanted, DTYPES[dtype])
    check(apart(function, *given), wanted, DTYPES[dtype])


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", [F.scaled_dot_product_attention, causal])
def test_values(shape, dtype, function):
    check_all(function, operands(shape, dtype), dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_masks(shape):
    given = operands(shape)
    batch, queries, keys = given[0].shape[:-2], given[0].shape[-2], given[1].shape[-2]
    rng = np.random.default_rng(1)
    for form in [(queries, keys), (keys,), (queries, 1), (*batch, queries, keys)]:
        flags = rng.random(form) < 0.7
        flags[..., 0] = True
        check_all(F.scaled_dot_product_attention, [*given, tg.tensor(flags)])
        bias = tg.tensor(rng.standard_normal(form).astype(np.float32))
        check_all(F.scaled_dot_product_attention, [*given, bias])


def by_hand(q, k, v, bias, flags, others):
    scores = q @ k.transpose(-1, -2) / 3 + bias
    scores = tg.where(flags, scores, -math.inf)
    later = tg.triu(tg.ones(scores.shape[-2:], dtype=tg.bool), 3)
    scores = scores.masked_fill(later, -math.inf)
    scores = tg.where(others, -math.inf, scores)
    return tg.softmax(scores, -1) @ v


@pytest.mark.parametrize("keys", [1, 3, 128])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_written_by_hand_with_all_masks(shape, keys, monkeypatch):
    monkeypatch.setattr(llvm_attention, "KEYS", keys)
    monkeypatch.setattr(fuse_attention_gradients, "KEYS_OF_PART", 2)
    given = operands(shape)
    rng = np.random.default_rng(2)
    form = (given[0].shape[-2], given[1].shape[-2])
    bias = rng.standard_normal(form).astype(np.float32)
    flags, others = rng.random(form) < 0.8, rng.random(form[1]) < 0.2
    flags[:, 0], others[0] = True, False
    check_all(by_hand, [*given, *map(tg.tensor, (bias, flags, others))])


def test_a_finite_number_hides_as_it_stands():
    given = operands(((2,), 40, 50, 8, 8))
    flags = np.random.default_rng(0).random((40, 50)) < 0.5
    flags[3] = False
    check_all(
        lambda q, k, v, m: tg.softmax((q @ k.mT).masked_fill(~m, -1e9), -1) @ v,
        [*given, tg.tensor(flags)],
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", [0, 1, 2, 3])
@pytest.mark.parametrize("function", [F.scaled_dot_product_attention, causal])
def test_special_values_go_where_they_went(where, value, function, monkeypatch):
    """As in the products of whole matrices: 0 times an infinity is NaN, and hidden keys are 0."""
    given = [each.numpy().copy() for each in operands(((2,), 200, 300, 8, 40))]
    given[where][1, 133, 5] = value
    given = [tg.tensor(each) for each in given]
    found = joined(function, *given)
    monkeypatch.setattr(fuse_attention_gradients, "STORED_BYTES", STORED)
    wanted = tg.compile(training(function))(*leaves(given[:3]), given[3])
    for one, other in zip(found, (each.detach().numpy() for each in wanted), strict=True):
        if where == 3 and math.isinf(value):
            # Infinity minus infinity: of sums in another order some are NaN, some infinite.
            one, other = (np.where(np.isfinite(each), each, np.nan) for each in (one, other))
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_choice", [True, False], ids=["boolean", "additive"])
def test_rows_that_see_nothing_have_no_gradient(is_choice):
    flags = np.ones((20, 300), bool)
    flags[5] = False
    mask = tg.tensor(flags if is_choice else np.where(flags, 0, -np.inf).astype(np.float32))
    given = [*operands(((), 20, 300, 4, 4)), mask]
    check_all(F.scaled_dot_product_attention, given)
    assert (joined(F.scaled_dot_product_attention, *given)[1][5] == 0).all()


@pytest.mark.parametrize("diagonal", [-40, -1, 5, 150])
def test_masks_by_position_are_a_diagonal(diagonal):
    """Rows that see nothing have zeros, whose gradients are zeros; whole panels may see nothing."""
    given = operands(((2,), 100, 300, 8, 8))

    def function(q, k, v):
        mask = tg.ones(100, 300, dtype=tg.bool).tril(diagonal)
        return F.scaled_dot_product_attention(q, k, v, mask)

    check_all(function, given)
    inputs = leaves(given[:3])
    plan = tg.compile(function)
    plan(*inputs).sum().backward()
    steps = [each for each in plan.explain(*inputs).kernels if each.kind == "attention"]
    assert ["with diagonal" in each.schedule for each in steps] == [True, True]


def test_rows_that_see_nothing_are_nan_where_the_program_says_so(monkeypatch):
    """Keys before the first one are seen by nobody: weights are 0 / 0."""
    given = operands(((), 300, 300, 8, 8))

    def function(q, k, v):
        places = tg.arange(300)
        seen = places[:, None] - 7 > places
        return tg.softmax(tg.where(seen, q @ k.mT, -math.inf), -1) @ v

    found = joined(function, *given)
    monkeypatch.setattr(fuse_attention_gradients, "STORED_BYTES", STORED)
    wanted = tg.compile(training(function))(*leaves(given[:3]), given[3])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-4, atol=1e-4)
    assert np.isnan(found[0][:8]).all() and np.isnan(found[3]).all()


def test_large_scores_do_not_overflow():
    """Weights are exact shares of their sums even where scores are rounded by much."""
    given = operands(((), 40, 400, 8, 8))

    def function(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=3000.0)

    found = joined(function, *[*given[:3], tg.ones(40, 8)])
    assert all(np.isfinite(each).all() for each in found)
    # The gradient of values adds up weights, of which each row has one.
    np.testing.assert_allclose(found[3].sum(0), 40, rtol=1e-5)


def test_operands_are_read_where_they_lie():
    rng = np.random.default_rng(0)
    given = [tg.tensor(rng.standard_normal((2, 50, 24)).astype(np.float32)) for _ in range(3)]
    check_all(views, [*given, tg.tensor(rng.standard_normal((2, 3, 25, 5)).astype(np.float32))])


def test_strided_arguments():
    given = operands(((2,), 30, 41, 6, 7))
    wide = [strided(each) for each in given]
    wanted = stored(F.scaled_dot_product_attention, *given)
    inputs = [each.detach().requires_grad_() for each in wide[:3]]
    found = tg.compile(training(F.scaled_dot_product_attention))(*inputs, wide[3])
    check([each.detach().numpy() for each in found], wanted, 2e-5)


@pytest.mark.parametrize("form", [None, (20, 30), (1, 20, 30), (6, 20, 30), (2, 1, 1, 30)])
def test_grouped_heads(form):
    query, _, _, given = operands(((2, 6), 20, 1, 8, 8))
    _, key, value, _ = operands(((2, 2), 1, 30, 8, 8))
    flags = np.random.default_rng(0).random(form or (20, 30)) < 0.8
    flags[..., 0] = True
    masks = [] if form is None else [tg.tensor(flags)]
    check_all(
        lambda q, k, v, *m: F.scaled_dot_product_attention(q, k, v, *m, enable_gqa=True),
        [query, key, value, given, *masks],
    )


@pytest.mark.parametrize("alike", [0, 1, 2])
def test_operands_that_a_batch_shares(alike):
    given = operands(((3, 2), 40, 50, 8, 6))
    given[alike] = given[alike][:1, :1]
    wanted = stored(causal, *given)
    inputs = leaves(given[:3])
    found = tg.compile(training(causal))(*inputs, given[3])
    check([each.detach().numpy() for each in found], wanted, 2e-5)


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 2), (1, 2)], ids=str)
def test_some_gradients_alone(which):
    given = operands(((2,), 70, 150, 16, 24))
    wanted = stored(causal, *given)

    def step(*arguments):
        result = causal(*arguments[:3])
        return tg.autograd.grad((result * arguments[3]).sum(), [arguments[at] for at in which])

    inputs = leaves(given[:3])
    plan = tg.compile(step)
    found = [each.numpy() for each in plan(*inputs, given[3])]
    # Of the values alone it is one product with the weights.
    assert ("attention_gradient" in names(plan, *inputs, given[3])) == (which != (2,))
    check(found, [wanted[1 + at] for at in which], 2e-5)
    inputs = [
        each.detach().clone().requires_grad_(at in which) for at, each in enumerate(given[:3])
    ]
    result = tg.compile(causal)(*inputs)
    (result * given[3]).sum().backward()
    check([inputs[at].grad.numpy() for at in which], [wanted[1 + at] for at in which], 2e-5)


def test_results_do_not_depend_on_threads(monkeypatch):
    given = operands(((3,), 300, 700, 16, 24))
    before, results = tg.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            tg.set_num_threads(threads)
            results.append(joined(causal, *given))
    finally:
        tg.set_num_threads(before)
    for other in results[1:]:
        for one, another in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, another)


def test_few_items_are_cut_by_their_keys():
    """The parts of the gradient of queries are added up."""
    given = operands(((), 200, 1100, 16, 16))
    plan = tg.compile(training(F.scaled_dot_product_attention))
    inputs = leaves(given[:3])
    plan(*inputs, given[3])
    (step,) = [
        each for each in plan.explain(*inputs, given[3]).kernels
        if each.name == "attention_gradient"
    ]  # fmt: skip
    assert "4 pieces" in step.schedule
    check_all(F.scaled_dot_product_attention, given)


def test_second_gradients():
    function = F.scaled_dot_product_attention
    found = []
    for compiles in (False, True):
        q, k, v, given = operands(((2,), 20, 30, 8, 8), tg.float64)
        inputs = leaves((q, k, v))
        result = (tg.compile(function) if compiles else function)(*inputs)
        first = tg.autograd.grad((result * given).sum(), inputs, create_graph=True)
        second = tg.autograd.grad(sum(each.square().sum() for each in first), inputs)
        found.append([each.detach().numpy() for each in (*first, *second)])
    check(*found, 1e-12)


def test_second_gradients_in_one_plan():
    def step(q, k, v):
        (first,) = tg.autograd.grad(causal(q, k, v).square().sum(), [k], create_graph=True)
        return tg.autograd.grad(first.square().sum(), [q, k, v])

    inputs = leaves(operands(((2,), 20, 30, 8, 8), tg.float64)[:3])
    found = [each.numpy() for each in tg.compile(step)(*inputs)]
    check(found, [each.numpy() for each in step(*inputs)], 1e-12)


def test_memory_grows_with_the_length_alone(monkeypatch):
    """No plan has room for the weights of a head, nor hands them over to another."""
    monkeypatch.undo()
    length = 1024
    inputs = leaves(operands(((2,), length, length, 16, 16))[:3])

    def step(q, k, v):
        return tg.autograd.grad(causal(q, k, v).square().sum(), [q, k, v])

    whole = tg.compile(step).plan_for(*inputs).function.plain
    function = tg.compile(causal).plan_for(*inputs).function
    backward, _ = function.backward_plan(function.asks_all)
    for executable in (whole, function.forward.executable, backward):
        assert executable.plan.arena_bytes < length * length
    saved = itertools.chain.from_iterable(function.forward.nodes)
    assert all(node.type.nbytes < length * length for node in saved)


def test_small_weights_are_stored(monkeypatch):
    monkeypatch.undo()
    inputs = leaves(operands(((2, 2), 128, 128, 16, 16)))
    plan = tg.compile(training(causal))
    plan(*inputs)
    assert "attention_gradient" not in names(plan, *inputs)


@pytest.mark.parametrize("kept", ["weights", "scores", "bias"])
def test_who_wants_what_is_between_gets_it(kept):
    q, k, v, given = operands(((2,), 40, 50, 8, 8))
    bias = tg.zeros(40, 50).requires_grad_()

    def step(q, k, v, given, bias):
        scores = q @ k.mT + bias
        weights = tg.softmax(scores, -1)
        result = weights @ v
        loss = (result * given).sum()
        if kept == "bias":
            return tg.autograd.grad(loss, [q, k, v, bias])
        gradients = tg.autograd.grad(loss, [q, k, v])
        return *gradients, weights if kept == "weights" else scores

    inputs = (*leaves((q, k, v)), given, bias)
    plan = tg.compile(step)
    found = [each.detach().numpy() for each in plan(*inputs)]
    assert "attention_gradient" not in names(plan, *inputs)
    check(found, [each.detach().numpy() for each in step(*inputs)], 2e-5)


def test_dropout_of_weights_stores_them():
    q, k, v, given = operands(((2,), 40, 50, 8, 8))
    inputs = leaves((q, k, v))

    def function(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)

    plan, found = tg.compile(training(function)), []
    for each in (plan, training(function)):
        tg.manual_seed(0)
        found.append([array.detach().numpy() for array in each(*inputs, given)])
    check(*found, 2e-5)
    assert "attention_gradient" not in names(plan, *inputs, given)


def test_a_product_that_is_divided_by_sums_of_rows():
    def function(q, k, v):
        weights = tg.exp(q @ k.mT)
        return (2 / weights.sum(-1, keepdim=True)) * (weights @ v)

    q, k, v, given = operands(((2,), 3, 5, 4, 4))
    inputs = (*leaves((q, k, v)), given)
    found = [tg.compile(training(function))(*inputs), training(function)(*inputs)]
    check(*([each.detach().numpy() for each in results] for results in found), 2e-5)


@pytest.mark.parametrize(
    "shape",
    [((0,), 5, 7, 3, 4), ((2,), 0, 7, 3, 4), ((2,), 5, 7, 0, 4), ((2,), 5, 7, 3, 0)],
    ids=str,
)
def test_nothing_to_compute(shape):
    given = operands(shape)
    wanted = stored(F.scaled_dot_product_attention, *given)
    found = tg.compile(training(F.scaled_dot_product_attention))(*leaves(given[:3]), given[3])
    check([each.detach().numpy() for each in found], wanted, 2e-5)


def test_inputs_of_one_name_stay_apart():
    """As those of several calls have that save something."""
    build, dense = Builder(), {"transpose_a": False, "transpose_b": False}
    q, k, v, given = (input_node("x", TensorType((40, 40), tg.float32)) for _ in range(4))
    keep = {"axes": (1,), "keepdims": True}

    def do(primitive, *inputs, **attrs):
        return build.apply(primitive, inputs, attrs)

    scores = do(p.matmul, q, k, **dense)
    powers = do(p.exp, do(p.sub, scores, do(p.max_, scores, **keep)))
    weights = do(p.div, powers, do(p.sum_, powers, **keep))
    result = do(p.matmul, weights, v, **dense)
    change = do(p.matmul, given, v, transpose_a=False, transpose_b=True)
    rest = do(p.sub, change, do(p.sum_, do(p.mul, weights, change), **keep))
    of_query = do(p.matmul, do(p.mul, weights, rest), k, transpose_a=False, transpose_b=True)
    graph = Graph([q, k, v, given], [result, of_query, do(p.add, q, k)])
    after = fuse_attention_gradients.fuse_attention_gradients(graph)
    assert p.attention_gradient in after.primitives
    arrays = [each.numpy() for each in operands(((4,), 40, 40, 40, 40))[0]]
    for one, other in zip(interpret(graph, arrays), interpret(after, arrays), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_layers_of_attention():
    """What one gives is what the next reads, forward and backward."""
    given = operands(((2,), 50, 50, 16, 16))

    def function(q, k, v):
        for _ in range(3):
            q, k, v = k, causal(q, k, v), q + v
        return F.scaled_dot_product_attention(q, k, v)

    wanted = stored(function, *given)
    inputs = leaves(given[:3])
    plan = tg.compile(training(function))
    found = plan(*inputs, given[3])
    kernels = names(plan, *inputs, given[3])
    assert kernels.count("attention_gradient") == 4
    check([each.detach().numpy() for each in found], wanted, 1e-4)


def test_explain_tells_that_weights_are_computed_again():
    given = operands(((2, 3), 300, 200, 16, 8))
    inputs = leaves(given[:3])
    plan = tg.compile(training(causal))
    plan(*inputs, given[3])
    (step,) = [
        each for each in plan.explain(*inputs, given[3]).kernels
        if each.name == "attention_gradient"
    ]  # fmt: skip
    assert step.kind == "attention"
    assert step.schedule.startswith("weights again by blocks of keys: float32 6 x 300 x 200 (batch")
    assert "width 16, with diagonal" in step.schedule
    seen = 200 * 201 // 2 + 100 * 200
    assert step.flops == 2 * 6 * seen * (3 * 16 + 2 * 8)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.name)
def test_a_thread_with_a_small_stack_is_enough(dtype):
    """The widest panels, with masks, in a call of a thread that has little more than these need."""
    width = fuse_attention_gradients.MOST_WIDTH
    given = operands(((), 100, 200, width, width), dtype)
    masks = (tg.zeros(100, 200, dtype=dtype), tg.ones(100, 200, dtype=tg.bool))

    def function(q, k, v, bias, flags):
        return tg.softmax(tg.where(flags, q @ k.mT / 16 + bias, -math.inf), -1) @ v

    arguments = (*leaves(given[:3]), given[3], *masks)
    plan, found = tg.compile(training(function)), []
    wanted = plan(*arguments)
    assert "attention_gradient" in names(plan, *arguments)
    before, threads = threading.stack_size(256 << 10), tg.get_num_threads()
    try:
        tg.set_num_threads(1)
        thread = threading.Thread(target=lambda: found.extend(plan(*arguments)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
        tg.set_num_threads(threads)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())


def test_the_widest_weights_are_stored():
    width = fuse_attention_gradients.MOST_WIDTH + 1
    given = operands(((), 40, 50, width, 8))
    plan = tg.compile(training(causal))
    inputs = leaves(given[:3])
    found = plan(*inputs, given[3])
    assert "attention_gradient" not in names(plan, *inputs, given[3])
    check([each.detach().numpy() for each in found], stored(causal, *given), 2e-5)


@pytest.mark.skipif(torch is None, reason="compares with PyTorch, which is not installed")
@pytest.mark.parametrize("shape", [((2, 2), 100, 300, 40, 17), ((1, 3), 333, 333, 64, 64)], ids=str)
@pytest.mark.parametrize("mask", ["none", "causal", "boolean", "additive"])
def test_gradients_are_those_of_pytorch(shape, mask):
    given = operands(shape)
    form = (given[0].shape[-2], given[1].shape[-2])
    rng = np.random.default_rng(3)
    flags = rng.random(form) < 0.7
    flags[:, 0] = True
    arrays = {"boolean": [flags], "additive": [rng.standard_normal(form).astype(np.float32)]}
    masks = arrays.get(mask, [])

    def function(module, q, k, v, *masks):
        return module.scaled_dot_product_attention(q, k, v, *masks, is_causal=mask == "causal")

    theirs = [torch.tensor(each.numpy()) for each in given]
    inputs = [each.requires_grad_() for each in theirs[:3]]
    result = function(torch.nn.functional, *inputs, *map(torch.tensor, masks))
    (result * theirs[3]).sum().backward()
    wanted = [each.detach().numpy() for each in (result, *(each.grad for each in inputs))]
    found = joined(lambda *x: function(F, *x), *given, *map(tg.tensor, masks))
    check(found, wanted, 2e-5)


@pytest.mark.parametrize("most", [1, 4])
def test_forward_has_the_same_bits_however_it_is_cut(most, monkeypatch):
    monkeypatch.setattr(plan_attention, "MOST_PANELS", most)
    given = operands(((2,), 150, 300, 16, 24))
    found = joined(causal, *given)[0]
    np.testing.assert_array_equal(found, tg.compile(causal)(*given[:3]).numpy())
