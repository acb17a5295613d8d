"""Whoever drops out, and when: the server has the survivors' sum, or nothing."""

from itertools import product

import numpy as np
import pytest

from fedmpi.secure.roster import TooFew
from tests.secure.sums import ANSWER, NEVER, SHARES, UPLOAD, Setting, plain_sum, secure_sum, summands

PROTOCOLS = "secagg", "lightsecagg"


def outcome(setting, values, leaves):
    try:
        return secure_sum(setting, values, leaves)
    except TooFew:
        return None


def check(setting, values, leaves):
    shared = sum(step > SHARES for step in leaves.values())
    answering = sum(step > ANSWER for step in leaves.values())
    found = outcome(setting, values, leaves)
    if answering >= setting.roster.threshold:
        assert (found == plain_sum(values, leaves)).all(), leaves
    else:
        assert found is None, leaves
    assert shared >= answering


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_fate_of_every_client(protocol, size):
    members = [3, 5, 8, 13, 14][:size]
    setting, values = Setting.of(protocol, members, max(2, size // 2 + 1)), summands(members)
    for fates in product((SHARES, UPLOAD, ANSWER, NEVER), repeat=size):
        check(setting, values, dict(zip(members, fates, strict=True)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("step", [SHARES, UPLOAD, ANSWER])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_every_subset_at_every_step(protocol, step, size):
    members = range(size)
    setting, values = Setting.of(protocol, members, max(2, size // 2 + 1)), summands(members)
    for gone in product((step, NEVER), repeat=size):
        check(setting, values, dict(zip(members, gone, strict=True)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sampled_fates_of_twenty(protocol):
    random, members = np.random.default_rng(1), range(20)
    setting, values = Setting.of(protocol, members, 9), summands(members)
    for _ in range(6):
        fates = random.choice([SHARES, UPLOAD, ANSWER, NEVER], 20, p=[0.1, 0.15, 0.15, 0.6])
        check(setting, values, dict(zip(members, fates.tolist(), strict=True)))


@pytest.mark.parametrize("step", [SHARES, UPLOAD, ANSWER])
def test_every_subset_of_a_ring_of_six(step):
    members = range(6)
    setting, values = Setting.of("secagg", members, 3, degree=4), summands(members)
    for gone in product((step, NEVER), repeat=6):
        leaves = dict(zip(members, gone, strict=True))
        found, lost = outcome(setting, values, leaves), gone.count(step)
        if lost <= 2:  # every circle of five keeps three
            assert (found == plain_sum(values, leaves)).all(), leaves
        if lost > 3:
            assert found is None, leaves


@pytest.mark.parametrize("step", [SHARES, UPLOAD, ANSWER])
def test_neighbours_in_a_ring_recover_the_sum(step):
    members = range(12)
    setting, values = Setting.of("secagg", members, 3, degree=6), summands(members)
    for first, second in [(0, 1), (3, 7), (11, 2)]:
        leaves = {first: step, second: step}
        assert (secure_sum(setting, values, leaves) == plain_sum(values, leaves)).all()
