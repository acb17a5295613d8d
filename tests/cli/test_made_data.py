"""Suites whose data are not everywhere run on made files of the same names and format."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from fedmpi.datasets.families.citation_networks import CitationFull
from fedmpi.store.reader import load_run
from tests.started import sets

EGOS = ("dataset.egos.number=60", "method=fedavg")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """Return a folder with a made YAGO3-10, CORA and PubMed."""
    draws, mirror = np.random.default_rng(0), tmp_path_factory.mktemp("mirror")
    triples = draws.integers(0, (60, 5, 60), (500, 3))
    folder = mirror / "kg" / "other" / "YAGO3-10"
    folder.mkdir(parents=True)
    for name, part in (("train", triples[:400]), ("valid", triples[400:450]), ("test", triples[450:])):
        (folder / f"{name}.txt").write_text("".join(f"e{a}\tr{b}\te{c}\n" for a, b, c in part))
    (mirror / "citation_full").mkdir()
    for name, file in (("CitationFull-Cora", "cora.npz"), ("CitationFull-PubMed", "pubmed.npz")):
        _network(mirror / "citation_full" / file, CitationFull.facts[name], draws)
    return mirror


def _network(path, facts, draws):
    """Write a network of the true size whose edges and words are drawn."""
    nodes, edges = facts.nodes, facts.directed_edges // 2
    pairs = np.unique(np.sort(draws.integers(0, nodes, (2 * edges, 2)), axis=1), axis=0)
    pairs = draws.permutation(pairs[pairs[:, 0] < pairs[:, 1]])[:edges]
    links = csr_array((np.ones(edges, np.float32), tuple(pairs.T)), (nodes, nodes))
    words = draws.integers(0, facts.attribute_width, nodes).astype(np.int32)
    np.savez_compressed(
        path,
        adj_data=links.data, adj_indices=links.indices, adj_indptr=links.indptr, adj_shape=np.array(links.shape),
        attr_data=np.ones(nodes, np.float32), attr_indices=words, attr_indptr=np.arange(nodes + 1),
        attr_shape=np.array([nodes, facts.attribute_width]),
        labels=np.arange(nodes) % facts.classes,
    )  # fmt: skip


YAGO = ("data=WN18RR", "dataset.name=YAGO3-10")


CITED, F1 = "fedgraphnn/table4-others", "test_micro_f1"


@pytest.mark.parametrize(
    ("suite", "settings", "metric"),
    [
        ("nodes/triples", ("how=central", "model=distmult", *YAGO), "test_mrr"),
        ("nodes/triples", ("how=relations", "model=rgcn", *YAGO), "test_mrr"),
        (CITED, ("data=CORA", "protocol=published", "model=gcn", *EGOS), F1),
        (CITED, ("data=PubMed", "protocol=honest", "model=sage", *EGOS), F1),
    ],
)
def test_suites_run_on_made_data(fedmpi, mirror, tmp_path, suite, settings, metric):
    given = (*settings, "seed=1", "rounds=1", "local_epochs=1")
    fedmpi("run", suite, *sets(*given), "--out", "runs", "--data", "data", "--mirror", mirror, code=0)
    runs = [load_run(path.parent) for path in (tmp_path / "runs").glob("*/run.h5")]
    assert runs
    for run in runs:
        assert run.status == "complete"
        assert 0 < run.results[metric][-1] < 1
