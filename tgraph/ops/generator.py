"""The sources of random numbers: generators, and the default one."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from ..core.devices import DeviceLike, as_device
from ..core.eager_context import current_context
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.device import Device
from ..runtime.dtypes import int64

_DEFAULT_SEED = 67280421310721  # PyTorch's


class Generator:
    """A source of random numbers: a seed, and a counter of the calls made so far.

    >>> import tgraph as tg
    >>> g = tg.Generator().manual_seed(1)
    >>> a = tg.rand(3, generator=g)
    >>> tg.equal(a, tg.rand(3, generator=g.manual_seed(1)))
    True
    """

    def __init__(self, device: DeviceLike = "cpu") -> None:
        self.device = as_device(device)
        self._seed = _DEFAULT_SEED
        self.counter = 0
        current_context().seeded(self, self._seed)

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed`, a number of 64 bits."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise RuntimeError(f"Overflow when unpacking long: seed {seed} has more than 64 bits")
        current_context().seeded(self, seed % (1 << 64))
        self.restart(seed, 0)
        return self

    def restart(self, seed: int, counter: int) -> None:
        """Go on from a seed and a number of calls."""
        self._seed, self.counter = seed % (1 << 64), counter

    def seed(self) -> int:
        """Start again from a seed that the operating system gives, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed in use."""
        return self._seed

    @property
    def seed_as_int64(self) -> int:
        """The seed's bits as a signed number, as the key of `random_bits` holds it."""
        return self._seed - (1 << 64) if self._seed >= 1 << 63 else self._seed

    def get_state(self) -> Tensor:
        """Seed and counter as an int64 tensor of two elements."""
        return current_context().random_state(self)

    def set_state(self, state: Tensor) -> Generator:
        """Go on from what `get_state` returned."""
        if tuple(state._type.shape) != (2,) or state._type.dtype is not int64:
            raise RuntimeError(
                "set_state() expected what get_state() gives, an int64 tensor of a seed and a "
                f"counter, got {state._type}; the state of another library's generator cannot go "
                "on here, manual_seed() starts anew"
            )
        current_context().restart(self, state)
        return self

    def clone_state(self) -> Generator:
        """A generator that goes on as this one would."""
        return generator_at(self._seed, self.counter, self.device)

    def graphsafe_get_state(self) -> NoReturn:
        """Refused: states are values here, as those of PyTorch's generators of a CPU."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> NoReturn:
        """Refused, as `graphsafe_get_state` is."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> tuple[Any, ...]:
        return generator_at, (self._seed, self.counter, self.device)

    def __repr__(self) -> str:
        return f"<tgraph.Generator seed={self._seed} counter={self.counter}>"


def generator_at(seed: int, counter: int, device: Device) -> Generator:
    """A generator that goes on from a seed and a number of calls."""
    made = Generator(device)
    made.restart(seed, counter)
    return made


default_generator = Generator()


@public()
def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


@public()
def seed() -> int:
    """Seed the default generator from the operating system; returns the seed."""
    return default_generator.seed()


@public()
def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


@public()
def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


@public()
def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator back into a state."""
    default_generator.set_state(new_state)
