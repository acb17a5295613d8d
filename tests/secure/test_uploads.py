"""Masked uploads look like noise: bytes are uniform, and nothing of the update shows in them."""

import numpy as np
import pytest

from fedmpi.comm.reductions import Fixed32
from fedmpi.secure.keys import AgreementKey
from fedmpi.secure.protocols import LightSecAgg, SecAgg
from tests.secure.sums import exchange

SIZE, MEMBERS = 60_000, range(4)
PROTOCOLS = {
    "secagg": SecAgg(SIZE, 0.5),
    "secagg+": SecAgg(SIZE, 0.5, 2),
    "lightsecagg": LightSecAgg(SIZE, 0.7, 0.5),
}
DELTA = (np.random.default_rng(1).laplace(0, 1e-3, SIZE)).astype(np.float32)
WORDS = Fixed32(len(MEMBERS), 1.0).encode(DELTA, 1)

MOST = 380
"""Bound of chi-squared of 255 degrees of freedom that noise passes once in about a million times."""


def chi_squared(upload):
    """Return it by byte of a word, against equal frequencies; the last has 7 bits in LightSecAgg's field."""
    columns = upload.astype(np.uint32).view(np.uint8).reshape(-1, 4).T
    values = []
    for place, column in enumerate(columns):
        kinds = 128 if place == 3 and upload.dtype == np.uint64 else 256
        expected = SIZE / kinds
        values.append(((np.bincount(column, minlength=kinds) - expected) ** 2 / expected).sum())
    return values


def correlation(one, other):
    return abs(np.corrcoef(one.astype(np.float64), other.astype(np.float64))[0, 1])


@pytest.fixture(params=PROTOCOLS)
def uploads(request):
    """The uploads of a sum in which every client has the same update."""
    protocol = PROTOCOLS[request.param]
    keys = {number: AgreementKey() for number in MEMBERS}
    public = {number: key.public for number, key in keys.items()}
    roster = protocol.roster(b"run", 1, 0, list(MEMBERS))
    clients = {number: protocol.client(number, keys[number], public, roster) for number in MEMBERS}
    exchange(roster, clients)
    return [client.upload(WORDS).copy() for client in clients.values()]


def test_an_update_without_masks_fails_the_test_of_bytes():
    assert min(chi_squared(WORDS)[2:]) > 100 * MOST


def test_bytes_are_uniform_and_do_not_correlate_with_the_update(uploads):
    bound = 5 / np.sqrt(SIZE)  # noise exceeds it once in about two million times
    assert correlation(WORDS, DELTA) > 0.99
    for upload in uploads:
        assert max(chi_squared(upload)) < MOST
        assert correlation(upload, DELTA) < bound
        assert correlation(upload, np.abs(DELTA)) < bound
    assert correlation(uploads[0], uploads[1]) < bound


def test_the_sum_of_all_but_one_is_noise_too(uploads):
    total = np.sum(uploads[1:], axis=0, dtype=uploads[0].dtype)
    if total.dtype == np.uint64:
        total %= 2**31 - 1
    assert max(chi_squared(total)) < MOST
    assert correlation(total, DELTA) < 5 / np.sqrt(SIZE)
