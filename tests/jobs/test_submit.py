"""Submission, state and cancellation against a Slurm that answers what the test says."""

import json

import pytest

from fedmpi.jobs import slurm
from fedmpi.jobs.submission import earlier
from fedmpi.store.lock import FolderLock
from fedmpi.store.record import RunRecord
from tests.cli.refusals import refused
from tests.plugins import forget


@pytest.fixture
def submit(fedmpi, fake, tiny_suite, system):
    """Submit the tiny suite on the plain system."""
    return lambda *more: fedmpi("jobs", "submit", tiny_suite, "--system", system, "--tasks", 3, *more)


def root(tmp_path):
    return tmp_path / "results" / "runs" / "tiny"


def test_every_script_is_tried_before_any_is_submitted(submit, fake, tmp_path):
    done = submit()
    assert done.returncode == 0, done.stderr
    folder = root(tmp_path) / "slurm" / "1"
    asked = fake.calls("sbatch")
    tried = ("sweep-4.sbatch", "report.sbatch")
    assert asked[:2] == [f"sbatch --test-only {folder}/{name}" for name in tried]
    assert asked[2].startswith("sbatch --parsable --job-name=fedmpi-tiny-")
    assert asked[2].endswith(f"-0 {folder}/sweep-4.sbatch")
    assert asked[3].endswith(f"-report --dependency=afterany:101 {folder}/report.sbatch")
    assert "job 101: 3 cases in 3 tasks" in done.stdout
    (one,) = earlier(root(tmp_path))
    assert [(job.number, job.tasks, job.cases) for job in one.jobs] == [
        ("101", 3, ("fedavg", "fedprox", "self-train")), ("102", 1, ()),
    ]  # fmt: skip


def test_the_users_sbatch_variables_are_not_passed_on(submit, fake, monkeypatch, tmp_path):
    monkeypatch.setenv("SBATCH_PARTITION", "wrong")
    fake.answer("sbatch", f"env | grep -c ^SBATCH_ >>{tmp_path}/seen; echo 7")
    assert submit().returncode == 0
    assert set((tmp_path / "seen").read_text().split()) == {"0"}


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("sbatch: error: invalid partition specified: short", ""),
        ("Requested node configuration is not available", "compare cores, memory_per_rank and nodes of the"),
    ],
)
def test_a_refusal_leaves_nothing_behind(submit, fake, tmp_path, said, advice):
    fake.answer("sbatch", f'echo "{said}" >&2; exit 1')
    refused(submit(), "sweep-4.sbatch", said, advice)
    assert not list(root(tmp_path).rglob("*.*"))


def test_what_was_submitted_before_a_refusal_is_named(submit, fake, tmp_path):
    report = "[[ $* == *report* ]] && { echo denied >&2; exit 1; }"
    fake.answer("sbatch", f"[[ $* == *--test-only* ]] && exit 0; {report}; echo 55")
    refused(submit(), "denied", "submitted before it: 55 (sweep-4.sbatch); nothing else is")
    assert [job.number for job in earlier(root(tmp_path))[0].jobs] == ["55"]


@pytest.mark.parametrize(
    ("queued", "numbers"),
    [
        ("true", ["203", "204"]),
        ('echo "88|0|PENDING|Resources"; echo "88|1|PENDING|Resources"', ["88", "203"]),
    ],
    ids=["it had not gone in", "it had gone in"],
)
def test_a_transient_error_is_waited_out(submit, fake, monkeypatch, tmp_path, queued, numbers):
    monkeypatch.setattr(slurm, "_WAITS_S", (0.0, 0.0))
    error = "sbatch: error: Socket timed out on send/recv operation"
    late = f'if [ "$n" = 2 ]; then echo "{error}" >&2; exit 1; fi'
    fake.answer("sbatch", f"[[ $* == *--test-only* ]] && exit 0; {late}; echo $((200 + n))")
    fake.answer("squeue", queued)
    assert submit().returncode == 0
    assert [job.number for job in earlier(root(tmp_path))[0].jobs] == numbers


def test_without_slurm_the_way_out_is_named(fedmpi, tiny_suite, system, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = fedmpi("jobs", "submit", tiny_suite, "--system", system)
    refused(done, "no sbatch on the path", "fedmpi sweep")
    refused(fedmpi("jobs", "submit", tiny_suite, "--system", "workstation"), "has no queue", "fedmpi sweep")


def test_data_that_are_not_prepared_are_refused_before_sbatch(submit, fake, tmp_path):
    done = submit("--set", "dataset=MUTAG", "--set", "partition=iid", "--data", tmp_path / "empty")
    refused(done, "MUTAG: not prepared in", "fedmpi data fetch", f"--data {tmp_path / 'empty'}")
    assert fake.calls() == []


def test_a_read_only_folder_is_refused(submit, fake):
    refused(submit("--out", "/proc/nothing"), "cannot write in /proc/nothing", "--out")
    assert fake.calls("sbatch") == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("plan tiny.toml --system genric-cpu", 'no such system; did you mean "generic-cpu"?'),
        ("status tiny.toml", "nothing of it was submitted"),
        ("resume tiny.toml", "nothing of it was submitted"),
        ("render tiny.toml --system generic-cpu --to x --template fpga", "one of sweep"),
        ("render tiny.toml --system generic-cpu --to /proc/x", "cannot write in /proc/x"),
    ],
)
def test_bad_input_is_one_line(fedmpi, fake, tiny_suite, command, words):
    refused(fedmpi("jobs", *command.split()), words)


def test_a_queue_that_does_not_answer(submit, fake, fedmpi, tmp_path):
    submit()
    fake.answer("squeue", 'echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1')
    refused(submit(), "the queue does not answer", "Unable to contact", "nothing was done")
    refused(fedmpi("jobs", "resume", "tiny.toml"), "nothing was done")
    refused(fedmpi("jobs", "cancel", "tiny.toml"), "nothing was done")
    shown = fedmpi("jobs", "status", "tiny.toml")
    assert "the queue does not answer" in shown.stdout
    assert "shown is what the records say" in shown.stdout
    assert "3 cases: 3 unknown" in shown.stdout


@pytest.mark.parametrize("target", ["tiny", "tiny.toml", "results/runs/tiny"])
def test_an_own_suite_goes_by_its_name_its_file_and_its_folder(submit, fedmpi, target):
    submit()
    assert "3 cases: 3 failed" in fedmpi("jobs", "status", target).stdout
    fedmpi("jobs", "cancel", target, code=0)


def test_only_what_is_left_is_submitted_again(submit, fake, fedmpi, tmp_path):
    submit()
    fake.answer("squeue", 'echo "101|1|RUNNING|None"')
    fedmpi("run", "tiny.toml", "--case", "fedavg")
    refused(submit(), "in the queue (101)")
    done = fedmpi("jobs", "resume", "tiny.toml")
    assert "1 cases in 1 tasks" in done.stdout
    assert (root(tmp_path) / "slurm" / "2" / "cases-4.txt").read_text() == "self-train\n"


def test_a_run_of_another_version_of_a_plugin_is_shown_and_not_submitted(submit, fedmpi, tmp_path):
    plugin = tmp_path / "odd.py"
    # Forgotten between commands, each of which is a process of its own to the user.
    text = "from fedmpi.algorithms.base import Algorithm\nclass Odd(Algorithm):\n    name = 'odd'\n"
    plugin.write_text(text)
    options = ("--plugin", plugin, "--set", "algorithm=odd", "--set", "rounds=1")
    submit(*options)
    forget("odd")
    fedmpi("run", "tiny.toml", *options)
    plugin.write_text(text + "# changed\n")
    forget("odd")
    (shown,) = json.loads(fedmpi("jobs", "status", root(tmp_path), "--json").stdout)
    assert shown["state"] == "other version"
    forget("odd")
    refused(fedmpi("jobs", "resume", root(tmp_path)), "made with another version of odd.py (sha256 ")
    forget("odd")


def test_a_case_that_something_else_runs_is_left_alone(submit, fedmpi, tmp_path):
    submit()
    fedmpi("run", "tiny.toml", "--case", "fedavg")
    with RunRecord.reopen(root(tmp_path) / "fedavg") as record:
        record.finish("running")
    with FolderLock(root(tmp_path) / "fedavg"):
        assert facts_of(fedmpi, "fedavg")[0] == "running"
        done = fedmpi("jobs", "resume", "tiny.toml")
    assert "fedavg: locked by a run that is not in the queue" in done.stdout
    assert (root(tmp_path) / "slurm" / "2" / "cases-4.txt").read_text() == "fedprox\nself-train\n"


def test_all_jobs_of_a_suite_are_cancelled(submit, fake, fedmpi):
    submit()
    tasks = 'for i in 0 1 2; do echo "101|$i|PENDING|Resources"; done'
    fake.answer("squeue", f'{tasks}; echo "102||PENDING|Dependency"')
    fedmpi("jobs", "cancel", "tiny.toml", code=0)
    assert fake.calls("scancel")[-1] == "scancel 101 102"


def test_a_damaged_note_of_a_submission_is_refused(submit, fedmpi, tmp_path):
    submit()
    note = root(tmp_path) / "slurm" / "1" / "submission.json"
    whole = note.read_text()
    for text in ("{", "[]", "[" * 100_000, '{"version": 1}', whole.replace('"tasks": ', '"tasks": -')):
        note.write_text(text)
        refused(fedmpi("jobs", "status", "tiny.toml"), "submission.json: damaged", "move the folder")


def facts_of(fedmpi, case):
    rows = json.loads(fedmpi("jobs", "status", "tiny.toml", "--json").stdout)
    return next((row["state"], row["detail"]) for row in rows if row["case"] == case)


MEMORY = "killed for memory: raise request.memory_per_rank"
FAILED = "FAILED|NonZeroExitCode"


@pytest.mark.parametrize(
    ("task", "log", "expected"),
    [
        ("PENDING|Resources", "", ("waiting", "pending: Resources")),
        ("RUNNING|None", "", ("waiting", "for its turn in a running task")),
        ("NODE_FAIL|None", "", ("failed", "its node failed")),
        ("OUT_OF_MEMORY|OutOfMemory", "", ("failed", MEMORY)),
        (FAILED, "fedmpi: cannot write in /x", ("failed", "cannot write in /x")),
        ("NODE_FAIL|None", "fedmpi: stopped by a signal after round 2\n--- job 5_0, attempt 2\nsomething",
         ("failed", "its node failed")),  # what an earlier attempt said is over
        ("CANCELLED|None", "", ("failed", "cancelled")),
        (FAILED, "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0", ("failed", MEMORY)),
        (FAILED, "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM "
         "Killed.", ("failed", MEMORY)),
        (FAILED, "Some of your processes may have been killed by the cgroup out-of-memory handler.",
         ("failed", MEMORY)),
        (FAILED, "srun: error: n1: task 0: Out Of Memory", ("failed", MEMORY)),
        (FAILED, "runs in /data/mushroom\nsrun: error: n1: task 0: Segmentation fault",  # oom in a path says nothing
         ("failed", "srun: error: n1: task 0: Segmentation fault")),
    ],
)  # fmt: skip
def test_task_and_log_explain_a_case_without_a_record(submit, fake, fedmpi, tmp_path, task, log, expected):
    submit()
    fake.answer("squeue", f'echo "101|0|{task}"')
    (root(tmp_path) / "fedavg").mkdir()
    (root(tmp_path) / "fedavg" / "log.txt").write_text(f"{log}\n")
    assert facts_of(fedmpi, "fedavg") == expected


def test_a_record_is_joined_with_its_task(submit, fake, fedmpi, tmp_path):
    submit()
    fedmpi("run", "tiny.toml", "--case", "fedavg")
    assert facts_of(fedmpi, "fedavg") == ("done", "4 rounds")
    folder = root(tmp_path) / "fedavg"
    (folder / "run.h5").unlink()
    log = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "events.jsonl").write_bytes(b"".join(log[:5]))
    with RunRecord.reopen(folder) as record:
        record.finish("interrupted")
    assert facts_of(fedmpi, "fedavg") == ("interrupted", "round 3 of 4")
    fake.answer("squeue", 'echo "101|0|PENDING|BeginTime"')
    assert facts_of(fedmpi, "fedavg") == ("waiting", "pending: BeginTime, round 3 of 4")


def test_accounting_is_asked_where_the_controller_has_forgotten(submit, fake, fedmpi):
    submit()
    fake.answer("sacct", 'echo "101_0|OUT_OF_MEMORY|0:125"')
    assert facts_of(fedmpi, "fedavg")[1].startswith("killed for memory")
