"""Small programs that Python decides by tensors, and inputs for them: test_rewriting runs them.

Each is called with all its inputs, of one type, and is compiled once for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tgraph as tg

PROGRAMS: list[tuple[Callable[..., Any], list[tuple[Any, ...]], bool]] = []
V = tg.tensor


def program(*inputs: Any, grad: bool = True) -> Callable[[Any], Any]:
    """Each of `inputs` is an argument, or a tuple of them; gradients are compared with `grad`."""
    given = [each if isinstance(each, tuple) else (each,) for each in inputs]

    def add(function: Any) -> Any:
        PROGRAMS.append((function, given, grad))
        return function

    return add


SIGNS = V([1.0, 2.0]), V([-1.0, -2.0])
NUMBERS = V(0.5), V(3.0), V(-2.0)
ROWS = V([[1.0, 2.0], [3.0, -4.0], [0.5, 0.25]]), V([[0.0, -1.0], [0.1, 0.2], [9.0, 9.0]])


# --- if ------------------------------------------------------------------------------------------


@program(*SIGNS)
def two_branches(x: Any) -> Any:
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@program(*SIGNS)
def one_branch(x: Any) -> Any:
    y = x * x
    if x.sum() > 0:
        y = y + 1
    return y


@program(*SIGNS)
def early_return(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return x - 1


@program(*NUMBERS)
def chain_of_elif(x: Any) -> Any:
    if x > 2:
        name, y = "large", x
    elif x > 1:
        name, y = "large", x * 2
    elif x > 0:
        name, y = "large", x * 3
    else:
        name, y = "large", -x
    return name, y


@program(*NUMBERS)
def returns_in_some_branches(x: Any) -> Any:
    y = x + 1
    if x > 0:
        if x > 2:
            return y * 10
        y = y * 2
    else:
        y = y * 3
    return y - 1


@program(*NUMBERS)
def nested(x: Any) -> Any:
    a = b = x
    if x > 0:
        if x > 1:
            a = a * 2
        else:
            b = b * 3
        a = a + b
    else:
        b = b - a
    return a, b


@program(*NUMBERS)
def numbers_of_both_sides(x: Any) -> Any:
    count, scale, flag = 1, 2.0, False
    if x > 0:
        count, scale, flag = 5, 0.5, True
    return x * count * scale, count, flag


@program(*NUMBERS)
def mixed_with_flags(x: Any, is_training: bool = True, scale: Any = None) -> Any:
    if is_training:
        if x > 0:
            x = x * 2
        else:
            x = -x
    if scale is not None:
        x = x * scale
    return x


@program(*NUMBERS)
def containers(x: Any) -> Any:
    state = {"h": x, "c": (x, x * 2)}
    if x > 0:
        state = {"h": x + 1, "c": (x * 3, state["h"])}
    return state


@program(*NUMBERS)
def expression(x: Any) -> Any:
    y = x * 2 if x > 0 else x * 3
    return (y if y > 1 else -y) + (1 if x > 2 else 0)


@program(*NUMBERS)
def clipped(x: Any) -> Any:
    return max(min(x, x * 0 + 1), x * 0 - 1)


@program((V(3), V(1)), (V(0), V(1)), (V(-3), V(0)), (V(4), V(4)), grad=False)
def operators(a: Any, b: Any) -> Any:
    first = 1 if a > 0 and b > 0 else 0
    second = 1 if a > 0 or b > 0 else 0
    third = 1 if not a > 0 else 0
    fourth = 1 if 0 < a < 4 else 0
    fifth = 1 if (a and not b) or a == b else 0
    return first, second, third, fourth, fifth


@program((V([1.0, 2.0]), V(1)), (V([1.0, 2.0]), V(2)), (V([3.0, 0.0]), V(0)), grad=False)
def short_circuit(xs: Any, i: Any) -> Any:
    if i < 2 and xs[i] > 1:  # xs[2] is never asked for
        return xs * 2
    return xs


@program((V(7), V(0)), (V(7), V(2)), (V(8), V(2)), grad=False)
def no_division_by_zero(a: Any, b: Any) -> Any:
    return 1 if b != 0 and a % b == 0 else 0


@program(*SIGNS)
def a_closure(x: Any) -> Any:
    k = 3.0

    def scaled(y: Any) -> Any:
        if y.sum() > 0:
            return y * k
        return y

    return scaled(x) + (lambda z: z if z.sum() > 0 else z * 0)(x)


def helper(x: Any, turns: int = 2) -> Any:
    for _ in range(turns):
        if x.sum() < 10:
            x = x * 3
    return x


@program(*SIGNS)
def other_functions(x: Any) -> Any:
    return helper(x) + helper(-x, turns=1)


@program(*SIGNS)
def exits_of_with(x: Any) -> Any:
    with tg.no_grad():
        scale = 2.0
        if x.sum() > 0:
            scale = 3.0
    with tg.enable_grad():
        if x.sum() > 0:
            return x * scale
    return x * scale + 1


# --- while ---------------------------------------------------------------------------------------


@program(V(2.0), V(9.0), V(0.25), grad=False)
def newton(a: Any) -> Any:
    x, turns = a, 0
    while (x * x - a).abs() > 1e-4:
        x = (x + a / x) / 2
        turns += 1
    return x, turns


@program(V(6), V(7), V(1), grad=False)
def collatz(n: Any) -> Any:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program((V(48), V(18)), (V(7), V(5)), (V(5), V(0)), grad=False)
def euclid(a: Any, b: Any) -> Any:
    while b:
        a, b = b, a % b
    return a


@program(V(2.0), V(0.3), V(1.0), grad=False)
def bisection(target: Any) -> Any:
    low, high = target * 0, target * 0 + 4
    while True:
        middle = (low + high) / 2
        if high - low < 1e-3:
            break
        if middle * middle > target:
            high = middle
        else:
            low = middle
    return middle


@program(
    (V([1, 3, 5, 7, 9]), V(7)), (V([1, 3, 5, 7, 9]), V(4)), (V([1, 3, 5, 7, 9]), V(11)), grad=False
)
def binary_search(xs: Any, wanted: Any) -> Any:
    low, high = 0, len(xs) - 1
    while low <= high:
        middle = (low + high) // 2
        found = xs[middle]
        if found == wanted:
            return middle
        if found < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@program(V(1.0), V(3.0), V(50.0), grad=False)
def loop_with_else(x: Any) -> Any:
    n = 0
    while x < 100:
        x = x * 3
        n += 1
        if n > 3:
            break
    else:
        x = -x
    return x, n


@program(V([1.0, 2.0]), V([20.0, 0.0]), grad=False)
def a_test_that_binds(x: Any) -> Any:
    while (total := x.sum()) < 10:
        x = x * 2
    return x, total


@program(V(3), V(0), V(20), grad=False)
def variables_around(n: Any) -> Any:
    calls, last = 0, n

    def step(x: Any) -> Any:
        nonlocal calls, last
        if x > 10:
            last = x
            return x
        calls += 1
        return x + calls

    for _ in range(6):
        n = step(n)
        if n % 5 == 4:
            break
    return n, calls, last


@program(V(1.0), V(5.0), grad=False)
def numbers_are_no_tensors(x: Any) -> Any:
    m, total = 1, 0
    while x < 20:
        m = m * 2
        old = m
        m += 1  # leaves `old` as it is
        total += old
        x = x * 2
    return m, total


@program(V(5), V(3), V(1), grad=False)
def nested_while(n: Any) -> Any:
    total, i = 0, 0
    while i < n:
        j = 0
        while j < i:
            if (i + j) % 3 == 0:
                j += 2
                continue
            total += i * j
            j += 1
        i += 1
    return total


@program(V(3.0), V(0.5), grad=False)
def a_python_counter(x: Any) -> Any:
    i = 0
    while i < 3 and x < 100:
        x = x * x + 1
        i += 1
    return x, i


@program(V(3.0), V(0.5))
def a_queue_of_variables(x: Any) -> Any:
    """Each is given on by the next turn, so that each turn tells the type of one more."""
    queue = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    a, b, c, d, e, f, g, h, i, j = queue
    while x < 100:
        a, b, c, d, e, f, g, h, i = b, c, d, e, f, g, h, i, j
        j = x = x * 1.5 + 1
    return x, a + b


# --- for -----------------------------------------------------------------------------------------


@program(V([1.0, -2.0, 5.0, 11.0, 7.0]), V([1.0, -2.0, 5.0, 1.0, 7.0]))
def sum_with_exits(xs: Any) -> Any:
    total = 0
    for x in xs:
        if x < 0:
            continue
        if x > 10:
            break
        total = total + x
    return total


@program(*ROWS)
def rows(xs: Any) -> Any:
    h = xs[0] * 0
    for i, x in enumerate(xs):
        h = tg.tanh(h + x) * (i + 1)
    return h


@program((ROWS[0], ROWS[1][:2]), (ROWS[1], ROWS[0][:2]))
def pairs_of_rows(xs: Any, ys: Any) -> Any:
    total = 0.0
    for x, y in zip(xs, ys):
        if (x * y).sum() > 0:
            total = total + (x * y).sum()
    return total


@program(V(0), V(3), V(6), grad=False)
def range_of_a_tensor(n: Any) -> Any:
    total, last = 0, -1
    for i in range(n):
        if i == 4:
            continue
        total += i
        last = i
    for j in range(n, 0, -2):
        total += 10 * j
    return total, last


@program(V(8.0), V(0.5), V(300.0))
def bounded(x: Any) -> Any:
    for i in range(20):
        if x < 1:
            break
        x = x / 2 + i * 0.01
    return x


@program(V([3.0, 1.0]), V([0.1, 0.2]))
def descent(x: Any) -> Any:
    for _ in range(50):
        step = 0.2 * x
        if (step * step).sum() < 1e-3:
            break
        x = x - step
    return x


@program(V([2.0, 5.0, 1.0]), V([9.0, 5.0, 1.0]), V([0.0, 0.5, 1.0]))
def returns_from_a_loop(xs: Any) -> Any:
    for i, x in enumerate(xs):
        if x > 4:
            return x * i
    return xs.sum()


@program(*ROWS, grad=False)
def loops_in_loops(xs: Any) -> Any:
    count = 0
    for row in xs:
        for x in row:
            if x < 0:
                break
            if x > 5:
                continue
            count += 1
        else:
            count += 100
    return count


@program(*SIGNS)
def over_a_list(x: Any) -> Any:
    for scale in [1.0, 2.0, 3.0]:
        if x.sum() > 5:
            break
        x = x * scale + 1
    return x


@program(*ROWS)
def first_defined_inside(xs: Any) -> Any:
    best = None
    for row in xs:
        if best is None or row.sum() > best.sum():
            best = row
        norm = (best * best).sum()
    return best, norm


@program(V([1.0, 0.5]), V([0.3, 2.0]))
def power_iteration(x: Any) -> Any:
    matrix = V([[2.0, 1.0], [1.0, 3.0]])
    last = x * 0
    for _ in range(30):
        x = matrix @ x
        x = x / x.norm()
        if (x - last).abs().max() < 1e-3:
            break
        last = x
    return x


@program(V([0.1, 0.2]), V([1.0, 1.0]), grad=False)
def mandelbrot(c: Any) -> Any:
    re, im = c[0], c[1]
    a = b = V(0.0)
    n = 0
    while n < 50:
        if a * a + b * b > 4:
            break
        a, b = a * a - b * b + re, 2 * a * b + im
        n += 1
    return n


@program(V([3, 5, 15, 7]), V([1, 9, 10, 30]), grad=False)
def fizz_buzz(numbers: Any) -> Any:
    fizz = buzz = both = 0
    for n in numbers:
        if n % 15 == 0:
            both += 1
        elif n % 3 == 0:
            fizz += 1
        elif n % 5 == 0:
            buzz += 1
    return fizz, buzz, both


@program(*NUMBERS)
def matched(x: Any) -> Any:
    mode = ("scale", 3)
    match mode:
        case ("scale", k):
            if x > 0:
                return x * k
            x = x - k
        case _:
            return x
    return x * 2


@program(*NUMBERS)
def tried(x: Any) -> Any:
    try:
        y = {"a": x}["b"]
    except KeyError:
        y = x * 2
        if y > 1:
            return y
    return y + math.pi


# --- writes in place ------------------------------------------------------------------------------


@program(*ROWS)
def a_sum_in_place(xs: Any) -> Any:
    total, seen = tg.zeros(2), tg.zeros(2)
    shown = total[0]
    for x in xs:
        if x.sum() > 5:
            break
        total += x
        seen = seen + shown  # what is written, by another name
    return total, seen


@program(*SIGNS)
def written_or_new(x: Any) -> Any:
    y = x * 1
    held, z = y, x * 2
    if x.sum() > 0:
        y += z
    else:
        y = z + 1
    return y, held


@program((V([1.0, 2.0, 3.0, 4.0]), V(3)), (V([5.0, 6.0, 7.0, 8.0]), V(0)), grad=False)
def a_buffer(xs: Any, n: Any) -> Any:
    found, i = tg.zeros(4), 0
    while i < n:
        if xs[i] != 2:
            found[i] = xs[i] * 2
        i += 1
    return found


@program(V([3.0, 1.0, 2.0, 0.5]), V([1.0, 2.0, 3.0, 2.5]), grad=False)
def bubble_sort(xs: Any) -> Any:
    for i in range(len(xs)):
        for j in range(len(xs) - 1 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1].clone(), xs[j].clone()
    return xs


@program(V(1.0), V(60.0), grad=False)
def a_flag_in_place(x: Any) -> Any:
    done = x > 100
    for _ in range(10):
        done |= x > 30
        if done:
            break
        x = x * 2
    return x
