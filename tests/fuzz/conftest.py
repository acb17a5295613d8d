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
from tests.fuzz.server import ENGINE, Server
from tests.fuzz.tally import TALLIES, Failure, Tally


def pytest_terminal_summary(terminalreporter):
    if TALLIES:
        terminalreporter.section("fuzz")
    for tally in TALLIES:
        for line in tally.lines():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Takes commands of a login node."""
    found = Server()
    yield found
    found.close()


@pytest.fixture(scope="session")
def engine() -> Iterator[Server]:
    """Takes runs, on one rank."""
    found = Server(ENGINE)
    yield found
    found.close()


@pytest.fixture
def explore(request, tmp_path):
    """Return a function that tries many inputs: of each, what `attempt` returns or raises is counted.

    The same inputs come every time, and few; ``--fuzz-examples N`` draws N anew, from
    ``--hypothesis-seed`` where that is given.
    """
    wanted = request.config.getoption("--fuzz-examples")
    keep = request.config.getoption("--fuzz-keep")

    def run(
        usual: int, strategy: SearchStrategy[Any], attempt: Callable[[Any, Path], str | Failure]
    ) -> Tally:
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
                if isinstance(outcome, Failure):
                    if keep and outcome.kind not in tally.failures:
                        place = Path(keep) / f"{request.node.name}-{len(tally.failures)}"
                        shutil.copytree(folder, place, symlinks=True)
                        place.joinpath("FAILURE.txt").write_text(str(outcome), errors="backslashreplace")
                    tally.fail(outcome.kind, outcome.example)
                else:
                    tally.count(outcome)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        once()
        return tally

    return run


@pytest.fixture(scope="session")
def home(tmp_path_factory, server, engine):
    """A folder with a file of every kind."""
    return make(tmp_path_factory.mktemp("home"), server, engine)
