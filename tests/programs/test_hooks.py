"""Between the engine and an algorithm: names, exits, and what must stay as it is."""

import os
import sys

import numpy as np
import pytest
import torch

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.capabilities import RowAggregate, Splits
from fedmpi.algorithms.gcfl_plus import GcflPlus, GcflPlusOptions
from fedmpi.errors import RankFailed
from fedmpi.exchange.splitting import Findings
from fedmpi.exits import exits_raised
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.runs.rows import findings
from fedmpi.store.schema import Field


def hooks(*capabilities, **methods):
    """Return an algorithm named "odd" with these hooks, between it and the engine."""
    odd = type("Odd", (*capabilities, Algorithm), methods)(AlgorithmOptions(name="odd"))
    odd.name = "odd"
    return Hooks(odd, 3, Position())


def test_a_breach_names_algorithm_hook_and_file():
    with pytest.raises(RankFailed) as failed:
        hooks(weights=lambda self, samples: -samples).weights(np.array([5, 6, 7]))
    assert str(failed.value) == (
        f"algorithm odd: hook weights in {__file__} returned -5 for client 0: a whole weight is 0 to 536870911"
    )


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
def test_a_hook_cannot_end_the_process(leave):
    odd, whole = hooks(groups=lambda self, num_clients: exec(leave, {"sys": sys, "os": os})), os._exit
    with (
        exits_raised(),
        pytest.raises(RankFailed, match=r"hook groups .* ended the process with exit code 0"),
    ):
        odd.groups(3)
    assert os._exit is whole


def test_a_change_is_of_the_gradient_only():
    vectors = [torch.ones(2) for _ in range(3)]
    adds = hooks(change=lambda self, gradient, model, received, memory: gradient.add_(1))
    adds.change(*vectors, {})
    assert vectors[0].tolist() == [2, 2]
    moves = hooks(change=lambda self, gradient, model, received, memory: received.add_(1))
    with pytest.raises(RankFailed, match=r"hook change .* changed `received`"):
        moves.change(*vectors, {})
    assert hooks().change is None


def test_an_algorithm_that_takes_rows_is_updated_on_rank_0():
    class Last(RowAggregate, Algorithm):
        name = "last"

        def aggregate(self, rows, weights):
            return rows[-1]

    last = Hooks(Last(AlgorithmOptions(name="last")), 3, Position())
    assert last.central
    assert (hooks().rows, hooks().central) == (None, False)
    with pytest.raises(
        RankFailed, match=r"hook aggregate .* returned float32 \[2\]: it must be float64 \[2\]"
    ):
        last.rows.aggregate(np.zeros((3, 2), np.float32), np.ones(3, np.int64))


def test_what_is_recorded_of_reports_cannot_be_changed():
    def observe(self, reports):
        reports["delta_norm"][0] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        hooks(Splits, observe=observe).splits.observe({"delta_norm": np.ones(3)})


def test_a_rank_that_has_other_participants_is_named():
    with pytest.raises(RankFailed, match=r"hook participants .* gave rank 2 other clients than rank 0"):
        hooks().check_agreement(np.array([7.0, 7.0, 8.0]))


def test_the_hook_that_runs_is_noted():
    odd = hooks(begin=lambda self, trained, num_clients: seen.append(odd.where.hook))
    seen = []
    odd.begin(1, 3)
    assert seen == [("odd.begin",)]
    assert odd.where.hook is None


def test_an_algorithm_has_the_hooks_of_its_capabilities():
    found = Hooks(GcflPlus(GcflPlusOptions(criterion="weighted")), 3, Position())
    assert (found.name, found.central) == ("gcfl-plus", False)
    assert found.capabilities == ["Splits"]
    assert found.splits.criterion_is_weighted
    assert (found.mending, found.rows, found.change) == (None, None, None)
    found.begin(5, 3)
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


def test_the_engine_gives_only_the_fields_that_it_knows():
    axes = {
        "age": ("round",),
        "delta_mean": ("round", "client"),
        "split_weights": ("round", "client", "client"),
    }
    fields = [Field(name, each, "f8", "1", "", "result") for name, each in axes.items()]
    nothing = findings(fields, np.zeros(3, np.int64), np.ones(3), Findings())
    assert {name: values.shape for name, values in nothing.items()} == {
        "delta_mean": (3,), "split_weights": (3, 3), "delta_max": (3,),
    }  # fmt: skip


def test_a_property_that_leaves_is_a_hook_that_leaves():
    odd = hooks(Splits, criterion_is_weighted=property(lambda self: sys.exit(0)))
    with pytest.raises(RankFailed, match=r"hook criterion_is_weighted .* ended the process"):
        _ = odd.splits.criterion_is_weighted
