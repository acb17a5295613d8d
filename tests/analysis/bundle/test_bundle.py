"""`fedmpi records pack` and `fedmpi records verify` on a real suite of three short cases."""

import gzip
import io
import json
import shutil
import subprocess
import sys
import tarfile

import h5py
import pytest

from fedmpi.comm.launch import mpiexec
from fedmpi.store.record import RunRecord
from tests.analysis.tasks import recorded

SUITE = """
name = "small/suite"
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 40 } }
rounds = 2
[matrix]
algorithm = ["fedavg", "fedprox", "self-train"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the suite, and its runs in results/runs."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "small.toml").write_text(SUITE)
    command = [sys.executable, "-m", "fedmpi", "run", "small.toml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def here(fedmpi, monkeypatch, place):
    monkeypatch.chdir(place)
    return fedmpi


@pytest.fixture
def bundle(here, tmp_path):
    target = tmp_path / "small.tar.gz"
    done = here("records", "pack", "small.toml", "--out", target)
    assert done.returncode == 0, done.stderr
    return target


def repacked(bundle, change):
    """Return a bundle whose files `change` has seen: a function from a path and its content to the new content."""
    target = bundle.with_name("changed.tar.gz")
    with tarfile.open(bundle) as old, tarfile.open(target, "w:gz") as new:
        for member in old.getmembers():
            content = change(member.name.partition("/")[2], old.extractfile(member).read())
            if content is not None:
                member.size = len(content)
                new.addfile(member, io.BytesIO(content))
    return target


@pytest.mark.long
def test_a_bundle_of_a_whole_suite_says_what_somebody_else_must_know_and_is_valid(here, bundle, tmp_path):
    done = here("records", "verify", bundle)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "ok: 6 files: sizes and SHA-256",
            "ok: 3 records: nothing outside them, schema, status, configuration",
            "ok: digests of all rounds of 3 records",
            "ok: completeness: 3 cases of the suite",
            "ok: tables/clients.csv: 6 rows follow from the records",
            f"{bundle}: valid",
        ],
    )
    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / "small"
    index = json.loads((unpacked / "bundle.json").read_text())
    assert (unpacked / "suite.toml").read_text() == SUITE
    assert (index["format"], index["suite"]) == (2, "small/suite")
    assert [each["case"] for each in index["cases"]] == ["fedavg", "fedprox", "self-train"]
    assert here("compare", "--identical", unpacked / "runs", "small.toml").returncode == 0
    with tarfile.open(bundle, "w:gz") as archive:
        for path in sorted(unpacked.rglob("*"), reverse=True):  # their order says nothing
            archive.add(path, f"small/{path.relative_to(unpacked)}", recursive=False)
    assert here("records", "verify", bundle).returncode == 0


def with_another_score(content):
    head, first, *others = content.decode().splitlines()
    names, values = head.split(","), first.split(",")
    values[names.index("score")] = "0.99"
    return "\n".join([head, ",".join(values), *others, ""]).encode()


def in_record(change):
    """Return a function that applies `change` to the content of a record."""

    def changed(content):
        file = io.BytesIO(content)
        with h5py.File(file, "r+") as record:
            change(record)
        return file.getvalue()

    return changed


@in_record
def with_more_rounds(record):
    record["config"][()] = bytes(record["config"][()]).replace(b'"rounds":2', b'"rounds":3')


@in_record
def with_a_link(record):
    del record["rounds/test_accuracy"]
    record["rounds/test_accuracy"] = h5py.ExternalLink("/home/me/mine.h5", "accuracy")


@in_record
def with_another_result(record):
    record["rounds/test_accuracy"][1, 0] = 0.99


RECORD = "runs/fedavg/run.h5"
INDEX = "a/bundle.json"


@pytest.mark.parametrize(
    ("changed", "change", "words"),
    [
        ("suite.toml", lambda content: content + b"#", "its content is not the one that was packed (SHA"),
        ("tables/clients.csv", with_another_score, "fedavg, synthetic-0, score: '0.99', the record gives"),
        (RECORD, with_more_rounds, "/: attributes, configuration, clients or partition are not what was"),
        (RECORD, with_a_link, "/rounds/test_accuracy is a link to another file, and no link is followed"),
        (RECORD, with_another_result, "/rounds: round 2 is not what was written"),
    ],
)
def test_what_is_not_as_it_was_packed_is_found(here, bundle, changed, change, words):
    other = repacked(bundle, lambda path, content: change(content) if path == changed else content)
    done = here("records", "verify", other)
    assert done.returncode == 1
    assert f"WRONG: {changed}: {words}" in done.stdout
    assert done.stdout.rstrip().endswith("not valid")


def test_a_record_of_other_settings_than_the_suite_is_found(here, bundle, tmp_path):
    assert here("run", "small.toml", "--case", "fedavg", "--set", "seed=9", "--out", tmp_path).returncode == 0
    other = next(tmp_path.glob("fedavg*/run.h5")).read_bytes()
    out = here("records", "verify", repacked(bundle, lambda p, c: other if p == RECORD else c)).stdout
    assert "WRONG: runs/fedavg/run.h5: the index has another configuration for this case" in out
    assert "WRONG: case fedavg: other settings than the suite's (" in out and "seed: 0 -> 9" in out


@pytest.mark.parametrize(
    ("runs", "target", "words"),
    [
        (["runs/fedavg", "runs/fedprox"], "a.tar.gz", "packed: case self-train: not in the bundle. Finish"),
        (["half"], "a.tar.gz", "half: interrupted; no complete run to pack"),
        (["runs"], "a.zip", "a.zip: a bundle is a compressed tar archive; name it .tar.gz or .tgz"),
    ],
)
def test_nothing_is_written_of_what_makes_no_bundle(here, place, tmp_path, runs, target, words):
    (tmp_path / "runs").symlink_to(place / "results" / "runs" / "small" / "suite")
    recorded(tmp_path / "half", {"suite": "s"}, ["c"], [], status="interrupted")
    options = ("--suite", "small.toml", "--out", tmp_path / "out" / target)
    done = here("records", "pack", *(tmp_path / run for run in runs), *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_missing_case_is_told_when_verifying(here, bundle):
    missing = repacked(bundle, lambda path, content: None if "fedprox" in path else content)
    out = here("records", "verify", missing).stdout
    for line in (
        "runs/fedprox/run.h5: listed, but not in the bundle",
        "case fedprox: listed, but without a record",
        "case fedprox: not in the bundle",
        "tables/clients.csv: 6 rows, the records give 4",
    ):
        assert f"WRONG: {line}" in out


def test_the_suite_that_runs_were_started_with_is_found_from_elsewhere(fedmpi, place, tmp_path):
    done = fedmpi("records", "pack", place / "results" / "runs" / "small" / "suite", "--out", "a.tar.gz")
    assert (done.returncode, done.stderr) == (0, "")
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert archive.extractfile("a/suite.toml").read().decode() == SUITE


def test_runs_of_an_unknown_suite_are_packed_with_a_note(fedmpi, place, tmp_path):
    shutil.copytree(place / "results" / "runs" / "small" / "suite" / "fedavg", tmp_path / "fedavg")
    done = fedmpi("records", "pack", "fedavg", "--out", "a.tar.gz")
    assert done.returncode == 0
    assert "suite small/suite: no such file here, so nobody knows what is missing" in done.stderr
    assert "completeness: not checked" in fedmpi("records", "verify", "a.tar.gz").stdout


def test_a_run_that_has_diverged_is_packed_without_a_row(here, place, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(place / "results" / "runs" / "small" / "suite", runs)
    with RunRecord.reopen(runs / "fedprox") as record:
        record.finish("diverged")
    target = tmp_path / "a.tar.gz"
    packed = here("records", "pack", runs, "--suite", "small.toml", "--out", target)
    assert packed.returncode == 0, packed.stderr
    done = here("records", "verify", target)
    assert done.returncode == 0, done.stdout
    assert "ok: runs that have diverged, without rows: 1" in done.stdout
    assert "ok: tables/clients.csv: 4 rows follow from the records" in done.stdout


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """A folder with the suite above, of one case, and its runs on one rank and on two in results/runs."""
    folder = tmp_path_factory.mktemp("scaled")
    suite = SUITE.replace('["fedavg", "fedprox", "self-train"]', '["fedavg"]')
    (folder / "small.toml").write_text(f'mode = "strong"\nranks = [1, 2]\n{suite}')
    for ranks in (1, 2):
        command = [mpiexec(), "-n", str(ranks), sys.executable, "-m", "fedmpi", "run", "small.toml"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def scaling(scaled, fedmpi, tmp_path):
    """The same in the folder of the test."""
    shutil.copytree(scaled, tmp_path, dirs_exist_ok=True)
    return fedmpi


@pytest.mark.long
def test_of_a_scaling_suite_the_runs_on_every_number_of_ranks_are_packed(scaling, tmp_path):
    done = scaling("records", "pack", "small.toml", "--out", "a.tar.gz")
    assert (done.returncode, done.stderr) == (0, "")
    one, two = (f"runs/ranks{ranks}/fedavg/run.h5" for ranks in (1, 2))
    with tarfile.open("a.tar.gz") as archive:
        assert [name for name in archive.getnames() if name.endswith("run.h5")] == [f"a/{one}", f"a/{two}"]
        content = archive.extractfile(f"a/{one}").read()
    done = scaling("records", "verify", "a.tar.gz")
    assert done.returncode == 0, done.stdout
    assert "ok: completeness: 2 cases of the suite" in done.stdout
    changed = repacked(tmp_path / "a.tar.gz", lambda path, given: content if path == two else given)
    shown = scaling("records", "verify", changed).stdout
    assert f"WRONG: {two}: in ranks2, but the run is one of ranks1" in shown
    runs = tmp_path / "results" / "runs" / "small" / "suite"
    done = scaling("records", "pack", runs / "ranks1", "--out", "b.tar.gz")
    assert done.returncode == 2
    assert "nothing packed: case ranks2/fedavg: not in the bundle" in done.stderr


def test_the_second_run_of_a_case_is_named_and_left_out(here, place, tmp_path):
    runs = place / "results" / "runs" / "small" / "suite"
    shutil.copytree(runs / "fedavg", tmp_path / "again")
    done = here("records", "pack", runs, tmp_path / "again", "--out", tmp_path / "a.tar.gz")
    assert done.returncode == 2
    assert done.stdout.startswith(f"Bundle: {tmp_path / 'a.tar.gz'}, 3 runs")
    assert done.stderr == f"fedmpi: {tmp_path / 'again'}: not packed, {runs / 'fedavg'} is the same case\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read it (No such file or directory)"),
        (b"no archive", "no bundle, or a damaged one"),
        (gzip.compress(b"no archive", mtime=0)[:-4], "no bundle, or a damaged one"),
        ({"a/b": b""}, "no bundle: there is no bundle.json in it"),
        ({"../b": b""}, "no bundle: ../b is not a plain file below one folder"),
        ({INDEX: b"{}"}, "bundle.json is not the index of a bundle"),
        ({INDEX: b"[" * 100_000}, "bundle.json is not the index of a bundle"),
        ({INDEX: b"null"}, "bundle.json is not the index of a bundle"),
        ({INDEX: b'{"format": "1"}'}, "bundle.json is not the index of a bundle (format: Input should"),
        ({INDEX: b'{"format": 9, "files": []}'}, "a bundle of format 9, this fedmpi reads up to 2"),
        ({INDEX: b'{"format": 1, "files": []}'}, "a bundle of format 1, its table has older columns"),
    ],
)
def test_what_is_no_bundle(fedmpi, tmp_path, content, words):
    path = tmp_path / "x.tar.gz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        with tarfile.open(path, "w:gz") as archive:
            for name, data in content.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    done = fedmpi("records", "verify", path)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1
