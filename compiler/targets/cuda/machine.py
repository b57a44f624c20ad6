"""The GPU that plans are made for: an H100, by its data sheet.

An operation is one addition of each of 16,896 lanes at 1.7 GHz; memory gives 3.3 TB/s, the second
cache of 50 MB 5.5 TB/s, 30 MB of it near. 40 of its 132 multiprocessors are enough for all that
memory gives. A kernel starts in 2 us, in a captured graph too.
"""

from __future__ import annotations

from math import inf

from ...fusion.machine import Machine

GPU = Machine(
    operation=0.000_009,
    levels=((30 << 20, 0.000_18), (inf, 0.000_30)),
    again=0.000_03,
    start=2000.0,
    units=40,
)
