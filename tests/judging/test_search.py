"""The expected score of a random search, worked out by hand."""

import math

import pytest

from fedmpi.judging.search import expected_score


def test_the_expected_score_is_that_of_the_candidate_that_validation_chooses():
    # Of three the best of two drawn is the best with 1 - (2/3)^2 = 5/9, the second with 3/9, the worst with 1/9.
    found = expected_score([0.7, 0.9, 0.8], [0.5, 0.6, 0.9], [1, 2])
    assert found == pytest.approx([2 / 3, (5 * 0.6 + 3 * 0.9 + 1 * 0.5) / 9])


def test_equal_candidates_share_their_weight():
    # The tie has ranks 2 and 3: together 8/9 of two draws, half of it each.
    assert expected_score([0.1, 0.9, 0.9], [0.0, 1.0, 0.5], [2]) == pytest.approx([8 / 9 * 0.75])


def test_a_candidate_that_has_diverged_ranks_last_with_what_is_used_in_its_place():
    # Validation scores may be negative, as an error's are.
    assert expected_score([math.nan, -5.0], [0.2, 1.0], [1, 2]) == pytest.approx([0.6, 0.25 * 0.2 + 0.75])


def test_nothing_is_expected_where_a_score_is_unknown():
    assert math.isnan(expected_score([math.nan, 0.5], [math.nan, 1.0], [1])[0])
