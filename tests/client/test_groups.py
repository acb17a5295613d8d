"""Clients trained together learn what each would learn alone."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedmpi.client import groups, training
from fedmpi.client.client import Client
from fedmpi.client.federation import groups_of
from fedmpi.client.group_results import finite, finite_ends
from fedmpi.client.group_rows import GroupRows
from fedmpi.client.groups import ClientGroup
from fedmpi.client.optimizer import AdamState
from fedmpi.config.suite import read
from fedmpi.kernels.networks import grouped_network
from fedmpi.models.options import GinOptions, Shape
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.registry.check import check_suite
from fedmpi.store.identical import differences
from tests.making import flat, generated
from tests.on_device import OnDevice
from tests.started import runs_of, sets
from tests.tasks.making import make_task

SUITE = """
name = "grouped"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 130 } }
partition = { name = "dirichlet-quantity", clients = 5, alpha = 2.0 }
rounds = 3
seed = 3
batch_size = 16
[matrix]
algorithm = ["fedavg", "fedprox", "gcfl"]
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "grouped.toml"
    path.write_text(SUITE)
    return path


@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox", "gcfl"])
def test_a_group_equals_its_clients_one_by_one(fedmpi, suite, tmp_path, algorithm):
    common = (f"algorithm={algorithm}", "local_epochs=2", "participation=0.7")
    kernels = (["kernels=csr"], ["kernels=grouped", "group_size=3"])
    found = [runs_of(fedmpi, tmp_path, suite, *common, *each).values() for each in kernels]
    alone, grouped = (run.results for (run,) in found)
    assert len(set(alone["steps"].ravel())) > 2  # clients sit out, and take different numbers of steps
    for name in ("participated", "samples", "steps", "model_flops", "evaluation_flops"):
        assert np.array_equal(alone[name], grouped[name]), name
    for name in ("train_loss", "test_loss", "delta_norm", "gradient_norm"):
        first = (alone[name][0], grouped[name][0])  # Adam's steps magnify what rounding begins
        assert np.allclose(*first, rtol=1e-4, equal_nan=True), name


NODES = """
name = "grouped-nodes"
[case]
dataset = "synthetic-nodes"
partition = { name = "louvain", clients = 5 }
model = { name = "gcn", head_layers = 1 }
share = "all"
rounds = 3
participation = 0.7
local_epochs = 2
"""


def test_a_group_on_nodes_equals_its_clients_one_by_one(fedmpi, tmp_path):
    suite = tmp_path / "nodes.toml"
    suite.write_text(NODES)
    kernels = (["kernels=csr"], ["kernels=grouped", "group_size=2"])
    found = [runs_of(fedmpi, tmp_path, suite, *each).values() for each in kernels]
    alone, grouped = (run.results for (run,) in found)
    for name in ("participated", "samples", "steps", "model_flops", "evaluation_flops", "test_correct"):
        assert np.array_equal(alone[name], grouped[name]), name
    for name in ("train_loss", "test_loss", "test_macro_f1", "delta_norm", "gradient_norm"):
        assert np.allclose(alone[name][0], grouped[name][0], rtol=1e-4, equal_nan=True), name


def test_a_group_is_resumed_bit_for_bit(fedmpi, suite, tmp_path, monkeypatch):
    import os
    import signal

    options = ("--case", "0", *sets("kernels=grouped", "group_size=2"))
    fedmpi("run", suite, "--out", "whole", *options)
    original = ClientGroup.train

    def train(self, case, algorithm, round, chosen):
        if round == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        return original(self, case, algorithm, round, chosen)

    monkeypatch.setattr(ClientGroup, "train", train)
    assert fedmpi("run", suite, "--out", "parts", *options).returncode == 75
    monkeypatch.setattr(ClientGroup, "train", original)
    (folder,) = (tmp_path / "parts").iterdir()
    assert fedmpi("run", "--resume", folder).returncode == 0
    assert differences(tmp_path / "whole" / folder.name, folder) == []


class Tried:
    """Stands for a captured action and for its lane where there is no GPU."""

    inside = False

    def __init__(self, action):
        assert Tried.inside
        with OnDevice():
            self._found = action()

    def run(self):
        assert Tried.inside
        return self._found

    @staticmethod
    @contextmanager
    def lane():
        Tried.inside = True
        yield
        Tried.inside = False


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize("chosen", [{0, 2}, {0, 1, 2}])
@pytest.mark.parametrize(("algorithm", "batch_size"), [("fedavg", 16), ("fedavg", 128), ("fedprox", 128)])
def test_no_step_and_no_evaluation_reads_from_the_device(
    monkeypatch, suite, algorithm, batch_size, chosen, replayed
):
    """Tensors on "meta" have no values: whatever would bring one to the host raises."""
    meta, parts = torch.device("meta"), [generated(*span) for span in ((0, 40), (40, 50), (50, 90))]
    shape = Shape(parts[0].feature_rows.shape[1], 2)
    model = flat(GinOptions(), parts[0].feature_rows.shape[1])
    shared = model.shared(lambda name: name.startswith("conv"))
    clients = [
        Client(n, size, 0, size, model, shared, model.parameters.to(meta), AdamState(model.trained, meta))
        for n, size in enumerate((40, 10, 40))
    ]
    gin = grouped_network(GinOptions(), model)
    task = make_task("classification", np.arange(2))
    group = ClientGroup(clients, [(part, part) for part in parts], gin, GinOptions().flops(shape), task)
    settings = {"algorithm": algorithm, "batch_size": batch_size, "local_epochs": 2, "kernels": "grouped"}
    (checked,) = check_suite(read(suite, [f"{name}={value}" for name, value in settings.items()]))
    hooks = Hooks(checked.algorithm, 3, Position())
    assert not group._replays(hooks)
    group._device, found = torch.device("cuda"), []
    for is_plugin in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(Hooks, "is_plugin", is_plugin)
            found.append(group._replays(hooks))
    group._device = meta
    assert found == [True, algorithm != "fedprox"]
    monkeypatch.setattr(groups, "Captured", Tried)
    monkeypatch.setattr(ClientGroup, "_replays", lambda self, algorithm: replayed)
    waiting = []
    for start in (lambda: group.train(checked.case, hooks, 0, chosen), lambda: group.evaluate(chosen)):
        group._lane = Tried.lane()
        waiting.append(start())
    assert not Tried.inside
    steps = [2 * -(-size // batch_size) * (n in chosen) for n, size in enumerate((40, 10, 40))]
    assert [client.adam.steps for client in clients] == steps
    for found in waiting:
        with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
            found()


@pytest.mark.parametrize(
    "action",
    [
        lambda x: x.sum().item(),
        lambda x: x[x > 0],
        lambda x: x + torch.tensor([1.0]),
        lambda x: x.to("meta"),
        lambda x: torch.autograd.grad((x.requires_grad_() * 2).sum(), x)[0].nonzero(),
    ],
)
def test_what_a_capture_could_not_take_is_refused(action):
    with OnDevice(), pytest.raises(AssertionError, match="in what is captured"):
        action(torch.ones(3))


def test_where_no_group_is_awaited_before_others_begin_the_longest_begins_first():
    events = []

    def group(number, length):
        def train(case, algorithm, round, chosen):
            events.append(number)
            return lambda: events.append(f"await {number}") or number

        return SimpleNamespace(clients=[], asynchronous=length > 0, length=length, train=train)

    place = None, SimpleNamespace(where=Position())
    for lengths, expected in (
        ((5, 9, 7), [1, 2, 0, "meanwhile", "await 1", "await 2", "await 0"]),
        ((0, 0, 0), [0, "await 0", 1, "await 1", 2, "await 2"]),
    ):
        events.clear()
        states = SimpleNamespace(groups=[group(number, length) for number, length in enumerate(lengths)])
        pending = training._started(*place, states, 0, set(), lambda: events.append("meanwhile"))
        assert [each() for each in pending] == [each for each in expected if isinstance(each, int)]
        assert events == expected


def test_groups_are_of_one_shape_and_follow_the_ids():
    assert groups_of(["a", "b", "a", "a", "b", "a"], 2) == [[0, 2], [1, 4], [3, 5]]
    assert groups_of(["a", "a", "a"], 1) == [[0], [1], [2]]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("matrix", ["parameters", "mean", "square"])
def test_one_lost_number_in_a_row_is_noticed(value, matrix):
    rows = GroupRows.starting(torch.ones(3, 40))
    getattr(rows, matrix)[1, 17] = value
    assert finite(rows).tolist() == [True, False, True]
    assert finite_ends((rows.parameters, rows.mean, rows.square)).tolist() == [True, False, True]


LABELS = """
name = "labels"
[case]
dataset = "BACE"
partition = { name = "iid", clients = 4 }
model = { hidden = 16 }
rounds = 2
batch_size = 64
optimizer = { eps = 0.01 }
"""


def test_a_run_on_labels_scores_as_csr(fedmpi, tmp_path, real_data):
    found = []
    for kernels in (["kernels=csr"], ["kernels=grouped", "group_size=3"]):
        (run,) = runs_of(fedmpi, tmp_path, LABELS, *kernels).values()
        found.append(run.results)
    for name in ("train_loss", "val_loss", "test_loss", "val_roc_auc", "test_roc_auc", "client_test_roc_auc"):
        assert np.allclose(*(each[name] for each in found), rtol=1e-3, equal_nan=True), name
