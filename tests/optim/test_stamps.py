"""Updates that are stamped out are those that are traced: node for node, with lines and inputs."""

import numpy as np
import pytest

import tgraph as tg
from tgraph.tracing.stamps import Stamps
from tgraph.tracing.trace_context import Trace

OPTIMIZERS = {
    "adam": lambda given: tg.optim.Adam(given, weight_decay=0.1),
    "amsgrad": lambda given: tg.optim.Adam(given, amsgrad=True),
    "adamw": lambda given: tg.optim.AdamW(given, maximize=True),
    "adamw of groups": lambda given: tg.optim.AdamW(
        [{"params": given[:3]}, {"params": given[3:], "lr": 0.2, "betas": (0.5, 0.7)}]
    ),
    "sgd": lambda given: tg.optim.SGD(given, lr=0.1),
    "momentum": lambda given: tg.optim.SGD(given, lr=0.1, momentum=0.9, nesterov=True),
    "rmsprop": lambda given: tg.optim.RMSprop(given, centered=True, momentum=0.5),
}


def parameters():
    """Of three shapes, one of them a number, and one that lies in another order."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4),) * 3 + ((5,),) * 2]
    arrays += [rng.normal(size=()).astype(np.float32) for _ in range(2)]
    arrays += [rng.normal(size=(4, 3)).astype(np.float32).T for _ in range(2)]
    return [tg.nn.Parameter(tg.from_numpy(each)) for each in arrays]


def steps_of(make, gradients):
    """Traces two steps, of which the first makes the state, and takes three."""
    given = parameters()
    optimizer = make(given)

    def step():
        optimizer.zero_grad()
        loss = tg.zeros(())
        for each in given:
            loss = loss + (each * each).sum()
        loss.backward()
        if gradients == "shared":
            given[1].grad = given[0].grad
        optimizer.step()
        return loss

    texts = []
    for _ in range(2):
        graph = tg.trace(step)
        lines = [(str(each.where), each.where.backward) for each in graph.nodes]
        order = sorted(range(len(graph.nodes)), key=lambda at: graph.nodes[at].number)
        texts.append((str(graph), lines, order))
    run = tg.compile(step)
    losses = [float(run()) for _ in range(3)]
    versions = [each._version for each in given]
    return texts, losses, versions, [each.detach().numpy().copy() for each in given]


@pytest.mark.parametrize("gradients", ["own", "shared"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_stamped_updates_are_those_that_are_traced(name, gradients, monkeypatch):
    pressed = []
    press = Stamps._press
    monkeypatch.setattr(Stamps, "_press", lambda *args: (pressed.append(1), press(*args)))
    *found, values = steps_of(OPTIMIZERS[name], gradients)
    assert len(pressed) >= 3 * 4  # of nine in each trace
    monkeypatch.setattr(Trace, "update", lambda self, function, args: function(*args))
    *expected, same = steps_of(OPTIMIZERS[name], gradients)
    assert found == expected
    for have, want in zip(values, same, strict=True):
        np.testing.assert_array_equal(have, want)
