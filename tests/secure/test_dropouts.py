"""Whoever drops out, and when: the server has the survivors' sum, or nothing."""

from itertools import product

import pytest

from fedmpi.secure import neighbours, shamir
from fedmpi.secure.roster import Refused, Roster, TooFew
from tests.secure.sums import ANSWER, NEVER, SHARES, UPLOAD, Setting, plain_sum, secure_sum, summands

PROTOCOLS = "secagg", "lightsecagg"


def check(setting, values, leaves, enough):
    """Hold that the server has the survivors' sum where enough stay, else nothing."""
    try:
        found = secure_sum(setting, values, leaves)
    except TooFew:
        assert not enough, leaves
    else:
        assert enough and (found == plain_sum(values, leaves)).all(), leaves


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_fate_of_every_client(protocol, size):
    members = [3, 5, 8, 13, 14][:size]
    setting, values = Setting.of(protocol, members, max(2, size // 2 + 1)), summands(members)
    for fates in product((SHARES, UPLOAD, ANSWER, NEVER), repeat=size):
        answering = sum(step > ANSWER for step in fates)
        leaves = dict(zip(members, fates, strict=True))
        check(setting, values, leaves, answering >= setting.roster.threshold)


@pytest.mark.parametrize("step", [SHARES, UPLOAD, ANSWER])
def test_every_subset_of_a_ring_of_six(step):
    members = range(6)
    setting, values = Setting.of("secagg", members, 3, degree=4), summands(members)
    for gone in product((step, NEVER), repeat=6):
        if (lost := gone.count(step)) != 3:  # with two gone every circle of five keeps three
            check(setting, values, dict(zip(members, gone, strict=True)), lost < 3)


def in_a_ring(members, threshold, degree):
    """Return a sum in a ring whose order is that of the members."""
    order = list(members)
    return Setting("secagg", Roster(b"run", 3, 0, tuple(order), neighbours.ring(order, degree), threshold))


@pytest.mark.parametrize(
    ("degree", "threshold", "leaves", "apart"),
    [
        (2, 2, {0: UPLOAD, 2: UPLOAD}, {1}),  # its answer is the second share of both vaults' keys
        (4, 3, dict.fromkeys((0, 1, 5, 6), UPLOAD), {2, 3, 4}),
        (4, 3, dict.fromkeys((0, 1, 5, 6), SHARES), {2, 3, 4}),
    ],
)
def test_uploads_that_no_masks_join_with_the_others_are_put_aside(degree, threshold, leaves, apart):
    members = range(12)
    setting, values = in_a_ring(members, threshold, degree), summands(members)
    gone = leaves | dict.fromkeys(apart, UPLOAD)
    assert (secure_sum(setting, values, leaves) == plain_sum(values, gone)).all()


def test_of_two_equal_parts_the_sum_is_that_of_the_first():
    members = range(8)
    setting, values = in_a_ring(members, 2, 2), summands(members)
    found = secure_sum(setting, values, {0: SHARES, 4: SHARES})
    assert (found == plain_sum(values, dict.fromkeys((0, 4, 5, 6, 7), UPLOAD))).all()


def test_a_client_apart_keeps_its_own_seed_and_that_of_its_part():
    """Of each client that is not in the sum only the vault's key may be known."""
    members = range(12)
    setting = in_a_ring(members, 3, 4)
    clients = setting.after_upload()
    survivors = [8, 9, 10, 11]
    answer = clients[4].answer(survivors)
    circle, cut = setting.roster.circle(4), shamir.SHARE_BYTES
    for place, other in enumerate(circle):
        own, vault = clients[4]._held[other][:cut], clients[4]._held[other][cut:]
        assert answer[place * cut :][:cut] == vault != own
    with pytest.raises(Refused):
        clients[5].answer([6, 7, 8, 9])  # partners are in the list, and it is not
