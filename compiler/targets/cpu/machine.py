"""The CPU that plans are made for: four cores with vectors of 32 bytes at 3 GHz.

An operation is one of two additions a clock and core. Bytes: first caches of 32 KB and second ones
of 1 MB for each core, a shared one of 16 MB, and memory of 30 GB/s. `explain(measure=True)` tells
times of the machine at hand beside prices.
"""

from __future__ import annotations

from math import inf

from ...fusion.machine import Machine
from ...kernel.regions import MAX_PARTS

CPU = Machine(
    operation=0.00125,
    levels=((1 << 17, 0.0025), (1 << 22, 0.005), (1 << 24, 0.015), (inf, 0.033)),
    again=0.0025,
    start=200.0,
    units=4,
    most_pieces=MAX_PARTS,
)
