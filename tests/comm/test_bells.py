"""Ranks of one node wake each other: rings are for a call, and none is needed for a wait to end."""

import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from fedmpi.comm.bells import Bells
from fedmpi.comm.waiting import Partners, Waits

QUEUE = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())


def connected(count):
    """Return the bells of so many ranks that know each other."""
    ranks = [Bells(rank) for rank in range(count)]
    addresses = {rank: bells.open() for rank, bells in enumerate(ranks)}
    heard = [set() for _ in ranks]

    def connect(rank):
        heard[rank] = ranks[rank].connect(addresses)

    threads = [threading.Thread(target=connect, args=[rank]) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank, bells in enumerate(ranks):
        assert heard[rank] == set(range(count)) - {rank}
        bells.keep(heard[rank])
    return ranks


def receive(bells):
    """Take all rings that have come."""
    while bells.listen(0.0):
        pass


class Request:
    """A call that is done once something has happened."""

    def __init__(self, done):
        self.done, self.tests = done, 0

    def Test(self):
        self.tests += 1
        return self.done()


def test_a_call_is_due_when_all_have_rung_for_it():
    first, *others = connected(3)
    for bells in (first, *others):
        bells.begin()
    assert first.awaits_ring([1, 2])
    others[0].ring([0])
    assert first.listen(1.0)
    assert first.awaits_ring([1, 2]) and not first.awaits_ring([1])
    others[1].ring([0])
    assert first.listen(1.0)
    assert not first.awaits_ring([1, 2])


def test_an_early_ring_counts_for_its_call_and_a_late_one_not_for_the_next():
    first, second = connected(2)
    for _ in range(2):
        second.begin()
        second.ring([0])
    for _ in range(2):
        first.begin()
        assert not first.awaits_ring([1])
    first.begin()
    assert first.awaits_ring([1])


def test_a_rank_that_listens_sleeps_until_a_ring():
    first, second = connected(2)
    first.begin()

    def ring():
        time.sleep(0.2)
        second.begin()
        second.ring([0])

    thread = threading.Thread(target=ring)
    start, used = time.perf_counter(), time.thread_time()
    thread.start()
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
        second.ring([0])
    for _ in range(4 * QUEUE):
        first.begin()
    assert first.awaits_ring([1])  # the first rings are there, the last are not
    second.listen(0.01)  # while it waits itself, it rings again
    receive(first)
    assert not first.awaits_ring([1])


def test_rings_are_taken_also_where_a_rank_of_another_node_is_awaited():
    first, second = connected(2)
    for _ in range(4 * QUEUE):
        for bells in (first, second):
            bells.begin()
        second.ring([0])
        assert not first.awaits_ring([1, 2])  # so that the wait looks at the call now and then
    receive(first)
    assert not first.awaits_ring([1])
    first.ring([2])


def test_a_rank_that_has_ended_is_rung_no_more():
    first, second = connected(2)
    second._socket.close()
    first.begin()
    first.ring([1])
    assert not first.awaits_ring([1])


def test_ranks_that_do_not_reach_each_other_do_not_wait_for_rings():
    bells, strange = Bells(0), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    strange.bind("")
    assert bells.connect({0: bells.open(), 1: b"\0no such bell", 2: strange.getsockname(), 3: b""}) == set()
    bells.keep([])
    bells.begin()
    assert not bells.awaits_ring([1]) and not bells.awaits_ring([2]) and not bells.awaits_ring([3])
    strange.close()


def test_without_sockets_there_are_no_bells(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(socket, "socket", refused)
    bells = Bells(0)
    assert bells.open() == b""
    assert bells.connect({0: b"", 1: b"\0other"}) == set()
    bells.keep([])
    bells.begin()
    bells.ring([1])
    assert not bells.awaits_ring([1])


def test_many_ranks_find_each_other_though_their_queues_are_short():
    count = 4 * min(QUEUE, 20)
    for bells in connected(count):
        bells.begin()
        assert bells.awaits_ring(sorted(set(range(count)) - {bells._rank}))


@pytest.mark.parametrize("message", [b"", b"x", b"\xff" * 8, b"\x01" * 4000, struct.pack("=q", 2**62)])
def test_what_no_rank_has_sent_is_no_ring(message):
    first, _ = connected(2)
    first.begin()
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    stranger.sendto(message, first._socket.getsockname())
    assert not first.listen(0.0)
    assert first.awaits_ring([1])
    stranger.close()


def test_a_wait_looks_once_for_each_ring():
    first, second = connected(2)
    happened = threading.Event()

    def send():
        time.sleep(0.25)
        happened.set()
        second.begin()
        second.ring([0])

    thread = threading.Thread(target=send)
    thread.start()
    request = Request(happened.is_set)
    Waits(first).sleep(request, "plan", partners=Partners([1], []), crowded=True)
    thread.join()
    assert request.tests < 20  # three for each look: at the beginning, every 0.1 s, at the ring


def wait(bells, seconds):
    """Wait for a call that is done after so many seconds; return how long that took."""
    start = time.perf_counter()
    request = Request(lambda: time.perf_counter() > start + seconds)
    Waits(bells).sleep(request, partners=Partners([1], []), crowded=True)
    return time.perf_counter() - start


def test_a_wait_does_not_end_by_a_ring():
    first, second = connected(2)
    for _ in range(50):
        second.begin()
    second.ring([0])  # for a call long after the present one
    assert wait(first, 0.3) > 0.3


def test_a_wait_ends_without_a_ring_and_after_three_such_waits_none_is_expected():
    first, _ = connected(2)
    for _ in range(3):
        first.begin()
        assert first.awaits_ring([1])
        assert wait(first, 0.05) > 0.05
    first.begin()
    assert not first.awaits_ring([1])
