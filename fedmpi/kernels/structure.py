"""FedStar's structure channel, compiled: the function and gradient of `fedmpi.models.two_channel.Structure`.

Sums over neighbours commute with the linear maps after them, so each row is mapped before it is summed:
once for the next layer of this channel and once for the GIN that reads it. In the first layer the
embedding and the map that reads it are one map of the encodings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmpi.graphs import products
from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats
from fedmpi.graphs.refinement.channels import Structure
from fedmpi.kernels import structure_loops as kernels
from fedmpi.kernels.convolution import multiply
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.scratch import Scratch, zeros


@dataclass(frozen=True)
class StructureRows:
    """What a pass computed.

    Attributes
    ----------
    s : list of float32 [K, h]
        Rows of each depth from 1, after the inputs [K0, S + 1].
    added : list of float32 [K, h]
        Addend of the GIN's first map in each layer.
    """

    s: list[Floats]
    added: list[Floats]


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
        shape = (len(embed.transposed) + 1, self._width)
        self._embedding, *self._composed = (zeros(*shape) for _ in range(3))

    def load(self) -> None:
        """Take over the model's parameters."""
        for part in (self._embed, *self._convolutions, *self._readers):
            part.load()
        self._embedding[:-1], self._embedding[-1] = self._embed.transposed, self._embed.bias
        for reader, composed in zip((self._convolutions[0], self._readers[0]), self._composed, strict=True):
            products.multiply(self._embedding, reader.transposed, composed)

    def forward(self, structure: Structure) -> StructureRows:
        """Return all rows."""
        s, added = [structure.inputs], []
        for depth, matrix in enumerate(structure.layers):
            own, other = self._convolutions[depth], self._readers[depth]
            maps = self._composed if depth == 0 else [own.transposed, other.transposed]
            for_own, for_other = (
                self._scratch(f"for {name}", len(s[-1]), self._width) for name in ("own", "other")
            )
            roots = structure.roots[depth : depth + 2]
            kernels.spread(s[-1], roots[0], maps[0], maps[1], for_own, for_other)
            s.append(self._scratch(f"structure {depth + 1}", matrix.num_rows, self._width))
            added.append(self._scratch(f"added {depth}", matrix.num_rows, self._width))
            kernels.gather(*matrix.entries, for_own, for_other, roots[1], own.bias, s[-1], added[-1])
        return StructureRows(s, added)

    def back(self, structure: Structure, rows: StructureRows, pooled: Floats, added: list[Floats]) -> None:
        """Store the parameters' gradients.

        Parameters
        ----------
        structure : Structure
        rows : StructureRows
            What `forward` returned.
        pooled : float32 [B, h]
            Gradient of the pooled rows.
        added : list of float32 [n, h]
            Gradient of `StructureRows.added`, by layer.
        """
        matrix = structure.pooling.transposed
        gradient = self._scratch("structure gradient", matrix.num_rows, self._width)
        multiply(matrix, pooled, gradient)
        for depth in reversed(range(len(structure.layers))):
            own, other, roots = self._convolutions[depth], self._readers[depth], structure.roots
            kernels.gather_back(gradient, rows.s[depth + 1], roots[depth + 1], own.bias_gradient)
            matrix = structure.layers[depth].transposed
            if depth == 0:
                self._inputs_back(structure, matrix, gradient, added[0])
            else:
                result = self._scratch(f"structure gradient {depth % 2}", len(rows.s[depth]), self._width)
                kernels.spread_back(
                    *matrix.entries, gradient, added[depth], roots[depth], rows.s[depth], own.weight,
                    other.weight, own.weight_gradient, other.weight_gradient, result,
                )  # fmt: skip
                gradient = result
            own.store()
            other.store()

    def _inputs_back(self, structure: Structure, matrix: Csr, gradient: Floats, added: Floats) -> None:
        """Split the gradients of the first layer's composed maps E W^T into those of E and W."""
        composed = [np.zeros_like(self._embedding) for _ in self._composed]
        kernels.inputs_back(*matrix.entries, gradient, added, structure.roots[0], structure.inputs, *composed)
        embedding, part = np.zeros_like(self._embedding), np.empty_like(self._embedding)
        for reader, of_map in zip((self._convolutions[0], self._readers[0]), composed, strict=True):
            products.add_transposed_times(of_map, 0, len(of_map), self._embedding, 0, reader.weight_gradient)
            products.multiply(of_map, reader.weight, part)
            embedding += part
        self._embed.weight_gradient[:] = embedding[:-1].T
        self._embed.bias_gradient[:] = embedding[-1]
        self._embed.store()

    def flops(self, structure: Structure, *, training: bool) -> int:
        """Return the FLOPs of `forward` and of pooling its rows, in training of `back` too."""
        width, depth = self._width, len(self._embedding)
        inputs = 2 * 2 * structure.inputs.size * width
        composing = 2 * 2 * depth * width**2
        square = 2 * 2 * sum(matrix.width for matrix in structure.layers[1:]) * width**2
        sums = 2 * sum(matrix.num_entries for matrix in structure.layers) + structure.pooling.num_entries
        forward, each = inputs + composing + square, 2 * sums * width
        return 2 * inputs + 3 * (composing + square) + 2 * each if training else forward + each
