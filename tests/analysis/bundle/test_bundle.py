"""`fedmpi pack` and `fedmpi verify` on a real suite of three short cases."""

import io
import json
import subprocess
import sys
import tarfile

import h5py
import pytest

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
    done = here("pack", "small.toml", "--out", target)
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


def test_a_bundle_of_a_whole_suite_is_valid(here, bundle):
    done = here("verify", bundle)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines() == [
        "ok: 7 files: sizes and SHA-256",
        "ok: 3 records: schema, status, digest of the configuration",
        "ok: completeness: 3 cases of the suite",
        "ok: tables/clients.csv: 6 rows follow from the records",
        "ok: systems.json: follows from the records",
        f"{bundle}: valid",
    ]


def test_it_says_what_somebody_else_must_know(bundle):
    with tarfile.open(bundle) as archive:
        index = json.load(archive.extractfile("small/bundle.json"))
        (system,) = json.load(archive.extractfile("small/systems.json"))
        assert archive.extractfile("small/suite.toml").read().decode() == SUITE
    assert (index["format"], index["suite"]) == (1, "small/suite")
    assert [each["case"] for each in index["cases"]] == ["fedavg", "fedprox", "self-train"]
    assert system["cases"] == ["fedavg", "fedprox", "self-train"]
    assert {"cpu_model", "mpi", "packages", "commit", "ranks"} <= system["system"].keys()


def test_unpacked_it_is_a_folder_of_runs(here, bundle, tmp_path):
    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path, filter="data")
    assert here("compare", "--identical", tmp_path / "small" / "runs", "small.toml").returncode == 0


def test_a_changed_file_is_found(here, bundle):
    changed = repacked(bundle, lambda path, content: content + b"#" if path == "suite.toml" else content)
    done = here("verify", changed)
    assert done.returncode == 1
    assert "WRONG: suite.toml: its content is not the one that was packed (SHA-256 differs)" in done.stdout
    assert done.stdout.rstrip().endswith("not valid")


def test_a_table_that_does_not_follow_from_the_records_is_found(here, bundle):
    def change(path, content):
        if path != "tables/clients.csv":
            return content
        head, first, *others = content.decode().splitlines()
        names, values = head.split(","), first.split(",")
        values[names.index("test_accuracy")] = "0.99"
        return "\n".join([head, ",".join(values), *others, ""]).encode()

    done = here("verify", repacked(bundle, change))
    assert (
        "WRONG: tables/clients.csv: fedavg, synthetic-0, test_accuracy: '0.99', the record gives"
        in done.stdout
    )


def test_a_record_of_another_configuration_is_found(here, bundle, tmp_path):
    def change(path, content):
        if path != "runs/fedavg/run.h5":
            return content
        file = tmp_path / "run.h5"
        file.write_bytes(content)
        with h5py.File(file, "r+") as record:
            text = bytes(record["config"][()]).replace(b'"rounds":2', b'"rounds":3')
            record["config"][()] = text
        return file.read_bytes()

    out = here("verify", repacked(bundle, change)).stdout
    assert "WRONG: runs/fedavg/run.h5: its configuration is not the one that its digest is of" in out
    assert "WRONG: case fedavg: other settings than the suite's (rounds: 2 -> 3)" in out


def test_a_missing_case_is_told_when_packing_and_when_verifying(here, place, tmp_path):
    runs = place / "results" / "runs" / "small" / "suite"
    options = ["--suite", "small.toml", "--out", tmp_path / "a.tar.gz"]
    done = here("pack", runs / "fedavg", runs / "fedprox", *options)
    assert done.returncode == 2
    assert done.stderr == "fedmpi: case self-train: not in the bundle\n"
    part = tmp_path / "b.tar.gz"
    done = here("pack", runs / "fedavg", "--out", part)
    assert done.returncode == 2
    assert "suite small/suite: no such file here" in done.stderr
    assert "completeness: not checked" in here("verify", part).stdout
    missing = repacked(tmp_path / "a.tar.gz", lambda path, content: None if "fedprox" in path else content)
    out = here("verify", missing).stdout
    for line in (
        "runs/fedprox/run.h5: listed, but not in the bundle",
        "case fedprox: listed, but without a record",
        "case fedprox: not in the bundle",
        "tables/clients.csv: 4 rows, the records give 2",
    ):
        assert f"WRONG: {line}" in out


def test_unfinished_runs_are_not_packed(here, place, tmp_path):
    source = place / "results" / "runs" / "small" / "suite" / "fedavg" / "run.h5"
    (tmp_path / "runs" / "half").mkdir(parents=True)
    (tmp_path / "runs" / "half" / "run.h5").write_bytes(source.read_bytes())
    with h5py.File(tmp_path / "runs" / "half" / "run.h5", "r+") as record:
        record["status"][()] = b"interrupted"
    done = here("pack", tmp_path / "runs", "--out", tmp_path / "a.tar.gz")
    assert done.returncode == 2
    assert "half: interrupted, not packed; no complete run to pack" in done.stderr
    assert not (tmp_path / "a.tar.gz").exists()


def test_another_suffix_is_refused_before_anything_is_written(here, tmp_path):
    done = here("pack", "small.toml", "--out", tmp_path / "a.zip")
    assert done.returncode == 2
    assert "a.zip: a bundle is a compressed tar archive; name it .tar.gz or .tgz" in done.stderr
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read it (No such file or directory)"),
        (b"no archive", "no bundle, or a damaged one"),
        ({"a/b": b""}, "no bundle: there is no bundle.json in it"),
        ({"../b": b""}, "no bundle: ../b is not a plain file below one folder"),
        ({"a/bundle.json": b"{}"}, "bundle.json is not the index of a bundle"),
        ({"a/bundle.json": b'{"format": 9, "files": []}'}, "a bundle of format 9, this fedmpi reads up to 1"),
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
    done = fedmpi("verify", path)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_a_truncated_bundle(here, bundle):
    bundle.write_bytes(bundle.read_bytes()[:2000])
    done = here("verify", bundle)
    assert done.returncode == 2 and "no bundle, or a damaged one" in done.stderr
