"""Struck in each case and resumed on other numbers of ranks, runs end with the bits of the undisturbed ones."""

import random
import tomllib
from itertools import cycle

import pytest

from fedmpi.store.reader import load_run
from tests.mpi.launcher import find
from tests.mpi.storm import PLUGINS, REAL_CLOCK, SUITE, Blow, Storm
from tests.saved import newest

ROUNDS = 8
METHODS = [
    Blow("attacked", 3, "one rank"),  # GCFL+
    Blow("ditto", 2, "all ranks"),
    Blow("nodes", 1, "launcher"),
    Blow("choco", 3, "one rank"),
    Blow("links", 2, "one rank", "TERM"),
    Blow("dropouts", 3, "everything"),  # secure sums
    Blow("gloo", 3, "one rank"),
]
EXCHANGE = [
    Blow("buffered", 2, "launcher"),  # with residuals, as the next
    Blow("late", 3, "everything"),
]
SAVING = [
    Blow("gcfl", 3, "1", moment="before"),  # rank 2's file may be there, rank 1's is not
    Blow("krum", 4, "2", moment="middle"),  # of its file
    Blow("fedcch", 3, "1", moment="after"),  # all files are there and rank 0 does not know
    Blow("feddyn", 2, "0", moment="between"),  # the two renames: the newest manifest has no name
]


@pytest.mark.long
@pytest.mark.usefixtures("forgetting")
@pytest.mark.parametrize("blows", [METHODS, EXCHANGE, SAVING], ids=["methods", "exchange", "saving"])
def test_kills_change_nothing(blows, fedmpi, tmp_path):
    """Each attempt completes the case before, is struck in its own, and the last ends on one rank."""
    storm = Storm(find("mpich"), tmp_path, [blow.case for blow in blows], rounds=ROUNDS)
    for blow in blows:
        storm.strike(blow)
        assert storm.problems == []
        struck = load_run(storm.out / blow.case)
        assert struck.rounds_completed < ROUNDS and len(struck.attempts) == 1
        assert blow not in SAVING or struck.status == "stale"
    storm.finish(1, fedmpi)
    assert storm.problems == []
    later = [*(blow.ranks for blow in blows[1:]), 1]
    for blow, ranks in zip(blows, later, strict=True):
        folder = storm.out / blow.case
        first, second = load_run(folder).attempts
        assert (first.ranks, second.ranks) == (blow.ranks, ranks)
        assert second.first_round > 0
        if blow in SAVING:
            assert second.first_round == 2
            assert newest(folder).meta.rounds == ROUNDS
            of_each = 2 + max(1, ranks - 1)  # manifest, server's file, those of ranks with clients
            assert len(list((folder / "checkpoints").iterdir())) == 2 * of_each


@pytest.mark.long
def test_a_run_that_is_killed_in_its_race_is_its_replay(fedmpi, tmp_path):
    storm = Storm(find("mpich"), tmp_path, ["real-buffered"], rounds=ROUNDS)
    storm.strike(Blow("real-buffered", 3, "one rank", moment="race"))
    assert not storm.raced("real-buffered")
    storm.finish(2, fedmpi)
    assert storm.problems == []


BLOWS = (
    ("KILL", "launcher"), ("KILL", "one rank"), ("KILL", "all ranks"), ("KILL", "everything"),
    ("TERM", "launcher"), ("TERM", "one rank"), ("INT", "launcher"), ("INT", "all ranks"),
    ("USR1", "launcher"), ("USR1", "one rank"),
)  # fmt: skip
"""Signals and whom they hit; half of all blows are SIGKILL."""

MOMENTS = ("loading", "round", "round", "round")
"""While an attempt holds the lock and has computed no round; after a random round."""

CHECKPOINTS = ("0.0", "0.3", "30.0")
"""Seconds between checkpoints: after each round, now and then, never by the clock."""

IN_A_STORM = 20


def pytest_generate_tests(metafunc):
    """Make as many storms as ``--kills N`` asks for; none without."""
    if "seed" in metafunc.fixturenames:
        kills = metafunc.config.getoption("--kills")
        metafunc.parametrize("seed", range(-(-kills // IN_A_STORM)))


@pytest.mark.usefixtures("forgetting")
def test_kills_at_random_moments_change_nothing(seed, fedmpi, tmp_path):
    """Under each MPI in turn, four cases that are killed again and again."""
    chance = random.Random(seed)
    cases = [row["label"] for row in tomllib.loads(SUITE.read_text())["matrix"]["case"]]
    chosen, seconds = chance.sample([*cases, *PLUGINS], 4), chance.choice(CHECKPOINTS)
    storm = Storm(find(("mpich", "openmpi")[seed % 2]), tmp_path, chosen, 60, seconds, chance)
    for number in range(IN_A_STORM):
        if case := storm.current():
            signal, victim = chance.choice(BLOWS)
            moment = chance.choice(MOMENTS if "rank" in victim else ("start-up", *MOMENTS))
            storm.strike(Blow(case, 1 + number % 4, victim, signal, moment))
    storm.finish(2, fedmpi)
    assert storm.problems == []


EXCHANGED = (
    "top-k", "powersgd", "ring", "choco", "buffered", "asynchronous", "late", *REAL_CLOCK,
)  # fmt: skip
"""Cases whose clients and server keep more than models between rounds, or whose order comes about."""


@pytest.mark.usefixtures("forgetting")
def test_kills_of_the_exchange_change_nothing(seed, fedmpi, tmp_path, capfd):
    """A third of the cases in each storm, all struck equally often; attempts have 1 to 4 ranks in turn."""

    def say(line):
        with capfd.disabled():
            print(line, flush=True)

    chance, cases = random.Random(seed), EXCHANGED[seed % 3 :: 3]
    mpi, seconds = find(("mpich", "openmpi")[seed % 2]), chance.choice(CHECKPOINTS)
    storm, ranks, kills = Storm(mpi, tmp_path, cases, 60, seconds, chance, say), cycle((1, 2, 3, 4)), 0
    for case in sorted(cases * -(-IN_A_STORM // len(cases)), key=cases.index):
        if not storm.complete(case):
            signal, victim = chance.choice(BLOWS)
            moments = MOMENTS if storm.raced(case) else ("race", "race", "loading", "round")
            number = next(each for each in ranks if each > 1 or storm.raced(case))
            storm.strike(Blow(case, number, victim, signal, chance.choice(moments)))
            kills += 1
    storm.finish(2, fedmpi)
    say(f"{mpi.name}, checkpoints after {seconds} s: {kills} kills, problems: {storm.problems or 'none'}")
    assert storm.problems == []
