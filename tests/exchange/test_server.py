"""What a server's program may decide and ask for, and the line that a mistake in it ends with."""

import numpy as np
import pytest

from fedmpi.algorithms.program import Offer, Request
from fedmpi.errors import RankFailed
from fedmpi.store.schema import Field
from tests.algorithms.programs import hooks_of, moves_of, round_of
from tests.refusals import refused

DELTAS = [[1.0, 9.0], [3.0, 9.0], [5.0, 9.0], None, [7.0, 9.0], None]
"""Of groups 0, 0, 0, 1, 2 and 2; the client of group 1, and the last, sat out."""


def deciding(decide, decides=(), asks=(), group=(0, 0, 0, 1, 2, 2), **settings):
    """Run a server's program of these clients."""
    declared = {"decides": frozenset(decides), "asks": frozenset(asks), "__module__": __name__}
    hooks = hooks_of(6, decide=decide, **declared)
    return round_of(hooks, DELTAS, group=group, **settings)


def asking(verb, *given):
    """Return a program that asks for this."""

    def decide(self, server):
        yield getattr(server, verb)(*given)

    return decide


def calling(verb, *given):
    """Return a program that decides this."""
    return lambda self, server: getattr(server, verb)(*given)


def idle(self, server):
    """Decide nothing."""


STEP = np.zeros(2)
ONE = np.ones(1, np.int64)
NOT_ONCE = "not every participant of one group is exactly once"
NO_GROUP = "they must be one of server.groups()"
YIELD = "yield what a verb returns, such as server.rows("


def yielding(value):
    """Return a program that yields this."""

    def decide(self, server):
        yield value

    return decide


@pytest.mark.parametrize(
    ("program", "declared", "words"),
    [
        (asking("rows", [0]), "means", 'asked for rows: `asks` must have "rows"'),
        (asking("means", [0]), "rows", 'asked for means: `asks` must have "means"'),
        (asking("rows", [0, 3]), "rows", "client 3: it took no part"),
        (asking("rows", [0, 6]), "rows", "client 6: it took no part"),
        (asking("means", [0, 1]), "means", "group 1: no client of it took part"),
        (yielding(Request("row", ONE)), "rows", "asked for 'row': yield what a verb"),
        (yielding(Request(None, ONE)), "rows", "asked for None: yield what a verb"),
        (yielding(Request("rows", ONE)), "means", 'asked for rows: `asks` must have "rows"'),
        (yielding(Request("rows", 9 * ONE)), "rows", "client 9: it took no part"),
        (yielding(Offer("count", 1)), "", YIELD),
        (lambda self, server: [1], "", "returned list: it returns nothing"),
        (calling("split", [[0, 1, 2]]), "moves", 'decided splits: `decides` must have "splits"'),
        (calling("split", [[0, 1], [1, 2]]), "splits moves", NOT_ONCE),
        (calling("split", [[0, 1, 2], []]), "splits moves", NOT_ONCE),
        (calling("split", [[0, 1, 2], [4]]), "splits moves", NOT_ONCE),
        (calling("split", [[4], [5]]), "splits moves", NOT_ONCE),
        (calling("weigh", [0, 1], [1, 1], 1.0), "weights", NO_GROUP),
        (calling("weigh", [0, 1, 2, 4], [1] * 4, 1.0), "weights", NO_GROUP),
        (calling("move", [0, 1, 2], STEP), "splits", 'decided moves: `decides` must have "moves"'),
        (calling("move", [0, 1], STEP), "splits moves", f"gave clients [0, 1]: {NO_GROUP}"),
        (calling("move", [4], STEP[:1]), "splits moves", "float64 [1]: it must be float64 [2]"),
        (calling("move", [4], STEP.astype("f4")), "splits moves", "float32 [2]: it must be float64 [2]"),
        (
            calling("move", [4], STEP),
            "splits moves",
            "moved no model of the group of client 0: call server.move for",
        ),
        (idle, "moves", "moved no model of the group of client 0: call server.move for"),
        (idle, "weights", "weighed nobody of the group of client 0: call server.weigh"),
        (idle, "mixes", "mixed nothing: call server.mix"),
        (calling("mix", np.eye(4)), "moves", 'decided mixes: `decides` must have "mixes"'),
        (calling("mix", np.eye(6)), "mixes", "float64 [6, 6]: it must be float64 [4, 4]"),
        (calling("regroup", [0] * 6), "splits", 'decided groups: `decides` must have "groups"'),
    ],
)
def test_each_mistake_of_a_servers_program_is_one_line_that_names_it(program, declared, words):
    asks = {"means", "rows"} & set(declared.split())
    with refused(words, RankFailed, f"^algorithm odd: hook decide in {__file__}"):
        deciding(program, set(declared.split()) - asks, asks)


def test_the_first_part_keeps_the_number_and_the_clients_that_sat_out():
    def decide(self, server):
        server.split([[2], [0], [1]])
        server.split([[4]])

    assert deciding(decide, {"splits"}).groups == [3, 4, 0, 1, 2, 2]


def test_a_new_part_has_a_number_below_that_of_clients():
    found = deciding(calling("split", [[0, 1], [2]]), {"splits"}, group=[0, 0, 0, 5, 5, 5]).groups
    assert found[:2] == [0, 0] and found[2] not in (0, 5) and found[2] < 6


def test_each_part_of_a_split_may_be_moved():
    """A vector that is used for all of them moves each by what it was then."""

    def decide(self, server):
        server.split([[0, 2], [1]])
        step = np.zeros(2)
        for members in server.groups():
            server.move(members, step)
            step += 1

    found = deciding(decide, {"splits", "moves"}).decided
    assert moves_of(found) == {0: ([0.0, 0.0], 2), 2: ([1.0, 1.0], 1), 3: ([2.0, 2.0], 1)}


def test_a_program_sees_the_parameters_and_the_domains_and_rows_of_all_elements_or_the_parameters():
    got = []

    def decide(self, server):
        got.append((server.trained, server.domains))
        for parameters in (False, True):
            found = yield server.rows([4, 0], parameters=parameters)
            assert found.dtype == np.float32
            got.append(found.tolist())

    deciding(decide, asks={"rows"}, trained=1, domains=tuple("aabbcc"))
    assert got == [(1, tuple("aabbcc")), [[1.0, 9.0], [7.0, 9.0]], [[1.0], [7.0]]]


def test_means_count_all_alike_or_by_training_examples():
    got = []

    def decide(self, server):
        for weighted in (False, True):
            found = yield server.means([0], weighted=weighted)
            got.append({group: mean.tolist() for group, mean in found.items()})

    deciding(decide, asks={"means"}, trained=1, samples=[6, 1, 1, 1, 1, 1])
    assert got == [{0: [3.0]}, {0: [1.75]}]


def test_mixing_returns_the_shares_of_each_row():
    got = []

    def decide(self, server):
        got.append(server.mix(np.array([[3.0, 1, 0, 0], [0, 2, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])))

    decided = deciding(decide, {"mixes"}).decided
    assert got[0].tolist() == [[0.75, 0.25, 0, 0], [0, 1, 0, 0], [0, 0.5, 0.5, 0], [0.25] * 4]
    assert np.array_equal(decided.mixed, got[0])


def test_what_a_program_changes_in_place_changes_nothing():
    """Of the server, and of an array that it recorded."""

    def decide(self, server):
        server.group[:] = 1
        server.participants[:] = 0
        values = np.zeros(())
        server.record("age", values)
        values += 1

    age = Field("age", ("round",), "f8", "1", "rounds since", "result")
    hooks = hooks_of(6, decide=decide, fields=lambda self, clients: (age,))
    found = round_of(hooks, DELTAS, group=[0, 0, 0, 1, 2, 2])
    assert found.plan.group.tolist() == [0, 0, 0, 1, 2, 2]
    assert found.decided.participants.tolist() == [0, 1, 2, 4]
    assert found.decided.recorded["age"] == 0
