import math
from dataclasses import replace

import pytest

from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import Judgement, Question, in_words, judge, together


def within(value, error, count=5, margin=0.02):
    """Ask whether a difference is none but for a margin."""
    return Question(Estimate(value, error, count, count - 1), -margin, margin)


DOUBTFUL = within(0.046, 0.01)
"""t = 2.6 beyond the margin with 4 degrees of freedom: p = 0.031 alone, 0.063 as one of two."""
IDLE = (Question(None, -0.02, 0.02), within(0.0, math.nan, count=1))
LEAD = Estimate(0.05, 0.01, 5, 4)


@pytest.mark.parametrize(
    ("questions", "answers"),
    [
        ([within(0.001, 0.002)], ["**confirmed**"]),
        ([within(0.1, 0.01)], ["**refuted**"]),
        ([within(-0.1, 0.01)], ["**refuted**"]),
        # 0.01 beyond the margin: 0.01 / (0.02 root of 5 / n) reaches Student's t at n = 56.
        ([within(0.03, 0.02)], ["undecided at 5 seeds, about 56 needed"]),
        ([within(0.3, math.nan, count=1)], ["undecided at 1 seed, at least 3 needed"]),
        ([Question(None, -0.02, 0.02)], ["not run"]),
        ([Question(LEAD, 0.01, math.inf)], ["**confirmed**"]),
        ([Question(LEAD, 0.09, math.inf)], ["**refuted**"]),
        ([DOUBTFUL], ["**refuted**"]),
        ([DOUBTFUL] * 2, ["undecided at 5 seeds, about 6 needed (alone: refuted)"] * 2),
        ([DOUBTFUL, *IDLE], ["**refuted**", "not run", "undecided at 1 seed, at least 3 needed"]),
        (
            [within(0.2, 0.01), *[within(0.03, 0.02)] * 2],
            ["**refuted**", *["undecided at 5 seeds, about 80 needed"] * 2],
        ),
        # Methods that share their seeds are no substitute for these.
        ([Question(Estimate(0.001, 0.002, 2, 7), -0.02, 0.02)], ["undecided at 2 seeds, about 3 needed"]),
        ([Question(Estimate(0.001, 0.002, 3, 7), -0.02, 0.02)], ["**confirmed**"]),
        ([replace(within(0.1, 0.01), unpublished="dropout")], ["**not reached at these settings**"]),
        ([replace(within(0.001, 0.002), unpublished="dropout")], ["**confirmed**"]),
    ],
)
def test_questions_are_judged_as_a_family(questions, answers):
    assert list(map(str, judge(questions))) == answers


def test_the_seeds_that_it_takes_decide_and_one_fewer_does_not():
    one = Estimate(0.03, 0.02, 5, 4)
    later = [judge([Question(one.after(count), -0.02, 0.02)])[0].corrected for count in (55, 56)]
    assert later == ["undecided at 55 seeds", "refuted"]


@pytest.mark.parametrize(
    ("difference", "repetitions", "needed"),
    [
        # Ours has a standard deviation of 0.0224, so the mean of 3 published runs an error of 0.0129: 0.01 is
        # 0.8 errors beyond the margin, however surely we know ours. 0.03 is 2.3 of them.
        (0.03, 3, "no number is enough"),
        (0.05, 3, "about 8 needed"),
        (0.02001, 10**9, "more than 1,000 needed"),
    ],
)
def test_a_published_figure_stays_as_unsure_as_it_is(difference, repetitions, needed):
    ours = Estimate(difference, 0.01, 5, 4).against(0.0, repetitions)
    assert judge([Question(ours, -0.02, 0.02)])[0].needed == needed


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        (["confirmed", "confirmed"], "**confirmed**"),
        (["refuted", "refuted"], "**refuted**"),
        (["confirmed", "not reached at these settings"], "**depends on the reading**"),
        (["confirmed", "undecided at 3 seeds"], "undecided at 3 seeds"),
        (["undecided at 5 seeds", "not run"], "undecided at 5 seeds"),
        (["confirmed", "not run"], "not run"),
    ],
)
def test_two_readings_have_one_verdict(answers, verdict):
    assert str(together([Judgement(answer, answer) for answer in answers])) == verdict


def test_two_readings_name_what_they_would_say_alone():
    found = together([Judgement("undecided at 5 seeds", "confirmed"), Judgement("refuted", "refuted")])
    assert str(found) == "undecided at 5 seeds (alone: depends on the reading)"


def test_counts_in_words():
    answers = ["refuted", "undecided at 3 seeds", "not run", "refuted"]
    assert in_words(answers, "refuted") == "2 refuted, 0 confirmed, 1 undecided, 1 not run"
    answers = ["depends on the reading", "confirmed"]
    assert (
        in_words(answers, "refuted")
        == "0 refuted, 1 confirmed, 1 depends on the reading, 0 undecided, 0 not run"
    )
