"""Scaling modes of a suite: which cases run on how many ranks."""

import pytest

from fedmpi.config.suite import read
from fedmpi.errors import BadInput

STRONG = """
mode = "strong"
ranks = [1, 3]
[matrix]
algorithm = ["fedavg", "fedprox"]
"""
WEAK = """
mode = "weak"
[matrix]
seed = [1, 2]
size = [
    { label = "small", ranks = 2, rounds = 3 },
    { label = "large", ranks = 3, rounds = 3 },
]
"""


def cases(tmp_path, text):
    (tmp_path / "s.toml").write_text(text)
    suite = read(tmp_path / "s.toml")
    return suite.mode, {case.name: (case.ranks, case.settings) for case in suite.cases}


def test_strong_runs_every_case_on_each_number(tmp_path):
    mode, found = cases(tmp_path, STRONG)
    assert mode == "strong"
    assert [ranks for ranks, _ in found.values()] == [(1, 3), (1, 3)]


def test_weak_grows_a_case_with_its_ranks_which_are_no_setting(tmp_path):
    mode, found = cases(tmp_path, WEAK)
    assert mode == "weak"
    assert found["seed1-small"] == ((2,), {"seed": 1, "rounds": 3})
    assert found["seed2-large"] == ((3,), {"seed": 2, "rounds": 3})


def test_without_a_mode_cases_run_on_any_ranks(tmp_path):
    assert cases(tmp_path, '[matrix]\nalgorithm = ["fedavg"]') == (
        "",
        {"fedavg": ((), {"algorithm": "fedavg"})},
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"strong"', '"stong"'), 'did you mean "strong"'),
        (('"strong"', "3"), "valid: strong, weak, throughput"),
        (("ranks = [1, 3]", ""), "strong needs the numbers of ranks"),
        (('mode = "strong"', ""), "ranks: they need a mode"),
        (("[1, 3]", "[1, 1]"), "must name each number once"),
        (("[1, 3]", "[0]"), "must be a list of numbers of ranks"),
        (("[1, 3]", "3"), "must be a list of numbers of ranks"),
        (('"strong"', '"throughput"'), "for throughput only one"),
        (('mode = "strong"', 'mode = "weak"'), "mode weak needs them in the tables of an axis"),
        (
            ('mode = "strong"\nranks = [1, 3]', 'mode = "weak"'),
            "weak needs exactly one axis whose tables all set ranks",
        ),
    ],
    ids=lambda value: None if isinstance(value, tuple) else value,
)
def test_what_does_not_fit_is_refused(tmp_path, change, words):
    with pytest.raises(BadInput, match=words):
        cases(tmp_path, STRONG.replace(*change))


def test_a_table_with_no_number_is_refused(tmp_path):
    with pytest.raises(BadInput, match="must be a number of ranks"):
        cases(tmp_path, WEAK.replace("ranks = 2", 'ranks = "2"'))


def test_a_run_takes_the_cases_for_its_ranks_into_a_folder_of_their_own(fedmpi, tmp_path):
    tiny = "[case]\ndataset = { synthetic = { domains = 2, graphs = 20 } }\nrounds = 1\n"
    (tmp_path / "s.toml").write_text(f'mode = "strong"\nranks = [1, 3]\n{tiny}')
    assert fedmpi("run", "s.toml", "--out", "runs").returncode == 0
    assert (tmp_path / "runs" / "ranks1" / "case" / "run.h5").exists()
    listed = fedmpi("run", "s.toml", "--list")
    assert "0  case  on 1, 3 ranks" in listed.stdout
    (tmp_path / "w.toml").write_text(
        f'mode = "weak"\n{tiny}[matrix]\na = [{{ label = "x", ranks = 2, seed = 1 }}]'
    )
    refused = fedmpi("run", "w.toml")
    assert refused.returncode == 2
    assert "no case is for 1 rank (mode weak, ranks 2)" in refused.stderr
