"""``fedmpi bench secure``: what secure aggregation costs, alone or beside Flower."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedmpi.cli.commands import refuse_beside
from fedmpi.cli.measuring import Repetitions, Warmup, measuring, names_of, told
from fedmpi.cli.options import Json, whole_numbers
from fedmpi.cli.terminal import say
from fedmpi.errors import BadInput

if TYPE_CHECKING:
    from fedmpi.benchmarks.samples import Measurement, Report

_PROTOCOLS = ("secagg", "secagg+", "lightsecagg")


def secure(
    context: typer.Context,
    protocols: str = ",".join(_PROTOCOLS),
    parameters: str = "30000,280000",
    clients: str = "8,16,32,64",
    dropouts: str = "0,10,30,50",
    repetitions: Repetitions = 3,
    warmup: Warmup = 1,
    peer: Annotated[Path | None, typer.Option(metavar="PYTHON")] = None,
    image: Path | None = None,
    from_: list[Path] | None = None,
    as_json: Json = False,
) -> int:
    """Run whole secure sums of simulated clients: seconds and bytes of each step, and how they grow.

    Parameters
    ----------
    protocols
        Of secagg, secagg+, lightsecagg.
    parameters
        Sizes of a model, with commas.
    clients
        Clients of a sum, with commas; four at least.
    dropouts
        Percent of the clients that drop out before they upload, up to 70.
    peer
        Take turns with Flower, in the environment of this Python.
    image
        Also draw total time against clients: .svg, .pdf or .png.
    from_
        Fit and draw what --json printed before; may be repeated.

    Examples
    --------
    fedmpi bench secure --parameters 30000 --clients 8,16,32 --image secure.png
    """
    if from_:
        refuse_beside(context, "--from prints fits", ("from_", "image"))
        return _summed_up(from_, image)
    asked = (
        names_of(protocols, _PROTOCOLS, "--protocols"),
        tuple(whole_numbers(parameters, "--parameters", 1, 100_000_000)),
        tuple(whole_numbers(clients, "--clients", 4, 2000)),
        tuple(percent / 100 for percent in whole_numbers(dropouts, "--dropouts", 0, 70)),
    )
    if peer is not None and image is not None:
        raise BadInput("--image draws the three protocols: leave --peer out")
    if peer is not None and (not peer.is_file() or "secagg+" not in asked[0]):
        raise BadInput(f"--peer {peer}: name a Python that has Flower, and secagg+ among --protocols")
    if importlib.util.find_spec("cryptography") is None:
        raise BadInput("bench secure needs the extra secure: pip install 'fedmpi[secure]'")
    show = measuring("secure")
    _check_image(image)
    from fedmpi.benchmarks.samples import Turns
    from fedmpi.benchmarks.secure import Sweep, measure
    from fedmpi.benchmarks.secure_peer import compare

    sweep, turns = Sweep(*asked), Turns(repetitions, warmup)
    if peer is None:
        report = measure(sweep, turns, told)
    else:
        settings = [each for each in sweep.settings() if each.protocol == "secagg+"]
        report = compare(settings, peer, turns, told)
    code = show(report, as_json)
    _draw(image, report)
    return code


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
    from fedmpi.analysis.figures.scaling import secure_sums

    with style.applied():
        style.save(secure_sums(report.record()["measurements"]), image)
    told(f"Picture: {image}")


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
