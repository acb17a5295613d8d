"""Attention over closed neighbourhoods (Velickovic et al. 2018), on sums by rows."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import leaky_relu

from fedmpi.graphs.batch import Batch


def attend(
    batch: Batch,
    states: Tensor,
    of_receiver: Tensor,
    of_sender: Tensor,
    slope: float,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Return each node's sum of its neighbours' states and its own by their shares of attention, [N, k d].

    Parameters
    ----------
    states : float32 [N, k, d]
    of_receiver, of_sender : float32 [N, k]
        A pair's score before the LeakyReLU of that `slope` is the sum of both; shares are its softmax.
    drop : callable, optional
        Dropout on the shares [E + N, k].
    """
    receiver, sender = batch.closed_index
    scores = leaky_relu(of_receiver[receiver] + of_sender[sender], slope)
    highest = batch.reduce_rows(scores.detach(), "max")
    weights = (scores - highest[receiver]).exp()
    shares = weights / batch.reduce_rows(weights, "sum")[receiver]
    if drop is not None:
        shares = drop(shares)
    return batch.reduce_rows(states[sender] * shares[:, :, None], "sum").flatten(1)
