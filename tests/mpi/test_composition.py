"""Methods put together by inheritance: what the mathematics allows runs, the same on any number of ranks."""

import gc
import sys

import numpy as np
import pytest

from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find

PLUGIN = '''
from typing import Literal

import numpy as np

from fedmpi.algorithms.apfl import Apfl, ApflOptions
from fedmpi.algorithms.ditto import Ditto, DittoOptions
from fedmpi.algorithms.fednova import FedNova
from fedmpi.algorithms.fedper import HEAD
from fedmpi.algorithms.fedproto import FedProto, FedProtoOptions
from fedmpi.algorithms.fedprox import FedProx, FedProxOptions
from fedmpi.algorithms.fedrep import FedRep, FedRepOptions
from fedmpi.algorithms.gcfl import Gcfl, GcflOptions
from fedmpi.algorithms.median import Median
from fedmpi.algorithms.scaffold import Scaffold, ScaffoldOptions
from fedmpi.algorithms.signatures import cosine_similarity


class ScaffoldNovaOptions(ScaffoldOptions):
    """SCAFFOLD's."""

    name: Literal["scaffold-nova"] = "scaffold-nova"


class ScaffoldNova(Scaffold, FedNova):
    """SCAFFOLD whose updates are weighted by their steps."""

    name = "scaffold-nova"
    Options = ScaffoldNovaOptions


class ScaffoldMedianOptions(ScaffoldOptions):
    """SCAFFOLD's."""

    name: Literal["scaffold-median"] = "scaffold-median"


class ScaffoldMedian(Scaffold, Median):
    """SCAFFOLD that moves by medians."""

    name = "scaffold-median"
    Options = ScaffoldMedianOptions


class DittoGcflOptions(DittoOptions, GcflOptions):
    """Of both."""

    name: Literal["ditto-gcfl"] = "ditto-gcfl"


class DittoGcfl(Ditto, Gcfl):
    """Personal models drawn to those of clusters."""

    name = "ditto-gcfl"
    Options = DittoGcflOptions


class RepProxOptions(FedRepOptions, FedProxOptions):
    """Of both."""

    name: Literal["rep-prox"] = "rep-prox"


class RepProx(FedRep, FedProx):
    """FedRep with FedProx's term in both phases."""

    name = "rep-prox"
    Options = RepProxOptions


class ApflPhasesOptions(ApflOptions):
    """APFL's."""

    name: Literal["apfl-phases"] = "apfl-phases"


class ApflPhases(Apfl):
    """APFL after an epoch of the head alone."""

    name = "apfl-phases"
    Options = ApflPhasesOptions

    def train(self, client):
        """Train the head, then as APFL does."""
        client.run_epochs(epochs=1, frozen=lambda name: not name.startswith(HEAD))
        super().train(client)


class ProtoMeansOptions(FedProtoOptions):
    """FedProto's."""

    name: Literal["proto-means"] = "proto-means"


class ProtoMeans(FedProto):
    """Prototypes, and a mean of models for each client by how alike its class means are."""

    name = "proto-means"
    Options = ProtoMeansOptions
    communicates = True
    decides = frozenset({"mixes"})

    def decide(self, server):
        """Tell prototypes and mix models."""
        super().decide(server)
        means = server.messages["means"]
        server.mix(np.maximum(cosine_similarity(means.reshape(len(means), -1)), 0))
'''

NAMES = ("scaffold-nova", "scaffold-median", "ditto-gcfl", "rep-prox", "apfl-phases", "proto-means")

SUITE = """
name = "composed"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
partition = { name = "dirichlet-quantity", clients = 5, alpha = 2.0 }
rounds = 4
participation = 0.8
[matrix]
composed = [
    { label = "scaffold-nova", algorithm = "scaffold-nova", optimizer = "sgd" },
    { label = "scaffold-median", algorithm = "scaffold-median", optimizer = "sgd" },
    { label = "ditto-gcfl", algorithm = { name = "ditto-gcfl", warmup = 1, smallest = 1, eps1 = 10.0, eps2 = 0.0 } },
    { label = "rep-prox", algorithm = { name = "rep-prox", head_epochs = 1, mu = 0.1 } },
    { label = "apfl-phases", algorithm = "apfl-phases" },
    { label = "proto-means", algorithm = "proto-means" },
]
"""


@pytest.fixture
def forgetting():
    """Forget what the plug-in defines."""
    yield
    sys.modules.pop("fedmpi_plugin_composed", None)
    gc.collect()


@pytest.mark.usefixtures("forgetting")
def test_methods_that_do_not_touch_each_other_go_together(fedmpi, tmp_path):
    (tmp_path / "composed.py").write_text(PLUGIN)
    (tmp_path / "composed.toml").write_text(SUITE)
    command = ("run", "composed.toml", "--plugin", "composed.py", "--out")
    done = fedmpi(*command, "alone")
    assert done.returncode == 0, done.stderr
    code, output = find("mpich").run(3, "-m", "fedmpi", *command, "three", cwd=tmp_path, timeout=300)
    assert code == 0, output
    runs = {name: load_run(tmp_path / "alone" / name) for name in NAMES}
    for name in NAMES:
        assert differences(tmp_path / "alone" / name, tmp_path / "three" / name) == []
    assert len(set(runs["ditto-gcfl"].results["group"][-1].tolist())) > 1
    digests = {runs[name].results["parameter_digest"].tobytes() for name in NAMES}
    assert len(digests) == len(NAMES) and np.isfinite(runs["proto-means"].results["test_accuracy"]).all()
