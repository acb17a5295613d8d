"""How long to fuzz, the processes that take the inputs, and the counts at the end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from tests.fuzz.home import make
from tests.fuzz.server import Server
from tests.fuzz.tally import TALLIES, Failure, Tally


def pytest_terminal_summary(terminalreporter):
    if TALLIES:
        terminalreporter.section("fuzz")
    for tally in TALLIES:
        for line in tally.lines():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Takes commands, and runs on one rank."""
    found = Server()
    yield found
    found.close()


@pytest.fixture
def explore(request, tmp_path):
    """Return a function that tries many inputs: of each, what `attempt` returns or raises is counted.

    The same inputs come every time, and few; ``--fuzz-examples N`` draws N anew, from
    ``--hypothesis-seed`` where that is given. A failure fails the test when all were tried.
    """
    wanted = request.config.getoption("--fuzz-examples")
    keep = request.config.getoption("--fuzz-keep")

    def run(usual: int, strategy: SearchStrategy[Any], attempt: Callable[[Any, Path], str | Failure]) -> None:
        tally = Tally(request.node.name)

        @settings(
            max_examples=wanted or usual,
            derandomize=not wanted,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def once(value: Any) -> None:
            folder = tmp_path / "input"
            folder.mkdir()
            try:
                outcome = attempt(value, folder)
                if keep and isinstance(outcome, Failure) and outcome.kind not in tally.failures:
                    place = Path(keep) / f"{request.node.name}-{len(tally.failures)}"
                    shutil.copytree(folder, place, symlinks=True)
                    text = f"{outcome.kind}\n{outcome.example}\n"
                    (place / "FAILURE.txt").write_text(text, errors="backslashreplace")
                tally.add(outcome)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        once()
        assert not tally.failures, tally.verdict()

    return run


@pytest.fixture(scope="session")
def home(tmp_path_factory, server):
    """A folder with a file of every kind."""
    return make(tmp_path_factory.mktemp("home"), server)
