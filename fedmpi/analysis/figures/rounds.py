"""Curves by round: losses, scores and clusters by algorithm, and gradient norms by client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from pydantic import Field

from fedmpi.analysis import scores
from fedmpi.analysis.cells import Cell, Float, cells, grouped, run_titles, seeds_text, titled
from fedmpi.analysis.figures import Kind, style
from fedmpi.analysis.names import COLOURS, algorithm_name, algorithm_place, dataset_name
from fedmpi.analysis.summary import AGREEMENT
from fedmpi.config.tables import closest
from fedmpi.errors import BadInput
from fedmpi.metrics.clients import splits
from fedmpi.store.reader import Run


class Losses(Kind):
    """Loss, accuracy or clusters by round: mean and spread over clients (GCFL, Figure 4; FedCCH, Figure 3).

    The paper calls these training curves and draws the test loss. It does not say whether its band is over
    clients of one seed or of five; here a client's loss is averaged over the seeds first.

    Attributes
    ----------
    field : str
        ``test_loss``, ``val_loss``, ``train_loss``, or any other result of the runs such as
        ``test_accuracy``. Of one that is of all clients together, such as ``domain_agreement`` (adjusted Rand
        index of clusters and domains), the mean over rounds stands in the legend.
    first_round : int
        Where the lines begin: the losses of the very first rounds may flatten all that follows.
    panels : str
        A panel per ``dataset``, or (``settings``) per configuration but for algorithm and rounds.
    band : bool
        One standard deviation over clients around each line; of what is of
        all clients together there is none.
    smooth : int
        Rounds whose mean is drawn at the last of them.
    """

    field: str = "test_loss"
    first_round: int = Field(1, ge=1)
    panels: Literal["settings", "dataset"] = "settings"
    band: bool = True
    smooth: int = Field(1, ge=1)

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return one panel per dataset with a line and a band per algorithm."""
        found = sorted(cells(runs), key=lambda cell: algorithm_place(cell.algorithm))
        for cell in found:
            for name in ("first_round", "smooth"):
                if getattr(self, name) > cell.rounds:
                    value = f"{name} = {getattr(self, name)}"
                    raise BadInput(f"losses: {value}, but {cell.algorithm} has fewer rounds")
        if self.panels == "settings":
            panels = titled(found, lambda cell: dataset_name(cell.dataset), "algorithm", "rounds")
        else:
            by_dataset = grouped(found, lambda cell: cell.dataset)
            panels = [(dataset_name(name), members) for name, members in by_dataset.items()]
        whole = {self._stored(run).ndim == 1 for run in runs} == {True}
        figure, axes = style.panels(len(panels), height=2.9)
        for axis, (heading, members) in zip(axes, panels, strict=True):
            labelled = titled(members, lambda cell: algorithm_name(cell.algorithm))
            looks = style.looks([cell.algorithm for cell in members])
            for (label, (cell,)), look in zip(labelled, looks, strict=True):
                self._line(axis, cell, whole, label, look)
            style.over_rounds(axis, f"{heading}, {len(members[0].clients)} clients")
            axis.set_ylabel(self._quantity(members[0]))
            axis.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none")  # over the bands
            last = max(cell.rounds for cell in members)
            axis.set_xlim(self.first_round, max(last, self.first_round + 1))
            if self.field.endswith("loss"):
                axis.set_ylim(bottom=0)
        seeds = seeds_text(cell.runs for cell in found)
        return style.add_caption(figure, f"{self._lines_are(whole)} ({seeds}).")

    def _line(self, axis: Axes, cell: Cell[Run], whole: bool, label: str, look: dict[str, Any]) -> None:
        shortest = min(run.rounds_completed for run in cell.runs.values())  # patience may end some early
        values = cell.over_seeds(lambda run: scores.columns(self._stored(run))[:shortest])
        present = np.ma.masked_invalid(values)  # of one client the deviation is 0
        over_clients = present.mean(axis=1).filled(np.nan), present.std(axis=1, ddof=1).filled(0.0)
        mean, spread = (_smoothed(line, self.smooth) for line in over_clients)
        if whole:
            label = f"{label}: mean {np.nanmean(values):.2f}"
        rounds = np.flatnonzero(~np.isnan(mean))
        rounds = rounds[rounds + 1 >= self.first_round]
        axis.plot(rounds + 1, mean[rounds], label=label, **look)
        if not self.band or whole:
            return
        low, high = mean - spread, mean + spread
        axis.fill_between(rounds + 1, low[rounds], high[rounds], color=look["color"], alpha=0.08, linewidth=0)
        for edge in (low, high):  # bands lie on each other: their edges tell them apart
            axis.plot(rounds + 1, edge[rounds], **{**look, "linewidth": 0.5, "alpha": 0.8})

    def _stored(self, run: Run) -> Float:
        """Return the field [R, n] or [R] of a run, which has it, and a value at least."""
        values = run.results.get(self.field, np.zeros((1, 1, 1)))
        if values.dtype.kind != "f" or values.shape[1:] not in ((), (len(run.clients),)):
            advice = "leave it out, or try --option field=train_loss"
            raise BadInput(f"{run.folder} has no {self.field}: {advice}")
        if np.isnan(values).all():
            why = "; all its datasets may be of one domain" if self.field == AGREEMENT else ""
            raise BadInput(f"{run.folder}: {self.field} is never defined there{why}; leave it out")
        return values

    def _quantity(self, cell: Cell[Run]) -> str:
        """Return what an axis shows, with its unit."""
        if self.field == AGREEMENT:
            return "adjusted Rand index with domains"
        parts = [(metric, part) for metric in cell.metrics for part in metric.parts]
        known = {metric.field(part): metric.label(part) for metric, part in parts}
        unit = " (nat)" if self.field.endswith("loss") and cell.metric.unit != "label" else ""
        return known.get(self.field, f"{self.field.replace('val', 'validation').replace('_', ' ')}{unit}")

    def _lines_are(self, whole: bool) -> str:
        """Return what the caption says of the lines."""
        over = f" and of {self.smooth} rounds" if self.smooth > 1 else ""
        if whole:
            what = "clusters against domains" if self.field == AGREEMENT else "a value of all clients"
            return f"Mean over runs{over} of {what}"
        band = "; thin: one standard deviation over clients around it" if self.band else ""
        return f"Thick: mean over clients{over}{band}"


def _smoothed(values: Float, rounds: int) -> Float:
    """Return means of so many rounds at the last of them, NaN before."""
    if rounds == 1:
        return values
    means = np.full(len(values), np.nan)
    if len(values) >= rounds:
        windows = np.lib.stride_tricks.sliding_window_view(values, rounds)
        with np.errstate(invalid="ignore"):
            means[rounds - 1 :] = np.nansum(windows, axis=1) / (~np.isnan(windows)).sum(axis=1)
    return means


_DEFAULT_CLIENTS = 6
_MOST_PANELS = 8
_MEANING = {
    "gradient_norm": "2-norm of the shared layers' gradient in the round's last batch",
    "delta_norm": "2-norm of the shared layers' update in the round",
}


class GradientNorms(Kind):
    """Gradient norms by round, a colour per client, grouped by final cluster (GCFL, Figure 1).

    The paper shows six clients under GCFL and GCFL+ and does not say which; here they are an option. Its text
    calls the norms of the updates gradient norms, the released code of GCFL+ looks at those of the last
    batch's gradient: `field` chooses. Every split is marked, where the paper names one round in its text.

    Attributes
    ----------
    clients : tuple of str or None
        Names of the clients drawn; the first six by default.
    field : str
        ``gradient_norm`` (of the last batch) or ``delta_norm`` (of the update).
    smooth : int
        Rounds whose mean the thick line is; 1 draws the norms of single rounds alone.
    """

    clients: tuple[str, ...] | None = Field(None, min_length=1)
    field: Literal["gradient_norm", "delta_norm"] = "gradient_norm"
    smooth: int = Field(10, ge=1)

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return one panel per run: a line per client, a vertical line per split."""
        if len(runs) > _MOST_PANELS:
            most = f"at most {_MOST_PANELS}; here are {len(runs)}"
            raise BadInput(f"gradient-norms draws a panel per run, {most}")
        panels = list(zip(run_titles(runs), runs, strict=True))
        layout: dict[str, Any] = {"columns": 1, "height": 2.6, "sharex": True, "sharey": True}
        figure, axes = style.draw_panels(panels, self._panel, **layout)
        rounds = max(run.rounds_completed for run in runs)
        axes[-1].set_xlabel("round")
        axes[-1].set_xlim(1, max(rounds, 2))  # the axes of all panels are one
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        smooth = 1 < self.smooth <= rounds
        lines = f"Thick: mean of {self.smooth} rounds; thin: each round. " if smooth else ""
        text = f"{_MEANING[self.field].capitalize()}. {lines}A client has one colour, a final cluster one "
        text += "kind of line. Grey vertical lines: rounds in which a cluster split, any cluster."
        return style.add_caption(figure, text)

    def _panel(self, axis: Axes, run: Run) -> None:
        values, places = run.results[self.field], self._places(run)
        if scores.is_together(run.config):
            raise BadInput(f"{run.folder} has no {self.field}: {scores.TOGETHER}; leave it out")
        for number in sorted({number for number, _ in splits(scores.splitting_groups(run))}):
            look: dict[str, Any] = {"linewidth": 0.6, "linestyle": (0, (4, 2)), "zorder": 1, "gid": "split"}
            axis.axvline(number + 1, color="#999999", **look)
        final = run.results["group"][-1]
        clusters = [int(group) for group in dict.fromkeys(final)]
        drawn = grouped(places, lambda place: clusters.index(int(final[place])))
        handles: list[Line2D] = []
        for number, (cluster, members) in enumerate(drawn.items()):
            handles.append(Line2D([], [], linestyle="none", label=f"cluster {cluster + 1}"))
            dashes = style.DASHES[number % len(style.DASHES)]
            for place in members:
                colour = COLOURS[places.index(place) % len(COLOURS)]
                handles.append(self._line(axis, values[:, place], colour, dashes))
                handles[-1].set_label(run.clients[place])
        axis.set_ylabel(self.field.replace("_", " "))
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        title = f"{len(clusters)} cluster{'s' * (len(clusters) > 1)} at the end"
        beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "alignment": "left"}
        legend = axis.legend(handles=handles, title=title, title_fontsize=7, labelspacing=0.3, **beside)
        for handle, text in zip(handles, legend.get_texts(), strict=True):
            text.set_fontweight("bold" if handle.get_linestyle() == "None" else "normal")

    def _places(self, run: Run) -> list[int]:
        """Return the indices of the clients to draw."""
        for name in self.clients or ():
            if name not in run.clients:
                hint, known = closest(name, run.clients), ", ".join(run.clients)
                raise BadInput(f'{run.folder} has no client "{name}"{hint} (it has: {known})')
        return [run.clients.index(name) for name in self.clients or run.clients[:_DEFAULT_CLIENTS]]

    def _line(self, axis: Axes, values: Float, colour: str, dashes: Any) -> Line2D:
        """Draw a client's norms [R], thin, and their running mean; return the line that stands for both."""
        rounds, smooth = np.arange(1, len(values) + 1), self.smooth if self.smooth <= len(values) else 1
        if smooth > 1:
            axis.plot(rounds, values, color=colour, linewidth=0.4, alpha=0.3, gid="each round")
        means = _smoothed(values, smooth)
        return axis.plot(rounds, means, color=colour, linestyle=dashes, linewidth=1.3)[0]
