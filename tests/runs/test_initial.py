"""Runs that start from a file of tensors."""

import hashlib
from pathlib import Path

import pytest
import torch

import fedmpi as package
from fedmpi.config.tables import toml_document
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.cli.test_resume import signalled
from tests.mpi.launcher import find

CASE = {
    "dataset": {"name": "synthetic", "synthetic": {"domains": 1, "graphs": 60}},
    "partition": {"name": "iid", "clients": 3},
    "rounds": 2,
    "seed": 3,
    "kernels": "csr",
    "algorithm": "fedavg",
}
STILL = {"optimizer": {"name": "sgd", "lr": 1e-30}, "rounds": 1, "seed": 8}
"""Training that moves no parameter."""


@pytest.fixture
def run(fedmpi, tmp_path):
    """Return a function that runs a case into a folder and returns how the command ended."""

    def start(out, *words, code=0, **settings):
        (tmp_path / f"{out}.toml").write_text(toml_document({"name": "a", "case": CASE | settings}))
        return fedmpi("run", f"{out}.toml", "--out", out, *words, code=code)

    return start


@pytest.fixture
def first(run, fedmpi):
    """Train a federation and write the model of its last client; return the record."""
    run("first")
    fedmpi("export", record("first").folder, "--client", "client-02", "--model", "one.safetensors", code=0)
    return record("first")


def record(out):
    (folder,) = (each for each in Path(out).iterdir() if each.is_dir())
    return load_run(folder)


def state_of(out, client="client-02"):
    return package.load_model(record(out).folder, client).network.state_dict()


def saved(**tensors):
    """Write the exported tensors with some of them changed, or without those that are None."""
    state = package.load_model("one.safetensors").network.state_dict() | tensors
    torch.save({name: each for name, each in state.items() if each is not None}, "other.pt")
    return "other.pt"


@pytest.mark.parametrize(
    "settings",
    [
        {"share": "all"},
        {"kernels": "compiled"},
        {"kernels": "grouped"},
        {"algorithm": "ditto"},
        {"topology": "ring", "weights": "equal"},
        {"algorithm": "self-train"},
    ],
    ids=str,
)
def test_all_clients_start_from_the_model(first, run, settings):
    run("second", initial="one.safetensors", **STILL | settings)
    found = record("second").results
    assert found["test_accuracy"][0, 2] == first.results["test_accuracy"][-1, 2]
    expected = state_of("first")
    for client in first.clients:
        assert all(torch.equal(each, expected[name]) for name, each in state_of("second", client).items())


def test_a_part_is_taken_and_the_rest_is_drawn_as_always(first, run):
    path = saved(**{"readout.weight": torch.zeros(7, 64), "post.bias": None})
    run("part", initial={"name": path, "tensors": ["pre.", "conv.1."]}, **STILL)
    run("drawn", **STILL)
    taken, drawn = state_of("first"), state_of("drawn")
    for name, each in state_of("part").items():
        assert torch.equal(each, (taken if name.startswith(("pre.", "conv.1.")) else drawn)[name]), name


def test_counts_of_batches_are_no_misfit(run, fedmpi):
    run("normed", model={"norm": "batch"})
    fedmpi("export", record("normed").folder, "--client", "client-00", "--model", "one.safetensors", code=0)
    assert "norm.0.num_batches_tracked" in package.load_model("one.safetensors").network.state_dict()
    run("second", model={"norm": "batch"}, initial="one.safetensors", rounds=1)


def test_the_configuration_has_the_files_digest_and_nothing_without_one(first, run):
    run("second", initial="one.safetensors", **STILL)
    assert "initial" not in first.config
    digest = hashlib.sha256(Path("one.safetensors").read_bytes()).hexdigest()
    expected = {"name": "one.safetensors", "tensors": [], "sha256": digest}
    assert record("second").config["initial"] == expected


@pytest.mark.parametrize(
    ("mpi", "ranks"),
    [
        ("mpich", 2),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("mpich", 3), ("openmpi", 1), ("openmpi", 3))
        ),
    ],
)
def test_it_is_the_same_on_any_ranks_under_both_mpis(first, run, tmp_path, mpi, ranks):
    run("one", initial="one.safetensors")
    command = ("-m", "fedmpi", "run", "one.toml", "--out", "other")
    code, output = find(mpi).run(ranks, *command, cwd=tmp_path, timeout=240)
    assert code == 0, output
    assert differences(record("one").folder, record("other").folder) == []
    assert differences(record("first").folder, record("one").folder) != []


def test_a_resumed_run_is_the_same_and_a_changed_file_is_refused(first, run, fedmpi):
    settings = {"initial": "one.safetensors", "rounds": 4}
    run("whole", **settings)
    with signalled(lambda client, case, round: round == 1):
        run("torn", code=75, **settings)
    folder, kept = record("torn").folder, Path("one.safetensors").read_bytes()
    fedmpi("export", record("whole").folder, "--client", "client-00", "--model", "one.safetensors", code=0)
    done = fedmpi("run", folder, "--resume", code=2)
    assert "fedmpi: initial: one.safetensors has changed: the run is of SHA-256" in done.stderr
    done = run("torn", "--resume", code=2, **settings)
    assert "holds a run of another configuration (initial.sha256: " in done.stderr
    Path("one.safetensors").unlink()
    done = fedmpi("run", folder, "--resume", code=2)
    assert "fedmpi: initial: one.safetensors: no such file" in done.stderr
    Path("one.safetensors").write_bytes(kept)
    fedmpi("run", folder, "--resume", code=0)
    assert differences(record("whole").folder, record("torn").folder) == []


WIDE = torch.zeros(7, 64)


@pytest.mark.parametrize(
    ("tensors", "initial", "words"),
    [
        ({"readout.weight": WIDE, "pre.bias": None}, {},
         "other.pt and the model of client-00: pre.bias is not in the file; readout.weight is 7 x 64 in the "
         'file, 2 x 64 in the model; the rest fits: initial.tensors = ["conv.", "post."]'),
        ({"head.weight": WIDE}, {},
         'client-00: head.weight is not in the model; the rest fits: initial.tensors = ["pre.", "conv.", '),
        ({"readout.weight": WIDE}, {"tensors": ["read"]}, "readout.weight is 7 x 64 in the file, 2 x 64 in the model"),
        ({}, {"tensors": ["pre", "convs"]},
         'no tensor has a name that begins with "convs" (there are pre., conv., post., readout.)'),
        ({"pre.bias": torch.full((64,), torch.nan)}, {}, "pre.bias has values in the file that are no finite numbers"),
        ({"pre.bias": torch.ones(64, dtype=torch.int64)}, {}, "pre.bias has values in the file that are no finite"),
        ({"pre.bias": 1.5}, {}, "initial: other.pt: it holds no state dict"),
        ({"pre.bias": torch.eye(64).to_sparse()}, {}, "initial: other.pt: it holds no state dict"),
    ],
    ids=lambda each: "",
)  # fmt: skip
def test_what_does_not_fit_is_named_in_a_line_and_no_run_begins(first, run, tensors, initial, words):
    done = run("second", code=2, initial={"name": saved(**tensors), **initial})
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not Path("second").exists()


@pytest.mark.parametrize(
    ("initial", "words"),
    [
        ("none.pt", "initial: none.pt: no such file"),
        ("second.toml", "initial: second.toml: the name of a model must end in .safetensors or .pt"),
        ({"tensors": ["pre"]}, "case.initial: give the name of a file, too"),
        ({"name": "x.pt", "sha256": "ab"}, "case.initial.sha256: string should match pattern"),
        ({"name": "cut.pt", "sha256": "ab" * 32}, "initial: cut.pt has changed: the run is of SHA-256 abababababab"),
        ("cut.pt", "initial: cut.pt: damaged ("),
        ("cut.safetensors", "initial: cut.safetensors: damaged ("),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_a_line(run, initial, words):
    for suffix in ("pt", "safetensors"):
        Path(f"cut.{suffix}").write_bytes(b"PK\x03\x04 and no more")
    done = run("second", code=2, initial=initial)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not Path("second").exists()


def test_a_finished_run_is_read_without_the_file(first, run, fedmpi):
    run("second", initial="one.safetensors", **STILL)
    Path("one.safetensors").unlink()
    assert state_of("second").keys() == state_of("first").keys()
    fedmpi("report", "second", code=0)
