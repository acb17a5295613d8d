"""Centralised training: one client holds what all clients of the partition hold.

The upper baseline of FedGraphNN's Tables 2 and 20, on the same code path, so that nothing but the
federation differs: one round is ``local_epochs`` epochs over all training graphs.
"""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm


class Centralised(Algorithm):
    """No communication; the validation and test graphs are those of all clients together."""

    name = "centralised"
    communicates = False
    pools = True
