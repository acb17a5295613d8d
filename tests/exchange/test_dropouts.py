"""Clients that drop out: who is drawn, what the record says, what is left of a sum."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

from fedmpi.case.reductions import DropoutOptions, ExactOptions, Fixed32Options, ScheduledDropout
from fedmpi.comm.world import World
from fedmpi.errors import TooFewLeft
from fedmpi.exchange import masked
from fedmpi.exchange.aggregation import Buffers, Groups, Plain, gather_rows
from fedmpi.exchange.dropouts import Dropouts, Step
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.key_ring import KeyRing
from fedmpi.exchange.planning import REQUESTS, Answers
from fedmpi.runs.run import run
from fedmpi.runs.signals import StopRequest
from fedmpi.secure.protocols import SecAgg
from fedmpi.store.reader import load_run
from tests.mpi.session import Silent, fields_that_differ, only
from tests.refusals import refused
from tests.secure.sums import meter_of


def drawn(seed=1, clients=1000, **options):
    return Dropouts(DropoutOptions(**options), seed, clients)


def test_draws_are_of_the_share_and_the_steps_that_the_options_say():
    """A tenth before its upload; "any" is one of the steps of a sum."""
    steps = drawn(probability=0.1).of(0)
    assert set(steps.tolist()) == {Step.UPLOAD, Step.NEVER}
    assert 70 < np.count_nonzero(steps == Step.UPLOAD) < 130
    counts = np.bincount(drawn(probability=1.0, step="any").of(3), minlength=Step.NEVER + 1)
    assert min(counts[[Step.SHARES, Step.UPLOAD, Step.ANSWERS]]) > 250
    assert not counts[[0, Step.TRAINING, Step.NEVER]].any()


def test_draws_depend_on_seed_and_round_and_on_no_other_client():
    few, many = drawn(probability=0.5, clients=10), drawn(probability=0.5)
    assert few.of(2).tolist() == many.of(2)[:10].tolist()
    assert many.of(2).tolist() != many.of(3).tolist()
    assert many.of(2).tolist() != drawn(seed=2, probability=0.5).of(2).tolist()


def test_a_schedule_comes_before_the_draw():
    planned = ScheduledDropout(round=3, clients=(1, 4), step="answers")
    up, late = Step.UPLOAD, Step.ANSWERS
    assert drawn(probability=1.0, clients=5, schedule=(planned,)).of(2).tolist() == [up, late, up, up, late]
    assert drawn(clients=5, schedule=(planned,)).of(1).tolist() == [Step.NEVER] * 5


def test_a_client_that_there_is_not_is_refused():
    with refused(match="there is no client 5 of 5"):
        drawn(clients=5, schedule=(ScheduledDropout(round=1, clients=(5,)),))


def finished(root, case, overrides, expected=None):
    """Run a case of the MPI sessions' suite on one rank; return its notes and its record."""
    job = only(root, f"case={case}", *overrides)
    notes = Silent()
    with pytest.raises(expected) if expected else nullcontext():
        run(job, World(), notes, StopRequest())
    return notes.notes, load_run(job.folder)


LOST = ["reduction.dropouts.schedule=[{round = 2, clients = [0, 2, 4]}]"]


@pytest.mark.parametrize("protocol", ["secagg", "lightsecagg"])
def test_below_the_threshold_the_model_stays_and_the_run_goes_on(tmp_path, protocol):
    notes, found = finished(tmp_path, "dropouts", [f"reduction.name={protocol}", *LOST])
    line = "round 2: 2 of 5 clients of group 0 sent updates, 2 stayed to the end: no sum, its model stays as it is"
    assert line in notes
    assert found.status == "complete"
    assert found.results["aborted_sums"].tolist() == [0, 1, 0, 0]
    assert found.results["survivors"].tolist() == [[5] * 5, [0] * 5, [5] * 5, [5] * 5]
    assert found.results["dropped_out"].tolist()[1] == [3, 0, 3, 0, 3]
    sent = found.results["client_bytes_up"]
    assert (sent[1] > 0).tolist() == [False, True, False, True, False]
    shared = load_run(tmp_path / found.folder.name).results["test_loss"]
    assert shared[1].tolist() != shared[2].tolist()  # the next round has a sum again


def test_below_the_threshold_the_run_may_end(tmp_path):
    _, found = finished(tmp_path, "dropouts", [*LOST, "reduction.below_threshold=stop"], TooFewLeft)
    assert (found.status, found.rounds_completed) == ("failed", 1)
    assert found.reason.startswith("round 2: 2 of 5 clients of group 0 sent updates")


def test_a_client_whose_training_is_killed_reports_nothing(tmp_path):
    _, found = finished(tmp_path, "dropouts", [])
    assert found.results["dropped_out"].tolist()[3] == [1, 0, 0, 0, 0]
    assert found.results["participated"].tolist()[3] == [0, 1, 1, 1, 1]
    assert np.isnan(found.results["train_loss"][3]).tolist() == [True, False, False, False, False]


def test_of_all_clients_without_training_nothing_is_left(tmp_path):
    lost = "reduction.dropouts.schedule=[{round = 2, clients = [0, 1, 2, 3, 4], step = 'training'}]"
    _, found = finished(tmp_path, "dropouts", [lost])
    assert found.results["survivors"].tolist() == [[5] * 5, [0] * 5, [5] * 5, [5] * 5]
    assert (found.results["parameter_digest"][0] == found.results["parameter_digest"][1]).all()


GCFL_PLUS = "algorithm={name = 'gcfl-plus', eps1 = 10.0, eps2 = 0.0, warmup = 1, length = 2}"
DROPPED = (
    "reduction.dropouts.schedule=[{round = 2, clients = [1]}, {round = 3, clients = [0], step = 'answers'}]"
)


@pytest.mark.parametrize(
    ("case", "options", "unknown"),
    [
        ("fedcch", ["reduction.clip=8.0"], {"/rounds/delta_norm"}),
        ("fedavg", [GCFL_PLUS], set()),
        ("sampled", [], {"/rounds/delta_norm"}),
        ("ditto", ["participation=1.0"], {"/rounds/delta_norm"}),
    ],
)
def test_groups_and_samples_of_clients_have_the_sums_of_fixed32(tmp_path, case, options, unknown):
    found = {}
    for name in ("fixed32", "secagg"):
        own = ["reduction.keys=sum"] if name == "secagg" else []
        overrides = [f"reduction.name={name}", *options, DROPPED, *own]
        _, found[name] = finished(tmp_path / name, case, overrides)
    assert not any(found[name].results["aborted_sums"].any() for name in found)
    assert fields_that_differ(found["fixed32"].folder, found["secagg"].folder) == unknown


def test_an_upload_that_is_put_aside_is_missing_from_the_sum_as_one_that_never_came(monkeypatch):
    """Client 1 uploads, and both its neighbours in the ring do not."""
    monkeypatch.setattr(masked, "shuffled", list)  # else the operating system draws the ring
    collectives, everybody = World().collectives, np.arange(8)
    hosts, weights = np.zeros(8, np.int64), everybody + 1
    deltas = {n: np.random.default_rng(n).normal(0, 0.3, 5).astype(np.float32) for n in range(8)}

    def mean(aggregation, *gone):
        steps = np.full(8, Step.NEVER, np.int64)
        steps[list(gone)] = Step.UPLOAD
        found = aggregation.means(Groups(hosts, hosts, {0: 0}, steps=steps), everybody, weights, deltas)
        return found[0].tolist(), aggregation.survivors

    keys, ring = KeyRing(collectives, hosts, renewed=False), SecAgg(5, 0.5, 2)
    secure = masked.Masked(collectives, hosts, ring, 2.0, 5, keys, meter_of(collectives), announces=True)
    plain = Plain(collectives, hosts, Fixed32Options(clip=2.0), 5, Buffers())
    assert mean(secure, 0, 2) == mean(plain, 0, 1, 2)
    assert secure.survivors == {0: 5}


def test_a_group_of_which_no_update_arrived_has_no_mean():
    deltas = dict(enumerate(np.array([[1, 0, 9], [5, 4, 9], [2, 2, 9], [8, 0, 9]], np.float32)))
    group, hosts, marks = np.array([0, 0, 1, 3]), np.zeros(4, np.int64), np.array([1, 1, 0, 1])
    steps = np.array([Step.UPLOAD, Step.UPLOAD + 1, Step.UPLOAD, Step.UPLOAD + 1])
    collectives, exponent = World().collectives, np.full(4, 5)  # all is less than 2^5
    means = Plain(collectives, hosts, ExactOptions(), 2, Buffers())
    plan = RoundPlan(
        group, exponent, marks, -1, -1, False, False, request=REQUESTS.index("means"), steps=steps
    )
    answers = Answers(partial(gather_rows, collectives, hosts), means, 2, 3, np.array([3, 1, 1, 1]))
    found = answers.answer(plan, np.arange(4), deltas)
    assert {number: mean.tolist() for number, mean in found.items()} == {0: [5.0, 4.0], 3: [8.0, 0.0]}
