"""What compiling costs: in steps that are counted, never in seconds."""

import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from sampling import rotating
from tgraph.compiler.fusion.fused_graph import GroupKernels
from tgraph.compiler.fusion.rules import FusionRules
from tgraph.compiler.kernel.lower import Lowering
from tgraph.compiler.targets.cpu import plan_builder as plan_builder_cpu
from tgraph.runtime.memo import Memo

import tgraph as tg
from benchmarks.compile_time import CASES
from tgraph.compiled import call_text
from tgraph.core.eager_context import EAGER
from tgraph.core.planned import Planned
from tgraph.tracing.trace_context import Trace

SOURCES = str(Path(tg.__file__).parent.parent)


def parameters(count, shapes):
    """`count` parameters; their sizes take turns."""
    rng = np.random.default_rng(0)
    return [
        tg.nn.Parameter(tg.tensor(rng.normal(size=(3 + at % shapes, 4)), dtype=tg.float32))
        for at in range(count)
    ]


def optimizer_step(count, make=tg.optim.Adam, shapes=1):
    """The update of `count` parameters, whose gradients are there."""
    given = parameters(count, shapes)
    optimizer = make(given)
    for each in given:
        each.grad = tg.ones_like(each)
    return tg.compile(lambda: optimizer.step())


def training_step(count, make=tg.optim.Adam, shapes=1):
    """A loss over `count` parameters, its gradients, and the update."""
    given = parameters(count, shapes)
    optimizer = make(given)

    def step():
        optimizer.zero_grad()
        loss = sum(((each * each).sum() for each in given), start=tg.zeros(()))
        loss.backward()
        optimizer.step()
        return loss

    return tg.compile(step)


def layers(count, shapes=1):
    """A chain of `count` layers."""
    given = parameters(count, 1)
    x = tg.ones(5, 3)

    def forward():
        value = x
        for each in given:
            value = tg.tanh(value @ (each @ each.T) + 1)
        return value

    return tg.compile(forward)


def momentum(given):
    return tg.optim.SGD(given, lr=0.1, momentum=0.9)


def transformer(count):
    """A training step of a transformer, of a layer for each four of `count`.

    Of fewer than three, one has no layer like the others on either side.
    """
    return tg.compile(CASES["transformer"](max(1, count // 4), "one"))


STEPS = {
    "adam": optimizer_step,
    "adam_of_many_shapes": lambda count: optimizer_step(count, shapes=7),
    "adamw": lambda count: optimizer_step(count, tg.optim.AdamW),
    "momentum": lambda count: optimizer_step(count, momentum),
    "training": training_step,
    "training_of_many_shapes": lambda count: training_step(count, momentum, shapes=7),
    "layers": layers,
    "transformer": transformer,
}


def calls(monkeypatch, place, name):
    """A list that grows by one at each call of a function from now on."""
    plain, seen = getattr(place, name), []

    def counted(*args, **kwargs):
        seen.append(name)
        return plain(*args, **kwargs)

    monkeypatch.setattr(place, name, counted)
    return seen


PLANNED = ["adam", "adamw", "momentum", "training", "layers", "transformer"]


@pytest.mark.parametrize("name", PLANNED)
def test_what_is_alike_is_planned_once(name, monkeypatch):
    """Lowering, the check that there is a kernel, and the text, whatever the number of tensors.

    Also when it comes again, in another program. Eager mode, which makes data and models, has no
    plans meanwhile: when it compiles them depends on what came before.
    """
    monkeypatch.setattr(Planned, "_plan", lambda *args: None)
    monkeypatch.setattr(EAGER, "large", {})
    counted = []
    larger = 24 if name == "transformer" else 48
    for count, is_new in ((12, True), (larger, True), (larger, False)):
        if is_new:
            Memo.forget_all()
        with monkeypatch.context() as patch:
            seen = [
                calls(patch, Lowering, "needs"),
                calls(patch, Lowering, "run"),
                calls(patch, plan_builder_cpu, "schedule_cpu"),
                calls(patch, plan_builder_cpu, "kernel_text"),
            ]
            STEPS[name](count)()
        counted.append([len(each) for each in seen])
    few, many, again = counted
    assert again == [0, 0, 0, 0]
    # The additions of a long loss are cut into pieces, larger ones than a short loss has.
    limit = 2 * max(few) if name == "training" else 0
    assert all(more <= max(less, limit) for less, more in zip(few, many)), counted


@pytest.mark.parametrize("name", ["adam", "adam_of_many_shapes", "adamw", "momentum"])
def test_updates_that_are_alike_are_traced_once(name, monkeypatch):
    """Operations are applied for one parameter; the others' nodes are made after its own."""
    seen = []
    for count in (12, 48):
        with monkeypatch.context() as patch:
            applied = calls(patch, Trace, "evaluate")
            STEPS[name](count)()
        seen.append(len(applied))
    assert seen[0] == seen[1] < 40


def test_shapes_are_planned_once_each(monkeypatch):
    Memo.forget_all()
    seen = calls(monkeypatch, Lowering, "run")
    optimizer_step(42, shapes=7)()
    # And the counter; the first update comes with numbers that all share between its own nodes.
    assert len(seen) <= 7 + 2


@pytest.mark.parametrize("name", STEPS)
def test_fusion_asks_a_bounded_number_of_times_per_node(name, monkeypatch):
    seen = calls(monkeypatch, GroupKernels, "assess")
    nodes = []
    plain = FusionRules.__init__

    def noted(self, graph, *others):
        nodes.append(len(graph.nodes))
        plain(self, graph, *others)

    monkeypatch.setattr(FusionRules, "__init__", noted)
    STEPS[name](24 if name == "transformer" else 60)()
    assert len(seen) <= sum(nodes)


class LineCounts:
    """How often each line of the library runs."""

    def __init__(self):
        self.of_code = {}

    def start(self, frame, event, _):
        """Called by Python for each new frame; gives what counts its lines."""
        code = frame.f_code
        if code not in self.of_code:
            is_ours = code.co_filename.startswith(SOURCES)
            lines = defaultdict(int)
            self.of_code[code] = lines, self.counter(lines) if is_ours else None
        return self.of_code[code][1]

    def counter(self, lines):
        def count(frame, event, _):
            if event == "line":
                lines[frame.f_lineno] += 1
            return count

        return count

    def total(self):
        found = Counter()
        for code, (lines, _) in self.of_code.items():
            for number, times in lines.items():
                found[code.co_filename, number] += times
        return found


def lines_run(function):
    """How often each line of the library runs in `function`."""
    counts, before = LineCounts(), sys.gettrace()
    sys.settrace(counts.start)
    try:
        function()
    finally:
        sys.settrace(before)
    return counts.total()


# A transformer of so many layers takes too long line by line.
FIRST = {name: 8 for name in STEPS if name != "transformer"} | {"layers": 12, "training": 15}
"""The least number of tensors: a long loss is cut into pieces, and layers are rolled into loops."""


# A row takes up to seven seconds: each of its lines is counted.
@pytest.mark.parametrize("name", rotating(FIRST, 3))
def test_work_grows_with_the_number_of_tensors(name, monkeypatch):
    """Every line runs as often for the last tensors as for those before them."""
    monkeypatch.setenv("TGRAPH_CACHE_DIR", "")  # whose files are counted now and then
    STEPS[name](3)()  # imports, and what is compiled once
    found = []
    for count in (1, 2, 4):
        Memo.forget_all()
        found.append(lines_run(STEPS[name](count * FIRST[name])))
    few, some, many = found
    slack = 2 * FIRST[name] ** 2  # what runs only where there is enough to do, or for some sizes
    for line, times in many.items():
        # What runs for each pair of tensors would run four times as often.
        assert times - some[line] <= 3 * max(some[line] - few[line], 0) + slack, line


@pytest.mark.slow
@pytest.mark.parametrize("make", [tg.optim.Adam])
def test_a_step_over_many_tensors(make):
    """Compiled and eager steps leave the same numbers behind."""
    given, same = parameters(300, 37), parameters(300, 37)
    for optimizer, compiled in ((make(given), True), (make(same), False)):

        def step(optimizer=optimizer):
            optimizer.zero_grad()
            loss = tg.zeros(())
            for group in optimizer.param_groups:
                for at, each in enumerate(group["params"]):
                    loss = loss + (each * each * (1 + at % 5)).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = tg.compile(step) if compiled else step
        losses = [float(run()) for _ in range(3)]
        if compiled:
            expected = losses
    np.testing.assert_allclose(expected, losses, rtol=1e-4)
    for one, other in zip(given, same):
        np.testing.assert_allclose(
            one.detach().numpy(), other.detach().numpy(), rtol=2e-5, atol=1e-6
        )


# --- calls of what has many tensors ---


@pytest.fixture
def loops(monkeypatch):
    """Few tensors are looked at as many are."""
    monkeypatch.setattr(call_text, "LOOPED", 1)


def grow(given):
    """A compiled function that counts calls in `given[0]` and adds up all."""

    @tg.compile
    def run():
        given[0].add_(1)
        return sum((each * 2).sum() for each in given)

    return run


def test_loops_see_new_memory_of_captured_tensors(loops):
    given = [tg.ones(2), tg.ones(3), tg.ones(3)]
    run = grow(given)
    assert float(run()) == 2 * (2 * 2 + 3 + 3)
    given[1].data = tg.full((3,), 5.0)
    assert float(run()) == 2 * (2 * 3 + 15 + 3) and len(run.compiles) == 1
    given[2].data = tg.ones(4)
    assert float(run()) == 2 * (2 * 4 + 15 + 4) and len(run.compiles) == 2


def test_loops_see_who_requires_gradients(loops):
    given = [tg.ones(2), tg.ones(3), tg.ones(3)]
    run = grow(given)
    assert not run().requires_grad
    given[1].requires_grad = True
    total = run()
    total.backward()
    assert total.requires_grad and len(run.compiles) == 2
    np.testing.assert_array_equal(given[1].grad.numpy(), [2, 2, 2])
    given[1].requires_grad = False
    assert not run().requires_grad


def test_loops_see_histories_and_hooks(loops):
    given = [tg.ones(2), tg.ones(3, requires_grad=True), tg.ones(3)]
    run = grow(given)
    run().backward()
    seen = []
    given[1].register_hook(seen.append)
    run().backward()
    assert len(seen) == 1
    leaf = tg.ones(3, requires_grad=True)
    given[1].requires_grad = False
    given[1].mul_(leaf)
    run().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [2, 2, 2])


def test_loops_see_gradients(loops):
    given = [tg.ones(2, requires_grad=True), tg.ones(3, requires_grad=True)]
    for each in given:
        each.grad = tg.ones_like(each)
    run = tg.compile(lambda: sum((each.grad * 3).sum() for each in given))
    assert float(run()) == 15
    given[1].grad = tg.full((3,), 2.0)
    assert float(run()) == 24 and len(run.compiles) == 1
    given[1].grad = tg.ones(3, 2).T[0]
    assert float(run()) == 15
    given[0].grad = None
    with pytest.raises(TypeError):
        run()
    given[0].grad = tg.ones(2)
    assert float(run()) == 15


def test_loops_count_writes(loops):
    given = [tg.ones(2), tg.ones(3), tg.ones(3)]
    run = grow(given)
    versions = [each._version for each in given]
    run()
    run()
    assert [each._version for each in given] == [versions[0] + 2, *versions[1:]]


@pytest.mark.parametrize("make", [tg.optim.Adam, momentum])
def test_loops_make_the_same_steps(make, monkeypatch):
    results = []
    for looped in (1, 10**9):
        monkeypatch.setattr(call_text, "LOOPED", looped)
        given = parameters(5, 3)
        optimizer = make(given)

        def step(given=given, optimizer=optimizer):
            optimizer.zero_grad()
            loss = sum((each * each).sum() for each in given)
            loss.backward()
            optimizer.step()

        run = tg.compile(step)
        for _ in range(3):
            run()
        results.append([each.detach().numpy() for each in given])
        assert len(run.compiles) <= 2
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


def test_an_update_comes_from_the_line_of_the_step():
    step = optimizer_step(2)
    step()
    graph = step.plan_for().call.graph
    places = {(each.where.file, each.where.function) for each in graph.nodes if each.inputs}
    assert places == {(__file__, "<lambda>")}
