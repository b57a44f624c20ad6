"""Networks over several devices: in halves, and as copies that take parts of a batch."""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import pytest

import tgraph as tg
from tgraph import nn
from tgraph.nn import parallel

pytest_plugins = ["cuda_tools.device"]
ON = ["cpu:1", "cpu:2"]


class Halves(nn.Module):
    def __init__(self, one: Any, two: Any) -> None:
        super().__init__()
        self.one, self.two = one, two
        self.first = nn.Linear(4, 8).to(one)
        self.second = nn.Linear(8, 2).to(two)

    def forward(self, x: Any) -> Any:
        return self.second(tg.relu(self.first(x.to(self.one))).to(self.two))


class Net(nn.Module):
    """Arguments by name, statistics, parameters in a list and twice, results of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = self.first
        self.norm = nn.BatchNorm1d(4)
        self.factors = nn.ParameterList([tg.ones(4)])

    def forward(self, x: Any, scale: Any = None) -> Any:
        seen = self.norm(x)
        y = self.again(tg.tanh(self.first(x))) * self.factors[0]
        return {"y": y if scale is None else y * scale, "seen": (seen.detach(), None)}


def losses(net: Any, call: Any, compiled: bool, x: Any, y: Any) -> list[float]:
    optimizer = tg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = call(x, y)
        loss.backward()
        optimizer.step()
        return loss

    run = tg.compile(step) if compiled else step
    found = [run(x, y).item() for _ in range(2)]
    for each in net.parameters():
        assert each.grad.device == each.device == optimizer.state[each]["momentum_buffer"].device
    return found


@pytest.mark.parametrize("how", ["eager", "compiled", "cuda"])
def test_halves_on_two_devices(how: str, request: Any) -> None:
    devices = ON
    if how == "cuda":
        request.getfixturevalue("second_cuda")
        devices = ["cuda:0", "cuda:1"]
    tg.manual_seed(0)
    halves, x, y = Halves("cpu", "cpu"), tg.randn(6, 4), tg.randn(6, 2)

    def mean(net: Any) -> Any:
        return lambda x, y: (net(x) - y.to(net.two)).square().mean()

    moved = copy.deepcopy(halves)
    moved.one, moved.two = devices
    moved.first.to(devices[0])
    moved.second.to(devices[1])
    expected = losses(halves, mean(halves), False, x, y)
    assert losses(moved, mean(moved), how != "eager", x, y) == pytest.approx(expected)
    assert [str(each.device) for each in moved.parameters()] == [*devices[:1] * 2, *devices[1:] * 2]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_gradients_of_copies_are_those_of_one_device(compiled: bool) -> None:
    tg.manual_seed(0)
    net, x, y = Net(), tg.randn(7, 4), tg.randn(7, 2)
    net.norm = nn.Identity()  # as it sees a part of the batch
    whole = nn.DataParallel(copy.deepcopy(net).to("cpu:1"), ON)

    def scaled(call: Any) -> Any:
        return lambda x, y: call(x, scale=y[:, :1])["y"].square().mean()

    expected = losses(net, scaled(net), False, x, y)
    assert losses(whole, scaled(whole), compiled, x, y) == pytest.approx(expected, rel=1e-5)


def test_data_parallel() -> None:
    tg.manual_seed(0)
    net, x = Net().to("cpu:1"), tg.randn(5, 4)
    whole = nn.DataParallel(net, ON, output_device="cpu:2")
    assert list(whole.state_dict())[:2] == ["module.first.weight", "module.first.bias"]
    assert whole.device_ids == list(map(tg.device, ON)) and whole.module is net
    out = whole(x, scale=2.0)
    assert out["y"].shape == (5, 4) and out["seen"][1] is None
    assert out["y"].device == out["seen"][0].device == tg.device("cpu:2")
    assert net.norm.num_batches_tracked.item() == 1  # of the first device's part
    tg.testing.assert_close(net.norm.running_mean.cpu(), 0.1 * x[:3].mean(0))
    assert whole.eval()(x[:1])["y"].shape == (1, 4)  # one part, one copy
    net.to("cpu")
    with pytest.raises(RuntimeError, match=r"on device cpu:1 \(device_ids\[0\]\) but found one"):
        whole(x)
    alone = nn.DataParallel(net, ["cpu:2"])
    assert alone(x)["y"].device == tg.device("cpu:2") == net.first.weight.device
    across = nn.DataParallel(nn.ReLU(), ON, dim=1)
    assert across(x).shape == (5, 4) and across(x).device == tg.device("cpu:1")
    if not tg.cuda.is_available():
        assert nn.DataParallel(nn.ReLU()).device_ids == []
        assert tg.equal(nn.DataParallel(nn.ReLU())(x), tg.relu(x))
    with pytest.warns(UserWarning, match="no DistributedDataParallel yet"):
        from tgraph.nn.parallel import DistributedDataParallel as DDP
    with pytest.raises(NotImplementedError, match="no DistributedDataParallel yet"):
        DDP(net)
    assert not isinstance(net, DDP) and not hasattr(parallel, "NoSuchThing")
    with pytest.raises(NotImplementedError, match="training on several processes is not there"):
        tg.distributed.init_process_group(backend="gloo")


def test_parts() -> None:
    Pair = namedtuple("Pair", "a b")
    x = tg.arange(3.0)
    given = (Pair(x, "word"), [x, 1], {"k": (x, None)}, [])
    parts = parallel.scatter(given, ON)
    assert len(parts) == 2 and type(parts[1]) is tuple and type(parts[1][0]) is Pair
    assert parts[1][0].a.tolist() == parts[1][1][0].tolist() == parts[1][2]["k"][0].tolist() == [2]
    assert parts[1][0].b == "word" and parts[1][1][1] == 1 and parts[1][3] == []
    assert [str(part[0].a.device) for part in parts] == ON
    back = parallel.gather([Pair(each[0].a, [each[2]["k"][0]]) for each in parts], "cpu")
    assert type(back) is Pair and back.a.tolist() == back.b[0].tolist() == [0, 1, 2]
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert parallel.gather([x[1].to("cpu:1"), x[2]], "cpu:2").tolist() == [1, 2]
    with pytest.raises(ValueError, match="the same number of keys"):
        parallel.gather([{"a": x}, {}], "cpu")
    with pytest.raises(TypeError, match=r"expected tensors.*got str"):
        parallel.gather(["a", "b"], "cpu")
    assert parallel.data_parallel(nn.ReLU(), (x,), ON, "cpu").tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="has parameters without values"):
        parallel.replicate(nn.LazyLinear(2), ON)
    copies = parallel.replicate(nn.Linear(2, 2), ON, detach=True)
    assert not copies[1].weight.requires_grad and not list(copies[1].parameters())


def test_an_error_comes_with_its_copy() -> None:
    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise self.kind if x.device == tg.device("cpu:2") else KeyError("first")

        kind: Any = None

    class OddError(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(one, two)

    net = Fails()
    for kind, wanted in ((ValueError("no luck"), ValueError), (OddError(1, 2), RuntimeError),
                         (KeyError("k"), KeyError)):  # fmt: skip
        net.kind = kind
        name = f"(?s)Caught {type(kind).__name__} in replica 0 on device cpu:2.*line \\d+, in forw"
        with pytest.raises(wanted, match=name) as error:
            parallel.parallel_apply([net], [tg.ones(1, device="cpu:2")])
        assert error.value.__cause__ is kind
    with pytest.raises(RuntimeError, match="in replica 0, no device was provided"):
        parallel.parallel_apply([net], [1])
