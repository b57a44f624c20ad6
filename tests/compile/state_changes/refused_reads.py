"""Reads of what cannot be watched."""

from __future__ import annotations

import itertools

import numpy as np

from .table import refused


@refused
def iterator_of_the_outside():
    values = iter([1.0, 2.0])
    yield lambda x: x * next(values)


@refused
def generator_of_the_outside():
    values = (v for v in [1.0, 2.0])
    yield lambda x: x * sum(values)


@refused
def counter_of_itertools():
    count = itertools.count()
    yield lambda x: x * next(count)


@refused
def code_of_a_string():
    rate = 2.0
    yield lambda x: x * eval("rate", {"rate": rate})


@refused
def large_array():
    array = np.zeros(1 << 20)
    yield lambda x: x * float(array[0])
