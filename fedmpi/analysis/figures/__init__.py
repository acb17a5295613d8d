"""Pictures from finished runs: kinds by name, their options, and how one is drawn.

Importing this imports no matplotlib; `load` does, and says what to install where it is missing.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedmpi.config.tables import closest
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.distances import WalkOptions
from fedmpi.store.reader import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {
    "gradient-norms": "rounds:GradientNorms",
    "thresholds": "by_setting:Thresholds",
    "within-clusters": "heterogeneity:WithinClusters",
    "losses": "rounds:Losses",
    "pair-heterogeneity": "heterogeneity:PairHeterogeneity",
    "gains": "gains:Gains",
    "sample-counts": "fedgraphnn:SampleCounts",
    "scores": "fedgraphnn:Scores",
    "scaling": "scaling:Scaling",
    "client-costs": "scaling:ClientCosts",
    "clustering": "unsupervised:Clustering",
    "t-sne": "unsupervised:TSne",
    "epsilon": "by_setting:Epsilon",
}
"""The kinds by name: module here, and its class."""

FORMATS = (".svg", ".pdf", ".png")
"""Suffixes that an image may have."""


class Kind(BaseModel):
    """A kind of figure: its options are its fields. Unknown names are refused, and numbers that are none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return the picture of complete runs."""
        raise NotImplementedError


class GraphKind(Kind):
    """A kind that looks at the graphs of the runs, and compares structures.

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

    def draw(self, runs: Sequence[Run], source: DataSource | None = None) -> Figure:
        """Return the picture of complete runs; `source` is where the graphs are, by default as ever."""
        raise NotImplementedError


def load(kind: str, place: str = "") -> type[Kind]:
    """Return the class of a kind.

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
    _refuse_no_matplotlib()
    module, name = KINDS[kind].split(":")
    return cast(type[Kind], getattr(importlib.import_module(f"{__name__}.{module}"), name))


def check_options(kind: type[Kind], values: Mapping[str, Any], place: str) -> Kind:
    """Return a kind with its options.

    Raises
    ------
    BadInput
        Unknown option or wrong value; the message begins with `place`, and names option and closest match.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        detail = error.errors()[0]
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = list(kind.model_fields)
        raise BadInput(f"{place}{key}: unknown option{closest(key, known)} (known: {', '.join(known)})")
    text = detail["msg"].removeprefix("Value error, ")
    shown = f" (got {detail['input']!r})" if key else ""
    raise BadInput(f"{place}{key}{': ' * bool(key)}{text[0].lower()}{text[1:]}{shown}")


def check_image(image: Path | None) -> None:
    """Raise BadInput where an image is named that ends in none of `FORMATS`, or that nothing can draw."""
    if image is not None and image.suffix.lower() not in FORMATS:
        raise BadInput(f"--image {image}: the name must end in one of {', '.join(FORMATS)}")
    if image is not None:
        _refuse_no_matplotlib()


def _refuse_no_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise BadInput("figures are drawn by matplotlib, which is missing: pip install 'fedmpi[report]'")


def picture(
    kind: Kind,
    runs: Sequence[Run],
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

    if not runs:
        raise BadInput("there is no complete run to draw")
    for run in runs:
        if run.status != "complete":
            raise BadInput(f"{run.folder}: {run.status}, not complete; finish it first or leave it out")
        if run.numerics_version != runs[0].numerics_version:
            other = f"{runs[0].folder} of {runs[0].numerics_version}; a figure shows runs of one version"
            raise BadInput(f"{run.folder} is of numerics version {run.numerics_version}, {other}")
    with style.applied():
        figure = kind.draw(runs, source) if isinstance(kind, GraphKind) else kind.draw(runs)
        for note in notes:
            style.add_caption(figure, note)
        if image is not None:
            style.save(figure, image)
    return figure
