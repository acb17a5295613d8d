"""FedStar's structure channel, compiled: the function and gradient of `fedmpi.models.two_channel.Structure`.

Sums over neighbours commute with the linear maps after them, so each row is mapped before it is summed:
once for the next layer of this channel and once for the GIN that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.channels import Structure
from fedmpi.models import structure_kernels as kernels
from fedmpi.models.fast_convolution import entries, multiply
from fedmpi.models.linear_map import LinearMap
from fedmpi.models.scratch import Scratch

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class StructureRows:
    """What a pass computed.

    Attributes
    ----------
    s : list of float32 [K, h]
        Rows of each depth, from 0.
    given : list of float32 [K, h]
        What the GIN's first map gets in each layer.
    """

    s: list[Floats]
    given: list[Floats]


class FastStructure:
    """The channel of one model shape.

    Parameters
    ----------
    embed : LinearMap
    convolutions : list of LinearMap
        Of the GCN, by layer.
    readers : list of LinearMap
        What the GIN's first maps read of this channel, without bias, by layer.
    scratch : Scratch
    """

    def __init__(
        self, embed: LinearMap, convolutions: list[LinearMap], readers: list[LinearMap], scratch: Scratch
    ) -> None:
        self._embed, self._convolutions, self._readers = embed, convolutions, readers
        self._width, self._scratch = embed.width, scratch

    def load(self) -> None:
        """Take over the model's parameters."""
        for part in (self._embed, *self._convolutions, *self._readers):
            part.load()

    def forward(self, structure: Structure) -> StructureRows:
        """Return all rows."""
        s = [self._scratch("structure 0", len(structure.inputs), self._width)]
        given: list[Floats] = []
        self._embed.apply(structure.inputs, s[0], cut=False)
        layers = zip(self._convolutions, self._readers, structure.layers, strict=True)
        for depth, (own, other, matrix) in enumerate(layers):
            for_own, for_other = (self._scratch(f"for {name}", *s[-1].shape) for name in ("own", "other"))
            roots = structure.roots[depth : depth + 2]
            kernels.spread(s[-1], roots[0], own.transposed, other.transposed, for_own, for_other)
            s.append(self._scratch(f"structure {depth + 1}", matrix.num_rows, self._width))
            given.append(self._scratch(f"given {depth}", matrix.num_rows, self._width))
            kernels.gather(*entries(matrix), for_own, for_other, roots[1], own.bias, s[-1], given[-1])
        return StructureRows(s, given)

    def back(self, structure: Structure, rows: StructureRows, pooled: Floats, given: list[Floats]) -> None:
        """Store the parameters' gradients, from those of the pooled rows and of what was given."""
        matrix = structure.pooling.transposed
        gradient = self._scratch("structure gradient", matrix.num_rows, self._width)
        multiply(matrix, pooled, gradient)
        for depth in reversed(range(len(structure.layers))):
            own, other, roots = self._convolutions[depth], self._readers[depth], structure.roots
            kernels.gather_back(gradient, rows.s[depth + 1], roots[depth + 1], own.bias_gradient)
            result = self._scratch(f"structure gradient {depth % 2}", len(rows.s[depth]), self._width)
            kernels.spread_back(
                *entries(structure.layers[depth].transposed), gradient, given[depth], roots[depth],
                rows.s[depth], own.weight, other.weight, own.weight_gradient, other.weight_gradient, result,
            )  # fmt: skip
            own.store()
            other.store()
            gradient = result
        self._embed.add_gradients_by_columns(gradient, structure.inputs)

    def flops(self, structure: Structure, *, training: bool) -> int:
        """Return the FLOPs of `forward` and of pooling its rows, in training of `back` too."""
        rows = sum(matrix.width for matrix in structure.layers)
        sums = 2 * sum(matrix.num_entries for matrix in structure.layers) + structure.pooling.num_entries
        inputs = 2 * structure.inputs.size * self._width
        square, each = 2 * 2 * rows * self._width**2, 2 * sums * self._width
        return 2 * inputs + 3 * square + 2 * each if training else inputs + square + each
