"""FedNova: updates are divided by the number of local steps behind them before they are averaged.

Wang, Liu, Liang, Joshi and Poor, "Tackling the objective inconsistency problem in heterogeneous federated
optimization", NeurIPS 2020, Eq. 6 to 8 with the effective number of steps tau_eff = sum_i p_i tau_i. For
plain SGD on the clients the accumulation vector is a_i = [1, ..., 1], so its 1-norm is the number of steps
tau_i. The paper gives none for Adam. Here Adam's steps count 1 each, too: a choice, not the paper's.
"""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.program import Server


class FedNova(Algorithm):
    """``w <- w + tau_eff sum_i p_i (w_i - w) / tau_i`` with ``p_i = n_i / n`` among the participants."""

    name = "fednova"
    paper = "Wang et al., NeurIPS 2020, Eq. 6 to 8"

    decides = frozenset({"weights"})

    def decide(self, server: Server) -> None:
        """Weigh updates by ``tau_eff p_i / tau_i``."""
        for members in server.groups():
            share = server.samples[members] / server.samples[members].sum()
            steps = server.reports["steps"][members]
            server.weigh(members, (share * steps).sum() * share / steps, 1.0)
