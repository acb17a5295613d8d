"""Unit and meaning of what a record holds beside rounds: for those who open it with h5dump or HDFView."""

from __future__ import annotations

from fedmpi.metrics.metric import MICRO_F1

TEXT = "text"

PARTITION: dict[str, tuple[str, str]] = {
    "clients": (TEXT, "names of the clients"),
    "datasets": (TEXT, "dataset of each client"),
    "dataset_index": ("1", "number of each client's dataset, in the order of dataset_digests"),
    "dataset_digests": (TEXT, "name and SHA-256 of the content of each dataset"),
    "sizes": ("example", "training, validation and test examples of each client; ego-networks"),
    "class_counts": ("example", "examples of each client by class; 0 past its dataset's number of classes"),
    "num_classes": ("1", "classes of each client's dataset"),
    "missing_classes": ("1", "classes of its dataset that each client's training examples lack"),
    "stratified": ("1", "whether both steps of each client's split kept class shares"),
    "emd": ("1", "1-norm of each client's class shares minus those of all clients together"),
    "total_emd": ("1", "mean of emd over clients, weighted by their examples"),
    "edges": ("edge", "edges of the large graph that is cut into clients, each once"),
    "edges_between": ("edge", "of these the edges between clients, which no client has"),
    "task_names": (TEXT, "names of the label columns"),
    "refused": (TEXT, "what is left out of the dataset's file: rows, graphs, fields; and why"),
    "test_twin_own": (
        "1",
        "1 where the client's own training set holds an isomorphic twin of the test graph, or the test node "
        "or edge itself",
    ),
    "population": ("1", "clients that the round's are sampled from"),
    "pool_index": ("1", "training graphs of the dataset, from which clients of the population draw"),
    "public_index": ("1", "graphs of the dataset that all clients have"),
    "test_twin_other": ("1", "1 where another client's training set holds it"),
    **{
        f"{part}_{kind}": meaning
        for part, name in (("train", "training"), ("val", "validation"), ("test", "test"))
        for kind, meaning in (
            ("index", ("1", f"numbers of the {name} examples in their datasets, client after client")),
            ("ptr", ("1", f"client i's {name} examples are entries ptr[i] to ptr[i + 1] - 1 of the index")),
        )
    },
}
"""Arrays under /partition."""


def of_partition(name: str) -> tuple[str, str]:
    """Return unit and meaning of an array under /partition; one that a plug-in brings has its name alone."""
    if name.startswith("constant_"):
        metric = name.removeprefix("constant_")
        of = f"test {metric.removeprefix('client_')} of predicting the mean of all training labels"
        if metric == MICRO_F1.name:
            return "1", f"test {metric} of predicting the most frequent class of all training labels"
        by = "mean over clients" if metric.startswith("client_") else "by label column"
        return "label", f"{of}, {by}"
    return PARTITION.get(name, ("1", f"partition: {name}"))


OTHERS: dict[str, tuple[str, str]] = {
    "config": (TEXT, "the configuration as JSON: everything that decides the results"),
    "status": (TEXT, "running, complete, interrupted, diverged or failed"),
    "reason": (TEXT, "why the run is not complete; empty where nothing went wrong"),
    "rounds_completed": ("round", "rows 0 to rounds_completed - 1 of /rounds are whole"),
    "provenance": (TEXT, "versions, machine and environment of this attempt as JSON"),
    "rounds_written": ("round", "rows 0 to rounds_written - 1 of this attempt's arrays are whole"),
    "ended": (TEXT, "when this attempt ended, UTC; empty if it was killed"),
    "results": ("1", "digest of all results of a round; 0: not written"),
    "measurements": ("1", "digest of all measurements of a round in this attempt; 0: not written"),
    "rest": ("1", "digest of what never changes beside: attributes, and what else is in this group"),
    **{
        f"{name}_now_and_before": ("1", f"digests of {name}, as it is and as it was before the last change")
        for name in ("status", "reason", "ended")
    },
}
"""Single values of the file and of an attempt."""
