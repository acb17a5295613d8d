"""``fedmpi export``: runs as TensorBoard's files, and trained models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedmpi.analysis import tensorboard as events
from fedmpi.analysis.discovery import read_or_complain, run_places, single_run
from fedmpi.cli.options import Data, Plugin, Runs
from fedmpi.cli.terminal import left_out, say
from fedmpi.errors import BadInput

if TYPE_CHECKING:
    from fedmpi.trained.from_run import Which


def export(
    runs: Runs,
    options: Data,
    tensorboard: Path | None = None,
    model: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    client: str | None = None,
    round: Literal["last", "best"] = "last",
    plugin: Plugin = None,
) -> int:
    """Write runs as TensorBoard's event files, or a trained model of one run.

    Parameters
    ----------
    tensorboard
        Folder for TensorBoard event files.
    model
        File for a trained model, .safetensors or .pt; what builds it again goes beside it, as .json.
    client
        With --model: whose model; default the one that all clients share, where they do.
    round
        With --model: best is the client's best round by validation, of a run with keep = "best".

    Returns
    -------
    int
        0, or 2 if anything was left out (named on the standard error).

    Examples
    --------
    fedmpi export results/runs/synthetic/quick --tensorboard tb

    fedmpi export results/runs/synthetic/quick/fedavg --client synthetic-0 --model mine.safetensors
    """
    if (tensorboard is None) == (model is None):
        raise BadInput("say what to write: --tensorboard DIR, or --model FILE")
    if model is None and (client is not None or round != "last"):
        raise BadInput("--client and --round are for --model")
    if model is not None:
        return _model(runs, model, client, round, options)
    assert tensorboard is not None
    return _events(runs, tensorboard)


def _model(runs: Sequence[Path], file: Path, client: str | None, round: Which, options: Data) -> int:
    from fedmpi.case.initial import check_name
    from fedmpi.trained import files
    from fedmpi.trained.from_run import from_run

    if len(runs) > 1:
        raise BadInput("--model: name one run")
    check_name(file)
    trained = from_run(single_run(runs[0]), client, options.source(), round)
    files.save(trained, file)
    say(f"{file}, {file.with_suffix('.json').name}: {trained.extra_repr()}")
    return 0


def _events(runs: Sequence[Path], tensorboard: Path) -> int:
    complaints: list[str] = []
    count = 0
    places = dict(run_places(runs, complaints))
    for name, place in zip(_names(places), places.values(), strict=True):
        run = read_or_complain(place, complaints)
        if run is None:
            continue
        if not run.rounds_completed:
            complaints.append(f"{run.folder}: no round is finished, left out")
            continue
        count += 1
        try:
            events.write(run, tensorboard / name)
        except OSError as error:
            raise BadInput(f"{error.filename or tensorboard}: cannot write it ({error.strerror})") from error
    say(f"{count} runs exported to {tensorboard}")
    return left_out(complaints)


def _names(places: Iterable[Path]) -> list[str]:
    """Return the path of each run below the folder that holds all of them, so that no two are alike."""
    folders = [place.parent for place in places]
    top = os.path.commonpath(folders) if folders else ""
    return [os.path.relpath(place, top) for place in places]
