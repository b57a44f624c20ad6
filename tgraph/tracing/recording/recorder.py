"""Records what a traced function reads of the Python world, and what it writes there.

The code of the user's functions runs with hooks (see `instrument`): a Recorder sees every
attribute, item, length, membership, truth value and iteration that they ask of an object of the
*outside*, one that was there before. What is read becomes a Guard: the plan holds as long as the
same is found there. What is written is told by snapshots, put back behind the trace, and repeated
by each call. So the rule is: what the function read while it was traced is watched.

- Code runs with hooks from when the function meets it: functions, methods and properties of the
  user's, also those that others call. Code of the standard library, of tgraph itself but for its
  modules (`tgraph.nn`), and of the packages that it is built on is taken for constant; of what is
  handed to such code all is taken to be read.
- Names of such modules that the user's code asks for are watched; those that they ask for
  themselves, such as a function that `tgraph.nn` calls, are not.
- An object of the outside is reached from a global, a variable of an enclosing function, a default,
  an argument, or an object of the outside. What the function itself makes is its own.
- What cannot be watched is refused with the line: iterators of the outside, large arrays of NumPy,
  code in strings, and see `world`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.state import state
from .calls import Calls
from .guards import is_a
from .snapshots import ABSENT, AttributesSnapshot, DictSnapshot, PlaceWrite, Snapshot


class Recorder(Calls):
    """What one trace reads and writes. `guards` (by code) and `names` are the result.

    Guards are evaluated in `namespace`. `names` are of tensors, by id. Each part of it watches one
    kind of reads and may ask the others; this one begins and ends the recording.
    """

    @contextmanager
    def recording(self, roots: Sequence[tuple[str, Any]]) -> Iterator[None]:
        """Record what the code of `roots`, by name, reads in this thread; the world is put back."""
        previous, state.recorder = state.recorder, self
        try:
            for path, value in roots:
                self.see(value, path)
            yield
        except Exception:
            self.has_written = any(each.changed() for each in self._snapshots.values())
            raise
        finally:
            state.recorder = previous
            try:
                self._put_back()
            except (KeyboardInterrupt, MemoryError):
                self._put_back()  # it may not have come to its end
                raise

    def _put_back(self) -> None:
        for snapshot in self._snapshots.values():
            snapshot.restore()
        for function, code in self._armed.values():
            function.__code__ = code
        self._armed.clear()

    @contextmanager
    def undoing(self) -> Iterator[Callable[[], str]]:
        """What happens inside is watched, and its writes are undone. Gives what tells of the first.

        What was written before stays, and is known for the function's own.
        """
        held = [(each, dict(vars(each))) for each in self._snapshots.values() if each.changed()]
        known, sites, self.sites = set(self._snapshots), self.sites, {}
        self.ran.clear()
        now = [each.afresh() for each, _ in held]
        for (each, before), fresh in zip(held, now):
            vars(each).update(vars(fresh), before=before["before"])

        def first() -> str:
            for (each, _), fresh in zip(held, now):
                each.before = fresh.before
            write = next((w for each in self._snapshots.values() for w in each.writes()), None)
            for each, before in held:
                each.before = before["before"]
            if write is None:
                return ""
            key = id(write.holder)
            site = self.sites.get(key) or self._names(write) or sites.get(key, "an unknown line")
            return f"`{write.path}`, at {site}"

        try:
            yield first
        finally:
            for (each, before), fresh in zip(held, now):
                each.before = fresh.before
                each.restore()
                vars(each).update(before)
            for key, each in self._snapshots.items():
                if key not in known:
                    each.restore()
                    vars(each).update(vars(each.afresh()))
            self.sites = sites

    def _names(self, write: PlaceWrite) -> str:
        """A function that has run and names the variable of an enclosing one that is written."""
        codes = [each for each in self.ran if write.path in each.co_freevars]
        return next((f"{each.co_filename}:{each.co_firstlineno}" for each in codes), "")

    def writes(self) -> list[PlaceWrite]:
        """What was written into objects of the outside, while they are not yet put back."""
        snapshots = list(self._snapshots.values())
        return [write for each in snapshots for write in self._written(each)]

    def attributes_looked_at(self) -> list[str]:
        """What reaches the attributes of those arguments of which some were read or written."""
        found = self.attributes_of_leaves.items()
        return [
            f"a{position}.__dict__"
            for own, (position, stand_in) in found
            if own in self._snapshots or stand_in in self.tensor_reads
        ]

    def attributes_met(self) -> list[Any]:
        """The attributes of objects of the outside, of which some were read or written."""
        found = self._snapshots.values()
        return [
            each.holder
            for each in found
            if is_a(each, AttributesSnapshot) and id(each.holder) not in self.attributes_of_leaves
        ]

    def _written(self, snapshot: Snapshot) -> Iterator[PlaceWrite]:
        for write in snapshot.writes():
            if write.kind == "replace" and not snapshot.is_read:
                # What was left out or moved depends on all that was there.
                self._whole(snapshot.holder, snapshot.path)
            if write.kind in ("item", "ordered") and write.key in snapshot.before:
                if id(snapshot.holder) in self.attributes_of_leaves:
                    if write.value is ABSENT:
                        _, stand_in = self.attributes_of_leaves[id(snapshot.holder)]
                        reads = self.tensor_reads.setdefault(stand_in, {})
                        reads.setdefault(write.key, snapshot.before[write.key])
                elif write.value is ABSENT and snapshot.before[write.key] is not ABSENT:
                    self._presence(write.key, snapshot.holder, snapshot.path)
            elif write.kind == "element":
                self._length(snapshot.holder, snapshot.path)
            if snapshot.is_blind and is_a(snapshot, DictSnapshot):
                self._item_read(snapshot, write.key, write.path)
            yield write
