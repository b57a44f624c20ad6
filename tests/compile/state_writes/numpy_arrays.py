"""Writes into arrays of NumPy."""

from __future__ import annotations

import numpy as np

from .table import World, row


@row
def array_item():
    a = np.zeros(3)

    def f(x):
        a[0] = 5
        return x * 2

    return World(f, a)


@row(plans=5)
def array_counts():
    a = np.zeros(3)

    def f(x):
        nonlocal a
        a += 1
        return x * 2

    return World(f, a)


@row
def array_fill():
    a = np.zeros(3)

    def f(x):
        a.fill(x.ndim)
        return x * 2

    return World(f, a)


@row
def array_view_written():
    a = np.zeros((2, 3))

    def f(x):
        part = a[0]
        part[1:] = 7
        return x * 2

    return World(f, a)


@row
def array_written_by_numpy():
    a = np.array([3.0, 1.0, 2.0])

    def f(x):
        np.copyto(a, 4.0)
        return x * 2

    return World(f, a)


@row
def array_sorted():
    a = np.array([3.0, 1.0, 2.0])

    def f(x):
        a.sort()
        return x * float(a[0])

    return World(f, a)
