"""How long to fuzz, and the processes that take the inputs. ``--hypothesis-show-statistics`` counts their ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis.strategies import SearchStrategy

from tests.fuzz.bench import Bench
from tests.fuzz.home import make
from tests.fuzz.oracle import Failure
from tests.fuzz.server import Server

_SHOWN = 700
"""Characters that are shown of an input's begin, and of its end."""


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
        failures: dict[str, list[str]] = {}

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
                event(outcome.kind if isinstance(outcome, Failure) else outcome)
                if not isinstance(outcome, Failure):
                    return
                if keep and outcome.kind not in failures:
                    place = Path(keep) / f"{request.node.name}-{len(failures)}"
                    shutil.copytree(folder, place, symlinks=True)
                    text = f"{outcome.kind}\n{outcome.example}\n"
                    (place / "FAILURE.txt").write_text(text, errors="backslashreplace")
                failures.setdefault(outcome.kind, []).append(outcome.example)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        once()
        shortest = {f"{len(each)} x {kind}": min(each, key=len) for kind, each in failures.items()}
        shown = (f"{kind}\n    {text[:_SHOWN]} ... {text[-_SHOWN:]}" for kind, text in shortest.items())
        assert not failures, "\n".join(shown)

    return run


@pytest.fixture(scope="session")
def home(tmp_path_factory, server):
    """A folder with a file of every kind."""
    return make(tmp_path_factory.mktemp("home"), server)


@pytest.fixture(scope="session")
def bench(home, server):
    """Runs commands on copies of these files."""
    return Bench(home, server, {})
