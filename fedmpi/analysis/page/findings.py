"""What the runs say in sentences: who is ahead and by how much, on which clients, and what cost most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from fedmpi.analysis.estimates import Estimate, estimate
from fedmpi.analysis.page import accuracy, clusters, scores
from fedmpi.analysis.page.accuracy import mean_over_seeds
from fedmpi.analysis.page.collect import LAST
from fedmpi.analysis.page.cost import costliest
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
    """Say which cell leads, or which tie, and whether the gap to the next is more than the seeds' noise."""
    if each.score is not None:
        return _ahead_by_score(each)
    if each.clustered:
        return _ahead_by_clusters(each)
    first = accuracy.ahead(each.cells)
    if not first:
        return Markup("")
    figure = f"{100 * mean_over_seeds(first[0], LAST).mean:.2f} %"
    second = accuracy.ahead(_others(each, first))
    gap = _gap(first[0], second[0]) if second else Markup("")
    return _lead(first, "the highest", "test accuracy", figure, gap)


def _ahead_by_clusters(each: Setting) -> Markup:
    """Say which method's clusters fit the classes best, by how much, and what no clusters would score."""
    first = clusters.ahead(each.cells)
    if not first:
        return Markup("")
    figure = f"{100 * clusters.score(first[0]).mean:.2f} %"
    second = clusters.ahead(_others(each, first))
    gap = _said(clusters.lead(first[0], second[0]), second[0]) if second else Markup("")
    largest = Markup(" One cluster for all graphs would score {:.2f} %.").format(
        100 * clusters.majority(each)
    )
    return _lead(first, "the highest", "clustering accuracy", figure, gap) + largest


def _ahead_by_score(each: Setting) -> Markup:
    """Say which cell has the best score, and that of the next."""
    first = scores.ahead(each.cells, each.higher)
    if not first:
        return Markup("")
    figure = f"{scores.over_seeds(first[0]).mean:.4f} ({scores.direction(each.higher)})"
    second = scores.ahead(_others(each, first), each.higher)
    gap = Markup("")
    if second:
        gap = Markup("before {} with {:.4f}").format(second[0].label, scores.over_seeds(second[0]).mean)
    return _lead(first, "the best", f"test {each.score}", figure, gap)


def _others(each: Setting, first: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in each.cells if not any(cell is leader for leader in first)]


def _lead(first: Sequence[Cell], best: str, what: str, figure: str, gap: Markup) -> Markup:
    """Say who leads, or who tie, with which figure, and the gap to the next where there is another."""
    names = [Markup("<strong>{}</strong>").format(cell.label) for cell in first]
    if len(names) > 1:
        tied = Markup(", ").join(names[:-1]) + Markup(" and ") + names[-1]
        text = tied + Markup(" tie for {} {} in the last round, {}").format(best, what, figure)
    elif gap:
        text = names[0] + Markup(" has {} {} in the last round, {}").format(best, what, figure)
    else:
        text = names[0] + Markup(" has a {} of {} in the last round").format(what, figure)
    return text + (Markup(", ") + gap if gap else "") + "."


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
        return Markup("level with {} over the seeds that both have").format(second.label)
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
    return Markup("Best by client: {}.").format(accuracy.wins(each))


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
