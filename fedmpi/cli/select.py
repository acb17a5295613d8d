"""``fedmpi paper select``: the winners of a sweep by validation, and the suite that runs them again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.winners import Labels, Winner, as_suite, winners
from fedmpi.case.folders import holds_run
from fedmpi.cli.options import SweepOptions, whole_numbers
from fedmpi.cli.terminal import say, show
from fedmpi.cli.terminal import write as write_file
from fedmpi.config import locations
from fedmpi.config.documents import short
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate
from fedmpi.registry.check import check_suite
from fedmpi.registry.kinds import load_plugins
from fedmpi.store.reader import Run
from fedmpi.tables.table import Column, Entry, Table
from fedmpi.visible import complain_of

_SEED = re.compile(r"[0-9]{1,18}")


def select(
    runs: Annotated[Path, typer.Argument(help="Suite or folder of finished runs.")],
    options: SweepOptions,
    by: Annotated[
        str, typer.Option(help="Settings or axes of the suite by which runs are grouped, with commas.")
    ] = "dataset.name,model.name,algorithm.name",
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Seeds of the suite of winners, with commas; default: three that the sweep has not."
        ),
    ] = None,
    write: Annotated[Path | None, typer.Option(help="Suite of the winners to write.")] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run the winners with these seeds.")] = False,
) -> int:
    """Name the best settings of a sweep by validation data, and run them again with other seeds.

    --set says which of a suite's cases to select from; the other options are for the winners.

    Returns
    -------
    int
        0, 2 if a run could not be read, or what the sweep of the winners returns.

    Examples
    --------
    fedmpi paper select fedgraphnn/sweep-federated --write winners.toml
    """
    numbers = None if seeds is None else seed_list(seeds)
    load_plugins(options.plugins)
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
        _write_suite(suite, as_suite(found, name, numbers or free_seeds(members)), options.plugins)
    if rerun and suite is not None:
        from fedmpi.cli.sweep import sweep

        return sweep(str(suite), replace(options, set_=None))
    return 2 if complaints else 0


def _write_suite(suite: Path, text: str, plugins: Sequence[Path]) -> None:
    write_file(suite, text)
    own = "".join(f" --plugin {quote(str(path))}" for path in plugins)
    say(f"wrote {suite}; fedmpi sweep {suite}{own} runs it")


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


def free_seeds(runs: Iterable[Run]) -> list[int]:
    """Return the first three seeds from 1 that no run has: on its own seed a winner was chosen."""
    taken = {run.config["seed"] for run in runs}
    return list(islice((seed for seed in count(1) if seed not in taken), 3))


def seed_list(text: str) -> list[int]:
    """Return the seeds of ``1,2,3``.

    Raises
    ------
    BadInput
        Something else than whole numbers of at most 18 digits, or one of them twice.
    """
    found = whole_numbers(text, _SEED, "--seeds", "give whole numbers with commas, such as 1,2,3")
    if len(set(found)) < len(found):
        raise BadInput(f"--seeds {short(text)}: each seed once")
    return found


def _columns(by: Sequence[str]) -> list[Column[Winner]]:
    """Return the columns of a group; settings, which are looked for, take several lines where need be."""

    def of_group(place: int) -> Callable[[Winner], str]:
        return lambda row: row.group[place]

    return [
        *(Column(axis.removesuffix(".name"), of_group(place)) for place, axis in enumerate(by)),
        Column("metric", lambda row: row.metric.title, spare=1),
        Column("val", lambda row: _with_interval(row.val)),
        Column("test", lambda row: _with_interval(row.test)),
        Column("tried", lambda row: row.candidates, spare=2),
        Column("best test of any", lambda row: row.test_maximum, format=".4f", spare=3),
        Column("settings", _settings, wrapped=True),
    ]


def _settings(row: Winner) -> str | None:
    return " ".join(part for part in row.options.split() if not part.startswith("plugin")) or None


def _with_interval(mean: Estimate) -> Entry:
    """Return a mean and half the width of its 95 % interval, where there are several seeds."""
    return Entry(str(mean), mean.mean)
