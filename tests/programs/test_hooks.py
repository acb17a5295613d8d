"""Between the engine and an algorithm: names, exits, and what must stay as it is."""

import os
import sys
import traceback
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedmpi.algorithms.program import Request
from fedmpi.errors import RankFailed
from fedmpi.exits import exits_raised
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.store.schema import Field
from tests.algorithms.programs import hooks_of, named
from tests.refusals import refused

SERVER = SimpleNamespace(check=lambda: None, refuse_undeclared=lambda request: None)

ASKED = Request("rows", np.arange(2))

hooks = partial(hooks_of, 3, __module__=__name__)


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
def test_a_hook_cannot_end_the_process(leave):
    odd, whole = hooks(groups=lambda self, num_clients: exec(leave, {"sys": sys, "os": os})), os._exit
    with exits_raised(), refused("ended the process with exit code 0", RankFailed, "hook groups"):
        odd.groups(3)
    assert os._exit is whole
    odd = hooks(weights=property(lambda self: exec(leave, {"sys": sys, "os": os})))
    with exits_raised(), pytest.raises(RankFailed, match=r"hook weights .* ended the process"):
        odd.weights(np.ones(3, np.int64))


def test_a_change_is_of_the_gradient_only():
    vectors = [torch.ones(2) for _ in range(3)]
    adds = hooks(change=lambda self, gradient, model, received, memory: gradient.add_(1))
    adds.change(*vectors, {})
    assert vectors[0].tolist() == [2, 2]
    moves = hooks(change=lambda self, gradient, model, received, memory: received.add_(1))
    with pytest.raises(RankFailed, match=r"hook change .* changed `received`"):
        moves.change(*vectors, {})
    assert hooks().change is None


def asks_and(then):
    """Return a server's program that asks for something and then does this."""

    def decide(self, server):
        yield ASKED
        then()

    return hooks(decide=decide)


def test_an_error_after_a_request_names_algorithm_and_hook():
    talk = asks_and(lambda: {}["nowhere"]).decide(SERVER)
    assert next(talk) is ASKED
    with pytest.raises(KeyError) as raised:
        talk.send("answer")
    assert raised.value.__notes__ == [f"algorithm odd: hook decide in {__file__} raised KeyError"]


@pytest.mark.parametrize(("hook", "argument"), [("weights", np.ones(3, np.int64)), ("decide", SERVER)])
def test_an_error_that_also_ends_generators_names_algorithm_and_hook(hook, argument):
    odd = hooks(**{hook: lambda self, given: next(iter(()))})
    with pytest.raises((RuntimeError, RankFailed)) as raised:
        list(getattr(odd, hook)(argument))
    text = "".join(traceback.format_exception(raised.value))
    assert f"algorithm odd: hook {hook} in {__file__}" in text


def test_a_program_cannot_end_the_process_after_a_request():
    talk = asks_and(lambda: sys.exit(0)).decide(SERVER)
    next(talk)
    with pytest.raises(RankFailed, match=r"hook decide .* ended the process with exit code 0"):
        talk.send("answer")


def test_a_program_that_waits_for_an_answer_is_no_hook_that_runs():
    seen = []
    odd = asks_and(lambda: seen.append(odd.where.hook))
    talk = odd.decide(SERVER)
    next(talk)
    assert odd.where.hook is None
    assert list(talk) == [] and seen == [("odd.decide",)]


def test_a_hook_that_gets_no_answers_has_no_yield():
    def train(self, client):
        yield client.run_epochs()

    client = SimpleNamespace(received=torch.ones(1), run_epochs=lambda: None)
    with pytest.raises(RankFailed, match=r"^algorithm odd: hook train in .* has a yield"):
        hooks(train=train).train(client)


@pytest.mark.parametrize(
    ("decides", "central", "averages"),
    [
        ({"moves"}, True, False),
        ({"mixes"}, True, True),
        ({"splits", "weights"}, False, False),
        ({"groups"}, False, True),
    ],
)
def test_what_is_decided_says_who_updates_and_what_is_averaged(decides, central, averages):
    odd = hooks(decides=frozenset(decides))
    assert (odd.central, odd.averages_models) == (central, averages)
    assert odd.groups(3).tolist() == ([0, 1, 2] if decides == {"mixes"} else [0, 0, 0])


def test_a_rank_that_has_other_participants_is_named():
    with pytest.raises(RankFailed, match=r"hook participants .* gave rank 2 other clients than rank 0"):
        hooks().check_agreement(np.array([7.0, 7.0, 8.0]))


def test_the_hook_that_runs_is_noted():
    odd = hooks(begin=lambda self, trained, num_clients: seen.append(odd.where.hook))
    seen = []
    odd.begin(1, 3, None)
    assert seen == [("odd.begin",)]
    assert odd.where.hook is None


def test_the_engine_knows_what_an_algorithm_decides_and_asks_for():
    found = Hooks(named("gcfl-plus", criterion="weighted"), 3, Position())
    assert (found.name, found.central, found.change) == ("gcfl-plus", False, None)
    assert (found.decides, found.asks) == ({"splits"}, {"means"})
    found.begin(5, 3, None)
    assert found.server_state()["sequences"].shape == (3, 10)


def test_what_was_checked_before_the_first_round_holds_to_the_end():
    asked = []

    def weights(self, samples):
        asked.append(1)
        return samples * len(asked)

    odd = hooks(weights=weights)
    first = odd.weights(np.array([5, 6, 7]))
    first[0] = 0
    assert odd.weights(np.array([5, 6, 7])).tolist() == [5, 6, 7]
    assert asked == [1]


def test_a_promised_field_must_be_given():
    promised = Field("age", ("round",), "f8", "1", "rounds since", "result")
    odd = hooks(fields=lambda self, num_clients: (promised,))
    odd.check_fields({"age": 1})
    with pytest.raises(RankFailed, match=r'hook decide .* recorded no "age", which fields\(\) names'):
        odd.check_fields({})
