"""A trained model as a module of torch: outputs, vectors and predictions for graphs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from fedmpi.client.view_batches import views_of
from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.diffusion import ViewedGraphs, diffuse
from fedmpi.graphs.packed import GraphSet
from fedmpi.kernels.vectors import digest
from fedmpi.kinds import Kind
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import MODELS
from fedmpi.objectives.options import OBJECTIVES
from fedmpi.objectives.unsupervised import Network, OneEncoder, network_of
from fedmpi.store.stored import in_words
from fedmpi.trained.about import About
from fedmpi.trained.graphs import asked, prepared
from fedmpi.trained.predictions import READERS, Predictions


class TrainedModel(nn.Module):
    """A client's model as its run evaluated it, in evaluation mode: without dropout.

    Attributes
    ----------
    about : About
        Settings, sizes and names.
    network : Module
        The network, whose state dict a file holds.
    kernels : str
        "csr" takes torch's sparse products, "reference" torch-geometric's layers, where the model has both.

    Raises
    ------
    BadInput
        The tensors are not those of `about`.
    """

    kernels: Literal["csr", "reference"] = "csr"

    def __init__(self, about: About, state: Mapping[str, Tensor]) -> None:
        super().__init__()
        options, objective = _options(MODELS, about.model), _options(OBJECTIVES, about.objective)
        self.about, self._structure = about, options.structure_columns
        self.network = network_of(objective, options, about.shape)
        self.network.load_state_dict(state)
        self._objective: OneEncoder | None = None if objective.supervised else objective.make()
        if digest_of(self.network) != about.parameter_digest:
            raise BadInput("the tensors are not those of this model: their digest is another one")
        self.eval()

    def extra_repr(self) -> str:
        """Return where the model comes from."""
        about = self.about
        whose = f"of {about.client}" if about.client else "of all clients"
        return f"{about.algorithm}'s model {whose} after {about.round} rounds, {about.dataset}"

    def forward(self, graphs: Any) -> Tensor:
        """Return the outputs of graphs, or of their nodes or pairs of nodes, float32 [n, C].

        Of an encoder of an unsupervised objective they are the vectors of graphs, float32 [n, d].

        Parameters
        ----------
        graphs : Data, Batch, graph of networkx, list of these or of SMILES, or str
            See `fedmpi.trained.graphs.own`; or the name of a dataset.

        Raises
        ------
        BadInput
            A graph lacks what the model reads.
        """
        return self._rows(graphs, self._vectors if self._objective else self._outputs)

    @torch.no_grad()
    def embed(self, graphs: Any) -> npt.NDArray[np.float32]:
        """Return the vectors of graphs, or of their nodes or pairs, float32 [n, d], in their order.

        They are what an unsupervised objective is judged by, else what the head of the model reads.

        Parameters
        ----------
        graphs
            The same as the module takes.

        Raises
        ------
        BadInput
            A graph lacks what the model reads.
        """
        vectors: npt.NDArray[np.float32] = self._rows(graphs, self._vectors).cpu().numpy()
        return vectors

    @torch.no_grad()
    def predict(self, graphs: Any) -> Predictions:
        """Return predictions for graphs, in their order.

        Parameters
        ----------
        graphs
            The same as the module takes.

        Raises
        ------
        BadInput
            A graph lacks what the model reads, or outputs are no predictions.
        """
        about = self.about
        if about.outputs == "embeddings":
            raise BadInput(
                f"{about.objective['name']} trains no labels: embed(graphs) has the graphs' vectors"
            )
        if about.outputs not in READERS:
            raise BadInput(
                f"{about.task} with {about.algorithm} predicts by more than the model's outputs: "
                "call the model for these"
            )
        of = self._vectors if about.outputs == "prototypes" else self._outputs
        return READERS[about.outputs](about, self._rows(graphs, of).double())

    def _rows(self, graphs: Any, of: Callable[[GraphSet], Tensor]) -> Tensor:
        """Return what the model says of graphs, or of a dataset by its name, part by part."""
        raw = asked(graphs, self.about)
        return torch.cat([of(part) for part in prepared(raw, self.about, self._structure)])

    def _outputs(self, graphs: GraphSet) -> Tensor:
        outputs: Tensor = self.network(Batch.of(graphs, self._device), None, self.kernels)
        return outputs

    def _vectors(self, graphs: GraphSet) -> Tensor:
        if self._objective is None:
            network: Any = self.network
            embedded: Tensor = network.embed(Batch.of(graphs, self._device), None, self.kernels)
            return embedded
        view = self._objective.options.view if self._objective.embeds_views else None
        part = ViewedGraphs(graphs, None if view is None else diffuse(graphs.topology, view))
        views = views_of(part, self._objective, self._device)
        return self._objective.vectors(Network.of(self.network), views)

    @property
    def _device(self) -> torch.device:
        return next(self.network.parameters()).device


def _options(kind: Kind[Any], table: Mapping[str, Any]) -> Any:
    """Return the options of a model or an objective as they were dumped."""
    found = kind.find(str(table.get("name")))
    try:
        return found.model_validate_json(json.dumps(found.recorded(table)))
    except ValidationError as error:
        raise BadInput(f"{kind.title}: {in_words(error)}") from error


def digest_of(network: nn.Module) -> str:
    """Return the hash of a network's parameter vector, 16 hexadecimal digits, as runs record it."""
    return digest_text(FlatModel(copy.deepcopy(network).cpu()).parameters.numpy())


def digest_text(parameters: npt.NDArray[np.float32]) -> str:
    """Return the hash of a parameter vector."""
    return f"{int(digest(parameters.view(np.uint32))):016x}"
