"""The same secure sums here and in Flower, ``bench/secure/flower.py``, in turn."""

from __future__ import annotations

import json
import subprocess
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedmpi.benchmarks.samples import Measurement, Report, Samples, Turns, against_peer, figures_of
from fedmpi.benchmarks.secure import STEPS
from fedmpi.benchmarks.secure_sum import Setting, Sum, load_code, update
from fedmpi.config import locations
from fedmpi.errors import RunFailed

_LARGEST_DEVIATION = 1e-4
"""Of the peer's mean from the plain one: its levels are 4e-6 apart, and its weights are rounded too."""


class Flower:
    """The peer's process, which runs a sum for each seed that it is sent.

    Parameters
    ----------
    python : Path
        Of an environment with Flower.
    setting : Setting
    """

    def __init__(self, python: Path, setting: Setting) -> None:
        script = locations.find("peers/fedavg").parents[1] / "secure" / "flower.py"
        options = {"clients": setting.clients, "parameters": setting.size, "dropped": setting.gone}
        command = [str(python), str(script), *(f"--{name}={value}" for name, value in options.items())]
        self._size = setting.size
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Flower:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, seed: int) -> dict[str, float]:
        """Run a sum; return CPU seconds by step, of a client its mean.

        Raises
        ------
        RunFailed
            The process has ended, or its updates or its mean are not those of fedmpi.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{seed}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            _, told = self._process.communicate()
            raise RunFailed(f"bench secure: the peer has ended: {(told.strip().splitlines() or ['?'])[-1]}")
        found: dict[str, Any] = json.loads(line)
        if found["digest"] != zlib.crc32(update(seed, 0, self._size).tobytes()):
            raise RunFailed("bench secure: the peer's updates are not the same: another NumPy?")
        if found["deviation"] > _LARGEST_DEVIATION:
            raise RunFailed(f"bench secure: the peer's mean is {found['deviation']:.2g} off")
        seconds: dict[str, float] = found["seconds"]
        return seconds


def compare(settings: Sequence[Setting], python: Path, turns: Turns, told: Callable[[str], None]) -> Report:
    """Time sums of fedmpi and of the peer in turn.

    Parameters
    ----------
    settings : sequence of Setting
        SecAgg+, or SecAgg: the peer's clients are all neighbours.
    python : Path
    turns : Turns
        Pairs of sums.
    told : callable
        Told of every setting before it starts.

    Returns
    -------
    Report
        Per setting and program the CPU seconds of a client and of the server, and the ratio peer / fedmpi
        of each pair; in `results` its median with a 95 % interval.
    """
    load_code({setting.protocol for setting in settings})
    measurements: list[Measurement] = []
    statements, results = [], {}
    for setting in settings:
        told(f"{setting.title}, with the peer")
        peer, own = _times(setting, python, turns)
        found, results[setting.title] = against_peer(setting.labels(), peer, own)
        measurements += found
        client, server = (results[setting.title][f"{party}_ratio"] for party in ("client", "server"))
        statements.append(
            f"{setting.title}: peer / fedmpi, CPU of a client {client['median']:.2f}x (95 %: "
            f"{client['low']:.2f} to {client['high']:.2f}), of the server {server['median']:.2f}x"
        )
    return Report("secure", {"settings": list(results), **vars(turns)}, measurements, results, statements)


def _times(setting: Setting, python: Path, turns: Turns) -> tuple[dict[str, Samples], dict[str, Samples]]:
    """Return the figures of the peer and of fedmpi."""
    with Flower(python, setting) as flower:
        programs = {"peer": flower.run, "fedmpi": lambda seed: Sum(setting, seed).run()[0]}
        found = turns.of(programs)
    peer, own = (figures_of([_row(seconds) for seconds in each]) for each in found.values())
    return peer, own


def _row(seconds: Mapping[str, float]) -> dict[str, float]:
    steps = {f"client_{step}_seconds": seconds[step] for step in STEPS}
    server = seconds["add"] + seconds["unmask"]
    return {**steps, "client_seconds": sum(steps.values()), "server_seconds": server}
