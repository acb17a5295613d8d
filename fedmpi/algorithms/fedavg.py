"""FedAvg: the weighted mean of the clients' updates.

McMahan, Moore, Ramage, Hampson and Aguera y Arcas, "Communication-efficient
learning of deep networks from decentralized data", AISTATS 2017, Algorithm 1;
GCFL's Eq. 3. A client's weight is its number of training graphs among the
round's participants.
"""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm


class FedAvg(Algorithm):
    """One global model, w <- w + sum_i (n_i / n) (w_i - w)."""

    name = "fedavg"
    paper = "McMahan et al., AISTATS 2017, Algorithm 1"
