"""Where a model's parameters lie in the padded matrices that the compiled passes multiply by."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.products import Floats, padded
from fedmpi.kernels.molecules.arrays import Longs, Transposed, Weights
from fedmpi.kernels.scratch import zeros
from fedmpi.models.flat import FlatModel, Slot
from fedmpi.models.options import FedGraphNNGatOptions, FedGraphNNOptions, FedGraphNNSageOptions

_FIELD = {
    "conv.0.weight": "first",
    "conv.1.weight": "second",
    "conv.0.project.weight": "first",
    "conv.1.project.weight": "second",
    "conv.0.attend.receiver": "attend",
    "conv.0.attend.sender": "attend",
    "conv.1.attend.receiver": "last_attend",
    "conv.1.attend.sender": "last_attend",
    "first.weight": "inner",
    "first.bias": "inner_bias",
    "second.weight": "outer",
    "second.bias": "outer_bias",
    "last.weight": "last",
    "last.bias": "last_bias",
}
"""Field of `Weights` of each parameter of `fedmpi.models.fedgraphnn.MoleculeNetwork`."""


class Layout:
    """Moves vectors between the flat model's order and that of the padded matrices.

    Parameters
    ----------
    options : FedGraphNNOptions
    model : FlatModel

    Attributes
    ----------
    width : int
        Of the features.
    length : int
        Floats of a padded vector.
    """

    def __init__(self, options: FedGraphNNOptions, model: FlatModel) -> None:
        slots = {slot.name: slot for slot in model.slots}
        self.width = slots["first.weight"].shape[1] - options.node
        self._inputs = _input_rows(options, self.width)
        outputs = slots["last.bias"].shape[0]
        self._shapes = _shapes(options, self.width, self._inputs, outputs)
        sizes = [int(np.prod(shape)) for shape in self._shapes.values()]
        self._starts = dict(zip(self._shapes, np.cumsum([0, *sizes]).tolist(), strict=False))
        self.length = sum(sizes)
        self._flat = np.concatenate([np.arange(slot.start, slot.stop) for slot in model.slots])
        self._padded = np.concatenate([self._places(slot) for slot in model.slots])

    def _places(self, slot: Slot) -> Longs:
        """Return where each element of a tensor lies in the padded vector."""
        field = _FIELD[slot.name]
        start = self._starts[field]
        places: Longs
        if len(slot.shape) == 1:
            places = np.arange(slot.shape[0])
        elif ".attend." in slot.name:
            behind = slot.name.endswith("sender") * self._shapes[field][1]
            places = behind + np.arange(int(np.prod(slot.shape)))
        else:
            linear = not slot.name.startswith("conv.")  # torch's Linear is [out, in]
            outputs = np.arange(slot.shape[0 if linear else 1])
            cells = self._inputs[field][:, None] * self._shapes[field][1] + outputs
            places = (cells.T if linear else cells).ravel()
        places += start
        return places

    def pack(self, flat: Floats, out: Floats) -> None:
        """Write a flat vector's elements into a padded vector."""
        out[self._padded] = flat[self._flat]

    def unpack(self, vector: Floats, flat: Floats) -> None:
        """Write a padded vector's elements into a flat vector."""
        flat[self._flat] = vector[self._padded]

    def views(self, vector: Floats) -> Weights:
        """Return the matrices that make up a padded vector."""
        parts = {
            field: vector[self._starts[field] : self._starts[field] + int(np.prod(shape))].reshape(shape)
            for field, shape in self._shapes.items()
        }
        return Weights(**parts)

    def transposed(self) -> Transposed:
        """Return room for the transposed matrices."""
        shapes = self._shapes
        nodes = shapes["inner"][0] - self.width
        return Transposed(
            zeros(*shapes["second"][::-1]),
            zeros(shapes["inner"][1], nodes),
            zeros(*shapes["outer"][::-1]),
            zeros(*shapes["last"][::-1]),
        )


def hidden_width(options: FedGraphNNOptions) -> int:
    """Return the columns of the first layer's output."""
    return options.hidden * (options.heads if isinstance(options, FedGraphNNGatOptions) else 1)


def _input_rows(options: FedGraphNNOptions, width: int) -> dict[str, Longs]:
    """Return the row of the padded matrix for each input of a layer."""
    hidden = np.arange(hidden_width(options))
    sampled = isinstance(options, FedGraphNNSageOptions)
    around = padded(len(hidden)) + hidden  # GraphSAGE's rows of the neighbours' mean
    return {
        "first": np.arange(2 * width if sampled else width),
        "second": np.concatenate([hidden, around]) if sampled else hidden,
        "inner": np.concatenate([padded(options.node) + np.arange(width), np.arange(options.node)]),
        "outer": np.arange(options.readout),
        "last": np.arange(options.graph),
    }


def _shapes(
    options: FedGraphNNOptions, width: int, inputs: dict[str, Longs], outputs: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the padded matrices."""
    widths = (hidden_width(options), options.node, options.readout, options.graph, outputs)
    hidden, node, inner, outer, last = map(padded, widths)
    sampled = isinstance(options, FedGraphNNSageOptions)
    attended = 2 if isinstance(options, FedGraphNNGatOptions) else 0
    return {
        "first": (len(inputs["first"]), hidden),
        "second": (2 * hidden if sampled else hidden, node),
        "attend": (attended, hidden),
        "last_attend": (attended, node),
        "inner": (node + width, inner),
        "inner_bias": (inner,),
        "outer": (inner, outer),
        "outer_bias": (outer,),
        "last": (outer, last),
        "last_bias": (last,),
    }
