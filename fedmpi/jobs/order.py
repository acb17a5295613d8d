"""A suite on a system with its recorded cases: what every command of ``fedmpi jobs`` works on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.jobs import render, submission
from fedmpi.jobs.cases import Item, datasets
from fedmpi.jobs.estimate import Paces
from fedmpi.jobs.ordered import Ordered
from fedmpi.jobs.plan import Wishes, make
from fedmpi.jobs.submission import Submission


def absolute(name: str) -> str:
    """Return the path of a suite or system that holds in any working folder; a bundled name as it is."""
    return str(Path(name).absolute()) if Path(name).is_file() else name


def rendered(order: Ordered, folder: Path, template: str) -> dict[str, str]:
    """Return the texts of scripts and lists that are to lie in `folder`.

    Raises
    ------
    BadInput
        No such template, or nothing is left to run.
    """
    if template not in render.TEMPLATES:
        raise BadInput(f"--template {template}: choose one of {', '.join(render.TEMPLATES)}")
    plan = order.plan()
    if template != "sweep" and plan.batches and not order.suite.mode:  # one job, one number of ranks
        most = max(batch.ranks for batch in plan.batches)
        wishes = replace(order.request.wishes, ranks=most, tasks=1)
        plan = make(order.items, order.system, Paces(order.items), wishes)
    if not plan.batches:
        raise BadInput(
            f"all {plan.total} cases are complete in {order.root}: nothing to render; "
            "--out names another place"
        )
    return render.scripts(plan, order, folder, template)


def submit(order: Ordered, items: Sequence[Item]) -> Submission | None:
    """Submit what is left of these cases; None where nothing is.

    Raises
    ------
    BadInput
        The system has no queue, data are not prepared, or Slurm refuses.
    """
    if order.system.launch.scheduler == "none":
        raise BadInput(
            f"system {order.request.system} has no queue: fedmpi sweep {order.request.suite} --workers N"
        )
    plan = order.plan(items)
    if not plan.batches:
        return None
    _check_data(order, items)
    folder = submission.new_folder(order.root)
    started = Submission(folder, order.request)
    scripts = {render.script_name(batch): batch for batch in plan.batches}
    try:
        submission.write(folder, render.scripts(plan, order, folder, "sweep"))
        return submission.submit(scripts, started, render.job_name(order.suite.name))
    except BadInput:
        if not started.is_saved():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _check_data(order: Ordered, items: Sequence[Item]) -> None:
    """Refuse, before anything is submitted, datasets that are not prepared where jobs will look."""
    source = DataSource(order.data, None, True)
    missing = [name for name in datasets(items) if source.status(name) == "missing"]
    if missing:
        raise BadInput(
            f"{', '.join(missing)}: not prepared in {source.cache}, and jobs do not download; "
            f"run fedmpi data fetch {quote(order.request.suite)} --data {quote(str(source.cache))}"
        )


def reopen(target: str, root: Path | None) -> tuple[Ordered, list[Submission]]:
    """Return what was last submitted of a suite: of its name, its file or the folder of its cases.

    Raises
    ------
    BadInput
        Nothing of it was submitted.
    """
    if root is None:
        named = (folder for folder in (Path(target), locations.RUNS / target) if folder.is_dir())
        root = next(named, None) or locations.RUNS / read(locations.find(target)).name
    before = submission.earlier(root)
    if not before:
        raise BadInput(f"{root}: nothing of it was submitted; see fedmpi jobs submit --help")
    return Ordered(before[-1].request, root), before


def changed(ordered: Ordered, system: str | None, wishes: Wishes) -> Ordered:
    """Return the same order on another system or with other wishes, where any are given."""
    old = ordered.request
    given = {name: value for name, value in vars(wishes).items() if value is not None}
    new = replace(old, system=absolute(system or old.system), wishes=replace(old.wishes, **given))
    return Ordered(new, ordered.root)
