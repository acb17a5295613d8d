"""Cases that overrides make the same are one case, to every command."""

import pytest

SUITE = """
name = "lengths"
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 40 } }
[matrix]
length = [{ label = "base", share = "conv" }, { label = "long", rounds = 15 }]
seed = [1, 2]
[figure]
kind = "losses"
"""
NOTICE = (
    "fedmpi: --set makes cases the same, so one of them is run for all: "
    "long-seed1-rounds=15 as base-seed1-rounds=15; long-seed2-rounds=15 as base-seed2-rounds=15\n"
)


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "lengths.toml"
    path.write_text(SUITE)
    return path


def test_the_list_has_the_first_of_them_and_one_line_names_the_others(fedmpi, suite):
    done = fedmpi("run", suite, "--list", "--set", "rounds=15")
    assert (done.returncode, done.stderr) == (0, NOTICE)
    assert done.stdout.splitlines()[1:] == ["   0  base-seed1-rounds=15", "   1  base-seed2-rounds=15"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sweep", "SUITE", "--budget", "0"], "2 cases, 0 complete, 2 to run"),
        (["plot", "SUITE", "--budget", "0"], "2 cases, 0 complete, 2 to run"),
        (["jobs", "plan", "SUITE", "--system", "generic-cpu"], "2 cases, 0 complete"),
        (["paper", "select", "SUITE"], "none of its 2 cases has run"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_every_command_counts_them_once(fedmpi, suite, arguments, words):
    done = fedmpi(*(str(suite) if word == "SUITE" else word for word in arguments), "--set", "rounds=15")
    assert words in done.stdout + done.stderr
    assert done.stderr.startswith(NOTICE)


def test_without_overrides_nothing_is_said(fedmpi, suite):
    done = fedmpi("run", suite, "--list")
    assert (done.returncode, done.stderr, done.stdout.count("seed")) == (0, "", 4)
