"""What a traced function read is watched: changes of Python state, none of them missed."""

import pytest
from state_changes import REFUSED, STATE_CHANGES

import tgraph as tg
from tgraph import TraceError


def plain(value):
    """A result as something that compares exactly."""
    if isinstance(value, tg.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.detach().tolist())
    if isinstance(value, (list, tuple)):
        return (type(value), [plain(each) for each in value])
    if isinstance(value, dict):
        return (type(value), [(key, plain(each)) for key, each in value.items()])
    return (type(value), repr(value))


def outcome(function, *args):
    """What a call gives, or what it raises."""
    try:
        return plain(function(*args))
    except Exception as error:
        return (type(error), str(error))


def refuse(leaves, given):
    raise AssertionError("a plan that was just made does not fit: eager code ran")


def check(compiled, function, args, step):
    """The compiled function gives what eager code gives, and the same again by the same plan."""
    found = outcome(compiled, *args)
    assert found == outcome(function, *args), f"stale after change {step}"
    plans = len(compiled.compiles)
    assert outcome(compiled, *args) == found
    assert len(compiled.compiles) == plans, "compiled again, though nothing changed"


def begun(factory):
    """A row, its function, and the arguments of a call."""
    steps = factory()
    first = next(steps)
    function, *more = first if isinstance(first, tuple) else (first,)
    return steps, function, (tg.tensor([1.0, 2.0]), *more)


@pytest.mark.parametrize("name", STATE_CHANGES)
def test_no_change_of_state_is_missed(name):
    steps, function, args = begun(STATE_CHANGES[name])
    compiled = tg.compile(function)
    compiled._eager = refuse
    try:
        check(compiled, function, args, 0)
        for step, _ in enumerate(steps, 1):
            check(compiled, function, args, step)
    finally:
        for _ in steps:  # put the world back
            pass


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_watched_is_refused_with_its_line(name):
    _, function, args = begun(REFUSED[name])
    with pytest.raises(TraceError, match=r"state_changes/\w+\.py:\d+"):
        tg.compile(function)(*args)


def test_the_table_is_large():
    assert len(STATE_CHANGES) >= 150


def test_tensors_that_become_one():
    function = tg.compile(lambda x, y: x * 2 if x is y else x * 3)
    one, other = tg.ones(2), tg.ones(2)
    for x, y in ((one, other), (one, one), (other, one), (other, other)):
        assert function(x, y).tolist() == function.function(x, y).tolist()
    assert len(function.compiles) == 2


def test_what_is_watched_of_a_small_network_is_little():
    layers = [tg.nn.Linear(4, 4), tg.nn.ReLU(), tg.nn.Linear(4, 4), tg.nn.ReLU()]
    function = tg.compile(tg.nn.Sequential(*layers, tg.nn.Linear(4, 4)))
    function(tg.ones(2, 4))
    assert len(function.latest.guards) <= 48
