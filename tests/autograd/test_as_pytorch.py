"""Objects of autograd as PyTorch has them: each program runs with both, and gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tgraph as tg

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def error(function: Callable[[], Any], words: int = 8) -> Any:
    """What a call gives, or its error: the class and the first words."""
    try:
        return function()
    except Exception as found:
        return type(found).__name__, " ".join(str(found).split()[:words])


def plain(value: Any) -> Any:
    """Numbers and names, which are the same for both libraries."""
    if hasattr(value, "tolist"):
        numbers = value.detach().clone().reshape(-1).tolist()
        rounded = [float(f"{each:.5g}") if isinstance(each, float) else each for each in numbers]
        return "tensor", list(value.shape), rounded, value.requires_grad
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own imports
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
@pytest.mark.parametrize("run", PROGRAMS, ids=lambda each: each.__name__)
def test_a_program_gives_what_it_gives_in_pytorch(run: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    assert plain(run(tg)) == plain(run(torch))


@program
def gradients_are_the_own_memory_of_who_keeps_them(T: Any) -> Any:
    a, b = (T.ones(2, requires_grad=True) for _ in range(2))
    one, given = a + b, T.ones(2)
    for create_graph in (True, False, True):  # a history, but no memory, may be that of others
        one.sum().backward(create_graph=create_graph, retain_graph=True)
    both = a * 2 + b
    for each in (one, both):
        each.retain_grad()
    (one + both).backward(given)
    with T.no_grad():
        for each in (a, one, both):
            each.grad.mul_(7)
            each.grad[0] = 5
    return a.grad, b.grad, one.grad, both.grad, given


# --- saved tensors -------------------------------------------------------------------------------


@program
def hooks_see_each_saved_tensor_once(T: Any) -> Any:
    graph, x, seen = T.autograd.graph, T.tensor([1.0, 2.0], requires_grad=True), []

    def pack(tensor: Any) -> Any:
        seen.append(("pack", tensor, tensor is x, T.is_grad_enabled()))
        return tensor.detach().numpy().copy()

    def unpack(array: Any) -> Any:
        seen.append(("unpack", T.is_grad_enabled()))
        return T.tensor(array)

    with graph.saved_tensors_hooks(pack, unpack):
        with graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
            doubled = x * x
        loss = (x * x + x.clone() * 2).sum()
    outside = x.exp().sum()
    packed = len(seen)
    (loss + outside).backward()
    first, x.grad = x.grad, None
    doubled.sum().backward()
    return packed, seen, first, x.grad


@program
def derivatives_of_all_orders_pass_through_hooks(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = (x * x * x.exp()).sum()
    (first,) = T.autograd.grad(y, x, create_graph=True)
    return first, T.autograd.grad(first.sum(), x)


@program
def hooks_of_a_function_and_what_it_left(T: Any) -> Any:
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.power = 3
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3 * ctx.saved_tensors[0] ** 2

    x = T.tensor([2.0], requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = Cube.apply(x)
    node = y.grad_fn
    return type(node).__name__, node.power, node.saved_tensors, T.autograd.grad(y, x)


@program
def errors_of_hooks(T: Any) -> Any:
    graph, x = T.autograd.graph, T.tensor([1.0], requires_grad=True)

    def hooked(pack: Any, unpack: Any) -> Any:
        with graph.saved_tensors_hooks(pack, unpack):
            return x.exp()

    def refused(outer: Any) -> Any:
        with outer, graph.disable_saved_tensors_hooks("no hooks"):
            return hooked(lambda t: t, lambda t: t)

    y, twice = x.exp(), x.exp()
    y.backward()
    twice.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t)
    return [
        error(lambda: hooked(lambda t: 5, lambda n: n).backward()),
        error(lambda: hooked(lambda t: t.add_(1), lambda t: t)),
        error(lambda: refused(graph.save_on_cpu())),
        error(lambda: refused(T.no_grad())),
        error(lambda: y.grad_fn._saved_result),
        error(lambda: twice.grad_fn._raw_saved_result.register_hooks(abs, abs)),
        twice.grad_fn._saved_result,
        (x * x).grad_fn._saved_other is x,
        error(lambda: (x * x).grad_fn._saved_nothing, 0),
    ]


@program
def saved_tensors_in_the_memory_of_the_cpu_or_copied(T: Any) -> Any:
    graph, found = T.autograd.graph, []
    x = T.tensor([1.0, 2.0], requires_grad=True)
    with graph.save_on_cpu():
        found += T.autograd.grad((x.exp() * x).sum(), x)
    with graph.allow_mutation_on_saved_tensors() as kept:
        y = x.clone()
        loss, later = (y * y).sum(), (y.exp()).sum()
        y.mul_(5)
        found += T.autograd.grad(loss, x)
        found.append(error(lambda: graph.allow_mutation_on_saved_tensors().__enter__()))
        kept.clear()
        found.append(error(lambda: later.backward(), 0)[0])
    return found


@program
def an_operation_in_place_keeps_what_it_overwrites_under_hooks(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * 1
        y.mul_(y)
        y.exp_()
    return T.autograd.grad(y.sum(), x)


# --- nodes and edges -----------------------------------------------------------------------------


@program
def hooks_of_nodes(T: Any) -> Any:
    seen: list[Any] = []
    a = T.tensor([1.0], requires_grad=True)
    b = a * 3
    c = b * b
    c.grad_fn.register_hook(lambda gi, go: seen.append(("c", gi, go)))
    c.grad_fn.register_prehook(lambda go: seen.append(("before c", go)))
    b.register_hook(lambda g: seen.append(("tensor b", g)))
    b.grad_fn.register_prehook(lambda go: (go[0] * 2,))
    handle = b.grad_fn.register_hook(lambda gi, go: 1 / 0)
    handle.remove()
    b.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, None))
    leaf = b.grad_fn.next_functions[0][0]
    leaf.register_hook(lambda gi, go: seen.append(("leaf", gi, go, a.grad.clone())))
    leaf.register_prehook(lambda go: (go[0] * 10,))
    a.register_hook(lambda g: seen.append(("tensor a", g)))
    c.backward()
    nodes = [isinstance(each, T.autograd.graph.Node) for each in (leaf, c.grad_fn)]
    c.grad_fn.metadata["known"] = 1
    return [
        seen, a.grad, nodes, c.grad_fn.metadata, leaf.metadata, leaf.variable is a,
        leaf is b.grad_fn.next_functions[0][0], b.grad_fn._sequence_nr() < c.grad_fn._sequence_nr(),
        leaf.name(), type(leaf).__name__, repr(c.grad_fn).split(" ")[0],
    ]  # fmt: skip


@program
def what_hooks_of_nodes_may_not_return(T: Any) -> Any:
    a = T.tensor([1.0], requires_grad=True)
    found = []
    for returned in (5, T.ones(1), (None, None, None)):
        c = a * a
        c.grad_fn.register_hook(lambda gi, go: returned)  # noqa: B023
        found.append(error(lambda: c.backward()))  # noqa: B023
        c = a * a
        c.grad_fn.register_prehook(lambda go: returned)  # noqa: B023
        found.append(error(lambda: c.backward()))  # noqa: B023
    return found


@program
def edges_stand_for_tensors(T: Any) -> Any:
    edge_of = T.autograd.graph.get_gradient_edge
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    parts = y.unbind()
    z = (y * y).sum()
    found = [
        T.autograd.grad(z, edge_of(y), retain_graph=True),
        T.autograd.grad(edge_of(z), [x, edge_of(x), y], T.tensor(2.0), retain_graph=True),
        error(lambda: edge_of(T.ones(2))),
        edge_of(x).node is edge_of(x).node,
        edge_of(x).output_nr, edge_of(parts[1])._fields,
    ]  # fmt: skip
    T.autograd.backward(edge_of(z), T.tensor(1.0), inputs=[edge_of(x)])
    return [*found, x.grad]


@program
def hooks_of_several_tensors(T: Any) -> Any:
    hook, seen = T.autograd.graph.register_multi_grad_hook, []
    u, v, w = (T.tensor(float(each), requires_grad=True) for each in (1, 2, 3))
    p = u * v
    handle = hook((u, v, p, w), lambda grads: seen.append(grads))
    (p * w).backward(retain_graph=True)
    (u * v).backward()
    handle.remove()
    (u * v).backward()
    counted: list[Any] = []
    any_handle = hook((u, v), lambda grad: counted.append(1), mode="any")
    (u * v).backward()
    (u * u).backward()
    any_handle.remove()
    wrong = [error(lambda: hook((u,), print, mode="x")), error(lambda: hook((T.ones(1),), print))]
    return seen, counted, wrong


@program
def counted_writes(T: Any) -> Any:
    increment = T.autograd.graph.increment_version
    t, x = T.ones(2), T.ones(2, requires_grad=True)
    increment(t)
    increment([t, t])
    y = (x * t).sum()
    increment(t)
    return t._version, error(lambda: increment(5)), error(lambda: y.backward())


# --- inference mode ------------------------------------------------------------------------------


@program
def what_is_made_in_inference_mode(T: Any) -> Any:
    x, n = T.ones(2, requires_grad=True), T.ones(2)
    with T.inference_mode():
        i, product, view, copy = T.ones(2), x * 2, n.view(2), n.clone()
        leaf = T.ones(2, requires_grad=True)
        inside = [
            T.is_inference_mode_enabled(), T.is_grad_enabled(), i.add_(1), n.add_(1)._version,
            (i + n).is_inference(), i.detach().is_inference(), view.is_inference(),
        ]  # fmt: skip
        with T.inference_mode(False):
            inside += [T.is_inference_mode_enabled(), (x * 2).requires_grad]
        with T.enable_grad():
            inside.append((x * 2).requires_grad)

    @T.inference_mode
    def bare() -> Any:
        return T.ones(1)

    @T.inference_mode(mode=False)
    def off() -> Any:
        return T.ones(1)

    made = (i, product, view, copy, leaf, i[0], i.view(2), i.detach(), i * 2, i.clone(), x + i)
    return [inside, [each.is_inference() for each in (*made, bare(), off())], leaf.requires_grad]


@program
def transforms_in_inference_mode(T: Any) -> Any:
    with T.inference_mode():
        x = T.tensor([1.0, 2.0])
        gradient = T.func.grad(lambda a: (a**3).sum())(x)
        product = T.func.jvp(lambda a: a**2, (x,), (x,))
        batched = T.vmap(lambda a: a * 2)(x)
        hessian = T.func.hessian(lambda a: (a**3).sum())(x)
    return gradient, product, hessian, batched, batched.is_inference()


@program
def what_inference_tensors_refuse_outside(T: Any) -> Any:
    x, n = T.ones(2, requires_grad=True), T.ones(2)
    with T.inference_mode():
        i, view = T.ones(2), (x.detach() * 1).view(2)
        base = T.ones(2)
    with T.no_grad(), T.inference_mode():
        of_normal = n.view(2)
    x.grad = base

    def unrecorded() -> Any:
        with T.no_grad():
            return i.add_(1)

    def written(index: Any) -> None:
        i[index] = 1.0

    attempts: list[Callable[[], Any]] = [
        lambda: (x + i).sum().item(), lambda: i._version, lambda: i.add_(1),
        lambda: view.add_(1), unrecorded,
        lambda: written(0), lambda: i.zero_(), lambda: i.copy_(n), lambda: T.add(n, n, out=i),
        lambda: i.requires_grad_(),
        lambda: T.nn.Parameter(i), lambda: x * i, lambda: (x * 3).sum().backward(),
        lambda: i.requires_grad_(False).requires_grad,
        lambda: n.copy_(i).is_inference(), lambda: of_normal.mul_(2)._version,
        lambda: i.unsqueeze_(0), lambda: i.resize_(3),
    ]  # fmt: skip
    return [error(each, 5) for each in attempts]


# --- checkpoints ---------------------------------------------------------------------------------


@program
def options_of_checkpoints(T: Any) -> Any:
    import contextlib

    __import__(f"{T.__name__}.utils.checkpoint")
    module, log = T.utils.checkpoint, []
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @contextlib.contextmanager
    def entered(name: str) -> Any:
        log.append(name)
        yield

    def run(function: Any, **options: Any) -> Any:
        x.grad = None
        module.checkpoint(function, x, use_reentrant=False, **options).sum().backward()
        return x.grad

    def changing(*functions: Any) -> Callable[[Any], Any]:
        left = iter(functions)
        return lambda a: next(left)(a)

    def wave(a: Any, k: float = 1.0) -> Any:
        return (a * a * k).sin()

    def cut(size: int) -> Callable[[Any], Any]:
        return lambda a: (a[:size] * a[:size]).sum()

    attempts: list[Callable[[], Any]] = [
        lambda: run(wave, k=2.0),
        lambda: run(wave, context_fn=lambda: (entered("first"), entered("second"))),
        lambda: run(changing(T.sin, lambda a: a.sin().cos().exp())).isfinite().all().item(),
        lambda: run(changing(cut(2), cut(2)), determinism_check="none"),
        lambda: run(wave, debug=True, early_stop=False, preserve_rng_state=False),
        lambda: module.checkpoint(wave, x, use_reentrant=True, k=2.0),
        lambda: module.checkpoint(wave, x, use_reentrant=True, debug=True),
        lambda: module.detach_variable(5),
        lambda: module.checkpoint_sequential([T.sin, T.cos, T.exp], 2, x, use_reentrant=False),
        lambda: module.checkpoint_sequential([T.sin], 1, x, use_reentrant=False, bogus=1),
    ]  # fmt: skip
    classes: list[Callable[[], Any]] = [
        lambda: run(changing(cut(1), cut(2))), lambda: run(changing(T.sin, lambda a: a * 2)),
        lambda: run(wave, determinism_check="bad"), lambda: run(wave, bogus=1),
    ]  # fmt: skip
    with module.set_checkpoint_early_stop(True), module.set_checkpoint_debug_enabled(None):
        found = [error(each, 5) for each in attempts]
    return found, [error(each)[0] for each in classes], log


# --- modes, grad and functional ------------------------------------------------------------------


@program
def modes_as_decorators(T: Any) -> Any:
    def enabled() -> Any:
        return T.is_grad_enabled()

    @T.no_grad()
    def steps() -> Any:
        got = yield enabled()
        try:
            yield got, enabled()
        except ValueError:
            yield enabled()
        return enabled()

    running = steps()
    found = [next(running), enabled(), running.send(5), enabled(), running.throw(ValueError())]
    try:
        next(running)
    except StopIteration as end:
        found.append(end.value)

    @T.inference_mode()
    def made() -> Any:
        yield T.ones(1).is_inference()

    @T.set_grad_enabled(False)
    def off() -> Any:
        return enabled()

    found += [
        list(made()),
        off(),
        enabled(),
        T.no_grad(enabled)(),
        type(T.no_grad().clone()).__name__,
    ]
    return [
        *found,
        error(lambda: T.set_grad_enabled("a"), 3),
        error(lambda: T.set_grad_enabled())[0],
    ]


@program
def options_of_grad(T: Any) -> Any:
    grad = T.autograd.grad
    x, y = (T.tensor(each, requires_grad=True) for each in ([1.0, 2.0], [3.0, 4.0]))
    z = x * x
    attempts: list[Callable[[], Any]] = [
        lambda: grad(z * y, (x, y), T.eye(2), is_grads_batched=True, retain_graph=True),
        lambda: grad(x * x, (x, y), T.eye(2), is_grads_batched=True, materialize_grads=True),
        lambda: grad(x * x, (x, y), T.eye(2), is_grads_batched=True, allow_unused=True),
        lambda: grad(x * x, (x, y), T.eye(2), is_grads_batched=True),
        lambda: grad((x * x).sum(), (x, y), materialize_grads=True),
        lambda: grad((x * x).sum(), (x, y), allow_unused=False, materialize_grads=True),
        lambda: grad((x * x).sum(), y), lambda: grad((x * x).sum(), y, allow_unused=True),
        lambda: grad((x * x).sum(), []), lambda: grad((x * x).sum(), "a"),
        lambda: grad([(x * x).sum(), y * y], [x, y], [None, T.ones(2)]),
        lambda: grad(x, x, T.ones(2)), lambda: grad((x * x).sum(), [x, x]),
        lambda: setattr(x, "grad", x), lambda: grad(x * x, x, T.ones(2, dtype=T.float64)),
    ]  # fmt: skip
    (third,) = grad((x**3).sum(), x, create_graph=True)
    return [error(each, 6) for each in attempts], third.requires_grad


@program
def strict_functions_of_functions(T: Any) -> Any:
    F, a, b = T.autograd.functional, T.tensor([1.0, 2.0]), T.tensor([3.0, 4.0])

    def first(a: Any, b: Any) -> Any:
        return (a * a).sum()

    def constant(a: Any) -> Any:
        return T.ones(1)

    attempts: list[Callable[[], Any]] = []
    for strict in (False, True):
        attempts += [
            lambda s=strict: F.jvp(first, (a, b), (a, b), strict=s),  # type: ignore[misc]
            lambda s=strict: F.vjp(first, (a, b), strict=s),  # type: ignore[misc]
            lambda s=strict: F.vhp(first, (a, b), (a, b), strict=s),  # type: ignore[misc]
            lambda s=strict: F.hvp(constant, a, a, strict=s),  # type: ignore[misc]
            lambda s=strict: F.jvp(constant, a, a, strict=s),  # type: ignore[misc]
            lambda s=strict: F.jacobian(first, (a, b), strict=s),  # type: ignore[misc]
            lambda s=strict: F.hessian(first, (a, b), strict=s),  # type: ignore[misc]
        ]
    return [error(each, 0) for each in attempts]
