"""Clipped updates, and noise that makes their means differentially private by client (docs/privacy.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.reductions import ClippedOptions
from fedmpi.case.schema import Case
from fedmpi.client.state import two_norm
from fedmpi.comm.reductions import Fixed32
from fedmpi.compression.base import Shape
from fedmpi.errors import BadInput
from fedmpi.exchange.link import Floats, Ints, Link
from fedmpi.exchange.noise import Uniforms, discrete_gaussian, gaussian
from fedmpi.seeds import Purpose
from fedmpi.store.schema import Field

if TYPE_CHECKING:  # what is refused before MPI starts must not import it
    from fedmpi.exchange.updates import Updates

EPSILON = Field(
    "epsilon",
    ("round",),
    "f8",
    "1",
    "privacy loss of the rounds so far at the case's delta, one client replaced by another",
    "result",
    "lower",
)

_BELOW = 1 - 2.0**-23
"""Keeps the norm of a shortened update at most C when its elements are rounded to float32."""

_STEPS = 4
"""Least standard deviation of a participant's share of noise, in steps of the grid: the sum of shares is a
discrete Gaussian but for exp(-16 pi^2), less than 1e-68."""

_DEVIATIONS = 10
"""Standard deviations of the noise for which a sum at a public exponent has room."""


def deviation(case: Case, size: int, sampled: int) -> float:
    """Return the standard deviation of the noise in a round's mean.

    One client changes the mean by at most C / n; on a grid of step s, to which its summand of d elements
    is rounded, by up to sqrt(d) s / 2 more.
    """
    assert isinstance(case.privacy, Private)
    step = 0.0
    if isinstance(case.reduction, ClippedOptions):
        step = Fixed32(sampled, case.reduction.clip).step
    return case.privacy.noise_multiplier * (case.privacy.clip / sampled + math.sqrt(size) * step / 2)


def elements(case: Case, shapes: Sequence[Shape]) -> int:
    """Return to how many elements noise is added: of a mean of tensors of these shapes, or of a summand."""
    compressor = None
    if isinstance(case.privacy, Private) and case.privacy.distributed:
        compressor = case.compression.make(shapes, 0)
    return sum(map(math.prod, shapes)) if compressor is None else compressor.summed


def refuse_unfit(case: Case, size: int, sampled: int, statistics: Sequence[str]) -> None:
    """Raise BadInput where clipping cannot bound what is sent, or a sum has no room for the noise.

    Parameters
    ----------
    case : Case
    size : int
        As `elements` says.
    sampled : int
        Participants of a round.
    statistics : sequence of str
        Names of shared running statistics.
    """
    privacy = case.privacy
    if isinstance(privacy, Clipped) and statistics:
        raise BadInput(
            f'privacy "{privacy.name}": the running statistics {statistics[0]} would be sent as they are: '
            "use an algorithm that keeps them on the clients, or a model without batch normalisation"
        )
    if isinstance(privacy, Private) and isinstance(case.reduction, ClippedOptions):
        needed = _DEVIATIONS * deviation(case, size, sampled)
        if needed > case.reduction.clip:
            raise BadInput(
                f"reduction.clip = {case.reduction.clip:g} leaves no room for the noise of {sampled} "
                f"participants: it takes {needed:.3g} or more, or a smaller privacy.noise_multiplier"
            )
        steps = (
            deviation(case, size, sampled) / Fixed32(sampled, case.reduction.clip).step / math.sqrt(sampled)
        )
        if privacy.distributed and steps < _STEPS:
            raise BadInput(
                f"reduction.clip = {case.reduction.clip:g} makes the grid too coarse for each participant's "
                f"share of the noise ({steps:.2g} steps, {_STEPS} needed): choose a smaller one"
            )


class Clipping(Link):
    """Shortens updates that are longer than a bound.

    Parameters
    ----------
    bound : float
        Largest Euclidean norm.
    """

    def __init__(self, bound: float) -> None:
        self._bound = bound

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Shorten the updates that are longer than the bound."""
        for client in updates.clients():
            change = updates.change(client)
            norm = two_norm(torch.from_numpy(change))
            if norm > self._bound:
                updates.replace(client, change.astype(np.float64) * (self._bound / norm * _BELOW))


class Accountant:
    """Epsilon of rounds of a Gaussian mechanism on a sample of fixed size, drawn without replacement.

    Neighbouring federations have as many clients, one of whom is replaced by another: n is public, and a
    sum of clipped updates changes by up to 2 C, so that the noise over that sensitivity is half the noise
    multiplier. Wang, Balle and Kasiviswanathan, "Subsampled Renyi differential privacy and analytical
    moments accountant", AISTATS 2019, Theorem 27; where that bound is above the loss without sampling, the
    latter, which a sample cannot exceed (Renyi divergence is quasi-convex).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over what one client adds at most.
    delta : float
    num_clients, sampled : int
        Of whom so many take part in each round.
    """

    def __init__(self, noise_multiplier: float, delta: float, num_clients: int, sampled: int) -> None:
        import dp_accounting
        from dp_accounting import rdp

        noise = dp_accounting.GaussianDpEvent(noise_multiplier / 2)
        sample = dp_accounting.SampledWithoutReplacementDpEvent(num_clients, sampled, noise)
        losses = []
        for event in (noise, sample):
            accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
            losses.append(accountant.compose(event).rdp)
        self._orders, self._one, self._delta = accountant.orders, np.minimum(*losses), delta
        self._convert = rdp.compute_epsilon

    def epsilon(self, rounds: int) -> float:
        """Return epsilon after so many rounds."""
        return float(self._convert(self._orders, rounds * self._one, self._delta)[0])


class NoiseOfMeans(Link):
    """Noise in the means of clipped updates, and its account.

    It alters no update: the server adds noise to a mean, or each participant a share to its summand.

    Parameters
    ----------
    case : Case
        With privacy `Private`.
    size : int
        As `elements` says.
    num_clients, sampled : int
        Of whom so many take part in each round.
    is_root : bool
        Whether this rank accounts for the privacy.

    Attributes
    ----------
    distributed : bool
        Whether the participants add it.
    """

    def __init__(self, case: Case, size: int, num_clients: int, sampled: int, *, is_root: bool) -> None:
        assert isinstance(case.privacy, Private)
        options = case.privacy
        self._seed, self._size, self._round = case.seed, size, 0
        self._deviation, self.distributed = deviation(case, size, sampled), options.distributed
        self._accountant = None
        if is_root:
            self._accountant = Accountant(options.noise_multiplier, options.delta, num_clients, sampled)

    @classmethod
    def fields(cls, case: Case) -> tuple[Field, ...]:
        """Return the field of the privacy loss."""
        return (EPSILON,) if isinstance(case.privacy, Private) else ()

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Go on to a round: its noise is its own."""
        self._round = round

    def on_mean(self, group: int, mean: Floats) -> Floats:
        """Add the server's noise to the mean of a group, float64 [size]."""
        if self.distributed:
            return mean
        source = Uniforms(self._seed, Purpose.NOISE, self._round, group)
        return mean + self._deviation * gaussian(source, self._size)

    def share(self, client: int, reduction: Fixed32) -> npt.NDArray[np.int32]:
        """Return a participant's share of the noise in a sum, int32 [size], in steps of its grid."""
        sigma = self._deviation / reduction.step / np.sqrt(reduction.total)
        source = Uniforms(self._seed, Purpose.NOISE, self._round, client)
        return discrete_gaussian(source, sigma, self._size).astype(np.int32)

    def rows(self, round: int) -> dict[str, npt.NDArray[Any]]:
        """Return the privacy loss of the rounds so far."""
        if self._accountant is None:
            return {}
        return {EPSILON.name: np.array(self._accountant.epsilon(round + 1))}
