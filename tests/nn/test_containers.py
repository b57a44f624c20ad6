"""Sequential, ModuleList, ModuleDict."""

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
