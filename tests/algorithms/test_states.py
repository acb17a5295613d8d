"""A client's state holds all that its algorithm has it keep: from there on it trains to the same bits."""

import numpy as np
import pytest
import torch

ADAM = "optimizer=adam"


@pytest.mark.parametrize(
    ("making", "settings", "steps"),
    [
        ("prepared", ("algorithm=apfl", "algorithm.adaptive=true", ADAM), None),
        ("prepared", ("algorithm=ditto", ADAM), [2, 2]),
        ("prepared", ("algorithm=fedala", "share=all"), None),
        ("prepared", ("algorithm=feddyn",), None),
        ("prepared", ("algorithm=fedproto",), None),
        ("prepared", ("algorithm=fedrep", "algorithm.head_epochs=2", "local_epochs=3", ADAM), [4, 6]),
        ("prepared", ("algorithm=moon",), None),
        ("prepared_parts", ("algorithm=fedpub", ADAM), [2, 2]),
    ],
)
def test_a_state_holds_all_that_a_client_keeps(request, making, settings, steps):
    """Step counts too, beyond what a float32 holds."""
    rounds = request.getfixturevalue(making)(*settings)
    one, case, keeps = rounds.clients[0], rounds.case, ADAM in settings
    adams = (one.adam, *one.moments.values()) if keeps else ()
    for vector in one.memory.held.values():
        vector += 0.01
    for moments in one.moments.values():
        moments.steps = 2**20
    for round in range(2):
        one.train_locally(case, rounds.algorithm, round)
    for table in one.told.values():
        table[0] = torch.linspace(0.0, 1.0, table.shape[1])
    assert steps is None or [adam.steps % 2**20 for adam in adams] == steps

    vectors = [one.row, *one.memory.held.values(), *one.told.values()]
    vectors += [vector for adam in adams for vector in (adam.mean, adam.square)]
    before, counts = [vector.clone() for vector in vectors], [adam.steps for adam in adams]
    assert all(vector.nan_to_num().any() for vector in before)
    kept = one.state(kept=keeps)
    assert len(kept) == rounds.states.layouts()[0].size
    one.train_locally(case, rounds.algorithm, 2)
    after = one.state(kept=keeps)

    for vector in vectors:
        vector.zero_()
    for adam in adams:
        adam.steps = 0
    one.restore(kept, kept=keeps)
    torch.testing.assert_close(vectors, before, rtol=0, atol=0, equal_nan=True)
    assert [adam.steps for adam in adams] == counts
    one.train_locally(case, rounds.algorithm, 2)
    assert np.array_equal(one.state(kept=keeps), after, equal_nan=True)
