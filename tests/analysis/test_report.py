import json
from pathlib import Path

import numpy as np
import pytest

from fedmpi.analysis.discovery import run_paths
from fedmpi.cli.compare import say_identical as compare
from fedmpi.cli.records import repair
from fedmpi.cli.report import Formats, Lines, report
from fedmpi.errors import BadInput
from fedmpi.store.lock import FolderLock
from fedmpi.store.reader import load_run
from tests.analysis.tasks import begun

ACCURACY = [[0.5, 0.6], [0.9, 0.8], [0.7, 0.7]]


def test_accuracy_without_twins(tmp_path, make_run, capsys):
    partition = {
        "test_ptr": np.array([0, 4, 6]),
        "test_twin_own": np.array([1, 0, 0, 0, 0, 1], np.uint8),
        "test_twin_other": np.array([1, 0, 1, 0, 1, 0], np.uint8),
    }
    correct = [[1, 1, 1, 1, 1, 1], [1, 0, 0, 1, 1, 0]]
    make_run(tmp_path / "case", [[1.0, 1.0], [0.5, 0.5]], partition=partition, correct=correct)
    report([tmp_path / "case"], as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row["test_accuracy_without_twins"] == 0.5
    assert row["test_accuracy_without_twins_best_by_validation"] == 1.0
    clients = [(c["test_graphs_without_twins"], c["test_accuracy_without_twins"]) for c in row["per_client"]]
    assert clients == [(2, 0.5), (0, None)]


TO_TARGET = {"rounds": 2, "seconds": 3.0, "virtual_seconds": 20.0}
TO_TARGET |= {"client_bytes": 6_000_000, "model_flops": 8_000_000_000}


def test_figures_of_a_run_as_json(tmp_path, make_run, capsys):
    make_run(tmp_path / "case", ACCURACY)
    assert report([tmp_path / "case"], target=0.7, as_json=True) == 0
    (row,) = json.loads(capsys.readouterr().out)
    expected = {
        "case": "case",
        "dataset": "PROTEINS",
        "algorithm": "fedavg",
        "seed": 10,
        "status": "complete",
        "rounds": 3,
        "rounds_planned": 3,
        "clients": 2,
        "ranks": [2],
        "test_accuracy": 0.7,
        "worst_client": "client-0",
        "total_seconds": 6.0,
        "round_seconds_median": 2.0,
        "repeated_rounds": 0,
        "train_seconds": 1.5,
        "model_gflop": 12.0,
        "executed_gflop": 9.0,
        "client_megabytes": 9.0,
        "collective_megabytes": 18.0,
        "virtual_seconds": 30.0,
        "to_target": TO_TARGET,
    }
    assert {key: row[key] for key in expected} == expected
    assert row["test_accuracy_best_by_validation"] == pytest.approx(0.85)
    assert row["per_client"][1]["client"] == "client-1"
    assert row["per_client"][1]["test_accuracy_best_by_validation"] == 0.8
    assert row["per_client"][1]["client_megabytes"] == 4.5


def test_two_runs_of_a_suite_as_a_table(tmp_path, make_run, capsys):
    make_run(tmp_path / "suite" / "fedavg-10", ACCURACY)
    make_run(tmp_path / "suite" / "fedavg-42", ACCURACY, seed=42, status="diverged")
    assert report([tmp_path / "suite"], target=0.9, lines=Lines("case")) == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines() if line.startswith("fedavg-")]
    assert lines[0][:8] == ["fedavg-10", "PROTEINS", "fedavg", "10", "complete", "3/3", "2", "70.00"]
    assert lines[1][:5] == ["fedavg-42", "PROTEINS", "fedavg", "42", "diverged"]
    assert lines[0][-2:] == ["never", "never"]
    assert "client-1" not in text
    assert "made up" in text


def three_seeds(folder, make_run, **gains):
    """Record three seeds of algorithms: FedAvg at 60, 70 and 80 %, the others so many points above."""
    for seed, base in ((1, 0.6), (2, 0.7), (3, 0.8)):
        for name, points in gains.items():
            gain = points[seed - 1] if isinstance(points, tuple) else points
            values = [[base + gain / 100] * 2] * 2
            make_run(folder / f"{name}-{seed}", values, seed=seed, settings={"algorithm": {"name": name}})
    return folder


def cells_of(shown):
    return {line.split()[1]: line.split()[2:] for line in shown.splitlines() if line.startswith("PROTEINS")}


def test_several_runs_are_averaged_over_seeds_with_leads_over_fedavg(tmp_path, make_run, capsys, monkeypatch):
    gains = {"fedprox": (1.0, 2.0, 3.0), "fedavg": 0.0, "krum": (5.0, -5.0, 0.0), "ditto": 0.0}
    runs = three_seeds(tmp_path, make_run, **gains)
    monkeypatch.setenv("COLUMNS", "80")
    assert report([runs]) == 0
    shown = capsys.readouterr().out
    assert "lead over" in shown and max(map(len, shown.splitlines())) <= 80
    assert cells_of(shown) == {  # 4.3027 * 10 / sqrt(3) = 24.84
        "FedAvg": ["70.00", "±", "24.84", "-", "reference", "2", "3"],
        "FedProx": ["72.00", "±", "27.33", "+2.00", "±", "2.48", "undecided", "2", "3"],
        "Krum": ["70.00", "±", "21.51", "+0.00", "±", "12.42", "undecided", "2", "3"],
        "Ditto": ["70.00", "±", "24.84", "+0.00", "±", "0.00", "equal", "2", "3"],
    }
    assert "s/round, total s, model GFLOP, client MB" in " ".join(shown.split())


def test_a_lead_is_decided_where_its_interval_excludes_0_over_the_reference_that_is_asked_for(
    tmp_path, make_run, capsys
):
    runs = three_seeds(tmp_path, make_run, fedavg=0.0, fedprox=(2.0, 2.5, 3.0), krum=-5.0)
    assert report([runs], as_json=True, lines=Lines("algorithm", "FedProx")) == 0
    rows = {row["algorithm"]: row for row in json.loads(capsys.readouterr().out)}
    assert {name: (row["reference"], row["verdict"]) for name, row in rows.items()} == {
        "FedAvg": ("FedProx", "worse"),
        "FedProx": (None, None),
        "Krum": ("FedProx", "worse"),
    }
    assert rows["FedAvg"]["seeds"] == [1, 2, 3] and rows["FedAvg"]["pairs"] == 3
    assert rows["FedAvg"]["lead"] == pytest.approx(-0.025)
    assert rows["FedAvg"]["lead_half"] == pytest.approx(0.0124207)  # 4.30265 * 0.005 / sqrt(3)
    assert (rows["FedProx"]["test_accuracy"], rows["FedProx"]["lead"]) == (pytest.approx(0.725), None)


def test_a_target_says_how_many_reached_it_and_what_is_not_complete_stands_apart_from_the_means(
    tmp_path, make_run, capsys, monkeypatch
):
    three_seeds(tmp_path, make_run, fedavg=0.0, krum=11.0)
    make_run(tmp_path / "fedavg-4", ACCURACY, seed=4, status="diverged")
    monkeypatch.setenv("COLUMNS", "80")
    assert report([tmp_path], target=0.7) == 0
    means, _, apart = capsys.readouterr().out.partition("Not complete, so in no mean")
    cells = cells_of(means)
    assert cells["FedAvg"][:3] == ["70.00", "±", "24.84"]
    assert (cells["FedAvg"][-5:-1], cells["Krum"][-2:]) == (["2", "of", "3", "runs"], ["1", "3"])
    assert "fedavg-4" in apart and "diverged" in apart


@pytest.mark.parametrize(
    ("lines", "formats", "words"),
    [
        (Lines("algorithm", "gcfl"), Formats(), "--reference gcfl: complete runs are of fedavg, krum"),
        (Lines("case", "krum"), Formats(), "--reference: single cases have no lead; give --by algorithm"),
        (Lines("case"), Formats(markdown=True), "--by case: the page, --markdown and --latex have means"),
    ],
)
def test_what_means_cannot_give_is_refused(tmp_path, make_run, lines, formats, words):
    runs = three_seeds(tmp_path, make_run, fedavg=0.0, krum=1.0)
    with pytest.raises(BadInput, match=words):
        report([runs], formats=formats, lines=lines)


def test_a_single_run_comes_with_its_clients_and_names_as_they_stand(tmp_path, make_run, capsys):
    report([make_run(tmp_path / "it's [red] \\[x", ACCURACY)])
    shown = capsys.readouterr().out
    assert "it's [red] \\[x" in shown and "client-1" in shown


def test_rows_that_cannot_be_written_and_a_run_without_a_finished_round(tmp_path, make_run, capsys):
    run = make_run(tmp_path / "a", ACCURACY)
    with pytest.raises(BadInput, match="its record does not say how many examples each client has"):
        report([run], csv=tmp_path / "rows.csv")
    begun(tmp_path / "b")
    assert report([tmp_path / "b"], target=0.5) == 0
    assert "0/3" in capsys.readouterr().out
    with pytest.raises(BadInput, match=r"--csv /proc/none/rows.csv: cannot write it"):
        report([tmp_path / "b"], csv=Path("/proc/none/rows.csv"))


def test_what_cannot_be_read_is_named_and_the_rest_reported(tmp_path, make_run, capsys):
    make_run(tmp_path / "suite" / "good", ACCURACY)
    (make_run(tmp_path / "suite" / "bad", ACCURACY) / "run.h5").write_text("")
    (tmp_path / "empty").mkdir()
    assert report([tmp_path / "suite", tmp_path / "empty", tmp_path / "none"]) == 2
    out, err = capsys.readouterr()
    assert "good" in out and "bad" not in out
    assert [line.rpartition(": ")[2] for line in err.splitlines()] == [
        f"fedmpi records repair {tmp_path / 'suite' / 'bad'}",
        "no run (run.h5) in it or below",
        "no such file or folder, and no suite's runs in results/runs",
    ]


def test_runs_behind_links_are_found_and_counted_once(tmp_path, make_run):
    make_run(tmp_path / "store" / "run", ACCURACY)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "linked").symlink_to(tmp_path / "store", target_is_directory=True)
    (tmp_path / "suite" / "again").symlink_to(tmp_path / "suite", target_is_directory=True)
    assert run_paths(tmp_path / "suite") == [tmp_path / "suite" / "linked" / "run"]


def test_identical_compares_two_runs_or_two_suites_case_by_case(tmp_path, make_run, capsys):
    partition = {"test_ptr": np.array([0, 1, 3])}

    def made(name, accuracy=ACCURACY, last=1, **options):
        correct = [[1, 1, 1], [1, 1, 1], [1, 1, last]]
        return make_run(tmp_path / name, accuracy, partition=partition, correct=correct, **options)

    a, b = made("one/x"), made("two/x")
    assert compare(a, b) == 0
    assert capsys.readouterr().out == "identical: 20 result datasets, 3 rounds\n"
    assert compare(a, made("c", [*ACCURACY[:2], [0.7, 0.75]])) == 1
    words = "/rounds/test_accuracy: 0.7 -> 0.75 in round 3, client client-1 (1 of 6 values differ)"
    assert words in capsys.readouterr().out
    assert compare(a, made("d", last=0)) == 1
    assert "/rounds/test_correct: 1 -> 0 in round 3, client client-1" in capsys.readouterr().out
    for suite in ("one", "two"):
        made(f"{suite}/y", seed=42)
    assert compare(tmp_path / "one", tmp_path / "two") == 0
    assert capsys.readouterr().out == "identical: 2 cases, 40 result datasets, 6 rounds\n"
    made("two/z")
    assert compare(tmp_path / "one", tmp_path / "two") == 1
    assert f"case z: only in {tmp_path / 'two'}" in capsys.readouterr().out


def test_repair_keeps_away_from_a_live_run(tmp_path, make_run, capsys):
    folder = make_run(tmp_path / "case", ACCURACY)
    with FolderLock(folder), pytest.raises(BadInput, match="is in use by pid"):
        repair(folder)
    (folder / "run.h5").write_bytes(b"broken")
    assert repair(folder) == 0
    assert "rebuilt from the event log, 3 rounds" in capsys.readouterr().out
    assert load_run(folder).rounds_completed == 3
    assert (folder / "run.h5.damaged").read_bytes() == b"broken"
