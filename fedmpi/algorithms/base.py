"""The hooks that every algorithm has, with FedAvg's behaviour as default (imports without torch).

What only some algorithms need are capabilities: `fedmpi.algorithms.capabilities`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.config.options import Options
from fedmpi.models.options import ModelOptions
from fedmpi.seeds import Purpose, key, permutation

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Model = npt.NDArray[np.float32]


class AlgorithmOptions(Options):
    """Options that a suite may set in the case's `algorithm` table."""

    name: str
    """Of the algorithm."""


class Algorithm:
    """Base of all algorithms.

    Subclasses name themselves (`name`), may bring their own `Options`, override the hooks that differ
    from FedAvg's, and derive from the capabilities that they need. Hooks are pure: what they return
    depends on their arguments and the options alone, so every rank gets the same answer.
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

    def __init__(self, options: AlgorithmOptions) -> None:
        self.options = options

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
