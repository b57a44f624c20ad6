"""Attention without stored scores: its values, what masks and special values make of it, and who
gets it."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from attention_views import strided, views
from tgraph.compiler.passes import attention_pattern
from tgraph.compiler.targets.cpu import attention as llvm_attention
from tgraph.compiler.targets.cpu import attention_step as plan_attention

import tgraph as tg
import tgraph.nn.functional as F
from tgraph.drawing.function_picture import compiled_picture

# Batch, queries, keys, width, width of values: around vectors, tiles, panels and blocks.
SHAPES = [
    ((), 1, 3, 2, 1), ((2,), 5, 7, 3, 4), ((), 16, 128, 8, 16), ((1, 3), 33, 129, 64, 80),
    ((2, 2), 100, 300, 40, 17), ((), 257, 130, 100, 33), ((3,), 65, 513, 12, 1),
]  # fmt: skip
DTYPES = {tg.float32: 1e-6, tg.float64: 1e-14}


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    """However few queries there are."""
    monkeypatch.setattr(attention_pattern, "FEW_QUERIES", 0)


def operands(shape, dtype=tg.float32, seed=0):
    batch, queries, keys, width, value_width = shape
    rng = np.random.default_rng(seed)
    sizes = ((queries, width), (keys, width), (keys, value_width))
    return [tg.tensor(rng.standard_normal((*batch, *size))).to(dtype) for size in sizes]


def exactly(query, key, value, scale, bias=0.0, seen=True):
    """In float64, with the warnings of NumPy about rows that see nothing left out."""
    query, key, value = (each.to(tg.float64).numpy() for each in (query, key, value))
    with np.errstate(all="ignore"):
        scores = np.where(seen, query @ key.swapaxes(-1, -2) * scale + bias, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ value


def lower(queries, keys, diagonal=0):
    return np.arange(keys) <= np.arange(queries)[:, None] + diagonal


def compiled(function, *arguments):
    """What the compiled function gives, and that no more than attention is left of it."""
    plan = tg.compile(function)
    result = plan(*arguments)
    names = [each.name for each in plan.explain(*arguments).kernels]
    assert names.count("attention") == 1 and "matmul" not in names
    return result.to(tg.float64).numpy()


def check(found, wanted, dtype):
    np.testing.assert_allclose(found, wanted, rtol=20 * DTYPES[dtype], atol=4 * DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_values(shape, dtype, causal):
    query, key, value = operands(shape, dtype)
    queries, keys = query.shape[-2], key.shape[-2]

    def function(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    wanted = exactly(
        query, key, value, shape[3] ** -0.5, seen=lower(queries, keys) if causal else True
    )
    check(compiled(function, query, key, value), wanted, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_masks(shape, dtype):
    query, key, value = operands(shape, dtype)
    batch, queries, keys = query.shape[:-2], query.shape[-2], key.shape[-2]
    rng = np.random.default_rng(1)
    forms = [(queries, keys), (keys,), (queries, 1), (*batch, queries, keys)]
    if batch:
        forms.append((batch[0], *(1,) * len(batch), keys))
    for form in forms:
        flags, numbers = rng.random(form) < 0.7, tg.tensor(rng.standard_normal(form)).to(dtype)
        flags[..., 0] = True
        wanted = exactly(query, key, value, shape[3] ** -0.5, seen=flags)
        masked = (query, key, value, tg.tensor(flags))
        check(compiled(F.scaled_dot_product_attention, *masked), wanted, dtype)
        added = numbers.to(tg.float64).numpy()
        wanted = exactly(query, key, value, shape[3] ** -0.5, bias=added)
        biased = (query, key, value, numbers)
        check(compiled(F.scaled_dot_product_attention, *biased), wanted, dtype)


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
    query, key, value = operands(shape)
    rng = np.random.default_rng(2)
    form = (query.shape[-2], key.shape[-2])
    bias = rng.standard_normal(form).astype(np.float32)
    flags, others = rng.random(form) < 0.8, rng.random(form[1]) < 0.2
    flags[:, 0], others[0] = True, False
    seen = flags & ~others & lower(*form, 2)
    found = compiled(by_hand, query, key, value, *map(tg.tensor, (bias, flags, others)))
    check(found, exactly(query, key, value, 1 / 3, bias.astype(float), seen), tg.float32)


def test_a_finite_number_hides_as_it_stands():
    """Where all is hidden by it, all count alike."""
    query, key, value = operands(((2,), 40, 50, 8, 8))
    flags = np.random.default_rng(0).random((40, 50)) < 0.5
    flags[3] = False
    found = compiled(
        lambda q, k, v, m: tg.softmax((q @ k.mT).masked_fill(~m, -1e9), -1) @ v,
        *(query, key, value, tg.tensor(flags)),
    )
    wanted = exactly(query, key, value, 1.0, seen=flags)
    wanted[:, 3] = value.to(tg.float64).numpy().mean(-2)
    check(found, wanted, tg.float32)


def test_a_condition_on_positions_is_not_computed_for_each_score():
    """Later keys are left out: no mask is read or stored."""
    query, key, value = operands(((), 300, 300, 16, 16))

    def shifted(q, k, v):
        places = tg.arange(300)
        seen = places[:, None] - 7 > places
        return tg.softmax(tg.where(seen, q @ k.mT, -math.inf), -1) @ v

    plan = tg.compile(shifted)
    found = plan(query, key, value).numpy()
    (kernel,) = plan.explain(query, key, value).kernels
    assert kernel.bytes == 4 * 4 * 300 * 16
    wanted = exactly(query, key, value, 1.0, seen=lower(300, 300, -8))
    assert np.isnan(found[:8]).all() and not np.isnan(found[8:]).any()
    check(found[8:], wanted[8:], tg.float32)


def again(places):
    return tg.arange(6, dtype=places.dtype).expand(2, 6).reshape(12)


@pytest.mark.parametrize(
    "rows, columns, dtype",
    [
        (again, again, tg.int64),
        (again, lambda places: places, tg.int64),
        (lambda places: again(places) + 2, lambda places: places + 1, tg.int64),
        (lambda places: places - 5, lambda places: places - 3, tg.uint8),
        (lambda places: places + 118, lambda places: places + 117, tg.int8),
    ],
    ids=["both again", "rows again", "rows again, moved", "below zero", "beyond the type"],
)
def test_positions_that_begin_again_are_no_diagonal(rows, columns, dtype):
    """As those of several texts in a row do, and of narrow types that overflow."""
    query, key, value = operands(((), 12, 12, 8, 8))

    def function(q, k, v):
        places = tg.arange(12, dtype=dtype)
        hidden = rows(places)[:, None] < columns(places)
        return tg.softmax((q @ k.mT).masked_fill(hidden, -math.inf), -1) @ v

    places = tg.arange(12, dtype=dtype)
    seen = (rows(places)[:, None] >= columns(places)).numpy()
    check(
        compiled(function, query, key, value),
        exactly(query, key, value, 1.0, 0.0, seen),
        tg.float32,
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_special_values_go_where_they_went(where, value, causal, monkeypatch):
    """As in the products of whole matrices: 0 times the infinity of a masked value is NaN."""
    given = [each.numpy().copy() for each in operands(((2,), 200, 300, 8, 40))]
    given[where][1, 133, 5] = value
    given = [tg.tensor(each) for each in given]

    def function(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    found = compiled(function, *given)
    monkeypatch.setattr(attention_pattern, "FEW_QUERIES", 1 << 20)
    wanted = tg.compile(function)(*given).numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def hidden_row(is_choice):
    flags = np.ones((20, 300), bool)
    flags[5] = False
    return tg.tensor(flags if is_choice else np.where(flags, 0, -np.inf).astype(np.float32))


@pytest.mark.parametrize("is_choice", [True, False], ids=["boolean", "additive"])
def test_rows_that_see_nothing_are_zeros(is_choice):
    """As in PyTorch, and so are their gradients."""
    given, mask = operands(((), 20, 300, 4, 4)), hidden_row(is_choice)
    found = compiled(F.scaled_dot_product_attention, *given, mask)
    assert (found[5] == 0).all() and (np.delete(found, 5, 0) != 0).all()
    eager = F.scaled_dot_product_attention(*given, mask).numpy()
    np.testing.assert_allclose(found, eager, rtol=1e-4, atol=1e-5)
    given = [each.requires_grad_() for each in given]
    for function in (F.scaled_dot_product_attention, tg.compile(F.scaled_dot_product_attention)):
        gradients = tg.autograd.grad(function(*given, mask).sum(), given)
        assert all(each.isfinite().all() for each in gradients)
        assert (gradients[0][5] == 0).all() and (gradients[2] != 0).all()


def test_rows_that_see_nothing_are_nan_where_the_program_says_so():
    query, key, value = operands(((), 20, 300, 4, 4))
    found = compiled(
        lambda q, k, v, mask: tg.softmax(q @ k.mT + mask, -1) @ v, query, key, value,
        hidden_row(False),
    )  # fmt: skip
    assert np.isnan(found[5]).all() and not np.isnan(np.delete(found, 5, 0)).any()


def test_large_scores_do_not_overflow():
    query, key, value = operands(((), 40, 400, 8, 8))
    found = compiled(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=300.0), query, key, value
    )
    # Scores of some thousand are rounded, which weights show.
    np.testing.assert_allclose(found, exactly(query, key, value, 300.0), rtol=5e-3, atol=5e-3)


def test_operands_are_read_where_they_lie():
    rng = np.random.default_rng(0)
    given = [tg.tensor(rng.standard_normal((2, 50, 24)).astype(np.float32)) for _ in range(3)]
    plain = [each.reshape(2, 50, 3, 8).transpose(1, 2) for each in given]
    wanted = exactly(plain[0][:, :, ::2], plain[1], plain[2][..., 2:7], 8**-0.5)
    check(compiled(views, *given), wanted, tg.float32)


def test_strided_arguments():
    query, key, value = operands(((2,), 30, 41, 6, 7))
    wide = [strided(each) for each in (query, key, value)]
    found = compiled(F.scaled_dot_product_attention, *wide)
    check(found, exactly(query, key, value, 6**-0.5), tg.float32)


@pytest.mark.parametrize("form", [None, (20, 30), (1, 20, 30), (6, 20, 30), (2, 1, 1, 30)])
def test_grouped_heads(form):
    """Keys and values are not repeated in memory."""
    query, _, _ = operands(((2, 6), 20, 1, 8, 8))
    _, key, value = operands(((2, 2), 1, 30, 8, 8))
    flags = np.random.default_rng(0).random(form or (20, 30)) < 0.8
    flags[..., 0] = True
    masks = [] if form is None else [tg.tensor(flags)]
    plan = tg.compile(
        lambda q, k, v, *m: F.scaled_dot_product_attention(q, k, v, *m, enable_gqa=True)
    )
    found = plan(query, key, value, *masks)
    assert [each.name for each in plan.explain(query, key, value, *masks).kernels] == ["attention"]
    wide = [each.repeat_interleave(3, -3) for each in (key, value)]
    wanted = exactly(query, *wide, 8**-0.5, seen=flags if masks else True)
    check(found.to(tg.float64).numpy(), wanted, tg.float32)


def test_a_row_is_the_same_however_the_work_is_cut(monkeypatch):
    query, key, value = operands(((3, 2), 150, 300, 16, 24))
    flags = tg.tensor(np.random.default_rng(1).random((150, 300)) < 0.9)

    def function(q, k, v, m):
        return F.scaled_dot_product_attention(q, k, v, m)

    def causal(q, k, v, m):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    before = tg.get_num_threads()
    for each in (function, causal):
        results = []
        try:
            for threads, panels in ((1, 4), (2, 4), (5, 1), (2, 2)):
                monkeypatch.setattr(plan_attention, "MOST_PANELS", panels)
                tg.set_num_threads(threads)
                results.append(tg.compile(each)(query, key, value, flags).numpy())
        finally:
            tg.set_num_threads(before)
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)
        rows = each(query, key, value, flags)[1, 1, :40].shape
        part = tg.compile(each)(query[1, 1, :40], key[1, 1], value[1, 1], flags[:40]).numpy()
        assert part.shape == rows
        np.testing.assert_array_equal(results[0][1, 1, :40], part)


def test_who_wants_the_weights_gets_them():
    query, key, value = operands(((2,), 40, 50, 8, 8))

    def both(q, k, v):
        weights = tg.softmax(q @ k.mT, -1)
        return weights @ v, weights

    plan = tg.compile(both)
    mixed, weights = plan(query, key, value)
    assert "attention" not in [each.name for each in plan.explain(query, key, value).kernels]
    wanted = exactly(query, key, value, 1.0)
    check(mixed.to(tg.float64).numpy(), wanted, tg.float32)
    check((weights @ value).to(tg.float64).numpy(), wanted, tg.float32)


def test_gradients_are_those_of_eager_code():
    found = []
    for compiles in (False, True):
        given = [each.requires_grad_() for each in operands(((2,), 20, 30, 8, 8))]
        function = F.scaled_dot_product_attention
        (tg.compile(function) if compiles else function)(*given).square().sum().backward()
        found.append([each.grad.numpy() for each in given])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_few_queries_are_products_by_rows(monkeypatch):
    monkeypatch.undo()
    query, key, value = operands(((2,), 1, 400, 8, 8))
    plan = tg.compile(F.scaled_dot_product_attention)
    plan(query, key, value)
    assert "attention" not in [each.name for each in plan.explain(query, key, value).kernels]


def test_explain_tells_of_blocks():
    query, key, value = operands(((2, 3), 300, 200, 16, 8))
    plan = tg.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    (kernel,) = plan.explain(query, key, value).kernels
    assert kernel.kind == "attention"
    assert "6 x 300 x 200 (batch x queries x keys), width 16, with diagonal" in kernel.schedule
    seen = 200 * 201 // 2 + 100 * 200
    assert kernel.flops == 2 * 6 * seen * (16 + 8)
    assert "1 library call" in compiled_picture(plan, (query, key, value), {}).summary


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.name)
def test_a_thread_with_a_small_stack_is_enough(dtype):
    """The widest panels, with masks, in a call of a thread that has little more than these need."""
    width = attention_pattern.MAX_WIDTH
    given = (
        *operands(((), 100, 200, width, width), dtype),
        tg.zeros(100, 200, dtype=dtype),
        tg.ones(100, 200, dtype=tg.bool),
    )

    def function(q, k, v, bias, flags):
        return tg.softmax(tg.where(flags, q @ k.mT / 16 + bias, -math.inf), -1) @ v

    plan, found = tg.compile(function), []
    wanted = plan(*given).numpy()
    before, threads = threading.stack_size(256 << 10), tg.get_num_threads()
    try:
        tg.set_num_threads(1)
        thread = threading.Thread(target=lambda: found.append(plan(*given).numpy()))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
        tg.set_num_threads(threads)
    np.testing.assert_array_equal(found[0], wanted)
