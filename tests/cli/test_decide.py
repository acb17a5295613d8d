"""A sweep that adds seeds until the claims about its suite are decided."""

import json

import pytest

from fedmpi.store.lock import in_turn
from fedmpi.store.reader import load_run
from tests.cli.refusals import refused

SUITE = """
name = "claimed"
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 40 } }
partition = "per-dataset"
rounds = 1
[matrix]
seed = [5, 6]
method = [
    { label = "fedavg", algorithm = "fedavg" },
    { label = "fedprox", algorithm = { name = "fedprox", mu = 0.0001 } },
    { label = "alone", algorithm = "self-train", optimizer = { lr = 1e30 } },
]
"""
FIGURES = """\
paper,table,reading,row,column,metric,value,spread,spread_of,seeds,unpublished,suite,cases,lacks,note
Own,Table 1,,FedAvg,synthetic,average,0.7,,,5,,claimed,method=fedavg,,
Own,Table 1,,FedProx,synthetic,average,0.7,,,5,,claimed,method=fedprox,,
Own,Table 1,,Alone,synthetic,average,0.6,,,5,,claimed,method=alone,,
"""
HEAD = "paper,kind,source,place,claim,reading,metric,suite,cases,against,over\n"
AS_GOOD = "Own,level,text,Section 1,FedProx is as good,,,claimed,method=fedprox,method=fedavg,\n"
LOST = "Own,lead,table,Table 1,FedAvg over Alone,,,claimed,method=fedavg,method=alone,\n"


@pytest.fixture
def claimed(tmp_path):
    """Return a function that writes a suite with claims about it."""

    def write(*claims):
        (tmp_path / "claimed.toml").write_text(SUITE)
        (tmp_path / "published.csv").write_text(FIGURES)
        (tmp_path / "claims.csv").write_text(HEAD + "".join(claims))
        return "claimed.toml"

    return write


@pytest.mark.long
def test_seeds_are_added_until_claims_are_decided_or_a_run_is_lost(fedmpi, claimed, tmp_path):
    given = ("sweep", claimed(AS_GOOD, LOST), "--until-decided", "--out", "runs", "--max-seeds", "9")
    before = fedmpi(*given, "--dry-run", code=0)
    assert "unknown" in before.stdout and not (tmp_path / "runs").exists()
    stopped = fedmpi(*given, "--budget", "0", code=75)
    assert "unknown: too few runs (budget)" in " ".join(stopped.stdout.split())
    with in_turn(tmp_path / "runs"):
        refused(fedmpi(*given), "runs: another sweep --until-decided works there")
    done = fedmpi(*given, code=3)
    assert "1 of 2 claims decided" in done.stdout and "confirmed" in done.stdout
    assert "seed5-alone is not complete" in " ".join(done.stdout.split())
    # Two seeds of the suite decide nothing, so a third is run: the least that the suite does not use.
    names = sorted(path.name for path in (tmp_path / "runs").iterdir() if path.is_dir())
    cases = [f"seed{seed}-{name}" for seed in (5, 6, 1) for name in ("fedavg", "fedprox", "alone")]
    assert names == sorted(cases)
    assert load_run(tmp_path / "runs/seed1-fedavg").config["seed"] == 1
    # Rows count as runs do: elsewhere nothing of the decided claim is left to run.
    complete = [f"runs/{case}" for case in cases if "alone" not in case]
    fedmpi("report", *complete, "--csv", "rows.csv", code=0)
    claimed(AS_GOOD)
    elsewhere = fedmpi(*given, "--out", "other", "--rows", "rows.csv", code=0)
    assert "to run" not in elsewhere.stdout and "1 of 1 claims decided" in elsewhere.stdout


def test_how_claims_are_decided_is_kept(fedmpi, claimed, tmp_path):
    given = ("sweep", claimed(AS_GOOD), "--until-decided", "--out", "runs", "--budget", "0")
    fedmpi(*given, "--max-seeds", "4", code=75)
    kept = json.loads((tmp_path / "runs/until-decided.json").read_text())
    assert kept == {"max_seeds": 4, "spending": "pocock", "set": []}
    words = "runs/until-decided.json: begun with --max-seeds 4 --spending pocock; claims that were"
    refused(fedmpi(*given, "--max-seeds", "9"), words)
    (tmp_path / "runs/until-decided.json").write_text('{"max_seeds": 4, "spending": "pocock", "set": 5}')
    refused(fedmpi(*given, "--max-seeds", "4"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--max-seeds 9", "--dry-run, --max-seeds, --spending and --rows: only with --until-decided"),
        ("--until-decided --share 0/2", "--until-decided chooses the cases: leave --share and --cases out"),
        ("--until-decided --set rounds=-1", "--set rounds: input should be greater than or equal to 1"),
        ("--until-decided --rows empty", "empty: no rows; make some with fedmpi report --csv"),
    ],
)
def test_what_cannot_be_honoured_is_refused(fedmpi, claimed, tmp_path, given, said):
    (tmp_path / "empty").mkdir()
    refused(fedmpi("sweep", claimed(AS_GOOD), "--out", "runs", *given.split()), said)
    assert not (tmp_path / "runs").exists()


def test_a_suite_without_claims_is_refused(fedmpi, tiny_suite):
    words = f"tiny: no claims to decide: {tiny_suite.with_name('claims.csv')} is missing"
    refused(fedmpi("sweep", tiny_suite, "--until-decided"), words)
