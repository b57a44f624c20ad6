"""The native thread pool: generated code that runs a loop's ranges on several threads.

It is generated code of its own rather than an OpenMP runtime, for measured reasons. OpenMP's
workers spin for milliseconds after a loop, which made a loop followed by a matrix product on
OpenBLAS's own threads 40 times slower; its loops wait for every worker, also for one that sleeps,
and hang in the child of a fork; and slim images have no OpenMP runtime at all. Here whoever starts
a loop can finish it alone: sleeping, late or (after a fork) missing workers cost their help and
nothing else. Starting a loop costs about half a microsecond while the workers spin.
"""

from __future__ import annotations

import ctypes
import os
import platform
import time

from . import jit, thread_places

SPIN_SECONDS = 50e-6
"""How long a worker looks for the next loop before it sleeps; waking takes about as long."""


class ThreadPool:
    """The generated pool; one per process."""

    def __init__(self, threads: int) -> None:
        (module,) = jit.compile_modules([source()])
        number = ctypes.c_int64
        self.parallel_for = module.address("tgraph_parallel_for")
        self._reset = ctypes.CFUNCTYPE(None)(module.address("reset"))
        self._set_threads = ctypes.CFUNCTYPE(None, number)(module.address("set_threads"))
        self._set_spin = ctypes.CFUNCTYPE(None, number)(module.address("set_spin"))
        self._pause = ctypes.CFUNCTYPE(None, number)(module.address("pause"))
        self.workers = ctypes.CFUNCTYPE(number)(module.address("count_workers"))
        self._reset()
        self._set_spin(self._spins(SPIN_SECONDS))
        self._set_threads(threads)
        for name in ("tgraph_parallel_for", "tgraph_limit_blas", "tgraph_unlimit_blas"):
            jit.add_symbol(name, module.address(name))
        if hasattr(os, "register_at_fork"):
            # The child has no workers; they start again with its first loop.
            os.register_at_fork(after_in_child=self._reset)

    def set_threads(self, count: int) -> None:
        self._set_threads(count)

    def _spins(self, seconds: float) -> int:
        self._pause(100)
        start = time.perf_counter()
        self._pause(1000)
        return int(1000 * seconds / (time.perf_counter() - start)) + 1


def source() -> jit.Source:
    """The module of the pool, written as LLVM would leave it."""
    return jit.Source(_text(), opt=0, own=True)


def _text() -> str:
    pause = {
        "x86_64": "call void @llvm.x86.sse2.pause()",
        "AMD64": "call void @llvm.x86.sse2.pause()",
        "aarch64": 'call void asm sideeffect "yield", ""()',
        "arm64": 'call void asm sideeffect "yield", ""()',
    }.get(platform.machine(), 'call void asm sideeffect "", "~{memory}"()')
    threads = thread_places.text() + _POSIX_THREADS if thread_places.POSIX else _NO_THREADS
    return (threads + _POOL).replace("PAUSE", pause)


# A loop is published as one ticket per taking thread: generation (32 bits), end (16), next chunk
# (16). Whoever adds one to a ticket whose next < end owns that chunk. The job's description is
# read between loading the ticket and that exchange: had it been overwritten in between, the
# chunk would have been taken and the exchange fail.
_POOL = """
@tickets = internal global [16384 x i64] zeroinitializer, align 128
@generation = internal global i64 0, align 128
@done = internal global i64 0, align 128
@sleepers = internal global i64 0, align 128
@busy = internal global i64 0, align 128
@body = internal global ptr null, align 128
@context = internal global ptr null
@extent = internal global i64 0
@parts = internal global i64 0
@queues = internal global i64 1
@threads = internal global i64 1
@workers = internal global i64 0
@spin = internal global i64 1000
@limit_lock = internal global i64 0, align 128
@limit_users = internal global i64 0
@blas_threads = internal global i32 0
@mutex = internal global [32 x i64] zeroinitializer, align 128
@wake = internal global [32 x i64] zeroinitializer, align 128

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

define internal void @run_chunk(ptr %body, ptr %context, i64 %extent, i64 %parts, i64 %chunk) {
  %a = mul i64 %chunk, %extent
  %lo = udiv i64 %a, %parts
  %b = add i64 %a, %extent
  %hi = udiv i64 %b, %parts
  call void %body(ptr %context, i64 %lo, i64 %hi)
  ret void
}

; Take chunks, first of the own queue, then of the others, until none is left.
define internal void @work(i64 %self) {
entry:
  %queues = load atomic i64, ptr @queues monotonic, align 8
  br label %queue
queue:
  %tried = phi i64 [0, %entry], [%tried1, %next]
  %sum = add i64 %self, %tried
  %number = urem i64 %sum, %queues
  %place = shl i64 %number, 4
  %ticket = getelementptr i64, ptr @tickets, i64 %place
  br label %look
look:
  %seen = load atomic i64, ptr %ticket acquire, align 8
  %first = and i64 %seen, 65535
  %shifted = lshr i64 %seen, 16
  %end = and i64 %shifted, 65535
  %some = icmp ult i64 %first, %end
  br i1 %some, label %claim, label %next
claim:
  %body = load atomic ptr, ptr @body monotonic, align 8
  %context = load atomic ptr, ptr @context monotonic, align 8
  %extent = load atomic i64, ptr @extent monotonic, align 8
  %parts = load atomic i64, ptr @parts monotonic, align 8
  %taken = add i64 %seen, 1
  %pair = cmpxchg ptr %ticket, i64 %seen, i64 %taken acq_rel acquire
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %run, label %look
run:
  call void @run_chunk(ptr %body, ptr %context, i64 %extent, i64 %parts, i64 %first)
  %before = atomicrmw add ptr @done, i64 1 release
  br label %look
next:
  %tried1 = add i64 %tried, 1
  %more = icmp ult i64 %tried1, %queues
  br i1 %more, label %queue, label %exit
exit:
  ret void
}

define void @tgraph_parallel_for(ptr %body, ptr %context, i64 %extent, i64 %grain, i64 %split) {
entry:
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %least = call i64 @llvm.smax.i64(i64 %grain, i64 1)
  %possible = sdiv i64 %extent, %least
  %most = mul i64 %threads, %split
  %parts = call i64 @llvm.smin.i64(i64 %possible, i64 %most)
  %one = icmp eq i64 %threads, 1
  %few = icmp slt i64 %parts, 2
  %alone = or i1 %one, %few
  br i1 %alone, label %whole, label %share
whole:
  call void %body(ptr %context, i64 0, i64 %extent)
  ret void
share:
  %lock = cmpxchg ptr @busy, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %lock, 1
  br i1 %mine, label %publish, label %serial
serial:
  %c = phi i64 [0, %share], [%c1, %serial]
  call void @run_chunk(ptr %body, ptr %context, i64 %extent, i64 %parts, i64 %c)
  %c1 = add i64 %c, 1
  %left = icmp ult i64 %c1, %parts
  br i1 %left, label %serial, label %return
return:
  ret void
publish:
  call void @start_workers(i64 %threads)
  %queues = call i64 @llvm.smin.i64(i64 %parts, i64 %threads)
  store atomic ptr %body, ptr @body monotonic, align 8
  store atomic ptr %context, ptr @context monotonic, align 8
  store atomic i64 %extent, ptr @extent monotonic, align 8
  store atomic i64 %parts, ptr @parts monotonic, align 8
  store atomic i64 %queues, ptr @queues monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  %old = load atomic i64, ptr @generation monotonic, align 8
  %new = add i64 %old, 1
  %high = shl i64 %new, 32
  br label %fill
fill:
  %q = phi i64 [0, %publish], [%q1, %fill]
  %a = mul i64 %q, %parts
  %start = udiv i64 %a, %queues
  %b = add i64 %a, %parts
  %end = udiv i64 %b, %queues
  %middle = shl i64 %end, 16
  %low = or i64 %middle, %start
  %value = or i64 %high, %low
  %place = shl i64 %q, 4
  %ticket = getelementptr i64, ptr @tickets, i64 %place
  store atomic i64 %value, ptr %ticket release, align 8
  %q1 = add i64 %q, 1
  %unfilled = icmp ult i64 %q1, %queues
  br i1 %unfilled, label %fill, label %filled
filled:
  store atomic i64 %new, ptr @generation seq_cst, align 8
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %quiet = icmp eq i64 %asleep, 0
  br i1 %quiet, label %take, label %rouse
rouse:
  call void @wake_workers(i64 %threads)
  br label %take
take:
  call void @work(i64 0)
  br label %wait
wait:
  %spun = phi i64 [0, %take], [%spun1, %again]
  %finished = load atomic i64, ptr @done acquire, align 8
  %all = icmp eq i64 %finished, %parts
  br i1 %all, label %finish, label %relax
relax:
  PAUSE
  %spun1 = add i64 %spun, 1
  %patience = and i64 %spun1, 4095
  %tired = icmp eq i64 %patience, 0
  br i1 %tired, label %yield, label %again
yield:
  call void @yield_cpu()
  br label %again
again:
  br label %wait
finish:
  store atomic i64 0, ptr @busy release, align 8
  ret void
}

; Hold a BLAS to one thread until each caller has called the other function: the first notes how
; many threads it had, the last gives them back.
define void @tgraph_limit_blas(ptr %get, ptr %set) {
entry:
  call void @lock_limit()
  %users = load i64, ptr @limit_users
  %users1 = add i64 %users, 1
  store i64 %users1, ptr @limit_users
  %first = icmp eq i64 %users, 0
  br i1 %first, label %ask, label %unlock
ask:
  %had = call i32 %get()
  store i32 %had, ptr @blas_threads
  %several = icmp sgt i32 %had, 1
  br i1 %several, label %limit, label %unlock
limit:
  call void %set(i32 1)
  br label %unlock
unlock:
  store atomic i64 0, ptr @limit_lock release, align 8
  ret void
}
define void @tgraph_unlimit_blas(ptr %set) {
entry:
  call void @lock_limit()
  %users = load i64, ptr @limit_users
  %users1 = sub i64 %users, 1
  store i64 %users1, ptr @limit_users
  %last = icmp eq i64 %users1, 0
  br i1 %last, label %recall, label %unlock
recall:
  %had = load i32, ptr @blas_threads
  %several = icmp sgt i32 %had, 1
  br i1 %several, label %restore, label %unlock
restore:
  call void %set(i32 %had)
  br label %unlock
unlock:
  store atomic i64 0, ptr @limit_lock release, align 8
  ret void
}
define internal void @lock_limit() {
entry:
  br label %try
try:
  %pair = cmpxchg ptr @limit_lock, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %exit, label %wait
wait:
  call void @yield_cpu()
  br label %try
exit:
  ret void
}

define void @set_spin(i64 %count) {
  store atomic i64 %count, ptr @spin monotonic, align 8
  ret void
}
define i64 @count_workers() {
  %count = load atomic i64, ptr @workers monotonic, align 8
  ret i64 %count
}
define void @pause(i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  PAUSE
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""

_POSIX_THREADS = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()

define internal void @yield_cpu() {
  %ok = call i32 @sched_yield()
  ret void
}

define internal void @wake_workers(i64 %threads) {
  %a = call i32 @pthread_mutex_lock(ptr @mutex)
  call void @part_from_sleepers(i64 %threads)
  %b = call i32 @pthread_cond_broadcast(ptr @wake)
  %c = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

; As the only thread: at the start, and in the child of a fork.
define void @reset() {
  %a = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr @wake, ptr null)
  call void @forget_sleepers()
  store atomic i64 0, ptr @workers monotonic, align 8
  store atomic i64 0, ptr @sleepers monotonic, align 8
  store i64 0, ptr @limit_lock
  store i64 0, ptr @limit_users
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret void
}

; Sleeping workers look again whether they still belong to the team: none has to be moved for it.
define void @set_threads(i64 %count) {
  store atomic i64 %count, ptr @threads seq_cst, align 8
  call void @wake_workers(i64 0)
  ret void
}

; Called by the owner of @busy only. A thread that cannot be made is missing, nothing else.
define internal void @start_workers(i64 %threads) {
entry:
  %thread = alloca i64
  br label %check
check:
  %started = load atomic i64, ptr @workers monotonic, align 8
  %number = add i64 %started, 1
  %enough = icmp sge i64 %number, %threads
  br i1 %enough, label %exit, label %start
start:
  %argument = inttoptr i64 %number to ptr
  %code = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %exit, label %count
count:
  %id = load i64, ptr %thread
  %ok = call i32 @pthread_detach(i64 %id)
  store atomic i64 %number, ptr @workers monotonic, align 8
  br label %check
exit:
  ret void
}

define internal ptr @worker(ptr %argument) {
entry:
  %place = alloca %place
  %self = ptrtoint ptr %argument to i64
  br label %ready
ready:
  %last = phi i64 [0, %entry], [%now, %go], [%last, %rise]
  br label %look
look:
  %spun = phi i64 [0, %ready], [%spun1, %idle]
  %now = load atomic i64, ptr @generation acquire, align 8
  %fresh = icmp ne i64 %now, %last
  br i1 %fresh, label %member, label %idle
member:
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %inside = icmp slt i64 %self, %threads
  br i1 %inside, label %go, label %sleep
go:
  call void @work(i64 %self)
  br label %ready
idle:
  PAUSE
  %spun1 = add i64 %spun, 1
  %limit = load atomic i64, ptr @spin monotonic, align 8
  %patient = icmp slt i64 %spun1, %limit
  br i1 %patient, label %look, label %sleep
sleep:
  %a = call i32 @pthread_mutex_lock(ptr @mutex)
  %size = load atomic i64, ptr @threads seq_cst, align 8
  %in = icmp slt i64 %self, %size
  %counted = zext i1 %in to i64
  %before = atomicrmw add ptr @sleepers, i64 %counted seq_cst
  %newest = load atomic i64, ptr @generation seq_cst, align 8
  %missed = icmp ne i64 %newest, %last
  %stay = and i1 %missed, %in
  br i1 %stay, label %rise, label %wait
wait:
  call void @settle(i64 %self, ptr %place)
  %b = call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  call void @rise(i64 %self, ptr %place)
  br label %rise
rise:
  %after = atomicrmw sub ptr @sleepers, i64 %counted seq_cst
  %c = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %ready
}
"""

_NO_THREADS = """
define internal void @yield_cpu() {
  ret void
}
define internal void @wake_workers(i64 %threads) {
  ret void
}
define internal void @start_workers(i64 %threads) {
  ret void
}
define void @reset() {
  ret void
}
define void @set_threads(i64 %count) {
  ret void
}
"""
