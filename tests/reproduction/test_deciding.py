import pytest

from fedmpi.config import locations
from fedmpi.reproduction.deciding import Design, expected, standings
from fedmpi.reproduction.published import Claim, read
from fedmpi.reproduction.repetitions import pose
from fedmpi.reproduction.results import Results

PATH = locations.find("gcfl/table3")
FIGURES = read(PATH.with_name("published.csv"))
PLUS = "algorithm.eps1=0.03 algorithm.eps2=0.06 partition=chunks"
DESIGN = Design(12, "pocock")
SEEDS = (10, 42, 79, 111, 123, 1, 2, 3, 4, 5, 6, 7)


def claim(kind, against, method="gcfl-plus", words="it is so"):
    cases = (f"dataset=PROTEINS method={name}" for name in (method, against))
    return Claim("GCFL", kind, "text", "", words, "", "", "gcfl/table3", *cases, "")


@pytest.fixture
def standing(make_rows):
    """Return a function that returns where claims stand, from leads of GCFL+ and FedProx over FedAvg by seed."""

    def stand(claims, *, plus=(), prox=()):
        rows = []
        for name, leads, options in (
            ("gcfl-plus", plus, PLUS),
            ("fedprox", prox, "partition=chunks"),
            ("fedavg", [0.0] * max(len(plus), len(prox)), "partition=chunks"),
        ):
            accuracies = {seed: [0.7 + lead] for seed, lead in zip(SEEDS, leads, strict=False)}
            rows += make_rows(name, accuracies, options=options)
        posed = pose(PATH, claims, [], DESIGN.max_seeds)
        return standings(posed, FIGURES, Results(rows), DESIGN)

    return stand


AROUND = [0.05, 0.06, 0.07, 0.05, 0.06, 0.07, 0.05]


def test_nothing_is_looked_at_before_all_seeds_of_the_suite_are_there(standing):
    (found,) = standing([claim("level", "fedavg")], plus=AROUND[:4])
    assert (found.seeds, found.looks, found.verdict, found.next_look) == (4, 0, "", 5)
    (found,) = standing([claim("level", "fedavg")], plus=[])
    assert (found.question.estimate, found.next_look) == (None, 5)


def test_a_claim_is_decided_at_the_first_look_that_is_sure_and_not_looked_at_again(standing):
    # "As good": at least -0.02. Mean 0.058, standard deviation 0.0084, 5 seeds: t = 20.9.
    (found,) = standing([claim("level", "fedavg")], plus=[*AROUND[:5], -0.9, -0.9])
    assert (found.verdict, found.seeds, found.looks, found.next_look) == ("confirmed", 5, 1, None)
    (found,) = standing([claim("level", "fedavg")], plus=[-0.1 - lead for lead in AROUND])
    assert (found.verdict, found.seeds) == ("refuted", 5)


def test_a_doubtful_claim_is_looked_at_after_every_seed(standing):
    doubtful = [-0.02 + lead for lead in (0.03, -0.02, 0.03, -0.02, 0.01, 0.0, 0.01)]
    (found,) = standing([claim("level", "fedavg")], plus=doubtful)
    assert (found.verdict, found.seeds, found.looks, found.next_look) == ("", 7, 3, 8)
    (found,) = standing([claim("level", "fedavg")], plus=[*doubtful, -0.02, 0.03, -0.02, -0.02, -0.02])
    assert (found.verdict, found.seeds, found.next_look) == ("", 12, None)


def test_a_claim_is_harder_to_decide_among_others(standing):
    # 0.0148 above the limit of -0.02, standard deviation 0.01: t = 3.3 with 4 degrees of freedom, p = 0.015.
    # Spent at 5 of 12 seeds is 0.0375 ln(1 + (e - 1) 5 / 12) = 0.0202, half of it for one of two claims.
    plus = [-0.0052 + lead for lead in (0.01, -0.01, 0.01, -0.01, 0.0)]
    alone = standing([claim("level", "fedavg")], plus=plus)
    assert alone[0].verdict == "confirmed"
    other = claim("level", "fedavg", "fedprox")
    among = standing([claim("level", "fedavg"), other], plus=plus, prox=[0.1, -0.14, 0.1, -0.14, 0.0])
    assert [each.verdict for each in among] == ["", ""]
    assert [each.undecided for each in among] == [2, 2]


def test_seeds_to_be_expected(standing):
    # 0.015 above the limit of -0.02, standard deviation 0.012.
    near = [-0.005 + lead for lead in (0.012, -0.012, 0.012, -0.012, 0.0)]
    (found,) = standing([claim("level", "fedavg")], plus=near)
    even, likely = (expected(found, DESIGN, power) for power in (0.5, 0.8))
    assert 5 < even < likely <= 12
    # A tenth of that distance takes a hundred times as many: (1.78 + 0.84)^2 (0.015 / 0.001)^2.
    far = [-0.019 + lead for lead in (0.015, -0.015, 0.015, -0.015, 0.0)]
    (found,) = standing([claim("level", "fedavg")], plus=far)
    assert expected(found, DESIGN, 0.8) == pytest.approx(1545, rel=0.01)
    assert expected(standing([claim("level", "fedavg")], plus=far[:1])[0], DESIGN, 0.5) is None
    at_the_limit = [-0.02 + lead for lead in (0.015, -0.015, 0.015, -0.015, 0.0)]
    assert expected(standing([claim("level", "fedavg")], plus=at_the_limit)[0], DESIGN, 0.5) is None
