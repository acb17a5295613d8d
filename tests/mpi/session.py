"""Runs inside one MPI launch: ``python session.py FOLDER``, on any number of ranks.

Everything that needs ranks is checked here, so that a launch is paid once. Every
rank runs every check; a failing assertion ends all ranks with its traceback. The
last act is a rank that raises in the middle of a run: the launch must end, and
not well.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from fedmpi.comm import launch

launch.set_defaults(1)
sys.path.append(str(Path(__file__).parent.parent.parent))  # this file may run as a script

from fedmpi.benchmarks import federation  # noqa: E402
from fedmpi.cli.run import Places, check_places, plan_suite  # noqa: E402
from fedmpi.comm.collectives import NAMES, Collectives  # noqa: E402
from fedmpi.comm.selftest import check_collectives, check_device_buffers  # noqa: E402
from fedmpi.comm.world import World, abort  # noqa: E402
from fedmpi.config.suite import read  # noqa: E402
from fedmpi.engine import clients  # noqa: E402
from fedmpi.engine.run import Job, run  # noqa: E402
from fedmpi.engine.signals import StopRequest  # noqa: E402
from fedmpi.errors import BadInput, Diverged, Interrupted  # noqa: E402
from fedmpi.registry.check import Checked  # noqa: E402
from fedmpi.store.identical import differences  # noqa: E402
from fedmpi.store.reader import load_run  # noqa: E402
from tests.mpi.molecules import prepare  # noqa: E402

SUITE = Path(__file__).parent / "suite.toml"
INTERRUPTED = ("fedavg", "fclg-by-round", "k-means")
"""Cases that are stopped by a signal: the second keeps every client's model of the round before."""


class Silent:
    """Keeps the notes and says nothing."""

    def __init__(self):
        self.notes = []

    def begin(self, case, table, opening, facts):
        pass

    def note(self, text):
        self.notes.append(text)

    def round(self, report):
        pass


def jobs(root, overrides=(), resume=False):
    """Return the suite's cases by name, each in its folder below `root`."""
    source = Places(None, prepare(root / "data"), None, None).source()
    plan = plan_suite(read(SUITE, overrides), root, resume=resume)
    check_places(plan, source)
    return {
        p.checked.case.name: Job(p.checked.case, p.checked.algorithm, p.folder, source, resume, {})
        for p in plan
    }


def check_counts(world, crowded):
    """Bytes and calls counted are those of the messages, however ranks wait for them."""
    collectives = Collectives(world.comm, crowded)
    before = collectives.calls.copy(), collectives.payload_bytes.copy()
    collectives.bcast(np.zeros(10, np.float32))
    collectives.gatherv(np.zeros(world.rank + 1, np.int64), [rank + 1 for rank in range(world.size)])
    collectives.reduce(np.zeros((3, 5), np.int64))
    collectives.scatterv(np.zeros(2 * world.size, np.float32), [2] * world.size, np.float32)
    calls, payload = collectives.calls - before[0], collectives.payload_bytes - before[1]
    assert dict(zip(NAMES, calls.tolist(), strict=True)) == {
        "Bcast": 1,
        "Gatherv": 1,
        "Reduce": 1,
        "Scatterv": 1,
        "Ibarrier": 0,
    }
    assert dict(zip(NAMES, payload.tolist(), strict=True)) == {
        "Bcast": 40,
        "Gatherv": 8 * (world.rank + 1),
        "Reduce": 120,
        "Scatterv": 8,
        "Ibarrier": 0,
    }


def check_nobody_waits_for_a_gather(world):
    """At a named place rank 0 alone waits for who comes late; the others go on."""
    counts = [3] * world.size
    late = world.size - 1
    if world.rank == late:
        time.sleep(1)
    start = time.perf_counter()
    part = np.full(3, world.rank)
    whole = world.collectives.gatherv(part, counts, "somewhere")
    waited = time.perf_counter() - start
    if world.is_root:
        assert np.array_equal(whole, np.repeat(np.arange(world.size), 3))
    assert waited > 0.5 if world.is_root and late else waited < 0.5
    world.comm.Barrier()


def check_a_hold_up_is_not_remembered(world):
    """Ranks that once waited long for one that stood still do not make each other wait from then on."""
    if world.rank == world.size - 1:
        time.sleep(3)
    for place in ("first", "second"):
        world.collectives.wait_for_all(place)
    start = time.perf_counter()
    for _ in range(10):
        for place in ("first", "second"):
            world.collectives.wait_for_all(place)
    assert time.perf_counter() - start < 3  # each wait was three seconds when it was remembered


def check_errors_are_everybodys(world):
    """An error of rank 0, or of any one rank, is raised on all."""

    def refuse():
        raise BadInput(f"refused on {world.rank}")

    for action in (lambda: world.agree(refuse), lambda: world.together(refuse)):
        try:
            action()
        except BadInput as error:
            assert str(error) == "refused on 0"
            assert error.agreed
        else:
            raise AssertionError("nothing was raised")
    last = world.size - 1
    try:
        world.together(lambda: refuse() if world.rank == last else None)
    except BadInput as error:
        assert str(error) == f"refused on {last}"
    else:
        raise AssertionError("nothing was raised")


class OnlyBuffers:
    """A communicator without the calls that pickle: what carries model data may not need them."""

    def __init__(self, comm):
        self._comm = comm

    def __getattr__(self, name):
        pickles = name[0].islower() and name not in ("rank", "size")
        assert not pickles, f"{name} pickles"
        return getattr(self._comm, name)


def check_idle_ranks_are_named(world, root):
    """A rank too many takes part, has nothing to do, and is named."""
    notes = Silent()
    job = jobs(root / "idle", ["case=fedavg", "dataset.synthetic.domains=2"])[
        "fedavg-dataset.synthetic.domains=2"
    ]
    run(job, world, notes, StopRequest())
    idle = world.is_root and world.size > 3
    said = [note for note in notes.notes if note.endswith("idle")]
    assert said == (["warning: 4 ranks for 2 clients and a server: ranks 3 are idle"] if idle else [])


def check_device_buffers_change_nothing(world, root):
    """MPI that reads and writes a device's memory gives the bits that copies in host memory give."""
    check_device_buffers(world, torch.device("cpu"))
    for name in ("fedavg", "gcfl", "fixed32"):
        case = jobs(root / "device", ["reduction.buffers=device", f"case={name}"])
        (job,) = case.values()
        assert job.case.reduction.buffers == "device"
        run(job, world, Silent(), StopRequest())
        if world.is_root:
            found = differences(root / "runs" / name, job.folder)
            assert [line.split(":")[0] for line in found] == ["config name", "config reduction.buffers"]


def check_divergence(world, root):
    """A client that diverges ends the run on every rank."""
    job = jobs(root / "diverged", ["optimizer.lr=1e30"])["fedavg-optimizer.lr=1e30"]
    try:
        run(job, world, Silent(), StopRequest())
    except Diverged as error:
        assert "round 1: client synthetic-0" in str(error)
    else:
        raise AssertionError("did not diverge")


class Recorder:
    """A communicator that keeps what this rank sends."""

    def __init__(self, comm):
        self._comm, self.sent = comm, []

    def __getattr__(self, name):
        call = getattr(self._comm, name)
        sending = ("Ibcast", "Bcast", "Scatterv") if self._comm.rank == 0 else ()
        if name not in ("Igatherv", "Gatherv", "Ireduce", "Reduce", *sending):
            return call

        def recorded(buffer, *arguments, **options):
            array = buffer[0] if isinstance(buffer, list) else buffer
            self.sent.append(np.asarray(array).tobytes())
            return call(buffer, *arguments, **options)

        return recorded


def messages_of_a_round(world, job, disturbed):
    """Return what this rank sends up to the evaluation if, after training, tensors are overwritten."""
    ready = federation.prepare(Checked(job.case, job.algorithm), job.source, world)
    rounds, recorder = ready.rounds, Recorder(world.comm)
    original = clients.Client.train_locally

    def train(self, case, algorithm, round):
        done = original(self, case, algorithm, round)
        for slot in self.model.slots:
            if slot.name.startswith(disturbed):
                self.row[slot.start : slot.stop] += 1 + self.id
        return replace(done, wall_s=0.0, cpu_s=0.0)

    def evaluate(*arguments):
        world.collectives._comm = recorder._comm
        return evaluate_as_ever(*arguments)

    evaluate_as_ever, rounds._evaluator._score = rounds._evaluator._score, evaluate
    clients.Client.train_locally = train
    world.collectives._comm = recorder
    rounds.run(0, stop=StopRequest(), checkpoint=False)
    clients.Client.train_locally = original
    return recorder.sent, len(rounds.clients)


def check_the_personalised_factor_stays_at_home(world, root):
    """No message of a round depends on the GraphNorm parameters that training ended with."""
    job = jobs(root / "pf")["fedcch"]
    untouched, hosted = messages_of_a_round(world, job, "nothing")
    assert untouched == messages_of_a_round(world, job, "graph_norm.")[0]
    others = messages_of_a_round(world, job, "conv.")[0]
    assert not hosted or untouched != others  # what is shared does show
    job = jobs(root / "pf")["k-means"]
    untouched = messages_of_a_round(world, job, "nothing")[0]
    others = messages_of_a_round(world, job, "graph_norm.")[0]
    assert not hosted or untouched != others  # pf = "shared"


def check_interruption(world, root, case):
    """A signal that only the last rank gets stops all ranks after the round, with a checkpoint."""
    job = jobs(root / f"interrupted-{case}")[case]
    if world.rank == world.size - 1:
        original = clients.Client.train_locally

        def train(self, case, algorithm, round):
            if round == 1:
                os.kill(os.getpid(), signal.SIGUSR1)
            return original(self, case, algorithm, round)

        clients.Client.train_locally = train
    try:
        with StopRequest() as stop:
            run(job, world, Silent(), stop)
    except Interrupted as error:
        assert "after round 2 of" in str(error)
    else:
        raise AssertionError("was not interrupted")
    finally:
        if world.rank == world.size - 1:
            clients.Client.train_locally = original


class IsAskedLater(Silent):
    """Asks for an end of the run a moment after the first round, while the others train the second."""

    def __init__(self, stop):
        super().__init__()
        self._stop = stop

    def round(self, report):
        if report.round == 0:
            threading.Timer(0.2, setattr, (self._stop, "requested", True)).start()


def check_rank_0_may_be_asked_while_it_waits(world, root):
    """A wish to stop that rank 0 gets while others train counts for that round."""
    job = jobs(root / "asked")["fedavg"]
    if world.size == 1:
        return
    original, stop = clients.Client.train_locally, StopRequest()

    def train(self, case, algorithm, round):
        time.sleep(1.0 if round == 1 else 0.0)
        return original(self, case, algorithm, round)

    clients.Client.train_locally = train
    try:
        run(job, world, IsAskedLater(stop), stop)
    except Interrupted as error:
        assert "after round 2 of" in str(error)
    else:
        raise AssertionError("was not interrupted")
    finally:
        clients.Client.train_locally = original
    if world.is_root:  # whose round lasts until all scores are there
        assert load_run(job.folder).measured("round_seconds")[1] > 1.0


class StopsAfter(Silent):
    """Asks for an end of the run after so many rounds."""

    def __init__(self, stop, rounds):
        super().__init__()
        self._stop, self._rounds = stop, rounds

    def round(self, report):
        self._stop.requested |= report.round + 1 == self._rounds


def check_resume_of_a_servers_state(world, root):
    """What server and clients remember beside parameters is in the checkpoint, for any placement."""
    first, second = (jobs(root / "resumed", resume=True) for _ in range(2))
    world.comm.Barrier()  # planned on every rank before any begins
    for name in ("labels", "numbers"):
        stop = StopRequest()
        try:
            run(first[name], world, StopsAfter(stop, 2), stop)
        except Interrupted as error:
            assert "after round 3 of" in str(error)
        else:
            raise AssertionError("was not interrupted")
        run(second[name], world, Silent(), StopRequest())


def main(root: Path) -> None:
    """Run every check, then fail on purpose."""
    world = World()
    crowded = world.collectives.crowded
    for world.collectives.crowded in (False, True):
        check_collectives(world)
        check_counts(world, world.collectives.crowded)
    check_nobody_waits_for_a_gather(world)
    world.collectives.crowded = crowded
    check_a_hold_up_is_not_remembered(world)
    check_errors_are_everybodys(world)
    check_idle_ranks_are_named(world, root)
    world.collectives._comm = OnlyBuffers(world.comm)
    for job in jobs(root / "runs").values():
        run(job, world, Silent(), StopRequest())
    world.collectives._comm = world.comm
    check_the_personalised_factor_stays_at_home(world, root)
    world.collectives._comm = OnlyBuffers(world.comm)
    check_device_buffers_change_nothing(world, root)
    check_divergence(world, root)
    for case in INTERRUPTED:
        check_interruption(world, root, case)
    check_rank_0_may_be_asked_while_it_waits(world, root)
    check_resume_of_a_servers_state(world, root)
    if world.is_root:
        (root / "checks-passed").touch()
    (root / "raises-now").touch()
    job = jobs(root / "raised")["fedavg"]

    def explode():
        raise RuntimeError("raised on purpose")

    if world.rank == world.size - 1:
        clients.Client.train_locally = lambda *_: explode()
    run(job, world, Silent(), StopRequest())


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except BaseException as error:
        abort(error)
