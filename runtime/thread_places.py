"""Where sleeping workers of the thread pool wake: not on the CPU of the thread that wakes them.

Linux often wakes a thread where it last ran. Where that is the CPU of the caller, which goes on
running, worker and caller share it until the scheduler looks for balance, 10 to 20 ms later; all
that time a loop has one CPU. (The worker itself could leave, but it may not run for as long.) So a
caller withholds its own CPU from such workers while it wakes them, and they take it back when they
have risen. A loop that finds all workers awake does nothing of this.
"""

from __future__ import annotations

import os
import sys

POSIX = os.name == "posix"
"""Whether there are threads of POSIX, without which loops run on the calling thread."""


def text() -> str:
    """LLVM functions for the pool: `forget_sleepers`, `settle`, `part_from_sleepers`, `rise`."""
    return _LINUX if sys.platform == "linux" else _ELSEWHERE


# A sleeper has a place, on its own stack: its CPU, its thread, whether it was moved, and the mask
# that it got then. The masks are those of 8192 CPUs, the most that Linux has. Places are read and
# written under the pool's mutex.
_LINUX = """
%place = type { i64, i64, i1, [128 x i64] }
@places = internal global [1024 x ptr] zeroinitializer
@process = internal global i32 0

declare i32 @getpid()
declare i32 @sched_getcpu()
declare i64 @pthread_self()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.ctpop.i64(i64)

; Called as the only thread. The child of a fork that nobody told of it is known by its number: it
; must not reach for its parent's threads.
define internal void @forget_sleepers() {
  call void @llvm.memset.p0.i64(ptr @places, i8 0, i64 8192, i1 false)
  %process = call i32 @getpid()
  store i32 %process, ptr @process
  ret void
}

; Called by a worker before it sleeps.
define internal void @settle(i64 %worker, ptr %place) {
  %cpu32 = call i32 @sched_getcpu()
  %cpu = sext i32 %cpu32 to i64
  store i64 %cpu, ptr %place
  %thread = call i64 @pthread_self()
  %t = getelementptr %place, ptr %place, i64 0, i32 1
  store i64 %thread, ptr %t
  %m = getelementptr %place, ptr %place, i64 0, i32 2
  store i1 false, ptr %m
  %p = getelementptr ptr, ptr @places, i64 %worker
  store ptr %place, ptr %p
  ret void
}

; Called by who wakes: of the workers of the team, move those that sleep on this CPU.
define internal void @part_from_sleepers(i64 %threads) {
entry:
  %cpu32 = call i32 @sched_getcpu()
  %cpu = sext i32 %cpu32 to i64
  %known = icmp ult i64 %cpu, 8192
  %process = call i32 @getpid()
  %home = load i32, ptr @process
  %own = icmp eq i32 %process, %home
  %able = and i1 %known, %own
  br i1 %able, label %next, label %exit
next:
  %worker = phi i64 [0, %entry], [%worker1, %look], [%worker1, %near], [%worker1, %move]
  %worker1 = add i64 %worker, 1
  %inside = icmp slt i64 %worker1, %threads
  br i1 %inside, label %look, label %exit
look:
  %p = getelementptr ptr, ptr @places, i64 %worker1
  %place = load ptr, ptr %p
  %awake = icmp eq ptr %place, null
  br i1 %awake, label %next, label %near
near:
  %its = load i64, ptr %place
  %m = getelementptr %place, ptr %place, i64 0, i32 2
  %moved = load i1, ptr %m
  %here = icmp eq i64 %its, %cpu
  %stays = xor i1 %moved, true
  %wanted = and i1 %here, %stays
  br i1 %wanted, label %move, label %next
move:
  %done = call i1 @withhold(ptr %place, i64 %cpu, i64 %threads)
  store i1 %done, ptr %m
  br label %next
exit:
  ret void
}

; Whether a sleeper's mask was reduced by one CPU: not where the others are fewer than threads,
; since workers would meet there instead.
define internal i1 @withhold(ptr %place, i64 %cpu, i64 %threads) {
entry:
  %t = getelementptr %place, ptr %place, i64 0, i32 1
  %thread = load i64, ptr %t
  %mask = getelementptr %place, ptr %place, i64 0, i32 3
  %a = call i32 @pthread_getaffinity_np(i64 %thread, i64 1024, ptr %mask)
  %told = icmp eq i32 %a, 0
  br i1 %told, label %count, label %refuse
count:
  %i = phi i64 [0, %entry], [%i1, %count]
  %sum = phi i64 [0, %entry], [%sum1, %count]
  %p = getelementptr i64, ptr %mask, i64 %i
  %word = load i64, ptr %p
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %sum1 = add i64 %sum, %bits
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 128
  br i1 %more, label %count, label %counted
counted:
  %enough = icmp sge i64 %sum1, %threads
  br i1 %enough, label %reduce, label %refuse
reduce:
  %shift = and i64 %cpu, 63
  %bit = shl i64 1, %shift
  %number = lshr i64 %cpu, 6
  %its = getelementptr i64, ptr %mask, i64 %number
  %old = load i64, ptr %its
  %others = xor i64 %bit, -1
  %less = and i64 %old, %others
  store i64 %less, ptr %its
  %b = call i32 @pthread_setaffinity_np(i64 %thread, i64 1024, ptr %mask)
  %set = icmp eq i32 %b, 0
  ret i1 %set
refuse:
  ret i1 false
}

; Called by a worker when it has risen. Its mask is given back, unless somebody has set another
; since. First all CPUs are asked for: where that is what it had, it had no mask of its own, and
; the kernel will not take it for having one when the CPUs of the process change.
define internal void @rise(i64 %worker, ptr %place) {
entry:
  %p = getelementptr ptr, ptr @places, i64 %worker
  store ptr null, ptr %p
  %m = getelementptr %place, ptr %place, i64 0, i32 2
  %moved = load i1, ptr %m
  br i1 %moved, label %ask, label %exit
ask:
  %found = alloca [128 x i64]
  %t = getelementptr %place, ptr %place, i64 0, i32 1
  %thread = load i64, ptr %t
  %mask = getelementptr %place, ptr %place, i64 0, i32 3
  %a = call i32 @pthread_getaffinity_np(i64 %thread, i64 1024, ptr %found)
  %differs = call i32 @memcmp(ptr %mask, ptr %found, i64 1024)
  %mine = icmp eq i32 %differs, 0
  br i1 %mine, label %widen, label %exit
widen:
  %cpu = load i64, ptr %place
  %shift = and i64 %cpu, 63
  %bit = shl i64 1, %shift
  %number = lshr i64 %cpu, 6
  %its = getelementptr i64, ptr %mask, i64 %number
  %old = load i64, ptr %its
  %full = or i64 %old, %bit
  store i64 %full, ptr %its
  call void @llvm.memset.p0.i64(ptr %found, i8 -1, i64 1024, i1 false)
  %b = call i32 @pthread_setaffinity_np(i64 %thread, i64 1024, ptr %found)
  %c = call i32 @pthread_getaffinity_np(i64 %thread, i64 1024, ptr %found)
  %wider = call i32 @memcmp(ptr %mask, ptr %found, i64 1024)
  %free = icmp eq i32 %wider, 0
  br i1 %free, label %exit, label %restore
restore:
  %d = call i32 @pthread_setaffinity_np(i64 %thread, i64 1024, ptr %mask)
  br label %exit
exit:
  ret void
}
"""

_ELSEWHERE = """
%place = type { i64 }
define internal void @forget_sleepers() {
  ret void
}
define internal void @settle(i64 %worker, ptr %place) {
  ret void
}
define internal void @part_from_sleepers(i64 %threads) {
  ret void
}
define internal void @rise(i64 %worker, ptr %place) {
  ret void
}
"""
