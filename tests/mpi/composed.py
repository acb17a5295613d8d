"""A plug-in of methods put together by inheritance: what the mathematics allows runs."""

from typing import Literal

import numpy as np
from pydantic import create_model

from fedmpi.algorithms.apfl import Apfl
from fedmpi.algorithms.ditto import Ditto
from fedmpi.algorithms.fednova import FedNova
from fedmpi.algorithms.fedper import HEAD
from fedmpi.algorithms.fedproto import FedProto
from fedmpi.algorithms.fedprox import FedProx
from fedmpi.algorithms.fedrep import FedRep
from fedmpi.algorithms.gcfl import Gcfl
from fedmpi.algorithms.median import Median
from fedmpi.algorithms.scaffold import Scaffold
from fedmpi.algorithms.signatures import cosine_similarity


def options(name, *methods):
    """Return the options of all these methods, under a name."""
    bases = tuple(dict.fromkeys(method.Options for method in methods))
    return create_model("Options", __base__=bases, __module__=__name__, name=(Literal[name], name))


class ScaffoldNova(Scaffold, FedNova):
    """SCAFFOLD whose updates are weighted by their steps."""

    name = "scaffold-nova"
    Options = options(name, Scaffold)


class ScaffoldMedian(Scaffold, Median):
    """SCAFFOLD that moves by medians."""

    name = "scaffold-median"
    Options = options(name, Scaffold)


class DittoGcfl(Ditto, Gcfl):
    """Personal models drawn to those of clusters."""

    name = "ditto-gcfl"
    Options = options(name, Ditto, Gcfl)


class RepProx(FedRep, FedProx):
    """FedRep with FedProx's term in both phases."""

    name = "rep-prox"
    Options = options(name, FedRep, FedProx)


class ApflPhases(Apfl):
    """APFL after an epoch of the head alone."""

    name = "apfl-phases"
    Options = options(name, Apfl)

    def train(self, client):
        """Train the head, then as APFL does."""
        client.run_epochs(epochs=1, frozen=lambda name: not name.startswith(HEAD))
        super().train(client)


class ProtoMeans(FedProto):
    """Prototypes, and a mean of models for each client by how alike its class means are."""

    name = "proto-means"
    Options = options(name, FedProto)
    communicates = True
    decides = frozenset({"mixes"})

    def decide(self, server):
        """Tell prototypes and mix models."""
        super().decide(server)
        means = server.messages["means"]
        server.mix(np.maximum(cosine_similarity(means.reshape(len(means), -1)), 0))
