"""How all pictures look: colours, sizes, the caption, and files that are the same every time."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from fedmpi.analysis.names import COLOURS, ORDER, algorithm_looks
from fedmpi.errors import BadInput
from fedmpi.store import disk

T = TypeVar("T")

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (9, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")

WIDTH = 7.2
"""Inches; the text width of a page with small margins."""

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.hashsalt": "fedmpi",
    "pdf.fonttype": 42,
}
_METADATA: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}

_LEGEND_COLUMNS = 5
_LEGEND_LETTERS, _LEGEND_HANDLE = 130, 8
"""Letters that fit side by side in a legend as wide as the picture, and what a line takes of them."""

_CAPTION = "caption"
_CAPTION_SIZE = 6.5
_CAPTION_MARGIN = 0.1
_CAPTION_LINE = 1.35 * _CAPTION_SIZE / 72
_CAPTION_GAP = 0.08


class Picture(Figure):
    """A figure that a notebook shows as it is, without pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


@contextmanager
def applied() -> Iterator[None]:
    """Draw and save in this style, whatever the user's own settings of matplotlib are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def panels(count: int, columns: int = 2, height: float = 2.4, **subplots: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of `WIDTH` with `count` axes, row by row.

    Parameters
    ----------
    columns : int
        Most panels side by side.
    height : float
        Of one row, inches.
    subplots
        Handed to `Figure.subplots`, such as ``sharey=True``.
    """
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Picture(figsize=(WIDTH, rows * height), layout=ConstrainedLayoutEngine(h_pad=0.07))
    axes = list(figure.subplots(rows, columns, squeeze=False, **subplots).flat)
    for empty in axes[count:]:
        empty.remove()
    return figure, axes[:count]


def over_rounds(axis: Axes, title: str) -> None:
    """Give a panel its title and an axis of rounds."""
    axis.set(title=title, xlabel="round")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def add_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Add one legend above the panels where they have the same lines, else one in each."""
    found = [axis.get_legend_handles_labels() for axis in axes]
    if len({tuple(labels) for _, labels in found}) == 1:
        handles, labels = found[0]
        fitting = _LEGEND_LETTERS // (max(map(len, labels), default=0) + _LEGEND_HANDLE)
        columns = min(len(labels), _LEGEND_COLUMNS, max(fitting, 1))
        figure.legend(handles, labels, loc="outside upper center", ncols=columns)
        return
    for axis in axes:
        axis.legend(loc="best", ncols=2, frameon=True, framealpha=0.85, edgecolor="none")


def add_caption(figure: Figure, line: str) -> Figure:
    """Return a figure with a line more in the caption below its panels; it grows by what that takes."""
    present = [text for text in figure.texts if text.get_gid() == _CAPTION]
    above = [line for text in present for line in text.get_text().split("\n")]
    for text in present:
        text.remove()
    lines = [*above, *_wrapped(line)]
    width, height = figure.get_size_inches()
    before, after = (len(each) * _CAPTION_LINE + _CAPTION_GAP if each else 0.0 for each in (above, lines))
    height += after - before
    figure.set_size_inches(width, height)
    share = after / height
    layout = figure.get_layout_engine()
    assert isinstance(layout, ConstrainedLayoutEngine)  # `panels` gives every figure one
    layout.set(rect=(0, share, 1, 1 - share))
    placed: Text = figure.text(_CAPTION_MARGIN / WIDTH, 0.04 / height, "\n".join(lines))
    placed.set(gid=_CAPTION, size=_CAPTION_SIZE, color="#444444", va="bottom", linespacing=1.2)
    placed.set_in_layout(False)
    return figure


def draw_panels(
    found: Sequence[tuple[str, T]], draw: Callable[[Axes, T], object], **layout: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel under each heading, filled by a function.

    Parameters
    ----------
    found : sequence of tuple
        Heading, and what is drawn.
    draw : callable
    layout
        As `panels` takes it.
    """
    figure, axes = panels(len(found), **layout)
    for axis, (heading, content) in zip(axes, found, strict=True):
        draw(axis, content)
        axis.set_title(heading)
    return figure, axes


def caption(figure: Figure) -> str:
    """Return the caption's text."""
    return "\n".join(text.get_text() for text in figure.texts if text.get_gid() == _CAPTION)


def _wrapped(line: str) -> list[str]:
    """Return a caption's line in pieces that fit the width, by the measured width of their letters."""
    pieces = [""]
    for word in line.split():
        longer = f"{pieces[-1]} {word}".lstrip()
        width = TextPath((0, 0), longer, size=_CAPTION_SIZE).get_extents().width
        if width > 72 * (WIDTH - 2 * _CAPTION_MARGIN):
            pieces.append(word)
        else:
            pieces[-1] = longer
    return pieces


def save(figure: Figure, image: Path) -> None:
    """Write an image whose bytes carry no date.

    Raises
    ------
    BadInput
        It cannot be written.
    """
    suffix = image.suffix.lower()
    content = io.BytesIO()
    figure.savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
    try:
        disk.write_whole(image, content.getvalue())
    except OSError as error:
        raise BadInput(f"--image {image}: cannot write it ({error.strerror})") from error


def looks(algorithms: Sequence[str]) -> list[dict[str, Any]]:
    """Return colour and dashes of each line of a panel by its algorithm.

    An algorithm has its colour of the page; further lines of it have other dashes. Where all lines are of one
    algorithm each has its own colour.
    """
    if len(algorithms) > 1 and len(set(algorithms)) == 1:
        return looks([name for name, _ in zip(ORDER, algorithms, strict=False)])
    numbers = algorithm_looks(algorithms, len(DASHES))
    places = [numbers[name] for name in algorithms]
    repeats = [places[:number].count(place) for number, place in enumerate(places)]
    return [
        {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[(place + repeat) % len(DASHES)]}
        for place, repeat in zip(places, repeats, strict=True)
    ]
