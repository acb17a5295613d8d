"""A run that an older fedmpi began is read, and not continued."""

import numpy as np
import pytest

from fedmpi.errors import BadInput
from fedmpi.metrics.metric import ACCURACY, CLUSTERING_ACCURACY
from fedmpi.store import old_schema
from fedmpi.store.record import RunRecord


def test_an_older_event_log_is_not_continued(tmp_path, finished_run):
    finished_run(tmp_path / "run")
    log = tmp_path / "run" / "events.jsonl"
    log.write_text(log.read_text().replace('"schema_version": 4', '"schema_version": 1', 1))
    with pytest.raises(BadInput, match="written in schema 1, this fedmpi writes 4: only `report` reads it"):
        RunRecord.reopen(tmp_path / "run")


def test_the_largest_class_is_what_one_cluster_of_an_older_run_scores():
    partition = {"class_counts": np.array([[3, 1], [2, 2]])}
    found = old_schema.constants((CLUSTERING_ACCURACY,), partition)
    assert found["constant_clustering_accuracy"].tolist() == [0.625]
    assert old_schema.constants((ACCURACY,), partition) == {}
