"""Bad input ends with exit code 2, one line, and nothing half-written."""

import os

import pytest

from fedmpi.store.lock import FolderLock
from fedmpi.store.record import RunRecord
from tests.cli.own_graphs import write_graphs
from tests.cli.refusals import refused
from tests.started import sets


def contents(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "rouns=3"], ["--set rouns", '"rounds"']),
        (["--set", "rounds=0"], ["--set rounds", "greater than or equal to 1"]),
        (["--set", "algorithm=fedaverage"], ['"fedaverage"', "fedavg"]),
        (["--set", "model=gcnn"], ["valid: fedgraphnn/gat"]),
        (["--set", "dataset=PROTEIN", "--offline"], ["PROTEIN", "PROTEINS"]),
        (["--set", "dataset=MUTAG", "--offline", "--data", "nowhere"], ["fedmpi data fetch MUTAG"]),
        (["--case", "17"], ["cases 0 to 2"]),
        (["--out", "/proc/nothing"], ["/proc"]),
        (["--set", "threads=900"], ["threads = 900"]),
        (["--plugin", "missing.py"], ["missing.py"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_refused_run_writes_nothing(fedmpi, tiny_suite, tmp_path, monkeypatch, arguments, words):
    monkeypatch.delenv("FEDMPI_MIRROR", raising=False)
    refused(fedmpi("run", tiny_suite, *arguments), *words)
    assert contents(tmp_path) == ["tiny.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "gcfl/protein"], ['did you mean "gcfl/proteins"?', "`fedmpi suites`"]),
        (["suites", "fclg", "MUTAG"], ["no bundled suite says fclg and MUTAG"]),
        (["figure", "x"], ["No such command 'figure'"]),
        (["analyse", "statistics", ""], ["an empty name is no dataset's"]),
        (["scaling", "anywhere", "--predict", "9" * 5000], ["give whole numbers from 1 to 99,999"]),
        (["scaling", "anywhere", "--predict", "\u00b2"], ["give whole numbers from 1 to 99,999"]),
    ],
    ids=lambda value: " ".join(value)[:30],
)
def test_names_and_numbers_that_are_none(fedmpi, arguments, words):
    refused(fedmpi(*arguments), *words)


def test_an_archive_cut_short(fedmpi, tiny_suite, tmp_path):
    archive = tmp_path / "mirror" / "tudataset" / "MUTAG.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"PK\x03\x04" + bytes(500))
    settings = ("--set", "dataset=MUTAG", "--set", "partition=iid")
    done = fedmpi("run", tiny_suite, *settings, "--mirror", "mirror", "--data", "data")
    refused(done, "MUTAG.zip", "cut short or damaged")
    assert not (tmp_path / "data").exists()


def test_a_finished_case_is_skipped_and_another_run_is_not_overwritten(fedmpi, tiny_suite, tmp_path):
    command, text = ("run", tiny_suite, "--out", "runs", "--case", "fedavg"), tiny_suite.read_text()
    fedmpi(*command, code=0)
    again = fedmpi(*command, code=0)
    assert "complete, skipped" in again.stdout
    refused(fedmpi("run", "runs/fedavg"), "add --resume")
    tiny_suite.write_text(text.replace("rounds = 4", "rounds = 5"))
    refused(fedmpi(*command, "--resume"), "another configuration", "rounds: 4 -> 5")
    tiny_suite.write_text(text)
    with RunRecord.reopen(tmp_path / "runs" / "fedavg") as record:
        record.finish("interrupted")
    refused(fedmpi(*command), "interrupted", "--resume")


def test_a_folder_in_use_is_refused(fedmpi, tiny_suite, tmp_path):
    with FolderLock(tmp_path / "runs" / "fedavg"):
        done = fedmpi("run", tiny_suite, "--out", "runs", "--case", "fedavg")
    refused(done, "in use by pid")


def test_overlooked_labels_of_an_own_head(fedmpi, tmp_path):
    write_graphs(tmp_path, "RARE", [0] * 30 + [1] * 29 + [2])
    partition = 'partition = { name = "iid", clients = 1, seed = 1 }'
    (tmp_path / "own.toml").write_text(f'[case]\ndataset = "own/RARE"\nrounds = 1\n{partition}')
    command = ("run", "own.toml", "--set", "model.head=own", "--data", "data", "--out", "runs")
    runs = (fedmpi(*command, "--set", f"partition.seed={seed}") for seed in range(12))
    refused(next(done for done in runs if done.returncode), "label 2", 'model.head = "dataset"')


def test_names_do_not_leave_the_output_folder(fedmpi, tiny_suite, tmp_path):
    text = tiny_suite.read_text()
    for name in ('"../evil"', '"/evil"', '""', "5", '"a/../b"'):
        tiny_suite.write_text(text.replace('"tiny"', name))
        refused(fedmpi("run", tiny_suite), "name: letters")
    axes = '["fedavg"]\nx = [{ label = "..", rounds = 1 }]'
    tiny_suite.write_text(text.replace('["fedavg", "fedprox", "self-train"]', axes))
    fedmpi("run", tiny_suite, "--out", "runs", code=0)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["fedavg-.."]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rounds = = 3", ["bad.toml: not TOML", "line 1"]), ("where = 3", []), ("[[where]]\nwhen = 1\nset = 2", []),
        ("priority = 3", []), ('priority = [["seed"]]', []), ("[case]\nrounds = true", []),
        ('[case]\nmodel = { name = ["gin"] }', []), ("[case]\nrounds = 10000000000", []),
        ('[case]\ndataset = "~nouser/x"', []),
    ],
)  # fmt: skip
def test_malformed_suites_get_one_line(fedmpi, tmp_path, text, words):
    (tmp_path / "bad.toml").write_text(text)
    refused(fedmpi("run", "bad.toml", "--offline"), *words)


def test_node_labels_that_are_no_categories(fedmpi, tmp_path):
    folder = write_graphs(tmp_path, "WILD", [1])
    (tmp_path / "own.toml").write_text('[case]\ndataset = "own/WILD"\npartition = "iid"')
    for label in (99999999999, 9223372036854775807):
        (folder / "WILD_node_labels.txt").write_text(f"0\n{label}\n")
        refused(fedmpi("run", "own.toml", "--data", "data"), "WILD_node_labels.txt")


LONG = "x" * 300
TWELVE = [
    "optimizer.lr=0.01", "optimizer.beta1=0.91", "optimizer.beta2=0.9991", "optimizer.eps=1e-9",
    "optimizer.weight_decay=0.0005", "checkpoint_seconds=12.125", "batch_size=127", "evaluation.every=2",
    "link.megabits=12.125", "link.latency_ms=12.125", "model.hidden=32", "model.dropout=0.25",
]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "WORD"], ["run", "tiny.toml", "--out", "WORD"], ["run", "tiny.toml", "--plugin", "WORD"],
        ["run", "tiny.toml", "--mirror", "WORD"], ["sweep", "WORD"], ["report", "WORD"], ["compare", "WORD", "a"],
        ["watch", "WORD", "--once"], ["records", "pack", "WORD"], ["records", "verify", "WORD"], ["records", "repair", "WORD"], ["paper", "select", "WORD"],
        ["data", "verify", "WORD"], ["jobs", "plan", "tiny.toml", "--system", "WORD"], ["jobs", "status", "WORD"],
        ["analyse", "leakage", "WORD"], ["plot", "losses", "WORD"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize(
    "word", [LONG, "a\0b", "caf\udce9", "d/" * 3000], ids=["long", "NUL", "bytes", "deep"]
)
def test_words_that_no_path_can_be(fedmpi, tiny_suite, tmp_path, monkeypatch, arguments, word):
    monkeypatch.delenv("FEDMPI_MIRROR", raising=False)
    words = [word if part == "WORD" else part for part in arguments]
    refused(fedmpi(*words, *["--offline"] * (words[0] == "run")))
    assert contents(tmp_path) == ["tiny.toml"]


@pytest.mark.parametrize("name", ["FEDMPI_DATA", "FEDMPI_MIRROR"])
def test_variables_that_no_path_can_be(fedmpi, tiny_suite, monkeypatch, name):
    monkeypatch.setenv(name, "x" * 5000)
    refused(fedmpi("run", tiny_suite, "--set", "dataset=MUTAG", "--set", "partition=iid"), "xxx")


def test_a_case_of_twelve_overrides_has_a_short_name_and_is_resumed(fedmpi, tiny_suite, tmp_path):
    overrides = sets(*TWELVE)
    fedmpi("run", tiny_suite, "--case", "fedavg", *overrides, "--out", "runs", code=0)
    (folder,) = (tmp_path / "runs").iterdir()
    assert len(folder.name) == 173
    assert folder.name.startswith("fedavg-optimizer.lr=0.01-optimizer.beta1=0.91-")
    again = fedmpi("run", tiny_suite, "--case", "0", *overrides, "--out", "runs", "--resume")
    assert "complete, skipped" in again.stdout


def test_a_pipe_among_a_runs_files_is_not_waited_for(fedmpi, tiny_suite, tmp_path):
    (tmp_path / "runs" / "fedavg").mkdir(parents=True)
    os.mkfifo(tmp_path / "runs" / "fedavg" / "run.h5")
    refused(fedmpi("run", tiny_suite, "--out", "runs"), "run.h5: a pipe or device")
    refused(fedmpi("report", "runs"), "no run (run.h5) in it or below")
