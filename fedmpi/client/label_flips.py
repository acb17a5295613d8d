"""Clients that attack by other labels in their training data."""

from __future__ import annotations

from dataclasses import replace

from fedmpi.case.attacks import LabelFlip
from fedmpi.case.schema import Case
from fedmpi.graphs.packed import GraphSet


def poisoned(case: Case, num_clients: int, client: int, classes: int, graphs: GraphSet) -> GraphSet:
    """Return a client's training examples as it uses them: an attacker flips their labels, if that is meant.

    Parameters
    ----------
    case : Case
    num_clients, client : int
    classes : int
        Of the client's model.
    graphs : GraphSet
    """
    flips = isinstance(case.attack, LabelFlip) and client in case.attack.attackers(case.seed, num_clients)
    return replace(graphs, labels=classes - 1 - graphs.labels) if flips else graphs
