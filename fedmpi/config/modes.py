"""Scaling modes: which cases of a suite run on how many ranks, and where the runs of each number lie.

``mode = "strong"`` with ``ranks = [1, 2, 3, 5]`` runs every case on each of these; ``mode = "throughput"``
with ``ranks = [2]`` runs cases side by side, each on so many; ``mode = "weak"`` has an axis whose tables grow
the case and say on how many ranks: ``{ label = "clients8", ranks = 3, ... }``. The runs on P ranks lie in
``ranksP/`` below the folder of the suite, since a case has one folder for each number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedmpi.config.tables import closest
from fedmpi.errors import BadInput

MODES = ("strong", "weak", "throughput")

Ranks = tuple[int, ...]


def read_mode(path: Path, text: Mapping[str, Any]) -> tuple[str, Ranks]:
    """Return a suite's mode ("" without one) and the ranks of all its cases (none where tables say).

    Raises
    ------
    BadInput
        There is no such mode, or its ranks are missing or wrong.
    """
    mode = text.get("mode", "")
    if mode not in ("", *MODES):
        raise BadInput(f"{path}: mode: {mode!r}{closest(str(mode), MODES)} (valid: {', '.join(MODES)})")
    if "ranks" not in text:
        if mode in ("strong", "throughput"):
            raise BadInput(f"{path}: mode: {mode} needs the numbers of ranks, such as ranks = [1, 2, 4]")
        return mode, ()
    if mode not in ("strong", "throughput"):
        what = "mode weak needs them in the tables of an axis" if mode else "they need a mode"
        raise BadInput(f'{path}: ranks: {what}, such as mode = "strong"')
    values = text["ranks"]
    if not isinstance(values, list) or not values or not all(_is_rank_number(value) for value in values):
        raise BadInput(f"{path}: ranks: must be a list of numbers of ranks, such as [1, 2, 4]")
    if len(set(values)) < len(values) or (mode == "throughput" and len(values) > 1):
        raise BadInput(f"{path}: ranks: must name each number once, and for throughput only one")
    return mode, tuple(values)


def table_ranks(path: Path, mode: str, table: Mapping[str, Any]) -> Ranks:
    """Return the ranks that an axis's table asks for its cases; none where it does not.

    Raises
    ------
    BadInput
        They are no number.
    """
    if mode != "weak" or "ranks" not in table:
        return ()
    if not _is_rank_number(table["ranks"]):
        raise BadInput(f"{path}: ranks: must be a number of ranks, such as ranks = 3")
    return (table["ranks"],)


def _is_rank_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def combine(path: Path, mode: str, common: Ranks, own: list[Ranks]) -> Ranks:
    """Return the ranks of a case: the suite's, or those of the one axis that says.

    Parameters
    ----------
    path : Path
        The suite, for messages.
    mode : str
        "strong", "weak", "throughput", or "" for none.
    common : tuple of int
        Ranks of the suite; empty where it has none.
    own : list of tuple of int
        Ranks that each axis asks for; empty for an axis without.

    Raises
    ------
    BadInput
        In weak mode no axis or more than one says.
    """
    said = [ranks for ranks in own if ranks]
    if mode == "weak" and len(said) != 1:
        raise BadInput(
            f"{path}: mode: weak needs exactly one axis whose tables all set ranks, as {{ ranks = 3, ... }}"
        )
    return said[0] if said else common


def place(root: Path, ranks: int) -> Path:
    """Return the folder of the runs on so many ranks; `root` itself for 0, a suite without a mode."""
    return root / f"ranks{ranks}" if ranks else root


def refuse_ranks(path: Path, mode: str, cases: Sequence[Ranks], ranks: int) -> None:
    """Raise BadInput where no case of a suite is for so many ranks, naming those there are.

    Parameters
    ----------
    path : Path
        The suite, for the message.
    mode : str
        Of the suite; "" for none, where any number of ranks fits.
    cases : sequence of tuple of int
        Ranks of each case.
    ranks : int
        The number asked for.
    """
    numbers = sorted({number for each in cases for number in each})
    if mode and ranks not in numbers:
        listed = ", ".join(map(str, numbers))
        raise BadInput(
            f"{path}: no case is for {ranks} rank{'s' * (ranks > 1)} (mode {mode}, ranks {listed})"
        )
