"""A session for each MPI and number of ranks; the results of all of them are the same bits."""

import time

import numpy as np
import pytest

from fedmpi.comm.seals import SEAL
from fedmpi.comm.world import World
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find
from tests.mpi.session import COMPOSED, SUITE, covered, interrupted, raise_on_purpose
from tests.mpi.storm import PLUGINS
from tests.plugins import forget

LIMIT_S = 600


def test_session_of_one_rank_in_this_process(alone, fedmpi):
    assert {load_run(alone / "runs" / case).status for case in covered("mpich", 1)} == {"complete"}
    check_session(alone, alone, "mpich", 1, fedmpi)
    for case in ("gin-labels", "compiled-parts"):
        assert differences(alone / "runs" / case, alone / "resumed" / case) == []
    with pytest.raises(RuntimeError, match="raised on purpose"):
        raise_on_purpose(World(), alone)
    check_raised(alone)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("mpich", 2),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("mpich", 3), ("openmpi", 4), ("openmpi", 2))
        ),
    ],
)
def test_session(name, ranks, alone, tmp_path, fedmpi):
    session = SUITE.with_name("session.py")
    code, output = find(name).run(ranks, session, tmp_path, name, cwd=tmp_path, timeout=LIMIT_S)
    ended = time.time()
    assert (tmp_path / "checks-passed").exists(), output[-6000:]
    for case in covered(name, ranks):
        assert differences(alone / "runs" / case, tmp_path / "runs" / case) == []
    if name == "mpich":
        for case in ("resumed/labels", "resumed/numbers", "resumed/gin-labels", "resumed/compiled-parts"):
            assert differences(alone / case, tmp_path / case) == []
    check_session(alone, tmp_path, name, ranks, fedmpi)
    if (name, ranks) == ("mpich", 3):
        check_composed(tmp_path / "composed", fedmpi)
        check_plugins(tmp_path, fedmpi)
    # The last act of the session: one rank raises in a round.
    assert code != 0
    assert "RuntimeError: raised on purpose" in output
    assert f"rank {ranks - 1} failed" in output
    assert ended - (tmp_path / "raises-now").stat().st_mtime < 20
    check_raised(tmp_path)


def check_session(alone, folder, name, ranks, fedmpi):
    """The records of a session are in order, and what it interrupted goes on."""
    runs = folder / "runs"
    check_bytes(load_run(runs / "fedavg"), ranks)
    check_bytes(load_run(runs / "q-fedavg"), ranks, weighted=True)
    check_rows(load_run(runs / "median"), ranks)
    if "ring" in covered(name, ranks):
        check_neighbours(load_run(runs / "ring"), ranks)
    if "fedgta" in covered(name, ranks):
        check_models(load_run(runs / "fedgta"), ranks)
    if "fedfomo" in covered(name, ranks):
        check_personal(load_run(runs / "fedfomo"), ranks)
    check_outcomes(load_run(runs / "fedavg"))
    check_phases(load_run(runs / "gcfl"))
    check_resumed_elsewhere(fedmpi, alone, folder, interrupted(name, ranks))


def check_raised(folder):
    raised = load_run(folder / "raised" / "fedavg")
    assert raised.status == "failed"
    assert raised.reason.endswith("RuntimeError: raised on purpose")


def check_composed(folder, fedmpi):
    """Methods put together by inheritance compute the same here, on one rank, and each something of its own."""
    suite, out = COMPOSED.with_suffix(".toml"), folder.with_name("composed-alone")
    assert fedmpi("run", suite, "--plugin", COMPOSED, "--out", out).returncode == 0
    forget("composed")
    runs = {path.name: load_run(path) for path in out.iterdir() if path.is_dir()}
    assert len(runs) == 6
    for name in runs:
        assert differences(out / name, folder / name) == []
    assert len(set(runs["ditto-gcfl"].results["group"][-1].tolist())) > 1
    assert len({run.results["parameter_digest"].tobytes() for run in runs.values()}) == len(runs)
    assert np.isfinite(runs["proto-means"].results["test_accuracy"]).all()


def check_plugins(folder, fedmpi):
    """What the session interrupted of the algorithms of docs/extend.md goes on here, on one rank, to its end."""
    words = [word for name in PLUGINS for word in ("--plugin", folder / f"{name}.py")]
    assert fedmpi("run", folder / "plugins.toml", *words, "--out", folder / "plugins").returncode == 0
    for name in PLUGINS:
        stopped = folder / f"interrupted-{name}" / name
        assert load_run(stopped).rounds_completed == 2
        assert fedmpi("run", "--resume", stopped, *words).returncode == 0
        assert differences(folder / "plugins" / name, stopped) == []
        forget(name)


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
    columns, closing, phases, names = 11 + weighted, 8, 6, 7
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


def check_personal(run, ranks):
    """What each client is told apart, three models and their clients' numbers, goes to the rank that hosts it."""
    (attempt,) = run.attempts
    hosted, told = np.bincount(attempt.provenance["rank_of_client"], minlength=ranks), 4 * 3 * (30_338 + 1)
    place = attempt.collectives.index("Scatterv")
    assert (attempt.measurements["collective_bytes"][:, :, place] == told * hosted).all()
    assert (attempt.measurements["collective_calls"][:, :, place] == 2).all()
    assert (run.results["client_bytes_down"] == run.results["participated"].astype(bool) * told).all()


def check_neighbours(run, ranks):
    """On a ring a model goes once to each other rank that hosts a neighbour; clients count both neighbours."""
    (attempt,) = run.attempts
    host, model, clients = attempt.provenance["rank_of_client"], 24_960, range(5)
    pairs = {(i, host[(i + step) % 5]) for i in clients for step in (1, 4) if host[i] != host[(i + step) % 5]}
    sent = np.bincount([host[i] for i, _ in pairs], minlength=ranks)
    place = attempt.collectives.index("Neighbor_alltoallv")
    assert (attempt.measurements["collective_bytes"][:, :, place] == 4 * model * sent).all()
    assert (attempt.measurements["collective_calls"][:, :, place] == (len(pairs) > 0)).all()
    for way in ("up", "down"):
        assert (run.results[f"client_bytes_{way}"] == 2 * 4 * model).all()


def check_bytes(run, ranks, weighted=False):
    """The recorded payloads are those of the messages, computed here from sizes alone.

    With weights from losses a client reports one loss more, and the plan has two numbers more per client.
    """
    (attempt,) = run.attempts
    clients, hosted = 5, np.zeros(ranks, int)
    gathered = tables(run, ranks, weighted)
    plan = 8 * ((5 if weighted else 3) * clients + 6)
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
        "Neighbor_alltoallv": 0 * hosted + 0 * rounds,
    }
    once = 1 + spans + (rounds == 0)
    calls = {"Bcast": once, "Gatherv": 2, "Reduce": spans}
    for place, name in enumerate(attempt.collectives):
        assert (attempt.measurements["collective_calls"][:, :, place] == calls.get(name, 0)).all(), name
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
        assert differences(alone / "runs" / case, folder / f"interrupted-{case}" / case) == []
