"""Numbers in the text of a kernel that may be parameters: sizes, strides, bounds.

Where a plan is made for size after size, NVRTC takes longer than all else (100 ms). So writers mark
the numbers that may differ, and a text becomes one that is given some of them
(`compiler/kernel/varying_texts.py` tells which).

Some numbers are parameters from the first text on, since they cost as much as in the text: what a
number is compared with or multiplied by. Of contiguous elements those are all there are. What is
divided by stays in the first text. A GPU has no instruction that divides integers: by a number that
NVRTC knows it takes a multiplication and a shift, by another some twenty instructions, for each
axis but one that a thread finds its place on. That is hidden behind memory but where elements are
few bytes and many axes. Bounds of loops stay too, since a loop of unknown length is not unrolled
in full, and floats, such as what a mean divides by.
"""

from __future__ import annotations

import re

from ....runtime.records import NamedTuple
from ...kernel.varying_texts import Families

MOST_PARAMETERS = 64
TAKEN_HERE = "\x04"
"""Where the text of a kernel or function lists what it takes, behind all else."""

_LETTERS = {"int": "i", "long long": "l", "unsigned int": "u", "float": "s", "double": "d"}
_TYPES = {letter: type_ for type_, letter in _LETTERS.items()}
_MARKED = re.compile("\x01([cf])([ilusd])(-?\\d+)(;[^\x02]+)?\x02")
_families = Families()


class Number(NamedTuple):
    """A number of a text, by its type in C: an integer, or the bits of a float that is `literal`.

    `free` tells that it costs nothing as a parameter.
    """

    type: str
    value: int
    free: bool
    literal: str = ""

    def marked(self) -> str:
        """What stands for it in a text that `with_parameters` has not seen yet."""
        literal = f";{self.literal}" if self.literal else ""
        return f"\x01{'f' if self.free else 'c'}{_LETTERS[self.type]}{self.value}{literal}\x02"


class Written(NamedTuple):
    """A kernel or function of a module, and the numbers that it is to be given."""

    name: str
    numbers: tuple[Number, ...] = ()

    @property
    def values(self) -> tuple[int, ...]:
        """The numbers as a launch has them."""
        return tuple(number.value for number in self.numbers)


def with_parameters(text: str) -> tuple[str, tuple[Number, ...]]:
    """The text to compile for one with marked numbers, and those that it takes as parameters."""
    if TAKEN_HERE not in text:
        return text, ()
    numbers = [
        Number(_TYPES[letter], int(value), kind == "f", literal[1:])
        for kind, letter, value, literal in _MARKED.findall(text)
    ]
    form = _MARKED.sub(lambda match: f"\x01{match[1]}{match[2]}\x02", text)
    free = [at for at, number in enumerate(numbers) if number.free]
    taken = _families.varying(form, numbers, free)
    if len(taken) > MOST_PARAMETERS:
        taken = []
    names = {at: f"number{place}" for place, at in enumerate(taken)}
    listed = "".join(f", const {numbers[at].type} {name}" for at, name in names.items())
    places = iter(range(len(numbers)))

    def word(match: re.Match[str]) -> str:
        at = next(places)
        return names.get(at) or numbers[at].literal or match[3]

    settled = _MARKED.sub(word, text).replace(TAKEN_HERE, listed)
    return settled, tuple(numbers[at] for at in taken)
