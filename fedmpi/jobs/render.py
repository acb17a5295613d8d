"""From a plan to the texts of job scripts: pure functions, no Slurm needed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from fedmpi.comm import launch
from fedmpi.config import modes
from fedmpi.datasets.names import family_of
from fedmpi.errors import BadInput
from fedmpi.jobs.cases import datasets
from fedmpi.jobs.ordered import Ordered
from fedmpi.jobs.plan import Batch, Plan
from fedmpi.jobs.systems import GPUS, System
from fedmpi.jobs.systems import folder as folder_of

TEMPLATES = ("sweep", "cpu", "gpu", "container")
"""What a suite can be rendered as: an array of its cases, or one job for all of them."""

_WARNING_S = 120
"""Seconds before the limit at which Slurm warns a job; a quarter of the limit where that is less."""

_SETTINGS = {
    # Measured, see docs/clusters.md: threads and waiting ranks that spin slow each other down a hundredfold.
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


Script = dict[str, Any]
"""What the templates know as ``job``; see jobs/templates."""


def scripts(plan: Plan, order: Ordered, folder: Path, template: str) -> dict[str, str]:
    """Return the text of each file by its name: scripts, lists of cases, and the report's script.

    Parameters
    ----------
    plan : Plan
        Batches of cases; one array script for each.
    order : Ordered
        System, suite, folders and options that go into the scripts.
    folder : Path
        Where scripts, lists and logs go.
    template : str
        One of `TEMPLATES`.

    Raises
    ------
    BadInput
        A path cannot stand in a script.
    """
    for path in (order.path, order.root, folder, order.request.directory, order.data):
        if not str(path).isprintable():
            raise BadInput(f"{str(path)!r}: a path with such characters cannot stand in a job script")
    system = order.system
    if system.launch.scheduler == "none":
        largest = max(plan.batches, key=lambda batch: batch.ranks)
        return {"sweep.sh": _fill("sweep.sh.j2", _script(largest, order, folder, ()), system)}
    texts: dict[str, str] = {}
    for batch in plan.batches:
        label = _label(batch)
        if template == "sweep":
            texts[list_name(batch)] = "".join(f"{item.case.name}\n" for item in batch.items)
        options = (*_requested(system), *_shape(batch, system, array=template == "sweep"))
        script = _script(batch, order, folder, options)
        texts[f"{template}-{label}.sbatch"] = _fill(f"{template}.sbatch.j2", script, system)
    report = _script(plan.batches[0], order, folder, (*_requested(system), "--ntasks=1", "--time=10"))
    texts["report.sbatch"] = _fill("report.sbatch.j2", {**report, "root": str(order.root)}, system)
    return texts


def script_name(batch: Batch) -> str:
    """Return the file name of a batch's array script."""
    return f"sweep-{_label(batch)}.sbatch"


def list_name(batch: Batch) -> str:
    """Return the file name of a batch's list of cases."""
    return f"cases-{_label(batch)}.txt"


def _label(batch: Batch) -> str:
    threads = f"x{batch.threads}" if batch.threads > 1 else ""
    return f"{batch.ranks}{threads}{'-cuda' if batch.gpus else ''}"


def _requested(system: System) -> list[str]:
    """Return the options of sbatch for what the system file asks; empty ones are omitted."""
    names = ("partition", "account", "qos", "constraint")
    named = {name: getattr(system.request, name) for name in names}
    options = [f"--{name}={shlex.quote(value)}" for name, value in named.items() if value]
    return [*options, *system.request.options]


def _shape(batch: Batch, system: System, *, array: bool) -> list[str]:
    """Return the options of sbatch for ranks, nodes, time, requeueing and the warning."""
    options = [f"--nodes={batch.nodes}", f"--ntasks={batch.ranks}", f"--cpus-per-task={batch.threads}"]
    if batch.gpus:
        options.append(system.node.gpu_option.replace(GPUS, str(batch.gpus)))
    if memory := system.request.memory_per_rank:
        megabytes = int(memory[:-1]) * (1024 if memory[-1] == "G" else 1)
        options.append(f"--mem-per-cpu={megabytes // batch.threads}M")
    warning = min(_WARNING_S, 60 * batch.minutes // 4)
    options += [f"--time={batch.minutes}", "--requeue", f"--signal=B:USR1@{warning}"]
    if array:
        options.append(f"--array=0-{batch.tasks - 1}%{batch.at_once}")
    return options


def _script(batch: Batch, order: Ordered, folder: Path, options: Sequence[str]) -> Script:
    system = order.system
    program = shlex.join(launch.python(folder=Path(order.request.directory)))
    contained = f"{system.launch.container} fedmpi" if system.launch.container else program
    environment = {
        **_SETTINGS,
        "OMP_NUM_THREADS": str(batch.threads),
        "SRUN_CPUS_PER_TASK": str(batch.threads),  # srun does not take it over from sbatch by itself
        "FEDMPI_DATA": str(order.data),
        "FEDMPI_OFFLINE": "1",
        **system.launch.environment,
    }
    array = any(option.startswith("--array") for option in options)
    return {
        "name": job_name(order.suite.name),
        "suite": order.suite.name,
        "log": str(folder).replace("%", "%%") + ("/%A_%a.out" if array else "/%j.out"),
        "directory": order.request.directory,
        "options": options,
        "ranks": batch.ranks,
        "workers": batch.at_once,
        "program": program,
        "launch": f"{system.launch.command} {contained}",
        "arguments": shlex.join([str(order.path), *order.options, "--out", str(order.root)]),
        "environment": environment,
        # folders below that of prepared data
        "prepared": [family_of(name).prepared_in(name) for name in datasets(batch.items)],
        "list": str(folder / list_name(batch)),
        "root": str(modes.place(order.root, batch.items[0].on)),
    }


def job_name(suite: str) -> str:
    """Return the name of the jobs of a suite in the queue."""
    return f"fedmpi-{suite.replace('/', '-')}"


def _fill(template: str, script: Script, system: System) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder_of("templates")),
        undefined=jinja2.StrictUndefined,
        comment_start_string="<#",  # bash has a use for jinja's own: ${#names[@]}
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # shell text, quoted by `quote`
    )
    environment.filters["quote"] = shlex.quote
    return environment.get_template(template).render(job=script, system=system)
