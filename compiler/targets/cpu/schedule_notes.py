"""How a CPU kernel was written, in a line for people: its vectors, cuts, tiles and threads."""

from __future__ import annotations

from collections.abc import Iterable

from ....runtime.parallel import shared_out
from ...kernel.index import Axis
from .scan_loops import CHUNK
from .schedule import Schedule


class Notes:
    """What a writer of kernels decides on the way.

    `widths` are the lanes of the innermost loops along an axis, 1 where it goes step by step;
    `parts` and `phases` how often an axis is cut, and its stride unrolled; `boxes` the parts of
    the rows, which together are all of them or not; `rows_together` are walked side by side;
    `transposed` is how many loads go through buffers of a tile.
    """

    def __init__(self) -> None:
        self.widths: dict[Axis, int] = {}
        self.parts: dict[Axis, tuple[int, int]] = {}
        self.boxes = 0
        self.is_filled = True
        self.in_chunks = False
        self.rows_together = 1
        self.transposed = 0

    def loop(self, axis: Axis, width: int) -> None:
        """An innermost loop along `axis`; a border that goes step by step does not count."""
        self.widths[axis] = max(width, self.widths.get(axis, 1))

    def cut(self, axis: Axis, parts: int, phases: int) -> None:
        """An axis is walked in so many parts, of which one takes so many phases of a stride."""
        if parts > 1 or phases > 1:
            self.parts[axis] = max((parts, phases), self.parts.get(axis, (1, 1)))

    def split(self, boxes: int, is_filled: bool) -> None:
        """The rows are looked at in boxes; outside of them conditions are asked for."""
        if boxes > self.boxes:
            self.boxes, self.is_filled = boxes, is_filled


def schedule_line(schedule: Schedule, notes: Notes) -> str:
    """Such as "vectorised along i0 < 512 (16 lanes); tiles of 128; 4 tasks for up to 2 threads"."""
    return "; ".join([*_vectors(notes), *_cuts(notes), *_tiles(schedule, notes), _tasks(schedule)])


def _vectors(notes: Notes) -> Iterable[str]:
    wide = [
        f"{axis.name} < {axis.size:,} ({width} lanes)"
        for axis, width in notes.widths.items()
        if width > 1
    ]
    single = [f"{axis.name} < {axis.size:,}" for axis, width in notes.widths.items() if width == 1]
    yield f"vectorised along {' and '.join(wide)}" if wide else "not vectorised"
    if single:
        yield f"step by step along {' and '.join(single)}"


def _cuts(notes: Notes) -> Iterable[str]:
    for axis, (parts, phases) in notes.parts.items():
        texts = [f"{parts} parts"] if parts > 1 else []
        texts += [f"{phases} phases"] if phases > 1 else []
        yield f"{axis.name} in {' and '.join(texts)}"
    if notes.boxes:
        boxes = "1 box" if notes.boxes == 1 else f"{notes.boxes} boxes"
        yield f"rows in {boxes}{'' if notes.is_filled else ' and the rest'}"
    if notes.in_chunks:
        yield f"scans in chunks of {CHUNK}"
    if notes.rows_together > 1:
        yield f"{notes.rows_together} rows side by side"


def _tiles(schedule: Schedule, notes: Notes) -> Iterable[str]:
    sizes = [str(each.tile) for each in schedule.tasks if 1 < each.tile < each.axis.size]
    if sizes:
        yield f"tiles of {' x '.join(sizes)}"
    if notes.transposed:
        yield f"{notes.transposed} transposed in a buffer"


def _tasks(schedule: Schedule) -> str:
    what = "element" if schedule.direct else "task"
    return shared_out(schedule.extent, schedule.grain, what)
