"""``fedmpi bench secure``: what secure aggregation costs, alone or beside Flower."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis import figures
from fedmpi.cli.measuring import Times, measuring, names_of, told
from fedmpi.cli.options import Json, whole_numbers
from fedmpi.errors import BadInput

_PROTOCOLS = ("secagg", "secagg+", "lightsecagg")


def secure(
    protocols: str = ",".join(_PROTOCOLS),
    parameters: str = "30000,280000",
    clients: str = "8,16,32,64",
    dropouts: str = "0,10,30,50",
    turns: Times = Times(3, 1),
    peer: Annotated[Path | None, typer.Option(metavar="PYTHON")] = None,
    image: Path | None = None,
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

    Examples
    --------
    fedmpi bench secure --parameters 30000 --clients 8,16,32 --image secure.png
    """
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
    figures.check_image(image)
    from fedmpi.benchmarks.secure import Sweep, measure
    from fedmpi.benchmarks.secure_peer import compare

    sweep = Sweep(*asked)
    if peer is None:
        report = measure(sweep, turns, told)
    else:
        settings = [each for each in sweep.settings() if each.protocol == "secagg+"]
        report = compare(settings, peer, turns, told)
    code = show(report, as_json)
    if image is not None:
        from fedmpi.analysis.figures import style
        from fedmpi.analysis.figures.scaling import secure_sums

        with style.applied():
            style.save(secure_sums(report.record()["measurements"]), image)
        told(f"Picture: {image}")
    return code
