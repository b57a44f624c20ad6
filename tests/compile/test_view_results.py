"""Views that compiled functions return: made at once, and views of what eager ones show."""

import pytest
from tgraph.runtime.plan import Plan

import tgraph as tg

VIEWS = {
    "integer": lambda x: x[1],
    "slice": lambda x: x[1:, ::2],
    "transposed": lambda x: x.t(),
    "of a view": lambda x: x.t()[1:].unsqueeze(0),
    "reshaped": lambda x: x.reshape(2, 2, 6),
    "expanded": lambda x: x[:, :1].expand(4, 3),
    "diagonal": lambda x: x.diagonal(),
    "of a diagonal": lambda x: x.diagonal(-1)[1:],
    "diagonal of turned axes": lambda x: x.reshape(2, 2, 6).diagonal(1, 2, 0),
    "windows": lambda x: x.unfold(1, 3, 2),
    "detached": lambda x: x[1:].detach(),
    "of detached": lambda x: x.detach()[1:].t(),
    "several": lambda x: (x[0], x[1:].t()),
}


def both(name, make, mode=tg.enable_grad):
    """Eager and compiled results with what they were made of."""
    found = []
    for wrap in (lambda f: f, tg.compile):
        function = wrap(VIEWS[name])
        for _ in range(2):
            x = make()
            with mode():
                results = function(x)
        found.append((x, results if isinstance(results, tuple) else (results,)))
    return found


def facts(result):
    view = result._view
    if view is None:
        return result.shape, result.stride(), None
    steps = [(step.primitive.name, step.attrs) for step in view.steps]
    flags = view.differentiable, view.without_grad, view.base._view is None
    return result.shape, result.stride(), steps, flags, result._storage is view.memory


def plain():
    return tg.arange(24.0).reshape(4, 6) * 1


def leaf():
    return plain().requires_grad_()


@pytest.mark.parametrize("mode", [tg.enable_grad, tg.no_grad])
@pytest.mark.parametrize("make", [plain, leaf, lambda: leaf() * 2])
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_those_of_eager_code(name, make, mode):
    (_, expected), (y, found) = both(name, make, mode)
    for one, other in zip(expected, found, strict=True):
        assert facts(one) == facts(other)
        assert one.requires_grad == other.requires_grad and one.is_leaf == other.is_leaf
        assert one.tolist() == other.tolist()
        assert other._storage is y._storage


@pytest.mark.parametrize("name", sorted(set(VIEWS) - {"expanded", "windows"}))
def test_writes_are_seen_through_them(name):
    (x, expected), (y, found) = both(name, plain)
    with tg.no_grad():
        x.mul_(3)
        y.mul_(3)
        expected[0].add_(1)
        found[0].add_(1)
    assert x.tolist() == y.tolist() and x._version == y._version
    assert [each.tolist() for each in expected] == [each.tolist() for each in found]


@pytest.mark.parametrize("part", [lambda x: x[:, 1:4], lambda x: x[1:, ::2], lambda x: x.t()[2:]])
@pytest.mark.parametrize("offset", [0, -1, 1])
def test_diagonals_of_parts_of_a_tensor(part, offset):
    seen = []
    for wrap in (lambda f: f, tg.compile):
        x = plain()
        found = wrap(lambda x: x.diagonal(offset))(part(x))
        found.add_(100)
        seen.append((x.tolist(), found.tolist(), found.stride(), found.storage_offset()))
        assert (x >= 100).sum() == found.numel() > 0
    assert seen[0] == seen[1]


def test_they_run_no_plan(monkeypatch):
    function = tg.compile(lambda x: (x.t()[1:], x[0], x))
    function(plain())
    x = plain()
    monkeypatch.setattr(Plan, "run", None)
    monkeypatch.setattr("tgraph.core.views.apply", None)
    rows, row, same = function(x)
    monkeypatch.undo()
    assert rows.shape == (5, 4) and row.tolist() == [0, 1, 2, 3, 4, 5] and same is x


def test_effects_without_numbers():
    """Nothing is computed, but something happens."""
    seen = []
    w = tg.zeros(2, requires_grad=True)

    def function(x):
        seen.append(x[0])
        w.grad = None
        return x

    compiled = tg.compile(function)
    x = plain()
    for number in range(3):
        w.grad = tg.ones(2)
        compiled(x)
        assert w.grad is None and len(seen) == number + 1
    assert all(each.tolist() == [0, 1, 2, 3, 4, 5] for each in seen)


def test_other_strides_are_noticed_without_a_plan():
    function = tg.compile(lambda x: x.reshape(-1)[1:])
    assert function(tg.ones(4, 4))._view is not None
    transposed = tg.arange(16.0).reshape(4, 4).t()
    assert function(transposed).tolist() == transposed.reshape(-1)[1:].tolist()
    assert len(function.compiles) == 2
