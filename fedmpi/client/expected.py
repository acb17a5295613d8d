"""FLOPs of a client's local epochs, known before it trains."""

from __future__ import annotations

from dataclasses import replace

from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation, counts_of_graphs, counts_of_views
from fedmpi.client.subgraphs import entries, part_counts


def training_flops(case: Case, federation: Federation, client: int) -> int:
    """Return the model FLOPs of a client's local epochs on its training examples.

    What programs of an algorithm, copies of an objective and examples that a task draws add is not counted.
    """
    split = federation.partition.clients[client]
    raw, flops = federation.raws[split.dataset], federation.flops[federation.shapes[client]]
    epochs = case.local_epochs
    if not case.objective.supervised:
        views = counts_of_views(raw, federation.view, split.train)
        return int(epochs * flops.step(*views, executed=False).total)
    if split.nodes is not None:
        counts = part_counts(case, raw, split, ("train",))
        return int(epochs * flops.training(replace(counts, edges=counts.edges - counts.nodes)).total)
    counts = counts_of_graphs(raw.topology, split.train)
    if raw.places is not None:
        examples = len(split.examples(raw, "train"))
        of_nodes = entries(case, raw, raw.topology.nodes_of(split.train))
        counts = replace(counts, examples=examples, entries=of_nodes)
    counts = replace(counts, outputs=federation.task.scores_each)
    return int(epochs * flops.training(counts).total)
