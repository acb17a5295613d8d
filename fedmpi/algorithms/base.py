"""The hooks of an algorithm, with FedAvg's behaviour as default (imports without torch)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms import program
from fedmpi.config.options import Options
from fedmpi.models.options import ModelOptions
from fedmpi.seeds import Purpose, key, permutation
from fedmpi.store.schema import Field

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Model = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float32]
Fields = tuple[Field, ...]


class AlgorithmOptions(Options):
    """Options that a suite may set in the case's `algorithm` table."""

    name: str
    """Of the algorithm."""


class Algorithm:
    """Base of all algorithms.

    Subclasses name themselves (`name`), may bring their own `Options`, and override the hooks that differ
    from FedAvg's. Hooks are pure: what they return depends on their arguments and the options alone, so every
    rank gets the same answer.
    """

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    """Where it was published, for the reference of settings."""
    Options: ClassVar[type[AlgorithmOptions]] = AlgorithmOptions
    communicates: ClassVar[bool] = True
    """False: after the common start no parameters travel and each client keeps what it trained."""
    pools: ClassVar[bool] = False
    """True: one client holds what all clients of the partition hold."""
    reads_share: ClassVar[bool] = True
    """False: `shares` does not depend on the case's option `share`."""
    sends: ClassVar[tuple[str, ...]] = ()
    """Names of vectors that travel behind the model and behind the updates, each as long as these."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Names of numbers that each participant reports; one that is not finite ends the run as diverged."""
    decides: ClassVar[frozenset[program.Decision]] = frozenset()
    """What `decide` makes in a round."""
    asks: ClassVar[frozenset[program.Ask]] = frozenset()
    """What `decide` asks for, beside the reports."""
    tasks: ClassVar[frozenset[str]] = frozenset()
    """Names of the tasks that it is for; empty: all."""
    needs_sgd: ClassVar[bool] = False
    """True: the clients' optimizer is plain SGD."""
    needs_labels: ClassVar[bool] = False
    """True: it is for supervised objectives."""
    needs_classes: ClassVar[bool] = False
    """True: it is for tasks of one class per graph."""
    reads_embeddings: ClassVar[bool] = False
    """True: its programs use embeddings of graphs."""
    reads_outputs: ClassVar[bool] = False
    """True: its programs use outputs of models for graphs, or losses of them."""
    reads_losses: ClassVar[bool] = False
    """True: its programs use the task's loss of each label, `Batch.losses`."""
    runs_network: ClassVar[bool] = False
    """True: its server runs the clients' network, `network`, which they share whole."""

    central: ClassVar[bool] = False
    """True: `update` uses `server`, and so runs on rank 0 for every group."""

    def __init__(self, options: AlgorithmOptions) -> None:
        self.options = options
        self.server: dict[str, npt.NDArray[Any]] = {}
        self.network: Any = None
        """A `program.Network` from `begin` on, where `runs_network`."""

    def validate(self, model: ModelOptions) -> None:
        """Check, before a run, whether the algorithm can train this model with its options.

        Raises
        ------
        BadInput
            It cannot; the message completes a sentence that begins with the algorithm's name, and says
            what to do.
        """

    def remark(self, participants: int, one_step: bool) -> str:
        """Return what the user should know of this run where it is another algorithm's; by default nothing.

        Parameters
        ----------
        participants : int
            Clients that train in a round.
        one_step : bool
            Whether every client takes a single step per round.
        """
        return ""

    def begin(self, trained: int, num_clients: int) -> None:
        """Prepare for the run; called once before round 1, on every rank.

        Parameters
        ----------
        trained : int
            Number of shared parameters. Running statistics follow them in every shared vector.
        num_clients : int
        """

    def server_memory(self, trained: int, num_clients: int) -> Mapping[str, npt.NDArray[Any]]:
        """Return what the server keeps from round to round, as it is before the first; by default nothing.

        On rank 0 it is `self.server`, where names, types and shapes stay. It is in every checkpoint. All else
        on `self` stays as `begin` left it.

        Parameters
        ----------
        trained, num_clients : int
            As for `begin`.
        """
        return {}

    def warm_up(self) -> None:
        """Do on rank 0 what the first use of a library costs; called once before rounds are timed."""

    def participants(self, seed: int, round: int, num_clients: int, fraction: float) -> Ints:
        """Return the clients that train in this round, ascending: a sample without replacement.

        Parameters
        ----------
        seed : int
            The case's seed, of which the sample is drawn.
        round : int
            0-based.
        num_clients : int
        fraction : float
            Participation: share of the clients that train, in (0, 1].
        """
        count = max(1, round_half_up(fraction * num_clients))
        if count >= num_clients:
            return np.arange(num_clients, dtype=np.int64)
        stream = key(seed, Purpose.PARTICIPATION, round)
        return np.sort(permutation(stream, num_clients)[:count])

    def prepare(self, client: program.Preparing) -> program.Offers | None:
        """Prepare a client before round 1, in exchanges with the others; a resumed run does it again.

        ``numbers = yield client.count(n)`` and so on: see `Preparing`. By default nothing.
        """
        return None

    @classmethod
    def preparation_flops(cls, options: Any, nodes: int, edges: int, width: int, classes: int) -> float:
        """Return about the FLOPs of `prepare` on a whole graph, for estimates of a run's time.

        Parameters
        ----------
        options
            The algorithm's.
        nodes, edges, width, classes : int
            Of the graph; edges in both directions, and the width of the features.
        """
        return 0.0

    def memory(self, tensors: program.Tensors) -> Mapping[str, program.Memory]:
        """Return what a client keeps from round to round, by name; by default nothing."""
        return {}

    def moments(self, tensors: program.Tensors) -> Mapping[str, program.Size]:
        """Return which moments of the optimizer there are beside the model's, and how long they are."""
        return {}

    def change(self, gradient: Any, model: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """Add to the gradient of the shared parameters in place, in every local step; by default nothing.

        Parameters
        ----------
        gradient, model, received : float32 [shared], torch
            Of the local loss; the model, and what was received, without tensors that are not shared.
        memory : mapping of str to float32 [*], torch
            The client's, and the vectors of `sends` as they were received.
        """

    def train(self, client: program.Client) -> None:
        """Train a client in a round; by default the case's local epochs."""
        client.run_epochs()

    def trained(self, client: program.Client) -> None:
        """Renew what a client keeps and sends, after its training."""

    def evaluated(self, client: program.Evaluated) -> Any:
        """Return the parameters that are evaluated, a model vector; by default the client's model."""
        return client.model

    def predict(self, client: program.Evaluated) -> Any:
        """Return what is predicted of every held-out graph; by default None: the evaluated model's outputs.

        Classes, int64 [n], torch; or outputs, float32 [n, C], which give all scores and the loss.
        """
        return None

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, program.Message]:
        """Return what each participant sends to the server as it is, by name; by default nothing."""
        return {}

    def tells(self, model: ModelOptions, classes: int) -> Mapping[str, program.Message]:
        """Return what all clients get from the server, by name, each float32; by default nothing."""
        return {}

    def fields(self, num_clients: int) -> Fields:
        """Return fields of the record beside the common ones; `decide` records their values."""
        return ()

    def decide(self, server: program.Server) -> program.Conversation | None:
        """Decide, on rank 0, what `decides` names, and tell what `tells` names; once a round.

        It may ask for what `asks` names: ``rows = yield server.rows(server.participants)``.
        """
        return None

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return how often a client goes over its training graphs in a round: for steps, and beside them.

        For estimates of the work.
        """
        return local_epochs, 0

    def groups(self, num_clients: int) -> Ints:
        """Return the group of each client at the start, int64 [clients]; each group has its own model."""
        return np.zeros(num_clients, dtype=np.int64)

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client; normalisation by graph (``graph_norm.*``) does not.

        Parameters
        ----------
        name : str
            Of a parameter or a running statistic, as its module has it; what is shared must not depend
            on the client's features and classes.
        share : str
            The case's option: "conv" (the convolutions, tensors named ``conv.*``, with their
            normalisation, ``norm.*``, and a structure channel, ``structure.*``) or "all".
        """
        if name.startswith("graph_norm."):
            return False
        return share == "all" or name.startswith(("conv.", "norm.", "structure."))

    def weights(self, samples: Ints) -> Ints | Floats:
        """Return each client's weight in averages, [clients], from its number of training graphs.

        Only ratios count. Whole numbers are taken as they are, others in 29 bits of the largest.
        """
        return samples

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Return a group's next model from its present one and the weighted mean of its updates.

        Parameters
        ----------
        model : float32 [shared]
        mean : float64 [shared]
        num_clients : int
            Clients behind the mean.
        """
        return (model + mean).astype(np.float32)


def round_half_up(value: float) -> int:
    """Round to the nearest integer, halves up."""
    return int(np.floor(value + 0.5))
