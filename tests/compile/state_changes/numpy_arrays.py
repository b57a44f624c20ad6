"""Changes of NumPy's arrays and numbers."""

from __future__ import annotations

import warnings

import numpy as np

import tgraph as tg

from .table import Thing, row

ARRAY = np.array([1.0, 2.0])


@row
def array_global():
    yield lambda x: x * tg.tensor(ARRAY)
    ARRAY[0] = 5.0
    yield
    ARRAY[0] = 1.0
    yield


@row
def array_attribute():
    thing = Thing(array=np.array([1.0, 2.0]))
    yield lambda x: x * float(thing.array.sum())
    thing.array[0] = 5.0
    yield
    thing.array = np.array([7.0])
    yield


@row
def array_without_dimensions():
    rate = np.array(2.0)
    yield lambda x: x * float(rate)
    rate[...] = 3.0
    yield
    rate[()] = 4.0
    yield


@row
def array_item():
    rates = np.array([2.0, 3.0])
    yield lambda x: x * float(rates[0])
    rates[0] = 5.0
    yield


@row
def array_of_objects():
    rates = np.array([Thing(rate=2.0), None], dtype=object)
    yield lambda x: x * rates[0].rate
    rates[0] = Thing(rate=3.0)
    yield
    rates[0].rate = 4.0
    yield


@row
def array_view():
    base = np.arange(4.0)
    view = base[1:3]
    yield lambda x: x * tg.tensor(view.copy())
    base[1] = 9.0
    yield


@row
def array_shape_and_dtype():
    array = np.zeros((2, 3))
    yield lambda x: x * array.shape[0] + array.ndim + array.size
    array = np.zeros((3, 2, 1))
    yield


@row
def array_shape_in_place():
    array = np.zeros((2, 3))
    yield lambda x: x * array.shape[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, since 2.5
        array.shape = (3, 2)
    yield


@row
def array_truth_and_comparison():
    array = np.array([1.0])
    yield lambda x: x * 2 if array and array[0] < 2 else x
    array[0] = 5.0
    yield
    array[0] = 0.0
    yield


@row
def array_iterated():
    array = np.array([1.0, 2.0])
    yield lambda x: sum(x * float(each) for each in array) + len(array)
    array[1] = 7.0
    yield


@row
def array_in_arithmetic():
    array = np.array([1.0, 2.0])
    yield lambda x: x * float((array * 2 + 1).max())
    array[1] = 7.0
    yield


@row
def array_by_a_function():
    array = np.array([1.0, 2.0])
    yield lambda x: x * float(np.dot(array, array)) + float(np.mean(array))
    array[1] = 7.0
    yield


@row
def array_in_a_list():
    arrays = [np.array([1.0, 2.0])]
    yield lambda x: x * tg.tensor(arrays[0])
    arrays[0][1] = 7.0
    yield


@row
def array_in_a_dict_handed_over():
    arrays = {"a": np.array([1.0, 2.0])}
    yield lambda x: x * float(sum(map(np.sum, arrays.values())))
    arrays["a"][1] = 7.0
    yield


@row
def array_scalar():
    rate = np.float32(2.0)
    yield lambda x: x * float(rate)
    rate = np.float32(3.0)
    yield
    rate = np.float64(3.0)
    yield


@row
def array_of_another_type_with_the_same_bytes():
    rate = np.array([0x3F800000], np.int32)
    yield lambda x: x + tg.tensor(rate)
    content = rate.tobytes()  # of the number one
    rate.__setstate__((1, rate.shape, np.dtype(np.float32), False, content))
    yield
