import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any, NamedTuple

import pytest

import tgraph as tg
from tgraph.core import pytree


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class State:
    weight: Any
    steps: int
    more: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Doubling:
    value: Any

    def __post_init__(self):
        self.value = self.value * 2


Old = namedtuple("Old", "a b")

TREES = [
    3,
    None,
    (),
    (1, 2),
    [1, [2, (3,)]],
    {"a": 1, "b": {"c": 2}},
    OrderedDict(b=1, a=2),
    defaultdict(list, {"a": [1, 2]}),
    Point(1, [2, 3]),
    Old(1, {"x": 2}),
    State(1, 2, {"m": (3, 4)}),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip(tree):
    leaves, spec = pytree.flatten(tree)
    back = spec.unflatten(leaves)
    assert back == tree and type(back) is type(tree)
    assert spec.count == len(leaves) == len(spec.paths())
    assert hash(spec) == hash(pytree.flatten(tree)[1])


def test_structures_differ_by_type_key_and_shape():
    specs = [pytree.flatten(tree)[1] for tree in TREES[2:]]
    assert len(set(specs)) == len(specs)
    assert pytree.flatten({"a": 1})[1] != pytree.flatten({"b": 1})[1]
    assert pytree.flatten({"a": 1, "b": 2})[1] != pytree.flatten({"b": 2, "a": 1})[1]


def test_paths_read_like_code():
    tree = {"s": State(1, 2, {"m": [3]}), "p": Point(4, 5)}
    assert pytree.flatten(tree)[1].paths("x") == [
        "x['s'].weight",
        "x['s'].steps",
        "x['s'].more['m'][0]",
        "x['p'].x",
        "x['p'].y",
    ]


def test_dataclasses_are_rebuilt_without_running_init():
    leaves, spec = pytree.flatten(Doubling(4))
    assert leaves == [8]
    assert spec.unflatten([1]).value == 1


def test_map_over_several_trees_checks_their_structure():
    assert pytree.map(lambda a, b: a * b, Point(2, [3]), Point(5, [7])) == Point(10, [21])
    with pytest.raises(ValueError, match="structures differ"):
        pytree.map(lambda a, b: a, (1, 2), [1, 2])
    with pytest.raises(ValueError, match="expected 2 leaves, got 3"):
        pytree.flatten((1, 2))[1].unflatten([1, 2, 3])


def test_defaultdict_keeps_its_factory():
    leaves, spec = pytree.flatten(defaultdict(list, a=1))
    assert spec.unflatten(leaves)["new"] == []


def test_user_types_can_be_registered():
    class Pair:
        def __init__(self, left, right):
            self.left, self.right = left, right

    pytree.register(
        Pair,
        lambda pair: ((pair.left, pair.right), None),
        lambda type_, meta, children: type_(*children),
    )
    leaves, spec = pytree.flatten([Pair(1, 2)])
    assert leaves == [1, 2]
    assert spec.unflatten([3, 4])[0].right == 4
    assert spec.paths("x") == ["x[0][0]", "x[0][1]"]


def test_a_compiled_function_sees_its_keywords_in_the_order_of_the_call():
    x = tg.ones(1)
    function = tg.compile(lambda **named: ([*named], [each * 2 for each in named.values()]))
    for order in ("ab", "ba", "ab"):
        names, _ = function(**dict.fromkeys(order, x))
        assert names == [*order]
