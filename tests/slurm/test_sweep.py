"""A sweep that is killed, preempted, requeued and cancelled ends with the bits of an undisturbed run."""

import json
import os
import signal

import pytest

from fedmpi.store.reader import load_run
from tests.slurm.conftest import drain, wait_for, warn

SUITE = """
name = "disturbed"
[case]
partition = "per-dataset"
rounds = 6
checkpoint_seconds = 0.5
[matrix]
data = [
    { label = "three", dataset = { synthetic = { domains = 3, graphs = 40 } } },
    { label = "two", dataset = { synthetic = { domains = 2, graphs = 60 } } },
]
algorithm = ["fedavg", "fedprox", "self-train"]
[[where]]               # long enough to be caught running
when = { data = "three" }
set = { rounds = 400 }
[[where]]
when = { data = "two", algorithm = "fedavg" }
set = { rounds = 800 } # cancelled last, after the others were disturbed one by one
"""
KILLED, PREEMPTED, REQUEUED, CANCELLED = (
    "three-fedavg", "three-fedprox", "three-self-train", "two-fedavg",
)  # fmt: skip
LIMIT_S = 900


def rounds_of(folder):
    try:
        return (folder / "events.jsonl").read_bytes().count(b'"event": "round"')
    except OSError:
        return 0


def begun(folder):
    """Whether a case is under way, with a checkpoint that its next attempt can begin from."""
    return rounds_of(folder) > 3 and (folder / "checkpoints/manifest").exists()


def states(fedmpi, *arguments):
    done = fedmpi("jobs", "status", "disturbed.toml", "--json", *arguments)
    return done.returncode, {row["case"]: row for row in json.loads(done.stdout)}


def disturb_each(slurm, fedmpi, root):
    """Do to each of four cases what it is named for, as soon as it runs."""
    todo = {
        KILLED: lambda task: os.kill(json.loads((root / KILLED / "lock").read_text())["pid"], signal.SIGKILL),
        PREEMPTED: lambda task: warn(slurm, task),
        REQUEUED: lambda task: slurm.command("scontrol", "requeue", task),
        CANCELLED: lambda task: slurm.command("scancel", task),
    }

    def left():
        logs = [f"{name}: {(root / name / 'log.txt').read_text()}" for name in todo if (root / name).exists()]
        return "\n".join([*todo, *logs, slurm.command("squeue").stdout])

    code, found = states(fedmpi)
    assert code == 75
    while todo:  # nothing is asked in between: a case takes seconds
        ready = wait_for(lambda: [name for name in todo if begun(root / name)], LIMIT_S, left)
        for name in ready:
            todo.pop(name)(found[name]["task"])


@pytest.mark.long
def test_every_disturbed_case_ends_as_if_nothing_had_happened(slurm, fedmpi, tmp_path):
    (tmp_path / "disturbed.toml").write_text(SUITE)
    root = tmp_path / "results" / "runs" / "disturbed"
    arguments = ["--system", "virtual.toml", "--ranks", 2, "--tasks", 6, "--at-once", 4]
    done = fedmpi("jobs", "submit", "disturbed.toml", *arguments)
    assert done.returncode == 0, done.stderr
    assert "6 cases in 6 tasks" in done.stdout
    again = fedmpi("jobs", "submit", "disturbed.toml", *arguments)
    assert again.returncode == 2
    assert "are in the queue" in again.stderr

    disturb_each(slurm, fedmpi, root)
    drain(slurm, LIMIT_S)

    code, after = states(fedmpi)
    assert code == 1
    assert {name for name, row in after.items() if row["state"] != "done"} == {KILLED, CANCELLED}
    assert after[KILLED]["state"] == "failed"
    assert "cancelled" in after[CANCELLED]["detail"] or after[CANCELLED]["state"] == "interrupted"
    assert "2 are not on their way: fedmpi jobs resume" in fedmpi("jobs", "status", "disturbed.toml").stdout
    assert "6 cases" not in (root / "report.txt").read_text()

    assert "2 cases in 2 tasks" in fedmpi("jobs", "resume", "disturbed.toml").stdout
    drain(slurm, LIMIT_S)
    code, after = states(fedmpi)
    if code == 1:  # Slurm's PMI server lost a start and the one after it
        fedmpi("jobs", "resume", "disturbed.toml")
        drain(slurm, LIMIT_S)
        code, after = states(fedmpi)
    assert code == 0, [row for row in after.values() if row["state"] != "done"]
    assert fedmpi("jobs", "resume", "disturbed.toml").stdout == "disturbed: nothing is left to submit\n"
    check_attempts(root, after)
    check_report(root)

    assert fedmpi("run", "disturbed.toml", "--out", "undisturbed").returncode == 0
    compared = fedmpi("compare", "--identical", "undisturbed", root)
    assert compared.returncode == 0, compared.stdout
    assert compared.stdout.startswith("identical: 6 cases")


def check_attempts(root, after):
    """Each disturbed case went on where it was, on two ranks, and the others ran once."""
    for name in after:
        run = load_run(root / name)
        assert {attempt.ranks for attempt in run.attempts} == {2}
        if name in (KILLED, PREEMPTED, REQUEUED, CANCELLED):
            assert len(run.attempts) == 2, name
            assert run.attempts[1].first_round > 0
        else:
            assert len(run.attempts) == 1, name
    hosts = load_run(root / PREEMPTED).attempts[1].provenance["environment"]
    assert hosts["SLURM_RESTART_COUNT"] == "1"
    assert hosts["SLURM_STEP_NUM_NODES"] == "2"


def check_report(root):
    """The report that waited for all tasks names every case as complete."""
    text = (root / "report.txt").read_text()
    assert text.count("400/400") == 3
    assert text.count("800/800") == 1
    assert text.count("6/6") == 2
    rows = (root / "rows.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 3 + 3 * 2
