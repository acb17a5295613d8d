"""Models of plug-in files, from their runs and from files."""

from pathlib import Path

import pytest
import torch

import fedmpi
from fedmpi.config.tables import toml_document
from fedmpi.errors import BadInput
from tests.plugins import forgotten
from tests.trained.conftest import CASE, held_out_of, listed

OWN = """
from typing import Literal
from fedmpi.models.options import GinOptions
class OwnOptions(GinOptions):
    name: Literal["own"] = "own"
"""


@pytest.fixture
def plugins(tmp_path):
    with forgotten(tmp_path) as made:
        yield made


@pytest.fixture
def folder(plugins, command):
    """A run of a plug-in's model."""
    path = plugins.write("own", OWN)
    suite = {"name": "home", "case": CASE | {"algorithm": "fedavg", "model": "own"}}
    Path("home.toml").write_text(toml_document(suite))
    command("run", "home.toml", "--plugin", path, "--out", "runs", code=0)
    return next(Path("runs").iterdir())


def test_a_plugins_model_is_loaded_from_its_run_and_from_a_file(folder, plugins, command, tmp_path):
    given = ("--client", "synthetic-1", "--model", "one.pt", "--plugin", "own.py")
    command("export", folder, *given, code=0)
    graphs = listed(held_out_of(folder, 1).graphs)
    expected = fedmpi.load_model(folder, "synthetic-1")(graphs)
    plugins.write("own", OWN)
    with pytest.raises(BadInput, match=r'one\.pt: model: there is no "own"'):
        fedmpi.load_model("one.pt")
    assert torch.equal(fedmpi.load_model("one.pt", plugins=["own.py"])(graphs), expected)


def test_another_version_of_a_plugin_is_refused(folder, plugins):
    path = plugins.write("own", OWN + "    # changed\n")
    with pytest.raises(BadInput, match=r"was made with another version of own\.py"):
        fedmpi.load_model(folder, "synthetic-1", plugins=[path])


def test_without_its_plugin_a_run_is_refused(folder, plugins):
    plugins.write("own", OWN)
    with pytest.raises(BadInput, match=r'its stored configuration: model: there is no "own"'):
        fedmpi.load_model(folder, "synthetic-1")
