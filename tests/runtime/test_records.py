"""Records are what frozen dataclasses are."""

import copy
import dataclasses
import math
import pickle

import pytest
from tgraph.runtime.memo import Memo
from tgraph.runtime.plan_steps import BufferRef
from tgraph.runtime.records import record, replace


def both(**options):
    """The same class as a record and as a dataclass."""
    for make in (record(**options), dataclasses.dataclass(frozen=True, **options)):

        @make
        class Point:
            x: float
            y: int = 1
            names: list = dataclasses.field(default_factory=list, compare=False)
            hidden: int = dataclasses.field(default=7, repr=False)

            @property
            def double(self):
                return 2 * self.x

        yield Point


def told(make):
    """What can be seen of a class's objects."""
    a, b, c = make(1.0), make(1.0, names=["x"]), make(x=1.0, y=2)
    nan = make(math.nan)
    changed = dataclasses.replace(a, y=5)
    return [
        repr(a), repr(b), a == b, a == c, a != c, hash(a) == hash(b), hash(a) == hash((1.0, 1, 7)),
        nan == nan, nan == make(float("nan")), a == (1.0, 1), make.__match_args__,
        changed.y, changed.x, [each.name for each in dataclasses.fields(a)], a.double, vars(a),
        copy.copy(b) == b, copy.deepcopy(b).names,
    ]  # fmt: skip


def test_a_record_is_as_a_frozen_dataclass():
    ours, theirs = both()
    assert told(ours) == told(theirs)


def test_without_equality_objects_are_themselves():
    ours, theirs = both(eq=False)
    for make in (ours, theirs):
        assert make(1.0) != make(1.0)
        assert repr(make(1.0)).endswith("Point(x=1.0, y=1, names=[])")


@pytest.mark.parametrize("number", [0, 1])
def test_fields_cannot_be_set(number):
    point = list(both())[number](1.0)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert point.x == 1.0


@pytest.mark.parametrize("number", [0, 1])
def test_wrong_arguments_are_refused(number):
    make = list(both())[number]
    for args, kwargs in [((), {}), ((1, 2, [], 3, 4), {}), ((1,), {"z": 1}), ((1,), {"x": 1})]:
        with pytest.raises(TypeError, match="__init__"):
            make(*args, **kwargs)


def test_without_being_frozen_fields_can_be_set():
    for make in (record(eq=False, frozen=False), dataclasses.dataclass(eq=False)):

        @make
        class Counted:
            x: int
            names: list = dataclasses.field(default_factory=list)

        one, other = Counted(1), Counted(1)
        one.names.append("a")
        one.x += 4
        assert (one.x, one.names, other.names) == (5, ["a"], [])
        assert one != Counted(5, ["a"])
        assert len({one, other}) == 2
        assert repr(one).endswith("Counted(x=5, names=['a'])")
        assert dataclasses.replace(one, x=7).x == 7


def test_replace_is_as_that_of_dataclasses():
    one, _ = both()
    for changes in ({}, {"x": 3}, {"x": 3, "y": 7}):
        point = one(1.5)
        assert replace(point, **changes) == dataclasses.replace(point, **changes)
    with pytest.raises(TypeError, match="unexpected keyword argument 'another'"):
        replace(one(1.5), another=1)


def test_dataclasses_may_build_on_records():
    @record()
    class Base:
        a: int
        b: list = dataclasses.field(default_factory=list)

    @dataclasses.dataclass(frozen=True)
    class Derived(Base):
        c: int = 3

    assert dataclasses.is_dataclass(Base) and dataclasses.asdict(Base(1)) == {"a": 1, "b": []}
    assert [each.name for each in dataclasses.fields(Derived)] == ["a", "b", "c"]
    assert repr(Derived(1, [2])).endswith("Derived(a=1, b=[2], c=3)")
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Thawed", (Base,), {}))


def test_own_methods_and_inherited_fields_are_kept():
    @record()
    class Base:
        a: int

        def __repr__(self):
            return "own"

        def __hash__(self):
            return 5

    @record()
    class Derived(Base):
        b: int = 2

    assert (repr(Base(1)), hash(Base(1)), Base(1) == Base(1)) == ("own", 5, True)
    assert (Derived(1).a, Derived(1).b, Derived(1, 3) == Derived(1)) == (1, 2, False)
    assert Base(1) != Derived(1)


def test_the_class_may_check_its_fields():
    @record()
    class Checked:
        a: int

        def __post_init__(self):
            object.__setattr__(self, "a", abs(self.a))

    assert Checked(-3) == Checked(3)


def test_records_are_pickled():
    assert pickle.loads(pickle.dumps(BufferRef(3, 8))) == BufferRef(3, 8)


def test_a_memo_has_no_more_entries_than_its_limit() -> None:
    memo: Memo[int, int] = Memo(3)
    for number in range(20):
        assert memo.keep(number, -number) == -number == memo.get(number)
        assert len(memo._found) <= 3
    assert memo.keep(19, 5) == -19
