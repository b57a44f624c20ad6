"""Modules: registration, state, modes, conversion, display."""

import copy
import pickle

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.core.state import state


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = nn.Parameter(tg.ones(3))
        self.register_buffer("seen", tg.zeros(()))
        self.register_buffer("cache", tg.zeros(2), persistent=False)

    def forward(self, x):
        return self.linear(x) * self.scale


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block()
        self.layers = nn.ModuleList([Block(), nn.ReLU()])
        self.offset = nn.Parameter(tg.zeros(3))

    def forward(self, x):
        for layer in (self.first, *self.layers):
            x = layer(x)
        return x + self.offset


def names(pairs):
    return [name for name, _ in pairs]


def test_parameters_buffers_and_modules_are_found_by_assignment():
    net = Net()
    assert names(net.named_parameters()) == [
        "offset",
        "first.scale",
        "first.linear.weight",
        "first.linear.bias",
        "layers.0.scale",
        "layers.0.linear.weight",
        "layers.0.linear.bias",
    ]
    assert names(net.named_buffers()) == [
        "first.seen",
        "first.cache",
        "layers.0.seen",
        "layers.0.cache",
    ]
    assert names(net.named_modules()) == [
        "",
        "first",
        "first.linear",
        "layers",
        "layers.0",
        "layers.0.linear",
        "layers.1",
    ]
    assert names(net.named_children()) == ["first", "layers"]
    assert names(net.named_parameters(recurse=False)) == ["offset"]
    assert names(net.first.named_parameters(prefix="p")) == [
        "p.scale",
        "p.linear.weight",
        "p.linear.bias",
    ]


def test_shared_parameters_and_modules_count_once():
    a = nn.Linear(2, 2)
    b = nn.Linear(2, 2)
    b.weight = a.weight
    net = nn.Sequential(a, b, a)
    assert names(net.named_parameters()) == ["0.weight", "0.bias", "1.bias"]
    assert len(list(net.modules())) == 3
    everything = net.named_parameters(remove_duplicate=False)
    assert names(everything) == [f"{at}.{name}" for at in range(3) for name in ("weight", "bias")]
    assert list(net.state_dict()) == [f"{at}.{n}" for at in range(3) for n in ("weight", "bias")]


def test_attributes_keep_their_kind():
    block = Block()
    with pytest.raises(TypeError, match=r"cannot assign 'int' as parameter 'scale' \(tgraph.nn.P"):
        block.scale = 3
    with pytest.raises(TypeError, match=r"cannot assign 'tgraph.Tensor' as parameter 'scale'"):
        block.scale = tg.ones(3)
    with pytest.raises(TypeError, match=r"cannot assign 'tgraph.Tensor' as child module 'linear'"):
        block.linear = tg.ones(3)
    with pytest.raises(TypeError, match=r"cannot assign 'float' as buffer 'seen'"):
        block.seen = 1.0
    block.seen = tg.ones(())
    assert block.state_dict()["seen"].item() == 1
    block.scale = None
    assert names(block.named_parameters()) == ["linear.weight", "linear.bias"]
    block.scale = nn.Parameter(tg.ones(1))
    assert names(block.named_parameters()) == ["scale", "linear.weight", "linear.bias"]
    del block.linear
    assert names(block.named_parameters()) == ["scale"]
    assert not hasattr(block, "linear")


def test_a_name_that_the_class_uses_is_refused():
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        Block().register_parameter("forward", nn.Parameter(tg.ones(1)))
    with pytest.raises(KeyError, match="attribute 'keys' already exists"):
        nn.ModuleDict({"keys": nn.ReLU()})
    with pytest.raises(KeyError, match="attribute 'linear' already exists"):
        Block().register_buffer("linear", tg.ones(1))
    with pytest.raises(KeyError, match=r"module name can\\'t contain"):
        Block().add_module("a.b", nn.ReLU())


def test_a_property_that_has_no_value_yet_is_no_name_that_is_used():
    class Curved(nn.Module):
        k = property(lambda self: -self.c)

        def __init__(self) -> None:
            super().__init__()
            self.k = nn.Parameter(tg.ones(1))
            self.c = nn.Parameter(self._parameters.pop("k") * 2, requires_grad=False)

    assert Curved().k.item() == -2.0
    assert names(Curved().named_parameters()) == ["c"]
    with pytest.raises(KeyError, match="attribute 'k' already exists"):
        Curved().register_parameter("k", None)


def test_assigning_before_init_says_so():
    class Early(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(tg.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__"):
        Early()


def test_computed_tensors_are_no_parameters():
    leaf = tg.ones(2, requires_grad=True)
    block = Block()
    with pytest.raises(TypeError, match=r"cannot assign 'tgraph.Tensor'"):
        block.scale = leaf * 2
    block.plain = leaf * 2
    assert "plain" not in names(block.named_parameters())


def test_a_module_without_forward_says_so():
    with pytest.raises(
        NotImplementedError, match=r'Module \[Module\] is missing the required "for'
    ):
        nn.Module()(1)


def test_calling_keeps_the_path_of_the_running_module():
    class Spy(nn.Module):
        def forward(self, x):
            seen.append(state.module_path)
            return x

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.spy = Spy()
            self.chain = nn.Sequential(Spy(), nn.Sequential(Spy()))
            self.heads = nn.ModuleDict({"a": Spy()})
            self.rows = nn.ModuleList([nn.ModuleList([Spy()])])

        def forward(self, x):
            return self.rows[0][0](self.heads["a"](self.chain(self.spy(x))))

    seen: list[str] = []
    Outer()(1)
    assert seen == ["spy", "chain.0", "chain.1.0", "heads.a", "rows.0.0"]
    assert state.module_path == ""

    class Failing(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nn.Sequential(Failing())(1)
    assert state.module_path == ""


# --- state ---------------------------------------------------------------------------------------


def test_state_dict_shares_memory_and_leaves_out_what_is_not_persistent():
    block = Block()
    saved = block.state_dict()
    assert list(saved) == ["scale", "seen", "linear.weight", "linear.bias"]
    assert not any(each.requires_grad for each in saved.values())
    saved["scale"].fill_(5)
    assert block.scale.tolist() == [5, 5, 5]
    assert list(block.state_dict(prefix="a.")) == [f"a.{key}" for key in saved]
    assert block.state_dict(keep_vars=True)["scale"] is block.scale


def test_state_dict_round_trip():
    one, other = Net(), Net()
    one.first.seen.fill_(3)
    x = tg.randn(4, 3)
    assert not tg.allclose(one(x), other(x))
    before = dict(other.named_parameters())
    assert repr(other.load_state_dict(one.state_dict())) == "<All keys matched successfully>"
    assert tg.equal(one(x), other(x))
    assert other.first.seen.item() == 3
    assert all(before[name] is each for name, each in other.named_parameters())
    assert all(each.requires_grad for each in other.parameters())


def test_loading_lists_every_error():
    layer = nn.Sequential(nn.Linear(2, 3))
    before = layer[0].weight.tolist()
    with pytest.raises(RuntimeError) as error:
        layer.load_state_dict({"0.weight": tg.zeros(2, 2), "1.b": tg.zeros(1)})
    assert str(error.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias". \n'
        '\tUnexpected key(s) in state_dict: "1.b". \n'
        "\tsize mismatch for 0.weight: copying a param with shape tgraph.Size([2, 2]) from "
        "checkpoint, the shape in current model is tgraph.Size([3, 2])."
    )
    assert layer[0].weight.tolist() == before


def test_loading_partly():
    layer = nn.Linear(2, 3)
    found = layer.load_state_dict({"bias": tg.ones(3), "other": tg.ones(1)}, strict=False)
    assert found.missing_keys == ["weight"]
    assert found.unexpected_keys == ["other"]
    assert layer.bias.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="size mismatch for bias"):
        layer.load_state_dict({"bias": tg.ones(4)}, strict=False)
    with pytest.raises(RuntimeError, match=r"expected tgraph.Tensor or Tensor-like object"):
        layer.load_state_dict({"bias": [1.0, 1.0, 1.0]}, strict=False)
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        layer.load_state_dict([1])


def test_copies_and_pickles_are_independent():
    net = Net()
    x = tg.randn(2, 3)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert tg.equal(net(x), other(x))
        assert isinstance(other.offset, nn.Parameter)
        assert other.offset.requires_grad
        with tg.no_grad():
            other.offset.add_(1)
        assert not tg.allclose(net(x), other(x))
        assert names(other.named_parameters()) == names(net.named_parameters())


def test_getting_by_path():
    net = Net()
    assert net.get_submodule("layers.0.linear") is net.layers[0].linear
    assert net.get_submodule("") is net
    assert net.get_parameter("first.linear.bias") is net.first.linear.bias
    assert net.get_buffer("first.seen") is net.first.seen
    with pytest.raises(AttributeError, match="Block has no attribute `lost`"):
        net.get_submodule("first.lost")
    with pytest.raises(AttributeError, match="`seen` is not an nn"):
        net.get_parameter("first.seen")


# --- modes and conversion ------------------------------------------------------------------------


def test_train_and_eval_reach_every_module():
    net = Net()
    assert all(module.training for module in net.modules())
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.layers.train()
    assert [m.training for m in net.modules()] == [False, False, False, True, True, True, True]
    net.first.training = True
    assert net.first.training and not net.first.linear.training
    with pytest.raises(ValueError, match="expected to be boolean"):
        net.train("yes")


def test_zero_grad():
    layer = nn.Linear(2, 1)
    layer(tg.ones(1, 2)).sum().backward()
    kept = layer.weight.grad
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0, 0]]
    assert kept is not None
    layer.zero_grad()
    assert layer.weight.grad is None


def test_requires_grad_and_apply():
    net = Net().requires_grad_(False)
    assert not any(each.requires_grad for each in net.parameters())
    order = []
    net.apply(lambda module: order.append(type(module).__name__))
    assert order[-1] == "Net" and len(order) == 7
    assert order.index("Linear") < order.index("Block")


def test_conversion_keeps_the_parameters_and_their_grad():
    block = Block()
    block.register_buffer("count", tg.tensor(2))
    block(tg.ones(1, 3)).sum().backward()
    weight = block.linear.weight
    expected = weight.numpy(force=True).astype(np.float64)
    assert block.double() is block
    assert block.linear.weight is weight and weight.dtype is tg.float64
    assert weight.grad.dtype is tg.float64 and weight.requires_grad
    np.testing.assert_array_equal(weight.numpy(force=True), expected)
    assert block.seen.dtype is tg.float64 and block.count.dtype is tg.int64
    assert block(tg.ones(1, 3, dtype=tg.float64)).dtype is tg.float64
    assert block.to(tg.ones(1)).linear.weight.dtype is tg.float32
    assert block.to("cpu", tg.float16).linear.weight.dtype is tg.float16
    assert block.bfloat16().linear.weight.dtype is tg.bfloat16
    assert block.half().float().cpu().linear.weight.dtype is tg.float32
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        block.to(tg.int32)
    with pytest.raises(RuntimeError, match="not available"):
        block.to(device="cuda")


def test_conversion_does_not_touch_what_the_memory_came_from():
    data = tg.ones(2)
    layer = nn.Module()
    layer.weight = nn.Parameter(data)
    layer.double()
    assert data.dtype is tg.float32


# --- parameters ----------------------------------------------------------------------------------


def test_parameters_take_over_memory_but_copy_views():
    data = tg.zeros(3)
    parameter = nn.Parameter(data)
    with tg.no_grad():
        parameter.add_(1)
    assert data.tolist() == [1, 1, 1]
    whole = tg.zeros(2, 3)
    row = nn.Parameter(whole[0])
    with tg.no_grad():
        row.add_(1)
    assert whole.sum().item() == 0


def test_parameters_are_leaves():
    source = tg.ones(2, requires_grad=True)
    parameter = nn.Parameter(source * 3)
    assert parameter.is_leaf and parameter.requires_grad
    assert type(parameter * 1) is tg.Tensor
    assert isinstance(parameter, nn.Parameter) and isinstance(parameter, tg.Tensor)
    assert not nn.Parameter(tg.tensor([1, 2]), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        nn.Parameter(tg.tensor([1, 2]))
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.Parameter([1.0])


# --- display -------------------------------------------------------------------------------------


def test_repr_is_pytorchs():
    class Shown(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(2, 2, bias=False)
            self.l = nn.ModuleList([nn.ReLU(inplace=True), nn.Flatten()])
            self.d = nn.ModuleDict({"x": nn.Dropout(0.2)})

        def extra_repr(self) -> str:
            return "k=3"

    assert repr(Shown()) == (
        "Shown(\n"
        "  k=3\n"
        "  (a): Linear(in_features=2, out_features=2, bias=False)\n"
        "  (l): ModuleList(\n"
        "    (0): ReLU(inplace=True)\n"
        "    (1): Flatten(start_dim=1, end_dim=-1)\n"
        "  )\n"
        "  (d): ModuleDict(\n"
        "    (x): Dropout(p=0.2, inplace=False)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Parameter(tg.ones(1))) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Conv2d(4, 6, (3, 2), 2, 1, 1, 2, bias=False),
         "Conv2d(4, 6, kernel_size=(3, 2), stride=(2, 2), padding=(1, 1), groups=2, bias=False)"),
        (nn.Conv2d(1, 1, 3, padding="same", dilation=2),
         "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=same, dilation=(2, 2))"),
        (nn.MaxPool2d(2),
         "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
        (nn.AvgPool2d(3, 1), "AvgPool2d(kernel_size=3, stride=1, padding=0)"),
        (nn.LayerNorm((3, 4)),
         "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True, bias=True)"),
        (nn.BatchNorm2d(3, affine=False),
         "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, "
         "track_running_stats=True)"),
        (nn.Embedding(10, 3, padding_idx=-1), "Embedding(10, 3, padding_idx=9)"),
        (nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (nn.Softmax(dim=1), "Softmax(dim=1)"),
        (nn.LeakyReLU(), "LeakyReLU(negative_slope=0.01)"),
        (nn.Unflatten(1, (2, 3)), "Unflatten(dim=1, unflattened_size=(2, 3))"),
        (nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    ],
)  # fmt: skip
def test_repr_of_layers(layer, text):
    assert repr(layer) == text


# --- as PyTorch's programs use them --------------------------------------------------------------


def test_registries_are_read_and_written():
    block = Block()
    call = tg.compile(block)
    assert list(block._parameters) == ["scale"] and list(block._modules) == ["linear"]
    assert block._non_persistent_buffers_set == {"cache"}
    call(tg.ones(1, 3))
    block._modules["linear"] = nn.Identity()
    assert call(tg.ones(1, 3)).tolist() == [[1, 1, 1]] and not hasattr(block.linear, "weight")
    block._parameters["scale"] = nn.Parameter(tg.full((3,), 2.0))
    assert call(tg.ones(1, 3)).tolist() == [[2, 2, 2]]
    del block._buffers["seen"]
    block._parameters = {"other": nn.Parameter(tg.ones(1)), **block._parameters}
    assert names(block.named_parameters()) == ["other", "scale"]
    assert not hasattr(block, "seen") and repr(block._buffers) == "{'cache': tensor([0., 0.])}"
    assert block._parameters.pop("other").shape == (1,) and not hasattr(block, "other")
    assert isinstance(block._modules.copy(), dict)
    replica = block._replicate_for_data_parallel()
    assert not list(replica.parameters()) and len(list(block.parameters())) == 1


def test_buffers_by_assignment():
    block = nn.Module()
    block.kept = nn.Buffer(tg.ones(1))
    block.left = nn.Buffer(tg.ones(1), persistent=False)
    assert list(block.state_dict()) == ["kept"]
    assert names(block.named_buffers()) == ["kept", "left"]
    block.kept = nn.Parameter(tg.ones(2))
    assert names(block.named_parameters()) == ["kept"] and "kept" not in block._buffers


class Frozen(nn.Linear):
    """What overrides methods that parents call of their children."""

    def train(self, mode=True):
        return super().train(False)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.anchors = fn(getattr(self, "anchors", tg.ones(1)))
        return self

    def get_extra_state(self):
        return {"note": 7}

    def set_extra_state(self, state):
        self.note = state["note"]

    def _load_from_state_dict(self, state_dict, prefix, *others):
        if f"{prefix}old" in state_dict:
            state_dict[f"{prefix}weight"] = state_dict.pop(f"{prefix}old")
        super()._load_from_state_dict(state_dict, prefix, *others)


def test_what_children_override_is_called():
    net = nn.Sequential(Frozen(1, 1), nn.ReLU()).train()
    assert [each.training for each in net.modules()] == [True, False, True]
    assert net.double()[0].anchors.dtype is tg.float64
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "0._extra_state"]
    state["0.old"] = state.pop("0.weight") + 1
    other = nn.Sequential(Frozen(1, 1), nn.ReLU())
    other.load_state_dict(state)
    assert other[0].note == 7
    assert other[0].weight.item() == pytest.approx(net[0].weight.item() + 1)


def test_loading_by_assigning():
    layer = nn.Linear(2, 2).requires_grad_(False)
    given = {"weight": tg.ones(2, 2, dtype=tg.float64), "bias": nn.Parameter(tg.zeros(2))}
    layer.load_state_dict(given, assign=True)
    assert layer.weight.dtype is tg.float64 and isinstance(layer.weight, nn.Parameter)
    assert layer.bias is given["bias"] and not layer.bias.requires_grad
    filled = {}
    assert layer.state_dict(destination=filled, prefix="a.") is filled and "a.bias" in filled


def test_submodules_by_path():
    net = nn.Sequential(nn.Sequential(nn.ReLU()))
    net.set_submodule("0.0", nn.Tanh())
    net.set_submodule("0.1", nn.Identity())
    assert repr(net[0]) == "Sequential(\n  (0): Tanh()\n  (1): Identity()\n)"
    with pytest.raises(AttributeError, match="Sequential has no attribute `7`"):
        net.set_submodule("0.7", nn.Tanh(), strict=True)
    with pytest.raises(AttributeError, match="`training` is not an nn"):
        net.get_submodule("0.training")
    with pytest.raises(ValueError, match="without a target name"):
        net.set_submodule("", nn.Tanh())
    assert not any(name[0].isdigit() for name in dir(net))
    assert net.to_empty(device="cpu") is net and net.type(tg.float64) is net
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        nn.Module(size=3)


def test_paths_of_pytorch():
    from tgraph.nn.modules.batchnorm import BatchNorm2d
    from tgraph.nn.modules.linear import Linear

    from tgraph.nn.modules.utils import _pair, consume_prefix_in_state_dict_if_present

    assert Linear is nn.Linear is nn.modules.Linear and BatchNorm2d is nn.BatchNorm2d
    assert issubclass(nn.MSELoss, nn.modules.loss._Loss) and _pair(3) == (3, 3)
    state = nn.Sequential(nn.Linear(1, 1)).state_dict()
    consume_prefix_in_state_dict_if_present(state, "0.")
    assert list(state) == ["weight", "bias"] and list(state._metadata) == [""]
    assert nn.parameter.Parameter is nn.Parameter
