"""Dropout whose masks are a function of (seed, client, round, step, layer, element)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.seeds import Purpose, keep_bits, key, keys, words


@dataclass(frozen=True)
class DropoutStreams:
    """Masks of one training step; every kernel that asks for a layer gets the same bits."""

    seed: int
    client: int
    round: int
    step: int

    def keys(self, layers: int) -> npt.NDArray[np.uint64]:
        """Return the keys of the first `layers` streams."""
        streams = keys(layers, self.seed, Purpose.DROPOUT, self.client, self.round, self.step)
        return np.array(streams, np.uint64)

    def words(self, layer: int, count: int) -> npt.NDArray[np.uint64]:
        """Return the first `count` uniform 64-bit words of a layer's stream, for other draws than dropout."""
        return words(self._stream(layer), count)

    def _stream(self, layer: int) -> int:
        return key(self.seed, Purpose.DROPOUT, self.client, self.round, self.step, layer)

    def apply(self, x: Tensor, layer: int, drop: float) -> Tensor:
        """Return x with a share `drop` of its elements zeroed and the rest scaled by 1 / (1 - drop)."""
        if drop == 0.0:
            return x
        keep = torch.from_numpy(keep_bits(self._stream(layer), x.numel(), drop)).view(x.shape)
        return x * keep.to(x.device, x.dtype).mul_(1.0 / (1.0 - drop))


def reading(drop: float) -> tuple[int, int]:
    """Return how many bits of a stream an element takes, and the least value of those that are kept."""
    bits = 1 if drop == 0.5 else 8 if (drop * 256).is_integer() else 32
    return bits, round(drop * 2**bits)


def fixed_keys(layers: int) -> npt.NDArray[np.uint64]:
    """Return what `DropoutStreams.keys` is to evaluations: the same keys in every one."""
    return np.array(keys(layers, 0, Purpose.DROPOUT), np.uint64)


def fixed_words(layer: int, count: int) -> npt.NDArray[np.uint64]:
    """Return what `DropoutStreams.words` is to evaluations: the same words in every one."""
    return words(key(0, Purpose.DROPOUT, layer), count)


def device_keep_bits(streams: Tensor, count: int, drop: float) -> Tensor:
    """Return `fedmpi.seeds.keep_bits` of several streams, on their device.

    Parameters
    ----------
    streams : int64 [k]
        Keys, as two's complement.
    count : int
        Elements per stream.
    drop : float

    Returns
    -------
    bool [k, count]
    """
    bits, threshold = reading(drop)
    per_word = 64 // bits
    state = device_words(streams[:, None], torch.arange(-(-count // per_word), device=streams.device))
    if bits <= 8:  # bytes: an eighth of the memory traffic
        state = state.view(torch.uint8)
    places = torch.arange(0, 8 * state.itemsize, bits, device=streams.device, dtype=state.dtype)
    cells = (state[:, :, None] >> places) & (2**bits - 1)
    kept: Tensor = cells.flatten(1)[:, :count] >= threshold
    return kept


def device_kept(streams: Tensor, numbers: Tensor, drop: float) -> Tensor:
    """Return elements of `device_keep_bits`, bool; streams and numbers of elements, int64, broadcast."""
    bits, threshold = reading(drop)
    per_word = 64 // bits
    words = device_words(streams, numbers // per_word)
    kept: Tensor = (words >> numbers % per_word * bits) & (2**bits - 1) >= threshold
    return kept


def device_words(streams: Tensor, numbers: Tensor) -> Tensor:
    """Return elements of `fedmpi.seeds.words` as two's complement; streams and numbers, int64, broadcast."""
    state = streams + (numbers + 1) * _signed(0x9E3779B97F4A7C15)
    state = (state ^ _shifted(state, 30)) * _signed(0xBF58476D1CE4E5B9)
    state = (state ^ _shifted(state, 27)) * _signed(0x94D049BB133111EB)
    return state ^ _shifted(state, 31)


def _signed(word: int) -> int:
    """Return a 64-bit word as torch's int64 has it; products wrap around."""
    return word - 2**64 if word >= 2**63 else word


def _shifted(state: Tensor, places: int) -> Tensor:
    """Return a logical shift to the right; torch's keeps the sign."""
    shifted: Tensor = (state >> places) & (2 ** (64 - places) - 1)
    return shifted
