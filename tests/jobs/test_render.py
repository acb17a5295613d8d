"""Rendered scripts as text: what they ask of Slurm, and that a shell takes them."""

import subprocess
from pathlib import Path

import pytest

from fedmpi.jobs import systems
from fedmpi.jobs.render import TEMPLATES
from tests.jobs.conftest import check_shell

ROOT = Path(__file__).parent.parent.parent


def render(fedmpi, suite, system, *options):
    done = fedmpi("jobs", "render", suite, "--system", system, "--to", "to", *options, code=0)
    return [Path(line) for line in done.stdout.splitlines()]


def directives(path):
    lines = path.read_text().splitlines()
    return [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("system", [name for name in systems.known() if name != "workstation"])
def test_every_template_on_every_system_is_clean_shell(fedmpi, tiny_suite, system, template):
    data = ("--set", "dataset=PROTEINS", "--set", "partition=iid")
    paths = render(fedmpi, tiny_suite, system, "--template", template, *data)
    scripts = [path for path in paths if path.suffix == ".sbatch"]
    assert scripts
    for path in scripts:
        check_shell(path)


@pytest.mark.parametrize("name", ["run.sbatch", "sweep.sbatch", "micro.sbatch"])
def test_the_ready_scripts_are_clean_shell(name):
    check_shell(ROOT / "jobs" / name)


def test_a_sweep_asks_for_what_the_plan_says(fedmpi, tiny_suite, system):
    listed, script, report = render(fedmpi, tiny_suite, system, "--tasks", 2, "--at-once", 2, "--minutes", 30)
    assert listed.read_text() == "fedavg\nfedprox\nself-train\n"
    asked = (
        "--partition=short --account=me --nodes=1 --ntasks=4 --cpus-per-task=1 --mem-per-cpu=2048M --time=30"
    )
    assert directives(script)[4:] == [*asked.split(), "--requeue", "--signal=B:USR1@120", "--array=0-1%2"]
    text = script.read_text()
    assert text.index("module load python") < text.index("export OMP_NUM_THREADS=1") < text.index("srun -K0")
    assert "export FEDMPI_OFFLINE=1" in text
    assert "--time=10" in directives(report)
    check_shell(script)


def test_the_warning_comes_in_the_last_quarter_of_a_short_job(fedmpi, tiny_suite, system):
    _, script, _ = render(fedmpi, tiny_suite, system, "--minutes", 4)
    assert "--signal=B:USR1@60" in directives(script)


def test_threads_and_settings_reach_the_ranks(fedmpi, tiny_suite, system):
    _, script, _ = render(fedmpi, tiny_suite, system, "--set", "threads=2", "--set", "kernels=csr")
    assert script.name == "sweep-2x2.sbatch"
    assert {"--cpus-per-task=2", "--mem-per-cpu=1024M"} <= set(directives(script))
    text = script.read_text()
    assert "export OMP_NUM_THREADS=2" in text
    assert "export SRUN_CPUS_PER_TASK=2" in text
    assert "--set threads=2 --set kernels=csr --out" in text


def test_a_gpu_job_never_hides_gpus_from_a_rank(fedmpi, tiny_suite):
    settings = ["--set", "device=cuda", "--template", "gpu"]
    script, _ = render(fedmpi, tiny_suite, "perlmutter-gpu", *settings)
    assert "--gpus-per-node=4" in directives(script)
    assert not [line for line in directives(script) if "gpus-per-task" in line]


def test_a_container_stands_between_launcher_and_program(fedmpi, tiny_suite, system):
    command = 'container = "apptainer exec --nv /shared/fedmpi.sif"\n'
    system.write_text(system.read_text().replace("[launch]\n", f"[launch]\n{command}"))
    starts = "srun -K0 -W15 --mpi=pmi2 apptainer exec --nv /shared/fedmpi.sif fedmpi"
    for template, words in {"container": f"{starts} run ", "sweep": f"--launch '{starts}' &"}.items():
        paths = render(fedmpi, tiny_suite, system, "--template", template)
        (script,) = [path for path in paths if path.name == f"{template}-4.sbatch"]
        assert words in script.read_text()


def test_one_job_for_a_suite_has_one_number_of_ranks(fedmpi):
    script, _ = render(fedmpi, "gcfl/table3", "generic-cpu", "--template", "cpu")
    assert script.name == "cpu-16.sbatch"
    assert "--case" not in script.read_text()


def test_staging_copies_the_suites_datasets_once_per_node(fedmpi):
    script = next(p for p in render(fedmpi, "gcfl/table3", "perlmutter-gpu") if p.name == "sweep-31.sbatch")
    assert '--ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1' in script.read_text()
    assert '"$stage" tudataset/NCI1; then' in script.read_text()


def test_staging_copies_prepared_sets_of_every_family(fedmpi, fake, system, tmp_path, monkeypatch):
    text = (
        'name = "two"\n[case]\npartition = "iid"\nmodel = "gcn"\n[matrix]\ndataset = ["Cora", "PROTEINS"]\n'
    )
    (tmp_path / "two.toml").write_text(text)
    local, shared = tmp_path / "local disk", tmp_path / "shared"
    system.write_text(f'{system.read_text()}[data]\nlocal = "{local}"\nshared = "{shared}"\n')
    _, script, _ = render(fedmpi, "two.toml", system)
    for path in ("planetoid/Cora", "tudataset/PROTEINS"):
        (shared / path).mkdir(parents=True)
        (shared / path / "labels.npy").write_text(path)
    fake.answer("srun", 'while [[ $1 == --* ]]; do shift; done; exec "$@"')
    block = script.read_text().split("# One rank per node copies")[1].partition("\n")[2].split("\nfi\n")[0]
    monkeypatch.setenv("FEDMPI_DATA", str(shared))
    shell = ["bash", "-c", f"SLURM_JOB_NUM_NODES=1\n{block}\nfi\necho $FEDMPI_DATA"]
    done = subprocess.run(shell, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{local}\n", "")
    copied = {str(path.relative_to(local)): path.read_text() for path in local.rglob("*") if path.is_file()}
    assert copied == {f"{path}/labels.npy": path for path in ("planetoid/Cora", "tudataset/PROTEINS")}


def test_paths_with_blanks_and_quotes_are_quoted(fedmpi, tiny_suite, system, tmp_path):
    place = tmp_path / "it's mine" / "runs"
    _, script, _ = render(fedmpi, tiny_suite, system, "--out", place)
    check_shell(script)
    assert "it'\"'\"'s mine/runs'" in script.read_text()


def test_without_a_queue_it_is_a_sweep(fedmpi, tiny_suite):
    (script,) = render(fedmpi, tiny_suite, "workstation", "--ranks", 2)
    assert script.name == "sweep.sh"
    assert script.read_text().splitlines()[-1].endswith("--workers 3 --ranks 2")
    check_shell(script)


def test_every_script_is_named_as_what_comes_next(fedmpi):
    done = fedmpi("jobs", "render", "gcfl/table3", "--system", "generic-cpu", "--to", "to")
    assert done.stderr == (
        "Next: sbatch to/sweep-11.sbatch && sbatch to/sweep-16.sbatch; after their end sbatch to/report.sbatch. "
        "fedmpi jobs submit does all of it.\n"
    )


def test_nothing_left_is_said(fedmpi, tiny_suite, system):
    one = ("--set", "algorithm=fedavg", "--set", "rounds=1")
    fedmpi("run", tiny_suite, *one)
    done = fedmpi("jobs", "render", tiny_suite, "--system", system, "--to", "to", *one, code=2)
    assert "all 1 cases are complete" in done.stderr


def test_a_mode_has_a_script_and_a_folder_for_each_number_of_ranks(fedmpi, tmp_path):
    paths = {path.name: path.read_text() for path in render(fedmpi, "scaling/weak", "generic-cpu")}
    assert paths["cases-3.txt"].splitlines()[0] == "a-clients10"
    assert f"--cases {tmp_path}/to/cases-3.txt --ranks 3 " in paths["sweep-3.sbatch"]
    assert f"--out {tmp_path}/results/runs/scaling/weak --share" in paths["sweep-3.sbatch"]
    assert f"root={tmp_path}/results/runs/scaling/weak\n" in paths["report.sbatch"]
