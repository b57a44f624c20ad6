"""Lines of LLVM assembly under construction: names, blocks and counted loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class Text:
    """The body of a function, line by line; `block` is the basic block that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self._counter = 0

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """Write `name = text` and return the new name."""
        name = self.fresh("%v")
        self.line(f"{name} = {text}")
        return name

    def label(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def fresh(self, stem: str) -> str:
        """A name that is not used yet."""
        self._counter += 1
        return f"{stem}{self._counter}"

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What is written inside is done only where `condition` holds."""
        then, done = self.fresh("then"), self.fresh("done")
        self.line(f"br i1 {condition}, label %{then}, label %{done}")
        self.label(then)
        yield
        self.line(f"br label %{done}")
        self.label(done)

    @contextmanager
    def each(self, low: str, high: str, step: int | str = 1) -> Iterator[str]:
        """A loop over low, low + step, ... below high, which LLVM leaves as it is."""
        head, body, done = (self.fresh(stem) for stem in ("head", "loop", "done"))
        entry = self.block
        self.line(f"br label %{head}")
        self.label(head)
        counter, following = self.fresh("%i"), self.fresh("%next")
        at = len(self.lines)
        self.line("")
        self.line(f"{counter}more = icmp slt i64 {counter}, {high}")
        self.line(f"br i1 {counter}more, label %{body}, label %{done}")
        self.label(body)
        yield counter
        self.line(f"{following} = add nsw i64 {counter}, {step}")
        self.lines[at] = (
            f"  {counter} = phi i64 [ {low}, %{entry} ], [ {following}, %{self.block} ]"
        )
        self.line(f"br label %{head}")
        self.label(done)


class FunctionText(Text):
    """A function that begins with `define` and `head`; arithmetic on words by name."""

    def __init__(self, head: str) -> None:
        super().__init__()
        self.head = head
        self._places: list[str] = []

    def mul(self, one: str | int, other: str | int) -> str:
        return self.op(f"mul i64 {one}, {other}")

    def add(self, one: str | int, other: str | int) -> str:
        return self.op(f"add i64 {one}, {other}")

    def sub(self, one: str | int, other: str | int) -> str:
        return self.op(f"sub i64 {one}, {other}")

    def word(self, words: str, at: str | int, type: str = "i64") -> str:
        """A word of a table."""
        place = self.op(f"getelementptr i64, ptr {words}, i64 {at}")
        return self.op(f"load {type}, ptr {place}")

    def memory(self, type: str, count: str | int = 1) -> str:
        """The address of variables, which are made once, wherever they are used.

        Their `count` is a number or an argument of the function.
        """
        name = self.fresh("%m")
        self._places.append(f"  {name} = alloca {type}" + (f", i64 {count}" if count != 1 else ""))
        return name

    def along_batch(self, item: str, dims: str, words: str, first: int, operands: int) -> list[str]:
        """How far each of `operands` goes on to an `item` of a batch of `dims` dimensions.

        The table has for each of them, from the word `first` on, its size and one move for each of
        `operands`; the last one changes fastest.
        """
        moved, left = [self.memory("i64") for _ in range(operands)], self.memory("i64")
        for place in moved:
            self.line(f"store i64 0, ptr {place}")
        self.line(f"store i64 {item}, ptr {left}")
        with self.each("0", dims) as d:
            entry = self.mul(self.sub(self.sub(dims, d), 1), 1 + operands)
            size = self.word(words, self.add(entry, first))
            index = self.op(f"load i64, ptr {left}")
            self.line(f"store i64 {self.op(f'sdiv i64 {index}, {size}')}, ptr {left}")
            rest = self.op(f"srem i64 {index}, {size}")
            for number, place in enumerate(moved, first + 1):
                move = self.mul(rest, self.word(words, self.add(entry, number)))
                before = self.op(f"load i64, ptr {place}")
                self.line(f"store i64 {self.add(before, move)}, ptr {place}")
        return [self.op(f"load i64, ptr {place}") for place in moved]

    def choose(self, condition: str, one: str | int, other: str | int, type: str = "i64") -> str:
        return self.op(f"select i1 {condition}, {type} {one}, {type} {other}")

    @contextmanager
    def choice(self, condition: str) -> Iterator[None]:
        """What is written inside is all that is done where `condition` holds."""
        with self.when(condition):
            yield
            self.line("ret void")
            self.label(self.fresh("unreachable"))  # LLVM drops it

    def finish(self, result: str = "void") -> str:
        lines = [*self._places, *self.lines, f"  ret {result}"]
        return "\n".join([f"define {self.head} {{", "entry:", *lines, "}"])


def transposed(write: Text, vectors: Sequence[str], lanes: int, element: str) -> list[str]:
    """The columns of a square of `lanes` vectors: lanes and vectors change places.

    Blocks are exchanged at doubling distances (J. Eklundh, "A Fast Computer Method for Matrix
    Transposing", 1972).
    """
    found = list(vectors)
    distance = 1
    while distance < lanes:
        for at in range(lanes):
            if at & distance:
                continue
            one, other = found[at], found[at + distance]
            upper = [x - distance + lanes if x & distance else x for x in range(lanes)]
            lower = [x + lanes if x & distance else x + distance for x in range(lanes)]
            for place, chosen in ((at, upper), (at + distance, lower)):
                mask = ", ".join(f"i32 {lane}" for lane in chosen)
                found[place] = write.op(
                    f"shufflevector <{lanes} x {element}> {one}, <{lanes} x {element}> {other}, "
                    f"<{lanes} x i32> <{mask}>"
                )
        distance *= 2
    return found
