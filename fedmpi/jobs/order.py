"""A suite on a system with its recorded cases: what every command of ``fedmpi jobs`` works on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from fedmpi.config import locations, modes
from fedmpi.config.suite import Suite, read
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.jobs import render, submission, systems
from fedmpi.jobs.cases import OTHER_VERSION, Item, datasets, survey
from fedmpi.jobs.estimate import Paces
from fedmpi.jobs.plan import Plan, Wishes, make
from fedmpi.jobs.submission import Request, Submission
from fedmpi.registry.kinds import load_plugins


def absolute(name: str) -> str:
    """Return the path of a suite or system that holds in any working folder; a bundled name as it is."""
    return str(Path(name).absolute()) if Path(name).is_file() else name


class Ordered:
    """A request read and checked.

    Attributes
    ----------
    request : Request
    system : System
    suite : Suite
    path, root : Path
        Of the suite's file and of the folder of the cases, absolute.
    data : Path
        Folder of prepared data.
    options : list of str
        Further options of ``fedmpi run``.
    items : list of Item
        All cases of the suite.

    Raises
    ------
    BadInput
        Suite, system or plug-in are wrong, or a folder holds a run of another configuration.
    """

    def __init__(self, request: Request, root: Path | None) -> None:
        load_plugins(map(Path, request.plugins))
        self.request = request
        self.system = systems.load(request.system)
        self.path = locations.find(request.suite).absolute()
        self.suite: Suite = read(self.path, request.overrides)
        self.root = (root if root is not None else locations.RUNS / self.suite.name).absolute()
        self.items = survey(self.suite, self.root)
        self.data = Path(self.system.data.shared or request.data)
        self.options = [word for override in request.overrides for word in ("--set", override)]
        self.options += [word for path in request.plugins for word in ("--plugin", path)]
        if request.wishes.ranks is not None:
            cases = [case.ranks for case in self.suite.cases]
            modes.refuse_ranks(self.path, self.suite.mode, cases, request.wishes.ranks)

    def plan(self, items: Sequence[Item] | None = None, records: Sequence[Path] = ()) -> Plan:
        """Plan what is left of the cases, or of the given ones.

        Raises
        ------
        BadInput
            A folder holds a run of another version of a plug-in.
        """
        chosen = self.items if items is None else items
        for item in chosen:
            if item.status == OTHER_VERSION:
                raise BadInput(item.reason)
        return make(chosen, self.system, Paces(self.items, records), self.request.wishes)

    def rendered(self, folder: Path, template: str) -> dict[str, str]:
        """Return the texts of scripts and lists that are to lie in `folder`.

        Raises
        ------
        BadInput
            No such template, or nothing is left to run.
        """
        if template not in render.TEMPLATES:
            raise BadInput(f"--template {template}: choose one of {', '.join(render.TEMPLATES)}")
        plan = self.plan()
        if template != "sweep" and plan.batches and not self.suite.mode:  # one job, one number of ranks
            most = max(batch.ranks for batch in plan.batches)
            wishes = replace(self.request.wishes, ranks=most, tasks=1)
            plan = make(self.items, self.system, Paces(self.items), wishes)
        if not plan.batches:
            raise BadInput(
                f"all {plan.total} cases are complete in {self.root}: nothing to render; "
                "--out names another place"
            )
        return render.scripts(plan, self, folder, template)

    def submit(self, items: Sequence[Item]) -> Submission | None:
        """Submit what is left of these cases; None where nothing is.

        Raises
        ------
        BadInput
            The system has no queue, data are not prepared, or Slurm refuses.
        """
        if self.system.launch.scheduler == "none":
            raise BadInput(
                f"system {self.request.system} has no queue: fedmpi sweep {self.request.suite} --workers N"
            )
        plan = self.plan(items)
        if not plan.batches:
            return None
        self._check_data(items)
        folder = submission.new_folder(self.root)
        started = Submission(folder, self.request)
        try:
            submission.write(folder, render.scripts(plan, self, folder, "sweep"))
            return submission.submit(plan, started, render.job_name(self.suite.name))
        except BadInput:
            if not started.is_saved():
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def _check_data(self, items: Sequence[Item]) -> None:
        """Refuse, before anything is submitted, datasets that are not prepared where jobs will look."""
        source = DataSource(self.data, None, True)
        missing = [name for name in datasets(items) if source.status(name) == "missing"]
        if missing:
            raise BadInput(
                f"{', '.join(missing)}: not prepared in {source.cache}, and jobs do not download; "
                f"run fedmpi data fetch {quote(self.request.suite)} --data {quote(str(source.cache))}"
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
