"""Compiled passes over flat parameter vectors on the CPU; each reads its vector once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats

_LANES = 16

_UNROLLED = 8
"""Elements of each lane that are added while its sum stays in a register."""


@compiled
def squared_norm(vector: Floats) -> float:
    """Return the sum of squares in float64, in 16 lanes, then in order; finite only if all elements are."""
    lanes = np.zeros(_LANES)
    whole = len(vector) - len(vector) % _LANES
    blocks = len(vector) - len(vector) % (_LANES * _UNROLLED)
    for first in range(0, blocks, _LANES * _UNROLLED):
        for lane in range(_LANES):
            subtotal = lanes[lane]
            for row in range(_UNROLLED):
                value = np.float64(vector[first + row * _LANES + lane])
                subtotal += value * value
            lanes[lane] = subtotal
    for first in range(blocks, whole, _LANES):
        for lane in range(_LANES):
            value = np.float64(vector[first + lane])
            lanes[lane] += value * value
    for rest in range(whole, len(vector)):
        value = np.float64(vector[rest])
        lanes[rest - whole] += value * value
    total = 0.0
    for lane in range(_LANES):
        total += lanes[lane]
    return total


@compiled
def digest(words: npt.NDArray[np.uint32]) -> np.uint64:
    """Return a 64-bit hash of a vector's bits: a sum of SplitMix64 outputs of element and place."""
    total = np.uint64(0)
    for place in range(len(words)):
        state = np.uint64(words[place]) + (np.uint64(place) << np.uint64(32))
        state += np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total += state ^ (state >> np.uint64(31))
    return total


@compiled
def adam(
    parameters: Floats,
    gradient: Floats,
    mean: Floats,
    square: Floats,
    weight_decay: np.float32,
    keep_mean: np.float32,
    keep_square: np.float32,
    rate: np.float32,
    correction: np.float32,
    eps: np.float32,
) -> None:
    """Take one Adam step in place.

    Parameters
    ----------
    parameters, gradient, mean, square : float32 [length]
    weight_decay : float
        Weight of the parameters that is added to the gradient.
    keep_mean, keep_square : float
        Decay rates beta1 and beta2.
    rate, correction : float
        ``lr / (1 - beta1^t)`` and ``sqrt(1 - beta2^t)``.
    eps : float
    """
    new_mean, new_square = np.float32(1) - keep_mean, np.float32(1) - keep_square
    for i in range(len(parameters)):
        decayed = gradient[i] + weight_decay * parameters[i]
        mean[i] = mean[i] + new_mean * (decayed - mean[i])
        square[i] = keep_square * square[i] + new_square * (decayed * decayed)
        parameters[i] -= rate * mean[i] / (np.sqrt(square[i]) / correction + eps)


@compiled
def heavy_ball(
    parameters: Floats,
    gradient: Floats,
    velocity: Floats,
    weight_decay: np.float32,
    momentum: np.float32,
    rate: np.float32,
) -> None:
    """Take one step of gradient descent with momentum in place (Polyak 1964).

    Parameters
    ----------
    parameters, gradient, velocity : float32 [length]
    weight_decay : float
        Weight of the parameters that is added to the gradient.
    momentum : float
        Share of the velocity that is kept.
    rate : float
    """
    for i in range(len(parameters)):
        velocity[i] = momentum * velocity[i] + (gradient[i] + weight_decay * parameters[i])
        parameters[i] -= rate * velocity[i]


@compiled
def shortened(gradient: Floats, bound: float) -> Floats:
    """Return a copy of a gradient, scaled down to a 2-norm where it is longer."""
    found, norm = gradient.copy(), np.sqrt(squared_norm(gradient))
    if norm > bound:
        scale = np.float32(bound / norm)
        for i in range(len(found)):
            found[i] *= scale
    return found


class Descent(NamedTuple):
    """Steps of an optimizer, in the numbers that they take.

    Attributes
    ----------
    plain : bool
        Gradient descent; `keep_mean` is its momentum.
    shrink : float32
        What the parameters are multiplied by first: AdamW's weight decay; else 1.
    decay : float32
        Weight of the parameters that is added to the gradient.
    keep_mean, keep_square, eps : float32
        As `adam` takes them.
    clip : float64
        Largest 2-norm of a gradient; 0: none.
    rates, corrections : float32 [steps]
        The same, for each step.
    """

    plain: bool
    shrink: np.float32
    decay: np.float32
    keep_mean: np.float32
    keep_square: np.float32
    eps: np.float32
    clip: np.float64
    rates: Floats
    corrections: Floats


@compiled
def descend(
    descent: Descent, step: int, parameters: Floats, gradient: Floats, mean: Floats, square: Floats
) -> None:
    """Take one step of the optimizer in place.

    Parameters
    ----------
    descent : Descent
    step : int
        Which of its steps, from 0.
    parameters, gradient : float32 [length]
    mean, square : float32 [length]
        Moments; gradient descent has its velocity in `mean`, and without momentum reads neither.
    """
    if descent.clip > 0.0:
        gradient = shortened(gradient, descent.clip)
    if descent.plain:
        if descent.keep_mean != np.float32(0.0):
            heavy_ball(parameters, gradient, mean, descent.decay, descent.keep_mean, descent.rates[step])
            return
        for i in range(len(parameters)):
            parameters[i] -= descent.rates[step] * (gradient[i] + descent.decay * parameters[i])
        return
    if descent.shrink != np.float32(1.0):
        for i in range(len(parameters)):
            parameters[i] *= descent.shrink
    adam(
        parameters, gradient, mean, square, descent.decay, descent.keep_mean, descent.keep_square,
        descent.rates[step], descent.corrections[step], descent.eps,
    )  # fmt: skip


def warm_up() -> None:
    """Compile what every run calls of this module, or take it from the cache."""
    parameters, gradient, mean, square = np.zeros((4, 1), np.float32)
    adam(parameters, gradient, mean, square, *np.ones(6, np.float32))
    squared_norm(parameters)
    shortened(gradient, 1.0)
    digest(parameters.view(np.uint32))
