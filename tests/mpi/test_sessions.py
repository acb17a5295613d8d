"""One launch per MPI and number of ranks; the results of all of them are the same bits."""

import time

import numpy as np
import pytest

from fedmpi.comm.seals import SEAL
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find
from tests.mpi.session import SUITE, covered, interrupted

LIMIT_S = 300


@pytest.mark.parametrize(
    ("name", "ranks"),
    [*(("mpich", ranks) for ranks in (1, 2, 3, 4)), *(("openmpi", ranks) for ranks in (1, 2, 4))],
)
def test_session(name, ranks, alone, tmp_path, fedmpi):
    mpi = find(name)
    session = SUITE.with_name("session.py")
    code, output = mpi.run(ranks, session, tmp_path, name, cwd=tmp_path, timeout=LIMIT_S)
    ended = time.time()
    assert (tmp_path / "checks-passed").exists(), output[-6000:]
    for case in covered(name, ranks):
        assert differences(alone / case, tmp_path / "runs" / case) == []
    for case in ("labels", "numbers"):
        assert differences(alone / case, tmp_path / "resumed" / case) == []
    if name == "mpich":
        assert differences(alone / "compressed" / "sampled", tmp_path / "compressed" / "sampled") == []
    check_bytes(load_run(tmp_path / "runs" / "fedavg"), ranks)
    check_bytes(load_run(tmp_path / "runs" / "q-fedavg"), ranks, weighted=True)
    check_rows(load_run(tmp_path / "runs" / "median"), ranks)
    if "fedgta" in covered(name, ranks):
        check_models(load_run(tmp_path / "runs" / "fedgta"), ranks)
    check_outcomes(load_run(tmp_path / "runs" / "fedavg"))
    check_phases(load_run(tmp_path / "runs" / "gcfl"))
    check_resumed_elsewhere(fedmpi, alone, tmp_path, interrupted(name, ranks))
    # The last act of the session: one rank raises in a round.
    assert code != 0
    assert "RuntimeError: raised on purpose" in output
    assert f"rank {ranks - 1} failed" in output
    assert ended - (tmp_path / "raises-now").stat().st_mtime < 20
    raised = load_run(tmp_path / "raised" / "fedavg")
    assert raised.status == "failed"
    assert raised.reason.endswith("RuntimeError: raised on purpose")


def check_phases(run):
    """What only rank 0 does is on other ranks a wait, in which no watchdog takes them for asleep."""
    for attempt in run.attempts:
        others = attempt.measurements["phase_seconds"][:, 1:]
        assert not others[..., attempt.phases.index("server")].any()


def tables(run, ranks, weighted=False, flags=None):
    """Return the bytes of both tables that each rank sends in a round.

    `flags` are those of each client beside numbers: by default one for each test graph.
    """
    (attempt,) = run.attempts
    columns, closing, phases, names = 11 + weighted, 8, 6, 6
    hosted = np.bincount(attempt.provenance["rank_of_client"], minlength=ranks)
    header = phases + 3 * names + 5
    header += (1 + phases) * ("host_joules" in attempt.measurements)  # a machine whose counters may be read
    flags = np.diff(run.partition["test_ptr"]) if flags is None else flags
    tested = np.bincount(attempt.provenance["rank_of_client"], flags, ranks)
    return 8 * (2 + columns * hosted) + 8 * (header + closing * hosted) + tested.astype(int) + 2 * SEAL


def check_rows(run, ranks):
    """Of algorithms that take rows the participants' updates travel once; of a checkpoint, one digest a rank."""
    (attempt,) = run.attempts
    host, model, digest = np.array(attempt.provenance["rank_of_client"]), 24_960, 32
    took_part = run.results["participated"].astype(bool)
    sent = np.array([np.bincount(host[row], minlength=ranks) for row in took_part])
    word = np.array([[0], [1], [1], [1]]) * (digest + SEAL)  # in the row of the round after
    expected = tables(run, ranks) + 4 * model * sent + SEAL + word
    place = attempt.collectives.index("Gatherv")
    assert np.array_equal(attempt.measurements["collective_bytes"][:, :, place], expected)
    assert (attempt.measurements["collective_calls"][:, :, place] == [[3], [4], [4], [4]]).all()


def check_models(run, ranks):
    """Of algorithms with a model for each client, a participant's travels to rank 0, its next one back.

    FedGTA's clients also report 11 moments of each of 4 classes and a number, all float32; of held-out nodes
    their predicted classes travel, two bytes each.
    """
    (attempt,) = run.attempts
    host, model, reported = np.array(attempt.provenance["rank_of_client"]), 29_764, 4 * (1 + 11 * 4)
    took_part = run.results["participated"].astype(bool)
    assert (run.results["client_bytes_up"] == took_part * (4 * model + reported)).all()
    assert (run.results["client_bytes_down"] == took_part * 4 * model).all()
    sent = np.array([np.bincount(host[row], minlength=ranks) for row in took_part])
    held_out = sum(np.diff(run.partition[f"{part}_ptr"]) for part in ("val", "test"))
    expected = {
        "Gatherv": tables(run, ranks, flags=2 * held_out + reported) + 4 * model * sent + SEAL,
        "Scatterv": (ranks > 2) * 4 * model * sent,  # else rank 1 gets all, in a Bcast
    }
    for name, payload in expected.items():
        place = attempt.collectives.index(name)
        assert np.array_equal(attempt.measurements["collective_bytes"][:, :, place], payload), name


def check_bytes(run, ranks, weighted=False):
    """The recorded payloads are those of the messages, computed here from sizes alone.

    With weights from losses a client reports one loss more, and the plan has two numbers more per client.
    """
    (attempt,) = run.attempts
    clients, hosted = 5, np.zeros(ranks, int)
    gathered = tables(run, ranks, weighted)
    plan = 8 * ((5 if weighted else 3) * clients + 5)
    spans = ranks > 2
    model = 24_960
    rounds = np.arange(4)[:, None]
    expected = {
        # The first row also holds the broadcast of the initial model.
        "Bcast": plan + spans * 4 * model + np.where(rounds == 0, 4 * model, 0) + 0 * hosted,
        "Gatherv": gathered + 0 * rounds,
        "Reduce": spans * 8 * model + 0 * hosted + 0 * rounds,
        "Scatterv": 0 * hosted + 0 * rounds,
        "Ibarrier": 0 * hosted + 0 * rounds,
        "Alltoallv": 0 * hosted + 0 * rounds,
    }
    once = 1 + spans + (rounds == 0)
    calls = {"Bcast": once, "Gatherv": 2, "Reduce": spans, "Scatterv": 0, "Ibarrier": 0, "Alltoallv": 0}
    for place, name in enumerate(attempt.collectives):
        assert (attempt.measurements["collective_calls"][:, :, place] == calls[name]).all(), name
        assert np.array_equal(attempt.measurements["collective_bytes"][:, :, place], expected[name]), name


def check_outcomes(run):
    """The recorded outcomes of single test graphs add up to each client's recorded accuracy."""
    pointers = run.partition["test_ptr"]
    right = np.add.reduceat(run.results["test_correct"].astype(int), pointers[:-1], axis=1)
    assert np.array_equal(right / np.diff(pointers), run.results["test_accuracy"])


def check_resumed_elsewhere(fedmpi, alone, folder, cases):
    """The runs that the session interrupted go on here, on one rank, to the same end."""
    for case in cases:
        stopped = load_run(folder / f"interrupted-{case}" / case)
        assert (stopped.status, stopped.rounds_completed) == ("interrupted", 2)
        assert fedmpi("run", "--resume", folder / f"interrupted-{case}" / case).returncode == 0
        assert differences(alone / case, folder / f"interrupted-{case}" / case) == []
