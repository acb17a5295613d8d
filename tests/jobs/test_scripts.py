"""The ready scripts and a rendered sweep, run by bash with stand-ins for Slurm's commands and for fedmpi."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

JOBS = Path(__file__).parent.parent.parent / "jobs"
SOON = 'date -d "+%d seconds" +%%Y-%%m-%%dT%%H:%%M:%%S'
LISTING = "suite: what it is\\n" + "\\n".join(
    f"   {n}  case{n}{'  (complete)' if n == 2 else ''}" for n in range(7)
)


@pytest.fixture
def world(fake, tmp_path, monkeypatch):
    """A folder with a rendered sweep of cases 0 to 6, and a Slurm in which the job runs without a limit."""
    monkeypatch.chdir(tmp_path)
    queue(fake, "N/A", "RUNNING")
    fake.answer("fedmpi", f"[[ $* == *--list* ]] && printf '{LISTING}\\n'; exit 0")
    fake.answer("scontrol", "exit 1")  # else the script would wait for Slurm to end it
    fake.answer("srun", "exit 0")
    return fake


def queue(fake, end, state):
    """Let squeue tell the job's end (a command that prints it, or a word) and its state."""
    end = f"$({end})" if " " in end else end
    fake.answer("squeue", f'[[ $* == *%e ]] && echo "{end}" || echo {state}')


def rendered(fedmpi, tmp_path):
    """Return the script that `fedmpi jobs render` makes of seven cases, its launcher being srun."""
    text = '[case]\npartition = "iid"\ndataset = { synthetic = { domains = 1 } }\n[matrix]\nseed = [0, 1, 2, 3, 4, 5, 6]'
    (tmp_path / "seven.toml").write_text(text)
    fedmpi("jobs", "render", "seven.toml", "--system", "generic-cpu", "--to", "to", "--tasks", 3)
    (script,) = (tmp_path / "to").glob("sweep-*.sbatch")
    return script


def array(task, tasks, restarts=0):
    variables = {
        "SLURM_JOB_ID": "40", "SLURM_ARRAY_JOB_ID": "40", "SLURM_ARRAY_TASK_ID": str(task),
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


def cases_of(fake, flag="--case "):
    return [call.split(flag)[1].split()[0] for call in fake.calls("srun") if flag in call]


@pytest.mark.parametrize(("task", "expected"), [(0, ["0", "3", "6"]), (1, ["1", "4"]), (2, ["5"])])
def test_task_t_of_T_runs_what_is_left_of_t_and_t_plus_T(world, task, expected):
    code, output = bash(JOBS / "sweep.sbatch", "s.toml", "--set", "rounds=3", variables=array(task, 3))
    assert (code, output) == (0, "")
    assert cases_of(world) == expected
    assert "fedmpi run s.toml --set rounds=3 --case" in world.calls("srun")[0]


def test_a_rendered_task_runs_its_lines_and_keeps_a_log_per_case(world, fedmpi, tmp_path):
    script = rendered(fedmpi, tmp_path)
    world.answer("srun", "echo working")
    code, output = bash(script, variables=array(1, 3))
    assert code == 0
    assert cases_of(world) == ["seed1", "seed4"]
    assert output == "fedmpi: seed1: code 0\nfedmpi: seed4: code 0\n"
    log = tmp_path / "results" / "runs" / "seven" / "seed4" / "log.txt"
    assert log.read_text() == "--- job 40_1, attempt 1\nworking\n"


def test_a_second_attempt_starts_no_case_that_the_first_completed(world, fedmpi, tmp_path):
    script = rendered(fedmpi, tmp_path)
    world.answer("srun", "exit $((n == 0 ? 0 : 2))")  # the first case ends well, the second does not
    assert bash(script, variables=array(1, 3))[0] == 2
    bash(script, variables=array(1, 3, restarts=1))
    assert cases_of(world) == ["seed1", "seed4", "seed4"]


def test_a_case_whose_launcher_failed_starts_once_more(world, fedmpi, tmp_path):
    script = rendered(fedmpi, tmp_path)
    world.answer("srun", "[[ $n = 0 || $n -ge 2 ]] && exit 134; exit 0")
    code, output = bash(script, variables=array(1, 3))
    assert (code, cases_of(world)) == (134, ["seed1", "seed1", "seed4", "seed4"])
    assert output.splitlines() == [
        "fedmpi: seed1: code 134 before an event was written; it is started once more",
        "fedmpi: seed1: code 0",
        "fedmpi: seed4: code 134 before an event was written; it is started once more",
        "fedmpi: seed4: code 134",
    ]


@pytest.mark.parametrize(("kind", "what"), [("run", ""), ("sweep", "case 1: ")])
def test_a_ready_script_starts_once_more_what_has_written_nothing(world, kind, what):
    world.answer("srun", "exit 134")
    code, output = bash(JOBS / f"{kind}.sbatch", "s.toml", variables={} if kind == "run" else array(1, 5))
    assert (code, len(world.calls("srun"))) == (134, 2 if kind == "run" else 4)
    again = f"fedmpi: {what}code 134 before a round was written"
    assert output.startswith(again)


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_a_ready_script_starts_once_what_has_begun(world, tmp_path, kind):
    world.answer("fedmpi", f"[[ $* == *--list* ]] && printf '{LISTING}\n' && cat {tmp_path}/begun; exit 0")
    world.answer("srun", f"echo $n >{tmp_path}/begun; exit 137")
    (tmp_path / "begun").write_text("")
    code, output = bash(JOBS / f"{kind}.sbatch", "s.toml", variables={} if kind == "run" else array(1, 5))
    assert (code, output, len(world.calls("srun"))) == (137, "", 1 if kind == "run" else 2)


def test_a_case_that_had_begun_starts_once(world, fedmpi, tmp_path):
    script = rendered(fedmpi, tmp_path)
    world.answer("srun", f"echo $n >{tmp_path}/results/runs/seven/seed$((n ? 4 : 1))/events.jsonl; exit 137")
    code, _ = bash(script, variables=array(1, 3))
    assert (code, cases_of(world)) == (137, ["seed1", "seed4"])


@pytest.mark.parametrize("kind", ["run", "sweep", "rendered"])
def test_the_scripts_own_clock_stops_the_ranks_and_queues_the_job_again(world, fedmpi, tmp_path, kind):
    script = rendered(fedmpi, tmp_path) if kind == "rendered" else JOBS / f"{kind}.sbatch"
    queue(world, SOON % 4, "RUNNING")  # it warns a quarter of that before
    world.answer("srun", "trap 'kill $!; exit 75' USR1; sleep 30 & wait")
    start = time.monotonic()
    code, output = bash(script, "s.toml", variables={} if kind == "run" else array(2, 3))
    assert code == 75
    assert 1.5 < time.monotonic() - start < 15
    assert "out of time" in output
    assert world.calls("scontrol") == [f"scontrol requeue {'40' if kind == 'run' else '40_2'}"]
    assert len(world.calls("srun")) == 1


@pytest.mark.parametrize("kind", ["run", "sweep", "rendered"])
def test_after_as_many_attempts_as_allowed_it_ends(world, fedmpi, tmp_path, kind):
    script = rendered(fedmpi, tmp_path) if kind == "rendered" else JOBS / f"{kind}.sbatch"
    queue(world, SOON % 3, "RUNNING")
    world.answer("srun", "trap 'kill $!; exit 75' USR1; sleep 30 & wait")
    code, _ = bash(script, "s.toml", variables={**array(0, 3, restarts=5)})
    assert code == 75
    assert world.calls("scontrol") == []


@pytest.mark.parametrize("kind", ["run", "sweep", "rendered"])
def test_a_job_that_slurm_ends_is_not_queued_again(world, fedmpi, tmp_path, kind):
    script = rendered(fedmpi, tmp_path) if kind == "rendered" else JOBS / f"{kind}.sbatch"
    queue(world, "N/A", "COMPLETING")
    world.answer("srun", f"trap 'kill $!; exit 75' USR1; touch {tmp_path}/up; sleep 30 & wait")
    process = bash(script, "s.toml", variables=array(0, 3), wait=False)
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


def test_a_failed_case_does_not_keep_the_others_and_its_code_is_the_tasks(world, fedmpi, tmp_path):
    world.answer("srun", "[[ $n -lt 2 ]] && exit 3; [[ $n -lt 4 ]] && exit 1; exit 0")
    assert bash(JOBS / "sweep.sbatch", "s.toml", variables=array(0, 3))[0] == 3
    assert cases_of(world) == ["0", "0", "3", "3", "6"]


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
