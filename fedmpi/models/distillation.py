"""FedTAD's server (Zhu et al., IJCAI 2024): pseudo graphs, on which it distils the clients' models."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from fedmpi.graphs.packed import Topology, pointers

Outputs = Callable[[Tensor, Topology, Tensor], Tensor]
"""Gives the outputs of a model vector for the nodes of a graph, [N, C]: topology, and features [N, d]."""


@dataclass(frozen=True)
class Settings:
    """What `fedmpi.algorithms.fedtad.FedTadOptions` says of the server."""

    nodes: int
    noise: int
    neighbours: int
    graphs: int
    generator_steps: int
    model_steps: int
    generator_lr: float
    model_lr: float
    weight_decay: float
    semantic: float
    diversity: float


class NodeGenerator(nn.Module):
    """Features of nodes [N, d] from noise [N, z] and classes [N]: three layers with tanh, and a Linear.

    Parameters
    ----------
    noise, width, classes : int
        Numbers z, d, and of classes.
    hidden : sequence of int
        Widths of the layers.
    """

    def __init__(self, noise: int, width: int, classes: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, classes)
        widths = (noise + classes, *hidden)
        layers = ((nn.Linear(*pair), nn.Tanh()) for pair in pairwise(widths))
        self.layers = nn.Sequential(*(part for pair in layers for part in pair))
        self.last = nn.Linear(widths[-1], width)

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Return the features."""
        return self.last(self.layers(torch.cat([self.embed(labels), noise], dim=1)))  # type: ignore[no-any-return]

    @torch.no_grad()
    def load(self, values: npt.NDArray[np.float32]) -> None:
        """Take back what `values` returned."""
        pieces = torch.split(torch.tensor(values), [each.numel() for each in self.parameters()])
        for parameter, piece in zip(self.parameters(), pieces, strict=True):
            parameter.copy_(piece.view_as(parameter))

    @torch.no_grad()
    def values(self) -> npt.NDArray[np.float32]:
        """Return all parameters as one vector."""
        found: npt.NDArray[np.float32] = torch.cat([each.flatten() for each in self.parameters()]).numpy()
        return found


@dataclass(frozen=True)
class Taught:
    """Whom the global model learns from.

    Attributes
    ----------
    models : sequence of float32 [shared]
        Of the clients.
    shares : float32 [k, C]
        How much each is heard of each class.
    """

    models: Sequence[Tensor]
    shares: Tensor


class Distillation:
    """The adversarial game of generator and global model in one round.

    Parameters
    ----------
    settings : Settings
    generator : NodeGenerator
    outputs : callable
    memory : mapping of str to array
        Moments of both Adams, and how many steps each took: "generator_first", "generator_second",
        "generator_steps"; "model_first" and so on. Changed in place.
    """

    def __init__(
        self,
        settings: Settings,
        generator: NodeGenerator,
        outputs: Outputs,
        memory: MutableMapping[str, npt.NDArray[Any]],
    ) -> None:
        self._settings, self._generator, self._outputs, self._memory = settings, generator, outputs, memory

    def run(
        self, model: Tensor, trained: int, taught: Taught, noise: Callable[[int], npt.NDArray[np.float32]]
    ) -> Tensor:
        """Return the global model after the game, float32 [shared].

        Parameters
        ----------
        model : float32 [shared]
        trained : int
            Its first elements, which learn; running statistics follow.
        taught : Taught
        noise : callable
            Returns the numbers of a pseudo graph, float32 [N, z].
        """
        settings, statistics = self._settings, model[trained:]
        parameters = model[:trained].clone().requires_grad_()
        labels = classes_of_nodes(settings.nodes, taught.shares.shape[1])
        weights = taught.shares[:, labels] / labels.bincount(minlength=taught.shares.shape[1])[labels]
        ours = self._adam("generator", list(self._generator.parameters()), settings.generator_lr)
        theirs = self._adam("model", [parameters], settings.model_lr)
        for number in range(settings.graphs):
            drawn = torch.tensor(noise(number))
            for _ in range(settings.generator_steps):
                ours.zero_grad()
                whole = torch.cat([parameters.detach(), statistics])
                self._generator_loss(whole, taught, weights, drawn, labels).backward()  # type: ignore[no-untyped-call]
                ours.step()
            with torch.no_grad():
                features = self._generator(drawn, labels)
                graph = nearest_neighbours(features, settings.neighbours)
                wanted = [self._outputs(each, graph, features) for each in taught.models]
            for _ in range(settings.model_steps):
                theirs.zero_grad()
                found = self._outputs(torch.cat([parameters, statistics]), graph, features)
                divergence(found, wanted, weights).backward()  # type: ignore[no-untyped-call]
                theirs.step()
        self._keep("generator", ours)
        self._keep("model", theirs)
        return torch.cat([parameters.detach(), statistics])

    def _generator_loss(
        self, model: Tensor, taught: Taught, weights: Tensor, noise: Tensor, labels: Tensor
    ) -> Tensor:
        """Return L_G: classes that the clients know, apart from the global model, of nodes that differ."""
        features = self._generator(noise, labels)
        graph = nearest_neighbours(features.detach(), self._settings.neighbours)
        clients = [self._outputs(each, graph, features) for each in taught.models]
        semantic = semantic_loss(clients, labels, weights)
        apart = divergence(
            self._outputs(model, graph, features), [each.detach() for each in clients], weights
        )
        alike = len(clients) * likeness(features, noise)
        return self._settings.semantic * semantic - apart + self._settings.diversity * alike

    def _adam(self, name: str, parameters: list[Any], lr: float) -> torch.optim.Adam:
        """Return Adam as it was left in the last round."""
        adam = torch.optim.Adam(parameters, lr, weight_decay=self._settings.weight_decay, foreach=False)
        moments = [
            torch.split(torch.tensor(self._memory[f"{name}_{order}"]), [each.numel() for each in parameters])
            for order in ("first", "second")
        ]
        steps = torch.tensor(self._memory[f"{name}_steps"][0])
        for parameter, first, second in zip(parameters, *moments, strict=True):
            state = {"exp_avg": first.view_as(parameter), "exp_avg_sq": second.view_as(parameter)}
            adam.state[parameter] = {"step": steps.clone(), **state}
        return adam

    def _keep(self, name: str, adam: torch.optim.Adam) -> None:
        """Note how Adam is left."""
        states = [adam.state[each] for each in adam.param_groups[0]["params"]]
        for order, moment in (("first", "exp_avg"), ("second", "exp_avg_sq")):
            self._memory[f"{name}_{order}"][:] = torch.cat(
                [each[moment].flatten() for each in states]
            ).numpy()
        self._memory[f"{name}_steps"][:] = float(states[0]["step"])


def classes_of_nodes(nodes: int, classes: int) -> Tensor:
    """Return the class of each pseudo node, ascending, as many of each; the last has those that are left."""
    each = nodes // classes
    labels = torch.arange(classes).repeat_interleave(each)
    return torch.cat([labels, torch.full((nodes - each * classes,), classes - 1)])


def nearest_neighbours(features: Tensor, neighbours: int) -> Topology:
    """Return a graph of edges from each node to those of the largest cosines, itself counted, and back."""
    unit = normalize(features, dim=1)
    order = torch.argsort(unit @ unit.T, dim=1, descending=True, stable=True)[:, :neighbours].numpy()
    nodes = len(features)
    joined = np.zeros((nodes, nodes), np.bool_)
    joined[np.arange(nodes)[:, None], order] = True
    joined |= joined.T
    np.fill_diagonal(joined, False)
    receivers, senders = np.nonzero(joined)
    return Topology(np.array([0, nodes]), pointers(np.bincount(receivers, minlength=nodes)), senders)


def semantic_loss(outputs: Sequence[Tensor], labels: Tensor, weights: Tensor) -> Tensor:
    """Return the sum over clients and classes of share times mean cross-entropy; weights [k, N] of nodes."""
    losses = [cross_entropy(each, labels, reduction="none") for each in outputs]
    return (torch.stack(losses) * weights).sum()


def divergence(model: Tensor, clients: Sequence[Tensor], weights: Tensor) -> Tensor:
    """Return the sum over clients and classes of share times mean absolute difference of outputs [N, C]."""
    apart = [(model - each).abs().mean(dim=1) for each in clients]
    return (torch.stack(apart) * weights).sum()


def likeness(features: Tensor, noise: Tensor) -> Tensor:
    """Return exp of minus the mean over pairs of nodes of the mean differences of features times noise's.

    Absolute differences of features, squared ones of noise.
    """
    apart = torch.cdist(features, features, p=1.0) / features.shape[1]
    drawn = (noise[:, None] - noise[None]).square().mean(dim=2)
    return (-(drawn * apart).mean()).exp()
