"""``fedmpi bench``: micro-benchmarks of the parts of a round; each returns its exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedmpi.benchmarks import cases
from fedmpi.cli.commands import refuse_beside
from fedmpi.cli.measuring import Measured, Pairs, Repetitions, Times, finish, measuring, names_of, told
from fedmpi.cli.options import Data, Json, Mirror, whole_numbers
from fedmpi.cli.session import started
from fedmpi.comm import launch
from fedmpi.errors import BadInput
from fedmpi.store.provenance import checkout_state

if TYPE_CHECKING:
    from fedmpi.benchmarks.samples import Report
    from fedmpi.comm.world import World
    from fedmpi.registry.check import Checked

_SEEDS = (10, 42, 79, 111, 123, *range(1000, 1045))
"""Those of GCFL's five repetitions, in their order, and more."""
_SUMS = "fixed32,secagg,secagg+,lightsecagg"
_PEER_SUITES = ("peers/fedavg", "peers/networks")
_ASYNCHRONOUS = "peers/asynchronous"
_SIMULATORS = "peers/simulators"
_MOST_FLOATS = 100_000_000
"""Beyond it a rank holds gigabytes of copies."""
_RANKS_PER_CORE = 64
"""More ranks on a core measure the system's scheduler alone."""


def _world() -> World:
    from fedmpi.comm.start import load_world

    world: World = load_world().World()
    return world


def train(case: Measured, turns: Times = Times(10, 3), as_json: Json = False) -> int:
    """Time local training and evaluation of all clients in one process, beside the machine's own rates.

    Examples
    --------
    fedmpi bench train
    """
    checked = case.choose()
    show = measuring("train", checked.case.threads)
    from fedmpi.benchmarks.train import measure

    return show(measure(checked, case.source(), _world(), turns), as_json)


def sums(case: Measured, reductions: str = _SUMS, turns: Times = Times(15, 3), as_json: Json = False) -> int:
    """Time rounds of one case with several reductions in turn: what secure sums add to a round.

    Parameters
    ----------
    reductions
        Reductions, with commas; the others are compared with the first.

    Examples
    --------
    fedmpi bench sums --set dataset=NCI1 --set partition.clients=30
    """
    names = reductions.split(",")
    if len(names) < 2 or len(set(names)) < len(names):
        raise BadInput(f"--reductions {reductions}: give different reductions, two at least")
    checked = [case.choose(f"reduction={name}") for name in names]
    show = measuring("sums", checked[0].case.threads)
    from fedmpi.benchmarks.sums import measure

    return show(measure(checked, case.source(), _world(), turns), as_json)


def comm(
    sizes: Annotated[list[int] | None, typer.Option("--size", min=1, max=_MOST_FLOATS)] = None,
    turns: Times = Times(20, 3),
    as_json: Json = False,
) -> int:
    """Time collectives and reductions on the ranks that mpiexec starts, against the same data pickled.

    Parameters
    ----------
    sizes
        Floats per rank; may be repeated.

    Examples
    --------
    mpiexec -n 4 fedmpi bench comm
    """
    checkout = checkout_state() if launch.rank() == 0 else {}
    launch.set_defaults(1)
    with started() as world:
        from fedmpi.benchmarks.comm import SIZES, measure

        report = measure(world, sizes or SIZES, turns)
        facts = {"threads": 1, "mpi": world.describe()}
    return finish(checkout, facts, report, as_json) if world.is_root else 0


def record(
    clients: Annotated[list[int] | None, typer.Option(min=1)] = None,
    out: Path | None = None,
    turns: Times = Times(20, 3),
    as_json: Json = False,
) -> int:
    """Time how rounds are written: event log, HDF5 file, both with their checks, checkpoint.

    Parameters
    ----------
    clients
        Number of clients; may be repeated; default 10, 100, 1000.
    out
        Folder on the file system to be measured.

    Examples
    --------
    fedmpi bench record
    """
    show = measuring("record")
    from fedmpi.benchmarks.record import CLIENTS, measure

    return show(measure(clients or CLIENTS, out, turns), as_json)


def data(
    names: Annotated[list[str] | None, typer.Argument()] = None,
    repetitions: Repetitions = 3,
    as_json: Json = False,
    mirror: Mirror = None,
) -> int:
    """Time data from raw archives to packed clients, with peak memory; each repetition in fresh processes.

    Parameters
    ----------
    names
        Datasets or groups of the mirror; default PROTEINS NCI1 gcfl/molecules.

    Examples
    --------
    fedmpi bench data
    """
    show = measuring("data")
    from fedmpi.benchmarks.data import DEFAULT, measure

    return show(measure(names or DEFAULT, Data(mirror=mirror, offline=True).source(), repetitions), as_json)


def peers(
    context: typer.Context,
    data: Data,
    settings: str | None = None,
    turns: Pairs = Pairs(15, 3),
    accuracy: bool = False,
    rounds: Annotated[int, typer.Option(min=1)] = 50,
    seeds: Annotated[int, typer.Option(min=2, max=len(_SEEDS))] = 5,
    pythons: Annotated[list[Path] | None, typer.Option("--peer", metavar="PYTHON")] = None,
    as_json: Json = False,
) -> int:
    """Run the same rounds in plain PyTorch Geometric and here, in turn: ratios of times, or accuracies.

    Parameters
    ----------
    settings
        Of proteins, nci1, molecules, coauthor-cs, ciao; default these, with --accuracy proteins. With --peer
        of asynchronous, buffered, or of proteins-all, nci1-all.
    accuracy
        Compare accuracies over seeds instead of times.
    rounds
        With --accuracy: rounds.
    seeds
        With --accuracy: seeds.
    pythons
        A Python that has a peer: APPFL for asynchronous runs; else pfl or BlazeFL, and may be repeated.

    Examples
    --------
    fedmpi bench peers
    """
    others = {"repetitions", "warmup"} if accuracy else {"rounds", "seeds"}
    why = "--accuracy takes no times" if accuracy else "without --accuracy times are compared"
    refuse_beside(context, why, {str(each.name) for each in context.command.params} - others)
    default = "proteins" if accuracy else "proteins,nci1,molecules,coauthor-cs,ciao"
    suite, chosen = _peer_cases(default if settings is None else settings)
    _check_peers(suite, chosen[0].case.name, pythons or [], accuracy)
    show = measuring("peers")
    if pythons:
        return show(_programs_in_turn(suite, chosen, data, pythons, turns), as_json)
    from fedmpi.benchmarks.peers import compare_accuracies, compare_times

    given = chosen, data.source(), _world()
    if accuracy:
        return show(compare_accuracies(*given, rounds, _SEEDS[:seeds]), as_json)
    return show(compare_times(*given, turns), as_json)


def _peer_cases(settings: str) -> tuple[str, list[Checked]]:
    """Return cases of ``peers/`` by labels, in the order given, and the suite where their peer needs it."""
    from fedmpi.config import locations
    from fedmpi.config.suite import read
    from fedmpi.registry.check import check_suite

    suites = (*_PEER_SUITES, _ASYNCHRONOUS, _SIMULATORS)
    known = {
        each.case.name: (suite, each) for suite in suites for each in check_suite(read(locations.find(suite)))
    }
    chosen = [known[name] for name in names_of(settings, known, "--settings")]
    peers = {suite if suite not in _PEER_SUITES else "" for suite, _ in chosen}
    if len(peers) > 1:
        raise BadInput(f"--settings {settings}: give settings of one kind of peer (bench/peers/README.md)")
    return peers.pop(), [each for _, each in chosen]


def _check_peers(suite: str, setting: str, pythons: list[Path], accuracy: bool) -> None:
    """Refuse settings without the Python of their peer, and what that peer cannot."""
    if suite and not pythons:
        package = "APPFL" if suite == _ASYNCHRONOUS else "pfl or BlazeFL"
        raise BadInput(f"{setting} needs --peer PYTHON, one that has {package} (bench/peers/README.md)")
    if pythons and (accuracy or not suite):
        names = "asynchronous, buffered, proteins-all or nci1-all"
        raise BadInput(f"--peer: use it with --settings {names}, without --accuracy")
    if suite == _ASYNCHRONOUS and len(pythons) > 1:
        raise BadInput("--peer: give one, which has APPFL (bench/peers/README.md)")


def _programs_in_turn(
    suite: str, chosen: list[Checked], data: Data, pythons: list[Path], turns: Pairs
) -> Report:
    """Return what whole runs take here and in peers that are programs of their own."""
    from fedmpi.benchmarks import asynchronous, simulators
    from fedmpi.benchmarks.whole_runs import command_of

    offline = bool(data.offline)
    commands = [
        command_of(suite, [f"setting={each.case.name}"], mirror=data.mirror, data=data.data, offline=offline)
        for each in chosen
    ]
    cases = list(zip(chosen, commands, strict=True))
    if suite == _ASYNCHRONOUS:
        return asynchronous.compare(cases, data.source(), pythons[0], turns, told)
    return simulators.compare(cases, data.source(), pythons, turns, told)


def ranks(
    case: Measured,
    numbers: Annotated[str, typer.Option("--ranks")] = "2,3",
    rounds: Annotated[int, typer.Option(min=3)] = 30,
    turns: Times = Times(7, 1),
    as_json: Json = False,
) -> int:
    """Time the same run on several numbers of ranks in turn, each started by mpiexec.

    Parameters
    ----------
    numbers
        Numbers of ranks, with commas; the first is compared with.
    rounds
        Rounds of each run; the first is not counted.

    Examples
    --------
    fedmpi bench ranks
    """
    if any(each.partition("=")[0] == "rounds" for each in case.set_ or []):
        raise BadInput("--set rounds: bench ranks has --rounds for it")
    wanted = whole_numbers(numbers, "--ranks", 1, _RANKS_PER_CORE * launch.available_cores())
    if len(wanted) < 2:
        raise BadInput(f"--ranks {numbers}: give different numbers of ranks, two at least")
    change = f"rounds={rounds}"
    show = measuring("ranks", case.choose(change).case.threads)
    from fedmpi.benchmarks.whole_runs import command_of, ranks_in_turn

    changes = cases.changes(case.suite, [*(case.set_ or []), change])
    suite, offline = case.suite or cases.DEFAULT, bool(case.offline)
    command = command_of(suite, changes, mirror=case.mirror, data=case.data, offline=offline)
    return show(ranks_in_turn(command, wanted, turns, told), as_json)
