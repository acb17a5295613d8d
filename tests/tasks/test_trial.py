"""Mistakes in a task of a plug-in, made in the worked example of docs/extend-data.md: one line each."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedmpi.config.suite import CaseSettings
from fedmpi.datasets.families.synthetic_networks import NetworkSize, nodes
from fedmpi.errors import BadInput, RankFailed
from fedmpi.registry.check import build
from fedmpi.registry.kinds import load_plugin
from fedmpi.tasks.known import TASKS
from fedmpi.tasks.trial import examples_of, guard, try_out
from tests.plugins import forgotten
from tests.refusals import refused, table
from tests.tasks.making import make_raw, make_task

PAGE = (Path(__file__).parents[2] / "docs" / "extend-data.md").read_text()
(EXAMPLE,) = re.findall(r"`edgecount\.py`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)
LABELS = np.array([[1.0], [4.0], [2.0]])


@pytest.fixture
def plugin(tmp_path):
    """Return a function that loads a plug-in with some of its text replaced; its classes are gone afterwards."""
    with forgotten(tmp_path) as plugins:

        def load(old="", new="", text=EXAMPLE):
            assert old in text
            plugins("edgecount", text.replace(old, new))

        yield load


def trial():
    """Do what a run does with the task before it trains."""
    raw = make_raw(np.zeros(3, np.int64), "classification")
    task = TASKS["edge-count"]
    made = examples_of(task, raw)
    try_out(make_task(made.task, made.labels, name="edge-count"), 1, made.labels)
    return made


def test_the_example_passes(plugin):
    plugin()
    made = trial()
    assert (made.task, made.class_names, made.labels.tolist()) == ("regression", ("edges",), [[0.0]] * 3)


def test_a_task_on_nodes_has_a_label_for_each_node(plugin):
    by_node = EXAMPLE.replace("row_ptr[raw.topology.graph_ptr]", "row_ptr")
    labels = 'labels: ClassVar[str] = "reg'
    plugin(text=by_node.replace(labels, f'of = "node"\n    {labels}'))
    assert examples_of(TASKS["edge-count"], nodes(NetworkSize())).labels.shape == (600, 1)
    short = replace(nodes(NetworkSize()), places=np.arange(599))
    with refused(match=r"labels must be \[599, 1\], a row for each node"):
        examples_of(TASKS["edge-count"], short)


BEFORE = """
[:, None].astype => [1:, None].astype
    -> `examples` in FILE returned a ndarray [2, 1]: labels must be [3, 1]
[:, None].astype => .astype -> returned a ndarray [3]: labels must be [3, 1]
("edges",) => ("a", "b") -> a row for each graph, a column per name
("edges",) => "edges" -> class_names must be a tuple of texts
, task="regression") => , task="counts") -> returned 'counts': task must be one of
.astype(np.float64) => .astype(complex) -> returned 'complex128': labels must be floats
.astype(np.float64) => .astype(object) -> returned 'object': labels must be floats
labels=counts => name='x', labels=counts -> changed name: it may change labels, class_names, task only
return replace( => return exit(3) or replace( -> `examples` in FILE raised SystemExit: 3
return replace( => return None and replace( -> `examples` in FILE returned None: a RawGraphs
return replace( => return 1 / 0 or replace( -> `examples` in FILE raised ZeroDivisionError
astype(np.float64) => astype(np.float64) + np.inf -> gave graph 0 an infinite label
outputs.exp() - labels * outputs => outputs.sum() -> `losses` in FILE returned a Tensor []: a torch
outputs.exp() - labels * outputs => outputs.detach() -> [3, 1], without a gradient: a torch tensor
outputs.exp() - labels * outputs => outputs[:, 0] -> returned a Tensor [3]: a torch tensor [3, 1]
outputs.double().exp() => outputs.numpy() -> `predictions` in FILE returned a ndarray [3, 1]
outputs.double().exp() => None -> `predictions` in FILE returned None
outputs.double().exp() => outputs.nope() -> raised AttributeError: 'Tensor' object has no
+ predicted, axis=0) => + predicted) -> for poisson_deviance; a float array [1] is
return mae(labels, predicted) => return None -> returned None: for mae; a float array [1]
"""
LOADED = """
def losses => def loss -> class EdgeCount: it must define `losses`
def score => def scores -> class EdgeCount: it must define `score`
@classmethod => -> `examples` must be a @classmethod
(DEVIANCE, MAE) => DEVIANCE -> it must be a tuple of Metric
(DEVIANCE, MAE) => (MAE, MAE) -> metrics: two have one name (`mae`, `mae`)
"poisson_deviance" => "rmse" -> metrics: "rmse" is another metric of fedmpi: rename it
"poisson_deviance" => "loss" -> metrics: "loss" is a field of every record: rename it
"poisson_deviance" => "Poisson deviance" -> a name is of a-z, 0-9 and _
"lower" => "smaller" -> better = 'smaller': it is "higher" or "lower"
"pooled" => "graphs" -> scope = 'graphs': it is "client" or "pooled" or "all"
high=float("inf") => high=-1 -> metric "poisson_deviance": low = 0.0 is not below high = -1
loss_unit = "nat" => loss_unit = 3 -> loss_unit must be a text
"pooled" => "client" -> a PooledTask has one value over all held-out examples: scope = "pooled"
loss_unit = => kernels = frozenset({"compiled"}); loss_unit = -> kernels: those of a plug-in's
"""
"""What of the example's text is changed => into what -> what is said of it."""


@pytest.mark.parametrize(("change", "words"), table(BEFORE))
def test_what_comes_back_wrong_is_one_line_before_anything_is_trained(plugin, tmp_path, change, words):
    plugin(*change.split(" => "))
    with refused(words.replace("FILE", str(tmp_path / "edgecount.py")), match="^task edge-count: "):
        trial()


@pytest.mark.parametrize(("change", "words"), table(LOADED))
def test_a_class_that_is_made_wrong_is_refused_when_it_is_loaded(plugin, change, words):
    old, _, new = change.partition(" =>")
    with refused(words, match=r"edgecount\.py"):
        plugin(old, new.strip())


DERIVED = """
from fedmpi.tasks.{module} import {base}
class Upwards({base}):
    name = "edge-count"
    {body}
"""


@pytest.mark.parametrize(
    ("module", "base", "body", "kernels"),
    [
        ("graph_classification", "GraphClassification", "def loss(self, *a): return -super().loss(*a)", "csr"),
        ("graph_classification", "GraphClassification", "def outcome(self, *a): return super().outcome(*a)", "csr"),
        ("graph_classification", "GraphClassification", "title = 'the same'", "compiled"),
        ("regression", "Regression", "def losses(self, *a): return -super().losses(*a)", "csr"),
        ("regression", "Regression", "def predictions(self, outputs): return -outputs", "csr"),
    ],
)  # fmt: skip
def test_a_derived_task_with_a_loss_of_its_own_has_kernels_that_call_it(plugin, module, base, body, kernels):
    plugin(text=DERIVED.format(module=module, base=base, body=body))
    data = {} if base == "GraphClassification" else {"dataset": "FreeSolv", "model": "fedgraphnn/gcn"}
    data |= {} if not data else {"partition": "fedgraphnn"}
    case = build("suite", CaseSettings("case", {"task": "edge-count", **data})).case
    assert case.kernels == kernels
    if kernels == "csr":
        settings = {"task": "edge-count", "kernels": "compiled", **data}
        with pytest.raises(Exception, match='"compiled" cannot run task "edge-count"'):
            build("suite", CaseSettings("case", settings))


def test_predictions_that_are_nan_of_finite_outputs_end_the_run(plugin):
    import torch

    plugin("outputs.double().exp()", "outputs.double() * np.nan")
    task = make_task("regression", LABELS, name="edge-count")
    with pytest.raises(RankFailed, match="`predictions` made NaN of finite outputs"):
        task.outcome(torch.zeros(3, 1), torch.from_numpy(LABELS).float())


@pytest.mark.parametrize(("module", "base"), [("regression", "Regression"), ("multi_label", "MultiLabel")])
def test_a_task_that_makes_its_labels_decides_what_fits_them(plugin, module, base):
    body = "@classmethod\n    def examples(cls, raw): return raw"
    plugin(text=DERIVED.format(module=module, base=base, body=body))
    settings = CaseSettings("case", {"task": "edge-count", "dataset": "PROTEINS"})
    assert build("suite", settings).case.kernels == "csr"
    own = {"name": "gin", "head": "own"}
    with pytest.raises(Exception, match='"own" is for graphs with one class each'):
        build("suite", CaseSettings("case", {"task": "edge-count", "dataset": "PROTEINS", "model": own}))


def test_a_task_that_does_not_read_targets_refuses_them(plugin):
    plugin()
    with pytest.raises(BadInput, match=r'task "edge-count" does not read dataset.targets: use "raw"'):
        make_task("regression", LABELS, targets="standardised", name="edge-count")


def test_two_plugins_of_one_file_name_are_refused(plugin, tmp_path):
    plugin()
    other = tmp_path / "other" / "edgecount.py"
    other.parent.mkdir()
    other.write_text(EXAMPLE + "\n")
    with refused(match=r"another plug-in has this name: .*; rename one of them"):
        load_plugin(other)


def test_what_a_task_raises_in_a_run_names_task_method_and_file(plugin):
    import torch

    plugin("return outputs.double().exp()", "exit(0)")
    task = make_task("regression", LABELS, name="edge-count")
    guard(task)
    with pytest.raises(RankFailed, match=r"task edge-count: `outcome` in .*edgecount.py ended the process"):
        task.outcome(torch.zeros(3, 1), torch.from_numpy(LABELS).float())
    with pytest.raises(ZeroDivisionError) as error:
        task.score = lambda *_: 1 / 0
        task.rows(np.zeros(0, np.uint8))
    assert "task edge-count: `rows` in" in error.value.__notes__[0]
