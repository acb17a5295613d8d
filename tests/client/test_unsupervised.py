"""Runs of unsupervised objectives: what copies change, what is scored, what is refused."""

import numpy as np
import pytest
import torch

from fedmpi.analysis import rows
from fedmpi.client.constant import constants
from fedmpi.config.suite import read
from fedmpi.datasets.features import build as build_features
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.graphs.batch import Batch
from fedmpi.metrics import clustering
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinEncoderOptions, Shape
from fedmpi.objectives.options import InfoGraphOptions
from fedmpi.objectives.unsupervised import network_of
from fedmpi.registry.check import check_suite
from fedmpi.seeds import Purpose, key
from fedmpi.store import embeddings
from tests.saved import newest
from tests.started import runs_of

SUITE = """
name = "tests/unsupervised"
[case]
dataset = {{ name = "synthetic", synthetic = {{ domains = 1, graphs = 60 }} }}
partition = {{ name = "dominant-share", clients = 4 }}
model = {{ name = "gin-encoder", hidden = 8, layers = 2 }}
optimizer = {{ name = "adamw", state = "reset", lr = 1e-2 }}
share = "all"
rounds = 3
batch_size = 8
{more}
[matrix]
objective = [{objectives}]
"""


@pytest.fixture
def runs(fedmpi, tmp_path):
    """Return a function that runs objectives and returns their results by name."""

    def start(*objectives, more="", **settings):
        listed = ", ".join(f'"{name}"' if "{" not in name else name for name in objectives)
        suite = SUITE.format(more=more, objectives=listed)
        return runs_of(fedmpi, tmp_path, suite, *(f"{key}={value}" for key, value in settings.items()))

    return start


def test_with_one_local_epoch_the_second_term_changes_nothing(runs):
    """All graphs are trained on, but for a single one left over, by compiled kernels."""
    found = runs("fclg", "fclg-h", "intra")
    fclg, nodes, intra = (run.results for run in found.values())
    for each in (fclg, nodes):
        assert np.array_equal(each["parameter_digest"], intra["parameter_digest"])
    assert np.allclose(fclg["train_loss"] - intra["train_loss"], np.log(2))
    sizes = found["intra"].partition["sizes"][:, 0]
    assert sizes.sum() == 60
    assert intra["samples"][0].tolist() == [size - (size % 8 == 1) for size in sizes]
    assert found["fclg"].config["kernels"] == "compiled"


def test_with_two_local_epochs_it_does(runs):
    found = runs("fclg", "fclg-h", "intra", more="local_epochs = 2")
    digests = [run.results["parameter_digest"][0].tolist() for run in found.values()]
    assert digests[0] != digests[1] != digests[2] != digests[0]
    flops = [run.results["model_flops"].sum() for run in found.values()]
    assert flops[0] == flops[1] > flops[2]


def test_the_previous_round_serves_from_the_second_round_on(runs):
    by_round = '{ label = "fclg", objective = { name = "fclg", previous = "round" } }'
    by_round, alone = runs(by_round, "intra").values()
    same = by_round.results["parameter_digest"] == alone.results["parameter_digest"]
    assert same[0].all() and not same[1].any()


def test_clusters_are_scored_every_so_many_rounds_and_in_the_last(runs):
    (run,) = runs("infograph", more="evaluation = { every = 2, probe = true }").values()
    for name in ("clustering_accuracy", "clustering_f1", "probe_accuracy"):
        assert np.isfinite(run.results[name]).tolist() == [False, True, True], name
    assert 0.5 <= run.results["clustering_accuracy"][2] <= 1
    assert not {"train_accuracy", "test_accuracy", "test_correct", "test_loss"} & run.results.keys()


def test_mvgrl_trains_with_and_without_its_convolutions(runs):
    for registered in ("true", "false"):
        model = f'{{name="mvgrl",hidden=8,layers=2,register_layers={registered}}}'
        (run,) = runs("mvgrl", model=model).values()
        losses = run.results["train_loss"].mean(axis=1)
        assert losses[2] < losses[0]
        assert run.config["kernels"] == "csr"


def test_features_are_scaled_as_the_case_says(runs):
    settings = ({"rounds": 1, "dataset.scaling": scaling} for scaling in ("none", "per-graph"))
    (plain,), (scaled,) = (runs("intra", **each).values() for each in settings)
    assert not (plain.results["parameter_digest"] == scaled.results["parameter_digest"]).any()


def test_clients_with_too_few_graphs_for_a_batch_are_refused_in_one_line(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE.format(more="", objectives='"fclg"'))
    done = fedmpi("run", "suite.toml", "--set", "partition.clients=32")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "needs 2 in a batch" in done.stderr


def test_fedbn_keeps_the_encoders_normalisation_at_home(runs):
    (shared,), (kept,) = (runs("intra", rounds=1, algorithm=name).values() for name in ("fedavg", "fedbn"))
    sent = [run.results["client_bytes_up"][0, 0] for run in (shared, kept)]
    assert sent[0] - sent[1] == 4 * 2 * 8 * 4  # float32: weight, bias, mean, variance of 8 channels, 2 layers
    assert len(set(shared.results["parameter_digest"][0])) == 1
    assert len(set(kept.results["parameter_digest"][0])) == 4


def test_vectors_and_labels_are_those_of_the_partitions_graphs_in_order(runs, tmp_path):
    """Rows of the report have what one cluster of all would score."""
    (run,) = runs("infograph", rounds=1, more="evaluation = { embeddings = [1] }").values()
    raw, order = generate(SyntheticOptions(graphs=60), 0), run.partition["train_index"]
    found = embeddings.load(run.folder)[1]
    assert sorted(order) == list(range(60)) and order.tolist() != sorted(order)
    assert found["labels"].tolist() == np.asarray(raw.labels)[order].tolist()
    shape = Shape(build_features(raw, order[:1], "original").feature_rows.shape[1], 2)
    model = FlatModel(network_of(InfoGraphOptions(), GinEncoderOptions(hidden=8, layers=2), shape))
    model.parameters.copy_(torch.from_numpy(newest(run.folder).states[0]))
    for place, graph in enumerate(order):
        batch = Batch.of(build_features(raw, np.array([graph]), "original"))
        with torch.no_grad():
            alone = model.module.encode(batch, training=False).graphs[0].numpy()
        assert np.allclose(alone, found["vectors"][place], rtol=1e-4, atol=1e-5)

    same = clustering.agreement(found["labels"], np.zeros_like(found["labels"]))
    for row in rows.client_rows(run):
        scored = row["constant_score"], row["constant_clustering_f1"]
        assert scored == pytest.approx((same.accuracy, same.macro_f1))
    (checked,) = check_suite(read(tmp_path / "suite.toml"))
    scores = constants(checked.case, DataSource.from_environment())
    assert scores.of("clustering_f1", rows.ALL) == pytest.approx(same.macro_f1)


@pytest.mark.parametrize(
    ("objective", "option"),
    [
        ("fclg", "inter_weight = 3.0"),
        ("fclg", "inter_temperature = 0.1"),
        ("fclg", "temperature = 0.1"),
        ("fclg", "normalise = false"),
        ("intra-kl", "inter_weight = 3.0"),
        ("intra-mse", "inter_normalise = false"),
        ("intra", 'diffusion = { kind = "heat", t = 5.0 }'),
    ],
)
def test_every_option_moves_what_is_trained(runs, objective, option):
    changed = f'{{ label = "changed", objective = {{ name = "{objective}", {option} }} }}'
    other, plain = runs(changed, objective, rounds=1, local_epochs=2).values()
    assert (other.results["train_loss"] != plain.results["train_loss"]).all()


def test_vectors_of_unit_length_are_clustered_where_asked_for(runs):
    more = 'evaluation = { vectors = "unit", embeddings = [1, 2, 3] }'
    (run,) = runs("infograph", more=more).values()
    kept = embeddings.load(run.folder)
    seed = key(0, Purpose.CLUSTERING) % 2**32
    for place, found in enumerate(kept.values()):
        vectors = found["vectors"].astype(np.float64)
        unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        scored = clustering.score(unit, found["labels"], seed)
        assert run.results["clustering_accuracy"][place] == scored.accuracy
        assert run.results["clustering_f1"][place] == scored.macro_f1
