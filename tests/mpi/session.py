"""Runs inside one MPI launch: ``python session.py FOLDER MPI``, on any number of ranks.

Everything that needs ranks is checked here, so that a launch is paid once; what no
MPI library can change is checked under MPICH alone. Every rank runs every check; a
failing assertion ends all ranks with its traceback. The
last act is a rank that raises in the middle of a run: the launch must end, and
not well.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import signal
import sys
import threading
import time
import tomllib
from dataclasses import replace
from pathlib import Path

gc.set_threshold(100_000, 20, 20)  # as the command line does: imports leave no garbage

import torch  # noqa: E402

from fedmpi.comm import launch  # noqa: E402

launch.set_defaults(1)
sys.path.append(str(Path(__file__).parent.parent.parent))  # this file may run as a script

from fedmpi.algorithms.base import Algorithm  # noqa: E402
from fedmpi.cli.options import Data  # noqa: E402
from fedmpi.cli.plan import check_places, plan_suite  # noqa: E402
from fedmpi.client.client import Client  # noqa: E402
from fedmpi.comm.selftest import check_collectives, check_device_buffers  # noqa: E402
from fedmpi.comm.world import World, abort  # noqa: E402
from fedmpi.config.suite import read  # noqa: E402
from fedmpi.datasets.families import synthetic  # noqa: E402
from fedmpi.errors import BadInput, Diverged, Interrupted  # noqa: E402
from fedmpi.runs.run import Job, run  # noqa: E402
from fedmpi.runs.signals import StopRequest  # noqa: E402
from fedmpi.store.identical import differences  # noqa: E402
from fedmpi.store.reader import load_run  # noqa: E402
from tests.exchange.compressed import largest  # noqa: E402
from tests.mpi.calls import (  # noqa: E402
    OnlyBuffers,
    check_a_hold_up_is_not_remembered,
    check_counts,
    check_errors_are_everybodys,
    check_nobody_waits_for_a_gather,
    check_ranks_of_a_node_wake_each_other,
)
from tests.mpi.messages import messages_of_a_round  # noqa: E402
from tests.mpi.molecules import prepare  # noqa: E402

synthetic.generate = functools.cache(synthetic.generate)  # most cases have the same graphs

SUITE = Path(__file__).parent / "suite.toml"
INTERRUPTED = (
    "fedavg", "fclg-by-round", "k-means", "fedbn", "fedcch", "fedstar", "ditto", "q-fedavg", "median", "krum",
    "dropouts", "links", "nodes", "protocol",
)  # fmt: skip
"""Cases that are stopped by a signal: the second keeps every client's model of the round before."""

INTERRUPTED_ON_THREE = (
    "feddyn", "fedrep", "apfl", "fedala", "moon", "fedproto", "fedgta", "fedpub", "fedsage-plus",
)  # fmt: skip
"""The same on 3 ranks alone: on 4 the last rank has no client in the round that is stopped."""


def interrupted(mpi, ranks):
    """Return the cases that a session interrupts: all on 3 ranks of MPICH, a part of them in each other one."""
    if (mpi, ranks) == ("mpich", 3):
        return INTERRUPTED + INTERRUPTED_ON_THREE
    if (mpi, ranks) == ("openmpi", 4):
        return INTERRUPTED[2::4] + INTERRUPTED[3::4]
    return INTERRUPTED[ranks - 1 :: 4]


ALONE = (
    "fedavg", "gcfl", "fixed32", "fednova", "dropouts", "private", "fedcch", "q-fedavg", "median", "numbers",
)  # fmt: skip
"""Cases of sessions in which no updates travel, so that only what other checks compare with is run."""


def covered(mpi, ranks):
    """Return the names of the cases that a session runs whole."""
    with SUITE.open("rb") as file:
        names = [case["label"] for case in tomllib.load(file)["matrix"]["case"]]
    if ranks == 1 or (mpi, ranks) == ("openmpi", 2):
        return [name for name in names if name in ALONE]
    return names


class Silent:
    """Keeps the notes and says nothing."""

    def __init__(self):
        self.notes = []

    def begin(self, case, metrics, table, opening, facts):
        pass

    def note(self, text):
        self.notes.append(text)

    def round(self, report):
        pass


def jobs(root, overrides=(), resume=False):
    """Return the suite's cases by name, each in its folder below `root`."""
    source = Data(prepare(root / "data")).source()
    plan = plan_suite(read(SUITE, overrides), root, resume=resume)
    check_places(plan, source)
    return {
        p.checked.case.name: Job(p.checked.case, p.checked.algorithm, p.folder, source, resume, {})
        for p in plan
    }


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
    for name in ("fedavg", "gcfl", "fixed32", "fednova"):
        case = jobs(root / "device", ["reduction.buffers=device", f"case={name}"])
        (job,) = case.values()
        assert job.case.reduction.buffers == "device"
        run(job, world, Silent(), StopRequest())
        if world.is_root:
            found = differences(root / "runs" / name, job.folder)
            assert [line.split(":")[0] for line in found] == ["config name", "config reduction.buffers"]


def check_a_server_that_trains_changes_nothing(world, root):
    """Rank 0 may host clients, too; a run of that kind has the name and every bit of the other."""
    for name in ("fedavg", "gcfl", "fedcch"):
        (job,) = jobs(root / "shared", ["server=shared", f"case={name}"]).values()
        run(job, world, Silent(), StopRequest())
        if world.is_root:
            hosts = load_run(job.folder).attempts[-1].provenance["rank_of_client"]
            assert set(hosts) == set(range(world.size))
            assert differences(root / "runs" / name, job.folder) == []


def check_masks_change_nothing(world, root):
    """Secure sums are those of "fixed32", bit for bit; of an update's size nothing is recorded."""
    sums = [(name, "fixed32") for name in ("secagg", "secagg+", "lightsecagg")]
    for name, case in [*sums, ("lightsecagg", "private")]:
        overrides = [f"reduction.name={name}", f"case={case}"]
        (job,) = jobs(root / "masked", overrides).values()
        assert job.case.reduction.name == name
        run(job, world, Silent(), StopRequest())
        if world.is_root:
            found = differences(root / "runs" / case, job.folder)
            fields = {line.split(":")[0] for line in found if not line.startswith("config")}
            assert fields == {"/rounds/delta_norm"}, found


LOST = (
    "reduction.dropouts.schedule=[{ round = 1, clients = [3], step = 'shares' }, { round = 2, clients = [1] }, "
    "{ round = 3, clients = [4], step = 'answers' }, { round = 4, clients = [0], step = 'training' }]"
)
"""The dropouts of the suite's case: another name of a reduction comes without the options of the first."""

PROTOCOLS = {
    "fixed32": [],
    "secagg+": ["reduction.neighbours=2"],
    "lightsecagg": ["reduction.threshold=0.6", "reduction.colluders=0.4", "reduction.keys=sum"],
}


def check_dropouts_are_those_of_plain_sums(world, root):
    """Whoever drops out at whatever step, the survivors' sums are those of "fixed32" without the others."""
    for name, options in PROTOCOLS.items():
        overrides = [f"reduction.name={name}", LOST, *options, "case=dropouts"]
        (job,) = jobs(root / "dropouts", overrides).values()
        run(job, world, Silent(), StopRequest())
        if world.is_root:
            found = differences(root / "runs" / "dropouts", job.folder)
            fields = {line.split(":")[0] for line in found if not line.startswith("config")}
            assert fields == ({"/rounds/delta_norm"} if name == "fixed32" else set()), (name, fields)


def check_divergence(world, root):
    """A client that diverges ends the run on every rank."""
    wild = ["optimizer.lr=1e30", "batch_size=128"]
    found = jobs(root / "diverged", wild)
    for case in ("fedavg", "k-means", "fedcch"):  # after one step parameters are finite, embeddings are not
        try:
            run(found["-".join([case, *wild])], world, Silent(), StopRequest())
        except Diverged as error:
            assert "round 1: client synthetic-0" in str(error) or case == "fedavg"
        else:
            raise AssertionError(f"{case} did not diverge")


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
        original = Client.train_locally

        def train(self, case, algorithm, round):
            if round == 1:
                os.kill(os.getpid(), signal.SIGUSR1)
            return original(self, case, algorithm, round)

        Client.train_locally = train
    try:
        with StopRequest() as stop:
            run(job, world, Silent(), stop)
    except Interrupted as error:
        assert "after round 2 of" in str(error)
    else:
        raise AssertionError("was not interrupted")
    finally:
        if world.rank == world.size - 1:
            Client.train_locally = original


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
    original, stop, slept = Client.train_locally, StopRequest(), []

    def train(self, case, algorithm, round):
        if round == 1 and not world.is_root and not slept:
            slept.append(self.id)
            time.sleep(1.0)
        return original(self, case, algorithm, round)

    Client.train_locally = train
    try:
        run(job, world, IsAskedLater(stop), stop)
    except Interrupted as error:
        assert "after round 2 of" in str(error)
    else:
        raise AssertionError("was not interrupted")
    finally:
        Client.train_locally = original
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


def check_the_arithmetic_is_that_of_all_ranks(world, root):
    """Subnormal numbers are flushed wherever clients train, and not on rank 0 alone."""
    (job,) = jobs(root / "flushed", ["case=fedstar", "rounds=1"]).values()
    run(job, world, Silent(), StopRequest())
    assert float(torch.tensor(1e-40) * 1) == 0.0


def check_residuals_go_with_their_clients(world, root):
    """What compression left out is each client's own, on any rank."""
    (job,) = jobs(root / "compressed", ["case=sampled"]).values()
    with largest(0.1):
        run(job, world, Silent(), StopRequest())


ABORTED = [
    "case=fedcch", "reduction.name=secagg", "reduction.clip=8.0",
    "reduction.dropouts.schedule=[{ round = 2, clients = [0, 1, 2, 3] }]",
]  # fmt: skip


def check_models_of_clients_stay_at_a_resume(world, root):
    """After a lost sum FedCCH's clients have models of their own; a resume sends rank 0 none of them."""
    (whole,) = jobs(root / "lost", ABORTED).values()
    run(whole, world, Silent(), StopRequest())
    first, second = (next(iter(jobs(root / "kept", ABORTED, resume=True).values())) for _ in range(2))
    world.comm.Barrier()
    stop = StopRequest()
    try:
        run(first, world, StopsAfter(stop, 1), stop)
    except Interrupted as error:
        assert "after round 2 of" in str(error)
    run(replace(second, audit=0), world, Silent(), StopRequest())
    if world.is_root:
        assert load_run(whole.folder).results["aborted_sums"][1] > 0
        assert differences(whole.folder, second.folder) == []
        messages = map(json.loads, (second.folder / "audit.jsonl").read_text().splitlines())
        kinds = {line["kind"] for line in messages if line.get("receiver") == 0}
        assert "masked sums" in kinds and "updates" not in kinds


def check_hooks_that_differ_between_ranks_are_named(world, root):
    """A hook that gives a rank something else than rank 0 is refused on every rank, before there is a run."""
    last = world.size - 1

    class Apart(Algorithm):
        name = "apart"

        def weights(self, samples):
            return samples + (world.rank == last)

    class Alone(Algorithm):
        name = "alone"
        communicates = world.size == 1 or world.rank != last

    for kind, hook in ((Apart, "weights"), (Alone, "communicates")):
        job = jobs(root / kind.name)["fedavg"]
        try:
            run(replace(job, algorithm=kind(job.case.algorithm)), world, Silent(), StopRequest())
        except BadInput as error:
            assert f"{hook} differs between rank {last} and rank 0" in str(error)
            assert error.agreed and last and not job.folder.exists()
        else:
            assert world.size == 1


def main(root: Path, mpi: str) -> None:
    """Run every check, then fail on purpose."""
    world = World()
    crowded = world.collectives.crowded
    for world.collectives.crowded in (False, True):
        check_collectives(world)
        check_counts(world, world.collectives.crowded)
    for length in (3, 100_000):
        check_nobody_waits_for_a_gather(world, length)
    check_ranks_of_a_node_wake_each_other(world)
    world.collectives.crowded = crowded
    check_a_hold_up_is_not_remembered(world)
    check_errors_are_everybodys(world)
    check_idle_ranks_are_named(world, root)
    world.collectives._comm = OnlyBuffers(world.comm)
    whole = jobs(root / "runs")
    for name in covered(mpi, world.size):
        run(whole[name], world, Silent(), StopRequest())
    world.collectives._comm = world.comm
    if mpi == "mpich":
        check_the_personalised_factor_stays_at_home(world, root)
        check_hooks_that_differ_between_ranks_are_named(world, root)
    world.collectives._comm = OnlyBuffers(world.comm)
    check_device_buffers_change_nothing(world, root)
    check_dropouts_are_those_of_plain_sums(world, root)
    if mpi == "mpich":
        check_masks_change_nothing(world, root)
        check_a_server_that_trains_changes_nothing(world, root)
        check_residuals_go_with_their_clients(world, root)
        check_the_arithmetic_is_that_of_all_ranks(world, root)
    check_divergence(world, root)
    for case in interrupted(mpi, world.size):
        check_interruption(world, root, case)
    check_rank_0_may_be_asked_while_it_waits(world, root)
    check_resume_of_a_servers_state(world, root)
    if (mpi, world.size) == ("mpich", 3):
        check_models_of_clients_stay_at_a_resume(world, root)
    if world.is_root:
        (root / "checks-passed").touch()
    (root / "raises-now").touch()
    job = jobs(root / "raised")["fedavg"]

    def explode():
        raise RuntimeError("raised on purpose")

    if world.rank == world.size - 1:
        Client.train_locally = lambda *_: explode()
    run(job, world, Silent(), StopRequest())


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except BaseException as error:
        abort(error)
