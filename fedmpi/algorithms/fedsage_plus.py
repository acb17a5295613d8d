"""FedSage+: FedAvg on parts of a graph that clients have mended with generated neighbours.

Zhang, Yang, Li, Sun and Yiu, "Subgraph federated learning with missing neighbor generation", NeurIPS 2021,
Section 4 and Algorithm 1. Before round 1 each client trains a generator (`fedmpi.models.neighgen`):

1. alone, on its part without a share of its nodes, with the losses of numbers, features and classes
   (L = `number_weight` L^d + `feature_weight` L^f + `class_weight` L^c);
2. with the others (Section 4.3: L^f gets `others_weight` times the sum over all other clients of the squared
   distance of each generated node to that client's nearest node). fGen alone trains then.

It then adds generated nodes to its whole part. The rounds are FedAvg's; with ``model = "sage"`` they are the
paper's. FedSage is FedAvg with that model.

In the paper a client sends states and generator to the others and gets gradients of its generator's weights
back. Here it sends the generated features and gets the gradients of these, summed over the others, and does
the rest of the chain rule itself: the same step with fewer bytes and FLOPs. The sum shows a client more of
the others' nodes than a gradient of weights does.

From the released code: two phases of 20 epochs, of which the second trains fGen alone; all sizes and rates;
`feature_weight` is for means over P and features. That code hides half of the nodes that are in neither
training nor test set, a tenth of all; has the losses of training nodes alone; takes for the other clients'
nodes random neighbours of random nodes; cuts predicted numbers off where fedmpi rounds them; predicts from
the impaired graph in the end; and has convolutions of row means with self loops as encoder and classifier.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.program import Offers, Preparing
from fedmpi.models.generator import Generator, NeighGenFlops

Width = Annotated[int, Field(ge=1, le=16384)]


class FedSagePlusOptions(AlgorithmOptions):
    """Options of FedSage+."""

    name: Literal["fedsage-plus"] = "fedsage-plus"
    hidden_share: float = Field(0.1, gt=0, lt=1)
    """Share of a client's nodes that are hidden while its generator trains; the paper's h."""
    most: int = Field(5, ge=1, le=64)
    """Most neighbours that are generated for a node."""
    hidden: Width = 32
    """Width of the hidden layers of encoder and classifier."""
    latent: Width = 128
    """Width of the states that the encoder gives."""
    generator_hidden: tuple[Width, Width] = Field((256, 2048), strict=False)
    """Widths of fGen's hidden layers."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Of encoder, classifier and fGen."""
    epochs: int = Field(20, ge=1)
    """Epochs in which a client trains its generator alone."""
    exchanges: int = Field(20, ge=0)
    """Epochs after these, with what the other clients answer; 0: no client learns of the others."""
    lr: float = Field(1e-3, gt=0)
    """Of the generator's Adam."""
    weight_decay: float = Field(1e-4, ge=0)
    """Weight of the L2 penalty of the generator."""
    number_weight: float = Field(1.0, ge=0)
    """Weight of the loss of numbers of missing neighbours; the paper's lambda^d."""
    feature_weight: float = Field(1.0, ge=0)
    """Weight of the loss of their features; the paper's lambda^f."""
    class_weight: float = Field(1.0, ge=0)
    """Weight of the loss of classes on the mended graph; the paper's lambda^c."""
    others_weight: float = Field(1.0, ge=0)
    """Weight of the other clients' nodes within the loss of features; the paper's alpha."""


class FedSagePlus(Algorithm):
    """FedAvg on mended parts."""

    name = "fedsage-plus"
    paper = "Zhang et al., NeurIPS 2021, Section 4"
    Options = FedSagePlusOptions
    options: FedSagePlusOptions
    needs_labels = True
    tasks = frozenset({"node-classification"})

    def generator(self) -> Generator:
        """Return NeighGen with the options."""
        return Generator(**self.options.model_dump(exclude={"name"}))

    def prepare(self, client: Preparing) -> Offers:
        """Train a generator alone and with the others, and add what it generates."""
        from fedmpi.models.neighgen_training import NeighGenTraining  # imports torch

        adam = partial(client.adam, lr=self.options.lr, weight_decay=self.options.weight_decay)
        place = client.classes, client.seed, client.id
        own = NeighGenTraining(self.generator(), client.graphs, *place, adam, client.device)
        own.train_alone(client.proceed)
        counts = yield client.count(own.num_rows)
        together = len(counts) > 1 and counts.any()
        for exchange in range(self.options.exchanges if together else 0):
            client.proceed()
            shown = yield client.show(own.generate(exchange))
            others = [rows if number == client.id else own.answer(rows) for number, rows in enumerate(shown)]
            own.learn((yield client.answer(others)))
        client.add_nodes(*own.missing())
        client.work(own.flops)

    @classmethod
    def preparation_flops(
        cls, options: FedSagePlusOptions, nodes: int, edges: int, width: int, classes: int
    ) -> float:
        """Return about what all clients take.

        As many nodes are generated as edges lead to hidden ones, two for each node that gets any. It is too
        much where a partition cuts most edges.
        """
        settings = cls(options).generator()
        flops, kept = NeighGenFlops(settings, width, classes), 1 - settings.hidden_share
        new = int(settings.hidden_share * kept * edges)
        sizes = (int(kept * nodes), int(kept**2 * edges), min(new // 2, int(kept * nodes)), new, new)
        answered = flops.exchange(*sizes) + flops.answers(new, nodes)
        return float(settings.epochs * flops.epoch(*sizes) + settings.exchanges * answered)
