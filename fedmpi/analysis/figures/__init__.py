"""Pictures from finished runs: kinds by name, their options, and how one is drawn.

Importing this imports no matplotlib; `load` does, and says what to install where it is missing.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedmpi.config.tables import closest
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.distances import WalkOptions
from fedmpi.store.reader import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (
    *("gradient-norms", "thresholds", "within-clusters", "losses", "pair-heterogeneity", "gains"),
    *("sample-counts", "scores", "scaling", "client-costs", "clustering", "t-sne", "epsilon"),
)
"""The kinds; each has a module of its name here, with a class `Options` and a function `draw`."""

FORMATS = (".svg", ".pdf", ".png")
"""Suffixes that an image may have."""


class KindOptions(BaseModel):
    """What the options of every kind refuse: unknown names, and numbers that are none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class WalkKindOptions(KindOptions):
    """Options of kinds that compare structures.

    Attributes
    ----------
    length, walks, seed : int
        Steps of the anonymous walks, walks per graph (by default by the bound), and the seed of walks,
        drawn pairs and random partitions.
    """

    length: int = 4
    walks: int | None = None
    seed: int = Field(0, ge=0)

    def walk_options(self) -> WalkOptions:
        """Return them checked."""
        return WalkOptions(self.length, self.walks, self.seed)


class Kind(Protocol):
    """What the module of a kind has."""

    Options: type[BaseModel]

    def draw(self, runs: Sequence[Run], options: Any, source: DataSource | None) -> Figure:
        """Return the picture of complete runs; `source` is for kinds that look at the graphs."""


def load(kind: str, place: str = "") -> Kind:
    """Return the module of a kind.

    Parameters
    ----------
    place : str
        What a message begins with: where the name stands.

    Raises
    ------
    BadInput
        There is no such kind, or matplotlib is not installed.
    """
    if kind not in KINDS:
        hint = closest(kind, KINDS)
        raise BadInput(f'{place}there is no kind "{kind}" of figure{hint} (known: {", ".join(KINDS)})')
    if importlib.util.find_spec("matplotlib") is None:
        raise BadInput("figures are drawn by matplotlib, which is missing: pip install 'fedmpi[report]'")
    return cast(Kind, importlib.import_module(f"{__name__}.{kind.replace('-', '_')}"))


def check_options(kind: Kind, values: Mapping[str, Any], place: str) -> BaseModel:
    """Return the options of a kind.

    Raises
    ------
    BadInput
        Unknown option or wrong value; the message begins with `place`, and names option and closest match.
    """
    try:
        return kind.Options.model_validate(dict(values))
    except ValidationError as error:
        detail = error.errors()[0]
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = list(kind.Options.model_fields)
        raise BadInput(f"{place}{key}: unknown option{closest(key, known)} (known: {', '.join(known)})")
    text = detail["msg"].removeprefix("Value error, ")
    shown = "" if detail["type"] == "missing" else f" (got {detail['input']!r})"
    colon = ": " if key else ""
    raise BadInput(f"{place}{key}{colon}{text[0].lower()}{text[1:]}{shown if key else ''}")


def check_image(image: Path) -> None:
    """Raise BadInput unless the name of an image says one of `FORMATS`."""
    if image.suffix.lower() not in FORMATS:
        raise BadInput(f"--image {image}: the name must end in one of {', '.join(FORMATS)}")


def picture(
    kind: Kind,
    runs: Sequence[Run],
    options: BaseModel,
    source: DataSource | None = None,
    notes: Sequence[str] = (),
    image: Path | None = None,
) -> Figure:
    """Return the picture of runs, with `notes` added to the caption.

    Parameters
    ----------
    kind : Kind
    runs : sequence of Run
        Complete ones.
    options : BaseModel
        Of the kind.
    source : DataSource, optional
        Where a kind finds the graphs, if it needs them.
    notes : sequence of str, optional
        Sentences for the caption.
    image : Path, optional
        Where to write it; the ending is the format. The bytes depend on the runs, the options and the
        version of matplotlib only.

    Raises
    ------
    BadInput
        There is no run, an incomplete one, or runs of two numerics versions; the kind cannot draw these;
        the image cannot be written.
    """
    from fedmpi.analysis.figures import style

    _refuse_unfit(runs)
    with style.applied():
        figure = kind.draw(runs, options, source)
        for note in notes:
            style.add_caption(figure, note)
        if image is not None:
            style.save(figure, image)
    return figure


def _refuse_unfit(runs: Sequence[Run]) -> None:
    if not runs:
        raise BadInput("there is no complete run to draw")
    for run in runs:
        if run.status != "complete":
            raise BadInput(f"{run.folder}: {run.status}, not complete; finish it first or leave it out")
        if run.numerics_version != runs[0].numerics_version:
            other = f"{runs[0].folder} of {runs[0].numerics_version}; a figure shows runs of one version"
            raise BadInput(f"{run.folder} is of numerics version {run.numerics_version}, {other}")
