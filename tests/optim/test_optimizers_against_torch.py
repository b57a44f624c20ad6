"""Optimizers, schedulers and averages against PyTorch's, eagerly and compiled, with their state."""

import copy
import warnings

import numpy as np
import pytest

import tgraph as tg

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")

RNG = np.random.default_rng(7)
STARTS = [RNG.normal(size=shape) for shape in ((3, 4), (5,), (), (4, 2))]
GRADIENTS = [[RNG.normal(size=each.shape) for each in STARTS] for _ in range(12)]

# Options beside the defaults, most of them those of PyTorch's `optim_db`.
OPTIMIZERS = {
    "Adadelta": ({"weight_decay": 0.1, "maximize": True}, {"rho": 0.95, "lr": 0.01}),
    "Adafactor": (
        {}, {"lr": 0.1, "weight_decay": 0.1, "maximize": True, "eps": (1e-3, 1e-2)},
        {"d": 1.5, "beta2_decay": -1.0},
    ),
    "Adagrad": (
        {"weight_decay": 0.1, "maximize": True},
        {"lr": 0.1, "lr_decay": 0.5, "initial_accumulator_value": 0.1},
    ),
    "Adam": (
        {"amsgrad": True, "weight_decay": 0.1, "maximize": True, "foreach": False},
        {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1, "fused": True},
    ),
    "AdamW": ({"lr": 0.01, "amsgrad": True}, {"betas": (0.5, 0.7), "maximize": True}),
    "Adamax": ({"lr": 0.01, "weight_decay": 0.1}, {"betas": (0.5, 0.7), "maximize": True}),
    "ASGD": (
        {"lr": 0.02, "t0": 3, "weight_decay": 0.1}, {"maximize": True, "lambd": 0.1, "alpha": 0.5},
    ),
    "Muon": ({"lr": 0.02}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}),
    "NAdam": (
        {"lr": 0.01, "momentum_decay": 6e-3, "weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ),
    "RAdam": (
        {"lr": 0.01, "weight_decay": 0.1}, {"eps": 1e-6, "betas": (0.8, 0.9)},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ),
    "RMSprop": (
        {"weight_decay": 0.1, "momentum": 0.1, "centered": True}, {"maximize": True, "alpha": 0.5},
    ),
    "Rprop": ({"lr": 0.02}, {"etas": (0.4, 1.5), "step_sizes": (2e-6, 0.1), "maximize": True}),
    "SGD": (
        {}, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True},
    ),
    "SparseAdam": ({"lr": 0.1}, {"betas": (0.5, 0.7), "maximize": True}),
}  # fmt: skip
CASES = [
    *((name, options, "eager", "float64") for name, sets in OPTIMIZERS.items() for options in sets),
    *((name, sets[-1], "compiled", "float32") for name, sets in OPTIMIZERS.items()),
]


def starts_of(name):
    """The positions of the parameters that an optimizer takes."""
    return {"Muon": (0, 3), "SparseAdam": (0, 1, 3)}.get(name, range(len(STARTS)))


def gradients_of(name, step):
    found = [GRADIENTS[step][at].copy() for at in starts_of(name)]
    if name == "SparseAdam":
        for each in found:
            each[step % len(each)] = 0
    return found


def made(T, name, options, dtype):
    parameters = [
        T.tensor(STARTS[at], dtype=getattr(T, dtype), requires_grad=True) for at in starts_of(name)
    ]
    return getattr(T.optim, name)(parameters, **options), parameters


def run_torch(name, optimizer, steps):
    for step in steps:
        parameters = optimizer.param_groups[0]["params"]
        for each, gradient in zip(parameters, gradients_of(name, step), strict=True):
            each.grad = torch.tensor(gradient, dtype=each.dtype)
            if name == "SparseAdam":
                each.grad = each.grad.to_sparse(1)
        optimizer.step()


def run_tgraph(name, optimizer, steps, way):
    def step(gradients):
        for each, gradient in zip(optimizer.param_groups[0]["params"], gradients, strict=True):
            each.grad = gradient
        optimizer.step()

    take = tg.compile(step) if way == "compiled" else step
    for number in steps:
        dtype = optimizer.param_groups[0]["params"][0].dtype
        take([tg.tensor(each, dtype=dtype) for each in gradients_of(name, number)])
        optimizer.param_groups[0]["lr"] *= 1.0  # a number, but the same one
    if way == "compiled":
        take.assert_compiles(1)


def plain(value):
    """Tensors as arrays, also in containers."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.detach().numpy() if hasattr(value, "detach") else value


def assert_same(found, expected, **tolerance):
    """Equal keys in one order, and close numbers."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_same(found[key], value, **tolerance)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, **tolerance)
    elif isinstance(expected, (str, bool, type(None))):
        assert found is expected or found == expected
    else:
        np.testing.assert_allclose(found, expected, **tolerance)


@pytest.mark.parametrize(("name", "options", "way", "dtype"), CASES)
def test_steps_and_states_are_those_of_pytorch(name, options, way, dtype):
    """Also from a state that is loaded half-way, from PyTorch and into it."""
    tolerance = {"rtol": 3e-5, "atol": 3e-6} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}
    if name == "Muon":
        tolerance = {"rtol": 4e-3, "atol": 4e-3}  # products of bfloat16
    theirs, expected = made(torch, name, options, dtype)
    ours, found = made(tg, name, options, dtype)
    run_torch(name, theirs, range(6))
    run_tgraph(name, ours, range(6), way)
    assert_same(plain(found), plain(expected), **tolerance)
    assert_same(plain(ours.state_dict()), plain(theirs.state_dict()), **tolerance)

    other, copied = made(tg, name, {}, dtype)
    for one, start in zip(copied, expected, strict=True):
        one.detach().copy_(tg.tensor(start.detach().numpy()))
    other.load_state_dict(theirs.state_dict())
    back, _ = made(torch, name, {}, dtype)
    back.load_state_dict(as_torch(ours.state_dict()))
    for one, start in zip(back.param_groups[0]["params"], found, strict=True):
        one.detach().copy_(torch.tensor(start.detach().numpy()))
    run_tgraph(name, other, range(6, 12), way)
    run_torch(name, back, range(6, 12))
    run_torch(name, theirs, range(6, 12))
    tolerance = {key: 3 * value for key, value in tolerance.items()}
    assert_same(plain(copied), plain(expected), **tolerance)
    assert_same(plain(back.param_groups[0]["params"]), plain(expected), **tolerance)
    assert_same(plain(other.state_dict()), plain(theirs.state_dict()), **tolerance)


def as_torch(value):
    if isinstance(value, dict):
        return {key: as_torch(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_torch(each) for each in value)
    return torch.tensor(value.detach().numpy()) if isinstance(value, tg.Tensor) else value


WRONG = [
    ("SGD", {"lr": -0.5}), ("SGD", {"momentum": -0.5}), ("SGD", {"nesterov": True}),
    ("SGD", {"foreach": True, "fused": True}), ("Adam", {"betas": (1.0, 0.0)}),
    ("Adam", {"fused": True, "differentiable": True}), ("Adadelta", {"rho": 1.1}),
    ("Adafactor", {"eps": (-1e-30, 1e-3)}), ("Adafactor", {"d": 0.0}),
    ("Adafactor", {"beta2_decay": 0.8}), ("Adafactor", {"weight_decay": -1}),
    ("Adagrad", {"lr_decay": -0.5}), ("Adagrad", {"initial_accumulator_value": -1}),
    ("Adamax", {"betas": (0.0, 1.0)}), ("ASGD", {"lr": -1}), ("LBFGS", {"lr": -1}),
    ("Muon", {"momentum": -1}), ("Muon", {"adjust_lr_fn": "arbitrary"}),
    ("NAdam", {"momentum_decay": -0.2}), ("RAdam", {"weight_decay": -1}), ("RMSprop", {"eps": -1}),
    ("RMSprop", {"alpha": -1}), ("Rprop", {"etas": (1.0, 0.5)}), ("SparseAdam", {"lr": 0}),
    ("SparseAdam", {"eps": 0}),
]  # fmt: skip


def test_errors_are_pytorchs():
    for name, options in WRONG:
        texts = []
        for T in (torch, tg):
            with pytest.raises((ValueError, RuntimeError)) as caught:
                getattr(T.optim, name)([T.ones(2, 2, requires_grad=True)], **options)
            texts.append((caught.type, str(caught.value)))
        assert texts[0] == texts[1], name


def test_steps_can_be_differentiated():
    for name in ("SGD", "Adadelta", "Adagrad", "RAdam", "RMSprop"):
        found = []
        for T in (torch, tg):
            p = T.tensor([1.0, -2.0], dtype=T.float64, requires_grad=True)
            gradient = T.tensor([0.3, -0.7], dtype=T.float64, requires_grad=True)
            moved = p.clone()
            optimizer = getattr(T.optim, name)([moved], lr=0.1, differentiable=True)
            for factor in (1, 2):
                moved.grad = gradient * factor
                optimizer.step()
            (moved**2).sum().backward()
            found.append(plain([p.grad, gradient.grad]))
        assert_same(found[1], found[0], rtol=1e-6)


# --- L-BFGS --------------------------------------------------------------------------------------

MATRIX = (lambda a: a @ a.T + np.eye(4))(RNG.normal(size=(4, 4)))


def minimized(T, options, steps, compiled=False, saved=None):
    x = T.tensor(np.full(4, 2.0), requires_grad=True)
    y = T.tensor([[1.0, -1.5]], dtype=T.float64, requires_grad=True)
    optimizer = T.optim.LBFGS([x, y], **options)
    if saved is not None:
        state, values = saved
        optimizer.load_state_dict(copy.deepcopy(state))
        for one, value in zip((x, y), values, strict=True):
            one.detach().copy_(T.tensor(value))
    matrix = T.tensor(MATRIX)

    def closure():
        optimizer.zero_grad()
        valley = (1 - y[0, 0]) ** 2 + 10 * (y[0, 1] - y[0, 0] ** 2) ** 2
        loss = (matrix @ x).dot(x) / 2 - x.sum() + (x**4).sum() / 10 + valley
        loss.backward()
        return loss

    closure = tg.compile(closure) if compiled else closure
    losses = [float(optimizer.step(closure).detach()) for _ in range(steps)]
    return losses, plain([x, y]), optimizer.state_dict()


@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 7},
        {"lr": 0.5, "line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2},
        {"line_search_fn": "strong_wolfe"},
    ],
)
def test_lbfgs_is_pytorchs(options):
    expected = minimized(torch, options, 2)
    for compiled in (False, True):
        found = minimized(tg, options, 2, compiled)
        assert_same(found[0], expected[0], rtol=1e-7)
        assert_same(found[1], expected[1], rtol=1e-6, atol=1e-8)
        assert list(found[2]["state"][0]) == list(expected[2]["state"][0])
        assert found[2]["state"][0]["func_evals"] == expected[2]["state"][0]["func_evals"]
    half = minimized(torch, options, 1)
    rest = minimized(tg, options, 1, saved=(half[2], half[1]))
    assert_same(rest[1], expected[1], rtol=1e-6, atol=1e-8)


# --- schedulers ----------------------------------------------------------------------------------

SCHEDULERS = {
    "lambda": lambda s, o: s.LambdaLR(o, [lambda n: 0.9**n, lambda n: n + 1]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda n: 0.9),
    "step": lambda s, o: s.StepLR(o, 3, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.9, 6),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.8),
    "polynomial": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 5, 0.05),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3, 4),
    "cyclic, halved": lambda s, o: s.CyclicLR(
        o, 0.1, 0.9, 2, mode="triangular2", cycle_momentum=False
    ),
    "cyclic, falling": lambda s, o: s.CyclicLR(
        o, [0.1, 0.2], [0.9, 0.5], 3, mode="exp_range", gamma=0.9
    ),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.9, total_steps=20),
    "one cycle, three phases": lambda s, o: s.OneCycleLR(
        o, [0.9, 0.3], epochs=4, steps_per_epoch=6, three_phase=True, anneal_strategy="linear",
        pct_start=0.2,
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 4)], [3, 8]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
    "plateau": lambda s, o: s.ReduceLROnPlateau(o, patience=1, cooldown=1, min_lr=[0.01, 0.1]),
    "plateau of a maximum": lambda s, o: s.ReduceLROnPlateau(
        o, "max", factor=0.5, patience=0, threshold_mode="abs", threshold=0.5
    ),
    "plateau of a relative maximum": lambda s, o: s.ReduceLROnPlateau(
        o, "max", factor=0.5, patience=0, threshold=0.4
    ),
    "averaging": lambda s, o: s.SWALR(o, 0.05, 5),
    "averaging at once": lambda s, o: s.SWALR(o, 0.05, 0, "linear"),
}  # fmt: skip
MEASURES = [3, 2, 2, 2, 2.5, 1, 1, 1, 1, 1.5, 1, 1, 1, 1]


class Schedulers:
    """`lr_scheduler` and `swa_utils` as one."""

    def __init__(self, T):
        self.modules = (T.optim.lr_scheduler, T.optim.swa_utils)

    def __getattr__(self, name):
        return next(getattr(each, name) for each in self.modules if hasattr(each, name))


def scheduled(T, make, optimizer_name):
    parameters = [T.ones(1, requires_grad=True) for _ in range(2)]
    groups = [{"params": [parameters[0]]}, {"params": [parameters[1]], "lr": 0.2}]
    optimizer = getattr(T.optim, optimizer_name)(groups, lr=0.5)
    scheduler = make(Schedulers(T), optimizer)
    optimizer.step()
    seen, states = [], []
    for measure in MEASURES:
        groups = copy.deepcopy([{**each, "params": None} for each in optimizer.param_groups])
        seen.append([plain(groups), scheduler.get_last_lr()])
        states.append(copy.deepcopy(scheduler.state_dict()))
        scheduler.step(*([measure] if hasattr(scheduler, "patience") else []))
    return seen, states, scheduler


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_are_pytorchs(name):
    make, optimizer = SCHEDULERS[name], "Adam" if name in ("cyclic", "one cycle") else "SGD"
    expected, states, _ = scheduled(torch, make, optimizer)
    found, own, scheduler = scheduled(tg, make, optimizer)
    assert_same(found, expected, rtol=1e-12)
    assert_same(plain(own), plain(states), rtol=1e-12)
    scheduler.load_state_dict(states[5])  # which goes on from there
    assert_same(plain(scheduler.state_dict()), plain(states[5]), rtol=1e-12)


def test_epochs_that_are_given_use_the_closed_form():
    for name in ("step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine",
                 "restarts"):  # fmt: skip
        rates = []
        for T in (torch, tg):
            _, _, scheduler = scheduled(T, SCHEDULERS[name], "SGD")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(6)
            rates.append(scheduler.get_last_lr())
        assert_same(rates[1], rates[0], rtol=1e-12)


# --- averages of models --------------------------------------------------------------------------

AVERAGES = {
    "mean": lambda swa: {},
    "of buffers": lambda swa: {"use_buffers": True},
    "exponential": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
    "exponential, one by one": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.9)},
    "mean of lists": lambda swa: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
}


def averaged(T, options, way):
    model = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3), T.nn.Linear(3, 1))
    with T.no_grad():
        for each in model.parameters():
            each.copy_(T.arange(each.numel()).reshape(each.shape) * 0.1 + 0.1)
    average = T.optim.swa_utils.AveragedModel(model, **options(T.optim.swa_utils))
    x = T.tensor(np.random.default_rng(1).normal(size=(8, 2)), dtype=T.float32)
    optimizer = T.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        average.update_parameters(model)

    take = tg.compile(step) if way == "compiled" else step
    for _ in range(4):
        take()
    T.optim.swa_utils.update_bn([x[:4], [x[4:]]], average)
    return plain(dict(average.state_dict())), average(x).detach().numpy()


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_of_models_are_pytorchs(name):
    expected = averaged(torch, AVERAGES[name], "eager")
    for way in ("eager", "compiled"):
        assert_same(list(averaged(tg, AVERAGES[name], way)), list(expected), rtol=1e-5, atol=1e-6)


def test_new_statistics_leave_an_averaged_model_in_evaluation():
    averaged_model = tg.optim.swa_utils.AveragedModel(tg.nn.BatchNorm1d(1)).eval()
    tg.optim.swa_utils.update_bn([tg.tensor([[1.0], [3.0]])], averaged_model)
    assert averaged_model.module.running_mean.tolist() == [2]
    assert not averaged_model.training and not averaged_model.module.training
