"""What is asked of a cluster: a suite, a system and wishes, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedmpi.config import locations, modes
from fedmpi.config.suite import Suite, read
from fedmpi.errors import BadInput
from fedmpi.jobs import systems
from fedmpi.jobs.cases import OTHER_VERSION, Item, survey
from fedmpi.jobs.estimate import Paces
from fedmpi.jobs.plan import Plan, make
from fedmpi.jobs.submission import Request
from fedmpi.registry.kinds import load_plugins


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
