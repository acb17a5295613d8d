import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmpi.seeds import Purpose, keep_bits, key, keys, permutation, words


def test_words_are_splitmix64():
    # Published first outputs of SplitMix64 from state 0.
    assert [hex(word) for word in words(0, 3)] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


def test_an_element_does_not_depend_on_how_many_are_drawn():
    assert np.array_equal(words(42, 1000)[:7], words(42, 7))
    for drop in (0.5, 0.25, 0.1):
        assert np.array_equal(keep_bits(42, 1000, drop)[:77], keep_bits(42, 77, drop))


def test_keys_tell_coordinates_apart():
    found = {
        key(1, Purpose.DROPOUT, client, round, 0, layer)
        for client in range(9)
        for round in range(9)
        for layer in range(4)
    }
    assert len(found) == 9 * 9 * 4
    assert key(1, Purpose.DROPOUT, 12, 3) != key(1, Purpose.DROPOUT, 1, 23)


def test_keys_of_several_streams_are_those_of_each():
    assert keys(12, 1, Purpose.DROPOUT, 4, 7) == [key(1, Purpose.DROPOUT, 4, 7, last) for last in range(12)]


@pytest.mark.parametrize("drop", [0.5, 0.25, 0.1, 0.9])
def test_masks_keep_the_stated_share(drop):
    kept = keep_bits(key(5, Purpose.DROPOUT), 400_000, drop).mean()
    assert abs(kept - (1 - drop)) < 4 * np.sqrt(drop * (1 - drop) / 400_000)


@given(st.integers(0, 2**64 - 1), st.integers(0, 300))
def test_permutations_hold_every_number_once(stream, count):
    assert sorted(permutation(stream, count)) == list(range(count))
