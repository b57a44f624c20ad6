"""Sizes that data decide, inside one plan: `x[mask]`, `nonzero`, `unique`, and what comes of them.

However many elements are selected, a function is traced once, and its results are those of eager
code: of none, of one, of all.
"""

import numpy as np
import pytest
from opcases import CASES
from sampling import rotating
from selection_cases import FUNCTIONS, data, random_program, tensors
from test_dynamic import assert_same, tried
from test_ops import ids

import tgraph as tg
from tgraph import nn
from tgraph.tracing import host_call

F = nn.functional


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_number_may_be_selected(name):
    function = FUNCTIONS[name]
    compiled = tg.compile(function)
    for x in tensors(6, 4):
        tg.manual_seed(0)
        found = tg.pytree.leaves(compiled(x))
        tg.manual_seed(0)
        assert_same(found, tg.pytree.leaves(function(x)), exact=False)
    compiled.assert_compiles(1)


@pytest.mark.parametrize(
    "name", ["sum", "computed", "rows by rows", "softmax", "one of another", "index_put", "two"]
)
def test_gradients(name):
    def loss(x):
        return sum((each.sin() * each).sum() for each in tg.pytree.leaves(FUNCTIONS[name](x)))

    def derived(function, x):
        x = x.clone().requires_grad_()
        (first,) = tg.autograd.grad(function(x), [x], create_graph=True)
        if not first.requires_grad:
            return [first]
        return [first, *tg.autograd.grad((first * first).sum(), [x])]

    compiled, inside = tg.compile(loss), tg.compile(tg.grad(loss))
    for x in tensors(6, 4):
        wanted = derived(loss, x)
        for have, want in zip(derived(compiled, x), wanted, strict=True):
            np.testing.assert_allclose(have.detach(), want.detach(), rtol=1e-3, atol=1e-3)
        assert_same([inside(x)], wanted[:1], exact=False)
    compiled.assert_compiles(1)
    inside.assert_compiles(1)


def training():
    tg.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = tg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        known = y >= 0
        scores = model(x)
        loss = F.cross_entropy(scores[known], y[known])
        loss = loss + scores[scores.amax(1) > 0.2].sum() * 0.01
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def test_a_training_step_on_what_has_a_label_compiles_once():
    (model, step), (other, eager) = training(), training()
    compiled = tg.compile(step, dynamic={"x": {0: "batch"}, "y": {0: "batch"}})
    for at, n in enumerate([5, 9, 33, 8, 5]):
        x, y = data(at, n, 4), tg.arange(n) % 4 - 1
        for function in (compiled, eager):
            tg.manual_seed(at)
            function(x, y)
        found, wanted = list(model.parameters()), list(other.parameters())
        assert_same(found, wanted, exact=False)
    compiled.assert_compiles(1)


def test_sizes_that_vary_beside_those_that_data_decide():
    def function(x, y):
        return x[x > 0].sum(), tg.cat([y[y[:, 0] > 0], x[:1, None].expand(-1, 4)])

    compiled = tg.compile(function, dynamic={"x": 0, "y": {0: "m", 1: "width"}})
    for n, m in ((1, 3), (7, 0), (64, 65), (1000, 17), (2, 2)):
        arguments = data(n, n), data(m + 1, m, 4)
        assert_same(compiled(*arguments), function(*arguments), exact=False)
    compiled.assert_compiles(1)


def test_few_compilations_serve_all_numbers():
    compiled = tg.compile(lambda x, n: ((x < n) * x)[x < n].tanh().sum())
    for n in [*range(40), *range(40, 3000, 97)]:
        compiled(tg.arange(3000.0), tg.tensor(float(n)))
    compiled.assert_compiles(1)
    told = [
        each for each in compiled.explain(tg.ones(3000), tg.tensor(5.0)).sizes if "one p" in each
    ]
    assert len(told) <= 9, told


def test_what_python_asks_of_a_number_makes_a_trace_for_each_answer():
    def function(x):
        chosen = x[x > 0]
        return chosen[:2].sum() if len(chosen) > 2 else chosen * 2

    compiled = tg.compile(function)
    for x in (*tensors(5), *tensors(5)):
        assert_same([compiled(x)], [function(x)], exact=False)
    compiled.assert_compiles(2)
    assert "count > 2" in compiled.compiles[1].reason or "count" in compiled.compiles[1].reason


def test_a_row_that_is_selected_alone_is_broadcast():
    def function(x, y):
        return x[x > 0] + y

    compiled = tg.compile(function)
    for signs in ((1, 1, -1), (1, -1, -1), (1, 1, 1), (-1, -1, -1)):
        x = tg.tensor(signs, dtype=tg.float32)
        for y in (tg.ones(3), tg.ones(1)):
            found, wanted = (tried(each, (x.numpy(), y.numpy())) for each in (compiled, function))
            if isinstance(wanted, type):
                assert found is wanted
            else:
                assert_same(found, wanted, exact=True)


def test_state_and_numbers():
    class Kept:
        steps, last = 0, tg.zeros(2)

    def function(x):
        kept.steps += 1
        kept.last = x[x > 0]
        counts.append(kept.last.shape[0])
        return kept.last * kept.steps

    kept, counts = Kept(), []
    compiled = tg.compile(function)
    for at, x in enumerate(tensors(6), 1):
        assert_same([compiled(x)], [x[x > 0] * at], exact=True)
        assert kept.steps == at and counts[-1] == len(x[x > 0])
        assert_same([kept.last], [x[x > 0]], exact=True)


def refuses_number(x):
    return tg.zeros(len(range(x[x > 0].shape[0])))


def refuses_text(x):
    return f"{x[x > 0].shape[0]}"


def refuses_host_call(x):
    seen = host_call(np.copy, x, results=x, effect="ordered")
    return seen[seen > 0]


def refuses_branch(x):
    return tg.cond(x.sum() > 0, lambda x: x[x > 0].sum(), tg.sum, x)


def refuses_turn(x):
    return tg.scan(lambda total, row: (total + row[row > 0].sum(), total), tg.tensor(0.0), x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (refuses_branch, "Use tg.where, .* or move it out of the compiled function"),
        (refuses_turn, "Use tg.where, .* or move it out of the compiled function"),
        (refuses_number, "asks at .* for the number of elements that are selected at "),
        (refuses_text, "asks at .* for the number of elements that are selected at "),
        (refuses_host_call, "host_call.* out of the compiled function"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(function, message):
    with pytest.raises(tg.TraceError, match=message) as raised:
        tg.compile(function)(data(0))
    line = function.__code__.co_firstlineno
    assert any(f"{__file__}:{line + at}" in str(raised.value) for at in (1, 2))


def test_stages_are_explained_and_checked():
    checked = tg.compile(FUNCTIONS["computed"], check=True)
    for x in tensors(6, 4):
        assert_same([checked(x)], [FUNCTIONS["computed"](x)], exact=False)
    plain = tg.compile(FUNCTIONS["computed"])
    found = plain.explain(data(0), measure=True)
    assert [each.title for each in found.plans] == ["stage 1", "plan"]
    (tanh,) = [each for plan in found.plans for each in plan.kernels if "tanh" in each.operations]
    assert tanh in found.plans[0].kernels  # computed once
    assert found.sizes[0].startswith("count is counted at ")
    assert "selection_cases.py" in found.sizes[0]


SELECTING = ("masked_select", "masked_scatter", "nonzero", "argwhere", "nonzero_tuple", "unique")
ROWS = [case for case in CASES if case.name.startswith(SELECTING) and "0-d" not in case.name]


@pytest.mark.parametrize("case", ROWS, ids=ids)
def test_operations(case):
    for dtype in case.dtypes[:2]:
        arrays = case.arrays(dtype)
        compiled = tg.compile(lambda *given: case.function(*given))
        assert_same(tried(compiled, arrays), tried(case.function, arrays), exact=True)


# --- random programs -----------------------------------------------------------------------------


def check_program(seed):
    function = random_program(seed)
    compiled = tg.compile(function, dynamic={"x": 0})
    for n in (5, 1, 0, 17, 6):
        results = []
        for each in (compiled, function):
            x = data(n + seed, n, 4).requires_grad_()
            total, last = each(x)
            (total + last.square().sum()).backward()
            results.append([total, last, x.grad])
        for have, want in zip(*results, strict=True):
            have, want = have.detach().numpy(), want.detach().numpy()
            assert have.shape == want.shape
            np.testing.assert_allclose(
                have, want, rtol=1e-3, atol=1e-3 * max(1, abs(want).max(initial=0))
            )


@pytest.mark.filterwarnings("ignore::tgraph.core.trace_state.RecompileWarning")
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed):
    check_program(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tgraph.core.trace_state.RecompileWarning")
@pytest.mark.parametrize("chunk", rotating(range(10), 5))
def test_many_random_programs(chunk):
    for seed in range(100 + chunk, 150, 10):
        check_program(seed)
