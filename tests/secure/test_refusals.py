"""What a client refuses, whoever asks, and what a changed message does."""

import pytest

from fedmpi.secure.keys import SEAL_BYTES, Tampered
from fedmpi.secure.roster import Refused, TooFew
from tests.secure.sums import Setting

PROTOCOLS = "secagg", "lightsecagg"


def after_upload(protocol):
    return Setting.of(protocol, range(4), 3).after_upload()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_answers_once(protocol):
    clients = after_upload(protocol)
    clients[0].answer([0, 1, 2, 3])
    with pytest.raises(Refused):
        clients[0].answer([0, 1, 2])  # with the first answer: both secrets of client 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_too_few_survivors_get_no_answer(protocol):
    with pytest.raises(TooFew):
        after_upload(protocol)[0].answer([0, 1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_that_dropped_out_gives_no_answer(protocol):
    with pytest.raises(Refused):
        after_upload(protocol)[0].answer([1, 2, 3])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("place", [0, SEAL_BYTES, -1])
def test_a_changed_byte_is_seen(protocol, place):
    clients = Setting.of(protocol, range(3), 2).clients()
    sealed = bytearray(clients[0].offer()[0][1])
    sealed[place] ^= 1
    with pytest.raises(Tampered):
        clients[1].accept({0: bytes(sealed), 2: clients[2].offer()[0][1]})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shares_for_one_client_are_of_no_use_to_another(protocol):
    clients = Setting.of(protocol, range(3), 2).clients()
    offer = clients[0].offer()[0]
    with pytest.raises(Tampered):
        clients[2].accept({0: offer[1], 1: clients[1].offer()[0][2]})
