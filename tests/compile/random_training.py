"""Random programs that train, and change models and optimizers between steps, as source text.

A program defines `program(T, compiled, seen)`: T is tgraph or PyTorch, `compiled` is put around
what a program would compile, and what can be observed is handed to `seen`.
"""

from __future__ import annotations

import random
from typing import Any

LAYERS = [
    "nn.Linear(4, 4)", "nn.BatchNorm1d(4)", "nn.LayerNorm(4)", "nn.Tanh()", "nn.PReLU()",
    "nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))", "nn.Dropout(0.5)",
    "nn.BatchNorm1d(4, momentum=None)",
]  # fmt: skip
OPTIMIZERS = [
    "SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)",
    "Adam(model.parameters(), lr=0.01, eps=1e-3)",
    "AdamW(model.parameters(), lr=0.01, amsgrad=True, eps=1e-3)",
    "NAdam(model.parameters(), lr=0.01, eps=1e-3)", "Adagrad(model.parameters(), lr=0.1, eps=1e-3)",
    "RMSprop(model.parameters(), lr=0.01, eps=1e-3)",
]  # fmt: skip
LOSSES = [
    "((model(x) - y) ** 2).mean() * rate", "F.smooth_l1_loss(model(x), y) * rate",
    "(model(x) * y).sum() + sum(p.pow(2).sum() for p in model.parameters() if p.requires_grad)",
]  # fmt: skip
ENDS = [
    "pass",
    "average()",
    "nn.utils.clip_grad_norm_(model.parameters(), rate)",
    "schedule.step()",
]
# Whole steps, or their loss or the model alone.
STEPS = {
    "whole": """\
@compiled
def step(x, y):
    optimizer.zero_grad(set_to_none={none})
    loss = {loss}
    loss.backward()
    {end}
    optimizer.step()
    return loss.detach()""",
    "accumulated": """\
@compiled
def step(x, y):
    for turn in range(2):
        loss = {loss} / 2
        loss.backward()
    optimizer.step()
    {end}
    optimizer.zero_grad(set_to_none={none})
    return loss.detach()""",
    "loss": """\
loss_of = compiled(lambda x, y: {loss})
def step(x, y):
    optimizer.zero_grad(set_to_none={none})
    loss = loss_of(x, y)
    loss.backward()
    {end}
    optimizer.step()
    return loss.detach()""",
    "weights": """\
loss_of = compiled(lambda weight, x, y: {loss} + (weight * weight).sum())
def step(x, y):
    optimizer.zero_grad(set_to_none={none})
    loss = loss_of(last.weight, x, y)
    loss.backward()
    optimizer.step()
    {end}
    return loss.detach()""",
}
CHANGES = [
    "model.eval()", "model.train()", "rate = rate * 2", "rate = 0.25",
    "for each in model: each.p = 0.25",
    "for name, p in model.named_parameters(): p.requires_grad_('bias' not in name)",
    "for p in model.parameters(): p.requires_grad_(True)", "model[0].requires_grad_(False)",
    "last.requires_grad_(not last.weight.requires_grad)",
    "last.weight = nn.Parameter(T.eye(4) * 0.3)", "last.bias = None",
    "last.bias = nn.Parameter(T.ones(4))",
    "optimizer.add_param_group({'params': [p for p in last.parameters() if id(p) not in known()]})",
    "optimizer.param_groups[0]['lr'] *= 0.5", "optimizer.param_groups[0]['weight_decay'] = 0.1",
    "schedule.step()", "saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))",
    "model.load_state_dict(saved[0], strict=False)",
    "optimizer.load_state_dict(saved[1]) if fits(saved[1]) else None",
    "hooks.append(last.register_forward_hook(lambda module, args, result: result * 1.5))",
    "hooks.append(model[0].register_forward_pre_hook(lambda module, args: (args[0] + 0.1,)))",
    "for each in hooks: each.remove()",
    "for p in model.parameters(): p.data.mul_(0.5)", "last.weight.data = T.eye(4)",
    "for p in model.parameters(): p.grad = T.ones_like(p) if p.requires_grad else None",
    "seen(copy.deepcopy(model)(data(7)[0]))", "model.zero_grad(set_to_none=False)",
    "for each in model:\n    if hasattr(each, 'eps'): each.eps = 0.1",
    "for each in model:\n    if hasattr(each, 'running_mean'): each.reset_running_stats()",
]  # fmt: skip
HEAD = """\
nn, F = T.nn, T.nn.functional
last = nn.Linear(4, 4)
model = nn.Sequential({layers}, last)
mean = nn.Sequential({layers}, nn.Linear(4, 4))
with T.no_grad():
    for number, p in enumerate([*model.parameters(), *mean.parameters()]):
        p.copy_((T.arange(p.numel()).reshape(p.shape).to(p.dtype) * 0.37 + number).sin() * 0.5)
optimizer = T.optim.{optimizer}
schedule = T.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
rate, hooks = 1.0, []
def data(number):
    cells = T.arange(12).reshape(3, 4).to(T.float64)
    return (cells * 0.3 + number).sin(), (cells * 0.7 + number).cos()
def average():
    with T.no_grad():
        for a, b in zip(mean.parameters(), model.parameters()):
            if a.shape == b.shape: a.lerp_(b, 0.1)
def known():
    return {{id(p) for group in optimizer.param_groups for p in group['params']}}
def fits(state):
    sizes = [[len(group['params']) for group in each['param_groups']] for each in
             (state, optimizer.state_dict())]
    return sizes[0] == sizes[1]
saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
"""


def program(seed: int) -> str:
    pick = random.Random(seed)
    layers = ["nn.Linear(4, 4)", *(pick.choice(LAYERS) for _ in range(pick.randrange(1, 3)))]
    lines = HEAD.format(layers=", ".join(layers), optimizer=pick.choice(OPTIMIZERS)).splitlines()
    step = STEPS[pick.choice([*STEPS])].format(
        none=pick.choice(["True", "False"]), loss=pick.choice(LOSSES), end=pick.choice(ENDS)
    )
    lines += step.splitlines()
    for number in range(pick.randrange(4, 7)):
        for _ in range(pick.choice([0, 1, 1, 2]) if number else 0):
            lines += pick.choice(CHANGES).splitlines()
        lines.append(f"seen(step(*data({number})))")
        lines.append("seen([*model.parameters()], [p.grad for p in model.parameters()])")
        lines.append("seen([*model.buffers()], [*mean.parameters()], rate)")
        lines.append("seen([group['lr'] for group in optimizer.param_groups])")
    body = "\n".join(f"    {line}" for line in lines)
    return f"import copy\ndef program(T, compiled, seen):\n{body}\n"


def function(text: str) -> Any:
    found: dict[str, Any] = {}
    exec(compile(text, "<training program>", "exec"), found)
    return found["program"]
