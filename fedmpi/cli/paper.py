"""``fedmpi paper``: winners of a sweep, FedGraphNN's tables of costs, what became of published figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, islice
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fedmpi.analysis import rows as stored
from fedmpi.analysis.cells import grouped
from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.winners import Labels, Winner, as_suite, winners
from fedmpi.case.folders import holds_run
from fedmpi.cli.options import SweepOptions, whole_numbers
from fedmpi.cli.terminal import say, show
from fedmpi.cli.terminal import write as write_file
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite
from fedmpi.reproduction.cells import as_csv
from fedmpi.reproduction.document import cells as all_cells
from fedmpi.reproduction.document import pages
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.system import PUBLISHED_ROUNDS, SLEEP_S, SystemRow, system_rows
from fedmpi.tables.table import Column, Entry, Table, fields
from fedmpi.visible import complain_of

_CELLS = Path("results/reference/cells.csv")
_SYSTEM_NOTES = (
    f"Published seconds are FedAvg's on 8 GPUs; of Table 6 over {PUBLISHED_ROUNDS} rounds (not stated).",
    f"The released server sleeps {SLEEP_S} s per client and round: 'less sleeps' is at most that much",
    "work, 'ours + sleeps' what our rounds would take with it. FLOP as published leaves out products",
    "with bare parameters; both counts are of one forward pass of an average graph.",
)


def select(
    runs: Path,
    options: SweepOptions,
    by: str = "dataset.name,model.name,algorithm.name",
    seeds: str | None = None,
    write: Path | None = None,
    rerun: bool = False,
) -> int:
    """Name the best settings of a sweep by validation data, and run them again with other seeds.

    --set says which of a suite's cases to select from; the other options are for the winners.

    Parameters
    ----------
    runs
        Suite or folder of finished runs.
    by
        Settings or axes of the suite by which runs are grouped, with commas.
    seeds
        Seeds of the suite of winners, with commas; default: three that the sweep has not.
    write
        Suite of the winners to write.
    rerun
        Run the winners with these seeds.

    Returns
    -------
    int
        0, 2 if a run could not be read, or what the sweep of the winners returns.

    Examples
    --------
    fedmpi paper select fedgraphnn/sweep-federated --write winners.toml
    """
    numbers = whole_numbers(seeds, "--seeds", 0, 10**18 - 1) if seeds is not None else []
    complaints: list[str] = []
    folders, cases, labels = _folders(runs, options.overrides)
    members = list(each_run(folders, complaints))
    complain_of(complaints)
    axes = by.split(",")
    found = winners(members, axes, labels)
    show(Table(_columns(axes), found))
    if not all(each.metric.held_out for each in found):
        say("Nothing was held out: settings were chosen by all labels. Report other seeds.")
    complete = sum(run.status == "complete" for run in members)
    if complete < (cases or len(members)):
        say(f"{complete} of {cases or len(members)} cases are complete; the winners are of these.")
    name = f"{members[0].config['suite']}-winners"
    suite = write or (Path(f"{name.replace('/', '-')}.toml") if rerun else None)
    if suite is not None:
        numbers = numbers or free_seeds([run.config["seed"] for run in members])
        write_file(suite, as_suite(found, name, numbers))
        own = "".join(f" --plugin {quote(str(path))}" for path in options.plugins)
        say(f"wrote {suite}; fedmpi sweep {suite}{own} runs it")
    if rerun and suite is not None:
        from fedmpi.cli.sweep import sweep

        return sweep(str(suite), replace(options, set_=None))
    return 2 if complaints else 0


def _folders(target: Path, overrides: Sequence[str]) -> tuple[list[Path], int, Labels]:
    """Return where the runs are; how many cases there are meant to be and their labels, where a suite says.

    Raises
    ------
    BadInput
        There is nothing there, or overrides for what is no suite.
    """
    known = target.suffix == ".toml" or str(target) in locations.bundled()
    suite = read(locations.find(str(target)), overrides) if known and not target.is_dir() else None
    if suite is None or suite.mode:
        if overrides:
            raise BadInput(f"--set chooses among a suite's cases, and {target} is no suite: name the suite")
        return [target], 0, {}
    names = [checked.case.name for checked in check_suite(suite)] if overrides else None
    places = [locations.RUNS / suite.name / name for name in names or (case.name for case in suite.cases)]
    begun = [place for place in places if holds_run(place)]
    if not begun:
        raise BadInput(f"{target}: none of its {len(places)} cases has run; run: fedmpi sweep {target}")
    return begun, len(places), {case.name: case.labels for case in suite.cases}


def free_seeds(taken: Sequence[int]) -> list[int]:
    """Return the first three seeds from 1 that no run has: on its own seed a winner was chosen."""
    return list(islice((seed for seed in count(1) if seed not in taken), 3))


def _columns(by: Sequence[str]) -> list[Column[Winner]]:
    """Return the columns of a group; settings, which are looked for, take several lines where need be."""

    def of_group(place: int) -> Callable[[Winner], str]:
        return lambda row: row.group[place]

    return [
        *(Column(axis.removesuffix(".name"), of_group(place)) for place, axis in enumerate(by)),
        Column("metric", lambda row: row.metric.title, spare=1),
        Column("val", lambda row: Entry(str(row.val), row.val.mean)),
        Column("test", lambda row: Entry(str(row.test), row.test.mean)),
        Column("tried", lambda row: row.candidates, spare=2),
        Column("best test of any", lambda row: row.test_maximum, format=".4f", spare=3),
        Column("settings", _settings, wrapped=True),
    ]


def _settings(row: Winner) -> str | None:
    return " ".join(part for part in row.options.split() if not part.startswith("plugin")) or None


def system(options: SweepOptions, runs: Annotated[str, typer.Argument()] = "fedgraphnn/table6") -> int:
    """Print FedGraphNN's Tables 6 to 8 for this machine: seconds, FLOPs, parameters, and cost of its sleeps.

    Suites: fedgraphnn/table6, table7, table8. What is missing of a suite is run first; a folder's runs
    are printed as they are.

    Parameters
    ----------
    runs
        Suite, or folder of finished runs.

    Returns
    -------
    int
        What `fedmpi sweep` returns.

    Examples
    --------
    fedmpi paper system fedgraphnn/table6
    """
    code, folder = 0, Path(runs)
    if not folder.is_dir():
        from fedmpi.cli.sweep import sweep

        code = sweep(runs, options)
        folder = options.out or locations.find(runs)
    found = system_rows(each_run([folder], []))
    if not found:
        raise BadInput(f"{runs}: no complete run of a cell of FedGraphNN's Tables 6 to 8")
    for name, rows in grouped(found, lambda row: row.table).items():
        show(Table(_SYSTEM, rows, f"{name} of FedGraphNN on this machine"))
    for line in (*_SYSTEM_NOTES, *dict.fromkeys(_slip(row) for row in found if row.slip)):
        say(line)
    return code


def _slip(row: SystemRow) -> str:
    printed, why = row.slip or ("", "")
    return f"* {row.table} prints {printed} for {row.dataset} {row.model}: {why}."


def _published_flops(row: SystemRow) -> str | None:
    """Return the published count, or in place of none what the paper prints; marked where they differ."""
    if row.slip is None:
        return _thousands(row.published_flops)
    return f"{row.slip[0] if row.published_flops is None else _thousands(row.published_flops)}*"


def _thousands(value: int | None) -> str | None:
    return None if value is None else f"{value / 1e3:,.1f}K"


_SYSTEM: tuple[Column[SystemRow], ...] = (
    *fields("dataset", "algorithm", "model", "ranks"),
    Column("s/round", attrgetter("round_s"), format=".3f"),
    Column("step ms", attrgetter("train_step_ms"), format=".2f"),
    Column("published s/round", attrgetter("published_s"), format=".3f"),
    Column("less sleeps", attrgetter("without_sleeps_s"), format=".3f"),
    Column("ours + sleeps", attrgetter("with_sleeps_s"), format=".3f"),
    *fields("parameters", form=","),
    Column("FLOP as published", _published_flops, numeric=True),
    Column("FLOP", lambda row: _thousands(row.flops), numeric=True),
)


def reproduction(
    rows: Annotated[list[Path] | None, typer.Argument()] = None,
    cells: Path = _CELLS,
    document: Path = Path("docs/reproduction.md"),
) -> int:
    """Write from stored rows what became of published figures: confirmed, refuted, undecided, open.

    In folders of rows a file with the table's name is left out.

    Parameters
    ----------
    rows
        Files of `fedmpi report --csv`, or folders of such; default results/reference.
    cells
        The table to write: a row per published cell and metric.
    document
        The first page; the others go in a folder of its name.

    Raises
    ------
    BadInput
        There are no rows, rows that do not fit together, or no place to write to.

    Examples
    --------
    fedmpi paper reproduction
    """
    results = Results(read_rows(rows or [_CELLS.parent], cells))
    found = all_cells(results)
    beside = {document.parent / path: text for path, text in pages(results, found, document.stem).items()}
    for target, text in {cells: as_csv(found), **beside}.items():
        write_file(target, text)
        say(f"wrote {target}")
    return 0


def read_rows(paths: Sequence[Path], table: Path = _CELLS) -> list[dict[str, str]]:
    """Return the rows of files, and of those in folders by their names, without the table of cells.

    Raises
    ------
    BadInput
        There are none.
    """
    inside = {path: sorted(path.glob("*.csv")) if path.is_dir() else [path] for path in paths}
    files = [file for found in inside.values() for file in found if file.name != table.name or file in paths]
    listed = [row for file in files for row in stored.read(file)]
    if not listed:
        raise BadInput(f"{', '.join(map(str, paths))}: no rows; make some with fedmpi report --csv")
    return listed
