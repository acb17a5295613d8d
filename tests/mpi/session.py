"""Checks of runs on any number of ranks: ``python session.py FOLDER MPI`` in one MPI launch, or in the tests' process.

Everything that needs ranks is checked here, so that a launch is paid once; what no
MPI library can change is checked under MPICH alone. Every rank runs every check; a
failing assertion ends all ranks with its traceback. The last act of a launch is a rank
that raises in the middle of a run: the launch must end, and not well.
"""

import functools
import gc
import json
import os
import signal
import sys
import threading
import time
import tomllib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

gc.set_threshold(100_000, 20, 20)  # as the command line does: imports leave no garbage

import numpy as np  # noqa: E402
import torch  # noqa: E402

from fedmpi.comm import launch  # noqa: E402

launch.set_defaults(1)
sys.path.insert(0, str(Path(__file__).parent.parent.parent))  # as a script: before baycomp's own "tests"

from fedmpi.algorithms.base import Algorithm  # noqa: E402
from fedmpi.case.reductions import ExactOptions  # noqa: E402
from fedmpi.cli.options import Data  # noqa: E402
from fedmpi.cli.plan import check_places, plan_suite  # noqa: E402
from fedmpi.client.client import Client  # noqa: E402
from fedmpi.comm.selftest import check_collectives, check_device_buffers  # noqa: E402
from fedmpi.comm.world import World, abort  # noqa: E402
from fedmpi.config.suite import read  # noqa: E402
from fedmpi.datasets.families import synthetic  # noqa: E402
from fedmpi.errors import Diverged, Interrupted  # noqa: E402
from fedmpi.registry.kinds import load_plugin  # noqa: E402
from fedmpi.runs.run import Job, run  # noqa: E402
from fedmpi.runs.signals import StopRequest  # noqa: E402
from fedmpi.store.identical import differences  # noqa: E402
from fedmpi.store.reader import load_run  # noqa: E402
from tests.mpi import calls  # noqa: E402
from tests.mpi.messages import messages_of_a_round  # noqa: E402
from tests.mpi.molecules import prepare  # noqa: E402
from tests.mpi.storm import PLUGINS, rows_of_plugins, write_plugins  # noqa: E402
from tests.refusals import refused  # noqa: E402

synthetic.generate = functools.cache(synthetic.generate)  # most cases have the same graphs

SUITE = Path(__file__).parent / "suite.toml"
COMPOSED = Path(__file__).parent / "composed.py"
INTERRUPTED = (
    "fedavg", "fclg-by-round", "k-means", "fedbn", "fedcch", "fedstar", "ditto", "q-fedavg", "median", "krum",
    "dropouts", "links", "nodes", "protocol", "patience",
)  # fmt: skip
"""Cases that are stopped by a signal: the second keeps every client's model of the round before."""

INTERRUPTED_ON_THREE = (
    "feddyn", "fedrep", "apfl", "fedala", "moon", "fedproto", "fedgta", "fedpub", "fedsage-plus",
    "pfedme", "fedfomo", "fedas", "one-shot", "flit", "fedvn", "fedtad",
    "top-k", "powersgd", "hierfavg", "one-peer", "choco",
)  # fmt: skip
"""The same on 3 ranks alone: on 4 the last rank has no client in the round that is stopped."""

EVERYWHERE = (
    "fedavg", "gcfl", "fixed32", "fednova", "dropouts", "private", "fedcch", "q-fedavg", "median", "numbers",
)  # fmt: skip
"""Cases of every session: what other checks compare with."""


def interrupted(mpi, ranks):
    """Return the cases that a session interrupts: all on 3 ranks, a part of them on each other number."""
    if ranks == 3:
        return INTERRUPTED + INTERRUPTED_ON_THREE
    return INTERRUPTED[ranks - 1 - (mpi == "openmpi") :: 4]


def suite_of_plugins(world, root):
    """Have the algorithms of docs/extend.md loaded, and return a suite with a case of each."""
    suite, head = root / "plugins.toml", SUITE.read_text().partition("case = [")[0]
    if world.is_root:
        suite.write_text(f"{head}case = [\n{rows_of_plugins()}]\n")
        write_plugins(root)
    world.comm.Barrier()
    for name in PLUGINS:
        load_plugin(root / f"{name}.py")
    return suite


def covered(mpi, ranks):
    """Return the cases that a session runs whole.

    On 2 ranks MPICH has one half, Open MPI the other; on 4 ranks it has the half that it lacks on 2.
    """
    names = [case["label"] for case in tomllib.loads(SUITE.read_text())["matrix"]["case"]]
    if ranks in (1, 3):
        return names
    half = names[(mpi, ranks) == ("openmpi", 2) :: 2]
    return [name for name in names if name in half or name in EVERYWHERE]


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


def jobs(root, overrides=(), resume=False, suite=SUITE):
    """Return the suite's cases by name, each in its folder below `root`."""
    source = Data(prepare(root / "data")).source()
    plan = plan_suite(read(suite, overrides), root, resume=resume)
    check_places(plan, source)
    cases = [(item.checked.case, item.checked.algorithm, item.folder) for item in plan]
    return {case.name: Job(case, *rest, source, resume, {}) for case, *rest in cases}


def only(root, *overrides, resume=False):
    """Return the one case that these settings leave."""
    (job,) = jobs(root, overrides, resume).values()
    return job


def complete(job, world, notes=None):
    """Run a case to its end."""
    run(job, world, notes or Silent(), StopRequest())


def fields_that_differ(folder, other):
    """Return which parts of two records differ, beside their settings."""
    return {line.split(":")[0] for line in differences(folder, other) if not line.startswith("config")}


def check_idle_ranks_are_named(world, root):
    """A rank too many takes part, has nothing to do, and is named."""
    notes = Silent()
    complete(only(root / "idle", "case=fedavg", "dataset.synthetic.domains=2"), world, notes)
    idle = world.is_root and world.size > 3
    said = [note for note in notes.notes if note.endswith("idle")]
    assert said == (["warning: 4 ranks for 2 clients and a server: rank 3 is idle"] if idle else [])


def check_device_buffers_change_nothing(world, root):
    """MPI that reads and writes a device's memory gives the bits that copies in host memory give."""
    check_device_buffers(world, torch.device("cpu"))
    for name in ("fedavg", "gcfl", "fixed32", "fednova"):
        job = only(root / "device", "reduction.buffers=device", f"case={name}")
        complete(job, world)
        if world.is_root:
            found = differences(root / "runs" / name, job.folder)
            assert [line.split(":")[0] for line in found] == ["config name", "config reduction.buffers"]


def check_sums_without_mpi_change_nothing(world, root):
    """Sums by Gloo have the bits and the counts of those by MPI; with float32 on so many ranks, too.

    NCCL's way: updates stay on the device for the sum, and models travel in host memory.
    """
    for name, on_device in (("exact", False), ("exact", True), ("float32", False)):
        place = (root / f"sums-{on_device}", "case=fedavg", f"reduction.name={name}")
        runs = [only(*place, f"reduction.transport={transport}") for transport in ("mpi", "gloo")]
        complete(runs[0], world)
        with patch.object(ExactOptions, "on_device", on_device):
            complete(runs[1], world)
        assert world.collectives.transport is None
        if world.is_root:
            found = differences(*(job.folder for job in runs))
            assert [line.split(":")[0] for line in found] == ["config name", "config reduction.transport"]
            (first,), (second,) = (load_run(job.folder).attempts for job in runs)
            for counted in ("collective_calls", "collective_bytes"):
                assert np.array_equal(first.measurements[counted], second.measurements[counted])


def check_a_server_that_trains_changes_nothing(world, root):
    """Rank 0 may host clients, too; a run of that kind has the name and every bit of the other."""
    for name in ("fedavg", "gcfl", "fedcch"):
        job = only(root / "shared", "server=shared", f"case={name}")
        complete(job, world)
        if world.is_root:
            hosts = load_run(job.folder).attempts[-1].provenance["rank_of_client"]
            assert set(hosts) == set(range(world.size))
            assert differences(root / "runs" / name, job.folder) == []


LOST = (
    "reduction.dropouts.schedule=[{ round = 1, clients = [3], step = 'shares' }, { round = 2, clients = [1] }, "
    "{ round = 3, clients = [4], step = 'answers' }, { round = 4, clients = [0], step = 'training' }]"
)
"""The dropouts of the suite's case: another name of a reduction comes without the options of the first."""

SUMS = (
    *(("fixed32", name) for name in ("secagg", "secagg+", "lightsecagg")), ("private", "lightsecagg"),
    ("dropouts", "fixed32", LOST), ("dropouts", "secagg+", LOST, "reduction.neighbours=2"),
    ("dropouts", "lightsecagg", LOST, "reduction.threshold=0.6", "reduction.colluders=0.4", "reduction.keys=sum"),
)  # fmt: skip
"""Cases, the reduction that they get, and its options."""


def check_masks_change_nothing(world, root):
    """Whoever drops out, secure sums are those of "fixed32", bit for bit; of an update's size nothing is recorded."""
    for case, name, *options in SUMS:
        job = only(root / "masked", f"reduction.name={name}", *options, f"case={case}")
        complete(job, world)
        if world.is_root:
            masked_before = case == "dropouts" and name != "fixed32"
            found = fields_that_differ(root / "runs" / case, job.folder)
            assert found == (set() if masked_before else {"/rounds/delta_norm"}), (case, name)


def check_divergence(world, root):
    """A client that diverges ends the run on every rank."""
    for case in ("fedavg", "k-means", "fedcch"):  # after one step parameters are finite, embeddings are not
        job = only(root / "diverged", "optimizer.lr=1e30", "batch_size=128", f"case={case}")
        with refused("" if case == "fedavg" else "round 1: client synthetic-0", Diverged):
            complete(job, world)


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


def check_interruption(world, root, case, suite=SUITE):
    """A signal that only the last rank gets stops all ranks after the round, with a checkpoint."""
    job, original = jobs(root / f"interrupted-{case}", suite=suite)[case], Client.train_locally

    def train(self, case, algorithm, round):
        if round == 1 and world.rank == world.size - 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        return original(self, case, algorithm, round)

    ends = refused("after round 2 of", Interrupted)
    with patch.object(Client, "train_locally", train), StopRequest() as stop, ends:
        run(job, world, Silent(), stop)


class StopsAfter(Silent):
    """Asks for an end of the run after so many rounds, or a moment later, while the others train the next one."""

    def __init__(self, stop, rounds, later_s=0.0):
        super().__init__()
        self._stop, self._rounds, self._later_s = stop, rounds, later_s

    def round(self, report):
        if report.round + 1 == self._rounds and self._later_s:
            threading.Timer(self._later_s, setattr, (self._stop, "requested", True)).start()
        else:
            self._stop.requested |= report.round + 1 == self._rounds


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

    with patch.object(Client, "train_locally", train), refused("after round 2 of", Interrupted):
        run(job, world, StopsAfter(stop, 1, later_s=0.2), stop)
    if world.is_root:  # whose round lasts until all scores are there
        assert load_run(job.folder).measured("round_seconds")[1] > 1.0


def check_resume_of_a_servers_state(world, root):
    """What server and clients remember beside parameters is in the checkpoint, for any placement."""
    first, second = (jobs(root / "resumed", resume=True) for _ in range(2))
    world.comm.Barrier()  # planned on every rank before any begins
    for name in ("labels", "numbers", "gin-labels", "compiled-parts"):
        stop = StopRequest()
        with refused("after round 3 of", Interrupted):
            run(first[name], world, StopsAfter(stop, 2), stop)
        complete(second[name], world)


def check_the_arithmetic_is_that_of_all_ranks(world, root):
    """Subnormal numbers are flushed wherever clients train, and not on rank 0 alone."""
    complete(only(root / "flushed", "case=fedstar", "rounds=1"), world)
    assert float(torch.tensor(1e-40) * 1) == 0.0


ABORTED = [
    "case=fedcch", "reduction.name=secagg", "reduction.clip=8.0",
    "reduction.dropouts.schedule=[{ round = 2, clients = [0, 1, 2, 3] }]",
]  # fmt: skip


def check_models_of_clients_stay_at_a_resume(world, root):
    """After a lost sum FedCCH's clients have models of their own; a resume sends rank 0 none of them."""
    whole = only(root / "lost", *ABORTED)
    complete(whole, world)
    first, second = (only(root / "kept", *ABORTED, resume=True) for _ in range(2))
    world.comm.Barrier()
    stop = StopRequest()
    with refused("after round 2 of", Interrupted):
        run(first, world, StopsAfter(stop, 1), stop)
    complete(replace(second, audit=0), world)
    if world.is_root:
        assert load_run(whole.folder).results["aborted_sums"][1] > 0
        assert differences(whole.folder, second.folder) == []
        messages = map(json.loads, (second.folder / "audit.jsonl").read_text().splitlines())
        kinds = {line["kind"] for line in messages if line.get("receiver") == 0}
        assert "masked sums" in kinds and "updates" not in kinds


def check_hooks_that_differ_between_ranks_are_named(world, root):
    """A hook that gives a rank something else than rank 0 is refused on every rank, before there is a run."""
    last = world.size - 1
    odd = world.size > 1 and world.rank == last
    hooks = {
        "weights": lambda self, samples: samples + odd,
        "groups": lambda self, num_clients: np.arange(num_clients) % (1 + odd),
        "participants": lambda self, seed, round, num_clients, fraction: np.arange(num_clients - odd),
        "communicates": not odd,
    }
    for hook, value in hooks.items():
        kind = type("Apart", (Algorithm,), {"name": f"apart-{hook}", hook: value})
        job = jobs(root / kind.name)["fedavg"]
        words = f"{hook} differs between rank {last} and rank 0"
        with refused(words) if last else nullcontext() as found:
            complete(replace(job, algorithm=kind(job.case.algorithm)), world)
        assert not last or (found.value.agreed and not job.folder.exists())


def check_methods_that_do_not_touch_each_other_go_together(world, root):
    """Methods put together by inheritance run on several ranks."""
    load_plugin(COMPOSED)
    for job in jobs(root / "composed", suite=COMPOSED.with_suffix(".toml")).values():
        complete(job, world)


def check_calls(world):
    """What ranks say to each other outside of any run."""
    crowded = world.collectives.crowded
    for world.collectives.crowded in (False, True):
        check_collectives(world)
        calls.check_counts(world, world.collectives.crowded)
        calls.check_neighbours(world, world.collectives.crowded)
    for length in (3, 100_000):
        calls.check_nobody_waits_for_a_gather(world, length)
    calls.check_ranks_of_a_node_wake_each_other(world)
    world.collectives.crowded = crowded
    calls.check_a_hold_up_is_not_remembered(world)
    calls.check_errors_are_everybodys(world)


def check_all(world, root, mpi):
    """Run every check of a session."""
    check_calls(world)
    check_idle_ranks_are_named(world, root)
    with patch.object(world.collectives, "_comm", calls.OnlyBuffers(world.comm)):
        whole = jobs(root / "runs")
        for name in covered(mpi, world.size):
            complete(whole[name], world)
        check_device_buffers_change_nothing(world, root)
        if mpi == "mpich":
            check_masks_change_nothing(world, root)
            check_sums_without_mpi_change_nothing(world, root)
            check_a_server_that_trains_changes_nothing(world, root)
            check_resume_of_a_servers_state(world, root)
        check_divergence(world, root)
        for case in interrupted(mpi, world.size):
            check_interruption(world, root, case)
        check_rank_0_may_be_asked_while_it_waits(world, root)
        if (mpi, world.size) == ("mpich", 3):
            check_models_of_clients_stay_at_a_resume(world, root)
            check_methods_that_do_not_touch_each_other_go_together(world, root)
            suite = suite_of_plugins(world, root)
            for case in PLUGINS:
                check_interruption(world, root, case, suite)
    if mpi == "mpich":
        check_the_personalised_factor_stays_at_home(world, root)
        check_hooks_that_differ_between_ranks_are_named(world, root)
        check_the_arithmetic_is_that_of_all_ranks(world, root)


def raise_on_purpose(world, root):
    """End a run by an error of the last rank."""

    def explode(*_):
        raise RuntimeError("raised on purpose")

    job = jobs(root / "raised")["fedavg"]
    with patch.object(Client, "train_locally", explode) if world.rank == world.size - 1 else nullcontext():
        complete(job, world)


def main(root, mpi):
    """Run every check, then fail on purpose."""
    world = World()
    check_all(world, root, mpi)
    if world.is_root:
        (root / "checks-passed").touch()
    (root / "raises-now").touch()
    raise_on_purpose(world, root)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except BaseException as error:
        abort(error)
