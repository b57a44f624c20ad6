"""The native side of plans: the generated runner that walks a table of steps, and its bodies.

A table is one array of 64-bit words. Its head::

    0 position of the first step   1 number of call-time arrays   2 BLAS get_threads or 0
    3 BLAS set_threads or 0        4 scratch offset in the frame  5 address of ndarray's type
    6... slot of each call-time array, plus WRITTEN where the plan writes to it, and DENSE where its
         elements must lie side by side

A native step calls ``void body(ptr args, i64 lo, i64 hi)`` over [0, extent) on the thread pool::

    0 NATIVE   1 words of this step   2 body   3 extent   4 grain   5 split   6 arguments n
    7... n pairs (slot, byte offset), then the body's parameters

`args` points at n resolved addresses and, as one more, the address of the parameters. Control flow
has three steps, which name others by their positions::

    0 BRANCH   1 slot   2 byte offset   3 format   4 targets n   5... n positions
    0 JUMP   1 position   2 pairs n   3... n pairs of slots whose addresses are exchanged before
    0 BIND   1 bindings n   2... n times slot, slot and byte offset of its address

The format of a number is its size in bytes, negative where it has a sign. The other steps are one
word, PYTHON or END. A loop goes on for `PAUSE` nanoseconds at most before Python can look for
signals.

A frame is what one call in progress owns: 8 words of status, the address of the table, the address
of the status (slot -1), the addresses of slots 0, 1, ..., and the scratch space for resolved
arguments.

Python starts a call through a builtin function of its own (METH_O of Python's stable C interface),
one for each frame: `ctypes` alone would take longer than a small kernel.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import jit, locks, parallel, thread_pool
from .records import NamedTuple

END, NATIVE, PYTHON, BRANCH, JUMP, BIND = 0, 1, 2, 3, 4, 5
HEAD = 6
STATUS_WORDS = 8
TABLE_WORD = STATUS_WORDS
SLOT_WORDS = TABLE_WORD + 2
"""Word of slot 0 in a frame; slot -1, the status, stands before it."""

NOT_AN_ARRAY = 1 << 40
"""The runner returns -(NOT_AN_ARRAY + i) where call-time array i is no exact ndarray."""
READ_ONLY = 1 << 41
"""The runner returns -(READ_ONLY + i) where it would write to i, which must not be written."""

NOT_DENSE = 1 << 42
"""The runner returns -(NOT_DENSE + i) where array i has gaps, or another order of its elements."""

PAUSE = 50_000_000
"""After this many nanoseconds, a jump back returns to Python instead, which walks on from it."""

_CONTIGUOUS, _WRITEABLE = 0x1, 0x400
"""NumPy's NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_WRITEABLE among the flags of an array."""
DENSE, WRITTEN = _CONTIGUOUS << 32, _WRITEABLE << 32
"""In the word of a slot: the flags that its array must have, in the upper half."""


class Native(NamedTuple):
    """What plans need of the generated code."""

    walk: Callable[[int, int, tuple[Any, ...]], int]
    """walk(frame, position, arrays): 0 at the end, the position of a Python step or of a jump that
    is still to be made, or minus the position of a step that set the status. Position 0 starts a
    call."""
    starter: Callable[[Any], Callable[[tuple[Any, ...]], int]]
    """starter(words) is walk(frame, 0, arrays) as a function of the arrays, for a frame's words."""
    gemv: int
    copy: int


_loaded: Native | None = None


def load() -> Native:
    """Compile (or take from the cache) the runner."""
    global _loaded
    if _loaded is None:
        with locks.RUNTIME:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def prepare() -> None:
    """Compile what `load` needs, without the runtime's lock.

    In one thread: where there are two processors, Python needs the other, which traces and imports
    the compiler meanwhile.
    """
    jit.make_objects([thread_pool.source(), *sources()], threads=1)


def sources() -> list[jit.Source]:
    """The modules of the runner."""
    return [
        jit.Source(_walk_text(), passes=False, own=True),  # written as LLVM would leave it
        # What these call takes so long that better code for them would not pay.
        jit.Source(_COPY + _GEMV, opt=0, own=True),
    ]


def _load() -> Native:
    _check_layouts()
    parallel.parallel_for_address()  # the runner calls it by name
    for name in ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromSsize_t"):
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        assert address is not None
        jit.add_symbol(name, address)
    clock = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value
    assert clock is not None
    jit.add_symbol("clock_gettime", clock)
    walk, bodies = jit.compile_modules(sources())
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(number, pointer, number, ctypes.py_object)
    addresses = [bodies.address(name) for name in ("gemv", "copy")]
    return Native(kind(walk.address("walk")), _starter(walk.address("start")), *addresses)


class _Method(ctypes.Structure):
    """Python's `PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_TAKES_ONE = 0x8
"""METH_O: the function takes what it is bound to, and one argument."""


def _starter(address: int) -> Callable[[Any], Callable[[tuple[Any, ...]], int]]:
    method = _Method(b"start", address, _TAKES_ONE, None)
    # Python reads it even where it frees the last functions, when modules are gone.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    anything, pointer = ctypes.py_object, ctypes.c_void_p
    kind = ctypes.PYFUNCTYPE(anything, pointer, anything, pointer)
    make, place = kind(("PyCFunction_NewEx", ctypes.pythonapi)), ctypes.addressof(method)
    return lambda words: make(place, words, None)


def _walk_text() -> str:
    return (
        _WALK.replace("ITEMS_OFFSET", str(tuple.__basicsize__))
        .replace("TYPE_OFFSET", str(object.__basicsize__ - 8))
        .replace("DATA_OFFSET", str(object.__basicsize__))
        .replace("FLAGS_OFFSET", str(_flags_offset()))
        .replace("NOT_AN_ARRAY", str(NOT_AN_ARRAY))
        .replace("READ_ONLY", str(READ_ONLY))
        .replace("NOT_DENSE", str(NOT_DENSE))
        .replace("WRITEABLE", str(_WRITEABLE))
        .replace("TABLE_WORD", str(TABLE_WORD))
        .replace("SLOT_WORDS", str(SLOT_WORDS))
        .replace("CLOCK_ID", str(time.CLOCK_MONOTONIC))
        .replace("PAUSE", str(PAUSE))
    )


def _flags_offset() -> int:
    """Behind the data of an array: its dimensions, three pointers to them, its base and its type.

    Layout: `PyArrayObject_fields` in numpy/ndarraytypes.h.
    """
    return object.__basicsize__ + 6 * 8


def _has_flags(array: np.ndarray[Any, Any], *, writeable: bool) -> bool:
    array.flags.writeable = writeable
    found = ctypes.c_int.from_address(id(array) + _flags_offset()).value
    known = array.flags.num
    return found & 0xFFF == known & 0xFFF and bool(found & _WRITEABLE) is writeable


def _check_layouts() -> None:
    """The runner reads tuples and arrays as C structures; make sure that they lie as it thinks."""
    array = np.zeros(3)
    items = (array, "x")
    word = ctypes.c_void_p.from_address
    if (
        sys.byteorder == "little"
        and word(id(items) + tuple.__basicsize__).value == id(array)
        and word(id(array) + object.__basicsize__ - 8).value == id(np.ndarray)
        and word(id(array) + object.__basicsize__).value == array.ctypes.data
        and _has_flags(array, writeable=False)
        and _has_flags(array, writeable=True)
    ):
        return
    raise RuntimeError(
        f"tgraph: compiled plans need little-endian CPython, this is {sys.implementation.name} "
        f"{sys.version.split()[0]} with other object layouts; run eagerly instead"
    )


_WALK = """
declare void @tgraph_parallel_for(ptr, ptr, i64, i64, i64)
declare void @tgraph_limit_blas(ptr, ptr)
declare void @tgraph_unlimit_blas(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromSsize_t(i64)
declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)

; A function of Python: of an array over the words of a frame, and a tuple of arrays.
define ptr @start(ptr %words, ptr %tuple) {
  %frame_at = getelementptr i8, ptr %words, i64 DATA_OFFSET
  %frame = load ptr, ptr %frame_at
  %thread = call ptr @PyEval_SaveThread()
  %position = call i64 @walk(ptr %frame, i64 0, ptr %tuple)
  call void @PyEval_RestoreThread(ptr %thread)
  %result = call ptr @PyLong_FromSsize_t(i64 %position)
  ret ptr %result
}

define i64 @walk(ptr %frame, i64 %position, ptr %tuple) {
entry:
  %time = alloca [2 x i64]
  %deadline = alloca i64
  store i64 0, ptr %deadline
  %table_at = getelementptr i64, ptr %frame, i64 TABLE_WORD
  %table = load ptr, ptr %table_at
  %base_table = getelementptr i64, ptr %frame, i64 SLOT_WORDS
  %scratch_at = getelementptr i64, ptr %table, i64 4
  %scratch_offset = load i64, ptr %scratch_at
  %scratch = getelementptr i8, ptr %frame, i64 %scratch_offset
  %starts = icmp eq i64 %position, 0
  br i1 %starts, label %start, label %blas

start:
  store i64 0, ptr %frame
  %first = load i64, ptr %table
  %count_at = getelementptr i64, ptr %table, i64 1
  %count = load i64, ptr %count_at
  %type_at = getelementptr i64, ptr %table, i64 5
  %ndarray = load i64, ptr %type_at
  %slots = getelementptr i64, ptr %table, i64 6
  %items = getelementptr i8, ptr %tuple, i64 ITEMS_OFFSET
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %bind, label %blas
bind:
  %i = phi i64 [0, %start], [%i1, %bound]
  %item_at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item_at
  %item_type_at = getelementptr i8, ptr %item, i64 TYPE_OFFSET
  %item_type = load i64, ptr %item_type_at
  %fits = icmp eq i64 %item_type, %ndarray
  %slot_at = getelementptr i64, ptr %slots, i64 %i
  %word = load i64, ptr %slot_at
  %slot = and i64 %word, 4294967295
  %wanted = lshr i64 %word, 32
  br i1 %fits, label %fitting, label %refuse
fitting:
  %is_read = icmp eq i64 %wanted, 0
  br i1 %is_read, label %bound, label %flagged
flagged:
  %flags_at = getelementptr i8, ptr %item, i64 FLAGS_OFFSET
  %flags = load i32, ptr %flags_at
  %flags_word = zext i32 %flags to i64
  %there = and i64 %flags_word, %wanted
  %may = icmp eq i64 %there, %wanted
  br i1 %may, label %bound, label %unfit
unfit:
  %missing = xor i64 %there, %wanted
  %unwriteable = and i64 %missing, WRITEABLE
  %dense = icmp ne i64 %unwriteable, 0
  %lack = select i1 %dense, i64 READ_ONLY, i64 NOT_DENSE
  br label %refuse
refuse:
  %why = phi i64 [NOT_AN_ARRAY, %bind], [%lack, %unfit]
  %fault = add i64 %i, %why
  %refused = sub i64 0, %fault
  ret i64 %refused
bound:
  %data_at = getelementptr i8, ptr %item, i64 DATA_OFFSET
  %data = load ptr, ptr %data_at
  %base_at = getelementptr ptr, ptr %base_table, i64 %slot
  store ptr %data, ptr %base_at
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %count
  br i1 %more, label %bind, label %blas

; Products are split over our own threads: OpenBLAS is to use one, as long as this call takes.
blas:
  %begin = phi i64 [%position, %entry], [%first, %start], [%first, %bound]
  %get_at = getelementptr ptr, ptr %table, i64 2
  %get = load ptr, ptr %get_at
  %set_at = getelementptr ptr, ptr %table, i64 3
  %set = load ptr, ptr %set_at
  %has = icmp ne ptr %get, null
  br i1 %has, label %limit, label %steps
limit:
  call void @tgraph_limit_blas(ptr %get, ptr %set)
  br label %steps

steps:
  br label %next
next:
  %at = phi i64 [%begin, %steps], [%after, %ran], [%chosen_target, %chosen],
                [%jump_target, %jumped], [%after_bind, %all_bound]
  %step = getelementptr i64, ptr %table, i64 %at
  %kind = load i64, ptr %step
  switch i64 %kind, label %end [i64 1, label %native
                                i64 2, label %python
                                i64 3, label %branch
                                i64 4, label %jump
                                i64 5, label %rebind]
native:
  %size_at = getelementptr i64, ptr %step, i64 1
  %size = load i64, ptr %size_at
  %body_at = getelementptr ptr, ptr %step, i64 2
  %body = load ptr, ptr %body_at
  %extent_at = getelementptr i64, ptr %step, i64 3
  %extent = load i64, ptr %extent_at
  %grain_at = getelementptr i64, ptr %step, i64 4
  %grain = load i64, ptr %grain_at
  %split_at = getelementptr i64, ptr %step, i64 5
  %split = load i64, ptr %split_at
  %number_at = getelementptr i64, ptr %step, i64 6
  %number = load i64, ptr %number_at
  %references = getelementptr i64, ptr %step, i64 7
  br label %arguments
arguments:
  %a = phi i64 [0, %native], [%a1, %resolve]
  %pair = shl i64 %a, 1
  %reference = getelementptr i64, ptr %references, i64 %pair
  %place = getelementptr ptr, ptr %scratch, i64 %a
  %unresolved = icmp slt i64 %a, %number
  br i1 %unresolved, label %resolve, label %resolved
resolve:
  %its_slot = load i64, ptr %reference
  %its_offset_at = getelementptr i64, ptr %reference, i64 1
  %its_offset = load i64, ptr %its_offset_at
  %its_base_at = getelementptr ptr, ptr %base_table, i64 %its_slot
  %its_base = load ptr, ptr %its_base_at
  %address = getelementptr i8, ptr %its_base, i64 %its_offset
  store ptr %address, ptr %place
  %a1 = add i64 %a, 1
  br label %arguments
resolved:
  store ptr %reference, ptr %place
  %small = icmp sle i64 %extent, %grain
  br i1 %small, label %direct, label %spread
direct:
  call void %body(ptr %scratch, i64 0, i64 %extent)
  br label %check
spread:
  call void @tgraph_parallel_for(ptr %body, ptr %scratch, i64 %extent, i64 %grain, i64 %split)
  br label %check
check:
  %status = load atomic i64, ptr %frame acquire, align 8
  %good = icmp eq i64 %status, 0
  br i1 %good, label %ran, label %stop
ran:
  %after = add i64 %at, %size
  br label %next

branch:
  %index_slot_at = getelementptr i64, ptr %step, i64 1
  %index_slot = load i64, ptr %index_slot_at
  %index_base_at = getelementptr ptr, ptr %base_table, i64 %index_slot
  %index_base = load ptr, ptr %index_base_at
  %index_offset_at = getelementptr i64, ptr %step, i64 2
  %index_offset = load i64, ptr %index_offset_at
  %index_at = getelementptr i8, ptr %index_base, i64 %index_offset
  %format_at = getelementptr i64, ptr %step, i64 3
  %format = load i64, ptr %format_at
  switch i64 %format, label %int64 [i64 1, label %uint8
                                    i64 -1, label %int8
                                    i64 2, label %uint16
                                    i64 -2, label %int16
                                    i64 4, label %uint32
                                    i64 -4, label %int32
                                    i64 8, label %uint64]
uint8:
  %as_uint8 = load i8, ptr %index_at
  %of_uint8 = zext i8 %as_uint8 to i64
  br label %chosen
int8:
  %as_int8 = load i8, ptr %index_at
  %of_int8 = sext i8 %as_int8 to i64
  br label %chosen
int16:
  %as_int16 = load i16, ptr %index_at
  %of_int16 = sext i16 %as_int16 to i64
  br label %chosen
uint16:
  %as_uint16 = load i16, ptr %index_at
  %of_uint16 = zext i16 %as_uint16 to i64
  br label %chosen
uint32:
  %as_uint32 = load i32, ptr %index_at
  %of_uint32 = zext i32 %as_uint32 to i64
  br label %chosen
int32:
  %as_int32 = load i32, ptr %index_at
  %of_int32 = sext i32 %as_int32 to i64
  br label %chosen
uint64:
  %as_uint64 = load i64, ptr %index_at
  %of_uint64 = call i64 @llvm.umin.i64(i64 %as_uint64, i64 9223372036854775807)
  br label %chosen
int64:
  %of_int64 = load i64, ptr %index_at
  br label %chosen
chosen:
  %index = phi i64 [%of_uint8, %uint8], [%of_int8, %int8], [%of_int16, %int16],
                   [%of_uint16, %uint16], [%of_uint32, %uint32], [%of_int32, %int32],
                   [%of_uint64, %uint64], [%of_int64, %int64]
  %targets_at = getelementptr i64, ptr %step, i64 4
  %targets = load i64, ptr %targets_at
  %last_target = sub i64 %targets, 1
  %at_most = call i64 @llvm.smin.i64(i64 %index, i64 %last_target)
  %choice = call i64 @llvm.smax.i64(i64 %at_most, i64 0)
  %first_target = getelementptr i64, ptr %step, i64 5
  %chosen_at = getelementptr i64, ptr %first_target, i64 %choice
  %chosen_target = load i64, ptr %chosen_at
  br label %next

jump:
  %jump_at = getelementptr i64, ptr %step, i64 1
  %jump_target = load i64, ptr %jump_at
  %pairs_at = getelementptr i64, ptr %step, i64 2
  %pairs = load i64, ptr %pairs_at
  %first_pair = getelementptr i64, ptr %step, i64 3
  %goes_back = icmp sle i64 %jump_target, %at
  br i1 %goes_back, label %look, label %exchange
look:
  %told = call i32 @clock_gettime(i32 CLOCK_ID, ptr %time)
  %seconds = load i64, ptr %time
  %nanoseconds_at = getelementptr i64, ptr %time, i64 1
  %nanoseconds = load i64, ptr %nanoseconds_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanoseconds
  %until = load i64, ptr %deadline
  %is_first = icmp eq i64 %until, 0
  br i1 %is_first, label %begin_time, label %compare_time
begin_time:
  %latest = add i64 %now, PAUSE
  store i64 %latest, ptr %deadline
  br label %exchange
compare_time:
  %is_late = icmp sgt i64 %now, %until
  br i1 %is_late, label %leave, label %exchange
exchange:
  %x = phi i64 [0, %jump], [0, %begin_time], [0, %compare_time], [%x1, %exchanging]
  %unexchanged = icmp slt i64 %x, %pairs
  br i1 %unexchanged, label %exchanging, label %jumped
exchanging:
  %x2 = shl i64 %x, 1
  %pair_at = getelementptr i64, ptr %first_pair, i64 %x2
  %one = load i64, ptr %pair_at
  %other_at = getelementptr i64, ptr %pair_at, i64 1
  %other = load i64, ptr %other_at
  %one_base_at = getelementptr ptr, ptr %base_table, i64 %one
  %other_base_at = getelementptr ptr, ptr %base_table, i64 %other
  %one_base = load ptr, ptr %one_base_at
  %other_base = load ptr, ptr %other_base_at
  store ptr %other_base, ptr %one_base_at
  store ptr %one_base, ptr %other_base_at
  %x1 = add i64 %x, 1
  br label %exchange
jumped:
  br label %next

rebind:
  %bindings_at = getelementptr i64, ptr %step, i64 1
  %bindings = load i64, ptr %bindings_at
  %first_binding = getelementptr i64, ptr %step, i64 2
  br label %binding
binding:
  %b = phi i64 [0, %rebind], [%b1, %bind_one]
  %b3 = mul i64 %b, 3
  %binding_at = getelementptr i64, ptr %first_binding, i64 %b3
  %unbound = icmp slt i64 %b, %bindings
  br i1 %unbound, label %bind_one, label %all_bound
bind_one:
  %new_slot = load i64, ptr %binding_at
  %of_slot_at = getelementptr i64, ptr %binding_at, i64 1
  %of_slot = load i64, ptr %of_slot_at
  %of_base_at = getelementptr ptr, ptr %base_table, i64 %of_slot
  %of_base = load ptr, ptr %of_base_at
  %of_offset_at = getelementptr i64, ptr %binding_at, i64 2
  %of_offset = load i64, ptr %of_offset_at
  %new_base = getelementptr i8, ptr %of_base, i64 %of_offset
  %new_base_at = getelementptr ptr, ptr %base_table, i64 %new_slot
  store ptr %new_base, ptr %new_base_at
  %b1 = add i64 %b, 1
  br label %binding
all_bound:
  %b_words = add i64 %b3, 2
  %after_bind = add i64 %at, %b_words
  br label %next

stop:
  %where = sub i64 0, %at
  br label %leave
python:
  br label %leave
end:
  br label %leave
leave:
  %result = phi i64 [%where, %stop], [%at, %python], [0, %end], [%at, %compare_time]
  br i1 %has, label %unlimit, label %exit
unlimit:
  call void @tgraph_unlimit_blas(ptr %set)
  br label %exit
exit:
  ret i64 %result
}
"""

_COPY = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)

; Arguments: target, source. The range is in bytes.
define void @copy(ptr %args, i64 %lo, i64 %hi) {
entry:
  %target_base = load ptr, ptr %args
  %source_at = getelementptr ptr, ptr %args, i64 1
  %source_base = load ptr, ptr %source_at
  %same = icmp eq ptr %target_base, %source_base
  br i1 %same, label %done, label %move
move:
  %target = getelementptr i8, ptr %target_base, i64 %lo
  %source = getelementptr i8, ptr %source_base, i64 %lo
  %bytes = sub i64 %hi, %lo
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  br label %done
done:
  ret void
}

"""

# Arguments: a, b, c. Parameters: 0 function, 1-2 letters of a and b, 3 m, 4 n, 5 unused,
# 6-8 leading dimensions, 9 alpha, 10 beta, 11-12 rows and columns of a piece, 13-14 pieces along
# the rows and along the columns, 15-17 bytes in a, b and c from one piece to the next below, 18-20
# to the next on its right, 21 batch dimensions, then for each of them size and strides of a, b and
# c in bytes. m and n are those of the matrix as BLAS sees it, "leading dimensions" of vectors their
# steps. The range is in pieces, over all products of the batch. Each is one call of BLAS, whoever
# makes it: neighbours are never joined, as that may give other results.
_GEMV = """
define void @gemv(ptr %args, i64 %lo, i64 %hi) {
entry:
  %m_here = alloca i64
  %n_here = alloca i64
  %a_base = load ptr, ptr %args
  %b_at = getelementptr ptr, ptr %args, i64 1
  %b_base = load ptr, ptr %b_at
  %c_at = getelementptr ptr, ptr %args, i64 2
  %c_base = load ptr, ptr %c_at
  %p_at = getelementptr ptr, ptr %args, i64 3
  %p = load ptr, ptr %p_at
  %function = load ptr, ptr %p
  %letter_a = getelementptr i64, ptr %p, i64 1
  %letter_b = getelementptr i64, ptr %p, i64 2
  %m_at = getelementptr i64, ptr %p, i64 3
  %m = load i64, ptr %m_at
  %n_at = getelementptr i64, ptr %p, i64 4
  %n = load i64, ptr %n_at
  %k_at = getelementptr i64, ptr %p, i64 5
  %lda_at = getelementptr i64, ptr %p, i64 6
  %ldb_at = getelementptr i64, ptr %p, i64 7
  %ldc_at = getelementptr i64, ptr %p, i64 8
  %alpha_at = getelementptr i64, ptr %p, i64 9
  %beta_at = getelementptr i64, ptr %p, i64 10
  %height_at = getelementptr i64, ptr %p, i64 11
  %height = load i64, ptr %height_at
  %width_at = getelementptr i64, ptr %p, i64 12
  %width = load i64, ptr %width_at
  %down_at = getelementptr i64, ptr %p, i64 13
  %down_count = load i64, ptr %down_at
  %across_at = getelementptr i64, ptr %p, i64 14
  %across_count = load i64, ptr %across_at
  %pieces = mul i64 %down_count, %across_count
  %a_down_at = getelementptr i64, ptr %p, i64 15
  %a_down = load i64, ptr %a_down_at
  %b_down_at = getelementptr i64, ptr %p, i64 16
  %b_down = load i64, ptr %b_down_at
  %c_down_at = getelementptr i64, ptr %p, i64 17
  %c_down = load i64, ptr %c_down_at
  %a_across_at = getelementptr i64, ptr %p, i64 18
  %a_across = load i64, ptr %a_across_at
  %b_across_at = getelementptr i64, ptr %p, i64 19
  %b_across = load i64, ptr %b_across_at
  %c_across_at = getelementptr i64, ptr %p, i64 20
  %c_across = load i64, ptr %c_across_at
  %dims_at = getelementptr i64, ptr %p, i64 21
  %dims = load i64, ptr %dims_at
  %batch = getelementptr i64, ptr %p, i64 22
  br label %product
product:
  %unit = phi i64 [%lo, %entry], [%unit1, %call]
  %remains = icmp slt i64 %unit, %hi
  br i1 %remains, label %locate, label %exit
locate:
  %item = sdiv i64 %unit, %pieces
  %skipped = mul i64 %item, %pieces
  %piece = sub i64 %unit, %skipped
  %row = sdiv i64 %piece, %across_count
  %above = mul i64 %row, %across_count
  %column = sub i64 %piece, %above
  %a_in0 = mul i64 %row, %a_down
  %a_in1 = mul i64 %column, %a_across
  %a_in = add i64 %a_in0, %a_in1
  %b_in0 = mul i64 %row, %b_down
  %b_in1 = mul i64 %column, %b_across
  %b_in = add i64 %b_in0, %b_in1
  %c_in0 = mul i64 %row, %c_down
  %c_in1 = mul i64 %column, %c_across
  %c_in = add i64 %c_in0, %c_in1
  br label %dimension
dimension:
  %d = phi i64 [%dims, %locate], [%d1, %inner]
  %index = phi i64 [%item, %locate], [%quotient, %inner]
  %a_off = phi i64 [%a_in, %locate], [%a_off1, %inner]
  %b_off = phi i64 [%b_in, %locate], [%b_off1, %inner]
  %c_off = phi i64 [%c_in, %locate], [%c_off1, %inner]
  %some = icmp sgt i64 %d, 0
  br i1 %some, label %inner, label %call
inner:
  %d1 = sub i64 %d, 1
  %word = shl i64 %d1, 2
  %count_at = getelementptr i64, ptr %batch, i64 %word
  %count = load i64, ptr %count_at
  %stride_a_at = getelementptr i64, ptr %count_at, i64 1
  %stride_a = load i64, ptr %stride_a_at
  %stride_b_at = getelementptr i64, ptr %count_at, i64 2
  %stride_b = load i64, ptr %stride_b_at
  %stride_c_at = getelementptr i64, ptr %count_at, i64 3
  %stride_c = load i64, ptr %stride_c_at
  %quotient = sdiv i64 %index, %count
  %down = mul i64 %quotient, %count
  %rest = sub i64 %index, %down
  %a_move = mul i64 %rest, %stride_a
  %a_off1 = add i64 %a_off, %a_move
  %b_move = mul i64 %rest, %stride_b
  %b_off1 = add i64 %b_off, %b_move
  %c_move = mul i64 %rest, %stride_c
  %c_off1 = add i64 %c_off, %c_move
  br label %dimension
call:
  %first_row = mul i64 %row, %height
  %rows_left = sub i64 %m, %first_row
  %rows = call i64 @llvm.smin.i64(i64 %rows_left, i64 %height)
  store i64 %rows, ptr %m_here
  %first_column = mul i64 %column, %width
  %columns_left = sub i64 %n, %first_column
  %columns = call i64 @llvm.smin.i64(i64 %columns_left, i64 %width)
  store i64 %columns, ptr %n_here
  %a = getelementptr i8, ptr %a_base, i64 %a_off
  %b = getelementptr i8, ptr %b_base, i64 %b_off
  %c = getelementptr i8, ptr %c_base, i64 %c_off
  call void %function(ptr %letter_a, ptr %m_here, ptr %n_here, ptr %alpha_at,
                  ptr %a, ptr %lda_at, ptr %b, ptr %ldb_at, ptr %beta_at, ptr %c, ptr %ldc_at)
  %unit1 = add i64 %unit, 1
  br label %product
exit:
  ret void
}
"""
