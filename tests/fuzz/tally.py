"""Counts what was tried and what came of it, and keeps the inputs of each kind of failure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_SHOWN = 700
"""Characters that are shown of an input's begin, and of its end."""

TALLIES: list[Tally] = []
"""One for each test that ran, for the summary at the end."""


@dataclass(frozen=True)
class Failure:
    """A bad end: its kind, and the input that shows it."""

    kind: str
    example: str


@dataclass
class Tally:
    """The inputs of one test: how many came to which good end, and those of each kind of failure."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        TALLIES.append(self)

    def add(self, outcome: str | Failure) -> None:
        """Count an input by its end."""
        if isinstance(outcome, Failure):
            self.failures.setdefault(outcome.kind, []).append(outcome.example)
        else:
            self.outcomes[outcome] += 1

    def lines(self) -> list[str]:
        """Return the counts, and a line per kind of failure."""
        failed = {kind: len(examples) for kind, examples in self.failures.items()}
        counts = [f"{count} {outcome}" for outcome, count in self.outcomes.most_common()]
        line = f"{self.name}: {', '.join([*counts, f'{sum(failed.values())} failures'])}"
        return [line, *(f"  {count} x {kind}" for kind, count in failed.items())]

    def verdict(self) -> str:
        """Return each kind of failure with its shortest input."""
        shortest = {kind: min(examples, key=len) for kind, examples in self.failures.items()}
        return "\n".join(
            f"{len(self.failures[kind])} x {kind}\n    {_abridged(text)}" for kind, text in shortest.items()
        )


def _abridged(text: str) -> str:
    cut = len(text) - 2 * _SHOWN
    return text if cut <= 0 else f"{text[:_SHOWN]} ...({cut} more)... {text[-_SHOWN:]}"
