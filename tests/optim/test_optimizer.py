"""What optimizers share: groups, state, closures, errors."""

import copy

import pytest

import tgraph as tg
from tgraph import nn, optim


def leaf(*values):
    return tg.tensor(list(values), requires_grad=True)


def stepped(optimizer, times=1):
    for _ in range(times):
        for group in optimizer.param_groups:
            for each in group["params"]:
                each.grad = tg.ones_like(each)
        optimizer.step()


def test_groups_have_their_own_hyperparameters():
    a, b = leaf(1.0), leaf(1.0)
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    stepped(optimizer)
    assert a.item() == pytest.approx(0.9) and b.item() == pytest.approx(0.5)
    c = leaf(1.0)
    optimizer.add_param_group({"params": [c], "lr": 1.0})
    stepped(optimizer)
    assert c.item() == 0
    assert optimizer.param_groups[2]["momentum"] == 0
    optimizer.param_groups[0]["lr"] = 0.0
    before = a.item()
    stepped(optimizer)
    assert a.item() == before


def test_parameters_without_gradient_are_skipped():
    a, b = leaf(1.0), leaf(1.0)
    optimizer = optim.Adam([a, b], lr=0.1)
    a.grad = tg.ones(1)
    optimizer.step()
    assert a.item() == pytest.approx(0.9) and b.item() == 1
    assert b not in optimizer.state
    b.grad = tg.ones(1)
    optimizer.step()
    assert optimizer.state[a]["step"].item() == 2 and optimizer.state[b]["step"].item() == 1


def test_closure():
    x = leaf(3.0)
    optimizer = optim.SGD([x], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9
    assert x.item() == 0


def test_zero_grad():
    x = leaf(3.0)
    optimizer = optim.SGD([x])
    x.grad = tg.ones(1)
    optimizer.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0]
    optimizer.zero_grad()
    assert x.grad is None


def test_learning_rate_may_be_a_tensor():
    x = leaf(3.0)
    rate = tg.tensor(0.5)
    optimizer = optim.SGD([x], lr=rate)
    stepped(optimizer)
    assert x.item() == 2.5
    rate.fill_(1.0)
    stepped(optimizer)
    assert x.item() == 1.5


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9}),
        ("SGD", {"momentum": 0.9, "dampening": 0.5}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("RMSprop", {"centered": True, "momentum": 0.1}),
    ],
)
def test_state_dict_round_trip(name, options):
    make = getattr(optim, name)
    one = leaf(1.0, 2.0)
    first = make([one], lr=0.1, **options)
    stepped(first, 3)
    other = leaf(*one.tolist())
    second = make([other], lr=0.7)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert second.param_groups[0]["lr"] == 0.1
    stepped(first, 2)
    stepped(second, 2)
    assert one.tolist() == other.tolist()
    assert list(first.state_dict()["state"]) == [0]
    assert first.state_dict()["param_groups"][0]["params"] == [0]


def test_loading_writes_tensors_in_place_and_converts():
    x = leaf(1.0)
    optimizer = optim.Adam([x], lr=0.1)
    stepped(optimizer)
    kept = optimizer.state[x]["exp_avg"]
    saved = copy.deepcopy(optimizer.state_dict())
    saved["state"][0]["exp_avg"].fill_(7)
    optimizer.load_state_dict(saved)
    assert optimizer.state[x]["exp_avg"] is kept and kept.item() == 7
    y = tg.ones(1, dtype=tg.float64, requires_grad=True)
    wide = optim.Adam([y])
    wide.load_state_dict(saved)
    assert wide.state[y]["exp_avg"].dtype is tg.float64
    assert wide.state[y]["step"].dtype is tg.float32
    assert wide.state[y]["exp_avg"] is not saved["state"][0]["exp_avg"]


def test_loading_checks_the_groups():
    optimizer = optim.SGD([leaf(1.0), leaf(2.0)])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0]}]})


def test_bad_arguments():
    x = leaf(1.0)
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        optim.SGD([])
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts, but got Tens"):
        optim.SGD(x)
    with pytest.raises(TypeError, match="can only optimize Tensors, but got float"):
        optim.SGD([1.0])
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        optim.SGD([x * 2])
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([x, x])
    with pytest.raises(TypeError, match="organized in ordered collections"):
        optim.SGD([{"params": {x}}])
    with pytest.raises(ValueError, match=r"Invalid learning rate: -0.1"):
        optim.SGD([x], lr=-0.1)
    with pytest.raises(ValueError, match=r"Invalid epsilon value: -1"):
        optim.Adam([x], eps=-1)
    with pytest.raises(ValueError, match=r"Invalid beta parameter at index 1: 1.0"):
        optim.Adam([x], betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum"):
        optim.SGD([x], nesterov=True)
    with pytest.raises(ValueError, match=r"Invalid weight_decay value: -1"):
        optim.AdamW([{"params": [x], "weight_decay": -1}])


def test_named_parameters_are_accepted():
    layer = nn.Linear(2, 2)
    optimizer = optim.SGD(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["params"] == list(layer.parameters())


class Plain(optim.Optimizer):
    """What users write: `step` of its own, and no state."""

    def __init__(self, params, lr=0.5):
        super().__init__(params, {"lr": lr})

    @tg.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for each in group["params"]:
                each.add_(each.grad, alpha=-group["lr"])


@pytest.mark.parametrize("make", [optim.SGD, Plain])
@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_hooks_of_steps(make, way):
    x = leaf(4.0)
    optimizer = make([x], lr=0.5)
    calls = []
    before = optimizer.register_step_pre_hook(lambda *given: calls.append("before"))
    after = optimizer.register_step_post_hook(lambda *given: calls.append("after"))
    of_all = optim.optimizer.register_optimizer_step_post_hook(lambda *given: calls.append("all"))

    def step():
        x.grad = tg.ones(1)
        optimizer.step()

    run = tg.compile(step) if way == "compiled" else step
    try:
        for _ in range(2):
            run()
        assert calls == ["before", "after", "all"] * 2
        before.remove()
        run()
        assert calls[6:] == ["after", "all"]
    finally:
        of_all.remove()
    after.remove()
    run()
    assert calls[8:] == [] and x.item() == 2.0


def test_hooks_of_states_may_give_others():
    optimizer = optim.SGD([leaf(1.0)], lr=0.5, momentum=0.5)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda own: seen.append("saving"))
    optimizer.register_state_dict_post_hook(lambda own, saved: {**saved, "more": 1})
    optimizer.register_load_state_dict_pre_hook(
        lambda own, given: {**given, "param_groups": [{**given["param_groups"][0], "lr": 9.0}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda own: seen.append("loaded"))
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    assert saved["more"] == 1 and seen == ["saving", "loaded"]
    assert optimizer.param_groups[0]["lr"] == 9.0


def test_copies_and_names_of_parameters():
    layer = nn.Linear(2, 1)
    optimizer = optim.Adam(layer.named_parameters(), lr=0.5)
    stepped(optimizer)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    copied = copy.deepcopy(optimizer)
    stepped(copied)
    assert copied.param_groups[0]["params"][0] is not layer.weight
    counts = [next(iter(each.state.values()))["step"].item() for each in (optimizer, copied)]
    assert counts == [1, 2]
    with pytest.raises(ValueError, match="should be with/without names"):
        optimizer.add_param_group({"params": [leaf(1.0)]})
    saved = optimizer.state_dict()["state"]
    assert saved[0]["step"] is not saved[1]["step"]


def test_lbfgs_asks_for_a_closure_outside_of_traces():
    optimizer = optim.LBFGS([leaf(1.0)])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'closure'"):
        optimizer.step()
    with pytest.raises(tg.TraceError, match="Compile the closure instead"):
        tg.compile(lambda: optimizer.step(lambda: tg.ones(())))()
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optim.LBFGS([{"params": [leaf(1.0)]}, {"params": [leaf(2.0)]}])


def test_schedulers_compile_nothing():
    x = leaf(1.0)
    optimizer = optim.NAdam([x], lr=1.0)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=6)

    @tg.compile
    def step():
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()

    for _ in range(6):
        step()
        scheduler.step()
    step.assert_compiles(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: optim.lr_scheduler.StepLR(optimizer, 2, 0.5),
        lambda optimizer: optim.lr_scheduler.ExponentialLR(optimizer, 0.5),
        lambda optimizer: optim.swa_utils.SWALR(optimizer, 0.125, anneal_epochs=2),
    ],
)
def test_schedulers_in_compiled_steps_go_on(make):
    seen = []
    for compiled in (False, True):
        x = leaf(1.0)
        optimizer = optim.SGD([x], lr=1.0)
        scheduler = make(optimizer)

        def step(x=x, optimizer=optimizer, scheduler=scheduler):
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()
            scheduler.step()

        run = tg.compile(step) if compiled else step
        rates = []
        for _ in range(4):
            run()
            rates.append((optimizer.param_groups[0]["lr"], scheduler.last_epoch, x.item()))
        seen.append(rates)
    assert seen[0] == seen[1]


def _scheduled(group, scheduler, rate):
    scheduler.step()


def _scaled(group, scheduler, rate):
    group["lr"] *= 0.5


def _given(group, scheduler, rate):
    group["lr"] = rate


def _updated(group, scheduler, rate):
    group.update(lr=0.25, weight_decay=0.5)


def _with_momentum(group, scheduler, rate):
    group["momentum"] = 0.5


@pytest.mark.parametrize("change", [_scheduled, _scaled, _given, _updated, _with_momentum])
def test_a_compiled_step_reads_what_was_written_before_it(change):
    seen = []
    for compiled in (False, True):
        x = leaf(1.0)
        optimizer = optim.SGD([x], lr=1.0)
        scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(rate, x=x, optimizer=optimizer, scheduler=scheduler):
            x.grad = tg.ones_like(x)
            change(optimizer.param_groups[0], scheduler, rate)
            optimizer.step()

        run = tg.compile(step) if compiled else step
        values = []
        for number in range(4):
            run(0.5 / (number + 1))
            values.append(x.item())
        seen.append(values)
    assert seen[0] == seen[1]


def test_repr():
    assert repr(optim.SGD([leaf(1.0)], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


# Which of four parameters have gradients, step by step.
PATTERNS = [
    "abcd abcd",
    "abcd ab ab abcd",
    "abcd ab cd abcd",
    "ab abc abcd acd",
    "abcd ab abcd bc d abcd",
]


def update(optimizers, parameters, names):
    for name, parameter in parameters.items():
        parameter.grad = None
        if name in names:
            (parameter * parameter).sum().backward()
    for optimizer in optimizers:
        optimizer.step()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("way", ["eager", "compiled", "compiled together", "mixed"])
def test_parameters_that_step_together_share_a_counter(pattern, way):
    steps = pattern.split()
    own = {name: leaf(1.0, -2.0) for name in "abcd"}
    shared = {name: leaf(1.0, -2.0) for name in "abcd"}
    singles = [optim.AdamW([each], lr=0.1) for each in own.values()]
    optimizer = optim.AdamW(shared.values(), lr=0.1)
    for names in steps:
        update(singles, own, names)

    def together():
        for names in steps:
            update([optimizer], shared, names)

    compiled = tg.compile(lambda names: update([optimizer], shared, names))
    if way == "compiled together":
        tg.compile(together)()
    else:
        for number, names in enumerate(steps):
            if way == "eager" or (way == "mixed" and number % 2):
                update([optimizer], shared, names)
            else:
                compiled(names)
    counts = {name: optimizer.state[shared[name]]["step"] for name in "abcd"}
    for name in "abcd":
        assert shared[name].tolist() == pytest.approx(own[name].tolist(), rel=1e-5)
        assert counts[name].item() == sum(name in names for names in steps)
    if pattern == "abcd abcd":
        assert len(set(map(id, counts.values()))) == 1


def test_steps_of_some_parameters_after_steps_of_all_are_compiled_together():
    x, y = leaf(1.0), leaf(1.0)
    optimizer = optim.Adam([x, y], lr=0.1)

    @tg.compile
    def steps():
        update([optimizer], {"x": x, "y": y}, "xy")
        update([optimizer], {"x": x, "y": y}, "x")

    for number in (1, 2, 3):
        steps()
        counts = [optimizer.state[each]["step"].item() for each in (x, y)]
        assert counts == [2 * number, number]


def test_a_compiled_function_that_reads_a_state_whose_counters_part_is_refused():
    x, y = leaf(1.0), leaf(1.0)
    optimizer = optim.Adam([x, y], lr=0.1)

    @tg.compile
    def steps():
        update([optimizer], {"x": x, "y": y}, "xy")
        kept = [len(each) for each in optimizer.state.values()]
        update([optimizer], {"x": x, "y": y}, "x")
        return kept

    with pytest.raises(tg.tracing.TraceError, match="call it once uncompiled"):
        steps()


def test_operations_of_a_graph_that_part_counters_are_refused():
    x, y = leaf(1.0), leaf(1.0)
    optimizer = optim.Adam([x, y], lr=0.1)
    with tg.Graph(), pytest.raises(tg.tracing.TraceError, match="an optimizer of its own"):
        optimizer.minimize((x * y).sum())
        optimizer.minimize((x * x).sum())


def test_the_step_is_counted_once_for_all_parameters():
    parameters = [tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(5)]
    optimizer = optim.AdamW(parameters, lr=0.1)
    for each in parameters:
        each.grad = tg.ones_like(each)
    step = tg.compile(lambda: optimizer.step())
    step()
    text = str(step.explain())
    assert text.count("pow x2") == 1 and text.count("pow") == 1, text


@pytest.mark.parametrize("compiled", [False, True])
def test_state_that_is_not_loaded_is_dropped(compiled):
    x, y = leaf(1.0), leaf(1.0)
    optimizer = optim.Adam([x, y], lr=0.1, amsgrad=True)
    run = tg.compile(lambda: stepped(optimizer)) if compiled else lambda: stepped(optimizer)
    run()
    saved = copy.deepcopy(optimizer.state_dict())
    del saved["state"][1], saved["state"][0]["max_exp_avg_sq"]
    saved["param_groups"][0]["amsgrad"] = False
    run()
    optimizer.load_state_dict(saved)
    assert [*optimizer.state] == [x] and "max_exp_avg_sq" not in optimizer.state[x]
    run()
    assert [optimizer.state[each]["step"].item() for each in (x, y)] == [2, 1]


def test_loaded_counters_are_shared_where_they_are_equal():
    x, y, z = leaf(1.0), leaf(1.0), leaf(1.0)
    optimizer = optim.Adam([x, y, z], lr=0.1)
    stepped(optimizer, 2)
    saved = copy.deepcopy(optimizer.state_dict())
    saved["state"][2]["step"] = tg.tensor(7.0)
    optimizer.load_state_dict(saved)
    first, second, third = (optimizer.state[each]["step"] for each in (x, y, z))
    assert first is second and first.item() == 2 and third.item() == 7
    assert saved["state"][0]["step"].item() == 2
    stepped(optimizer)
    assert first.item() == 3 and third.item() == 8 and saved["state"][0]["step"].item() == 2


def test_a_skipped_first_step_and_what_is_loaded_then():
    """With dampening, the first gradient counts in full: not behind one that was loaded."""
    x = leaf(1.0, 2.0)
    options = {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}
    first = optim.SGD([x], **options)
    stepped(first, 3)
    y, scaler = leaf(0.0, 0.0), tg.amp.GradScaler("cpu")
    second = optim.SGD([y], **options)

    @tg.compile
    def scaled(gradient):
        scaler.scale(y.sum())
        y.grad = gradient
        scaler.step(second)
        scaler.update()

    scaled(tg.tensor([float("inf"), 1.0]))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    with tg.no_grad():
        y.copy_(x)
    stepped(first)
    stepped(second)
    assert x.tolist() == y.tolist()


def test_minimize_leaves_gradients_as_they_were():
    x = leaf(1.0)
    x.grad = tg.tensor([5.0])
    optim.SGD([x], lr=0.25).minimize((x * x).sum())
    assert x.grad.tolist() == [5.0] and x.tolist() == [0.5]


def test_steps_that_differ_after_loading_are_counted_apart():
    one, other = leaf(1.0), leaf(1.0)
    optimizer = optim.Adam([one, other], lr=0.1)
    for each in (one, other):
        each.grad = tg.ones_like(each)
    step = tg.compile(lambda: optimizer.step())
    step()
    saved = copy.deepcopy(optimizer.state_dict())
    step()
    saved["state"][0]["step"] = tg.tensor(10.0)
    optimizer.load_state_dict(saved)
    step()
    assert [each["step"].item() for each in optimizer.state.values()] == [11.0, 2.0]
