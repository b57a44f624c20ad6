"""Random programs of `if`, `while` and `for` on tensors, as source text."""

from __future__ import annotations

import linecache
import random
from typing import Any

import tgraph as tg

HEAD = "def program(s, t, v, k, flag):\n"
RESULT = "return s, t, v, n, m"


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.left = 22

    def text(self) -> str:
        self.lines = ["    n, m = 0, 1"]
        self.block(1, 0, "")
        self.lines.append(f"    {RESULT}")
        return HEAD + "\n".join(self.lines) + "\n"

    def one_of(self, *choices: str) -> str:
        return self.random.choice(choices)

    def write(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    # --- expressions ---

    def number(self) -> str:
        return f"{self.random.uniform(-1, 1):.3f}"

    def scalar(self, depth: int = 0) -> str:
        if depth > 1 or self.random.random() < 0.3:
            return self.one_of("s", "t", "v.sum()", "v[1]", "v[0]")
        one, other = self.scalar(depth + 1), self.scalar(depth + 1)
        return self.one_of(
            f"tg.sin({one} + {self.number()})", f"({one} * {self.number()} - {other})",
            f"tg.tanh({one} * {other})", f"({one} if {self.condition(2)} else {other})",
            f"max({one}, {other})",
        )  # fmt: skip

    def condition(self, depth: int = 0) -> str:
        one = f"{self.one_of('s', 't', 'v.max()')} {self.one_of('<', '>', '<=')} {self.number()}"
        choices = [one, one, "(n + m) % 2 == 0", "flag", f"n {self.one_of('<', '>')} m", "k > 1"]
        if depth < 2:
            first, second = self.condition(depth + 1), self.condition(depth + 1)
            choices += [f"({first} and {second})", f"({first} or {second})", f"not {first}"]
            choices.append(f"{self.number()} < s < t + {self.number()}")
        return self.random.choice(choices)

    # --- statements ---

    def block(self, depth: int, loops: int, exits: str) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.left -= 1
            if self.left > 0 and depth < 5 and self.random.random() < 0.55:
                self.compound(depth, loops, exits)
            else:
                self.simple(depth)

    def simple(self, depth: int) -> None:
        self.write(
            depth,
            self.one_of(
                f"s = {self.scalar()}", f"t = tg.tanh({self.scalar()})",
                f"v = tg.sin(v + {self.scalar()})",
                "n += 1", "m = m + n % 3", "n -= m % 2", "s, t = t, s", "v = v.flip(0)",
                f"m += 1 if {self.condition()} else 2",
            ),
        )  # fmt: skip

    def leave(self, depth: int, loops: int, exits: str) -> None:
        self.write(depth, self.one_of("break", "continue", RESULT) if loops else RESULT)

    def compound(self, depth: int, loops: int, exits: str) -> None:
        kind = self.one_of("if", "if", "exit", "while", "for", "rows", "with", "else")
        if kind in ("while", "for", "rows") and loops >= 2:
            kind = "if"
        if kind == "if":
            self.write(depth, f"if {self.condition()}:")
            self.block(depth + 1, loops, exits)
            if self.random.random() < 0.4:
                self.write(depth, f"elif {self.condition()}:")
                self.block(depth + 1, loops, exits)
            if self.random.random() < 0.5:
                self.write(depth, "else:")
                self.block(depth + 1, loops, exits)
        elif kind == "exit":
            self.write(depth, f"if {self.condition()}:")
            if self.random.random() < 0.5:
                self.block(depth + 1, loops, exits)
            self.leave(depth + 1, loops, exits)
        elif kind == "with":
            self.write(depth, "with tg.enable_grad():")
            self.block(depth + 1, loops, exits)
        elif kind == "else":
            self.write(depth, f"if {self.condition()}:")
            self.leave(depth + 1, loops, exits)
            self.write(depth, "else:")
            self.block(depth + 1, loops, exits)
        else:
            self.loop(kind, depth, loops)

    def loop(self, kind: str, depth: int, loops: int) -> None:
        self.names += 1
        name = f"i{self.names}"
        if kind == "while":
            self.write(depth, f"{name} = 0")
            test = self.one_of(f"{name} < 4", f"{name} < 3 and {self.condition()}", f"{name} < k")
            self.write(depth, f"while {test}:")
            self.write(depth + 1, f"{name} += 1")
        elif kind == "for":
            bound = self.one_of("3", "3", "k")
            self.write(depth, f"for {name} in range({bound}):")
            self.write(depth + 1, f"m = m + {name}")
        else:
            self.write(depth, self.one_of(f"for {name} in v:", f"for {name}, _ in zip(v, v):"))
            self.write(depth + 1, f"s = s + 0.25 * {name}")
        self.block(depth + 1, loops + 1, "")
        if self.random.random() < 0.2:
            self.write(depth, "else:")
            self.block(depth + 1, loops, "")


def function_of(text: str, name: str) -> Any:
    """The function of a program, whose source can be found."""
    file = f"<string of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"tg": tg}
    exec(compile(text, file, "exec"), names)
    return names["program"]


def arguments(seed: int) -> tuple[Any, ...]:
    made = random.Random(seed)
    numbers = [round(made.uniform(-1, 1), 3) for _ in range(5)]
    s, t = (tg.tensor(each, dtype=tg.float64) for each in numbers[:2])
    return s, t, tg.tensor(numbers[2:], dtype=tg.float64), tg.tensor(seed % 4)
