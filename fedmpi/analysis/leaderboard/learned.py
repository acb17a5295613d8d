"""Where a track's methods learn more than a constant prediction, and how they rank there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.leaderboard.board import Board, leads, verdicts
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.judging.ranking import Ranking, ranking

_MOST = 1
"""So many methods may be better than a constant prediction where methods are said not to learn more."""


@dataclass(frozen=True)
class Standing:
    """How many ranked methods are significantly better than a constant prediction, and worse, of how many."""

    better: int
    worse: int
    count: int


def standing(found: Board, data: str) -> Standing | None:
    """Return how the methods stand on a federation; None while runs or constants are missing.

    Differences are paired by seed; p-values are adjusted for all methods (Holm).
    """
    base = found.constants.get(data, {})
    if data not in found.ranked or not set(SEEDS) <= base.keys():
        return None
    said = list(verdicts(found, data, base).values())
    return Standing(said.count("better"), said.count("worse"), len(said))


def not_learned(found: Board) -> dict[str, Standing]:
    """Return the federations on which at most one method is better than a constant prediction."""
    known = {data: standing(found, data) for data in found.federations}
    return {data: each for data, each in known.items() if each is not None and each.better <= _MOST}


def learned(found: Board) -> list[str]:
    """Return the federations on which more are; neither list has those whose constants are not known."""
    known = {data: standing(found, data) for data in found.federations}
    return [data for data, each in known.items() if each is not None and each.better > _MOST]


def rank_where_learned(found: Board, method: str) -> float:
    """Return a ranked method's average rank over those; NaN if there are none."""
    places = [place for place, data in enumerate(found.ranked) if data in learned(found)]
    ranks = found.ranks.get(method)
    return float(np.mean([ranks[place] for place in places])) if ranks and places else math.nan


def ranking_where_learned(found: Board) -> Ranking | None:
    """Return what the ranks over those say; None with fewer than two of them."""
    places = [place for place, data in enumerate(found.ranked) if data in learned(found)]
    table = np.array([[ranks[place] for ranks in found.ranks.values()] for place in places])
    return ranking(table) if found.ranking is not None and len(places) > 1 else None


def leads_where_learned(found: Board, method: str) -> tuple[int, int]:
    """Return on how many of those a method is better than FedAvg, and on how many worse."""
    said = [leads(found, data).get(method) for data in learned(found)]
    return said.count("better"), said.count("worse")
