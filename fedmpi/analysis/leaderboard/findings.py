"""What the rows of a track say, in sentences: which method, for which federations, at what cost, how sure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.board import Board
from fedmpi.analysis.leaderboard.costs import SECONDS, cost
from fedmpi.analysis.leaderboard.rows import AGAIN, ALONE, REFERENCE
from fedmpi.analysis.names import algorithm_name, joined
from fedmpi.judging.equivalence import FEWEST_DATASETS, ROPE, SURE, UNDECIDED
from fedmpi.tables.texts import markdown_of

_ALONE = {
    "better": "where self-train is better than FedAvg",
    "worse": "where self-train is worse than FedAvg",
}
_ALL = "all"
_WORDS = {"equivalent": f"within {ROPE:g} point on the typical federation"}
_KINDS = (
    *("track", "federations", "count", "largest mean lead over FedAvg, points", "on each", "how sure"),
    *("next", "FedAvg tuned again", "FLOP, times FedAvg's", "time to target, times FedAvg's"),
)
_PARTITIONS = {
    "iid": "iid",
    **dict.fromkeys(("dirichlet-label", "dirichlet-quantity"), "Dirichlet shares"),
    **dict.fromkeys(("louvain", "metis", "metadata"), "by structure"),
}
_FEW = 12
"""With so many federations or fewer the interval of the mean is too narrow (`fedmpi.judging.equivalence`)."""

_LATE = 0.3
"""With such a share of the winners' runs whose best round is in the last tenth rounds are too few."""

_SHOWN = 3
"""So many methods of a group are named."""

_NAMED = 6
"""So many methods of a sentence are named; the tables have all."""


def title(found: Board) -> str:
    """Return what sentences call a track."""
    return found.track.name.replace("-", " ").capitalize()


def sentences(found: Board) -> list[str]:
    """Return what is to be known first of a track, one thought each."""
    if not found.finished:
        return ["No federation is finished yet."]
    parts = (progress, lead, decided, verdicts, by_chance, few, not_learned, too_short, ranked)
    listed = [part(found) for part in parts]
    return [each for each in listed if each]


def progress(found: Board) -> str:
    """Return how many federations are finished, and which are not."""
    count = len(found.federations)
    if not found.open:
        return f"All {count} federations are finished." if count > 1 else "Its only federation is finished."
    left = joined([*found.open])
    return f"Finished: {len(found.finished)} of {count} federations. Open, and not judged: {left}."


def lead(found: Board) -> str:
    """Return which method leads FedAvg the most, by how much, at what cost, and how sure that is."""
    everywhere = (name for name in _rivals(found) if found.comparisons[name].datasets == len(found.finished))
    first = next(everywhere, None)
    if first is None:
        return ""
    best, spent = found.comparisons[first], cost(found, first)
    price = spent.to_target[SECONDS]
    if best.mean <= 0:
        return "No method that runs on all of them has a higher mean score than FedAvg."
    leads = dict(zip(found.finished, found.leads(first), strict=True))
    spread = _spread([*leads.values()]) + _without_the_best(leads)
    interval = "" if math.isnan(best.low) else f"95 % interval {best.low:+z.1f} to {best.high:+z.1f}; "
    at = f", at {spent.flops:.2f} times FedAvg's FLOP" if spent.flops > 0 else ""
    if not math.isnan(price):
        control = cost(found, AGAIN).to_target[SECONDS] if found.leads(AGAIN) else math.nan
        same = "" if math.isnan(control) else f" ({algorithm_name(AGAIN)}: {control:.2f})"
        at += f" and {price:.2f} times its time to the target{same}"
        at += f", which {spent.reached:.0%} of the runs reach"
    said = f"{algorithm_name(first)} has the largest mean lead over FedAvg: {best.mean:+z.1f} points"
    sure = {
        "better": f" It is judged better, with probability {_chance(best.better)}.",
        "equivalent": f" The two are practically equivalent, with probability {_chance(best.equivalent)}.",
        UNDECIDED: ""
        if math.isnan(best.better)
        else f" That it is better by more than {ROPE:g} point on the typical federation has probability "
        f"{best.better:.2f}: undecided.",
    }
    many = len(_rivals(found))
    chance = f" It is the largest of {many} means, so likely too large." if many > 1 else ""
    return f"{said} ({interval}{spread}){at}.{chance}{sure[best.decision]}"


def _rivals(found: Board) -> list[str]:
    """Return the methods that are compared with FedAvg, without FedAvg itself."""
    return [method for method in found.comparisons if method != AGAIN]


def _times(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _spread(leads: Sequence[float]) -> str:
    """Return the median, the least and the largest lead."""
    if len(leads) == 1:
        return "on one federation"
    return f"median {np.median(leads):+z.1f}, on single federations {_range(leads)}"


def _without_the_best(leads: Mapping[str, float]) -> str:
    """Return the mean lead without the federation of the largest."""
    if len(leads) < 3:
        return ""
    best = max(leads, key=leads.__getitem__)
    rest = np.mean([each for data, each in leads.items() if data != best])
    return f", without {best} {rest:+z.1f}"


def _chance(probability: float) -> str:
    return "above 0.99" if probability >= 0.995 else f"{probability:.2f}"


def decided(found: Board) -> str:
    """Return how many methods are told apart from FedAvg, or are shown to be equivalent."""
    rivals = _rivals(found)
    if not rivals:
        return ""
    by_decision = grouped(rivals, lambda method: found.comparisons[method].decision)
    left, total = by_decision.pop(UNDECIDED, []), len(rivals)
    tallies = {method: found.tally(method, REFERENCE) for method in left}
    wins, losses = (_names([method for method in left if tallies[method][place]]) for place in (0, 1))
    parts = [f"{len(each)} {_WORDS.get(key, key)} ({_names(each)})" for key, each in by_decision.items()]
    said = f"Against FedAvg {total - len(left)} of {total} methods are decided over the federations"
    if len(found.finished) < FEWEST_DATASETS:
        said = f"With fewer than {FEWEST_DATASETS} federations no method is decided over all of them"
    elif parts:
        said += f", with a probability of at least {SURE}: {joined(parts)}"
    rest = len(left) - sum(map(any, tallies.values()))
    whose = "Of the others s" if parts else "S"
    alone = (
        f" {whose}ignificantly better on at least one federation: {wins}; worse: {losses}." if left else ""
    )
    return f"{said}.{alone}{f' Neither: {rest} of {total}.' if rest else ''}"


def verdicts(found: Board) -> str:
    """Return how many verdicts there are on single federations, and where methods are better most often."""
    rivals = {*_rivals(found)}
    counts = {
        data: Counter(verdict for method, verdict in found.verdicts(data).items() if method in rivals)
        for data in found.finished
    }
    better, worse = (sum(each[verdict] for each in counts.values()) for verdict in ("better", "worse"))
    most = max(counts, key=lambda data: counts[data]["better"])
    if len(counts) < 2 or not better + worse:
        return ""
    there = counts[most]["better"]
    where = f" ({f'{there} of them ' if there < better else ''}on {most})" if better else ""
    rest = sum(each.total() for each in counts.values()) - better - worse
    least = [each for data in counts if not math.isnan(each := found.least_significant(data))]
    needed = (
        f"; significant would be a lead of {min(least):.1f} to {max(least):.1f} points, by federation"
        if least
        else ""
    )
    return (
        f"Verdicts against FedAvg on single federations: {better} better{where}, {worse} worse, "
        f"{rest} undecided{needed}."
    )


def by_chance(found: Board) -> str:
    """Return what a second tuning of FedAvg leads by."""
    again = found.leads(AGAIN)
    if not again:
        return ""
    what = f"{algorithm_name(AGAIN)}, with other candidates, differs from FedAvg by"
    if len(again) == 1:
        return f"{what} {again[0]:+z.1f} points. That is one draw, and bounds nothing."
    average = f"{np.mean(again):+z.1f} on average"
    return f"{what} {_range(again)} points on single federations, {average}: so much may be the tuning's."


def few(found: Board) -> str:
    """Return what few federations leave open."""
    count = len(found.finished)
    if not FEWEST_DATASETS <= count <= _FEW:
        return ""
    return (
        f"{count} federations are few: the 95 % intervals are too narrow, and the probabilities leave out "
        "the chance of seeds and of the tuning."
    )


def not_learned(found: Board) -> str:
    """Return on which federations methods do not learn."""
    without = found.not_learned
    if not without:
        return ""
    return (
        f"On {len(without)} of {len(found.finished)} federations at most one method is significantly better "
        f"than a constant prediction: {joined(without)}."
    )


def too_short(found: Board) -> str:
    """Return on which federations runs end before they have learned."""
    late = {data: share for data in found.finished if (share := found.late(data)) > _LATE}
    if not late:
        return ""
    shares = joined([f"{data} {share:.0%}" for data, share in late.items()])
    return (
        "Where many of the winners' runs have their best round in the last tenth, more rounds would raise "
        f"scores, and what trains more in a round is favoured: {shares}."
    )


def ranked(found: Board) -> str:
    """Return what average ranks say."""
    if found.ranking is None:
        return (
            "" if found.open else "Ranks need two federations and three methods, so there are scores alone."
        )
    if len(found.finished) < FEWEST_DATASETS:
        return ""  # the table has them; so few decide nothing
    first, count = found.competitors[0], len(found.competitors)
    best = f"{algorithm_name(first)} has the best average rank: {found.average(first):.1f}"
    behind = f"{len(found.behind)} of them" if found.behind else "none of them"
    return f"{best} among {count} methods. By Nemenyi's test ranks tell it apart from {behind}."


def kinds(boards: Iterable[Board]) -> str:
    """Return a line per kind of federation: which methods lead FedAvg the most there, and at what cost."""
    lines = [line for found in boards if found.comparisons for line in _kinds(found)]
    return markdown_of(_KINDS, lines) if lines else ""


def _kinds(found: Board) -> Iterator[list[object]]:
    for label, federations in _groups(found).items():
        part = found.part(federations)
        leads = {method: part.leads(method) for method in _rivals(found)}
        whole = {method: each for method, each in leads.items() if len(each) == len(federations)}
        means = {method: float(np.mean(each)) for method, each in whole.items()}
        order = sorted(means, key=lambda method: -means[method])[:_SHOWN]
        shown = [f"{algorithm_name(method)} {means[method]:+z.1f}" for method in order]
        if order:
            spent, sure = cost(part, order[0]), _sure(part, order[0], whole=label == _ALL)
            count = f"{len(federations)} of {len(found.federations)}" if found.open else len(federations)
            yield [
                *(title(found), label, count, shown[0], _range(whole[order[0]]), sure, ", ".join(shown[1:])),
                _range(part.leads(AGAIN)),
                *map(_times, (spent.flops, spent.to_target[SECONDS])),
            ]


def _range(leads: Sequence[float]) -> str:
    """Return the least and the largest lead."""
    if not leads:
        return "–"
    least, most = (f"{each:+z.1f}" for each in (min(leads), max(leads)))
    return least if len(leads) == 1 else f"{least} to {most}"


def _sure(part: Board, method: str, *, whole: bool) -> str:
    """Return how sure it is that a method is better than FedAvg; a probability where no group was chosen."""
    better, worse = part.tally(method, REFERENCE)
    chance = part.comparisons[method].better if whole else math.nan
    said = f"better on {better}, worse on {worse}"
    return said if math.isnan(chance) else f"P(better) {_chance(chance)}; {said}"


def _groups(found: Board) -> dict[str, list[str]]:
    """Return the finished federations: all, parts by partition, and by what self-train and FedAvg score."""
    by_partition = grouped(found.finished, lambda data: kind(found.track.partitions[data]))
    by_partition.pop("", None)
    by_reference = grouped(found.finished, lambda data: _ALONE.get(found.verdicts(data).get(ALONE, ""), ""))
    by_reference.pop("", None)
    groups = {**by_partition, **by_reference}
    parts = {label: each for label, each in groups.items() if len(each) < len(found.finished)}
    return {_ALL: found.finished, **parts}


def kind(partition: str) -> str:
    """Return the kind of a federation by the name of its partition; "" for other partitions."""
    return _PARTITIONS.get(partition, "")


def _names(listed: Sequence[str]) -> str:
    """Return the names of methods in a sentence, of many the first ones."""
    rest = len(listed) - _NAMED
    shown = listed if rest <= 1 else listed[:_NAMED]
    more = [f"{rest} more"] if rest > 1 else []
    return joined([*map(algorithm_name, shown), *more]) if listed else "none"
