"""Programs that run with hooks and do what they did: one for each part of the language.

They need nothing but the standard library, as `test_instrument` does.
"""

import asyncio
import contextlib
import dataclasses

LOG = []
"""What hooks were told, and what the programs note themselves."""


def generator():
    total = 0
    try:
        for step in range(3):
            got = yield step
            total += got or 0
    except ValueError as error:
        yield f"caught {error}"
    finally:
        LOG.append(("closed", total))
    return total


def drives_a_generator():
    it = generator()
    first = [next(it), it.send(5), it.throw(ValueError("thrown"))]
    return first, list(it), list(delegates())


def delegates():
    result = yield from generator()
    yield ("result", result)


def handlers(value):
    seen = []
    for each in value:
        try:
            try:
                seen.append(1 / each)
            except ZeroDivisionError as error:
                seen.append(repr(error))
                raise KeyError(each) from error
            else:
                seen.append("else")
            finally:
                seen.append("finally")
        except KeyError as error:
            seen.append((repr(error.__cause__), repr(error.__context__)))
            continue
        seen.append("behind")
    return seen


def managers():
    seen = []

    @contextlib.contextmanager
    def manager(name, swallow=False):
        seen.append(f"in {name}")
        try:
            yield name
        except RuntimeError:
            seen.append(f"error in {name}")
            if not swallow:
                raise
        finally:
            seen.append(f"out {name}")

    with manager("a", swallow=True) as a, manager("b") as b:
        seen.append((a, b))
        raise RuntimeError
    return seen


def matches():
    def kind(value):
        match value:
            case {"a": [x, *rest], **more} if rest:
                return ("mapping", x, rest, more)
            case [Point(x=0, y=y), _] | (Point(x=y, y=0), _):
                return ("points", y)
            case str() | bytes() as text:
                return ("text", text)
            case 1 | 2.5 | None:
                return "constant"
            case _:
                return "other"

    values = [
        {"a": [1, 2], "b": 3}, {"a": [1]}, [Point(0, 5), 1], [Point(6, 0), 1], "s", b"b", 1, 2.5,
        None, (), object,
    ]  # fmt: skip
    return [kind(value) for value in values]


@dataclasses.dataclass
class Point:
    x: int
    y: int


def comprehensions():
    factor = 3
    rows = [[1, 2], [3]]
    return (
        [x * factor for row in rows for x in row if x != 2],
        {x: [y + factor for y in range(x)] for x in range(3)},
        {x % 2 for x in range(5)},
        sum(x * factor for row in rows for x in row),
        [(lambda: x)() for x in range(2)],
        [last := x for x in range(3)][-1] + last,
    )


def classes():
    made = 2

    class Base:
        names = []  # noqa: RUF012

        def __init_subclass__(cls, /, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.names.append((cls.__name__, tag))

        def value(self):
            return made

    class Derived(Base, tag="t"):
        size: int = made * 2
        both = [made for _ in range(size)]  # noqa: RUF012

        def value(self):
            return super().value() + self.size + len(__class__.__name__)

        @property
        def half(self):
            return self.size / 2

        @staticmethod
        def plain(x, *, y=made):
            return x + y

    derived = Derived()
    return derived.value(), derived.half, derived.plain(1), Base.names, Derived.both


def arguments():
    def taken(a, b=2, /, c=3, *args, d=4, **kwargs):
        return a, b, c, args, d, kwargs

    extra = {"e": 5, "d": 6}
    return taken(1), taken(1, 2, 3, 4, **extra), taken(*[1, 2], c=7), taken(*(), *[9], **{}, f=1)  # noqa: PIE804


def cells():
    count = 0

    def more():
        nonlocal count
        count += 1
        return count

    numbers = [more(), more()]
    del more
    try:
        return numbers, count, more
    except NameError as error:
        return numbers, count, str(error)


def texts():
    value, width = 3.14159, 8
    return f"{value:{width}.2f}|{value!r}|{value=}|{'x':>3}|{[1, 2]!s:^10}"


async def asynchronous():
    class Manager:
        async def __aenter__(self):
            await asyncio.sleep(0)
            return self

        async def __aexit__(self, *error):
            return error[0] is KeyError

    async def steps(n):
        for step in range(n):
            await asyncio.sleep(0)
            yield step

    seen = [step async for step in steps(3)]
    async for step in steps(2):
        seen.append(step)
    else:
        seen.append("else")
    async with Manager():
        raise KeyError("swallowed")
    return seen, await asyncio.gather(*(asyncio.sleep(0, x) for x in range(2)))


def runs_asynchronous():
    return asyncio.run(armed_or_not(asynchronous)())


def armed_or_not(function):
    return function


def slices():
    values = list(range(10))
    values[1:3] = [7]
    del values[-2:]
    values[0], values[1:2] = 5, []
    low, high = 2, 5
    return values, values[low:high], values[::2], values[low:], "abcdef"[1:-1:2]


def loops():
    seen = []
    for at in range(5):
        if at == 1:
            continue
        if at == 3:
            break
        while at:
            at -= 1
            seen.append(at)
        else:
            seen.append("done")
    else:
        seen.append("never")
    return seen, 1 < at + 1 <= 3 < 10, (at or seen) and "x"


def many_names():
    namespace = {}
    lines = [f"v{at} = {{'k': {at}}}" for at in range(400)]
    lines += ["if not v0:", *[f"    v{at} = v{at}['k'].real" for at in range(400)]]
    lines += ["result = sum(v['k'] for v in (" + ", ".join(f"v{at}" for at in range(400)) + "))"]
    source = "def f():\n" + "".join(f"    {line}\n" for line in lines) + "    return result\n"
    exec(source, namespace)
    return armed_or_not(namespace["f"])()


def groups():
    seen = []
    try:
        raise ExceptionGroup("group", [ValueError(1), KeyError(2), OSError(3)])
    except* ValueError as error:
        seen.append(error.exceptions)
    except* (KeyError, OSError) as error:
        seen.append(error.exceptions)
    return repr(seen)


PROGRAMS = [
    drives_a_generator, managers, matches, comprehensions, classes, arguments, cells, texts,
    runs_asynchronous, slices, loops, many_names, groups,
]  # fmt: skip
