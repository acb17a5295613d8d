"""``fedmpi bench``: the commands and their options; each returns its exit code."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedmpi.benchmarks import cases
from fedmpi.cli.options import Data, Json, Mirror, Set
from fedmpi.comm import launch
from fedmpi.config.documents import short
from fedmpi.config.tables import closest
from fedmpi.errors import BadInput, FedmpiError

if TYPE_CHECKING:
    from fedmpi.benchmarks.samples import Report
    from fedmpi.comm.world import World
    from fedmpi.registry.check import Checked

_SEEDS = (10, 42, 79, 111, 123, *range(1000, 1045))
"""Those of GCFL's five repetitions, in their order, and more."""

_MOST_FLOATS = 100_000_000
"""Beyond it a rank holds gigabytes of copies."""

Repetitions = Annotated[int, typer.Option(min=1, help="Measured repetitions; all are kept.")]
Warmup = Annotated[int, typer.Option(min=0, help="Repetitions before, not measured.")]


OneCase = Annotated[
    str | None, typer.Argument(help="A suite with one case left; default gcfl/proteins with FedAvg.")
]


def train(
    data: Data,
    suite: OneCase = None,
    set_: Set = None,
    repetitions: Repetitions = 10,
    warmup: Warmup = 3,
    functions: Annotated[
        int,
        typer.Option(min=0, help="Also name so many functions by their own time, from one profiled round."),
    ] = 0,
    as_json: Json = False,
) -> int:
    """Time local training and evaluation of all clients in one process, beside the machine's own rates.

    Examples
    --------
    fedmpi bench train
    """
    checked = cases.choose(suite, set_ or [])
    checkout = alone("train", checked.case.threads)
    from fedmpi.benchmarks.train import measure

    report = measure(checked, data.source(), _world(), repetitions, warmup, functions)
    return finish(report, as_json, checkout, {"threads": checked.case.threads})


def cores(
    data: Data,
    suite: OneCase = None,
    set_: Set = None,
    processes: Annotated[
        int | None, typer.Option(min=2, help="Processes side by side; default the cores there are.")
    ] = None,
    repetitions: Repetitions = 15,
    warmup: Warmup = 3,
    as_json: Json = False,
) -> int:
    """Time the same rounds in one process alone and in several side by side: what more ranks can gain.

    Examples
    --------
    fedmpi bench cores
    """
    checked = cases.choose(suite, set_ or [])
    available = launch.available_cores()
    count = processes or max(available, 2)
    if count > available:
        raise BadInput(f"bench cores: {count} processes need as many cores, this one may use {available}")
    checkout = alone("cores", checked.case.threads)
    from fedmpi.benchmarks.cores import measure

    report = measure(checked, data.source(), _world(), count, repetitions, warmup)
    return finish(report, as_json, checkout, {"threads": checked.case.threads})


def sums(
    data: Data,
    suite: OneCase = None,
    set_: Set = None,
    reductions: Annotated[
        str, typer.Option(help="Reductions, with commas; the others are compared with the first.")
    ] = "fixed32,secagg,secagg+,lightsecagg",
    repetitions: Repetitions = 15,
    warmup: Warmup = 3,
    as_json: Json = False,
) -> int:
    """Time rounds of one case with several reductions in turn: what secure sums add to a round.

    Examples
    --------
    fedmpi bench sums --set dataset=NCI1 --set partition.clients=30
    """
    names = reductions.split(",")
    if len(names) < 2 or len(set(names)) < len(names):
        raise BadInput(f"--reductions {reductions}: give different reductions, two at least")
    checked = [cases.choose(suite, [*(set_ or []), f"reduction={name}"]) for name in names]
    checkout = alone("sums", checked[0].case.threads)
    from fedmpi.benchmarks.sums import measure

    report = measure(checked, data.source(), _world(), repetitions, warmup)
    return finish(report, as_json, checkout, {"threads": checked[0].case.threads})


def comm(
    sizes: Annotated[
        list[int] | None,
        typer.Option("--size", min=1, max=_MOST_FLOATS, help="Floats per rank; may be repeated."),
    ] = None,
    repetitions: Repetitions = 20,
    warmup: Warmup = 3,
    as_json: Json = False,
) -> int:
    """Time collectives and reductions on the ranks that mpiexec starts, against the same data pickled.

    Examples
    --------
    mpiexec -n 4 fedmpi bench comm
    """
    from fedmpi.comm.start import load_world
    from fedmpi.store.provenance import checkout_state

    checkout = checkout_state() if launch.rank() == 0 else {}
    launch.set_defaults(1)
    module = load_world()
    from fedmpi.benchmarks.comm import SIZES, measure

    world: World = module.World()
    try:
        report = measure(world, sizes or SIZES, repetitions, warmup)
        facts = world.describe()
    except FedmpiError as error:
        world.fail(error)
    except BaseException as error:
        module.abort(error)
    return finish(report, as_json, checkout, {"threads": 1, "mpi": facts}) if world.is_root else 0


def record(
    clients: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Number of clients; may be repeated; default 10, 100, 1000."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder on the file system to be measured.")] = None,
    repetitions: Repetitions = 20,
    warmup: Warmup = 3,
    as_json: Json = False,
) -> int:
    """Time how rounds are written: event log, HDF5 file, both with their checks, checkpoint.

    Examples
    --------
    fedmpi bench record
    """
    checkout = alone("record", 1)
    from fedmpi.benchmarks.record import CLIENTS, measure

    return finish(measure(clients or CLIENTS, out, repetitions, warmup), as_json, checkout, {"threads": 1})


def data(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Datasets or groups of the mirror; default PROTEINS NCI1 gcfl/molecules."),
    ] = None,
    repetitions: Repetitions = 3,
    as_json: Json = False,
    mirror: Mirror = None,
) -> int:
    """Time data from raw archives to packed clients, with peak memory; each repetition in fresh processes.

    Examples
    --------
    fedmpi bench data
    """
    checkout = alone("data", 1)
    from fedmpi.benchmarks.data import DEFAULT, measure

    source = Data(mirror=mirror, offline=True).source()
    return finish(measure(names or DEFAULT, source, repetitions), as_json, checkout, {"threads": 1})


def peers(
    data: Data,
    settings: Annotated[
        str | None,
        typer.Option(
            help="Of proteins, nci1, molecules, coauthor-cs, ciao; default all, with --accuracy proteins."
        ),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(min=2, help="Pairs of rounds, all kept; default 15.")
    ] = None,
    warmup: Annotated[int | None, typer.Option(min=0, help="Pairs of rounds before; default 3.")] = None,
    accuracy: Annotated[
        bool, typer.Option("--accuracy", help="Compare accuracies over seeds instead of times.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help="With --accuracy: rounds; default 50.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, max=len(_SEEDS), help="With --accuracy: seeds; default 5.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run the same rounds in plain PyTorch Geometric and here, in turn: ratios of times, or accuracies.

    Examples
    --------
    fedmpi bench peers
    """
    timing, learning = {"repetitions": repetitions, "warmup": warmup}, {"rounds": rounds, "seeds": seeds}
    for name, value in (timing if accuracy else learning).items():
        if value is not None:
            raise BadInput(f"--{name} is read {'without' if accuracy else 'with'} --accuracy only")
    default = "proteins" if accuracy else "proteins,nci1,molecules,coauthor-cs,ciao"
    chosen = _peer_cases(default if settings is None else settings)
    checkout = alone("peers", 1)
    from fedmpi.benchmarks.peer_accuracy import compare_accuracies
    from fedmpi.benchmarks.peers import compare_times

    source, world = data.source(), _world()
    if accuracy:
        report = compare_accuracies(chosen, source, world, rounds or 50, _SEEDS[: seeds or 5])
    else:
        report = compare_times(chosen, source, world, repetitions or 15, 3 if warmup is None else warmup)
    return finish(report, as_json, checkout, {"threads": 1})


def _peer_cases(settings: str) -> list[Checked]:
    """Return the cases of the suites in ``peers/`` by their labels, in the order given."""
    from fedmpi.config import locations
    from fedmpi.config.suite import read
    from fedmpi.registry.check import check_suite

    suites = [read(locations.find(name)) for name in ("peers/fedavg", "peers/networks")]
    known = {each.case.name: each for suite in suites for each in check_suite(suite)}
    return [known[name] for name in names_of(settings, known, "--settings")]


def names_of(text: str, known: Collection[str], option: str) -> tuple[str, ...]:
    """Return an option's names, each once.

    Raises
    ------
    BadInput
        One is not known.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    valid = f"(valid: {', '.join(known)})"
    if not all(names):
        raise BadInput(f"{option} {short(text)!r}: give names with commas between them {valid}")
    for name in names:
        if name not in known:
            raise BadInput(f"{option}: there is no {short(name)}{closest(name, known)} {valid}")
    return names


def alone(command: str, threads: int) -> dict[str, Any]:
    """Refuse several ranks, set the number of threads before torch is loaded; return the state of the source.

    Raises
    ------
    BadInput
        Under a launcher with several ranks, or there are fewer cores than threads.
    """
    from fedmpi.store.provenance import checkout_state

    if (launch.expected_size() or 1) > 1:
        raise BadInput(f"bench {command} measures one process: start it without mpiexec")
    if threads > launch.available_cores():
        raise BadInput(f"threads = {threads}, but this process may use {launch.available_cores()} cores")
    if sys.stderr.isatty():
        sys.stderr.write(f"fedmpi bench {command}: measuring; this can take some minutes\n")
    checkout = checkout_state()
    launch.set_defaults(threads)
    return checkout


def _world() -> World:
    from fedmpi.comm.start import load_world

    world: World = load_world().World()
    return world


def finish(report: Report, as_json: bool, checkout: dict[str, Any], facts: dict[str, Any]) -> int:
    """Print a report with its provenance; return the exit code."""
    from fedmpi.cli.bench_report import show
    from fedmpi.store.provenance import collect

    alone = (launch.expected_size() or 1) == 1
    others = {"cores_of_others": launch.cores_of_others()} if alone else {}
    show(report, as_json, collect({**facts, **others}, checkout))
    return 0
