"""A loop around scans as three: what they add up, the scans, and what is made of their values.

A scan takes one step after another, so the loop that it stands in is not vectorised, and with it
no logarithm or exponential beside it. Cut in three, only the scans themselves go step by step. What
one loop leaves for the next lies in rows of CHUNK elements, so the loops run over one chunk after
another. (Loop distribution: Kennedy and Allen, "Optimizing Compilers for Modern Architectures",
section 2.6.)
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from ....runtime.dtypes import DType
from ....runtime.records import NamedTuple, replace
from ...kernel.cost import cost
from ...kernel.index import Axis, of_axis
from ...kernel.kernel import Instr, Stage

CHUNK = 512
CHUNK_AXIS = Axis("chunk", CHUNK)
# Operations beside a scan and its accesses from which on three loops are faster than one.
WORTHWHILE = 8
_ACCESSES = ("load", "store", "scan", "save", "saved")
_FREE = ("const", "index", "condition", "result")


class ScanLoops(NamedTuple):
    """Stages with the instructions of one, under the same numbers, that run one after another.

    `rows` are the types of the scratch rows between them, which are numbered on from those that
    there are. They are indexed by CHUNK_AXIS.
    """

    stages: tuple[Stage, Stage, Stage]
    rows: tuple[DType, ...]


def scan_loops(stage: Stage, written: Set[int], first_row: int) -> ScanLoops | None:
    """The loops of a stage with scans along its last axis; None where one loop does.

    The instructions `written` stand before the loop already.
    """
    body = stage.body
    scans = [number for number, instr in enumerate(body) if instr.op == "scan"]
    beside = sum(cost(each) for each in body if each.op not in _ACCESSES)
    folds = any(each.op == "reduce" for each in body)  # of which each step waits, too
    if not scans or (beside < WORTHWHILE and not folds):
        return None
    after = _consumers(body, scans)
    if after.intersection(scans):  # a scan of what another makes
        return None
    return _Cut(stage, set(written), scans, after, first_row).loops()


def _consumers(body: tuple[Instr, ...], scans: list[int]) -> set[int]:
    """What depends on the value of a scan."""
    found: set[int] = set()
    for number, instr in enumerate(body):
        if any(source in found or source in scans for source in instr.sources):
            found.add(number)
    return found


class _Cut:
    """The instructions of a stage, dealt out to three loops."""

    def __init__(
        self, stage: Stage, written: set[int], scans: list[int], after: set[int], first_row: int
    ) -> None:
        self.stage = stage
        self.body = stage.body
        self.scans, self.after = scans, after
        # What costs nothing is written in every loop that uses it.
        free = {n for n, each in enumerate(self.body) if each.op in _FREE and not each.sources}
        self.everywhere = written | free
        self.before = set(range(len(self.body))) - after - set(scans) - self.everywhere
        self.first_row = first_row
        self.rows: dict[int, int] = {}  # of the values that a later loop uses

    def loops(self) -> ScanLoops:
        of_scans = self._kept(self.scans)
        of_after = self._kept(self.after)
        for number in sorted(of_scans | of_after | set(self.scans)):
            self.rows[number] = self.first_row + len(self.rows)
        stages = (
            self._loop(self.before, set(), of_scans | of_after),
            self._loop(set(self.scans), of_scans, set(self.scans)),
            self._loop(self.after, of_after | set(self.scans), set()),
        )
        return ScanLoops(stages, tuple(self.body[number].dtype for number in self.rows))

    def _kept(self, consumers: Iterable[int]) -> set[int]:
        """What these use of the first loop."""
        return {
            source for each in consumers for source in self.body[each].sources
            if source in self.before
        }  # fmt: skip

    def _loop(self, own: set[int], saved: set[int], save: set[int]) -> Stage:
        """The body of a loop with the instructions `own`; others leave nothing but their number."""
        body = []
        for number, instr in enumerate(self.body):
            if number in saved:
                body.append(self._row("saved", (), number))
            elif number in own or number in self.everywhere:
                body.append(instr)
            else:
                body.append(Instr("const", dtype=instr.dtype, value=0))
        body += [self._row("save", (number,), number) for number in sorted(save)]
        return replace(self.stage, body=tuple(body))

    def _row(self, op: str, args: tuple[int, ...], number: int) -> Instr:
        dtype, row = self.body[number].dtype, self.rows[number]
        return Instr(op, args, dtype, index=of_axis(CHUNK_AXIS), value=row)
