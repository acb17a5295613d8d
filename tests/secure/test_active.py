"""A server that deviates from the protocol: what it gets from careless clients, and that careful ones stop."""

import numpy as np
import pytest

from fedmpi.comm.collectives import Collectives
from fedmpi.comm.world import World
from fedmpi.errors import RankFailed
from fedmpi.exchange.aggregation import Groups
from fedmpi.exchange.key_ring import KeyRing
from fedmpi.exchange.masked import Masked
from fedmpi.secure import shamir
from fedmpi.secure.active import CautiousClient, statement
from fedmpi.secure.keys import SigningKey, Tampered
from fedmpi.secure.protocols import LightSecAgg, SecAgg
from fedmpi.secure.roster import Refused, Roster, TooFew
from fedmpi.store.reader import load_run
from tests.secure.sums import Setting, meter_of

MEMBERS, VICTIM = range(7), 3
EVERYBODY, WITHOUT_VICTIM = list(MEMBERS), [n for n in MEMBERS if n != VICTIM]


def cautious(protocol):
    """Return careful clients after their uploads."""
    setting = Setting.of(protocol, MEMBERS, 5)
    signing = {n: SigningKey() for n in MEMBERS}
    known = {n: key.public for n, key in signing.items()}
    inner = setting.after_upload()
    return {n: CautiousClient(inner[n], n, setting.roster, signing[n], known) for n in inner}


def shares_of_the_victim(roster, answers):
    """Return the shares of the victim's two secrets that SecAgg's answers hold, by kind and place."""
    kinds = {"own": {}, "vault": {}}
    for number, (kind, answer) in answers.items():
        at = shamir.SHARE_BYTES * roster.circle(number).index(VICTIM)
        kinds[kind][roster.place(number)] = answer[at : at + shamir.SHARE_BYTES]
    return kinds


def test_two_lists_give_a_server_both_secrets_of_a_client_below_the_careful_threshold():
    """Why the variant exists: three of seven answer each list, and nobody compares."""
    setting = Setting.of("secagg", MEMBERS, 3)
    clients = setting.after_upload()
    answers = {n: ("own", clients[n].answer(EVERYBODY)) for n in (0, 1, 2)}
    answers |= {n: ("vault", clients[n].answer(WITHOUT_VICTIM)) for n in (4, 5, 6)}
    shares = shares_of_the_victim(setting.roster, answers)
    victim = clients[VICTIM]
    assert shamir.combine(shares["own"]) == victim._own
    assert shamir.combine(shares["vault"]) == victim._vault_key


@pytest.mark.parametrize("protocol", ["secagg", "lightsecagg"])
def test_no_client_answers_when_the_server_shows_two_lists(protocol):
    clients = cautious(protocol)
    lists = {n: EVERYBODY if n < 4 else WITHOUT_VICTIM for n in MEMBERS}
    signatures = {n: clients[n].sign(lists[n]) for n in MEMBERS}
    for number, client in clients.items():
        matching = {n: text for n, text in signatures.items() if lists[n] == lists[number]}
        with pytest.raises(Refused):
            client.confirm(matching)  # too few
        with pytest.raises(Tampered):
            client.confirm(signatures)  # of another list
        with pytest.raises(Refused):
            client.answer(lists[number])


@pytest.mark.parametrize("protocol", ["secagg", "lightsecagg"])
def test_a_client_signs_one_list_and_answers_that_one(protocol):
    clients = cautious(protocol)
    signatures = {n: clients[n].sign(EVERYBODY) for n in MEMBERS}
    with pytest.raises(Refused):
        clients[0].sign(WITHOUT_VICTIM)
    clients[0].confirm({n: signatures[n] for n in range(5)})  # as many as the threshold suffice
    with pytest.raises(Refused):
        clients[0].answer(WITHOUT_VICTIM)
    assert clients[0].answer(EVERYBODY)


def test_a_client_signs_no_list_without_itself_of_strangers_or_of_too_few():
    clients = cautious("secagg")
    for wrong, error in ((WITHOUT_VICTIM, Refused), ([*MEMBERS, 7], Refused), ([1, 2, VICTIM], TooFew)):
        with pytest.raises(error):
            clients[VICTIM].sign(wrong)


def test_a_client_that_has_signed_no_list_confirms_none():
    clients = cautious("secagg")
    signatures = {n: clients[n].sign(EVERYBODY) for n in MEMBERS if n}
    with pytest.raises(Refused):
        clients[0].confirm(signatures)


def test_no_two_sums_have_the_same_statement():
    roster = Setting.of("secagg", MEMBERS, 5).roster
    others = [
        Roster(b"ruN", 3, 0, roster.members, roster.neighbours, 5),
        Roster(b"run", 4, 0, roster.members, roster.neighbours, 5),
        Roster(b"run", 3, 1, roster.members, roster.neighbours, 5),
        Roster(b"run", 3, 0, (*roster.members, 7), roster.neighbours, 5),
        Roster(b"run", 3, 0, roster.members, roster.neighbours, 4),
    ]
    texts = {statement(each, EVERYBODY) for each in [roster, *others]}
    assert len(texts | {statement(roster, WITHOUT_VICTIM)}) == 7


class Server(Collectives):
    """Rank 0's calls, with a server, or a network, that changes what clients get."""

    def __init__(self, kind, change):
        super().__init__(World().comm)
        self._kind, self._change = kind, change

    def bcast(self, buffer, place="", *, blocking=False, kind="broadcast"):
        if kind == self._kind:
            self._change(buffer)
        return super().bcast(buffer, place, blocking=blocking, kind=kind)

    def alltoallv(self, parts, counts, kind="exchange"):
        received = super().alltoallv(parts, counts, kind)
        if kind == self._kind:
            self._change(received[0])
        return received


SUITE = """
name = "active"
[case]
dataset = { name = "synthetic", synthetic = { domains = 3, graphs = 30 } }
model = { hidden = 8 }
rounds = 2
reduction = { name = "secagg", server = "active", threshold = 0.7 }
"""

HOSTS, WEIGHTS = np.zeros(4, np.int64), np.ones(4, np.int64)
DELTAS = {n: np.full(5, 0.25 * (n + 1), np.float32) for n in range(4)}
GROUPS = Groups(HOSTS, HOSTS, {0: 0})


def means(collectives, protocol, rounds=1, announces=False, **options):
    keys = KeyRing(collectives, HOSTS, **{"renewed": False, "signed": True, **options})
    masked = Masked(collectives, HOSTS, protocol, 2.0, 5, keys, meter_of(collectives), announces=announces)
    return [masked.means(GROUPS, np.arange(4), WEIGHTS, DELTAS)[0].tolist() for _ in range(rounds)]


@pytest.mark.parametrize("protocol", [SecAgg(5, 0.7), LightSecAgg(5, 0.7, 0.5)])
@pytest.mark.parametrize("renewed", [False, True])
def test_an_honest_server_gets_the_mean(protocol, renewed):
    assert means(Server("", None), protocol, 2, renewed=renewed) == [[0.625] * 5] * 2


@pytest.mark.parametrize("protocol", [SecAgg(5, 0.7), LightSecAgg(5, 0.7, 0.5)])
@pytest.mark.parametrize(
    ("kind", "place", "renewed", "said"),
    [
        ("public keys", 1, True, "the public key of client 1"),  # in the next sum, each has new ones
        ("signatures", slice(None), False, r"client \d did not sign"),
    ],
)
def test_what_was_sent_earlier_is_caught(protocol, kind, place, renewed, said):
    earlier = []

    def replay(rows):
        earlier.append(rows.copy())
        rows[place] = earlier[0][place]

    with pytest.raises(RankFailed, match=f"the server deviates from the protocol: {said}"):
        means(Server(kind, replay), protocol, 2, renewed=renewed)
    assert len(earlier) == 2


def test_signatures_under_another_name_are_caught():
    def swap(rows):
        rows[[0, 1]] = rows[[1, 0]]

    with pytest.raises(RankFailed, match="did not sign the list of survivors"):
        means(Server("signatures", swap), SecAgg(5, 0.7))


def change(place, value=None):
    """Return what overwrites a place of a message, or changes a bit there."""

    def changed(message):
        message[place] = message[place] ^ 1 if value is None else value

    return changed


DEVIATIONS = [
    ("public keys", change((2, 0)), "the public key of client 2 is not what that client has signed"),
    ("public keys", change((2, 32)), "the public key of client 2 is not what that client has signed"),
    ("sealed shares", change(0), r"\w+ from client 0 to 1"),
    ("sealed shares", change(-1), r"\w+ from client 3 to 2"),
    ("survivors", change(1, 0), "client 1 signs one list of survivors, with itself in it"),
    ("survivors", change(slice(2, 4), 0), "2 of 3 clients are left"),
    ("signatures", change((1, 5)), "client 1 did not sign the list of survivors that client 0 got"),
    ("signatures", change(slice(0, 4), 0), "client 0 did not sign the list of survivors"),
]


@pytest.mark.parametrize("protocol", [SecAgg(5, 0.7), LightSecAgg(5, 0.7, 0.5)])
@pytest.mark.parametrize(("kind", "deviation", "said"), DEVIATIONS)
def test_a_deviation_is_told_in_a_line(protocol, kind, deviation, said):
    with pytest.raises(RankFailed, match=rf"^the server deviates from the protocol: {said}"):
        means(Server(kind, deviation), protocol, announces=True)


@pytest.mark.parametrize(("kind", "deviation", "said"), [DEVIATIONS[2], DEVIATIONS[5]])
def test_a_client_of_an_honest_server_looks_at_shares_and_list_too(kind, deviation, said):
    with pytest.raises(RankFailed, match=rf"^the server deviates from the protocol: {said}"):
        means(Server(kind, deviation), SecAgg(5, 0.7), announces=True, signed=False)


@pytest.mark.parametrize("kind", ["public keys", "signatures"])
def test_a_run_with_a_deviating_server_fails_with_one_line(fedmpi, tmp_path, monkeypatch, kind):
    honest = Collectives.bcast

    def deviating(self, buffer, place="", **options):
        if options.get("kind") == kind:
            buffer[1, -1] ^= 1
        return honest(self, buffer, place, **options)

    (tmp_path / "suite.toml").write_text(SUITE)
    monkeypatch.setattr(Collectives, "bcast", deviating)
    done = fedmpi("run", "suite.toml", "--out", "runs")
    assert done.returncode == 1
    assert done.stderr.startswith("fedmpi: the server deviates from the protocol: ")
    assert done.stderr.count("\n") == 1
    if kind == "signatures":  # else there is no round yet, and no record
        (folder,) = (tmp_path / "runs").iterdir()
        run = load_run(folder)
        assert run.status == "failed" and f"fedmpi: {run.reason}\n" == done.stderr
