"""Bad input ends with exit code 2, one line, and nothing half-written."""

import os

import pytest

from fedmpi.store.record import RunRecord


def refused(done, *words):
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("fedmpi: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr
    return True


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
        (
            [
                *("--set", "algorithm=fedcch", "--set", "model.norm=graph"),
                *("--set", "attack={name = 'noise', clients = [0]}"),
                *("--set", "reduction={name = 'secagg', clip = 8.0, dropouts = {probability = 0.1}}"),
            ],
            ["--set reduction.dropouts: attackers start from their group's model", "remove the setting"],
        ),
        (["--case", "17"], ["cases 0 to 2"]),
        (["--out", "/proc/nothing"], ["/proc"]),
        (["--set", "threads=900"], ["threads = 900"]),
        (["--plugin", "missing.py"], ["missing.py"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_run_is_refused_before_anything_is_written(
    fedmpi, tiny_suite, tmp_path, monkeypatch, arguments, words
):
    monkeypatch.delenv("FEDMPI_MIRROR", raising=False)
    before = contents(tmp_path)
    done = fedmpi("run", tiny_suite, *arguments)
    assert refused(done, *words)
    assert contents(tmp_path) == before


def test_a_missing_suite_names_the_nearest_and_where_the_others_are(fedmpi):
    assert refused(fedmpi("run", "gcfl/protein"), 'did you mean "gcfl/proteins"?', "`fedmpi suites`")


def test_suites_that_nothing_is_said_of(fedmpi):
    assert refused(fedmpi("suites", "fclg", "MUTAG"), "no bundled suite says fclg and MUTAG")


def test_a_suite_that_is_not_toml(fedmpi, tmp_path):
    (tmp_path / "bad.toml").write_text("rounds = = 3")
    assert refused(fedmpi("run", "bad.toml"), "bad.toml: not TOML", "line 1")


def test_an_archive_cut_short(fedmpi, tiny_suite, tmp_path):
    archive = tmp_path / "mirror" / "tudataset" / "MUTAG.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"PK\x03\x04" + bytes(500))
    done = fedmpi(
        "run",
        tiny_suite,
        "--set",
        "dataset=MUTAG",
        "--set",
        "partition=iid",
        "--mirror",
        "mirror",
        "--data",
        "data",
    )
    assert refused(done, "MUTAG.zip", "cut short or damaged")
    assert not (tmp_path / "data").exists()


def test_a_finished_case_is_skipped_and_an_edited_suite_refused(fedmpi, tiny_suite):
    assert fedmpi("run", tiny_suite, "--out", "runs", "--case", "fedavg").returncode == 0
    again = fedmpi("run", tiny_suite, "--out", "runs", "--case", "fedavg")
    assert again.returncode == 0
    assert "complete, skipped" in again.stdout
    tiny_suite.write_text(tiny_suite.read_text().replace("rounds = 4", "rounds = 5"))
    done = fedmpi("run", tiny_suite, "--out", "runs", "--case", "fedavg", "--resume")
    assert refused(done, "another configuration", "rounds: 4 -> 5")


def test_a_folder_in_use_is_refused(fedmpi, tiny_suite, tmp_path):
    from fedmpi.store.lock import FolderLock

    with FolderLock(tmp_path / "runs" / "fedavg"):
        done = fedmpi("run", tiny_suite, "--out", "runs", "--case", "fedavg")
    assert refused(done, "in use by pid")


def test_an_unfinished_run_is_not_overwritten(fedmpi, tiny_suite, tmp_path):
    assert fedmpi("run", tiny_suite, "--out", "runs", "--case", "0").returncode == 0
    with RunRecord.reopen(tmp_path / "runs" / "fedavg") as record:
        record.finish("interrupted")
    done = fedmpi("run", tiny_suite, "--out", "runs", "--case", "0")
    assert refused(done, "interrupted", "--resume")


def test_overlooked_labels_of_an_own_head(fedmpi, tmp_path):
    folder = tmp_path / "own" / "RARE"
    folder.mkdir(parents=True)
    labels = [0] * 30 + [1] * 29 + [2]
    (folder / "RARE_A.txt").write_text(
        "".join(f"{2 * g + 1}, {2 * g + 2}\n{2 * g + 2}, {2 * g + 1}\n" for g in range(60))
    )
    (folder / "RARE_graph_indicator.txt").write_text("".join(f"{g + 1}\n{g + 1}\n" for g in range(60)))
    (folder / "RARE_graph_labels.txt").write_text("".join(f"{label}\n" for label in labels))
    suite = tmp_path / "own.toml"
    suite.write_text(
        '[case]\ndataset = "own/RARE"\nrounds = 1\npartition = { name = "iid", clients = 1, seed = 1 }'
    )
    outcomes = set()
    for seed in range(12):
        overrides = ["--set", "model.head=own", "--set", f"partition.seed={seed}", "--data", "data"]
        done = fedmpi("run", suite, "--out", f"runs{seed}", *overrides)
        outcomes.add(done.returncode)
        if done.returncode == 2:
            assert refused(done, "label 2", 'model.head = "dataset"')
    assert 2 in outcomes


def test_names_do_not_leave_the_output_folder(fedmpi, tiny_suite, tmp_path):
    text = tiny_suite.read_text()
    for name in ('"../evil"', '"/evil"', '""', "5", '"a/../b"'):
        tiny_suite.write_text(text.replace('"tiny"', name))
        assert refused(fedmpi("run", tiny_suite), "name: letters")
    tiny_suite.write_text(
        text.replace('["fedavg", "fedprox", "self-train"]', '["fedavg"]\nx = [{ label = "..", rounds = 1 }]')
    )
    assert fedmpi("run", tiny_suite, "--out", "runs").returncode == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["fedavg-.."]


@pytest.mark.parametrize(
    "text",
    ["where = 3", "[[where]]\nwhen = 1\nset = 2", "priority = 3", 'priority = [["seed"]]', "[case]\nrounds = true",
     '[case]\nmodel = { name = ["gin"] }', "[case]\nrounds = 10000000000", '[case]\ndataset = "~nouser/x"'],
)  # fmt: skip
def test_malformed_suites_get_one_line(fedmpi, tmp_path, text):
    (tmp_path / "bad.toml").write_text(text)
    assert refused(fedmpi("run", "bad.toml", "--offline"))


def test_a_run_folder_without_resume_says_what_to_do(fedmpi, tiny_suite):
    fedmpi("run", tiny_suite, "--out", "runs", "--case", "0")
    assert refused(fedmpi("run", "runs/fedavg"), "add --resume")


def test_node_labels_that_are_no_categories(fedmpi, tmp_path):
    folder = tmp_path / "own" / "WILD"
    folder.mkdir(parents=True)
    (folder / "WILD_A.txt").write_text("1, 2\n2, 1\n")
    (folder / "WILD_graph_indicator.txt").write_text("1\n1\n")
    (folder / "WILD_graph_labels.txt").write_text("1\n")
    suite = tmp_path / "own.toml"
    suite.write_text('[case]\ndataset = "own/WILD"\npartition = "iid"')
    for label in (99999999999, 9223372036854775807):
        (folder / "WILD_node_labels.txt").write_text(f"0\n{label}\n")
        assert refused(fedmpi("run", suite, "--data", "data"), "WILD_node_labels.txt")


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
    done = fedmpi(
        *(word if part == "WORD" else part for part in arguments), *(["--offline"] * (arguments[0] == "run"))
    )
    assert refused(done)
    assert contents(tmp_path) == ["tiny.toml"]


@pytest.mark.parametrize("name", ["FEDMPI_DATA", "FEDMPI_MIRROR"])
def test_variables_that_no_path_can_be(fedmpi, tiny_suite, monkeypatch, name):
    monkeypatch.setenv(name, "x" * 5000)
    assert refused(fedmpi("run", tiny_suite, "--set", "dataset=MUTAG", "--set", "partition=iid"), "xxx")


def test_a_case_named_by_twelve_overrides_runs_under_a_short_name_and_is_resumed(
    fedmpi, tiny_suite, tmp_path
):
    overrides = [word for setting in TWELVE for word in ("--set", setting)]
    done = fedmpi("run", tiny_suite, "--case", "fedavg", *overrides, "--out", "runs")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert len(folder.name) == 173 and folder.name.startswith(
        "fedavg-optimizer.lr=0.01-optimizer.beta1=0.91-"
    )
    again = fedmpi("run", tiny_suite, "--case", "0", *overrides, "--out", "runs", "--resume")
    assert "complete, skipped" in again.stdout


@pytest.mark.parametrize(
    "option", [["--predict", "9" * 5000], ["--predict", "9" * 400], ["--predict", "\u00b2"]]
)
def test_numbers_of_ranks_that_are_none(fedmpi, option):
    assert refused(fedmpi("scaling", "anywhere", *option), "give numbers of ranks up to 99,999")


def test_a_pipe_among_a_runs_files_is_not_waited_for(fedmpi, tiny_suite, tmp_path):
    (tmp_path / "runs" / "fedavg").mkdir(parents=True)
    os.mkfifo(tmp_path / "runs" / "fedavg" / "run.h5")
    assert refused(fedmpi("run", tiny_suite, "--out", "runs"), "run.h5: a pipe or device")
    assert refused(fedmpi("report", "runs"), "no run (run.h5) in it or below")


def test_an_empty_name_is_no_dataset(fedmpi):
    assert refused(fedmpi("analyse", "statistics", ""), "an empty name is no dataset's")
