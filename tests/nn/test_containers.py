"""Sequential, ModuleList, ModuleDict."""

import operator
from collections import OrderedDict

import pytest

import tgraph as tg
from tgraph import nn


class Add(nn.Module):
    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = number

    def forward(self, x):
        return x + self.number


def numbers(modules):
    return [module.number for module in modules]


def test_sequential_calls_one_after_another():
    net = nn.Sequential(Add(1), Add(2))
    assert net(tg.zeros(())).item() == 3
    assert nn.Sequential()(5) == 5
    named = nn.Sequential(OrderedDict([("a", Add(1)), ("b", Add(4))]))
    assert named(tg.zeros(())).item() == 5
    assert named.b is named[1]


def test_sequential_is_a_sequence():
    net = nn.Sequential(Add(0), Add(1), Add(2))
    assert len(net) == 3 and numbers(net) == [0, 1, 2]
    assert net[-1].number == 2
    assert isinstance(net[1:], nn.Sequential) and numbers(net[1:]) == [1, 2]
    net[0] = Add(7)
    net.append(Add(8)).insert(1, Add(9))
    assert numbers(net) == [7, 9, 1, 2, 8]
    del net[1]
    assert numbers(net) == [7, 1, 2, 8]
    assert [name for name, _ in net.named_children()] == ["0", "1", "2", "3"]
    with pytest.raises(IndexError, match="index 4 is out of range"):
        net[4]


def test_module_list():
    modules = nn.ModuleList(Add(each) for each in range(3))
    modules += [Add(3)]
    modules.extend([Add(4)])
    assert numbers(modules) == [0, 1, 2, 3, 4]
    assert modules.pop(1).number == 1
    assert numbers(modules) == [0, 2, 3, 4]
    assert numbers(modules[::2]) == [0, 3]
    with pytest.raises(NotImplementedError, match="ModuleList"):
        modules(1)
    with pytest.raises(TypeError, match="not a Module subclass"):
        modules.append(3)


def test_module_dict():
    modules = nn.ModuleDict({"a": Add(1), "b": Add(2)})
    modules.update([("c", Add(3))])
    modules["a"] = Add(4)
    assert list(modules) == list(modules.keys()) == ["a", "b", "c"]
    assert numbers(modules.values()) == [4, 2, 3]
    assert [name for name, _ in modules.items()] == ["a", "b", "c"]
    assert "a" in modules and "z" not in modules and len(modules) == 3
    assert modules.pop("b").number == 2
    with pytest.raises(KeyError, match="b"):
        modules["b"]
    modules.clear()
    assert len(modules) == 0


def test_sequential_adds_and_repeats():
    one, two = nn.Sequential(Add(1)), nn.Sequential(Add(2), Add(3))
    assert numbers(one + two) == [1, 2, 3] and numbers(two * 2) == numbers(2 * two) == [2, 3, 2, 3]
    one += two
    two *= 2
    assert numbers(one) == [1, 2, 3] and numbers(two) == [2, 3, 2, 3]
    assert one.pop(1).number == 2 and numbers(one) == [1, 3]
    assert numbers(one.extend([Add(5)]).insert(-1, Add(4))) == [1, 3, 4, 5]
    with pytest.raises(ValueError, match="only objects of Sequential class"):
        operator.add(one, [Add(1)])
    with pytest.raises(ValueError, match="Non-positive multiplication factor"):
        one * 0
    with pytest.raises(IndexError, match="Index out of range: 9"):
        one.insert(9, Add(1))


def test_module_list_adds_and_shows_what_repeats():
    modules = operator.add(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]), [nn.Tanh()])
    assert repr(modules) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2-3): 2 x Tanh()\n)"
    modules.insert(1, nn.Identity())
    assert [type(each).__name__ for each in modules[:3]] == ["ReLU", "Identity", "ReLU"]
    del modules[::2]
    assert len(modules) == 2 and len(modules.pop(slice(0, 1))) == 1
    assert repr(nn.ModuleList()) == "ModuleList()"
    with pytest.raises(TypeError, match="called with an iterable, but got int"):
        modules.extend(3)
    with pytest.raises(ValueError, match="has length 1; 2 is required"):
        nn.ModuleDict([["a"]])


def test_parameter_list():
    values = nn.ParameterList([tg.ones(2), nn.Parameter(tg.zeros(1)), 7])
    values += [tg.ones(())]
    assert len(values) == 4 and values[2] == 7 and list(values.state_dict()) == ["0", "1", "3"]
    values[-1] = tg.zeros(2)
    assert isinstance(values[3], nn.Parameter) and len(values[1:]) == 3
    assert repr(values[:1]) == (
        "ParameterList(  (0): Parameter containing: [tgraph.float32 of size 2])"
    )
    with pytest.raises(IndexError, match="index 4 is out of range"):
        values[4]
    with pytest.raises(RuntimeError, match="should not be called"):
        values(1)
    total = tg.compile(lambda: sum(each.sum() for each in values[:2]))
    assert total().item() == 2


def test_parameter_dict():
    values = nn.ParameterDict({"b": tg.ones(2), "a": tg.zeros(3)})
    assert list(values) == ["a", "b"] and list(reversed(values)) == ["b", "a"]
    values.update([("c", tg.ones(1))])
    assert values.setdefault("d", tg.ones(4)).shape == (4,) and values.get("z") is None
    assert values.popitem()[0] == "d" and values.pop("a").shape == (3,) and len(values) == 2
    merged = values | {"e": tg.ones(1)}
    assert list(merged.keys()) == ["b", "c", "e"] and "e" not in values
    assert list(values.fromkeys(["x"], 3).values()) == [3]
    assert sorted(dict(values.items())) == sorted(values.state_dict()) == ["b", "c"]
    values.clear()
    assert len(values) == 0 and not list(values.parameters())
    with pytest.raises(TypeError, match="not a string"):
        values[3]
