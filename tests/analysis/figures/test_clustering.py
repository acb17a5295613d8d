"""Pictures of unsupervised runs, drawn from short real ones."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from fedmpi.analysis.figures import unsupervised
from fedmpi.analysis.figures.style import caption
from fedmpi.errors import BadInput
from fedmpi.store.embeddings import load
from fedmpi.store.reader import load_run

SUITE = """
name = "tests/clustering"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
partition = { name = "dominant-share", clients = 4 }
model = { name = "gin-encoder", hidden = 8, layers = 2 }
share = "all"
rounds = 3
evaluation = { embeddings = [1, 3] }
[matrix]
repetition = [{ label = "a", seed = 1, partition = { seed = 1 } }, { label = "b", seed = 2, partition = { seed = 2 } }]
objective = ["infograph", "fclg"]
local_epochs = [1, 2]
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clustering")
    (folder / "suite.toml").write_text(SUITE)
    command = [sys.executable, "-m", "fedmpi", "run", "suite.toml", "--out", "runs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [load_run(case) for case in sorted((folder / "runs").iterdir())]


def mean_of(runs, objective):
    chosen = [run for run in runs if run.config["objective"]["name"] == objective]
    return 100 * np.mean([run.results["clustering_accuracy"] for run in chosen], axis=0)


@pytest.mark.long
def test_curves_by_round_and_by_a_setting_and_places_in_the_plane(runs, draw):
    of_one = [run for run in runs if run.config["local_epochs"] == 1]
    (axis,) = draw("clustering", of_one).axes
    (legend,) = axis.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["InfoGraph-FedAvg", "FCLG"]
    assert np.allclose(axis.lines[0].get_xydata(), np.transpose([(1, 2, 3), mean_of(of_one, "infograph")]))

    picture = draw("clustering", runs, by="local_epochs", field="clustering_f1")
    (axis,) = picture.axes
    assert [line.get_xdata().tolist() for line in axis.lines] == [[1, 2], [1, 2]]
    assert "mean over 2 repetitions" in caption(picture)
    assert [text.get_text() for text in axis.get_xticklabels()] == ["1", "2"]
    (axis,) = draw("clustering", of_one, by="emd").axes
    emd = round(float(runs[0].partition["total_emd"]), 3)
    assert axis.lines[0].get_xdata().tolist() == [emd]

    first, last = draw("t-sne", runs[:1]).axes
    accuracy = 100 * runs[0].results["clustering_accuracy"]
    assert first.get_title(loc="left") == f"round 1, clustering accuracy {accuracy[0]:.1f} %"
    assert last.get_title(loc="left") == f"round 3, clustering accuracy {accuracy[2]:.1f} %"
    assert sum(len(dots.get_offsets()) for dots in last.collections) == 60
    assert len(last.figure.legends[0].get_texts()) == len(last.collections)
    kept = load(runs[0].folder)
    assert sorted(kept) == [1, 3] and kept[3]["vectors"].shape == (60, 16)
    assert np.bincount(kept[3]["labels"]).tolist() == runs[0].partition["class_counts"].sum(axis=0).tolist()


def test_many_methods_by_round_have_a_panel_each_with_the_others_in_grey(runs, draw, monkeypatch):
    monkeypatch.setattr(unsupervised, "_MOST_SHADED", 1)
    of_one = [run for run in runs if run.config["local_epochs"] == 1]
    picture = draw("clustering", of_one)
    infograph, fclg = (mean_of(of_one, objective) for objective in ("infograph", "fclg"))
    first, second = picture.axes
    assert first.get_title(loc="left") == f"InfoGraph-FedAvg, {infograph[-1]:.1f}"
    assert second.get_title(loc="left") == f"FCLG, {fclg[-1]:.1f}"
    own = [line for line in second.lines if line.get_gid() != "others" and len(line.get_xdata()) == 3]
    assert [np.allclose(line.get_ydata(), fclg) for line in own] == [True]
    assert len([line for line in second.lines if line.get_gid() == "others"]) == 2
    assert len(second.collections) == 1
    assert "grey, the other methods" in caption(picture)
    assert picture._suptitle.get_text() == "synthetic"


def test_vectors_that_are_damaged_or_gone_are_named_in_one_line(runs, fedmpi, tmp_path):
    folder = shutil.copytree(runs[0].folder, tmp_path / "run")
    plot = ("plot", "t-sne", folder, "--image", "x.svg")
    kept = folder / "embeddings" / "round-0001.npz"
    content = kept.read_bytes()
    for bad in (b"", content[:300], content[:900] + bytes(40) + content[940:]):
        kept.write_bytes(bad)
        done = fedmpi(*plot)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "round-0001.npz: damaged" in done.stderr
    for vectors in (np.full((60, 16), np.nan, np.float32), np.ones(60, np.float32)):
        np.savez(kept, vectors=vectors, labels=np.zeros(60, np.int64))
        assert "damaged (its vectors are not those of a run)" in fedmpi(*plot).stderr
    kept.unlink()
    assert "the vectors of round 1 are gone: remove the folder" in fedmpi(*plot).stderr
    np.savez(kept, vectors=np.ones((60, 16), np.float32), labels=np.zeros(60, np.int64))
    kept.with_name("round-0009.npz").write_bytes(kept.read_bytes())
    assert fedmpi(*plot).returncode == 0


def test_supervised_runs_and_runs_without_vectors_are_named(record, draw):
    run = record({}, test_loss=[[1.0, 2.0]])
    with pytest.raises(BadInput, match="judged on held-out examples, by accuracy; leave it out"):
        draw("clustering", [run])
    with pytest.raises(BadInput, match="keeps no vectors"):
        draw("t-sne", [run])
