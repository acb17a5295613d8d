"""What a population cannot have is refused before anything starts."""

import pytest

from fedmpi.config.suite import CaseSettings
from fedmpi.registry.check import _Refused, build

FITTING = {"dataset": "PROTEINS", "partition": "population", "optimizer": {"state": "reset"}, "share": "all"}


@pytest.mark.parametrize(
    ("key", "changed", "words"),
    [
        ("algorithm", {"algorithm": "ditto"}, "ditto needs clients that stay"),
        ("algorithm", {"algorithm": "self-train"}, "self-train needs clients that stay"),
        ("algorithm", {"algorithm": "centralised"}, "centralised needs clients that stay"),
        ("algorithm", {"algorithm": "gcfl"}, "gcfl needs clients that stay"),
        ("algorithm", {"algorithm": "q-fedavg"}, "q-fedavg needs clients that stay"),
        ("algorithm", {"algorithm": "feddyn"}, "feddyn needs clients that stay"),
        ("algorithm", {"algorithm": "moon"}, "moon needs clients that stay"),
        ("algorithm", {"algorithm": "fedala"}, "fedala needs clients that stay"),
        ("algorithm", {"algorithm": "apfl"}, "apfl needs clients that stay"),
        ("optimizer.state", {"optimizer": "adam"}, 'use "reset"'),
        ("participation", {"participation": 0.5}, "partition.clients says how many"),
        ("kernels", {"kernels": "grouped"}, '"grouped" keeps'),
        ("model.head", {"model": {"head": "own"}, "share": "conv"}, 'use "dataset"'),
        ("attack", {"attack": "sign-flip"}, "no clients that attack again"),
        ("reduction.keys", {"reduction": {"name": "secagg", "keys": "run"}}, 'use "sum"'),
        ("partition", {"partition": {"name": "population", "population": 9}}, "of a population of 9"),
    ],
)
def test_what_clients_that_are_gone_cannot_do_is_refused(key, changed, words):
    with pytest.raises(_Refused) as refused:
        build("demo", CaseSettings("demo", {**FITTING, **changed}))
    assert refused.value.key == key
    assert words in refused.value.text


@pytest.mark.parametrize(
    "changed",
    [{}, {"algorithm": "fedadam"}, {"algorithm": "fedprox"}, {"optimizer": "sgd"}, {"algorithm": "median"}],
)
def test_what_needs_no_client_again_fits(changed):
    assert build("demo", CaseSettings("demo", {**FITTING, **changed})).case.partition.num_clients(1) == 100
