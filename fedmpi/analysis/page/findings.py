"""What the runs say in sentences: who is ahead and by how much, on which clients, and what cost most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from fedmpi.analysis.estimates import Estimate, estimate
from fedmpi.analysis.page import clusters
from fedmpi.analysis.page.accuracy import leader, mean_over_seeds, wins
from fedmpi.analysis.page.collect import LAST
from fedmpi.analysis.page.cost import costliest
from fedmpi.analysis.page.scores import direction, over_seeds, ranked
from fedmpi.analysis.page.settings import Cell, Setting


def findings(settings: Sequence[Setting]) -> Markup:
    """Return a line per setting."""
    lines = []
    for each in settings:
        counts = sorted({len(run.clients) for cell in each.cells for run in cell.runs.values()})
        clients = f"{' or '.join(map(str, counts))} client{'s' * (counts[-1] > 1)}"
        said = "".join(
            f"<li>{sentence}</li>" for sentence in (_ahead(each), _where(each), _cost(each)) if sentence
        )
        lines.append(f"<div><h3>{escape(each.heading)}, {clients}</h3><ul>{said}</ul></div>")
    return Markup(f'<div class="findings">{"".join(lines)}</div>')


def _ahead(each: Setting) -> Markup:
    """Say which cell leads, and whether the gap to the next is more than the seeds' noise."""
    if each.score is not None:
        return _ahead_by_score(each)
    if each.clustered:
        return _ahead_by_clusters(each)
    first = leader(each)
    found = mean_over_seeds(first, LAST)
    if np.isnan(found.mean):
        return Markup("")
    others = [cell for cell in each.cells if cell is not first]
    if not others:
        return Markup("<strong>{}</strong> has a test accuracy of {:.2f} % in the last round.").format(
            first.label, 100 * found.mean
        )
    text = Markup("<strong>{}</strong> has the highest test accuracy in the last round, {:.2f} %").format(
        first.label, 100 * found.mean
    )
    second = max(others, key=lambda cell: np.nan_to_num(mean_over_seeds(cell, LAST).mean, nan=-1.0))
    return text + ", " + _gap(first, second) + "."


def _ahead_by_clusters(each: Setting) -> Markup:
    """Say which method's clusters fit the classes best, by how much, and what no clusters would score."""
    first = clusters.leader(each)
    found = 100 * clusters.score(first).mean
    largest = Markup(" One cluster for all graphs would score {:.2f} %.").format(
        100 * clusters.majority(each)
    )
    others = [cell for cell in each.cells if cell is not first]
    if not others:
        text = Markup("<strong>{}</strong> has a clustering accuracy of {:.2f} % in the last round.")
        return text.format(first.label, found) + largest
    text = Markup("<strong>{}</strong> has the highest clustering accuracy in the last round, {:.2f} %")
    second = max(others, key=lambda cell: np.nan_to_num(clusters.score(cell).mean, nan=-1.0))
    return (
        text.format(first.label, found) + ", " + _said(clusters.lead(first, second), second) + "." + largest
    )


def _ahead_by_score(each: Setting) -> Markup:
    """Say which cell has the best score, and that of the next."""
    first, *others = ranked(each)
    if not others:
        return Markup("<strong>{}</strong> has a test {} of {:.4f} in the last round ({}).").format(
            first.label, each.score, over_seeds(first).mean, direction(each.higher)
        )
    text = Markup("<strong>{}</strong> has the best test {} in the last round, {:.4f} ({})").format(
        first.label, each.score, over_seeds(first).mean, direction(each.higher)
    )
    return text + Markup(", before {} with {:.4f}.").format(others[0].label, over_seeds(others[0]).mean)


def _gap(first: Cell, second: Cell) -> Markup:
    seeds = [seed for seed in first.runs if seed in second.runs]
    if not seeds:
        return Markup("before {} (other seeds, so not paired)").format(second.label)
    gaps = [
        np.nanmean(a) - np.nanmean(b)
        for a, b in zip(*(c.accuracy(LAST, seeds) for c in (first, second)), strict=True)
    ]
    return _said(estimate(np.array(gaps)), second)


def _said(lead: Estimate, second: Cell) -> Markup:
    """Say how far ahead of the second cell the first is, over the seeds that both have."""
    if not lead.count:
        return Markup("before {} (other seeds, so not paired)").format(second.label)
    gap = Estimate(100 * lead.mean, 100 * lead.half, lead.count)
    if gap.mean == 0:
        return Markup("and so has {}").format(second.label)
    if gap.mean < 0:  # it leads by the mean over its own seeds
        return Markup("but {:.2f} points behind {} over the seeds that both have").format(
            -gap.mean, second.label
        )
    if gap.count < 2:
        return Markup("{:.2f} points ahead of {} (one seed: no interval)").format(gap.mean, second.label)
    verdict = "more than" if gap.mean > gap.half else "within"
    return Markup("{:.2f} ± {:.2f} points ahead of {}: {} the noise of {} seeds").format(
        gap.mean, gap.half, second.label, verdict, gap.count
    )


def _where(each: Setting) -> Markup:
    if each.clustered or each.score is not None or len(each.cells) < 2 or len(each.clients) < 2:
        return Markup("")
    parts = [Markup("{} on {}").format(label, count) for label, count in wins(each)]
    return Markup("Best by client: {}.").format(Markup(", ").join(parts))


def _cost(each: Setting) -> Markup:
    """Say which phase takes most for most cells, and for which another does."""
    found: dict[str, list[tuple[str, float]]] = {}
    for cell in each.cells:
        name, share = costliest(cell)
        found.setdefault(name, []).append((cell.label, share))
    first, *others = sorted(found, key=lambda name: -len(found[name]))
    text = Markup("Most of the time goes into <strong>{}</strong> ({})").format(first, _span(found[first]))
    for name in others:
        labels = " and ".join(label for label, _ in found[name])
        text += Markup(", but for {} into <strong>{}</strong> ({})").format(labels, name, _span(found[name]))
    return text + "."


def _span(found: Sequence[tuple[str, float]]) -> str:
    low, high = (f"{end(share for _, share in found):.0%}" for end in (min, max))
    return high if low == high else f"{low} to {high}"
