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
from fedmpi.registry.kinds import load_plugin


def request(
    suite: str,
    system: str,
    overrides: Sequence[str],
    plugins: Sequence[Path],
    data: Path | None,
    wishes: Wishes,
) -> Request:
    """Return what is asked for, with paths that hold in any working folder.

    Parameters
    ----------
    suite : str
        Name of a bundled suite, or a path.
    system : str
        Name of a bundled system, or a path.
    overrides : sequence of str
        Settings as of ``--set``.
    plugins : sequence of Path
    data : Path, optional
        Folder of prepared data; by default that of the environment.
    wishes : Wishes
        Resources that the user asks for.
    """
    return Request(
        suite=_absolute(suite),
        overrides=tuple(overrides),
        plugins=tuple(str(path.absolute()) for path in plugins),
        data=str(DataSource.from_environment(data).cache.absolute()),
        directory=str(Path.cwd()),
        system=_absolute(system),
        wishes=wishes,
    )


def _absolute(name: str) -> str:
    return str(Path(name).absolute()) if Path(name).is_file() else name


class Ordered:
    """A request read and checked.

    Attributes
    ----------
    request : Request
    system : System
    suite : Suite
    root : Path
        Folder of the cases, absolute.
    items : list of Item
        All cases of the suite.

    Raises
    ------
    BadInput
        Suite, system or plug-in are wrong, or a folder holds a run of another configuration.
    """

    def __init__(self, request: Request, root: Path | None) -> None:
        for path in request.plugins:
            load_plugin(Path(path))
        self.request = request
        self.system = systems.load(request.system)
        self._path = locations.find(request.suite).absolute()
        self.suite: Suite = read(self._path, request.overrides)
        self.root = (root if root is not None else locations.RUNS / self.suite.name).absolute()
        self.items = survey(self.suite, self.root)
        if request.wishes.ranks is not None:
            cases = [case.ranks for case in self.suite.cases]
            modes.refuse_ranks(self._path, self.suite.mode, cases, request.wishes.ranks)

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
        return self._scripts(plan, folder, template)

    def _scripts(self, plan: Plan, folder: Path, template: str) -> dict[str, str]:
        options = [part for override in self.request.overrides for part in ("--set", override)]
        options += [part for path in self.request.plugins for part in ("--plugin", path)]
        order = render.Order(
            suite=self.suite.name,
            path=self._path,
            root=self.root,
            folder=folder,
            directory=Path(self.request.directory),
            data=self._data,
            options=tuple(options),
        )
        return render.scripts(plan, self.system, order, template)

    @property
    def _data(self) -> Path:
        return Path(self.system.data.shared or self.request.data)

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
            submission.write(folder, self._scripts(plan, folder, "sweep"))
            return submission.submit(plan, started, render.job_name(self.suite.name))
        except BadInput:
            if not started.is_saved():
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def _check_data(self, items: Sequence[Item]) -> None:
        """Refuse, before anything is submitted, datasets that are not prepared where jobs will look."""
        source = DataSource(self._data, None, True)
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
    new = replace(old, system=_absolute(system or old.system), wishes=replace(old.wishes, **given))
    return Ordered(new, ordered.root)
