"""``fedmpi bench secure``: what secure aggregation costs, alone or beside Flower."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedmpi.cli.bench import alone, finish, names_of
from fedmpi.cli.options import Json, refuse_beside, whole_numbers
from fedmpi.cli.terminal import say
from fedmpi.config.documents import short
from fedmpi.errors import BadInput

if TYPE_CHECKING:
    from fedmpi.benchmarks.samples import Measurement, Report
    from fedmpi.benchmarks.secure import Sweep

_PROTOCOLS = ("secagg", "secagg+", "lightsecagg")
_LEAST_CLIENTS, _MOST_CLIENTS, _MOST_PARAMETERS = 4, 2000, 100_000_000
_DROPOUTS = "0,10,30,50"
_MOST_DROPOUT = 70


def secure(
    context: typer.Context,
    protocols: Annotated[str, typer.Option(help="Of secagg, secagg+, lightsecagg.")] = ",".join(_PROTOCOLS),
    parameters: Annotated[str, typer.Option(help="Sizes of a model, with commas.")] = "30000,280000",
    clients: Annotated[
        str, typer.Option(help="Clients of a sum, with commas; four at least.")
    ] = "8,16,32,64",
    dropouts: Annotated[
        str, typer.Option(help="Percent of the clients that drop out before they upload, up to 70.")
    ] = _DROPOUTS,
    repetitions: Annotated[int, typer.Option(min=1, help="Measured sums of a setting; all are kept.")] = 3,
    warmup: Annotated[int, typer.Option(min=0, help="Sums of a setting before, not measured.")] = 1,
    peer: Annotated[
        Path | None,
        typer.Option(metavar="PYTHON", help="Take turns with Flower, in the environment of this Python."),
    ] = None,
    image: Annotated[
        Path | None, typer.Option(help="Also draw total time against clients: .svg, .pdf or .png.")
    ] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Fit and draw what --json printed before; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Run whole secure sums of simulated clients: seconds and bytes of each step, and how they grow.

    Examples
    --------
    fedmpi bench secure --parameters 30000 --clients 8,16,32 --image secure.png
    """
    if from_:
        refuse_beside(context, "--from prints fits", ("from_", "image"))
        return _summed_up(from_, image)
    asked = (
        names_of(protocols, _PROTOCOLS, "--protocols"),
        _numbers(parameters, "--parameters", 1, _MOST_PARAMETERS),
        _numbers(clients, "--clients", _LEAST_CLIENTS, _MOST_CLIENTS),
        tuple(percent / 100 for percent in _numbers(dropouts, "--dropouts", 0, _MOST_DROPOUT)),
    )
    if peer is not None and image is not None:
        raise BadInput("--image draws the three protocols: leave --peer out")
    if peer is not None and (not peer.is_file() or "secagg+" not in asked[0]):
        raise BadInput(f"--peer {peer}: name a Python that has Flower, and secagg+ among --protocols")
    if importlib.util.find_spec("cryptography") is None:
        raise BadInput("bench secure needs the extra secure: pip install 'fedmpi[secure]'")
    checkout = alone("secure", 1)
    _check_image(image)
    from fedmpi.benchmarks.secure import Sweep

    report = _measure(Sweep(*asked), peer, repetitions, warmup)
    code = finish(report, as_json, checkout, {"threads": 1})
    _draw(image, report)
    return code


def _measure(sweep: Sweep, peer: Path | None, repetitions: int, warmup: int) -> Report:
    from fedmpi.benchmarks.secure import measure
    from fedmpi.benchmarks.secure_peer import compare

    def told(text: str) -> None:
        say(text, sys.stderr)

    if peer is None:
        return measure(sweep, repetitions, warmup, told)
    return compare([e for e in sweep.settings() if e.protocol == "secagg+"], peer, repetitions, warmup, told)


def _numbers(text: str, option: str, least: int, most: int) -> tuple[int, ...]:
    advice = f"give whole numbers from {least} to {most} with commas"
    found = whole_numbers(text, re.compile(r"\d{1,9}"), option, advice)
    if min(found) < least or max(found) > most:
        raise BadInput(f"{option} {short(text)}: {advice}")
    return tuple(dict.fromkeys(found))


def _check_image(image: Path | None) -> None:
    from fedmpi.analysis import figures

    if image is None:
        return
    figures.check_image(image)
    if importlib.util.find_spec("matplotlib") is None:
        raise BadInput("figures are drawn by matplotlib, which is missing: pip install 'fedmpi[report]'")


def _draw(image: Path | None, report: Report) -> None:
    if image is None:
        return
    from fedmpi.analysis.figures import style
    from fedmpi.analysis.figures.secure import picture

    with style.applied():
        style.save(picture(report.record()["measurements"]), image)
    say(f"Picture: {image}", sys.stderr)


def _summed_up(paths: Sequence[Path], image: Path | None) -> int:
    """Print the fits of printed reports together, and draw them."""
    _check_image(image)
    from fedmpi.benchmarks.secure import summed_up

    report = summed_up([each for path in paths for each in _read(path)], {})
    for statement in report.statements:
        say(statement)
    _draw(image, report)
    return 0


def _read(path: Path) -> list[Measurement]:
    """Return the measurements of a printed report."""
    from fedmpi.benchmarks.samples import Measurement

    try:
        report = json.loads(path.read_text())
        found = [Measurement.of(each) for each in report["measurements"] if report["benchmark"] == "secure"]
    except (OSError, ValueError, KeyError, TypeError):
        found = []
    if not all("total_seconds" in each.figures for each in found) or not found:
        raise BadInput(f"--from {path}: not what 'fedmpi bench secure --json' prints without --peer")
    return found
