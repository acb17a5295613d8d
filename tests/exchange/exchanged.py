"""The models of groups after a round's plan, on one rank."""

import numpy as np

from fedmpi.case.reductions import REDUCTIONS
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Plain
from fedmpi.exchange.buffers import Buffers
from fedmpi.exchange.group_models import Exchange


def exchanged(hooks, plan, participants, weights, deltas, models, moves=(), reduction="exact", trained=2):
    """Return the models, of two elements each, by group; those of `moves` rank 0 moves itself."""
    collectives, hosts = World().collectives, np.zeros(len(plan.group), np.int64)
    plain = Plain(collectives, hosts, REDUCTIONS[reduction](), 2, Buffers())
    exchange = Exchange(collectives, hosts, plain, hooks, 2, trained, Buffers())
    exchange.models = {number: np.array(model, np.float32) for number, model in models.items()}
    exchange.run(plan, np.array(participants), np.array(weights), deltas, dict(moves))
    return {number: model.tolist() for number, model in exchange.models.items()}
