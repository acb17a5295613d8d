"""What a client refuses, whoever asks; of changed messages tests/secure/test_active.py."""

import pytest

from fedmpi.secure.keys import Tampered
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
def test_shares_for_one_client_are_of_no_use_to_another(protocol):
    clients = Setting.of(protocol, range(3), 2).clients()
    offer = clients[0].offer()[0]
    with pytest.raises(Tampered):
        clients[2].accept({0: offer[1], 1: clients[1].offer()[0][2]})
