"""Assignment to `.data` in compiled functions gives other memory, as it does eagerly."""

import pytest

import tgraph as tg


def _of_what_is_computed(p, x):
    before = p.data
    p.data = p.data * 2
    after = p.data
    after.add_(1)
    return before, after, p


def _of_an_argument(p, x):
    p.data = x
    p.data.add_(1)
    return x, p.view(-1)


def _of_what_is_returned(p, x):
    y = x * 2
    p.data = y
    y += 1
    return y, p.detach()


def _of_itself(p, x):
    kept = p.data
    kept *= 2
    p.data = kept
    return kept, p.data.flip(0)


def _behind_a_write(p, x):
    with tg.no_grad():
        p.mul_(3)
    p.data = p.data.flip(0) + x
    return p.sum().detach()


def _of_a_step(p, x):
    loss = (p * p * x).sum()
    loss.backward()
    p.data = p.data - 0.1 * p.grad
    p.grad = None
    return loss


def _of_an_argument_itself(p, x):
    x.data = p.data
    x += 1
    return x


def _of_what_the_function_makes(p, x):
    made = tg.zeros(2)
    made.data = x
    made += 1
    return made


CASES = [
    _of_what_is_computed, _of_an_argument, _of_what_is_returned, _of_itself, _behind_a_write,
    _of_a_step, _of_an_argument_itself, _of_what_the_function_makes,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES)
@pytest.mark.parametrize("captured", [False, True])
def test_memory_is_shared_as_in_eager_code(function, captured):
    def run(compiles):
        p, seen = tg.nn.Parameter(tg.tensor([1.0, 2.0])), []
        called = (lambda x: function(p, x)) if captured else function
        called = tg.compile(called) if compiles else called
        for start in (1.0, 2.0, 3.0):
            x, before = tg.tensor([start, 5.0]), p.data
            found = called(x) if captured else called(p, x)
            found = list(found) if isinstance(found, tuple) else [found]
            tensors = [*found, p, x, before]
            seen.append([a.data_ptr() == b.data_ptr() for a in tensors for b in tensors])
            for each in found:
                if not each.requires_grad or each.is_leaf:
                    each.data.add_(0.5)
            seen.append([each.tolist() for each in tensors])
        return seen, p.requires_grad, p._version

    assert run(True) == run(False)


def test_shadows_of_parameters_are_swapped_in_and_out():
    layer = tg.nn.Linear(2, 1)
    shadow = {name: each.data.clone() * 5 for name, each in layer.named_parameters()}
    backup = {}

    def swap_in():
        for name, each in layer.named_parameters():
            backup[name] = each.data
            each.data = shadow[name]

    def swap_out():
        for name, each in layer.named_parameters():
            each.data = backup[name]
        backup.clear()

    swap_in, swap_out = tg.compile(swap_in), tg.compile(swap_out)
    for _ in range(3):
        before = layer.weight.tolist()
        swap_in()
        assert layer.weight.data_ptr() == shadow["weight"].data_ptr()
        assert backup["weight"].tolist() == before != layer.weight.tolist()
        swap_out()
        assert layer.weight.tolist() == before and not backup
        with tg.no_grad():
            layer.weight += 1


def test_exchanged_memory_is_refused():
    p, q = tg.ones(2), tg.zeros(2)

    def exchange():
        p.data, q.data = q.data, p.data

    with pytest.raises(tg.tracing.TraceError, match=r"assigns to \.data .* clone\(\) it first"):
        tg.compile(exchange)()
    assert p.tolist() == [1.0, 1.0] and q.tolist() == [0.0, 0.0]
