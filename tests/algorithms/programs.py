"""A client and a server as programs see them, for algorithms by hand."""

from types import SimpleNamespace

import numpy as np


def begin(algorithm, trained, num_clients):
    """Begin as a run does on rank 0."""
    algorithm.begin(trained, num_clients)
    algorithm.server = dict(algorithm.server_memory(trained, num_clients))


def client_of(**values):
    """Return a client with these attributes; what its program sends is in `sent`."""
    sent = {}
    return SimpleNamespace(**values, sent=sent, send=sent.__setitem__)


def server_of(group, **values):
    """Return a server of participants of these groups, and what its program decides, by name of the verb."""
    made, participants = {}, np.arange(len(group))
    found = SimpleNamespace(
        participants=participants, group=np.array(group), **{"seed": 3, "round": 0, **values}
    )
    found.groups = lambda: [participants[found.group == number] for number in np.unique(found.group)]
    for name in ("regroup", "weigh", "mix", "tell"):
        setattr(found, name, lambda *given, name=name: made.__setitem__(name, given))
    found.recorded = {}
    found.record = found.recorded.__setitem__
    return found, made
