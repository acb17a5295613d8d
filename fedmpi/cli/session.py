"""The cases of one process: MPI is started once, and each case is run on all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedmpi.cli.ending import outlive
from fedmpi.cli.plan import Planned
from fedmpi.comm import launch
from fedmpi.comm.start import load_world
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput, Diverged, FedmpiError, Interrupted
from fedmpi.runs.signals import StopRequest
from fedmpi.store.provenance import checkout_state

if TYPE_CHECKING:
    from fedmpi.case.schema import Case
    from fedmpi.cli.progress import Console
    from fedmpi.cli.trackers import Tracked
    from fedmpi.comm.world import World


@dataclass(frozen=True)
class Session:
    """The ranks, and what all their cases share.

    Attributes
    ----------
    world : World
    stop : StopRequest
        A case that is running when it comes ends after its round; no other begins.
    source : DataSource
    checkout : dict
        Git state of the source.
    """

    world: World
    stop: StopRequest
    source: DataSource
    checkout: dict[str, Any]

    def run(self, item: Planned, console: Console, resume: bool, audit: int | None = None) -> int:
        """Run a case on all ranks; return 0, or the exit code of a case that diverged.

        Raises
        ------
        Interrupted
            A signal came before it began.
        """
        from fedmpi.runs.run import Job, run

        if self.world.any(self.stop.requested):
            raise Interrupted(f"stopped by a signal before {item.folder}; run the same command again")
        checked = item.checked
        place = item.folder, self.source, resume, self.checkout
        job = Job(checked.case, checked.algorithm, *place, audit, item.order)
        tracked = self._tracked(console, job.case.track, item.folder)
        complete = False
        try:
            run(job, self.world, tracked or console, self.stop)
            complete = True
        except Diverged as error:
            if self.world.is_root:
                console.note(f"{job.folder}: diverged: {error}")
            return error.exit_code
        finally:
            if tracked is not None:
                tracked.end(complete)
            console.close()
        return 0

    def _tracked(self, console: Console, name: str, folder: Path) -> Tracked | None:
        if name == "none" or not self.world.is_root:
            return None
        from fedmpi.cli.trackers import Tracked

        return Tracked(console, folder, name)


def with_session(plan: Sequence[Planned], source: DataSource, action: Callable[[Session], int]) -> int:
    """Start MPI for the cases of a plan and return what `action` returns; see `started`.

    Raises
    ------
    BadInput
        A case wants more threads than there are cores.
    """
    threads = max(item.checked.case.threads for item in plan)
    if threads > launch.available_cores():
        raise BadInput(f"threads = {threads}, but this process may use {launch.available_cores()} cores")
    launch.set_defaults(threads)
    outlive()
    checkout = checkout_state() if launch.rank() == 0 else {}
    with StopRequest() as stop, started(partial(_load, plan[0].checked.case)) as world:
        stop.listen()
        return action(Session(world, stop, source, checkout))


def _load(case: Case) -> None:
    """Load the code of a case and, where torch can be forked after it has trained, its kernels."""
    import torch

    import fedmpi.runs.run  # noqa: F401
    from fedmpi.client.warm_up import warm_up_anew

    if torch.version.cuda is None:
        warm_up_anew(case)


@contextmanager
def started(prepare: Callable[[], object] | None = None) -> Iterator[World]:
    """Start MPI; within, an error of one rank ends all of them."""
    comm = load_world(prepare)
    world: World = comm.World()
    try:
        yield world
    except FedmpiError as error:
        if error.agreed or world.size == 1:
            raise
        world.fail(error)
    except BaseException as error:
        comm.abort(error)
