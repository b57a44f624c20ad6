"""Random programs that make views, write in place and differentiate: compiled is eager."""

import random

import numpy as np
import pytest

import tgraph as tg

SHAPES = [(2, 3), (3,), (2, 1), ()]


def views_of(pick, x):
    """A random view of x, or x."""
    choice = pick.randrange(7)
    if choice == 0 and x.ndim:
        return x[pick.randrange(len(x))]
    if choice == 1 and x.ndim:
        return x[..., ::2]
    if choice == 2 and x.ndim == 2:
        return x.t()
    if choice == 3:
        return x.reshape(-1)
    if choice == 4:
        return x.unsqueeze(0)
    if choice == 5:
        return x.detach()
    return x


def computed(pick, tensors):
    a, b = pick.choice(tensors), pick.choice(tensors)
    operation = pick.choice(
        [
            lambda: a * 0.5 + b.sum(),
            lambda: (a.tanh() + 1) * b.mean(),
            lambda: a.exp().clamp(max=2.0) - b.amax() if b.numel() else a,
            lambda: tg.where(a > 0, a, a * 0.1) + b.prod() * 0.01,
            lambda: a.clone(),
            lambda: tg.cat([a.reshape(-1), b.reshape(-1)])[: a.numel()].reshape(a.shape),
        ]
    )
    return operation()


def written(pick, tensors, target):
    source = pick.choice(tensors)
    change = pick.choice(
        [
            lambda: target.add_(source.sum() * 0.1),
            lambda: target.mul_(0.5),
            lambda: target.copy_(source.mean() + target),
            lambda: target.fill_(0.25),
            lambda: target.__setitem__(..., target.neg()),
            lambda: target.zero_(),
        ]
    )
    change()


def program(seed, differentiate):
    """A function of (arguments, captured, views of captured) that does the same at every call."""

    def run(arguments, captured, outside):
        pick = random.Random(seed)
        tensors = [*arguments, *captured, *outside]
        results = []
        for _ in range(pick.randrange(4, 12)):
            step = pick.randrange(6)
            if step <= 1:
                tensors.append(views_of(pick, pick.choice(tensors)))
            elif step <= 3:
                tensors.append(computed(pick, tensors))
            else:
                target = pick.choice(tensors)
                # Leaves that require grad cannot be written, nor what they share memory with.
                if not target.requires_grad or not target.is_leaf:
                    with tg.set_grad_enabled(differentiate and pick.random() < 0.8):
                        written(pick, tensors, target)
        for _ in range(3):
            results.append(pick.choice(tensors))
        total = sum((x * x).sum() for x in tensors if x.is_floating_point())
        return results, total

    return run


def fresh(seed, differentiate):
    generator = np.random.default_rng(seed)

    def tensor(shape, leaf):
        x = tg.tensor(generator.uniform(-1, 1, shape))
        return x.requires_grad_() if leaf and differentiate else x

    arguments = [tensor(shape, n % 2 == 0) for n, shape in enumerate(SHAPES)]
    captured = [tensor(shape, n % 3 == 0) for n, shape in enumerate(SHAPES)]
    pick = random.Random(seed)
    outside = [views_of(pick, each) for each in captured[1:3]]
    return arguments, captured, outside


def outcome(seed, differentiate, compiled):
    """All results, changes and gradients of two calls; or the error."""
    run = program(seed, differentiate)
    arguments, captured, outside = fresh(seed, differentiate)
    call = lambda *arguments: run(arguments, captured, outside)  # noqa: E731
    call = tg.compile(call) if compiled else call
    found = []
    for _ in range(2):
        try:
            results, total = call(*arguments)
            found += [x.detach().clone() for x in results]
            found += [total.detach(), *(x.requires_grad for x in results)]
            if total.requires_grad:
                total.backward()
        except (RuntimeError, ValueError) as error:
            found.append(str(error).split(":")[0].split(",")[0][:60])
            break
        tensors = [*arguments, *captured, *outside]
        found += [x.detach().clone() for x in tensors]
        found += [None if x.grad is None else x.grad.clone() for x in tensors]
        found += [x.requires_grad for x in tensors]
    return found


def check(seed, differentiate):
    eager, compiled = outcome(seed, differentiate, False), outcome(seed, differentiate, True)
    if isinstance(eager[-1], str):  # eager refuses; so must compiled code, here or there
        assert isinstance(compiled[-1], str), (eager[-1], len(eager), len(compiled))
        eager, compiled = eager[:-1], compiled[: len(eager) - 1]
    elif compiled[-1] == "Trying to backward through the graph a second time (or direc":
        # A call is one step of the graph, freed as a whole; eager steps that keep nothing are not.
        eager, compiled = eager[: len(compiled) - 1], compiled[:-1]
    assert len(eager) == len(compiled), compiled[-1]
    for at, (a, b) in enumerate(zip(eager, compiled, strict=True)):
        if isinstance(a, tg.Tensor):
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-9, atol=1e-9, err_msg=str(at))
        else:
            assert a == b, at


@pytest.mark.parametrize("seed", range(60))
def test_without_gradients(seed):
    check(seed, False)


@pytest.mark.parametrize("seed", range(60))
def test_with_gradients(seed):
    check(1000 + seed, True)


# --- training steps ------------------------------------------------------------------------------


def step_program(seed):
    """A step that calls backward, and reads, clears, replaces and writes gradients."""

    def run(parameters, buffers, x):
        pick = random.Random(seed)
        if pick.random() < 0.5:
            for each in parameters:
                each.grad = None
        values = [*parameters, *buffers, x]
        for _ in range(pick.randrange(1, 5)):
            values.append(computed(pick, [each * 1 for each in values]))
        loss = sum((value * value).mean() for value in values[-3:]) + parameters[0].sum()
        twice = pick.random() < 0.2
        loss.backward(retain_graph=twice)
        if twice:
            loss.backward()
        with tg.no_grad():
            for each in parameters:
                action = pick.randrange(6)
                if each.grad is None:
                    continue
                if action == 0:
                    each.grad.clamp_(-0.1, 0.1)
                elif action == 1:
                    each.grad = each.grad * 0.5
                elif action <= 3:
                    each.sub_(each.grad, alpha=0.1)
                elif action == 4:
                    buffers[0].add_(each.grad.sum())
            if pick.random() < 0.3:
                parameters[0].grad.zero_()
        return loss, parameters[0].grad

    return run


def steps(seed, compiled):
    generator = np.random.default_rng(seed)
    parameters = [
        tg.tensor(generator.uniform(-1, 1, shape)).requires_grad_() for shape in SHAPES[:3]
    ]
    buffers = [tg.tensor(generator.uniform(-1, 1, (2, 3))), tg.zeros(3, dtype=tg.float64)]
    run = step_program(seed)
    call = tg.compile(lambda x: run(parameters, buffers, x)) if compiled else None
    found, held = [], None
    for turn in range(4):
        x = tg.tensor(generator.uniform(-1, 1, (2, 3)))
        loss, grad = call(x) if compiled else run(parameters, buffers, x)
        found += [loss.detach(), grad.clone(), grad is parameters[0].grad, grad is held]
        held = grad
        found += [each.detach().clone() for each in (*parameters, *buffers)]
        found += [None if each.grad is None else each.grad.clone() for each in parameters]
        found += [each._version for each in (*parameters, *buffers)]
        if turn == 2:  # a gradient of another origin
            parameters[1].grad = tg.ones_like(parameters[1])
    return found, call


@pytest.mark.parametrize("seed", range(60))
def test_training_steps(seed):
    (eager, _), (compiled, call) = steps(seed, False), steps(seed, True)
    for at, (a, b) in enumerate(zip(eager, compiled, strict=True)):
        if isinstance(a, tg.Tensor):
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-9, atol=1e-9, err_msg=str(at))
        else:
            assert a == b, at
    assert len(call.compiles) <= 3
