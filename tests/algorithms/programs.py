"""A client and a server as programs see them, for algorithms by hand; and a whole round of a few clients."""

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.case.reductions import ExactOptions
from fedmpi.client.layouts import MessageLayout
from fedmpi.client.training import columns_of
from fedmpi.comm import reductions
from fedmpi.comm.world import World
from fedmpi.config.suite import CaseSettings
from fedmpi.exchange.aggregation import Buffers, Plain, gather_rows
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.messages import Gathered
from fedmpi.exchange.planning import Answers, Planner
from fedmpi.exchange.server import Deciding, Known
from fedmpi.models.dropout import DropoutStreams
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.check import build
from fedmpi.runs import rounds as engine_rounds
from fedmpi.runs.signals import StopRequest

NO_MESSAGES = MessageLayout({})


def named(name, **options):
    """Return an algorithm of fedmpi with some options."""
    kind = ALGORITHMS[name]
    return kind(kind.Options(name=name, **options))


def begin(algorithm, trained, num_clients):
    """Begin as a run does on rank 0."""
    algorithm.begin(trained, num_clients)
    algorithm.server = dict(algorithm.server_memory(trained, num_clients))


def hooks_of(clients, **methods):
    """Return an algorithm named "odd" with these hooks, between it and the engine; `__module__` is where it stands."""
    odd = type("Odd", (Algorithm,), methods)(AlgorithmOptions(name="odd"))
    odd.name = "odd"  # of the object alone: the registry knows classes that have a name
    return Hooks(odd, clients, Position())


def moves_of(decided):
    """Return what a server's program moved, by group: the step and the number of clients."""
    return {group: (step.tolist(), count) for group, (step, count) in decided.moves.items()}


def client_of(**values):
    """Return a client with these attributes; what its program sends is in `sent`."""
    sent = {}
    return SimpleNamespace(**values, sent=sent, send=sent.__setitem__)


def server_of(group, **values):
    """Return a server of participants of these groups, and what its program decides, by name of the verb."""
    made, participants = {}, np.arange(len(group))
    found = SimpleNamespace(participants=participants, group=np.array(group), **values)
    found.groups = lambda: [participants[found.group == number] for number in np.unique(found.group)]
    found.weigh = lambda *given: made.__setitem__("weigh", given)
    return found, made


def run_round(rounds, monkeypatch):
    """Run a round; return what each participant sent as its update or model, and the round's results."""
    sent, train = {}, engine_rounds.training.train

    def noted(*arguments):
        found = train(*arguments)
        sent.update(found.deltas)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(engine_rounds.training, "train", noted)
        _, report = rounds.run(0, stop=StopRequest(), checkpoint=False)
    return sent, report.results


def gradient_at(rounds, parameters, round=0, step=0):
    """Return the gradient of the first client's loss at some parameters, on all its training examples."""
    one = rounds.clients[0]
    present = one.model.parameters.clone()
    one.model.parameters.copy_(parameters)
    one.passes.step(one.passes.batch(None), DropoutStreams(rounds.case.seed, one.id, round, step))
    found = one.model.gradient.clone()
    one.model.parameters.copy_(present)
    return found


@dataclass(frozen=True)
class Round:
    """What came of a server's program: the plans of its requests, and the round's plan."""

    decided: Deciding
    asked: list[RoundPlan]
    plan: RoundPlan

    @property
    def groups(self):
        """The clients' groups."""
        return self.plan.group.tolist()


def round_of(
    algorithm,
    deltas,
    *,
    group=None,
    samples=None,
    number=0,
    trained=None,
    domains=None,
    layout=NO_MESSAGES,
    sent=(),
    headers=((0.0, 0.0),),
    checkpoint=False,
    **columns,
):
    """Run the server's program of a round on one rank, after these updates; None of clients that sat out.

    The training table is that of the updates, but for columns that are given; `sent` has each client's
    messages.
    """
    count = len(deltas)
    hooks = algorithm if isinstance(algorithm, Hooks) else Hooks(algorithm, count, Position())
    rows = {client: np.array(row, np.float32) for client, row in enumerate(deltas) if row is not None}
    participants, size = np.array(list(rows)), len(next(iter(rows.values())))
    samples = np.ones(count, np.int64) if samples is None else np.array(samples)
    trained = size if trained is None else trained
    case = build("demo", CaseSettings("demo", {})).case
    counts = (samples, hooks.weights(samples), domains, trained, size)
    known = Known(case.seed, case.optimizer.lr, hooks, layout, NO_MESSAGES, *counts)
    flags = np.concatenate([np.zeros(0, np.uint8), *map(layout.pack, sent)])
    gathered = Gathered(np.array(headers), _table(hooks, rows, known, columns), flags, columns_of(hooks))
    planner = Planner(known)
    collectives, hosts = World().collectives, np.zeros(count, np.int64)
    means = Plain(collectives, hosts, ExactOptions(), trained, Buffers())
    answers = Answers(partial(gather_rows, collectives, hosts), means, trained, size, samples)
    before = np.zeros(count, np.int64) if group is None else np.array(group)
    plans = planner.plans(number, before, gathered, participants, lost=-1, checkpoint=checkpoint)
    asked, plan = [], next(plans)
    while plan.request:
        message = plan.pack()
        assert len(message) == planner.size
        asked.append(RoundPlan.unpack(message, count))
        plan = plans.send(answers.answer(asked[-1], participants, rows))
    return Round(planner.decided, asked, plan)


def _table(hooks, rows, known, columns):
    """Return the training table of these updates."""
    names = columns_of(hooks)
    table = np.full((len(known.samples), len(names)), np.nan)
    for client, row in rows.items():
        heaviest = 1 if "weights" in hooks.decides else max(known.samples[client], known.weights[client])
        norm = np.linalg.norm(row[: known.trained].astype(np.float64))
        exponent = reductions.weighted_exponent(row, int(heaviest))
        values = {"finite": 1.0, "exponent": exponent, "delta_norm": norm, "gradient_norm": norm}
        for name, value in values.items():
            table[client, names.index(name)] = value
    for name, values in columns.items():
        table[:, names.index(name)] = values
    return table
