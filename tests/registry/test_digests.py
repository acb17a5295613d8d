"""The configuration of a case that was once recorded stays the same, byte for byte."""

import csv
from pathlib import Path

import pytest

from fedmpi.config.suite import read
from fedmpi.registry.check import check_stored, check_suite
from fedmpi.store.reader import load_run

ROOT = Path(__file__).parents[2]
RUNS = sorted((ROOT / "results/reference/runs").rglob("run.h5"))


@pytest.mark.parametrize("record", RUNS, ids=lambda path: path.parent.name)
def test_a_committed_record_has_the_digest_of_its_case(record):
    run = load_run(record.parent)
    assert check_stored(run.config, record.parent).case.digest() == run.config_digest


def test_a_suites_cases_have_the_digests_of_the_committed_table():
    with (ROOT / "results/reference/gcfl-table3.csv").open() as table:
        stored = {row["case"]: row["config_digest"] for row in csv.DictReader(table)}
    cases = [checked.case for checked in check_suite(read(ROOT / "bench/gcfl/table3.toml"))]
    assert {case.name: case.digest() for case in cases} == stored
    assert len(stored) == 105
