"""FLIT and FLIT+: FedAvg whose clients weigh molecules by how unsure their model is, and the received one.

Zhu, Luo and White, "Federated learning of molecular properties with graph neural networks in a heterogeneous
setting", Patterns 2022. With l the loss of a label by the client's present model, and l' by the model that it
received, the local loss is the mean over the labels of a batch of

    FLIT    w l            w = (1 - exp(-phi / d))^gamma     phi = l + max(l - l', 0)

A label weighs more where the model is unsure, and less sure than the received one. d is the mean of phi over
the batches, decaying by 0.8; each task has its own. FLIT+ measures how unsure a model f is without labels,
too, by virtual adversarial training (Miyato et al. 2018): v = D(f(x), f(x + r)). D is the task's loss with
f(x) for the label. r has length `epsilon` at every node, and the direction in which D grows fastest at
x + xi u, u of random direction. With v' that of the received model,

    FLIT+   w (l + rho v)  phi = l + max(l - l', 0) + lambda (v + max(v - v', 0))

The gradient goes through w, but not through d, l' and v'. The received model and r have no dropout.

The equations are those of the released code, which differs in this: r is in node and edge features after a
first linear layer, here in the nodes' features; u is uniform in a cube; l' and v' are computed once a round;
the first round is FedAvg's; gradients are clipped at norm 1; binary labels pass through a sigmoid first, gaps
among them. Here a missing label is in no mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.program import Batch, Client
from fedmpi.seeds import Purpose, generator, key

_DECAY = 0.8
_LEAST = 1e-7
"""Added to d, and to what gamma raises, whose slope is infinite at 0."""

_LEAST_NORM = 1e-100
"""Of a row in float64. Slopes are short where xi is: the released code's 1e-8 shortens r there."""


class WeighingOptions(AlgorithmOptions):
    """What both have."""

    gamma: float = Field(0.5, ge=0)
    """How much less labels weigh of which the model is sure; 0: not at all. Released: 0.5, 1 or 2."""


class FlitOptions(WeighingOptions):
    """Options of FLIT."""

    name: Literal["flit"] = "flit"


class FlitPlusOptions(WeighingOptions):
    """Options of FLIT+."""

    name: Literal["flit-plus"] = "flit-plus"
    confidence: float = Field(0.1, ge=0)
    """Share of v in phi; the paper's lambda. Released: 0.01, 0.1 or 1."""
    smoothing: float = Field(1.0, ge=0)
    """Share of v in the loss; rho."""
    xi: float = Field(1e-3, gt=0)
    """Length at every node of the step after which the direction of r is taken."""
    epsilon: float = Field(2.5, gt=0)
    """Length of r at every node."""


class Flit(Algorithm):
    """FLIT: FedAvg whose local losses weigh by the model's confidence."""

    name = "flit"
    paper = "Zhu et al., Patterns 2022"
    Options: ClassVar[type[WeighingOptions]] = FlitOptions
    options: WeighingOptions
    needs_labels = True
    reads_outputs = True
    reads_losses = True

    def train(self, client: Client) -> None:
        """Take each step by the gradient of the weighted losses."""
        received, scale = client.model.clone(), None
        for batch in client.batches():
            around = self.around(client, batch, received)
            theirs = measures(batch, *(client.outputs(each, received) for each in (batch, *around)))
            known = ~batch.labels.isnan()

            def loss(*outputs: Any, batch: Batch = batch, theirs: Any = theirs, known: Any = known) -> Any:
                nonlocal scale
                own = measures(batch, *outputs)
                unsure, objective = self.unsure(own, theirs), self.objective(own)
                scale = next_scale(scale, unsure.detach(), known)
                return (weights(unsure, scale, self.options.gamma) * objective)[known].mean()

            beside = self.around(client, batch, client.model)
            client.step(client.model, client.gradient(batch, reported=True, loss=loss, beside=beside))

    def around(self, client: Client, batch: Batch, at: Any) -> Sequence[Batch]:
        """Return the batches at which a model is measured beside the one itself."""
        return ()

    def unsure(self, own: Sequence[Any], theirs: Sequence[Any]) -> Any:
        """Return phi of every label."""
        return _excess(own[0], theirs[0])

    def objective(self, own: Sequence[Any]) -> Any:
        """Return what is weighed of every label."""
        return own[0]

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return one pass of the received model in each epoch."""
        return local_epochs, local_epochs


class FlitPlus(Flit):
    """FLIT+: confidence counts without labels, too, by virtual adversarial training."""

    name = "flit-plus"
    Options = FlitPlusOptions
    options: FlitPlusOptions

    def around(self, client: Client, batch: Batch, at: Any) -> Sequence[Batch]:
        """Return the batch at x + r."""
        features = batch.features
        draws = generator(key(client.seed, Purpose.PERTURBATION, client.id, client.round, client.steps))
        random = features.new_tensor(draws.standard_normal(tuple(features.shape), dtype=np.float32))
        wanted = batch.soft_labels(client.outputs(batch, at))
        slope = client.slope(
            batch.moved(self.options.xi * unit(random)),
            lambda outputs: batch.losses(outputs, wanted).sum(),
            at,
        )
        return (batch.moved(self.options.epsilon * unit(slope)),)

    def unsure(self, own: Sequence[Any], theirs: Sequence[Any]) -> Any:
        """Return phi of every label."""
        (loss, change), (their_loss, their_change) = own, theirs
        return _excess(loss, their_loss) + self.options.confidence * _excess(change, their_change)

    def objective(self, own: Sequence[Any]) -> Any:
        """Return l + rho v."""
        loss, change = own
        return loss + self.options.smoothing * change

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return the passes at x + r, and two for r and one for v' of the received model."""
        return 4 * local_epochs, 4 * local_epochs


def measures(batch: Batch, outputs: Any, *moved: Any) -> list[Any]:
    """Return l of every label, and v of outputs at x + r."""
    wanted = batch.soft_labels(outputs.detach())
    return [batch.losses(outputs), *(batch.losses(each, wanted) for each in moved)]


def weights(unsure: Any, scale: Any, gamma: float) -> Any:
    """Return w of every label.

    Parameters
    ----------
    unsure : float32 [B] or [B, T]
        phi.
    scale : float32 [1] or [1, T]
        d.
    gamma : float
    """
    return (1 - (-unsure / (scale + _LEAST)).exp() + _LEAST) ** gamma


def next_scale(scale: Any, unsure: Any, known: Any) -> Any:
    """Return d after a batch; a task without a label there keeps it, and begins with its first labels.

    Parameters
    ----------
    scale : float32 [1] or [1, T], or None
        None before the first batch.
    unsure : float32 [B] or [B, T]
    known : bool [B] or [B, T]
    """
    count = known.sum(dim=0, keepdim=True)
    mean = (unsure * known).sum(dim=0, keepdim=True) / count.clamp_min(1)
    if scale is None:
        return mean
    decayed = (scale * _DECAY + mean * (1 - _DECAY)).where(scale > 0, mean)
    return decayed.where(count > 0, scale)


def unit(rows: Any) -> Any:
    """Return rows of length 1; zeros stay."""
    wide = rows.double()
    return (wide / wide.norm(dim=1, keepdim=True).clamp_min(_LEAST_NORM)).to(rows.dtype)


def _excess(own: Any, theirs: Any) -> Any:
    """Return a measure, and what it is above that of the received model."""
    return own + (own - theirs).relu()
