"""Many ranks of a core are forks of the node's first rank, and end as ranks of their own would."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fedmpi.comm import forked

RANKS = 6
"""On one core, so that they are many."""

RANK = """
import os, sys, time
from fedmpi.comm import forked, launch
forked.meet()
{before}
forked.fork_ranks(lambda: time.sleep(0.1))
rank, forked_by = launch.rank(), os.environ["OWN"]
print(rank, forked_by, os.getpid(), flush=True)
{act}
forked.leave(10 + rank)
"""


@pytest.fixture
def start():
    """Start the ranks of a node as a launcher does; return their processes."""
    started = []

    def starting(act="", before="", ranks=RANKS):
        program = [sys.executable, "-c", RANK.format(act=act, before=before)]
        for rank in range(ranks):
            names = {"PMI_RANK": rank, "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": ranks, "OWN": f"own{rank}"}
            environment = os.environ | {name: str(value) for name, value in names.items()}
            process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True)
            started.append(process)
        return started

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield starting
    os.sched_setaffinity(0, cores)
    for process in started:
        process.kill()
        process.communicate()


def said(process):
    """Return rank, own variable and pid that a rank said on its own standard output."""
    rank, own, pid = process.stdout.readline().split()
    return int(rank), own, int(pid)


def codes(processes):
    return [process.wait(timeout=60) for process in processes]


def gone(pid):
    """Return whether a process ends within some seconds; one that has ended but is not awaited has."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_forks_have_environment_output_and_exit_code_of_their_ranks(start):
    processes = start()
    found = [said(process) for process in processes]
    assert [(rank, own) for rank, own, _ in found] == [(rank, f"own{rank}") for rank in range(RANKS)]
    pids = [process.pid for process in processes]
    assert [pid == own for (_, _, pid), own in zip(found, pids, strict=True)] == [True] + 5 * [False]
    assert codes(processes) == [10, 11, 12, 13, 14, 15]


def test_ranks_with_cores_of_their_own_are_no_forks(start):
    processes = start(ranks=4)
    assert [said(process)[2] for process in processes] == [process.pid for process in processes]
    assert codes(processes) == [10, 11, 12, 13]


def test_what_counts_are_the_launchers_cores_not_those_that_a_rank_is_bound_to(monkeypatch):
    cores = os.sched_getaffinity(0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores if pid == os.getppid() else {0})
    monkeypatch.setenv("MPI_LOCALNRANKS", str(4 * len(cores)))
    assert not forked.are_many()
    monkeypatch.setenv("MPI_LOCALNRANKS", str(4 * len(cores) + 1))
    assert forked.are_many()


def test_ranks_whose_first_one_ends_before_it_forks_go_on_by_themselves(start):
    processes = start(before="if launch.rank() == 0: sys.exit(2)")
    assert [said(process)[2] for process in processes[1:]] == [process.pid for process in processes[1:]]
    assert codes(processes) == [2, 11, 12, 13, 14, 15]


def test_a_signal_to_a_proxy_reaches_its_fork(start):
    act = "import signal\nif rank == 3: signal.sigwait([signal.SIGUSR1]); print('came', flush=True)"
    processes = start(
        before="import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])", act=act
    )
    said(processes[3])
    processes[3].send_signal(signal.SIGUSR1)
    assert processes[3].stdout.readline() == "came\n"
    assert codes(processes) == [10, 11, 12, 13, 14, 15]


def test_a_proxy_ends_by_the_signal_that_ended_its_fork(start):
    processes = start(act="time.sleep(60 if rank == 2 else 0)")
    os.kill(said(processes[2])[2], signal.SIGKILL)
    assert codes(processes) == [10, 11, -signal.SIGKILL, 13, 14, 15]


def test_no_fork_outlives_its_proxy_or_the_keeper(start):
    processes = start(act="time.sleep(60)")
    pids = [said(process)[2] for process in processes]
    processes[1].kill()
    assert gone(pids[1])
    with open(f"/proc/{pids[2]}/stat") as file:
        keeper = int(file.read().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    assert all(gone(pid) for pid in pids[2:])
    assert codes(processes[2:]) == 4 * [-signal.SIGKILL]
