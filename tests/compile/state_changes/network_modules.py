"""Changes of modules of tgraph.nn, of tensors and of modes."""

from __future__ import annotations

import math

import tgraph as tg

from .table import Thing, row


class Net(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = tg.nn.Linear(2, 2)
        self.rate = 2.0

    def forward(self, x):
        return self.first(x) * self.rate


def _linear():
    layer = tg.nn.Linear(2, 2)
    with tg.no_grad():
        layer.weight.copy_(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.copy_(tg.tensor([1.0, -1.0]))
    return layer


def _net():
    net = Net()
    net.first = _linear()
    return net


@row
def module_number():
    net = _net()
    yield net
    net.rate = 3.0
    yield
    net.rate = 2.0
    yield


@row
def module_training_flag():
    class Local(Net):
        def forward(self, x):
            return x * 2 if self.training else x

    net = Local()
    yield lambda x: net(x)
    net.eval()
    yield
    net.train()
    yield


@row
def module_training_flag_of_a_part():
    net = tg.nn.Sequential(_linear(), tg.nn.BatchNorm1d(2))
    net.eval()
    yield lambda x: net(x.reshape(1, 2).expand(2, 2))
    net[1].running_mean = tg.tensor([1.0, 2.0])
    yield
    net[1].eps = 0.5
    yield


@row
def module_forward_replaced_on_the_class():
    class Local(Net):
        def forward(self, x):
            return x * 5

    net = Local()
    yield net
    Local.forward = lambda self, x: x * 7
    yield
    del Local.forward
    net.first = _linear()
    yield


@row
def module_forward_replaced_on_the_instance():
    net = _net()
    yield net
    net.forward = lambda x: x * 7
    yield
    del net.forward
    yield


@row
def module_forward_of_the_library_replaced():
    before = tg.nn.Linear.forward
    layer = _linear()
    yield lambda x: layer(x)
    tg.nn.Linear.forward = lambda self, x: x * 7
    yield
    tg.nn.Linear.forward = before
    yield


@row
def module_forward_of_the_library_replaced_inside_others():
    before = tg.nn.Linear.forward
    net = tg.nn.Sequential(_linear(), tg.nn.ReLU())
    yield net
    tg.nn.Linear.forward = lambda self, x: x * 7
    yield
    tg.nn.Linear.forward = before
    yield


@row
def module_parameter_replaced():
    net = _net()
    yield net
    net.first.weight = tg.nn.Parameter(tg.ones(2, 2))
    yield
    net.first.bias = None
    yield


@row
def module_parameter_written():
    net = _net()
    yield net
    with tg.no_grad():
        net.first.weight.mul_(2)
    yield


@row
def module_buffer_replaced():
    class Local(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("offset", tg.ones(2))

        def forward(self, x):
            return x + self.offset

    net = Local()
    yield net
    net.offset = tg.zeros(2)
    yield
    net.offset = tg.full((2,), 5.0)
    yield


@row
def module_part_replaced():
    net = _net()
    yield net
    net.first = tg.nn.Identity()
    yield


@row
def module_list():
    layers = tg.nn.ModuleList([_linear(), _linear()])

    def function(x):
        for layer in layers:
            x = layer(x)
        return x * len(layers)

    yield function
    layers.append(tg.nn.ReLU())
    yield
    layers[0] = tg.nn.Identity()
    yield


@row
def module_dict():
    layers = tg.nn.ModuleDict({"a": _linear()})
    yield lambda x: layers["b"](x) if "b" in layers else layers["a"](x)
    layers["b"] = tg.nn.Identity()
    yield
    layers["b"] = tg.nn.ReLU()
    yield


@row
def module_sequential():
    layers = tg.nn.Sequential(_linear(), tg.nn.ReLU())
    yield layers
    layers[1] = tg.nn.Identity()
    yield
    layers.append(tg.nn.ReLU())
    yield


@row
def module_sequential_by_index_and_slice():
    layers = tg.nn.Sequential(_linear(), tg.nn.ReLU())
    yield lambda x: layers[-1](layers[0](x))
    layers[1] = tg.nn.Identity()
    yield


@row
def module_parameters_iterated():
    net = _net()
    yield lambda x: x * sum(p.sum() for p in net.parameters())
    net.second = _linear()
    yield
    net.first.bias = None
    yield


@row
def module_named_parts():
    net = _net()
    yield lambda x: x * len(list(net.modules())) + len([n for n, _ in net.named_parameters()])
    net.second = tg.nn.ReLU()
    yield
    net.second = _linear()
    yield


@row
def module_requires_grad():
    net = _net()
    yield lambda x: x * 2 if all(p.requires_grad for p in net.parameters()) else x
    net.first.bias.requires_grad_(False)
    yield


@row
def module_state_dict():
    net = _net()
    yield lambda x: x * sum(v.sum() for v in net.state_dict().values()).detach()
    net.second = _linear()
    yield


@row
def module_function_of_the_library_replaced():
    before = tg.nn.functional.relu
    yield lambda x: tg.nn.functional.relu(x - 1.5)
    tg.nn.functional.relu = lambda x: x * 7
    yield
    tg.nn.functional.relu = before
    yield


@row
def function_of_math_replaced():
    before = math.sqrt
    yield lambda x: x * math.sqrt(4.0)
    math.sqrt = lambda value: 7.0
    yield
    math.sqrt = before
    yield


@row
def optimizer_group():
    weight = tg.nn.Parameter(tg.ones(2))
    optimizer = tg.optim.SGD([weight], lr=2.0)
    yield lambda x: x * optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = 3.0
    yield
    optimizer.param_groups[0]["lr"] = 4.0
    yield


@row
def optimizer_groups_added():
    optimizer = tg.optim.SGD([tg.nn.Parameter(tg.ones(2))], lr=2.0)
    yield lambda x: x * sum(g["lr"] * len(g["params"]) for g in optimizer.param_groups)
    optimizer.add_param_group({"params": [tg.nn.Parameter(tg.ones(1))], "lr": 5.0})
    yield


@row
def tensor_replaced():
    weight = tg.ones(2)
    yield lambda x: x * weight
    weight = tg.zeros(2)
    yield
    weight = tg.ones(2, dtype=tg.float64)
    yield
    weight = tg.ones(3, 1)
    yield


@row
def tensor_written():
    weight = tg.ones(2)
    yield lambda x: x * weight
    weight.fill_(4.0)
    yield
    weight.data = tg.zeros(2)
    yield


@row
def tensor_facts():
    weight = tg.ones(2)
    yield lambda x: x * weight.shape[0] + weight.requires_grad + weight.is_leaf + weight.dim()
    weight = tg.ones(3, 2)
    yield
    weight.requires_grad_()
    yield


@row
def tensor_gradient_is_there():
    weight = tg.ones(2, requires_grad=True)
    yield lambda x: x * 2 if weight.grad is None else x
    weight.grad = tg.ones(2)
    yield
    weight.grad = None
    yield


@row
def tensor_facts_of_a_tensor_that_is_not_computed_with():
    weight = tg.ones(2)
    thing = Thing(weight=weight)
    yield lambda x: x * 2 if thing.weight.dtype is tg.float32 else x
    thing.weight = tg.ones(2, dtype=tg.float64)
    yield


@row
def tensor_is_one_of_a_list():
    weights = [tg.ones(2), tg.zeros(2)]
    chosen = weights[0]
    yield lambda x: x * 2 if any(w is chosen for w in weights[1:]) else x
    weights[1] = chosen
    yield


@row
def identity_of_a_tensor_and_an_argument():
    weight = tg.ones(2)
    thing = Thing(weight=weight)
    yield (lambda x, weight: x * 2 if weight is thing.weight else x), weight
    thing.weight = tg.ones(2)
    yield
    thing.weight = weight
    yield


@row
def identity_of_tensors_in_objects():
    one = two = tg.ones(2)
    things = Thing(one=one, two=one)
    yield lambda x: x * 2 if things.one is not things.two else x
    things.two = tg.zeros(2)
    yield
    things.two = two
    yield
    things.one = things.two = tg.zeros(2)
    yield


@row
def mode_of_gradients():
    yield lambda x: x * 2 if tg.is_grad_enabled() else x
    tg.set_grad_enabled(False)
    yield
    tg.set_grad_enabled(True)
    yield


@row
def mode_of_the_default_dtype():
    yield lambda x: tg.ones(2) * 0.5 if tg.get_default_dtype() is tg.float32 else x
    tg.set_default_dtype(tg.float64)
    yield
    tg.set_default_dtype(tg.float32)
    yield


@row
def dtype_of_an_object():
    thing = Thing(dtype=tg.float32)
    yield lambda x: x.to(thing.dtype) * 0.5
    thing.dtype = tg.float64
    yield
    thing.dtype = tg.float32
    yield
