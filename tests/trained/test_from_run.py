"""A loaded model is the one that its run evaluated."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import fedmpi
from fedmpi.config.tables import toml_document
from fedmpi.datasets import cache
from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.store import checkpoint, embeddings
from fedmpi.store.reader import load_run
from tests.cli.test_resume import signalled
from tests.mpi.molecules import prepare
from tests.trained.conftest import CASE, all_of, held_out_of, listed, outcome_of

LOUVAIN = {
    "dataset": "synthetic-nodes",
    "partition": {"name": "louvain", "clients": 3, "parts": "60/20/20"},
    "model": "gcn",
    "share": "all",
}
ONE = {
    "dataset": {"name": "synthetic", "synthetic": {"domains": 1, "graphs": 60}},
    "partition": {"name": "iid", "clients": 3},
    "share": "all",
}


def last(folder, name, client):
    run = held_out_of(folder, client).run
    return run.results[name][-1, client]


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "fedavg", "model": {"norm": "batch"}, "optimizer": {"state": "kept"}},
        {"algorithm": "ditto"},
        {"algorithm": {"name": "apfl", "adaptive": True}},
        {"algorithm": "fedala"},
        {"algorithm": "pfedme"},
        {"algorithm": "scaffold", "optimizer": "sgd"},
        {"algorithm": "fedpub", **LOUVAIN},
        {"algorithm": "fedstar", "model": "fedstar"},
        {"algorithm": "fedavg", "model": {"head": "own"}},
        {"compression": "top-k", "schedule": {"name": "buffered", "size": 2}, "devices": "two-speed"},
    ],
    ids=lambda each: str(each.get("algorithm", "buffered")),
)
def test_it_scores_what_the_record_says(trained, settings):
    folder = trained(**settings)
    held_out = held_out_of(folder, 1)
    found = outcome_of(fedmpi.load_model(folder, held_out.run.clients[1]), held_out)
    assert found.mean_loss == held_out.run.results["test_loss"][-1, 1]
    assert found.accuracy == held_out.run.results["test_accuracy"][-1, 1]


def test_its_digest_is_the_records(trained):
    folder = trained()
    model = fedmpi.load_model(folder, "synthetic-1")
    assert int(model.about.parameter_digest, 16) == last(folder, "parameter_digest", 1)
    assert not model.training


def test_a_folder_may_be_named_as_a_file_of_own_graphs(trained):
    folder = trained().rename("fedavg-dataset.name=mine.pt")
    assert fedmpi.load_model(folder, "synthetic-1").about.client == "synthetic-1"


def test_the_compiled_kernels_and_torch_geometric_agree_with_it(trained):
    folder = trained(kernels="compiled")
    held_out, model = held_out_of(folder, 2), fedmpi.load_model(folder, "synthetic-2")
    assert outcome_of(model, held_out).mean_loss == pytest.approx(last(folder, "test_loss", 2), rel=1e-5)
    graphs = listed(held_out.graphs)
    plain = model(graphs)
    model.kernels = "reference"
    assert torch.allclose(model(graphs), plain, rtol=1e-5, atol=1e-5)


def test_it_is_loaded_without_mpi(trained):
    code = "import sys, fedmpi; fedmpi.load_model(sys.argv[1], 'synthetic-0'); assert 'mpi4py.MPI' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, str(trained())], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_it_says_of_itself(trained):
    about = fedmpi.load_model(trained(), "synthetic-1").about
    assert (about.algorithm, about.client, about.round, about.dataset) == (
        "fedavg",
        "synthetic-1",
        2,
        "synthetic-1",
    )
    assert (about.task, about.outputs, about.examples) == ("graph-classification", "classes", "graph")
    assert (about.features, about.num_features, about.names) == ("labels", 5, ("0", "1"))
    assert about.model == {
        "name": "gin", "hidden": 64, "layers": 3, "dropout": 0.5, "head": "dataset",
    }  # fmt: skip


@pytest.mark.parametrize("settings", [{"targets": "raw"}, {"targets": "standardised"}], ids=str)
def test_numbers_are_in_the_labels_own_units(trained, tmp_path, monkeypatch, settings):
    monkeypatch.setenv("FEDMPI_DATA", str(prepare(tmp_path / "data")))
    model = {"name": "mpnn", "hidden": 8}
    partition = {"name": "iid", "clients": 3}
    folder = trained(dataset={"name": "ESOL", **settings}, partition=partition, model=model)
    held_out = held_out_of(folder, 0)
    found = fedmpi.load_model(folder, held_out.run.clients[0]).predict(listed(held_out.graphs))
    wrong = found.values[held_out.cut :] - held_out.graphs.labels[held_out.cut :]
    assert found.names == ("task-0",)
    assert np.sqrt((wrong**2).mean()) == pytest.approx(last(folder, "client_test_rmse", 0), rel=1e-6)


def test_without_a_client_it_is_the_model_of_all(trained):
    folder = trained(**ONE)
    one, everybody = fedmpi.load_model(folder, "client-02"), fedmpi.load_model(folder)
    assert everybody.about.client == ""
    assert everybody.about.parameter_digest == one.about.parameter_digest


def test_of_personal_models_the_one_of_all_is_the_global_one(trained):
    folder = trained(**ONE, algorithm="ditto")
    assert (
        fedmpi.load_model(folder).about.parameter_digest
        != fedmpi.load_model(folder, "client-00").about.parameter_digest
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {**ONE, "algorithm": "fedbn", "model": {"norm": "batch"}},
        {**ONE, "topology": "ring", "weights": "equal"},
    ],
    ids=["convolutions", "norms", "ring"],
)
def test_without_a_client_and_a_shared_model_it_names_the_clients(trained, settings):
    with pytest.raises(BadInput, match=r"share no whole model; name one: .*-0?0, .*-0?1, .*-0?2$"):
        fedmpi.load_model(trained(**settings))


def test_an_unknown_client_is_refused(trained):
    folder = trained()
    with pytest.raises(BadInput, match='no client "synthetic-7"; did you mean "synthetic-'):
        fedmpi.load_model(folder, "synthetic-7")
    with pytest.raises(BadInput, match='no client "0"; its clients: synthetic-0, synthetic-1'):
        fedmpi.load_model(folder, 0)


def test_a_run_without_checkpoints_says_why(trained):
    with pytest.raises(BadInput, match=r'has no checkpoint.*checkpoints = "removed"'):
        fedmpi.load_model(trained(checkpoints="removed"), "synthetic-0")


def test_a_damaged_checkpoint_is_refused(trained):
    folder = trained()
    (states,) = (folder / checkpoint.FOLDER).glob("*.rank-0")
    states.write_bytes(states.read_bytes()[:-900])
    with pytest.raises(BadInput, match=r"checkpoints: .*rank-0: it carries no digest: it was cut short"):
        fedmpi.load_model(folder, "synthetic-0")


def test_other_data_are_refused(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDMPI_DATA", str(prepare(tmp_path / "data")))
    folder = trained(dataset="ESOL", partition={"name": "iid", "clients": 2}, model="gcn")
    place = tmp_path / "data" / "moleculenet" / "ESOL"
    raw = cache.load(place)
    shutil.rmtree(place)
    cache.save(replace(raw, labels=raw.labels + 1), place, "test")
    with pytest.raises(BadInput, match="dataset ESOL is not the one that the run was trained on"):
        fedmpi.load_model(folder, "client-00")


UNSUPERVISED = {
    "dataset": ONE["dataset"],
    "partition": {"name": "dominant-share", "clients": 2},
    "share": "all",
    "evaluation": {"embeddings": [2]},
}


@pytest.mark.parametrize(
    "settings",
    [
        {"model": {"name": "gin-encoder", "hidden": 8}, "objective": "fclg"},
        {"model": {"name": "gin-encoder", "hidden": 8}, "objective": "infograph", "algorithm": "fedbn"},
        {"model": {"name": "mvgrl", "hidden": 8, "layers": 2}, "objective": "mvgrl"},
        {
            "model": {"name": "mvgrl", "hidden": 8, "layers": 2, "register_layers": False},
            "objective": {"name": "mvgrl", "diffusion": {"alpha": 0.3}},
        },
    ],
    ids=["fclg", "infograph", "mvgrl", "frozen"],
)
def test_an_encoder_gives_the_vectors_that_the_run_judged(trained, command, settings):
    folder = trained(**UNSUPERVISED, **settings)
    run = load_run(folder)
    kept = embeddings.load(folder)[2]["vectors"]
    graphs = all_of(folder, 1)
    model = fedmpi.load_model(folder, run.clients[1])
    assert int(model.about.parameter_digest, 16) == run.results["parameter_digest"][-1, 1]
    assert not model.training
    found = model.embed(listed(graphs))
    assert np.array_equal(found, kept[-graphs.num_graphs :])
    with torch.no_grad():
        assert np.array_equal(model(listed(graphs)).numpy(), found)
    with pytest.raises(BadInput, match=r"trains no labels: embed\(graphs\) has the graphs' vectors"):
        model.predict(listed(graphs))
    command("export", folder, "--client", run.clients[1], "--model", "one.pt", code=0)
    assert np.array_equal(fedmpi.load_model("one.pt").embed(listed(graphs)), found)


def test_a_shared_encoder_is_loaded_without_a_client(trained):
    folder = trained(**UNSUPERVISED, model={"name": "gin-encoder", "hidden": 8}, objective="fclg")
    one = fedmpi.load_model(folder, load_run(folder).clients[0])
    assert fedmpi.load_model(folder).about.parameter_digest == one.about.parameter_digest


def test_vectors_of_a_supervised_model_are_what_its_head_reads(trained):
    folder = trained()
    held_out, model = held_out_of(folder, 1), fedmpi.load_model(folder, "synthetic-1")
    graphs, network = listed(held_out.graphs), model.network
    vectors = torch.from_numpy(model.embed(graphs))
    with torch.no_grad():
        assert torch.equal(network.readout(network.post(vectors).relu()), model(graphs))


def test_prototypes_decide_as_in_the_run(trained, command):
    folder = trained(algorithm="fedproto", local_epochs=3)
    held_out, model = held_out_of(folder, 0), fedmpi.load_model(folder, "synthetic-0")
    graphs = listed(held_out.graphs)
    assert outcome_of(model, held_out).mean_loss == last(folder, "test_loss", 0)
    found = model.predict(graphs)
    right = [name == str(label) for name, label in zip(found.labels, held_out.graphs.labels, strict=True)]
    assert np.mean(right[held_out.cut :]) == last(folder, "test_accuracy", 0)
    assert np.mean(right[: held_out.cut]) == last(folder, "val_accuracy", 0)
    rows, prototypes = model.embed(graphs), np.array(model.about.prototypes)
    expected = -((rows[:, None] - prototypes) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)
    assert found.probabilities is None
    command("export", folder, "--client", "synthetic-0", "--model", "one.safetensors", code=0)
    assert np.array_equal(fedmpi.load_model("one.safetensors").predict(graphs).scores, found.scores)


def test_without_prototypes_the_head_decides(trained):
    folder = trained(algorithm={"name": "fedproto", "predict": "classifier"})
    model = fedmpi.load_model(folder, "synthetic-0")
    assert model.about.outputs == "classes"


def test_prototypes_of_a_best_round_are_not_kept(trained):
    model = fedmpi.load_model(trained(algorithm="fedproto", keep="best"), "synthetic-0", "best")
    with pytest.raises(BadInput, match="with fedproto predicts by more than the model's outputs"):
        model.predict([])


@pytest.mark.parametrize("task", ["link-prediction", "relation-prediction"])
def test_triples_are_scored_as_in_the_run(trained, task):
    folder = trained(
        task=task,
        dataset={"name": "synthetic-triples", "features": "identity"},
        partition={"name": "metadata", "by": "class", "clients": 3},
        model={"name": "rgcn", "hidden": 16},
        share="all",
    )
    held_out = held_out_of(folder, 1)
    graphs, labels, tested = held_out.graphs, held_out.graphs.labels, slice(held_out.cut, None)
    batch = Batch.of(graphs)
    client = Data(
        x=batch.x.to_dense(),
        edge_index=batch.edge_index,
        edge_type=batch.edges[:, 0].long(),
        edge_label_index=batch.places.T,
    )
    found = fedmpi.load_model(folder, held_out.run.clients[1]).predict(client)
    chosen = found.probabilities[np.arange(len(labels)), labels]
    loss = -np.log(chosen[tested]).mean()
    assert loss == pytest.approx(last(folder, "test_loss", 1), rel=1e-5)
    if task == "link-prediction":
        assert found.labels is None
        np.testing.assert_allclose(found.probabilities, 1 / (1 + np.exp(-found.scores)))


def test_several_runs_are_refused(trained, command, tmp_path):
    trained()
    command("run", "home.toml", "--out", "runs/more", "--set", "seed=4", code=0)
    with pytest.raises(BadInput, match="holds 2 runs: name one, such as"):
        fedmpi.load_model(tmp_path / "runs")


BEST = {"keep": "best", "rounds": 6, "local_epochs": 4, "optimizer": {"lr": 0.03}}


def best_round(run, client):
    """Return the first round of the highest accuracy and, of these, the lowest loss, 0-based."""
    accuracy, loss = run.results["val_accuracy"][:, client], run.results["val_loss"][:, client]
    return min(range(len(loss)), key=lambda number: (-accuracy[number], loss[number], number))


@pytest.mark.parametrize("more", [{}, {"kernels": "compiled"}, {"algorithm": "ditto"}], ids=str)
def test_the_best_models_are_those_of_each_clients_best_round(trained, more):
    folder, rounds = trained(**BEST, **more), set()
    for client in range(3):
        held_out = held_out_of(folder, client)
        run = held_out.run
        number = best_round(run, client)
        model = fedmpi.load_model(folder, run.clients[client], "best")
        assert model.about.round == number + 1
        rounds.add(number)
        loss = outcome_of(model, held_out).mean_loss
        assert loss == pytest.approx(run.results["test_loss"][number, client], rel=1e-6)
        if not more:
            assert int(model.about.parameter_digest, 16) == run.results["parameter_digest"][number, client]
    assert rounds != {5}


def test_the_best_models_do_not_depend_on_ranks(trained, tmp_path):
    one = trained(**BEST)
    suite = {"name": "home", "case": CASE | {"algorithm": "fedavg"} | BEST}
    fedmpi.run(suite, ranks=3, out=tmp_path / "three", quiet=True)
    (three,) = (path for path in (tmp_path / "three").iterdir() if path.is_dir())
    for name in load_run(one).clients:
        assert fedmpi.load_model(one, name, "best").about == fedmpi.load_model(three, name, "best").about


def test_what_is_kept_changes_no_result_and_is_the_same_after_an_interruption(trained, command, tmp_path):
    whole = trained(**BEST)
    with signalled(lambda client, case, round: round == 3):
        command("run", "home.toml", "--out", "again", code=75)
    command("run", "home.toml", "--out", "again", "--resume", code=0)
    command("run", "home.toml", "--out", "plain", "--set", "keep=last", code=0)
    (again,), (plain,) = (tmp_path / "again").iterdir(), (tmp_path / "plain").iterdir()
    for name in load_run(whole).clients:
        one, other = (fedmpi.load_model(folder, name, "best").about for folder in (whole, again))
        assert (one.round, one.parameter_digest) == (other.round, other.parameter_digest)
    expected = load_run(whole).results
    assert all(np.array_equal(load_run(plain).results[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({}, ("synthetic-0", "best"), 'it kept the last models alone; run it with keep = "best"'),
        ({"keep": "best"}, (None, "best"), "each client has a best round of its own: name a client"),
        ({}, ("synthetic-0", "first"), 'round must be "last" or "best", not \'first\''),
    ],
    ids=["last", "nobody", "first"],
)
def test_a_best_model_that_is_not_there_is_refused(trained, settings, arguments, words):
    with pytest.raises(BadInput, match=words):
        fedmpi.load_model(trained(**settings), *arguments)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dataset": "ESOL", "partition": "iid", "model": "gcn"}, '"best" is by each client\'s accuracy'),
        ({"partition": {"name": "population", "clients": 2}}, '"best" needs clients that stay'),
    ],
    ids=["numbers", "population"],
)
def test_a_case_without_best_rounds_is_refused(command, settings, words):
    suite = {"name": "home", "case": CASE | ONE | {"algorithm": "fedavg", "keep": "best"} | settings}
    Path("home.toml").write_text(toml_document(suite))
    done = command("run", "home.toml", code=2)
    assert "case.keep: " in done.stderr
    assert words in done.stderr
