"""What clients of one rank send, and the models of groups after a round's plan."""

import numpy as np

from fedmpi.case.reductions import REDUCTIONS
from fedmpi.client.training import TRAINING, Trained
from fedmpi.comm.world import World
from fedmpi.config.suite import CaseSettings
from fedmpi.exchange.aggregation import Buffers, Plain
from fedmpi.exchange.group_models import Exchange
from fedmpi.exchange.updates import Updates
from fedmpi.registry.check import build


def exchanged(hooks, plan, participants, weights, deltas, models, moves=(), reduction="exact", trained=2):
    """Return the models, of two elements each, by group; those of `moves` rank 0 moves itself."""
    collectives, hosts = World().collectives, np.zeros(len(plan.group), np.int64)
    plain = Plain(collectives, hosts, REDUCTIONS[reduction](), 2, Buffers())
    exchange = Exchange(collectives, hosts, plain, hooks, 2, trained, Buffers())
    exchange.models = {number: np.array(model, np.float32) for number, model in models.items()}
    exchange.run(plan, np.array(participants), np.array(weights), deltas, dict(moves))
    return {number: model.tolist() for number, model in exchange.models.items()}


def case_of(**settings):
    return build("demo", CaseSettings("demo", settings)).case


def updates_of(*deltas, size, received=None, **more):
    """Return the updates of clients 0, 1, ..., of `size` parameters and then statistics; all reports are 1."""
    rows = np.ones((len(deltas), len(TRAINING)))
    sent = {number: np.array(delta, np.float32) for number, delta in enumerate(deltas)}
    trained = Trained(sent, rows, np.zeros(0, np.uint8), 0, {})
    return Updates(trained, {number: number for number in sent}, size, received, lambda client: 1, **more)


def reported(updates, column):
    """Return a column of the clients' reports."""
    return updates.trained.rows[:, TRAINING.index(column)].tolist()
