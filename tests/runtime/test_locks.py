"""Locks of which any will do."""

from __future__ import annotations

import threading

from tgraph.runtime import locks

SECONDS = 60


def test_who_waits_takes_whichever_is_free_first() -> None:
    choice = [locks.fork_safe() for _ in range(2)]
    inside, leave = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        with locks.one_of(choice):
            inside.release()
            leave.wait(SECONDS)

    waiting = [threading.Thread(target=hold) for _ in range(2)]
    choice[1].acquire()  # the last one stays taken
    try:
        choice[0].acquire()
        for each in waiting:
            each.start()
        assert not inside.acquire(timeout=0.05)
        choice[0].release()
        assert inside.acquire(timeout=SECONDS)
    finally:
        choice[1].release()
    assert inside.acquire(timeout=SECONDS)
    leave.set()
    for each in waiting:
        each.join()
