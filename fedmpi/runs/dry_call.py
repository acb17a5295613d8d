"""A client's program of a plug-in on few batches, before a run folder is made: what is wrong costs no run."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.schema import Case
from fedmpi.client.program_view import BetweenRounds
from fedmpi.client.states import States
from fedmpi.errors import BadInput, FedmpiError, RankFailed
from fedmpi.exchange.network import ServerNetwork
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position

_BATCHES = 4
"""Of each epoch; some programs take two at a time."""


def try_out(case: Case, algorithm: Algorithm, states: States, where: Position) -> None:
    """Run the programs of a hosted client on few batches; the client is then as it was.

    Raises
    ------
    BadInput
        They do what they must not, or raise an exception; the text names algorithm, hook, file and line.
    """
    client = next((each for each in states.clients.values() if each.passes is not None), None)
    if client is None:
        return
    hooks = Hooks(type(algorithm)(algorithm.options), len(states.hosts), where)
    kept = case.optimizer.state == "kept"
    states.draw(case.seed, 0)
    before, client.most_batches = client.state(kept), _BATCHES
    try:
        hooks.begin(states.trained, len(states.hosts), ServerNetwork(case, states.shape))
        hooks.watching = True
        client.memory.start(client.row)
        client.train_locally(case, hooks, 0)
        if hooks.evaluated is not None:
            hooks.evaluated(BetweenRounds(client))
    except RankFailed as error:
        raise BadInput(str(error)) from error
    except FedmpiError:
        raise
    except Exception as error:
        raise BadInput(str(hooks.raised(error))) from error
    finally:
        client.restore(before, kept)
        client.most_batches = None
