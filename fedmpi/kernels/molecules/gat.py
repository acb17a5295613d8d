"""GAT of one graph: two layers of attention over closed neighbourhoods, with dropout as torch's, and back."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats, add_transposed_times, dot, rows_times, scale_rows
from fedmpi.graphs.streams import Drop, Words, draw_factors
from fedmpi.kernels.molecules.arrays import Attention, Molecules, Network, Spot, Work

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@compiled
def forward(
    graphs: Molecules,
    spot: Spot,
    streams: Words,
    drop: Drop,
    training: np.bool_,
    network: Network,
    work: Work,
) -> None:
    """Set the first columns of `joined` to the nodes' states.

    Parameters
    ----------
    streams : uint64 [*]
        The step's random streams: of the first layer's inputs and attention, then of the second's.
    """
    first, count, weights = spot.first, spot.num_nodes, network.weights
    width = work.inputs.shape[1]
    for i in range(count):
        for j in range(width):
            work.inputs[i, j] = graphs.features[first + i, j]
    one, other = work.attention, work.last_attention
    if training:
        entries = int(graphs.pointers[first + count] - graphs.pointers[first])
        heads = one.heads
        draw_factors(streams[0], drop, spot.nodes, count, width, work.words, work.input_factors, 0)
        draw_factors(streams[1], drop, spot.entries, entries, heads, work.words, one.factors, 0)
        draw_factors(streams[2], drop, spot.nodes, count, network.hidden, work.words, work.factors, 0)
        draw_factors(streams[3], drop, spot.entries, entries, 1, work.words, other.factors, 0)
        scale_rows(work.inputs, 0, count, work.input_factors)
    rows_times(work.inputs, 0, count, weights.first, one.states, 0)
    _attend(graphs, spot, weights.attend, network.leak, training, one, work.hidden)
    _elu(work.hidden, count, one.states.shape[1])
    if training:
        for i in range(count):
            for j in range(work.hidden.shape[1]):
                work.second[i, j] = work.hidden[i, j] * work.factors[i, j]
        rows_times(work.second, 0, count, weights.second, other.states, 0)
    else:
        rows_times(work.hidden, 0, count, weights.second, other.states, 0)
    _attend(graphs, spot, weights.last_attend, network.leak, training, other, work.joined)
    _elu(work.joined, count, other.states.shape[1])


@compiled
def back(graphs: Molecules, spot: Spot, network: Network, work: Work) -> None:
    """Add the gradients of a graph's two layers, from `nodes_gradient`.

    Parameters
    ----------
    graphs : Molecules
    spot : Spot
        The graph.
    network : Network
        Its gradients are added to.
    work : Work
        As the graph's forward pass left it, with `nodes_gradient` set.
    """
    count, gradients = spot.num_nodes, network.gradients
    one, other = work.attention, work.last_attention
    _elu_back(work.nodes_gradient, count, work.joined)
    _attend_back(
        graphs,
        spot,
        network.weights.last_attend,
        gradients.last_attend,
        network.leak,
        other,
        work.nodes_gradient,
    )
    add_transposed_times(work.second, 0, count, other.states_gradient, 0, gradients.second)
    rows_times(other.states_gradient, 0, count, network.transposed.second, work.hidden_gradient, 0)
    scale_rows(work.hidden_gradient, 0, count, work.factors)
    _elu_back(work.hidden_gradient, count, work.hidden)
    _attend_back(
        graphs, spot, network.weights.attend, gradients.attend, network.leak, one, work.hidden_gradient
    )
    add_transposed_times(work.inputs, 0, count, one.states_gradient, 0, gradients.first)


@compiled
def _attend(
    graphs: Molecules,
    spot: Spot,
    attend: Floats,
    leak: np.float32,
    training: np.bool_,
    part: Attention,
    out: Floats,
) -> None:
    """Set the first columns of `out` to the sums of the neighbours' states, weighted by attention."""
    states, heads, width = part.states, part.heads, part.width
    for i in range(spot.num_nodes):
        for head in range(heads):
            for side in range(2):
                score = dot(states[i], attend[side], head * width, width, part.lanes)
                part.scores[i, side * heads + head] = score
    base = graphs.pointers[spot.first]
    for i in range(spot.num_nodes):
        start, stop = graphs.pointers[spot.first + i], graphs.pointers[spot.first + i + 1]
        for head in range(heads):
            _softmax(graphs, i, start, stop, base, head, leak, part)
        line = out[i, : states.shape[1]]
        line[:] = _ZERO
        for entry in range(start, stop):
            near = states[graphs.columns[entry]]
            for head in range(heads):
                share = part.shares[entry - base, head]
                if training:
                    share *= part.factors[entry - base, head]
                for j in range(head * width, (head + 1) * width):
                    line[j] += share * near[j]


@compiled
def _softmax(
    graphs: Molecules, i: int, start: int, stop: int, base: int, head: int, leak: np.float32, part: Attention
) -> None:
    """Set a row's shares of a head: the softmax of LeakyReLU of the receiver's score and the sender's."""
    top, total = np.float32(-np.inf), _ZERO
    for entry in range(start, stop):
        score = part.scores[i, head] + part.scores[graphs.columns[entry], part.heads + head]
        score = score if score > _ZERO else leak * score
        part.shares[entry - base, head] = score
        top = max(top, score)
    for entry in range(start - base, stop - base):
        share = np.exp(part.shares[entry, head] - top)
        part.shares[entry, head] = share
        total += share
    for entry in range(start - base, stop - base):
        part.shares[entry, head] /= total


@compiled
def _attend_back(
    graphs: Molecules,
    spot: Spot,
    attend: Floats,
    attend_gradient: Floats,
    leak: np.float32,
    part: Attention,
    gradient: Floats,
) -> None:
    """Set `states_gradient`, and add the gradient of the attention's numbers, from that of its output."""
    count, heads, width = spot.num_nodes, part.heads, part.width
    part.states_gradient[:count] = _ZERO
    part.scores_gradient[:count] = _ZERO
    base = graphs.pointers[spot.first]
    for i in range(count):
        start, stop = graphs.pointers[spot.first + i], graphs.pointers[spot.first + i + 1]
        for head in range(heads):
            _softmax_back(graphs, i, start, stop, base, head, leak, part, gradient[i])
    for i in range(count):
        states, line = part.states[i], part.states_gradient[i]
        for head in range(heads):
            of_receiver, of_sender = part.scores_gradient[i, head], part.scores_gradient[i, heads + head]
            for j in range(head * width, (head + 1) * width):
                line[j] += of_receiver * attend[0, j] + of_sender * attend[1, j]
                attend_gradient[0, j] += of_receiver * states[j]
                attend_gradient[1, j] += of_sender * states[j]


@compiled
def _softmax_back(
    graphs: Molecules,
    i: int,
    start: int,
    stop: int,
    base: int,
    head: int,
    leak: np.float32,
    part: Attention,
    gradient: Floats,
) -> None:
    """Add a row's part of a head to the gradients of scores and of the neighbours' states."""
    first, width, mean = head * part.width, part.width, _ZERO
    for entry in range(start, stop):
        sender, place = graphs.columns[entry], entry - base
        of_share = dot(gradient, part.states[sender], first, width, part.lanes) * part.factors[place, head]
        part.shares_gradient[place, head] = of_share
        mean += part.shares[place, head] * of_share
        share = part.shares[place, head] * part.factors[place, head]
        line = part.states_gradient[sender]
        for j in range(first, first + width):
            line[j] += share * gradient[j]
    for entry in range(start, stop):
        sender, place = graphs.columns[entry], entry - base
        of_score = part.shares[place, head] * (part.shares_gradient[place, head] - mean)
        if part.scores[i, head] + part.scores[sender, part.heads + head] <= _ZERO:
            of_score *= leak
        part.scores_gradient[i, head] += of_score
        part.scores_gradient[sender, part.heads + head] += of_score


@compiled
def _elu(out: Floats, count: int, width: int) -> None:
    """Apply ``x`` above 0, ``exp(x) - 1`` below, to the first columns of rows, in place; NaN stays.

    The exponential is 2 to a whole number times a polynomial, as in Cephes, so that it runs on vectors.
    """
    for i in range(count):
        line = out[i]
        for j in range(width):
            x = line[j]
            low = max(min(x, _ZERO), np.float32(-87.0))
            whole = np.floor(low * np.float32(1.44269504) + np.float32(0.5))
            rest = low - whole * np.float32(0.693359375)
            rest = rest - whole * np.float32(-2.12194440e-4)
            series = np.float32(1.9875691500e-4)
            series = series * rest + np.float32(1.3981999507e-3)
            series = series * rest + np.float32(8.3334519073e-3)
            series = series * rest + np.float32(4.1665795894e-2)
            series = series * rest + np.float32(1.6666665459e-1)
            series = series * rest + np.float32(5.0000001201e-1)
            power = _power_of_two(whole)
            small = power * (series * rest * rest + rest) + (power - _ONE)
            line[j] = small if x <= _ZERO else x


@compiled
def _power_of_two(whole: np.float32) -> np.float32:
    """Return 2 to a whole number from -126 to 127: its exponent's bits."""
    return np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled
def _elu_back(gradient: Floats, count: int, active: Floats) -> None:
    """Multiply rows of a gradient by the derivative of ELU where it gave `active`."""
    for i in range(count):
        for j in range(gradient.shape[1]):
            gradient[i, j] *= active[i, j] + _ONE if active[i, j] <= _ZERO else _ONE
