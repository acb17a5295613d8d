"""A trained model as a module of torch: outputs and predictions for graphs."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fedmpi.datasets.raw import RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.kernels.vectors import digest
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import MODELS
from fedmpi.trained.about import About
from fedmpi.trained.graphs import of_dataset, own, prepared

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """What a model says of n examples, in their order.

    Attributes
    ----------
    names : tuple of str
        Of the columns: classes, labels or numbers.
    labels : list of str or None
        Most probable class of each example, where it has one.
    probabilities : float64 [n, C] or None
        Of classes, which add up to 1, or of each label.
    values : float64 [n, T] or None
        Predicted numbers, in the labels' own units.
    """

    names: tuple[str, ...]
    labels: list[str] | None = None
    probabilities: Floats | None = None
    values: Floats | None = None


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
    """

    kernels: Literal["csr", "reference"] = "csr"

    def __init__(self, about: About, state: Mapping[str, Tensor]) -> None:
        super().__init__()
        kind = MODELS.find(str(about.model.get("name")))
        options = kind.model_validate_json(json.dumps(kind.recorded(about.model)))
        self.about, self._structure = about, options.structure_columns
        self.network = build(options, about.shape)
        self.network.load_state_dict(state)
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

        Parameters
        ----------
        graphs : Data, Batch or list of Data
            Of torch-geometric: see `fedmpi.trained.graphs.own`.

        Raises
        ------
        BadInput
            A graph lacks what the model reads.
        """
        return self._outputs(own(graphs, self.about))

    def _outputs(self, raw: RawGraphs) -> Tensor:
        device = next(self.network.parameters()).device
        parts = prepared(raw, self.about, self._structure)
        return torch.cat([self.network(Batch.of(part, device), None, self.kernels) for part in parts])

    @torch.no_grad()
    def predict(self, graphs: Any) -> Predictions:
        """Return predictions for graphs, in their order.

        Parameters
        ----------
        graphs : Data, Batch, list of Data, or str
            The same as the module takes, or the name of a dataset.

        Raises
        ------
        BadInput
            A graph lacks what the model reads, or outputs are no predictions.
        """
        about = self.about
        if about.outputs == "other":
            raise BadInput(
                f"{about.task} with {about.algorithm} predicts by more than the model's outputs: "
                "call the model for these"
            )
        raw = of_dataset(graphs, about) if isinstance(graphs, str) else own(graphs, about)
        outputs = self._outputs(raw).double()
        if about.outputs == "numbers":
            values = outputs.cpu().numpy() * np.array(about.scale) + np.array(about.center)
            return Predictions(about.names, values=values)
        if about.outputs == "labels":
            return Predictions(about.names, probabilities=outputs.sigmoid().cpu().numpy())
        classes = [about.names[number] for number in outputs.argmax(dim=1).tolist()]
        return Predictions(about.names, classes, outputs.softmax(dim=1).cpu().numpy())


def digest_of(network: nn.Module) -> str:
    """Return the hash of a network's parameter vector, 16 hexadecimal digits, as runs record it."""
    return digest_text(FlatModel(copy.deepcopy(network).cpu()).parameters.numpy())


def digest_text(parameters: npt.NDArray[np.float32]) -> str:
    """Return the hash of a parameter vector."""
    return f"{int(digest(parameters.view(np.uint32))):016x}"
