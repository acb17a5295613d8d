"""What reaches rank 0 in a secure run, read from the transcript of the run and searched byte by byte."""

import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fedmpi.client.training import TRAINING
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find
from tests.secure import search

SUITE = """
name = "audited"
[case]
dataset = { name = "synthetic", synthetic = { domains = 5, graphs = 40 } }
partition = "per-dataset"
model = { hidden = 8 }
rounds = 2
batch_size = 20
algorithm = "fedavg"
[matrix]
case = [
    { label = "secagg", reduction = "secagg" },
    { label = "secagg-plus", reduction = { name = "secagg+", neighbours = 2 } },
    { label = "lightsecagg", reduction = "lightsecagg" },
    { label = "active", reduction = { name = "secagg", server = "active", threshold = 0.7 } },
    { label = "active-light", reduction = { name = "lightsecagg", server = "active" } },
    { label = "protocol", reduction = "secagg", record = "protocol" },
    { label = "dropouts", reduction = { name = "secagg", dropouts = DROPOUTS } },
    { label = "dropouts-light", reduction = { name = "lightsecagg", threshold = 0.6, colluders = 0.4, dropouts = DROPOUTS } },
    { label = "fixed32", reduction = "fixed32" },
    { label = "median", algorithm = "median" },
]
"""
SUITE = SUITE.replace(
    "DROPOUTS",
    """{ schedule = [
        { round = 1, clients = [1], step = "shares" }, { round = 1, clients = [2], step = "upload" },
        { round = 2, clients = [0], step = "training" }, { round = 2, clients = [3], step = "answers" },
    ] }""",
)
SURVIVORS = {0: {0, 3, 4}, 1: {1, 2, 3, 4}}
"""Of the cases with dropouts, by round."""

SUMS = "secagg", "secagg-plus", "lightsecagg", "active", "active-light"
DROPOUTS = "dropouts", "dropouts-light"
SECURE = (*SUMS, "protocol", *DROPOUTS)
LIGHT = "lightsecagg", "active-light", "dropouts-light"
ACTIVE = "active", "active-light"
WITNESS = Path(__file__).with_name("witness.py")
FROM_CLIENTS = {
    "public keys", "training", "evaluation", "sealed shares", "upload", "masked sums", "vaults", "answers",
    "checkpoint", "control",
}  # fmt: skip
"""Kinds of the messages that reach rank 0 in a secure run (docs/security.md)."""


@dataclass
class Audited:
    """Runs of the suite on some ranks, and what the witnesses of all ranks wrote down."""

    folder: Path
    ranks: int
    seen: dict

    def transcript(self, case):
        return search.transcript(self.folder / case)

    def to_server(self, case):
        messages, contents = self.transcript(case)
        return [(m, c) for m, c in zip(messages, contents, strict=True) if m["receiver"] == 0]


@pytest.fixture(scope="module", params=[1, 3])
def audited(request, tmp_path_factory):
    ranks, folder = request.param, tmp_path_factory.mktemp("audited")
    (folder / "suite.toml").write_text(SUITE)
    arguments = [WITNESS, folder / "seen", "run", folder / "suite.toml", "--audit-bytes", "--out", folder]
    code, output = find("mpich").run(ranks, *arguments, cwd=folder, timeout=300)
    assert code == 0, output
    seen = {}
    for rank in range(ranks):
        for name, values in pickle.loads((folder / f"seen.{rank}").read_bytes()).items():
            seen.setdefault(name, []).extend(values)
    return Audited(folder, ranks, seen)


def updates(audited, case):
    return [(delta, weight) for name, _, _, delta, weight in audited.seen["deltas"] if name == case]


def windows(vectors):
    return set().union(*(search.windows(vector) for vector in vectors))


@pytest.mark.long
@pytest.mark.parametrize("case", SECURE)
def test_no_update_reaches_rank_0_nor_leaves_it(audited, case):
    content = b"".join(audited.transcript(case)[1])
    deltas = updates(audited, case)
    assert len(deltas) == 10 - (case in DROPOUTS)  # five clients, two rounds; a training is killed
    vectors = [form for delta, weight in deltas for form in search.formats_of_an_update(delta, weight)]
    vectors += [form for words in audited.seen["words"] for form in search.formats_of_words(words)]
    assert len(windows(vectors)) > 1000
    assert search.found(content, windows(vectors)) == set()


def test_the_search_finds_every_update_of_a_run_that_sends_them(audited):
    content = b"".join(audited.transcript("median")[1])
    for delta, _ in updates(audited, "median"):
        telling = search.windows(delta)
        assert telling and search.found(content, telling) == telling


@pytest.mark.parametrize("change", [np.float64, np.int32])
def test_the_search_finds_a_vector_in_any_format_and_alignment(change):
    delta = np.random.default_rng(0).normal(0, 1e6, 50).astype(np.float32)
    words = delta.astype(np.int32)
    wanted = windows([*search.formats_of_an_update(delta, 3), *search.formats_of_words(words)])
    for shift in range(8):
        content = bytes(shift) + delta.astype(change).tobytes()
        assert len(search.found(content, wanted)) == 50 - 16 // np.dtype(change).itemsize + 1


@pytest.mark.parametrize("case", SECURE)
def test_no_key_seed_or_mask_reaches_rank_0(audited, case):
    seen = audited.seen
    secrets = [*seen["private"], *seen["agreed"], *seen["own"], *seen["vault"]]
    assert len(seen["private"]) == 50 and len(seen["own"]) == 68
    needles = {part for secret in secrets for part in (secret[:16], secret[16:])}
    needles |= windows([*seen["masks"], *seen["pieces"]])
    assert search.found(b"".join(audited.transcript(case)[1]), needles) == set()


@pytest.mark.parametrize("case", ["secagg", "secagg-plus", "active", "protocol"])
def test_shares_reach_rank_0_only_as_answers_and_only_of_survivors(audited, case):
    answers, others = answers_and_others(audited, case)
    own, vault = (shares_of(audited, audited.seen[kind]) for kind in ("own", "vault"))
    assert search.found(answers, own)  # b of survivors: the protocol's own
    assert search.found(others, own) == set()
    assert search.found(answers + others, vault) == set()


def test_of_each_client_shares_of_one_secret_reach_rank_0_whoever_drops_out(audited):
    """Of survivors that of the own seed, of others that of the vault's key, in answers alone."""
    answers, others = answers_and_others(audited, "dropouts")
    parties = [party[1:] for party in audited.seen["parties"] if party[0] == "dropouts"]
    assert sorted(party[:2] for party in parties) == [(0, n) for n in (0, 2, 3, 4)] + [
        (1, n) for n in (1, 2, 3, 4)
    ]
    for round, number, own, vault in parties:
        revealed, kept = (own, vault) if number in SURVIVORS[round] else (vault, own)
        assert search.found(answers, shares_of(audited, [revealed]))
        assert search.found(answers, shares_of(audited, [kept])) == set()
        assert search.found(others, shares_of(audited, [own, vault])) == set()


def shares_of(audited, secrets):
    """Return what shares of some secrets are recognised by."""
    shares = [s for secret, by_place in audited.seen["split"] if secret in secrets for s in by_place.values()]
    return {part for share in shares for part in (share[1:17], share[17:])}


def answers_and_others(audited, case):
    """Return the contents of the answers to rank 0, and of all other messages to it."""
    messages = audited.to_server(case)
    return (
        b"".join(content for message, content in messages if (message["kind"] == "answers") is wanted)
        for wanted in (True, False)
    )


@pytest.mark.parametrize("case", SECURE)
def test_the_transcript_names_every_kind_of_message(audited, case):
    messages = audited.to_server(case)
    kinds = {message["kind"] for message, _ in messages}
    expected = FROM_CLIENTS | ({"signatures", "verification keys"} if case in ACTIVE else set())
    expected -= {"upload", "sealed shares"} if audited.ranks > 1 else set()  # from rank to rank
    assert kinds == expected - ({"vaults"} if case in LIGHT else set())
    assert {message["sender"] for message, _ in messages} == set(range(audited.ranks))
    for message, content in messages:
        assert message["sha256"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("case", SUMS)
def test_the_sums_are_those_of_fixed32(audited, case):
    found = differences(audited.folder / "fixed32", audited.folder / case)
    assert {line.split(":")[0] for line in found if not line.startswith("config")} == {"/rounds/delta_norm"}


def values_of_clients(run):
    """Return values of single clients that a full record holds, as float64 has them."""
    names = "train_loss", "val_loss", "test_loss", "gradient_norm", "delta_norm"
    return {value.tobytes() for name in names for value in run.results[name].ravel()}


def test_no_value_of_a_single_client_reaches_rank_0_with_record_protocol(audited):
    wanted = values_of_clients(load_run(audited.folder / "fixed32"))  # the same training, bit for bit
    assert len(wanted) > 40
    content = b"".join(audited.transcript("protocol")[1])
    assert not any(value in content for value in wanted)
    full = b"".join(audited.transcript("fixed32")[1])
    assert all(value in full for value in wanted)


def test_reports_of_clients_hold_only_that_they_are_finite(audited):
    for message, content in audited.to_server("protocol"):
        if message["kind"] == "training":
            rows = np.frombuffer(content, np.float64)[2:].reshape(-1, len(TRAINING))
            assert (rows[:, TRAINING.index("finite")] == 1).all()
            assert np.isnan(np.delete(rows, TRAINING.index("finite"), axis=1)).all()


def test_the_record_holds_figures_of_all_clients_together(audited):
    whole, full = load_run(audited.folder / "protocol"), load_run(audited.folder / "fixed32")
    sizes = {part: np.diff(full.partition[f"{part}_ptr"]) for part in ("train", "val", "test")}
    assert whole.results["test_accuracy"].tolist() == full.results["test_correct"].mean(axis=1).tolist()
    for part, counts in sizes.items():
        expected = (full.results[f"{part}_loss"] * counts).sum(axis=1) / counts.sum()
        assert np.allclose(whole.results[f"{part}_loss"], expected, rtol=0, atol=2.0**-20)
    assert not whole.results["parameter_digest"].any()
    assert np.isnan(whole.results["gradient_norm"]).all()
    assert np.isnan(whole.measured("client_cpu_seconds")).all()


@pytest.mark.long
def test_the_record_of_figures_is_the_same_on_any_ranks(audited, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    arguments = ["-m", "fedmpi", "run", "suite.toml", "--case", "protocol", "--out", tmp_path / "two"]
    code, output = find("mpich").run(2, *arguments, cwd=tmp_path, timeout=120)
    assert code == 0, output
    assert differences(audited.folder / "protocol", tmp_path / "two" / "protocol") == []


def test_an_upload_is_a_message_of_its_client_on_rank_0_and_of_its_rank_elsewhere(audited):
    messages = [m for m, _ in audited.to_server("secagg")]
    uploads = [(m["round"], m["client"]) for m in messages if m["kind"] == "upload"]
    assert uploads == ([(r, c) for r in (0, 1) for c in range(5)] if audited.ranks == 1 else [])
    sums = [(m["round"], m["sender"]) for m in messages if m["kind"] == "masked sums"]
    assert sums == [(r, rank) for r in (0, 1) for rank in range(audited.ranks)]


@pytest.mark.parametrize("option", ["--audit", "--audit-bytes"])
def test_messages_in_a_devices_memory_are_not_audited(fedmpi, tiny_suite, option):
    done = fedmpi("run", tiny_suite, "--set", "reduction.buffers=device", option)
    assert done.returncode == 2
    assert done.stderr == (
        'fedmpi: --audit reads messages in host memory: use reduction.buffers = "host" and transport = "mpi"\n'
    )
