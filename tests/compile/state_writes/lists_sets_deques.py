"""Writes into lists, sets and deques."""

from __future__ import annotations

import collections

import tgraph as tg

from .table import Bag, World, row

# --- lists ----------------------------------------------------------------------------------------


@row
def list_append():
    items = []

    def f(x):
        items.append(x)
        items.append(x * 2)
        return x + 1

    return World(f, items)


@row
def list_append_same_as_returned():
    items = []

    def f(x):
        y = x * 2
        items.append(y)
        return y

    return World(f, items)


@row
def list_of_losses():
    w, history = tg.ones(4, requires_grad=True), []

    def f(x):
        loss = (w * x).square().sum()
        history.append(loss)
        return loss.detach()

    def after(turn):
        history[-1].backward()

    return World(f, [w, history], after=after)


@row
def list_of_losses_all_at_the_end():
    w, history = tg.ones(4, requires_grad=True), []

    def f(x):
        loss = (w * x).sin().sum()
        history.append(loss)
        return loss

    def after(turn):
        if turn == 3:
            sum(history).backward()

    return World(f, [w, history], after=after)


@row
def list_extend_and_add():
    items = [1]

    def f(x):
        nonlocal items
        items.extend([x, x * 2])
        items += [x + 1]
        return x

    return World(f, items)


@row
def list_item():
    items = [0, 1, 2]

    def f(x):
        items[0] = x * 2
        items[-1] = 5
        return x * items[1]

    return World(f, items)


@row
def list_item_counts():
    items = [0, 10]

    def f(x):
        items[0] += 1
        items[1] *= 2
        return x * items[1]

    return World(f, items)


@row
def list_slice():
    items = [0, 1, 2, 3]

    def f(x):
        items[1:3] = [x, x * 2]
        return x

    return World(f, items)


@row(plans=5)
def list_slice_grows():
    items = [0, 1, 2, 3]

    def f(x):
        items[1:1] = [x]
        return x

    return World(f, items)


@row(plans=5)
def list_insert_and_pop():
    items = [1, 2, 3]

    def f(x):
        items.insert(0, x * 2)
        items.pop()
        return x

    return World(f, items)


@row(plans=5)
def list_pop_until_empty():
    items = [1, 2, 3, 4, 5]

    def f(x):
        return x * items.pop()

    return World(f, items)


@row(plans=5)
def list_insert_grows():
    items = []

    def f(x):
        items.insert(0, x * 2)
        return x

    return World(f, items)


@row
def list_remove_and_append():
    items = ["a", "b"]

    def f(x):
        items.remove("b")
        items.append("b")
        return x

    return World(f, items)


@row
def list_sort_and_reverse():
    items = [3, 1, 2]

    def f(x):
        items.sort()
        items.reverse()
        return x * items[0]

    return World(f, items)


@row
def list_reverse_of_tensors():
    items = [tg.ones(4), tg.zeros(4)]

    def f(x):
        items.reverse()
        return x + items[0]

    return World(f, items)


@row
def list_clear_and_fill():
    items = [1, 2]

    def f(x):
        items.clear()
        items.append(x * 2)
        return x

    return World(f, items)


@row(plans=5)
def list_delete():
    items = [1, 2, 3]

    def f(x):
        items.append(x)
        del items[0]
        return x

    return World(f, items)


@row
def list_times():
    items = [1]

    def f(x):
        nonlocal items
        items *= 1
        items.append(x)
        del items[:-1]
        return x

    return World(f, items)


@row
def list_subclass():
    class Items(list):
        pass

    items = Items([1])
    items.note = 0

    def f(x):
        items.append(x * 2)
        items.note += 1
        return x

    return World(f, [items, items.__dict__])


@row
def list_read_after_append():
    items = []

    def f(x):
        items.append(x * 2)
        return items[-1] + 1

    return World(f, items)


@row(plans=5)
def list_mean_of_history():
    items = []

    def f(x):
        items.append(x.mean())
        return sum(items) / len(items)

    return World(f, items)


@row(plans=5)
def list_window_of_history():
    items = [tg.zeros(4), tg.zeros(4)]

    def f(x):
        items.append(x * 2)
        del items[0]
        return items[0] + items[1]

    return World(f, items)


@row
def list_swap():
    items = [tg.ones(4), tg.zeros(4)]

    def f(x):
        items[0], items[1] = items[1], items[0] + x
        return items[0] * 2

    return World(f, items)


@row(plans=5)
def ring_buffer_by_turns():
    ring = Bag(items=[None] * 3, at=0)

    def f(x):
        ring.items[ring.at] = x * 2
        ring.at = (ring.at + 1) % 3
        return x

    return World(f, ring)


@row
def ring_buffer_in_a_tensor():
    ring = Bag(data=tg.zeros(3, 4), at=tg.zeros((), dtype=tg.int64))

    def f(x):
        ring.data.index_copy_(0, ring.at.reshape(1), x.reshape(1, -1))
        ring.at.add_(1).remainder_(3)
        return ring.data.sum()

    return World(f, ring)


# --- sets, deques ---------------------------------------------------------------------------------


@row
def set_add_discard_update():
    s = {"a", "b"}

    def f(x):
        s.add("c")
        s.discard("a")
        s.update(["d", "b"])
        return x * 2

    return World(f, s)


@row
def set_remove_and_add():
    s = {1, 2, 3}

    def f(x):
        s.remove(1)
        s.add(1)
        return x * 2

    return World(f, s)


@row
def set_operators():
    s = {1, 2, 3}

    def f(x):
        nonlocal s
        s |= {4}
        s -= {1}
        s &= {2, 3, 4}
        s ^= {9} if 9 not in s else set()
        return x * 2

    return World(f, s)


@row
def set_of_shapes_seen():
    seen = set()

    def f(x):
        is_new = tuple(x.shape) not in seen
        seen.add(tuple(x.shape))
        return x * 2 if is_new else x

    return World(f, seen)


@row
def set_of_tensors():
    seen, w = set(), tg.ones(4)

    def f(x):
        seen.add(w)
        return x * 2

    return World(f, [w])


@row
def deque_append():
    d = collections.deque(maxlen=2)

    def f(x):
        d.append(x * 2)
        return x

    return World(f, d)


@row
def deque_append_left():
    d = collections.deque(maxlen=3)

    def f(x):
        d.appendleft(x * 2)
        return x

    return World(f, d)


@row(plans=5)
def deque_pop_left():
    d = collections.deque([1, 2])

    def f(x):
        d.append(x)
        d.popleft()
        return x

    return World(f, d)


@row
def deque_rotate():
    d = collections.deque([1, 2, 3])

    def f(x):
        d.rotate(1)
        return x * 2

    return World(f, d)


@row
def deque_extend_over_its_length():
    d = collections.deque([0], maxlen=3)

    def f(x):
        d.extend([x, 1, 2, x + 1])
        return x

    return World(f, d)


@row
def deque_full_of_tensors_is_read():
    d = collections.deque([tg.zeros(4), tg.zeros(4)], maxlen=2)

    def f(x):
        d.append(x * 2)
        return d[0] + d[1]

    return World(f, d)
