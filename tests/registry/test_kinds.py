"""What is found by name: in fedmpi, in plug-in files, in installed packages."""

import subprocess
import sys

import pytest

from fedmpi.config.suite import CaseSettings, read
from fedmpi.datasets.names import families
from fedmpi.errors import BadInput
from fedmpi.registry.check import build, check_suite
from fedmpi.registry.kinds import KINDS
from tests.refusals import refused

MODEL = """from typing import Literal
from fedmpi.models.options import NetworkOptions
class Odd(NetworkOptions):
    name: Literal["{name}"] = "{name}"
    {body}
"""
OBJECTIVE = """from typing import ClassVar, Literal
from fedmpi.objectives.options import ObjectiveOptions
class Odd(ObjectiveOptions):
    name: Literal["odd"] = "odd"
    {body}
"""
PARTITION = """from typing import Literal
from fedmpi.partition.options import OneDataset
class Odd(OneDataset):
    name: Literal["odd"] = "odd"
    {body}
"""
FAMILY = """from fedmpi.datasets.family import Family
class Odd(Family):
    name = "odd"
    names = {names}
    def read(self, path, name): pass
"""
ALGORITHM = """from fedmpi.algorithms.base import Algorithm
class Odd(Algorithm):
    name = "odd"
"""
NETWORK = "def network(self, shape): pass"
DEAL = "def deal(self, raw, classes): return 1 / 0"


def test_fedmpi_brings_some_of_every_kind():
    found = {kind.title: list(kind) for kind in KINDS}
    assert {"fedavg", "gcfl"} <= set(found["algorithm"])
    assert {"gin", "fedgraphnn/gcn", "mvgrl"} <= set(found["model"])
    assert {"supervised", "fclg-h"} <= set(found["objective"])
    assert {"per-dataset", "fedgraphnn"} <= set(found["partition"])
    assert {"citation-full", "moleculenet", "own", "synthetic", "tu"} <= set(found["dataset family"])


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (MODEL.format(name="odd", body=NETWORK), {"model": "odd"}),
        (PARTITION.format(body=DEAL), {"dataset": "PROTEINS", "partition": "odd"}),
        (OBJECTIVE.format(body="def make(self): pass"), {"objective": "odd", "model": "gin-encoder"}),
        (FAMILY.format(names='("odd-1", "odd-2")'), {"dataset": "odd-1+MUTAG"}),
        (ALGORITHM, {"algorithm": "odd"}),
    ],
    ids=["model", "partition", "objective", "family", "algorithm"],
)
def test_the_digest_of_a_plugin_of_any_kind_belongs_to_its_cases_only(plugin, text, settings):
    before = build("suite", CaseSettings("case", {})).case
    digest = plugin(text)
    case = build("suite", CaseSettings("case", settings)).case
    assert case.config()["plugin"] == digest
    after = build("suite", CaseSettings("case", {})).case
    assert after.digest() == before.digest() and "plugin" not in after.config()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MODEL.format(name="odd", body="pass"), "class Odd: it must define `network`, as ModelOptions says"),
        (MODEL.format(name="../odd", body=NETWORK), "name = '../odd': a name is text"),
        (
            MODEL.format(name="odd", body=NETWORK).replace("NetworkOptions", "GinOptions"),
            "it has `network` and also `module` (fedmpi.models.gin:GIN): derive it from a class without `module`",
        ),
        (PARTITION.format(body="pass"), "class Odd: it must define `deal`, as OneDataset says"),
        (OBJECTIVE.format(body="pass"), "class Odd: it must define `make`, as ObjectiveOptions says"),
        (
            OBJECTIVE.format(body="supervised: ClassVar[bool] = True\n    def make(self): pass"),
            "the loss on labels is that of the",
        ),
        (FAMILY.format(names="()").replace("def read", "def write"), "class Odd: it must define `read`"),
        (FAMILY.format(names='"odd"'), "names: must be a tuple of names"),
        (FAMILY.format(names='("../odd",)'), "names: must be a tuple of names"),
    ],
)
def test_a_class_that_is_not_made_as_its_base_asks_for_is_one_line(plugin, text, words):
    with refused(words, match=r"odd\.py"):
        plugin(text)


def test_two_of_one_name_are_refused(plugin):
    plugin(MODEL.format(name="gin", body=NETWORK))
    with pytest.raises(BadInput, match=r'two models are named "gin": in .* and in fedmpi_plugin_odd'):
        build("suite", CaseSettings("case", {}))


def test_two_families_of_one_dataset_are_refused(plugin):
    plugin(FAMILY.format(names='("MUTAG",)'))
    with pytest.raises(BadInput, match='two dataset families know "MUTAG": odd and tu: rename one'):
        families()


def test_what_a_plugin_raises_while_a_case_is_checked_names_its_file(plugin, tmp_path):
    plugin(MODEL.format(name="odd", body=f"{NETWORK}\n    kernels = property(lambda self: 1 / 0)"))
    path = tmp_path / "suite.toml"
    path.write_text('[case]\nmodel = "odd"')
    with pytest.raises(BadInput, match=r"case.plugin: odd.py raised ZeroDivisionError: division by zero"):
        check_suite(read(path))


GROUPS = {
    "fedmpi.models": ("Model", "model"),
    "fedmpi.partitions": ("Partition", "partition"),
    "fedmpi.families": ("Data", "dataset family"),
}


def test_an_installed_package_is_found_by_its_entry_points(tmp_path):
    info = tmp_path / "odd-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    lines = [f"[{group}]\nodd = oddly:{name}" for group, (name, _) in GROUPS.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    parts = [
        MODEL.format(name="odd", body=NETWORK).replace("class Odd", "class Model"),
        PARTITION.format(body=DEAL).replace("class Odd", "class Partition"),
        FAMILY.format(names='("odd-1",)').replace("class Odd", "class Data"),
    ]
    (tmp_path / "oddly.py").write_text("\n".join(parts))
    code = "from fedmpi.registry.kinds import KINDS; print([kind.title for kind in KINDS if 'odd' in kind])"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['model', 'partition', 'dataset family']"
