"""``fedmpi replay``: a run by the real clock, computed again in the order that was recorded."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

from fedmpi.case.schema import Case
from fedmpi.cli.ending import before_mpi
from fedmpi.cli.options import Data, PluginFiles
from fedmpi.cli.plan import Planned, check_places
from fedmpi.cli.session import Session, with_session
from fedmpi.cli.terminal import say
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_stored
from fedmpi.registry.kinds import load_plugins
from fedmpi.schedules.recorded import Order
from fedmpi.store import arrivals
from fedmpi.store.identical import differences
from fedmpi.store.lock import refuse_live
from fedmpi.store.reader import Run, load_run


def replay(run: Path, options: Data, plugin: PluginFiles = None, out: Path | None = None) -> int:
    """Compute a run with clock = "real" again without waiting, in its order, on any ranks, and compare.

    Parameters
    ----------
    run
        The run's folder.
    out
        Folder of the second run; default: the run's name with -replay behind it.

    Examples
    --------
    mpiexec -n 3 fedmpi replay results/runs/synthetic/quick/fedavg
    """
    with before_mpi():
        load_plugins(plugin or [])
        record = load_run(run)
        checked = check_stored(record.config, run)
        if not checked.case.schedule.real:
            raise BadInput(f'{run} is no run with schedule.clock = "real": run it again with fedmpi run')
        if record.status not in ("complete", "diverged"):
            raise BadInput(f"{run} is not complete: continue it first with fedmpi run {run} --resume")
        folder = out or run.with_name(f"{run.name}-replay")
        if folder.exists():
            raise BadInput(f"{folder} exists: remove it, or choose another folder with --out")
        order = _order(record, checked.case, run)
        plan = [Planned(0, checked, folder, done=False, order=order)]
        source = options.source()
        check_places(plan, source)
        refuse_live(folder)
        return with_session(plan, source, partial(_replay, plan[0], run))


def _order(record: Run, case: Case, run: Path) -> Order:
    """Return the order of a run's updates; the step that diverged is not in its record."""
    if case.schedule.races and record.status == "diverged":
        found = arrivals.load(run, case.digest(), len(record.clients), record.rounds_completed + 1)
        assert found is not None
        return Order(**found)
    fresh = np.asarray(record.results["participated"], np.int32) - 1
    staleness = np.asarray(record.results.get("staleness", fresh))
    return Order(staleness, record.measured("virtual_seconds"), np.zeros(0, np.uint64))


def _replay(item: Planned, run: Path, session: Session) -> int:
    from fedmpi.cli.progress import Console

    code = session.run(item, Console(sys.stdout), resume=False)
    if not session.world.is_root:
        return code
    found = differences(run, item.folder)
    for line in found:
        say(line)
    say(f"{item.folder} {'differs from' if found else 'is identical to'} {run}")
    return 1 if found else code
