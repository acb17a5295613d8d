import os

import pytest

from fedmpi.errors import BadInput
from fedmpi.store import folders
from fedmpi.store.folders import runs_below


def test_links_in_circles_and_pipes_are_no_runs(tmp_path):
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    (run / "run.h5").touch()
    (run / "up").symlink_to("..")
    (tmp_path / "runs" / "self").symlink_to("self")
    (tmp_path / "runs" / "pipe").mkdir()
    os.mkfifo(tmp_path / "runs" / "pipe" / "events.jsonl")
    assert list(runs_below(tmp_path / "runs")) == [run]


def test_a_tree_without_end_is_given_up_with_a_line(tmp_path, monkeypatch):
    (tmp_path / "/".join("d" * 66)).mkdir(parents=True)
    with pytest.raises(BadInput, match="folders more than 64 levels below it; name that of the runs"):
        list(runs_below(tmp_path))
    monkeypatch.setattr(folders, "MOST_FOLDERS", 40)
    with pytest.raises(BadInput, match="more than 40 folders below it; name that of the runs"):
        list(runs_below(tmp_path))
