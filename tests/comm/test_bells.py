"""Ranks of one node wake each other: rings are for a call, and none is needed for a wait to end."""

import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from fedmpi.comm.bells import Bells
from fedmpi.comm.waiting import Partners, Waits


def connected(count):
    """Return the bells of so many ranks that know each other."""
    all = [Bells(rank) for rank in range(count)]
    addresses = {rank: bells.address for rank, bells in enumerate(all)}
    for bells in all:
        bells.connect(addresses)
    for bells in all:
        bells.test()
    return all


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
    assert first.silent([1, 2])
    others[0].ring([0])
    assert first.silent([1, 2]) and not first.silent([1])
    others[1].ring([0])
    assert not first.silent([1, 2])


def test_a_ring_that_comes_early_is_kept_for_its_call_and_one_that_is_late_is_not_for_the_next():
    first, second = connected(2)
    for _ in range(2):
        second.begin()
        second.ring([0])
    for _ in range(2):
        first.begin()
        assert not first.silent([1])
    first.begin()
    assert first.silent([1])


def test_who_listens_sleeps_until_the_last_ring():
    first, *others = connected(3)
    first.begin()

    def ring():
        for bells in others:
            time.sleep(0.1)
            bells.begin()
            bells.ring([0])

    thread = threading.Thread(target=ring)
    start = time.perf_counter()
    thread.start()
    before = time.thread_time()
    assert first.listen([1, 2], 60)
    used = time.thread_time() - before
    thread.join()
    assert 0.15 < time.perf_counter() - start < 30
    assert used < 0.05


def test_who_hears_nothing_listens_no_longer_than_it_is_told():
    first, _ = connected(2)
    first.begin()
    start = time.perf_counter()
    assert not first.listen([1], 0.05)
    assert time.perf_counter() - start >= 0.04


def test_a_ring_that_finds_a_full_queue_is_sent_again():
    first, second = connected(2)
    rings = 4 * int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
    for _ in range(rings):
        second.begin()
        second.ring([0])
        first.begin()
    assert first.silent([1])  # the first ones are there
    second.begin()
    assert not second.listen([0], 0.01)  # while it waits itself, it rings again
    assert not first.silent([1])


def test_ranks_of_other_nodes_cannot_ring():
    first, _ = connected(2)
    first.begin()
    assert not first.silent([1, 2])  # so that the wait looks at the call instead
    first.ring([2])


def test_a_rank_that_has_ended_is_rung_no_more():
    first, second = connected(2)
    second._socket.close()
    first.begin()
    first.ring([1])
    assert not first.silent([1])


def test_bells_that_do_not_reach_each_other_are_given_up():
    bells = Bells(0)
    bells.connect({0: bells.address, 1: b"\0no such bell"})
    bells.test()
    bells.begin()
    assert not bells.silent([1])


def test_without_sockets_there_are_no_bells(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(socket, "socket", refused)
    bells = Bells(0)
    assert bells.address == b""
    bells.connect({0: b"", 1: b"\0other"})
    bells.test()
    bells.begin()
    bells.ring([1])
    assert not bells.silent([1])


@pytest.mark.parametrize("message", [b"", b"x", b"\xff" * 16, b"\x01" * 4000, struct.pack("=qq", 7, 2**62)])
def test_what_no_rank_has_sent_is_no_ring(message):
    first, _ = connected(2)
    first.begin()
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    stranger.sendto(message, first.address)
    assert first.silent([1])
    stranger.close()


def test_a_wait_looks_once_when_it_has_been_rung():
    first, second = connected(2)
    happened = threading.Event()

    def send():
        time.sleep(0.2)
        happened.set()
        second.begin()
        second.ring([0])

    thread = threading.Thread(target=send)
    thread.start()
    request = Request(happened.is_set)
    Waits(first).sleep(request, "plan", partners=Partners([1], []), crowded=True)
    thread.join()
    assert request.tests < 20  # three for each look: at the beginning, after 0.1 s, at the ring


def test_a_wait_ends_without_a_ring_and_in_spite_of_a_false_one():
    first, second = connected(2)
    for _ in range(50):
        second.begin()
    second.ring([0])  # for a call long after the present one
    until = time.perf_counter() + 0.3
    Waits(first).sleep(Request(lambda: time.perf_counter() > until), partners=Partners([1], []), crowded=True)
    assert time.perf_counter() > until
    first, _ = connected(2)
    until = time.perf_counter() + 0.3
    Waits(first).sleep(Request(lambda: time.perf_counter() > until), partners=Partners([1], []), crowded=True)
    assert until < time.perf_counter() < until + 5
