"""The command line end to end on one process."""

import json
import signal
import time

import numpy as np
import pytest

from fedmpi.cli import sweep
from fedmpi.cli.options import SweepOptions
from fedmpi.cli.plan import Selection, plan_suite
from fedmpi.cli.sweep import run_missing
from fedmpi.client.client import Client
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.store.identical import differences, rounds_digest
from fedmpi.store.lock import FolderLock, state
from fedmpi.store.reader import load_run
from tests.cli.refusals import refused


@pytest.mark.long
def test_a_suite_ends_with_a_table_and_is_repeated_bit_for_bit(fedmpi, tiny_suite, tmp_path):
    done = fedmpi("run", tiny_suite, code=0)
    assert "Partition: 3 clients" in done.stdout
    assert "round 4/4" in done.stdout
    assert "results/runs/tiny/*/run.h5" in done.stdout
    rows = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("synthetic  ")]
    assert rows == [["synthetic", name] for name in ("FedAvg", "FedProx", "self-train")]
    # w = w_t at the first step of a round, so the proximal gradient is zero there.
    assert (done.stdout + done.stderr).count("fedprox: every client takes one step per round") == 1
    first = tmp_path / "results" / "runs" / "tiny"
    alone, fedavg, fedprox = (load_run(first / name) for name in ("self-train", "fedavg", "fedprox"))
    assert rounds_digest(fedavg) == rounds_digest(fedprox)
    assert not alone.results["client_bytes_up"].any()
    assert (fedavg.results["client_bytes_up"] == 99_840).all()
    assert (fedavg.results["client_bytes_down"] == 99_840).all()
    fedmpi("run", tiny_suite, "--out", "again", code=0)
    assert differences(first / "fedprox", tmp_path / "again" / "fedprox") == []
    same = fedmpi("compare", first, "again", "--identical", code=0)
    assert same.stdout.startswith("identical: 3 cases")
    done = fedmpi("report", "again", "--json", "--target", "0.5", code=0)
    assert {row["algorithm"] for row in json.loads(done.stdout)} == {"fedavg", "fedprox", "self-train"}


@pytest.mark.long
def test_suites_are_listed_by_words_of_their_names_and_descriptions(fedmpi):
    everything, some = fedmpi("suites").stdout, fedmpi("suites", "fclg", "nci1").stdout
    assert all(f"\n{name} " in everything for name in locations.bundled())
    listed = [name for name in locations.bundled() if f"\n{name} " in some]
    assert listed == ["fclg/table2", "fclg/table3"]
    assert f" {len(read(locations.find('fclg/table2')).cases)} " in some


def test_self_train_on_fewer_rounds_is_the_beginning_of_a_longer_run(fedmpi, tiny_suite, tmp_path):
    for rounds in (3, 6):
        settings = ("--set", "algorithm=self-train", "--set", f"rounds={rounds}")
        fedmpi("run", tiny_suite, *settings, "--out", f"r{rounds}")
    short = load_run(tmp_path / "r3" / "self-train-rounds=3").results
    long = load_run(tmp_path / "r6" / "self-train-rounds=6").results
    for name, values in short.items():
        assert np.array_equal(values, long[name][:3], equal_nan=values.dtype.kind == "f"), name


def test_two_cases_that_are_the_same_refuse_no_other(fedmpi, tmp_path):
    (tmp_path / "twins.toml").write_text("""
        name = "twins"
        [case]
        dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 40 } }
        rounds = 1
        [matrix]
        mode = [
            { label = "a", local_epochs = 1 }, { label = "b", local_epochs = 2 }, { label = "c", local_epochs = 2 }
        ]
    """)
    same = "b and c have the same settings: remove one"
    fedmpi("run", "twins.toml", "--case", "0", "--out", "runs", code=0)
    for chosen in (("--case", "1"), ("--case", "2"), ()):
        refused(fedmpi("run", "twins.toml", *chosen, "--out", "runs"), same)


def test_fedprox_differs_from_fedavg_when_a_round_has_two_steps(fedmpi, tiny_suite, tmp_path):
    said = fedmpi("run", tiny_suite, "--out", "runs", "--set", "local_epochs=2")
    assert "takes one step" not in said.stdout + said.stderr
    folders = [tmp_path / "runs" / f"{name}-local_epochs=2" for name in ("fedavg", "fedprox")]
    assert len({rounds_digest(load_run(folder)) for folder in folders}) == 2


def test_sampled_clients_train_and_the_others_get_the_new_model(fedmpi, tiny_suite, tmp_path):
    fedmpi("run", tiny_suite, "--out", "runs", "--set", "algorithm=fedavg", "--set", "participation=0.3")
    results = load_run(tmp_path / "runs" / "fedavg-participation=0.3").results
    took_part = results["participated"] == 1
    assert (took_part.sum(axis=1) == 1).all()
    assert np.isnan(results["train_loss"][~took_part]).all()
    assert np.isfinite(results["test_loss"]).all()
    assert (results["client_bytes_up"][~took_part] == 0).all()


@pytest.mark.parametrize(
    ("key", "values", "field"),
    [
        ("reduction", ("exact", "float32", "fixed32"), "test_loss"),
        ("kernels", ("reference", "compiled", "csr"), "train_loss"),
    ],
)
def test_other_kernels_differ_by_rounding(fedmpi, tiny_suite, tmp_path, key, values, field):
    found = []
    for value in values:
        fedmpi("run", tiny_suite, "--out", "runs", "--case", "0", "--set", f"{key}={value}")
        found.append(load_run(tmp_path / "runs" / f"fedavg-{key}={value}").results)
    for results in found[1:]:
        assert np.allclose(found[0][field], results[field], rtol=1e-4)
        assert np.array_equal(results["model_flops"], found[0]["model_flops"])


def test_a_diverging_run_says_where_and_ends_with_3(fedmpi, tiny_suite, tmp_path):
    fedmpi("run", tiny_suite, "--out", "runs", "--case", "0", "--set", "optimizer.lr=1e30", code=3)
    run = load_run(tmp_path / "runs" / "fedavg-optimizer.lr=1e30")
    assert run.status == "diverged"
    assert "round 1: client synthetic-0" in run.reason
    assert run.rounds_completed == 0


@pytest.mark.parametrize("last", [1, 3])
def test_scores_that_are_lost_end_the_run_before_their_round(fedmpi, tiny_suite, tmp_path, monkeypatch, last):
    original, seen = Client.evaluate, []

    def evaluate(self):
        seen.append(self.id)
        found = original(self)
        if seen.count(1) == last + 1 and self.id == 1:
            found.test.losses[:] = np.inf
        return found

    monkeypatch.setattr(Client, "evaluate", evaluate)
    fedmpi("run", tiny_suite, "--out", "runs", "--case", "0", code=3)
    run = load_run(tmp_path / "runs" / "fedavg")
    assert (run.status, run.rounds_completed) == ("diverged", last)
    assert run.reason.startswith(f"round {last + 1}: client synthetic-1 ")


@pytest.mark.long
def test_a_process_finishes_its_round_and_goes_on(fedmpi, fedmpi_process, tiny_suite, tmp_path):
    """The others are in ``test_resume.py``, and USR1 in ``test_watch.py``."""
    arguments = ["run", str(tiny_suite), "--case", "0", "--set", "rounds=80"]
    process = fedmpi_process(*arguments, "--out", "parts")
    for line in process.stdout:
        if "round  5/80" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 75
    folder = tmp_path / "parts" / "fedavg-rounds=80"
    stopped = load_run(folder)
    assert stopped.status == "interrupted"
    assert 5 <= stopped.rounds_completed < 80
    fedmpi("run", "--resume", folder, code=0)
    assert len(load_run(folder).attempts) == 2
    fedmpi(*arguments, "--out", "whole", code=0)
    assert differences(tmp_path / "whole" / "fedavg-rounds=80", folder) == []


def test_a_sweep_runs_what_is_missing_and_keeps_a_budget(fedmpi, tiny_suite, tmp_path):
    fedmpi("run", tiny_suite, "--out", "runs", "--case", "1")
    started = time.monotonic()
    fedmpi("sweep", tiny_suite, "--out", "runs", "--budget", "0", code=75)
    assert time.monotonic() - started < 60
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--workers", "2", code=0)
    assert "3 cases, 1 complete, 2 to run" in done.stdout
    names = ("fedavg", "fedprox", "self-train")
    assert {load_run(tmp_path / "runs" / name).status for name in names} == {"complete"}


def test_a_sweep_does_not_start_what_another_has_finished_meanwhile(fedmpi, tiny_suite, tmp_path, capfd):
    plan = plan_suite(read(tiny_suite), tmp_path / "runs", resume=True)
    fedmpi("run", tiny_suite, "--out", tmp_path / "runs", code=0)
    assert run_missing(plan, tiny_suite, SweepOptions(out=tmp_path / "runs")) == 0
    assert "[3/3] self-train: complete, by another process" in capfd.readouterr().out


def test_what_another_sweep_took_meanwhile_is_left_alone(fedmpi, tiny_suite, tmp_path, capfd, monkeypatch):
    first_looks = ["free"]
    monkeypatch.setattr(sweep, "state", lambda folder: first_looks.pop() if first_looks else state(folder))
    with FolderLock(tmp_path / "runs" / "fedavg"):
        code = fedmpi("sweep", tiny_suite, "--out", "runs", "--set", "algorithm=fedavg")
    assert code.returncode == 75
    assert "fedavg: another process runs it, left alone" in code.stdout
    assert "bad input" not in code.stdout


def test_ranks_that_each_believe_to_be_alone_are_told(fedmpi_process, tiny_suite, monkeypatch):
    # What a launcher of another MPI leaves in the environment of each of its three processes.
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    process = fedmpi_process("run", tiny_suite, "--out", "runs")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the launcher started 3 ranks but MPI sees 1" in error.splitlines()[-1]


def test_a_case_is_chosen_by_number_or_name(fedmpi, tiny_suite):
    for wanted in ("1", "fedprox", "fedprox-rounds=2"):
        listed = fedmpi("run", tiny_suite, "--case", wanted, "--set", "rounds=2", "--list")
        assert listed.stdout.splitlines()[1].split() == ["1", "fedprox-rounds=2"]
    fedmpi("run", tiny_suite, "--case", "fed", "--list", code=2)


UNFIT = ("--set", "reduction=secagg", "--set", "record=protocol", "--out", "runs")
"""What self-train, which has no sums over clients, cannot do."""


def test_what_is_wrong_with_a_case_refuses_only_those_who_chose_it(fedmpi, tiny_suite, tmp_path):
    (tmp_path / "list").write_text("fedprox-reduction=secagg-record=protocol\n")
    refused(fedmpi("run", tiny_suite, *UNFIT), 'self-train has no sums over clients: use "full"\n')
    fedmpi("run", tiny_suite, *UNFIT, "--case", "2", code=2)
    fedmpi("run", tiny_suite, *UNFIT, "--case", "0", code=0)
    refused(fedmpi("sweep", tiny_suite, *UNFIT, "--share", "0/2"), "self-train has no sums")
    done = fedmpi("sweep", tiny_suite, *UNFIT, "--share", "1/2")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1 case, 0 complete, 1 to run"), done.stdout
    listed = fedmpi("run", tiny_suite, *UNFIT, "--cases", "list")
    assert listed.returncode == 0 and "complete, skipped" in listed.stdout


def test_a_case_is_named_without_what_set_added(tmp_path):
    overrides = ["seed=10", "dataset=PROTEINS", "rounds=3"]
    suite = read(locations.find("gcfl/table3"), overrides)
    for wanted in ("seed10-PROTEINS-gcfl", "seed10-PROTEINS-gcfl-plus", "seed10-PROTEINS-gcfl-plus-dws"):
        (planned,) = plan_suite(suite, tmp_path, resume=False, selection=Selection(wanted))
        assert planned.checked.case.name == f"{wanted}-rounds=3"
