"""The ready scripts and a rendered sweep, run by bash with stand-ins for Slurm's commands and for fedmpi."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fedmpi.jobs import render

JOBS = Path(__file__).parent.parent.parent / "jobs"
SOON = 'date -d "+%d seconds" +%%Y-%%m-%%dT%%H:%%M:%%S'
KINDS = ("run", "sweep", "rendered")
WAITS = "trap 'kill $!; exit 75' USR1; sleep 30 & wait"


@pytest.fixture
def world(fake, tmp_path, monkeypatch):
    """A folder with a suite of seven cases, and a Slurm in which the job runs without a limit."""
    monkeypatch.chdir(tmp_path)
    queue(fake, "N/A", "RUNNING")
    fake.answer("fedmpi", "exit 0")
    fake.answer("python", "exit 0")
    fake.answer("scontrol", "exit 1")  # else the script would wait for Slurm to end it
    fake.answer("srun", "exit 0")
    return fake


@pytest.fixture
def script(fedmpi, world, tmp_path, monkeypatch):
    """Return a function that gives the script of a kind; what it starts is `STARTED`'s command."""

    def of_kind(kind):
        if kind != "rendered":
            return JOBS / f"{kind}.sbatch"
        text = '[case]\npartition = "iid"\ndataset = { synthetic = { domains = 1 } }\n[matrix]\nseed = [0, 1, 2, 3, 4, 5, 6]'
        (tmp_path / "seven.toml").write_text(text)
        with monkeypatch.context() as patched:
            patched.setattr(render.launch.sys, "executable", "python")
            fedmpi("jobs", "render", "seven.toml", "--system", "generic-cpu", "--to", "to", "--tasks", 3)
        (made,) = (tmp_path / "to").glob("sweep-*.sbatch")
        return made

    return of_kind


STARTED = {"run": "srun", "sweep": "fedmpi", "rendered": "python"}
"""The command that a script of a kind starts and waits for."""


def queue(fake, end, state):
    """Let squeue tell the job's end (a command that prints it, or a word) and its state."""
    end = f"$({end})" if " " in end else end
    fake.answer("squeue", f'[[ $* == *%e ]] && echo "{end}" || echo {state}')


def array(task, tasks, restarts=0):
    variables = {
        "SLURM_JOB_ID": "40", "SLURM_NTASKS": "2", "SLURM_ARRAY_JOB_ID": "40", "SLURM_ARRAY_TASK_ID": str(task),
        "SLURM_ARRAY_TASK_COUNT": str(tasks), "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": str(tasks - 1),
    }  # fmt: skip
    return {**variables, **({"SLURM_RESTART_COUNT": str(restarts)} if restarts else {})}


def bash(script, *arguments, variables=None, wait=True):
    process = subprocess.Popen(
        ["bash", script, *arguments],
        env={**os.environ, "SLURM_JOB_ID": "40", **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    if not wait:
        return process
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


def test_a_task_of_an_array_is_one_sweep_of_its_share(world):
    code, output = bash(JOBS / "sweep.sbatch", "s.toml", "--set", "rounds=3", variables=array(1, 3))
    assert (code, output) == (0, "")
    (call,) = world.calls("fedmpi")
    assert call.startswith("fedmpi sweep s.toml --set rounds=3 --share 1/3 --ranks 2 --launch srun ")


def test_a_rendered_task_is_one_sweep_of_its_lines_of_the_list(world, script, tmp_path):
    assert bash(script("rendered"), variables=array(1, 3)) == (0, "")
    (call,) = world.calls("python")
    words = f"sweep {tmp_path}/seven.toml --out {tmp_path}/results/runs/seven "
    assert call.startswith(f"python -P -m fedmpi {words}")
    assert f" --share 1/3 --cases {tmp_path}/to/cases-11.txt --ranks 11 --launch srun " in call
    assert call.endswith(" python -P -m fedmpi")


@pytest.mark.parametrize("kind", ["sweep", "rendered"])
def test_the_code_of_a_tasks_sweep_is_its_own(world, script, kind):
    world.answer(STARTED[kind], "exit 3")
    assert bash(script(kind), "s.toml", variables=array(0, 3)) == (3, "")
    assert world.calls("scontrol") == []


def test_a_job_that_has_written_nothing_starts_once_more(world):
    world.answer("srun", "exit 134")
    code, output = bash(JOBS / "run.sbatch", "s.toml")
    assert (code, len(world.calls("srun"))) == (134, 2)
    assert output.startswith("fedmpi: code 134 before a round was written")


def test_a_job_that_has_begun_starts_once(world, tmp_path):
    world.answer("fedmpi", f"[[ $* == *--list* ]] && cat {tmp_path}/begun; exit 0")
    world.answer("srun", f"echo $n >{tmp_path}/begun; exit 137")
    (tmp_path / "begun").write_text("")
    code, output = bash(JOBS / "run.sbatch", "s.toml")
    assert (code, output, len(world.calls("srun"))) == (137, "", 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restarts", [0, 5])
def test_the_scripts_clock_queues_the_job_again_five_times(world, script, kind, restarts):
    queue(world, SOON % 4, "RUNNING")  # it warns a quarter of that before
    world.answer(STARTED[kind], WAITS)
    start, single = time.monotonic(), kind == "run" and not restarts
    code, output = bash(script(kind), "s.toml", variables={} if single else array(2, 3, restarts))
    assert code == 75
    assert 1.5 < time.monotonic() - start < 15
    assert ("out of time" in output) == (not restarts)
    again = [] if restarts else [f"scontrol requeue {'40' if kind == 'run' else '40_2'}"]
    assert world.calls("scontrol") == again
    assert len(world.calls(STARTED[kind])) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_slurm_ends_is_not_queued_again(world, script, tmp_path, kind):
    queue(world, "N/A", "COMPLETING")
    world.answer(STARTED[kind], f"trap 'kill $!; exit 75' USR1; touch {tmp_path}/up; sleep 30 & wait")
    process = bash(script(kind), "s.toml", variables=array(0, 3), wait=False)
    until = time.monotonic() + 20
    while not (tmp_path / "up").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 75
    assert world.calls("scontrol") == []


def test_no_limit_means_no_clock(world):
    world.answer("squeue", 'echo ""')  # nor where the queue does not answer
    assert bash(JOBS / "run.sbatch", "s.toml") == (0, "")


def test_without_fedmpi_the_line_says_what_to_do(world, tmp_path, monkeypatch):
    (world.folder / "fedmpi").unlink()
    keep = [part for part in os.environ["PATH"].split(os.pathsep) if not (Path(part) / "fedmpi").exists()]
    code, output = bash(JOBS / "run.sbatch", "s.toml", variables={"PATH": os.pathsep.join(keep)})
    assert code == 2
    assert "no fedmpi on the path" in output


def test_a_setup_file_is_read_first(world, tmp_path):
    (tmp_path / "setup.sh").write_text("export MODULES=loaded\n")
    world.answer("srun", f"echo $MODULES $OMP_NUM_THREADS $OMP_WAIT_POLICY >{tmp_path}/seen")
    assert bash(JOBS / "run.sbatch", "s.toml", variables={"FEDMPI_SETUP": str(tmp_path / "setup.sh")})[0] == 0
    assert (tmp_path / "seen").read_text() == "loaded 1 PASSIVE\n"
