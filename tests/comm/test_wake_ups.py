"""Ranks of one node wake each other: a wake-up is for a call, and none is needed for a wait to end."""

import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from fedmpi.comm.waiting import Partners, Waits
from fedmpi.comm.wake_ups import WakeUps

QUEUE = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())


def connected(count):
    """Return the wake-ups of so many ranks that know each other."""
    ranks = [WakeUps(rank) for rank in range(count)]
    addresses = {rank: wake_ups.open() for rank, wake_ups in enumerate(ranks)}
    heard = [set() for _ in ranks]

    def connect(rank):
        heard[rank] = ranks[rank].connect(addresses)

    threads = [threading.Thread(target=connect, args=[rank]) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank, wake_ups in enumerate(ranks):
        assert heard[rank] == set(range(count)) - {rank}
        wake_ups.keep(heard[rank])
    return ranks


def receive(wake_ups):
    """Take all wake-ups that have come."""
    while wake_ups.listen(0.0):
        pass


def wakes_later(wake_ups, seconds, happened=None):
    """Have a rank wake rank 0 for its next call after some seconds; return the thread."""

    def wake():
        time.sleep(seconds)
        if happened:
            happened.set()
        wake_ups.begin()
        wake_ups.wake([0])

    thread = threading.Thread(target=wake)
    thread.start()
    return thread


class Request:
    """A call that is done once something has happened."""

    def __init__(self, done):
        self.done, self.tests = done, 0

    def Test(self):
        self.tests += 1
        return self.done()


def test_a_call_is_due_when_all_have_rung_for_it():
    first, *others = connected(3)
    for wake_ups in (first, *others):
        wake_ups.begin()
    assert first.awaits([1, 2])
    others[0].wake([0])
    assert first.listen(1.0)
    assert first.awaits([1, 2]) and not first.awaits([1])
    others[1].wake([0])
    assert first.listen(1.0)
    assert not first.awaits([1, 2])


def test_an_early_ring_counts_for_its_call_and_a_late_one_not_for_the_next():
    first, second = connected(2)
    for _ in range(2):
        second.begin()
        second.wake([0])
    for _ in range(2):
        first.begin()
        assert not first.awaits([1])
    first.begin()
    assert first.awaits([1])


def test_a_rank_that_listens_sleeps_until_a_ring():
    first, second = connected(2)
    first.begin()
    start, used = time.perf_counter(), time.thread_time()
    thread = wakes_later(second, 0.2)
    assert first.listen(60.0)
    assert time.thread_time() - used < 0.05
    assert 0.15 < time.perf_counter() - start < 30
    thread.join()


def test_a_rank_that_hears_nothing_listens_no_longer_than_it_is_told():
    first, _ = connected(2)
    start = time.perf_counter()
    assert not first.listen(0.05)
    assert time.perf_counter() - start >= 0.04


def test_a_ring_that_finds_a_full_queue_is_sent_again():
    first, second = connected(2)
    for _ in range(4 * QUEUE):
        second.begin()
        second.wake([0])
    for _ in range(4 * QUEUE):
        first.begin()
    assert first.awaits([1])  # the first wake-ups are there, the last are not
    second.listen(0.01)  # while it waits itself, it wakes again
    receive(first)
    assert not first.awaits([1])


def test_rings_are_taken_also_where_a_rank_of_another_node_is_awaited():
    first, second = connected(2)
    for _ in range(4 * QUEUE):
        for wake_ups in (first, second):
            wake_ups.begin()
        second.wake([0])
        assert not first.awaits([1, 2])  # so that the wait looks at the call now and then
    receive(first)
    assert not first.awaits([1])
    first.wake([2])


def test_a_rank_that_has_ended_is_rung_no_more():
    first, second = connected(2)
    second._socket.close()
    first.begin()
    first.wake([1])
    assert not first.awaits([1])


def test_ranks_that_do_not_reach_each_other_do_not_wait_for_rings():
    wake_ups, strange = WakeUps(0), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    strange.bind("")
    others = {1: b"\0no such socket", 2: strange.getsockname(), 3: b""}
    assert wake_ups.connect({0: wake_ups.open(), **others}) == set()
    wake_ups.keep([])
    wake_ups.begin()
    assert not wake_ups.awaits([1]) and not wake_ups.awaits([2]) and not wake_ups.awaits([3])
    strange.close()


def test_without_sockets_there_are_no_wake_ups(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(socket, "socket", refused)
    wake_ups = WakeUps(0)
    assert wake_ups.open() == b""
    assert wake_ups.connect({0: b"", 1: b"\0other"}) == set()
    wake_ups.keep([])
    wake_ups.begin()
    wake_ups.wake([1])
    assert not wake_ups.awaits([1])


def test_many_ranks_find_each_other_though_their_queues_are_short():
    count = 4 * min(QUEUE, 20)
    for wake_ups in connected(count):
        wake_ups.begin()
        assert wake_ups.awaits(sorted(set(range(count)) - {wake_ups._rank}))


@pytest.mark.parametrize("message", [b"", b"x", b"\xff" * 8, b"\x01" * 4000, struct.pack("=q", 2**62)])
def test_what_no_rank_has_sent_is_no_ring(message):
    first, _ = connected(2)
    first.begin()
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    stranger.sendto(message, first._socket.getsockname())
    assert not first.listen(0.0)
    assert first.awaits([1])
    stranger.close()


def test_a_wait_looks_once_for_each_ring():
    first, second = connected(2)
    happened = threading.Event()
    thread = wakes_later(second, 0.25, happened)
    request = Request(happened.is_set)
    Waits(first).sleep(request, "plan", partners=Partners([1], []), crowded=True)
    thread.join()
    assert request.tests < 20  # three for each look: at the beginning, every 0.1 s, at the wake-up


def wait(wake_ups, seconds):
    """Wait for a call that is done after so many seconds; return how long that took."""
    start = time.perf_counter()
    request = Request(lambda: time.perf_counter() > start + seconds)
    Waits(wake_ups).sleep(request, partners=Partners([1], []), crowded=True)
    return time.perf_counter() - start


def test_a_wait_does_not_end_by_a_ring():
    first, second = connected(2)
    for _ in range(50):
        second.begin()
    second.wake([0])  # for a call long after the present one
    assert wait(first, 0.3) > 0.3


def test_a_wait_ends_without_a_ring_and_after_three_such_waits_none_is_expected():
    first, _ = connected(2)
    for _ in range(3):
        first.begin()
        assert first.awaits([1])
        assert wait(first, 0.05) > 0.05
    first.begin()
    assert not first.awaits([1])
