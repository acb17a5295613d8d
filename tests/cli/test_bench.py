"""``fedmpi bench``: tables, JSON with raw samples, and what is refused. Times are figures, never asserted."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fedmpi.benchmarks.data import peak_bytes
from tests.cli.refusals import refused
from tests.cli.waiting import wait_for

TINY = ["synthetic/quick", "--set", "algorithm=fedavg", "--set", "dataset.synthetic.domains=2"]
COUNTS = ["--repetitions", "2", "--warmup", "1"]


def as_json(done):
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {"benchmark", "settings", "measurements", "results", "statements", "provenance"}
    for each in report["measurements"]:
        for figure in each["figures"].values():
            assert set(figure) == {"unit", "samples", "median", "minimum", "maximum"}
            assert len(figure["samples"]) == report["settings"]["repetitions"]
            assert figure["minimum"] <= figure["median"] <= figure["maximum"]
    provenance = report["provenance"]
    assert {"source", "packages", "cpu_model", "affinity", "command"} <= set(provenance)
    assert provenance["threads"] == 1
    return report


def test_train_of_clients_in_groups_prints_a_table_and_what_it_says(fedmpi):
    done = fedmpi("bench", "train", *TINY, "--set", "kernels=grouped", *COUNTS, code=0)
    assert "executed_rate" in done.stdout
    assert "GFLOP/s in square products" in done.stdout
    assert "% of the streaming bandwidth" in done.stdout


def test_train_of_a_model_without_counted_bytes_has_rates_but_no_roofline(fedmpi):
    report = as_json(fedmpi("bench", "train", *TINY, "--set", "model=gcn", *COUNTS, "--json"))
    assert report["benchmark"] == "train"
    assert report["settings"]["case"]["suite"] == "synthetic/quick"
    assert report["provenance"]["packages"]["torch"]["version"]
    assert report["results"]["least_seconds"] == {}
    (train, *_) = report["measurements"]
    assert "model_rate" in train["figures"]
    assert not {"roofline_share", "bandwidth_share", "counted_bandwidth"} & set(train["figures"])


def test_comm_on_one_rank_has_nobody_to_send_to(fedmpi):
    report = as_json(fedmpi("bench", "comm", "--size", "10", "--size", "20", *COUNTS, "--json"))
    assert report["settings"]["sizes"] == [10, 20]
    assert report["provenance"]["mpi"]["size"] == 1
    found = report["measurements"]
    pickled = {each["operation"] for each in found if "pickled_seconds" in each["figures"]}
    assert {each["operation"] for each in found} - pickled == {"Ibarrier", "Bcast", "Scatterv"}


def test_a_machine_that_others_use_is_said_to_be_no_quiet_one(fedmpi, tmp_path):
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        done = fedmpi("bench", "record", "--clients", "4", "--out", tmp_path, *COUNTS)
    finally:
        for each in others:
            each.kill()
            each.wait()
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    found = re.search(r"\(([\d.]+) of them busy with other programs: no quiet machine\)", done.stdout)
    assert found is not None
    assert float(found[1]) >= 1


@pytest.mark.long
def test_ranks_as_json(fedmpi):
    options = ("--rounds", "3", "--repetitions", "1", "--warmup", "0", "--ranks", "1,2")
    report = as_json(fedmpi("bench", "ranks", *TINY, *options, "--json"))
    assert [each["ranks"] for each in report["measurements"]] == [1, 2]
    one, two = (each["figures"] for each in report["measurements"])
    assert one["gain"]["samples"] == [1.0]
    (alone,), (beside,) = (each["round_seconds"]["samples"] for each in (one, two))
    assert two["gain"]["samples"] == [alone / beside]
    assert set(report["results"]) == {"gain", "gain_of_fastest"}
    unique, part, resident, peak = (
        two[f"{kind}_bytes"]["median"] for kind in ("unique", "proportional", "resident", "peak")
    )
    assert 50e6 < unique < part < resident < peak
    assert two["start_cpu_seconds"]["median"] > 1
    assert two["start_seconds"]["median"] > 1
    assert (one["round_calls"]["median"], two["round_calls"]["median"]) == (3, 3)


def test_a_run_that_fails_is_named(fedmpi, tmp_path):
    places = ("--data", "nothing", "--mirror", str(tmp_path), "--offline")
    done = fedmpi("bench", "ranks", "micro/train", "--set", "setting=proteins", *places, code=1)
    first, last = done.stderr.splitlines()
    assert first == "turn 1 of 8, 2 ranks"
    assert "bench ranks: on 2 ranks code 2: fedmpi: dataset PROTEINS is not in nothing" in last


def test_a_run_that_diverges_is_named(fedmpi):
    wild = ("--set", "optimizer.lr=1e30", "--rounds", "3", "--repetitions", "1", "--warmup", "0")
    done = fedmpi("bench", "ranks", *TINY, *wild, code=1)
    assert "code 3" in done.stderr
    assert "diverged: round 1" in done.stderr.splitlines()[-1]


def running(folder):
    """Return the processes whose command line names a folder below this one."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [file] if f"{folder}/fedmpi-bench-" in file.read_bytes().decode() else []
    return found


def test_ranks_that_get_term_end_what_they_started(fedmpi_process, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = fedmpi_process("bench", "ranks", *TINY, "--rounds", "100000")
    wait_for(lambda: list(tmp_path.glob("fedmpi-bench-*/*/run.h5")))
    assert len(running(tmp_path)) >= 3
    process.terminate()
    process.communicate(timeout=60)
    wait_for(lambda: not running(tmp_path))  # ranks look for their launcher every few seconds
    assert not list(tmp_path.glob("fedmpi-bench-*"))


BALLAST = 500 << 20


@pytest.mark.long
def test_data_of_each_stage_in_processes_of_their_own(fedmpi, real_data):
    ballast = bytearray(BALLAST)  # a child's getrusage would start with it
    ballast[:: 1 << 12] = b"1" * len(ballast[:: 1 << 12])
    assert peak_bytes() > BALLAST
    report = as_json(fedmpi("bench", "data", "MUTAG", "--repetitions", "1", "--json"))
    found = report["measurements"]
    stages = ["parse parse", "prepare prepare", "clients load", "clients partition", "clients pack"]
    assert [f"{each['process']} {each['stage']}" for each in found] == stages
    for figures in (each["figures"] for each in found):
        units = {name: figure["unit"] for name, figure in figures.items()}
        assert units == {"wall_seconds": "s", "cpu_seconds": "s", "peak_bytes": "B", "added_bytes": "B"}
        assert figures["peak_bytes"]["minimum"] > 20e6
    assert found[0]["figures"]["peak_bytes"]["maximum"] < BALLAST
    assert all(0 < share <= 1 for shares in report["results"]["rows"]["MUTAG"].values() for share in shares)


def test_peers_as_json(fedmpi, real_data):
    report = as_json(fedmpi("bench", "peers", "--settings", "proteins", *COUNTS, "--json"))
    assert [each["program"] for each in report["measurements"]] == ["peer", "fedmpi", "peer / fedmpi"]
    assert set(report["results"]["proteins"]) == {"wall_ratio", "cpu_ratio"}
    assert "torch-geometric" in report["provenance"]["packages"]


def test_peers_accuracy(fedmpi, real_data):
    done = fedmpi("bench", "peers", "--accuracy", "--rounds", "1", "--seeds", "2", code=0)
    assert "proteins, 2 seeds: last round peer" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "gcfl/proteins"], "gcfl/proteins has 3 cases, one is measured: choose it with --set"),
        (["peers", "--settings", "protein"], 'did you mean "proteins"?'),
        (["peers", "--rounds", "5"], "without --accuracy times are compared: leave --rounds out"),
        (["peers", "--accuracy", "--warmup", "0"], "--accuracy takes no times: leave --warmup out"),
        (["peers", "--settings", "asynchronous"], "asynchronous needs --peer PYTHON, one that has APPFL"),
        (["peers", "--settings", "nci1-all"], "nci1-all needs --peer PYTHON, one that has pfl or BlazeFL"),
        (["peers", "--settings", "nci1,nci1-all"], "give settings of one kind of peer"),
        (["peers", "--peer", sys.executable], "--peer: use it with --settings asynchronous, buffered,"),
        (
            ["peers", "--settings", "buffered", "--peer", sys.executable, "--peer", sys.executable],
            "--peer: give one, which has APPFL",
        ),
        (
            ["peers", "--settings", "proteins-all", "--peer", sys.executable],
            f"--peer {sys.executable}: name a Python that has pfl or BlazeFL",
        ),
        (
            ["peers", "--settings", "buffered", "--peer", sys.executable],
            f"--peer {sys.executable}: name a Python that has APPFL",
        ),
        (["record", "--out", "missing"], "choose another --out"),
        (["data", "synthetic", "--mirror", "."], "dataset synthetic has no files"),
        (["train", "--repetitions", "0"], "see fedmpi bench train --help"),
        (["comm", "--size", "many"], "'--size'"),
        (["peers", "--settings", ""], '--settings: there is no "": give names with commas between them'),
        (["train", "micro/train", "--set", "setting=nci"], 'no such value; did you mean "nci1"?'),
        (["ranks", *TINY, "--ranks", "5000"], "--ranks 5000: give whole numbers from 1 to"),
        (["ranks", *TINY, "--ranks", "2"], "--ranks 2: give different numbers of ranks, two at least"),
        (["nothing"], "No such command 'nothing'; see fedmpi bench --help"),
    ],
)
def test_mistakes_are_one_line(fedmpi, arguments, message):
    refused(fedmpi("bench", *arguments), message)


def test_what_measures_one_process_refuses_several(fedmpi, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    refused(fedmpi("bench", "record"), "start it without mpiexec")
