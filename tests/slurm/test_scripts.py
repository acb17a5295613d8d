"""The ready scripts on a real Slurm: any array covers a suite, a warning or a requeue costs nothing."""

import json
from pathlib import Path

import pytest

from fedmpi.store.reader import load_run
from tests.slurm.conftest import drain, wait_for, warn
from tests.slurm.test_sweep import rounds_of

JOBS = Path(__file__).parent.parent.parent / "jobs"


def sbatch(slurm, *arguments):
    return slurm.command("sbatch", "--parsable", "-n", 2, "-N", 2, *arguments).stdout.strip()


def state_of(slurm, job):
    done = slurm.command("scontrol", "-o", "show", "job", job)
    facts = dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)
    return facts["JobState"], facts["ExitCode"]


@pytest.mark.long
def test_an_array_of_two_covers_three_cases_and_survives_a_warning(slurm, fedmpi, tiny_suite, tmp_path):
    long = '[[where]]\nwhen = { algorithm = "fedprox" }\nset = { rounds = 250 }\n'  # caught running
    (tmp_path / "long.toml").write_text(tiny_suite.read_text() + long)
    root = tmp_path / "runs"
    fedmpi("run", "long.toml", "--out", root, "--case", "self-train")  # number 2, so task 0 has 0 left
    job = sbatch(slurm, "--array=0-1", JOBS / "sweep.sbatch", "long.toml", "--out", root)
    wait_for(lambda: rounds_of(root / "fedprox") > 3, 900, "task 1 runs")
    warn(slurm, f"{job}_1")
    drain(slurm, 900)
    for name, attempts in (("fedavg", 1), ("fedprox", 2), ("self-train", 1)):
        run = load_run(root / name)
        assert (run.status, len(run.attempts)) == ("complete", attempts), name
    assert load_run(root / "fedprox").attempts[1].first_round > 0
    said = Path(f"fedmpi-{job}_1.out").read_text()
    assert "1 case is left" in said and "out of time; the task is queued again" in said
    assert "self-train" not in Path(f"fedmpi-{job}_0.out").read_text()
    assert (state_of(slurm, f"{job}_0"), state_of(slurm, f"{job}_1")) == (("COMPLETED", "0:0"),) * 2
    fedmpi("run", "long.toml", "--out", "undisturbed")
    assert fedmpi("compare", "--identical", "undisturbed", root).returncode == 0


def test_bad_input_ends_a_job_with_one_line(slurm, tiny_suite, tmp_path):
    runs = {
        "gaps": sbatch(slurm, "--array=1,3", JOBS / "sweep.sbatch", "tiny.toml"),
        "suite": sbatch(slurm, "--array=0-1", JOBS / "sweep.sbatch", "missing.toml"),
        "no suite": sbatch(slurm, JOBS / "run.sbatch"),
        "key": sbatch(slurm, JOBS / "run.sbatch", "tiny.toml", "--set", "rouns=3"),
    }
    drain(slurm, 900)
    words = {
        "gaps": "another array leaves cases out", "suite": "missing.toml: no such suite",
        "no suite": "SUITE [options of fedmpi run]", "key": 'did you mean "rounds"?',
    }  # fmt: skip
    for name, job in runs.items():
        array = name in ("gaps", "suite")
        log = Path(f"fedmpi-{job}_1.out" if array else f"fedmpi-{job}.out").read_text()
        said = [line for line in log.splitlines() if line.startswith("fedmpi: ")]
        assert len(said) == 1, log
        assert words[name] in said[0]
        assert state_of(slurm, f"{job}_1" if array else job) == ("FAILED", "2:0")
    assert not list(tmp_path.rglob("run.h5"))
    wait_for(lambda: not slurm.scripts(), 10, "no script has left a process behind")


def test_what_slurm_refuses_is_said_in_its_words(slurm, fedmpi, tiny_suite, tmp_path):
    system = tmp_path / "virtual.toml"
    system.write_text(system.read_text().replace("[node]", '[request]\npartition = "none"\n[node]'))
    done = fedmpi("jobs", "submit", tiny_suite, "--system", "virtual.toml", "--ranks", 2)
    assert done.returncode == 2
    assert "invalid partition specified: none" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results" / "runs" / "tiny" / "slurm" / "1").exists()
    assert slurm.command("squeue", "-h").stdout == ""


@pytest.mark.long
def test_a_node_that_fails_costs_an_attempt_and_no_results(slurm, fedmpi, tiny_suite, tmp_path):
    (tmp_path / "long.toml").write_text(tiny_suite.read_text().replace("rounds = 4", "rounds = 250"))
    chosen = ("--set", "algorithm=fedavg", "--out", tmp_path / "runs")
    fedmpi("jobs", "submit", "long.toml", "--system", "virtual.toml", "--ranks", 2, *chosen)
    folder = tmp_path / "runs" / "fedavg"
    wait_for(lambda: rounds_of(folder) > 3, 300, "the case runs")
    task = json.loads(fedmpi("jobs", "status", tmp_path / "runs", "--json").stdout)[0]["task"]
    node = slurm.command("squeue", "-h", "-j", task, "-o", "%B").stdout.strip()
    change = ("scontrol", "update", f"nodename={node}")
    slurm.command(*change, "state=down", "reason=test")
    slurm.command(*change, "state=resume", check=False)  # it may be back already
    drain(slurm, 900)
    run = load_run(folder)
    assert (run.status, len(run.attempts)) == ("complete", 2)
    fedmpi("run", "long.toml", "--set", "algorithm=fedavg", "--out", "undisturbed")
    assert fedmpi("compare", "--identical", "undisturbed/fedavg", folder).returncode == 0
