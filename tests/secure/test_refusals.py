"""What a client refuses, whoever asks, and what a changed message does."""

import pytest

from fedmpi.secure.keys import SEAL_BYTES, Tampered
from fedmpi.secure.roster import Refused, TooFew
from tests.secure.sums import Setting

PROTOCOLS = "secagg", "lightsecagg"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("answered", "survivors", "error"),
    [
        ([[0, 1, 2, 3]], [0, 1, 2], Refused),  # with the first answer: both secrets of client 3
        ([], [0, 1], TooFew),
        ([], [1, 2, 3], Refused),  # it has dropped out, they say
    ],
)
def test_a_client_answers_once_that_enough_are_left_itself_among_them(protocol, answered, survivors, error):
    client = Setting.of(protocol, range(4), 3).after_upload()[0]
    for each in answered:
        client.answer(each)
    with pytest.raises(error):
        client.answer(survivors)


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
